"""A trained model with what the conf says of predicting."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import DataFrame

from corpusmill import splits
from corpusmill.coreference.estimator import OUTPUTS, predict_rows
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.coreference.tasks.documents import inputs_of

PREDICTING = ("singletons", "mentions", "start_clusters", "beam", "window")
"""Settings that may differ from those of the training."""


def predicting(model: CoreferenceModel, settings: LearnerSettings) -> CoreferenceModel:
    """Give a model with the settings for prediction that stand in the conf."""
    changed = {name: getattr(settings, name) for name in PREDICTING}
    parts = model.preparation
    return replace(
        model,
        preparation=replace(parts, settings=parts.settings.model_copy(update=changed)),
    )


def resolved(rows: DataFrame, model: CoreferenceModel) -> DataFrame:
    """Append the predictions to documents; a document that breaks the kernel says why."""
    kernel = partial(predict_rows, model=model)
    columns = [rows[name] for name in inputs_of(rows).columns]
    return splits.append_columns(rows, columns, kernel, OUTPUTS)
