"""Raw reading: bytes in, every line accounted for, bad files named."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.query_logs import read_query_logs
from corpusmill.corpora.sources import (
    SourceSettings,
    _count_within,
    read_lines,
)
from corpusmill.errors import CorpusmillError, DataError, SchemaError, UsageError
from corpusmill.failures import explain_spark_failure
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings(max_record_chars=1000)


def failure(action) -> CorpusmillError:
    """Run an action that must fail; return the failure as a user sees it."""
    with pytest.raises(Exception, match=r".") as caught:
        action()
    found = explain_spark_failure(caught.value)
    assert found is not None, caught.value
    assert "\n" not in str(found)
    return found


def read(spark: SparkSession, path: object, **options):
    return read_query_logs(spark, [SourceSettings(path=str(path), **options)], LIMITS)


def lines_of(spark: SparkSession, path: object, **options) -> int:
    found = read(spark, path, **options)
    return found.records.count() + found.quarantine.count()


@given(st.lists(st.integers(0, 2), max_size=30), st.lists(st.integers(0, 30), max_size=3))
def test_line_numbers_agree_with_counting(blocks: list[int], cuts: list[int]):
    expected, last, count = [], None, 0
    for block in blocks:
        count = count + 1 if block == last else 1
        last = block
        expected.append(count)
    found: list[int] = []
    carried, number = None, 0
    for part in np.split(np.array(blocks, dtype=np.int64), sorted(cuts)):
        if len(part):
            numbers = _count_within(part, carried, number)
            carried, number = part[-1], int(numbers[-1])
            found += numbers.tolist()
    assert found == expected


SOUP = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.sampled_from(
            [b"a\t1", b"b\t0", b"\t1", b"", b"x\t2\t3", b"\xff\t1", b"c\t7\r", b"\xc3\xa9\t9"]
        ),
    ),
    max_size=20,
)


@pytest.mark.slow
@pytest.mark.spark
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(files=st.lists(st.tuples(SOUP, st.booleans(), st.booleans()), min_size=8, max_size=12))
def test_nothing_is_lost_of_byte_soup(spark: SparkSession, tmp_path: Path, files):
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    expected = {}
    for number, (lines, ends, zipped) in enumerate(files):
        data = b"query\tcount\n" + b"\n".join(lines) + (b"\n" if ends else b"")
        name = f"{number}.tsv.gz" if zipped else f"{number}.tsv"
        (folder / name).write_bytes(gzip.compress(data) if zipped else data)
        expected.update({(name, place): line for place, line in enumerate(data.split(b"\n"), 1)})
        if data.endswith(b"\n"):  # what follows the last line feed is no line
            expected.pop((name, data.count(b"\n") + 1))
        expected.pop((name, 1))
    found = read(spark, folder, header=True, count="count")
    good = [row["query"] for row in found.records.select("query").collect()]
    bad = [
        (row["source"].rpartition("/")[2], int(row["position"].removeprefix("line ")))
        for row in found.quarantine.collect()
    ]
    assert len(set(bad)) == len(bad)
    assert set(bad) <= set(expected)
    kept = [line for place, line in expected.items() if place not in set(bad)]
    assert sorted(good) == sorted(line.split(b"\t")[0].decode() for line in kept)


@pytest.mark.spark
def test_a_line_of_ten_megabytes(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_bytes(b"before\n" + b"x" * 10_000_000 + b"\nafter\n" + b"\xff\x00" * 5_000_000)
    found = read(spark, path, query=0)
    assert sorted(row["query"] for row in found.records.collect()) == ["after", "before"]
    bad = sorted(found.quarantine.collect(), key=lambda row: row["position"])
    assert [(row["position"], row["reason"]) for row in bad] == [
        ("line 2", "too long"),
        ("line 4", "too long"),
    ]
    assert bad[0]["record"] == "x" * 500
    assert bad[1]["record"].startswith("\\xff\\x00\\xff")
    assert len(bad[1]["record"]) == 500


@pytest.mark.spark
def test_length_counts_characters_not_bytes(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_text("é" * 1000 + "\n" + "é" * 1001, encoding="utf-8")
    found = read(spark, path, query=0)
    assert found.records.count() == 1
    assert count_reasons(found.quarantine) == {"too long": 1}


@pytest.mark.spark
def test_reasons_are_told_apart(spark: SparkSession, tmp_path: Path):
    lines = [
        b"good\t3",
        b"\xffbad\t1",
        b"bell\x07\t1",
        b"three\t1\t2",
        b"one",
        b"zero\t0",
        b"minus\t-1",
        b"half\t1.5",
        b"much\t99999999999999999999",
        b"none\t",
        b" \t4",
        b"",
    ]
    path = tmp_path / "log.tsv"
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = read(spark, path, columns=["query", "count"], count="count")
    assert [(row["query"], row["count"]) for row in found.records.collect()] == [("good", 3)]
    assert count_reasons(found.quarantine) == {
        "not UTF-8": 1,
        "control characters": 1,
        "wrong number of columns": 2,
        "bad count": 5,
        "empty query": 1,
        "empty line": 1,
    }


@pytest.mark.spark
def test_split_file_names_byte_and_line(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "log.tsv"
    path.write_bytes(b"0123456789abcdef\n" * 4000)
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "10000")
    try:
        rows = read_lines(spark, str(path), "key").drop("value").collect()
    finally:
        assert before is not None
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert len(rows) == 4000
    blocks: dict[int, list[int]] = {}
    for row in rows:
        blocks.setdefault(row["block"], []).append(row["line"])
    assert len(blocks) == 7
    assert all(sorted(lines) == list(range(1, len(lines) + 1)) for lines in blocks.values())


@pytest.mark.spark
@pytest.mark.parametrize("name", ["nope.tsv", "*.nope", "foo://bucket/log", "empty"])
def test_nothing_to_read_is_a_usage_error(spark: SparkSession, tmp_path: Path, name: str):
    (tmp_path / "empty").mkdir()
    path = name if "://" in name else str(tmp_path / name)
    with pytest.raises(
        UsageError, match=r"CONF06: cannot read sources\.0\.path = '.+': .+"
    ) as caught:
        read(spark, path, query=0)
    assert caught.value.exit_status == 2


@pytest.mark.spark
def test_folder_and_glob_and_gzip(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text("q\none\n")
    (tmp_path / "b.tsv.gz").write_bytes(gzip.compress(b"q\ntwo\nthree"))
    (tmp_path / "c.tsv").write_bytes(b"")
    for path in (tmp_path, tmp_path / "*.tsv*", f"file://{tmp_path}"):
        found = read(spark, path, header=True, query="q")
        assert sorted(row["query"] for row in found.records.collect()) == ["one", "three", "two"]
        assert found.quarantine.count() == 0


@pytest.mark.spark
def test_empty_file_and_header_alone_are_no_rows(spark: SparkSession, tmp_path: Path):
    (tmp_path / "empty.tsv").write_bytes(b"")
    (tmp_path / "header.tsv").write_bytes(b"query\tn\n")
    for name in ("empty.tsv", "header.tsv"):
        found = read(spark, tmp_path / name, header=True)
        assert (found.records.count(), found.quarantine.count()) == (0, 0)


@pytest.mark.spark
def test_header_that_differs_names_the_file(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text("query\tn\none\t1\n" * 1 + "two\t2\n" * 500)
    (tmp_path / "b.tsv").write_text("n\tquery\n1\tone\n")
    found = failure(lambda: lines_of(spark, tmp_path, header=True))
    assert isinstance(found, DataError)
    assert "tsv: its header is" in str(found)
    assert "query,n" in str(found)
    assert "n,query" in str(found)


@pytest.mark.spark
def test_a_second_header_line_is_a_record(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text("query\nquery\n")
    assert read(spark, tmp_path, header=True).records.count() == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"header": True, "query": "q"},
            "sources.0.query = 'q': no such column; there are query, n",
        ),
        ({"header": True, "query": 2}, "columns have the numbers 0 to 1"),
        ({"query": -1}, "numbers begin at 0"),
        ({}, "without a header, name the columns"),
        ({"format": "jsonl", "query": 0}, "a number names a column of a tsv"),
    ],
)
def test_column_that_is_not_there(spark: SparkSession, tmp_path: Path, options, problem: str):
    (tmp_path / "a.tsv").write_text("query\tn\none\t1\n")
    with pytest.raises(UsageError, match="CONF04") as caught:
        read(spark, tmp_path, **options)
    assert problem in str(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize("header", [True, False])
def test_truncated_gzip_is_named(spark: SparkSession, tmp_path: Path, header: bool):
    noise = np.random.default_rng(5).integers(97, 123, 400_000, dtype=np.uint8)
    noise[::20] = 10
    whole = gzip.compress(b"q\n" + noise.tobytes())
    (tmp_path / "log.tsv.gz").write_bytes(whole[: len(whole) // 2])
    found = failure(lambda: lines_of(spark, tmp_path, header=header, query=0))
    assert isinstance(found, DataError)
    assert "log.tsv.gz: damaged or cut short (Unexpected end of input stream)" in str(found)


@pytest.mark.spark
def test_gzip_that_is_none_is_named(spark: SparkSession, tmp_path: Path):
    (tmp_path / "log.tsv.gz").write_bytes(b"\x00\x01 not gzip" * 100)
    found = failure(lambda: lines_of(spark, tmp_path, query=0))
    assert "log.tsv.gz: damaged or cut short (not a gzip file)" in str(found)


@pytest.mark.spark
def test_json_lines(spark: SparkSession, tmp_path: Path):
    lines = [
        '{"query": "a", "n": 2, "more": {"x": []}}',
        ' {"n": "3", "query": "b"} ',
        '{"query": "a"}{"query": "b"}',
        '{"query": "a", "n": 1} rest',
        '[{"query": "a", "n": 1}]',
        '"query"',
        '{"query": "a", ',
        '{"n": 1}',
        '{"query": null, "n": 1}',
        '{"query": "\\u0000", "n": 1}',
        '{"query": "c", "n": 1.0}',
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    found = read(spark, tmp_path, format="jsonl", count="n")
    assert [(r["query"], r["count"]) for r in found.records.collect()] == [("a", 2), ("b", 3)]
    assert count_reasons(found.quarantine) == {
        "bad JSON": 5,
        "empty query": 2,
        "control characters": 1,
        "bad count": 1,
    }


@pytest.mark.spark
def test_parquet(spark: SparkSession, tmp_path: Path):
    binary = pa.array([b"a", b"\xff", b"", None, b"e\x00", b"f" * 2000], pa.binary())
    count = pa.array([1, 2, 3, 4, 5, 6], pa.int32())
    pq.write_table(pa.table({"q": binary, "n": count}), tmp_path / "log.parquet")
    found = read(spark, tmp_path, format="parquet", query="q", count="n")
    assert [(r["query"], r["count"]) for r in found.records.collect()] == [("a", 1)]
    bad = {row["position"]: row["reason"] for row in found.quarantine.collect()}
    assert bad == {
        "row 2": "not UTF-8",
        "row 3": "empty query",
        "row 4": "empty query",
        "row 5": "control characters",
        "row 6": "too long",
    }


@pytest.mark.spark
def test_damaged_parquet_is_named(spark: SparkSession, tmp_path: Path):
    query = pa.array([json.dumps(number) for number in range(5000)])
    pq.write_table(pa.table({"query": query}), tmp_path / "a b%.parquet")
    good = (tmp_path / "a b%.parquet").read_bytes()

    def count() -> int:
        return read(spark, tmp_path, format="parquet").records.count()

    assert count() == 5000
    (tmp_path / "zero.parquet").write_bytes(b"")
    assert "zero.parquet: a Parquet file of zero bytes" in str(failure(count))
    (tmp_path / "zero.parquet").write_bytes(good[: len(good) // 2])
    assert "zero.parquet: damaged or cut short" in str(failure(count))
    (tmp_path / "zero.parquet").unlink()
    (tmp_path / "a b%.parquet").write_bytes(b"")
    assert isinstance(failure(count), UsageError | DataError)


@pytest.mark.spark
def test_parquet_column_of_another_kind(spark: SparkSession, tmp_path: Path):
    pq.write_table(pa.table({"query": pa.array([["a"], ["b"]])}), tmp_path / "log.parquet")
    with pytest.raises(SchemaError, match="DATA04: column 'query' is array<string>"):
        read(spark, tmp_path, format="parquet")
    with pytest.raises(UsageError, match="no such column; there are query"):
        read(spark, tmp_path, format="parquet", query="q")
