"""The dual solver against libsvm, and against the conditions of optimality."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from corpusmill.fragments.solver import solve

QUICK = settings(max_examples=40, deadline=None)
TIGHT = 1e-6


class Problem:
    """A random kernel matrix with signs and bounds."""

    def __init__(self, seed, size, rank=None, cost=1.0, weighted=True):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(size, rank or max(2, size // 3)))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        # As float32 keeps it, so that both solvers see the same numbers.
        self.kernel = np.float32(points @ points.T).astype(float)
        self.signs = np.where(points[:, 0] + 0.5 * rng.normal(size=size) > 0, 1.0, -1.0)
        self.signs[:2] = 1.0, -1.0
        self.bounds = cost * (rng.choice([0.5, 1.0, 3.0], size) if weighted else np.ones(size))

    def solve(self, tolerance=TIGHT, **how):
        diagonal = np.diag(self.kernel).copy()
        return solve(self.kernel.__getitem__, diagonal, self.signs, self.bounds, tolerance, **how)

    def objective(self, beta):
        return self.signs @ beta - 0.5 * beta @ self.kernel @ beta

    def peer(self):
        """Give libsvm's beta and bias."""
        machine = SVC(kernel="precomputed", C=1.0, tol=TIGHT)
        machine.fit(self.kernel, self.signs, sample_weight=self.bounds)
        beta = np.zeros(len(self.signs))
        beta[machine.support_] = machine.dual_coef_[0]
        return beta, machine.intercept_[0]


def check_feasible(problem, solution):
    alpha = problem.signs * solution.beta
    assert np.all(alpha >= 0.0)
    assert np.all(alpha <= problem.bounds)
    assert abs(solution.beta.sum()) <= 1e-9 * problem.bounds.sum()


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from([0.01, 1.0, 100.0]))
def test_solution_is_libsvm_s(seed, size, cost):
    problem = Problem(seed, size, cost=cost)
    solution = problem.solve()
    check_feasible(problem, solution)
    beta, bias = problem.peer()
    best = problem.objective(beta)
    assert problem.objective(solution.beta) == pytest.approx(best, rel=1e-5, abs=1e-9)
    scores, expected = problem.kernel @ solution.beta, problem.kernel @ beta
    assert_allclose(scores, expected, atol=2e-3 * max(1.0, np.sqrt(best)))
    # With none free the bias is not unique, and libsvm takes one a rounding error away for free.
    if is_free(problem, solution.beta).any() and is_free(problem, beta).any():
        assert_allclose(scores + solution.bias, expected + bias, atol=4e-3 * max(1, np.sqrt(best)))


def is_free(problem, beta):
    alpha = np.abs(beta)
    return (alpha > 1e-6 * problem.bounds) & (alpha < (1 - 1e-6) * problem.bounds)


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.sampled_from([1e-1, 1e-3, 1e-5]))
def test_conditions_of_optimality_hold_within_the_tolerance(seed, size, tolerance):
    problem = Problem(seed, size)
    solution = problem.solve(tolerance)
    f = problem.kernel @ solution.beta - problem.signs
    lower = np.minimum(problem.signs * problem.bounds, 0.0)
    upper = np.maximum(problem.signs * problem.bounds, 0.0)
    can_fall, can_rise = solution.beta > lower, solution.beta < upper
    assert f[can_fall].max() - f[can_rise].min() == pytest.approx(solution.gap, abs=1e-6)
    assert solution.gap < tolerance
    assert (
        solution.bias == pytest.approx(-f[can_rise].min(), abs=tolerance + 1e-9)
        or not (can_fall & can_rise).any()
    )


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(3, 60))
def test_a_cache_of_two_rows_gives_the_same_solution(seed, size):
    problem = Problem(seed, size)
    solution, tiny = problem.solve(1e-3), problem.solve(1e-3, cache_bytes=0)
    assert_array_equal(tiny.beta, solution.beta)
    assert tiny.bias == solution.bias
    assert tiny.iterations == solution.iterations
    assert solution.rows <= size
    assert tiny.rows >= solution.rows


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(2, 15))
def test_copies_may_be_collapsed_with_the_sum_of_their_bounds(seed, size):
    problem = Problem(seed, size)
    copies = np.random.default_rng(seed).integers(1, 4, size)
    where = np.repeat(np.arange(size), copies)
    kernel = problem.kernel[np.ix_(where, where)]
    full = solve(
        kernel.__getitem__, np.diag(kernel).copy(), problem.signs[where], problem.bounds[where],
        TIGHT,
    )  # fmt: skip
    problem.bounds = problem.bounds * copies
    collapsed = problem.solve()
    beta = np.bincount(where, full.beta, size)
    assert problem.objective(beta) == pytest.approx(problem.objective(collapsed.beta), rel=1e-5)
    assert_allclose(problem.kernel @ beta, problem.kernel @ collapsed.beta, atol=5e-3)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_class_only_gives_its_sign(sign):
    problem = Problem(1, 5)
    problem.signs[:] = sign
    solution = problem.solve()
    assert not solution.beta.any()
    assert solution.bias == sign
    assert solution.rows == 0


