"""Errors of resolved documents by types of mentions: counts that add up, and examples. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill.coreference.attribute_kernels import entity_labels
from corpusmill.coreference.attributes import mention_types
from corpusmill.coreference.documents import Documents, Spans, read_batch
from corpusmill.coreference.errors import (
    TYPES,
    Links,
    antecedent_links,
    count_types,
    spanning_links,
    wrong_links,
)
from corpusmill.coreference.extraction import given_mentions
from corpusmill.coreference.measures import mentions_of
from corpusmill.evaluation.coreference import Mentions
from corpusmill.types import AnyArray, Floats

SIDES = ("recall", "precision")
COUNTS = tuple(f"{side}_{part}" for side in SIDES for part in ("links", "errors"))
CHANCE = "chance"
"""The column of integers by which documents are chosen, the least first."""
AROUND, LONGEST = 12, 30
"""Words that are shown on either side of an anaphor, and of a mention."""


class Judged(NamedTuple):
    """The links of one side: gold for recall, the system for precision.

    Attributes
    ----------
    mentions : Mentions
    types : int8, shape (mentions,)
        As of `errors.TYPES`.
    links, errors : Links
        All, and those that the other side does not have.
    """

    mentions: Mentions
    types: AnyArray
    links: Links
    errors: Links


class Example(NamedTuple):
    """An error: a link that the other side does not have, in its text.

    Attributes
    ----------
    of : str
        One of `SIDES`.
    types : (int, int)
        Types of the anaphor and of the antecedent, as of `errors.TYPES`.
    document : str
    antecedent, before, anaphor, after : str
        Words of the mentions, and of what stands around the anaphor.
    """

    of: str
    types: tuple[int, int]
    document: str
    antecedent: str
    before: str
    anaphor: str
    after: str


def judge(batch: pa.RecordBatch, language: str) -> dict[str, Judged]:
    """Find the links of gold and of the system in a batch, and which of them are errors.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        `corpusmill.coreference.model.DOCUMENT_ROWS` with mentions in order, and the predictions.
    language : str
        Whose head rules hold.

    Returns
    -------
    dict of str to Judged
        By `SIDES`.
    """
    documents = read_batch(batch, language)
    gold, system = mentions_of(batch, "mention"), mentions_of(batch, "predicted")
    (types, heads), (found, _) = _described(documents, gold), _described(documents, system)
    links = spanning_links(gold, types, heads)
    decided = antecedent_links(system, _antecedents(batch, system))
    return {
        "recall": Judged(gold, types, links, wrong_links(links, gold, system)),
        "precision": Judged(system, found, decided, wrong_links(decided, system, gold)),
    }


def _described(documents: Documents, found: Mentions) -> tuple[AnyArray, AnyArray]:
    """Give the type of each mention, as of `errors.TYPES`, and its head word."""
    shift = np.repeat(documents.tokens.offsets[:-1], np.diff(found.offsets))
    spans = Spans(found.offsets, found.starts + shift, found.ends + shift, found.clusters)
    # Their length is the number of documents, which `_replace` takes for that of the fields.
    mentions = given_mentions(Documents(**{**documents._asdict(), "gold": spans}))
    entities = entity_labels(mentions.heads, documents.entities)
    # Attributes number types from 1.
    types = mention_types(mentions, documents, entities) - 1
    return types, documents.tokens.lowers[mentions.heads]


def _antecedents(batch: pa.RecordBatch, system: Mentions) -> AnyArray:
    column = batch.column("predicted_antecedents").flatten()
    values = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return np.where(
        values < 0, -1, values + np.repeat(system.offsets[:-1], np.diff(system.offsets))
    )


def count_errors(batches: Iterator[pa.RecordBatch], language: str) -> dict[str, Floats]:
    """Count the links and errors of a partition by types; a kernel of `splits.sum_arrays`.

    Returns
    -------
    dict of str to Floats, shape (3, 3)
        By `COUNTS`: a row a type of anaphor, a column a type of antecedent.
    """
    size = len(TYPES)
    sums = {name: np.zeros((size, size)) for name in COUNTS}
    for batch in batches:
        for side, found in judge(batch, language).items():
            sums[f"{side}_links"] += count_types(found.links, found.types)
            sums[f"{side}_errors"] += count_types(found.errors, found.types)
    return sums


def choose_examples(batch: pa.RecordBatch, language: str, most: int) -> list[tuple[int, Example]]:
    """Choose errors of a batch, at most so many of each side and pair of types.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        As of `judge`, with `CHANCE` and ``part``.
    language : str
    most : int

    Returns
    -------
    list of (chance, Example)
        One of a document, those with the least chance, which mixes that of the document with the
        side and the types: not all examples are of the same few documents.
    """
    chances = np.asarray(batch.column(CHANCE)).view(np.uint64)
    examples = []
    for number, (side, found) in enumerate(judge(batch, language).items()):
        errors, types = found.errors, found.types
        kinds = types[errors.anaphors].astype(np.int64) * len(TYPES) + types[errors.antecedents]
        salts = (kinds + number * len(TYPES) ** 2).astype(np.uint64)
        drawn = pd.util.hash_array(chances[errors.documents] + salts) >> np.uint64(1)
        # Which of a document's errors is by chance too, but the same each time.
        place = (errors.anaphors - found.mentions.offsets[errors.documents]) * 2654435761 % 65521
        order = np.lexsort((place, errors.documents, drawn, kinds))
        frame = pd.DataFrame({"kind": kinds[order], "document": errors.documents[order]})
        first = frame.drop_duplicates().groupby("kind").head(most).index
        shown = partial(_example, batch, side, found)
        examples += [(int(drawn[n]), shown(n)) for n in order[first]]
    return examples


def _example(batch: pa.RecordBatch, side: str, found: Judged, number: int) -> Example:
    document, antecedent, anaphor = (int(each[number]) for each in found.errors)
    mentions, types = found.mentions, found.types
    words = batch.column("words")[document].as_py()
    start, end = int(mentions.starts[anaphor]), int(mentions.ends[anaphor])
    begin, stop = max(start - AROUND, 0), min(end + AROUND, len(words))
    return Example(
        side,
        (int(types[anaphor]), int(types[antecedent])),
        document_name(batch.column("document_id")[document], batch.column("part")[document]),
        _shortened(words[mentions.starts[antecedent] : mentions.ends[antecedent]]),
        " ".join(["…"] * (begin > 0) + words[begin:start]),
        _shortened(words[start:end]),
        " ".join(words[end:stop] + ["…"] * (stop < len(words))),
    )


def _shortened(words: list[str]) -> str:
    cut = words if len(words) <= LONGEST else [*words[:LONGEST], "…"]
    return " ".join(cut)


def document_name(document_id: object, part: object) -> str:
    """Call a document by its id, and by its part but for the first."""
    number = int(str(part))
    return f"{document_id}, part {number}" if number else str(document_id)


def error_table(sums: dict[str, Floats]) -> pd.DataFrame:
    """Lay out the sums of `count_errors`, a row a side and pair of types."""
    rows = []
    for side in SIDES:
        links, errors = sums[f"{side}_links"], sums[f"{side}_errors"]
        for a, anaphor in enumerate(TYPES):
            for b, antecedent in enumerate(TYPES):
                share = round(100.0 * errors[a, b] / links[a, b], 2) if links[a, b] else None
                numbers = {"errors": int(errors[a, b]), "links": int(links[a, b]), "percent": share}
                rows.append({"of": side, "anaphor": anaphor, "antecedent": antecedent, **numbers})
    return pd.DataFrame(rows)
