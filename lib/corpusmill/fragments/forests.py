"""Forests as flat arrays, and their identical subtrees found once (hash-consing). No Spark.

A tree is written in preorder: for each node a label and its number of children, which is all
there is to know. Whatever is computed for a subtree is then computed once for all its
occurrences, in all trees: `intern` gives every distinct subtree a number, children before
parents, and every distinct *production* (a node's label and its children's labels) another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Bags, Flags, Forest, Offsets, TokenIds

LEAF = -1
"""The production of a node without children."""
_kernel = njit(cache=True, nogil=True, error_model="numpy")


class Subtrees(NamedTuple):
    """Distinct subtrees; children have lower numbers than their parents.

    Attributes
    ----------
    labels : TokenIds, shape (subtrees,)
        The root's label.
    productions : TokenIds, shape (subtrees,)
        The root's production, or `LEAF`.
    child_offsets : Offsets, shape (subtrees + 1,)
    children : TokenIds, shape (child_offsets[-1],)
        The children's numbers.
    """

    labels: TokenIds
    productions: TokenIds
    child_offsets: Offsets
    children: TokenIds


class Productions(NamedTuple):
    """Distinct productions: a label and the labels of the children, in order.

    Attributes
    ----------
    offsets : Offsets, shape (productions + 1,)
    labels : TokenIds, shape (offsets[-1],)
        ``labels[offsets[p]]`` is the left-hand side, what follows it the right-hand side.
    """

    offsets: Offsets
    labels: TokenIds


class Interned(NamedTuple):
    """A forest whose nodes are numbers of distinct subtrees.

    Attributes
    ----------
    subtrees : Subtrees
    productions : Productions
    offsets : Offsets, shape (trees + 1,)
        Tree t has the nodes ``offsets[t]:offsets[t + 1]``, in preorder.
    nodes : TokenIds, shape (offsets[-1],)
        For each node the number of the subtree that it is the root of.
    """

    subtrees: Subtrees
    productions: Productions
    offsets: Offsets
    nodes: TokenIds


NO_PRODUCTIONS = Productions(np.zeros(1, np.int64), np.zeros(0, np.int32))
NO_SUBTREES = Subtrees(
    np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(1, np.int64), np.zeros(0, np.int32)
)


def intern(
    forest: Forest,
    subtrees: Subtrees = NO_SUBTREES,
    productions: Productions = NO_PRODUCTIONS,
) -> Interned:
    """Give the distinct subtrees and productions of a forest their numbers.

    Parameters
    ----------
    forest : Forest
    subtrees, productions
        Known ones, which keep their numbers; what is new is numbered after them.

    Returns
    -------
    Interned
        The same for any labels' order; new numbers follow the first occurrence, in reverse
        preorder of each tree.

    Notes
    -----
    O(nodes) expected, by open addressing with full comparison of the keys: no collision is ever
    taken for equality. Needs no recursion, so that depth is bounded by memory alone.
    """
    nodes, edges = len(forest.labels), int(forest.arities.sum())
    known = len(subtrees.labels)
    tree_keys = _Keys.of(
        np.arange(known + 1) + subtrees.child_offsets,
        _interleave(subtrees.labels, subtrees.child_offsets, subtrees.children),
        nodes,
        nodes + edges,
    )
    rule_keys = _Keys.of(productions.offsets, productions.labels, nodes, nodes + edges)
    produced = np.empty(known + nodes, np.int32)
    produced[:known] = subtrees.productions
    ids = np.empty(nodes, np.int32)
    rows, rules = _intern_nodes(
        forest.labels, forest.arities, forest.offsets, *tree_keys, *rule_keys, produced, ids
    )
    offsets, labels = rule_keys.offsets[: rules + 1], rule_keys.values
    used = tree_keys.offsets[: rows + 1]
    is_label = np.zeros(used[-1], np.bool_)
    is_label[used[:-1]] = True
    values = tree_keys.values[: used[-1]]
    found = Subtrees(
        values[is_label], produced[:rows].copy(), used - np.arange(rows + 1), values[~is_label]
    )
    rules_found = Productions(offsets.copy(), labels[: offsets[-1]].copy())
    return Interned(found, rules_found, forest.offsets, ids)


def bags_of_subtrees(interned: Interned) -> Bags:
    """Count the distinct subtrees of each tree, leaves included, in ascending order."""
    return Bags(*_count_within_trees(interned.offsets, interned.nodes))


def keep_subtrees(subtrees: Subtrees, wanted: Flags) -> tuple[Subtrees, AnyArray]:
    """Keep some subtrees and all that are below them, in their order; O(nodes).

    Returns
    -------
    subtrees : Subtrees
        With new numbers.
    kept : int64
        Their old numbers.
    """
    chosen = _with_all_below(wanted.copy(), subtrees.child_offsets, subtrees.children)
    kept = np.flatnonzero(chosen)
    arities = np.diff(subtrees.child_offsets)
    numbers = (np.cumsum(chosen) - 1).astype(np.int32)
    offsets = np.zeros(len(kept) + 1, np.int64)
    np.cumsum(arities[kept], out=offsets[1:])
    children = numbers[subtrees.children[np.repeat(chosen, arities)]]
    return Subtrees(subtrees.labels[kept], subtrees.productions[kept], offsets, children), kept


class _Keys(NamedTuple):
    """Growing sequences of numbers and the hash table that finds them."""

    slots: TokenIds
    offsets: Offsets
    values: TokenIds
    known: int

    @classmethod
    def of(cls, offsets: Offsets, values: TokenIds, more: int, more_values: int) -> _Keys:
        count = len(offsets) - 1
        size = 1 << max(4, int(2 * (count + more)).bit_length())
        slots = np.full(size, -1, np.int32)
        all_offsets = np.zeros(count + more + 1, np.int64)
        all_offsets[: count + 1] = offsets
        all_values = np.empty(len(values) + more_values, np.int32)
        all_values[: len(values)] = values
        _fill_slots(slots, all_offsets, all_values, count)
        return cls(slots, all_offsets, all_values, count)


def _interleave(labels: TokenIds, offsets: Offsets, children: TokenIds) -> TokenIds:
    """Put each label before its children."""
    return np.insert(children, offsets[:-1], labels).astype(np.int32, copy=False)


@_kernel
def _with_all_below(chosen, child_offsets, children):  # type: ignore[no-untyped-def]
    # Parents have the higher numbers.
    for u in range(len(chosen) - 1, -1, -1):
        if chosen[u]:
            for k in range(child_offsets[u], child_offsets[u + 1]):
                chosen[children[k]] = True
    return chosen


@_kernel
def _hash(values, begin, end):  # type: ignore[no-untyped-def]
    h = np.uint64(1469598103934665603)
    for k in range(begin, end):
        h ^= np.uint64(np.uint32(values[k]))
        h *= np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return h


@_kernel
def _fill_slots(slots, offsets, values, count):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(slots) - 1)
    for i in range(count):
        at = _hash(values, offsets[i], offsets[i + 1]) & mask
        while slots[at] >= 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = i


@_kernel
def _find_or_add(slots, offsets, values, count, length):  # type: ignore[no-untyped-def]
    """Find the key that stands behind the last one; keep it there if it is new."""
    begin = offsets[count]
    mask = np.uint64(len(slots) - 1)
    at = _hash(values, begin, begin + length) & mask
    while slots[at] >= 0:
        other = slots[at]
        start = offsets[other]
        if offsets[other + 1] - start == length:
            same = True
            for k in range(length):
                if values[start + k] != values[begin + k]:
                    same = False
                    break
            if same:
                return other
        at = (at + np.uint64(1)) & mask
    slots[at] = count
    offsets[count + 1] = begin + length
    return count


@_kernel
def _intern_nodes(  # type: ignore[no-untyped-def]
    labels, arities, offsets,
    tree_slots, tree_offsets, tree_values, trees,
    rule_slots, rule_offsets, rule_values, rules,
    produced, ids,
):  # fmt: skip
    depth = 1
    for t in range(len(offsets) - 1):
        depth = max(depth, offsets[t + 1] - offsets[t])
    stack = np.empty(depth, np.int64)
    for t in range(len(offsets) - 1):
        top = 0
        # Backwards, a node's children lie on the stack, the first on top, when it is reached.
        for node in range(offsets[t + 1] - 1, offsets[t] - 1, -1):
            arity = arities[node]
            begin, start = tree_offsets[trees], rule_offsets[rules]
            tree_values[begin] = labels[node]
            rule_values[start] = labels[node]
            for k in range(arity):
                child = stack[top - 1 - k]
                tree_values[begin + 1 + k] = ids[child]
                rule_values[start + 1 + k] = labels[child]
            top -= arity
            found = _find_or_add(tree_slots, tree_offsets, tree_values, trees, arity + 1)
            if found == trees:
                produced[trees] = -1
                if arity > 0:
                    rule = _find_or_add(rule_slots, rule_offsets, rule_values, rules, arity + 1)
                    rules = max(rules, rule + 1)
                    produced[trees] = rule
                trees += 1
            ids[node] = found
            stack[top] = node
            top += 1
    return trees, rules


@_kernel
def _count_within_trees(offsets, ids):  # type: ignore[no-untyped-def]
    trees = len(offsets) - 1
    out_offsets = np.zeros(trees + 1, np.int64)
    out_ids = np.empty(len(ids), np.int32)
    out_counts = np.empty(len(ids), np.float64)
    filled = 0
    for t in range(trees):
        ordered = np.sort(ids[offsets[t] : offsets[t + 1]])
        for k in range(len(ordered)):
            if k > 0 and ordered[k] == ordered[k - 1]:
                out_counts[filled - 1] += 1.0
            else:
                out_ids[filled] = ordered[k]
                out_counts[filled] = 1.0
                filled += 1
        out_offsets[t + 1] = filled
    return out_offsets, out_ids[:filled].copy(), out_counts[:filled].copy()
