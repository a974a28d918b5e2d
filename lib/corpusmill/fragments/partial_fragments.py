r"""Fragments of the Partial Tree Kernel: how they are spelled, how they grow, where they are found.

A fragment is a node with any subsequence of its children, each again with any of theirs. It is
spelled node by node in preorder, a move each: 1 for the root, else 0; the depth of the node's
parent, which lies on the path from the root to the node before; the node's label. So a fragment
grows by a node to the right of all others, every fragment has one spelling, and its prefixes are
fragments. The trie is that of `corpusmill.fragments.trie`, with labels for productions.

A fragment of m nodes, i of which have children, that skips g children where it occurs has there
the value mu^(m/2) lambda^(m - i + g) (`corpusmill.fragments.partial`): a first child costs
sqrt(mu), because its parent no longer pays lambda, any later one sqrt(mu) lambda^(1 + skipped).

What an occurrence can become depends on its root and its last node alone: the path between them
is the only one on which it grows. So all occurrences of a fragment with the same root and last
node are one *state* with the sum of their values, of which there are no more than nodes, where a
node of k children of the same label holds "k choose m" occurrences of m of them. (Asai et al.,
Efficient Substructure Discovery from Large Semi-structured Data, SDM 2002, grow trees so.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from corpusmill.fragments.dictionary import Dictionary, room_for, sum_over_nodes
from corpusmill.fragments.forests import Interned, Subtrees
from corpusmill.fragments.trie import Fragments, slot
from corpusmill.types import AnyArray, Floats, Offsets, TokenIds

MOST_SKIPPED = 1000
"""Children that a fragment skips between two of a node at most, where lambda sets no limit."""
NOWHERE = -1
"""The last node of the empty fragment, which grows by the root."""
_kernel = njit(cache=True, nogil=True, error_model="numpy")


class Layout(NamedTuple):
    """Distinct subtrees, and where the nodes below each stand.

    A *place* is a node's position in the preorder of the subtree that it belongs to.

    Attributes
    ----------
    labels, child_offsets, children
        As `forests.Subtrees`.
    begins : int64, shape (len(children),)
        The child's place in the subtree of its parent.
    sizes : int64, shape (subtrees,)
        Numbers of nodes.
    height : int
        Nodes of the longest path.
    """

    labels: TokenIds
    child_offsets: Offsets
    children: TokenIds
    begins: AnyArray
    sizes: AnyArray
    height: int


class Factors(NamedTuple):
    """What a node costs where it is added.

    Attributes
    ----------
    root, child, sibling : float
        The first node, a first child, and a later one.
    gap : float
        Every child that is skipped between two.
    reach : int
        How far to the right the next child stands at most.
    """

    root: float
    child: float
    sibling: float
    gap: float
    reach: int


class Growth(NamedTuple):
    """How the states of a fragment and root grow, by the place of the new node; room for that.

    Attributes
    ----------
    places : int64
        Places of new nodes, in the order in which they were found.
    values : Floats
        By place: the sum over states.
    nodes : TokenIds
        By place: the new node's subtree, -1 where there is none.
    depths : int64
        By place: the depth of its parent.
    path : int64, shape (height, 3)
        From the root to a last node: subtrees, places, and edges to the next.
    """

    places: AnyArray
    values: Floats
    nodes: TokenIds
    depths: AnyArray
    path: AnyArray


def lay_out(subtrees: Subtrees) -> Layout:
    """Find where the nodes below each distinct subtree stand; O(nodes)."""
    begins, sizes, height = _lay_out(subtrees.child_offsets, subtrees.children)
    return Layout(subtrees.labels, subtrees.child_offsets, subtrees.children, begins, sizes, height)


def make_room(layout: Layout) -> Growth:
    """Give room for the growth in any of the subtrees."""
    largest = int(layout.sizes.max(initial=0))
    return Growth(
        np.empty(largest, np.int64), np.zeros(largest), np.full(largest, -1, np.int32),
        np.empty(largest, np.int64), np.empty((layout.height, 3), np.int64),
    )  # fmt: skip


def reach(decay: float) -> int:
    """Give how far to the right a next child can stand: while lambda^skipped is above 2^-53."""
    if decay == 1.0:
        return MOST_SKIPPED + 1
    return 1 + int(min(MOST_SKIPPED, np.log(2.0**-53) / np.log(decay)))


def partial_values(fragments: Fragments, decay: float, mu: float) -> Floats:
    """Give mu^(m/2) lambda^(m - i) of each fragment of m nodes, i of which have children."""
    starts, sizes = fragments.offsets[:-1], np.diff(fragments.offsets)
    if not len(sizes):
        return np.zeros(0)
    fresh, parents = fragments.moves[0::3], fragments.moves[1::3]
    depths = parents + 1 - fresh
    # A node that has children has its first one behind it.
    inner = np.append((fresh[1:] == 0) & (parents[1:] == depths[:-1]), False)
    leaves = sizes - np.add.reduceat(inner.astype(np.int64), starts)
    found: Floats = mu ** (sizes / 2.0) * decay**leaves
    return found


def sum_partial_fragments(
    dictionary: Dictionary, interned: Interned, size: int, decay: float
) -> csr_array:
    """Sum lambda^skipped over the occurrences of the dictionary's fragments in trees.

    Parameters
    ----------
    dictionary : Dictionary
        Of fragments as they are spelled here.
    interned : Interned
        Trees over the labels that the dictionary knows.
    size : int
        The number of fragments.
    decay : float
        lambda.

    Returns
    -------
    csr_array, shape (trees, size), float64
        Indices ascend within a row. Times `partial_values` it is the vector of which the kernel
        is the inner product.

    Notes
    -----
    Once a distinct subtree O(states of the fragments reached times the nodes that each can grow
    by), then a sparse sum over nodes. Children farther apart than `reach` are passed over.
    """
    layout = lay_out(interned.subtrees)
    factors = Factors(1.0, 1.0, 1.0, decay, reach(decay))
    offsets, numbers, values = _match(
        dictionary.slots, dictionary.parents, dictionary.moves, dictionary.numbers,
        dictionary.same_level, layout, factors, make_room(layout),
    )  # fmt: skip
    return sum_over_nodes(csr_array((values, numbers, offsets), (len(offsets) - 1, size)), interned)


@_kernel
def _lay_out(child_offsets, children):  # type: ignore[no-untyped-def]
    size = len(child_offsets) - 1
    begins, sizes = np.empty(len(children), np.int64), np.ones(size, np.int64)
    heights, height = np.ones(size, np.int64), 0
    for u in range(size):
        for edge in range(child_offsets[u], child_offsets[u + 1]):
            begins[edge] = sizes[u]
            sizes[u] += sizes[children[edge]]
            heights[u] = max(heights[u], 1 + heights[children[edge]])
        height = max(height, heights[u])
    return begins, sizes, height


@_kernel
def move_of(node, layout, growth, place):  # type: ignore[no-untyped-def]
    """Give the key in the trie of a fragment that grows by the node at a place."""
    label = np.int64(layout.labels[growth.nodes[place]])
    return 2 * np.int64(node) + (1 if node == 0 else 0), (growth.depths[place] << 32) + label


@_kernel
def extend(layout, root, places, weights, first, last, factors, growth):  # type: ignore[no-untyped-def]
    """Grow states ``first:last``, of the same fragment and root, by a node; give the places' count.

    Which fragment it becomes depends on the new node's place alone, so that states meet there.
    """
    count, path = 0, growth.path
    for s in range(first, last):
        if places[s] == NOWHERE:
            count = _add(growth, count, 0, root, 0, weights[s] * factors.root)
            continue
        depth = _find_path(layout, root, places[s], path)
        for d in range(depth + 1):
            begin = layout.child_offsets[path[d, 0]]
            end = layout.child_offsets[path[d, 0] + 1]
            value, step = weights[s] * factors.child, 1.0
            if d < depth:
                begin = path[d, 2] + 1
                end = min(end, begin + factors.reach)
                value, step = weights[s] * factors.sibling, factors.gap
            for edge in range(begin, end):
                place = path[d, 1] + layout.begins[edge]
                count = _add(growth, count, place, layout.children[edge], d, value)
                value *= step
    return count


@_kernel
def _add(growth, count, place, node, depth, value):  # type: ignore[no-untyped-def]
    if growth.nodes[place] < 0:
        growth.nodes[place], growth.depths[place] = node, depth
        growth.values[place] = 0.0
        growth.places[count] = place
        count += 1
    growth.values[place] += value
    return count


@_kernel
def forget(growth, count):  # type: ignore[no-untyped-def]
    """Make room for the next states."""
    for k in range(count):
        growth.nodes[growth.places[k]] = -1


@_kernel
def _find_path(layout, root, place, path):  # type: ignore[no-untyped-def]
    """Write the path from the root to the node at a place; give its depth."""
    node, at, depth = np.int64(root), np.int64(0), 0
    path[0, 0], path[0, 1] = node, at
    while at < place:
        low, high = layout.child_offsets[node], layout.child_offsets[node + 1]
        while high - low > 1:
            middle = (low + high) >> 1
            if layout.begins[middle] <= place - at:
                low = middle
            else:
                high = middle
        path[depth, 2] = low
        at += layout.begins[low]
        node = np.int64(layout.children[low])
        depth += 1
        path[depth, 0], path[depth, 1] = node, at
    return depth


@_kernel
def group_end(nodes, roots, first, size):  # type: ignore[no-untyped-def]
    """Give the end of the states of the same fragment and root."""
    last = first + 1
    while last < size and nodes[last] == nodes[first] and roots[last] == roots[first]:
        last += 1
    return last


class _States(NamedTuple):
    """States in one subtree: fragments, last nodes and values."""

    nodes: TokenIds
    places: TokenIds
    values: Floats


@_kernel
def _room_for_states(states, end):  # type: ignore[no-untyped-def]
    return _States(
        room_for(states.nodes, end), room_for(states.places, end), room_for(states.values, end)
    )


@_kernel
def _match(slots, parents, moves, numbers, grows, layout, factors, growth):  # type: ignore[no-untyped-def]
    """Find the fragments rooted at each distinct subtree: offsets, numbers and values.

    Fragments of a node first, then those of two that grew from them, and so on.
    """
    size = len(layout.labels)
    offsets = np.zeros(size + 1, np.int64)
    out, values = np.empty(max(16, size), np.int32), np.empty(max(16, size), np.float64)
    now = _States(np.zeros(64, np.int32), np.empty(64, np.int32), np.empty(64))
    new = _States(np.zeros(64, np.int32), np.empty(64, np.int32), np.empty(64))
    filled = 0
    for u in range(size):
        now.nodes[0], now.places[0], now.values[0] = 0, NOWHERE, 1.0
        count = 1
        while count > 0:
            first = grown = 0
            while first < count:
                last = group_end(now.nodes, now.nodes, first, count)
                found = extend(layout, u, now.places, now.values, first, last, factors, growth)
                new = _room_for_states(new, grown + found)
                end = _look_up(
                    slots, parents, moves, now.nodes[first], layout, growth, found, new, grown
                )
                forget(growth, found)
                out = room_for(out, filled + end - grown)
                values = room_for(values, filled + end - grown)
                filled, grown = _report(
                    numbers, grows, layout.sizes[u], new, grown, end, out, values, filled
                )
                first = last
            now, new, count = new, now, grown
        offsets[u + 1] = filled
    return offsets, out[:filled].copy(), values[:filled].copy()


@_kernel
def _look_up(slots, parents, moves, node, layout, growth, found, new, grown):  # type: ignore[no-untyped-def]
    """Append what of the growth is in the trie; give the new end."""
    for k in range(found):
        place = growth.places[k]
        parent, move = move_of(node, layout, growth, place)
        child = slots[slot(slots, parents, moves, parent, move)]
        if child >= 0:
            new.nodes[grown], new.places[grown] = child, place
            new.values[grown] = growth.values[place]
            grown += 1
    return grown


@_kernel
def _report(numbers, grows, size, new, begin, end, out, values, filled):  # type: ignore[no-untyped-def]
    """Put states in the order of fragments, write these out, and keep the states that grow.

    Gives the numbers of fragments and of states.
    """
    if end - begin > 1:
        order = np.argsort(new.nodes[begin:end], kind="mergesort")
        new.nodes[begin:end] = new.nodes[begin:end][order]
        new.places[begin:end] = new.places[begin:end][order]
        new.values[begin:end] = new.values[begin:end][order]
    kept, before = begin, -1
    for k in range(begin, end):
        node = new.nodes[k]
        if numbers[node] >= 0:
            if node != before:
                out[filled], values[filled] = numbers[node], 0.0
                filled += 1
            values[filled - 1] += new.values[k]
        before = node
        # The node behind the last one can always be added.
        if grows[node] and new.places[k] + 1 < size:
            new.nodes[kept], new.places[kept] = node, new.places[k]
            new.values[kept] = new.values[k]
            kept += 1
    return filled, kept
