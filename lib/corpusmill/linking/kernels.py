"""Look-up of n-grams in a table of hashed keys, and what is computed a pair of strings.

A key is a range of folded code points (`folding`). Its hash is FNV-1a over code points, mixed, so
that the hash of a longer n-gram goes on from that of a shorter one. Keys are told apart by their 64
bits alone: among a million keys, a look-up of an unknown one errs with probability 5e-14.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Offsets

_kernel = njit(cache=True, nogil=True)
NONE = -1
_START = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_LETTER_S = ord("s")
# "As" is no plural of "A", and "was" none of "WA".
_SHORTEST_PLURAL = 4


@_kernel
def _mixed(value):  # type: ignore[no-untyped-def]
    value = (value ^ (value >> _HALF)) * _GOLDEN
    return value ^ (value >> _HALF)


@_kernel
def hash_ranges(folded: AnyArray, starts: Offsets, ends: Offsets) -> AnyArray:
    """Hash the key ``folded[starts[i]:ends[i]]`` of each range; 0 where it is empty.

    Returns
    -------
    uint64, shape (ranges,)

    Notes
    -----
    O(code points in all ranges).
    """
    hashes = np.zeros(starts.size, np.uint64)
    for i in range(starts.size):
        value = _START
        for at in range(starts[i], ends[i]):
            value = (value ^ np.uint64(folded[at])) * _PRIME
        if starts[i] < ends[i]:
            hashes[i] = _mixed(value)
    return hashes


@_kernel
def _find(key, hashes, slots):  # type: ignore[no-untyped-def]
    mask = np.uint64(slots.size - 1)
    at = key & mask
    while slots[at] != NONE:
        if hashes[slots[at]] == key:
            return slots[at]
        at = (at + _ONE) & mask
    return NONE


@_kernel
def find_keys(keys: AnyArray, hashes: AnyArray, slots: AnyArray) -> AnyArray:
    """Find the number of each key, -1 for an unknown one and for 0.

    Parameters
    ----------
    keys : uint64
    hashes : uint64, shape (known,)
        The known keys, distinct.
    slots : int32, a power of two long
        Their numbers, by `corpora.gazetteer_kernels.index_strings`.

    Returns
    -------
    int32, shape (keys,)

    Notes
    -----
    O(1) a key.
    """
    found = np.full(keys.size, NONE, np.int32)
    for i in range(keys.size):
        if keys[i] != 0:
            found[i] = _find(keys[i], hashes, slots)
    return found


@_kernel
def find_ngrams(
    starts: Offsets, ends: Offsets, segments: AnyArray, inner: AnyArray, folded: AnyArray,
    hashes: AnyArray, slots: AnyArray, longest: int,
) -> AnyArray:  # fmt: skip
    """Find all n-grams whose key is known; where it is not, without a last "s".

    Parameters
    ----------
    starts, ends : Offsets, shape (units,)
        Unit u is ``folded[starts[u]:ends[u]]``.
    segments : int64, shape (units,)
        An n-gram has units of one segment only; -1 is in none.
    inner : bool, shape (units,)
        Where no n-gram begins or ends, as at the "s" of a possessive.
    folded : uint32
    hashes, slots
        The known keys (`find_keys`).
    longest
        The most units of an n-gram.

    Returns
    -------
    int32, shape (n-grams, 4)
        First unit, last unit, number of the key, whether an "s" was taken off; by first unit, then
        by last.

    Notes
    -----
    O(code points * longest); n-grams of no letter or digit are not found.
    """
    found = np.empty((starts.size * longest, 4), np.int32)
    count = 0
    for first in range(starts.size):
        if segments[first] < 0 or inner[first]:
            continue
        value, shorter, size = _START, _START, 0
        for last in range(first, min(first + longest, starts.size)):
            if segments[last] != segments[first]:
                break
            for at in range(starts[last], ends[last]):
                shorter = value
                value = (value ^ np.uint64(folded[at])) * _PRIME
                size += 1
            if inner[last] or starts[last] == ends[last]:
                continue
            key, cut = _find(_mixed(value), hashes, slots), 0
            if key == NONE and size >= _SHORTEST_PLURAL and folded[ends[last] - 1] == _LETTER_S:
                key, cut = _find(_mixed(shorter), hashes, slots), 1
            if key != NONE:
                found[count, 0], found[count, 1] = first, last
                found[count, 2], found[count, 3] = key, cut
                count += 1
    return found[:count].copy()


@_kernel
def list_ngrams(
    starts: Offsets, ends: Offsets, segments: AnyArray, inner: AnyArray, folded: AnyArray,
    longest: int,
) -> tuple[AnyArray, AnyArray, AnyArray]:  # fmt: skip
    """List all n-grams with their keys, and with the keys that they have without a last "s".

    Parameters
    ----------
    starts, ends, segments, inner, folded, longest
        As of `find_ngrams`.

    Returns
    -------
    spans : int32, shape (n-grams, 2)
        First unit and last unit; by first unit, then by last.
    keys : uint64, shape (n-grams,)
    shorter : uint64, shape (n-grams,)
        0 where no "s" may be taken off.

    Notes
    -----
    O(code points * longest). These are all that `find_ngrams` looks up, which goes through them in
    a loop of its own: with this list between it takes 2.6 times as long, with a generator 4.8.
    """
    spans = np.empty((starts.size * longest, 2), np.int32)
    keys = np.empty(starts.size * longest, np.uint64)
    shorter_keys = np.zeros(starts.size * longest, np.uint64)
    count = 0
    for first in range(starts.size):
        if segments[first] < 0 or inner[first]:
            continue
        value, shorter, size = _START, _START, 0
        for last in range(first, min(first + longest, starts.size)):
            if segments[last] != segments[first]:
                break
            for at in range(starts[last], ends[last]):
                shorter = value
                value = (value ^ np.uint64(folded[at])) * _PRIME
                size += 1
            if inner[last] or starts[last] == ends[last]:
                continue
            spans[count, 0], spans[count, 1], keys[count] = first, last, _mixed(value)
            if size >= _SHORTEST_PLURAL and folded[ends[last] - 1] == _LETTER_S:
                shorter_keys[count] = _mixed(shorter)
            count += 1
    return spans[:count], keys[:count], shorter_keys[:count]


@_kernel
def count_overlaps(firsts: AnyArray, lasts: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Count, for each span, the others that contain it and those that share a unit with it.

    Parameters
    ----------
    firsts, lasts : int32, shape (spans,)
        Units, numbered through all texts; ``firsts`` never falls.

    Returns
    -------
    containing, overlapping : int32, shape (spans,)

    Notes
    -----
    O(spans * spans within the longest one's reach).
    """
    containing = np.zeros(firsts.size, np.int32)
    overlapping = np.zeros(firsts.size, np.int32)
    for a in range(firsts.size):
        for b in range(a + 1, firsts.size):
            if firsts[b] > lasts[a]:
                break
            overlapping[a] += 1
            overlapping[b] += 1
            containing[b] += firsts[a] <= firsts[b] and lasts[b] <= lasts[a]
            containing[a] += firsts[b] <= firsts[a] and lasts[a] <= lasts[b]
    return containing, overlapping


