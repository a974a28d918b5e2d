"""Experiment 2: entities in labelled questions, disambiguated by their contexts.

A pattern is a named entity, its instances are the questions it occurs in less the entity, and
its labels are the categories of those questions. The category of an instance is kept beside the
patterns for `evaluate` and is never shown to a learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.alignment import comparison as compare
from corpusmill.alignment import plots
from corpusmill.alignment.batches import read_patterns
from corpusmill.alignment.comparison import METHODS, Corpus
from corpusmill.alignment.disambiguation import disambiguate
from corpusmill.alignment.mentions import contexts
from corpusmill.alignment.model import AlignmentModel
from corpusmill.alignment.patterns import assemble, build_vocabulary, known_to, label_sets
from corpusmill.alignment.tasks.settings import AlignmentSettings, QuestionsInput
from corpusmill.alignment.tasks.training import extended, train_and_save, warm_start
from corpusmill.corpora import quarantine
from corpusmill.corpora.questions import read_questions
from corpusmill.corpora.schemas import DOUBLES, QUARANTINE, STRINGS
from corpusmill.errors import DataError

if TYPE_CHECKING:
    from corpusmill.runner import Context

_MENTIONS = T.StructType(
    [
        T.StructField("pattern_id", T.StringType()),
        T.StructField("tokens", STRINGS),
        T.StructField("question", T.StringType()),
        T.StructField("category", T.StringType()),
    ]
)
_MEASURED = T.StructType(
    [
        T.StructField("split", T.IntegerType()),
        T.StructField("method", T.StringType()),
        T.StructField("metrics", T.MapType(T.StringType(), T.DoubleType())),
        T.StructField("classes", STRINGS),
        T.StructField("confusion", DOUBLES),
    ]
)
PREDICTIONS = T.StructType(
    [
        T.StructField("entity", T.StringType()),
        T.StructField("context", STRINGS),
        T.StructField("category", T.StringType()),
        T.StructField("classes", STRINGS),
        T.StructField("probabilities", DOUBLES),
        T.StructField("context_words", STRINGS),
        T.StructField("evidence", DOUBLES),
    ]
)
"""An entity in a question: its context, the question's category, and the ranked classes."""


def train(context: Context) -> None:
    """Train DBA on all entities."""
    start = warm_start(context.settings)
    rows, vocabulary = _patterns(context, start)
    train_and_save(context, context.cached(rows), vocabulary, start=start)


def predict(context: Context) -> None:
    """Disambiguate every entity in every question."""
    conf: AlignmentSettings = context.settings
    model = AlignmentModel.load(storage.resolve(conf.output, "model"))
    with context.progress.stage("disambiguate"):
        rows, _ = _patterns(context, model, ["tokens", "category"], fixed=True)
        kernel = partial(
            disambiguate,
            model=model,
            classes=conf.ranked_classes,
            words=conf.context_words,
            use_labels=conf.known_labels,
            carried=["tokens", "category"],
        )
        found = splits.map_partitions(rows, kernel, _with_names())
        predictions = found.withColumnsRenamed({"name": "entity", "tokens": "context"})
        written = context.run.write_parquet(
            "predictions", predictions.select(PREDICTIONS.names), schema=PREDICTIONS
        )
    context.run.write_metrics({"predict": {"instances": written}})


def _with_names() -> T.StructType:
    names = {"entity": "name", "context": "tokens"}
    return T.StructType(
        [T.StructField(names.get(field.name, field.name), field.dataType) for field in PREDICTIONS]
    )


def evaluate(context: Context) -> None:
    """Compare DBA with its baselines, one Spark task a split and method."""
    conf: AlignmentSettings = context.settings
    task = cast(QuestionsInput, conf.input)
    rows, vocabulary = _patterns(context, carried=["category"], min_count=1)
    pairs = [(split, method) for split in range(task.comparison.splits) for method in METHODS]
    jobs = context.spark.range(len(pairs)).select(F.col("id").cast("int").alias("job"))
    kernel = partial(
        _measure,
        pairs=pairs,
        features=len(vocabulary),
        task=task,
        conf=conf,
    )
    with context.progress.stage("compare"):
        measured = splits.map_groups(
            rows.crossJoin(F.broadcast(jobs)), "job", kernel, _MEASURED, len(pairs)
        ).collect()
    metrics = compare.average([row["metrics"] for row in measured])
    context.run.write_metrics(metrics)
    for split in range(task.comparison.splits):
        with context.tracker.child(f"split {split}") as child:
            for row in measured:
                if row["split"] == split:
                    child.log_metrics(row["metrics"])
    classes = measured[0]["classes"]
    confusions = {
        method: np.sum(
            [row["confusion"] for row in measured if row["method"] == method], axis=0
        ).reshape(len(classes), len(classes))
        for method in METHODS
    }
    tracker = context.tracker
    tracker.log_figure(plots.accuracy_figure(metrics, METHODS), "plots/accuracy.png")
    tracker.log_figure(plots.classes_figure(confusions), "plots/classes.png")
    figure = plots.confusion_figure(confusions["dba"], classes)
    tracker.log_figure(figure, "plots/confusion.png")
    tracker.log_table(plots.confusion_table(confusions["dba"], classes), "tables/confusion.json")
    tracker.log_table(plots.metrics_table(metrics, METHODS), "tables/comparison.json")


