"""Texts to structured examples for `boosting`. No Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.frames import list_offsets
from corpusmill.linking.candidates import Gold, Mentions, find_mentions, gold_rows
from corpusmill.linking.features import feature_matrix
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.units import Units, units_of
from corpusmill.types import AnyArray, Floats, Offsets


class Found(NamedTuple):
    """The candidates of a batch of texts with their features.

    Attributes
    ----------
    units : Units
    mentions : Mentions
    features : Floats, shape (rows, features)
    """

    units: Units
    mentions: Mentions
    features: Floats

    def places(self) -> tuple[AnyArray, AnyArray]:
        """Give the first unit of each mention and the one after its last, from 0 in each text."""
        mentions = self.mentions
        unit = np.repeat(self.units.offsets[:-1], np.diff(mentions.texts))
        return mentions.firsts - unit, mentions.lasts + 1 - unit

    def spans(self, rows: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Give where the mentions of rows begin and end, in characters of their texts."""
        mentions = self.mentions
        owner = mentions.owners[rows]
        text = np.searchsorted(mentions.texts, owner, side="right") - 1
        shift = self.units.characters.texts[text]
        return mentions.begins[owner] - shift, mentions.ends[owner] - shift


def candidates_of(texts: pa.Array, knowledge: Knowledge, most: int) -> Found:
    """Find the mention candidates of texts and compute their features.

    Parameters
    ----------
    texts
        Strings; null is an empty text.
    knowledge
        Lexicon, entities and words.
    most
        T, the most entities of a mention.

    Returns
    -------
    Found

    Notes
    -----
    O(characters + rows * features).
    """
    units = units_of(texts)
    mentions = find_mentions(units, knowledge.lexicon, most)
    return Found(units, mentions, feature_matrix(units, mentions, knowledge))


def factors_of(
    texts: pa.RecordBatch, knowledge: Knowledge, most: int, further: Floats | None = None
) -> pa.RecordBatch:
    """Make a structured example of each text: a factor a mention candidate, Nil and T entities.

    Parameters
    ----------
    texts
        ``text_id`` and ``text`` (strings; a null text is an empty one); with the true mentions also
        ``mention_starts``, ``mention_ends`` (lists of int, characters of the text) and
        ``mention_entities`` (list of strings, null for a mention without an entity).
    knowledge
        Lexicon, entities and words.
    most
        T, the most entities of a mention.
    further : Floats, shape (rows, further features), optional
        Put behind the `features.FEATURES`, as the two of `coherence`.

    Returns
    -------
    pa.RecordBatch
        `schemas.FACTORS`, a row a text; true mentions that no row stands for are passed over.

    Notes
    -----
    O(characters + rows * features). A text without a candidate has no factor.
    """
    found = candidates_of(texts["text"], knowledge, most)
    mentions, size = found.mentions, len(texts)
    features = found.features if further is None else np.hstack([found.features, further])
    text_rows = mentions.rows[mentions.texts]
    starts, ends = found.places()
    nothing = pa.nulls(size, pa.list_(pa.int32()))
    known = "mention_starts" in texts.schema.names
    columns = {
        "example_id": texts["text_id"],
        "row_offsets": _row_offsets(mentions),
        "starts": _lists(starts, mentions.texts),
        "ends": _lists(ends, mentions.texts),
        "previous": nothing,
        "labels": nothing,
        "features": _lists(features.ravel(), text_rows * features.shape[1], pa.float64()),
        "gold": _gold_rows(texts, found, knowledge) if known else nothing,
    }
    return pa.record_batch(columns)


def _gold_rows(texts: pa.RecordBatch, found: Found, knowledge: Knowledge) -> pa.Array:
    starts, ends = texts["mention_starts"], texts["mention_ends"]
    gold = Gold(
        list_offsets(starts),
        starts.flatten().to_numpy().astype(np.int64),
        ends.flatten().to_numpy().astype(np.int64),
        texts["mention_entities"].flatten(),
    )
    mentions = found.mentions
    rows = gold_rows(gold, found.units, mentions, knowledge)
    text_rows = mentions.rows[mentions.texts]
    bounds = np.searchsorted(rows, text_rows)
    shift = np.repeat(text_rows[:-1], np.diff(bounds))
    return _lists(rows - shift, bounds)


def _row_offsets(mentions: Mentions) -> pa.Array:
    """Give, for each text, the offsets of its factors: one more than there are, from 0."""
    factors = np.diff(mentions.texts)
    bounds = np.concatenate(([0], np.cumsum(factors + 1)))
    text = np.repeat(np.arange(len(factors)), factors + 1)
    places = mentions.texts[:-1][text] + np.arange(bounds[-1]) - bounds[text]
    first = mentions.rows[mentions.texts[:-1]][text]
    return _lists(mentions.rows[places] - first, bounds)


def _lists(values: AnyArray, offsets: Offsets, kind: pa.DataType | None = None) -> pa.Array:
    # Arrow's lists count with 32 bits: a batch with more than 2^31 feature values is refused there.
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(values, kind or pa.int32())
    )
