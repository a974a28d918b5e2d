"""Baselines: every solver against a slow, obvious one on cases small enough to enumerate."""

from __future__ import annotations

import itertools

import lightgbm as lgb
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from corpusmill.boosting import baselines
from corpusmill.boosting.baselines import (
    BASELINES,
    Tuning,
    fit_lambdarank,
    fit_linear_svm,
    fit_mart,
    fit_perceptron,
    fit_polynomial_svm,
    solve_svm,
    standard,
)
from corpusmill.boosting.baselines_kernels import mapped_width, products
from corpusmill.boosting.batches import Examples
from corpusmill.boosting.losses import hinge, logistic
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.structures import STRUCTURES, Independent
from corpusmill.errors import DataError
from tests.boosting.examples import make_examples
from tests.boosting.reference import outputs, random_factors

EVERY = pytest.mark.parametrize("structure", sorted(STRUCTURES))
SEEDS = pytest.mark.parametrize("seed", range(3))
COSTS = pytest.mark.parametrize("cost", [0.1, 1.0, 10.0])
TREES = LearnerSettings(structure="spans", trees=40, min_data_in_leaf=5)


def small(structure: str, seed: int, examples: int = 5, width: int = 3) -> Examples:
    """Random lattices with random features and gold; one example has no factor."""
    rng = np.random.default_rng(seed)
    prepared = STRUCTURES[structure](random_factors(structure, rng, examples))
    rows = prepared.factors.rows[-1]
    gold = prepared.best(rng.normal(0, 1, rows))
    known = np.ones(examples, np.bool_)
    return Examples(prepared, rng.normal(0, 1, (rows, width)), gold, known)


def separable(structure: str, seed: int, examples: int) -> Examples:
    """Examples whose first feature tells the rows of the gold output from all others."""
    made = small(structure, seed, examples)
    made.features[:, 0] = np.where(made.gold, 1.0, -1.0)
    return made


def decode(examples: Examples, scores):
    return examples.structure.best(scores)


def constraints(examples: Examples, structure: str) -> list[tuple[int, float, np.ndarray]]:
    """For each output y of each example: its number, loss(y) and psi(y)."""
    found = []
    bounds = examples.factors.example_rows()
    for n in range(len(bounds) - 1):
        gold = {row for row in range(bounds[n], bounds[n + 1]) if examples.gold[row]}
        right = examples.features[sorted(gold)].sum(axis=0)
        for rows in outputs(structure, examples.factors, n):
            psi = right - examples.features[sorted(rows)].sum(axis=0)
            found.append((n, float(len(rows - gold)), psi))
    return found


def primal(weights, cost: float, every) -> float:
    examples = max(n for n, _, _ in every) + 1
    slack = [max(loss - weights @ psi for m, loss, psi in every if m == n) for n in range(examples)]
    return weights @ weights / 2 + cost * float(np.mean(slack))


def quadratic_program(cost: float, every, width: int) -> float:
    """Give the optimum over w and slacks with a constraint for every output."""
    number = np.array([n for n, _, _ in every])
    loss = np.array([loss for _, loss, _ in every])
    psi = np.array([psi for _, _, psi in every])
    examples = int(number.max()) + 1
    slack = np.eye(examples)[number]
    solved = minimize(  # type: ignore[call-overload]
        lambda z: z[:width] @ z[:width] / 2 + cost * z[width:].mean(),
        np.concatenate([np.zeros(width), np.full(examples, loss.max())]),
        jac=lambda z: np.concatenate([z[:width], np.full(examples, cost / examples)]),
        constraints=LinearConstraint(np.hstack([psi, slack]), loss, np.inf),
        method="SLSQP",
        tol=1e-12,
    )
    assert solved.success
    return primal(solved.x[:width], cost, every)


@EVERY
@SEEDS
@COSTS
def test_svm_reaches_the_optimum_of_the_quadratic_program(structure, seed, cost):
    examples = small(structure, seed)
    every = constraints(examples, structure)
    solution = solve_svm(examples, cost, 0.0, 1, 1e-3, 20_000)
    best = quadratic_program(cost, every, 3)
    assert solution.primal == pytest.approx(primal(solution.weights, cost, every), rel=1e-9)
    assert solution.dual <= best * (1 + 1e-9)
    assert best <= solution.primal * (1 + 1e-6)
    assert solution.primal - solution.dual <= 1e-3 * solution.primal


