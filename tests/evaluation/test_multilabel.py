from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score, hamming_loss

from corpusmill.evaluation.multilabel import f1_multi, hamming_accuracy


@pytest.mark.parametrize("seed", range(20))
def test_metrics_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gold, predicted = rng.random((2, 12, 5)) < rng.choice([0.1, 0.5])
    by_class, overall = hamming_accuracy(gold, predicted)
    assert overall == pytest.approx(1 - hamming_loss(gold, predicted))
    np.testing.assert_allclose(by_class, (gold == predicted).mean(axis=0))
    found = f1_multi(gold, predicted)
    expected = [
        f1_score(gold, predicted, average=average, zero_division=0)
        for average in ("micro", "macro")
    ]
    assert found == pytest.approx(expected)


def test_no_patterns_give_nan() -> None:
    none = np.zeros((0, 3), bool)
    by_class, overall = hamming_accuracy(none, none)
    assert by_class.shape == (3,)
    assert np.isnan(by_class).all()
    assert np.isnan(overall)
