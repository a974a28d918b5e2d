"""Arrow rows to patterns: what is read, what is refused, and by which name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.alignment import instances
from corpusmill.alignment.batches import (
    list_column,
    matrix_column,
    posterior_columns,
    read_patterns,
)
from corpusmill.alignment.instances import Smoothing
from corpusmill.alignment.kernels import Inference, infer
from corpusmill.alignment.model import PATTERN_ROWS
from corpusmill.errors import DataError
from corpusmill.types import Bags, Patterns

CLASSES, FEATURES = ["art", "music", "sport"], 9
SCHEMA = pa.schema([*PATTERN_ROWS, ("labels", pa.list_(pa.string()))])
QUICK = settings(max_examples=50, deadline=None)

GOOD = {
    "pattern_id": "fine",
    "instance_offsets": [0, 1, 1, 3],
    "instance_weights": [1.0, 2.5, 1.0],
    "feature_ids": [4, 0, 8],
    "feature_counts": [1.0, 2.0, 0.5],
    "labels": ["sport", "art"],
}
EMPTY = {
    "pattern_id": "none",
    "instance_offsets": [0],
    "instance_weights": [],
    "feature_ids": [],
    "feature_counts": [],
    "labels": None,
}


def batch_of(*rows, schema=SCHEMA):
    return pa.RecordBatch.from_pylist(list(rows), schema=schema)


def read(*rows, use_labels=True):
    return read_patterns(batch_of(*rows), CLASSES, FEATURES, use_labels)


def same(found: Patterns, expected: Patterns) -> None:
    for name in Bags._fields:
        array, other = getattr(expected.bags, name), getattr(found.bags, name)
        np.testing.assert_array_equal(other, array, err_msg=name)
        assert other.dtype == array.dtype
    for name in set(Patterns._fields) - {"bags"}:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


# What is read


def test_rows_become_flat_arrays():
    found = read(GOOD, EMPTY, GOOD | {"labels": []})
    ids, counts = np.array([4, 0, 8], np.int32), np.array([1.0, 2.0, 0.5])
    bags = Bags(np.array([0, 1, 1, 3, 4, 4, 6]), np.tile(ids, 2), np.tile(counts, 2))
    labels = np.array([[True, False, True], [False] * 3, [False] * 3])
    same(
        found,
        Patterns(
            np.array([0, 3, 3, 6]),
            bags,
            np.tile([1.0, 2.5, 1.0], 2),
            labels,
            np.array([True, False, True]),
        ),
    )


def test_an_empty_batch_has_no_patterns():
    found = read()
    assert found.offsets.tolist() == [0]
    assert found.bags.offsets.tolist() == [0]
    assert found.labels.shape == (0, 3)
    assert len(found.weights) == len(found.bags.ids) == len(found.labelled) == 0


def test_labels_are_ignored_where_they_do_not_count():
    for found in (
        read(GOOD, use_labels=False),
        read_patterns(batch_of(GOOD, schema=PATTERN_ROWS), CLASSES, FEATURES),
    ):
        assert not found.labels.any()
        assert not found.labelled.any()


def test_a_column_of_nulls_has_no_labels():
    batch = batch_of(GOOD, EMPTY).drop_columns("labels").append_column("labels", pa.nulls(2))
    assert not read_patterns(batch, CLASSES, FEATURES).labelled.any()


def test_no_labels_and_unknown_labels_are_told_apart():
    found = read(GOOD | {"labels": []}, GOOD | {"labels": None})
    assert found.labelled.tolist() == [True, False]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_slice_is_read_as_its_rows(first, length):
    rows = [GOOD, EMPTY, GOOD | {"instance_weights": [3.0, 1.0, 1.0]}, GOOD, EMPTY, GOOD]
    part = batch_of(*rows).slice(first, length)
    same(read_patterns(part, CLASSES, FEATURES), read(*rows[first : first + length]))


def test_a_broken_row_outside_the_slice_does_not_matter():
    batch = batch_of(GOOD | {"feature_ids": [99, 0, 0]}, GOOD).slice(1, 1)
    same(read_patterns(batch, CLASSES, FEATURES), read(GOOD))


def test_null_lists_with_hidden_values_are_refused():
    """Arrow allows values under a null; they must not shift the rows after it."""
    ids = pa.ListArray.from_arrays(
        pa.array([0, 3, 6], pa.int32()),
        pa.array([4, 0, 8] * 2, pa.int32()),
        mask=pa.array([True, False]),
    )
    batch = batch_of(GOOD | {"pattern_id": "hidden"}, GOOD)
    batch = batch.set_column(3, "feature_ids", ids)
    with pytest.raises(DataError, match=r"'hidden'.*feature_ids must not be null"):
        read_patterns(batch, CLASSES, FEATURES)


def test_null_labels_with_hidden_values_are_unlabelled():
    labels = pa.ListArray.from_arrays(
        pa.array([0, 2, 3], pa.int32()),
        pa.array(["art", "music", "sport"]),
        mask=pa.array([True, False]),
    )
    batch = batch_of(GOOD, GOOD)
    found = read_patterns(batch.set_column(5, "labels", labels), CLASSES, FEATURES)
    assert found.labels.tolist() == [[False] * 3, [False, False, True]]
    assert found.labelled.tolist() == [False, True]


# What is refused


REFUSALS = {
    "null offsets": ({"instance_offsets": None}, "instance_offsets must not be null"),
    "null weights": ({"instance_weights": None}, "instance_weights must not be null"),
    "null ids": ({"feature_ids": None}, "feature_ids must not be null"),
    "null counts": ({"feature_counts": None}, "feature_counts must not be null"),
    "a null offset": ({"instance_offsets": [0, None, 1, 3]}, "instance_offsets must hold no null"),
    "a null id": ({"feature_ids": [4, None, 8]}, "feature_ids must hold no null"),
    "a null count": ({"feature_counts": [1.0, None, 1.0]}, "feature_counts must hold no null"),
    "a null weight": ({"instance_weights": [1.0, None, 1.0]}, "must hold no null"),
    "no offset": ({"instance_offsets": []}, "instance_offsets must start with 0"),
    "late start": ({"instance_offsets": [1, 1, 1, 3]}, "instance_offsets must start with 0"),
    "falling": ({"instance_offsets": [0, 2, 1, 3]}, "instance_offsets must not fall"),
    "short": ({"instance_offsets": [0, 1, 1, 2]}, "must end at the features"),
    "long": ({"instance_offsets": [0, 1, 1, 4]}, "must end at the features"),
    "few weights": ({"instance_weights": [1.0]}, "as many instance_weights as instances"),
    "few counts": ({"feature_counts": [1.0]}, "a count for each feature id"),
    "large id": ({"feature_ids": [4, 0, 9]}, r"feature_ids must lie in \[0, 9\)"),
    "negative id": ({"feature_ids": [4, -1, 8]}, r"feature_ids must lie in \[0, 9\)"),
    "nan count": ({"feature_counts": [1.0, np.nan, 1.0]}, "feature_counts must be finite"),
    "infinite count": ({"feature_counts": [1.0, np.inf, 1.0]}, "feature_counts must be finite"),
    "negative count": ({"feature_counts": [1.0, -1.0, 1.0]}, "feature_counts must not be negative"),
    "negative weight": ({"instance_weights": [1.0, -1.0, 1.0]}, "weights must be positive"),
    "zero weight": ({"instance_weights": [1.0, 0.0, 1.0]}, "weights must be positive"),
    "nan weight": ({"instance_weights": [1.0, np.nan, 1.0]}, "weights must be positive"),
    "infinite weight": ({"instance_weights": [1.0, np.inf, 1.0]}, "weights must be positive"),
}


@pytest.mark.parametrize(("change", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_broken_row_is_refused_by_name(change, reason):
    broken = GOOD | {"pattern_id": "the broken one"} | change
    for rows in ([broken], [GOOD, EMPTY, broken, GOOD], [EMPTY, broken, broken]):
        with pytest.raises(DataError, match=f"pattern 'the broken one': .*{reason}") as caught:
            read(*rows)
        assert caught.value.code == "DATA01"


def test_the_first_broken_row_is_named():
    broken = GOOD | {"feature_ids": [4, 0, 77]}
    with pytest.raises(DataError, match="pattern 'b'"):
        read(GOOD, broken | {"pattern_id": "b"}, broken | {"pattern_id": "c"})


def test_negative_features_are_the_gaussians():
    row = GOOD | {"feature_counts": [1.0, -1.0, 1.0]}
    found = read_patterns(batch_of(row), CLASSES, FEATURES, signed=True)
    assert found.bags.counts.tolist() == [1.0, -1.0, 1.0]


def test_without_names_the_row_is_numbered():
    batch = batch_of(GOOD, GOOD | {"feature_ids": [4, 0, 77]}).drop_columns("pattern_id")
    with pytest.raises(DataError, match="pattern 1:"):
        read_patterns(batch, CLASSES, FEATURES)


def test_an_unknown_class_is_named_with_what_is_allowed():
    with pytest.raises(DataError, match=r"class 'cooking' .*art, music, sport") as caught:
        read(GOOD, GOOD | {"labels": ["art", "cooking"]})
    assert caught.value.code == "DATA05"


def test_a_null_class_is_refused():
    with pytest.raises(DataError, match="class None") as caught:
        read(GOOD | {"labels": ["art", None]})
    assert caught.value.code == "DATA05"


def test_without_features_only_empty_instances_are_allowed():
    batch = batch_of(EMPTY, EMPTY | {"instance_offsets": [0, 0], "instance_weights": [1.0]})
    assert len(read_patterns(batch, CLASSES, 0).weights) == 1
    with pytest.raises(DataError, match=r"must lie in \[0, 0\)"):
        read_patterns(batch_of(GOOD), CLASSES, 0)


# What does not change a result


def test_zero_counts_do_nothing():
    zeros = GOOD | {
        "instance_offsets": [0, 2, 3, 5],
        "feature_ids": [4, 7, 1, 0, 8],
        "feature_counts": [1.0, 0.0, 0.0, 2.0, 0.5],
    }
    table = np.random.default_rng(1).dirichlet(np.ones(FEATURES), 3).T
    model = instances.Multinomial(np.log(table), Smoothing(1.0, np.full(FEATURES, 1 / FEATURES)))
    results = []
    for row in (GOOD, zeros):
        patterns = read(row)
        loglik = model.log_likelihoods(patterns.bags)
        posterior = infer(patterns, loglik, np.ones(3), np.ones(3), Inference())
        results.append((posterior, model.sums(patterns.bags, posterior.phi)["counts"]))
    for value, other in zip(*(result[0] for result in results), strict=True):
        np.testing.assert_array_equal(value, other)
    np.testing.assert_array_equal(results[0][1], results[1][1])


@st.composite
def any_rows(draw):
    """Valid rows of every shape."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = []
    for n in range(draw(st.integers(0, 5))):
        sizes = rng.integers(0, 4, draw(st.integers(0, 4)))
        total = int(sizes.sum())
        rows.append(
            {
                "pattern_id": f"p{n}",
                "instance_offsets": [0, *np.cumsum(sizes).tolist()],
                "instance_weights": rng.uniform(0.1, 9.0, len(sizes)).tolist(),
                "feature_ids": rng.integers(0, FEATURES, total).tolist(),
                "feature_counts": rng.gamma(1.0, size=total).tolist(),
                "labels": draw(
                    st.none() | st.lists(st.sampled_from(CLASSES), unique=True, max_size=3)
                ),
            }
        )
    return rows


