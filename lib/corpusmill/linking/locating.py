"""Places for entities that gold names without saying where they are. No Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from corpusmill.frames import list_offsets
from corpusmill.linking.candidates import find_mentions
from corpusmill.linking.gold import numbered
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.units import units_of
from corpusmill.types import AnyArray, Flags


def locate_entities(texts: pa.RecordBatch, knowledge: Knowledge, most: int) -> pa.RecordBatch:
    """Give mentions to texts that have entities and no mention, such as those of WebQuestions.

    An entity's mention is the longest candidate that may be it, of equally long ones the first;
    an entity that no candidate may be has none.

    Parameters
    ----------
    texts
        ``text``, ``text_entities``, ``mention_starts``, ``mention_ends`` and ``mention_entities``
        of `schemas.LINKED_TEXTS`, and any other columns.
    knowledge
        Lexicon and entities.
    most
        T, the most entities of a mention.

    Returns
    -------
    pa.RecordBatch
        The same columns; texts with mentions stay as they are.

    Notes
    -----
    O(characters + rows log rows).
    """
    names = texts["text_entities"]
    bare = np.diff(list_offsets(texts["mention_starts"])) == 0
    owner = np.repeat(np.arange(len(texts)), np.diff(list_offsets(names)))
    numbers = numbered(names.flatten(), knowledge.entities)
    size = knowledge.entities.size
    asked = np.flatnonzero(bare[owner] & (numbers >= 0) & (numbers < size))

    units = units_of(texts["text"])
    mentions = find_mentions(units, knowledge.lexicon, most)
    entity = mentions.entities(knowledge.lexicon)
    mention = mentions.owners
    text = np.searchsorted(mentions.texts, mention, side="right") - 1
    key = np.where(entity < 0, -1, text * size + entity)
    wanted = owner[asked] * size + numbers[asked]
    rows = np.flatnonzero(np.isin(key, wanted))
    begins, ends = mentions.begins[mention[rows]], mentions.ends[mention[rows]]
    order = np.lexsort((begins, begins - ends, key[rows]))
    longest = order[np.unique(key[rows][order], return_index=True)[1]]
    chosen = longest[np.lexsort((begins[longest], text[rows][longest]))]
    shift = units.characters.texts[text[rows][chosen]]
    offsets = np.searchsorted(text[rows][chosen], np.arange(len(texts) + 1))
    titles = names.flatten().take(pa.array(_first_name(wanted, asked, key[rows][chosen])))
    columns = {
        "mention_starts": pa.array(begins[chosen] - shift, pa.int32()),
        "mention_ends": pa.array(ends[chosen] - shift, pa.int32()),
        "mention_entities": titles,
    }
    bounds = pa.array(offsets, pa.int32())
    placed = {
        name: _where(bare, pa.ListArray.from_arrays(bounds, values), texts[name])
        for name, values in columns.items()
    }
    kept = {name: texts[name] for name in texts.schema.names}
    return pa.record_batch(kept | placed)


def _first_name(wanted: AnyArray, asked: AnyArray, keys: AnyArray) -> AnyArray:
    """Give the place of the first name of each key among all names."""
    unique, first = np.unique(wanted, return_index=True)
    return asked[first[np.searchsorted(unique, keys)]]


def _where(flags: Flags, yes: pa.Array, no: pa.Array) -> pa.Array:
    """Choose lists row by row."""
    rows = np.arange(len(flags)) + np.where(flags, 0, len(flags))
    return pa.concat_arrays([yes.cast(no.type), no]).take(pa.array(rows))