@_kernel
def compare(
    folded: AnyArray, starts: Offsets, ends: Offsets, titles: AnyArray, bounds: Offsets,
    spans: AnyArray, entities: AnyArray,
) -> tuple[AnyArray, AnyArray]:  # fmt: skip
    """Compare mentions with titles: edit distance and common beginning, both as shares.

    ``distance = Levenshtein(mention, title) / max(|mention|, |title|)`` and
    ``beginning = |longest common prefix| / |mention|``, both 0 where a mention is empty.

    Parameters
    ----------
    folded, starts, ends
        Mention m is ``folded[starts[m]:ends[m]]``.
    titles, bounds
        Title t is ``titles[bounds[t]:bounds[t + 1]]``.
    spans, entities : shape (pairs,)
        The mention and the title of each pair.

    Returns
    -------
    distance, beginning : float64, shape (pairs,)

    Notes
    -----
    O(|mention| * |title|) a pair. Titles and mentions are compared by their first 64 code points,
    so that a long one costs no more.
    """
    limit = 64
    distance, beginning = np.zeros(spans.size), np.zeros(spans.size)
    row = np.empty(limit + 1, np.int64)
    for pair in range(spans.size):
        a, b = starts[spans[pair]], bounds[entities[pair]]
        n = min(ends[spans[pair]] - a, limit)
        m = min(bounds[entities[pair] + 1] - b, limit)
        if n == 0:
            continue
        same = 0
        while same < min(n, m) and folded[a + same] == titles[b + same]:
            same += 1
        for j in range(m + 1):
            row[j] = j
        for i in range(n):
            diagonal, row[0] = row[0], i + 1
            for j in range(m):
                change = diagonal + (folded[a + i] != titles[b + j])
                diagonal = row[j + 1]
                row[j + 1] = min(change, diagonal + 1, row[j] + 1)
        distance[pair] = row[m] / max(n, m)
        beginning[pair] = same / n
    return distance, beginning


