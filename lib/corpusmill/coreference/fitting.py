"""Training on Spark: documents in partitions, a pass on each, weights averaged, and again.

Source: McDonald, Hall & Mann (2010), Distributed Training Strategies for the Structured
Perceptron, iterative parameter mixing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.coreference.attributes import ATOMS, LEXICAL
from corpusmill.coreference.gender import no_genders, read_genders
from corpusmill.coreference.learning import (
    Progress,
    dense,
    learn_documents,
    mixed,
    order_of,
    sparse,
    start,
)
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.nonreferential import (
    MOST_PRONOUNS,
    Nonreferential,
    fit_nonreferential,
    pronoun_features,
)
from corpusmill.coreference.preparation import (
    Preparation,
    Vocabulary,
    folds_of,
    read_templates,
    token_pieces,
)
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.types import AnyArray, Floats

_PRONOUNS = T.StructType(
    [
        T.StructField("document_id", T.StringType()),
        T.StructField("position", T.IntegerType()),
        T.StructField("fold", T.IntegerType()),
        T.StructField("alone", T.BooleanType()),
        T.StructField("features", T.ArrayType(T.IntegerType())),
    ]
)
_VALUES = T.StructType(
    [
        T.StructField("attribute", T.IntegerType()),
        T.StructField("value", T.LongType()),
        T.StructField("count", T.LongType()),
    ]
)
OnPass = Callable[[Progress, Preparation], None]


def fit_resolver(
    rows: DataFrame,
    settings: LearnerSettings,
    seed: int,
    on_pass: OnPass | None = None,
    begin: Progress | None = None,
) -> CoreferenceModel:
    """Train a resolver.

    Parameters
    ----------
    rows : DataFrame
        `corpusmill.coreference.model.DOCUMENT_ROWS` with known clusters; cached by the caller.
    settings : LearnerSettings
        Documents are spread over ``settings.partitions`` by a hash of their ids.
    seed : int
        Of the order of documents.
    on_pass : callable, optional
        Called after each pass.
    begin : Progress, optional
        To go on with.

    Returns
    -------
    CoreferenceModel

    Raises
    ------
    UsageError
        The templates cannot be read.
    DataError
        The list of genders cannot be read.

    Notes
    -----
    A partition's documents are in one worker's memory; the driver has three times the weights.
    """
    placed = rows.repartitionById(
        settings.partitions,
        F.pmod(F.xxhash64("document_id"), F.lit(settings.partitions)).cast("int"),
    ).persist()
    try:
        preparation = prepare_documents(placed, settings, seed)
        progress = start(settings) if begin is None else begin
        for iteration in range(len(progress.losses), settings.iterations):
            kernel = partial(
                learn_partition,
                preparation=preparation,
                weights=sparse(progress.weights),
                seed=seed,
                iteration=iteration,
            )
            progress = mixed(progress, splits.sum_arrays(placed, kernel, settings.partitions))
            if on_pass is not None:
                on_pass(progress, preparation)
    finally:
        placed.unpersist()
    return CoreferenceModel(preparation, progress.average())


def prepare_documents(rows: DataFrame, settings: LearnerSettings, seed: int) -> Preparation:
    """Learn what documents are prepared with: pronouns that refer to nothing, frequent words."""
    lines = read_templates(settings.templates)
    genders = read_genders(settings.genders) if settings.genders else no_genders()
    preparation = Preparation(settings, lines, genders)
    if settings.nonreferential:
        found = splits.map_partitions(
            rows, partial(pronoun_rows, preparation=preparation), _PRONOUNS
        )
        learned = _fit_nonreferential(found, seed)
        preparation = Preparation(settings, lines, genders, learned)
    if settings.cutoff > 1:
        counted = splits.map_partitions(rows, partial(value_rows, preparation=preparation), _VALUES)
        vocabulary = _frequent(counted, settings.cutoff)
        preparation = Preparation(settings, lines, genders, preparation.nonreferential, vocabulary)
    return preparation


def learn_partition(
    batches: Iterator[pa.RecordBatch],
    preparation: Preparation,
    weights: tuple[AnyArray, Floats],
    seed: int,
    iteration: int,
) -> dict[str, Floats]:
    """Make a pass over a partition's documents; the kernel of `fit_resolver`.

    The documents are put in the order of their ids and then shuffled, so that the order does not
    depend on how Spark brought them.
    """
    settings = preparation.settings
    first = dense(*weights, settings.bits)
    rows = list(batches)
    if not rows:
        return learn_documents([], first, settings)
    table = pa.Table.from_batches(rows).combine_chunks()
    order = np.argsort(np.array(table.column("document_id").to_pylist(), object), kind="stable")
    shuffled = order[order_of(seed, iteration).permutation(len(order))]
    batch = table.take(pa.array(shuffled)).combine_chunks().to_batches()[0]
    return learn_documents(preparation.prepare(batch, training=True), first, settings)


def pronoun_rows(batch: pa.RecordBatch, preparation: Preparation) -> pa.RecordBatch:
    """Give the pronouns of documents that may refer to nothing; a kernel of `prepare_documents`."""
    parts = []
    for piece in token_pieces(batch):
        documents, mentions, table = preparation.describe(piece, training=True)
        rows, features = pronoun_features(table.atoms, preparation.settings.nonreferential)
        owner = np.searchsorted(mentions.offsets, rows, side="right") - 1
        offsets = np.arange(len(rows) + 1, dtype=np.int32) * features.shape[1]
        known = documents.known[owner]
        columns = [
            piece.column("document_id").take(pa.array(owner)),
            pa.array((rows - mentions.offsets[owner]).astype(np.int32)),
            pa.array(folds_of(piece)[owner].astype(np.int32)),
            pa.array(mentions.clusters[rows] < 0),
            pa.ListArray.from_arrays(pa.array(offsets), pa.array(features.ravel())),
        ]
        found = pa.RecordBatch.from_arrays(columns, names=_PRONOUNS.names)
        parts.append(found.filter(pa.array(known)))
    return pa.concat_batches(parts)


def _fit_nonreferential(found: DataFrame, seed: int) -> Nonreferential:
    found = found.persist()
    try:
        count = found.count()
        if count > MOST_PRONOUNS:
            found = found.sample(MOST_PRONOUNS / count, seed)
        table = found.orderBy("document_id", "position").toArrow()
    finally:
        found.unpersist()
    width = len(table.column("features")[0]) if len(table) else 0
    features = np.asarray(table.column("features").combine_chunks().flatten())
    return fit_nonreferential(
        features.reshape(len(table), width),
        np.asarray(table.column("alone")),
        np.asarray(table.column("fold")),
    )


def value_rows(batch: pa.RecordBatch, preparation: Preparation) -> pa.RecordBatch:
    """Count the values of lexical attributes; a kernel of `prepare_documents`."""
    parts = []
    for piece in token_pieces(batch):
        table = preparation.describe(piece, training=True)[2]
        for number, name in enumerate(LEXICAL):
            values, counts = np.unique(table.atoms[:, ATOMS.index(name)], return_counts=True)
            attribute = np.full(len(values), number, np.int32)
            # Spark's numbers have a sign.
            columns = [attribute, values.view(np.int64), counts]
            parts.append(pa.RecordBatch.from_arrays(list(map(pa.array, columns)), _VALUES.names))
    return pa.concat_batches(parts)


def _frequent(counted: DataFrame, cutoff: int) -> Vocabulary:
    totals = counted.groupBy("attribute", "value").agg(F.sum("count").alias("count"))
    table = totals.where(F.col("count") >= cutoff).toArrow()
    attributes = np.asarray(table.column("attribute"))
    values = np.asarray(table.column("value")).view(np.uint64)
    order = np.lexsort((values, attributes))
    offsets = np.searchsorted(attributes[order], np.arange(len(LEXICAL) + 1))
    return Vocabulary(offsets, values[order])
