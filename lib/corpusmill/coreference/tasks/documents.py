"""The documents of a job: read, checked, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from corpusmill.coreference.model import DOCUMENT_ROWS
from corpusmill.coreference.tasks.settings import CoreferenceSettings
from corpusmill.corpora import quarantine
from corpusmill.corpora.annotated_documents import DocumentsSettings, read_documents
from corpusmill.corpora.quarantine import Read
from corpusmill.errors import DataError

if TYPE_CHECKING:
    from corpusmill.runner import Context


def read(context: Context, source: DocumentsSettings, key: str, gold: bool) -> Read:
    """Read documents, and count them.

    Parameters
    ----------
    context
        The metrics ``<key>.documents`` and ``.quarantined`` are written.
    source, key
        The documents and their key in the conf.
    gold
        Whether only documents whose coreference is known are of use.

    Returns
    -------
    Read
        ANNOTATED_DOCUMENTS and QUARANTINE, cached.

    Raises
    ------
    DataError
        DATA03: there is no document; DATA02: too many bad ones.
    """
    conf: CoreferenceSettings = context.settings
    with context.progress.stage(f"read {key.removeprefix('input.')}"):
        found = read_documents(context.spark, source, conf.quarantine, key)
        records = found.records
        if gold:
            records = records.where(F.col("mention_clusters").isNotNull())
        rows = context.cached(records.repartition(conf.partitions, "document_id", "part"))
        bad = context.cached(found.quarantine)
        count, reasons = rows.count(), quarantine.count_reasons(bad)
        quarantine.check_share(key, count, reasons, conf.quarantine)
        if not count:
            hint = "no document has a coreference column" if gold else "there is no document"
            raise DataError("DATA03", source=key, hint=hint)
    context.run.write_metrics({key: {"documents": count, "quarantined": sum(reasons.values())}})
    return Read(rows, bad)


def inputs_of(rows: DataFrame) -> DataFrame:
    """Give the columns that a model reads."""
    return rows.select(*DOCUMENT_ROWS.names)
