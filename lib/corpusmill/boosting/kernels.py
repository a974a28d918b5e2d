r"""Exact inference in lattices: every structured output is a path from a source to a sink.

A lattice is a directed graph without cycles whose nodes are numbered so that every edge leads to
a larger number. An edge bears a row of the factors, or none: it is free then. With s(e) the score
of an edge, the log-partition function and the posterior of the edges are

    alpha(h) = log sum over edges e into h of exp(alpha(tail(e)) + s(e)),    log Z = alpha(sink)
    P(e) = P(h) w(e),  w(e) = exp(alpha(tail(e)) + s(e) - alpha(h)),  P(tail(e)) += P(e)

the second being the first, differentiated backwards: no exponential beyond those of the forward
pass, and no difference of large numbers. The best path is the same with max for log-sum-exp.

For candidate spans u of mention k, over boundaries of tokens as nodes, with free edges between
neighbouring ones and s(k, u) = F(k, u) - F(k, Nil), alpha(t) is A(t), the total over sets of
disjoint candidates that end at or before t. This is right for nested and crossing candidates,
where the recursions (4) to (6) of Yang and Chang 2015, read literally, lose a candidate that
contains another one.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Flags, Floats, Offsets

_kernel = njit(cache=True, nogil=True, error_model="numpy")
FREE = -1


class Lattices(NamedTuple):
    """The lattices of examples, one after the other.

    Attributes
    ----------
    nodes : Offsets, shape (examples + 1,)
        Example n has the nodes ``nodes[n]:nodes[n + 1]``, at least one; the first is its source,
        the last its sink.
    edges : Offsets, shape (nodes + 1,)
        Node h is entered by the edges ``edges[h]:edges[h + 1]``.
    tails : int64, shape (edges,)
        Where the edge comes from, a smaller number than where it leads to.
    rows : int64, shape (edges,)
        The row that the edge bears; `FREE` without one.
    bases : int64, shape (edges,)
        The row, not on the path, in whose place the edge's row stands; `FREE` without one.
    """

    nodes: Offsets
    edges: Offsets
    tails: AnyArray
    rows: AnyArray
    bases: AnyArray


@_kernel
def _edge_score(e, rows, bases, scores):  # type: ignore[no-untyped-def]
    score = 0.0
    if rows[e] >= 0:
        score = scores[rows[e]]
        if bases[e] >= 0:
            score -= scores[bases[e]]
    return score


@_kernel
def _forward(nodes, edges, tails, rows, bases, scores, shares, log_z):  # type: ignore[no-untyped-def]
    """Set log Z and w(e), the posterior of each edge given its head."""
    alpha = np.empty(nodes[-1])
    for n in range(len(nodes) - 1):
        alpha[nodes[n]] = 0.0
        for h in range(nodes[n] + 1, nodes[n + 1]):
            top = -np.inf
            for e in range(edges[h], edges[h + 1]):
                shares[e] = alpha[tails[e]] + _edge_score(e, rows, bases, scores)
                top = max(top, shares[e])
            if top == -np.inf:
                alpha[h] = top
                shares[edges[h] : edges[h + 1]] = 0.0
                continue
            total = 0.0
            for e in range(edges[h], edges[h + 1]):
                shares[e] = math.exp(shares[e] - top)
                total += shares[e]
            for e in range(edges[h], edges[h + 1]):
                shares[e] *= 1.0 / total
            alpha[h] = top + math.log(total)
        log_z[n] = alpha[nodes[n + 1] - 1]


@_kernel
def _backward(nodes, edges, tails, rows, bases, shares, marginals):  # type: ignore[no-untyped-def]
    """Add the posterior of each edge to its row, and take it from the row it stands for."""
    reached = np.zeros(nodes[-1])
    for n in range(len(nodes) - 1):
        reached[nodes[n + 1] - 1] = 1.0
        for h in range(nodes[n + 1] - 1, nodes[n], -1):
            for e in range(edges[h], edges[h + 1]):
                p = reached[h] * shares[e]
                reached[tails[e]] += p
                if rows[e] >= 0:
                    marginals[rows[e]] += p
                    if bases[e] >= 0:
                        marginals[bases[e]] -= p


def marginals(lattices: Lattices, scores: Floats, bases: AnyArray) -> tuple[Floats, Floats]:
    """Compute the probability of every row and log Z of every example.

    Parameters
    ----------
    lattices : Lattices
    scores : Floats, shape (rows,)
        F of each row.
    bases : int64
        The rows that outputs choose unless an edge stands in their place, ascending.

    Returns
    -------
    probabilities : Floats, shape (rows,)
        P(row is in the output), the derivatives of log Z with respect to the scores.
    log_z : Floats, shape (examples,)
        In nats, *without* the scores of ``bases``, which are in every output's sum; -inf where no
        path reaches the sink.

    Notes
    -----
    O(edges): one exponential an edge, one logarithm a node.
    """
    log_z = np.empty(len(lattices.nodes) - 1)
    shares = np.empty(len(lattices.tails))
    _forward(*lattices, scores, shares, log_z)
    found = np.zeros(len(scores))
    found[bases] = 1.0
    _backward(*lattices, shares, found)
    # What is left of 1 can be -1e-17 where a probability is next to 1.
    return np.clip(found, 0.0, 1.0), log_z


@_kernel
def _best(nodes, edges, tails, rows, bases, scores, chosen, value):  # type: ignore[no-untyped-def]
    best = np.empty(nodes[-1])
    back = np.full(nodes[-1], -1)
    for n in range(len(nodes) - 1):
        source, sink = nodes[n], nodes[n + 1] - 1
        best[source] = 0.0
        for h in range(source + 1, sink + 1):
            best[h] = -np.inf
            for e in range(edges[h], edges[h + 1]):
                score = best[tails[e]] + _edge_score(e, rows, bases, scores)
                if score > best[h]:
                    best[h], back[h] = score, e
        value[n] = best[sink]
        h = sink
        while h != source and back[h] >= 0:
            e = back[h]
            if rows[e] >= 0:
                chosen[rows[e]] = True
                if bases[e] >= 0:
                    chosen[bases[e]] = False
            h = tails[e]


def best(lattices: Lattices, scores: Floats, bases: AnyArray) -> tuple[Flags, Floats]:
    """Find the output with the largest sum of scores.

    Parameters
    ----------
    lattices : Lattices
    scores : Floats, shape (rows,)
    bases : int64
        As for `marginals`.

    Returns
    -------
    chosen : Flags, shape (rows,)
        The rows of the best output; of equals, the one whose edge stands first.
    value : Floats, shape (examples,)
        Its sum, without the scores of ``bases`` as in `marginals`; -inf where no path reaches
        the sink, and then no edge is chosen.

    Notes
    -----
    O(edges).
    """
    chosen = np.zeros(len(scores), np.bool_)
    chosen[bases] = True
    value = np.empty(len(lattices.nodes) - 1)
    _best(*lattices, scores, chosen, value)
    return chosen, value
