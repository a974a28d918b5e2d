"""The ingest job: raw files to Parquet, quarantine and counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from corpusmill import storage
from corpusmill.corpora.pipeline import JOB, IngestSettings
from corpusmill.runner import run_job
from corpusmill.settings import load

ROOT = Path(__file__).resolve().parents[2]


def write_conf(folder: Path, **changes: object) -> str:
    conf = {
        "name": "log",
        "output": str(folder / "out"),
        "tracking": {"enabled": False},
        "input": {
            "kind": "query_log",
            "sources": [{"path": str(folder / "log.tsv"), "header": True, "count": "n"}],
        },
        **changes,
    }
    path = folder / "conf.yaml"
    path.write_text(yaml.safe_dump(conf))
    return str(path)


@pytest.mark.spark
def test_records_quarantine_and_counts(spark: SparkSession, tmp_path: Path):
    good = "".join(f"query {number}\t{number + 1}\n" for number in range(50))
    (tmp_path / "log.tsv").write_bytes(b"query\tn\n" + good.encode() + b"\xff\t1\n\t2\n")
    conf = write_conf(tmp_path)
    assert run_job(JOB, ["run", "--conf", conf], spark) == 0
    output = str(tmp_path / "out")
    records = spark.read.parquet(storage.resolve(output, "records"))
    assert records.count() == 50
    assert records.agg({"count": "sum"}).collect()[0][0] == 50 * 51 // 2
    bad = spark.read.parquet(storage.resolve(output, "quarantine")).collect()
    assert sorted((row["position"], row["reason"]) for row in bad) == [
        ("line 52", "not UTF-8"),
        ("line 53", "empty query"),
    ]
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert metrics == {
        "rows": 50,
        "quarantined": 2,
        "reason.empty_query": 1,
        "reason.not_utf8": 1,
    }


@pytest.mark.slow
@pytest.mark.spark
def test_linked_texts_and_links_of_a_system(spark: SparkSession, tmp_path: Path):
    (tmp_path / "t.jsonl").write_text('{"text": "zor", "concepts": [{"entity": "Zor"}]}\n')
    (tmp_path / "q.tsv").write_text("qid\tquestion\nW-1\tzor?\n")
    (tmp_path / "l.tsv").write_text("qid\tmention\tentity_name\tscore\nW-1\tzor\tZor\t1\n")
    texts = {"kind": "linked_texts", "texts": {"path": str(tmp_path / "t.jsonl")}}
    system = {"path": str(tmp_path / "l.tsv"), "questions": str(tmp_path / "q.tsv")}
    for given in (texts, {"kind": "system_links", "system": system}):
        conf = write_conf(tmp_path, input=given)
        assert run_job(JOB, ["run", "--conf", conf], spark) == 0
        records = spark.read.parquet(storage.resolve(str(tmp_path / "out"), "records"))
        assert "Zor" in str(records.collect())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("data", "status", "line"),
    [
        (b"query\tn\na\t1\nb\t0\n", 1, "DATA02: 1 of 2 records (50.0%) of query_log"),
        (b"query\tn\n", 1, "DATA03: query_log has no usable record; 0 records are in quarantine"),
        (b"question\tn\na\t1\n", 2, "CONF04: input.sources.0.query = 'query': no such column"),
    ],
)
def test_unusable_input_is_one_line(
    spark: SparkSession, tmp_path: Path, capsys, data: bytes, status: int, line: str
):
    (tmp_path / "log.tsv").write_bytes(data)
    assert run_job(JOB, ["run", "--conf", write_conf(tmp_path)], spark) == status
    shown = capsys.readouterr().err.strip().splitlines()
    assert line in shown[-1]
    assert "Traceback" not in "".join(shown)
    assert not (tmp_path / "out" / "current.json").exists()


def test_missing_input_is_told_before_spark_starts(tmp_path: Path, capsys):
    assert run_job(JOB, ["run", "--conf", write_conf(tmp_path)]) == 2
    assert "CONF06: cannot read input.sources.0.path = " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["query_log", "questions", "reuters", "tweets", "webquestions"])
def test_shipped_confs_are_valid(name: str):
    assert load(str(ROOT / "conf" / "ingest" / f"{name}.yaml"), [], IngestSettings).name == name


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("name", "rows", "bad"),
    [
        ("query_log", 203_456, 533),
        ("questions", 40_466, 0),
        ("reuters", 21_578, 0),
        ("tweets", 4_864, 0),
        ("webquestions", 2_032, 0),
    ],
)
def test_real_corpora(
    spark: SparkSession, corpora: Path, tmp_path: Path, monkeypatch, name: str, rows: int, bad: int
):
    monkeypatch.setenv("CORPUSMILL_DATA", str(corpora))
    conf = str(ROOT / "conf" / "ingest" / f"{name}.yaml")
    overrides = [f"output={tmp_path / 'out'}", "tracking.enabled=false"]
    assert run_job(JOB, ["run", "--conf", conf, *overrides], spark) == 0
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    assert (metrics["rows"], metrics["quarantined"]) == (rows, bad)
