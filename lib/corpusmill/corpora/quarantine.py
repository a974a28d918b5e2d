"""Quarantine: a bad record keeps its source, position, reason and beginning; nothing is lost.

Every reader makes one frame of *checked* records, whose column ``reason`` is null for a
good one. Good and bad are the two sides of that test, so that they always add up to what
was read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from corpusmill.corpora.schemas import QUARANTINE
from corpusmill.errors import DataError
from corpusmill.settings import QuarantineSettings

KEPT_CHARS = 500
"""How much of a bad record is kept, in characters."""

EMPTY_LINE = "empty line"
NOT_UTF8 = "not UTF-8"
TOO_LONG = "too long"
CONTROL_CHARACTERS = "control characters"
WRONG_COLUMNS = "wrong number of columns"
BAD_JSON = "bad JSON"
BAD_COUNT = "bad count"
BAD_TIMESTAMP = "bad timestamp"

_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")


class Read(NamedTuple):
    """What a reader returns.

    Attributes
    ----------
    records : DataFrame
        The good records, in the schema of their kind (`corpusmill.corpora.schemas`).
    quarantine : DataFrame
        The bad ones, in the schema QUARANTINE.
    """

    records: DataFrame
    quarantine: DataFrame


def readable(record: bytes) -> str:
    r"""Return the beginning of a record as text of at most 500 characters.

    Bytes that are no UTF-8 and control characters are written as ``\xNN``.
    """
    text = record[: 4 * KEPT_CHARS].decode("utf-8", "backslashreplace")
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)[:KEPT_CHARS]


def _readable_all(records: pa.Array) -> pa.Array:
    return pa.array([readable(record) for record in records.to_pylist()], pa.string())


_readable = arrow_udf(_readable_all, T.StringType())  # type: ignore[call-overload]


def separate(checked: DataFrame, schema: T.StructType) -> Read:
    """Divide checked records into good and bad.

    Parameters
    ----------
    checked
        The columns of `schema` and ``source`` (string), ``position`` (string), ``reason``
        (string, null for a good record) and ``record`` (binary).
    schema
        The schema of the good records.

    Returns
    -------
    Read
        Both are lazy; the input is scanned once for each.
    """
    good = F.col("reason").isNull()
    bad = checked.where(~good).withColumn("record", _readable("record"))
    return Read(
        checked.where(good).select(*(F.col(field.name) for field in schema)),
        bad.select(*(F.col(field.name) for field in QUARANTINE)),
    )


def union(reads: Sequence[Read]) -> Read:
    """Put what several sources gave under one another."""
    return Read(
        reduce(DataFrame.unionByName, (read.records for read in reads)),
        reduce(DataFrame.unionByName, (read.quarantine for read in reads)),
    )


def count_reasons(quarantine: DataFrame) -> dict[str, int]:
    """Count the bad records by reason; there are about ten reasons, so the answer is small."""
    rows = quarantine.groupBy("reason").count().orderBy("reason").collect()
    return {row["reason"]: row["count"] for row in rows}


def check_share(
    source: str, good: int, reasons: Mapping[str, int], settings: QuarantineSettings
) -> None:
    """Stop a job whose input is mostly bad.

    Parameters
    ----------
    source
        What to name in the message.
    good
        The number of good records.
    reasons
        The number of bad records by reason, as of `count_reasons`.
    settings
        ``max_share`` is the largest share of bad records that is accepted.

    Raises
    ------
    DataError
        DATA02 when the bad share is larger; the commonest reasons come first.
    """
    bad = sum(reasons.values())
    total = good + bad
    if total == 0 or bad <= settings.max_share * total:
        return
    ranked = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    raise DataError(
        "DATA02",
        bad=bad,
        total=total,
        share=bad / total,
        source=source,
        limit=settings.max_share,
        reasons=", ".join(f"{reason} {count}" for reason, count in ranked),
    )
