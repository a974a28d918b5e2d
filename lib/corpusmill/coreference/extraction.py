"""Candidate mentions: a chain of extractors, then of filters. Arrays only, no Spark.

Source: Björkelund & Kuhn (2014, section 7), who take the mentions of Björkelund & Farkas (2012).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.coreference.documents import Constituents, Documents, Spans, Tokens, hash_strings
from corpusmill.coreference.languages import (
    COMMON_NOUN,
    CONJUNCTION,
    PERSONAL,
    PROPER_NOUN,
)
from corpusmill.coreference.settings import MentionSettings
from corpusmill.types import AnyArray, Flags, Offsets


class Mentions(NamedTuple):
    """Mentions of a batch, in the order of (start, -end) in each document.

    Attributes
    ----------
    offsets : Offsets, shape (documents + 1,)
    starts, ends : int64, shape (mentions,)
        Tokens of the batch; ends are exclusive.
    heads : int64, shape (mentions,)
        Head tokens.
    nodes : int64, shape (mentions,)
        The smallest constituent around it (of several of one span the highest), -1 for none.
    clusters : int64, shape (mentions,)
        The true cluster, -1 for none.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    heads: AnyArray
    nodes: AnyArray
    clusters: AnyArray

    def take(self, keep: Flags) -> Mentions:
        """Keep some of the mentions."""
        counts = np.concatenate([[0], np.cumsum(keep)])
        return Mentions(counts[self.offsets], *(column[keep] for column in self[1:]))


def extract_mentions(
    documents: Documents, settings: MentionSettings, inject_gold: bool = False
) -> Mentions:
    """Find the candidate mentions of a batch.

    Parameters
    ----------
    documents : Documents
    settings : MentionSettings
        Which constituents, tags and entities are mentions.
    inject_gold : bool
        Whether true mentions are candidates too, for training.

    Returns
    -------
    Mentions
        No span twice. Of candidates with one head only the longest is kept if the settings say
        so; true mentions that are injected are always kept.

    Notes
    -----
    O(constituents + tokens + mentions log mentions).
    """
    gold = documents.gold
    parts = list(_candidates(documents, settings))
    if inject_gold:
        parts.append((gold.starts, gold.ends))
    mentions = _located(documents, *(np.concatenate(each) for each in zip(*parts, strict=True)))
    if settings.one_per_head:
        keep = longest_of_head(mentions)
        mentions = mentions.take(keep | (mentions.clusters >= 0) if inject_gold else keep)
    return mentions


def given_mentions(documents: Documents) -> Mentions:
    """Take the mentions that stand in the documents."""
    return _located(documents, documents.gold.starts, documents.gold.ends)


def _located(documents: Documents, starts: AnyArray, ends: AnyArray) -> Mentions:
    """Order spans, each once, and find their heads."""
    tokens, gold = documents.tokens, documents.gold
    keys = np.unique(starts * (1 << 31) + ((1 << 31) - 1 - (ends - starts)))
    starts = keys >> 31
    ends = starts + ((1 << 31) - 1 - (keys & ((1 << 31) - 1)))
    offsets = np.searchsorted(starts, tokens.offsets)
    lowest = lowest_constituents(len(tokens.forms), documents.constituents)
    nodes, heads = locate_mentions(starts, ends, lowest, documents.constituents, tokens)
    return Mentions(offsets, starts, ends, heads, nodes, gold_clusters(starts, ends, gold))


def _candidates(documents: Documents, settings: MentionSettings) -> list[tuple[AnyArray, AnyArray]]:
    tokens, nodes, entities = documents.tokens, documents.constituents, documents.entities
    wanted = np.isin(nodes.labels, hash_strings(settings.constituents))
    tagged = np.flatnonzero(np.isin(tokens.tags, hash_strings(settings.tags)))
    parts = [(nodes.starts[wanted], nodes.ends[wanted]), (tagged, tagged + 1)]
    if settings.entities:
        kept = ~np.isin(entities.labels, hash_strings(settings.not_entities))
        parts.append((entities.starts[kept], entities.ends[kept]))
    bare = np.repeat(np.diff(nodes.offsets) == 0, np.diff(tokens.offsets))
    if settings.subtrees and bare.any():
        parts.append(subtrees(tokens, bare))
    return parts


def gold_clusters(starts: AnyArray, ends: AnyArray, gold: Spans) -> AnyArray:
    """Give the true cluster of each span, -1 for none; int64."""
    if not len(gold.starts):
        return np.full(len(starts), -1, np.int64)
    keys = gold.starts * (1 << 31) + gold.ends - gold.starts
    order = np.argsort(keys, kind="stable")
    wanted = starts * (1 << 31) + ends - starts
    found = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    hit = keys[order][found] == wanted
    return np.where(hit, gold.labels[order][found], -1)


