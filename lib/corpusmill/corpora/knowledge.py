"""Tables of surface forms, entities and links -> LEXICON, ENTITIES, LINKS, from any columns.

A table may name things by ids: `NamesSettings` is the table that tells their names. Whose id is not
there goes to quarantine as "unknown id".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill.corpora import quarantine as bad
from corpusmill.corpora.knowledge_names import TYPE_PREFIX
from corpusmill.corpora.quarantine import Read, separate
from corpusmill.corpora.schemas import LEXICON
from corpusmill.corpora.sources import ColumnName, FileSettings, read_table
from corpusmill.settings import QuarantineSettings, Settings

EMPTY_SURFACE = "empty surface"
EMPTY_ENTITY = "empty entity"
UNKNOWN_ID = "unknown id"
UNKNOWN_KIND = "unknown kind"
BAD_NUMBER = "bad number"
LARGEST = 1e30
"""Numbers of entities are that large at most: they are kept in 32 bits."""
LARGEST_LOGARITHM = 600.0
"""Of popularity, whose exponentials are added up."""

Kind = Literal[
    "text", "short", "query",
    "title", "alias", "redirect", "hashtag", "comma", "last_name", "candidate",
]  # fmt: skip
Attribute = Literal["in_links", "out_links", "popularity", "popular", "fame", "views"]
Type = Literal[
    "person", "location", "organization", "product", "event", "character", "brand", "name"
]


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"no regular expression: {error}") from None
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


class NamesSettings(FileSettings):
    """A table of ids and the names they stand for."""

    id: ColumnName | list[ColumnName] = Field("id", description="several columns make one id")
    name: ColumnName = "name"


class LexiconSettings(FileSettings):
    """A table of surface forms: its files, columns and what a row is evidence of."""

    surface: ColumnName | list[ColumnName] = "surface"
    entity: ColumnName = "entity"
    count: ColumnName | None = Field(None, description="without it, every row counts once")
    source: ColumnName | None = Field(None, description="the column that says where from")
    separator: str | None = Field(
        None, min_length=1, description="between several surface forms of one row"
    )
    kinds: dict[Kind, Pattern] = Field(
        default={"text": ""},
        min_length=1,
        description="a row is of the first kind whose pattern is found in its source",
    )
    leave_out: list[str] = Field(
        default_factory=list,
        description="sources to pass over: those of the texts to evaluate on, and of later ones",
    )
    surface_names: NamesSettings | None = Field(None, description="if surface is an id")
    entity_names: NamesSettings | None = Field(None, description="if entity is an id")


class TypeRule(Settings):
    """Which entities are of some types."""

    types: list[Type] = Field(min_length=1)
    pattern: Pattern = ""


class EntitySettings(FileSettings):
    """A table of entities: its files, columns and what a row says of its entity."""

    entity: ColumnName = "entity"
    values: dict[Attribute, ColumnName] = Field(
        default_factory=dict, description="columns of numbers; an empty one says nothing"
    )
    flags: list[Attribute] = Field(
        default_factory=list, description="attributes that are 1 for every entity of the table"
    )
    type: ColumnName | None = Field(None, description="the column that tells the type")
    types: list[TypeRule] = Field(
        default_factory=list,
        description="the first rule whose pattern is found in that column holds; case is ignored",
    )


class LinkSettings(FileSettings):
    """A table of links between entities."""

    source: ColumnName = "source"
    target: ColumnName = "target"
    names: NamesSettings | None = Field(None, description="if both are ids")
    both_ways: bool = Field(False, description="facts, which hold for either end")


def read_lexicon(
    spark: SparkSession,
    source: LexiconSettings,
    quarantine: QuarantineSettings,
    key: str = "lexicon",
) -> Read:
    """Read surface forms of entities.

    Parameters
    ----------
    spark
        The session.
    source
        Files, columns, kinds and the sources to leave out.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        LEXICON, a row each different surface, entity, source and kind, its counts summed; and
        QUARANTINE. ``source`` is the value of that column, or the name of the file.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    surfaces = _columns("surface", source.surface)
    fields = {**surfaces, "entity": source.entity}
    fields |= {} if source.count is None else {"count": source.count}
    fields |= {} if source.source is None else {"origin": source.source}
    table = read_table(spark, source, fields, quarantine, key)
    table = table.withColumn("surface", _id(list(surfaces)))
    table = _named(table, "surface", source.surface_names, quarantine, f"{key}.surface_names")
    table = _named(table, "entity", source.entity_names, quarantine, f"{key}.entity_names")
    count, broken = F.lit(1).cast("long"), F.lit(False)
    if source.count is not None:
        count = F.when(F.trim("count").rlike(r"^\+?[0-9]+$"), F.trim("count")).try_cast("long")
        broken = F.coalesce(count, F.lit(0)) < 1
    origin = F.coalesce("origin", F.lit("")) if source.source is not None else F.lit("")
    kinds = (F.when(origin.rlike(pattern), kind) for kind, pattern in source.kinds.items())
    checked = table.withColumns({"count": count, "kind": F.coalesce(*kinds)}).withColumn(
        "reason",
        F.coalesce(
            "reason",
            # A list of surface forms may be empty.
            F.when(_empty("surface") & F.lit(source.separator is None), EMPTY_SURFACE),
            F.when(_empty("entity"), EMPTY_ENTITY),
            F.when(broken, bad.BAD_COUNT),
            F.when(F.col("kind").isNull(), UNKNOWN_KIND),
        ),
    )
    # The file stays in `source`, for the quarantine; where a row is from is put there after.
    file = F.element_at(F.split("source", "/"), -1)
    origin = F.col("origin") if source.source is not None else file
    read = separate(checked.withColumn("from", origin), _strings([*LEXICON.names, "from"]))
    records = read.records.where(~F.col("from").isin(source.leave_out))
    each = F.array("surface")
    if source.separator is not None:
        each = F.split("surface", rf"\Q{source.separator}\E")
    records = records.withColumn("surface", F.explode(each)).withColumns(
        {"surface": F.trim("surface"), "entity": F.trim("entity"), "source": F.col("from")}
    )
    names = ["surface", "entity", "source", "kind"]
    merged = records.where("surface != ''").groupBy(*names).agg(F.sum("count").alias("count"))
    return read._replace(records=merged)


