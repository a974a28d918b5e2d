"""Beam search with non-local features over partial trees. Kernels on flat arrays.

A cluster is never changed: attaching a mention makes a new *version* of its antecedent's cluster.
Items of an agenda share versions, so that the non-local score of an arc is computed once for each
version of the antecedent's cluster, however many items hold it.

Source: Björkelund & Kuhn (2014), section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.coreference.arcs import Arcs, place, score_antecedents, score_mentions
from corpusmill.coreference.pairs import PAIR_ATOMS
from corpusmill.coreference.templates import ANAPHOR, ANTECEDENT, FIRST, GRAND, LAST, SIBLING
from corpusmill.coreference.versions import (
    Versions,
    grow_cluster,
    new_versions,
    start_cluster,
)
from corpusmill.types import AnyArray, Flags, Floats

SIZES = 6
"""Clusters of this size and larger ones are one in features."""


class Agenda(NamedTuple):
    """Partial trees over the mentions so far, the best first.

    Attributes
    ----------
    size : int64, shape (1,)
        How many there are.
    scores : float64, shape (beam,)
    wrong : Flags, shape (beam,)
        Whether it has an arc that no correct tree has.
    origins : int64, shape (beam,)
        Where it stands in `Trace` at the last mention.
    antecedents, versions, children : int64, shape (beam, window)
        Of each mention in the window, by its number modulo the window: its antecedent, the version
        of its cluster and its last child so far, -1 for none.
    """

    size: AnyArray
    scores: Floats
    wrong: Flags
    origins: AnyArray
    antecedents: AnyArray
    versions: AnyArray
    children: AnyArray


class Trace(NamedTuple):
    """How partial trees came about.

    Attributes
    ----------
    parents : int32, shape (mentions, items)
        Where the tree without the last arc stands, at the mention before.
    antecedents : int32, shape (mentions, items)
        The last arc; -1 for the root. Mentions are counted in the document.
    scores : float64, shape (mentions, items)
        Of the tree.
    """

    parents: AnyArray
    antecedents: AnyArray
    scores: Floats


@njit(cache=True, nogil=True)
def new_agenda(beam: int, window: int) -> Agenda:
    """Give the agenda of one empty tree."""
    size = np.ones(1, np.int64)
    rows = [np.full((beam, window), -1) for _ in range(3)]
    return Agenda(
        size,
        np.zeros(beam),
        np.zeros(beam, np.bool_),
        np.zeros(beam, np.int64),
        rows[0],
        rows[1],
        rows[2],
    )


@njit(cache=True, nogil=True)
def reset_agenda(agenda: Agenda) -> None:
    """Make an agenda that of one empty tree."""
    agenda.size[0] = 1
    agenda.scores[0], agenda.wrong[0], agenda.origins[0] = 0.0, False, 0


@njit(cache=True, nogil=True)
def copy_agenda(source: Agenda, target: Agenda) -> None:
    """Make one agenda equal to another."""
    size = source.size[0]
    target.size[0] = size
    target.scores[:size] = source.scores[:size]
    target.wrong[:size] = source.wrong[:size]
    target.origins[:size] = source.origins[:size]
    target.antecedents[:size] = source.antecedents[:size]
    target.versions[:size] = source.versions[:size]
    target.children[:size] = source.children[:size]


@njit(cache=True, nogil=True)
def nonlocal_hashes(
    arcs: Arcs,
    begin: int,
    antecedent: int,
    anaphor: int,
    versions: Versions,
    version: int,
    grand: int,
    sibling: int,
    values: AnyArray,
    row: int,
    hashes: AnyArray,
) -> None:
    """Sum the atoms of the non-local templates on an arc.

    Parameters
    ----------
    arcs : Arcs
    begin : int
        The document's first mention in the batch.
    antecedent, anaphor, grand, sibling : int
        Mentions of the document; -1 for none.
    versions : Versions
    version : int
        The antecedent's cluster.
    values : uint64, shape (antecedents, PAIR_ATOMS)
    row : int
        The arc's row of `values`.
    hashes : uint64, shape (non-local templates,)
        Written.
    """
    slots, salts = arcs.slots, arcs.cluster_salts
    offsets, atoms, pair_salts = arcs.nonlocal_offsets, arcs.nonlocal_atoms, arcs.nonlocal_salts
    none = slots.shape[1] - 1
    grand = begin + grand if grand >= 0 else none
    sibling = begin + sibling if sibling >= 0 else none
    first, last = begin + versions.firsts[version], begin + versions.lasts[version]
    size = np.uint64(min(versions.sizes[version], SIZES))
    shape = versions.shapes[version]
    start = np.uint64(1 + _start_bin(versions.firsts[version]))
    for template in range(slots.shape[2]):
        hashed = slots[ANAPHOR, begin + anaphor, template]
        hashed += slots[ANTECEDENT, begin + antecedent, template]
        hashed += slots[GRAND, grand, template] + slots[SIBLING, sibling, template]
        hashed += slots[FIRST, first, template] + slots[LAST, last, template]
        hashed += size * salts[0, template] + shape * salts[1, template]
        hashed += start * salts[2, template]
        for atom in range(offsets[template], offsets[template + 1]):
            hashed += values[row, atoms[atom]] * pair_salts[atom]
        hashes[template] = hashed


@njit(cache=True, nogil=True, inline="always")
def _start_bin(mention: int) -> int:
    """Give the power of two that a distance from the document's begin reaches."""
    bin_ = 0
    while mention > 0:
        mention >>= 1
        bin_ += 1
    return bin_


