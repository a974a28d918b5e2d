"""Other ways to choose fragments, to compare with the kernel machine's weights.

Both begin with the fragments that occur most often, grown as `corpusmill.fragments.mining` grows
them, and rank these by chi-squared or by the weights of a linear machine with an L1 penalty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from sklearn.svm import LinearSVC

from corpusmill.fragments.by_kernel import mine_frequent, sum_occurrences
from corpusmill.fragments.dictionary import build_dictionary
from corpusmill.fragments.examples import Examples
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.trie import Fragments
from corpusmill.types import AnyArray, Flags, Floats

CANDIDATES = 4
"""Frequent fragments looked at, in multiples of L."""


def select(
    examples: Examples,
    codes: AnyArray,
    copies: Floats,
    machines: Sequence[int],
    settings: LearnerSettings,
) -> list[list[Fragments]]:
    """Choose L fragments a machine and tree slot, as ``settings.miner`` says."""
    found: list[list[Fragments]] = [[] for _ in machines]
    for interned in examples.interned():
        often = np.repeat(copies, np.diff(interned.offsets))
        size = len(interned.subtrees.labels)
        occurrences = np.bincount(interned.nodes, often, size).astype(np.float64)
        candidates = mine_frequent(
            interned.subtrees, occurrences, CANDIDATES * settings.limit, settings
        )
        counts = sum_occurrences(
            build_dictionary(candidates), interned, len(candidates.weights), settings
        )
        for machine, wanted in enumerate(machines):
            positive = codes == wanted
            if settings.miner == "chi2":
                weights = chi_squared(counts, positive, copies)
            else:
                weights = l1_weights(counts, positive, copies, settings)
            found[machine].append(best_of(candidates, weights, settings.limit))
    return found


def chi_squared(counts: csr_array, positive: Flags, copies: Floats) -> Floats:
    r"""Give the chi-squared statistic of each fragment's presence and the class.

    With a of the P positive examples and b of the Q negative ones holding the fragment,
    n = P + Q, it is n (a (Q - b) - b (P - a))^2 / ((a + b) (n - a - b) P Q), 0 where undefined.
    """
    present = csr_array((np.ones(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)
    a = np.asarray(present.T @ (copies * positive))
    b = np.asarray(present.T @ (copies * ~positive))
    p, q = float(copies[positive].sum()), float(copies[~positive].sum())
    n, held = p + q, a + b
    top = n * (a * (q - b) - b * (p - a)) ** 2
    bottom = held * (n - held) * p * q
    found: Floats = np.divide(top, bottom, out=np.zeros(len(a)), where=bottom > 0)
    return found


def l1_weights(
    counts: csr_array, positive: Flags, copies: Floats, settings: LearnerSettings
) -> Floats:
    """Give |w| of a linear machine with an L1 penalty on presence; 0 with one class only."""
    if positive.all() or not positive.any() or not counts.shape[1]:
        return np.zeros(counts.shape[1])
    present = csr_array((np.ones(counts.nnz), counts.indices, counts.indptr), shape=counts.shape)
    machine = LinearSVC(
        penalty="l1", dual=False, C=settings.linear_cost, random_state=0,
        max_iter=settings.linear_max_iter,
    )  # fmt: skip
    return np.abs(machine.fit(narrow(present), positive, copies).coef_[0])


def narrow(matrix: csr_array) -> csr_array:
    """Give the same matrix with 32-bit indices, which liblinear wants."""
    return csr_array(
        (matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)),
        shape=matrix.shape,
    )


def best_of(fragments: Fragments, weights: Floats, limit: int) -> Fragments:
    """Keep the fragments of largest weight, at most so many and none of weight 0."""
    order = np.lexsort((np.arange(len(weights)), -weights))[:limit]
    chosen = order[weights[order] > 0]
    sizes = np.diff(fragments.offsets)[chosen]
    offsets = np.zeros(len(chosen) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    starts = np.repeat(fragments.offsets[chosen] - offsets[:-1], sizes)
    places = starts + np.arange(offsets[-1])
    moves = fragments.moves.reshape(-1, 3)[places].reshape(-1)
    return Fragments(offsets, moves, weights[chosen])
