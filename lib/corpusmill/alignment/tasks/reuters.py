"""Experiment 1: Reuters documents as patterns, their title and paragraphs as instances."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
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
from corpusmill.alignment.comparison import average, restrict, take
from corpusmill.alignment.documents import content_features, paper_corpus, words_and_pairs
from corpusmill.alignment.estimator import DirichletBernoulliAlignmentModel
from corpusmill.alignment.model import AlignmentModel
from corpusmill.alignment.patterns import assemble, build_vocabulary
from corpusmill.alignment.tasks.settings import AlignmentSettings, ReutersInput
from corpusmill.alignment.tasks.training import extended, train_and_save, warm_start
from corpusmill.corpora import quarantine
from corpusmill.corpora.reuters import read_reuters
from corpusmill.corpora.schemas import QUARANTINE, STRINGS
from corpusmill.corpora.text import tokenize
from corpusmill.errors import DataError
from corpusmill.types import Flags, Patterns

if TYPE_CHECKING:
    from corpusmill.runner import Context

SETTINGS: dict[str, dict[str, tuple[str, ...]]] = {
    "words": {"paper": PAPER_METHODS, "paragraphs": PARAGRAPH_METHODS},
    "pairs": {"practitioner": PRACTITIONER_METHODS},
}
"""For each kind of features, what is compared on them, and the methods."""

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
        T.StructField("alignment_error", T.StringType()),
    ]
)
"""A document, its topics, the predicted ones, p(y_c | X) a class, the class of the title and of
each paragraph, and why it could not be predicted, else null."""


def train(context: Context) -> None:
    """Train DBA on the training documents."""
    documents = _documents(context)
    training = documents._replace(rows=documents.rows.where("split = 'train'"))
    start = warm_start(context.settings)
    rows, vocabulary = _pattern_rows(context, training, "pairs", start)
    rows = context.cached(_tempered(context, rows))
    train_and_save(context, rows, vocabulary, documents.classes, start)


def predict(context: Context) -> None:
    """Classify all documents with one of the classes, and their paragraphs."""
    conf: AlignmentSettings = context.settings
    array_model = AlignmentModel.load(storage.resolve(conf.output, "model"))
    model = DirichletBernoulliAlignmentModel(array_model)
    rows, _ = _pattern_rows(context, _documents(context), "pairs", array_model, fixed=True)
    rows = _tempered(context, rows)
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
            "alignment_error",
        )
        written = context.run.write_parquet("predictions", predictions, schema=PREDICTIONS)
    context.run.write_metrics({"predict": {"documents": written}})


def evaluate(context: Context) -> None:
    """Compare DBA with its baselines, one Spark task a setting, run and method."""
    conf: AlignmentSettings = context.settings
    task = cast(ReutersInput, conf.input)
    documents = _documents(context)
    measured: list[Row] = []
    for kind, settings in SETTINGS.items():
        rows, vocabulary = _pattern_rows(context, documents, kind)
        jobs = [
            (setting, run, method)
            for setting, methods in settings.items()
            for run in range(task.comparison.runs if setting == "paper" else 1)
            for method in methods
        ]
        wanted = context.spark.range(len(jobs)).select(F.col("id").cast("int").alias("job"))
        kernel = partial(
            _measure,
            jobs=jobs,
            vocabulary=vocabulary,
            classes=documents.classes,
            task=task,
            conf=conf,
        )
        with context.progress.stage(f"compare {', '.join(settings)}"):
            measured += splits.map_groups(
                rows.crossJoin(F.broadcast(wanted)), "job", kernel, _MEASURED, len(jobs)
            ).collect()
    metrics = average([row["metrics"] for row in measured])
    context.run.write_metrics(metrics)
    figure = classification.accuracy_chart(metrics, documents.classes, PAPER_METHODS)
    context.tracker.log_figure(figure, "plots/hamming_accuracy.png")
    context.tracker.log_table(plots.metrics_frame(metrics), "tables/comparison.json")


def _measure(
    job: int,
    rows: pa.Table,
    jobs: Sequence[tuple[str, int, str]],
    vocabulary: Sequence[str],
    classes: Sequence[str],
    task: ReutersInput,
    conf: AlignmentSettings,
) -> pa.RecordBatch:
    """Evaluate one method in one setting and run; the kernel of `evaluate`."""
    setting, run, method = jobs[job]
    # Whatever order the shuffle brought them in, the same documents are in the same run.
    (batch,) = rows.sort_by("pattern_id").combine_chunks().to_batches()
    patterns = read_patterns(batch, classes, len(vocabulary))
    if setting == "paper":
        metrics = _measure_paper(patterns, vocabulary, run, method, classes, task, conf.seed)
    else:
        is_train = pc.equal(batch["split"], "train").to_numpy(zero_copy_only=False)
        metrics = _measure_parts(patterns, is_train, vocabulary, setting, method, task, conf)
    row = {"setting": setting, "run": run, "method": method, "metrics": list(metrics.items())}
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_MEASURED))


def _measure_paper(
    patterns: Patterns,
    vocabulary: Sequence[str],
    run: int,
    method: str,
    classes: Sequence[str],
    task: ReutersInput,
    seed: int,
) -> dict[str, float]:
    comparison = task.comparison
    corpus = paper_corpus(patterns, vocabulary, comparison.paper, seed)
    size = len(corpus.offsets) - 1
    if size <= comparison.train_documents:
        problem = (
            f"{size} documents in the paper's setting, none of them to test on; lower "
            f"input.comparison.train_documents = {comparison.train_documents}"
        )
        raise DataError("DATA01", source=task.reuters.path, problem=problem)
    split = classification.draw_splits(size, comparison.runs, comparison.train_documents, seed)[run]
    metrics = classification.evaluate(corpus, split, method, classes, comparison, task.paper, seed)
    several = float((corpus.labels.sum(axis=1) > 1).mean())
    instances = len(corpus.weights) / size
    counts = {"documents": float(size), "several_labels": several, "instances": instances}
    return {**metrics, **{f"input.paper.{name}": value for name, value in counts.items()}}


def _measure_parts(
    patterns: Patterns,
    is_train: Flags,
    vocabulary: Sequence[str],
    setting: str,
    method: str,
    task: ReutersInput,
    conf: AlignmentSettings,
) -> dict[str, float]:
    evaluate_setting, learner = classification.evaluate_practitioner, conf.model
    if setting == "paragraphs":
        evaluate_setting, learner = classification.evaluate_paragraphs, task.paragraphs
        patterns = restrict(patterns, len(vocabulary), content_features(vocabulary))
        patterns = patterns._replace(weights=np.ones_like(patterns.weights))
    train, test = (take(patterns, np.flatnonzero(part))[0] for part in (is_train, ~is_train))
    return evaluate_setting(
        train, test, len(vocabulary), method, task.comparison, learner, conf.seed
    )


class Documents(NamedTuple):
    """Documents with a label in the largest classes, and those classes, sorted."""

    rows: DataFrame
    classes: list[str]


def _documents(context: Context) -> Documents:
    """Read the documents of ModApte with a label in the largest classes."""
    conf: AlignmentSettings = context.settings
    task = cast(ReutersInput, conf.input)
    with context.progress.stage("read"):
        read = read_reuters(context.spark, task.reuters, conf.quarantine, "input.reuters")
        bad = context.cached(read.quarantine)
        context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
        reasons = quarantine.count_reasons(bad)
        documents = context.cached(read.records)
        quarantine.check_share(task.reuters.path, documents.count(), reasons, conf.quarantine)
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
            hint = "no training document has a topic"
            raise DataError("DATA03", source=task.reuters.path, hint=hint)
        among = F.array_intersect("labels", F.array(*[F.lit(name) for name in classes]))
        used = documents.where("split <> 'unused'").withColumn("labels", among)
        kept = used.where(F.size("labels") > 0)
        counts = {row["split"]: row["count"] for row in kept.groupBy("split").count().collect()}
    context.run.write_metrics({"input": {**counts, "quarantined": sum(reasons.values())}})
    return Documents(kept, classes)


def _pattern_rows(
    context: Context,
    documents: Documents,
    kind: str,
    model: AlignmentModel | None = None,
    fixed: bool = False,
) -> tuple[DataFrame, list[str]]:
    """Give documents as pattern rows with ``split`` and ``labels``, and the vocabulary.

    The vocabulary begins with the model's, and with ``fixed`` it ends there.
    """
    conf: AlignmentSettings = context.settings
    task = cast(ReutersInput, conf.input)
    texts = documents.rows.select("document_id", "title", "paragraphs")
    weight = F.when(F.col("place") == 0, task.title_weight).otherwise(1.0)
    instances = splits.map_partitions(
        texts, partial(instances_of, pairs=kind == "pairs"), _INSTANCES
    ).withColumn("weight", weight)
    if fixed and model is not None:
        words = list(model.features)
    else:
        words = extended(model, build_vocabulary(instances, conf.vocabulary))
    known = documents.rows.select(F.col("document_id").alias("name"), "split", "labels")
    rows = assemble(instances, words, conf.partitions, conf.max_instances, known, ["place"])
    return rows, words


def _tempered(context: Context, rows: DataFrame) -> DataFrame:
    """Weight the occurrences as `evaluate` does."""
    task = cast(ReutersInput, context.settings.input)
    weight = task.comparison.token_weight
    return rows.withColumn("feature_counts", F.transform("feature_counts", lambda x: x * weight))


def instances_of(batch: pa.RecordBatch, pairs: bool) -> pa.RecordBatch:
    """Cut documents into instances: the title first, then each paragraph.

    Their tokens are words, or with ``pairs`` those of `documents.words_and_pairs`.
    """
    sizes = pc.add(pc.list_value_length(batch["paragraphs"]), 1)
    ends = np.cumsum(sizes.to_numpy(zero_copy_only=False))
    starts = ends - sizes.to_numpy(zero_copy_only=False)
    row = np.repeat(np.arange(batch.num_rows), ends - starts)
    place = np.arange(len(row)) - starts[row]
    # Of the titles and paragraphs, one after the other, the text of each instance.
    texts = pa.concat_arrays([batch["title"], batch["paragraphs"].flatten()])
    source = np.where(place == 0, row, batch.num_rows + np.arange(len(row)) - row - 1)
    tokens = tokenize(texts.take(pa.array(source)))
    return pa.RecordBatch.from_pydict(
        {
            "pattern_id": batch["document_id"].take(pa.array(row)),
            "tokens": words_and_pairs(tokens, place == 0) if pairs else tokens,
            "place": pa.array(place.astype(np.int32)),
        }
    )
