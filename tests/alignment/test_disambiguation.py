"""Ranked classes and deciding words against plain loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.alignment.batches import read_patterns
from corpusmill.alignment.disambiguation import deciding_words, disambiguate, rank
from tests.alignment.generate import bags_of
from tests.alignment.test_model import CLASSES, FEATURES, WORDS, batch_of, drawn, trained

QUICK = settings(max_examples=50, deadline=None)


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 5), st.integers(1, 6))
def test_ranking_is_sorting(seed, rows, classes, most):
    rng = np.random.default_rng(seed)
    phi = np.round(rng.dirichlet(np.full(classes, 0.3), rows), 2)
    found = rank(phi, most, least=0.05)
    assert len(found.offsets) == rows + 1
    for m in range(rows):
        order = [c for _, c in sorted((-p, c) for c, p in enumerate(phi[m]))][:most]
        expected = [c for place, c in enumerate(order) if place == 0 or phi[m, c] >= 0.05]
        part = slice(found.offsets[m], found.offsets[m + 1])
        assert found.classes[part].tolist() == expected
        assert found.probabilities[part].tolist() == phi[m, expected].tolist()


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(2, 4), st.integers(0, 3))
def test_deciding_words_are_the_strongest_differences(seed, rows, classes, most):
    rng = np.random.default_rng(seed)
    dense = rng.poisson(0.8, (rows, 5)).astype(float)
    log_b = np.log(rng.dirichlet(np.ones(5), classes).T)
    phi = rng.dirichlet(np.ones(classes), rows)
    found = deciding_words(bags_of(dense), phi, log_b, most)
    assert len(found.offsets) == rows + 1
    for m in range(rows):
        first, second = np.argsort(-phi[m])[:2]
        evidence = {
            d: dense[m, d] * (log_b[d, first] - log_b[d, second]) for d in range(5) if dense[m, d]
        }
        expected = sorted((-value, d) for d, value in evidence.items() if value > 0.0)[:most]
        part = slice(found.offsets[m], found.offsets[m + 1])
        assert found.ids[part].tolist() == [d for _, d in expected]
        np.testing.assert_allclose(found.evidence[part], [-value for value, _ in expected])


def test_a_single_class_has_no_deciding_words():
    found = deciding_words(bags_of(np.ones((2, 3))), np.ones((2, 1)), np.zeros((3, 1)), 5)
    assert found.offsets.tolist() == [0, 0, 0]
    assert len(found.ids) == len(found.evidence) == 0


def rows_with_queries():
    batch = batch_of(drawn().patterns)
    sizes = [len(weights) for weights in batch["instance_weights"].to_pylist()]
    queries = [[f"q{n}.{m}" for m in range(size)] for n, size in enumerate(sizes)]
    names = pa.array([f"entity {n}" for n in range(batch.num_rows)])
    return batch.append_column("name", names).append_column("query", pa.array(queries))


@pytest.mark.parametrize("use_labels", [False, True])
def test_disambiguated_rows_are_the_instances(use_labels):
    batch, model = rows_with_queries(), trained()
    found = disambiguate(batch, model, 2, 3, use_labels, ["query"])
    patterns = read_patterns(batch, CLASSES, FEATURES, use_labels)
    phi = model.infer(patterns).phi
    ranking = rank(phi, 2)
    log_b = model.parameters.instances.arrays()["log_b"]
    words = deciding_words(patterns.bags, phi, log_b, 3)
    rows = found.to_pylist()
    assert len(rows) == len(phi)
    owner = np.repeat(np.arange(batch.num_rows), np.diff(patterns.offsets))
    for m, row in enumerate(rows):
        assert row["name"] == f"entity {owner[m]}"
        assert row["query"] == f"q{owner[m]}.{m - patterns.offsets[owner[m]]}"
        part = slice(ranking.offsets[m], ranking.offsets[m + 1])
        assert row["classes"] == [CLASSES[c] for c in ranking.classes[part]]
        assert row["probabilities"] == ranking.probabilities[part].tolist()
        part = slice(words.offsets[m], words.offsets[m + 1])
        assert row["context_words"] == [WORDS[d] for d in words.ids[part]]
        assert row["evidence"] == words.evidence[part].tolist()
        assert row["evidence"] == sorted(row["evidence"], reverse=True)


def test_a_slice_is_disambiguated_as_its_rows():
    batch, model = rows_with_queries(), trained()
    whole = disambiguate(batch, model, 3, 3, False, ["query"]).to_pylist()
    parts = [
        row
        for piece in (batch.slice(0, 7), batch.slice(7))
        for row in disambiguate(piece, model, 3, 3, False, ["query"]).to_pylist()
    ]
    assert parts == whole
