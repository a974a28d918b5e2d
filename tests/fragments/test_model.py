"""The explicit space, the model's scores, and what decided them, by plain loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pydantic import ValidationError
from scipy.sparse import csr_array

from corpusmill.errors import DataError, SchemaError
from corpusmill.fragments.batches import productions_of, read_sparse
from corpusmill.fragments.corpus import Corpus
from corpusmill.fragments.explaining import (
    deciding_fragments,
    explain,
    fragment_of,
    occurrences,
    partial_occurrences,
)
from corpusmill.fragments.fragment import Fragment
from corpusmill.fragments.learning import mine_split
from corpusmill.fragments.model import (
    TREE_ROWS,
    Calibration,
    FragmentsModel,
    Space,
    machine_vectors,
)
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.types import AnyArray
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, random_tree

ROWS = 24


def tree_rows(seed: int, slots: int, rows: int = ROWS) -> pa.RecordBatch:
    """Random trees as rows of TREES, with a feature vector of three columns."""
    rng = np.random.default_rng(seed)
    forests = [forest_of([random_tree(rng, 9, 4) for _ in range(slots)]) for _ in range(rows)]
    columns = {
        "example_id": [f"e{i:03}" for i in range(rows)],
        "target": [("a", "b", "c")[i % 3] for i in range(rows)],
        "node_labels": [[f"L{label}" for label in forest.labels] for forest in forests],
        "node_arities": [forest.arities.tolist() for forest in forests],
        "tree_offsets": [forest.offsets.tolist() for forest in forests],
        "vector_ids": [[0, 2]] * rows,
        "vector_values": rng.normal(size=(rows, 2)).tolist(),
    }
    fields = [("example_id", pa.string()), ("target", pa.string()), *TREE_ROWS]
    return pa.RecordBatch.from_pydict(columns, schema=pa.schema(fields))


def random_model(
    batch: pa.RecordBatch, slots: int, normalise: str, machines: int = 3, kernel: str = "sst"
):
    settings = LearnerSettings.model_validate(
        {"kernel": kernel, "limit": 30, "maxexp": 2, "normalise": normalise, "vector_weight": 0.5}
    )
    vocabulary = Vocabulary.of(productions_of(batch)["production"])
    corpus = Corpus(("a", "b", "c"), vocabulary, slots, 0)
    codes = np.arange(batch.num_rows) % 3
    ones = np.ones(batch.num_rows)
    fragments = tuple(mine_split(corpus.examples(batch), codes, ones, [0], settings)[0])
    space = Space(vocabulary, fragments, 3, settings)
    rng = np.random.default_rng(5)
    mask = rng.random((machines, space.size)) < 0.6
    mask[:, -3:] = True
    weights = csr_array(np.where(mask, rng.normal(size=mask.shape), 0.0))
    nothing = np.full(machines, np.nan)
    return FragmentsModel(
        ("a", "b", "c") if machines == 3 else ("a", "b"), space, weights, rng.normal(size=machines),
        Calibration(nothing, nothing), np.ones(space.size, np.int64), np.ones(machines, np.bool_),
    )  # fmt: skip


def slow_units(model: FragmentsModel, vectors: AnyArray, number: int) -> AnyArray:
    """The vectors as one machine sees them: its own columns, each slot's part of length 1."""
    own = np.zeros(model.space.size, bool)
    own[model.machine(number)[0]] = True
    units = np.where(own, vectors, 0.0)
    if model.settings.normalise == "fragments":
        begin = 0
        for size in model.space.sizes:
            part = units[:, begin : begin + size]
            norms = np.linalg.norm(part, axis=1, keepdims=True)
            part /= np.where(norms > 0, norms, 1.0)
            begin += size
    return units


