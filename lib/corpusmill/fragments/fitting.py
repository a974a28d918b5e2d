"""Training fragments over the rows of a DataFrame, stage by stage.

| stage (the paper's name) | split | kernel | merge |
| --- | --- | --- | --- |
| vocabulary | partitions | distinct productions | union |
| learn and mine (KSL, FMI) | S splits | machines, greedy mining | union, or a cascade before |
| vectors (TFX) | partitions | the dictionary's fragments of a tree | none |
| linear machines (ESL) | classes | liblinear, or Spark's LinearSVC over partitions | none |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from scipy.sparse import csr_array

from corpusmill import splits
from corpusmill.corpora.schemas import STRINGS, TREES
from corpusmill.errors import DataError
from corpusmill.fragments.batches import productions_of, sparse_columns
from corpusmill.fragments.corpus import COPIES, Corpus
from corpusmill.fragments.learning import count_machines
from corpusmill.fragments.linear_stage import VECTORS, Task, train_machines_in_spark
from corpusmill.fragments.model import Calibration, FragmentsModel, Space
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.split_mining import mine_fragments
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.types import Floats

MAX_CLASSES = 1_000
MAX_FEATURES = 10_000_000
"""Columns of the feature vectors, times machines: every machine has a weight for each."""
_TREE_COLUMNS = ["node_labels", "node_arities", "tree_offsets", "vector_ids", "vector_values"]
_PRODUCTIONS = T.StructType([T.StructField("production", STRINGS)])

OnStage = Callable[[str], None]
"""Told the name of each stage as it begins."""


def distinct_examples(rows: DataFrame) -> DataFrame:
    """Collapse examples of the same trees, vector and target to one with ``copies``.

    Parameters
    ----------
    rows : DataFrame
        Of `corpusmill.corpora.schemas.TREES`; without a target they are left out.

    Returns
    -------
    DataFrame
        TREES and ``copies`` (double). ``example_id`` is the least of the copies' ids with a hash
        of the example: unique, also where ids are not, and the same for any partitions.
    """
    columns = [*_TREE_COLUMNS, "target"]
    found = (
        rows.where(F.col("target").isNotNull())
        .groupBy(*columns)
        .agg(F.min("example_id").alias("least"), F.count("*").cast("double").alias(COPIES))
    )
    unique = F.concat_ws("#", "least", F.hex(F.xxhash64(*columns)))
    return found.withColumn("example_id", unique).select(*TREES.names, COPIES)


def survey(rows: DataFrame, settings: LearnerSettings, classes: Sequence[str] = ()) -> Corpus:
    """Look through the rows once for their classes and sizes, and once for their productions.

    Raises
    ------
    DataError
        DATA03: no row has a target, or all have the same; FRAG01: too many classes; FRAG02: a
        class that is asked for has no example, or is asked for twice; FRAG03: a feature's number
        is too large.
    """
    found = rows.agg(
        F.max(F.size("tree_offsets") - 1).alias("slots"),
        F.max(F.array_max("vector_ids")).alias("vector"),
        F.slice(F.array_sort(F.collect_set("target")), 1, MAX_CLASSES + 1).alias("classes"),
    ).collect()[0]
    names = tuple(classes) or tuple(found["classes"])
    if len(found["classes"]) < 2:
        hint = "there must be two classes at least"
        raise DataError("DATA03", source="column 'target'", hint=hint)
    if len(names) > MAX_CLASSES:
        raise DataError("FRAG01", limit=MAX_CLASSES)
    for name in names:
        if name not in found["classes"] or names.count(name) > 1:
            there = ", ".join(found["classes"][:20])
            raise DataError("FRAG02", name=name, found=there)
    vector_size = 0
    if settings.vector_weight and found["vector"] is not None:
        vector_size = int(found["vector"]) + 1
        largest = MAX_FEATURES // count_machines(len(names)) - 1
        if vector_size > largest + 1:
            raise DataError("FRAG03", number=vector_size - 1, limit=largest)
    columns = ["example_id", *_TREE_COLUMNS]
    parts = splits.map_partitions(rows.select(*columns), productions_of, _PRODUCTIONS)
    productions = parts.distinct().toArrow()["production"].combine_chunks()
    slots = max(1, int(found["slots"] or 1))
    return Corpus(names, Vocabulary.of(productions), slots, vector_size)


def fit_trees(
    rows: DataFrame,
    settings: LearnerSettings,
    seed: int = 13,
    classes: Sequence[str] = (),
    on_stage: OnStage = lambda _: None,
) -> FragmentsModel:
    """Mine fragments on the splits of the rows and train linear machines on all of them.

    Parameters
    ----------
    rows : DataFrame
        Of `corpusmill.corpora.schemas.TREES`; cached by the caller. Rows without a target are
        left out.
    settings : LearnerSettings
    seed : int
        Of the splits, of liblinear and of the calibration.
    classes : sequence of str
        By default the targets, sorted. Of two, the first is the positive one.
    on_stage : callable

    Returns
    -------
    FragmentsModel
        With liblinear the same for any number of partitions and cores; Spark's LinearSVC sums
        in an order of its own.

    Raises
    ------
    DataError
        No target, one class only, a class without examples, or a broken row.
    """
    on_stage("vocabulary")
    distinct = distinct_examples(rows).persist()
    try:
        corpus = survey(distinct, settings, classes)
        on_stage("learn and mine")
        mined = mine_fragments(distinct, corpus, settings, seed)
        space = Space(corpus.vocabulary, mined.fragments, corpus.vector_size, settings)
        on_stage("vectors")
        kernel = partial(_vectors, space=space)
        vectors = splits.map_partitions(distinct, kernel, VECTORS).persist()
        try:
            frequencies = splits.sum_arrays(
                vectors.select("ids", COPIES), partial(_frequencies, size=space.size)
            )["documents"]
            on_stage("linear machines")
            task = Task(corpus.classes, mined.members, space.sizes, settings, seed)
            machines = train_machines_in_spark(vectors, task)
        finally:
            vectors.unpersist()
    finally:
        distinct.unpersist()
    weights = csr_array(
        (
            np.concatenate([machine.weights for machine in machines]),
            mined.members.indices,
            mined.members.indptr,
        ),
        shape=mined.members.shape,
    )
    slopes, offsets = (
        np.array([getattr(m, name) for m in machines]) for name in ("slope", "offset")
    )
    return FragmentsModel(
        corpus.classes, space, weights, np.array([machine.bias for machine in machines]),
        Calibration(slopes, offsets), frequencies.astype(np.int64),
        np.array([machine.converged for machine in machines], np.bool_),
    )  # fmt: skip


def _vectors(batch: pa.RecordBatch, space: Space) -> pa.RecordBatch:
    """Write distinct examples as vectors; the kernel of TFX."""
    columns = {
        **{name: batch[name] for name in ("example_id", "target", COPIES)},
        **sparse_columns(space.vectors(batch)),
    }
    return pa.RecordBatch.from_pydict(columns, schema=splits.schema_of(VECTORS))


def _frequencies(batches: Iterator[pa.RecordBatch], size: int) -> dict[str, Floats]:
    """Count the examples that hold each fragment; the kernel of a sum over partitions."""
    total = np.zeros(size)
    for batch in batches:
        vectors = batch["ids"]
        copies = np.repeat(
            batch[COPIES].to_numpy(zero_copy_only=False),
            vectors.value_lengths().to_numpy(zero_copy_only=False),
        )
        total += np.bincount(vectors.flatten().to_numpy(zero_copy_only=False), copies, size)
    return {"documents": total}
