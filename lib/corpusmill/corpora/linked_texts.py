"""Texts with the entities that they mention, in any format of a gold set -> LINKED_TEXTS."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from corpusmill.corpora.linked_rows import (
    attempt,
    parse_groups,
    read_erd,
    read_system,
    read_webquestions,
    read_yerd,
    structures,
)
from corpusmill.corpora.linked_text_formats import (
    LinkedText,
    annotate,
    locate,
    parse_elevant,
    parse_record,
    parse_webis,
)
from corpusmill.corpora.quarantine import Read, separate
from corpusmill.corpora.schemas import LINKED_TEXTS, SYSTEM_LINKS
from corpusmill.corpora.sources import read_text
from corpusmill.corpora.titles import wikipedia_title
from corpusmill.settings import QuarantineSettings, Settings

_PARSERS: dict[str, Callable[..., LinkedText]] = {
    "json": parse_record,
    "elevant": parse_elevant,
    "webis": parse_webis,
}
_IN_TWO_FILES = frozenset({"erd", "webquestions"})


class LinkedTextsSettings(Settings):
    """Texts with their entities: files and format."""

    path: str = Field(min_length=1)
    format: Literal["json", "elevant", "webis", "yerd", "erd", "webquestions"] = "json"
    annotations: str | None = Field(
        None, min_length=1, description="erd and webquestions: the file with the entities"
    )

    @model_validator(mode="after")
    def _check_annotations(self) -> LinkedTextsSettings:
        if (self.format in _IN_TWO_FILES) != (self.annotations is not None):
            verb = "needs the" if self.format in _IN_TWO_FILES else "has no"
            raise ValueError(f"format {self.format} {verb} key annotations")
        return self


def linked_texts_paths(source: LinkedTextsSettings, key: str) -> dict[str, str]:
    """Name the paths to read, by their keys in the conf, below the key of `source`."""
    paths = {"path": source.path, "annotations": source.annotations}
    return {f"{key}.{name}": path for name, path in paths.items() if path is not None}


class SystemLinksSettings(Settings):
    """What another system said of questions: its links and the questions."""

    path: str = Field(min_length=1)
    questions: str = Field(min_length=1)


def read_linked_texts(
    spark: SparkSession,
    source: LinkedTextsSettings,
    quarantine: QuarantineSettings,
    key: str = "texts",
    gold: bool = True,
) -> Read:
    """Read texts with the entities that they mention.

    Parameters
    ----------
    spark
        The session.
    source
        Files and format.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.
    gold
        Whether each record has to say what it mentions.

    Returns
    -------
    Read
        LINKED_TEXTS and QUARANTINE; the position of a text with a bad mention ends with the
        number of that mention. Unless the record has them, ``text_id`` is a hash of the file's
        name, the place there and the text, and ``split`` the file's name up to its first dot.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    if source.format in _PARSERS:
        lines = read_text(spark, source.path, quarantine, key)
        parsed = _parse_lines(lines, partial(_PARSERS[source.format], gold=gold))
    else:
        build = _pivot if source.format == "webquestions" else _annotate
        parsed = parse_groups(_read_rows(spark, source, quarantine, key), build, _GOLD)
    found = F.col("found")
    # The folder is not part of the id: a corpus that moves keeps its splits.
    file = F.substring_index("source", "/", -1)
    hashed = F.xxhash64(file, "position", found["text"]).cast("string")
    return separate(
        _checked(
            parsed,
            text_id=F.coalesce(found["text_id"], hashed),
            split=F.coalesce(found["split"], F.substring_index(file, ".", 1)),
            **{field.name: found[field.name] for field in LINKED_TEXTS.fields[2:]},
        ),
        LINKED_TEXTS,
    )


