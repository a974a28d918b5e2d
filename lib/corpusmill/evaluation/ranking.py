"""Metrics of ranked classes where every item has one true class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpusmill.types import Floats

ClassIds = NDArray[np.int64]
"""Rank 1, class numbers from 0."""


class F1(NamedTuple):
    """F1 over all decisions pooled, and the mean of the classes' F1."""

    micro: float
    macro: float


def ranks(scores: Floats, gold: ClassIds) -> ClassIds:
    """Return the rank of each item's true class, 0 being the best.

    Parameters
    ----------
    scores : Floats, shape (items, classes)
        Higher is better; -inf for a class that is ruled out. Of equal scores the class with the
        smaller number ranks first, so that the ranking is the one of a stable sort.
    gold : ClassIds, shape (items,)
        The true classes.

    Returns
    -------
    ClassIds, shape (items,)

    Notes
    -----
    O(items * classes), without sorting.
    """
    own = np.take_along_axis(scores, gold[:, None], axis=1)
    earlier = np.arange(scores.shape[1])[None, :] < gold[:, None]
    better = (scores > own) | ((scores == own) & earlier)
    return better.sum(axis=1, dtype=np.int64)


def accuracy_at(scores: Floats, gold: ClassIds, n: int) -> float:
    """Return the share of items whose true class is among the n best.

    Parameters
    ----------
    scores, gold
        As in `ranks`.
    n
        How many of the best classes count, 1 or more.

    Returns
    -------
    float
        NaN if there are no items.
    """
    if not len(gold):
        return float("nan")
    return float(np.mean(ranks(scores, gold) < n))


def f1_single(gold: ClassIds, predicted: ClassIds) -> F1:
    """Return micro and macro F1 of one predicted class an item.

    Parameters
    ----------
    gold, predicted : ClassIds, shape (items,)

    Returns
    -------
    F1
        With one class an item, micro F1 is the accuracy. Macro F1 is the mean of
        ``2 tp / (2 tp + fp + fn)`` over the classes that occur in `gold` or `predicted`.
        NaN if there are no items.
    """
    if not len(gold):
        return F1(float("nan"), float("nan"))
    classes = int(max(gold.max(), predicted.max())) + 1
    counts = np.bincount(gold * classes + predicted, minlength=classes * classes)
    return f1_of_confusion(counts.reshape(classes, classes).astype(np.float64))


def f1_of_confusion(counts: Floats) -> F1:
    """Return `f1_single` from the counts of true (rows) and predicted (columns) classes.

    Parameters
    ----------
    counts : Floats, shape (C, C)
        With at least one item.

    Returns
    -------
    F1
    """
    hits = np.diag(counts)
    total = counts.sum(axis=0) + counts.sum(axis=1)
    occurring = total > 0
    macro = float(np.mean(2.0 * hits[occurring] / total[occurring]))
    return F1(float(hits.sum() / counts.sum()), macro)