@pytest.mark.parametrize("slots", [1, 2])
@pytest.mark.parametrize("normalise", ["fragments", "kernel"])
@pytest.mark.parametrize("kernel", ["sst", "ptk"])
def test_scores_are_sums_over_own_fragments(kernel: str, slots: int, normalise: str) -> None:
    batch = tree_rows(1, slots)
    model = random_model(batch, slots, normalise, kernel=kernel)
    vectors = model.space.vectors(batch)
    scores = model.scores(vectors)
    for number in range(3):
        units = slow_units(model, vectors.toarray(), number)
        dense = model.weights.toarray()[number]
        np.testing.assert_allclose(scores[:, number], units @ dense + model.bias[number])
        own, weights = model.machine(number)
        found = machine_vectors(vectors, own, model.space.sizes, model.settings)
        np.testing.assert_allclose(found.toarray(), units[:, own])
        np.testing.assert_allclose(found @ weights, units @ dense)


@pytest.mark.parametrize("machines", [1, 3])
@pytest.mark.parametrize("kernel", ["sst", "ptk"])
def test_contributions_and_bias_add_up_to_the_score(kernel: str, machines: int) -> None:
    batch = tree_rows(2, 1)
    model = random_model(batch, 1, "fragments", machines, kernel)
    scores = model.scores(model.space.vectors(batch))
    few = batch.slice(0, 6)
    if machines == 1:
        few = few.set_column(1, "target", pa.array(["a", "b"] * 3))
    for row, item in enumerate(explain(model, few, most=1_000)):
        for name, parts in item.contributions.items():
            total = sum(each.weight * each.value for each in parts) + item.biases[name]
            assert total == pytest.approx(scores[row, model.classes.index(name)])
        assert item.predicted == model.classes[scores[row].argmax()]


def test_deciding_fragments_are_the_largest_contributions() -> None:
    batch = tree_rows(3, 1)
    model = random_model(batch, 1, "fragments")
    vectors = model.space.vectors(batch)
    chosen = model.scores(vectors).argmax(axis=1)
    texts, parts = deciding_fragments(model, vectors, chosen, most=4)
    for row, (names, values) in enumerate(zip(texts.to_pylist(), parts.to_pylist(), strict=True)):
        units = slow_units(model, vectors.toarray(), int(chosen[row]))[row]
        expected = np.sort(units * model.weights.toarray()[chosen[row]])[::-1][:4]
        np.testing.assert_allclose(values, expected[expected > 0])
        assert len(names) == len(values)


def test_fragments_occur_as_often_as_they_are_counted() -> None:
    batch = tree_rows(4, 1)
    model = random_model(batch, 1, "kernel")
    counts = model.space.vectors(batch).toarray()
    for column in range(model.space.sizes[0]):
        fragment = fragment_of(model.space, column)
        for row in batch.to_pylist()[:8]:
            places = occurrences(fragment, row["node_labels"], row["node_arities"])
            assert bool(places) == (
                counts[batch["example_id"].to_pylist().index(row["example_id"]), column] > 0
            )


def as_tree(labels: Sequence[str], arities: Sequence[int]) -> slow.Tree:
    waiting: list[slow.Tree] = []
    for label, arity in zip(reversed(labels), reversed(arities), strict=True):
        below = tuple(waiting.pop() for _ in range(arity))
        waiting.append((label, below))
    return waiting.pop()


def test_partial_fragments_are_drawn_as_the_nodes_they_have() -> None:
    """The vectors of the space are the kernel's own values of the trees that are drawn."""
    batch = tree_rows(8, 1)
    space = random_model(batch, 1, "kernel", kernel="ptk").space
    trees = [as_tree(row["node_labels"], row["node_arities"]) for row in batch.to_pylist()]
    vectors = [slow.ptk_vector(tree, 0.4, 0.4) for tree in trees]
    norms = [np.sqrt(slow.inner(vector, vector)) for vector in vectors]
    found = space.vectors(batch).toarray()
    for column in range(space.sizes[0]):
        fragment = fragment_of(space, column)
        tree = as_tree(fragment.labels, fragment.arities)
        expected = [v.get(tree, 0.0) / norm for v, norm in zip(vectors, norms, strict=True)]
        np.testing.assert_allclose(found[:, column], expected)
        assert all(fragment.expanded)


