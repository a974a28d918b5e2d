"""The linker as a pyspark.ml estimator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasSeed
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora.schemas import DOUBLES, INTS, LINKED_TEXTS, STRINGS
from corpusmill.errors import DataError, UsageError
from corpusmill.evaluation.linking import LinkCounts, Links, count_links, link_metrics
from corpusmill.frames import list_offsets
from corpusmill.linking.fitting import TEXT_COLUMNS, fit_links
from corpusmill.linking.folding import keys_of
from corpusmill.linking.knowledge import load_knowledge
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.placement import whole
from corpusmill.linking.settings import LearnerSettings
from corpusmill.ml import (
    Saved,
    checked_columns,
    settings_defaults,
    settings_of,
    with_params_of,
    with_settings,
)
from corpusmill.types import AnyArray, Floats

OUTPUTS = T.StructType(
    [
        T.StructField("mention_starts", INTS),
        T.StructField("mention_ends", INTS),
        T.StructField("mention_entities", STRINGS),
        T.StructField("mention_scores", DOUBLES),
        T.StructField("mention_probabilities", DOUBLES),
        T.StructField("runner_up_entities", T.ArrayType(T.StringType())),
        T.StructField("runner_up_probabilities", DOUBLES),
    ]
)
"""The columns of `LinkingModel.predict_batch`."""
GOLD = frozenset({"mention_starts", "mention_ends", "mention_entities"})


def _column(name: str, doc: str) -> Param[str]:
    return Param(Params._dummy(), name, doc, TypeConverters.toString)


@with_settings(LearnerSettings)
class LinkingParams(HasSeed):
    """Params of the estimator and its model; the learner's are those of `LearnerSettings`."""

    textIdCol = _column("textIdCol", "the text's name, for ranks and messages")
    textCol = _column("textCol", "the text")
    mentionStartsCol = _column("mentionStartsCol", "where each true mention begins, in characters")
    mentionEndsCol = _column("mentionEndsCol", "where each true mention ends")
    mentionEntitiesCol = _column("mentionEntitiesCol", "the entity of each, null for none")
    linkedStartsCol = _column("linkedStartsCol", "output: where each mention begins")
    linkedEndsCol = _column("linkedEndsCol", "output: where each mention ends")
    linkedEntitiesCol = _column("linkedEntitiesCol", "output: the entity of each")
    linkedScoresCol = _column("linkedScoresCol", "output: F(entity) - F(Nil) of each")
    linkedProbabilitiesCol = _column("linkedProbabilitiesCol", "output: the probability of each")
    runnerUpEntitiesCol = _column("runnerUpEntitiesCol", "output: what else it may be, or null")
    runnerUpProbabilitiesCol = _column("runnerUpProbabilitiesCol", "output: how probably")
    errorCol = _column("errorCol", "output: why a row could not be linked, else null")

    def _set_all_defaults(self) -> None:
        names = {
            f"{camel}Col": name
            for camel, name in [
                ("textId", "text_id"),
                ("text", "text"),
                ("mentionStarts", "mention_starts"),
                ("mentionEnds", "mention_ends"),
                ("mentionEntities", "mention_entities"),
                ("linkedStarts", "linked_starts"),
                ("linkedEnds", "linked_ends"),
                ("linkedEntities", "linked_entities"),
                ("linkedScores", "linked_scores"),
                ("linkedProbabilities", "linked_probabilities"),
                ("runnerUpEntities", "runner_up_entities"),
                ("runnerUpProbabilities", "runner_up_probabilities"),
                ("error", "linking_error"),
            ]
        }
        self._setDefault(seed=13, **names, **settings_defaults(LearnerSettings))

    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return settings_of(self, LearnerSettings)

    def _inputs(self, df: DataFrame, optional: frozenset[str]) -> list[Column]:
        columns = {
            "text_id": self.getOrDefault(self.textIdCol),
            "text": self.getOrDefault(self.textCol),
            "mention_starts": self.getOrDefault(self.mentionStartsCol),
            "mention_ends": self.getOrDefault(self.mentionEndsCol),
            "mention_entities": self.getOrDefault(self.mentionEntitiesCol),
        }
        wanted = T.StructType([LINKED_TEXTS[name] for name in TEXT_COLUMNS])
        return checked_columns(df, columns, wanted, optional)


