"""A dictionary of fragments, and trees as sparse vectors over it (TFX of the paper).

The dictionary is a trie of fragments (`corpusmill.fragments.trie`). Matching a subtree walks only
the trie's own edges, so that nothing outside the dictionary, or its prefixes, is ever generated;
each distinct subtree of a batch is matched once, however often it occurs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from corpusmill.fragments.forests import Interned
from corpusmill.fragments.mining import Relevance
from corpusmill.fragments.trie import Fragments, insert, larger, slot, with_room
from corpusmill.types import AnyArray, Flags, Floats, TokenIds

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_FRAME = 6
_NODE, _LEVEL, _LEVEL_END, _NEXT, _BELOW, _BELOW_END = range(_FRAME)


class Dictionary(NamedTuple):
    """Fragments as a trie with their numbers.

    Attributes
    ----------
    slots, parents, moves
        The trie, as `corpusmill.fragments.trie.Trie`.
    numbers : int32, shape (nodes,)
        The fragment's number, or -1 for a prefix that is no fragment of the dictionary.
    same_level, new_level : Flags, shape (nodes,)
        Whether the node has an edge on the same level, or to a new one.
    """

    slots: TokenIds
    parents: AnyArray
    moves: AnyArray
    numbers: TokenIds
    same_level: Flags
    new_level: Flags


def build_dictionary(fragments: Fragments) -> Dictionary:
    """Build the trie of fragments, numbered as they stand; O(moves)."""
    slots, parents, moves, numbers = _build(fragments.offsets, fragments.moves)
    same, new = np.zeros(len(parents), np.bool_), np.zeros(len(parents), np.bool_)
    edges = parents[1:]
    same[edges[edges & 1 == 0] >> 1] = True
    new[edges[edges & 1 == 1] >> 1] = True
    return Dictionary(slots, parents, moves, numbers, same, new)


def fragment_values(fragments: Fragments, decay: float, relevance: Relevance) -> Floats:
    """Give the value of one occurrence of each fragment: lambda^depth or lambda^(productions/2)."""
    starts = fragments.offsets[:-1]
    if relevance == "depth":
        return decay ** np.add.reduceat(fragments.moves[0::3], starts).astype(np.float64)
    return decay ** (np.diff(fragments.offsets) / 2.0)


def count_fragments(dictionary: Dictionary, interned: Interned, size: int) -> csr_array:
    """Count the dictionary's fragments in trees.

    Parameters
    ----------
    dictionary : Dictionary
    interned : Interned
        Trees whose productions have the numbers that the dictionary knows.
    size : int
        The number of fragments.

    Returns
    -------
    csr_array, shape (trees, size), float64
        t_ij; indices ascend within a row.

    Notes
    -----
    Once a distinct subtree O(fragments reached times nodes that could be expanded there); then a
    sparse sum over nodes.
    """
    offsets, numbers = _match(*dictionary, interned.subtrees)
    found = csr_array((np.ones(len(numbers)), numbers, offsets), (len(offsets) - 1, size))
    return sum_over_nodes(found, interned)


def sum_over_nodes(found: csr_array, interned: Interned) -> csr_array:
    """Sum over the nodes of each tree what was found for the subtrees that they are roots of.

    Parameters
    ----------
    found : csr_array, shape (subtrees, fragments)
    interned : Interned

    Returns
    -------
    csr_array, shape (trees, fragments)
        Indices ascend within a row.
    """
    nodes = csr_array(
        (np.ones(len(interned.nodes)), interned.nodes, interned.offsets),
        shape=(len(interned.offsets) - 1, found.shape[0]),
    )
    sums = csr_array(nodes @ found)
    sums.sort_indices()
    return sums


@_kernel
def _build(offsets, moves):  # type: ignore[no-untyped-def]
    slots = np.full(1024, -1, np.int32)
    parents, keys, numbers = np.zeros(512, np.int64), np.zeros(512, np.int64), np.zeros(512)
    count = 1
    for f in range(len(offsets) - 1):
        node = np.int64(0)
        for k in range(3 * offsets[f], 3 * offsets[f + 1], 3):
            slots, parents, keys, numbers = with_room(slots, parents, keys, numbers, count)
            move = (np.int64(moves[k + 1]) << 32) + moves[k + 2]
            node, count = insert(slots, parents, keys, count, 2 * node + moves[k], move)
        numbers[node] = f + 1
    return slots, parents[:count], keys[:count], (numbers[:count] - 1).astype(np.int32)


@_kernel
def room_for(cells, end):  # type: ignore[no-untyped-def]
    """Give the same array with room for so many."""
    while end > len(cells):
        cells = larger(cells)
    return cells


@_kernel
def _append_children(cells, end, subtrees, u):  # type: ignore[no-untyped-def]
    begin, stop = subtrees.child_offsets[u], subtrees.child_offsets[u + 1]
    cells = room_for(cells, end + stop - begin)
    cells[end : end + stop - begin] = subtrees.children[begin:stop]
    return cells, end + stop - begin


@_kernel
def _match(slots, parents, moves, numbers, same_level, new_level, subtrees):  # type: ignore[no-untyped-def]
    """Find the fragments rooted at each distinct subtree: offsets and numbers."""
    size = len(subtrees.productions)
    offsets = np.zeros(size + 1, np.int64)
    out = np.empty(max(16, size), np.int32)
    cells, frames = np.empty(1024, np.int32), np.empty((64, _FRAME), np.int64)
    filled = 0
    for u in range(size):
        if subtrees.productions[u] >= 0:
            at = slots[slot(slots, parents, moves, 1, np.int64(subtrees.productions[u]))]
            if at >= 0:
                filled, out, cells, frames = _match_from(
                    at, u, slots, parents, moves, numbers, same_level, new_level, subtrees,
                    filled, out, cells, frames,
                )  # fmt: skip
        offsets[u + 1] = filled
    return offsets, out[:filled].copy()


@_kernel
def _open_frame(subtrees, cells, frames, depth, child, fresh, place, cell):  # type: ignore[no-untyped-def]
    """Put the fragment that grew by one node on top of the frame that it grew from."""
    if depth + 1 == len(frames):
        more = np.empty((2 * len(frames), _FRAME), np.int64)
        more[: len(frames)] = frames
        frames = more
    below, end = frames[depth, _BELOW], frames[depth, _BELOW_END]
    start = end
    if not fresh:
        cells = room_for(cells, end + end - below)
        cells[end : end + end - below] = cells[below:end]
        start = end + end - below
    cells, stop = _append_children(cells, start, subtrees, cell)
    frame = frames[depth + 1]
    frame[_NODE], frame[_NEXT] = child, place + 1
    frame[_LEVEL] = below if fresh else frames[depth, _LEVEL]
    frame[_LEVEL_END] = end if fresh else frames[depth, _LEVEL_END]
    frame[_BELOW], frame[_BELOW_END] = end, stop
    return cells, frames


@_kernel
def _match_from(  # type: ignore[no-untyped-def]
    start, u, slots, parents, moves, numbers, same_level, new_level, subtrees,
    filled, out, cells, frames,
):  # fmt: skip
    """Walk the trie from one fragment over one subtree, depth first.

    A frame is a fragment, the nodes of the level being expanded and the next of them to try, and
    the nodes below it; its lists stay in ``cells`` until all that grows out of it is done.
    """
    if numbers[start] >= 0:
        out = room_for(out, filled + 1)
        out[filled] = numbers[start]
        filled += 1
    cells, end = _append_children(cells, 0, subtrees, u)
    frames[0, _NODE], frames[0, _LEVEL], frames[0, _LEVEL_END] = start, 0, 0
    frames[0, _NEXT], frames[0, _BELOW], frames[0, _BELOW_END] = 0, 0, end
    depth = 0
    while depth >= 0:
        frame = frames[depth]
        node, on_level = frame[_NODE], frame[_LEVEL_END] - frame[_LEVEL]
        tried, below = frame[_NEXT], frame[_BELOW_END] - frame[_BELOW]
        if tried < on_level and not same_level[node]:
            tried = on_level
        if tried >= on_level + below or (tried >= on_level and not new_level[node]):
            depth -= 1
            continue
        frame[_NEXT] = tried + 1
        fresh = tried >= on_level
        place = tried - on_level if fresh else tried
        cell = cells[(frame[_BELOW] if fresh else frame[_LEVEL]) + place]
        production = subtrees.productions[cell]
        if production < 0:
            continue
        move = (np.int64(place) << 32) + production
        child = slots[slot(slots, parents, moves, 2 * node + (1 if fresh else 0), move)]
        if child < 0:
            continue
        if numbers[child] >= 0:
            out = room_for(out, filled + 1)
            out[filled] = numbers[child]
            filled += 1
        if not (same_level[child] or new_level[child]):
            continue
        cells, frames = _open_frame(subtrees, cells, frames, depth, child, fresh, place, cell)
        depth += 1
    return filled, out, cells, frames
