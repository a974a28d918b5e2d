"""The texts of a job: read, checked, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from corpusmill.corpora import quarantine
from corpusmill.corpora.linked_texts import read_linked_texts
from corpusmill.corpora.query_logs import read_query_logs
from corpusmill.errors import DataError
from corpusmill.linking.tasks.settings import LinkingSettings, TextsSettings

if TYPE_CHECKING:
    from corpusmill.runner import Context


class Texts(NamedTuple):
    """Texts with their bad records.

    Attributes
    ----------
    rows : DataFrame
        LINKED_TEXTS, or of a query log ``text_id`` and ``text``; cached.
    bad : DataFrame
        QUARANTINE, cached.
    """

    rows: DataFrame
    bad: DataFrame


def read_texts(context: Context, source: TextsSettings, key: str) -> Texts:
    """Read texts with their entities.

    Raises
    ------
    DataError
        DATA03: there is no text; DATA02: too many bad records.
    """
    conf: LinkingSettings = context.settings
    with context.progress.stage(f"read {key.removeprefix('input.')}"):
        read = read_linked_texts(context.spark, source, conf.quarantine, key)
        records = read.records
        if source.splits:
            records = records.where(F.col("split").isin(source.splits))
        return _counted(context, records, read.quarantine, key)


def read_queries(context: Context) -> Texts:
    """Read query logs; equal queries become one text, named by a hash of it."""
    conf: LinkingSettings = context.settings
    with context.progress.stage("read queries"):
        read = read_query_logs(context.spark, conf.input.queries, conf.quarantine, "input.queries")
        queries = read.records.groupBy(F.col("query").alias("text")).agg(
            F.sum("count").alias("count")
        )
        named = queries.withColumn("text_id", F.hex(F.xxhash64("text")))
        return _counted(context, named, read.quarantine, "input.queries")


def _counted(context: Context, records: DataFrame, bad: DataFrame, key: str) -> Texts:
    conf: LinkingSettings = context.settings
    rows = context.cached(records.repartition(conf.partitions, "text_id"))
    bad = context.cached(bad)
    count, reasons = rows.count(), quarantine.count_reasons(bad)
    quarantine.check_share(key, count, reasons, conf.quarantine)
    if not count:
        raise DataError("DATA03", source=key, hint="there is no text; look at its splits")
    context.run.write_metrics({key: {"texts": count, "quarantined": sum(reasons.values())}})
    return Texts(rows, bad)
