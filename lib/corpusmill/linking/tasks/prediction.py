"""Predict: the entities of every text, with offsets, scores and the runner-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.corpora.schemas import QUARANTINE
from corpusmill.errors import UsageError
from corpusmill.linking.estimator import OUTPUTS, predict_rows
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.placement import append_to_texts
from corpusmill.linking.tasks.knowledge import placed
from corpusmill.linking.tasks.settings import LinkingSettings
from corpusmill.linking.tasks.texts import read_queries, read_texts

if TYPE_CHECKING:
    from corpusmill.runner import Context

LINKED = T.StructType([*OUTPUTS, T.StructField(splits.ERROR, T.StringType())])
"""What stands behind a text: its mentions from left to right; `LinkingModel.predict_batch`."""


def predict(context: Context) -> None:
    """Link the texts, or the queries, by the current model."""
    conf: LinkingSettings = context.settings
    if conf.input.texts is not None:
        texts = read_texts(context, {"input.texts": conf.input.texts}, gold=False)
    elif conf.input.queries:
        texts = read_queries(context)
    else:
        problem = "predict reads texts, or input.queries"
        raise UsageError("CONF05", key="input.texts", problem=problem)
    model = LinkingModel.load(storage.resolve(conf.output, "model"))
    context.run.write_parquet("quarantine", texts.bad, schema=QUARANTINE)
    with context.progress.stage("predict"):
        given = ["text_id", "text", *(["count"] if conf.input.texts is None else [])]
        rows = placed(context, texts.rows.select(given), model.knowledge)
        found = append_to_texts(rows, predict_rows, model, OUTPUTS)
        schema = T.StructType([*rows.texts, *LINKED])
        linked = context.cached(found.select(schema.names))
        written = context.run.write_parquet("predictions", linked, schema=schema)
        mentions = linked.agg(F.sum(F.size("mention_starts"))).collect()[0][0]
    context.run.write_metrics({"predict": {"texts": written, "mentions": int(mentions or 0)}})
