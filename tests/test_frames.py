"""Reading the rows that models get."""

from __future__ import annotations

import pyarrow as pa

from corpusmill.frames import list_offsets


def test_offsets_of_slices_and_nulls():
    column = pa.array([[9, 9], [1, 2], None, [], [3]])[1:]
    offsets = list_offsets(column)
    assert offsets.tolist() == [0, 2, 2, 2, 3]
    assert column.flatten().to_pylist() == [1, 2, 3]
    assert list_offsets(column[:0]).tolist() == [0]
