"""The fragments job: train, predict and evaluate."""

from __future__ import annotations

from corpusmill import storage
from corpusmill.fragments.tasks import evaluation, prediction, training
from corpusmill.fragments.tasks.examples import paths_of
from corpusmill.fragments.tasks.settings import FragmentsSettings
from corpusmill.runner import Job


def inputs(action: str, conf: FragmentsSettings) -> dict[str, str]:
    """Name the paths that an action reads, corpora and model, by the key of the conf."""
    parts = {"train": ["train"], "predict": ["test"], "evaluate": ["train", "test"]}[action]
    paths: dict[str, str] = {}
    for part in parts:
        source = getattr(conf.input, part)
        if source is not None:
            paths |= {f"input.{part}.{key}": path for key, path in paths_of(source).items()}
    if action != "train":
        paths |= storage.model_input(conf.output)
    return paths


JOB = Job(
    name="fragments",
    settings=FragmentsSettings,
    actions={
        "train": training.train,
        "predict": prediction.predict,
        "evaluate": evaluation.evaluate,
    },
    inputs=inputs,
)
