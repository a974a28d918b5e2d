"""What S-MART is compared with, on the same features and with the same inference. No Spark.

| name | F(x, u) | trained by |
| --- | --- | --- |
| ``perceptron`` | w . x | averaged structured perceptron |
| ``linear_ssvm`` | w . x | structured SVM, margin rescaling |
| ``poly_ssvm`` | w . phi(x), phi of degree 2 | structured SVM, margin rescaling |
| ``mart`` | trees | log loss, each factor by itself |
| ``lambdarank`` | trees | LambdaRank, a factor is a query |

Every one gives scores of rows, which the structure of the examples decodes; they have scales of
their own, so that what is added to the scores of ``structure.bases``, the bias of Nil, is tuned for
each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from corpusmill.boosting.baselines_kernels import (
    frank_wolfe,
    mapped_width,
    perceptron,
    products,
    separate,
)
from corpusmill.boosting.batches import Examples
from corpusmill.boosting.losses import hinge
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.structures import Independent
from corpusmill.boosting.training import boost, parameters, without_parameters
from corpusmill.boosting.trees import scores_of
from corpusmill.errors import DataError
from corpusmill.types import Floats

# isort: split
# After `training`, which sets how LightGBM's threads wait before it is loaded.
import lightgbm as lgb

MAX_QUERY_ROWS = 10_000
"""LightGBM takes no query with more."""


class Scorer(Protocol):
    """A trained scoring function."""

    def scores(self, features: Floats) -> Floats:
        """Give F of each row, shape (rows,); features may be NaN."""
        ...


class Standard(NamedTuple):
    """Features with mean 0 and variance 1 over the rows of training.

    Attributes
    ----------
    mean, scale : Floats, shape (width,)
        ``scale`` is infinite where all values are the same or missing: such a feature becomes 0.
    """

    mean: Floats
    scale: Floats

    def apply(self, features: Floats) -> Floats:
        """Give (x - mean) / scale, 0 where x is NaN; shape (rows, width)."""
        scaled: Floats = np.ascontiguousarray((features - self.mean) / self.scale)
        scaled[np.isnan(scaled)] = 0.0
        return scaled


def standard(features: Floats) -> Standard:
    """Measure mean and standard deviation of each feature over the rows where it is not NaN."""
    seen = ~np.isnan(features)
    counts = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, features, 0.0).sum(axis=0) / counts
    square = np.where(seen, features - mean, 0.0) ** 2
    lowest = np.where(seen, features, np.inf).min(axis=0, initial=np.inf)
    highest = np.where(seen, features, -np.inf).max(axis=0, initial=-np.inf)
    # Not the variance: rounding can leave some of it to a feature that is always the same.
    scale = np.where(highest > lowest, np.sqrt(square.sum(axis=0) / counts), np.inf)
    return Standard(mean, scale)


class LinearScorer(NamedTuple):
    """F(x, u) = w . phi(x) of standardised features, with gamma as for `products`."""

    standard: Standard
    weights: Floats
    gamma: float = 0.0

    def scores(self, features: Floats) -> Floats:
        """Give F of each row, shape (rows,)."""
        return products(self.standard.apply(features), self.weights, self.gamma)


class TreeScorer(NamedTuple):
    """F(x, u) = the sum of trees, in LightGBM's text format."""

    trees: str

    def scores(self, features: Floats) -> Floats:
        """Give F of each row, shape (rows,)."""
        return scores_of(self.trees, features)


def fit_perceptron(examples: Examples, epochs: int, seed: int) -> LinearScorer:
    """Train the averaged structured perceptron; see `baselines_kernels.perceptron`.

    Parameters
    ----------
    examples : Examples
        All with known outputs.
    epochs : int
    seed : int
        Of the orders of examples.
    """
    scaled = standard(examples.features)
    rng = np.random.default_rng(seed)
    lattices = separate(examples.structure)
    features = scaled.apply(examples.features)
    return LinearScorer(scaled, perceptron(lattices, features, examples.gold, epochs, rng))


class Solution(NamedTuple):
    """A trained structured SVM.

    Attributes
    ----------
    weights : Floats, shape (width,)
    primal, dual : float
        The objectives; the optimum lies between them.
    passes : int
        Through all examples.
    """

    weights: Floats
    primal: float
    dual: float
    passes: int


def solve_svm(
    examples: Examples,
    cost: float,
    gamma: float,
    seed: int,
    tolerance: float = 3e-3,
    max_passes: int = 1000,
) -> Solution:
    r"""Train a structured SVM with margin rescaling by block-coordinate Frank-Wolfe.

    minimise over w    |w|^2 / 2 + (C/n) sum_i max_y (loss_i(y) - w . psi_i(y))

    with n examples, psi_i(y) the sum of phi(x_r) over y* less that over y, and loss_i(y) the number
    of rows of y that are not in y*.

    Parameters
    ----------
    examples : Examples
        All with known outputs; features without NaN.
    cost : float
        C.
    gamma : float
        Of phi: 0 for x itself, above for the polynomial kernel, as for `products`.
    seed : int
        Of the orders of examples.
    tolerance : float
        Done when primal - dual is at most this part of the primal.
    max_passes : int
        A limit that ends a run that does not converge (``primal`` and ``dual`` tell).

    Returns
    -------
    Solution

    Notes
    -----
    O(rows * mapped width + edges) a pass; keeps examples * mapped width numbers. The objectives
    are measured after passes 1, 2, 4, ... and then every tenth, each as dear as a pass. Sources:
    Tsochantaridis et al. 2004 (n-slack, margin rescaling); Lacoste-Julien et al. 2013, algorithm 4.
    """
    lattices, rng = separate(examples.structure), np.random.default_rng(seed)
    n, width = len(examples.known), mapped_width(examples.features.shape[1], gamma)
    share = cost / max(n, 1)
    weights, parts, losses = np.zeros(width), np.zeros((n, width)), np.zeros(n)
    passes = 0
    while True:
        # Summed anew: what the steps' rounding adds up to must not pass for progress.
        weights = parts.sum(axis=0)
        scores = products(examples.features, weights, gamma)
        found = hinge(examples.structure, scores, examples.gold)
        square = float(weights @ weights) / 2.0
        primal, dual = square + share * float(found.loss.sum()), float(losses.sum()) - square
        if primal - dual <= tolerance * primal or passes >= max_passes:
            return Solution(weights, primal, dual, passes)
        for _ in range(min(max(passes, 1), 10, max_passes - passes)):
            frank_wolfe(
                lattices,
                examples.features,
                gamma,
                examples.gold,
                share,
                rng,
                weights,
                parts,
                losses,
            )
            passes += 1


