"""Features of arcs and their scores. Kernels on flat arrays.

The feature of template t on the arc from a to m is the 64-bit sum of its atoms' values, each times
the salt of its atom (`coreference.templates`); its weight stands at the place that the leading bits
of a multiple of that sum name: the hash kernel of Bohnet (2010).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from corpusmill.coreference.attributes import MentionTable
from corpusmill.coreference.pairs import PAIR_ATOMS, compare
from corpusmill.coreference.templates import (
    ANAPHOR,
    ANTECEDENT,
    MENTION_SLOTS,
    PAIR,
    Group,
    Templates,
)
from corpusmill.types import AnyArray, Floats, Offsets


class Arcs(NamedTuple):
    """All that the features of a batch's arcs are made of.

    Attributes
    ----------
    offsets : Offsets, shape (documents + 1,)
        Mentions of each document.
    attributes : MentionTable
    root, anaphor, antecedent : uint64, shape (mentions, templates of the group)
        Finished hashes.
    left, right : uint64, shape (mentions, pair templates)
        What the antecedent and the anaphor add to a hash.
    pair_bounds : int64, shape (2,)
        Pair templates before the first have no atom of pairs, those before the second have one.
    pair_offsets : Offsets, shape (pair templates + 1,)
    pair_atoms : int64, shape (atoms,)
    pair_salts : uint64, shape (atoms,)
    slots : uint64, shape (MENTION_SLOTS, mentions + 1, non-local templates)
        What a mention adds in each slot; the last row, where there is none.
    cluster_salts : uint64, shape (3, non-local templates)
        Salts of size, shape and start; 0 where a template lacks the atom.
    nonlocal_offsets, nonlocal_atoms, nonlocal_salts
        The pair atoms of non-local templates.
    types : int8, shape (mentions,)
    """

    offsets: Offsets
    attributes: MentionTable
    root: AnyArray
    anaphor: AnyArray
    antecedent: AnyArray
    left: AnyArray
    right: AnyArray
    pair_bounds: AnyArray
    pair_offsets: Offsets
    pair_atoms: AnyArray
    pair_salts: AnyArray
    slots: AnyArray
    cluster_salts: AnyArray
    nonlocal_offsets: Offsets
    nonlocal_atoms: AnyArray
    nonlocal_salts: AnyArray
    types: AnyArray


def build_arcs(
    offsets: Offsets, attributes: MentionTable, atoms: AnyArray, templates: Templates
) -> Arcs:
    """Sum what depends on single mentions.

    Parameters
    ----------
    offsets : Offsets, shape (documents + 1,)
        Mentions of each document.
    attributes : MentionTable
    atoms : uint64, shape (mentions, ATOMS)
        Its atoms as templates see them, rare values cut off.
    templates : Templates

    Returns
    -------
    Arcs

    Notes
    -----
    O(mentions times atoms of templates) time and memory.
    """
    none = np.vstack([atoms, np.zeros((1, atoms.shape[1]), np.uint64)])
    pair, far = templates.pair, templates.nonlocal_
    slots = [slot_sums(none, far, slot) for slot in range(MENTION_SLOTS)]
    slots[ANAPHOR] += far.seeds
    unary = [
        slot_sums(atoms, group, slot) + group.seeds
        for group, slot in (
            (templates.root, ANAPHOR),
            (templates.anaphor, ANAPHOR),
            (templates.antecedent, ANTECEDENT),
        )
    ]
    left, right = slot_sums(atoms, pair, ANTECEDENT), slot_sums(atoms, pair, ANAPHOR) + pair.seeds
    near, far_pairs = _pair_part(pair), _pair_part(far)
    return Arcs(
        offsets, attributes, unary[0], unary[1], unary[2], left, right,
        np.searchsorted(np.diff(near[0]), [1, 2]), near[0], near[1], near[2],
        np.stack(slots), _cluster_part(far),
        far_pairs[0], far_pairs[1], far_pairs[2], attributes.types,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def slot_sums(atoms: AnyArray, group: Group, slot: int) -> AnyArray:
    """Sum the salted atoms of a slot; uint64, shape (mentions, templates)."""
    result = np.zeros((len(atoms), len(group.seeds)), np.uint64)
    for template in range(len(group.seeds)):
        for atom in range(group.offsets[template], group.offsets[template + 1]):
            if group.slots[atom] == slot:
                column, salt = group.atoms[atom], group.salts[atom]
                for mention in range(len(atoms)):
                    result[mention, template] += atoms[mention, column] * salt
    return result


def _pair_part(group: Group) -> tuple[Offsets, AnyArray, AnyArray]:
    keep = group.slots == PAIR
    counts = np.concatenate([[0], np.cumsum(keep)])
    return counts[group.offsets], group.atoms[keep], group.salts[keep]


def _cluster_part(group: Group) -> AnyArray:
    salts = np.zeros((3, len(group.seeds)), np.uint64)
    template = np.repeat(np.arange(len(group.seeds)), np.diff(group.offsets))
    keep = group.slots > PAIR
    salts[group.atoms[keep], template[keep]] = group.salts[keep]
    return salts


@njit(cache=True, nogil=True, inline="always")
def place(hashed: Any, shift: int) -> Any:
    """Give the place of a feature, uint64, among 2^(64 - shift) weights; int64."""
    mixed = (hashed ^ (hashed >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return np.int64(mixed >> np.uint64(shift))


@njit(cache=True, nogil=True)
def places(hashes: AnyArray, shift: int) -> AnyArray:
    """Give the place of each feature of a matrix; int64."""
    result = np.empty(hashes.shape, np.int64)
    for row in range(hashes.shape[0]):
        for column in range(hashes.shape[1]):
            result[row, column] = place(hashes[row, column], shift)
    return result


@njit(cache=True, nogil=True)
def unary_scores(hashes: AnyArray, begin: int, end: int, weights: Floats, shift: int) -> Floats:
    """Sum the weights of the features of single mentions; shape (end - begin,)."""
    result = np.zeros(end - begin)
    for mention in range(begin, end):
        total = 0.0
        for template in range(hashes.shape[1]):
            total += weights[place(hashes[mention, template], shift)]
        result[mention - begin] = total
    return result


@njit(cache=True, nogil=True)
def pair_scores(
    arcs: Arcs,
    anaphor: int,
    low: int,
    high: int,
    weights: Floats,
    shift: int,
    values: AnyArray,
    out: Floats,
) -> None:
    """Score the arcs to a mention from some before it, by the templates of pairs.

    Parameters
    ----------
    arcs : Arcs
    anaphor, low, high : int
        Mentions of the batch; antecedents are ``low:high``.
    weights : float64, shape (2^(64 - shift),)
    shift : int
    values : uint64, at least shape (high - low, PAIR_ATOMS)
        Written: `pairs.compare` of each antecedent.
    out : float64, at least shape (high - low,)
        Added to.

    Notes
    -----
    O(antecedents times templates).
    """
    compare(arcs.attributes, anaphor, low, high, values)
    # Bound once: to take an array out of a tuple costs more than a weight.
    left, right = arcs.left, arcs.right
    atoms, salts, offsets = arcs.pair_atoms, arcs.pair_salts, arcs.pair_offsets
    templates = left.shape[1]
    bare, single = arcs.pair_bounds[0], arcs.pair_bounds[1]
    for antecedent in range(low, high):
        at = antecedent - low
        total = 0.0
        for template in range(bare):
            hashed = left[antecedent, template] + right[anaphor, template]
            total += weights[place(hashed, shift)]
        for template in range(bare, single):
            hashed = left[antecedent, template] + right[anaphor, template]
            atom = template - bare
            hashed += values[at, atoms[atom]] * salts[atom]
            total += weights[place(hashed, shift)]
        for template in range(single, templates):
            hashed = left[antecedent, template] + right[anaphor, template]
            for atom in range(offsets[template], offsets[template + 1]):
                hashed += values[at, atoms[atom]] * salts[atom]
            total += weights[place(hashed, shift)]
        out[at] += total


class Unary(NamedTuple):
    """Scores of a document's mentions alone.

    Attributes
    ----------
    root : float64, shape (mentions of the document,)
        Of the arc from the root.
    antecedent, anaphor : float64, shape (mentions of the document,)
        What it adds to each arc from it, and to each arc to it but that from the root.
    """

    root: Floats
    antecedent: Floats
    anaphor: Floats


@njit(cache=True, nogil=True)
def score_mentions(arcs: Arcs, begin: int, end: int, weights: Floats, shift: int) -> Unary:
    """Score the mentions of a document by the templates of single mentions."""
    return Unary(
        unary_scores(arcs.root, begin, end, weights, shift),
        unary_scores(arcs.antecedent, begin, end, weights, shift),
        unary_scores(arcs.anaphor, begin, end, weights, shift),
    )


@njit(cache=True, nogil=True)
def score_antecedents(
    arcs: Arcs,
    begin: int,
    mention: int,
    low: int,
    unary: Unary,
    weights: Floats,
    shift: int,
    values: AnyArray,
    out: Floats,
) -> None:
    """Score the arcs to a mention by all local templates.

    Parameters
    ----------
    arcs : Arcs
    begin : int
        The document's first mention in the batch.
    mention, low : int
        Mentions of the document: the anaphor and its first possible antecedent.
    unary : Unary
    weights, shift, values
        As in `pair_scores`.
    out : float64, at least shape (mention - low,)
        Written.
    """
    for k in range(mention - low):
        out[k] = unary.antecedent[low + k] + unary.anaphor[mention]
    anaphor = begin + mention
    pair_scores(arcs, anaphor, begin + low, anaphor, weights, shift, values, out)


@njit(cache=True, nogil=True)
def local_features(arcs: Arcs, antecedent: int, anaphor: int, shift: int, places: AnyArray) -> int:
    """Write the places of the local features of an arc; give how many.

    Parameters
    ----------
    arcs : Arcs
    antecedent, anaphor : int
        Mentions of the batch; the antecedent -1 is the root.
    shift : int
    places : int64
        Written.
    """
    count = 0
    if antecedent < 0:
        for template in range(arcs.root.shape[1]):
            places[count] = place(arcs.root[anaphor, template], shift)
            count += 1
        return count
    for template in range(arcs.anaphor.shape[1]):
        places[count] = place(arcs.anaphor[anaphor, template], shift)
        count += 1
    for template in range(arcs.antecedent.shape[1]):
        places[count] = place(arcs.antecedent[antecedent, template], shift)
        count += 1
    values = np.empty((1, len(PAIR_ATOMS)), np.uint64)
    compare(arcs.attributes, anaphor, antecedent, antecedent + 1, values)
    for template in range(arcs.left.shape[1]):
        hashed = arcs.left[antecedent, template] + arcs.right[anaphor, template]
        for atom in range(arcs.pair_offsets[template], arcs.pair_offsets[template + 1]):
            hashed += values[0, arcs.pair_atoms[atom]] * arcs.pair_salts[atom]
        places[count] = place(hashed, shift)
        count += 1
    return count


@njit(cache=True, nogil=True)
def most_features(arcs: Arcs) -> int:
    """Give how many features an arc has at most."""
    local = arcs.anaphor.shape[1] + arcs.antecedent.shape[1] + arcs.left.shape[1]
    return int(max(arcs.root.shape[1], local + arcs.slots.shape[2]))
