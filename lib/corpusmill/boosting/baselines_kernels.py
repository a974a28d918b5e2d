"""Learners of linear scores that change with every example: perceptron and Frank-Wolfe.

The lattices of a batch are decoded one example at a time here, by the compiled functions of
`kernels`: each step of these learners needs the weights that the step before it left.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.boosting.kernels import _best
from corpusmill.boosting.structures import LatticeStructure
from corpusmill.types import AnyArray, Flags, Floats, Offsets

_kernel = njit(cache=True, nogil=True, error_model="numpy")
# Sums in any order: eight numbers at a time.
_fast = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


class Separate(NamedTuple):
    """Lattices of which one can be decoded without the others.

    Attributes
    ----------
    nodes, edges, rows, bases
        As those of `kernels.Lattices`.
    tails : int64, shape (edges,)
        Where the edge comes from, counted from the source of its own example.
    example_rows : Offsets, shape (examples + 1,)
    defaults : Flags, shape (rows,)
        The rows that are in an output unless another one stands in their place.
    """

    nodes: Offsets
    edges: Offsets
    tails: AnyArray
    rows: AnyArray
    bases: AnyArray
    example_rows: Offsets
    defaults: Flags


def separate(structure: LatticeStructure) -> Separate:
    """Count the nodes of each example from 0; O(edges)."""
    nodes, edges, tails, rows, bases = structure.lattices
    source = np.repeat(nodes[:-1], np.diff(edges[nodes]))
    example_rows = structure.factors.example_rows()
    defaults = np.zeros(example_rows[-1], np.bool_)
    defaults[structure.bases] = True
    return Separate(nodes, edges, tails - source, rows, bases, example_rows, defaults)


@_kernel
def _decode(n, lattices, scores, chosen):  # type: ignore[no-untyped-def]
    """Set the rows of example n that its best output holds."""
    for row in range(lattices.example_rows[n], lattices.example_rows[n + 1]):
        chosen[row] = lattices.defaults[row]
    first, last = lattices.nodes[n], lattices.nodes[n + 1]
    nodes = np.array([0, last - first])
    edges = lattices.edges[first : last + 1]
    value = np.empty(1)
    _best(nodes, edges, lattices.tails, lattices.rows, lattices.bases, scores, chosen, value)


@_fast
def _product(features, row, weights, gamma):  # type: ignore[no-untyped-def]
    """Give w . phi(x) of a row."""
    width = features.shape[1]
    total = 0.0
    if gamma == 0.0:
        for i in range(width):
            total += features[row, i] * weights[i]
        return total
    once, cross = math.sqrt(2.0 * gamma), math.sqrt(2.0) * gamma
    at = width
    for i in range(width):
        part = 0.0
        for j in range(1, width - i):
            part += features[row, i + j] * weights[at + j]
        x = features[row, i]
        total += x * (once * weights[i] + gamma * x * weights[at] + cross * part)
        at += width - i
    return total


@_kernel
def _add(features, row, times, gamma, sums):  # type: ignore[no-untyped-def]
    """Add phi(x) of a row, so many times."""
    width = features.shape[1]
    if gamma == 0.0:
        for i in range(width):
            sums[i] += times * features[row, i]
        return
    once, cross = math.sqrt(2.0 * gamma), math.sqrt(2.0) * gamma
    at = width
    for i in range(width):
        x = times * features[row, i]
        sums[i] += once * x
        sums[at] += gamma * x * features[row, i]
        for j in range(1, width - i):
            sums[at + j] += cross * x * features[row, i + j]
        at += width - i


@_kernel
def _score(first, last, features, weights, gamma, scores):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        scores[row] = _product(features, row, weights, gamma)


def mapped_width(width: int, gamma: float) -> int:
    """Give the number of features that `products` takes weights of."""
    return width + width * (width + 1) // 2 if gamma > 0.0 else width


def products(features: Floats, weights: Floats, gamma: float) -> Floats:
    """Compute w . phi(x) of each row: phi(x) is x, or of degree 2 if gamma is above 0.

        phi(x) = (sqrt(2 gamma) x_i;  gamma x_i x_i and sqrt(2) gamma x_i x_j, i < j)
        phi(x) . phi(z) = (gamma x . z + 1)^2 - 1

    is the polynomial kernel without its 1, which is the same for all rows of a factor and cancels.

    Parameters
    ----------
    features : Floats, shape (rows, width)
        Without NaN.
    weights : Floats, shape (mapped_width(width, gamma),)
    gamma : float

    Returns
    -------
    Floats, shape (rows,)

    Notes
    -----
    O(rows * mapped width); phi(x) is never held, as it would be a hundred times x.
    """
    scores = np.empty(len(features))
    _score(0, len(features), features, weights, gamma, scores)
    return scores


@_kernel
def _perceptron(lattices, features, gold, order, weights, drift, steps):  # type: ignore[no-untyped-def]
    scores = np.empty(len(gold))
    chosen = np.empty(len(gold), np.bool_)
    for n in order:
        first, last = lattices.example_rows[n], lattices.example_rows[n + 1]
        _score(first, last, features, weights, 0.0, scores)
        _decode(n, lattices, scores, chosen)
        for row in range(first, last):
            if chosen[row] != gold[row]:
                sign = 1.0 if gold[row] else -1.0
                _add(features, row, sign, 0.0, weights)
                _add(features, row, steps * sign, 0.0, drift)
        steps += 1
    return steps


def perceptron(
    lattices: Separate, features: Floats, gold: Flags, epochs: int, rng: np.random.Generator
) -> Floats:
    """Train the averaged structured perceptron.

    In each step w += sum of x_r over r in y* - sum of x_r over r in y^, with y^ the best output
    under w; the mean of w after each step is returned, w = 0 at first.

    Parameters
    ----------
    lattices : Separate
    features : Floats, shape (rows, width)
        Without NaN.
    gold : Flags, shape (rows,)
    epochs : int
        How often every example is seen, each time in an order of its own.
    rng : numpy.random.Generator

    Returns
    -------
    Floats, shape (width,)

    Notes
    -----
    O(rows * width + edges) an epoch. A change d of step t is in the last T - t + 1 of T vectors:
    their mean is w less the sum of d (t - 1) / T. Source: Collins 2002, figure 1 and section 2.3.
    """
    examples = len(lattices.example_rows) - 1
    weights, drift = np.zeros(features.shape[1]), np.zeros(features.shape[1])
    steps = 0
    for _ in range(epochs):
        order = rng.permutation(examples)
        steps = _perceptron(lattices, features, gold, order, weights, drift, steps)
    return weights - drift / max(steps, 1)


@_kernel
def _frank_wolfe(  # type: ignore[no-untyped-def]
    lattices, features, gamma, gold, order, cost, weights, parts, losses
):  # fmt: skip
    scores = np.empty(len(gold))
    chosen = np.empty(len(gold), np.bool_)
    change = np.empty(len(weights))
    for n in order:
        first, last = lattices.example_rows[n], lattices.example_rows[n + 1]
        _score(first, last, features, weights, gamma, scores)
        for row in range(first, last):
            scores[row] += 0.0 if gold[row] else 1.0
        _decode(n, lattices, scores, chosen)
        change[:] = -parts[n]
        loss = -losses[n]
        for row in range(first, last):
            if chosen[row] != gold[row]:
                sign = cost if gold[row] else -cost
                loss += 0.0 if gold[row] else cost
                _add(features, row, sign, gamma, change)
        gap, length = loss, 0.0
        for f in range(len(weights)):
            gap -= change[f] * weights[f]
            length += change[f] * change[f]
        if gap > 0.0:
            step = 1.0 if gap >= length else gap / length
            losses[n] += step * loss
            for f in range(len(weights)):
                parts[n, f] += step * change[f]
                weights[f] += step * change[f]


def frank_wolfe(
    lattices: Separate,
    features: Floats,
    gamma: float,
    gold: Flags,
    cost: float,
    rng: np.random.Generator,
    weights: Floats,
    parts: Floats,
    losses: Floats,
) -> None:
    r"""Go once through the examples with block-coordinate Frank-Wolfe, in place.

    With psi_i(y) the sum of phi(x_r) over y* less that over y, loss(y) the number of rows of y that
    are not in y*, and dual variables that make w_i = (C/n) sum_y a_i(y) psi_i(y) and
    l_i = (C/n) sum_y a_i(y) loss(y), the dual is sum_i l_i - |w|^2 / 2, w = sum_i w_i. A step takes
    y^, the best output of example i by score and loss, and its corner (C/n) (psi_i(y^), loss(y^)):

        gap_i = (w_i - corner) . w - l_i + corner loss
        step = gap_i / |w_i - corner|^2, at most 1

    moves (w_i, l_i) that part of the way to the corner, and the dual rises as much as it can.

    Parameters
    ----------
    lattices : Separate
    features : Floats, shape (rows, width)
        Without NaN.
    gamma : float
        Of phi, as for `products`.
    gold : Flags, shape (rows,)
    cost : float
        C/n.
    rng : numpy.random.Generator
        Of the order.
    weights : Floats, shape (mapped width,)
        w; changed.
    parts : Floats, shape (examples, mapped width)
        w_i; changed.
    losses : Floats, shape (examples,)
        l_i; changed.

    Notes
    -----
    O((rows + examples) * mapped width + edges). Source: Lacoste-Julien et al. 2013, algorithm 4,
    with C = 1 / lambda and all terms times C.
    """
    order = rng.permutation(len(losses))
    _frank_wolfe(lattices, features, gamma, gold, order, cost, weights, parts, losses)
