"""Cut-offs against brute force over every edge of the bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.alignment import cutoffs

QUICK = settings(max_examples=50, deadline=None)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def score_of(predicted, truth, criterion):
    if criterion == "accuracy":
        return (predicted == truth).mean()
    both = (predicted & truth).sum()
    total = predicted.sum() + truth.sum()
    return 2.0 * both / total if total else 0.0


def middle_of_bins(rng, rows, classes):
    """phibar away from the edges, where rounding would decide."""
    return (rng.integers(0, cutoffs.BINS, (rows, classes)) + 0.5) / cutoffs.BINS


@QUICK
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 60),
    st.integers(1, 4),
    st.sampled_from(["accuracy", "f1"]),
)
def test_chosen_cutoffs_are_the_best_of_all_edges(seed, rows, classes, criterion):
    rng = np.random.default_rng(seed)
    mean = middle_of_bins(rng, rows, classes)
    lam = rng.choice([-1.0, 1.0], classes) * rng.uniform(0.5, 8.0, classes)
    labels = rng.random((rows, classes)) < sigmoid(lam * (4 * mean - 2))
    chosen = cutoffs.choose_cutoffs(cutoffs.histogram(mean, labels), lam, criterion)
    assert ((chosen >= 0.0) & (chosen <= 1.0)).all()
    for c in range(classes):
        probability = sigmoid(lam[c] * mean[:, c])
        found = score_of(probability >= chosen[c], labels[:, c], criterion)
        edges = sigmoid(lam[c] * np.arange(cutoffs.BINS + 1) / cutoffs.BINS)
        candidates = [probability >= edge for edge in edges] + [np.zeros(rows, bool)]
        best = max(score_of(predicted, labels[:, c], criterion) for predicted in candidates)
        assert found == pytest.approx(best, abs=1e-12)


def test_several_equally_good_edges_give_the_middle_one():
    mean = np.array([[0.2025], [0.8025]])
    labels = np.array([[False], [True]])
    chosen = cutoffs.choose_cutoffs(cutoffs.histogram(mean, labels), np.array([2.0]), "accuracy")
    assert np.log(chosen / (1 - chosen))[0] / 2.0 == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("criterion", ["accuracy", "f1"])
def test_a_class_that_no_pattern_has_is_never_predicted(criterion):
    mean = middle_of_bins(np.random.default_rng(1), 20, 1)
    mean[0] = 1.0
    sums = cutoffs.histogram(mean, np.zeros((20, 1), bool))
    for lam in (3.0, -3.0):
        chosen = cutoffs.choose_cutoffs(sums, np.array([lam]), criterion)
        assert not (sigmoid(lam * mean) >= chosen).any()


def test_histograms_of_parts_add_up():
    rng = np.random.default_rng(2)
    mean, labels = rng.random((30, 3)), rng.random((30, 3)) < 0.5
    mean[0] = [0.0, 1.0, 0.5]
    whole = cutoffs.histogram(mean, labels)
    parts = [cutoffs.histogram(mean[a:b], labels[a:b]) for a, b in ((0, 11), (11, 11), (11, 30))]
    for name, value in whole.items():
        assert value.shape == (3, cutoffs.BINS)
        np.testing.assert_array_equal(sum(part[name] for part in parts), value)
    assert sum(value.sum() for value in whole.values()) == 90


def test_default_is_a_quarter_of_the_instances():
    lam = np.array([4.0, -2.0, 0.0])
    np.testing.assert_allclose(cutoffs.default_cutoffs(lam), sigmoid(0.25 * lam))
