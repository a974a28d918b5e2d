"""The kernel of each tree with itself, K(T, T), of which norms are made. No Spark."""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from corpusmill.fragments.forests import Interned, bags_of_subtrees, intern
from corpusmill.fragments.kernels import TreeKernel, build_index, same_values, tree_rows
from corpusmill.types import Floats, Forest

_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
_SMALL = 256


def self_kernel(kernel: TreeKernel, interned: Interned, decay: float) -> Floats:
    """Give K(T, T) of each tree.

    Returns
    -------
    Floats, shape (trees,)
        0 for an empty tree; infinity where it exceeds the floating-point numbers.

    Notes
    -----
    O(pairs of inner nodes) a tree, from a table of constant size; a tree of more than 256 inner
    nodes becomes an index of its own. ``st`` and ``sst_bow`` sort the nodes of each tree beside.
    """
    found = np.zeros(len(interned.offsets) - 1)
    subtrees = interned.subtrees
    if kernel != "st":
        _self_small(
            subtrees.productions, subtrees.child_offsets, interned.offsets, interned.nodes,
            decay, found,
        )  # fmt: skip
        for t in np.flatnonzero(found < 0.0):
            alone = only_tree(interned, int(t))
            found[t] = tree_rows("sst", build_index(alone), alone, decay)[0, 0]
    values = same_values(kernel, subtrees, decay)
    if values is not None:
        bags = bags_of_subtrees(interned)
        squares = csr_array(
            (bags.counts**2, bags.ids, bags.offsets), shape=(len(found), len(values))
        )
        found += np.asarray(squares @ values)
    return found


def only_tree(interned: Interned, tree: int) -> Interned:
    """Take one tree out, with none but its own subtrees and productions."""
    nodes = interned.nodes[interned.offsets[tree] : interned.offsets[tree + 1]]
    arities = np.diff(interned.subtrees.child_offsets)[nodes].astype(np.int32)
    offsets = np.array([0, len(nodes)])
    return intern(Forest(offsets, interned.subtrees.labels[nodes], arities))


@_kernel
def _self_small(productions, child_offsets, offsets, nodes, decay, out):  # type: ignore[no-untyped-def]
    """Set K(T, T) of trees of at most `_SMALL` inner nodes, -1 for others."""
    table = np.empty((_SMALL, _SMALL))
    rules = np.empty(_SMALL, np.int32)
    child_begins = np.zeros(_SMALL + 1, np.int64)
    longest = 1
    for t in range(len(out)):
        longest = max(longest, offsets[t + 1] - offsets[t])
    inner_children, stack = np.empty(longest, np.int32), np.empty(longest, np.int32)
    for t in range(len(out)):
        count = _inner_nodes(
            productions, child_offsets, nodes[offsets[t] : offsets[t + 1]],
            rules, child_begins, inner_children, stack,
        )  # fmt: skip
        out[t] = -1.0
        if count <= _SMALL:
            out[t] = _self_sum(count, rules, child_begins, inner_children, decay, table)


@_kernel
def _inner_nodes(productions, child_offsets, nodes, rules, child_begins, children, stack):  # type: ignore[no-untyped-def]
    """Find a tree's inner nodes, children first, with their productions and children.

    A child that is a leaf is -1. Gives the count, `_SMALL` + 1 if there are more.
    """
    top = count = 0
    for k in range(len(nodes) - 1, -1, -1):
        rule = productions[nodes[k]]
        number = -1
        if rule >= 0:
            if count == _SMALL:
                return _SMALL + 1
            arity = child_offsets[nodes[k] + 1] - child_offsets[nodes[k]]
            begin = child_begins[count]
            for i in range(arity):
                top -= 1
                children[begin + i] = stack[top]
            child_begins[count + 1] = begin + arity
            rules[count] = rule
            number = count
            count += 1
        stack[top] = number
        top += 1
    return count


@_kernel
def _self_sum(count, rules, child_begins, children, decay, table):  # type: ignore[no-untyped-def]
    """Sum Delta over all pairs of a tree's inner nodes; children have lower numbers."""
    total = 0.0
    for i in range(count):
        first = child_begins[i]
        for j in range(i + 1):
            delta = 0.0
            if rules[i] == rules[j]:
                delta, shift = decay, child_begins[j] - first
                for k in range(first, child_begins[i + 1]):
                    a, b = children[k], children[k + shift]
                    if a >= 0 and b >= 0:
                        delta *= 1.0 + table[a, b]
                total += delta if i == j else 2.0 * delta
            table[i, j] = table[j, i] = delta
    return total
