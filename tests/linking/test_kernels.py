"""Kernels against slow, obvious versions."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.corpora.gazetteer_kernels import capacity, index_strings
from corpusmill.linking import kernels


def codes(text: str) -> np.ndarray:
    return np.array([ord(c) for c in text], np.uint32)


def hashes(words: list[str]) -> np.ndarray:
    ends = np.cumsum([len(word) for word in words])
    return kernels.hash_ranges(codes("".join(words)), np.append(0, ends[:-1]), ends)


def indexed(words: list[str]) -> tuple[np.ndarray, np.ndarray]:
    keys = hashes(words)
    slots = np.full(capacity(len(words)), -1, np.int32)
    index_strings(keys, slots)
    return keys, slots


def test_known_keys_are_found():
    known = [f"k{i}" for i in range(1000)]
    keys, slots = indexed(known)
    assert kernels.find_keys(keys, keys, slots).tolist() == list(range(1000))
    others = np.append(hashes([f"x{i}" for i in range(1000)]), np.uint64(0))
    assert (kernels.find_keys(others, keys, slots) == -1).all()


@pytest.mark.parametrize("seed", range(20))
def test_ngrams_are_all_known_runs(seed: int):
    rng = np.random.default_rng(seed)
    units = ["".join(rng.choice(list("abs"), rng.integers(0, 4))) for _ in range(12)]
    known = sorted({"".join(rng.choice(list("abs"), rng.integers(1, 6))) for _ in range(40)})
    segments = np.sort(rng.integers(-1, 3, len(units)))
    inner = rng.random(len(units)) < 0.2
    ends = np.cumsum([len(unit) for unit in units])
    keys, slots = indexed(known)
    found = kernels.find_ngrams(
        np.append(0, ends[:-1]), ends, segments, inner, codes("".join(units)), keys, slots, 3
    )
    expected = []
    for first in range(len(units)):
        for last in range(first, min(first + 3, len(units))):
            gram = "".join(units[first : last + 1])
            usable = not inner[first] and not inner[last] and units[last]
            if segments[first] < 0 or segments[first] != segments[last] or not usable:
                continue
            if gram in known:
                expected.append([first, last, known.index(gram), 0])
            elif len(gram) >= 4 and gram[-1] == "s" and gram[:-1] in known:
                expected.append([first, last, known.index(gram[:-1]), 1])
    assert found.tolist() == expected


@pytest.mark.parametrize("seed", range(20))
def test_listed_ngrams_are_those_that_are_looked_up(seed: int):
    rng = np.random.default_rng(seed)
    units = ["".join(rng.choice(list("abs"), rng.integers(0, 4))) for _ in range(12)]
    segments = np.sort(rng.integers(-1, 3, len(units)))
    inner = rng.random(len(units)) < 0.2
    ends = np.cumsum([len(unit) for unit in units])
    given = (np.append(0, ends[:-1]), ends, segments, inner, codes("".join(units)))
    spans, keys, shorter = kernels.list_ngrams(*given, 3)
    for (first, last), key, cut in zip(spans.tolist(), keys, shorter, strict=True):
        gram = "".join(units[first : last + 1])
        assert key == hashes([gram])[0]
        plural = len(gram) >= 4 and gram[-1] == "s"
        assert cut == (hashes([gram[:-1]])[0] if plural else 0)
    # A table of all of them finds all, and one of those without an "s" those that had one.
    whole, slots = np.unique(keys), np.full(capacity(len(keys)), -1, np.int32)
    index_strings(whole, slots)
    found = kernels.find_ngrams(*given, whole, slots, 3)
    assert found[:, :2].tolist() == spans.tolist()
    assert whole[found[:, 2]].tolist() == keys.tolist()
    assert not found[:, 3].any()


@pytest.mark.parametrize("seed", range(10))
def test_overlaps_are_counted(seed: int):
    rng = np.random.default_rng(seed)
    firsts = np.sort(rng.integers(0, 12, 15)).astype(np.int32)
    lasts = (firsts + rng.integers(0, 4, 15)).astype(np.int32)
    containing, overlapping = kernels.count_overlaps(firsts, lasts)
    spans = list(zip(firsts.tolist(), lasts.tolist(), strict=True))
    for i, (a, b) in enumerate(spans):
        others = [span for j, span in enumerate(spans) if j != i]
        assert containing[i] == sum(c <= a and b <= d for c, d in others)
        assert overlapping[i] == sum(c <= b and a <= d for c, d in others)


def levenshtein(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    change = levenshtein(a[:-1], b[:-1]) + (a[-1] != b[-1])
    return min(change, levenshtein(a[:-1], b) + 1, levenshtein(a, b[:-1]) + 1)


@pytest.mark.parametrize("seed", range(20))
def test_titles_are_compared(seed: int):
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("ab"), rng.integers(0, 6))) for _ in range(4)]
    titles = ["".join(rng.choice(list("ab"), rng.integers(0, 6))) for _ in range(4)]
    ends, bounds = np.cumsum([len(w) for w in words]), np.cumsum([0, *(len(t) for t in titles)])
    spans, entities = np.repeat(np.arange(4), 4), np.tile(np.arange(4), 4)
    distance, beginning = kernels.compare(
        codes("".join(words)), np.append(0, ends[:-1]), ends,
        codes("".join(titles)), bounds, spans, entities,
    )  # fmt: skip
    for pair, (s, e) in enumerate(zip(spans, entities, strict=True)):
        word, title = words[s], titles[e]
        longer = max(len(word), len(title))
        same = max(n for n in range(len(word) + 1) if title.startswith(word[:n]))
        assert distance[pair] == (levenshtein(word, title) / longer if word else 0.0)
        assert beginning[pair] == (same / len(word) if word else 0.0)


def test_long_titles_are_compared_by_their_beginning():
    long, at = codes("a" * 5000), np.zeros(1, np.int64)
    distance, beginning = kernels.compare(
        long, at, np.array([5000]), long, np.array([0, 5000]), at, at
    )
    assert distance[0] == 0.0
    assert beginning[0] == 1.0


@pytest.mark.parametrize("seed", range(30))
def test_jaccard_is_that_of_sets(seed: int):
    rng = np.random.default_rng(seed)
    pages, most = (8, 5) if seed % 2 else (400, 300)
    sizes = rng.integers(0, most, 6) // rng.choice([1, 30], 6)
    sets = [set(rng.choice(pages, size, replace=False).tolist()) for size in sizes]
    links = np.array([page for pages in sets for page in sorted(pages)], np.int32)
    bounds = np.cumsum([0, *(len(pages) for pages in sets)])
    text_rows = np.array([0, 5, 5, 12])
    entity = rng.integers(-1, 6, 12).astype(np.int32)
    chosen = (rng.random(12) < 0.4) & (entity >= 0)
    found = np.zeros(12)
    kernels.jaccard(text_rows, entity, chosen, links, bounds, found)
    for row, e in enumerate(entity):
        first, last = (0, 5) if row < 5 else (5, 12)
        others = {int(entity[r]) for r in range(first, last) if chosen[r]} - {int(e)}
        theirs = set().union(*(sets[other] for other in others))
        union = sets[e] | theirs
        expected = len(sets[e] & theirs) / len(union) if e >= 0 and union else 0.0
        assert found[row] == pytest.approx(expected)
