"""Learning with beam search: early update, LaSO, delayed LaSO, max-violation. Kernels.

Two agendas run side by side: of any trees, and of correct ones, the latent trees by the current
weights. Where no tree of the first is correct any more, the search has gone wrong.

Source: Björkelund & Kuhn (2014), algorithms 2 and 3; Huang et al. (2012) for max-violation.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.coreference.arcs import (
    Arcs,
    Unary,
    local_features,
    most_features,
    pair_scores,
    place,
    score_antecedents,
    score_mentions,
)
from corpusmill.coreference.beam import (
    Agenda,
    Trace,
    advance,
    copy_agenda,
    correct_arcs,
    expand,
    follow,
    new_agenda,
    new_trace,
    nonlocal_hashes,
    reset_agenda,
)
from corpusmill.coreference.pairs import PAIR_ATOMS, compare
from corpusmill.coreference.updates import ROOT_LOSS, Learner, apply_update
from corpusmill.coreference.versions import Versions, extend_cluster, new_versions, start_cluster
from corpusmill.types import AnyArray, Flags, Floats

EARLY, LASO, DELAYED, MAX_VIOLATION = range(4)
REGIMES = ("early", "laso", "delayed", "max_violation")


@njit(cache=True, nogil=True)
def tree_loss(tree: AnyArray, clusters: AnyArray, begin: int, window: int) -> float:
    """Sum 1 for each wrong arc and 1.5 for each wrong one from the root.

    Parameters
    ----------
    tree : int64, shape (mentions,)
        Antecedents, counted in the document; -1 for the root.
    clusters, begin, window
        As in `correct_arcs`.
    """
    loss = 0.0
    for mention in range(len(tree)):
        cluster = clusters[begin + mention]
        if tree[mention] >= 0:
            if cluster < 0 or clusters[begin + tree[mention]] != cluster:
                loss += 1.0
        elif cluster >= 0:
            for other in range(max(0, mention - window), mention):
                if clusters[begin + other] == cluster:
                    loss += ROOT_LOSS
                    break
    return loss


@njit(cache=True, nogil=True)
def tree_features(
    arcs: Arcs,
    begin: int,
    tree: AnyArray,
    other: AnyArray,
    sign: float,
    learner: Learner,
    shift: int,
    places: AnyArray,
) -> int:
    """Add the features of a tree to `learner.delta`, without those that it shares with another.

    Parameters
    ----------
    arcs : Arcs
    begin : int
    tree, other : int64, shape (mentions,)
        Antecedents, counted in the document; before the first difference all features are equal,
        and arcs that both have share their local ones.
    sign : float
        What is added.
    learner : Learner
    shift : int
    places : int64
        Written: where something was added.

    Returns
    -------
    int
        How many places.
    """
    mentions, count = len(tree), 0
    versions = new_versions(mentions, 1)
    cluster = np.empty(mentions, np.int64)
    child = np.full(mentions, -1)
    values = np.empty((1, len(PAIR_ATOMS)), np.uint64)
    hashes = np.empty(arcs.slots.shape[2], np.uint64)
    differ = False
    for mention in range(mentions):
        antecedent, kind = tree[mention], arcs.types[begin + mention]
        differ = differ or antecedent != other[mention]
        if antecedent != other[mention]:
            above = begin + antecedent if antecedent >= 0 else -1
            room = places[count:]
            added = local_features(arcs, above, begin + mention, shift, room)
            for k in range(added):
                learner.delta[room[k]] += sign
            count += added
        if antecedent < 0:
            cluster[mention] = start_cluster(versions, mention, kind)
            continue
        if differ:
            above = begin + antecedent
            compare(arcs.attributes, begin + mention, above, above + 1, values)
            nonlocal_hashes(
                arcs, begin, antecedent, mention, versions, cluster[antecedent],
                tree[antecedent], child[antecedent], values, 0, hashes,
            )  # fmt: skip
            for hashed in hashes:
                places[count] = place(hashed, shift)
                learner.delta[places[count]] += sign
                count += 1
        extend_cluster(versions, cluster[antecedent], mention, kind)
        cluster[mention], child[antecedent] = cluster[antecedent], mention
    return count


@njit(cache=True, nogil=True)
def _add_difference(
    arcs: Arcs,
    begin: int,
    found: AnyArray,
    latent: AnyArray,
    learner: Learner,
    shift: int,
    places: AnyArray,
    count: int,
) -> tuple[AnyArray, int]:
    """Add Phi(found) - Phi(latent) to `learner.delta`; give the places so far, and how many."""
    room = count + 2 * len(found) * most_features(arcs)
    if room > len(places):
        larger = np.empty(2 * room, np.int64)
        larger[:count] = places[:count]
        places = larger
    count += tree_features(arcs, begin, found, latent, 1.0, learner, shift, places[count:])
    count += tree_features(arcs, begin, latent, found, -1.0, learner, shift, places[count:])
    return places, count


@njit(cache=True, nogil=True)
def _count_difference(
    arcs: Arcs,
    begin: int,
    trace: Trace,
    mention: int,
    origins: tuple[int, int],
    clusters: AnyArray,
    window: int,
    learner: Learner,
    shift: int,
    places: AnyArray,
    count: int,
) -> tuple[float, AnyArray, int]:
    """Give the loss of a predicted tree beside a correct one, and as `_add_difference`.

    Both end at a mention, where their places in the trace are ``origins``.
    """
    predicted = follow(trace, mention, origins[0])[0]
    latent = follow(trace, mention, origins[1])[0]
    places, count = _add_difference(arcs, begin, predicted, latent, learner, shift, places, count)
    return tree_loss(predicted, clusters, begin, window), places, count


@njit(cache=True, nogil=True)
def _tree_length(tree: AnyArray) -> tuple[int, int]:
    """Sum the lengths of arcs, but for those from the root, and count these arcs."""
    length, count = 0, 0
    for mention in range(len(tree)):
        if tree[mention] >= 0:
            length += mention - tree[mention]
            count += 1
    return length, count


@njit(cache=True, nogil=True)
def _correct_again(
    arcs: Arcs,
    begin: int,
    mention: int,
    unary: Unary,
    weights: Floats,
    shift: int,
    window: int,
    clusters: AnyArray,
    agendas: tuple[Agenda, Agenda],
    versions: Versions,
    trace: Trace,
    row: Floats,
    values: AnyArray,
    allowed: Flags,
    found: tuple[Floats, AnyArray, AnyArray],
) -> None:
    """Build the agenda of correct trees up to a mention anew, by other weights.

    The result is the first of the agendas; who holds versions of others has lost them.
    """
    beam = len(agendas[0].scores)
    agenda, spare = agendas
    reset_agenda(agenda)
    versions.used[0] = 0
    for anaphor in range(mention + 1):
        low = max(0, anaphor - window)
        rootless = correct_arcs(clusters, begin, anaphor, low, allowed)
        for k in range(anaphor - low):
            if allowed[k]:
                row[k] = unary.antecedent[low + k] + unary.anaphor[anaphor]
                antecedent = begin + low + k
                pair_scores(
                    arcs, begin + anaphor, antecedent, antecedent + 1, weights, shift,
                    values[k : k + 1], row[k : k + 1],
                )  # fmt: skip
        kept = expand(
            arcs, begin, anaphor, low, agenda, versions, row, unary.root[anaphor],
            values, allowed, True, rootless, weights, shift, found,
        )  # fmt: skip
        advance(
            arcs, begin, anaphor, low, agenda, spare, versions, allowed, rootless,
            found, kept, trace, beam,
        )  # fmt: skip
        agenda, spare = spare, agenda
    if mention % 2 == 0:
        copy_agenda(agenda, agendas[0])


@njit(cache=True, nogil=True)
def _step(
    arcs: Arcs,
    begin: int,
    mention: int,
    low: int,
    unary: Unary,
    weights: Floats,
    shift: int,
    rootless: bool,
    sources: tuple[Agenda, Agenda],
    targets: tuple[Agenda, Agenda],
    versions: Versions,
    trace: Trace,
    row: Floats,
    values: AnyArray,
    allowed: Flags,
    found: tuple[Floats, AnyArray, AnyArray],
) -> None:
    """Attach a mention in both agendas, that of any trees and that of correct ones."""
    beam = len(found[0])
    for pool in range(2):
        kept = expand(
            arcs, begin, mention, low, sources[pool], versions, row, unary.root[mention],
            values, allowed, pool == 1, rootless, weights, shift, found,
        )  # fmt: skip
        advance(
            arcs, begin, mention, low, sources[pool], targets[pool], versions, allowed, rootless,
            found, kept, trace, pool * beam,
        )  # fmt: skip


@njit(cache=True, nogil=True)
def learn_beam(
    arcs: Arcs,
    document: int,
    learner: Learner,
    shift: int,
    window: int,
    clusters: AnyArray,
    beam: int,
    regime: int,
) -> tuple[float, int, int]:
    """Learn from a document with beam search.

    Parameters
    ----------
    arcs, document, shift, window, clusters
        As in `greedy.best_first`.
    learner : Learner
        Changed.
    beam : int
        How many partial trees each agenda keeps.
    regime : int
        Where the predicted agenda has lost all correct trees: EARLY updates and leaves the
        document; LASO updates and goes on from the correct agenda, built anew by the new
        weights; DELAYED goes on too, but updates once at the end with the sum of all
        differences. MAX_VIOLATION goes on with both agendas and updates where the best predicted
        tree is furthest ahead. In each, a best tree that is wrong at the end counts too.

    Returns
    -------
    loss : float
        Of all trees that were updated against.
    length, arcs : int
        As in `greedy.learn_greedy`.

    Notes
    -----
    O(mentions times window times (templates + beam + versions times non-local templates)), and
    O(mentions times non-local templates) an update; LaSO builds the correct agenda anew each time.
    """
    begin, end = arcs.offsets[document], arcs.offsets[document + 1]
    count, weights = end - begin, learner.weights
    learner.steps[0] += 1
    if count == 0:
        return 0.0, 0, 0
    window = max(min(window, count), 1)
    versions, trace = new_versions(count, 2 * beam), new_trace(count, 2 * beam)
    sources = new_agenda(beam, window), new_agenda(beam, window)
    targets = new_agenda(beam, window), new_agenda(beam, window)
    unary = score_mentions(arcs, begin, end, weights, shift)
    row, values = np.empty(window), np.empty((window, len(PAIR_ATOMS)), np.uint64)
    found = np.empty(beam), np.empty(beam, np.int64), np.empty(beam, np.int64)
    allowed = np.zeros(window, np.bool_)
    places, total, loss = np.empty(1024, np.int64), 0, 0.0
    worst, where, origins = 0.0, -1, (0, 0)
    for mention in range(count):
        low = max(0, mention - window)
        score_antecedents(arcs, begin, mention, low, unary, weights, shift, values, row)
        rootless = correct_arcs(clusters, begin, mention, low, allowed)
        _step(
            arcs, begin, mention, low, unary, weights, shift, rootless, sources, targets,
            versions, trace, row, values, allowed, found,
        )  # fmt: skip
        sources, targets = targets, sources
        any_, correct = sources
        best = any_.origins[0], correct.origins[0]
        if regime == MAX_VIOLATION:
            ahead = any_.scores[0] - correct.scores[0]
            if any_.wrong[0] and (where < 0 or ahead > worst):
                worst, where, origins = ahead, mention, best
        elif np.all(any_.wrong[: any_.size[0]]) or (mention == count - 1 and any_.wrong[0]):
            wrong, places, total = _count_difference(
                arcs, begin, trace, mention, best, clusters, window, learner, shift, places, total
            )
            loss += wrong
            if regime == EARLY:
                break
            if regime == LASO:
                apply_update(learner, places[:total], wrong)
                total = 0
                unary = score_mentions(arcs, begin, end, weights, shift)
                _correct_again(
                    arcs, begin, mention, unary, weights, shift, window, clusters,
                    (correct, targets[1]), versions, trace, row, values, allowed, found,
                )  # fmt: skip
            copy_agenda(correct, any_)
    if where >= 0:
        loss, places, total = _count_difference(
            arcs, begin, trace, where, origins, clusters, window, learner, shift, places, total
        )
    if total > 0:
        apply_update(learner, places[:total], loss)
    length, number = _tree_length(follow(trace, mention, sources[1].origins[0])[0])
    return loss, length, number
