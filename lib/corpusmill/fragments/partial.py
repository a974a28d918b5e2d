r"""The Partial Tree Kernel (PTK), a row at a time: one tree against all trees of an index.

A fragment is a node with any subsequence of its children, each again with any of theirs
(Moschitti, Efficient Convolution Kernels for Dependency and Constituent Syntactic Trees, ECML
2006). K(T, T') = sum over nodes n of T, n' of T' of Delta(n, n'), 0 where the labels differ, else

    Delta(n, n') = mu (lambda^2 + sum over I, J: lambda^(g(I) + g(J)) prod_k Delta(c_I_k, c'_J_k)),

where I and J run over subsequences of the children of n and n' of the same length of at least 1,
and g counts the children that a subsequence skips between its first and its last: the paper's
recursion over prefixes, in which neighbours cost nothing. So a fragment of m nodes, i of which
have children, that skips g children in all has the value mu^(m/2) lambda^(m - i + g) where it
occurs, and the kernel is the inner product of the vectors of these values.

The paper sums over lengths, in O(k^3) for k children. As lengths are told apart nowhere, one sum
over all of them does, in O(k^2): with i and j the last children of the two subsequences,

    S(i, j) = Delta(c_i, c'_j) (1 + D(i - 1, j - 1)),
    D(i, j) = sum over k <= i, l <= j of lambda^(i - k + j - l) S(k, l),

and the sum in Delta(n, n') is that of all S(i, j).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Interned, Subtrees
from corpusmill.fragments.kernels import (
    MOST_OPEN,
    SCRATCH,
    Postings,
    arrange,
    heavy_first,
    post,
    with_room,
)
from corpusmill.fragments.self_kernels import only_tree
from corpusmill.types import Floats, Offsets, TokenIds

_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
_SMALL = 256
_NOTHING = -1
_FRAME = 5
_NODE, _BEGIN, _SUMS, _NEXT, _HELD = range(_FRAME)


class LabelIndex(NamedTuple):
    """The distinct subtrees of a forest by label, their children, and where they occur.

    A *place* is a subtree in the order of labels.

    Attributes
    ----------
    groups : Offsets, shape (labels + 1,)
        Label l has the places ``groups[l]:groups[l + 1]``.
    child_offsets : Offsets, shape (subtrees + 1,)
        By place.
    children : TokenIds
        The children's places.
    postings : Postings
    trees : int
    """

    groups: Offsets
    child_offsets: Offsets
    children: TokenIds
    postings: Postings
    trees: int


def build_label_index(interned: Interned) -> LabelIndex:
    """Index a forest for rows of the partial tree kernel; O(nodes log nodes)."""
    subtrees = interned.subtrees
    labels = int(subtrees.labels.max(initial=-1)) + 1
    order, groups, places = arrange(subtrees.labels, labels)
    sizes = np.diff(subtrees.child_offsets)[order]
    child_offsets = np.zeros(len(order) + 1, np.int64)
    np.cumsum(sizes, out=child_offsets[1:])
    shifts = np.repeat(subtrees.child_offsets[:-1][order] - child_offsets[:-1], sizes)
    children = places[subtrees.children[np.arange(child_offsets[-1]) + shifts]]
    postings = post(interned, groups, places)
    return LabelIndex(groups, child_offsets, children, postings, len(interned.offsets) - 1)


def partial_rows(index: LabelIndex, interned: Interned, decay: float, mu: float) -> Floats:
    """Give the PTK of every tree with every tree of the index, shape (trees, trees').

    Parameters
    ----------
    index : LabelIndex
    interned : Interned
        Trees over the same labels.
    decay : float
        lambda, in (0, 1]: for gaps, and squared for a fragment's leaves.
    mu : float
        For each level, in (0, 1].
    """
    rows = np.zeros((len(interned.offsets) - 1, index.trees))
    add_partial_rows(index, interned.subtrees, interned.offsets, interned.nodes, decay, mu, rows)
    return rows


def add_partial_rows(
    index: LabelIndex,
    subtrees: Subtrees,
    offsets: Offsets,
    nodes: TokenIds,
    decay: float,
    mu: float,
    rows: Floats,
) -> None:
    """Add the PTK of trees with all trees of an index to rows, shape (trees, trees').

    ``offsets`` may be a part of a forest's.

    Notes
    -----
    O(sum over nodes n, of the children of n times all children of the distinct subtrees with the
    label of n, and the postings of these); memory O(log(nodes) largest group and its children),
    whatever the tree's depth and width.
    """
    _rows(
        index, subtrees.labels, subtrees.child_offsets, subtrees.children, offsets, nodes,
        decay, mu, rows,
    )  # fmt: skip


@_kernel
def _rows(index, labels, child_offsets, children, offsets, nodes, decay, mu, rows):  # type: ignore[no-untyped-def]
    scratch = np.empty(SCRATCH, np.float64)
    for t in range(len(offsets) - 1):
        scratch = _row(
            index, labels, child_offsets, children, nodes[offsets[t] : offsets[t + 1]],
            decay, mu, rows[t], scratch,
        )  # fmt: skip


@_kernel
def _row(index, labels, child_offsets, children, nodes, decay, mu, row, scratch):  # type: ignore[no-untyped-def]
    """Add the row of one tree. The last frame's numbers end at ``end``, where there is room."""
    order, parents, ranks = heavy_first(nodes, child_offsets)
    frames = np.empty((MOST_OPEN, _FRAME), np.int64)
    leaf = np.full(1, mu * decay * decay)
    top = end = 0
    for k in range(len(nodes) - 1, -1, -1):
        at = order[k]
        u = nodes[at]
        size = _group_size(index, labels[u])
        if size == 0:
            continue
        if child_offsets[u] == child_offsets[u + 1]:
            _scatter(index, labels[u], size, leaf, row)
            continue
        if top == 0 or frames[top - 1, _NODE] != at:
            top, end, scratch = _open(index, labels[u], at, end, end, frames, top, scratch)
        _advance(
            index, labels, child_offsets, children, u, _NOTHING, 0, decay, leaf,
            frames[top - 1], scratch,
        )  # fmt: skip
        top -= 1
        begin, sums = frames[top, _BEGIN], frames[top, _SUMS]
        for m in range(size):
            scratch[begin + m] = mu * (decay * decay + scratch[sums + m])
        end = begin + size
        _scatter(index, labels[u], size, scratch[begin:end], row)
        above = parents[at]
        if above < 0 or _group_size(index, labels[nodes[above]]) == 0:
            end = begin
            continue
        fresh = top == 0 or frames[top - 1, _NODE] != above
        if fresh:
            label = labels[nodes[above]]
            top, end, scratch = _open(index, label, above, begin, end, frames, top, scratch)
            frames[top - 1, _HELD] = ranks[at]
        frame = frames[top - 1]
        _advance(
            index, labels, child_offsets, children, nodes[above], ranks[at], begin, decay, leaf,
            frame, scratch,
        )  # fmt: skip
        if not fresh:
            end = begin
        elif frame[_NEXT] > ranks[at]:
            end = _let_go(frame, end, scratch)
    return scratch


@_kernel
def _group_size(index, label):  # type: ignore[no-untyped-def]
    return index.groups[label + 1] - index.groups[label] if label < len(index.groups) - 1 else 0


@_kernel
def _open(index, label, at, begin, end, frames, top, scratch):  # type: ignore[no-untyped-def]
    """Begin a node of which no child is taken in yet: sums of S, and the last row of D."""
    first, last = index.groups[label], index.groups[label + 1]
    size = last - first + index.child_offsets[last] - index.child_offsets[first]
    scratch = with_room(scratch, end, size)
    scratch[end : end + size] = 0.0
    frame = frames[top]
    frame[_NODE], frame[_BEGIN], frame[_SUMS] = at, begin, end
    frame[_NEXT], frame[_HELD] = 0, _NOTHING
    return top + 1, end + size, scratch


@_kernel
def _let_go(frame, end, scratch):  # type: ignore[no-untyped-def]
    """Drop the child that was held for later; give the new end."""
    begin, sums = frame[_BEGIN], frame[_SUMS]
    scratch[begin : begin + end - sums] = scratch[sums:end]
    frame[_SUMS], frame[_HELD] = begin, _NOTHING
    return begin + end - sums


@_kernel
def _advance(  # type: ignore[no-untyped-def]
    index, labels, child_offsets, children, u, done, done_begin, decay, leaf, frame, scratch
):  # fmt: skip
    """Take children in, from left to right, up to the first whose Delta is still to come.

    Known are leaves, the child that is held, and the child number ``done``.
    """
    first, last = index.groups[labels[u]], index.groups[labels[u] + 1]
    sums, ends = frame[_SUMS], frame[_SUMS] + last - first
    while frame[_NEXT] < child_offsets[u + 1] - child_offsets[u]:
        child = children[child_offsets[u] + frame[_NEXT]]
        size = _group_size(index, labels[child])
        below = leaf
        if size > 0 and child_offsets[child] < child_offsets[child + 1]:
            if frame[_NEXT] == frame[_HELD]:
                below = scratch[frame[_BEGIN] : frame[_BEGIN] + size]
            elif frame[_NEXT] == done:
                below = scratch[done_begin : done_begin + size]
            else:
                break
        _take_in(
            index, first, last, labels[child], size, below, decay,
            scratch[sums:ends], scratch[ends:],
        )  # fmt: skip
        frame[_NEXT] += 1


@_kernel
def _take_in(index, first, last, label, size, below, decay, sums, ended):  # type: ignore[no-untyped-def]
    """Add S(i, .) of one more child to the sums, and put D(i, .) in the place of D(i - 1, .)."""
    begin = index.groups[label] if size > 0 else 0
    start = index.child_offsets[first]
    single = len(below) == 1
    for v in range(first, last):
        diagonal = along = total = 0.0
        for k in range(index.child_offsets[v], index.child_offsets[v + 1]):
            at = index.children[k] - begin
            s = 0.0
            if 0 <= at < size:
                s = below[0 if single else at] * (1.0 + diagonal)
            along = decay * along + s
            diagonal = ended[k - start]
            ended[k - start] = decay * diagonal + along
            total += s
        sums[v - first] += total


@_kernel
def _scatter(index, label, size, delta, row):  # type: ignore[no-untyped-def]
    """Add Delta where the members of a group occur; one number stands for all."""
    postings, first = index.postings, index.groups[label]
    single = len(delta) == 1
    for k in range(postings.offsets[first], postings.offsets[first + size]):
        row[postings.trees[k]] += delta[0 if single else postings.members[k]]


def partial_self_kernel(interned: Interned, decay: float, mu: float) -> Floats:
    """Give K(T, T) of each tree.

    Returns
    -------
    Floats, shape (trees,)
        0 for an empty tree; infinity where it exceeds the floating-point numbers.

    Notes
    -----
    O(pairs of nodes of the same label and of their children) a tree, from a table of constant
    size; a tree of more than 256 nodes becomes an index of its own.
    """
    found = np.zeros(len(interned.offsets) - 1)
    subtrees = interned.subtrees
    _self_small(
        subtrees.labels, subtrees.child_offsets, interned.offsets, interned.nodes,
        decay, mu, found,
    )  # fmt: skip
    for t in np.flatnonzero(found < 0.0):
        alone = only_tree(interned, int(t))
        found[t] = partial_rows(build_label_index(alone), alone, decay, mu)[0, 0]
    return found


@_kernel
def _self_small(labels, child_offsets, offsets, nodes, decay, mu, out):  # type: ignore[no-untyped-def]
    """Set K(T, T) of trees of at most `_SMALL` nodes, -1 for others."""
    table, ended = np.empty((_SMALL, _SMALL)), np.empty(_SMALL)
    children, begins = np.empty(_SMALL, np.int64), np.empty(_SMALL + 1, np.int64)
    for t in range(len(out)):
        tree = nodes[offsets[t] : offsets[t + 1]]
        out[t] = -1.0
        if len(tree) <= _SMALL:
            _child_lists(child_offsets, tree, children, begins)
            out[t] = _self_sum(labels, tree, children, begins, decay, mu, table, ended)


@_kernel
def _child_lists(child_offsets, nodes, children, begins):  # type: ignore[no-untyped-def]
    """List the children of each node of a tree by their positions in preorder."""
    size = len(nodes)
    stack = np.empty(size, np.int64)
    top, filled = 0, size
    begins[size] = max(size - 1, 0)
    filled = begins[size]
    for at in range(size - 1, -1, -1):
        arity = child_offsets[nodes[at] + 1] - child_offsets[nodes[at]]
        filled -= arity
        for i in range(arity):
            top -= 1
            children[filled + i] = stack[top]
        begins[at] = filled
        stack[top] = at
        top += 1


@_kernel
def _self_sum(labels, nodes, children, begins, decay, mu, table, ended):  # type: ignore[no-untyped-def]
    """Sum Delta over all pairs of a tree's nodes."""
    total = 0.0
    for i in range(len(nodes) - 1, -1, -1):
        for j in range(len(nodes) - 1, i - 1, -1):
            delta = 0.0
            if labels[nodes[i]] == labels[nodes[j]]:
                left = children[begins[i] : begins[i + 1]]
                right = children[begins[j] : begins[j + 1]]
                delta = mu * (decay * decay + _subsequences(left, right, decay, table, ended))
                total += delta if i == j else 2.0 * delta
            table[i, j] = table[j, i] = delta
    return total


@_kernel
def _subsequences(left, right, decay, table, ended):  # type: ignore[no-untyped-def]
    """Sum S over all pairs of children."""
    total = 0.0
    if len(left) == 0:
        return total
    ended[: len(right)] = 0.0
    for i in left:
        diagonal = along = 0.0
        for k in range(len(right)):
            s = table[i, right[k]] * (1.0 + diagonal)
            along = decay * along + s
            diagonal = ended[k]
            ended[k] = decay * diagonal + along
            total += s
    return total