def test_svm_agrees_with_subgradient_descent():
    examples = small("spans", 3, 20)
    every = constraints(examples, "spans")
    solution = solve_svm(examples, 1.0, 0.0, 1, 1e-5, 20_000)
    weights, mean = np.zeros(3), np.zeros(3)
    for step in range(1, 1501):
        gradient = weights.copy()
        for n in range(20):
            worst = max((c for c in every if c[0] == n), key=lambda c: c[1] - weights @ c[2])
            gradient -= worst[2] / 20
        weights = weights - gradient / step
        mean += (weights - mean) * 2 / (step + 1)
    found = primal(mean, 1.0, every)
    assert solution.dual <= found
    assert found == pytest.approx(solution.primal, rel=2e-3)


def test_svm_raises_the_dual_with_every_pass():
    examples = small("spans", 5, 30)
    found = [solve_svm(examples, 100.0, 0.0, 1, 0.0, passes) for passes in (0, 1, 2, 4, 8, 16, 32)]
    assert [solution.passes for solution in found] == [0, 1, 2, 4, 8, 16, 32]
    assert (np.diff([solution.dual for solution in found]) > 0.0).all()
    assert all(solution.dual <= solution.primal for solution in found)


@EVERY
@SEEDS
def test_separable_examples_have_no_loss(structure, seed):
    examples = separable(structure, seed, 12)
    solution = solve_svm(examples, 1000.0, 0.0, 1, 1e-3, 20_000)
    scores = examples.features @ solution.weights
    assert hinge(examples.structure, scores, examples.gold).loss.max() < 1e-2
    np.testing.assert_array_equal(decode(examples, scores), examples.gold)


def slow_perceptron(examples: Examples, epochs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    bounds = examples.factors.example_rows()
    weights, seen = np.zeros(examples.features.shape[1]), []
    for _ in range(epochs):
        for n in rng.permutation(len(bounds) - 1):
            scores = np.array([sum(weights * row) for row in examples.features])
            chosen = examples.structure.best(scores)
            for row in range(bounds[n], bounds[n + 1]):
                weights = weights + (int(examples.gold[row]) - chosen[row]) * examples.features[row]
            seen.append(weights)
    return np.mean(seen, axis=0)


@EVERY
@SEEDS
def test_perceptron_is_the_mean_of_all_its_weights(structure, seed):
    examples = small(structure, seed, 6)
    scorer = fit_perceptron(examples, 4, seed)
    ready = examples._replace(features=standard(examples.features).apply(examples.features))
    expected = slow_perceptron(ready, 4, seed)
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(scorer.weights, expected, rtol=1e-10, atol=1e-12)


@EVERY
def test_perceptron_learns_what_is_separable(structure):
    examples = separable(structure, 1, 12)
    scorer = fit_perceptron(examples, 200, 1)
    chosen = decode(examples, scorer.scores(examples.features))
    assert (chosen == examples.gold).mean() > 0.95


def polynomial_map(features, gamma: float):
    rows = []
    for x in features:
        row = [np.sqrt(2 * gamma) * value for value in x]
        for i in range(len(x)):
            row.append(gamma * x[i] * x[i])
            row += [np.sqrt(2) * gamma * x[i] * x[j] for j in range(i + 1, len(x))]
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
def test_products_are_those_of_the_polynomial_kernel(gamma):
    rng = np.random.default_rng(0)
    x, z = rng.normal(0, 1, (7, 5)), rng.normal(0, 1, (4, 5))
    mapped = polynomial_map(z, gamma)
    assert mapped.shape == (4, mapped_width(5, gamma))
    found = np.array([products(x, weights, gamma) for weights in mapped]).T
    np.testing.assert_allclose(found, (gamma * x @ z.T + 1.0) ** 2 - 1.0, rtol=1e-12)
    np.testing.assert_allclose(products(x, z[0], 0.0), x @ z[0], rtol=1e-12)
    assert len(products(x[:0], mapped[0], gamma)) == 0


@SEEDS
def test_polynomial_svm_is_the_linear_one_on_mapped_features(seed):
    examples = small("spans", seed)
    mapped = examples._replace(features=polynomial_map(examples.features, 0.5))
    found = solve_svm(examples, 1.0, 0.5, 1, 0.0, 5)
    expected = solve_svm(mapped, 1.0, 0.0, 1, 0.0, 5)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-9, atol=1e-12)
    assert (found.primal, found.dual) == pytest.approx((expected.primal, expected.dual))
    best = quadratic_program(1.0, constraints(mapped, "spans"), 9)
    ended = solve_svm(examples, 1.0, 0.5, 1, 1e-3, 20_000)
    assert ended.dual <= best * (1 + 1e-9)
    assert best <= ended.primal * (1 + 1e-6)
    assert ended.primal - ended.dual <= 1e-3 * ended.primal