def to_rows(patterns):
    """Undo `read_patterns`."""
    rows = []
    for n in range(len(patterns.labels)):
        a, b = patterns.offsets[n], patterns.offsets[n + 1]
        first, last = patterns.bags.offsets[a], patterns.bags.offsets[b]
        names = [name for name, has in zip(CLASSES, patterns.labels[n], strict=True) if has]
        rows.append(
            {
                "pattern_id": f"p{n}",
                "instance_offsets": (patterns.bags.offsets[a : b + 1] - first).tolist(),
                "instance_weights": patterns.weights[a:b].tolist(),
                "feature_ids": patterns.bags.ids[first:last].tolist(),
                "feature_counts": patterns.bags.counts[first:last].tolist(),
                "labels": names if patterns.labelled[n] else None,
            }
        )
    return rows


@QUICK
@given(any_rows())
def test_rows_to_patterns_and_back(rows):
    expected = [
        row | {"labels": None if row["labels"] is None else sorted(row["labels"])} for row in rows
    ]
    assert to_rows(read(*rows)) == expected


# Back to Arrow


def test_posterior_columns_are_rows_of_the_arrays():
    patterns = read(GOOD, EMPTY, GOOD)
    loglik = np.random.default_rng(2).normal(size=(6, 3))
    posterior = infer(patterns, loglik, np.ones(3), np.ones(3), Inference())
    columns = posterior_columns(patterns, posterior)
    assert columns["instances"].to_pylist() == [4.5, 0.0, 4.5]
    np.testing.assert_array_equal(np.array(columns["gamma"].to_pylist()), posterior.gamma)
    phi = columns["instance_probability"].to_pylist()
    assert [len(row) for row in phi] == [9, 0, 9]
    np.testing.assert_array_equal(np.concatenate(phi), posterior.phi.reshape(-1))


def test_list_and_matrix_columns():
    lists = list_column(np.arange(4), np.array([0, 1, 1, 4]))
    assert lists.to_pylist() == [[0], [], [1, 2, 3]]
    assert list_column(pa.array(["a", None]), np.array([0, 2])).to_pylist() == [["a", None]]
    assert matrix_column(np.array([[1.0, 2.0], [3.0, 4.0]]).T).to_pylist() == [[1, 3], [2, 4]]
    assert matrix_column(np.zeros((0, 3))).to_pylist() == []
    assert matrix_column(np.zeros((2, 0))).to_pylist() == [[], []]
