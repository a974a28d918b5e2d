"""Spark's failures as one line."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from corpusmill.errors import CorpusmillError, DataError, SchemaError, UsageError
from corpusmill.failures import explain_spark_failure, first_line


def test_error_of_ours_passes_through():
    error = DataError("DATA01", source="a", problem="b")
    assert explain_spark_failure(error) is error


def test_unknown_failure_stays_unknown():
    assert explain_spark_failure(ZeroDivisionError("division by zero")) is None


def test_java_heap():
    error = RuntimeError("An error occurred\n: java.lang.OutOfMemoryError: Java heap space")
    assert "SPARK01" in str(explain_spark_failure(error))


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer is empty"), ConnectionRefusedError()])
def test_java_that_has_ended(error: Exception):
    assert str(explain_spark_failure(error)).startswith("SPARK07: Java")


def test_counts_that_overflow():
    error = RuntimeError("[ARITHMETIC_OVERFLOW] long overflow. Use 'try_add' ... SQLSTATE: 22003")
    found = str(explain_spark_failure(error))
    assert found.startswith("DATA01: the counts: they add up to more than 64 bits hold")


def test_full_disk():
    error = RuntimeError("Task failed\nCaused by: java.io.IOException: No space left on device")
    assert str(explain_spark_failure(error)).startswith("SPARK05: no space left on the device")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('calling o9.text.\n: org.x.BadException: No FileSystem for "x"', 'No FileSystem for "x"'),
        ("java.net.UnknownHostException: nowhere", "UnknownHostException: nowhere"),
    ],
)
def test_first_line_tells_the_problem(text: str, line: str):
    prefix = "An error occurred while " if text.startswith("calling") else ""
    assert first_line(RuntimeError(prefix + text)) == line


@pytest.mark.parametrize(
    ("kind", "rest", "problem"),
    [
        (
            "NO_HINT",
            " SQLSTATE: KD001\nCaused by: java.io.EOFException: Unexpected end",
            "cut short",
        ),
        ("CANNOT_READ_FILE_FOOTER", "Could not read footer.", "damaged or cut short"),
        ("FILE_NOT_EXIST", "File does not exist.", "vanished"),
        ("PARQUET_COLUMN_DATA_TYPE_MISMATCH", "Data type mismatches", "types that the other files"),
    ],
)
def test_damaged_file_is_named(kind: str, rest: str, problem: str):
    where = "Encountered error while reading file s3a://b/a 1.x.gz."
    text = f"x\n[FAILED_READ_FILE.{kind}] {where} {rest}"
    found = str(explain_spark_failure(RuntimeError(text)))
    assert found.startswith("DATA01: s3a://b/a 1.x.gz: ")
    assert problem in found


def out_of_memory(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise MemoryError("no")
    yield from batches


def own_error(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise DataError("DATA01", source="f.gz", problem="is odd")
    yield from batches


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kernel", "line"),
    [
        (out_of_memory, "SPARK01: out of memory: .*"),
        (own_error, "SPARK03: DATA01: f.gz: is odd .*"),
    ],
)
def test_worker_failures(spark: SparkSession, kernel, line: str):
    with pytest.raises(Exception, match=r"PYTHON|Python") as caught:
        spark.range(2).mapInArrow(kernel, "id long").collect()
    found = explain_spark_failure(caught.value)
    assert isinstance(found, CorpusmillError)
    with pytest.raises(CorpusmillError, match=line):
        raise found


@pytest.mark.spark
def test_missing_column_and_path(spark: SparkSession):
    with pytest.raises(Exception, match="UNRESOLVED") as caught:
        spark.range(2).select("nope").collect()
    found = explain_spark_failure(caught.value)
    assert isinstance(found, SchemaError)
    assert str(found) == "DATA04: column 'nope' is missing; expected one of `id`"
    with pytest.raises(Exception, match="PATH_NOT_FOUND") as caught:
        spark.read.text("/no/such/thing")
    assert isinstance(explain_spark_failure(caught.value), UsageError)
