"""Train: passes over the documents in partitions, measured on development documents."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from corpusmill import storage
from corpusmill.coreference import plots
from corpusmill.coreference.fitting import fit_resolver
from corpusmill.coreference.learning import Progress, dense, sparse
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.preparation import Preparation
from corpusmill.coreference.tasks.documents import inputs_of, read
from corpusmill.coreference.tasks.evaluation import count_documents, refuse_broken
from corpusmill.coreference.tasks.models import resolved
from corpusmill.coreference.tasks.settings import CoreferenceSettings
from corpusmill.corpora.schemas import QUARANTINE
from corpusmill.types import AnyArray

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from corpusmill.runner import Context


def train(context: Context) -> None:
    """Train on the documents and keep the model."""
    conf: CoreferenceSettings = context.settings
    documents = read(context, conf.input.train, "input.train", gold=True)
    bad, develop = documents.quarantine, None
    if conf.input.develop is not None:
        found = read(context, conf.input.develop, "input.develop", gold=True)
        bad, develop = bad.unionByName(found.quarantine), found.records
    context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
    checkpoints = context.run.checkpoints(conf.checkpoint_passes)
    begin = _resumed(checkpoints, conf.model.bits)
    if begin is not None:
        context.progress.say(f"going on after iteration {len(begin.losses)}")
    curve: dict[int, float] = {}
    clock = time.perf_counter()
    with context.progress.stage("train") as stage:

        def on_pass(progress: Progress, preparation: Preparation) -> None:
            number = len(progress.losses)
            values = {"loss": progress.losses[-1], "latent_arc_length": progress.lengths[-1]}
            last = number == conf.model.iterations
            if develop is not None and (number % conf.develop_every == 0 or last):
                curve[number] = _measured(develop, preparation, progress)
                values["develop.conll_avg"] = curve[number]
            context.tracker.log_metrics(values, step=number)
            said = f"{', '.join(f'{name} {value:.4g}' for name, value in values.items())}"
            stage.update(number, conf.model.iterations, said)
            checkpoints.save(number, _arrays(progress), {"steps": progress.steps})

        model = fit_resolver(inputs_of(documents.records), conf.model, conf.seed, on_pass, begin)
    model.save(context.run.path("model"))
    metrics = {"train.seconds": time.perf_counter() - clock}
    metrics["train.weights"] = float(np.count_nonzero(model.weights))
    metrics |= {f"develop.conll_avg.{number}": value for number, value in curve.items()}
    context.run.write_metrics(metrics)
    if curve:
        context.tracker.log_figure(plots.curve_figure(curve), "plots/develop.png")
    context.tracker.log_model(context.run.path("model"), model.KIND, plots.example_documents())


def _measured(develop: DataFrame, preparation: Preparation, progress: Progress) -> float:
    model = CoreferenceModel(preparation, progress.average())
    answered = resolved(develop, model).persist()
    try:
        refuse_broken(answered)
        return count_documents(answered)["conll_avg"]
    finally:
        answered.unpersist()


def _arrays(progress: Progress) -> dict[str, AnyArray]:
    arrays = {"losses": progress.losses, "lengths": progress.lengths}
    for name in ("weights", "totals"):
        arrays[f"{name}_places"], arrays[f"{name}_values"] = sparse(getattr(progress, name))
    return arrays


def _resumed(checkpoints: storage.Checkpoints, bits: int) -> Progress | None:
    found = checkpoints.latest()
    if found is None:
        return None
    _, arrays, info = found
    weights, totals = (
        dense(arrays[f"{name}_places"], arrays[f"{name}_values"], bits)
        for name in ("weights", "totals")
    )
    return Progress(weights, totals, info["steps"], arrays["losses"], arrays["lengths"])
