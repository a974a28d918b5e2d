"""Kernels of DBA against slow references, enumeration, finite differences and recovery."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import psi

from corpusmill.alignment import kernels
from corpusmill.alignment.kernels import Inference, infer
from corpusmill.types import Floats, Patterns
from tests.alignment import reference_e_step as slow
from tests.alignment.generate import bags_of, dense_of, patterns_of

QUICK = settings(max_examples=50, deadline=None)
SPARSITIES = [0.0, 2.5, np.inf]


@st.composite
def corpora(draw, most_instances=5, most_classes=4, whole=False, most_weight=6):
    """Patterns, loglik, alpha and lambda of a small random case."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes = draw(st.integers(1, most_classes))
    sizes = draw(st.lists(st.integers(0, most_instances), min_size=1, max_size=4))
    total = sum(sizes)
    weighted = draw(st.booleans())
    weights = rng.integers(1, most_weight, total).astype(float) if weighted else np.ones(total)
    if weighted and not whole:
        weights *= rng.choice([0.3, 1.0, 1.7], total)
    patterns = patterns_of(
        sizes,
        np.zeros((total, 1)),
        weights,
        labels=rng.random((len(sizes), classes)) < 0.5,
        labelled=rng.random(len(sizes)) < 0.8,
    )
    loglik = draw(st.sampled_from([0.3, 3.0, 30.0])) * rng.normal(size=(total, classes)) - 5.0
    alpha = rng.gamma(draw(st.sampled_from([0.2, 1.0, 20.0])), size=classes) + 1e-2
    lam = draw(st.sampled_from([0.0, 2.0, 15.0])) * rng.normal(size=classes)
    return patterns, loglik, alpha, lam


def how_of(quadratic, rho=0.0, max_iter=30, tol=1e-7):
    return Inference(quadratic, rho, max_iter, tol)


# The E-step against the reference


@QUICK
@given(corpora(), st.booleans(), st.sampled_from(SPARSITIES))
def test_e_step_is_the_reference(case, quadratic, rho):
    patterns, loglik, alpha, lam = case
    how = how_of(quadratic, rho, max_iter=12)
    found = infer(patterns, loglik, alpha, lam, how)
    for n, (part, pattern) in enumerate(slow.each(patterns, loglik, alpha, lam, how)):
        phi, gamma, xi, rounds = slow.infer_pattern(pattern, how)
        np.testing.assert_allclose(found.phi[part], phi, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.gamma[n], gamma, rtol=1e-9, atol=1e-9)
        # The root of a sum that may cancel: its square is what is exact.
        np.testing.assert_allclose(found.xi[n] ** 2, np.square(xi), rtol=1e-9, atol=1e-9)
        assert found.iterations[n] == rounds
        pairs = [slow.moments(pattern, phi, c) for c in range(len(alpha))]
        mean = np.array([first for first, _ in pairs])
        np.testing.assert_allclose(found.mean[n], mean, rtol=1e-9, atol=1e-12)
        square = np.array([second for _, second in pairs]) if quadratic else mean**2
        np.testing.assert_allclose(found.mean_square[n], square, rtol=1e-9, atol=1e-12)


@QUICK
@given(corpora(), st.booleans(), st.sampled_from(SPARSITIES))
def test_bound_is_its_terms(case, quadratic, rho):
    patterns, loglik, alpha, lam = case
    how = how_of(quadratic, rho)
    found = infer(patterns, loglik, alpha, lam, how)
    for n, (part, pattern) in enumerate(slow.each(patterns, loglik, alpha, lam, how)):
        terms = slow.bound(pattern, found.phi[part], found.gamma[n], found.xi[n], quadratic)
        assert found.bound[n] == pytest.approx(terms, rel=1e-9, abs=1e-9)


