r"""Tree kernels, a row at a time: one tree against all trees of an index.

All are sums over pairs of nodes, K(T, T') = sum over n of T, n' of T' of Delta(n, n').

``sst``
    The SubSet Tree kernel (Collins and Duffy 2002). Delta(n, n') = 0 unless the productions at n
    and n' are the same, else lambda prod_i (1 + Delta(c_i(n), c_i(n'))), where Delta(leaf, .) = 0.
    It is the inner product of the trees' vectors of fragments, where a fragment of k productions
    that occurs t times has the value t lambda^(k / 2).
``st``
    The SubTree kernel (Vishwanathan and Smola 2002; sigma = 0 in Moschitti 2006): the fragments
    are the complete subtrees, leaves alone excluded. For c(u) occurrences of the subtree u, of
    k(u) productions, K = sum_u c(u) c'(u) lambda^k(u).
``sst_bow``
    The fragments of ``sst``, and every leaf as one of its own (Zhang and Lee 2003):
    K = K_sst + lambda sum over leaves l of c(l) c'(l).

Delta depends on the two subtrees alone. So for a node n one pass over the *distinct* subtrees of
the index with the same production gives Delta(n, .) for all of them, and a second pass over the
places where they occur adds it to the row. What ``st`` and ``sst_bow`` have of their own are
values of identical subtrees, which need the second pass alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Interned, Subtrees
from corpusmill.types import AnyArray, Floats, Offsets, TokenIds

TreeKernel = Literal["sst", "st", "sst_bow"]

_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
SCRATCH = 1 << 14
"""Numbers of room that a row begins with."""
MOST_OPEN = 64


class Postings(NamedTuple):
    """Where the distinct subtrees of a forest occur, by their places.

    Attributes
    ----------
    offsets : Offsets, shape (subtrees + 1,)
        The subtree at a place has the postings ``offsets[place]:offsets[place + 1]``.
    trees : TokenIds, shape (nodes,)
        Its trees, ascending; one for each node.
    members : TokenIds, shape (nodes,)
        Beside them the place less the first of its group.
    """

    offsets: Offsets
    trees: TokenIds
    members: TokenIds


class Index(NamedTuple):
    """The distinct subtrees of a forest by production, their children, and where they occur.

    A *place* is a subtree in the order of productions, leaves at the end.

    Attributes
    ----------
    groups : Offsets, shape (productions + 1,)
        Production p has the places ``groups[p]:groups[p + 1]``.
    places : TokenIds, shape (subtrees,)
        The place of each subtree.
    column_offsets : Offsets, shape (productions + 1,)
        Where the production's children begin in ``columns``.
    columns : TokenIds
        For a production of k children and g places, k blocks of g: the place of the i-th child,
        ascending.
    column_members : TokenIds
        Beside it the member of the group, 0 to g - 1, whose child it is.
    postings : Postings
    trees : int
    """

    groups: Offsets
    places: TokenIds
    column_offsets: Offsets
    columns: TokenIds
    column_members: TokenIds
    postings: Postings
    trees: int


def build_index(interned: Interned) -> Index:
    """Index a forest for rows of a kernel; O(nodes log nodes)."""
    subtrees, rules = interned.subtrees, len(interned.productions.offsets) - 1
    keys = np.where(subtrees.productions < 0, rules, subtrees.productions)
    order, groups, places = arrange(keys, rules + 1)
    arities = np.diff(interned.productions.offsets) - 1
    column_offsets = np.zeros(rules + 1, np.int64)
    np.cumsum(arities * np.diff(groups[:-1]), out=column_offsets[1:])
    columns, members = _columns(
        groups, order, subtrees.child_offsets, subtrees.children, places, column_offsets
    )
    postings = post(interned, groups, places)
    trees = len(interned.offsets) - 1
    return Index(groups[:-1], places, column_offsets, columns, members, postings, trees)


def arrange(keys: AnyArray, size: int) -> tuple[AnyArray, Offsets, TokenIds]:
    """Sort subtrees by key: their numbers, the groups' offsets, the place of each."""
    order = np.argsort(keys, kind="stable")
    places = np.empty(len(keys), np.int32)
    places[order] = np.arange(len(keys), dtype=np.int32)
    return order, _offsets(keys, size), places


def post(interned: Interned, groups: Offsets, places: TokenIds) -> Postings:
    """List where subtrees occur."""
    trees = np.arange(len(interned.offsets) - 1, dtype=np.int32)
    found = places[interned.nodes]
    by_place = np.argsort(found, kind="stable")
    firsts = np.repeat(groups[:-1], np.diff(groups)).astype(np.int32)
    found = found[by_place]
    return Postings(
        _offsets(found, len(places)),
        np.repeat(trees, np.diff(interned.offsets))[by_place],
        found - firsts[found],
    )


def _offsets(keys: AnyArray, size: int) -> Offsets:
    offsets = np.zeros(size + 1, np.int64)
    np.cumsum(np.bincount(keys, minlength=size), out=offsets[1:])
    return offsets


