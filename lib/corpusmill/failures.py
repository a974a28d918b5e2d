"""Spark's failures in one line: what a user can mend, out of a stack of Java and Python frames.

Spark is lazy, so a truncated file or a missing column shows up in the middle of a job, as an
exception of ten thousand characters. A job wraps its actions and asks `explain_spark_failure`.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import Column
from pyspark.sql import functions as F

from corpusmill.errors import CorpusmillError, DataError, SchemaError, UsageError

_HEADER_MARK = "corpusmill header"
_MEMORY_HINT = (
    "raise spark.executor.memory and spark.executor.pyspark.memory, "
    "or lower spark.sql.execution.arrow.maxRecordsPerBatch"
)


def header_mismatch(source: Column, found: Column, expected: str) -> Column:
    """Return the message to raise in Spark SQL for a file with another header."""
    shown = F.coalesce(F.left(found, F.lit(200)), F.lit("(not readable)"))
    return F.concat(
        F.lit(f"{_HEADER_MARK} <"),
        source,
        F.lit("> <"),
        F.translate(shown, "\t", ","),
        F.lit(f"> <{expected[:200]}>".replace("\t", ",")),
    )


def explain_spark_failure(error: BaseException) -> CorpusmillError | None:
    """Translate what Spark raised into an error that a user can mend.

    Parameters
    ----------
    error
        Whatever an action raised.

    Returns
    -------
    CorpusmillError or None
        An error of one line: a damaged file by its name, a missing path, a missing column, a
        changed header, lack of memory, an error of ours raised in a worker. None when the
        failure is none of these, and a traceback is the honest answer.
    """
    if isinstance(error, CorpusmillError):
        return error
    # What reaches a store or a tracking server raises errors of its own kinds, not sockets'.
    if isinstance(error, (Py4JNetworkError, ConnectionRefusedError, ConnectionResetError)):
        hint = "raise spark.driver.memory, 1 GiB by default, in spark.conf or by spark-submit"
        return CorpusmillError("SPARK07", hint=hint)
    text = str(error)
    for explain in (
        _header,
        _damaged_file,
        _missing_path,
        _missing_column,
        _overflow,
        _memory,
        _disk,
        _ours,
    ):
        found = explain(text)
        if found is not None:
            return found
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an exception that says something, of at most 200 characters."""
    lines = [line.strip().removeprefix(": ") for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith("An error occurred while")]
    return _without_class(telling[0])[:200] if telling else type(error).__name__


def _header(text: str) -> CorpusmillError | None:
    match = re.search(rf"{_HEADER_MARK} <(.*?)> <(.*?)> <(.*?)>", text)
    if not match:
        return None
    source, found, expected = match.groups()
    problem = f"its header is {found!r} where another file of this source has {expected!r}"
    return DataError("DATA01", source=source, problem=problem)


def _damaged_file(text: str) -> CorpusmillError | None:
    match = re.search(
        r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (.*?)\.\s+(?=[A-Z])",
        text,
    )
    if not match:
        return None
    kind, file = match.groups()
    if kind == "FILE_NOT_EXIST":
        return DataError("DATA01", source=file, problem="the file vanished while it was read")
    if "Permission denied" in text or "AccessControlException" in text:
        return DataError("DATA01", source=file, problem="no permission to read it")
    if kind == "PARQUET_COLUMN_DATA_TYPE_MISMATCH":
        problem = "its columns are not of the types that the other files of this source have"
        return DataError("DATA01", source=file, problem=problem)
    return DataError("DATA01", source=file, problem=f"damaged or cut short{_cause(text, file)}")


def _cause(text: str, file: str) -> str:
    causes = re.findall(r"^Caused by: (.*)$", text, re.MULTILINE)
    if not causes:
        return ""
    cause = _without_class(causes[-1]).replace(file, "it")
    return f" ({cause[:160]})"


def _missing_path(text: str) -> CorpusmillError | None:
    match = re.search(r"\[PATH_NOT_FOUND\] Path does not exist: (.*?)\. SQLSTATE", text)
    if not match:
        return None
    return UsageError("CONF06", key="path", path=match.group(1), problem="no such file or folder")


def _missing_column(text: str) -> CorpusmillError | None:
    match = re.search(r"\[UNRESOLVED_COLUMN\.\w+\].*? with name `(.*?)` cannot", text)
    if not match:
        return None
    there = re.search(r"one of the following\? \[(.*?)\]", text)
    expected = f"one of {there.group(1)}" if there else "a column of the input"
    return SchemaError("DATA04", column=match.group(1), found="missing", expected=expected)


def _overflow(text: str) -> CorpusmillError | None:
    if "[ARITHMETIC_OVERFLOW]" not in text:
        return None
    problem = "they add up to more than 64 bits hold; write them in thousands"
    return DataError("DATA01", source="the counts", problem=problem)


def _memory(text: str) -> CorpusmillError | None:
    if "java.lang.OutOfMemoryError" in text:
        return CorpusmillError("SPARK01", problem="Java's heap is full", hint=_MEMORY_HINT)
    if re.search(r"^MemoryError\b|ArrowMemoryError", text, re.MULTILINE):
        return CorpusmillError("SPARK01", problem="a Python worker's is full", hint=_MEMORY_HINT)
    if "Python worker exited unexpectedly" in text:
        return CorpusmillError("SPARK02", hint=_MEMORY_HINT)
    return None


def _disk(text: str) -> CorpusmillError | None:
    if "No space left on device" not in text:
        return None
    return CorpusmillError("SPARK05")


def _ours(text: str) -> CorpusmillError | None:
    match = re.search(r"^corpusmill\.errors\.\w+: (.*)$", text, re.MULTILINE)
    return DataError("SPARK03", problem=match.group(1)) if match else None


def _without_class(line: str) -> str:
    """Drop the Java class before a message; keep its short name where the message is one word."""
    shorter = re.sub(r"^(?:[\w$.]+(?:Exception|Error): )+(?=\S+ )", "", line)
    return re.sub(r"^(?:\w+\.)+(\w+(?:Exception|Error)\b)", r"\1", shorter)
