r"""Variational EM for DBA on sums of partitions: the loop knows arrays, not where they come from.

An iteration is: sum `e_step_sums` over the partitions, then `m_step` on the sums. Every sum is
an array of fixed size, so the result depends on the partitioning only by rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from corpusmill.alignment import instances
from corpusmill.alignment.instances import InstanceModel, Multinomial, Smoothing, Sums
from corpusmill.alignment.kernels import (
    Inference,
    infer,
    label_statistics,
    update_alpha,
    update_lambda,
)
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.types import AnyArray, Floats, Patterns


class Parameters(NamedTuple):
    """The parameters of DBA.

    Attributes
    ----------
    alpha : Floats, shape (C,)
        a, the Dirichlet prior of theta.
    lam : Floats, shape (C,)
        lambda, the utility of assigning a pattern to a class.
    instances : InstanceModel
        p(x | z); its B for the multinomial.
    """

    alpha: Floats
    lam: Floats
    instances: InstanceModel


class Iteration(NamedTuple):
    """What is logged of an EM iteration.

    Attributes
    ----------
    number : int
        1 for the first.
    bound : float
        The evidence lower bound of the parameters that the iteration began with, in nats
        over the whole corpus, plus the log-densities of the priors of B and lambda.
    rounds : float
        Mean rounds of the E-step a pattern.
    """

    number: int
    bound: float
    rounds: float


def inference(settings: LearnerSettings) -> Inference:
    """Give the E-step's options."""
    return Inference(
        quadratic=settings.bound == "quadratic",
        label_sparsity=settings.label_sparsity,
        max_iter=settings.inner_max_iter,
        tol=settings.inner_tol,
    )


def start_sums(patterns: Patterns, classes: int, model: InstanceModel) -> Sums:
    """Give the sums of the start: every instance spread evenly over its pattern's label set.

    Patterns without known labels, or with none, are spread over all classes.
    """
    allowed = patterns.labels & patterns.labelled[:, None]
    allowed = np.where(allowed.any(axis=1, keepdims=True), allowed, True)
    share = allowed / allowed.sum(axis=1, keepdims=True)
    sizes = np.diff(patterns.offsets)
    mass = np.repeat(share, sizes, axis=0) * patterns.weights[:, None]
    sums = model.sums(patterns.bags, mass)
    sums["instances"] = mass.sum(axis=0)
    return sums


def e_step_sums(patterns: Patterns, parameters: Parameters, how: Inference) -> Sums:
    """Run the E-step on a partition and give what the M-step needs of it.

    Returns
    -------
    dict of str to Floats
        The instance model's sums, and ``log_theta`` (C,) sum_n E[log theta_nc],
        ``label_linear`` and ``label_quadratic`` (C,) of `label_statistics`, and
        ``totals`` (3,): patterns, bound, rounds.
    """
    loglik = parameters.instances.log_likelihoods(patterns.bags)
    posterior = infer(patterns, loglik, parameters.alpha, parameters.lam, how)
    sums = parameters.instances.sums(patterns.bags, posterior.phi * patterns.weights[:, None])
    linear, quadratic = label_statistics(patterns.labels, patterns.labelled, posterior)
    totals = [len(posterior.bound), posterior.bound.sum(), posterior.iterations.sum()]
    return {
        **sums,
        "log_theta": posterior.log_theta().sum(axis=0),
        "label_linear": linear,
        "label_quadratic": quadratic,
        "totals": np.array(totals, dtype=np.float64),
    }


def m_step(sums: Sums, parameters: Parameters, settings: LearnerSettings) -> Parameters:
    """Maximise the bound over a (Newton), lambda and B, which do not meet in it."""
    alpha = parameters.alpha
    if settings.learn_alpha:
        alpha = update_alpha(alpha, sums["log_theta"], float(sums["totals"][0]))
    lam = update_lambda(
        sums["label_linear"],
        sums["label_quadratic"],
        settings.lambda_mean,
        settings.lambda_precision,
    )
    return Parameters(alpha, lam, parameters.instances.updated(sums))


def log_prior(parameters: Parameters, settings: LearnerSettings) -> float:
    """Give the log-densities of B and lambda under their priors, up to constants."""
    distance = ((parameters.lam - settings.lambda_mean) ** 2).sum()
    return parameters.instances.log_prior() - 0.5 * settings.lambda_precision * float(distance)


def smoothing_prior(
    feature_counts: Floats, instances_total: float, settings: LearnerSettings
) -> Smoothing:
    """Give the instance model's prior from the corpus' counts of each feature.

    Parameters
    ----------
    feature_counts : Floats, shape (D,)
        sum of w_m x_md over the corpus.
    instances_total : float
        sum of w_m.
    settings : LearnerSettings
        ``smoothing`` is the mass, spread by e / D + (1 - e) (n_d + 1) / (n + D) with
        e = ``smoothing_evenness``. The Gaussian's base is the corpus mean.
    """
    features = len(feature_counts)
    if settings.instance_model == "gaussian":
        return Smoothing(settings.smoothing, feature_counts / (instances_total or 1.0))
    even = settings.smoothing_evenness
    total = feature_counts.sum() + features
    base = even / features + (1.0 - even) * (feature_counts + 1.0) / total
    scale = 1.0 if settings.instance_model == "multinomial" else total / (instances_total + 1.0)
    return Smoothing(settings.smoothing, base * scale)