@njit(cache=True, nogil=True)
def subtrees(tokens: Tokens, bare: Flags) -> tuple[AnyArray, AnyArray]:
    """Give the span of each noun's or pronoun's dependents where there are no constituents.

    Parameters
    ----------
    tokens : Tokens
    bare : Flags, shape (tokens,)
        Whether the document has no constituents.

    Returns
    -------
    starts, ends : int64, shape (nouns,)
        From the first to the last token below the noun, and itself.
    """
    count = len(bare)
    first, last = np.arange(count), np.arange(count)
    for sentence in range(len(tokens.sentence_offsets) - 1):
        begin, end = tokens.sentence_offsets[sentence], tokens.sentence_offsets[sentence + 1]
        if begin == end or not bare[begin]:
            continue
        for token in range(begin, end):
            above, steps = token, 0
            # A cycle would be a fault of the input; it ends with the sentence's length.
            while tokens.governors[above] >= 0 and steps < end - begin:
                above, steps = tokens.governors[above], steps + 1
                first[above], last[above] = min(first[above], token), max(last[above], token)
    nominal = np.zeros(count, np.bool_)
    for token in range(count):
        kind = tokens.classes[token]
        nominal[token] = bare[token] and COMMON_NOUN <= kind <= PERSONAL
    return first[nominal], last[nominal] + 1


@njit(cache=True, nogil=True)
def lowest_constituents(tokens: int, nodes: Constituents) -> AnyArray:
    """Give the lowest constituent over each token, -1 for none; int64, shape (tokens,)."""
    lowest = np.full(tokens, -1, np.int64)
    for node in range(len(nodes.starts)):
        lowest[nodes.starts[node] : nodes.ends[node]] = node
    return lowest


@njit(cache=True, nogil=True)
def locate_mentions(
    starts: AnyArray, ends: AnyArray, lowest: AnyArray, nodes: Constituents, tokens: Tokens
) -> tuple[AnyArray, AnyArray]:
    """Find the constituent around each mention and the mention's head.

    Parameters
    ----------
    starts, ends : int64, shape (mentions,)
    lowest : int64, shape (tokens,)
        Of `lowest_constituents`.
    nodes : Constituents
    tokens : Tokens

    Returns
    -------
    nodes, heads : int64, shape (mentions,)
        The head is that of the constituent if it is inside the mention; where there is none
        around it but dependencies, the first token whose governor is outside or that is a root;
        else the last noun, else the last token.
    """
    around = np.full(len(starts), -1, np.int64)
    heads = np.empty(len(starts), np.int64)
    for mention in range(len(starts)):
        start, end = starts[mention], ends[mention]
        node = lowest[start]
        while node >= 0 and nodes.ends[node] < end:
            node = nodes.parents[node]
        while node >= 0 and nodes.parents[node] >= 0:
            above = nodes.parents[node]
            if nodes.starts[above] != start or nodes.ends[above] != end:
                break
            node = above
        around[mention] = node
        if node >= 0 and start <= nodes.heads[node] < end:
            heads[mention] = nodes.heads[node]
        else:
            heads[mention] = _head_of_span(start, end, node >= 0, tokens)
    return around, heads


@njit(cache=True, nogil=True)
def _head_of_span(start: int, end: int, parsed: bool, tokens: Tokens) -> int:
    if not parsed:
        top, depends = -1, False
        for token in range(start, end):
            governor = tokens.governors[token]
            depends = depends or governor >= 0
            if top < 0 and not start <= governor < end:
                top = token
        if depends and top >= 0:
            return top
    for token in range(end - 1, start - 1, -1):
        if tokens.classes[token] == COMMON_NOUN or tokens.classes[token] == PROPER_NOUN:
            return token
    return end - 1


def longest_of_head(mentions: Mentions) -> Flags:
    """Tell which mentions are the longest of those with their head; shape (mentions,)."""
    lengths = mentions.ends - mentions.starts
    order = np.lexsort((-lengths, mentions.heads))
    heads = mentions.heads[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = heads[1:] != heads[:-1]
    keep = np.zeros(len(order), np.bool_)
    keep[order] = first
    return keep


def coordinated(mentions: Mentions, tokens: Tokens) -> Flags:
    """Tell which mentions are coordinations, whose head is a conjunction; shape (mentions,)."""
    return np.asarray(tokens.classes[mentions.heads] == CONJUNCTION)
