"""Hash tables and the token trie of the gazetteer, over flat arrays.

A table of capacity 2^k holds at most half as many entries and is probed
linearly; -1 marks an empty slot. Strings are the Arrow layout: bytes and offsets.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Offsets, TokenIds

EMPTY = -1
NONE = -1
_FNV_START = np.uint64(0xCBF29CE484222325)
_FNV_PRIME = np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


def capacity(entries: int) -> int:
    """Return the least power of two that is at least twice the entries."""
    return 1 << max(3, (2 * entries - 1).bit_length())


@njit(cache=True)
def _mix(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _HALF)) * _GOLDEN
    return value ^ (value >> _HALF)


@njit(cache=True)
def hash_bytes(data: AnyArray, offsets: Offsets) -> AnyArray:
    """Hash each string: FNV-1a, mixed; uint64. O(bytes)."""
    hashes = np.empty(offsets.size - 1, np.uint64)
    for i in range(hashes.size):
        value = _FNV_START
        for j in range(offsets[i], offsets[i + 1]):
            value = (value ^ np.uint64(data[j])) * _FNV_PRIME
        hashes[i] = _mix(value)
    return hashes


@njit(cache=True)
def index_strings(hashes: AnyArray, slots: AnyArray) -> None:
    """Put the numbers of distinct strings into a table of -1. O(strings)."""
    mask = np.uint64(slots.size - 1)
    for i in range(hashes.size):
        at = hashes[i] & mask
        while slots[at] != EMPTY:
            at = (at + np.uint64(1)) & mask
        slots[at] = i


@njit(cache=True)
def look_up(
    data: AnyArray, offsets: Offsets, hashes: AnyArray, known: AnyArray, bounds: Offsets,
    slots: AnyArray,
) -> TokenIds:  # fmt: skip
    """Return the number of each string among the known ones, or -1. O(bytes).

    Parameters
    ----------
    data, offsets, hashes
        The strings sought, and `hash_bytes` of them.
    known, bounds, slots
        Bytes and offsets of the distinct strings, and their table.
    """
    mask = np.uint64(slots.size - 1)
    ids = np.full(hashes.size, NONE, np.int32)
    for i in range(hashes.size):
        begin = offsets[i]
        length = offsets[i + 1] - begin
        at = hashes[i] & mask
        while slots[at] != EMPTY:
            j = slots[at]
            equal = bounds[j + 1] - bounds[j] == length
            k = 0
            while equal and k < length:
                equal = data[begin + k] == known[bounds[j] + k]
                k += 1
            if equal:
                ids[i] = j
                break
            at = (at + np.uint64(1)) & mask
    return ids


@njit(cache=True)
def _seek(keys: AnyArray, key: int) -> np.uint64:
    """Return the slot of an edge, or the empty one where it belongs."""
    mask = np.uint64(keys.size - 1)
    at = _mix(np.uint64(key)) & mask
    while keys[at] != EMPTY and keys[at] != key:
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True)
def build_trie(
    offsets: Offsets, tokens: TokenIds, width: int, keys: AnyArray, children: AnyArray
) -> TokenIds:
    """Insert distinct phrases into a trie whose edges are a table. O(tokens).

    Parameters
    ----------
    offsets, tokens
        Phrase i is ``tokens[offsets[i]:offsets[i + 1]]``.
    width
        The size of the vocabulary; the edge of token t from node n has the key
        ``n * width + t``.
    keys : int64, shape (capacity,)
        All -1; filled.
    children : int32, shape (capacity,)
        Filled: the node at the end of the edge in that slot.

    Returns
    -------
    TokenIds, shape (nodes,)
        The phrase that ends at each node, or -1. Node 0 is the root.
    """
    phrase_at = np.full(tokens.size + 1, NONE, np.int32)
    nodes = 1
    for i in range(offsets.size - 1):
        node = np.int64(0)
        for j in range(offsets[i], offsets[i + 1]):
            key = node * width + tokens[j]
            at = _seek(keys, key)
            if keys[at] == EMPTY:
                keys[at] = key
                children[at] = nodes
                nodes += 1
            node = np.int64(children[at])
        phrase_at[node] = i
    return phrase_at[:nodes].copy()


@njit(cache=True)
def find_longest(
    offsets: Offsets, tokens: TokenIds, width: int, keys: AnyArray, children: AnyArray,
    phrase_at: TokenIds,
) -> tuple[TokenIds, TokenIds, TokenIds]:  # fmt: skip
    """Find the longest phrase in each text, the leftmost of equal ones.

    O(tokens * longest phrase); a start that leads nowhere costs one probe.

    Parameters
    ----------
    offsets, tokens
        Text i is ``tokens[offsets[i]:offsets[i + 1]]``; -1 is a token that no phrase has.
    width, keys, children, phrase_at
        The trie of `build_trie`.

    Returns
    -------
    phrases, starts, ends : TokenIds, shape (texts,)
        The phrase and its tokens in the text (end exclusive); -1, 0, 0 where there is none.
    """
    texts = offsets.size - 1
    phrases = np.full(texts, NONE, np.int32)
    starts = np.zeros(texts, np.int32)
    ends = np.zeros(texts, np.int32)
    for i in range(texts):
        begin, stop, best = offsets[i], offsets[i + 1], 0
        start = begin
        while stop - start > best:
            node = np.int64(0)
            for j in range(start, stop):
                if tokens[j] == NONE:
                    break
                at = _seek(keys, node * width + tokens[j])
                if keys[at] == EMPTY:
                    break
                node = np.int64(children[at])
                if phrase_at[node] != NONE and j + 1 - start > best:
                    best = j + 1 - start
                    phrases[i] = phrase_at[node]
                    starts[i], ends[i] = start - begin, j + 1 - begin
            start += 1
    return phrases, starts, ends
