"""Variational EM: sums, ascent of every step, recovery, partitions, warm start, resume."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import psi

from corpusmill.alignment import instances, kernels, learning
from corpusmill.alignment.instances import Smoothing
from corpusmill.alignment.learning import Parameters
from corpusmill.alignment.settings import LearnerSettings
from tests.alignment import reference_e_step as slow
from tests.alignment.generate import dense_of, draw, split

ALPHA, LAM = np.array([0.3, 0.8, 0.5]), np.array([6.0, 4.0, 8.0])


def corpus(seed, kind="multinomial", patterns=40, instances_each=4, features=8, length=6):
    """Draw from the model; some weights and a few unlabelled patterns."""
    rng = np.random.default_rng(seed)
    if kind == "multinomial":
        table = rng.dirichlet(np.full(features, 0.5), 3).T
    elif kind == "poisson":
        table = rng.gamma(1.0, size=(features, 3))
    else:
        table = rng.normal(size=(features, 3))
    return draw(rng, ALPHA, LAM, kind, table, patterns, instances_each, length)


def untidy(seed, patterns=12):
    """A corpus with weights, unlabelled patterns and empty label sets."""
    rng = np.random.default_rng(seed)
    found = corpus(seed, patterns=patterns).patterns
    return found._replace(
        weights=rng.integers(1, 5, len(found.weights)).astype(float),
        labels=found.labels & (rng.random((patterns, 1)) < 0.8),
        labelled=rng.random(patterns) < 0.8,
    )


def fit(patterns, conf, parts=1, **options):
    pieces = learning.sum_over(split(patterns, parts))
    features = int(patterns.bags.ids.max()) + 1
    blank = learning.blank_instances(conf, 3, features)
    sums = pieces(partial(learning.start_sums, classes=3, model=blank))
    start = learning.start_parameters(sums, conf)
    return learning.expectation_maximisation(pieces, start, conf, **options)


def arrays_of(parameters):
    return {"alpha": parameters.alpha, "lam": parameters.lam, **parameters.instances.arrays()}


# The start


def test_start_spreads_instances_over_their_label_set():
    patterns = untidy(1)
    model = learning.blank_instances(LearnerSettings(), 3, 8)
    sums = learning.start_sums(patterns, 3, model)
    counts, mass = np.zeros((8, 3)), np.zeros(3)
    dense = dense_of(patterns.bags, 8)
    for n in range(len(patterns.labels)):
        known = patterns.labels[n] if patterns.labelled[n] else np.zeros(3, bool)
        allowed = np.flatnonzero(known) if known.any() else np.arange(3)
        for m in range(patterns.offsets[n], patterns.offsets[n + 1]):
            for c in allowed:
                mass[c] += patterns.weights[m] / len(allowed)
                counts[:, c] += patterns.weights[m] * dense[m] / len(allowed)
    np.testing.assert_allclose(sums["counts"], counts)
    np.testing.assert_allclose(sums["instances"], mass)


@pytest.mark.parametrize("evenness", [0.0, 0.3, 1.0])
def test_smoothing_lies_between_even_and_corpus(evenness):
    counts = np.array([5.0, 0.0, 15.0])
    conf = LearnerSettings(smoothing=7.0, smoothing_evenness=evenness)
    found = learning.smoothing_prior(counts, 4.0, conf)
    assert found.mass == 7.0
    np.testing.assert_allclose(found.base, evenness / 3 + (1 - evenness) * (counts + 1) / 23)
    assert found.base.sum() == pytest.approx(1.0)
    poisson = conf.model_copy(update={"instance_model": "poisson"})
    rates = learning.smoothing_prior(counts, 4.0, poisson).base
    np.testing.assert_allclose(rates, found.base * 23 / 5)
    gaussian = conf.model_copy(update={"instance_model": "gaussian"})
    np.testing.assert_allclose(learning.smoothing_prior(counts, 4.0, gaussian).base, counts / 4)


def test_start_parameters_are_the_settings():
    conf = LearnerSettings(alpha=0.7, lambda_mean=3.0, max_iter=0)
    parameters, history = fit(untidy(2), conf)
    assert history == []
    np.testing.assert_array_equal(parameters.alpha, np.full(3, 0.7))
    np.testing.assert_array_equal(parameters.lam, np.full(3, 3.0))
    np.testing.assert_allclose(np.exp(parameters.instances.arrays()["log_b"]).sum(axis=0), 1.0)


# An iteration


@pytest.mark.parametrize("bound", ["quadratic", "tangent"])
def test_e_step_sums_are_the_references(bound):
    patterns, conf = untidy(3), LearnerSettings(bound=bound, label_sparsity=1.0)
    parameters, _ = fit(patterns, conf.model_copy(update={"max_iter": 2}))
    how = learning.inference(conf)
    sums = learning.e_step_sums(patterns, parameters, how)
    loglik = parameters.instances.log_likelihoods(patterns.bags)
    dense = dense_of(patterns.bags, 8)
    expected = {name: np.zeros_like(value) for name, value in sums.items()}
    for part, p in slow.each(patterns, loglik, parameters.alpha, parameters.lam, how):
        phi, gamma, xi, rounds = slow.infer_pattern(p, how)
        expected["counts"] += dense[part].T @ (phi * p.weights[:, None])
        expected["log_theta"] += psi(gamma) - psi(gamma.sum())
        expected["totals"] += [1, slow.bound(p, phi, gamma, xi, how.quadratic), rounds]
        for c in range(3) if p.labelled else []:
            mean, square = slow.moments(p, phi, c)
            expected["label_linear"][c] += (p.y[c] - 0.5) * mean
            square = square if how.quadratic else mean**2
            expected["label_quadratic"][c] += slow.varsigma(xi[c]) * square
    assert set(sums) == set(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(sums[name], value, rtol=1e-8, atol=1e-9, err_msg=name)


def test_an_empty_partition_is_the_neutral_element():
    patterns, conf = untidy(4), LearnerSettings()
    parameters, _ = fit(patterns, conf.model_copy(update={"max_iter": 1}))
    how = learning.inference(conf)
    empty = split(patterns, 1)[0]
    empty = split(empty, 100)[0]
    assert len(empty.labels) == 0
    nothing = learning.e_step_sums(empty, parameters, how)
    whole = learning.e_step_sums(patterns, parameters, how)
    assert {k: v.shape for k, v in nothing.items()} == {k: v.shape for k, v in whole.items()}
    assert not any(value.any() for value in nothing.values())
    start = learning.start_sums(empty, 3, parameters.instances)
    assert not any(value.any() for value in start.values())


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.0, 1.5, np.inf]),
    st.sampled_from(["multinomial", "poisson", "gaussian"]),
)
def test_every_step_of_em_raises_bound_and_prior(seed, rho, kind):
    """Watches xi, each phi_m, gamma, a, B and lambda in turn over several iterations.

    Unlike the kernel, which keeps no state, the E-step goes on from the last posterior.
    """
    patterns = untidy(seed, patterns=5)
    conf = LearnerSettings(
        instance_model=kind, label_sparsity=rho, smoothing=0.5, lambda_mean=2.0, alpha=0.4
    )
    parameters, _ = fit(patterns, conf.model_copy(update={"max_iter": 0}))
    how = learning.inference(conf)._replace(max_iter=2, tol=0.0)
    state: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
    seen = [-np.inf]

    def check(step, current):
        loglik = current.instances.log_likelihoods(patterns.bags)
        cut = slow.each(patterns, loglik, current.alpha, current.lam, how)
        value = sum(slow.bound(p, *state[n], True) for n, (_, p) in enumerate(cut))
        value += learning.log_prior(current, conf)
        assert value >= seen[-1] - 1e-9 * (1.0 + abs(value)), step
        seen.append(value)

    for _ in range(3):
        loglik = parameters.instances.log_likelihoods(patterns.bags)
        cut = list(slow.each(patterns, loglik, parameters.alpha, parameters.lam, how))
        for n, (_, p) in enumerate(cut):

            def watch(step, phi, gamma, xi, n=n, current=parameters):
                state[n] = (phi.copy(), gamma, xi)
                if len(state) == len(patterns.labels):
                    check(step, current)

            before = state[n][0] if n in state else None
            phi, gamma, xi, _ = slow.infer_pattern(p, how, watch, before)
            state[n] = (phi, gamma, xi)
        check("best xi", parameters)
        sums = learning_sums(patterns, parameters, cut, state)
        new = learning.m_step(sums, parameters, conf)
        for field in ("alpha", "instances", "lam"):
            parameters = parameters._replace(**{field: getattr(new, field)})
            check(field, parameters)
    assert len(seen) > 20


def learning_sums(patterns, parameters, cut, state):
    """The M-step's sums of any posterior."""
    phi = np.concatenate([state[n][0] for n in range(len(cut))])
    gamma, xi = (np.array([state[n][i] for n in range(len(cut))]) for i in (1, 2))
    pairs = [[slow.moments(p, state[n][0], c) for c in range(3)] for n, (_, p) in enumerate(cut)]
    mean, square = np.moveaxis(np.array(pairs), 2, 0)
    posterior = kernels.Posterior(phi, gamma, xi, mean, square, gamma[:, 0], gamma[:, 0])
    linear, curved = kernels.label_statistics(patterns.labels, patterns.labelled, posterior)
    mass = phi * patterns.weights[:, None]
    return {
        **parameters.instances.sums(patterns.bags, mass),
        "log_theta": posterior.log_theta().sum(axis=0),
        "label_linear": linear,
        "label_quadratic": curved,
        "totals": np.array([len(cut), 0.0, 0.0]),
    }


