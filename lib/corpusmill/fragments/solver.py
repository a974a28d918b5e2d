r"""The dual of a support vector machine, with rows of the kernel computed when they are asked for.

With signs y_t and beta_t = y_t alpha_t the dual of C-SVC is

    max_beta  sum_t y_t beta_t - 1/2 sum_st beta_s beta_t K(s, t),
    sum_t beta_t = 0,   0 <= y_t beta_t <= C_t,

and f_t = sum_s beta_s K(s, t) - y_t the negative gradient. Sequential minimal optimisation raises
one beta_i and lowers one beta_j, chosen by second-order information (Fan, Chen and Lin 2005,
Working set selection 2), until max f over those that can fall and min f over those that can rise
differ by less than the tolerance.

Examples that are the same, tree, vector and sign, are to be given once with the sum of their C:
the optimum is the same, as alpha of the copies may be shared out in any way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import Floats

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_DONE, _MISSING, _LIMIT = 0, 1, 2
_TINY = 1e-12

Row = Callable[[int], Floats]
"""Gives K(i, .) of all examples."""


class Solution(NamedTuple):
    """A trained machine f(x) = sum_t beta_t K(x_t, x) + bias.

    Attributes
    ----------
    beta : Floats, shape (examples,)
        y_t alpha_t; 0 for examples that are no support vectors.
    bias : float
    iterations : int
        Pairs that were optimised.
    rows : int
        Rows of the kernel that were computed.
    gap : float
        How far the worst pair is from optimality; above the tolerance only when the limit
        of iterations was reached.
    """

    beta: Floats
    bias: float
    iterations: int
    rows: int
    gap: float


def solve(
    row: Row,
    diagonal: Floats,
    signs: Floats,
    bounds: Floats,
    tolerance: float = 1e-3,
    cache_bytes: int = 1 << 28,
    max_iter: int = 10_000_000,
) -> Solution:
    """Train a support vector machine.

    Parameters
    ----------
    row : callable
        ``row(i)`` gives K(i, .), shape (examples,).
    diagonal : Floats, shape (examples,)
        K(i, i).
    signs : Floats, shape (examples,)
        +1 or -1.
    bounds : Floats, shape (examples,)
        C_t > 0: the cost of the example times how often it occurs.
    tolerance : float
        Of the optimality conditions.
    cache_bytes : int
        Rows kept, as float32; at least two are.
    max_iter : int
        A limit that ends a run that does not converge (``Solution.gap`` tells).

    Returns
    -------
    Solution
        With one sign only, beta = 0 and the bias is that sign.

    Notes
    -----
    O(examples) an iteration, and one row of the kernel for each example that ever enters the
    working set and is not in the cache.
    """
    count = len(signs)
    if not count or np.all(signs == signs[0]):
        bias = float(signs[0]) if count else 0.0
        return Solution(np.zeros(count), bias, 0, 0, 0.0)
    capacity = int(min(count, max(2, cache_bytes // (4 * count))))
    # Not np.zeros: pages are taken from the system only as rows come in.
    cache = np.empty((capacity, count), np.float32)
    slot_of, example_of = np.full(count, -1, np.int64), np.full(capacity, -1, np.int64)
    last_use = np.zeros(capacity, np.int64)
    beta, f = np.zeros(count), -signs.astype(np.float64)
    lower, upper = np.minimum(signs * bounds, 0.0), np.maximum(signs * bounds, 0.0)
    iterations = rows = 0
    while True:
        status, wanted, iterations, gap = _optimise(
            beta, f, lower, upper, diagonal, cache, slot_of, last_use, iterations,
            tolerance, max_iter,
        )  # fmt: skip
        if status != _MISSING:
            return Solution(beta, _bias(beta, f, lower, upper), iterations, rows, gap)
        slot = rows if rows < capacity else int(np.argmin(last_use))
        if example_of[slot] >= 0:
            slot_of[example_of[slot]] = -1
        cache[slot] = row(wanted)
        slot_of[wanted], example_of[slot] = slot, wanted
        last_use[slot] = iterations + 1
        rows += 1


def _bias(beta: Floats, f: Floats, lower: Floats, upper: Floats) -> float:
    """Give the bias that puts free support vectors on the margin, or the middle of what may be."""
    # Rounding leaves a beta a hair away from its bound; it is no more free than the others.
    hair = 1e-9 * (upper - lower)
    can_fall, can_rise = beta > lower + hair, beta < upper - hair
    free = can_fall & can_rise
    if np.any(free):
        return float(-np.mean(f[free]))
    return float(-(np.min(f[can_rise]) + np.max(f[can_fall])) / 2.0)


@_kernel
def _first_up(beta, f, upper):  # type: ignore[no-untyped-def]
    best, least = -1, math.inf
    for t in range(len(f)):
        if f[t] < least and beta[t] < upper[t]:
            best, least = t, f[t]
    return best


@_kernel
def _second_down(beta, f, lower, diagonal, row, i):  # type: ignore[no-untyped-def]
    """Give the j whose pair with i gains most, and the largest f that can fall."""
    best, most, worst = -1, -math.inf, -math.inf
    for t in range(len(f)):
        if beta[t] > lower[t]:
            worst = max(worst, f[t])
            slope = f[t] - f[i]
            if slope > 0.0:
                bend = max(diagonal[i] + diagonal[t] - 2.0 * row[t], _TINY)
                gain = slope * slope / bend
                if gain > most:
                    best, most = t, gain
    return best, worst


@_kernel
def _optimise(  # type: ignore[no-untyped-def]
    beta, f, lower, upper, diagonal, cache, slot_of, last_use, iterations, tolerance, max_iter
):  # fmt: skip
    """Optimise pairs until done, until a row is missing, or until the limit."""
    i = _first_up(beta, f, upper)
    while True:
        if slot_of[i] < 0:
            return _MISSING, i, iterations, math.inf
        row_i = cache[slot_of[i]]
        last_use[slot_of[i]] = iterations + 1
        j, worst = _second_down(beta, f, lower, diagonal, row_i, i)
        gap = worst - f[i]
        if gap < tolerance or j < 0:
            return _DONE, -1, iterations, gap
        if iterations >= max_iter:
            return _LIMIT, -1, iterations, gap
        if slot_of[j] < 0:
            return _MISSING, j, iterations, gap
        row_j = cache[slot_of[j]]
        last_use[slot_of[j]] = iterations + 1
        bend = max(diagonal[i] + diagonal[j] - 2.0 * row_i[j], _TINY)
        up, down = upper[i] - beta[i], beta[j] - lower[j]
        step = min((f[j] - f[i]) / bend, up, down)
        beta[i] = upper[i] if step == up else beta[i] + step
        beta[j] = lower[j] if step == down else beta[j] - step
        i, least = -1, math.inf
        for t in range(len(f)):
            f[t] += step * (row_i[t] - row_j[t])
            if f[t] < least and beta[t] < upper[t]:
                i, least = t, f[t]
        iterations += 1
