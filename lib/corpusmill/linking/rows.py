"""Flat arrays as rows of Arrow and back, to be joined by key and put together again. No Spark.

A row has a number a plain array, and a list a ragged one or a line of a matrix. Spark has no
unsigned numbers: they travel as signed ones of the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from corpusmill.frames import list_offsets
from corpusmill.types import AnyArray, Offsets

Column: TypeAlias = AnyArray | pa.Array | tuple[Offsets, AnyArray]


def rows_of(columns: Mapping[str, Column]) -> pa.Table:
    """Make rows of columns.

    Parameters
    ----------
    columns
        By name: an array of shape (rows,) or (rows, width), an Arrow array, or offsets, shape
        (rows + 1,), and values.

    Returns
    -------
    pa.Table

    Notes
    -----
    Without a copy but for offsets, which Arrow counts with 32 bits: more than 2^31 values of a
    column are refused there.
    """
    return pa.table({name: _arrow(column) for name, column in columns.items()})


def _arrow(column: Column) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, tuple):
        offsets, values = column
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), _arrow(values))
    if column.ndim == 2:
        rows, width = column.shape
        return _arrow((np.arange(rows + 1) * width, column.ravel()))
    kind = column.dtype
    return pa.array(column.view(f"i{kind.itemsize}") if kind.kind == "u" else column)


def numbers_of(rows: pa.Table, name: str, kind: DTypeLike) -> AnyArray:
    """Give a column of numbers as it was before `rows_of`; shape (rows,)."""
    values = rows[name].combine_chunks().to_numpy(zero_copy_only=False)
    return np.array(values).view(kind)


def lists_of(rows: pa.Table, name: str, kind: DTypeLike) -> tuple[Offsets, AnyArray]:
    """Give a column of lists as offsets and values."""
    column = rows[name].combine_chunks()
    return list_offsets(column), np.array(column.flatten().to_numpy(zero_copy_only=False)).view(
        kind
    )


def matrix_of(rows: pa.Table, name: str, kind: DTypeLike, width: int) -> AnyArray:
    """Give a column of lists that are equally long; shape (rows, width)."""
    return lists_of(rows, name, kind)[1].reshape(-1, width)
