"""Predict: the best output of every example, with scores and probabilities."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.boosting.estimator import OUTPUTS, predict_rows
from corpusmill.boosting.model import BoostingModel
from corpusmill.boosting.tasks.examples import read_factors_of
from corpusmill.boosting.tasks.settings import BoostingSettings
from corpusmill.corpora.schemas import FACTORS

if TYPE_CHECKING:
    from corpusmill.runner import Context

PREDICTIONS = T.StructType(
    [
        T.StructField("example_id", T.StringType()),
        *OUTPUTS,
        T.StructField(splits.ERROR, T.StringType()),
    ]
)
"""The rows of the best output, F and the probability of every row of an example, or an error."""


def predict(context: Context) -> None:
    """Predict the test examples by the current model."""
    conf: BoostingSettings = context.settings
    model = BoostingModel.load(storage.resolve(conf.output, "model"))
    rows = read_factors_of(context, "test", len(model.names))
    with context.progress.stage("predict"):
        columns = [F.col(name) for name in FACTORS.names if name != "gold"]
        kernel = partial(predict_rows, model=model)
        found = splits.append_columns(rows, columns, kernel, OUTPUTS)
        predictions = found.select(PREDICTIONS.names)
        written = context.run.write_parquet("predictions", predictions, schema=PREDICTIONS)
    context.run.write_metrics({"predict": {"examples": written}})
