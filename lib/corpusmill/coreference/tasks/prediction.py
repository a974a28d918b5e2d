"""Predict: the clusters of every document, as Parquet and in the format of the documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.coreference.estimator import OUTPUTS
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.tasks.documents import read
from corpusmill.coreference.tasks.models import predicting, resolved
from corpusmill.coreference.tasks.settings import CoreferenceSettings
from corpusmill.corpora.annotated_documents import write_documents
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS, QUARANTINE
from corpusmill.errors import UsageError

if TYPE_CHECKING:
    from corpusmill.runner import Context

RESOLVED = T.StructType(
    [
        *(ANNOTATED_DOCUMENTS[name] for name in ("document_id", "part")),
        *OUTPUTS,
        T.StructField(splits.ERROR, T.StringType()),
    ]
)
"""A document with its mentions from left to right; `coreference.model.PREDICTIONS`."""


def predict(context: Context) -> None:
    """Resolve the documents by the current model."""
    conf: CoreferenceSettings = context.settings
    if conf.input.documents is None:
        problem = "this action reads documents"
        raise UsageError("CONF05", key="input.documents", problem=problem)
    model = predicting(CoreferenceModel.load(storage.resolve(conf.output, "model")), conf.model)
    documents = read(context, conf.input.documents, "input.documents", gold=False)
    context.run.write_parquet("quarantine", documents.quarantine, schema=QUARANTINE)
    with context.progress.stage("predict"):
        found = context.cached(resolved(documents.records, model))
        rows = found.select(RESOLVED.names)
        written = context.run.write_parquet("predictions", rows, schema=RESOLVED)
        counts = found.agg(
            F.sum(F.array_size("predicted_starts")),
            F.sum(F.array_size("words")),
            F.count(splits.ERROR),
        ).collect()[0]
    if conf.write != "none":
        with context.progress.stage("write the documents"):
            columns = {
                f"mention_{name}": F.coalesce(f"predicted_{name}", F.array().cast("array<int>"))
                for name in ("starts", "ends", "clusters")
            }
            text = found.withColumns(columns).select(ANNOTATED_DOCUMENTS.names)
            write_documents(text, context.run.path("documents"), conf.write)
    mentions, tokens, failed = (int(value or 0) for value in counts)
    metrics = {"documents": written, "tokens": tokens, "mentions": mentions, "not_resolved": failed}
    context.run.write_metrics({"predict": metrics})
