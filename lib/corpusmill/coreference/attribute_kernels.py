"""Attributes that need a look at every word or constituent. Kernels on flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.coreference.documents import Constituents, Spans, Tokens
from corpusmill.coreference.hashing import FACTOR
from corpusmill.types import AnyArray


@njit(cache=True, nogil=True)
def word_masks(starts: AnyArray, ends: AnyArray, words: AnyArray) -> AnyArray:
    """Set a bit for each word of a span: no common bit, no common word; uint64, shape (spans,)."""
    result = np.zeros(len(starts), np.uint64)
    for span in range(len(starts)):
        for token in range(starts[span], ends[span]):
            result[span] |= np.uint64(1) << (words[token] >> np.uint64(58))
    return result


@njit(cache=True, nogil=True)
def acronyms(
    starts: AnyArray, ends: AnyArray, capitals: AnyArray, letters: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Find what may be short for what: NASA, National Aeronautics and Space Administration.

    Parameters
    ----------
    starts, ends : int64, shape (mentions,)
    capitals : uint32, shape (tokens,)
        The capital that a word begins with, 0 for none.
    letters : uint64, shape (tokens,)
        A hash of the letters of a word all in capitals, 0 for another.

    Returns
    -------
    letters, initials : uint64, shape (mentions,)
        Of a mention of one word its letters' hash; of one with two capitals at least the same
        hash of its words' capitals; else 0.
    """
    short = np.zeros(len(starts), np.uint64)
    initials = np.zeros(len(starts), np.uint64)
    for mention in range(len(starts)):
        start, end = starts[mention], ends[mention]
        if end - start == 1:
            short[mention] = letters[start]
            continue
        count = 0
        for token in range(start, end):
            if capitals[token]:
                initials[mention] = initials[mention] * np.uint64(FACTOR) + np.uint64(
                    capitals[token]
                )
                count += 1
        if count < 2:
            initials[mention] = 0
    return short, initials


@njit(cache=True, nogil=True)
def entity_labels(heads: AnyArray, entities: Spans) -> AnyArray:
    """Give the type of the innermost named entity that each head stands in, 0 for none; uint64."""
    result = np.zeros(len(heads), np.uint64)
    if not len(entities.ends):
        return result
    labels = np.zeros(entities.ends.max(), np.uint64)
    for entity in range(len(entities.starts)):
        # One inside of another follows it.
        labels[entities.starts[entity] : entities.ends[entity]] = entities.labels[entity]
    for mention in range(len(heads)):
        if heads[mention] < len(labels):
            result[mention] = labels[heads[mention]]
    return result


SUBJECT, OBJECT, OBLIQUE, NESTED, OTHER_ROLE = range(1, 6)


@njit(cache=True, nogil=True)
def _role(clause: bool, verb_phrase: bool, same: bool) -> int:
    if clause:
        return SUBJECT
    if verb_phrase:
        return OBJECT
    return NESTED if same else OBLIQUE


@njit(cache=True, nogil=True)
def clause_paths(
    mention_nodes: AnyArray,
    heads: AnyArray,
    nodes: Constituents,
    clause_labels: AnyArray,
    verb_phrase: int,
    tokens: Tokens,
) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """Climb from each mention to its clause.

    Parameters
    ----------
    mention_nodes, heads : int64, shape (mentions,)
        The constituent around each mention, -1 for none, and its head token.
    nodes : Constituents
    clause_labels : uint64, shape (labels,)
        Hashes of the labels of clauses.
    verb_phrase : uint64
        The hash of VP.
    tokens : Tokens

    Returns
    -------
    clauses : int64, shape (mentions,)
        The clause, -1 for none.
    paths : uint64, shape (mentions,)
        A hash of the labels from the mention to its clause: the grammatical function as Barzilay
        & Lapata (2008) approximate it. Without constituents, the relation to the governor.
    roles : uint64, shape (mentions,)
        1 below a clause, 2 below a verb phrase, 3 below another phrase, 4 inside a larger
        mention-like phrase, 5 none; or, without constituents, the relation.
    governors : uint64, shape (mentions,)
        The lemma (else the word) of the verb: head of the first verb phrase or clause above; or,
        without constituents, of the governor.
    """
    count = len(heads)
    clauses = np.full(count, -1, np.int64)
    paths, roles = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
    governors = np.zeros(count, np.uint64)
    for mention in range(count):
        node = mention_nodes[mention]
        if node < 0:
            paths[mention] = roles[mention] = tokens.relations[heads[mention]]
            above = tokens.governors[heads[mention]]
            if above >= 0:
                governors[mention] = tokens.lemmas[above] or tokens.lowers[above]
            continue
        path, role = nodes.labels[node], OTHER_ROLE
        at = nodes.parents[node]
        while at >= 0:
            label = nodes.labels[at]
            path = path * np.uint64(FACTOR) + label
            clause = bool(np.any(clause_labels == label))
            if role == OTHER_ROLE:
                role = _role(clause, label == verb_phrase, label == nodes.labels[node])
            if governors[mention] == 0 and (clause or label == verb_phrase):
                verb = nodes.heads[at]
                governors[mention] = tokens.lemmas[verb] or tokens.lowers[verb]
            if clause:
                clauses[mention] = at
                break
            at = nodes.parents[at]
        paths[mention], roles[mention] = path, np.uint64(role)
    return clauses, paths, roles, governors
