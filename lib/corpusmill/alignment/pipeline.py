"""The alignment job: train, predict and evaluate for each kind of input."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from corpusmill import storage
from corpusmill.alignment.tasks import query_log, questions, reuters
from corpusmill.alignment.tasks.settings import (
    AlignmentSettings,
    QueryLogInput,
    QuestionsInput,
)
from corpusmill.alignment.tasks.training import older_model
from corpusmill.runner import Job

if TYPE_CHECKING:
    from corpusmill.runner import Context

TASKS = {"query_log": query_log, "questions": questions, "reuters": reuters}


def _action(name: str) -> Callable[[Context], None]:
    def run(context: Context) -> None:
        getattr(TASKS[context.settings.input.kind], name)(context)

    return run


def inputs(action: str, conf: AlignmentSettings) -> dict[str, str]:
    """Name the paths that an action reads, corpora and models, by the key of the conf."""
    paths = _corpora(action, conf)
    if action == "train" and conf.warm_start is not None:
        paths["warm_start"] = older_model(conf.warm_start)
    if action == "predict" or (action == "evaluate" and conf.input.kind == "query_log"):
        paths |= storage.model_input(conf.output)
    return paths


def _corpora(action: str, conf: AlignmentSettings) -> dict[str, str]:
    given = conf.input
    if isinstance(given, QueryLogInput):
        paths = {f"input.sources.{i}.path": each.path for i, each in enumerate(given.sources)}
        paths["input.entities.path"] = given.entities.path
        if given.gold is not None and action == "evaluate":
            paths["input.gold.path"] = given.gold.path
        return paths
    if isinstance(given, QuestionsInput):
        return {"input.questions.path": given.questions.path}
    return {"input.reuters.path": given.reuters.path}


JOB = Job(
    name="alignment",
    settings=AlignmentSettings,
    actions={name: _action(name) for name in ("train", "predict", "evaluate")},
    inputs=inputs,
)
