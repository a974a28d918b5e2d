"""Fragments as a pyspark.ml estimator."""

from __future__ import annotations

from functools import partial
from typing import Any

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
from corpusmill.corpora.schemas import DOUBLES, INTS, TREES
from corpusmill.errors import DataError
from corpusmill.fragments.fitting import fit_trees
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.ml import (
    Saved,
    checked_columns,
    settings_defaults,
    settings_of,
    with_params_of,
    with_settings,
)

OUTPUTS = T.StructType(
    [
        T.StructField("prediction", T.StringType()),
        T.StructField("scores", DOUBLES),
        T.StructField("probability", DOUBLES),
    ]
)
"""The columns of `FragmentsModel.predict_batch`."""


def _column(name: str, doc: str) -> Param[str]:
    return Param(Params._dummy(), name, doc, TypeConverters.toString)


@with_settings(LearnerSettings)
class FragmentsParams(HasSeed):
    """Params of the estimator and its model; the learner's are those of `LearnerSettings`."""

    exampleIdCol = _column("exampleIdCol", "the example's name, for splits and messages")
    targetCol = _column("targetCol", "its class, null where not known")
    nodeLabelsCol = _column("nodeLabelsCol", "the labels of its trees' nodes in preorder")
    nodeAritiesCol = _column("nodeAritiesCol", "the nodes' numbers of children")
    treeOffsetsCol = _column("treeOffsetsCol", "where each tree begins and ends")
    vectorIdsCol = _column("vectorIdsCol", "the feature vector's columns; may be missing")
    vectorValuesCol = _column("vectorValuesCol", "their values; may be missing")
    predictionCol = _column("predictionCol", "output: the predicted class")
    scoresCol = _column("scoresCol", "output: f, a number a class")
    probabilityCol = _column("probabilityCol", "output: p, a number a class, if calibrated")
    errorCol = _column("errorCol", "output: why a row could not be predicted, else null")

    def _set_all_defaults(self) -> None:
        names = {
            f"{camel}Col": name
            for camel, name in [
                ("exampleId", "example_id"),
                ("target", "target"),
                ("nodeLabels", "node_labels"),
                ("nodeArities", "node_arities"),
                ("treeOffsets", "tree_offsets"),
                ("vectorIds", "vector_ids"),
                ("vectorValues", "vector_values"),
                ("prediction", "prediction"),
                ("scores", "scores"),
                ("probability", "probability"),
                ("error", "fragments_error"),
            ]
        }
        self._setDefault(seed=13, **names, **settings_defaults(LearnerSettings))

    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return settings_of(self, LearnerSettings)

    def _inputs(self, df: DataFrame, optional: frozenset[str]) -> list[Column]:
        columns = {
            "example_id": self.getOrDefault(self.exampleIdCol),
            "target": self.getOrDefault(self.targetCol),
            "node_labels": self.getOrDefault(self.nodeLabelsCol),
            "node_arities": self.getOrDefault(self.nodeAritiesCol),
            "tree_offsets": self.getOrDefault(self.treeOffsetsCol),
            "vector_ids": self.getOrDefault(self.vectorIdsCol),
            "vector_values": self.getOrDefault(self.vectorValuesCol),
        }
        found = checked_columns(df, columns, TREES, optional | {"vector_ids", "vector_values"})
        nothing = {"vector_ids": F.array().cast(INTS), "vector_values": F.array().cast(DOUBLES)}
        names = [field.name for field in TREES]
        return [
            F.coalesce(column, nothing[name]).alias(name) if name in nothing else column
            for name, column in zip(names, found, strict=True)
        ]


class FragmentClassifier(Estimator["FragmentClassifierModel"], FragmentsParams, Saved):
    """Trees to classes by mined fragments of a tree kernel and linear machines.

    The input columns are those of `corpusmill.corpora.schemas.TREES`, under any names.

    Parameters
    ----------
    **kwargs
        Any Param. ``classes`` are by default those found in ``targetCol``, sorted; of two, the
        first is the positive one.

    Examples
    --------
    >>> classifier = FragmentClassifier(limit=10_000, maxexp=2)
    >>> classifier.getOrDefault("maxexp")
    2
    """

    classes: Param[list[str]] = Param(
        Params._dummy(), "classes", "the classes in order", TypeConverters.toListString
    )

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._set_all_defaults()
        self._setDefault(classes=[])
        self._set(**kwargs)

    def _fit(self, dataset: DataFrame) -> FragmentClassifierModel:
        rows = dataset.select(*self._inputs(dataset, frozenset({"target"}))).persist()
        try:
            seed, classes = self.getOrDefault(self.seed), self.getOrDefault("classes")
            trained = fit_trees(rows, self.settings(), seed, classes)
        finally:
            rows.unpersist()
        return with_params_of(self, FragmentClassifierModel(trained), FragmentsParams)


class FragmentClassifierModel(Model, FragmentsParams, Saved):
    """Trained fragments; ``transform`` keeps all columns and appends the outputs.

    Parameters
    ----------
    model : FragmentsModel
        The model on arrays.
    """

    array_model = FragmentsModel

    def __init__(self, model: FragmentsModel) -> None:
        super().__init__()
        self._set_all_defaults()
        self.model = model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        kernel = partial(predict_rows, model=self.model)
        names = {
            "prediction": self.getOrDefault(self.predictionCol),
            "scores": self.getOrDefault(self.scoresCol),
            "probability": self.getOrDefault(self.probabilityCol),
            splits.ERROR: self.getOrDefault(self.errorCol),
        }
        inputs = self._inputs(dataset, frozenset({"example_id", "target"}))
        return splits.append_columns(dataset, inputs, kernel, OUTPUTS, names)


def predict_rows(batch: pa.RecordBatch, model: FragmentsModel) -> pa.RecordBatch:
    """Predict a batch; the kernel of ``transform``."""
    return model.predict_batch(batch)


class TargetEvaluator(Evaluator):
    """Accuracy of predicted classes, for `pyspark.ml.tuning.CrossValidator`.

    The share of rows with a target whose prediction equals it; a row without a prediction is
    wrong.

    Parameters
    ----------
    targetCol, predictionCol : str
    """

    targetCol = _column("targetCol", "the true class")
    predictionCol = _column("predictionCol", "the predicted class")

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._setDefault(targetCol="target", predictionCol="prediction")
        self._set(**kwargs)

    def _evaluate(self, dataset: DataFrame) -> float:
        target = F.col(f"`{self.getOrDefault(self.targetCol)}`")
        right = F.col(f"`{self.getOrDefault(self.predictionCol)}`").eqNullSafe(target)
        found = dataset.where(target.isNotNull()).agg(F.avg(right.cast("double")).alias("a"))
        accuracy = found.collect()[0]["a"]
        if accuracy is None:
            raise DataError("DATA03", source="the evaluated rows", hint="there is none")
        return float(accuracy)