@QUICK
@given(corpora(), st.booleans(), st.sampled_from(SPARSITIES))
def test_posterior_is_made_of_distributions(case, quadratic, rho):
    patterns, loglik, alpha, lam = case
    found = infer(patterns, loglik, alpha, lam, how_of(quadratic, rho))
    assert np.isfinite(found.bound).all()
    assert (found.phi >= 0.0).all()
    np.testing.assert_allclose(found.phi.sum(axis=1), 1.0, rtol=1e-12)
    sizes = kernels.segment_sizes(patterns.offsets, patterns.weights)
    np.testing.assert_allclose(found.gamma.sum(axis=1), alpha.sum() + sizes, rtol=1e-12)
    assert (found.iterations[sizes == 0.0] == 0).all()
    assert not found.xi[~patterns.labelled].any()
    expected = psi(found.gamma) - psi(found.gamma.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(found.log_theta(), expected)


@QUICK
@given(corpora())
def test_infinite_sparsity_keeps_to_the_label_set(case):
    patterns, loglik, alpha, lam = case
    found = infer(patterns, loglik, alpha, lam, how_of(True, np.inf))
    owner = np.repeat(np.arange(len(patterns.labels)), np.diff(patterns.offsets))
    bound_to = patterns.labelled & patterns.labels.any(axis=1)
    outside = ~patterns.labels[owner] & bound_to[owner, None]
    assert not found.phi[outside].any()


@QUICK
@given(corpora(most_instances=4, most_classes=3, whole=True, most_weight=3), st.booleans())
def test_quadratic_bound_is_below_the_evidence(case, sparse):
    patterns, loglik, alpha, lam = case
    how = how_of(True, 1.5 if sparse else 0.0)
    found = infer(patterns, loglik, alpha, lam, how)
    for n, (_, pattern) in enumerate(slow.each(patterns, loglik, alpha, lam, how)):
        if pattern.size <= 7:  # 3^7 assignments
            assert found.bound[n] <= slow.log_evidence(pattern) + 1e-9


def test_bound_is_exact_without_latent_choice():
    """One class: theta and z are certain, and the label term is exact at s = lambda."""
    patterns = patterns_of([3], np.zeros((3, 1)), labels=[[True]])
    loglik = np.array([[-1.0], [-2.0], [-4.0]])
    how = how_of(True)
    found = infer(patterns, loglik, np.array([0.7]), np.array([2.0]), how)
    (_, pattern), *_ = slow.each(patterns, loglik, np.array([0.7]), np.array([2.0]), how)
    assert found.bound[0] == pytest.approx(slow.log_evidence(pattern), abs=1e-12)
    assert found.bound[0] == pytest.approx(-7.0 - np.log1p(np.exp(-2.0)), abs=1e-12)


# Ascent


@QUICK
@given(corpora(), st.sampled_from(SPARSITIES))
def test_bound_rises_with_every_round(case, rho):
    patterns, loglik, alpha, lam = case
    values = [
        infer(patterns, loglik, alpha, lam, how_of(True, rho, rounds, 0.0)).bound
        for rounds in range(1, 12)
    ]
    scale = 1e-11 * (1.0 + np.abs(values[0]))
    assert (np.diff(values, axis=0) >= -scale).all()


@QUICK
@given(corpora(), st.sampled_from(SPARSITIES))
def test_bound_rises_with_every_coordinate_step(case, rho):
    """The kernel takes the reference's steps (above), so the reference may be watched for it."""
    patterns, loglik, alpha, lam = case
    how = how_of(True, rho, max_iter=6, tol=0.0)
    for _, pattern in slow.each(patterns, loglik, alpha, lam, how):
        seen = [-np.inf]

        def watch(step, phi, gamma, xi, pattern=pattern, seen=seen):
            value = slow.bound(pattern, phi, gamma, xi, True)
            assert value >= seen[-1] - 1e-10 * (1.0 + abs(value)), step
            seen.append(value)

        slow.infer_pattern(pattern, how, watch)


def test_copies_weigh_as_much_as_their_weight():
    """Copies that start alike and converge end where the collapsed instance does."""
    rng = np.random.default_rng(3)
    weights = np.array([3.0, 1.0, 4.0])
    loglik, labels = rng.normal(size=(3, 3)), [[True, False, True]]
    alpha, lam = np.array([0.5, 1.0, 2.0]), np.array([4.0, -3.0, 2.0])
    how = how_of(True, max_iter=5000, tol=1e-13)
    one = infer(patterns_of([3], np.zeros((3, 1)), weights, labels), loglik, alpha, lam, how)
    many = np.repeat(loglik, weights.astype(int), axis=0)
    spread = infer(patterns_of([8], np.zeros((8, 1)), labels=labels), many, alpha, lam, how)
    np.testing.assert_allclose(one.gamma, spread.gamma, rtol=1e-6)
    assert one.bound[0] == pytest.approx(spread.bound[0], abs=1e-8)


def oscillating_case() -> tuple[Patterns, Floats, Floats, Floats]:
    """One instance that steep utilities throw from one of its two labels to the other."""
    patterns = patterns_of([1], np.zeros((1, 1)), labels=[[True, True]])
    return patterns, np.array([[4.0, 0.0]]), np.array([1.0, 1.0]), np.array([30.0, 30.0])


def test_tangent_objective_may_fall():
    case = oscillating_case()

    def values(quadratic):
        return [infer(*case, how=how_of(quadratic, 0.0, n, 0.0)).bound[0] for n in range(1, 10)]

    tangent, quadratic = values(False), values(True)
    assert np.diff(tangent).min() < -0.1
    assert np.diff(quadratic).min() >= -1e-12


def test_tangent_objective_is_no_lower_bound():
    patterns = patterns_of([1], np.zeros((1, 1)), labels=[[True, True]])
    loglik, alpha, lam = np.zeros((1, 2)), np.array([50.0, 50.0]), np.array([20.0, 20.0])
    how = how_of(False)
    (_, pattern), *_ = slow.each(patterns, loglik, alpha, lam, how)
    evidence = slow.log_evidence(pattern)
    assert infer(patterns, loglik, alpha, lam, how).bound[0] > evidence + 0.1
    assert infer(patterns, loglik, alpha, lam, how_of(True)).bound[0] <= evidence


# Sums over features


@QUICK
@given(st.integers(0, 2**32 - 1), st.integers(0, 6), st.integers(1, 5), st.integers(1, 3))
def test_feature_sums_are_matrix_products_and_adjoint(seed, rows, features, classes):
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (rows, features)) * rng.normal(size=(rows, features))
    bags = bags_of(dense)
    table, mass = rng.normal(size=(features, classes)), rng.normal(size=(rows, classes))
    forward = kernels.weighted_rows(bags, table)
    backward = kernels.expected_counts(bags, mass, features)
    np.testing.assert_allclose(forward, dense @ table, atol=1e-12)
    np.testing.assert_allclose(backward, dense.T @ mass, atol=1e-12)
    assert (forward * mass).sum() == pytest.approx((table * backward).sum(), abs=1e-10)
    np.testing.assert_array_equal(dense_of(bags, features), dense)


