"""Instance models: likelihoods against scipy, M-steps that no perturbation improves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import gammaln

from corpusmill.alignment import instances
from corpusmill.alignment.instances import Gaussian, Multinomial, Poisson, Smoothing
from tests.alignment.generate import bags_of

QUICK = settings(max_examples=30, deadline=None)
KINDS = ["multinomial", "poisson", "gaussian"]
ROWS, FEATURES, CLASSES = 12, 5, 3


def case(kind, seed, two_dimensional=False, mass=4.0):
    """Dense instances, w phi, and a smoothing as the learner or a warm start makes it."""
    rng = np.random.default_rng(seed)
    counts = kind != "gaussian"
    dense = rng.poisson(1.0, (ROWS, FEATURES)) if counts else rng.normal(size=(ROWS, FEATURES))
    weights = rng.integers(1, 4, (ROWS, 1))
    phi = rng.dirichlet(np.full(CLASSES, 0.5), ROWS)
    shape = (FEATURES, CLASSES) if two_dimensional else (FEATURES,)
    base = rng.gamma(2.0, size=shape) if counts else rng.normal(size=shape)
    if kind == "multinomial":
        base = base / base.sum(axis=0)
    return dense.astype(float), weights * phi, Smoothing(mass, base)


def fitted(kind, seed, **options):
    dense, mass, smoothing = case(kind, seed, **options)
    model = instances.start(kind, CLASSES, smoothing)
    return dense, mass, model.updated(model.sums(bags_of(dense), mass))


def objective(model, dense, mass):
    """Expected log-likelihood plus the prior: what the M-step maximises."""
    return (mass * model.log_likelihoods(bags_of(dense))).sum() + model.log_prior()


def perturbed(model, rng, size):
    """A neighbour that satisfies the same constraints."""
    arrays = {
        name: value + size * rng.normal(size=value.shape) for name, value in model.arrays().items()
    }
    if model.kind == "multinomial":
        arrays["log_b"] -= np.log(np.exp(arrays["log_b"]).sum(axis=0))
    if model.kind == "gaussian":
        arrays["variance"] = np.abs(arrays["variance"])
    return instances.restore(model.kind, arrays, model.smoothing)


@QUICK
@given(st.integers(0, 2**32 - 1), st.sampled_from(KINDS), st.booleans())
def test_no_perturbation_improves_the_m_step(seed, kind, two_dimensional):
    dense, mass, model = fitted(kind, seed, two_dimensional=two_dimensional)
    best = objective(model, dense, mass)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 1.0):
        for _ in range(10):
            assert objective(perturbed(model, rng, size), dense, mass) <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("kind", KINDS)
def test_m_step_is_where_finite_differences_are_zero(kind):
    dense, mass, model = fitted(kind, 1)
    for name, value in model.arrays().items():
        for place in np.ndindex(value.shape):
            ends = []
            for step in (1e-5, -1e-5):
                moved = {key: array.copy() for key, array in model.arrays().items()}
                moved[name][place] += step
                if kind == "multinomial":
                    moved[name] -= np.log(np.exp(moved[name]).sum(axis=0))
                ends.append(objective(instances.restore(kind, moved, model.smoothing), dense, mass))
            assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(0.0, abs=1e-4)


def test_multinomial_likelihood_is_scipys_less_the_coefficient():
    dense, _, model = fitted("multinomial", 2)
    assert isinstance(model, Multinomial)
    np.testing.assert_allclose(np.exp(model.log_b).sum(axis=0), 1.0)
    length = dense.sum(axis=1)
    coefficient = gammaln(length + 1) - gammaln(dense + 1).sum(axis=1)
    for c in range(CLASSES):
        expected = stats.multinomial.logpmf(dense, length, np.exp(model.log_b[:, c]))
        found = model.log_likelihoods(bags_of(dense))[:, c]
        np.testing.assert_allclose(found, expected - coefficient, atol=1e-10)


def test_poisson_likelihood_is_scipys_less_the_factorials():
    dense, _, model = fitted("poisson", 3)
    assert isinstance(model, Poisson)
    for c in range(CLASSES):
        expected = np.sum(stats.poisson.logpmf(dense, np.exp(model.log_rate[:, c])), axis=1)
        found = model.log_likelihoods(bags_of(dense))[:, c]
        np.testing.assert_allclose(found, expected + gammaln(dense + 1).sum(axis=1), atol=1e-10)


def test_gaussian_likelihood_is_scipys_absent_features_too():
    dense, _, model = fitted("gaussian", 4)
    assert isinstance(model, Gaussian)
    dense[2] = 0.0
    dense[:, 1] = 0.0
    for c in range(CLASSES):
        spread = np.sqrt(model.variance[:, c])
        expected = np.sum(stats.norm.logpdf(dense, model.mean[:, c], spread), axis=1)
        found = model.log_likelihoods(bags_of(dense))[:, c]
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_parts_add_up(kind):
    dense, mass, smoothing = case(kind, 5)
    model = instances.start(kind, CLASSES, smoothing)
    whole = model.sums(bags_of(dense), mass)
    first = model.sums(bags_of(dense[:5]), mass[:5])
    second = model.sums(bags_of(dense[5:]), mass[5:])
    assert set(whole) == set(first)
    for name, value in whole.items():
        np.testing.assert_allclose(first[name] + second[name], value, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("two_dimensional", [False, True])
def test_without_data_the_model_is_its_prior(kind, two_dimensional):
    _, _, smoothing = case(kind, 6, two_dimensional=two_dimensional)
    start = instances.start(kind, CLASSES, smoothing)
    nothing = start.sums(bags_of(np.zeros((0, FEATURES))), np.zeros((0, CLASSES)))
    same = start.updated(nothing)
    for name, value in start.arrays().items():
        np.testing.assert_allclose(same.arrays()[name], value, atol=1e-12)
    wide = np.broadcast_to(smoothing.column(), (FEATURES, CLASSES))
    np.testing.assert_allclose(start.means(), wide, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_means_stand_for_the_model_as_a_base(kind):
    """What a warm start relies on: with the means as a heavy base, the model hardly moves."""
    dense, mass, model = fitted(kind, 7)
    heavy = instances.restore(kind, model.arrays(), Smoothing(1e9, model.means()))
    again = heavy.updated(heavy.sums(bags_of(dense), mass))
    np.testing.assert_allclose(again.means(), model.means(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_restored_from_its_arrays(kind):
    dense, _, model = fitted(kind, 8)
    again = instances.restore(kind, model.arrays(), model.smoothing)
    assert again.kind == kind
    np.testing.assert_array_equal(
        again.log_likelihoods(bags_of(dense)), model.log_likelihoods(bags_of(dense))
    )
