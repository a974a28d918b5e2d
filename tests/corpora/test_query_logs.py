"""Query logs of every layout."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.query_logs import read_query_logs
from corpusmill.corpora.schemas import QUARANTINE, QUERIES
from corpusmill.corpora.sources import SourceSettings
from corpusmill.errors import UsageError
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()


def kinds(schema) -> list[tuple[str, object]]:
    return [(field.name, field.dataType) for field in schema]


@pytest.mark.spark
def test_sources_of_different_layouts_become_one_table(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text("first\t2\nsecond\t1\n")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"text": " third "}\n{"text": "  "}\n'))
    spark.createDataFrame([("fourth", "1")], "q string, n string").write.parquet(
        str(tmp_path / "c")
    )
    sources = [
        SourceSettings(path=str(tmp_path / "a.tsv"), query=0, count=1),
        SourceSettings(path=str(tmp_path / "b.jsonl.gz"), format="jsonl", query="text"),
        SourceSettings(path=str(tmp_path / "c"), format="parquet", query="q", count="n"),
    ]
    found = read_query_logs(spark, sources, LIMITS)
    rows = sorted((row["query"], row["count"]) for row in found.records.collect())
    assert rows == [(" third ", 1), ("first", 2), ("fourth", 1), ("second", 1)]
    assert count_reasons(found.quarantine) == {"empty query": 1}
    assert kinds(found.records.schema) == kinds(QUERIES)
    assert kinds(found.quarantine.schema) == kinds(QUARANTINE)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (None, "1997-09-16T10:54:32Z", "yesterday"),
        ("unix", "874407272", "x"),
        ("yyMMddHHmmss", "970916105432", "971316105432"),
        ("dd/MM/yyyy HH:mm:ss", "16/09/1997 10:54:32", "1997-09-16"),
    ],
)
def test_times(spark: SparkSession, tmp_path: Path, pattern: str | None, good: str, bad: str):
    (tmp_path / "log.tsv").write_text(f"a\t{good}\nb\t{bad}\nc\t\n")
    source = SourceSettings(
        path=str(tmp_path / "log.tsv"), query=0, timestamp=1, timestamp_format=pattern
    )
    found = read_query_logs(spark, [source], LIMITS)
    times = {
        row["query"]: row["seconds"]
        for row in found.records.selectExpr("query", "unix_seconds(timestamp) seconds").collect()
    }
    expected = int(datetime(1997, 9, 16, 10, 54, 32, tzinfo=UTC).timestamp())
    assert times == {"a": expected, "c": None}
    assert count_reasons(found.quarantine) == {"bad timestamp": 1}


@pytest.mark.spark
@pytest.mark.parametrize(("text", "year"), [("68", 2068), ("69", 1969), ("00", 2000), ("99", 1999)])
def test_years_of_two_digits(spark: SparkSession, tmp_path: Path, text: str, year: int):
    (tmp_path / "log.tsv").write_text(f"a\t{text}0301\n")
    source = SourceSettings(
        path=str(tmp_path / "log.tsv"), query=0, timestamp=1, timestamp_format="yyMMdd"
    )
    found = read_query_logs(spark, [source], LIMITS).records.selectExpr("year(timestamp) year")
    assert found.collect()[0]["year"] == year


@pytest.mark.spark
def test_bad_pattern_and_no_source(spark: SparkSession, tmp_path: Path):
    (tmp_path / "log.tsv").write_text("a\t1\n")
    source = SourceSettings(
        path=str(tmp_path), query=0, timestamp=1, timestamp_format="YYYY nonsense"
    )
    with pytest.raises(UsageError, match=r"CONF04: input\.sources\.0\.timestamp_format = 'YYYY"):
        read_query_logs(spark, [source], LIMITS, "input.sources")
    with pytest.raises(UsageError, match="at least one query log"):
        read_query_logs(spark, [], LIMITS)


EXCITE = {"timestamp": "timestamp", "timestamp_format": "yyMMddHHmmss"}


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "options", "rows", "reasons"),
    [
        ("trec_web_log_queries.tsv.gz", {}, 110_000, {}),
        ("webis_qspell17_queries.tsv.gz", {}, 54_772, {}),
        ("msmarco_dev_eval_queries.tsv.gz", {}, 19_217, {}),
        ("nq_google_questions.tsv.gz", {}, 12_367, {}),
        ("mimics_manual_bing.tsv.gz", {}, 2_832, {}),
        ("excite_small_1997.tsv.gz", EXCITE, 4_501 - 533, {"empty query": 533}),
        ("trec_web_topics_1-300.jsonl.gz", {"format": "jsonl", "header": False}, 300, {}),
    ],
)
def test_real_logs(spark, corpora: Path, name: str, options, rows: int, reasons):
    source = SourceSettings(path=str(corpora / "query_log" / name), **{"header": True, **options})
    found = read_query_logs(spark, [source], LIMITS)
    assert found.records.count() == rows
    assert count_reasons(found.quarantine) == reasons
    if "timestamp" in options:
        years = found.records.selectExpr("year(timestamp) year").distinct().collect()
        assert [row["year"] for row in years] == [1997]
