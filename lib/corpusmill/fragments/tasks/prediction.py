"""Predict: the class of every example, with scores and the fragments that decided."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.corpora.schemas import DOUBLES, STRINGS
from corpusmill.fragments.explaining import deciding_fragments
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.tasks.examples import read_examples
from corpusmill.fragments.tasks.settings import FragmentsSettings

if TYPE_CHECKING:
    from corpusmill.runner import Context

PREDICTIONS = T.StructType(
    [
        T.StructField("example_id", T.StringType()),
        T.StructField("target", T.StringType()),
        T.StructField("prediction", T.StringType()),
        T.StructField("scores", DOUBLES),
        T.StructField("probability", DOUBLES),
        T.StructField("fragments", STRINGS),
        T.StructField("contributions", DOUBLES),
    ]
)
"""An example's class, f and p of each class, and the fragments that spoke most for the class."""


def predict(context: Context) -> None:
    """Predict the test examples by the current model."""
    conf: FragmentsSettings = context.settings
    model = FragmentsModel.load(storage.resolve(conf.output, "model"))
    rows = read_examples(context, "test", labelled=False)
    with context.progress.stage("predict"):
        kernel = partial(predict_batch, model=model, most=conf.deciding_fragments)
        found = splits.map_partitions(rows, kernel, PREDICTIONS)
        written = context.run.write_parquet("predictions", found, schema=PREDICTIONS)
    context.run.write_metrics({"predict": {"examples": written}})


def predict_batch(batch: pa.RecordBatch, model: FragmentsModel, most: int) -> pa.RecordBatch:
    """Predict tree rows; the kernel of `predict`."""
    predicted = model.predict_batch(batch)
    texts, parts = deciding_fragments(model, batch, most)
    columns = [batch["example_id"], batch["target"], *predicted.columns, texts, parts]
    return pa.RecordBatch.from_arrays(columns, schema=splits.schema_of(PREDICTIONS))
