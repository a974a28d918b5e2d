"""Scores of a kernel machine by the weights of its subtrees: no loop over support vectors.

A machine of the normalised SST kernel scores a tree with

    f(T) = 1 / ||T|| sum_i beta_i K(T_i, T) / ||T_i|| + bias
         = 1 / ||T|| sum over nodes n of T, sum over subtrees u: w(u) Delta(u, n) + bias,
    w(u) = sum_i beta_i c_i(u) / ||T_i||,

where u runs over the distinct subtrees of the support vectors that have the production at n. So
one pass over the tree does, whatever the number of support vectors. For the partial tree kernel
they are those that have the label of n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Interned, Productions, Subtrees
from corpusmill.fragments.kernels import (
    MOST_OPEN,
    SCRATCH,
    Index,
    build_index,
    group_size,
    heavy_first,
    open_node,
    pass_up,
)
from corpusmill.fragments.partial import LabelIndex, add_partial_rows, build_label_index
from corpusmill.types import Floats

SUMS = 1 << 22
"""Sums over trees by subtree that `score_partial` keeps at most, where a tree has not more."""
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

    def labelled(self) -> LabelIndex:
        """Index the subtrees by label, as if each were a tree without what is below its root."""
        count = len(self.subtrees.labels)
        nodes = np.arange(count, dtype=np.int32)
        return build_label_index(
            Interned(self.subtrees, self.productions, np.arange(count + 1), nodes)
        )


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
        Trees, whose productions are numbered on top of the model's.
    norms : Floats, shape (trees,)
        The root of K(T, T).
    decay : float
        lambda.

    Returns
    -------
    Floats, shape (trees, machines)
        0 for an empty tree, and for one whose norm is given as 0.

    Notes
    -----
    O(sum over nodes of the model's distinct subtrees with the node's production, times machines);
    memory as `corpusmill.fragments.kernels.sst_row`.
    """
    by_place = np.zeros((len(index.places), model.weights.shape[1]))
    by_place[index.places] = model.weights
    found = np.zeros((len(interned.offsets) - 1, model.weights.shape[1]))
    subtrees = interned.subtrees
    _score_trees(
        index, by_place, subtrees.productions, subtrees.child_offsets, interned.offsets,
        interned.nodes, decay, found,
    )  # fmt: skip
    return _normalised(found, norms)


def score_partial(
    model: SubtreeWeights,
    index: LabelIndex,
    interned: Interned,
    norms: Floats,
    decay: float,
    mu: float,
) -> Floats:
    """Score trees by machines of the normalised partial tree kernel, without the bias.

    Parameters and result as `score`, but for these.

    Parameters
    ----------
    index : LabelIndex
        ``model.labelled()``.
    decay, mu : float
        lambda and mu.

    Notes
    -----
    The kernel's cost as `corpusmill.fragments.partial.add_partial_rows`, and for each tree
    O(subtrees of the model times machines); memory `SUMS` numbers, or one for each subtree.
    """
    trees = len(interned.offsets) - 1
    found = np.zeros((trees, model.weights.shape[1]))
    step = max(1, SUMS // max(1, index.trees))
    for first in range(0, trees, step):
        offsets = interned.offsets[first : first + step + 1]
        sums = np.zeros((len(offsets) - 1, index.trees))
        add_partial_rows(index, interned.subtrees, offsets, interned.nodes, decay, mu, sums)
        found[first : first + step] = sums @ model.weights
    return _normalised(found, norms)


def _normalised(sums: Floats, norms: Floats) -> Floats:
    norms = norms[:, None]
    return np.divide(sums, norms, out=np.zeros(sums.shape), where=norms > 0)


@_kernel
def _score_trees(index, weights, productions, child_offsets, offsets, nodes, decay, out):  # type: ignore[no-untyped-def]
    scratch = np.empty(SCRATCH, np.float64)
    for t in range(len(offsets) - 1):
        tree = nodes[offsets[t] : offsets[t + 1]]
        scratch = _score_tree(
            index, weights, productions, child_offsets, tree, decay, out[t], scratch
        )


@_kernel
def _score_tree(index, weights, productions, child_offsets, nodes, decay, out, scratch):  # type: ignore[no-untyped-def]
    """Add up like `sst_row`, but by the weights of subtrees instead of where they occur."""
    order, parents, ranks = heavy_first(nodes, child_offsets)
    opened, bounds = np.empty(MOST_OPEN, np.int32), np.zeros(MOST_OPEN + 1, np.int64)
    top = 0
    for k in range(len(nodes) - 1, -1, -1):
        at = order[k]
        rule = productions[nodes[at]]
        size = group_size(index, rule)
        if size == 0:
            continue
        top, scratch = open_node(at, size, decay, opened, bounds, top, scratch)
        begin, first = bounds[top - 1], index.groups[rule]
        for m in range(size):
            for c in range(len(out)):
                out[c] += scratch[begin + m] * weights[first + m, c]
        above = parents[at]
        top, scratch = pass_up(
            index, rule, productions[nodes[above]] if above >= 0 else -1, above, ranks[at],
            decay, opened, bounds, top, scratch,
        )  # fmt: skip
    return scratch
