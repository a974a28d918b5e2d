"""Reading the rows that models get."""

from __future__ import annotations

from itertools import chain

import pandas as pd
import pyarrow as pa
import pytest

from corpusmill.frames import list_offsets, record_batch, text_pieces


def test_offsets_of_slices_and_nulls():
    column = pa.array([[9, 9], [1, 2], None, [], [3]])[1:]
    offsets = list_offsets(column)
    assert offsets.tolist() == [0, 2, 2, 2, 3]
    assert column.flatten().to_pylist() == [1, 2, 3]
    assert list_offsets(column[:0]).tolist() == [0]


@pytest.mark.parametrize("most", [1, 2, 3, 5, 100])
def test_pieces_hold_so_many_characters_or_one_text(most: int):
    texts = ["é", "", "abcd", None, "xy", "z", "", "ab"]
    batch = pa.record_batch({"text": pa.array(texts)})
    pieces = [piece["text"].to_pylist() for piece in text_pieces(batch, "text", most)]
    assert list(chain.from_iterable(pieces)) == texts
    sizes = [sum(len(text or "") for text in piece) for piece in pieces]
    assert all(size <= most or len(piece) == 1 for size, piece in zip(sizes, pieces, strict=True))
    # No piece could have taken the next one's first text.
    for size, after in zip(sizes[:-1], pieces[1:], strict=True):
        assert size + len(after[0] or "") > most


def test_an_empty_batch_is_a_piece():
    batch = pa.record_batch({"text": pa.array([], pa.string())})
    assert [piece.num_rows for piece in text_pieces(batch, "text", 5)] == [0]


def test_a_frame_without_rows_is_an_empty_batch():
    schema = pa.schema([("text", pa.string()), ("sizes", pa.list_(pa.int32()))])
    for frame in (pd.DataFrame({"text": [], "sizes": []}), pd.DataFrame({"text": ["a"]})[:0]):
        batch = record_batch(frame, schema, optional=["sizes"])
        assert batch.num_rows == 0
        assert batch.schema.field("text").type == pa.string()