def test_partial_fragments_occur_once_at_each_root_and_leftmost() -> None:
    batch = tree_rows(9, 1)
    space = random_model(batch, 1, "kernel", kernel="ptk").space
    for column in range(space.sizes[0]):
        fragment = fragment_of(space, column)
        tree = as_tree(fragment.labels, fragment.arities)
        for row in batch.to_pylist()[:8]:
            labels, arities = row["node_labels"], row["node_arities"]
            nodes = list(slow.nodes_of(as_tree(labels, arities)))
            places = partial_occurrences(fragment, labels, arities)
            assert [each[0] for each in places] == [
                root
                for root, node in enumerate(nodes)
                if tree in dict(slow.partial_fragments(node, 1.0, 1.0))
            ]
            for each in places:
                assert [labels[node] for node in each] == list(fragment.labels)
                assert each == sorted(set(each))
    broad = Fragment(["A", "B", "B"], [2, 0, 0], [True] * 3)
    assert partial_occurrences(broad, ["A", "C", "B", "B", "B"], [4, 0, 0, 0, 0]) == [[0, 2, 3]]
    deep = Fragment(["B", "C"], [1, 0], [True] * 2)
    assert partial_occurrences(deep, ["A", "B", "B", "C"], [2, 0, 1, 0]) == [[2, 3]]


def test_partial_trees_have_values_of_their_own() -> None:
    with pytest.raises(ValidationError, match="relevance = productions needs kernel = sst"):
        LearnerSettings(kernel="ptk", relevance="productions")


def test_frames_are_read_by_name_and_unknown_features_are_passed_over() -> None:
    batch = tree_rows(5, 1)
    model = random_model(batch, 1, "fragments")
    frame = batch.to_pandas()
    expected = np.array(model.predict_frame(frame)["scores"].tolist())
    wider = frame.assign(
        vector_ids=[[0, 2, 99]] * ROWS, vector_values=[[*v, 5.0] for v in frame["vector_values"]]
    )
    np.testing.assert_allclose(np.array(model.predict_frame(wider)["scores"].tolist()), expected)
    with pytest.raises(SchemaError, match="DATA04: column 'node_labels' is missing"):
        model.predict_frame(frame.drop(columns="node_labels"))
    with pytest.raises(DataError, match="DATA01: the frame"):
        model.predict_frame(frame.assign(tree_offsets="x"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"tree_offsets": [[0, 99]] * ROWS}, "tree_offsets must go from 0"),
        ({"node_arities": [[0, 0]] * ROWS}, "an arity for each label"),
        ({"vector_values": [[0.0, float("inf")]] * ROWS}, "must be finite numbers"),
        ({"vector_values": [[0.0, -1e16]] * ROWS}, r"in size at most 1e\+15"),
        ({"vector_ids": [[-1, 0]] * ROWS}, "must not be negative"),
        ({"vector_ids": [[1]] * ROWS}, "a number in vector_values"),
    ],
)
def test_broken_rows_are_named(change: dict[str, list[list[float]]], reason: str) -> None:
    batch = tree_rows(6, 1)
    model = random_model(batch, 1, "fragments")
    frame = batch.to_pandas().assign(**change)
    with pytest.raises(DataError, match=f"DATA01: example .*{reason}"):
        model.predict_frame(frame)


def test_more_trees_than_in_training_are_refused_and_fewer_are_empty() -> None:
    model = random_model(tree_rows(7, 1), 1, "fragments")
    with pytest.raises(DataError, match="at most 1 trees"):
        model.predict_batch(tree_rows(7, 2))
    two = random_model(tree_rows(7, 2), 2, "fragments")
    assert two.predict_batch(tree_rows(7, 1)).num_rows == ROWS


def test_sparse_columns_that_are_too_large_are_dropped() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"ids": [[0, 7], [], [1]], "values": [[1.0, 2.0], [], [3.0]]},
        schema=pa.schema([("ids", pa.list_(pa.int32())), ("values", pa.list_(pa.float64()))]),
    )
    np.testing.assert_array_equal(read_sparse(batch, 2).toarray(), [[1, 0], [0, 0], [0, 3]])
