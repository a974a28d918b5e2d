"""Measures of predicted documents, from rows. No Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from corpusmill.evaluation.coreference import (
    CoreferenceCounts,
    Mentions,
    coreference_metrics,
    count_coreference,
)
from corpusmill.frames import flat_integers, list_offsets
from corpusmill.types import Floats

WIDTH = 4
"""Numbers of each measure: numerator and denominator of recall and of precision."""


def mentions_of(batch: pa.RecordBatch, kind: str) -> Mentions:
    """Read the columns ``<kind>_starts``, ``_ends`` and ``_clusters``."""
    offsets = list_offsets(batch.column(f"{kind}_starts"))
    return Mentions(offsets, *(flat_integers(batch, f"{kind}_{name}") for name in _PARTS))


_PARTS = ("starts", "ends", "clusters")


def count_rows(batch: pa.RecordBatch | None) -> Floats:
    """Count true and predicted mentions and links of each document.

    Parameters
    ----------
    batch : pyarrow.RecordBatch or None
        With the columns ``mention_...`` and ``predicted_...``; None is no document.

    Returns
    -------
    float64, shape (documents, measures times WIDTH)
        `CoreferenceCounts`, one measure beside the other.
    """
    if batch is None:
        return np.zeros((0, WIDTH * len(CoreferenceCounts._fields)))
    gold, found = mentions_of(batch, "mention"), mentions_of(batch, "predicted")
    return np.hstack(count_coreference(gold, found))


def predicted_counts(batch: pa.RecordBatch, found: pa.RecordBatch) -> Floats:
    """Count as `count_rows` where the predictions stand beside their documents."""
    names = [f"mention_{name}" for name in _PARTS]
    columns = [*(batch.column(name) for name in names), *found.columns]
    return count_rows(pa.RecordBatch.from_arrays(columns, [*names, *found.schema.names]))


def counts_of(rows: Floats) -> CoreferenceCounts:
    """Undo the stacking of `count_rows`; of a sum over documents too."""
    return CoreferenceCounts(*np.split(np.atleast_2d(rows), len(CoreferenceCounts._fields), axis=1))


def metrics_of(rows: Floats) -> dict[str, float]:
    """Give the metrics of documents, or of their sum; `coreference_metrics`."""
    return coreference_metrics(counts_of(rows))
