"""Evaluate: the linearised model beside the exact kernel, on examples that neither has seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.corpora.schemas import TREES
from corpusmill.errors import DataError
from corpusmill.evaluation.decisions import Decisions, count_decisions, decision_metrics
from corpusmill.fragments import plots, tables
from corpusmill.fragments.corpus import Corpus, class_codes
from corpusmill.fragments.exact import KernelMachines, exact_scores
from corpusmill.fragments.explaining import explain
from corpusmill.fragments.fitting import distinct_examples, survey
from corpusmill.fragments.learning import train_machines
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.pages import explanation_page
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.split_mining import read_group, whole_batch
from corpusmill.fragments.tasks.examples import read_examples
from corpusmill.fragments.tasks.settings import FragmentsSettings
from corpusmill.types import AnyArray, Flags, Floats

if TYPE_CHECKING:
    from corpusmill.runner import Context

_TRAINED = T.StructType(
    [
        T.StructField("machine", T.IntegerType()),
        T.StructField("content", T.BinaryType()),
        T.StructField("support_vectors", T.LongType()),
        T.StructField("gap", T.DoubleType()),
    ]
)
Score = Callable[[pa.RecordBatch], Floats]
_LOOKED_AT = 20
"""Test examples that are looked at for each one that is explained."""


class Exact(NamedTuple):
    """Exact machines, one a class, and what their training took.

    Attributes
    ----------
    corpus : Corpus
        Labels and productions of the examples they were trained on.
    machines : list of KernelMachines
        Of one machine each.
    examples, support_vectors : int
    gap : float
        The farthest of them from optimality.
    seconds : float
    """

    corpus: Corpus
    machines: list[KernelMachines]
    examples: int
    support_vectors: int
    gap: float
    seconds: float


def evaluate(context: Context) -> None:
    """Score the test examples by both models, and explain some predictions."""
    conf: FragmentsSettings = context.settings
    model = FragmentsModel.load(storage.resolve(conf.output, "model"))
    labelled = read_examples(context, "test").where(F.col("target").isNotNull())
    _check_classes(labelled, model.classes)
    # Such rows have no score; predict names them.
    fits = F.size("tree_offsets") - 1 <= len(model.space.fragments)
    test = labelled.where(fits)
    metrics: dict[str, float] = {"evaluate.left_out_for_more_trees": labelled.where(~fits).count()}
    with context.progress.stage("score by fragments"):
        metrics |= _measured(test, model.classes, partial(_by_fragments, model=model), "linearised")
    if conf.exact.examples != 0:
        exact = _train_exact(context, model.classes)
        with context.progress.stage("score by the kernel"):
            metrics |= _measured(test, model.classes, partial(_by_kernel, exact=exact), "exact")
        metrics |= {
            "exact.train_examples": exact.examples,
            "exact.train_seconds": exact.seconds,
            "exact.support_vectors": exact.support_vectors,
            "exact.gap": exact.gap,
        }
    context.run.write_metrics(metrics)
    _track(context, model, test, metrics)


def _check_classes(rows: DataFrame, classes: Sequence[str]) -> None:
    unknown = rows.where(~F.col("target").isin(list(classes))).select("target").first()
    if unknown is not None:
        allowed = ", ".join(classes[:20])
        raise DataError(
            "DATA05", name=unknown["target"], where="the test examples", allowed=allowed
        )


def _measured(rows: DataFrame, classes: Sequence[str], score: Score, name: str) -> dict[str, float]:
    """Score rows, add up the decisions over the partitions, and time it."""
    begin = time.perf_counter()
    kernel = partial(_count_partition, classes=tuple(classes), score=score)
    sums = splits.sum_arrays(rows, kernel)
    seconds = time.perf_counter() - begin
    found = decision_metrics(Decisions(**sums), classes)
    found["test_seconds"] = seconds
    return {f"{name}.{key}": value for key, value in found.items()}


def _count_partition(
    batches: Iterator[pa.RecordBatch], classes: tuple[str, ...], score: Score
) -> dict[str, Floats]:
    """Count the decisions of a partition; the kernel of `_measured`."""
    total = count_decisions(np.zeros((0, len(classes))), np.zeros(0, np.int64))
    for batch in batches:
        part = count_decisions(score(batch), class_codes(batch["target"], classes))
        total = Decisions(*(a + b for a, b in zip(total, part, strict=True)))
    return total._asdict()


def _by_fragments(batch: pa.RecordBatch, model: FragmentsModel) -> Floats:
    return model.scores(model.space.vectors(batch))


def _by_kernel(batch: pa.RecordBatch, exact: Exact) -> Floats:
    scores = exact_scores(exact.machines, exact.corpus.examples(batch))
    return np.column_stack([scores, -scores]) if len(exact.machines) == 1 else scores


def _train_exact(context: Context, classes: Sequence[str]) -> Exact:
    """Train each exact machine in a task of its own."""
    conf: FragmentsSettings = context.settings
    # What is bad in them lies in the quarantine of the train action.
    rows = read_examples(context, "train", keep_bad=False).where(F.col("target").isNotNull())
    key = F.xxhash64(F.lit(conf.seed), F.col("example_id"))
    rows = context.cached(rows.orderBy(key, "example_id").limit(conf.exact.examples))
    examples = rows.count()  # the choice is no part of the training's time
    with context.progress.stage("train the exact kernel"):
        begin = time.perf_counter()
        distinct = context.cached(distinct_examples(rows))
        corpus = survey(distinct, conf.model, classes)
        jobs = context.spark.range(corpus.machines).select(F.col("id").cast("int").alias("machine"))
        kernel = partial(_train_group, corpus=corpus, settings=conf.model)
        found = splits.map_groups(
            distinct.crossJoin(F.broadcast(jobs)),
            "machine",
            kernel,
            _TRAINED,
            corpus.machines,
        ).toArrow()
        seconds = time.perf_counter() - begin
        trained = sorted(found.to_pylist(), key=lambda row: row["machine"])
    return Exact(
        corpus,
        [KernelMachines.unpack(row["content"]) for row in trained],
        examples,
        sum(row["support_vectors"] for row in trained),
        max(row["gap"] for row in trained),
        seconds,
    )


def _train_group(
    machine: int, rows: pa.Table, corpus: Corpus, settings: LearnerSettings
) -> pa.RecordBatch:
    """Train the exact machine of one class; the kernel of `_train_exact`."""
    _, examples, codes, copies = read_group(rows, corpus)
    trained = train_machines(examples, codes, copies, [machine], settings)
    row = {
        "machine": machine,
        "content": KernelMachines.of(trained, examples, settings).pack(),
        "support_vectors": int(np.count_nonzero(trained.beta)),
        "gap": float(trained.gaps[0]),
    }
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_TRAINED))


def _track(
    context: Context, model: FragmentsModel, test: DataFrame, metrics: dict[str, float]
) -> None:
    conf: FragmentsSettings = context.settings
    table = tables.comparison_table(metrics)
    if len(table):
        context.tracker.log_figure(plots.comparison_figure(table), "plots/comparison.png")
        context.tracker.log_table(table, "tables/comparison.json")
    if not conf.explained:
        return
    with context.progress.stage("explain"):
        key = F.xxhash64(F.lit(conf.seed), F.col("example_id"))
        # By chance, but whatever the partitions.
        rows = test.orderBy(key, "example_id").limit(_LOOKED_AT * conf.explained)
        batch = whole_batch(rows.select(*TREES.names).toArrow())
        found = _by_fragments(batch, model).argmax(axis=1)
        wrong = found != class_codes(batch["target"], model.classes)
        shown = batch.take(pa.array(worth_a_look(wrong, conf.explained)))
        page = explanation_page(explain(model, shown))
        context.tracker.log_html(page, "pages/predictions.html")


def worth_a_look(wrong: Flags, most: int) -> AnyArray:
    """Choose rows to explain: wrong ones for half of them, if there are so many, then right ones.

    Where right ones are too few, wrong ones take their places.
    """
    some, others = np.flatnonzero(wrong), np.flatnonzero(~wrong)
    half = min(len(some), max(most // 2, most - len(others)))
    return np.concatenate([some[:half], others[: most - half]])
