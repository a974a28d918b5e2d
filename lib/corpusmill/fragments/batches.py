"""Arrow record batches of tree rows to forests, and sparse vectors to Arrow."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from corpusmill.fragments.vocabulary import PRODUCTIONS, Vocabulary, distinct_productions
from corpusmill.frames import any_in_row, refuse_rows
from corpusmill.types import AnyArray, Flags, Forest, Offsets

ID_COLUMN = "example_id"
MAX_VALUE = 1e15
"""Of a feature: squares of larger ones soon exceed the 32-bit numbers of the kernel's rows."""
_refuse = partial(refuse_rows, id_column=ID_COLUMN, kind="example")


def read_forests(batch: pa.RecordBatch, vocabulary: Vocabulary, slots: int) -> tuple[Forest, ...]:
    """Flatten tree rows, after checking that every row holds whole trees.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns ``node_labels``, ``node_arities`` and ``tree_offsets`` of
        `corpusmill.corpora.schemas.TREES`; a row of fewer trees than ``slots`` has empty ones.
    vocabulary : Vocabulary
    slots : int
        Trees an example.

    Returns
    -------
    tuple of Forest
        One a slot, each with a tree, perhaps an empty one, for every row.

    Raises
    ------
    DataError
        DATA01 naming the first broken row.
    """
    forest, starts = read_all_trees(batch, vocabulary.encode(_strings(batch, "node_labels")))
    counts = np.diff(starts)
    _refuse(batch, counts > slots, f"at most {slots} trees, as in training")
    if slots == 1 and np.all(counts == 1):
        return (forest,)
    return tuple(_slot(forest, starts, slot) for slot in range(slots))


def read_all_trees(batch: pa.RecordBatch, labels: AnyArray) -> tuple[Forest, Offsets]:
    """Flatten the trees of all rows, and give where each row's begin; raises as `read_forests`."""
    starts, _ = _list(batch, "node_labels")
    arity_starts, arities = _list(batch, "node_arities")
    tree_starts, ends = _list(batch, "tree_offsets")
    _refuse(batch, np.diff(arity_starts) != np.diff(starts), "an arity for each label")
    _refuse(batch, np.diff(tree_starts) < 1, "tree_offsets must start with 0")
    firsts, lasts = tree_starts[:-1], tree_starts[1:] - 1
    bad = (ends[firsts] != 0) | (ends[lasts] != np.diff(starts))
    _refuse(batch, bad, "tree_offsets must go from 0 to the number of labels")
    inside = np.ones(len(ends), np.bool_)
    inside[firsts] = False
    falls = np.r_[False, np.diff(ends) < 0] & inside
    _refuse(batch, any_in_row(falls, tree_starts), "tree_offsets must not fall")
    offsets = np.concatenate([[0], (ends + np.repeat(starts[:-1], np.diff(tree_starts)))[inside]])
    rows = tree_starts - np.arange(len(tree_starts))
    forest = Forest(offsets.astype(np.int64), labels, arities.astype(np.int32))
    _refuse(batch, any_in_row(~_whole(forest), rows), "arities that make one tree each")
    return forest, rows


def _whole(forest: Forest) -> Flags:
    """Tell which trees end with their last node and not before."""
    sizes = np.diff(forest.offsets)
    # Nodes still to come, after each node: one at the start, one less and its children's more.
    steps = np.concatenate([[0], np.cumsum(forest.arities.astype(np.int64) - 1)])
    starts, ends = forest.offsets[:-1], forest.offsets[1:]
    left = steps[1:] - np.repeat(steps[starts], sizes) + 1
    inner = np.ones(len(left), np.bool_)
    inner[ends[sizes > 0] - 1] = False
    early = np.concatenate([[0], np.cumsum(inner & (left <= 0))])
    negative = np.concatenate([[0], np.cumsum(forest.arities < 0)])
    good = (early[ends] == early[starts]) & (negative[ends] == negative[starts])
    return good & ((sizes == 0) | (steps[ends] - steps[starts] == -1))


def _slot(forest: Forest, starts: Offsets, slot: int) -> Forest:
    """Give the slot-th tree of each row."""
    there = np.diff(starts) > slot
    trees = starts[:-1][there] + slot
    begins, sizes = forest.offsets[trees], np.diff(forest.offsets)[trees]
    offsets = np.zeros(len(starts), np.int64)
    offsets[1:][there] = sizes
    np.cumsum(offsets, out=offsets)
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1][there], sizes)
    nodes = np.repeat(begins, sizes) + within
    return Forest(offsets, forest.labels[nodes], forest.arities[nodes])


def productions_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """List the distinct productions of tree rows; a kernel for Spark."""
    column = _strings(batch, "node_labels").dictionary_encode()
    codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    forest, _ = read_all_trees(batch, codes)
    found = distinct_productions(column.dictionary, forest)
    return pa.RecordBatch.from_arrays([found], schema=PRODUCTIONS)


def sparse_columns(vectors: csr_array) -> dict[str, pa.Array]:
    """Write the rows of a sparse matrix as list columns ``ids`` and ``values``."""
    offsets = pa.array(vectors.indptr.astype(np.int32))
    return {
        "ids": pa.ListArray.from_arrays(offsets, pa.array(vectors.indices.astype(np.int32))),
        "values": pa.ListArray.from_arrays(offsets, pa.array(vectors.data)),
    }


def read_sparse(
    batch: pa.RecordBatch, size: int, ids: str = "ids", values: str = "values"
) -> csr_array:
    """Read list columns as the rows of a sparse matrix of ``size`` columns; ids beyond are dropped.

    Raises
    ------
    DataError
        DATA01: a negative id, or values that are not one for each id, not finite, or above
        `MAX_VALUE` in size.
    """
    starts, columns = _list(batch, ids)
    value_starts, data = _list(batch, values)
    _refuse(batch, np.diff(value_starts) != np.diff(starts), f"a number in {values} for each id")
    _refuse(batch, any_in_row(columns < 0, starts), f"{ids} must not be negative")
    bad = any_in_row(~(np.abs(data.astype(np.float64)) <= MAX_VALUE), starts)
    _refuse(batch, bad, f"{values} must be finite numbers, in size at most {MAX_VALUE:g}")
    known = columns < size
    offsets = np.concatenate([[0], np.cumsum(known)])[starts]
    matrix = csr_array((data[known], columns[known], offsets), shape=(batch.num_rows, size))
    matrix.sum_duplicates()
    return matrix


def _strings(batch: pa.RecordBatch, name: str) -> pa.Array:
    flat = batch.column(name).flatten()
    if flat.null_count:
        _list(batch, name)
    return flat


def _list(batch: pa.RecordBatch, name: str) -> tuple[Offsets, AnyArray]:
    column = batch.column(name)
    _refuse(batch, np.asarray(column.is_null()), f"{name} must not be null")
    offsets = column.offsets.to_numpy().astype(np.int64)
    offsets = offsets - offsets[0]
    flat = column.flatten()
    if flat.null_count:
        nulls = np.asarray(flat.is_null())
        _refuse(batch, any_in_row(nulls, offsets), f"{name} must hold no null")
    if pa.types.is_string(flat.type) or pa.types.is_large_string(flat.type):
        return offsets, np.zeros(0)
    return offsets, flat.to_numpy(zero_copy_only=False)


def string_column(names: np.ndarray, codes: AnyArray) -> pa.Array:
    """Look codes up in names; a code below 0 is null."""
    indices = pa.array(codes, mask=codes < 0)
    return pc.take(pa.array(names, pa.string()), indices)
