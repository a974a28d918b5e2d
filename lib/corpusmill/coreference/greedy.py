"""Best-first search with local features, and learning with it. Kernels on flat arrays.

Source: Björkelund & Kuhn (2014): algorithm 1 and section 4. All arcs go from left to right, so the
best antecedent of each mention gives the best tree, the one that Chu-Liu-Edmonds finds.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.coreference.arcs import (
    Arcs,
    local_features,
    most_features,
    score_antecedents,
    score_mentions,
)
from corpusmill.coreference.pairs import PAIR_ATOMS
from corpusmill.coreference.updates import ROOT_LOSS, Learner, apply_update
from corpusmill.types import AnyArray, Floats


@njit(cache=True, nogil=True)
def best_first(
    arcs: Arcs, document: int, weights: Floats, shift: int, window: int, clusters: AnyArray
) -> tuple[AnyArray, Floats, AnyArray]:
    """Find the best tree over the mentions of a document, and the best of the correct trees.

    Parameters
    ----------
    arcs : Arcs
    document : int
    weights : float64, shape (2^(64 - shift),)
    shift : int
    window : int
        How many mentions before it may be an antecedent.
    clusters : int64, shape (mentions of the batch,)
        True clusters, -1 for none.

    Returns
    -------
    antecedents : int64, shape (mentions of the document,)
        Mentions of the batch, -1 for the root; of equal scores the nearest wins, and the root
        over a mention.
    scores : float64, shape (mentions of the document,)
        Of the arcs found.
    latent : int64, shape (mentions of the document,)
        The same among correct antecedents: those of the same true cluster in the window, or the
        root where there is none.

    Notes
    -----
    O(mentions times window times templates) time, O(mentions) memory.
    """
    begin, end = arcs.offsets[document], arcs.offsets[document + 1]
    count = end - begin
    antecedents, latent = np.full(count, -1), np.full(count, -1)
    unary = score_mentions(arcs, begin, end, weights, shift)
    scores = unary.root.copy()
    row = np.empty(min(count, window))
    values = np.empty((min(count, window), len(PAIR_ATOMS)), np.uint64)
    for at in range(count):
        mention = begin + at
        low = max(begin, mention - window)
        score_antecedents(arcs, begin, at, low - begin, unary, weights, shift, values, row)
        true = -np.inf
        for k in range(mention - low - 1, -1, -1):
            if row[k] > scores[at]:
                scores[at], antecedents[at] = row[k], low + k
            same = clusters[mention] >= 0 and clusters[low + k] == clusters[mention]
            if same and row[k] > true:
                true, latent[at] = row[k], low + k
    return antecedents, scores, latent


@njit(cache=True, nogil=True)
def is_correct(antecedent: int, latent: int, cluster: int, clusters: AnyArray) -> bool:
    """Tell whether an arc is one that a correct tree may have.

    Parameters
    ----------
    antecedent, latent : int
        The arc's antecedent and a correct one, -1 for the root.
    cluster : int
        The anaphor's true cluster.
    clusters : int64
        True clusters of all mentions.
    """
    if antecedent < 0 or latent < 0:
        return antecedent == latent
    return bool(clusters[antecedent] == cluster)


@njit(cache=True, nogil=True)
def learn_greedy(
    arcs: Arcs, document: int, learner: Learner, shift: int, window: int, clusters: AnyArray
) -> tuple[float, int, int]:
    """Learn from a document: algorithm 1 of the paper.

    Parameters
    ----------
    arcs, document, shift, window, clusters
        As in `best_first`.
    learner : Learner
        Changed.

    Returns
    -------
    loss : float
        1 for each wrong arc, 1.5 for a wrong one from the root.
    length : int
        The sum over the latent tree's arcs of their lengths in mentions, but for those from the
        root.
    arcs : int
        How many those are.
    """
    begin = arcs.offsets[document]
    found, _, latent = best_first(arcs, document, learner.weights, shift, window, clusters)
    learner.steps[0] += 1
    loss, length, number = 0.0, 0, 0
    for at in range(len(found)):
        if not is_correct(found[at], latent[at], clusters[begin + at], clusters):
            loss += ROOT_LOSS if found[at] < 0 else 1.0
        if latent[at] >= 0:
            length += begin + at - latent[at]
            number += 1
    if loss > 0.0:
        most = most_features(arcs)
        places = np.empty(2 * most * len(found), np.int64)
        count = 0
        for at in range(len(found)):
            if found[at] != latent[at]:
                for antecedent, sign in ((found[at], 1.0), (latent[at], -1.0)):
                    room = places[count:]
                    added = local_features(arcs, antecedent, begin + at, shift, room)
                    for k in range(added):
                        learner.delta[room[k]] += sign
                    count += added
        apply_update(learner, places[:count], loss)
    return loss, length, number
