"""Fragments as paths of moves in a trie: one spelling each, and no hash that could collide.

A fragment is grown level by level: its root's production first, then the productions of some of
the nodes one level below, and so on. A move says whether it begins a new level, the position of
the node that is expanded among those of the level, and the production that expands it. Prefixes
are smaller fragments. Keys are compared in full.

Fragments of the partial tree kernel have three numbers a move of another meaning, for which see
`corpusmill.fragments.partial_fragments`; the trie is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Floats, Offsets, TokenIds

_kernel = njit(cache=True, nogil=True, error_model="numpy")


class Trie(NamedTuple):
    """Fragments by their moves; node 0 is the empty fragment.

    Attributes
    ----------
    slots : int32
        Open addressing: nodes by the hash of their key, -1 for none. A power of two.
    parents : int64, shape (nodes,)
        The fragment that a move was added to, times two, plus one if it begins a new level.
    moves : int64, shape (nodes,)
        The position among the nodes of the level, times 2^32, plus the production.
    """

    slots: TokenIds
    parents: AnyArray
    moves: AnyArray


class Fragments(NamedTuple):
    """Fragments by their moves, and their weights.

    Attributes
    ----------
    offsets : Offsets, shape (fragments + 1,)
    moves : int32, shape (3 offsets[-1],)
        Three numbers a move: 1 for the first of a level, the position, the production.
    weights : Floats, shape (fragments,)
    """

    offsets: Offsets
    moves: TokenIds
    weights: Floats


@_kernel
def slot(slots, parents, moves, parent, move):  # type: ignore[no-untyped-def]
    """Find the slot of a key: its node's, or the free one where it belongs."""
    h = np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    h = (h ^ np.uint64(move)) * np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    mask = np.uint64(len(slots) - 1)
    at = h & mask
    while slots[at] >= 0 and (parents[slots[at]] != parent or moves[slots[at]] != move):
        at = (at + np.uint64(1)) & mask
    return at


@_kernel
def _rehash(slots, parents, moves, count):  # type: ignore[no-untyped-def]
    slots[:] = -1
    for node in range(1, count):
        slots[slot(slots, parents, moves, parents[node], moves[node])] = node


@_kernel
def larger(array):  # type: ignore[no-untyped-def]
    """Give the same array with as much room again."""
    more = np.zeros(2 * len(array), array.dtype)
    more[: len(array)] = array
    return more


@_kernel
def with_room(slots, parents, moves, values, count):  # type: ignore[no-untyped-def]
    """Give arrays that hold one more node."""
    if count == len(parents):
        parents, moves, values = larger(parents), larger(moves), larger(values)
    if 2 * count >= len(slots):
        slots = np.empty(2 * len(slots), np.int32)
        _rehash(slots, parents, moves, count)
    return slots, parents, moves, values


@_kernel
def insert(slots, parents, moves, count, parent, move):  # type: ignore[no-untyped-def]
    """Find a node or add it; there must be room."""
    at = slot(slots, parents, moves, parent, move)
    if slots[at] < 0:
        slots[at] = count
        parents[count], moves[count] = parent, move
        count += 1
    return slots[at], count


def spell(parents: AnyArray, moves: AnyArray, nodes: AnyArray) -> tuple[Offsets, TokenIds]:
    """Give the moves of fragments, from the root on: ``Fragments.offsets`` and ``.moves``."""
    return _spell(parents, moves, nodes.astype(np.int64))


@_kernel
def _spell(parents, moves, nodes):  # type: ignore[no-untyped-def]
    offsets = np.zeros(len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        node, length = nodes[k], 0
        while node > 0:
            node = parents[node] >> 1
            length += 1
        offsets[k + 1] = offsets[k] + length
    out = np.empty(3 * offsets[-1], np.int32)
    for k in range(len(nodes)):
        node, at = nodes[k], 3 * offsets[k + 1]
        while node > 0:
            at -= 3
            out[at] = parents[node] & 1
            out[at + 1] = moves[node] >> 32
            out[at + 2] = moves[node] & 0xFFFFFFFF
            node = parents[node] >> 1
    return offsets, out