def fit_linear_svm(examples: Examples, cost: float, seed: int) -> LinearScorer:
    """Train a structured SVM on standardised features; see `solve_svm`."""
    return _fit_svm(examples, cost, 0.0, seed)


def fit_polynomial_svm(examples: Examples, cost: float, gamma: float, seed: int) -> LinearScorer:
    """Train a structured SVM with the kernel (gamma x . z + 1)^2 on standardised features.

    Parameters
    ----------
    examples : Examples
        All with known outputs.
    cost : float
        C of `solve_svm`.
    gamma : float
        Above 0.
    seed : int
    """
    return _fit_svm(examples, cost, gamma, seed)


def _fit_svm(examples: Examples, cost: float, gamma: float, seed: int) -> LinearScorer:
    scaled = standard(examples.features)
    ready = examples._replace(features=scaled.apply(examples.features))
    return LinearScorer(scaled, solve_svm(ready, cost, gamma, seed).weights, gamma)


def fit_mart(examples: Examples, settings: LearnerSettings, seed: int) -> TreeScorer:
    """Boost trees with the log loss of each factor by itself: a softmax over its rows.

    Parameters
    ----------
    examples : Examples
        All with known outputs that hold one row of each factor, as spans and chains do.
    settings : LearnerSettings
        Of the trees; ``structure`` and ``loss`` are not looked at.
    seed : int

    Notes
    -----
    Source: Friedman 2001; Yang and Chang 2015, section 4.2.
    """
    apart = examples._replace(structure=Independent(examples.factors))
    settings = settings.model_copy(update={"structure": "independent", "loss": "logistic"})
    return TreeScorer(boost(apart, examples.features, settings, seed, settings.trees).text)


def fit_lambdarank(examples: Examples, settings: LearnerSettings, seed: int) -> TreeScorer:
    """Boost trees with LightGBM's LambdaRank: a factor is a query, its gold row the relevant one.

    Parameters
    ----------
    examples : Examples
        All with known outputs.
    settings : LearnerSettings
        Of the trees; ``structure``, ``loss`` and ``step`` are not looked at. A leaf has about
        ``min_data_in_leaf`` rows: LightGBM guesses them from the second derivatives.
    seed : int

    Raises
    ------
    DataError
        DATA01: a factor has more than `MAX_QUERY_ROWS` rows.

    Notes
    -----
    Source: Burges 2010.
    """
    sizes = np.diff(examples.factors.rows)
    if sizes.max(initial=0) > MAX_QUERY_ROWS:
        problem = f"a factor has {sizes.max()} rows; at most {MAX_QUERY_ROWS} are possible"
        raise DataError("DATA01", source="lambdarank", problem=problem)
    settings = settings.model_copy(update={"step": "gradient"})
    common = parameters(settings, seed, examples.features) | {
        "objective": "lambdarank",
        # LightGBM's default: pairs that are far from right have next to no second derivative.
        "min_sum_hessian_in_leaf": 1e-3,
    }
    data = lgb.Dataset(examples.features, examples.gold.astype(int), group=sizes, params=common)
    booster = lgb.train(common, data, settings.trees)
    return TreeScorer(without_parameters(booster.model_to_string()))


class Tuning(NamedTuple):
    """What is tuned of the baselines, all on the same development set.

    Attributes
    ----------
    epochs : int
        Of the perceptron.
    cost : float
        C of the structured SVMs.
    trees : LearnerSettings
        Of MART and LambdaRank.
    gamma : float
        Of the polynomial kernel.
    """

    epochs: int
    cost: float
    trees: LearnerSettings
    gamma: float = 0.05


Fit = Callable[[Examples, Tuning, int], Scorer]
BASELINES: dict[str, Fit] = {
    "perceptron": lambda examples, tuning, seed: fit_perceptron(examples, tuning.epochs, seed),
    "linear_ssvm": lambda examples, tuning, seed: fit_linear_svm(examples, tuning.cost, seed),
    "poly_ssvm": lambda examples, tuning, seed: fit_polynomial_svm(
        examples, tuning.cost, tuning.gamma, seed
    ),
    "mart": lambda examples, tuning, seed: fit_mart(examples, tuning.trees, seed),
    "lambdarank": lambda examples, tuning, seed: fit_lambdarank(examples, tuning.trees, seed),
}
"""Train a baseline by its name: ``BASELINES[name](examples, tuning, seed)``."""