def read_system_links(
    spark: SparkSession,
    source: SystemLinksSettings,
    quarantine: QuarantineSettings,
    key: str = "system",
) -> Read:
    """Read the links of the authors of S-MART: a mention, its entity and its score a line.

    Parameters
    ----------
    spark
        The session.
    source
        Tables with a header: of links with the columns ``qid``, ``mention``, ``entity_name`` and
        ``score``, of questions with ``qid`` and ``question``.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        SYSTEM_LINKS, a row a question, and QUARANTINE. The offsets are those of the question as
        it was asked; those of the table count in a tokenised form of it and are not read.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    rows = read_system(spark, source.path, source.questions, quarantine, key)
    parsed = parse_groups(rows, _locate_links, _SYSTEM)
    fields = {field.name: F.col("found")[field.name] for field in SYSTEM_LINKS}
    return separate(_checked(parsed, **fields), SYSTEM_LINKS)


def _found(schema: T.StructType) -> T.StructType:
    """Give a row's fault or its fields: all may be null, or Spark would not look for nulls."""
    fault = [T.StructField("reason", T.StringType()), T.StructField("place", T.StringType())]
    return T.StructType([*fault, *(T.StructField(each.name, each.dataType) for each in schema)])


_GOLD = _found(LINKED_TEXTS)
_SYSTEM = _found(SYSTEM_LINKS)


def _checked(parsed: DataFrame, **columns: Column) -> DataFrame:
    found = F.col("found")
    return parsed.select(
        "source",
        F.concat("position", F.coalesce(found["place"], F.lit(""))).alias("position"),
        F.coalesce("reason", found["reason"]).alias("reason"),
        "record",
        *(column.alias(name) for name, column in columns.items()),
    )


def _read_rows(
    spark: SparkSession, source: LinkedTextsSettings, limits: QuarantineSettings, key: str
) -> DataFrame:
    if source.format == "yerd":
        return read_yerd(spark, source.path, limits, key)
    read = read_erd if source.format == "erd" else read_webquestions
    return read(spark, source.path, source.annotations or "", limits, key)


def _parse_lines(lines: DataFrame, parse: Callable[[str], LinkedText]) -> DataFrame:
    """Parse a record a line into ``found``, a structure like `_GOLD`."""

    def run(texts: pa.Array) -> pa.Array:
        return structures((attempt(_gold, parse, text) for text in texts.to_pylist()), _GOLD)

    # Not deterministic in Spark's sense: a filter on its result must not be pushed below it,
    # where it would be computed a second time.
    udf = arrow_udf(run, _GOLD).asNondeterministic()  # type: ignore[call-overload]
    return lines.withColumn("found", udf(F.when(F.col("reason").isNull(), F.col("text"))))


def _gold(parse: Callable[[str], LinkedText], text: str) -> tuple[Any, ...]:
    return _fields(parse(text))


def _fields(linked: LinkedText) -> tuple[Any, ...]:
    mentions = linked.mentions
    return (
        linked.text_id,
        linked.split,
        linked.text,
        [mention.start for mention in mentions],
        [mention.end for mention in mentions],
        [mention.entity for mention in mentions],
        [mention.type for mention in mentions],
        linked.entities,
        linked.dropped,
    )


def _annotate(
    text_id: str, text: str, surfaces: list[str], entities: list[str], _: list[float]
) -> tuple[Any, ...]:
    return _fields(annotate(text_id, text, surfaces, entities))


def _pivot(
    text_id: str, text: str, _: list[str], keys: list[str], __: list[float]
) -> tuple[Any, ...]:
    # There is no way from a key to a title.
    return _fields(annotate(text_id, text, [], [])._replace(entities=list(dict.fromkeys(keys))))


def _locate_links(
    text_id: str, text: str, surfaces: list[str], entities: list[str], scores: list[float]
) -> tuple[Any, ...]:
    order = sorted(range(len(scores)), key=lambda link: -scores[link])
    spans = [locate(text, surfaces[link], link + 1) for link in order]
    titles = [wikipedia_title(entities[link]) or entities[link] for link in order]
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    return text_id, text, starts, ends, titles, [scores[link] for link in order]
