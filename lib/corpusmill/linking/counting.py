"""Counting what a linker found in a batch of texts, as sums that partitions can add. No Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from corpusmill.evaluation.linking import (
    NIL,
    LinkCounts,
    Links,
    count_links,
    count_presence,
    covered,
    link_metrics,
)
from corpusmill.frames import list_offsets
from corpusmill.linking.gold import gold_links, linked, numbered
from corpusmill.linking.model import Decoded, LinkingModel, Scored
from corpusmill.types import AnyArray, Floats, Offsets

LONGEST = 4
"""Mentions of so many words and more are one group."""
TYPES = ("person", "location", "organization", "product", "event", "character", "thing")
LENGTHS = (*(f"length_{n}" for n in range(1, LONGEST)), f"length_{LONGEST}_and_more")
SYSTEM = "system_entities"
"""The column of what another system says of a text, the best first."""


def no_counts() -> dict[str, Floats]:
    """Give what `count_all` gives of no text."""
    return {
        "overlapping": np.zeros((4, len(TYPES) + len(LENGTHS))),
        "exact": np.zeros((4, 1)),
        "presence": np.zeros((4, 1)),
        "first": np.zeros(3),
        "gold": np.zeros(3),
    }


def count_all(
    batch: pa.RecordBatch,
    scored: Scored,
    found: Links,
    model: LinkingModel,
    queries: Sequence[str],
) -> dict[str, Floats]:
    """Count the links found in a batch of texts against the gold ones.

    Returns
    -------
    dict of arrays
        ``overlapping``, by `TYPES` and then `LENGTHS`, ``exact`` and ``presence``: rows as the
        fields of `LinkCounts`. ``first``: texts that name an entity that the knowledge has; of
        those, where the best candidate is one, and where the other system's best is.
        ``gold``: linked mentions; those with a candidate that overlaps, and at the same place.
    """
    entities = model.knowledge.entities
    gold = gold_links(batch, entities)
    kinds = len(TYPES)
    by_type = count_links(
        gold, found, False, types_of(gold.entities, model), types_of(found.entities, model), kinds
    )
    texts = batch.column("text")
    by_length = count_links(
        gold, found, False, lengths_of(gold, texts), lengths_of(found, texts), len(LENGTHS)
    )
    asked = np.unique(numbered(pa.array(queries, pa.string()), entities))
    names = list_offsets(batch.column("text_entities"))
    named = numbered(batch.column("text_entities").flatten(), entities)
    presence = count_presence(
        names,
        named,
        found.offsets,
        found.entities,
        asked[asked < entities.size],
    )
    # An entity that the knowledge has not is mentioned by texts all the same.
    missing = np.count_nonzero(named >= entities.size)
    candidates = candidate_links(scored, model)
    return {
        "overlapping": np.hstack([np.stack(by_type), np.stack(by_length)]),
        "exact": np.stack(count_links(gold, found, True)),
        "presence": np.stack(presence).sum(axis=1, keepdims=True)
        + np.array([[0.0], [0.0], [0.0], [missing]]),
        "first": count_first(
            names, named, entities.size, [best_entities(scored, model), said_first(batch, model)]
        ),
        "gold": np.array(
            [
                np.count_nonzero(gold.entities >= 0),
                np.count_nonzero(covered(gold, candidates)),
                np.count_nonzero(covered(gold, candidates, True)),
            ],
            np.float64,
        ),
    }


def count_first(names: Offsets, named: AnyArray, size: int, answers: Sequence[AnyArray]) -> Floats:
    """Count texts that name one of the first ``size`` entities, and answers that are one of them.

    Returns
    -------
    Floats, shape (1 + answers,)
    """
    text = np.repeat(np.arange(len(names) - 1), np.diff(names))
    known = named < size
    right = [known & (named == answer[text]) for answer in answers]
    return np.array([float(len(np.unique(text[chosen]))) for chosen in (known, *right)])


def best_entities(scored: Scored, model: LinkingModel) -> AnyArray:
    """Give the entity with the largest F(entity) - F(Nil) of each text, or NIL."""
    mentions = scored.found.mentions
    against_nil = scored.scores - scored.scores[mentions.rows[mentions.owners]]
    rows = np.flatnonzero(mentions.candidates != NIL)
    text = np.searchsorted(mentions.texts, mentions.owners[rows], side="right") - 1
    order = np.lexsort((-against_nil[rows], text))
    texts, first = np.unique(text[order], return_index=True)
    best = np.full(len(mentions.texts) - 1, NIL, np.int64)
    best[texts] = mentions.entities(model.knowledge.lexicon)[rows[order[first]]]
    return best


def said_first(batch: pa.RecordBatch, model: LinkingModel) -> AnyArray:
    """Give for each text the entity that another system puts first, or NIL."""
    best = np.full(batch.num_rows, NIL, np.int64)
    if SYSTEM in batch.schema.names:
        column = batch.column(SYSTEM)
        offsets = list_offsets(column)
        some = np.flatnonzero(np.diff(offsets))
        titles = column.flatten().take(pa.array(offsets[some]))
        best[some] = model.knowledge.entities.numbers(titles)
    return best


def candidate_links(scored: Scored, model: LinkingModel) -> Links:
    """Give all that a linker chooses from."""
    mentions = scored.found.mentions
    rows = np.flatnonzero(mentions.candidates != NIL)
    bounds = np.searchsorted(rows, mentions.rows[mentions.texts])
    return linked(scored, Decoded(bounds, rows), model.knowledge)


def types_of(entities: AnyArray, model: LinkingModel) -> AnyArray:
    """Give the first of `TYPES` that each entity has; the last stands for none."""
    known = model.knowledge.entities
    groups = np.full(len(entities), len(TYPES) - 1, np.int64)
    inside = (entities >= 0) & (entities < known.size)
    for number, name in reversed(list(enumerate(TYPES[:-1]))):
        has = np.zeros(len(entities), np.bool_)
        has[inside] = known.is_type(name)[entities[inside]]
        groups[has] = number
    return groups


def lengths_of(links: Links, texts: pa.Array) -> AnyArray:
    """Give the number of words of each mention, less 1, at most `LONGEST` - 1."""
    strings = texts.to_pylist()
    owner = np.repeat(np.arange(len(links.offsets) - 1), np.diff(links.offsets))
    words = [
        len((strings[n] or "")[a:b].split())
        for n, a, b in zip(owner, links.starts, links.ends, strict=True)
    ]
    return np.clip(np.array(words, np.int64), 1, LONGEST) - 1


def link_values(sums: Mapping[str, Floats]) -> dict[str, float]:
    """Give the metrics of summed `count_all`."""
    kinds = len(TYPES)
    by_type = LinkCounts(*sums["overlapping"][:, :kinds])
    by_length = LinkCounts(*sums["overlapping"][:, kinds:])
    lengths = link_metrics(by_length, LENGTHS)
    found = link_metrics(by_type, TYPES)
    found |= {key: value for key, value in lengths.items() if key.startswith("length_")}
    for name, part in (("exact", "exact"), ("ir", "presence")):
        values = link_metrics(LinkCounts(*sums[part]))
        found |= {f"{name}.{key}": value for key, value in values.items()}
    asked, right, _ = sums["first"]
    if asked:
        found["recall_at_1"] = right / asked
    return found
