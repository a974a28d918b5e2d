"""The boosting job: train, predict and evaluate."""

from __future__ import annotations

from corpusmill import storage
from corpusmill.boosting.tasks import evaluation, prediction, training
from corpusmill.boosting.tasks.settings import BoostingSettings
from corpusmill.runner import Job


def inputs(action: str, conf: BoostingSettings) -> dict[str, str]:
    """Name the paths that an action reads, factors and model, by the key of the conf."""
    part = "train" if action == "train" else "test"
    source = getattr(conf.input, part)
    paths = {f"input.{part}.path": source.path} if source is not None else {}
    if action != "train":
        paths |= storage.model_input(conf.output)
    return paths


JOB = Job(
    name="boosting",
    settings=BoostingSettings,
    actions={
        "train": training.train,
        "predict": prediction.predict,
        "evaluate": evaluation.evaluate,
    },
    inputs=inputs,
)