def test_polynomial_svm_learns_a_product_that_the_linear_one_cannot():
    train, test = make_examples("spans", 150, 1), make_examples("spans", 60, 2)
    right = {}
    for name, scorer in (
        ("linear", fit_linear_svm(train, 10.0, 1)),
        ("polynomial", fit_polynomial_svm(train, 10.0, 0.2, 1)),
    ):
        right[name] = decode(test, scorer.scores(test.features))[test.gold].mean()
    assert right["polynomial"] > right["linear"] + 0.05


def test_standard_features_have_mean_0_and_variance_1_and_no_holes():
    rng = np.random.default_rng(1)
    features = rng.normal(5.0, 3.0, (200, 5))
    features[:, 1] = 0.1
    features[:, 2] = np.nan
    features[::3, 3] = np.nan
    features[1::2, 4], features[::2, 4] = 0.1, np.nan
    scaled = standard(features).apply(features)
    assert scaled[:, 0].mean() == pytest.approx(0.0, abs=1e-12)
    assert scaled[:, 0].std() == pytest.approx(1.0)
    assert not scaled[:, [1, 2, 4]].any()
    assert not scaled[::3, 3].any()
    rest = np.delete(scaled[:, 3], np.arange(0, 200, 3))
    assert (rest.mean(), rest.std()) == (pytest.approx(0.0, abs=1e-12), pytest.approx(1.0))
    # Another value than the only one of training says nothing.
    assert not standard(features).apply(np.full((1, 5), 7.0))[0, [1, 2, 4]].any()
    assert np.isnan(features[0, 3])


def test_mart_is_the_softmax_of_each_mention_whatever_overlaps():
    examples = make_examples("spans", 100, 1)
    settings = TREES.model_copy(update={"trees": 1, "learning_rate": 1.0, "step": "newton"})
    trees = fit_mart(examples, settings, 13).trees
    leaves = lgb.Booster(model_str=trees).predict(examples.features, pred_leaf=True)
    leaf = np.asarray(leaves).reshape(-1)
    sizes = np.diff(examples.factors.rows)
    chance = np.repeat(1.0 / sizes, sizes)
    gradient, hessian = chance - examples.gold, chance * (1.0 - chance)
    scores = fit_mart(examples, settings, 13).scores(examples.features)
    assert len(set(leaf)) > 3
    for number in set(leaf):
        mine = leaf == number
        value = -gradient[mine].sum() / hessian[mine].sum()
        assert scores[mine] == pytest.approx(value, rel=1e-3)


def test_mart_lowers_the_log_loss_of_mentions():
    examples = make_examples("spans", 150, 1)
    apart = Independent(examples.factors)
    scores = fit_mart(examples, TREES, 13).scores(examples.features)
    losses = [logistic(apart, s, examples.gold).loss.sum() for s in (0.0 * scores, scores)]
    assert losses[1] < 0.7 * losses[0]


def mean_reciprocal_rank(examples: Examples, scores) -> float:
    bounds = examples.factors.rows
    ranks = [
        1 + int((scores[a:b] > scores[a:b][examples.gold[a:b]]).sum())
        for a, b in itertools.pairwise(bounds)
    ]
    return float(np.mean(1.0 / np.array(ranks)))


def test_lambdarank_ranks_the_gold_row_of_a_mention_first():
    train, test = make_examples("spans", 300, 1), make_examples("spans", 100, 2)
    scores = fit_lambdarank(train, TREES, 13).scores(test.features)
    guessed = np.random.default_rng(0).normal(size=len(scores))
    assert mean_reciprocal_rank(test, scores) > mean_reciprocal_rank(test, guessed) + 0.15


def test_lambdarank_refuses_a_mention_with_too_many_entities(monkeypatch):
    monkeypatch.setattr(baselines, "MAX_QUERY_ROWS", 3)
    with pytest.raises(DataError, match="a factor has 4 rows; at most 3 are possible"):
        fit_lambdarank(make_examples("spans", 20, 1), TREES, 13)


@pytest.mark.parametrize("name", sorted(BASELINES))
def test_a_baseline_is_learned_twice_alike_and_bears_missing_and_constant_features(name):
    tuning = Tuning(epochs=5, cost=5.0, trees=TREES)
    train, test = make_examples("spans", 150, 1), make_examples("spans", 60, 2)
    rng = np.random.default_rng(3)
    spoilt = []
    for examples in (train, test):
        features = np.column_stack([examples.features, np.ones(len(examples.features))])
        features[rng.random(features.shape) < 0.05] = np.nan
        features[:, 3] = np.nan
        spoilt.append(examples._replace(features=features))
    train, test = spoilt
    before = train.features.copy()
    one, two = (BASELINES[name](train, tuning, 13).scores(test.features) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(train.features, before)
    assert np.isfinite(one).all()
    guessed = decode(test, rng.normal(size=len(one)))[test.gold].mean()
    assert decode(test, one)[test.gold].mean() > guessed + 0.1
