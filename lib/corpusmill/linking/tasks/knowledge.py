"""Read what is known of surface forms and entities, and put it into arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora import quarantine
from corpusmill.corpora.knowledge import read_entities, read_lexicon, read_links
from corpusmill.corpora.quarantine import Read
from corpusmill.corpora.schemas import ENTITIES, LEXICON, LINKS, QUARANTINE, WORD_COUNTS
from corpusmill.corpora.sources import read_text
from corpusmill.errors import DataError
from corpusmill.linking.entities import Entities
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.lexicon import Lexicon
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.placement import Placed, map_texts, place
from corpusmill.linking.tasks.settings import LinkingSettings
from corpusmill.linking.units import units_of
from corpusmill.linking.words import Words, count_words

if TYPE_CHECKING:
    from corpusmill.runner import Context

_LINES = T.StructType([T.StructField("text", T.StringType(), nullable=False)])


class _Reading:
    """Sources read one after the other, and their bad records."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.bad = context.spark.createDataFrame([], QUARANTINE)
        self.quarantined = 0

    def table(
        self,
        sources: Sequence[Any],
        reader: Callable[..., Read],
        schema: T.StructType,
        key: str,
        merge: Callable[[DataFrame], DataFrame],
    ) -> pa.Table:
        """Read tables and merge what several of them say before it is collected."""
        context, limits = self.context, self.context.settings.quarantine
        rows = context.spark.createDataFrame([], schema)
        for number, source in enumerate(sources):
            name = f"{key}.{number}"
            read = reader(context.spark, source, limits, name)
            records = context.cached(read.records.select(schema.names))
            self._check(name, records.count(), read.quarantine)
            rows = rows.unionByName(records)
        merged = merge(rows)
        wanted = T.StructType([schema[name] for name in merged.columns])
        return merged.toArrow().cast(splits.schema_of(wanted)).combine_chunks()

    def lines(self, sources: Sequence[Any], key: str) -> DataFrame | None:
        """Read the wanted part of plain lines; empty ones are passed over, as texts have them."""
        context, limits = self.context, self.context.settings.quarantine
        parts = []
        for number, source in enumerate(sources):
            name = f"{key}.{number}"
            lines = read_text(context.spark, source.path, limits, f"{name}.path")
            filled = F.coalesce("reason", F.lit("")) != quarantine.EMPTY_LINE
            read = quarantine.separate(lines.where(filled), _LINES)
            self._check(name, read.records.count(), read.quarantine)
            part = F.regexp_extract("text", source.pattern, 1)
            parts.append(read.records.select(part.alias("text")).where("text != ''"))
        return reduce(DataFrame.unionByName, parts) if parts else None

    def _check(self, name: str, good: int, bad: DataFrame) -> None:
        mine = self.context.cached(bad)
        reasons = quarantine.count_reasons(mine)
        quarantine.check_share(name, good, reasons, self.context.settings.quarantine)
        self.bad = self.bad.unionByName(mine)
        self.quarantined += sum(reasons.values())


def read_knowledge(context: Context, texts: DataFrame) -> tuple[Knowledge, DataFrame]:
    """Read all tables of the conf, and count the words of ``texts`` and of edited texts.

    Returns
    -------
    knowledge : Knowledge
        Collected here: it is a part of the model.
    bad : DataFrame
        QUARANTINE, cached: the bad records of all tables and lines.

    Raises
    ------
    DataError
        DATA03: no surface form; DATA02: too many bad records of a source.
    """
    conf: LinkingSettings = context.settings
    given, reading = conf.knowledge, _Reading(context)
    with context.progress.stage("read knowledge"):
        rows = reading.table(given.lexicon, read_lexicon, LEXICON, "knowledge.lexicon", _summed)
        values = reading.table(
            given.entities, read_entities, ENTITIES, "knowledge.entities", _largest
        )
        links = reading.table(given.links, read_links, LINKS, "knowledge.links", _distinct)
        if not rows.num_rows:
            hint = "nothing can be linked without surface forms"
            raise DataError("DATA03", source="knowledge.lexicon", hint=hint)
        entities = Entities.build(rows, values, links)
        lexicon = Lexicon.build(rows, entities)
    with context.progress.stage("count words"):
        edited = reading.lines(given.edited, "knowledge.edited")
        common = reading.lines(given.common, "knowledge.common")
        wordless = Knowledge(lexicon, entities, Words.build({}, None, entities))
        counted = {"texts": _counts(context, texts.select("text"), wordless)}
        if edited is not None:
            counted["edited"] = _counts(context, edited, wordless)
        words = None if common is None else common.distinct().toArrow()["text"].combine_chunks()
        knowledge = Knowledge(lexicon, entities, Words.build(counted, words, entities))
    context.run.write_metrics(
        {
            "knowledge": {
                "entities": entities.size,
                "surfaces": len(lexicon.surfaces.hashes),
                "candidates": len(lexicon.entities),
                "words": len(knowledge.words.flags) - 1,
                "megabytes": knowledge.nbytes / 1e6,
                "quarantined": reading.quarantined,
            }
        }
    )
    return knowledge, context.cached(reading.bad)


def _summed(rows: DataFrame) -> DataFrame:
    return rows.groupBy("surface", "entity", "kind").agg(F.sum("count").alias("count"))


def _largest(values: DataFrame) -> DataFrame:
    return values.groupBy("entity", "attribute").agg(F.max("value").alias("value"))


def _distinct(links: DataFrame) -> DataFrame:
    return links.distinct()


def placed(context: Context, texts: DataFrame, knowledge: Knowledge) -> Placed:
    """Choose by size where the knowledge is; parts are cached until the action ends."""
    return place(texts, knowledge, context.settings.broadcast_mb, context.cached)


def _counts(context: Context, texts: DataFrame, known: Knowledge) -> pa.Table:
    conf: LinkingSettings = context.settings
    model = LinkingModel(conf.model, known, (), ())
    parts = map_texts(placed(context, texts, known), count_batch, model, WORD_COUNTS)
    sums = [F.sum(name).alias(name) for name in ("count", "capitals")]
    return parts.groupBy("key").agg(*sums).orderBy("key").toArrow().combine_chunks()


def count_batch(batch: pa.RecordBatch, model: LinkingModel) -> pa.RecordBatch:
    """Count the words of a batch of texts; the kernel of `read_knowledge`."""
    return count_words(units_of(batch.column("text")), model.knowledge.lexicon)
