"""Decisions against scikit-learn's metrics, and their sums over parts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from corpusmill.evaluation.decisions import Decisions, count_decisions, decision_metrics


@pytest.mark.parametrize("classes", [2, 3, 6])
@pytest.mark.parametrize("seed", range(4))
def test_metrics_are_scikit_learn_s(classes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, 80)
    scores = rng.normal(size=(80, classes))
    if classes == 2:
        scores[:, 1] = -scores[:, 0]
    names = [f"c{c}" for c in range(classes)]
    counts = count_decisions(scores, codes)
    found = decision_metrics(counts, names)
    assert found["accuracy"] == pytest.approx(accuracy_score(codes, scores.argmax(axis=1)))
    gold = confusion_matrix(codes, scores.argmax(axis=1), labels=range(classes))
    np.testing.assert_array_equal(counts.confusion, gold)
    for c, name in enumerate(names[:1] if classes == 2 else names):
        expected = precision_recall_fscore_support(
            codes == c, scores[:, c] > 0, average="binary", zero_division=0
        )[:3]
        prefix = "" if classes == 2 else f"{name}."
        measures = [found[f"{prefix}{measure}"] for measure in ("precision", "recall", "f1")]
        assert measures == pytest.approx(expected)


def test_counts_of_parts_add_up() -> None:
    rng = np.random.default_rng(1)
    scores, codes = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    whole = count_decisions(scores, codes)
    parts = [count_decisions(scores[a:b], codes[a:b]) for a, b in ((0, 7), (7, 7), (7, 50))]
    summed = Decisions(*(sum(each) for each in zip(*parts, strict=True)))
    for a, b in zip(summed, whole, strict=True):
        np.testing.assert_array_equal(a, b)


def test_nothing_to_divide_by_is_zero() -> None:
    counts = count_decisions(np.full((2, 3), -1.0), np.array([0, 1]))
    found = decision_metrics(counts, ["a", "b", "c"])
    assert found["accuracy"] == 0.5
    assert {found[f"{name}.f1"] for name in "abc"} == {0.0}
    assert (
        decision_metrics(count_decisions(np.zeros((0, 3)), np.zeros(0, int)), "abc")["accuracy"]
        == 0
    )
