"""The linear machine on vectors of fragments (ESL and ESC of the paper). No Spark."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from corpusmill.fragments.learning import class_weights
from corpusmill.fragments.selection import narrow
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.types import AnyArray, Floats


class LinearMachine(NamedTuple):
    """f(x) = w . x + bias, and p = sigmoid(slope f + offset) where it was calibrated.

    Attributes
    ----------
    weights : Floats, shape (fragments,)
    bias : float
    slope, offset : float
        Of the probability; NaN where there is none.
    converged : bool
        Whether liblinear ended by its tolerance.
    """

    weights: Floats
    bias: float
    slope: float
    offset: float
    converged: bool


def train_linear(
    vectors: csr_array, positive: AnyArray, counts: Floats, settings: LearnerSettings, seed: int
) -> LinearMachine:
    """Train a linear machine by liblinear, and its probabilities by folds if wanted.

    Parameters
    ----------
    vectors : csr_array, shape (examples, fragments)
    positive : bool, shape (examples,)
    counts : Floats, shape (examples,)
        How often each example occurs.
    settings : LearnerSettings
    seed : int
        Of liblinear's order and of the folds.

    Returns
    -------
    LinearMachine
        With one class only, or no column, w = 0 and the bias is the sign of the larger class.
    """
    if positive.all() or not positive.any() or not vectors.shape[1]:
        sign = 1.0 if counts[positive].sum() > counts[~positive].sum() else -1.0
        return LinearMachine(np.zeros(vectors.shape[1]), sign, np.nan, np.nan, True)
    seed %= 1 << 32  # what liblinear takes
    weights, bias, converged = _fit(vectors, positive, counts, settings, seed)
    slope, offset = _calibrate(vectors, positive, counts, settings, seed)
    return LinearMachine(weights, bias, slope, offset, converged)


def _fit(
    vectors: csr_array, positive: AnyArray, counts: Floats, settings: LearnerSettings, seed: int
) -> tuple[Floats, float, bool]:
    signs = np.where(positive, 1.0, -1.0)
    machine = LinearSVC(
        C=settings.linear_cost, loss="hinge", tol=settings.linear_tolerance,
        max_iter=settings.linear_max_iter, random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        machine.fit(
            narrow(vectors), signs, counts * class_weights(signs, counts, settings.class_weight)
        )
    stopped = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return machine.coef_[0], float(machine.intercept_[0]), not stopped


def _calibrate(
    vectors: csr_array, positive: AnyArray, counts: Floats, settings: LearnerSettings, seed: int
) -> tuple[float, float]:
    """Fit a sigmoid, as Platt, to scores of machines that did not see the example."""
    folds = settings.calibration_folds
    if folds < 2:
        return np.nan, np.nan
    fold = np.random.default_rng(seed).permutation(len(positive)) % folds
    scores = np.zeros(len(positive))
    for k in range(folds):
        train, held = fold != k, fold == k
        if positive[train].all() or not positive[train].any():
            share = np.clip(counts[positive].sum() / counts.sum(), 1e-9, 1 - 1e-9)
            return 0.0, float(np.log(share / (1.0 - share)))  # the class's share, for all alike
        weights, bias, _ = _fit(
            csr_array(vectors[train]), positive[train], counts[train], settings, seed
        )
        scores[held] = vectors[held] @ weights + bias
    # Weak regularisation: there are two parameters.
    sigmoid = LogisticRegression(C=1e6).fit(scores[:, None], positive, counts)
    return float(sigmoid.coef_[0, 0]), float(sigmoid.intercept_[0])


def probabilities(scores: Floats, slope: Floats, offset: Floats) -> Floats:
    """Give sigmoid(slope f + offset), shape (examples, machines); NaN where not calibrated."""
    found: Floats = expit(scores * slope + offset)
    return found
