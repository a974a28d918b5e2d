"""Evaluate: the field's metrics over documents, beside another run's, and the errors."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.coreference.estimator import sum_counts
from corpusmill.coreference.measures import count_rows, counts_of, metrics_of
from corpusmill.coreference.model import GOLD, PREDICTIONS, CoreferenceModel
from corpusmill.coreference.tasks.documents import read
from corpusmill.coreference.tasks.errors import log_errors
from corpusmill.coreference.tasks.features import log_features
from corpusmill.coreference.tasks.models import predicting, resolved
from corpusmill.coreference.tasks.settings import CoreferenceSettings
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS, DOUBLES, QUARANTINE
from corpusmill.errors import DataError, UsageError
from corpusmill.evaluation.coreference import wilcoxon
from corpusmill.types import Floats

if TYPE_CHECKING:
    from corpusmill.runner import Context

COUNTED = T.StructType(
    [
        *(ANNOTATED_DOCUMENTS[name] for name in ("document_id", "part")),
        T.StructField("counts", DOUBLES, nullable=False),
    ]
)
"""A document and its counts; `measures.count_rows`."""
_METRICS = ("muc", "b3", "ceafm", "ceafe", "blanc", "lea", "mentions")
_TESTED = ("conll_avg", "muc.f1", "b3.f1", "ceafe.f1")


def evaluate(context: Context) -> None:
    """Measure the current model on every test set, and compare it with another run's."""
    conf: CoreferenceSettings = context.settings
    if not conf.input.test:
        problem = "this action reads test documents: names with their sources"
        raise UsageError("CONF05", key="input.test", problem=problem)
    model = predicting(CoreferenceModel.load(storage.resolve(conf.output, "model")), conf.model)
    documents = {
        name: read(context, source, f"input.test.{name}", gold=True)
        for name, source in conf.input.test.items()
    }
    bad = reduce(DataFrame.unionByName, (found.quarantine for found in documents.values()))
    context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
    found: dict[str, dict[str, float]] = {}
    for number, (name, rows) in enumerate(documents.items()):
        with context.progress.stage(f"resolve {name}"):
            answered = context.cached(resolved(rows.records, model))
            refuse_broken(answered)
            found[name] = count_documents(answered)
        if not number:
            write_counts(context, answered)
            log_errors(context, name, answered, found[name], model.settings.language)
            log_features(context, rows.records, model)
    first = next(iter(found.values()))
    metrics = first | {f"{n}.{key}": v for n, values in found.items() for key, v in values.items()}
    context.run.write_metrics(metrics)
    table = metrics_table(found)
    context.tracker.log_table(table, "tables/metrics.json")
    context.progress.say(f"percent:\n{table.to_string(index=False)}")


def refuse_broken(rows: DataFrame) -> None:
    """Name the first document that could not be resolved, if there is one.

    Raises
    ------
    DataError
        DATA01.
    """
    broken = rows.where(rows[splits.ERROR].isNotNull()).select("document_id", splits.ERROR)
    for row in broken.orderBy("document_id").limit(1).collect():
        raise DataError("DATA01", source=f"document {row[0]!r}", problem=row[1])


def count_documents(rows: DataFrame) -> dict[str, float]:
    """Measure resolved documents, counts summed over all of them."""
    columns = rows.select(*GOLD, *PREDICTIONS.names[:3])
    return metrics_of(splits.sum_arrays(columns, sum_counts)["counts"])


def write_counts(context: Context, rows: DataFrame) -> None:
    """Keep the counts of each document, and test whether another run's are as good.

    Parameters
    ----------
    context
        ``counts`` is written; with ``compare`` in the conf the metrics
        ``compare.<metric>.p_value`` too, of Wilcoxon's signed-rank test over documents. For it
        the counts of both runs come to the driver, half a kilobyte a document.
    rows
        Resolved documents.
    """
    conf: CoreferenceSettings = context.settings
    columns = rows.select("document_id", "part", *GOLD, *PREDICTIONS.names[:3])
    counted = context.cached(splits.map_partitions(columns, counted_rows, COUNTED))
    context.run.write_parquet("counts", counted, schema=COUNTED)
    if conf.compare is None:
        return
    other = context.spark.read.parquet(storage.resolve(conf.compare, "counts", "evaluate"))
    both = counted.join(other.withColumnRenamed("counts", "others"), ["document_id", "part"])
    pairs = both.orderBy("document_id", "part").select("counts", "others").toArrow()
    if len(pairs) < counted.count():
        problem = "it was not evaluated on the same documents"
        raise UsageError("CONF04", key="compare", value=repr(conf.compare), problem=problem)
    own, others = (
        np.stack(column.to_numpy()) for column in (pairs.column("counts"), pairs.column("others"))
    )
    for metric in _TESTED:
        tested = wilcoxon(counts_of(own), counts_of(others), metric)
        theirs = metrics_of(others.sum(axis=0))[metric]
        context.run.write_metrics(
            {
                f"compare.{metric}.p_value": tested.p_value,
                f"compare.{metric}.documents": float(tested.documents),
                f"compare.{metric}.other": theirs,
            }
        )
        context.progress.say(
            f"{metric} {100.0 * metrics_of(own.sum(axis=0))[metric]:.2f}, {conf.compare} "
            f"{100.0 * theirs:.2f}: p = {tested.p_value:.3g} (Wilcoxon's signed-rank test)"
        )


def counted_rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Count documents; a kernel of `write_counts`."""
    counts: Floats = count_rows(batch)
    width = counts.shape[1]
    offsets = pa.array(np.arange(len(counts) + 1, dtype=np.int32) * width)
    columns = [
        batch.column("document_id"),
        batch.column("part"),
        pa.ListArray.from_arrays(offsets, pa.array(counts.ravel())),
    ]
    return pa.RecordBatch.from_arrays(columns, names=COUNTED.names)


def metrics_table(found: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Give recall, precision and F1 of every metric and test set, in percent."""
    rows = []
    for name, metrics in found.items():
        for metric in _METRICS:
            parts = {
                part: round(100.0 * metrics[f"{metric}.{part}"], 2)
                for part in ("recall", "precision", "f1")
            }
            rows.append({"test": name, "metric": metric, **parts})
        rows.append({"test": name, "metric": "CoNLL", "f1": round(100.0 * metrics["conll_avg"], 2)})
    return pd.DataFrame(rows)
