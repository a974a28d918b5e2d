"""Slow, obvious inference: all outputs of an example are enumerated."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from corpusmill.boosting.structures import ANY, Factors


def part(factors: Factors, n: int) -> list[tuple[int, range]]:
    """The factors of example n, each with its rows."""
    first, last = factors.factors[n : n + 2]
    return [(k, range(factors.rows[k], factors.rows[k + 1])) for k in range(first, last)]


def independent_outputs(factors: Factors, n: int) -> Iterator[frozenset[int]]:
    for rows in itertools.product(*[rows for _, rows in part(factors, n)]):
        yield frozenset(rows)


def span_outputs(factors: Factors, n: int) -> Iterator[frozenset[int]]:
    mine = part(factors, n)
    for rows in itertools.product(*[rows for _, rows in mine]):
        spans = [
            (factors.starts[k], factors.ends[k])
            for (k, options), row in zip(mine, rows, strict=True)
            if row != options[0]
        ]
        pairs = itertools.combinations(spans, 2)
        if all(a[1] <= b[0] or b[1] <= a[0] for a, b in pairs):
            yield frozenset(rows)


def segment_outputs(factors: Factors, n: int, unit: bool) -> Iterator[frozenset[int]]:
    mine = part(factors, n)
    places = {
        k: (t, t + 1) if unit else (factors.starts[k], factors.ends[k])
        for t, (k, _) in enumerate(mine)
    }
    end = max((place[1] for place in places.values()), default=0)

    def paths(position: int, label: int) -> Iterator[list[int]]:
        if position == end:
            yield []
            return
        for k, rows in mine:
            if places[k][0] != position:
                continue
            for row in rows:
                if factors.previous[row] in (ANY, label):
                    for rest in paths(places[k][1], factors.labels[row]):
                        yield [row, *rest]

    for path in paths(0, -2):
        yield frozenset(path)


def outputs(structure: str, factors: Factors, n: int) -> list[frozenset[int]]:
    if structure == "independent":
        return list(independent_outputs(factors, n))
    if structure == "spans":
        return list(span_outputs(factors, n))
    return list(segment_outputs(factors, n, structure == "chain"))


def enumerate_all(structure: str, factors: Factors, scores):
    """log Z, the marginals and the best outputs' sums by enumeration."""
    log_z, found, best = [], np.zeros(len(scores)), []
    for n in range(len(factors.factors) - 1):
        every = outputs(structure, factors, n)
        sums = np.array([scores[sorted(rows)].sum() for rows in every])
        weights = np.exp(sums - sums.max())
        log_z.append(np.log(weights.sum()) + sums.max())
        for rows, weight in zip(every, weights / weights.sum(), strict=True):
            found[sorted(rows)] += weight
        best.append(sums.max())
    return np.array(log_z), found, np.array(best)


def random_factors(structure: str, rng: np.random.Generator, examples: int = 4) -> Factors:
    """Small random examples, one of them without a factor."""
    factors, rows, starts, ends, previous, labels = [0], [0], [], [], [], []
    for n in range(examples):
        tokens = 0 if n == 1 else int(rng.integers(1, 5))
        if structure in ("independent", "chain"):
            spans = [(t, t + 1) for t in range(tokens)]
        elif structure == "spans":
            every = [(a, b) for a in range(tokens + 1) for b in range(a + 1, tokens + 1)]
            drawn = int(rng.integers(0, 5)) if every else 0
            spans = [every[n] for n in rng.integers(0, len(every) or 1, drawn)]
        else:
            spans = [(a, b) for a in range(tokens) for b in range(a + 1, min(a + 3, tokens) + 1)]
        for start, end in spans:
            starts.append(start)
            ends.append(end)
            pairs = [(p, q) for p in range(-1, 2) for q in range(2)]
            if start == 0:
                pairs = pairs[:2]
            if structure in ("independent", "spans"):
                pairs = [(0, 0)] * int(rng.integers(1, 4))
            previous += [p for p, _ in pairs]
            labels += [q for _, q in pairs]
            rows.append(len(labels))
        factors.append(len(starts))
    arrays = (np.array(a, np.int64) for a in (factors, rows, starts, ends, previous, labels))
    return Factors(*arrays)
