"""Gold and predicted mentions as the metrics take them. No Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.evaluation.linking import NIL, Links
from corpusmill.frames import any_in_row, list_offsets, refuse_null_items, refuse_rows
from corpusmill.linking.entities import Entities
from corpusmill.linking.folding import keys_of
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.model import Decoded, Scored
from corpusmill.types import AnyArray, Flags


def gold_links(batch: pa.RecordBatch, entities: Entities) -> Links:
    """Read the true mentions of a batch.

    An entity that the knowledge has not is still one to be found: it gets a number behind those of
    all others, which no prediction has, and so counts against recall.
    """
    return Links(
        list_offsets(batch.column("mention_starts")),
        batch.column("mention_starts").flatten().to_numpy(zero_copy_only=False),
        batch.column("mention_ends").flatten().to_numpy(zero_copy_only=False),
        numbered(batch.column("mention_entities").flatten(), entities),
    )


def check_mentions(batch: pa.RecordBatch) -> None:
    """Check that the true mentions of each text can be.

    Raises
    ------
    DataError
        DATA01: a text whose mentions cannot be, by name.
    """
    refuse_null_items(batch, ("mention_starts", "mention_ends"), "text_id", "text")
    bounds = list_offsets(batch.column("mention_starts"))

    def refuse(bad: Flags, rule: str) -> None:
        refuse_rows(batch, bad, rule, "text_id", "text")

    for name in ("mention_ends", "mention_entities"):
        other = np.diff(list_offsets(batch.column(name)))
        refuse(other != np.diff(bounds), f"{name} must be as many as mention_starts")
    sizes = np.repeat(
        pc.utf8_length(batch.column("text")).to_numpy(zero_copy_only=False), np.diff(bounds)
    )
    starts, ends = (
        batch.column(name).flatten().to_numpy(zero_copy_only=False)
        for name in ("mention_starts", "mention_ends")
    )
    wrong = (starts < 0) | (ends <= starts) | (ends > sizes)
    refuse(any_in_row(wrong, bounds), "0 <= start < end <= characters must hold for every mention")


def numbered(titles: pa.Array, entities: Entities) -> AnyArray:
    """Give the number of each title, `NIL` for null; titles unknown get numbers of their own."""
    numbers = entities.numbers(titles).astype(np.int64)
    valid = titles.is_valid().to_numpy(zero_copy_only=False)
    unknown = valid & (numbers < 0)
    _, own = np.unique(keys_of(titles)[unknown], return_inverse=True)
    numbers[unknown] = entities.size + own
    numbers[~valid] = NIL
    return numbers


def linked(scored: Scored, decoded: Decoded, knowledge: Knowledge) -> Links:
    """Give decoded mentions with characters of their texts."""
    begins, ends = scored.found.spans(decoded.rows)
    entities = scored.found.mentions.entities(knowledge.lexicon)
    return Links(decoded.offsets, begins, ends, entities[decoded.rows])
