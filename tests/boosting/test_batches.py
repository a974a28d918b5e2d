"""Rows of factors as arrays, and what is refused of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.boosting.batches import FACTOR_ROWS, read_examples, width_of
from corpusmill.boosting.structures import STRUCTURES
from corpusmill.errors import DataError
from tests.boosting.examples import WIDTH, make_batch, make_row

GOOD = {
    "example_id": "good",
    "row_offsets": [0, 2, 4],
    "starts": [0, 1],
    "ends": [2, 3],
    "previous": None,
    "labels": None,
    "features": [float(x) for x in range(8)],
    "gold": [1],
}
CHAIN = GOOD | {"previous": [-1, -1, 0, 1], "labels": [0, 1, 0, 0], "gold": [0, 2]}


def batch(*rows):
    return pa.RecordBatch.from_pylist(list(rows), schema=FACTOR_ROWS)


@pytest.mark.parametrize("structure", sorted(STRUCTURES))
def test_a_batch_is_its_rows(structure):
    given = make_batch(structure, 9, 1)
    whole = read_examples(given, structure, WIDTH)
    parts = [read_examples(given.slice(n, 1), structure, WIDTH) for n in range(9)]
    np.testing.assert_array_equal(whole.features, np.concatenate([p.features for p in parts]))
    np.testing.assert_array_equal(whole.gold, np.concatenate([p.gold for p in parts]))
    scores = np.random.default_rng(0).normal(size=len(whole.gold))
    bounds = whole.factors.example_rows()
    single = [
        part.structure.marginals(scores[bounds[n] : bounds[n + 1]])[0]
        for n, part in enumerate(parts)
    ]
    np.testing.assert_allclose(whole.structure.marginals(scores)[0], np.concatenate(single))


def test_nil_is_chosen_where_nothing_else_is():
    found = read_examples(batch(GOOD, GOOD | {"gold": []}, GOOD | {"gold": None}), "spans", 2)
    assert found.gold.tolist() == [0, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0]
    assert found.known.tolist() == [True, True, False]


def test_columns_that_a_structure_does_not_read_may_be_missing():
    given = batch(GOOD).select(["row_offsets", "features"])
    found = read_examples(given, "independent", 2)
    assert not found.known.any()
    assert found.features.shape == (4, 2)


def test_an_example_without_factors_has_one_empty_output():
    nothing = GOOD | {"row_offsets": [0], "starts": [], "ends": [], "features": [], "gold": []}
    for structure in STRUCTURES:
        found = read_examples(batch(nothing), structure, 2)
        assert found.structure.marginals(np.zeros(0))[1].tolist() == [0.0]
        assert found.known.tolist() == [True]


BROKEN = [
    ("spans", {"row_offsets": []}, "row_offsets must begin with 0"),
    ("spans", {"row_offsets": None}, "row_offsets must begin with 0"),
    ("spans", {"row_offsets": [1, 4]}, "row_offsets must begin with 0"),
    ("spans", {"row_offsets": [0, 2, 2, 4]}, "row_offsets must rise"),
    ("spans", {"row_offsets": [0, 4, 2]}, "row_offsets must rise"),
    ("spans", {"starts": [0]}, "starts must hold a number a factor"),
    ("spans", {"starts": None, "ends": None}, "structure 'spans' needs starts"),
    ("segments", {"ends": None}, "structure 'segments' needs ends"),
    ("chain", {"labels": None, "previous": None}, "structure 'chain' needs labels"),
    ("chain", {"labels": [0, 1, 0, 2**31 - 1]}, "labels must be at most 65535"),
    ("spans", {"row_offsets": [0, 2**31 - 1]}, "features must hold numbers for all rows"),
    ("spans", {"gold": [0, 1]}, "gold must be an output of structure 'spans'"),
    ("spans", {"starts": [-1, 1]}, "0 <= start < end"),
    ("spans", {"ends": [0, 3]}, "0 <= start < end"),
    ("spans", {"ends": [2, 2**31 - 1]}, "0 <= start < end"),
    ("spans", {"features": [1.0] * 6}, "features must hold 2 numbers a row"),
    ("spans", {"features": None}, "features must hold numbers for all rows"),
    ("spans", {"gold": [4]}, "gold must hold numbers of the example's rows"),
    ("spans", {"gold": [-1]}, "gold must hold numbers of the example's rows"),
    ("spans", {"gold": [1, 3]}, "gold must be an output of structure 'spans'"),
    ("independent", {"gold": [1]}, "gold must be an output of structure 'independent'"),
    ("chain", {"labels": [0, 1, 0, -1]}, "labels must be 0 or more, previous -1 or more"),
    ("chain", {"previous": [-2, -1, 0, 1]}, "labels must be 0 or more, previous -1 or more"),
    ("chain", {"previous": [0, -1, 0, 1]}, "at the first position previous must be -1"),
    ("chain", {"gold": [0, 3]}, "gold must be an output of structure 'chain'"),
    ("segments", {}, "gold must be an output of structure 'segments'"),
]


@pytest.mark.parametrize(("structure", "change", "rule"), BROKEN)
def test_a_broken_row_is_named(structure, change, rule):
    start = CHAIN if structure in ("chain", "segments") else GOOD
    good = GOOD if structure == "spans" else start | {"gold": None}
    bad = start | change | {"example_id": "bad one"}
    with pytest.raises(DataError, match=rf"DATA01: example 'bad one': .*{rule}"):
        read_examples(batch(good, bad, good), structure, 2)


def test_width_is_that_of_the_first_example_with_rows():
    rng = np.random.default_rng(0)
    nothing = GOOD | {"row_offsets": [0], "starts": [], "ends": [], "features": []}
    assert width_of(batch(nothing, make_row(1, "spans", rng))) == WIDTH
    assert width_of(batch(nothing)) == 0
    with pytest.raises(DataError, match=r"DATA01: example 'good': 7 features are no whole number"):
        width_of(batch(GOOD | {"features": [0.0] * 7}))
