"""Every structure against the enumeration of its outputs."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.boosting.structures import STRUCTURES, Factors, Spans
from tests.boosting.reference import enumerate_all, outputs, random_factors

EVERY = pytest.mark.parametrize("structure", sorted(STRUCTURES))
SEEDS = pytest.mark.parametrize("seed", range(25))


@EVERY
@SEEDS
def test_inference_is_the_enumeration(structure, seed):
    rng = np.random.default_rng(seed)
    factors = random_factors(structure, rng)
    scores = rng.normal(0, 3, factors.rows[-1])
    prepared = STRUCTURES[structure](factors)
    log_z, found, value = enumerate_all(structure, factors, scores)
    chance, total = prepared.marginals(scores)
    np.testing.assert_allclose(total, log_z, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(chance, found, rtol=0, atol=1e-12)
    chosen = set(np.flatnonzero(prepared.best(scores)))
    for n, best in enumerate(value):
        first, last = factors.example_rows()[n : n + 2]
        mine = frozenset(r for r in chosen if first <= r < last)
        assert mine in outputs(structure, factors, n)
        assert scores[sorted(mine)].sum() == pytest.approx(best, abs=1e-12)


@EVERY
@SEEDS
def test_augmented_output_has_the_most_score_and_loss(structure, seed):
    rng = np.random.default_rng(seed)
    factors = random_factors(structure, rng)
    scores = rng.normal(0, 1, factors.rows[-1])
    prepared = STRUCTURES[structure](factors)
    gold = prepared.best(rng.normal(0, 1, len(scores)))
    worst = prepared.best_augmented(scores, gold)
    for n in range(len(factors.factors) - 1):
        first, last = factors.example_rows()[n : n + 2]
        every = outputs(structure, factors, n)
        values = [sum(scores[r] + (not gold[r]) for r in rows) for rows in every]
        mine = range(first, last)
        assert sum(scores[r] + (not gold[r]) for r in mine if worst[r]) == pytest.approx(
            max(values), abs=1e-12
        )


@EVERY
@SEEDS
def test_outputs_are_told_from_other_sets_of_rows(structure, seed):
    rng = np.random.default_rng(seed)
    factors = random_factors(structure, rng)
    prepared = STRUCTURES[structure](factors)
    chosen = prepared.best(rng.normal(0, 1, factors.rows[-1]))
    assert prepared.is_output(chosen).all()
    for row in range(len(chosen)):
        changed = chosen.copy()
        changed[row] = not changed[row]
        told = prepared.is_output(changed)
        for n in range(len(factors.factors) - 1):
            first, last = factors.example_rows()[n : n + 2]
            mine = set(np.flatnonzero(changed[first:last]) + first)
            every = [set(rows) for rows in outputs(structure, factors, n)]
            if structure == "spans":
                nils = set(factors.rows[:-1])
                mine, every = mine - nils, [rows - nils for rows in every]
            assert told[n] == (mine in every)


def test_a_span_that_contains_another_one_is_not_lost():
    # new york giants | york | giants, and a span that crosses.
    factors = Factors(
        np.array([0, 4]),
        np.array([0, 2, 4, 6, 8]),
        np.array([0, 1, 2, 2]),
        np.array([3, 2, 3, 4]),
        np.zeros(8, np.int64),
        np.zeros(8, np.int64),
    )
    scores = np.array([0.0, 2.0, 0.0, 0.5, 0.0, 0.6, 0.0, 0.7])
    spans = Spans(factors)
    log_z, found, _ = enumerate_all("spans", factors, scores)
    chance, total = spans.marginals(scores)
    assert total == pytest.approx(log_z)
    np.testing.assert_allclose(chance, found)
    assert np.flatnonzero(spans.best(scores)).tolist() == [1, 2, 4, 6]


def test_large_scores_do_not_overflow():
    factors = random_factors("segments", np.random.default_rng(0))
    chance, log_z = STRUCTURES["segments"](factors).marginals(
        np.random.default_rng(1).normal(0, 1e6, factors.rows[-1])
    )
    assert np.isfinite(log_z).all()
    assert ((chance >= 0) & (chance <= 1)).all()


def test_positions_that_no_segment_covers_have_no_output():
    factors = Factors(
        np.array([0, 2]),
        np.array([0, 1, 2]),
        np.array([0, 2]),
        np.array([1, 3]),
        np.array([-1, -1]),
        np.array([0, 0]),
    )
    structure = STRUCTURES["segments"](factors)
    assert structure.marginals(np.zeros(2))[1][0] == -np.inf
    assert not structure.is_output(np.array([True, True]))[0]
