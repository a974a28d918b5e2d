"""Linear machines, their probabilities, and what they do without a choice."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit

from corpusmill.fragments.linear import probabilities, train_linear
from corpusmill.fragments.settings import LearnerSettings

SETTINGS = LearnerSettings(linear_cost=1.0, linear_tolerance=1e-5)


def problem(seed: int = 0, rows: int = 200) -> tuple[csr_array, np.ndarray]:
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, 6)) * (rng.random((rows, 6)) < 0.7)
    noise = rng.normal(size=rows)
    return csr_array(dense), dense @ np.array([1.0, -2.0, 0.5, 0, 0, 1.0]) + noise > 0.3


def objective(weights, bias, vectors, positive, counts, settings) -> float:
    """1/2 (|w|^2 + b^2) + C sum_i c_i hinge_i: liblinear counts the bias among the weights."""
    margins = np.where(positive, 1.0, -1.0) * (vectors @ weights + bias)
    size = 0.5 * (weights @ weights + bias**2)
    return size + settings.linear_cost * counts @ np.maximum(0.0, 1 - margins)


def test_no_step_improves_the_objective() -> None:
    vectors, positive = problem()
    counts = np.random.default_rng(1).integers(1, 4, 200).astype(float)
    found = train_linear(vectors, positive, counts, SETTINGS, seed=1)
    best = objective(found.weights, found.bias, vectors, positive, counts, SETTINGS)
    rng = np.random.default_rng(2)
    for _ in range(300):
        step = rng.normal(size=7) * 0.02
        moved = objective(
            found.weights + step[:6], found.bias + step[6], vectors, positive, counts, SETTINGS
        )
        assert moved > best - 1e-2


def test_copies_are_weights() -> None:
    vectors, positive = problem()
    counts = np.random.default_rng(1).integers(1, 4, 200)
    once = train_linear(vectors, positive, counts.astype(float), SETTINGS, 1)
    rows = np.repeat(np.arange(200), counts)
    again = train_linear(csr_array(vectors[rows]), positive[rows], np.ones(len(rows)), SETTINGS, 1)
    np.testing.assert_allclose(once.weights, again.weights, atol=0.02)


def test_balanced_classes_move_the_boundary() -> None:
    vectors, positive = problem()
    rare = positive & (np.arange(200) % 4 == 0)
    plain = train_linear(vectors, rare, np.ones(200), SETTINGS, 1)
    balanced = SETTINGS.model_copy(update={"class_weight": "balanced"})
    even = train_linear(vectors, rare, np.ones(200), balanced, 1)
    decided = [np.count_nonzero(vectors @ m.weights + m.bias > 0) for m in (plain, even)]
    assert decided[1] > decided[0]


def test_probabilities_agree_with_frequencies() -> None:
    vectors, positive = problem(rows=2_000)
    folded = SETTINGS.model_copy(update={"calibration_folds": 4})
    found = train_linear(vectors, positive, np.ones(2_000), folded, 1)
    scores = vectors @ found.weights + found.bias
    chance = probabilities(scores[:, None], np.array([found.slope]), np.array([found.offset]))[:, 0]
    np.testing.assert_allclose(chance, expit(scores * found.slope + found.offset))
    for low in np.arange(0.0, 1.0, 0.2):
        among = (chance >= low) & (chance < low + 0.2)
        if among.sum() > 50:
            assert positive[among].mean() == pytest.approx(chance[among].mean(), abs=0.12)


def test_too_few_to_calibrate_have_the_class_s_share() -> None:
    vectors, _ = problem(rows=40)
    single = np.arange(40) == 3
    folded = SETTINGS.model_copy(update={"calibration_folds": 2})
    found = train_linear(vectors, single, np.ones(40), folded, 1)
    assert found.slope == 0.0
    assert expit(found.offset) == pytest.approx(1 / 40)


@pytest.mark.parametrize("columns", [6, 0])
def test_without_a_choice_the_larger_class_wins(columns: int) -> None:
    vectors = csr_array(np.ones((5, columns)))
    mostly = np.array([True, True, True, False, False])
    for positive, sign in ((np.ones(5, bool), 1.0), (np.zeros(5, bool), -1.0)):
        assert train_linear(vectors, positive, np.ones(5), SETTINGS, 1).bias == sign
    if not columns:
        assert train_linear(vectors, mostly, np.ones(5), SETTINGS, 1).bias == 1.0
        assert train_linear(vectors, ~mostly, np.ones(5), SETTINGS, 1).bias == -1.0


def test_any_seed_will_do_and_a_limit_is_told() -> None:
    vectors, positive = problem()
    assert train_linear(vectors, positive, np.ones(200), SETTINGS, -5).converged
    hasty = LearnerSettings(linear_cost=1e6, linear_max_iter=1)
    assert not train_linear(vectors, positive, np.ones(200), hasty, 1).converged
