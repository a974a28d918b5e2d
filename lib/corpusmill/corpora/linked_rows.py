"""Gold sets that are tables of rows: a text or one of its mentions each, perhaps in two files.

They are brought together by the text's id.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from corpusmill.corpora.linked_text_formats import BAD_ID, HALF, MalformedText
from corpusmill.corpora.quarantine import BAD_JSON, KEPT_CHARS
from corpusmill.corpora.sources import ColumnName, FileSettings, read_table, read_whole
from corpusmill.settings import QuarantineSettings
from corpusmill.splits import schema_of

UNKNOWN_TEXT = "annotation of an unknown text"
TWO_TEXTS = "two texts of one id"
NO_QUESTION = "no question with an address"
BAD_SCORE = "bad score"

_QUESTION: dict[str, ColumnName] = {"text_id": "qid", "text": "question"}


def read_yerd(spark: SparkSession, path: str, limits: QuarantineSettings, key: str) -> DataFrame:
    """Read rows of Y-ERD: a query and one of its mentions, or none, in each."""
    columns: dict[str, ColumnName] = {
        "text_id": "qid",
        "text": "query",
        "surface": "mention",
        "entity": "entity",
    }
    return _read(spark, path, None, columns, limits, key)


def read_erd(
    spark: SparkSession, path: str, annotations: str, limits: QuarantineSettings, key: str
) -> DataFrame:
    """Read rows of ERD-2014: queries, and a mention a line in another file; without headers."""
    query: dict[str, ColumnName] = {"text_id": 0, "text": 1}
    texts = _read(spark, path, ["id", "query"], query, limits, key)
    said: dict[str, ColumnName] = {"text_id": 0, "entity": 2, "surface": 3}
    names = ["id", "interpretation", "entity", "mention", "score"]
    return texts.unionByName(_read(spark, annotations, names, said, limits, f"{key}.annotations"))


def read_webquestions(
    spark: SparkSession, path: str, annotations: str, limits: QuarantineSettings, key: str
) -> DataFrame:
    """Read questions, and from the JSON of WebQuestions the entity that each is about.

    That is the last part of ``url``, a key of Freebase (`corpusmill.corpora.titles.freebase_key`).
    It stands beside the words of the question, by which it finds the question's id.
    """
    texts = _read(spark, path, None, _QUESTION, limits, key)
    found = _complete(
        read_whole(spark, annotations, f"{key}.annotations").mapInArrow(_pivots, _PIVOT)
    )
    ids = texts.where("reason is null").select(
        F.col("text_id").alias("id"), F.col("text").alias("t")
    )
    matched = found.join(ids, found["text"] == ids["t"], "left")
    unknown = F.when(F.col("id").isNull(), UNKNOWN_TEXT)
    pivots = matched.withColumns({"reason": F.coalesce("reason", unknown), "text_id": F.col("id")})
    return texts.unionByName(pivots.drop("id", "t").withColumn("text", F.lit(None).cast("string")))


def read_system(
    spark: SparkSession, path: str, questions: str, limits: QuarantineSettings, key: str
) -> DataFrame:
    """Read questions, and from another file the links that a system found, with their scores."""
    columns: dict[str, ColumnName] = {
        "text_id": "qid",
        "surface": "mention",
        "entity": "entity_name",
        "score": "score",
    }
    links = _read(spark, path, None, columns, limits, key)
    unusable = F.coalesce(~(F.abs("score") < float("inf")), F.lit(True))
    links = links.withColumn("reason", F.coalesce("reason", F.when(unusable, BAD_SCORE)))
    return links.unionByName(_read(spark, questions, None, _QUESTION, limits, f"{key}.questions"))


def parse_groups(
    rows: DataFrame, build: Callable[..., tuple[Any, ...]], schema: T.StructType
) -> DataFrame:
    """Bring rows together by ``text_id`` and build ``found`` of each text and its annotations.

    Parameters
    ----------
    rows
        What the readers here give: each row has a text, an annotation (``surface``, ``entity``,
        ``score``), or both.
    build
        From id, text, surfaces, entities and scores to the fields of `schema` behind the first two;
        raises MalformedText.
    schema
        ``reason``, ``place`` and the fields of a record.

    Returns
    -------
    DataFrame
        ``source``, ``position``, ``reason``, ``record`` and ``found``. A text with a fault has the
        place of its first row; a row that is bad by itself stays a row.
    """

    def run(*columns: pa.Array) -> pa.Array:
        given = zip(*(column.to_pylist() for column in columns), strict=True)
        return structures((attempt(build, *row) for row in given), schema)

    udf = arrow_udf(run, schema).asNondeterministic()  # type: ignore[call-overload]
    # Of numbers written in digits the shorter is the smaller.
    order = [F.col("text").isNull().alias("no_text"), F.length("position").alias("digits")]
    kept = ["position", "source", "reason", "record", "text", "surface", "entity", "score"]
    # A row that is bad by itself is a group by itself.
    good = F.col("reason").isNull()
    keys = [F.when(good, F.col("text_id")).alias("text_id")]
    keys += [F.when(~good, F.col(name)).alias(f"bad_{name}") for name in ("source", "position")]
    rows_of = F.array_sort(F.collect_list(F.struct(*order, *kept)))
    grouped = rows.groupBy(*keys).agg(rows_of.alias("rows"))
    first = F.element_at("rows", 1)
    texts = F.array_compact(F.array_distinct(F.col("rows")["text"]))
    reason = (
        F.when(first["reason"].isNotNull(), first["reason"])
        .when(F.size(texts) == 0, UNKNOWN_TEXT)
        .when(F.size(texts) > 1, TWO_TEXTS)
    )
    said = F.filter("rows", lambda r: F.concat_ws("", r["surface"], r["entity"]) != "")
    given = [
        "text_id",
        F.when(reason.isNull(), first["text"]),
        F.transform(said, lambda r: _or_empty(r["surface"])),
        F.transform(said, lambda r: _or_empty(r["entity"])),
        F.transform(said, lambda r: F.coalesce(r["score"], F.lit(0.0))),
    ]
    return grouped.select(
        first["source"].alias("source"),
        first["position"].alias("position"),
        reason.alias("reason"),
        first["record"].alias("record"),
        udf(*given).alias("found"),
    )


def attempt(build: Callable[..., tuple[Any, ...]], *given: Any) -> tuple[Any, ...]:
    """Return the fields of a structure; of an unusable row none, of a malformed one its fault."""
    if any(each is None for each in given):
        return ()
    try:
        return (None, None, *build(*given))
    except MalformedText as fault:
        place = f", mention {fault.mention}" if fault.mention else None
        return (fault.reason, place)


def structures(rows: Iterable[tuple[Any, ...]], schema: T.StructType) -> pa.Array:
    """Put rows into an array of structures; of a row with fewer fields the others are null."""
    fields = list(schema_of(schema))
    padded = [row + (None,) * (len(fields) - len(row)) for row in rows]
    columns = zip(*padded, strict=True) if padded else [() for _ in fields]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.StructArray.from_arrays(
        arrays, fields=[field.with_nullable(True) for field in fields]
    )


def _read(
    spark: SparkSession,
    path: str,
    names: list[str] | None,
    fields: dict[str, ColumnName],
    limits: QuarantineSettings,
    key: str,
) -> DataFrame:
    """Read columns of a table with a header, or of these names; ids are not empty."""
    files = FileSettings(path=path, header=names is None, columns=names)
    table = _complete(read_table(spark, files, fields, limits, key))
    no_id = F.when(F.trim(_or_empty(F.col("text_id"))) == "", BAD_ID)
    return table.withColumn("reason", F.coalesce("reason", no_id))


def _complete(table: DataFrame) -> DataFrame:
    """Give all columns of a row, null where the table has none."""
    wanted = {"text_id": "string", "text": "string", "surface": "string", "entity": "string"}
    columns = [
        (F.col(name) if name in table.columns else F.lit(None)).try_cast(kind).alias(name)
        for name, kind in (wanted | {"score": "double"}).items()
    ]
    return table.select("source", "position", "reason", "record", *columns)


_PIVOT = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in ("source", "position", "reason")),
        T.StructField("record", T.BinaryType()),
        *(T.StructField(name, T.StringType()) for name in ("text", "entity")),
    ]
)


def _pivots(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for file, value in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            rows = [(file, *row) for row in _pivots_of(value)]
            columns = zip(*rows, strict=True) if rows else [()] * len(_PIVOT)
            schema = schema_of(_PIVOT)
            arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _pivots_of(data: bytes) -> Iterator[tuple[str, str | None, bytes, str | None, str | None]]:
    """Give position, reason, record, question and entity of each element of a JSON array."""
    try:
        items = json.loads(data)
        records = [json.dumps(item).encode()[: 4 * KEPT_CHARS] for item in items]
    except (ValueError, TypeError, RecursionError):
        yield "byte 0", BAD_JSON, data[: 4 * KEPT_CHARS], None, None
        return
    for number, (item, record) in enumerate(zip(items, records, strict=True), 1):
        texts = [item.get(key) if isinstance(item, dict) else None for key in ("utterance", "url")]
        good = all(isinstance(text, str) and not HALF.search(text) for text in texts)
        question, url = texts if good else (None, "")
        entity = str(url).rstrip("/").rpartition("/")[2]
        yield f"item {number}", None if entity else NO_QUESTION, record, question, entity


def _or_empty(column: Column) -> Column:
    return F.coalesce(column, F.lit(""))