def test_segment_sizes_with_empty_patterns():
    sizes = kernels.segment_sizes(np.array([0, 0, 2, 3, 3]), np.array([1.5, 2.0, 4.0]))
    np.testing.assert_allclose(sizes, [0.0, 3.5, 4.0, 0.0])


@pytest.mark.parametrize("x", [1e-8, 1e-3, 0.1, 0.9999, 1.0, 3.7, 9.99, 10.0, 42.0, 1e6])
def test_digamma_is_scipys(x):
    assert kernels._digamma(x) == pytest.approx(psi(x), rel=1e-13, abs=1e-12)


# The M-step


@st.composite
def alpha_problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    classes, count = draw(st.integers(1, 6)), draw(st.integers(1, 50))
    gamma = rng.gamma(draw(st.sampled_from([0.3, 2.0, 30.0])), size=(count, classes)) + 0.05
    log_theta = (psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))).sum(axis=0)
    return rng.gamma(1.0, size=classes) + 0.05, log_theta, float(count)


@QUICK
@given(alpha_problems())
def test_alpha_derivatives_are_finite_differences(problem):
    alpha, log_theta, count = problem
    gradient, h, z = kernels.alpha_derivatives(alpha, log_theta, count)
    hessian = np.diag(h) + z
    for c in range(len(alpha)):
        step = np.zeros(len(alpha))
        step[c] = 1e-5 * alpha[c]
        high, low = (kernels.alpha_objective(alpha + s, log_theta, count) for s in (step, -step))
        rough = 1e-4 * (1.0 + np.abs(gradient).max())
        assert (high - low) / (2.0 * step[c]) == pytest.approx(gradient[c], rel=1e-4, abs=rough)
        above, below = (
            kernels.alpha_derivatives(alpha + s, log_theta, count)[0] for s in (step, -step)
        )
        column = (above - below) / (2.0 * step[c])
        np.testing.assert_allclose(column, hessian[c], rtol=1e-4, atol=1e-4 * np.abs(h).max())


