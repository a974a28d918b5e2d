"""Arrow record batches of pattern rows to flat arrays, and posteriors back to Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.alignment.kernels import Posterior, segment_sizes
from corpusmill.errors import DataError
from corpusmill.frames import any_in_row, list_offsets, refuse_rows
from corpusmill.types import AnyArray, Bags, Flags, Offsets, Patterns

ID_COLUMN = "pattern_id"
LABELS_COLUMN = "labels"
_refuse = partial(refuse_rows, id_column=ID_COLUMN, kind="pattern")


def read_patterns(
    batch: pa.RecordBatch,
    classes: Sequence[str],
    features: int,
    use_labels: bool = True,
    signed: bool = False,
) -> Patterns:
    """Flatten pattern rows, after checking that no row points outside itself.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns of `corpusmill.corpora.schemas.PATTERNS`; ``labels`` may be missing.
    classes : sequence of str
        The model's classes, in order.
    features : int
        D; ids must lie in [0, D).
    use_labels : bool
        Whether labels count; otherwise every pattern is unlabelled.
    signed : bool
        Whether feature counts may be negative, as the Gaussian's may.

    Returns
    -------
    Patterns

    Raises
    ------
    DataError
        DATA01 naming the first broken pattern, DATA05 naming a class that the model lacks.

    Notes
    -----
    O(size of the batch); flat values are views where Arrow's buffers allow it.
    """
    starts, offsets = _list(batch, "instance_offsets", np.int64)
    weight_starts, weights = _list(batch, "instance_weights", np.float64)
    id_starts, ids = _list(batch, "feature_ids", np.int32)
    count_starts, counts = _list(batch, "feature_counts", np.float64)
    sizes = np.diff(starts) - 1
    _refuse(batch, sizes < 0, "instance_offsets must start with 0")
    _refuse(batch, np.diff(weight_starts) != sizes, "as many instance_weights as instances")
    _refuse(batch, np.diff(count_starts) != np.diff(id_starts), "a count for each feature id")
    firsts, lasts = starts[:-1], starts[1:] - 1
    _refuse(batch, offsets[firsts] != 0, "instance_offsets must start with 0")
    _refuse(
        batch, offsets[lasts] != np.diff(id_starts), "instance_offsets must end at the features"
    )
    inside = np.ones(len(offsets), dtype=bool)
    inside[firsts] = False
    falls = np.zeros(len(offsets), dtype=bool)
    falls[1:] = np.diff(offsets) < 0
    _refuse(batch, any_in_row(falls & inside, starts), "instance_offsets must not fall")
    bad_ids = (ids < 0) | (ids >= features)
    _refuse(batch, any_in_row(bad_ids, id_starts), f"feature_ids must lie in [0, {features})")
    bad = ~np.isfinite(counts)
    _refuse(batch, any_in_row(bad, count_starts), "feature_counts must be finite numbers")
    bad = (counts < 0.0) & (not signed)
    _refuse(batch, any_in_row(bad, count_starts), "feature_counts must not be negative")
    bad = ~((weights > 0.0) & np.isfinite(weights))
    _refuse(batch, any_in_row(bad, weight_starts), "instance_weights must be positive numbers")
    ends = (offsets + np.repeat(id_starts[:-1], np.diff(starts)))[inside]
    bags = Bags(np.concatenate([[0], ends]).astype(np.int64), ids, counts)
    pattern_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    labels, labelled = _labels(batch, classes, use_labels)
    return Patterns(pattern_offsets, bags, weights, labels, labelled)


def _list(batch: pa.RecordBatch, name: str, dtype: type) -> tuple[Offsets, AnyArray]:
    column = batch.column(name)
    _refuse(batch, np.asarray(column.is_null()), f"{name} must not be null")
    offsets = column.offsets.to_numpy().astype(np.int64)
    flat = column.values.slice(offsets[0], offsets[-1] - offsets[0])
    if flat.null_count:
        nulls = np.asarray(flat.is_null())
        _refuse(batch, any_in_row(nulls, offsets - offsets[0]), f"{name} must hold no null")
    values = flat.to_numpy(zero_copy_only=False)
    return offsets - offsets[0], np.ascontiguousarray(values, dtype=dtype)


def _labels(batch: pa.RecordBatch, classes: Sequence[str], use_labels: bool) -> tuple[Flags, Flags]:
    rows = batch.num_rows
    flags = np.zeros((rows, len(classes)), dtype=bool)
    if not use_labels or LABELS_COLUMN not in batch.schema.names:
        return flags, np.zeros(rows, dtype=bool)
    column = batch.column(LABELS_COLUMN)
    if pa.types.is_null(column.type):
        return flags, np.zeros(rows, dtype=bool)
    names = column.flatten()
    ids = pc.index_in(names, value_set=pa.array(classes, type=names.type))
    if ids.null_count:
        unknown = names.filter(ids.is_null())[0].as_py()
        raise DataError(
            "DATA05", name=unknown, where="column 'labels'", allowed=", ".join(classes[:20])
        )
    sizes = np.diff(list_offsets(column))
    flags[np.repeat(np.arange(rows), sizes), ids.to_numpy(zero_copy_only=False)] = True
    return flags, ~np.asarray(column.is_null())


def list_column(values: AnyArray | pa.Array, offsets: Offsets) -> pa.ListArray:
    """Wrap flat values and offsets as an Arrow list column."""
    flat = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), flat)


def matrix_column(values: AnyArray) -> pa.ListArray:
    """Wrap the rows of a matrix as an Arrow list column."""
    rows, width = values.shape
    return list_column(np.ascontiguousarray(values).reshape(-1), np.arange(rows + 1) * width)


def posterior_columns(patterns: Patterns, posterior: Posterior) -> dict[str, pa.Array]:
    """Give the columns that describe a posterior.

    Returns
    -------
    dict of str to pyarrow.Array
        ``gamma`` (C a row), ``instance_probability`` (phi, instance by instance, M * C a
        row) and ``instances`` (M, counted with weights).
    """
    classes = posterior.gamma.shape[1]
    return {
        "gamma": matrix_column(posterior.gamma),
        "instance_probability": list_column(posterior.phi.reshape(-1), patterns.offsets * classes),
        "instances": pa.array(segment_sizes(patterns.offsets, patterns.weights)),
    }
