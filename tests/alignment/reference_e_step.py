"""The E-step of DBA in plain Python: slow, obvious, one coordinate step after the other.

Nothing here is shared with the kernels; special functions are scipy's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp, psi

from corpusmill.alignment.kernels import Inference
from corpusmill.types import Floats


@dataclass
class Pattern:
    """One pattern with what its bound depends on."""

    loglik: Floats
    weights: Floats
    y: Floats
    labelled: bool
    alpha: Floats
    lam: Floats
    rho: float = 0.0

    @property
    def size(self) -> float:
        return float(sum(self.weights))

    def allowed(self) -> list[int]:
        """The classes that instances may take."""
        if self.labelled and math.isinf(self.rho) and any(self.y):
            return [c for c in range(len(self.y)) if self.y[c]]
        return list(range(len(self.alpha)))

    def penalty(self, c: int) -> float:
        finite = self.labelled and not math.isinf(self.rho)
        return self.rho if finite and not self.y[c] else 0.0


def varsigma(xi: float) -> float:
    return 0.125 if abs(xi) < 1e-6 else math.tanh(xi / 2.0) / (4.0 * xi)


def log_sigmoid(x: float) -> float:
    return float(-np.logaddexp(0.0, -x))


def moments(p: Pattern, phi: Floats, c: int) -> tuple[float, float]:
    """E[zbar_c] and E[zbar_c^2], every one of the w_m copies being a z of its own."""
    if p.size == 0.0:
        return 0.0, 0.0
    total = sum(w * row[c] for w, row in zip(p.weights, phi, strict=True))
    spread = sum(w * row[c] * (1.0 - row[c]) for w, row in zip(p.weights, phi, strict=True))
    return total / p.size, (total**2 + spread) / p.size**2


def bound(p: Pattern, phi: Floats, gamma: Floats, xi: Floats, quadratic: bool) -> float:
    """The objective, term by term, for any phi, gamma and xi."""
    classes = range(len(p.alpha))
    log_theta = [psi(gamma[c]) - psi(sum(gamma)) for c in classes]
    prior = gammaln(sum(p.alpha)) - sum(gammaln(a) for a in p.alpha)
    prior += sum((p.alpha[c] - 1.0) * log_theta[c] for c in classes)
    entropy = sum(gammaln(g) for g in gamma) - gammaln(sum(gamma))
    entropy -= sum((gamma[c] - 1.0) * log_theta[c] for c in classes)
    assigned, seen, fined = 0.0, 0.0, 0.0
    for w, row, likely in zip(p.weights, phi, p.loglik, strict=True):
        for c in classes:
            if row[c] > 0.0:
                assigned += w * row[c] * log_theta[c]
                seen += w * row[c] * likely[c]
                entropy -= w * row[c] * math.log(row[c])
                fined += w * row[c] * p.penalty(c)
    return float(prior + assigned + seen + entropy - fined + label_term(p, phi, xi, quadratic))


def label_term(p: Pattern, phi: Floats, xi: Floats, quadratic: bool) -> float:
    value = 0.0
    for c in range(len(p.alpha)) if p.labelled else []:
        mean, square = moments(p, phi, c)
        if quadratic:
            value += (p.y[c] - 0.5) * p.lam[c] * mean + log_sigmoid(xi[c]) - xi[c] / 2.0
            value -= varsigma(xi[c]) * (p.lam[c] ** 2 * square - xi[c] ** 2)
        else:
            s = p.lam[c] * mean
            value += log_sigmoid(s) if p.y[c] else log_sigmoid(-s)
    return value


def best_xi(p: Pattern, phi: Floats, quadratic: bool) -> Floats:
    xi = np.zeros(len(p.alpha))
    for c in range(len(p.alpha)) if p.labelled else []:
        mean, square = moments(p, phi, c)
        xi[c] = abs(p.lam[c]) * math.sqrt(square) if quadratic else -p.lam[c] * mean
    return xi


def best_gamma(p: Pattern, phi: Floats) -> Floats:
    totals = [
        sum(w * row[c] for w, row in zip(p.weights, phi, strict=True)) for c in range(len(p.alpha))
    ]
    return p.alpha + np.array(totals)


def update_phi(p: Pattern, m: int, phi: Floats, gamma: Floats, xi: Floats, quadratic: bool) -> None:
    """Improve phi_m, the others fixed.

    The bound in phi_m, over w: sum_c phi_c (b_c - log phi_c) - q_c (w - 1) phi_c^2, with the
    linear b_c below. For w = 1 the maximiser is softmax(b). Otherwise the square is replaced by
    its tangent at the old phi less (w - 1) max(q) KL(phi | old).
    """
    allowed, w, old = p.allowed(), p.weights[m], phi[m].copy()
    b, q = {}, {}
    for c in allowed:
        others = sum(p.weights[i] * phi[i, c] for i in range(len(phi)) if i != m)
        b[c] = psi(gamma[c]) + p.loglik[m, c] - p.penalty(c)
        q[c] = 0.0
        if p.labelled and quadratic:
            q[c] = varsigma(xi[c]) * (p.lam[c] / p.size) ** 2
            b[c] += (p.y[c] - 0.5) * p.lam[c] / p.size - q[c] * (2.0 * others + 1.0)
        elif p.labelled:  # equation 9
            b[c] += p.lam[c] / (2.0 * p.size) * (2.0 * p.y[c] - 1.0 + math.tanh(xi[c] / 2.0))
    drag = max(0.0, w - 1.0) * max(q.values())
    scores = []
    for c in allowed:
        slope = b[c] - 2.0 * q[c] * (w - 1.0) * old[c]
        near = drag * math.log(max(old[c], 1e-300)) if drag > 0.0 else 0.0
        scores.append((slope + near) / (1.0 + drag))
    phi[m] = 0.0
    phi[m, allowed] = np.exp(np.array(scores) - logsumexp(scores))


Watch = Callable[[str, Floats, Floats, Floats], None]


def infer_pattern(
    p: Pattern, how: Inference, watch: Watch = lambda *_: None, start: Floats | None = None
) -> tuple[Floats, Floats, Floats, int]:
    """Coordinate ascent; ``watch`` sees phi, gamma and xi after every single step."""
    phi = np.zeros((len(p.weights), len(p.alpha)))
    phi[:, p.allowed()] = 1.0 / len(p.allowed())
    phi = phi if start is None else start.copy()
    gamma, xi = best_gamma(p, phi), best_xi(p, phi, how.quadratic)
    rounds = 0
    while rounds < how.max_iter and p.size > 0.0:
        rounds += 1
        xi = best_xi(p, phi, how.quadratic)
        watch("xi", phi, gamma, xi)
        for m in range(len(phi)):
            update_phi(p, m, phi, gamma, xi, how.quadratic)
            watch("phi", phi, gamma, xi)
        before, gamma = gamma, best_gamma(p, phi)
        watch("gamma", phi, gamma, xi)
        if np.abs(gamma - before).sum() < how.tol * p.size:
            break
    return phi, gamma, best_xi(p, phi, how.quadratic), rounds


def log_evidence(p: Pattern) -> float:
    """log p(X, y) by enumeration of all z, theta integrated out; whole weights only."""
    classes = len(p.alpha)
    rows = np.repeat(p.loglik, p.weights.astype(int), axis=0)
    total = sum(p.alpha)

    def joint(z: tuple[int, ...]) -> float:
        counts = np.bincount(np.array(z, int), minlength=classes)
        value = gammaln(total) - gammaln(total + len(z))
        value += sum(gammaln(a + n) - gammaln(a) for a, n in zip(p.alpha, counts, strict=True))
        value += sum(rows[m, c] for m, c in enumerate(z))
        for c in range(classes) if p.labelled else []:
            s = p.lam[c] * counts[c] / max(len(z), 1)
            value += log_sigmoid(s) if p.y[c] else log_sigmoid(-s)
        return float(value)

    return float(logsumexp([joint(z) for z in itertools.product(range(classes), repeat=len(rows))]))


def each(patterns, loglik, alpha, lam, how) -> Iterator[tuple[slice, Pattern]]:
    """Cut flat arrays into `Pattern` objects with the instances' places."""
    for n in range(len(patterns.offsets) - 1):
        part = slice(int(patterns.offsets[n]), int(patterns.offsets[n + 1]))
        yield part, Pattern(
            loglik[part], patterns.weights[part], patterns.labels[n], bool(patterns.labelled[n]),
            alpha, lam, how.label_sparsity,
        )  # fmt: skip
