"""Raw input: which files, in which layout, line by line as bytes, each with its place.

Text is read as bytes and decided on before anything decodes it: a Python UDF that meets
invalid UTF-8 in a string column dies with its whole partition. All decisions are Spark SQL
expressions; the one thing SQL cannot do is to number lines, for which a UDF sees one
integer a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from corpusmill.corpora import quarantine as bad
from corpusmill.errors import CorpusmillError, DataError, SchemaError, UsageError
from corpusmill.failures import explain_spark_failure, first_line, header_mismatch
from corpusmill.settings import QuarantineSettings, Settings

ColumnName = str | int
"""A column by its name, or, in a TSV, by its number from 0."""

# Bytes that no text editor writes: everything below the space but tab, line feed and return.
_CONTROL = r"[\x00-\x08\x0B\x0C\x0E-\x1F]"
_HEAD_BYTES = 4 * bad.KEPT_CHARS


class FileSettings(Settings):
    """Files of one layout: a file, folder, glob or any URI that Spark reads, compressed or not."""

    path: str = Field(min_length=1)
    format: Literal["tsv", "jsonl", "parquet"] = "tsv"
    header: bool = Field(False, description="TSV: the first line of each file names the columns")
    columns: list[str] | None = Field(None, description="TSV without header: the columns' names")


class SourceSettings(FileSettings):
    """A query log: its files and what their columns mean."""

    query: ColumnName = "query"
    count: ColumnName | None = Field(None, description="without it, every line counts once")
    timestamp: ColumnName | None = None
    timestamp_format: str | None = Field(
        None, description="a Spark datetime pattern, or 'unix' for seconds; default ISO 8601"
    )


def read_lines(spark: SparkSession, path: str, key: str, separator: str = "\n") -> DataFrame:
    """Read text files as lines of bytes.

    Parameters
    ----------
    spark
        The session.
    path
        A file, folder, glob or URI; ``.gz`` and the other codecs of Spark by their suffix.
    key
        The conf key that holds the path, for messages.
    separator
        What ends a line.

    Returns
    -------
    DataFrame
        ``source`` (the file), ``block`` (long: where the split begins, 0 for a whole file),
        ``line`` (long, from 1 within the block) and ``value`` (binary, without separator).

    Raises
    ------
    UsageError
        CONF06 when there is nothing to read.
    """
    frame = _load(lambda: spark.read.text(path, lineSep=separator), path, key)
    # Unlike row_number() over a window, this needs no shuffle: a partition holds whole blocks in
    # order, so that counting restarts wherever the block changes.
    block = F.xxhash64("_metadata.file_path", "_metadata.file_block_start")
    return frame.select(
        F.col("_metadata.file_path").alias("source"),
        F.col("_metadata.file_block_start").alias("block"),
        _number_lines(block).alias("line"),
        F.col("value").cast("binary").alias("value"),
    )


def read_text(spark: SparkSession, path: str, limits: QuarantineSettings, key: str) -> DataFrame:
    """Read text files as lines that have been checked.

    Parameters
    ----------
    spark
        The session.
    path
        As of `read_lines`.
    limits
        How long a record may be.
    key
        The conf key that holds the path, for messages.

    Returns
    -------
    DataFrame
        ``source``, ``position``, ``reason`` (null where nothing is wrong so far), ``record``
        (binary, its beginning) and ``text`` (string, null for an unusable line).

    Raises
    ------
    UsageError
        CONF06 when there is nothing to read.
    """
    lines = _check_lines(read_lines(spark, path, key), limits).drop("block", "line")
    return _check_fields(lines, {"text": "text"})


def read_whole(spark: SparkSession, path: str, key: str) -> DataFrame:
    """Read each file as one value: ``source`` (string) and ``value`` (binary, decompressed).

    Raises
    ------
    UsageError
        CONF06 when there is nothing to read.
    """
    frame = _load(lambda: spark.read.text(path, wholetext=True), path, key)
    return frame.select(
        F.col("_metadata.file_path").alias("source"), F.col("value").cast("binary").alias("value")
    )


def read_table(
    spark: SparkSession,
    settings: FileSettings,
    fields: Mapping[str, ColumnName],
    limits: QuarantineSettings,
    key: str,
) -> DataFrame:
    """Read the wanted columns of a TSV, of JSON lines or of Parquet, as strings.

    Parameters
    ----------
    spark
        The session.
    settings
        The files and their layout.
    fields
        For each column of the result, the column of the input.
    limits
        How long a record may be.
    key
        The conf key of `settings`, for messages.

    Returns
    -------
    DataFrame
        ``source``, ``position``, ``reason`` (null where nothing is wrong so far), ``record``
        (binary, its beginning) and one nullable string column a field; one row a line read,
        header lines left out.

    Raises
    ------
    UsageError
        CONF06 when there is nothing to read, CONF04 when a column is not there.
    DataError
        A file that cannot be read; at once, or when the result is computed.
    """
    numbers = [name for name, column in fields.items() if isinstance(column, int)]
    if numbers and settings.format != "tsv":
        problem = f"a number names a column of a tsv; {settings.format} columns have names"
        raise _bad_setting(key, numbers[0], fields[numbers[0]], problem)
    if settings.format == "parquet":
        return _check_fields(_read_parquet(spark, settings, fields, limits, key), fields)
    lines = _check_lines(read_lines(spark, settings.path, key), limits)
    if settings.format == "jsonl":
        return _check_fields(_parse_json(lines, fields), fields)
    return _check_fields(_parse_tsv(lines, settings, fields, key), fields)


def _check_lines(lines: DataFrame, limits: QuarantineSettings) -> DataFrame:
    """Add ``text`` (null unless the line is usable), ``reason``, ``position`` and ``record``."""
    raw = F.col("value").cast("string")
    reason = (
        # A character has at most four bytes: the first test spares counting them.
        F.when(
            (F.octet_length("value") > limits.max_record_chars)
            & (F.char_length(raw) > limits.max_record_chars),
            bad.TOO_LONG,
        )
        .when(~F.is_valid_utf8(raw), bad.NOT_UTF8)
        .when(~raw.rlike(r"[^ \t\r]"), bad.EMPTY_LINE)
    )
    # rtrim with a character of one's own walks through the whole string: only where it must.
    text = F.when(raw.endswith("\r"), F.rtrim(raw, F.lit("\r"))).otherwise(raw)
    place = F.concat(F.lit("line "), F.col("line"))
    within = F.concat(F.lit("byte "), F.col("block"), F.lit(", "), place)
    return lines.select(
        "source",
        "block",
        "line",
        F.when(F.col("block") == 0, place).otherwise(within).alias("position"),
        reason.alias("reason"),
        F.substring("value", 1, _HEAD_BYTES).alias("record"),
        F.when(reason.isNull(), text).alias("text"),
    )


def _parse_tsv(
    lines: DataFrame, settings: FileSettings, fields: Mapping[str, ColumnName], key: str
) -> DataFrame:
    names = settings.columns
    if settings.header:
        names = _read_header(lines, settings.path)
        lines = _drop_header(lines, names)
    places = {name: _place(names, name, column, key) for name, column in fields.items()}
    parts = F.split("text", "\t", -1)
    size = F.size(parts)
    fits = size == len(names) if names else size > max(places.values())
    return lines.select(
        "source",
        "position",
        F.coalesce("reason", F.when(~fits, bad.WRONG_COLUMNS)).alias("reason"),
        "record",
        *(F.get(parts, place).alias(name) for name, place in places.items()),
    )


def _read_header(lines: DataFrame, path: str) -> list[str]:
    """Return the columns' names as one of the files has them; none where all are empty."""
    # The first row with block 0 is a first line; asking for its number would start the UDF, which
    # a limit then breaks off with a complaint on the terminal.
    rows = _run(
        lambda: lines.where("block = 0").select("source", "text", "reason").limit(1).collect()
    )
    if not rows:
        return []
    row = rows[0]
    if row["text"] is None:
        raise DataError("DATA01", source=row["source"], problem=f"its header is {row['reason']}")
    return str(row["text"]).split("\t")