@QUICK
@given(alpha_problems())
def test_newton_raises_the_objective(problem):
    alpha, log_theta, count = problem
    values = [kernels.alpha_objective(alpha, log_theta, count)]
    for steps in (1, 2, 3, 100):
        new = kernels.update_alpha(alpha, log_theta, count, max_iter=steps)
        assert (new > 0.0).all()
        values.append(kernels.alpha_objective(new, log_theta, count))
    assert (np.diff(values) >= -1e-9 * np.abs(values[1:])).all()


def test_newton_ends_where_the_gradient_is_zero():
    rng = np.random.default_rng(5)
    true = np.array([0.3, 1.2, 4.0])
    log_theta = np.log(rng.dirichlet(true, 20_000)).sum(axis=0)
    found = kernels.update_alpha(np.full(3, 0.1), log_theta, 20_000.0, tol=1e-14)
    gradient, _, _ = kernels.alpha_derivatives(found, log_theta, 20_000.0)
    np.testing.assert_allclose(gradient / 20_000.0, 0.0, atol=1e-5)
    np.testing.assert_allclose(found, true, rtol=0.05)


def test_newton_from_far_away_and_without_patterns():
    log_theta = np.log(np.random.default_rng(6).dirichlet([0.5, 2.0], 5_000)).sum(axis=0)
    for start in ([1e-6, 1e-6], [1e4, 1e-3], [1e5, 1e5]):
        found = kernels.update_alpha(np.array(start), log_theta, 5_000.0)
        np.testing.assert_allclose(found, [0.5, 2.0], rtol=0.1)
    same = kernels.update_alpha(np.array([0.4, 0.6]), np.zeros(2), 0.0)
    np.testing.assert_array_equal(same, [0.4, 0.6])


@QUICK
@given(corpora(), st.floats(-5, 5), st.sampled_from([0.0, 0.1, 3.0]), st.booleans())
def test_lambda_maximises_its_objective(case, mean, precision, quadratic):
    patterns, loglik, alpha, lam = case
    posterior = infer(patterns, loglik, alpha, lam, how_of(quadratic))
    linear, curved = kernels.label_statistics(patterns.labels, patterns.labelled, posterior)
    for c in range(len(lam)):
        xi, known = np.abs(posterior.xi[:, c]), patterns.labelled
        signs = patterns.labels[known, c] - 0.5
        assert linear[c] == pytest.approx((signs * posterior.mean[known, c]).sum())
        sums = [slow.varsigma(x) * s for x, s in zip(xi, posterior.mean_square[:, c], strict=True)]
        assert curved[c] == pytest.approx(np.array(sums)[known].sum(), abs=1e-15)
    found = kernels.update_lambda(linear, curved, mean, precision)

    def objective(value):
        return linear * value - curved * value**2 - 0.5 * precision * (value - mean) ** 2

    informed = 2.0 * curved + precision > 0.0
    np.testing.assert_array_equal(found[~informed], mean)
    step = 1e-3 * (1.0 + np.abs(found))
    middle, high, low = objective(found), objective(found + step), objective(found - step)
    slope, bend = (high - low) / (2 * step), (high - 2 * middle + low) / step**2
    size = np.abs(linear) + precision * (1 + np.abs(mean)) + curved * np.abs(found)
    assert (np.abs(slope) <= 1e-7 * (1 + size) * (1 + np.abs(found)))[informed].all()
    bends = -2.0 * curved - precision
    np.testing.assert_allclose(bend[informed], bends[informed], rtol=1e-2, atol=1e-2)
    assert (bends[informed] < 0.0).all()


def test_tangent_lambda_step_never_lowers_the_logistic_likelihood():
    rng = np.random.default_rng(11)
    mean, y = rng.random((200, 1)), rng.random((200, 1)) < 0.6
    lam = np.array([-8.0])
    values = []
    for _ in range(30):
        s = lam * mean
        values.append(np.where(y, -np.logaddexp(0, -s), -np.logaddexp(0, s)).sum())
        posterior = kernels.Posterior(
            np.zeros((0, 1)), mean, -s, mean, mean**2, mean[:, 0], np.zeros(200)
        )
        sums = kernels.label_statistics(y, np.ones(200, bool), posterior)
        lam = kernels.update_lambda(*sums, 0.0, 0.0)
    assert (np.diff(values) >= -1e-10).all()
    assert abs((mean * (y - 1 / (1 + np.exp(-lam * mean)))).sum()) < 0.1
