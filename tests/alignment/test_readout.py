"""The read-out against scikit-learn, its own bound, and itself in parts."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from corpusmill.alignment import readout as subject


def draw(seed: int, count: int = 200, classes: int = 3):
    rng = np.random.default_rng(seed)
    mean = rng.dirichlet(np.full(classes, 0.3), size=count)
    scores = mean @ rng.normal(0.0, 6.0, size=(classes, classes)).T - 1.0
    return mean, rng.random(scores.shape) < 1.0 / (1.0 + np.exp(-scores))


def fit(mean, labels, precision, **how):
    return subject.fit(
        lambda at: subject.step_sums(mean, labels, at), labels.shape[1], precision, **how
    )


@pytest.mark.parametrize("seed", range(3))
def test_it_is_logistic_regression_of_each_class_on_all_shares(seed):
    mean, labels = draw(seed)
    found = fit(mean, labels, precision=0.5, max_iter=2_000, tol=1e-12)
    for c in range(3):
        reference = LogisticRegression(C=2.0, tol=1e-10, max_iter=10_000).fit(mean, labels[:, c])
        expected = reference.predict_proba(mean)[:, 1]
        np.testing.assert_allclose(found.probabilities(mean)[:, c], expected, atol=1e-3)


def test_no_step_lowers_the_penalised_likelihood():
    mean, labels = draw(5)
    now = subject.ReadOut(np.random.default_rng(0).normal(0.0, 3.0, size=(3, 4)))

    def objective(at):
        p = at.probabilities(mean)
        likelihood = np.log(np.where(labels, p, 1.0 - p)).sum()
        return likelihood - 0.1 * (at.weights[:, :-1] ** 2).sum()

    values = [objective(now)]
    for _ in range(10):
        now = subject.step(subject.step_sums(mean, labels, now), precision=0.2)
        values.append(objective(now))
    assert (np.diff(values) > -1e-6).all()
    assert values[-1] > values[0] + 1.0


def test_gradient_and_hessian_are_those_of_the_penalised_likelihood():
    mean, labels = draw(9, count=40)
    at = np.random.default_rng(1).normal(size=(3, 4))
    sums = subject.step_sums(mean, labels, subject.ReadOut(at))
    h = 1e-5
    for c in range(3):
        for j in range(4):
            up, down = at.copy(), at.copy()
            up[c, j] += h
            down[c, j] -= h
            above, below = (
                subject.step_sums(mean, labels, subject.ReadOut(near)) for near in (up, down)
            )
            slope = (above["log_likelihood"] - below["log_likelihood"]).sum() / (2 * h)
            assert slope == pytest.approx(sums["gradient"][c, j], abs=1e-6)
            bend = (above["gradient"][c] - below["gradient"][c]) / (2 * h)
            np.testing.assert_allclose(bend, -sums["hessian"][c, j], atol=1e-6)


def test_few_passes_are_enough():
    mean, labels = draw(10)
    passes = []

    def counted(at):
        passes.append(at)
        return subject.step_sums(mean, labels, at)

    found = subject.fit(counted, 3, precision=0.1)
    assert len(passes) < 20
    slow = subject.ReadOut(np.zeros((3, 4)))
    for _ in range(3_000):
        slow = subject.step(subject.step_sums(mean, labels, slow), precision=0.1)
    np.testing.assert_allclose(found.probabilities(mean), slow.probabilities(mean), atol=1e-3)


def test_sums_of_parts_add_up():
    mean, labels = draw(6)
    at = subject.ReadOut(np.random.default_rng(0).normal(size=(3, 4)))
    whole = subject.step_sums(mean, labels, at)
    parts = [
        subject.step_sums(mean[rows], labels[rows], at)
        for rows in (np.s_[:0], np.s_[:7], np.s_[7:])
    ]
    for name, value in whole.items():
        np.testing.assert_allclose(sum(part[name] for part in parts), value)


def test_classes_that_all_patterns_have_or_none_stay_finite():
    mean, labels = draw(7)
    labels[:, 0], labels[:, 1] = True, False
    p = fit(mean, labels, precision=0.1).probabilities(mean)
    assert (p[:, 0] > 0.95).all()
    assert (p[:, 1] < 0.05).all()
    assert np.isfinite(p).all()


def test_the_diagonal_is_the_papers_form():
    mean, _ = draw(8)
    lam = np.array([10.0, 3.0, -2.0])
    paper = subject.ReadOut(np.column_stack([np.diag(lam), np.zeros(3)]))
    np.testing.assert_allclose(paper.probabilities(mean), 1.0 / (1.0 + np.exp(-lam * mean)))
