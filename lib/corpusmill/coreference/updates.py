"""Updates of a weight vector: perceptron and passive-aggressive, averaged. Kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Floats

PERCEPTRON, PA, PA_I, PA_II = range(4)
"""Kinds of updates."""
UPDATES = ("perceptron", "pa", "pa1", "pa2")
ROOT_LOSS = 1.5
"""The loss of an arc from the root where there is a true antecedent (Fernandes et al. 2012)."""


class Learner(NamedTuple):
    """The state of an online learner.

    Attributes
    ----------
    weights : float64, shape (places,)
    sums : float64, shape (places,)
        The sum over updates of the update times the number of steps before its own, so that the
        average of the weights after each of C steps is w - sums / C.
    delta : float64, shape (places,)
        Scratch, all 0 between updates.
    steps : int64, shape (1,)
        C: how many steps averaging has counted, that of an update included.
    kind : int
    limit : float
        C of PA-I and PA-II.
    """

    weights: Floats
    sums: Floats
    delta: Floats
    steps: AnyArray
    kind: int
    limit: float


@njit(cache=True, nogil=True)
def step_size(kind: int, limit: float, violation: float, square: float) -> float:
    r"""Give how far an update goes.

    .. math:: \tau = \frac{\Delta w + L}{\|\Delta\|^2}

    for PA, not above `limit` for PA-I, with 1 / (2 limit) more below the line for PA-II, and 1 for
    the perceptron.

    Parameters
    ----------
    kind : int
    limit : float
    violation : float
        Delta w + L, with Delta = Phi(predicted) - Phi(true).
    square : float
        The squared length of Delta, above 0.

    Notes
    -----
    Crammer et al. (2006), section 3; Björkelund & Kuhn (2014), algorithm 1, line 8.
    """
    if kind == PERCEPTRON:
        return 1.0
    if violation <= 0.0:
        return 0.0
    if kind == PA_II:
        return violation / (square + 1.0 / (2.0 * limit))
    size = violation / square
    return min(size, limit) if kind == PA_I else size


@njit(cache=True, nogil=True)
def apply_update(learner: Learner, places: AnyArray, loss: float) -> float:
    """Move the weights against `learner.delta`, and clear it.

    Parameters
    ----------
    learner : Learner
    places : int64
        Where `learner.delta` may be other than 0, places may repeat.
    loss : float

    Returns
    -------
    float
        The step size; 0 if there is no difference.
    """
    delta, weights = learner.delta, learner.weights
    square, violation = 0.0, loss
    count = 0
    kept = np.empty(len(places), np.int64)
    moves = np.empty(len(places))
    for at in places:
        move = delta[at]
        if move != 0.0:
            delta[at] = 0.0
            kept[count], moves[count] = at, move
            count += 1
            square += move * move
            violation += move * weights[at]
    if square == 0.0:
        return 0.0
    size = step_size(learner.kind, learner.limit, violation, square)
    before = float(learner.steps[0] - 1)
    for k in range(count):
        move = size * moves[k]
        weights[kept[k]] -= move
        learner.sums[kept[k]] -= before * move
    return size


def averaged(learner: Learner) -> Floats:
    """Average the weights over all steps; shape (places,)."""
    steps = max(int(learner.steps[0]), 1)
    return np.asarray(learner.weights - learner.sums / steps)


def new_learner(bits: int, kind: str, limit: float, weights: Floats | None = None) -> Learner:
    """Begin with 2^bits weights, all 0 unless given."""
    places = 1 << bits
    first = np.zeros(places) if weights is None else weights.copy()
    zeros = np.zeros(places), np.zeros(places)
    return Learner(first, *zeros, np.zeros(1, np.int64), UPDATES.index(kind), limit)