def _measure(
    job: int,
    rows: pa.Table,
    pairs: Sequence[tuple[int, str]],
    features: int,
    task: QuestionsInput,
    conf: AlignmentSettings,
) -> pa.RecordBatch:
    """Evaluate one method on one split; the kernel of `evaluate`."""
    split, method = pairs[job]
    if rows.num_rows < 2:
        raise DataError("DATA01", source="the questions", problem="one entity cannot be split")
    # Whatever order the shuffle brought them in, the same patterns are in the same split.
    (batch,) = rows.sort_by("pattern_id").combine_chunks().to_batches()
    classes = sorted(pc.unique(batch["labels"].flatten()).to_pylist())
    gold = pc.index_in(batch["category"].flatten(), value_set=pa.array(classes, pa.string()))
    patterns = read_patterns(batch, classes, features)
    corpus = Corpus(patterns, gold.to_numpy(zero_copy_only=False).astype(np.int64), features)
    settings = task.comparison
    parts = compare.random_splits(batch.num_rows, settings.splits, settings.test_share, conf.seed)
    scores = compare.score(corpus, parts[split], method, settings, conf.model, conf.seed)
    table = compare.confusion(scores.unknown, scores.gold)
    row = {
        "split": split,
        "method": method,
        "metrics": list(compare.measure(method, scores).items()),
        "classes": classes,
        "confusion": table.reshape(-1).tolist(),
    }
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_MEASURED))


def _patterns(
    context: Context,
    model: AlignmentModel | None = None,
    carried: Sequence[str] = (),
    min_count: int | None = None,
    fixed: bool = False,
) -> tuple[DataFrame, list[str]]:
    """Read the questions and give pattern rows with label sets, and the vocabulary.

    The vocabulary begins with the model's; with ``fixed`` it and the classes end there.
    """
    conf: AlignmentSettings = context.settings
    task = cast(QuestionsInput, conf.input)
    with context.progress.stage("read"):
        read = read_questions(context.spark, task.questions, conf.quarantine, "input.questions")
        bad = context.cached(read.quarantine)
        context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
        reasons = quarantine.count_reasons(bad)
        questions = read.records.select("question", "category").distinct()
        found = splits.map_partitions(questions, find_mentions, _MENTIONS)
        entities = found.groupBy("pattern_id").agg(
            F.countDistinct("question").alias("questions"),
            F.countDistinct("category").alias("classes"),
        )
        kept = entities.where(F.col("questions") >= task.min_questions).where(
            F.col("classes") >= task.min_classes
        )
        mentions = found.join(kept.select("pattern_id"), "pattern_id", "left_semi")
        instances = context.cached(mentions.withColumn("weight", F.lit(1.0)))
        totals = {
            "questions": questions.count(),
            "entities": kept.count(),
            "instances": instances.count(),
            "quarantined": sum(reasons.values()),
        }
    quarantine.check_share("the questions", totals["questions"], reasons, conf.quarantine)
    if not totals["instances"]:
        hint = f"no entity has {task.min_questions} questions and {task.min_classes} categories"
        raise DataError("DATA03", source="the questions", hint=hint)
    context.run.write_metrics({"input": totals})
    settings = conf.vocabulary
    if min_count is not None:
        settings = settings.model_copy(update={"min_count": min_count})
    labels = label_sets(instances, F.col("pattern_id"), F.col("category"))
    if fixed and model is not None:
        words, labels = list(model.features), known_to(model, labels)
    else:
        words = extended(model, build_vocabulary(instances, settings))
    rows = assemble(instances, words, conf.partitions, conf.max_instances, labels, carried)
    return rows, words


def find_mentions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Find the entities of questions: a row for each entity in a question."""
    rows = [
        {"pattern_id": entity, "tokens": words, "question": question, "category": category}
        for question, category in zip(
            batch["question"].to_pylist(), batch["category"].to_pylist(), strict=True
        )
        for entity, words in contexts(question)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=splits.schema_of(_MENTIONS))
