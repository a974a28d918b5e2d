"""Read what is known of surface forms and entities, and put it into arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora import quarantine
from corpusmill.corpora.knowledge import read_entities, read_lexicon, read_links
from corpusmill.corpora.quarantine import Read
from corpusmill.corpora.schemas import ENTITIES, LEXICON, LINKS, QUARANTINE
from corpusmill.corpora.sources import read_text
from corpusmill.errors import DataError
from corpusmill.linking.entities import Entities
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.lexicon import Lexicon
from corpusmill.linking.tasks.settings import LinesSettings, LinkingSettings
from corpusmill.linking.units import units_of
from corpusmill.linking.words import Words, count_words

if TYPE_CHECKING:
    from corpusmill.runner import Context

_COUNTED = T.StructType(
    [T.StructField(name, T.LongType()) for name in ("key", "count", "capitals")]
)


def read_knowledge(context: Context, texts: DataFrame) -> tuple[Knowledge, DataFrame]:
    """Read all tables of the conf, and count the words of ``texts`` and of edited texts.

    Returns
    -------
    knowledge : Knowledge
        Collected here: it is a part of the model.
    bad : DataFrame
        QUARANTINE, cached: the bad records of all tables.

    Raises
    ------
    DataError
        DATA03: no surface form; DATA02: too many bad records of a table.
    """
    conf: LinkingSettings = context.settings
    given = conf.knowledge
    with context.progress.stage("read knowledge"):
        read = partial(_read_all, context)
        rows, bad_rows = read(given.lexicon, read_lexicon, LEXICON, "knowledge.lexicon")
        values, bad_values = read(given.entities, read_entities, ENTITIES, "knowledge.entities")
        links, bad_links = read(given.links, read_links, LINKS, "knowledge.links")
        if not rows.num_rows:
            hint = "nothing can be linked without surface forms"
            raise DataError("DATA03", source="knowledge.lexicon", hint=hint)
        entities = Entities.build(rows, values, links)
        lexicon = Lexicon.build(rows, entities)
    with context.progress.stage("count words"):
        edited = _lines(context, given.edited, "knowledge.edited")
        common = _lines(context, given.common, "knowledge.common")
        counted = {"texts": _counts(texts.select("text"), lexicon)}
        if edited is not None:
            counted["edited"] = _counts(edited, lexicon)
        words = None if common is None else common.distinct().toArrow()["text"].combine_chunks()
        knowledge = Knowledge(lexicon, entities, Words.build(counted, words, entities))
    context.run.write_metrics(
        {
            "knowledge": {
                "entities": entities.size,
                "surfaces": len(lexicon.surfaces.hashes),
                "candidates": len(lexicon.entities),
                "words": len(knowledge.words.flags) - 1,
            }
        }
    )
    bad = bad_rows.unionByName(bad_values).unionByName(bad_links)
    return knowledge, context.cached(bad)


def _read_all(
    context: Context,
    sources: Sequence[Any],
    reader: Callable[..., Read],
    schema: T.StructType,
    key: str,
) -> tuple[pa.Table, DataFrame]:
    limits = context.settings.quarantine
    tables = [splits.schema_of(schema).empty_table()]
    bad = context.spark.createDataFrame([], QUARANTINE)
    for number, source in enumerate(sources):
        name = f"{key}.{number}"
        read = reader(context.spark, source, limits, name)
        tables.append(read.records.select(schema.names).toArrow().cast(tables[0].schema))
        mine = context.cached(read.quarantine)
        reasons = quarantine.count_reasons(mine)
        quarantine.check_share(name, tables[-1].num_rows, reasons, limits)
        bad = bad.unionByName(mine)
    return pa.concat_tables(tables).combine_chunks(), bad


def _lines(context: Context, sources: Sequence[LinesSettings], key: str) -> DataFrame | None:
    found: DataFrame | None = None
    for number, source in enumerate(sources):
        limits = context.settings.quarantine
        lines = read_text(context.spark, source.path, limits, f"{key}.{number}.path")
        part = F.regexp_extract("text", source.pattern, 1)
        good = lines.where(F.col("reason").isNull())
        mine = good.select(part.alias("text")).where("text != ''")
        found = mine if found is None else found.unionByName(mine)
    return found


def _counts(texts: DataFrame, lexicon: Lexicon) -> pa.Table:
    parts = splits.map_partitions(texts, partial(count_batch, lexicon=lexicon), _COUNTED)
    sums = [F.sum(name).alias(name) for name in ("count", "capitals")]
    return parts.groupBy("key").agg(*sums).orderBy("key").toArrow().combine_chunks()


def count_batch(batch: pa.RecordBatch, lexicon: Lexicon) -> pa.RecordBatch:
    """Count the words of a batch of texts; the kernel of `read_knowledge`."""
    return count_words(units_of(batch.column("text")), lexicon)