@njit(cache=True, nogil=True)
def expand(
    arcs: Arcs,
    begin: int,
    mention: int,
    low: int,
    agenda: Agenda,
    versions: Versions,
    local: Floats,
    root: float,
    values: AnyArray,
    allowed: Flags,
    only: bool,
    latent_root: bool,
    weights: Floats,
    shift: int,
    found: tuple[Floats, AnyArray, AnyArray],
) -> int:
    """Find the best expansions of an agenda's items by an arc to the next mention.

    Parameters
    ----------
    arcs : Arcs
    begin : int
        The document's first mention in the batch.
    mention, low : int
        Mentions of the document: the anaphor and the first that may be its antecedent.
    agenda : Agenda
    versions : Versions
    local : float64, shape (mention - low,)
        Local scores of the antecedents.
    root : float
        The score of the arc from the root.
    values : uint64, shape (mention - low, PAIR_ATOMS)
    allowed : Flags, shape (mention - low,)
        Correct antecedents.
    only : bool
        Whether to look at correct arcs only.
    latent_root : bool
        Whether the arc from the root is correct.
    weights, shift
        The weights.
    found : (float64, int64, int64), each shape (beam,)
        Written: scores, items and antecedents (-1 for the root) of the best expansions; of equal
        scores arcs from the root come first, then the nearest antecedents, then better items.

    Returns
    -------
    int
        How many there are.
    """
    count = 0
    size, templates = agenda.size[0], arcs.slots.shape[2]
    if latent_root or not only:
        for item in range(size):
            count = _insert(found, count, agenda.scores[item] + root, item, -1)
    seen_versions, seen_scores = np.empty(size, np.int64), np.empty(size)
    hashes = np.empty(templates, np.uint64)
    scores, in_version = agenda.scores, agenda.versions
    grands, children = agenda.antecedents, agenda.children
    window = in_version.shape[1]
    for antecedent in range(mention - 1, low - 1, -1):
        k, slot = antecedent - low, antecedent % window
        if only and not allowed[k]:
            continue
        seen = 0
        for item in range(size):
            version = in_version[item, slot]
            at = 0
            while at < seen and seen_versions[at] != version:
                at += 1
            if at == seen:
                nonlocal_hashes(
                    arcs, begin, antecedent, mention, versions, version,
                    grands[item, slot], children[item, slot], values, k, hashes,
                )  # fmt: skip
                total = local[k]
                for template in range(templates):
                    total += weights[place(hashes[template], shift)]
                seen_versions[seen], seen_scores[seen] = version, total
                seen += 1
            score = scores[item] + seen_scores[at]
            if count < len(found[0]) or score > found[0][count - 1]:
                count = _insert(found, count, score, item, antecedent)
    return count


@njit(cache=True, nogil=True)
def _insert(
    found: tuple[Floats, AnyArray, AnyArray], count: int, score: float, item: int, antecedent: int
) -> int:
    """Put an expansion behind those that are as good; give how many there are now."""
    scores, items, antecedents = found
    room = len(scores)
    if count == room and not score > scores[count - 1]:
        return count
    at = min(count, room - 1)
    while at > 0 and score > scores[at - 1]:
        scores[at], items[at], antecedents[at] = scores[at - 1], items[at - 1], antecedents[at - 1]
        at -= 1
    scores[at], items[at], antecedents[at] = score, item, antecedent
    return min(count + 1, room)


@njit(cache=True, nogil=True)
def advance(
    arcs: Arcs,
    begin: int,
    mention: int,
    low: int,
    source: Agenda,
    target: Agenda,
    versions: Versions,
    allowed: Flags,
    latent_root: bool,
    found: tuple[Floats, AnyArray, AnyArray],
    count: int,
    trace: Trace,
    pool: int,
) -> None:
    """Build the next agenda of the expansions that `expand` found.

    Parameters
    ----------
    source, target : Agenda
        The agenda, and the one to write.
    trace : Trace
        Written at `mention`.
    pool : int
        Where the target's items stand in the trace.

    The others are as in `expand`.
    """
    window = source.versions.shape[1]
    kind = arcs.types[begin + mention]
    slot = mention % window
    alone = -1
    target.size[0] = count
    for new in range(count):
        item, antecedent = found[1][new], found[2][new]
        _copy_window(source, item, target, new, low, mention, window)
        target.scores[new] = found[0][new]
        correct = latent_root if antecedent < 0 else allowed[antecedent - low]
        target.wrong[new] = source.wrong[item] or not correct
        target.origins[new] = pool + new
        trace.parents[mention, pool + new] = source.origins[item]
        trace.antecedents[mention, pool + new] = antecedent
        trace.scores[mention, pool + new] = found[0][new]
        version = alone
        if antecedent >= 0:
            old = source.versions[item, antecedent % window]
            version = grow_cluster(versions, old, mention, kind)
            target.children[new, antecedent % window] = mention
            for other in range(low, mention):
                if target.versions[new, other % window] == old:
                    target.versions[new, other % window] = version
        elif alone < 0:
            version = alone = start_cluster(versions, mention, kind)
        # Last: the place may be that of `low`, which the next mention no longer reaches.
        target.antecedents[new, slot] = antecedent
        target.versions[new, slot] = version
        target.children[new, slot] = -1


