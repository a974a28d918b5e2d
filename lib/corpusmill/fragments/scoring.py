"""Scores of a kernel machine by the weights of its subtrees: no loop over support vectors.

A machine of the normalised SST kernel scores a tree with

    f(T) = 1 / ||T|| sum_i beta_i K(T_i, T) / ||T_i|| + bias
         = 1 / ||T|| sum over nodes n of T, sum over subtrees u: w(u) Delta(u, n) + bias,
    w(u) = sum_i beta_i c_i(u) / ||T_i||,

where u runs over the distinct subtrees of the support vectors that have the production at n. So
one pass over the tree does, whatever the number of support vectors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Interned, Productions, Subtrees
from corpusmill.fragments.kernels import Index, _match_children, build_index
from corpusmill.types import Floats

_kernel = njit(cache=True, nogil=True, error_model="numpy")


class SubtreeWeights(NamedTuple):
    """The support vectors of machines, taken apart into distinct subtrees.

    Attributes
    ----------
    subtrees : Subtrees
    productions : Productions
    weights : Floats, shape (subtrees, machines)
        w(u).
    """

    subtrees: Subtrees
    productions: Productions
    weights: Floats

    def indexed(self) -> Index:
        """Index the subtrees by production."""
        nothing = Interned(
            self.subtrees, self.productions, np.zeros(1, np.int64), np.zeros(0, np.int32)
        )
        return build_index(nothing)


def score(
    model: SubtreeWeights, index: Index, interned: Interned, norms: Floats, decay: float
) -> Floats:
    """Score trees by machines of the normalised SST kernel, without the bias.

    Parameters
    ----------
    model : SubtreeWeights
    index : Index
        ``model.indexed()``, which is the same for all calls.
    interned : Interned
        Trees, numbered on top of the model's subtrees and productions.
    norms : Floats, shape (trees,)
        The root of K(T, T).
    decay : float
        lambda.

    Returns
    -------
    Floats, shape (trees, machines)
        0 for an empty tree.

    Notes
    -----
    O(sum over nodes of the model's distinct subtrees with the node's production, times machines).
    """
    by_place = np.zeros((len(index.places), model.weights.shape[1]))
    inner = np.flatnonzero(index.places >= 0)
    by_place[index.places[inner]] = model.weights[inner]
    found = np.zeros((len(interned.offsets) - 1, model.weights.shape[1]))
    subtrees = interned.subtrees
    _score_trees(
        index, by_place, subtrees.productions, subtrees.child_offsets, interned.offsets,
        interned.nodes, decay, found,
    )  # fmt: skip
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    return found * scale[:, None]


@_kernel
def _score_trees(index, weights, productions, child_offsets, offsets, nodes, decay, out):  # type: ignore[no-untyped-def]
    scratch = np.empty(1 << 14)
    for t in range(len(offsets) - 1):
        tree = nodes[offsets[t] : offsets[t + 1]]
        scratch = _score_tree(
            index, weights, productions, child_offsets, tree, decay, out[t], scratch
        )


@_kernel
def _score_tree(index, weights, productions, child_offsets, nodes, decay, out, scratch):  # type: ignore[no-untyped-def]
    rules = len(index.groups) - 1
    starts = np.zeros(len(nodes) + 1, np.int64)
    rule_of = np.empty(len(nodes), np.int32)
    top = 0
    for at in range(len(nodes) - 1, -1, -1):
        subtree = nodes[at]
        arity = child_offsets[subtree + 1] - child_offsets[subtree]
        rule = productions[subtree]
        end = starts[top]
        size = index.groups[rule + 1] - index.groups[rule] if 0 <= rule < rules else 0
        if end + size > len(scratch):
            larger = np.empty(2 * (end + size), np.float64)
            larger[:end] = scratch[:end]
            scratch = larger
        delta = scratch[end : end + size]
        delta[:] = decay
        if size > 0:
            for i in range(arity):
                child = top - 1 - i
                below = scratch[starts[child] : starts[child + 1]]
                if len(below) > 0:
                    column = index.column_offsets[rule] + i * size
                    _match_children(index, column, size, rule_of[child], below, delta)
            first = index.groups[rule]
            for m in range(size):
                for c in range(len(out)):
                    out[c] += delta[m] * weights[first + m, c]
        top -= arity
        begin = starts[top]
        if begin < end:
            scratch[begin : begin + size] = scratch[end : end + size]
        rule_of[top] = rule
        top += 1
        starts[top] = begin + size
    return scratch
