"""Lists of entities with their possible classes -> ENTITY_CLASSES, from any two columns."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from corpusmill.corpora.quarantine import Read, separate
from corpusmill.corpora.schemas import ENTITY_CLASSES
from corpusmill.corpora.sources import ColumnName, FileSettings, read_table
from corpusmill.corpora.text import tokenize
from corpusmill.settings import QuarantineSettings


class EntityListSettings(FileSettings):
    """An entity list: its files, its two columns, and how much of a hierarchical class counts."""

    entity: ColumnName = "entity"
    entity_class: ColumnName = "class"
    class_level: int | None = Field(
        None,
        ge=1,
        description="keep this level of a hierarchical class; the last where it is flatter",
    )
    class_separator: str = Field(".", min_length=1, description="between the levels of a class")


def read_entity_classes(
    spark: SparkSession,
    source: EntityListSettings,
    quarantine: QuarantineSettings,
    key: str = "entities",
) -> Read:
    """Read a list of entities and classes.

    Parameters
    ----------
    spark
        The session.
    source
        Files, columns and the level of the class.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        ENTITY_CLASSES without duplicates, both columns trimmed; and QUARANTINE.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    fields = {"entity": source.entity, "class": source.entity_class}
    table = read_table(spark, source, fields, quarantine, key)
    checked = table.withColumns(
        {
            "entity": F.trim("entity"),
            "class": F.trim(_cut(F.col("class"), source.class_level, source.class_separator)),
        }
    ).withColumn(
        "reason",
        F.coalesce(
            "reason",
            F.when(F.coalesce("entity", F.lit("")) == "", "empty entity"),
            F.when(F.coalesce("class", F.lit("")) == "", "empty class"),
            F.when(~_has_tokens(F.make_valid_utf8("entity")), "no letter or digit"),
        ),
    )
    read = separate(checked, ENTITY_CLASSES)
    return read._replace(records=read.records.distinct())


def _has_tokens_of(names: pa.Array) -> pa.Array:
    return pc.greater(pc.list_value_length(tokenize(names)), 0)


# The tokenizer itself, because Unicode's compatibility forms turn some symbols into letters.
_has_tokens = arrow_udf(_has_tokens_of, T.BooleanType())  # type: ignore[call-overload]


def _cut(name: Column, level: int | None, separator: str) -> Column:
    if level is None:
        return name
    levels = F.split(name, rf"\Q{separator}\E", -1)
    return F.get(levels, F.least(F.lit(level), F.size(levels)) - 1)