@_kernel
def jaccard(
    text_rows: Offsets, entity: AnyArray, chosen: AnyArray, links: AnyArray, bounds: Offsets,
    found: AnyArray,
) -> None:  # fmt: skip
    """Set the Jaccard coefficient of in-link sets of each row's entity and its text's others.

    Parameters
    ----------
    text_rows : Offsets, shape (texts + 1,)
        Text n has the rows ``text_rows[n]:text_rows[n + 1]``.
    entity : int32, shape (rows,)
        Below 0: none, and ``found`` stays as it is.
    chosen : bool, shape (rows,)
        Rows whose entities are found in the text.
    links, bounds
        The pages ``links[bounds[e]:bounds[e + 1]]`` link to e, ascending.
    found : float64, shape (rows,)
        The result.

    Notes
    -----
    With a pages that link to e and b that link to the chosen ones, O(min(a, b) log(1 + max / min))
    a row, so it grows with the rows and not with rows times chosen ones; and sorting the latter a
    text. A page counts for the others of e if more chosen entities than e have it: how many have
    it is counted once.
    """
    for text in range(text_rows.size - 1):
        first, last = text_rows[text], text_rows[text + 1]
        picked = np.unique(entity[first:last][chosen[first:last]])
        total = 0
        for e in picked:
            total += bounds[e + 1] - bounds[e]
        if total == 0:
            continue
        pages = np.empty(total, links.dtype)
        at = 0
        for e in picked:
            size = bounds[e + 1] - bounds[e]
            pages[at : at + size] = links[bounds[e] : bounds[e + 1]]
            at += size
        pages.sort()
        size = 0
        times = np.zeros(total, np.int64)
        for page in pages:
            if size == 0 or pages[size - 1] != page:
                pages[size] = page
                size += 1
            times[size - 1] += 1
        for row in range(first, last):
            e = entity[row]
            if e < 0:
                continue
            itself = 0
            where = np.searchsorted(picked, e)
            if where < picked.size and picked[where] == e:
                itself = 1
            found[row] = _overlap(pages[:size], times, links[bounds[e] : bounds[e + 1]], itself)


@_kernel
def _overlap(pages, times, own, itself):  # type: ignore[no-untyped-def]
    """Jaccard of ``own`` and of ``pages``; own ones must be there more often than ``itself``."""
    few, many = (own, pages) if own.size < pages.size else (pages, own)
    both, alone, at = 0, 0, 0
    for number in range(few.size):
        at = _next(many, few[number], at)
        if at == many.size:
            break
        if many[at] == few[number]:
            place = at if own.size < pages.size else number
            both += times[place] > itself
            alone += times[place] <= itself
    union = pages.size - alone + own.size - both
    return both / union if union > 0 else 0.0


@_kernel
def _next(values, value, at):  # type: ignore[no-untyped-def]
    """Give the first place from ``at`` on that holds no less than ``value``, by doubled steps."""
    step = 1
    while at + step <= values.size and values[at + step - 1] < value:
        at += step
        step *= 2
    low, high = at, min(at + step - 1, values.size)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low
