"""The resolver as a pyspark.ml estimator."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
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
from corpusmill.coreference.fitting import fit_resolver
from corpusmill.coreference.measures import count_rows, metrics_of
from corpusmill.coreference.model import (
    DOCUMENT_ROWS,
    GOLD,
    OPTIONAL,
    PREDICTIONS,
    CoreferenceModel,
)
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS, DOUBLES, INTS
from corpusmill.errors import DataError
from corpusmill.ml import (
    Saved,
    checked_columns,
    settings_defaults,
    settings_of,
    with_params_of,
    with_settings,
)
from corpusmill.types import Floats

OUTPUTS = T.StructType(
    [
        T.StructField(name, DOUBLES if name == "predicted_scores" else INTS)
        for name in PREDICTIONS.names
    ]
)
"""The columns of `CoreferenceModel.predict_batch`."""


@with_settings(LearnerSettings)
class CoreferenceParams(HasSeed):
    """Params of the estimator and its model; the learner's are those of `LearnerSettings`."""

    errorCol: Param[str] = Param(
        Params._dummy(),
        "errorCol",
        "output: why a document could not be resolved, else null",
        TypeConverters.toString,
    )

    def _set_all_defaults(self) -> None:
        self._setDefault(
            seed=13, errorCol="coreference_error", **settings_defaults(LearnerSettings)
        )

    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return settings_of(self, LearnerSettings)

    def _inputs(self, df: DataFrame, optional: frozenset[str]) -> list[Column]:
        names = {name: name for name in DOCUMENT_ROWS.names}
        wanted = T.StructType([ANNOTATED_DOCUMENTS[name] for name in DOCUMENT_ROWS.names])
        return checked_columns(df, names, wanted, optional)


class CoreferenceResolver(Estimator["CoreferenceResolverModel"], CoreferenceParams, Saved):
    """Documents to clusters of mentions, by latent antecedent trees.

    The input columns are those of `corpusmill.corpora.schemas.ANNOTATED_DOCUMENTS`.

    Parameters
    ----------
    **kwargs
        Any Param.

    Examples
    --------
    >>> resolver = CoreferenceResolver(regime="delayed", templates="nonlocal", beam=10)
    >>> resolver.getOrDefault("beam")
    10
    """

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._set_all_defaults()
        self._set(**kwargs)

    def _fit(self, dataset: DataFrame) -> CoreferenceResolverModel:
        rows = dataset.select(*self._inputs(dataset, frozenset(OPTIONAL)))
        known = rows.where(F.col("mention_clusters").isNotNull())
        if known.isEmpty():
            hint = "there must be a document whose coreference is known"
            raise DataError("DATA03", source="column 'mention_clusters'", hint=hint)
        trained = fit_resolver(known, self.settings(), self.getOrDefault(self.seed))
        return with_params_of(self, CoreferenceResolverModel(trained), CoreferenceParams)


class CoreferenceResolverModel(Model, CoreferenceParams, Saved):
    """A trained resolver; ``transform`` keeps all columns and appends the outputs.

    Parameters
    ----------
    model : CoreferenceModel
        The model on arrays.
    """

    array_model = CoreferenceModel

    def __init__(self, model: CoreferenceModel) -> None:
        super().__init__()
        self._set_all_defaults()
        self.model = model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        kernel = partial(predict_rows, model=self.model)
        names = {splits.ERROR: self.getOrDefault(self.errorCol)}
        inputs = self._inputs(dataset, frozenset(OPTIONAL))
        return splits.append_columns(dataset, inputs, kernel, OUTPUTS, names)


def predict_rows(batch: pa.RecordBatch, model: CoreferenceModel) -> pa.RecordBatch:
    """Resolve a batch; the kernel of ``transform``."""
    return model.predict_batch(batch)


class CoreferenceEvaluator(Evaluator):
    """CoNLL average, for `pyspark.ml.tuning.CrossValidator`.

    Documents whose coreference is not known are left out; counts are summed over documents.
    """

    def _evaluate(self, dataset: DataFrame) -> float:
        columns = [*GOLD, *PREDICTIONS.names[:3]]
        known = dataset.where(F.col("mention_clusters").isNotNull()).select(*columns)
        if known.isEmpty():
            hint = "no document has known coreference"
            raise DataError("DATA03", source="the evaluated rows", hint=hint)
        return metrics_of(splits.sum_arrays(known, sum_counts)["counts"])["conll_avg"]


def sum_counts(batches: Iterator[pa.RecordBatch]) -> dict[str, Floats]:
    """Sum the counts of a partition; the kernel of `CoreferenceEvaluator`."""
    total = count_rows(None).sum(axis=0)
    for batch in batches:
        total = total + count_rows(batch).sum(axis=0)
    return {"counts": np.asarray(total)}
