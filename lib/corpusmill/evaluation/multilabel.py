"""Metrics of label sets: Hamming accuracy, micro and macro F1."""

from __future__ import annotations

import numpy as np

from corpusmill.evaluation.ranking import F1
from corpusmill.types import Flags, Floats


def hamming_accuracy(gold: Flags, predicted: Flags) -> tuple[Floats, float]:
    """Return the share of right decisions, a class and overall.

    Parameters
    ----------
    gold, predicted : Flags, shape (patterns, classes)

    Returns
    -------
    by_class : Floats, shape (classes,)
        The share of patterns on which the class was decided rightly.
    overall : float
        Their mean, one minus the Hamming loss. NaN if there are no patterns.
    """
    if not gold.size:
        return np.full(gold.shape[1], np.nan), float("nan")
    right = gold == predicted
    return right.mean(axis=0), float(right.mean())


def f1_multi(gold: Flags, predicted: Flags) -> F1:
    """Return micro and macro F1 of label sets.

    Parameters
    ----------
    gold, predicted : Flags, shape (patterns, classes)

    Returns
    -------
    F1
        Micro: ``2 tp / (2 tp + fp + fn)`` over all decisions; macro: its mean over all classes.
        A class that is neither true nor predicted anywhere counts as 0.
    """
    hits = (gold & predicted).sum(axis=0)
    total = gold.sum(axis=0) + predicted.sum(axis=0)
    by_class = 2 * hits / np.maximum(total, 1)
    micro = 2 * hits.sum() / max(int(total.sum()), 1)
    return F1(float(micro), float(by_class.mean()) if by_class.size else float("nan"))