def test_no_example_at_all():
    nothing = np.zeros(0)
    solution = solve(lambda i: nothing, nothing, nothing, nothing)
    assert len(solution.beta) == 0
    assert solution.bias == 0.0


def test_all_support_vectors_at_bound():
    """With small C everything is at bound, and the bias lies between the two ends."""
    problem = Problem(4, 20, cost=1e-3, weighted=False)
    problem.signs = np.tile([1.0, -1.0], 10)
    solution = problem.solve()
    assert_allclose(np.abs(solution.beta), 1e-3)
    f = problem.kernel @ solution.beta - problem.signs
    positive = problem.signs > 0
    middle = -(f[~positive].min() + f[positive].max()) / 2
    assert solution.bias == pytest.approx(middle)
    assert solution.bias == pytest.approx(problem.peer()[1], abs=1e-5)


def test_the_same_example_with_opposite_signs():
    kernel = np.ones((2, 2))
    solution = solve(kernel.__getitem__, np.ones(2), np.array([1.0, -1.0]), np.array([2.0, 5.0]))
    assert_allclose(solution.beta, [2.0, -2.0])
    assert solution.gap < 1e-3


def test_examples_without_any_similarity_and_empty_ones():
    """K = 0 for an empty tree: its alpha runs to the bound and does no harm."""
    kernel = np.diag([1.0, 1.0, 0.0, 0.0])
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    solution = solve(kernel.__getitem__, np.diag(kernel).copy(), signs, np.full(4, 10.0))
    assert_allclose(solution.beta, [1.0, -1.0, 10.0, -10.0], rtol=1e-3)
    assert solution.bias == pytest.approx(0.0, abs=1e-3)


def test_larger_bounds_of_one_sign_shift_the_border():
    problem = Problem(7, 60, rank=3, weighted=False)
    even = problem.solve()
    problem.bounds = np.where(problem.signs > 0, 10.0, 1.0)
    uneven = problem.solve()
    found = [(problem.kernel @ s.beta + s.bias > 0).sum() for s in (even, uneven)]
    assert found[1] > found[0]


def test_the_limit_of_iterations_is_reported():
    problem = Problem(2, 40)
    whole = problem.solve()
    cut = problem.solve(max_iter=3)
    assert cut.iterations == 3 < whole.iterations
    assert cut.gap > TIGHT > whole.gap
    assert problem.objective(cut.beta) < problem.objective(whole.beta)


def test_rows_are_asked_for_once_while_they_fit():
    problem = Problem(3, 50)
    asked: list[int] = []

    def row(i):
        asked.append(i)
        return problem.kernel[i]

    solution = solve(row, np.diag(problem.kernel).copy(), problem.signs, problem.bounds)
    assert len(set(asked)) == len(asked) == solution.rows
    assert set(np.flatnonzero(solution.beta)) <= set(asked)
