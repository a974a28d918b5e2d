"""Train: boost trees over the examples, with a checkpoint after each barrier stage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from corpusmill import storage
from corpusmill.boosting import plots
from corpusmill.boosting.fitting import NOTHING, Progress, fit_factors
from corpusmill.boosting.model import BoostingModel
from corpusmill.boosting.tasks.examples import read_factors_of
from corpusmill.boosting.tasks.settings import BoostingSettings
from corpusmill.corpora.schemas import FACTORS

if TYPE_CHECKING:
    from corpusmill.runner import Context

EXAMPLE_ROWS = 3


def train(context: Context) -> None:
    """Train on the examples whose output is known, and keep the model."""
    conf: BoostingSettings = context.settings
    rows = read_factors_of(context, "train")
    checkpoints = context.run.checkpoints(1)
    start = _resumed(checkpoints)
    last = start
    begin = time.perf_counter()
    with context.progress.stage("train") as stage:

        def on_block(done: Progress) -> None:
            nonlocal last
            told = f"loss {done.losses[-1]:.4f}"
            stage.update(len(done.losses), conf.model.trees, told)
            known = len(last.losses)
            context.tracker.log_curve("loss", done.losses[known:], known)
            trees = np.frombuffer(done.trees.encode(), np.uint8)
            checkpoints.save(len(done.losses), {"losses": done.losses, "trees": trees}, {})
            last = done

        model = fit_factors(
            rows,
            conf.model,
            conf.seed,
            conf.feature_names,
            conf.checkpoint_trees,
            on_block,
            start,
        )
    seconds = time.perf_counter() - begin
    model.save(context.run.path("model"))
    context.run.write_metrics(
        {
            "train": {
                "seconds": seconds,
                "trees": conf.model.trees,
                "features": len(model.names),
                "first_loss": float(last.losses[0]),
                "last_loss": float(last.losses[-1]),
            }
        }
    )
    _track(context, model, last, rows)


def _resumed(checkpoints: storage.Checkpoints) -> Progress:
    found = checkpoints.latest()
    if found is None:
        return NOTHING
    _, arrays, _ = found
    return Progress(arrays["trees"].tobytes().decode(), arrays["losses"])


def _track(context: Context, model: BoostingModel, done: Progress, rows: DataFrame) -> None:
    tracker = context.tracker
    importance = plots.importance_table(model)
    tracker.log_figure(plots.loss_figure(done.losses, model.settings.loss), "plots/loss.png")
    tracker.log_figure(plots.importance_figure(importance), "plots/importance.png")
    tracker.log_table(importance, "tables/importance.json")
    # JSON, in which the example is kept and requests arrive, knows no 32-bit integers; and of a
    # column that is empty throughout MLflow would learn no type.
    filled = [name for name in FACTORS.names if name not in ("example_id", "gold")]
    example = rows.select(*_given(rows, filled)).limit(EXAMPLE_ROWS).toPandas()
    tracker.log_model(context.run.path("model"), BoostingModel.KIND, example)


def _given(rows: DataFrame, names: list[str]) -> list[Column]:
    """Give the columns that the examples use, their integers as long as JSON's."""
    used = rows.agg(*[F.count(name).alias(name) for name in names]).collect()[0]
    return [
        F.col(name).cast("array<bigint>").alias(name) if name != "features" else F.col(name)
        for name in names
        if used[name]
    ]
