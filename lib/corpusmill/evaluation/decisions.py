"""Metrics of one-against-all decisions and of the best class: sums that partitions can add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corpusmill.types import AnyArray, Floats


class Decisions(NamedTuple):
    """Counts over examples; those of parts add up.

    Attributes
    ----------
    right, decided, gold : Floats, shape (classes,)
        Examples of the class with a score above 0; with a score above 0; of the class.
    confusion : Floats, shape (classes, classes)
        By true class and class of the largest score.
    """

    right: Floats
    decided: Floats
    gold: Floats
    confusion: Floats


def count_decisions(scores: Floats, codes: AnyArray) -> Decisions:
    """Count decisions.

    Parameters
    ----------
    scores : Floats, shape (examples, classes)
        One against all; above 0 means the class.
    codes : int64, shape (examples,)
        True classes.
    """
    classes = scores.shape[1]
    positive = scores > 0.0
    own = positive[np.arange(len(codes)), codes]
    confusion = np.zeros((classes, classes))
    np.add.at(confusion, (codes, scores.argmax(axis=1)), 1.0)
    return Decisions(
        np.bincount(codes[own], minlength=classes).astype(np.float64),
        positive.sum(axis=0).astype(np.float64),
        np.bincount(codes, minlength=classes).astype(np.float64),
        confusion,
    )


def decision_metrics(counts: Decisions, classes: Sequence[str]) -> dict[str, float]:
    """Give accuracy of the best class, and precision, recall and F1 of each class's decision.

    Returns
    -------
    dict of str to float
        ``accuracy``, and ``<class>.precision``, ``.recall``, ``.f1``; for two classes those of
        the first, without its name. Shares of one; 0 where there is nothing to divide by.
    """
    total = counts.gold.sum()
    metrics = {"accuracy": float(np.trace(counts.confusion) / total) if total else 0.0}
    parts = {
        "precision": counts.right / np.maximum(counts.decided, 1.0),
        "recall": counts.right / np.maximum(counts.gold, 1.0),
        "f1": 2.0 * counts.right / np.maximum(counts.decided + counts.gold, 1.0),
    }
    shown = classes[:1] if len(classes) == 2 else classes
    for c, name in enumerate(shown):
        prefix = "" if len(classes) == 2 else f"{name}."
        metrics |= {f"{prefix}{measure}": float(values[c]) for measure, values in parts.items()}
    return metrics
