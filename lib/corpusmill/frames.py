"""Rows as models get them: pandas frames to Arrow, and broken rows by name. No Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.errors import DataError, SchemaError
from corpusmill.types import Flags, Offsets


def record_batch(
    frame: pd.DataFrame, schema: pa.Schema, optional: Collection[str] = ()
) -> pa.RecordBatch:
    """Read the columns that a model needs, in the schema's order.

    Parameters
    ----------
    frame : pandas.DataFrame
        Other columns are passed over.
    schema : pyarrow.Schema
    optional
        Columns that may be missing, and then are missing in the result.

    Raises
    ------
    SchemaError
        DATA04: a column is missing.
    DataError
        DATA01: a column holds something else.
    """
    for item in schema:
        if item.name not in frame.columns and item.name not in optional:
            wanted = str(item.type)
            raise SchemaError("DATA04", column=item.name, found="missing", expected=wanted)
    fields = [item for item in schema if item.name in frame.columns]
    if not len(frame):
        # pandas makes of it columns of numbers, of no chunk.
        return pa.RecordBatch.from_pylist([], schema=pa.schema(fields))
    try:
        return pa.RecordBatch.from_pandas(frame, pa.schema(fields), preserve_index=False)
    except pa.ArrowException as error:
        problem = ": ".join(str(part) for part in reversed(error.args))
        raise DataError("DATA01", source="the frame", problem=problem) from error


def list_offsets(column: pa.Array) -> Offsets:
    """Give where each list of a list column begins and ends in its values; null is empty."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def flat_integers(batch: pa.RecordBatch, name: str) -> Offsets:
    """Give the values of a column of lists of integers, one list after the other; int64."""
    return batch.column(name).flatten().to_numpy(zero_copy_only=False).astype(np.int64)


def text_pieces(batch: pa.RecordBatch, column: str, most: int) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that each piece has at most ``most`` characters, or one text.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    column : str
        Holds texts; null has no characters.
    most : int

    Yields
    ------
    pyarrow.RecordBatch
        In order, without a copy; an empty batch is a piece.
    """
    sizes = pc.fill_null(pc.utf8_length(batch.column(column)), 0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    begin = 0
    while begin < batch.num_rows or not batch.num_rows:
        fits = int(np.searchsorted(ends, ends[begin] + most, side="right")) - 1
        end = max(fits, begin + 1)
        yield batch.slice(begin, end - begin)
        if end >= batch.num_rows:
            return
        begin = end


def any_in_row(flags: Flags, starts: Offsets) -> Flags:
    """Tell for each row whether any of its flags, ``flags[starts[k]:starts[k + 1]]``, is set."""
    ends = np.concatenate([[0], np.cumsum(flags)])
    return ends[starts[1:]] > ends[starts[:-1]]


def refuse_null_items(
    batch: pa.RecordBatch, names: Collection[str], id_column: str, kind: str
) -> None:
    """Name the first row with a null in one of its lists, if there is one.

    Raises
    ------
    DataError
        DATA01.
    """
    for name in set(names) & set(batch.schema.names):
        column = batch.column(name)
        items = column.flatten()
        if items.null_count:
            null = items.is_null().to_numpy(zero_copy_only=False)
            bad = any_in_row(null, list_offsets(column))
            refuse_rows(batch, bad, f"{name} must not hold a null", id_column, kind)


def refuse_rows(batch: pa.RecordBatch, bad: Flags, rule: str, id_column: str, kind: str) -> None:
    """Name the first bad row, if there is one, and the rule that it breaks.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    bad : Flags, shape (rows,)
    rule : str
        What a row must be.
    id_column : str
        Holds the rows' names; where the batch lacks it, a row's number stands for its name.
    kind : str
        What a row is.

    Raises
    ------
    DataError
        DATA01.
    """
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        name = batch.column(id_column)[row].as_py() if id_column in batch.schema.names else row
        raise DataError("DATA01", source=f"{kind} {name!r}", problem=rule)
