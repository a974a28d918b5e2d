"""The texts of a job: read, checked, counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from corpusmill.corpora import quarantine
from corpusmill.corpora.linked_texts import (
    SystemLinksSettings,
    read_linked_texts,
    read_system_links,
)
from corpusmill.corpora.quarantine import Read
from corpusmill.corpora.query_logs import read_query_logs
from corpusmill.errors import DataError
from corpusmill.linking.counting import SYSTEM
from corpusmill.linking.tasks.settings import LinkingSettings, TextsSettings

if TYPE_CHECKING:
    from corpusmill.runner import Context

_PLACES = 10_000
"""Texts are divided by a hash of their ids so finely."""


class Texts(NamedTuple):
    """Texts with their bad records.

    Attributes
    ----------
    rows : DataFrame
        LINKED_TEXTS, or of a query log ``text_id``, ``text`` and ``count``; cached.
    bad : DataFrame
        QUARANTINE, cached.
    """

    rows: DataFrame
    bad: DataFrame


def read_texts(context: Context, sources: Mapping[str, TextsSettings], gold: bool = True) -> Texts:
    """Read texts from one source or several, by their keys in the conf; see `read_linked_texts`.

    Raises
    ------
    DataError
        DATA03: there is no text; DATA02: too many bad records.
    """
    conf: LinkingSettings = context.settings
    name = next(iter(sources)).removesuffix(".0")
    with context.progress.stage(f"read {name.removeprefix('input.')}"):
        reads = [
            (source, read_linked_texts(context.spark, source, conf.quarantine, key, gold))
            for key, source in sources.items()
        ]
        records = reduce(DataFrame.unionByName, (_wanted(*read) for read in reads))
        bad = reduce(DataFrame.unionByName, (read.quarantine for _, read in reads))
        return _counted(context, records, bad, name)


def _wanted(source: TextsSettings, read: Read) -> DataFrame:
    records = read.records
    if source.splits:
        records = records.where(F.col("split").isin(source.splits))
    begin, end = source.share
    place = F.pmod(F.xxhash64("text_id"), F.lit(_PLACES)) / _PLACES
    return records.where((place >= begin) & (place < end))


def read_system(context: Context, source: SystemLinksSettings, key: str) -> Texts:
    """Read what another system says: ``text_id`` and its entities, the best first."""
    conf: LinkingSettings = context.settings
    with context.progress.stage(f"read {key.removeprefix('input.')}"):
        read = read_system_links(context.spark, source, conf.quarantine, key)
        said = read.records.select("text_id", F.col("mention_entities").alias(SYSTEM))
        return _counted(context, said, read.quarantine, key)


def query_entities(texts: DataFrame) -> tuple[str, ...]:
    """Give the query entities of the IR-driven evaluation: all that the texts' gold names."""
    names = texts.select(F.explode("text_entities").alias("entity")).distinct()
    return tuple(names.orderBy("entity").toArrow()["entity"].to_pylist())


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
