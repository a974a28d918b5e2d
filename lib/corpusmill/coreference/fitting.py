"""Training on Spark: documents in partitions, a pass on each, weights averaged, and again.

Source: McDonald, Hall & Mann (2010), Distributed Training Strategies for the Structured
Perceptron, iterative parameter mixing.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.coreference.learned import (
    PRONOUNS,
    begin_preparation,
    frequent_values,
    learn_pronouns,
    pronoun_rows,
    value_rows,
)
from corpusmill.coreference.learning import OnPass, Progress, learn_partition, mixed, sparse, start
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.nonreferential import MOST_PRONOUNS
from corpusmill.coreference.preparation import Preparation
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.corpora.schemas import INTS

_PRONOUNS = T.StructType(
    [
        T.StructField("document_id", T.StringType()),
        T.StructField("part", T.IntegerType()),
        T.StructField("position", T.IntegerType()),
        T.StructField("fold", T.IntegerType()),
        T.StructField("alone", T.BooleanType()),
        T.StructField("features", INTS),
    ]
)
_VALUES = T.StructType(
    [
        T.StructField("attribute", T.IntegerType()),
        T.StructField("value", T.LongType()),
        T.StructField("count", T.LongType()),
    ]
)


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
    A partition's documents are in one worker's memory, and arrays as large as the weights, six at
    their peak. The driver has some of these too, the frequent values with ``cutoff``, and
    `nonreferential.MOST_PRONOUNS` pronouns at most.
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
    preparation = begin_preparation(settings)
    if settings.nonreferential:
        kernel = partial(pronoun_rows, preparation=preparation)
        found = splits.map_partitions(rows, kernel, _PRONOUNS).persist()
        try:
            count = found.count()
            place = F.pmod(F.xxhash64(F.lit(seed), *PRONOUNS.names[:3]), F.lit(count))
            kept = found.where(place < MOST_PRONOUNS)
            preparation = replace(preparation, nonreferential=learn_pronouns(kept.toArrow()))
        finally:
            found.unpersist()
    if settings.cutoff > 1:
        kernel = partial(value_rows, preparation=preparation)
        counted = splits.map_partitions(rows, kernel, _VALUES)
        totals = counted.groupBy("attribute", "value").agg(F.sum("count").alias("count"))
        kept = totals.where(F.col("count") >= settings.cutoff)
        preparation = replace(preparation, vocabulary=frequent_values(kept.toArrow()))
    return preparation