@_kernel
def _columns(groups, order, child_offsets, children, places, column_offsets):  # type: ignore[no-untyped-def]
    columns = np.empty(column_offsets[-1], np.int32)
    members = np.empty(column_offsets[-1], np.int32)
    for rule in range(len(column_offsets) - 1):
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
def heavy_first(nodes, child_offsets):  # type: ignore[no-untyped-def]
    """Order a tree's nodes so that few of them are ever half done.

    Gives ``order``, to be read backwards: children before parents, of siblings the largest
    first and then the others from left to right; and each node's parent, and its number among
    the siblings, by position in preorder. As a child that is not the first is at most half its
    parent, there are never more than log2(nodes) nodes of which some child, not all, are done.
    """
    count = len(nodes)
    sizes, order = np.empty(count, np.int32), np.empty(count, np.int32)
    parents, ranks = np.full(count, -1, np.int32), np.zeros(count, np.int32)
    for at in range(count - 1, -1, -1):
        child = at + 1
        for i in range(child_offsets[nodes[at] + 1] - child_offsets[nodes[at]]):
            parents[child], ranks[child] = at, i
            child += sizes[child]
        sizes[at] = child - at
    waiting = np.empty(count, np.int32)
    waiting[:1] = 0
    top, filled = min(count, 1), 0
    while top > 0:
        top -= 1
        at = waiting[top]
        order[filled] = at
        filled += 1
        end, child, heavy = at + sizes[at], at + 1, at + 1
        while child < end:
            heavy = child if sizes[child] > sizes[heavy] else heavy
            child += sizes[child]
        child = at + 1
        if child < end:
            waiting[top] = heavy
            top += 1
        while child < end:
            if child != heavy:
                waiting[top] = child
                top += 1
            child += sizes[child]
    return order, parents, ranks


@_kernel
def with_room(scratch, used, size):  # type: ignore[no-untyped-def]
    """Give a scratch that holds so much more, with what is used of it."""
    if used + size <= len(scratch):
        return scratch
    larger = np.empty(2 * (used + size), np.float64)
    larger[:used] = scratch[:used]
    return larger


@_kernel
def group_size(index, rule):  # type: ignore[no-untyped-def]
    """Give the number of subtrees with a production, which the index need not know."""
    if 0 <= rule < len(index.groups) - 1:
        return index.groups[rule + 1] - index.groups[rule]
    return 0


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
def _scatter(index, rule, delta, row):  # type: ignore[no-untyped-def]
    """Add Delta where the members of a group occur."""
    postings, first = index.postings, index.groups[rule]
    begin, end = postings.offsets[first], postings.offsets[first + len(delta)]
    if len(delta) == 1:
        value = delta[0]
        for k in range(begin, end):
            row[postings.trees[k]] += value
    else:
        for k in range(begin, end):
            row[postings.trees[k]] += delta[postings.members[k]]


@_kernel
def sst_row(index, productions, child_offsets, nodes, decay, row, scratch):  # type: ignore[no-untyped-def]
    """Add K(T, T_j) of one tree with all trees j of an index to ``row``.

    Parameters
    ----------
    index : Index
    productions, child_offsets
        Of the subtrees that ``nodes`` are numbers of. The productions must be those of the
        index, and what is new be numbered after them.
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
    O(log(nodes) largest group), whatever the tree's depth and width.
    """
    order, parents, ranks = heavy_first(nodes, child_offsets)
    # The nodes begun, of which the k-th has its Delta in bounds[k]:bounds[k + 1] of the scratch.
    opened, bounds = np.empty(MOST_OPEN, np.int32), np.zeros(MOST_OPEN + 1, np.int64)
    top = 0
    for k in range(len(nodes) - 1, -1, -1):
        at = order[k]
        rule = productions[nodes[at]]
        size = group_size(index, rule)
        if size == 0:
            continue
        top, scratch = open_node(at, size, decay, opened, bounds, top, scratch)
        _scatter(index, rule, scratch[bounds[top - 1] : bounds[top]], row)
        above = parents[at]
        top, scratch = pass_up(
            index, rule, productions[nodes[above]] if above >= 0 else -1, above, ranks[at],
            decay, opened, bounds, top, scratch,
        )  # fmt: skip
    return scratch


@_kernel
def open_node(at, size, decay, opened, bounds, top, scratch):  # type: ignore[no-untyped-def]
    """Begin a node, unless a child of it has done so."""
    if top == 0 or opened[top - 1] != at:
        scratch = with_room(scratch, bounds[top], size)
        scratch[bounds[top] : bounds[top] + size] = decay
        opened[top], bounds[top + 1] = at, bounds[top] + size
        top += 1
    return top, scratch


@_kernel
def pass_up(index, rule, rule_above, above, rank, decay, opened, bounds, top, scratch):  # type: ignore[no-untyped-def]
    """Multiply the last Delta into its parent's, which takes its place."""
    size = group_size(index, rule_above)
    if size == 0:
        return top - 1, scratch
    column = index.column_offsets[rule_above] + rank * size
    if top > 1 and opened[top - 2] == above:
        delta = scratch[bounds[top - 2] : bounds[top - 1]]
        below = scratch[bounds[top - 1] : bounds[top]]
        _match_children(index, column, size, rule, below, delta)
        return top - 1, scratch
    begin, end = bounds[top - 1], bounds[top]
    scratch = with_room(scratch, end, size)
    delta = scratch[end : end + size]
    delta[:] = decay
    _match_children(index, column, size, rule, scratch[begin:end], delta)
    scratch[begin : begin + size] = delta
    opened[top - 1], bounds[top] = above, begin + size
    return top, scratch


