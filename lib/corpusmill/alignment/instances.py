r"""Instance models p(x | z = c): multinomial, and the paper's footnote 2, Poisson and Gaussian.

Each is a small immutable object that knows its parameters, the log-likelihood of bags of
features under every class, the sums it needs from a partition, and its own M-step. The sums
are plain arrays, so a merge is an addition.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from corpusmill.alignment.kernels import expected_counts, weighted_rows
from corpusmill.types import Bags, Floats, LogProbs

Sums = dict[str, Floats]


class Smoothing(NamedTuple):
    """The prior of the instance model: pseudo-observations a class.

    Attributes
    ----------
    mass : float
        Pseudo-occurrences spread over the features for each class (multinomial), or
        pseudo-instances (Poisson, Gaussian); positive.
    base : Floats, shape (D,) or (D, C)
        How they are spread (sums to one over D), or the features' mean an instance.
    """

    mass: float
    base: Floats

    def column(self) -> Floats:
        """Give the base with a class axis, shape (D, 1) or (D, C)."""
        return self.base if self.base.ndim == 2 else self.base[:, None]


class InstanceModel(Protocol):
    """What the learner asks of p(x | z)."""

    kind: ClassVar[str]
    smoothing: Smoothing

    def log_likelihoods(self, bags: Bags) -> LogProbs:
        """Give log p(x_m | z_m = c) in nats, shape (instances, C)."""
        ...

    def sums(self, bags: Bags, mass: Floats) -> Sums:
        """Give the expected sufficient statistics under w_m phi_mc, shape (instances, C)."""
        ...

    def updated(self, sums: Sums) -> InstanceModel:
        """Maximise the expected log-likelihood plus `log_prior`."""
        ...

    def log_prior(self) -> float:
        """Give the log-density of the parameters under the smoothing prior, up to a constant."""
        ...

    def arrays(self) -> dict[str, Floats]:
        """Give the parameters, to be saved."""
        ...

    def means(self) -> Floats:
        """Give what `Smoothing.base` would have to be to stand for this model, shape (D, C)."""
        ...


class Multinomial:
    """p(x | c) proportional to prod_d b_cd^x_d (section 4), smoothed by a Dirichlet prior.

    b_cd = (n_cd + mass base_d) / (n_c + mass). The multinomial coefficient, which no
    parameter touches, is left out of the likelihood.

    Parameters
    ----------
    log_b : LogProbs, shape (D, C)
        log b_cd, features first; columns are distributions.
    smoothing : Smoothing
    """

    kind: ClassVar[str] = "multinomial"

    def __init__(self, log_b: LogProbs, smoothing: Smoothing) -> None:
        self.log_b = log_b
        self.smoothing = smoothing

    def log_likelihoods(self, bags: Bags) -> LogProbs:
        """Give sum_d x_md log b_cd."""
        return weighted_rows(bags, self.log_b)

    def sums(self, bags: Bags, mass: Floats) -> Sums:
        """Give n_dc = sum_m w_m phi_mc x_md."""
        return {"counts": expected_counts(bags, mass, len(self.log_b))}

    def updated(self, sums: Sums) -> Multinomial:
        """Normalise the smoothed counts."""
        smoothed = sums["counts"] + self._pseudo_counts()
        return Multinomial(np.log(smoothed) - np.log(smoothed.sum(axis=0)), self.smoothing)

    def log_prior(self) -> float:
        """Give sum_cd mass base_d log b_cd."""
        return float((self._pseudo_counts() * self.log_b).sum())

    def arrays(self) -> dict[str, Floats]:
        """Give log B."""
        return {"log_b": self.log_b}

    def means(self) -> Floats:
        """Give B, its columns distributions."""
        b = np.exp(self.log_b)
        return b / b.sum(axis=0)

    def _pseudo_counts(self) -> Floats:
        return self.smoothing.mass * self.smoothing.column()


class Poisson:
    """Independent counts, x_d ~ Poisson(r_cd), smoothed by a Gamma prior.

    r_cd = (n_cd + mass base_d) / (m_c + mass), m_c the expected instances of class c. The
    factorials, which no parameter touches, are left out.

    Parameters
    ----------
    log_rate : Floats, shape (D, C)
    smoothing : Smoothing
        ``base`` is the corpus' mean count of each feature an instance, positive.
    """

    kind: ClassVar[str] = "poisson"

    def __init__(self, log_rate: Floats, smoothing: Smoothing) -> None:
        self.log_rate = log_rate
        self.smoothing = smoothing

    def log_likelihoods(self, bags: Bags) -> LogProbs:
        """Give sum_d x_md log r_cd - r_cd."""
        return weighted_rows(bags, self.log_rate) - np.exp(self.log_rate).sum(axis=0)

    def sums(self, bags: Bags, mass: Floats) -> Sums:
        """Give n_dc and m_c."""
        counts = expected_counts(bags, mass, len(self.log_rate))
        return {"counts": counts, "instances": mass.sum(axis=0)}

    def updated(self, sums: Sums) -> Poisson:
        """Divide the smoothed counts by the smoothed number of instances."""
        prior = self.smoothing.mass
        rate = sums["counts"] + prior * self.smoothing.column()
        return Poisson(np.log(rate) - np.log(sums["instances"] + prior), self.smoothing)

    def log_prior(self) -> float:
        """Give mass sum_cd base_d log r_cd - r_cd."""
        prior = self.smoothing.column() * self.log_rate - np.exp(self.log_rate)
        return float(self.smoothing.mass * prior.sum())

    def arrays(self) -> dict[str, Floats]:
        """Give log r."""
        return {"log_rate": self.log_rate}

    def means(self) -> Floats:
        """Give the rates."""
        return np.exp(self.log_rate)


class Gaussian:
    """Real features, x_d ~ N(mu_cd, s_cd), diagonal; absent features are 0.

    With k = mass pseudo-instances of mean base_d and variance 1 the posterior mode is
    mu = (sum x + k base) / (m + k), s = (sum (x - mu)^2 + k (base - mu)^2 + k) / (m + k).

    Parameters
    ----------
    mean, variance : Floats, shape (D, C)
    smoothing : Smoothing
        Features should be standardised, since the prior's variance is 1.
    """

    kind: ClassVar[str] = "gaussian"

    def __init__(self, mean: Floats, variance: Floats, smoothing: Smoothing) -> None:
        self.mean = mean
        self.variance = variance
        self.smoothing = smoothing

    def log_likelihoods(self, bags: Bags) -> LogProbs:
        """Give -1/2 sum_d log(2 pi s_cd) + (x_md - mu_cd)^2 / s_cd."""
        absent = np.log(2.0 * np.pi * self.variance) + self.mean**2 / self.variance
        linear = weighted_rows(bags, self.mean / self.variance)
        square = weighted_rows(bags._replace(counts=bags.counts**2), 0.5 / self.variance)
        return linear - square - 0.5 * absent.sum(axis=0)

    def sums(self, bags: Bags, mass: Floats) -> Sums:
        """Give sum w phi x, sum w phi x^2 and m_c."""
        size = len(self.mean)
        squared = bags._replace(counts=bags.counts**2)
        return {
            "counts": expected_counts(bags, mass, size),
            "squares": expected_counts(squared, mass, size),
            "instances": mass.sum(axis=0),
        }

    def updated(self, sums: Sums) -> Gaussian:
        """Set the posterior mode."""
        prior, base = self.smoothing.mass, self.smoothing.column()
        size = sums["instances"] + prior
        mean = (sums["counts"] + prior * base) / size
        spread = sums["squares"] - 2.0 * mean * sums["counts"] + mean**2 * sums["instances"]
        variance = (spread + prior * (base - mean) ** 2 + prior) / size
        return Gaussian(mean, variance, self.smoothing)

    def log_prior(self) -> float:
        """Give -mass/2 sum_cd log s_cd + ((base_d - mu_cd)^2 + 1) / s_cd."""
        distance = (self.smoothing.column() - self.mean) ** 2 + 1.0
        return float(
            -0.5 * self.smoothing.mass * (np.log(self.variance) + distance / self.variance).sum()
        )

    def arrays(self) -> dict[str, Floats]:
        """Give mean and variance."""
        return {"mean": self.mean, "variance": self.variance}

    def means(self) -> Floats:
        """Give the means."""
        return self.mean


def start(kind: str, classes: int, smoothing: Smoothing) -> Multinomial | Poisson | Gaussian:
    """Give the model of no data: every class is the prior.

    Parameters
    ----------
    kind : {"multinomial", "poisson", "gaussian"}
    classes : int
        C.
    smoothing : Smoothing
    """
    table = np.broadcast_to(smoothing.column(), (len(smoothing.base), classes))
    if kind == "multinomial":
        return Multinomial(np.log(table), smoothing)
    if kind == "poisson":
        return Poisson(np.log(table), smoothing)
    return Gaussian(table.copy(), np.ones_like(table), smoothing)


def restore(
    kind: str, arrays: dict[str, Floats], smoothing: Smoothing
) -> Multinomial | Poisson | Gaussian:
    """Rebuild a model from `InstanceModel.arrays`."""
    if kind == "multinomial":
        return Multinomial(arrays["log_b"], smoothing)
    if kind == "poisson":
        return Poisson(arrays["log_rate"], smoothing)
    return Gaussian(arrays["mean"], arrays["variance"], smoothing)
