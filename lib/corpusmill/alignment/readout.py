r"""The read-out of DBA: label probabilities from phibar with all classes taking part. No Spark.

The paper's p(y_c = 1 | X) = sigmoid(lambda_c phibar_c) looks at a class's own share of the
instances. But an instance belongs to one class: where two classes go together, such as grain and
wheat, one takes what the other would need, and no cut-off of the other's share brings it back.
Here

    p(y_c = 1 | X) = sigmoid(w_c . phibar + b_c)

as in supervised LDA, one response a class. W and b are fitted on phibar of patterns that the
model has not seen; the paper's form is W = diag(lambda), b = 0.

A step maximises the Jaakkola-Jordan lower bound of the penalised log-likelihood, so it never
lowers it, and needs sums of a fixed size only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corpusmill.types import Flags, Floats, Probabilities

PRECISION = 0.1
"""Of the normal prior of each weight, as chosen on development data."""

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
        ``log_likelihood`` (C,).

    Notes
    -----
    O(patterns * C^3).
    """
    inputs = np.column_stack([mean, np.ones(len(mean))])
    xi = readout.scores(mean)
    safe = np.where(np.abs(xi) < 1e-6, 1.0, xi)
    curvature = np.where(np.abs(xi) < 1e-6, 0.25, np.tanh(0.5 * safe) / (2.0 * safe))
    signs = labels - 0.5
    return {
        "linear": signs.T @ inputs,
        "quadratic": np.stack([(inputs * column[:, None]).T @ inputs for column in curvature.T]),
        "log_likelihood": -np.logaddexp(0.0, -2.0 * signs * xi).sum(axis=0),
    }


def step(sums: Sums, precision: float) -> ReadOut:
    """Maximise the bound less precision / 2 |w_c|^2; the intercept is free.

    Parameters
    ----------
    sums : dict
        From `step_sums`, over at least one pattern.
    precision : float
        Positive.
    """
    size = sums["linear"].shape[1]
    # Ever so little on the intercept, for a class that all patterns have, or none.
    penalty = np.diag(np.append(np.full(size - 1, precision), 1e-6))
    solved = np.linalg.solve(sums["quadratic"] + penalty, sums["linear"][:, :, None])
    return ReadOut(solved[:, :, 0].astype(np.float64))


def fit(
    sum_patterns: Callable[[ReadOut], Sums],
    classes: int,
    precision: float,
    max_iter: int = 200,
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
    readout = ReadOut(np.zeros((classes, classes + 1)))
    before = -np.inf
    for _ in range(max_iter):
        sums = sum_patterns(readout)
        penalty = 0.5 * precision * float((readout.weights[:, :-1] ** 2).sum())
        value = float(sums["log_likelihood"].sum()) - penalty
        if value - before <= tol * abs(value):
            break
        before = value
        readout = step(sums, precision)
    return readout