def _drop_header(lines: DataFrame, names: list[str]) -> DataFrame:
    """Drop the first line of each file; fail when it is not this header."""
    header = "\t".join(names)
    complaint = header_mismatch(F.col("source"), F.col("text"), header)
    keep = (
        F.when((F.col("block") != 0) | (F.col("line") != 1), True)
        .when(F.col("text") == header, False)
        .otherwise(F.raise_error(complaint).cast("boolean"))
    )
    return lines.where(keep)


def _place(names: list[str] | None, name: str, column: ColumnName, key: str) -> int:
    if isinstance(column, int):
        if column < 0 or (names and column >= len(names)):
            raise _bad_setting(
                key,
                name,
                column,
                f"columns have the numbers 0 to {len(names) - 1}"
                if names
                else "numbers begin at 0",
            )
        return column
    if names is None:
        problem = "without a header, name the columns (columns: [...]) or give a number"
        raise _bad_setting(key, name, column, problem)
    if names and column not in names:
        raise _bad_setting(key, name, column, f"no such column; there are {_listed(names)}")
    return names.index(column) if names else 0


def _parse_json(lines: DataFrame, fields: Mapping[str, ColumnName]) -> DataFrame:
    text = F.col("text")
    wanted = [
        T.StructField(str(column), T.StringType()) for column in dict.fromkeys(fields.values())
    ]
    value = F.from_json(text, T.StructType(wanted))
    # from_json reads the first value of a line and is silent about what follows; as the only
    # element of an array it is whole or null.
    whole = F.coalesce(
        F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1, F.lit(False)
    )
    is_object = F.ltrim(text).startswith("{")
    return lines.select(
        "source",
        "position",
        F.coalesce("reason", F.when(~(whole & is_object), bad.BAD_JSON)).alias("reason"),
        "record",
        *(value.getField(str(column)).alias(name) for name, column in fields.items()),
    )