class EntityLinker(Estimator["EntityLinkerModel"], LinkingParams, Saved):
    """Texts to the entities that they mention, by S-MART over non-overlapping candidates.

    The input columns are those of `corpusmill.corpora.schemas.LINKED_TEXTS`, under any names.

    Parameters
    ----------
    **kwargs
        Any Param. ``knowledgePath`` is needed: a folder of `linking.knowledge.save_knowledge`.

    Examples
    --------
    >>> linker = EntityLinker(knowledgePath="knowledge", stages=2)
    >>> linker.getOrDefault("stages")
    2
    """

    knowledgePath: Param[str] = Param(
        Params._dummy(), "knowledgePath", "a knowledge folder or URI", TypeConverters.toString
    )

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._set_all_defaults()
        self._setDefault(knowledgePath="")
        self._set(**kwargs)

    def _fit(self, dataset: DataFrame) -> EntityLinkerModel:
        rows = dataset.select(*self._inputs(dataset, GOLD)).persist()
        try:
            given = [F.col(name).isNotNull() for name in sorted(GOLD)]
            known = rows.where(reduce(Column.__and__, given))
            if known.isEmpty():
                hint = "there must be a text with known mentions"
                raise DataError("DATA03", source="column 'mention_starts'", hint=hint)
            path = self.getOrDefault(self.knowledgePath)
            if not path:
                problem = "the estimator needs a knowledge folder"
                raise UsageError("CONF04", key="knowledgePath", value=repr(path), problem=problem)
            seed = self.getOrDefault(self.seed)
            texts, knowledge = whole(known), load_knowledge(path)
            trained = fit_links(texts, knowledge, self.settings(), seed).model
        finally:
            rows.unpersist()
        return with_params_of(self, EntityLinkerModel(trained), LinkingParams)


class EntityLinkerModel(Model, LinkingParams, Saved):
    """A trained linker; ``transform`` keeps all columns and appends the outputs.

    Parameters
    ----------
    model : LinkingModel
        The model on arrays.
    """

    array_model = LinkingModel

    def __init__(self, model: LinkingModel) -> None:
        super().__init__()
        self._set_all_defaults()
        self.model = model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        kernel = partial(predict_rows, model=self.model)
        outputs = [
            self.linkedStartsCol,
            self.linkedEndsCol,
            self.linkedEntitiesCol,
            self.linkedScoresCol,
            self.linkedProbabilitiesCol,
            self.runnerUpEntitiesCol,
            self.runnerUpProbabilitiesCol,
        ]
        names = {
            name: self.getOrDefault(param)
            for name, param in zip(OUTPUTS.names, outputs, strict=True)
        }
        names[splits.ERROR] = self.getOrDefault(self.errorCol)
        inputs = self._inputs(dataset, GOLD | {"text_id"})
        return splits.append_columns(dataset, inputs, kernel, OUTPUTS, names)


def predict_rows(batch: pa.RecordBatch, model: LinkingModel) -> pa.RecordBatch:
    """Link a batch; the kernel of ``transform``."""
    return model.predict_batch(batch)


class LinkEvaluator(Evaluator):
    """Micro F1 of links, for `pyspark.ml.tuning.CrossValidator`.

    A predicted mention is right if it overlaps a true one of the same entity
    (`corpusmill.evaluation.linking`). Titles are compared as the lexicon does, but redirects are
    not followed; texts whose mentions are not known are left out. The columns have the names that
    they have by default.
    """

    def _evaluate(self, dataset: DataFrame) -> float:
        columns = [f"{part}_{name}" for part in ("mention", "linked") for name in _PARTS]
        known = dataset.where(F.col("mention_starts").isNotNull()).select(*columns)
        if known.isEmpty():
            hint = "no text has known mentions"
            raise DataError("DATA03", source="the evaluated rows", hint=hint)
        return link_metrics(LinkCounts(**splits.sum_arrays(known, count_rows)))["f1"]


_PARTS = ("starts", "ends", "entities")


def count_rows(batches: Iterator[pa.RecordBatch]) -> dict[str, Floats]:
    """Count the links of a partition; the kernel of `LinkEvaluator`."""
    total = np.zeros((4, 1))
    for batch in batches:
        titles = [batch.column(f"{part}_entities").flatten() for part in ("mention", "linked")]
        both = pa.chunked_array(titles)
        codes = np.unique(keys_of(both), return_inverse=True)[1]
        codes[both.is_null().to_numpy(zero_copy_only=False)] = -1
        gold, found = np.split(codes, [len(titles[0])])
        total += np.stack(
            count_links(_links(batch, "mention", gold), _links(batch, "linked", found))
        )
    return dict(zip(LinkCounts._fields, total, strict=True))


def _links(batch: pa.RecordBatch, part: str, entities: AnyArray) -> Links:
    starts, ends = (
        batch.column(f"{part}_{name}").flatten().to_numpy(zero_copy_only=False)
        for name in ("starts", "ends")
    )
    return Links(list_offsets(batch.column(f"{part}_starts")), starts, ends, entities)
