"""The coreference job: train, predict, evaluate, and select feature templates."""

from __future__ import annotations

from corpusmill import storage
from corpusmill.coreference.preparation import BUILT_IN
from corpusmill.coreference.tasks import evaluation, prediction, selection, training
from corpusmill.coreference.tasks.settings import CoreferenceSettings
from corpusmill.runner import Job


def inputs(action: str, conf: CoreferenceSettings) -> dict[str, str]:
    """Name the paths that an action reads, documents, lists and model, by the key of the conf."""
    given = conf.input
    if action in ("train", "select"):
        paths = {"input.train.path": given.train.path}
        if given.develop is not None and action == "train":
            paths["input.develop.path"] = given.develop.path
        if conf.model.genders:
            paths["model.genders"] = conf.model.genders
        if conf.model.templates not in BUILT_IN:
            paths["model.templates"] = conf.model.templates
        candidates = conf.selection.candidates
        if action == "select" and candidates is not None and candidates not in BUILT_IN:
            paths["selection.candidates"] = candidates
        return paths
    if action == "evaluate":
        paths = {f"input.test.{name}.path": source.path for name, source in given.test.items()}
        if conf.compare is not None:
            paths["compare"] = storage.resolve(conf.compare, "counts", "evaluate")
    else:
        paths = {} if given.documents is None else {"input.documents.path": given.documents.path}
    return paths | storage.model_input(conf.output)


JOB = Job(
    name="coreference",
    settings=CoreferenceSettings,
    actions={
        "train": training.train,
        "predict": prediction.predict,
        "evaluate": evaluation.evaluate,
        "select": selection.select,
    },
    inputs=inputs,
)
