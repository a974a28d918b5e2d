"""Draw corpora from the DBA model itself, with the classes of the instances known."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from corpusmill.types import AnyArray, Bags, Floats, Patterns


class Drawn(NamedTuple):
    """Patterns and what generated them."""

    patterns: Patterns
    instance_classes: AnyArray
    alpha: Floats
    lam: Floats
    table: Floats


def bags_of(dense: AnyArray) -> Bags:
    """Put the nonzeros of a dense matrix into compressed rows."""
    rows, ids = np.nonzero(dense)
    offsets = np.concatenate([[0], np.bincount(rows, minlength=len(dense)).cumsum()])
    return Bags(offsets.astype(np.int64), ids.astype(np.int32), dense[rows, ids].astype(float))


def dense_of(bags: Bags, features: int) -> Floats:
    """Undo `bags_of`."""
    dense = np.zeros((len(bags.offsets) - 1, features))
    for row in range(len(dense)):
        for at in range(bags.offsets[row], bags.offsets[row + 1]):
            dense[row, bags.ids[at]] += bags.counts[at]
    return dense


def patterns_of(sizes, dense, weights=None, labels=None, labelled=None, classes=2) -> Patterns:
    """Wrap plain arrays as `Patterns`."""
    dense = np.asarray(dense, float)
    count = len(sizes)
    labels = np.zeros((count, classes), bool) if labels is None else np.asarray(labels, bool)
    return Patterns(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        bags_of(dense),
        np.ones(len(dense)) if weights is None else np.asarray(weights, float),
        labels,
        np.ones(count, bool) if labelled is None else np.asarray(labelled, bool),
    )


def part_of(patterns: Patterns, first: int, last: int) -> Patterns:
    """Cut out the patterns ``first`` to ``last - 1``."""
    begin, end = patterns.offsets[first], patterns.offsets[last]
    bags = patterns.bags
    left, right = bags.offsets[begin], bags.offsets[end]
    return Patterns(
        patterns.offsets[first : last + 1] - begin,
        Bags(bags.offsets[begin : end + 1] - left, bags.ids[left:right], bags.counts[left:right]),
        patterns.weights[begin:end],
        patterns.labels[first:last],
        patterns.labelled[first:last],
    )


def split(patterns: Patterns, parts: int) -> list[Patterns]:
    """Cut into so many partitions of about equally many patterns, perhaps empty ones."""
    bounds = np.linspace(0, len(patterns.labels), parts + 1).astype(int)
    return [part_of(patterns, a, b) for a, b in pairwise(bounds)]


def draw(
    rng: np.random.Generator,
    alpha: Floats,
    lam: Floats,
    kind: str,
    table: Floats,
    patterns: int,
    instances: int,
    length: int = 20,
) -> Drawn:
    """Draw a corpus.

    ``table`` is B, the rates or the means (with variance 1), shape (D, C); an instance of the
    multinomial has ``length`` tokens and a pattern 1 to ``2 instances - 1`` instances.
    """
    sizes = rng.integers(1, 2 * instances, patterns)
    theta = rng.dirichlet(alpha, patterns)
    classes = [rng.choice(len(alpha), size, p=row) for size, row in zip(sizes, theta, strict=True)]
    mean = np.array([np.bincount(row, minlength=len(alpha)) / len(row) for row in classes])
    labels = rng.random(mean.shape) < 1.0 / (1.0 + np.exp(-lam * mean))
    z = np.concatenate(classes)
    if kind == "multinomial":
        dense = np.array([rng.multinomial(length, table[:, c]) for c in z])
    elif kind == "poisson":
        dense = rng.poisson(table[:, z].T)
    else:
        dense = rng.normal(table[:, z].T, 1.0)
    return Drawn(patterns_of(sizes, dense, labels=labels), z, alpha, lam, table)
