"""Train: mine fragments, train the linear machines, and show the best fragments."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill.corpora.schemas import INTS, STRINGS
from corpusmill.fragments import plots, tables
from corpusmill.fragments.explaining import best_of_classes
from corpusmill.fragments.fitting import fit_trees
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.pages import fragments_page
from corpusmill.fragments.tasks.examples import read_examples
from corpusmill.fragments.tasks.settings import FragmentsSettings

if TYPE_CHECKING:
    from corpusmill.runner import Context

EXAMPLE_ROWS = 3
FRAGMENTS = T.StructType(
    [
        T.StructField("class", T.StringType()),
        T.StructField("rank", T.LongType()),
        T.StructField("fragment", T.StringType()),
        T.StructField("weight", T.DoubleType()),
        T.StructField("document_frequency", T.LongType()),
        T.StructField("labels", STRINGS),
        T.StructField("arities", INTS),
        T.StructField("expanded", T.ArrayType(T.BooleanType(), containsNull=False)),
    ]
)
"""A fragment that weighs much in the linear machine of a class."""


def train(context: Context) -> None:
    """Train on the examples and keep the model and its best fragments."""
    conf: FragmentsSettings = context.settings
    rows = read_examples(context, "train")
    begin = time.perf_counter()
    with ExitStack() as stages:

        def on_stage(name: str) -> None:
            stages.close()
            stages.enter_context(context.progress.stage(name))

        model = fit_trees(rows, conf.model, conf.seed, conf.classes, on_stage)
    seconds = time.perf_counter() - begin
    model.save(context.run.path("model"))
    best = best_of_classes(model, conf.best_fragments)
    table = context.spark.createDataFrame(best, FRAGMENTS)
    context.run.write_parquet("fragments", table, expected_rows=len(best), schema=FRAGMENTS)
    context.run.write_metrics(
        {
            "linearised": {"train_seconds": seconds},
            "train": {
                "classes": len(model.classes),
                "productions": len(model.space.vocabulary.productions.offsets) - 1,
                "fragments": sum(model.space.sizes),
                "unconverged": int(np.count_nonzero(~model.converged)),
            },
        }
    )
    if not model.converged.all():
        context.progress.say(
            f"{np.count_nonzero(~model.converged)} of {len(model.converged)} linear machines ended "
            "by model.linear_max_iter; their weights may still move"
        )
    _track(context, model, best, rows)


def _track(context: Context, model: FragmentsModel, best: pd.DataFrame, rows: DataFrame) -> None:
    conf: FragmentsSettings = context.settings
    tracker = context.tracker
    shown = best[best["rank"] <= conf.shown_fragments]
    examples = int(context.run.metrics["input.train.examples"] or 0)
    tracker.log_html(fragments_page(shown, examples), "pages/fragments.html")
    tracker.log_table(tables.fragments_table(shown), "tables/fragments.json")
    tracker.log_csv(tables.fragments_table(best), "tables/fragments.csv")
    machines = range(len(model.bias))
    figure = plots.weights_figure(
        model.classes[: len(machines)], [model.machine(number)[1] for number in machines]
    )
    tracker.log_figure(figure, "plots/weights.png")
    # JSON, in which the example is kept and requests arrive, knows no 32-bit integers.
    inputs = rows.select(
        "node_labels",
        F.col("node_arities").cast("array<bigint>"),
        F.col("tree_offsets").cast("array<bigint>"),
        F.col("vector_ids").cast("array<bigint>"),
        "vector_values",
    )
    example = inputs.limit(EXAMPLE_ROWS).toPandas()
    tracker.log_model(context.run.path("model"), FragmentsModel.KIND, example)
