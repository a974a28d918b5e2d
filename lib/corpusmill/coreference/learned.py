"""What documents are prepared with, learned from them. No Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.coreference.attributes import ATOMS, LEXICAL
from corpusmill.coreference.gender import no_genders, read_genders
from corpusmill.coreference.nonreferential import (
    Nonreferential,
    fit_nonreferential,
    pronoun_features,
)
from corpusmill.coreference.preparation import (
    Preparation,
    Vocabulary,
    folds_of,
    parts_of,
    read_templates,
    token_pieces,
)
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.coreference.templates import parse_templates
from corpusmill.errors import UsageError

PRONOUNS = pa.schema(
    [
        ("document_id", pa.string()),
        ("part", pa.int32()),
        ("position", pa.int32()),
        ("fold", pa.int32()),
        ("alone", pa.bool_()),
        ("features", pa.list_(pa.int32())),
    ]
)
"""A pronoun that may refer to nothing: its document and part, number there and fold, whether it is
in no true cluster, and its features."""
VALUES = pa.schema([("attribute", pa.int32()), ("value", pa.int64()), ("count", pa.int64())])
"""A value of a lexical attribute, its 64 bits as a number with a sign, and how often it occurs."""


def begin_preparation(settings: LearnerSettings) -> Preparation:
    """Read templates and genders; nothing is learned yet.

    Raises
    ------
    UsageError
        CONF04: one of them cannot be read; CONF11: a non-local template and no beam.
    DataError
        DATA01: a bad line in the list of genders.
    """
    genders = read_genders(settings.genders) if settings.genders else no_genders()
    lines = read_templates(settings.templates)
    far = [each.name for each in parse_templates(list(lines), settings.templates) if not each.local]
    if far and settings.regime == "greedy":
        problem = f"regime greedy needs local templates; {settings.templates} has {far[0]!r}"
        raise UsageError("CONF11", problem=problem)
    return Preparation(settings, lines, genders)


def pronoun_rows(batch: pa.RecordBatch, preparation: Preparation) -> pa.RecordBatch:
    """Give the pronouns of documents that may refer to nothing; a kernel of `fitting`."""
    parts = []
    for piece in token_pieces(batch):
        documents, mentions, table = preparation.describe(piece, training=True)
        rows, features = pronoun_features(table.atoms, preparation.settings.nonreferential)
        owner = np.searchsorted(mentions.offsets, rows, side="right") - 1
        offsets = np.arange(len(rows) + 1, dtype=np.int32) * features.shape[1]
        known = documents.known[owner]
        columns = [
            piece.column("document_id").take(pa.array(owner)),
            pa.array(parts_of(piece)[owner]),
            pa.array((rows - mentions.offsets[owner]).astype(np.int32)),
            pa.array(folds_of(piece)[owner].astype(np.int32)),
            pa.array(mentions.clusters[rows] < 0),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(features.ravel())),
        ]
        found = pa.RecordBatch.from_arrays(columns, names=PRONOUNS.names)
        parts.append(found.filter(pa.array(known)))
    return pa.concat_batches(parts)


def learn_pronouns(table: pa.Table) -> Nonreferential:
    """Train the classifiers on `PRONOUNS`, in the order of documents, parts and positions."""
    table = table.sort_by([(name, "ascending") for name in PRONOUNS.names[:3]])
    lists = table.column("features").combine_chunks()
    width = len(lists[0]) if len(table) else 0
    return fit_nonreferential(
        np.asarray(lists.flatten()).reshape(len(table), width),
        table.column("alone").to_numpy(),
        table.column("fold").to_numpy(),
    )


def value_rows(batch: pa.RecordBatch, preparation: Preparation) -> pa.RecordBatch:
    """Count the values of lexical attributes; a kernel of `fitting`."""
    parts = []
    for piece in token_pieces(batch):
        table = preparation.describe(piece, training=True)[2]
        for number, name in enumerate(LEXICAL):
            values, counts = np.unique(table.atoms[:, ATOMS.index(name)], return_counts=True)
            attribute = np.full(len(values), number, np.int32)
            # Spark's numbers have a sign.
            columns = [attribute, values.view(np.int64), counts]
            parts.append(pa.RecordBatch.from_arrays(list(map(pa.array, columns)), VALUES.names))
    return pa.concat_batches(parts)


def frequent_values(table: pa.Table) -> Vocabulary:
    """Give the vocabulary of the values in a table of `VALUES`, each once."""
    attributes = table.column("attribute").to_numpy()
    values = table.column("value").to_numpy().view(np.uint64)
    order = np.lexsort((values, attributes))
    offsets = np.searchsorted(attributes[order], np.arange(len(LEXICAL) + 1))
    return Vocabulary(offsets, values[order])


def prepare_batch(batch: pa.RecordBatch, settings: LearnerSettings) -> Preparation:
    """Learn what documents are prepared with from one batch."""
    preparation = begin_preparation(settings)
    if settings.nonreferential:
        found = pa.Table.from_batches([pronoun_rows(batch, preparation)])
        preparation = replace(preparation, nonreferential=learn_pronouns(found))
    if settings.cutoff > 1:
        counted = pa.Table.from_batches([value_rows(batch, preparation)])
        totals = counted.group_by(["attribute", "value"]).aggregate([("count", "sum")])
        kept = totals.filter(pc.field("count_sum") >= settings.cutoff)
        preparation = replace(preparation, vocabulary=frequent_values(kept))
    return preparation