def test_alpha_may_be_kept():
    parameters, _ = fit(untidy(5), LearnerSettings(alpha=0.3, learn_alpha=False, max_iter=3))
    np.testing.assert_array_equal(parameters.alpha, np.full(3, 0.3))


# The loop


@pytest.mark.parametrize("parts", [3, 7, 60])
@pytest.mark.parametrize("kind", ["multinomial", "poisson", "gaussian"])
def test_partitions_do_not_matter(kind, parts):
    patterns = corpus(6, kind).patterns
    conf = LearnerSettings(instance_model=kind, max_iter=8, tol=0.0, lambda_precision=0.1)
    one, history_of_one = fit(patterns, conf)
    many, history = fit(patterns, conf, parts)
    for name, value in arrays_of(one).items():
        np.testing.assert_allclose(arrays_of(many)[name], value, rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(
        [item.bound for item in history], [item.bound for item in history_of_one], rtol=1e-10
    )
    assert [item.rounds for item in history] == [item.rounds for item in history_of_one]


RECOVERY = {"multinomial": 0.01, "poisson": 0.2, "gaussian": 0.15}


@pytest.mark.parametrize("kind", RECOVERY)
def test_known_parameters_are_recovered(kind):
    drawn = corpus(0, kind, patterns=600, instances_each=10, features=30, length=20)
    conf = LearnerSettings(
        instance_model=kind, max_iter=100, tol=1e-8, smoothing=0.1,
        lambda_mean=5.0, lambda_precision=1e-6, inner_tol=1e-6,
    )  # fmt: skip
    found, history = fit(drawn.patterns, conf, parts=3)
    np.testing.assert_allclose(found.alpha, drawn.alpha, rtol=0.25)
    np.testing.assert_allclose(found.lam, drawn.lam, rtol=0.3)
    np.testing.assert_allclose(found.instances.means(), drawn.table, atol=RECOVERY[kind])
    loglik = found.instances.log_likelihoods(drawn.patterns.bags)
    how = learning.inference(conf)
    posterior = kernels.infer(drawn.patterns, loglik, found.alpha, found.lam, how)
    assert (posterior.phi.argmax(axis=1) == drawn.instance_classes).mean() > 0.99
    assert (np.diff([item.bound for item in history]) > 0.0).all()


def test_resumed_run_ends_with_the_same_bits():
    patterns = corpus(7).patterns
    conf = LearnerSettings(max_iter=9, tol=0.0)
    saved = []
    whole, history = fit(patterns, conf, on_iteration=lambda i, p: saved.append((i, p)))
    assert [iteration for iteration, _ in saved] == history
    assert [iteration.number for iteration in history] == list(range(1, 10))
    pieces = learning.sum_over([patterns])
    done = history[:4]
    again, longer = learning.expectation_maximisation(pieces, saved[3][1], conf, done=done)
    assert longer == history
    for name, value in arrays_of(whole).items():
        np.testing.assert_array_equal(arrays_of(again)[name], value)
    same, nothing = learning.expectation_maximisation(pieces, whole, conf, done=history)
    assert same is whole
    assert nothing == history


def test_the_loop_ends_when_the_bound_stands_still():
    patterns = corpus(8).patterns
    _, history = fit(patterns, LearnerSettings(max_iter=200, tol=1e-4))
    bounds = np.array([item.bound for item in history])
    gains = np.abs(np.diff(bounds)) / np.abs(bounds[:-1])
    assert len(history) < 200
    assert gains[-1] <= 1e-4
    assert (gains[:-1] > 1e-4).all()


# Warm start


def parameters_of(alpha, lam, table, mass=2.0):
    table = np.array(table, float)
    base = np.full(len(table), 1.0 / len(table))
    model = instances.Multinomial(np.log(table / table.sum(axis=0)), Smoothing(mass, base))
    return Parameters(np.array(alpha), np.array(lam), model)


def test_warm_start_takes_what_is_known_and_keeps_what_is_new():
    old = parameters_of([1.0, 2.0], [5.0, 6.0], [[6, 1], [1, 6], [3, 3]])
    new = parameters_of([0.1] * 3, [9.0] * 3, np.ones((3, 3)))
    rows, columns = np.array([2, -1, 0]), np.array([1, -1, 0])
    found = learning.warm_parameters(old, rows, columns, new, mass=0.0)
    np.testing.assert_array_equal(found.alpha, [2.0, 0.1, 1.0])
    np.testing.assert_array_equal(found.lam, [6.0, 9.0, 5.0])
    log_b = found.instances.arrays()["log_b"]
    before, start = old.instances.arrays()["log_b"], new.instances.arrays()["log_b"]
    expected = start.copy()
    expected[0, 0], expected[0, 2] = before[2, 1], before[2, 0]
    expected[2, 0], expected[2, 2] = before[0, 1], before[0, 0]
    expected -= np.log(np.exp(expected).sum(axis=0))
    np.testing.assert_allclose(log_b, expected, atol=1e-12)
    np.testing.assert_array_equal(new.instances.arrays()["log_b"], start)
    assert found.instances.smoothing is new.instances.smoothing


def test_warm_start_mass_is_pseudo_counts_of_the_old_model():
    old = parameters_of([1.0, 2.0], [5.0, 6.0], [[6, 1], [1, 6], [3, 3]])
    new = parameters_of([0.1] * 2, [9.0] * 2, np.ones((3, 2)))
    keep = (np.arange(3), np.arange(2))
    found = learning.warm_parameters(old, *keep, new, mass=30.0)
    counts = np.array([[4.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    after = np.exp(found.instances.updated({"counts": counts}).arrays()["log_b"])
    b = np.exp(old.instances.arrays()["log_b"])
    expected = counts + 30.0 * b + 2.0 / 3
    np.testing.assert_allclose(after, expected / expected.sum(axis=0))
