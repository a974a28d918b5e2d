"""Texts to structured examples for `boosting`. No Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

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
        `schemas.FACTORS`, a row a text, and what leads back from a row to its entity:

        ``row_entities`` (list of int32)
            The number of each row's entity (`entities.Entities`), -1 for Nil.
        ``span_starts``, ``span_ends`` (lists of int32)
            The characters of each factor in the text.
        ``gold_overlapping``, ``gold_unknown``, ``gold_unfound`` (int32)
            True mentions that no row stands for (`candidates.GoldRows`); null without any given.

    Notes
    -----
    O(characters + rows * features). A text without a candidate has no factor.
    """
    found = candidates_of(texts["text"], knowledge, most)
    mentions, size = found.mentions, len(texts)
    features = found.features if further is None else np.hstack([found.features, further])
    text_rows = mentions.rows[mentions.texts]
    of_text = np.repeat(np.arange(size), np.diff(mentions.texts))
    unit, char = found.units.offsets[of_text], found.units.characters.texts[of_text]
    gold = _gold_columns(texts, found, knowledge) if "mention_starts" in texts.schema.names else {}
    nothing = pa.nulls(size, pa.list_(pa.int32()))
    counts = {f"gold_{name}": pa.nulls(size, pa.int32()) for name in _UNMATCHED}
    columns = {
        "example_id": texts["text_id"],
        "row_offsets": _row_offsets(mentions),
        "starts": _lists(mentions.firsts - unit, mentions.texts),
        "ends": _lists(mentions.lasts + 1 - unit, mentions.texts),
        "previous": nothing,
        "labels": nothing,
        "features": _lists(features.ravel(), text_rows * features.shape[1], pa.float64()),
        "gold": nothing,
        "row_entities": _lists(mentions.entities(knowledge.lexicon), text_rows),
        "span_starts": _lists(mentions.begins - char, mentions.texts),
        "span_ends": _lists(mentions.ends - char, mentions.texts),
        **counts,
    }
    return pa.record_batch(columns | gold)


_UNMATCHED = ("overlapping", "unknown", "unfound")


def _gold_columns(texts: pa.RecordBatch, found: Found, knowledge: Knowledge) -> dict[str, pa.Array]:
    starts, ends = texts["mention_starts"], texts["mention_ends"]
    offsets = np.concatenate(([0], np.cumsum(starts.value_lengths().fill_null(0).to_numpy())))
    gold = Gold(
        offsets,
        starts.flatten().to_numpy().astype(np.int64),
        ends.flatten().to_numpy().astype(np.int64),
        texts["mention_entities"].flatten(),
    )
    mentions = found.mentions
    matched = gold_rows(gold, found.units, mentions, knowledge)
    text_rows = mentions.rows[mentions.texts]
    bounds = np.searchsorted(matched.rows, text_rows)
    shift = np.repeat(text_rows[:-1], np.diff(bounds))
    unmatched = {
        name: np.bincount(getattr(matched, name), minlength=len(texts)) for name in _UNMATCHED
    }
    return {
        "gold": _lists(matched.rows - shift, bounds),
        **{f"gold_{name}": pa.array(count, pa.int32()) for name, count in unmatched.items()},
    }


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