def read_entities(
    spark: SparkSession,
    source: EntitySettings,
    quarantine: QuarantineSettings,
    key: str = "entities",
) -> Read:
    """Read what is known of entities.

    Parameters
    ----------
    spark
        The session.
    source
        Files, columns and rules.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        ENTITIES, of each entity and attribute the largest value; an entity of which nothing is
        said has the attribute "known". And QUARANTINE.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    fields: dict[str, ColumnName] = {"entity": source.entity}
    fields |= {str(name): column for name, column in source.values.items()}
    fields |= {} if source.type is None else {"type": source.type}
    table = read_table(spark, source, fields, quarantine, key)
    numbers = {name: F.nullif(F.trim(name), F.lit("")).try_cast("double") for name in source.values}
    broken = F.lit(False)
    for name, number in numbers.items():
        written = F.coalesce(F.trim(name), F.lit("")) != ""
        largest = LARGEST_LOGARITHM if name == "popularity" else LARGEST
        # NaN is larger than all numbers.
        broken |= written & (number.isNull() | (F.abs(number) > largest))
    reason = F.coalesce(
        "reason", F.when(_empty("entity"), EMPTY_ENTITY), F.when(broken, BAD_NUMBER)
    )
    read = separate(table.withColumn("reason", reason), _strings(list(fields)))
    said = [_said(name, number) for name, number in numbers.items()]
    said += [_said(name, F.lit(1.0)) for name in source.flags]
    values = F.concat(F.array(_said("known", F.lit(1.0)), *said), _types(source))
    exploded = read.records.select(F.trim("entity").alias("entity"), F.explode(values).alias("v"))
    pairs = exploded.select("entity", "v.attribute", "v.value").where("value is not null")
    merged = pairs.groupBy("entity", "attribute").agg(F.max("value").alias("value"))
    return read._replace(records=merged)


def read_links(
    spark: SparkSession,
    source: LinkSettings,
    quarantine: QuarantineSettings,
    key: str = "links",
) -> Read:
    """Read links between entities.

    Parameters
    ----------
    spark
        The session.
    source
        Files, columns and names.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        LINKS without duplicates, and QUARANTINE.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    fields = {"from": source.source, "target": source.target}
    table = read_table(spark, source, fields, quarantine, key)
    for end in fields:
        table = _named(table, end, source.names, quarantine, f"{key}.names")
    empty = F.when(_empty("from") | _empty("target"), EMPTY_ENTITY)
    read = separate(table.withColumn("reason", F.coalesce("reason", empty)), _strings(list(fields)))
    links = read.records.select(F.trim("from").alias("source"), F.trim("target").alias("target"))
    if source.both_ways:
        links = links.union(links.select("target", "source"))
    return read._replace(records=links.distinct())


def _columns(name: str, columns: ColumnName | Sequence[ColumnName]) -> dict[str, ColumnName]:
    several = [columns] if isinstance(columns, str | int) else columns
    return {f"{name}{place}": column for place, column in enumerate(several)}


def _id(names: list[str]) -> Column:
    return F.concat_ws("\t", *names)


def _named(
    table: DataFrame,
    column: str,
    names: NamesSettings | None,
    limits: QuarantineSettings,
    key: str,
) -> DataFrame:
    """Put the name in place of the id; rows of unknown ids get a reason."""
    if names is None:
        return table
    ids = _columns("id", names.id)
    known = read_table(table.sparkSession, names, {**ids, "name": names.name}, limits, key)
    known = known.where(F.col("reason").isNull() & ~_empty("name"))
    known = known.groupBy(_id(list(ids)).alias(column)).agg(F.min("name").alias("name"))
    joined = table.join(known, column, "left")
    missing = F.when(F.col("name").isNull() & ~_empty(column), UNKNOWN_ID)
    reason = F.coalesce("reason", missing)
    return joined.withColumns({"reason": reason, column: F.col("name")}).drop("name")


def _strings(names: list[str]) -> T.StructType:
    """Give a schema for `separate`, which reads nothing but the names."""
    return T.StructType([T.StructField(name, T.StringType()) for name in names])


def _empty(name: str) -> Column:
    return F.coalesce(F.trim(name), F.lit("")) == ""


def _said(attribute: str, value: Column) -> Column:
    return F.struct(F.lit(attribute).alias("attribute"), value.alias("value"))


def _types(source: EntitySettings) -> Column:
    """Give what the first matching rule says, as an array; an empty one where none does."""
    value = F.coalesce("type", F.lit("")) if source.type is not None else F.lit("")
    nothing = F.array(_said("known", F.lit(1.0)))
    rules = (
        F.when(
            value.rlike(f"(?i){rule.pattern}"),
            F.array(*(_said(TYPE_PREFIX + name, F.lit(1.0)) for name in rule.types)),
        )
        for rule in source.types
    )
    return F.coalesce(*rules, nothing)
