"""Tables of fragments and metrics for reviewers. No Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from corpusmill.fragments.fragment import Fragment, fragment_text
from corpusmill.types import AnyArray, Floats

MOST = 30
_NODES = ["labels", "arities", "expanded"]
_MEASURES = ("accuracy", "precision", "recall", "f1")


def best_fragments(
    classes: Sequence[str],
    weights: Floats,
    document_frequencies: AnyArray,
    fragment: Callable[[int], Fragment],
    most: int = MOST,
) -> pd.DataFrame:
    """Give each class's fragments of greatest absolute weight.

    Parameters
    ----------
    classes : sequence of str
    weights : Floats, shape (classes, fragments)
        Zeros and what is no number are left out.
    document_frequencies : shape (fragments,)
        Training examples that have the fragment.
    fragment : callable
        From a fragment's number to the fragment; called for those in the table alone.
    most : int
        How many a class.

    Returns
    -------
    pandas.DataFrame
        ``class``, ``rank`` (from 1), ``fragment`` (its text), ``weight``,
        ``document_frequency``, and the nodes in preorder: ``labels``, ``arities``, ``expanded``.
        Of equal weights the fragment with the lower number comes first.
    """
    rows = []
    for name, row in zip(classes, weights, strict=True):
        size = np.where(np.isfinite(row), np.abs(row), 0.0)
        order = np.argsort(-size, kind="stable")[:most]
        for rank, number in enumerate(order[size[order] > 0], start=1):
            found = fragment(int(number))
            text = fragment_text(found.labels, found.arities)
            frequency = int(document_frequencies[number])
            rows.append((name, rank, text, float(row[number]), frequency, *map(list, found)))
    columns = ["class", "rank", "fragment", "weight", "document_frequency", *_NODES]
    return pd.DataFrame(rows, columns=columns)


def fragments_table(best: pd.DataFrame) -> pd.DataFrame:
    """Leave the nodes out of `best_fragments`, for CSV and for MLflow."""
    return best.drop(columns=_NODES)


def comparison_table(metrics: Mapping[str, float]) -> pd.DataFrame:
    """Lay the exact kernel's results beside the linearised ones.

    Parameters
    ----------
    metrics : mapping of str to float
        Among others ``exact.accuracy``, ``linearised.accuracy``, ``exact.<class>.f1``,
        ``linearised.<class>.f1``, as shares of one.

    Returns
    -------
    pandas.DataFrame
        ``class`` (empty where a metric is of all), ``metric``, ``exact``, ``linearised`` and
        ``difference`` (linearised - exact), in percent; a row for what both have, classes first.
    """
    rows = []
    for name, exact in metrics.items():
        rest = name.removeprefix("exact.")
        label, _, measure = rest.rpartition(".")
        linearised = metrics.get(f"linearised.{rest}")
        if rest != name and measure in _MEASURES and linearised is not None:
            values = 100 * exact, 100 * linearised, 100 * (linearised - exact)
            rows.append((label, measure, *values))
    rows.sort(key=lambda row: not row[0])
    return pd.DataFrame(rows, columns=["class", "metric", "exact", "linearised", "difference"])
