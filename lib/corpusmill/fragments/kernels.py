r"""Tree kernels, a row at a time: one tree against all trees of an index.

The SubSet Tree kernel (SST; Collins and Duffy 2002) of two trees is

    K(T, T') = sum over nodes n of T, n' of T' of Delta(n, n'),
    Delta(n, n') = 0 unless the productions at n and n' are the same, else
    Delta(n, n') = lambda prod_i (1 + Delta(c_i(n), c_i(n'))),   Delta(leaf, .) = 0,

which is the inner product of the trees' vectors of fragments, where a fragment of k productions
that occurs t times has the value t lambda^(k / 2).

Delta depends on the two subtrees alone. So for a node n one pass over the *distinct* subtrees of
the index with the same production gives Delta(n, .) for all of them, and a second pass over the
places where they occur (a posting list a production) adds it to the row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Interned
from corpusmill.types import AnyArray, Floats, Offsets, TokenIds

_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
_SCRATCH = 1 << 14


class Index(NamedTuple):
    """The distinct subtrees of a forest by production, and where they occur.

    Subtrees that are no leaves are ordered by production; a *place* is one in this order.

    Attributes
    ----------
    groups : Offsets, shape (productions + 1,)
        Production p has the places ``groups[p]:groups[p + 1]``.
    places : int64, shape (subtrees,)
        The place of each subtree; -1 for a leaf.
    column_offsets : Offsets, shape (productions + 1,)
        Where the production's children begin in ``columns``.
    columns : int32
        For a production of k children and g places, k blocks of g: the place of the i-th child,
        -1 for a leaf, ascending.
    column_members : int32
        Beside it the member of the group, 0 to g - 1, whose child it is.
    posting_offsets : Offsets, shape (productions + 1,)
    posting_trees : int32, shape (postings,)
        The trees in which a production stands, ascending; one for each node.
    posting_members : int32, shape (postings,)
        Beside it the member of the production's group that stands there.
    trees : int
    """

    groups: Offsets
    places: AnyArray
    column_offsets: Offsets
    columns: TokenIds
    column_members: TokenIds
    posting_offsets: Offsets
    posting_trees: TokenIds
    posting_members: TokenIds
    trees: int


def build_index(interned: Interned) -> Index:
    """Index a forest for rows of a kernel; O(nodes log nodes)."""
    subtrees, rules = interned.subtrees, len(interned.productions.offsets) - 1
    inner = np.flatnonzero(subtrees.productions >= 0)
    order = inner[np.argsort(subtrees.productions[inner], kind="stable")]
    places = np.full(len(subtrees.labels), -1, np.int64)
    places[order] = np.arange(len(order))
    groups = _offsets(subtrees.productions[inner], rules)
    arities = np.diff(interned.productions.offsets) - 1
    column_offsets = np.zeros(rules + 1, np.int64)
    np.cumsum(arities * np.diff(groups), out=column_offsets[1:])
    columns, members = _columns(
        groups, order, subtrees.child_offsets, subtrees.children, places, column_offsets
    )
    trees = np.repeat(
        np.arange(len(interned.offsets) - 1, dtype=np.int32), np.diff(interned.offsets)
    )
    rules_of = subtrees.productions[interned.nodes]
    by_rule = np.argsort(rules_of, kind="stable")[np.count_nonzero(rules_of < 0) :]
    found = interned.nodes[by_rule]
    return Index(
        groups,
        places,
        column_offsets,
        columns,
        members,
        _offsets(rules_of[by_rule], rules),
        trees[by_rule],
        (places[found] - groups[rules_of[by_rule]]).astype(np.int32),
        len(interned.offsets) - 1,
    )


def _offsets(keys: TokenIds, size: int) -> Offsets:
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=size), out=offsets[1:])
    return offsets


@_kernel
def _columns(groups, order, child_offsets, children, places, column_offsets):  # type: ignore[no-untyped-def]
    columns = np.empty(column_offsets[-1], np.int32)
    members = np.empty(column_offsets[-1], np.int32)
    for rule in range(len(groups) - 1):
        size = groups[rule + 1] - groups[rule]
        if size == 0:
            continue
        for i in range((column_offsets[rule + 1] - column_offsets[rule]) // size):
            begin = column_offsets[rule] + i * size
            column = np.empty(size, np.int32)
            for m in range(size):
                column[m] = places[children[child_offsets[order[groups[rule] + m]] + i]]
            ranks = np.argsort(column, kind="mergesort")
            columns[begin : begin + size] = column[ranks]
            members[begin : begin + size] = ranks
    return columns, members


@_kernel
def _match_children(index, column, size, rule, below, delta):  # type: ignore[no-untyped-def]
    """Multiply 1 + Delta of the children, of those members whose child has the production."""
    first = index.groups[rule]
    places = index.columns[column : column + size]
    begin = np.searchsorted(places, first)
    for k in range(begin, size):
        at = places[k] - first
        if at >= len(below):
            break
        delta[index.column_members[column + k]] *= 1.0 + below[at]


@_kernel
def sst_row(index, productions, child_offsets, nodes, decay, row, scratch):  # type: ignore[no-untyped-def]
    """Add K(T, T_j) of one tree with all trees j of an index to ``row``.

    Parameters
    ----------
    index : Index
    productions, child_offsets
        Of the subtrees that ``nodes`` are numbers of: those of the index and what is new.
    nodes : TokenIds
        The tree's nodes in preorder.
    decay : float
        lambda.
    row : Floats, shape (trees,)
    scratch : Floats
        Room to work; a larger one is returned when it was too small.

    Returns
    -------
    Floats
        The scratch, to be handed to the next call.

    Notes
    -----
    O(sum over nodes of the distinct subtrees and postings with the node's production); memory
    that of the nodes whose parent is still to come.
    """
    rules = len(index.groups) - 1
    starts = np.empty(len(nodes) + 1, np.int64)
    rule_of = np.empty(len(nodes), np.int32)
    top = 0
    starts[0] = 0
    for at in range(len(nodes) - 1, -1, -1):
        subtree = nodes[at]
        arity = child_offsets[subtree + 1] - child_offsets[subtree]
        rule = productions[subtree]
        end = starts[top]
        size = 0
        if 0 <= rule < rules:
            size = index.groups[rule + 1] - index.groups[rule]
        if end + size > len(scratch):
            larger = np.empty(2 * (end + size), np.float64)
            larger[:end] = scratch[:end]
            scratch = larger
        delta = scratch[end : end + size]
        delta[:] = decay
        if size > 0:
            for i in range(arity):
                child = top - 1 - i
                below = scratch[starts[child] : starts[child + 1]]
                if len(below) > 0:
                    column = index.column_offsets[rule] + i * size
                    _match_children(index, column, size, rule_of[child], below, delta)
            for k in range(index.posting_offsets[rule], index.posting_offsets[rule + 1]):
                row[index.posting_trees[k]] += delta[index.posting_members[k]]
        top -= arity
        begin = starts[top]
        if begin < end:
            scratch[begin : begin + size] = scratch[end : end + size]
        rule_of[top] = rule
        top += 1
        starts[top] = begin + size
    return scratch


@_kernel
def _match_children(index, column, size, rule, below, delta):  # type: ignore[no-untyped-def]
    """Multiply 1 + Delta of the children, of those members whose child has the production."""
    first = index.groups[rule]
    places = index.columns[column : column + size]
    begin = np.searchsorted(places, first)
    for k in range(begin, size):
        at = places[k] - first
        if at >= len(below):
            break
        delta[index.column_members[column + k]] *= 1.0 + below[at]


@_kernel
def sst_rows(index, productions, child_offsets, offsets, nodes, decay, rows):  # type: ignore[no-untyped-def]
    """Fill ``rows[t]`` with the kernel of tree t and all trees of the index."""
    scratch = np.empty(_SCRATCH, np.float64)
    for t in range(len(offsets) - 1):
        rows[t, :] = 0.0
        scratch = sst_row(
            index, productions, child_offsets, nodes[offsets[t] : offsets[t + 1]],
            decay, rows[t], scratch,
        )  # fmt: skip


def sst(index: Index, interned: Interned, decay: float) -> Floats:
    """Give the SST kernel of every tree with every tree of the index, shape (trees, trees')."""
    rows = np.empty((len(interned.offsets) - 1, index.trees))
    subtrees = interned.subtrees
    sst_rows(
        index, subtrees.productions, subtrees.child_offsets, interned.offsets, interned.nodes,
        decay, rows,
    )  # fmt: skip
    return rows
