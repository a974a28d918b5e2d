"""Cut-offs of the label probabilities, chosen from histograms that partitions can sum."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.special import expit

from corpusmill.types import AnyArray, Flags, Floats

BINS = 200
Criterion = Literal["accuracy", "f1"]


def default_cutoffs(lam: Floats) -> Floats:
    """Give the cut-offs before any were chosen: a quarter of a pattern's instances.

    Parameters
    ----------
    lam : Floats, shape (C,)

    Returns
    -------
    Floats, shape (C,)
        sigmoid(lambda_c / 4).
    """
    cutoffs: Floats = expit(lam / 4.0)
    return cutoffs


def histogram(mean: Floats, labels: Flags) -> dict[str, Floats]:
    """Count patterns by phibar_c, or p(y_c | X), and by whether they have the class.

    Parameters
    ----------
    mean : Floats, shape (patterns, C)
        phibar or p(y | X), inferred without labels, in [0, 1].
    labels : Flags, shape (patterns, C)

    Returns
    -------
    dict of str to Floats
        ``positives`` and ``negatives``, shape (C, BINS).
    """
    classes = mean.shape[1]
    bins = np.minimum((mean * BINS).astype(np.int64), BINS - 1)
    flat = bins + np.arange(classes) * BINS
    return {"positives": _tally(flat[labels], classes), "negatives": _tally(flat[~labels], classes)}


def _tally(bins: AnyArray, classes: int) -> Floats:
    counts = np.bincount(bins, minlength=classes * BINS)
    return counts.reshape(classes, BINS).astype(np.float64)


def choose_cutoffs(sums: dict[str, Floats], lam: Floats, criterion: Criterion) -> Floats:
    """Choose for each class the cut-off with the best accuracy or F1 on held-out patterns.

    Parameters
    ----------
    sums : dict
        Summed `histogram`.
    lam : Floats, shape (C,)
        Where lambda_c < 0 a large phibar_c speaks against the class.
    criterion : {"accuracy", "f1"}

    Returns
    -------
    Floats, shape (C,)
        For p(y_c | X) = sigmoid(lambda_c phibar_c): the edges of `choose_edges`.
    """
    flip = lam < 0.0
    turned = {
        name: np.where(flip[:, None], counts[:, ::-1], counts) for name, counts in sums.items()
    }
    edge = choose_edges(turned, criterion)
    chosen = expit(lam * np.where(flip, 1.0 - edge, edge))
    return np.where(edge >= 1.0, 1.0, chosen)


def choose_edges(sums: dict[str, Floats], criterion: Criterion) -> Floats:
    """Choose for each class the edge between bins above which patterns get the class.

    Returns
    -------
    Floats, shape (C,)
        In [0, 1]; the middle one of the first run of equally good edges. 1, the edge past the
        last bin, means that no pattern gets the class; so it is where none has it.
    """
    true_positives = _from_edge(sums["positives"])
    false_positives = _from_edge(sums["negatives"])
    positives, negatives = true_positives[:, :1], false_positives[:, :1]
    if criterion == "accuracy":
        score = true_positives + negatives - false_positives
    else:
        score = 2.0 * true_positives / np.maximum(positives + true_positives + false_positives, 1.0)
    best = score >= score.max(axis=1, keepdims=True) - 1e-12
    first = best.argmax(axis=1)
    run = np.array(
        [np.argmin(np.append(row[at:], False)) for row, at in zip(best, first, strict=True)]
    )
    return np.where(positives[:, 0] > 0.0, (first + (run - 1) // 2) / BINS, 1.0)


def _from_edge(counts: Floats) -> Floats:
    tail = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    return np.concatenate([tail, np.zeros((len(counts), 1))], axis=1)
