"""Query logs of any layout -> QUERIES: TSV, JSON lines or Parquet, with count and time or not."""

from __future__ import annotations

import re

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from corpusmill.corpora import quarantine as bad
from corpusmill.corpora.quarantine import Read, separate, union
from corpusmill.corpora.schemas import QUERIES
from corpusmill.corpora.sources import SourceSettings, read_table
from corpusmill.errors import UsageError
from corpusmill.settings import QuarantineSettings

EMPTY_QUERY = "empty query"
FIRST_YEAR = 1969
"""Two-digit years are 1969-2068, as in POSIX."""


def read_query_logs(
    spark: SparkSession,
    sources: list[SourceSettings],
    quarantine: QuarantineSettings,
    key: str = "sources",
) -> Read:
    """Read query logs, each source with its own layout.

    Parameters
    ----------
    spark
        The session.
    sources
        At least one.
    quarantine
        How long a record may be.
    key
        The conf key of `sources`, for messages.

    Returns
    -------
    Read
        QUERIES, one row a usable line, the query as it stands there; and QUARANTINE. Together
        they are the lines read, less one header line a file. Both are lazy.

    Raises
    ------
    UsageError
        A path with nothing to read, a column that is not there, a bad timestamp pattern.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.

    Notes
    -----
    A count must be a whole number above zero; without a count column each line counts once. An
    empty time is a null, one that cannot be read sends the line to quarantine.
    """
    if not sources:
        raise UsageError("CONF05", key=key, problem="name at least one query log")
    reads = [
        _read_log(spark, source, quarantine, f"{key}.{place}")
        for place, source in enumerate(sources)
    ]
    return union(reads)


def _read_log(
    spark: SparkSession, source: SourceSettings, limits: QuarantineSettings, key: str
) -> Read:
    _check_pattern(spark, source.timestamp_format, key)
    fields = {"query": source.query}
    if source.count is not None:
        fields["count"] = source.count
    if source.timestamp is not None:
        fields["timestamp"] = source.timestamp
    return separate(_interpret(read_table(spark, source, fields, limits, key), source), QUERIES)


def _interpret(table: DataFrame, source: SourceSettings) -> DataFrame:
    """Turn count and time into numbers, with a reason where that fails."""
    count, time = F.lit(1).cast("long"), F.lit(None).cast("timestamp")
    reasons = [F.when(F.coalesce(F.trim("query"), F.lit("")) == "", EMPTY_QUERY)]
    if source.count is not None:
        digits = F.when(F.trim("count").rlike(r"^\+?[0-9]+$"), F.trim("count"))
        count = digits.try_cast("long")
        reasons.append(F.when(F.coalesce(count, F.lit(0)) < 1, bad.BAD_COUNT))
    if source.timestamp is not None:
        given = F.nullif(F.trim("timestamp"), F.lit(""))
        time = _parse_time(given, source.timestamp_format)
        reasons.append(F.when(given.isNotNull() & time.isNull(), bad.BAD_TIMESTAMP))
    return table.select(
        "source",
        "position",
        F.coalesce("reason", *reasons).alias("reason"),
        "record",
        "query",
        count.alias("count"),
        time.alias("timestamp"),
    )


def _parse_time(text: Column, pattern: str | None) -> Column:
    if pattern is None:
        return F.try_to_timestamp(text)
    if pattern == "unix":
        return F.timestamp_seconds(text.try_cast("double"))
    time = F.try_to_timestamp(text, F.lit(pattern))
    if re.search(r"(?<!y)yy(?!y)", pattern):
        # Spark reads 97 as 2097; logs are of the past.
        century = F.make_ym_interval(F.lit(-100), F.lit(0))
        time = F.when(F.year(time) >= FIRST_YEAR + 100, time + century).otherwise(time)
    return time


def _check_pattern(spark: SparkSession, pattern: str | None, key: str) -> None:
    if pattern in (None, "unix"):
        return
    try:
        spark.range(1).select(F.try_to_timestamp(F.lit("0"), F.lit(pattern))).collect()
    except Exception:
        raise UsageError(
            "CONF04",
            key=f"{key}.timestamp_format",
            value=repr(pattern),
            problem="no datetime pattern of Spark; for instance yyyy-MM-dd HH:mm:ss, or unix",
        ) from None
