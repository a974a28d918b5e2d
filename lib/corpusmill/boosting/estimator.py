"""S-MART as a pyspark.ml estimator."""

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
from corpusmill.boosting.fitting import fit_factors
from corpusmill.boosting.model import BoostingModel
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.corpora.schemas import DOUBLES, FACTORS, INTS
from corpusmill.errors import DataError
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
        T.StructField("prediction", INTS),
        T.StructField("scores", DOUBLES),
        T.StructField("probability", DOUBLES),
    ]
)
"""The columns of `BoostingModel.predict_batch`."""
OPTIONAL = frozenset({"starts", "ends", "previous", "labels"})


def _column(name: str, doc: str) -> Param[str]:
    return Param(Params._dummy(), name, doc, TypeConverters.toString)


@with_settings(LearnerSettings)
class BoostingParams(HasSeed):
    """Params of the estimator and its model; the learner's are those of `LearnerSettings`."""

    exampleIdCol = _column("exampleIdCol", "the example's name, for ranks and messages")
    rowOffsetsCol = _column("rowOffsetsCol", "where the rows of each factor begin and end")
    startsCol = _column("startsCol", "spans, segments: where each factor begins")
    endsCol = _column("endsCol", "spans, segments: where each factor ends")
    previousCol = _column("previousCol", "chain, segments: each row's label before, -1 for any")
    labelsCol = _column("labelsCol", "chain, segments: each row's label")
    featuresCol = _column("featuresCol", "the features, row after row")
    goldCol = _column("goldCol", "the rows of the true output, null where not known")
    predictionCol = _column("predictionCol", "output: the rows of the best output")
    scoresCol = _column("scoresCol", "output: F, a number a row")
    probabilityCol = _column("probabilityCol", "output: P(row is in the output), a number a row")
    errorCol = _column("errorCol", "output: why a row could not be predicted, else null")

    def _set_all_defaults(self) -> None:
        names = {
            f"{camel}Col": name
            for camel, name in [
                ("exampleId", "example_id"),
                ("rowOffsets", "row_offsets"),
                ("starts", "starts"),
                ("ends", "ends"),
                ("previous", "previous"),
                ("labels", "labels"),
                ("features", "features"),
                ("gold", "gold"),
                ("prediction", "prediction"),
                ("scores", "scores"),
                ("probability", "probability"),
                ("error", "boosting_error"),
            ]
        }
        self._setDefault(seed=13, **names, **settings_defaults(LearnerSettings))

    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return settings_of(self, LearnerSettings)

    def _inputs(self, df: DataFrame, optional: frozenset[str]) -> list[Column]:
        columns = {
            "example_id": self.getOrDefault(self.exampleIdCol),
            "row_offsets": self.getOrDefault(self.rowOffsetsCol),
            "starts": self.getOrDefault(self.startsCol),
            "ends": self.getOrDefault(self.endsCol),
            "previous": self.getOrDefault(self.previousCol),
            "labels": self.getOrDefault(self.labelsCol),
            "features": self.getOrDefault(self.featuresCol),
            "gold": self.getOrDefault(self.goldCol),
        }
        return checked_columns(df, columns, FACTORS, OPTIONAL | optional)


class StructuredBoosting(Estimator["StructuredBoostingModel"], BoostingParams, Saved):
    """S-MART: regression trees boosted over the factors of structured outputs.

    The input columns are those of `corpusmill.corpora.schemas.FACTORS`, under any names.

    Parameters
    ----------
    **kwargs
        Any Param. ``featureNames`` are by default f0, f1, ...

    Examples
    --------
    >>> boosting = StructuredBoosting(structure="spans", trees=300)
    >>> boosting.getOrDefault("structure")
    'spans'
    """

    featureNames: Param[list[str]] = Param(
        Params._dummy(), "featureNames", "names of the features", TypeConverters.toListString
    )

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._set_all_defaults()
        self._setDefault(featureNames=[])
        self._set(**kwargs)

    def _fit(self, dataset: DataFrame) -> StructuredBoostingModel:
        rows = dataset.select(*self._inputs(dataset, frozenset({"gold"}))).persist()
        try:
            seed, names = self.getOrDefault(self.seed), self.getOrDefault("featureNames")
            trained = fit_factors(rows, self.settings(), seed, names)
        finally:
            rows.unpersist()
        return with_params_of(self, StructuredBoostingModel(trained), BoostingParams)


class StructuredBoostingModel(Model, BoostingParams, Saved):
    """Boosted trees; ``transform`` keeps all columns and appends the outputs.

    Parameters
    ----------
    model : BoostingModel
        The model on arrays.
    """

    array_model = BoostingModel

    def __init__(self, model: BoostingModel) -> None:
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
        inputs = self._inputs(dataset, frozenset({"example_id", "gold"}))
        return splits.append_columns(dataset, inputs, kernel, OUTPUTS, names)


def predict_rows(batch: pa.RecordBatch, model: BoostingModel) -> pa.RecordBatch:
    """Predict a batch; the kernel of ``transform``."""
    return model.predict_batch(batch)


class OutputEvaluator(Evaluator):
    """Micro F1 of predicted rows, for `pyspark.ml.tuning.CrossValidator`.

    2 |prediction and gold| / (|prediction| + |gold|), summed over the rows whose gold output is
    known; a row without a prediction has predicted nothing. Two empty outputs everywhere give 1.

    Parameters
    ----------
    goldCol, predictionCol : str
    """

    goldCol = _column("goldCol", "the rows of the true output")
    predictionCol = _column("predictionCol", "the rows of the predicted output")

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._setDefault(goldCol="gold", predictionCol="prediction")
        self._set(**kwargs)

    def _evaluate(self, dataset: DataFrame) -> float:
        gold = F.col(f"`{self.getOrDefault(self.goldCol)}`")
        found = F.coalesce(
            F.col(f"`{self.getOrDefault(self.predictionCol)}`"), F.array().cast(INTS)
        )
        sums = (
            dataset.where(gold.isNotNull())
            .agg(
                F.count("*").alias("examples"),
                F.sum(F.size(F.array_intersect(gold, found))).alias("both"),
                F.sum(F.size(gold) + F.size(found)).alias("all"),
            )
            .collect()[0]
        )
        if not sums["examples"]:
            raise DataError("DATA03", source="the evaluated rows", hint="none has a known output")
        return 2.0 * sums["both"] / sums["all"] if sums["all"] else 1.0
