"""Learners of linear scores that change with every example: perceptron and Frank-Wolfe.

The lattices of a batch are decoded one example at a time here, by the compiled functions of
`kernels`: each step of these learners needs the weights that the step before it left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.boosting.kernels import _best
from corpusmill.boosting.structures import LatticeStructure
from corpusmill.types import AnyArray, Flags, Floats, Offsets

_kernel = njit(cache=True, nogil=True, error_model="numpy")


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


@_kernel
def _score(first, last, features, weights, scores):  # type: ignore[no-untyped-def]
    for row in range(first, last):
        total = 0.0
        for f in range(len(weights)):
            total += features[row, f] * weights[f]
        scores[row] = total


@_kernel
def _perceptron(lattices, features, gold, order, weights, drift, steps):  # type: ignore[no-untyped-def]
    scores = np.empty(len(gold))
    chosen = np.empty(len(gold), np.bool_)
    for n in order:
        first, last = lattices.example_rows[n], lattices.example_rows[n + 1]
        _score(first, last, features, weights, scores)
        _decode(n, lattices, scores, chosen)
        for row in range(first, last):
            if chosen[row] != gold[row]:
                sign = 1.0 if gold[row] else -1.0
                for f in range(len(weights)):
                    weights[f] += sign * features[row, f]
                    drift[f] += steps * sign * features[row, f]
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
def _frank_wolfe(lattices, features, gold, order, cost, weights, parts, losses):  # type: ignore[no-untyped-def]
    scores = np.empty(len(gold))
    chosen = np.empty(len(gold), np.bool_)
    change = np.empty(len(weights))
    for n in order:
        first, last = lattices.example_rows[n], lattices.example_rows[n + 1]
        _score(first, last, features, weights, scores)
        for row in range(first, last):
            scores[row] += 0.0 if gold[row] else 1.0
        _decode(n, lattices, scores, chosen)
        change[:] = -parts[n]
        loss = -losses[n]
        for row in range(first, last):
            if chosen[row] != gold[row]:
                sign = cost if gold[row] else -cost
                loss += 0.0 if gold[row] else cost
                for f in range(len(weights)):
                    change[f] += sign * features[row, f]
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
    gold: Flags,
    cost: float,
    rng: np.random.Generator,
    weights: Floats,
    parts: Floats,
    losses: Floats,
) -> None:
    r"""Go once through the examples with block-coordinate Frank-Wolfe, in place.

    With psi_i(y) the sum of x_r over y* less that over y, loss(y) the number of rows of y that are
    not in y*, and dual variables that make w_i = (C/n) sum_y a_i(y) psi_i(y) and
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
    gold : Flags, shape (rows,)
    cost : float
        C/n.
    rng : numpy.random.Generator
        Of the order.
    weights : Floats, shape (width,)
        w; changed.
    parts : Floats, shape (examples, width)
        w_i; changed.
    losses : Floats, shape (examples,)
        l_i; changed.

    Notes
    -----
    O((rows + examples) * width + edges). Source: Lacoste-Julien et al. 2013, algorithm 4, with
    C = 1 / lambda and all terms times C.
    """
    order = rng.permutation(len(losses))
    _frank_wolfe(lattices, features, gold, order, cost, weights, parts, losses)
