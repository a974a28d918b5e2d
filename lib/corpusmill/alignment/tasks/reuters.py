"""Experiment 1: Reuters documents as patterns, their title and paragraphs as instances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.alignment import classification, plots
from corpusmill.alignment.batches import read_patterns
from corpusmill.alignment.classification import (
    PAPER_METHODS,
    PARAGRAPH_METHODS,
    PRACTITIONER_METHODS,
)
from corpusmill.alignment.comparison import average, take
from corpusmill.alignment.documents import paper_corpus
from corpusmill.alignment.estimator import DirichletBernoulliAlignmentModel
from corpusmill.alignment.model import AlignmentModel
from corpusmill.alignment.patterns import assemble, build_vocabulary
from corpusmill.alignment.tasks.settings import AlignmentSettings, ReutersInput
from corpusmill.alignment.tasks.training import train_and_save
from corpusmill.corpora import quarantine
from corpusmill.corpora.reuters import read_reuters
from corpusmill.corpora.schemas import QUARANTINE, STRINGS
from corpusmill.corpora.text import tokenize
from corpusmill.errors import DataError

if TYPE_CHECKING:
    from corpusmill.runner import Context

SETTINGS = {
    "paper": PAPER_METHODS,
    "practitioner": PRACTITIONER_METHODS,
    "paragraphs": PARAGRAPH_METHODS,
}

_INSTANCES = T.StructType(
    [
        T.StructField("pattern_id", T.StringType()),
        T.StructField("tokens", STRINGS),
        T.StructField("place", T.IntegerType()),
    ]
)
_MEASURED = T.StructType(
    [
        T.StructField("setting", T.StringType()),
        T.StructField("run", T.IntegerType()),
        T.StructField("method", T.StringType()),
        T.StructField("metrics", T.MapType(T.StringType(), T.DoubleType())),
    ]
)
PREDICTIONS = T.StructType(
    [
        T.StructField("document_id", T.StringType()),
        T.StructField("split", T.StringType()),
        T.StructField("labels", STRINGS),
        T.StructField("prediction", STRINGS),
        T.StructField("probability", T.ArrayType(T.DoubleType(), False)),
        T.StructField("paragraph_classes", STRINGS),
    ]
)
"""A document, its topics, the predicted ones, p(y_c | X) a class, and the class of the title and
of each paragraph."""


def train(context: Context) -> None:
    """Train DBA on the training documents."""
    rows, vocabulary, classes = _documents(context)
    train_and_save(context, rows.where("split = 'train'").persist(), vocabulary, classes)


def predict(context: Context) -> None:
    """Classify all documents with one of the classes, and their paragraphs."""
    conf: AlignmentSettings = context.settings
    array_model = AlignmentModel.load(storage.resolve(conf.output, "model"))
    model = DirichletBernoulliAlignmentModel(array_model)
    rows, _, _ = _documents(context, array_model.features)
    with context.progress.stage("classify"):
        names = F.array(*[F.lit(name) for name in array_model.classes])
        size = len(array_model.classes)

        def best(first: Column) -> Column:
            phi = F.slice("instance_probability", first * size + 1, size)
            return names[(F.array_position(phi, F.array_max(phi)) - 1).cast("int")]

        paragraphs = F.transform(F.sequence(F.lit(0), F.size("instance_weights") - 1), best)
        predictions = model.transform(rows).select(
            F.col("name").alias("document_id"),
            "split",
            "labels",
            "prediction",
            "probability",
            F.when(F.size("instance_weights") > 0, paragraphs).alias("paragraph_classes"),
        )
        written = context.run.write_parquet("predictions", predictions, schema=PREDICTIONS)
    context.run.write_metrics({"predict": {"documents": written}})


def evaluate(context: Context) -> None:
    """Compare DBA with its baselines, one Spark task a setting, run and method."""
    conf: AlignmentSettings = context.settings
    task = cast(ReutersInput, conf.input)
    rows, vocabulary, classes = _documents(context)
    jobs = [
        (setting, run, method)
        for setting, methods in SETTINGS.items()
        for run in range(task.comparison.runs if setting == "paper" else 1)
        for method in methods
    ]
    wanted = context.spark.createDataFrame(jobs, "setting string, run int, method string")
    kernel = partial(_measure, vocabulary=vocabulary, classes=classes, task=task, conf=conf)
    with context.progress.stage("compare"):
        measured = splits.map_groups(
            rows.crossJoin(F.broadcast(wanted)),
            ["setting", "run", "method"],
            kernel,
            _MEASURED,
            len(jobs),
        ).collect()
    metrics = average([row["metrics"] for row in measured])
    context.run.write_metrics(metrics)
    figure = classification.accuracy_chart(metrics, classes, PAPER_METHODS)
    context.tracker.log_figure(figure, "plots/hamming_accuracy.png")
    table = plots.metrics_frame(metrics)
    context.tracker.log_table(table, "tables/comparison.json")


def _measure(
    key: tuple[Any, ...],
    rows: pa.Table,
    vocabulary: Sequence[str],
    classes: Sequence[str],
    task: ReutersInput,
    conf: AlignmentSettings,
) -> pa.RecordBatch:
    """Evaluate one method in one setting and run; the kernel of `evaluate`."""
    setting, run, method = key
    (batch,) = rows.sort_by("pattern_id").combine_chunks().to_batches()
    patterns = read_patterns(batch, classes, len(vocabulary))
    comparison = task.comparison
    seed = conf.seed
    if setting == "paper":
        corpus = paper_corpus(patterns, vocabulary, comparison.paper, seed)
        split = classification.draw_splits(
            len(corpus.offsets) - 1, comparison.runs, comparison.train_documents, seed
        )[run]
        metrics = classification.evaluate(
            corpus, split, method, classes, comparison, conf.model, seed
        )
        metrics["input.paper_documents"] = float(len(corpus.offsets) - 1)
    else:
        is_train = pc.equal(batch["split"], "train").to_numpy(zero_copy_only=False)
        train = take(patterns, np.flatnonzero(is_train))[0]
        test = take(patterns, np.flatnonzero(~is_train))[0]
        measure = (
            classification.evaluate_practitioner
            if setting == "practitioner"
            else classification.evaluate_paragraphs
        )
        metrics = measure(train, test, len(vocabulary), method, comparison, conf.model, seed)
    row = {"setting": setting, "run": run, "method": method, "metrics": list(metrics.items())}
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_MEASURED))


def _documents(
    context: Context, vocabulary: Sequence[str] = ()
) -> tuple[DataFrame, list[str], list[str]]:
    """Read the documents with a label in the largest classes, as pattern rows with ``split``."""
    conf: AlignmentSettings = context.settings
    task = cast(ReutersInput, conf.input)
    with context.progress.stage("read"):
        read = read_reuters(context.spark, task.reuters, conf.quarantine, "input.reuters")
        bad = read.quarantine.persist()
        context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
        reasons = quarantine.count_reasons(bad)
        documents = read.records.where("split <> 'unused'").persist()
        largest = (
            documents.where("split = 'train'")
            .select(F.explode("labels").alias("label"))
            .groupBy("label")
            .count()
            .orderBy(F.desc("count"), "label")
            .limit(task.classes)
        )
        classes = sorted(row["label"] for row in largest.collect())
        if not classes:
            raise DataError(
                "DATA03", source=task.reuters.path, hint="no training document has a topic"
            )
        among = F.array_intersect("labels", F.array(*[F.lit(name) for name in classes]))
        kept = documents.withColumn("labels", among).where(F.size("labels") > 0)
        instances = splits.map_partitions(
            kept.select("document_id", "title", "paragraphs"), instances_of, _INSTANCES
        ).withColumn("weight", F.lit(1.0))
        counts = {row["split"]: row["count"] for row in kept.groupBy("split").count().collect()}
    quarantine.check_share("the documents", documents.count(), reasons, conf.quarantine)
    context.run.write_metrics({"input": {**counts, "quarantined": sum(reasons.values())}})
    words = list(vocabulary) or build_vocabulary(instances, conf.vocabulary)
    rows = assemble(instances, words, conf.partitions, conf.max_instances, ["place"])
    known = kept.select(F.col("document_id").alias("name"), "split", "labels")
    return rows.join(known, "name"), words, classes


def instances_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cut documents into instances: the title first, then each paragraph."""
    sizes = pc.add(pc.list_value_length(batch["paragraphs"]), 1)
    ends = np.cumsum(sizes.to_numpy(zero_copy_only=False))
    starts = ends - sizes.to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(batch.num_rows), ends - starts)
    place = np.arange(len(row)) - starts[row]
    # Of the titles and paragraphs, one after the other, the text of each instance.
    texts = pa.concat_arrays([batch["title"], batch["paragraphs"].flatten()])
    source = np.where(place == 0, row, batch.num_rows + np.arange(len(row)) - row - 1)
    return pa.RecordBatch.from_pydict(
        {
            "pattern_id": batch["document_id"].take(pa.array(row)),
            "tokens": tokenize(texts.take(pa.array(source))),
            "place": pa.array(place.astype(np.int32)),
        }
    )
