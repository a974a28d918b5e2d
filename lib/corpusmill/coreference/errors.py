"""Errors of coreference by spanning trees, after Martschat & Strube (2014, EMNLP).

A cluster with m mentions has m - 1 links, a spanning tree: each mention but the first to one before
it. A link is an error if the other side does not have both of its mentions in one cluster. Thus the
links of gold clusters give the errors of recall, and those of the system's clusters, which are its
own antecedent decisions, the errors of precision.

The tree of a gold cluster: a pronoun's antecedent is the closest mention before it in the cluster;
that of a name or a common noun is the closest before it in the cluster with the same head, or, if
there is none, the closest. Mentions are in the order of their starts, longer before shorter. A
cluster that the other side splits into p parts has at least p - 1 errors, more where the parts
alternate in the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusmill.evaluation.coreference import Mentions
from corpusmill.types import AnyArray, Floats, Offsets

NAME, COMMON, PRONOUN = 0, 1, 2
TYPES = ("name", "common", "pronoun")
"""The types of mentions by their numbers."""


class Links(NamedTuple):
    """Links of anaphors to their antecedents, in the order of the anaphors.

    Attributes
    ----------
    documents : int64, shape (links,)
    antecedents, anaphors : int64, shape (links,)
        Places in the arrays of the mentions.
    """

    documents: AnyArray
    antecedents: AnyArray
    anaphors: AnyArray


def spanning_links(mentions: Mentions, types: AnyArray, heads: AnyArray) -> Links:
    """Give the spanning tree of each cluster by the rule above.

    Parameters
    ----------
    mentions
        No span twice in a document.
    types : int, shape (mentions,)
        `NAME`, `COMMON` or `PRONOUN`.
    heads : int, shape (mentions,)
        The same number for the same head word.

    Returns
    -------
    Links
        One link fewer in each cluster than it has mentions.

    Notes
    -----
    O(n log n) in mentions.
    """
    documents = _owners(mentions.offsets)
    order = (-mentions.ends.astype(np.int64), mentions.starts)
    closest = _before(order, (mentions.clusters, documents))
    alike = _before(order, (heads, mentions.clusters, documents))
    antecedents = np.where((types != PRONOUN) & (alike >= 0), alike, closest)
    return antecedent_links(mentions, antecedents)


def antecedent_links(mentions: Mentions, antecedents: AnyArray) -> Links:
    """Give the links of a system's decisions.

    Parameters
    ----------
    mentions
        The system's mentions.
    antecedents : int, shape (mentions,)
        The place of each mention's antecedent in the arrays of ``mentions``, -1 for none.

    Returns
    -------
    Links
    """
    anaphors = np.flatnonzero(antecedents >= 0)
    return Links(
        _owners(mentions.offsets)[anaphors], antecedents[anaphors].astype(np.int64), anaphors
    )


def wrong_links(links: Links, mentions: Mentions, other: Mentions) -> Links:
    """Give those links whose mentions the other side does not have in one cluster.

    Parameters
    ----------
    links
        Links of ``mentions``.
    mentions, other
        Mentions of the same documents by both sides. A mention that the other side does not have is
        in none of its clusters.

    Returns
    -------
    Links

    Raises
    ------
    ValueError
        Not as many documents on both sides.
    """
    if len(mentions.offsets) != len(other.offsets):
        raise ValueError("the mentions of the two sides are of different documents")
    twins = _twins(mentions, other)
    one, two = twins[links.antecedents], twins[links.anaphors]
    found = (one >= 0) & (two >= 0)
    right = found.copy()
    right[found] = other.clusters[one[found]] == other.clusters[two[found]]
    return Links(*(each[~right] for each in links))


def count_types(links: Links, types: AnyArray) -> Floats:
    """Count links by the types of their mentions; counts of parts add up.

    Parameters
    ----------
    links
        All links, or those that are errors.
    types : int, shape (mentions,)
        `NAME`, `COMMON` or `PRONOUN`.

    Returns
    -------
    Floats, shape (3, 3)
        A row a type of anaphor, a column a type of antecedent.
    """
    size = len(TYPES)
    cells = types[links.anaphors].astype(np.int64) * size + types[links.antecedents]
    return np.bincount(cells, minlength=size * size).reshape(size, size).astype(np.float64)


def _owners(offsets: Offsets) -> AnyArray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _before(order: tuple[AnyArray, ...], keys: tuple[AnyArray, ...]) -> AnyArray:
    """Return the closest mention before each, in the order, with the same keys, -1 for none."""
    places = np.lexsort((*order, *keys))
    found = np.full(len(places), -1, np.int64)
    same = np.ones(max(len(places) - 1, 0), np.bool_)
    for key in keys:
        same &= key[places][1:] == key[places][:-1]
    found[places[1:][same]] = places[:-1][same]
    return found


def _twins(mentions: Mentions, other: Mentions) -> AnyArray:
    """Return the place of each mention in the other side, the first of several, -1 for none."""
    size = len(other.starts)
    documents = np.concatenate([_owners(other.offsets), _owners(mentions.offsets)])
    starts, ends = (np.concatenate([other[n], mentions[n]]) for n in (1, 2))
    # Equal spans keep their order: the other side's come first.
    order = np.lexsort((ends, starts, documents))
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for key in (documents, starts, ends):
        new[1:] |= key[order][1:] != key[order][:-1]
    first = order[new][np.cumsum(new) - 1]
    twins = np.empty(len(order), np.int64)
    twins[order] = np.where(first < size, first, -1)
    return twins[size:]
