"""The linking job: train, predict and evaluate."""

from __future__ import annotations

from collections.abc import Mapping

from corpusmill import storage
from corpusmill.corpora.linked_texts import linked_texts_paths
from corpusmill.linking.tasks import evaluation, prediction, training
from corpusmill.linking.tasks.settings import KnowledgeSettings, LinkingSettings, TextsSettings
from corpusmill.runner import Job


def inputs(action: str, conf: LinkingSettings) -> dict[str, str]:
    """Name the paths that an action reads, texts, tables and model, by the key of the conf."""
    given = conf.input
    fitted = given.training() | given.development()
    if action == "train":
        return _texts_paths(fitted) | _knowledge_paths(conf.knowledge)
    if action == "evaluate":
        tests = {f"input.test.{name}": source for name, source in given.test.items()}
        paths = _texts_paths((fitted if conf.baselines.methods else {}) | tests)
        for name, system in given.systems.items():
            paths[f"input.systems.{name}.path"] = system.path
            paths[f"input.systems.{name}.questions"] = system.questions
    else:
        paths = {} if given.texts is None else _texts_paths({"input.texts": given.texts})
        paths |= {f"input.queries.{n}.path": log.path for n, log in enumerate(given.queries)}
    paths |= storage.model_input(conf.output)
    return paths


def _texts_paths(sources: Mapping[str, TextsSettings]) -> dict[str, str]:
    paths: dict[str, str] = {}
    for key, source in sources.items():
        paths |= linked_texts_paths(source, key)
    return paths


def _knowledge_paths(given: KnowledgeSettings) -> dict[str, str]:
    paths = {}
    for part in ("lexicon", "entities", "links", "edited", "common"):
        for number, source in enumerate(getattr(given, part)):
            key = f"knowledge.{part}.{number}"
            paths[f"{key}.path"] = source.path
            for names in ("surface_names", "entity_names", "names"):
                other = getattr(source, names, None)
                if other is not None:
                    paths[f"{key}.{names}.path"] = other.path
    return paths


JOB = Job(
    name="linking",
    settings=LinkingSettings,
    actions={
        "train": training.train,
        "predict": prediction.predict,
        "evaluate": evaluation.evaluate,
    },
    inputs=inputs,
)
