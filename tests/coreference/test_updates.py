"""Updates and averaging against the formulas of Crammer et al. and against copies of weights."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.updates import (
    UPDATES,
    Learner,
    apply_update,
    averaged,
    new_learner,
    step_size,
)


@pytest.mark.parametrize(
    ("kind", "limit", "violation", "square", "wanted"),
    [
        ("perceptron", 0.1, 5.0, 4.0, 1.0),
        ("perceptron", 0.1, -5.0, 4.0, 1.0),
        ("pa", 0.1, 5.0, 4.0, 1.25),
        ("pa", 0.1, -5.0, 4.0, 0.0),
        ("pa1", 0.1, 5.0, 4.0, 0.1),
        ("pa1", 2.0, 5.0, 4.0, 1.25),
        ("pa1", 2.0, 0.0, 4.0, 0.0),
        ("pa2", 0.5, 5.0, 4.0, 1.0),
        ("pa2", 0.5, -0.1, 4.0, 0.0),
    ],
)
def test_step_sizes_are_those_of_the_formulas(kind, limit, violation, square, wanted):
    assert step_size(UPDATES.index(kind), limit, violation, square) == pytest.approx(wanted)


def random_update(rng: np.random.Generator, learner: Learner) -> tuple[np.ndarray, np.ndarray]:
    """Write a random difference; give it as a vector, and the places, some of them twice."""
    places = rng.integers(0, len(learner.weights), 12)
    moves = np.zeros(len(learner.weights))
    moves[places] = rng.integers(-2, 3, 12)
    learner.delta[:] = moves
    return moves, np.concatenate([places, places[:5]])


@pytest.mark.parametrize("kind", UPDATES)
def test_weights_move_by_the_step_size_against_the_difference(kind):
    rng = np.random.default_rng(1)
    learner = new_learner(5, kind, 0.3, rng.normal(size=32))
    for _ in range(30):
        before = learner.weights.copy()
        learner.steps[0] += 1
        moves, places = random_update(rng, learner)
        violation, square = float(moves @ before) + 2.5, float(moves @ moves)
        wanted = step_size(UPDATES.index(kind), 0.3, violation, square)
        assert apply_update(learner, places, 2.5) == pytest.approx(wanted)
        np.testing.assert_allclose(learner.weights, before - wanted * moves, atol=1e-12)
        assert not learner.delta.any()


def test_after_a_passive_aggressive_update_the_margin_is_the_loss():
    rng = np.random.default_rng(2)
    learner = new_learner(5, "pa", 1.0, rng.normal(size=32))
    updates = 0
    for _ in range(30):
        learner.steps[0] += 1
        moves, places = random_update(rng, learner)
        if apply_update(learner, places, 2.5) > 0.0:
            updates += 1
            assert -(moves @ learner.weights) == pytest.approx(2.5)
    assert updates > 10


def test_without_a_difference_nothing_moves():
    learner = new_learner(3, "pa", 1.0)
    assert apply_update(learner, np.array([1, 2, 1]), 3.0) == 0.0
    assert not learner.weights.any()


@pytest.mark.parametrize("kind", UPDATES)
def test_averages_are_those_of_copies_of_the_weights_after_each_step(kind):
    rng = np.random.default_rng(3)
    learner = new_learner(5, kind, 0.3, rng.normal(size=32))
    copies = []
    for step in range(40):
        learner.steps[0] += 1
        for _ in range(step % 3):  # a document may be without an update, or have several
            _, places = random_update(rng, learner)
            apply_update(learner, places, 1.0)
        copies.append(learner.weights.copy())
        np.testing.assert_allclose(averaged(learner), np.mean(copies, axis=0), atol=1e-12)


def test_before_the_first_step_the_average_is_what_there_was():
    learner = new_learner(2, "pa", 1.0, np.arange(4.0))
    assert averaged(learner).tolist() == [0.0, 1.0, 2.0, 3.0]
