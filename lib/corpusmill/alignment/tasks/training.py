"""Training a model inside a job: checkpoints, progress, tracking and saving."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from corpusmill import storage
from corpusmill.alignment import instances, plots
from corpusmill.alignment.estimator import classes_of, fit_patterns
from corpusmill.alignment.instances import Smoothing
from corpusmill.alignment.learning import Iteration, Parameters
from corpusmill.alignment.model import AlignmentModel, Resume
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.alignment.tasks.settings import AlignmentSettings
from corpusmill.errors import StorageError

if TYPE_CHECKING:
    from corpusmill.runner import Context

EXAMPLE_ROWS = 3


def train_and_save(
    context: Context,
    rows: DataFrame,
    vocabulary: Sequence[str],
    classes: Sequence[str] = (),
    start: AlignmentModel | None = None,
) -> AlignmentModel:
    """Train on pattern rows, resuming from a checkpoint, and commit nothing yet.

    A start's classes are kept, those that ``rows`` lack too.

    The model goes into the run's folder and, as a pyfunc, to MLflow, with the bound of each
    iteration, the learned parameters and the strongest words of each class.
    """
    conf: AlignmentSettings = context.settings
    checkpoints = context.run.checkpoints(conf.checkpoint_every)
    resume = _resume(checkpoints, conf.model)
    with context.progress.stage("train") as stage:

        def on_iteration(iteration: Iteration, parameters: Parameters) -> None:
            stage.update(iteration.number, conf.model.max_iter, f"bound {iteration.bound:.1f}")
            context.tracker.log_metrics(
                {"bound": iteration.bound, "e_step_rounds": iteration.rounds},
                step=iteration.number,
            )
            history.append(iteration)
            checkpoints.save(iteration.number, *_state(parameters, history))

        history = list(resume.history) if resume else []
        model = fit_patterns(
            rows,
            conf.model,
            classes=extended(start, classes or classes_of(rows), "classes"),
            names=vocabulary,
            seed=conf.seed,
            warm_start=start,
            on_iteration=on_iteration,
            resume=resume,
        )
    folder = context.run.path("model")
    model.save(folder)
    _track(context, model, rows)
    return model


def warm_start(conf: AlignmentSettings) -> AlignmentModel | None:
    """Load the model that the conf begins with, if it names one."""
    return AlignmentModel.load(older_model(conf.warm_start)) if conf.warm_start else None


def extended(
    start: AlignmentModel | None,
    new: Sequence[str],
    kind: Literal["features", "classes"] = "features",
) -> list[str]:
    """Give a start's features or classes, and behind them those that are new."""
    old = list(getattr(start, kind)) if start is not None else []
    known = set(old)
    return old + [name for name in new if name not in known]


def older_model(path: str) -> str:
    """Return the model folder of an output folder; a model folder is one already."""
    try:
        return storage.resolve(path, "model")
    except StorageError:
        return path


def _track(context: Context, model: AlignmentModel, rows: DataFrame) -> None:
    metrics = {
        "bound": model.history[-1].bound if model.history else None,
        "iterations": len(model.history),
        "classes": len(model.classes),
        "features": model.size,
    }
    context.run.write_metrics({"train": metrics})
    tracker = context.tracker
    tracker.log_figure(plots.bound_figure(model.history), "plots/bound.png")
    tracker.log_figure(plots.parameters_figure(model), "plots/parameters.png")
    if model.features:
        tracker.log_table(plots.top_words(model), "tables/top_words.json")
    # JSON, in which the example is kept and requests arrive, knows no 32-bit integers.
    inputs = rows.select(
        "pattern_id",
        F.col("instance_offsets").cast("array<bigint>"),
        "instance_weights",
        F.col("feature_ids").cast("array<bigint>"),
        "feature_counts",
        "labels",
    )
    example = inputs.limit(EXAMPLE_ROWS).toPandas()
    # One row without labels tells MLflow that they need not be known.
    example.at[example.index[-1], "labels"] = None
    tracker.log_model(context.run.path("model"), AlignmentModel.KIND, example)


def _state(
    parameters: Parameters, history: Sequence[Iteration]
) -> tuple[dict[str, np.ndarray], dict[str, object]]:
    smoothing = parameters.instances.smoothing
    arrays = {
        "alpha": parameters.alpha,
        "lambda": parameters.lam,
        "smoothing_base": smoothing.base,
        **parameters.instances.arrays(),
    }
    return arrays, {"mass": smoothing.mass, "history": [list(item) for item in history]}


def _resume(checkpoints: storage.Checkpoints, settings: LearnerSettings) -> Resume | None:
    found = checkpoints.latest()
    if found is None:
        return None
    _, arrays, info = found
    smoothing = Smoothing(info["mass"], arrays.pop("smoothing_base"))
    alpha, lam = arrays.pop("alpha"), arrays.pop("lambda")
    model = instances.restore(settings.instance_model, arrays, smoothing)
    history = [Iteration(*item) for item in info["history"]]
    return Resume(history, Parameters(alpha, lam, model))
