from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, top_k_accuracy_score

from corpusmill.evaluation.ranking import accuracy_at, f1_single, ranks


@pytest.mark.parametrize("seed", range(20))
def test_accuracy_at_n_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(50, 6))
    gold = rng.integers(0, 6, 50)
    for n in (1, 2, 3, 5):
        expected = top_k_accuracy_score(gold, scores, k=n, labels=np.arange(6))
        assert accuracy_at(scores, gold, n) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_those_of_a_stable_sort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (40, 5)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    gold = rng.integers(0, 5, 40)
    order = np.argsort(-scores, axis=1, kind="stable")
    expected = [list(order[i]).index(gold[i]) for i in range(40)]
    np.testing.assert_array_equal(ranks(scores, gold), expected)


@pytest.mark.parametrize("seed", range(20))
def test_f1_is_that_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold, predicted = rng.integers(0, 9, (2, 15))
    found = f1_single(gold, predicted)
    assert found.micro == pytest.approx(accuracy_score(gold, predicted))
    assert found.macro == pytest.approx(f1_score(gold, predicted, average="macro"))


def test_no_items_give_nan() -> None:
    none = np.zeros(0, np.int64)
    assert np.isnan(accuracy_at(np.zeros((0, 3)), none, 1))
    assert np.isnan(f1_single(none, none)).all()