def start_parameters(sums: Sums, settings: LearnerSettings) -> Parameters:
    """Give the first parameters from the summed `start_sums`."""
    smoothing = smoothing_prior(
        sums["counts"].sum(axis=1), float(sums["instances"].sum()), settings
    )
    classes = sums["counts"].shape[1]
    model = instances.start(settings.instance_model, classes, smoothing).updated(sums)
    return Parameters(
        np.full(classes, settings.alpha), np.full(classes, settings.lambda_mean), model
    )


def blank_instances(settings: LearnerSettings, classes: int, features: int) -> InstanceModel:
    """Give an instance model that only knows its shape, for `start_sums`."""
    smoothing = Smoothing(1.0, np.full(features, 1.0 / max(features, 1)))
    return instances.start(settings.instance_model, classes, smoothing)


def warm_parameters(
    old: Parameters, rows: AnyArray, columns: AnyArray, start: Parameters, mass: float
) -> Parameters:
    """Begin where an older model ended, and lean on it.

    Parameters
    ----------
    old : Parameters
        Of the older model.
    rows, columns : int64, shape (D,) and (C,)
        Where each new feature and class stands in the older model; -1 where it is new.
    start : Parameters
        From the new data: kept where a feature or class is new.
    mass : float
        Pseudo-occurrences a class that the older model's parameters are worth in every
        M-step, beside the smoothing.

    Returns
    -------
    start : Parameters
        Where EM begins.
    """
    known = columns >= 0
    alpha, lam = start.alpha.copy(), start.lam.copy()
    alpha[known], lam[known] = old.alpha[columns[known]], old.lam[columns[known]]
    both = np.ix_(rows >= 0, known)
    there = np.ix_(rows[rows >= 0], columns[known])
    arrays = {name: value.copy() for name, value in start.instances.arrays().items()}
    for name, value in old.instances.arrays().items():
        arrays[name][both] = value[there]
    if start.instances.kind == Multinomial.kind:
        # Old and new words of a class come from two distributions.
        arrays["log_b"] -= logsumexp(arrays["log_b"], axis=0)
    smoothing = start.instances.smoothing
    model = instances.restore(start.instances.kind, arrays, smoothing)
    if mass > 0.0:
        total = smoothing.mass + mass
        base = (smoothing.mass * smoothing.column() + mass * model.means()) / total
        model = instances.restore(model.kind, arrays, Smoothing(total, base))
    return Parameters(alpha, lam, model)


SumOverPartitions = Callable[[Callable[[Patterns], Sums]], Sums]
OnIteration = Callable[[Iteration, Parameters], None]


def sum_over(parts: Sequence[Patterns]) -> SumOverPartitions:
    """Sum over partitions that lie in memory, in their order."""

    def run(kernel: Callable[[Patterns], Sums]) -> Sums:
        total: Sums = {}
        for part in parts:
            for name, value in kernel(part).items():
                total[name] = total[name] + value if name in total else value
        return total

    return run


def expectation_maximisation(
    sum_partitions: SumOverPartitions,
    parameters: Parameters,
    settings: LearnerSettings,
    on_iteration: OnIteration = lambda *_: None,
    done: Sequence[Iteration] = (),
) -> tuple[Parameters, list[Iteration]]:
    """Alternate E-steps and M-steps until the bound stops rising.

    Parameters
    ----------
    sum_partitions : callable
        Sums a kernel's results over the partitions.
    parameters : Parameters
        Where to begin.
    settings : LearnerSettings
        ``max_iter`` and ``tol`` (relative gain of the bound) end the loop.
    on_iteration : callable
        Told each iteration and its new parameters: progress, checkpoints, tracking.
    done : sequence of Iteration
        The iterations behind `parameters` where a checkpoint is resumed.

    Returns
    -------
    Parameters, list of Iteration
        The last parameters and the whole history.

    Notes
    -----
    No state of a pattern is kept: each E-step starts from the uniform phi. Within it every
    step, and with its posterior every M-step, raises the bound (``quadratic``); between two
    iterations it can fall a little where a pattern's bound has several local maxima.
    """
    how = inference(settings)
    history = list(done)
    while len(history) < settings.max_iter and not _converged(history, settings.tol):
        current = parameters
        sums = sum_partitions(partial(e_step_sums, parameters=current, how=how))
        count, bound, rounds = sums["totals"]
        value = float(bound) + log_prior(current, settings)
        history.append(Iteration(len(history) + 1, value, float(rounds / max(count, 1.0))))
        parameters = m_step(sums, current, settings)
        on_iteration(history[-1], parameters)
    return parameters, history


def _converged(history: Sequence[Iteration], tol: float) -> bool:
    if len(history) < 2:
        return False
    before, now = history[-2].bound, history[-1].bound
    return abs(now - before) <= tol * abs(before)
