r"""The read-out of DBA: label probabilities from phibar with all classes taking part. No Spark.

The paper's p(y_c = 1 | X) = sigmoid(lambda_c phibar_c) looks at a class's own share of the
instances. But an instance belongs to one class: where two classes go together, such as grain and
wheat, one takes what the other would need, and no cut-off of the other's share brings it back.
Here

    p(y_c = 1 | X) = sigmoid(w_c . phibar + b_c)

as in supervised LDA, one response a class. W and b are fitted on phibar of patterns that the
model has not seen; the paper's form is W = diag(lambda), b = 0.

A step is Newton's and needs sums of a fixed size only. Where it overshoots, it is replaced by the
maximum of the Jaakkola-Jordan lower bound, which never lowers the penalised log-likelihood.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corpusmill.types import Flags, Floats, Probabilities

Sums = dict[str, Floats]


class ReadOut(NamedTuple):
    """The parameters.

    Attributes
    ----------
    weights : Floats, shape (C, C + 1)
        Row c is (w_c, b_c).
    """

    weights: Floats

    def probabilities(self, mean: Floats) -> Probabilities:
        """Give p(y_c = 1 | X), shape (patterns, C), from phibar of the same shape."""
        p: Probabilities = 0.5 * (1.0 + np.tanh(0.5 * self.scores(mean)))
        return p

    def scores(self, mean: Floats) -> Floats:
        """Give w_c . phibar + b_c."""
        scores: Floats = mean @ self.weights[:, :-1].T + self.weights[:, -1]
        return scores


def step_sums(mean: Floats, labels: Flags, readout: ReadOut) -> Sums:
    """Sum what a step needs over patterns.

    Parameters
    ----------
    mean : Floats, shape (patterns, C)
        phibar, inferred without labels by a model that has not seen them.
    labels : Flags, shape (patterns, C)
    readout : ReadOut
        At which the bound touches the log-likelihood.

    Returns
    -------
    dict of str to Floats
        With x = (phibar, 1) and varsigma(xi) = tanh(xi / 2) / (4 xi): ``linear`` (C, C + 1),
        sum (y_c - 1/2) x; ``quadratic`` (C, C + 1, C + 1), sum 2 varsigma(w_c . x) x x^T;
        ``gradient`` (C, C + 1), sum (y_c - p_c) x; ``hessian`` (C, C + 1, C + 1),
        sum p_c (1 - p_c) x x^T; ``log_likelihood`` (C,).

    Notes
    -----
    O(patterns * C^3).
    """
    inputs = np.column_stack([mean, np.ones(len(mean))])
    xi = readout.scores(mean)
    safe = np.where(np.abs(xi) < 1e-6, 1.0, xi)
    curvature = np.where(np.abs(xi) < 1e-6, 0.25, np.tanh(0.5 * safe) / (2.0 * safe))
    signs = labels - 0.5
    p = readout.probabilities(mean)
    return {
        "linear": signs.T @ inputs,
        "quadratic": _weighted_squares(inputs, curvature),
        "gradient": (labels - p).T @ inputs,
        "hessian": _weighted_squares(inputs, p * (1.0 - p)),
        "log_likelihood": -np.logaddexp(0.0, -2.0 * signs * xi).sum(axis=0),
    }


def _weighted_squares(inputs: Floats, weights: Floats) -> Floats:
    return np.stack([(inputs * column[:, None]).T @ inputs for column in weights.T])


def step(sums: Sums, precision: float) -> ReadOut:
    """Maximise the bound less precision / 2 |w_c|^2; the intercept is free.

    Parameters
    ----------
    sums : dict
        From `step_sums`, over at least one pattern.
    precision : float
        Positive.
    """
    penalty = _penalty(sums, precision)
    solved = np.linalg.solve(sums["quadratic"] + penalty, sums["linear"][:, :, None])
    return ReadOut(solved[:, :, 0].astype(np.float64))


def newton_step(sums: Sums, readout: ReadOut, precision: float) -> ReadOut:
    """Step to the maximum of the penalised log-likelihood's second-order expansion.

    Parameters
    ----------
    sums : dict
        From `step_sums` at `readout`.
    readout : ReadOut
    precision : float
    """
    penalty = _penalty(sums, precision)
    gradient = sums["gradient"] - readout.weights @ penalty
    solved = np.linalg.solve(sums["hessian"] + penalty, gradient[:, :, None])
    return ReadOut(readout.weights + solved[:, :, 0])


def _penalty(sums: Sums, precision: float) -> Floats:
    size = sums["linear"].shape[1]
    # Ever so little on the intercept, for a class that all patterns have, or none.
    return np.diag(np.append(np.full(size - 1, precision), 1e-6))


def fit(
    sum_patterns: Callable[[ReadOut], Sums],
    classes: int,
    precision: float,
    max_iter: int = 100,
    tol: float = 1e-7,
) -> ReadOut:
    """Fit W and b.

    Parameters
    ----------
    sum_patterns : callable
        Gives the summed `step_sums` at a read-out.
    classes : int
        C.
    precision : float
        Of the normal prior of each weight.
    max_iter : int
        Steps at the most.
    tol : float
        Stop when the relative gain of the objective falls below.

    Returns
    -------
    ReadOut
    """
    best = ReadOut(np.zeros((classes, classes + 1)))
    sums = sum_patterns(best)
    value = _objective(sums, best, precision)
    for _ in range(max_iter):
        proposal = newton_step(sums, best, precision)
        proposed = sum_patterns(proposal)
        gain = _objective(proposed, proposal, precision) - value
        if gain < 0.0:
            proposal = step(sums, precision)
            proposed = sum_patterns(proposal)
            gain = _objective(proposed, proposal, precision) - value
        if gain <= tol * abs(value):
            break
        best, sums, value = proposal, proposed, value + gain
    return best


def _objective(sums: Sums, readout: ReadOut, precision: float) -> float:
    squares = float((readout.weights**2 @ np.diag(_penalty(sums, precision))).sum())
    return float(sums["log_likelihood"].sum()) - 0.5 * squares
