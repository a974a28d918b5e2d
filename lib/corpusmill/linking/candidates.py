"""Mention candidates of a batch of texts and the entities each may be. No Spark."""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.evaluation.linking import NIL
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.lexicon import Lexicon
from corpusmill.linking.units import Units, find_ngrams
from corpusmill.types import AnyArray, Offsets


class Mentions(NamedTuple):
    """Mention candidates and their rows: Nil first, then at most T entities, likeliest first.

    Attributes
    ----------
    texts : Offsets, shape (texts + 1,)
        Text n has the mentions ``texts[n]:texts[n + 1]``.
    firsts, lasts : int32, shape (mentions,)
        Units, numbered through the batch; ``lasts`` inclusive. By first unit, then by last.
    surfaces : int32, shape (mentions,)
        Surface forms of the lexicon.
    cut : int32, shape (mentions,)
        1 where a last "s" was taken off to find it.
    begins, ends : int64, shape (mentions,)
        Characters of the batch (`Units`).
    rows : Offsets, shape (mentions + 1,)
        Mention m has the rows ``rows[m]:rows[m + 1]``.
    owners : int64, shape (rows,)
        The mention of each row.
    candidates : int64, shape (rows,)
        The candidate of the lexicon, NIL in the first row of each mention.
    """

    texts: Offsets
    firsts: AnyArray
    lasts: AnyArray
    surfaces: AnyArray
    cut: AnyArray
    begins: AnyArray
    ends: AnyArray
    rows: Offsets
    owners: AnyArray
    candidates: AnyArray

    def entities(self, lexicon: Lexicon) -> AnyArray:
        """Give the number of each row's entity, NIL for Nil."""
        padded = np.append(lexicon.entities, np.int32(NIL))
        return padded[self.candidates]


def find_mentions(units: Units, lexicon: Lexicon, most: int) -> Mentions:
    """Find every n-gram of the texts that the lexicon knows.

    Parameters
    ----------
    units
        Of the texts.
    lexicon
        The surface forms.
    most
        T, the most entities of a mention.

    Returns
    -------
    Mentions

    Notes
    -----
    O(units * longest n-gram + rows).
    """
    grams = find_ngrams(units, lexicon.surfaces)
    firsts, lasts, surfaces, cut = grams.T
    begin = lexicon.offsets[surfaces]
    sizes = np.minimum(lexicon.offsets[surfaces + 1] - begin, most) + 1
    rows = np.concatenate(([0], np.cumsum(sizes)))
    owners = np.repeat(np.arange(len(grams)), sizes)
    within = np.arange(rows[-1]) - rows[owners]
    candidates = np.where(within == 0, NIL, begin[owners] + within - 1)
    return Mentions(
        np.searchsorted(firsts, units.offsets),
        firsts,
        lasts,
        surfaces,
        cut,
        units.begins[firsts],
        units.ends[lasts],
        rows,
        owners,
        candidates,
    )


class Gold(NamedTuple):
    """True mentions of a batch of texts.

    Attributes
    ----------
    offsets : Offsets, shape (texts + 1,)
        Text n has the mentions ``offsets[n]:offsets[n + 1]``.
    starts, ends : int64, shape (mentions,)
        Characters of the text.
    entities : pa.Array of strings
        Titles; null is a mention without an entity, which is passed over.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    entities: pa.Array


def gold_rows(gold: Gold, units: Units, mentions: Mentions, knowledge: Knowledge) -> AnyArray:
    """Find the rows of true mentions: the same characters and the same entity.

    Returns
    -------
    int64
        Ascending; none of two overlapping mentions, of which the longer is kept, the first of
        equally long ones; none Nil.

    Notes
    -----
    O((mentions + rows) log), and for texts with overlapping true mentions their squares.
    """
    linked = np.flatnonzero(gold.entities.is_valid().to_numpy(zero_copy_only=False))
    text = np.repeat(np.arange(len(gold.offsets) - 1), np.diff(gold.offsets))[linked]
    shift = units.characters.texts[text]
    begins, ends = gold.starts[linked] + shift, gold.ends[linked] + shift
    apart = _longest_first(begins, ends)
    begins, ends = begins[apart], ends[apart]
    entities = knowledge.entities.numbers(gold.entities.take(pa.array(linked[apart])))
    known = entities >= 0

    size = len(units.characters.classes) + 1
    row_span = (mentions.begins * size + mentions.ends)[mentions.owners]
    spans, span = np.unique(row_span, return_inverse=True)
    kinds = knowledge.entities.size + 1
    row_key = span * kinds + mentions.entities(knowledge.lexicon) + 1
    order = np.argsort(row_key, kind="stable")
    at = np.searchsorted(spans, begins * size + ends)
    at = np.minimum(at, max(len(spans) - 1, 0))
    there = np.zeros(len(begins), np.bool_)
    rows = np.zeros(len(begins), np.int64)
    if len(spans):
        wanted = at * kinds + entities + 1
        place = np.minimum(np.searchsorted(row_key[order], wanted), len(order) - 1)
        rows = order[place]
        there = known & (spans[at] == begins * size + ends) & (row_key[rows] == wanted)
    return np.sort(rows[there])


def _longest_first(begins: AnyArray, ends: AnyArray) -> AnyArray:
    """Choose spans that do not overlap, longer ones first; their numbers, ascending."""
    order = np.lexsort((ends, begins))
    reach = np.maximum.accumulate(ends[order]) if len(order) else ends
    free = np.ones(len(order), np.bool_)
    free[1:] = begins[order][1:] >= reach[:-1]
    # Groups of spans that hang together; only those of several need a look at each pair.
    group = np.cumsum(free) - 1
    several = np.bincount(group, minlength=1)[group] > 1 if len(group) else free
    chosen = list(order[~several])
    tangled = order[several]
    ranked = tangled[np.lexsort((begins[tangled], begins[tangled] - ends[tangled]))]
    group_of = np.empty(len(order), np.int64)
    group_of[order] = group
    taken: dict[int, list[int]] = {}
    for span in ranked.tolist():
        mine = taken.setdefault(int(group_of[span]), [])
        if all(ends[span] <= begins[other] or ends[other] <= begins[span] for other in mine):
            mine.append(span)
    return np.sort(np.array([*chosen, *chain.from_iterable(taken.values())], np.int64))