def _read_parquet(
    spark: SparkSession,
    settings: FileSettings,
    fields: Mapping[str, ColumnName],
    limits: QuarantineSettings,
    key: str,
) -> DataFrame:
    frame = _load(lambda: spark.read.parquet(settings.path), settings.path, key)
    _refuse_zero_bytes(spark, frame, settings.path)
    for name, column in fields.items():
        if column not in frame.columns:
            problem = f"no such column; there are {_listed(frame.columns)}"
            raise _bad_setting(key, name, column, problem)
        kind = frame.schema[str(column)].dataType
        if isinstance(kind, T.ArrayType | T.MapType | T.StructType):
            raise SchemaError(
                "DATA04",
                column=column,
                found=kind.simpleString(),
                expected="text, a number or a time",
            )
    values = {name: frame[str(column)].cast("string") for name, column in fields.items()}
    all_values = F.concat_ws("\t", *values.values())
    reason = F.when(F.char_length(all_values) > limits.max_record_chars, bad.TOO_LONG).when(
        ~F.is_valid_utf8(all_values), bad.NOT_UTF8
    )
    return frame.select(
        F.col("_metadata.file_path").alias("source"),
        F.concat(F.lit("row "), F.col("_metadata.row_index") + 1).alias("position"),
        reason.alias("reason"),
        F.substring(all_values.cast("binary"), 1, _HEAD_BYTES).alias("record"),
        *(value.alias(name) for name, value in values.items()),
    )


def _refuse_zero_bytes(spark: SparkSession, frame: DataFrame, path: str) -> None:
    """Spark reads a Parquet file of zero bytes as one of zero rows; a failed copy looks so."""
    with_bytes = spark.read.format("binaryFile").load(path).select("path").collect()
    known = {_plain(row["path"]) for row in with_bytes}
    for file in frame.inputFiles():
        if _plain(unquote(file)) not in known:
            raise DataError("DATA01", source=file, problem="a Parquet file of zero bytes")


def _plain(uri: str) -> str:
    return re.sub(r"^(\w+):/+", r"\1:/", uri)


def _check_fields(table: DataFrame, fields: Mapping[str, ColumnName]) -> DataFrame:
    values = F.concat_ws(" ", *fields)
    found = F.when(values.rlike(_CONTROL), bad.CONTROL_CHARACTERS)
    return table.withColumn("reason", F.coalesce("reason", found))


def _number_lines_of(blocks: Iterator[pa.Array]) -> Iterator[pa.Array]:
    last: np.int64 | None = None
    count = 0
    for batch in blocks:
        if not len(batch):
            yield pa.array([], pa.int64())
            continue
        ids = batch.to_numpy(zero_copy_only=False)
        numbers = _count_within(ids, last, count)
        last, count = ids[-1], int(numbers[-1])
        yield pa.array(numbers)


# Not deterministic in Spark's sense: a filter must not be pushed below it, or lines go uncounted.
_number_lines = arrow_udf(_number_lines_of, T.LongType()).asNondeterministic()  # type: ignore[call-overload]


def _count_within(
    ids: np.ndarray[Any, np.dtype[np.int64]], last: np.int64 | None, count: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Count from 1 within each run of equal ids; the first goes on from `count` if it is `last`."""
    index = np.arange(len(ids), dtype=np.int64)
    starts = np.r_[True, ids[1:] != ids[:-1]]
    numbers = index - np.maximum.accumulate(np.where(starts, index, 0)) + 1
    if last is not None and ids[0] == last:
        following = np.flatnonzero(starts[1:])
        end = following[0] + 1 if len(following) else len(ids)
        numbers[:end] += count
    return numbers


def _load(read: Any, path: str, key: str) -> DataFrame:
    try:
        frame: DataFrame = read()
        files = frame.inputFiles()
    except Exception as error:
        known = explain_spark_failure(error)
        if isinstance(known, DataError):
            raise known from None
        raise UsageError("CONF06", key=f"{key}.path", path=path, problem=_why(error)) from None
    if not files:
        problem = "no files there; names that begin with _ or . are passed over"
        raise UsageError("CONF06", key=f"{key}.path", path=path, problem=problem)
    return frame


def _why(error: Exception) -> str:
    text = str(error)
    if "PATH_NOT_FOUND" in text:
        return "no such file or folder, or nothing that matches"
    if "UNABLE_TO_INFER_SCHEMA" in text:
        return "no Parquet file there, or one of zero bytes"
    return first_line(error)


def _run(action: Any) -> Any:
    try:
        return action()
    except Exception as error:
        known: CorpusmillError | None = explain_spark_failure(error)
        if known is None:
            raise
        raise known from None


def _bad_setting(key: str, name: str, value: object, problem: str) -> UsageError:
    return UsageError("CONF04", key=f"{key}.{name}", value=repr(value), problem=problem)


def _listed(names: list[str]) -> str:
    listed = ", ".join(names)
    return listed if len(listed) <= 300 else listed[:297] + "..."
