"""Gradients by finite differences, losses by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.boosting.losses import LOSSES
from corpusmill.boosting.structures import STRUCTURES
from tests.boosting.reference import outputs, random_factors

EVERY = pytest.mark.parametrize("structure", sorted(STRUCTURES))


def example(structure: str, seed: int):
    rng = np.random.default_rng(seed)
    factors = random_factors(structure, rng)
    prepared = STRUCTURES[structure](factors)
    scores = rng.normal(0, 1, factors.rows[-1])
    return prepared, scores, prepared.best(rng.normal(0, 1, len(scores)))


@EVERY
@pytest.mark.parametrize("loss", sorted(LOSSES))
@pytest.mark.parametrize("seed", range(5))
def test_gradient_is_the_finite_difference(structure, loss, seed):
    prepared, scores, gold = example(structure, seed)
    gradient = LOSSES[loss](prepared, scores, gold).gradient
    step = 1e-6
    for row in range(len(scores)):
        moved = [scores.copy(), scores.copy()]
        moved[0][row] -= step
        moved[1][row] += step
        low, high = (LOSSES[loss](prepared, s, gold).loss.sum() for s in moved)
        assert (high - low) / (2 * step) == pytest.approx(gradient[row], abs=1e-6)


@EVERY
@pytest.mark.parametrize("seed", range(5))
def test_newton_steps_have_the_second_difference(structure, seed):
    prepared, scores, gold = example(structure, seed)
    hessian = LOSSES["logistic"](prepared, scores, gold).hessian
    step = 1e-4
    for row in range(len(scores)):
        moved = [scores.copy(), scores.copy()]
        moved[0][row] -= step
        moved[1][row] += step
        low, high = (LOSSES["logistic"](prepared, s, gold).gradient[row] for s in moved)
        assert (high - low) / (2 * step) == pytest.approx(hessian[row], abs=1e-6)


@EVERY
@pytest.mark.parametrize("seed", range(5))
def test_losses_are_those_of_the_enumeration(structure, seed):
    prepared, scores, gold = example(structure, seed)
    bounds = prepared.factors.example_rows()
    found = {name: loss(prepared, scores, gold).loss for name, loss in LOSSES.items()}
    for n in range(len(bounds) - 1):
        mine = np.flatnonzero(gold[bounds[n] : bounds[n + 1]]) + bounds[n]
        right = scores[mine].sum()
        every = [sorted(rows) for rows in outputs(structure, prepared.factors, n)]
        total = np.log(sum(np.exp(scores[rows].sum()) for rows in every))
        assert found["logistic"][n] == pytest.approx(total - right, abs=1e-10)
        margins = [scores[rows].sum() + (~gold[rows]).sum() - right for rows in every]
        assert found["hinge"][n] == pytest.approx(max(margins), abs=1e-10)