@_kernel
def sst_rows(index, productions, child_offsets, offsets, nodes, decay, rows):  # type: ignore[no-untyped-def]
    """Add to ``rows[t]`` the SST kernel of tree t and all trees of the index; see `sst_row`."""
    scratch = np.empty(SCRATCH, np.float64)
    for t in range(len(offsets) - 1):
        tree = nodes[offsets[t] : offsets[t + 1]]
        scratch = sst_row(index, productions, child_offsets, tree, decay, rows[t], scratch)


@_kernel
def same_rows(index, values, offsets, nodes, rows):  # type: ignore[no-untyped-def]
    """Add to ``rows[t]`` sum_u c(u) c'(u) values[u] over the subtrees u of tree t.

    ``values`` are by subtree, which must be those of the index, and what is new be numbered
    after them. O(nodes and postings of their subtrees).
    """
    postings = index.postings
    for t in range(len(offsets) - 1):
        row = rows[t]
        for u in nodes[offsets[t] : offsets[t + 1]]:
            value = values[u]
            if value == 0.0 or u >= len(index.places):
                continue
            place = index.places[u]
            for k in range(postings.offsets[place], postings.offsets[place + 1]):
                row[postings.trees[k]] += value


@_kernel
def vector_rows(offsets, ids, values, column_offsets, column_rows, column_values, rows):  # type: ignore[no-untyped-def]
    """Add to ``rows[i]`` the inner products of sparse vector i with those of a matrix by columns.

    Features beyond the matrix are left out. O(nonzeros and nonzeros of their columns).
    """
    for i in range(len(offsets) - 1):
        row = rows[i]
        for k in range(offsets[i], offsets[i + 1]):
            if ids[k] >= len(column_offsets) - 1:
                continue
            for at in range(column_offsets[ids[k]], column_offsets[ids[k] + 1]):
                row[column_rows[at]] += values[k] * column_values[at]


@_kernel
def add_scaled(rows, left, right, out):  # type: ignore[no-untyped-def]
    """Add left[i] rows[i, j] right[j] to ``out``, nothing where a factor is 0 (not 0 times inf)."""
    for i in range(len(left)):
        for j in range(len(right)):
            if left[i] != 0.0 and right[j] != 0.0:
                out[i, j] += left[i] * rows[i, j] * right[j]


def same_values(kernel: TreeKernel, subtrees: Subtrees, decay: float) -> Floats | None:
    """Give what a pair of occurrences of a subtree is worth beside ``sst``; None for ``sst``.

    Returns
    -------
    Floats, shape (subtrees,), or None
        ``st``: lambda^productions, 0 for leaves; ``sst_bow``: lambda for leaves, 0 for others.
    """
    if kernel == "sst":
        return None
    if kernel == "sst_bow":
        return np.where(subtrees.productions < 0, decay, 0.0)
    return _complete_values(*subtrees, decay)


@_kernel
def _complete_values(labels, productions, child_offsets, children, decay):  # type: ignore[no-untyped-def]
    values = np.zeros(len(productions))
    for u in range(len(productions)):
        if productions[u] < 0:
            continue
        values[u] = decay
        for child in children[child_offsets[u] : child_offsets[u + 1]]:
            if productions[child] >= 0:
                values[u] *= values[child]
    return values


def add_rows(
    kernel: TreeKernel,
    index: Index,
    subtrees: Subtrees,
    values: Floats | None,
    offsets: Offsets,
    nodes: TokenIds,
    decay: float,
    rows: Floats,
) -> None:
    """Add the kernel of trees with all trees of an index to rows, shape (trees, trees').

    ``values`` are `same_values` of the kernel and subtrees; ``offsets`` may be a part of a
    forest's. Costs and numbering as in `sst_row` and `same_rows`.
    """
    if kernel != "st":
        sst_rows(index, subtrees.productions, subtrees.child_offsets, offsets, nodes, decay, rows)
    if values is not None:
        same_rows(index, values, offsets, nodes, rows)


def tree_rows(kernel: TreeKernel, index: Index, interned: Interned, decay: float) -> Floats:
    """Give the kernel of every tree with every tree of the index, shape (trees, trees').

    Parameters
    ----------
    kernel : {"sst", "st", "sst_bow"}
    index : Index
    interned : Interned
        Numbered on top of the index's productions, and for other kernels than ``sst`` of its
        subtrees.
    decay : float
        lambda, in (0, 1].
    """
    rows = np.zeros((len(interned.offsets) - 1, index.trees))
    values = same_values(kernel, interned.subtrees, decay)
    add_rows(
        kernel, index, interned.subtrees, values, interned.offsets, interned.nodes, decay, rows
    )
    return rows
