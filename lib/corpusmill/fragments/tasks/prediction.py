"""Predict: the class of every example, with scores and the fragments that decided."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.corpora.schemas import DOUBLES, STRINGS, TREES
from corpusmill.fragments.explaining import deciding_fragments
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.tasks.examples import read_examples
from corpusmill.fragments.tasks.settings import FragmentsSettings

if TYPE_CHECKING:
    from corpusmill.runner import Context

PREDICTED = T.StructType(
    [
        T.StructField("prediction", T.StringType()),
        T.StructField("scores", DOUBLES),
        T.StructField("probability", DOUBLES),
        T.StructField("fragments", STRINGS),
        T.StructField("contributions", DOUBLES),
    ]
)
PREDICTIONS = T.StructType(
    [
        T.StructField("example_id", T.StringType()),
        T.StructField("target", T.StringType()),
        *PREDICTED,
        T.StructField(splits.ERROR, T.StringType()),
    ]
)
"""An example's class, f and p of each class, the fragments that spoke most for the class, and why
it could not be predicted, such as more trees than training had; else null."""


def predict(context: Context) -> None:
    """Predict the test examples by the current model."""
    conf: FragmentsSettings = context.settings
    model = FragmentsModel.load(storage.resolve(conf.output, "model"))
    rows = read_examples(context, "test", labelled=False)
    with context.progress.stage("predict"):
        kernel = partial(predict_batch, model=model, most=conf.deciding_fragments)
        columns = [F.col(name) for name in TREES.names]
        predicted = splits.append_columns(rows, columns, kernel, PREDICTED)
        found = context.cached(predicted.select(PREDICTIONS.names))
        written = context.run.write_parquet("predictions", found, schema=PREDICTIONS)
        failed = found.where(F.col(splits.ERROR).isNotNull()).count()
    context.run.write_metrics({"predict": {"examples": written, "not_predicted": failed}})


def predict_batch(batch: pa.RecordBatch, model: FragmentsModel, most: int) -> pa.RecordBatch:
    """Predict tree rows; the kernel of `predict`."""
    vectors = model.space.vectors(batch)
    scores = model.scores(vectors)
    texts, parts = deciding_fragments(model, vectors, scores.argmax(axis=1), most)
    columns = [*model.predict_scores(scores).columns, texts, parts]
    return pa.RecordBatch.from_arrays(columns, schema=splits.schema_of(PREDICTED))
