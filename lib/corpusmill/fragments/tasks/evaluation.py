"""Evaluate: the linearised model beside the exact kernel, on examples that neither has seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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
from corpusmill.fragments.exact import KernelMachines
from corpusmill.fragments.explaining import explain
from corpusmill.fragments.fitting import COPIES, Corpus, read_group, survey
from corpusmill.fragments.learning import train_machines
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.pages import explanation_page
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.tasks.examples import read_examples
from corpusmill.fragments.tasks.settings import FragmentsSettings
from corpusmill.types import Floats

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


class Exact(NamedTuple):
    """Exact machines, one a class, and what their training took.

    Attributes
    ----------
    corpus : Corpus
        Labels and productions of the examples they were trained on.
    machines : list of KernelMachines
        Of one machine each.
    examples, support_vectors : int
    seconds : float
    """

    corpus: Corpus
    machines: list[KernelMachines]
    examples: int
    support_vectors: int
    seconds: float


def evaluate(context: Context) -> None:
    """Score the test examples by both models, and explain some predictions."""
    conf: FragmentsSettings = context.settings
    model = FragmentsModel.load(storage.resolve(conf.output, "model"))
    test = read_examples(context, "test").where(F.col("target").isNotNull())
    _check_classes(test, model.classes)
    metrics: dict[str, float] = {}
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
    names = {name: code for code, name in enumerate(classes)}
    for batch in batches:
        codes = np.array([names[name] for name in batch["target"].to_pylist()], np.int64)
        part = count_decisions(score(batch), codes)
        total = Decisions(*(a + b for a, b in zip(total, part, strict=True)))
    return total._asdict()


def _by_fragments(batch: pa.RecordBatch, model: FragmentsModel) -> Floats:
    return model.scores(model.space.vectors(batch))


def _by_kernel(batch: pa.RecordBatch, exact: Exact) -> Floats:
    forests = exact.corpus.forests(batch)
    scores = np.column_stack([machine.scores(forests) for machine in exact.machines])
    return np.column_stack([scores, -scores]) if len(exact.machines) == 1 else scores


def _train_exact(context: Context, classes: Sequence[str]) -> Exact:
    """Train each exact machine in a task of its own."""
    conf: FragmentsSettings = context.settings
    # What is bad in them lies in the quarantine of the train action.
    rows = read_examples(context, "train", keep_bad=False).where(F.col("target").isNotNull())
    if conf.exact.examples is not None:
        key = F.xxhash64(F.lit(conf.seed), F.col("example_id"))
        rows = context.cached(rows.orderBy(key, "example_id").limit(conf.exact.examples))
    with context.progress.stage("train the exact kernel"):
        begin = time.perf_counter()
        corpus = survey(rows, conf.model, classes)
        jobs = context.spark.range(corpus.machines).select(F.col("id").cast("int").alias("machine"))
        kernel = partial(_train_group, corpus=corpus, settings=conf.model)
        found = splits.map_groups(
            rows.withColumn(COPIES, F.lit(1.0)).crossJoin(F.broadcast(jobs)),
            ["machine"],
            kernel,
            _TRAINED,
            corpus.machines,
        ).toArrow()
        seconds = time.perf_counter() - begin
        trained = sorted(found.to_pylist(), key=lambda row: row["machine"])
    return Exact(
        corpus,
        [KernelMachines.unpack(row["content"]) for row in trained],
        rows.count(),
        sum(row["support_vectors"] for row in trained),
        seconds,
    )


def _train_group(
    key: tuple[Any, ...], rows: pa.Table, corpus: Corpus, settings: LearnerSettings
) -> pa.RecordBatch:
    """Train the exact machine of one class; the kernel of `_train_exact`."""
    (machine,) = key
    _, examples, codes, copies = read_group(rows, corpus)
    trained = train_machines(examples, codes, copies, [machine], settings)
    row = {
        "machine": machine,
        "content": KernelMachines.of(trained, settings.decay).pack(),
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
        # As many as may be wrong among them; which ones are shown does not depend on partitions.
        rows = test.orderBy(key, "example_id").limit(conf.explained).select(*TREES.names)
        table = rows.toArrow().combine_chunks()
        (batch,) = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        page = explanation_page(explain(model, batch))
        context.tracker.log_html(page, "pages/predictions.html")