@njit(cache=True, nogil=True)
def _copy_window(
    source: Agenda, item: int, target: Agenda, new: int, low: int, mention: int, window: int
) -> None:
    for other in range(low, mention):
        at = other % window
        target.antecedents[new, at] = source.antecedents[item, at]
        target.versions[new, at] = source.versions[item, at]
        target.children[new, at] = source.children[item, at]


@njit(cache=True, nogil=True)
def follow(trace: Trace, mention: int, origin: int) -> tuple[AnyArray, Floats]:
    """Read a partial tree back.

    Parameters
    ----------
    trace : Trace
    mention : int
        The last mention.
    origin : int
        Where the tree stands there.

    Returns
    -------
    antecedents : int64, shape (mention + 1,)
        Of the mentions up to this one, -1 for the root.
    scores : float64, shape (mention + 1,)
        Of the tree up to each.
    """
    antecedents, scores = np.empty(mention + 1, np.int64), np.empty(mention + 1)
    at = origin
    for back in range(mention, -1, -1):
        antecedents[back], scores[back] = trace.antecedents[back, at], trace.scores[back, at]
        at = trace.parents[back, at]
    return antecedents, scores


@njit(cache=True, nogil=True)
def new_trace(mentions: int, items: int) -> Trace:
    """Give room for the trace of so many items in all agendas."""
    room = np.zeros((mentions, items), np.int32)
    return Trace(room, room.copy(), np.zeros((mentions, items)))


@njit(cache=True, nogil=True)
def correct_arcs(clusters: AnyArray, begin: int, mention: int, low: int, allowed: Flags) -> bool:
    """Mark the correct antecedents of a mention; tell whether it has none.

    Parameters
    ----------
    clusters : int64, shape (mentions of the batch,)
    begin, mention, low : int
        The document's first mention in the batch; the anaphor and the first possible antecedent,
        counted in the document.
    allowed : Flags, at least shape (mention - low,)
        Written.
    """
    cluster = clusters[begin + mention]
    none = True
    for k in range(mention - low):
        allowed[k] = cluster >= 0 and clusters[begin + low + k] == cluster
        none = none and not allowed[k]
    return none


@njit(cache=True, nogil=True)
def beam_search(
    arcs: Arcs,
    document: int,
    weights: Floats,
    shift: int,
    window: int,
    beam: int,
    given: AnyArray,
) -> tuple[AnyArray, Floats]:
    """Find a tree over the mentions of a document with local and non-local features.

    Parameters
    ----------
    arcs, document, weights, shift, window
        As in `greedy.best_first`.
    beam : int
        How many partial trees are kept.
    given : int64, shape (mentions of the batch,)
        Clusters that are known, -1 for none: such a mention is attached to one of its cluster in
        the window, or else begins a cluster.

    Returns
    -------
    antecedents : int64, shape (mentions of the document,)
        Mentions of the batch, -1 for the root.
    scores : float64, shape (mentions of the document,)
        Of the arcs found.

    Notes
    -----
    O(mentions times window times (templates + beam + versions times non-local templates)) time,
    O(beam times (mentions + window)) memory.
    """
    begin, end = arcs.offsets[document], arcs.offsets[document + 1]
    count = end - begin
    window = max(min(window, count), 1)
    versions, trace = new_versions(count, beam), new_trace(count, beam)
    agenda, spare = new_agenda(beam, window), new_agenda(beam, window)
    unary = score_mentions(arcs, begin, end, weights, shift)
    row, values = np.empty(window), np.empty((window, len(PAIR_ATOMS)), np.uint64)
    found = np.empty(beam), np.empty(beam, np.int64), np.empty(beam, np.int64)
    allowed = np.zeros(window, np.bool_)
    for mention in range(count):
        low = max(0, mention - window)
        score_antecedents(arcs, begin, mention, low, unary, weights, shift, values, row)
        rootless = correct_arcs(given, begin, mention, low, allowed)
        kept = expand(
            arcs, begin, mention, low, agenda, versions, row, unary.root[mention], values,
            allowed, given[begin + mention] >= 0, rootless, weights, shift, found,
        )  # fmt: skip
        advance(
            arcs, begin, mention, low, agenda, spare, versions, allowed, rootless,
            found, kept, trace, 0,
        )  # fmt: skip
        agenda, spare = spare, agenda
    if count == 0:
        return np.empty(0, np.int64), np.empty(0)
    tree, totals = follow(trace, count - 1, agenda.origins[0])
    totals[1:] -= totals[:-1].copy()
    return np.where(tree < 0, -1, tree + begin), totals
