"""Documents with coreference through Spark: files cut anywhere, quarantine, text and back."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from corpusmill.corpora import coreference_conll2012 as conll2012
from corpusmill.corpora.annotated_documents import (
    DocumentsSettings,
    read_documents,
    write_documents,
)
from corpusmill.corpora.annotated_rows import NOT_CLOSED, AnnotatedDocument
from corpusmill.corpora.coreference_formats import DUPLICATE, NOT_UTF8, FormatName, parse_file
from corpusmill.corpora.quarantine import TOO_LONG, Read
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS
from corpusmill.errors import UsageError
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings(max_record_chars=10_000_000)
NAMES = [field.name for field in ANNOTATED_DOCUMENTS]


def text(name: str, *cells: str, part: int = 0) -> str:
    lines = [
        f"{name}\t{part}\t{number}\tw{number}\tX\t*\t-\t-\t-\tAda\t*\t{cell}"
        for number, cell in enumerate(cells)
    ]
    return "\n".join(
        [f"#begin document ({name}); part {part:03d}", *lines, "", "#end document", ""]
    )


def read(spark: SparkSession, path: Path | str, **options: Any) -> Read:
    return read_documents(spark, DocumentsSettings(path=str(path), **options), LIMITS)


def names(found: Read) -> list[tuple[str, int]]:
    return sorted((row["document_id"], row["part"]) for row in found.records.collect())


def bad(found: Read) -> list[tuple[str, str, str]]:
    told = ((Path(row["source"]).name, *row[1:3]) for row in found.quarantine.collect())
    return sorted(told)


def rows_of(records: DataFrame) -> list[dict[str, Any]]:
    rows = (row.asDict() for row in records.collect())
    return sorted(rows, key=lambda row: (row["document_id"], row["part"]))


@contextmanager
def conf(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    before = spark.conf.get(key)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        spark.conf.set(key, str(before))


@pytest.mark.spark
def test_a_folder_with_bad_documents(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.v4_gold_conll.gz").write_bytes(
        gzip.compress(
            text("nw/a", "(0)", "(1", "1)|(0)").encode()
            + b"stray\n"
            + text("nw/b", "(0)", "(1").encode()
            + text("nw/a", "-", part=1).encode()
            + text("nw/c", "-").replace("w0", "w\xff").encode("latin-1")
        )
    )
    (tmp_path / "b_conll").write_text(text("nw/a", "-") + text("nw/d", "(3)"), encoding="utf-8")
    found = read(spark, tmp_path)
    assert [field.name for field in found.records.schema] == NAMES
    assert names(found) == [("nw/a", 0), ("nw/a", 1), ("nw/d", 0)]
    (kept,) = (row for row in rows_of(found.records) if row["mention_starts"] == [0, 1, 2])
    assert (kept["words"], kept["mention_clusters"], kept["genre"]) == (
        ["w0", "w1", "w2"], [0, 1, 0], "nw"
    )  # fmt: skip
    assert bad(found) == [
        ("a.v4_gold_conll.gz", "line 10", NOT_CLOSED),
        ("a.v4_gold_conll.gz", "line 18", NOT_UTF8),
        ("a.v4_gold_conll.gz", "line 7", conll2012.OUTSIDE),
        ("b_conll", "line 1", DUPLICATE),
    ]
    records = {row["position"]: row["record"] for row in found.quarantine.collect()}
    assert records["line 10"].startswith("#begin document (nw/b)")
    assert records["line 18"].endswith("#end document\\x0a")


@pytest.mark.spark
def test_a_file_in_blocks_is_read_like_a_whole_one(spark: SparkSession, tmp_path: Path):
    many = "".join(text(f"d{number:03d}", *["(0)"] * (number % 7 + 1)) for number in range(60))
    many += text("broken", "(0") + text("d000", "-")
    path = tmp_path / "many_conll"
    path.write_text(many, encoding="utf-8")
    whole = read(spark, path)
    with conf(spark, "spark.sql.files.maxPartitionBytes", "4096"):
        cut = read(spark, path)
        rows = rows_of(cut.records)
        assert len(rows) == 60
        assert rows == rows_of(whole.records)
        _, places, reasons = zip(*bad(cut), strict=True)
    assert sorted(reasons) == sorted([NOT_CLOSED, DUPLICATE])
    assert all(place.startswith("byte ") for place in places)


@pytest.mark.spark
def test_options_of_reading(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "few_conll"
    path.write_text(text("d", "(0)", "(1)", "(0)") + text("e", "(0)"), encoding="utf-8")
    found = rows_of(read(spark, path, speakers="blank", singletons=False).records)
    assert [row["mention_clusters"] for row in found] == [[0, 0], []]
    assert found[0]["speakers"] == ["", "", ""]
    assert rows_of(read(spark, path).records)[1]["speakers"] == ["Ada"]


@pytest.mark.spark
def test_documents_that_are_too_long(spark: SparkSession, tmp_path: Path):
    path = tmp_path / "long_conll"
    path.write_text(text("long", *["-"] * 50) + text("short", "-"), encoding="utf-8")
    settings = DocumentsSettings(path=str(path))
    found = read_documents(spark, settings, QuarantineSettings(max_record_chars=500))
    assert names(found) == [("short", 0)]
    assert bad(found) == [("long_conll", "line 1", TOO_LONG)]


@pytest.mark.spark
def test_json_lines(spark: SparkSession, tmp_path: Path):
    line = json.dumps({"document_id": "a", "sentences": [["w"]], "clusters": [[[0, 2]]]})
    good = json.dumps({"document_id": "b", "sentences": [["w"]], "clusters": [[[0, 1]]]})
    (tmp_path / "docs.jsonl").write_text(f"{line}\n{good}\n", encoding="utf-8")
    found = read(spark, tmp_path / "*.jsonl", format="json")
    assert names(found) == [("b", 0)]
    ((_, place, _),) = bad(found)
    assert place == "line 1, token 1"


@pytest.mark.spark
def test_conll_u_without_names_is_a_document_a_file(spark: SparkSession, tmp_path: Path):
    for name in ("one.conllu", "two b.conllu"):
        (tmp_path / name).write_text("1\tw\t_\tX\t_\t_\t0\troot\t_\t_\n\n", encoding="utf-8")
    found = read(spark, tmp_path, format="conllu")
    assert names(found) == [("one", 0), ("two b", 0)]
    assert [row["mention_starts"] for row in rows_of(found.records)] == [None, None]


@pytest.mark.spark
@pytest.mark.parametrize("format", ["conll2012", "conllu", "json"])
def test_written_documents_are_read_back(spark: SparkSession, tmp_path: Path, format: FormatName):
    (tmp_path / "few_conll").write_text(
        text("d", "(0)", "(1", "1)|(0)") + text("d", "-", part=1) + text("e", ""), encoding="utf-8"
    )
    records = read(spark, tmp_path / "few_conll").records
    out = tmp_path / "out"
    out.mkdir()
    (out / "part-old").write_text("left by another run", encoding="utf-8")
    write_documents(records, str(out), format)
    again = read(spark, out, format=format)
    kept = [name for name in NAMES if name not in ("constituent_labels", "lemmas")]
    assert rows_of(again.records.select(kept)) == rows_of(records.select(kept))
    assert bad(again) == []
    files = [path for path in out.iterdir() if path.name.startswith("part-")]
    assert [row["document_id"] for path in files for row in parse_file(path, format)]


@pytest.mark.spark
def test_predicted_mentions_take_the_place_of_gold(spark: SparkSession, tmp_path: Path):
    (tmp_path / "one_conll").write_text(text("d", "(0)", "-", "-"), encoding="utf-8")
    predicted = read(spark, tmp_path / "one_conll").records.withColumns(
        {
            "mention_starts": F.array(*(F.lit(start) for start in (1, 0, 1))),
            "mention_ends": F.array(*(F.lit(end) for end in (2, 3, 2))),
            "mention_clusters": F.array(*(F.lit(cluster) for cluster in (5, 5, 6))),
        }
    )
    write_documents(predicted.coalesce(1), str(tmp_path / "out"), "conll2012")
    (path,) = (tmp_path / "out").glob("part-*")
    lines = path.read_text(encoding="utf-8").split("\n")
    assert [line.split("\t")[-1] for line in lines[1:4]] == ["(5", "(5)", "5)"]
    assert lines[0] == "#begin document (d); part 000"
    assert lines[-3:] == ["", "#end document", ""]


@pytest.mark.spark
def test_nothing_to_read(spark: SparkSession, tmp_path: Path):
    with pytest.raises(UsageError, match=r"documents\.path"):
        read(spark, tmp_path / "nowhere")


def test_a_document_has_the_fields_of_its_schema():
    assert list(AnnotatedDocument._fields) == NAMES


def test_unknown_formats_are_refused():
    with pytest.raises(ValidationError, match="conll2012"):
        DocumentsSettings.model_validate({"path": "x", "format": "conll2003"})


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("coref_gum/ontogum/train.v4_gold_conll.gz", (177, 10_224, 177_410, 23_302, 5_299)),
        ("coref_gum/ontogum/dev.v4_auto_conll.gz", (30, 1_575, 28_119, 3_815, 855)),
        ("coref_gum/gum/train.v4_auto_conll.gz", (177, 10_224, 177_410, 49_649, 25_638)),
        ("coref_gum/gum/dev.v4_gold_conll.gz", (30, 1_575, 28_119, 7_897, 3_932)),
        ("coref_litbank/litbank/train.v4_auto_conll.gz", (80, 6_755, 169_456, 23_218, 6_344)),
        ("coref_litbank/litbank/dev.v4_gold_conll.gz", (10, 927, 20_438, 3_053, 776)),
        ("coref_gum/dep/dev.conllu.gz", (30, 1_575, 28_119, None, None)),
    ],
)
def test_real_documents(
    spark: SparkSession, corpora: Path, path: str, expected: tuple[int | None, ...]
):
    found = read(spark, corpora / path, format="conllu" if "conllu" in path else "conll2012")
    sums = [
        F.count("*"),
        F.sum(F.size("sentence_offsets") - 1),
        F.sum(F.size("words")),
        F.sum(F.when(F.col("mention_starts").isNotNull(), F.size("mention_starts"))),
        F.sum(
            F.when(
                F.col("mention_clusters").isNotNull(), F.size(F.array_distinct("mention_clusters"))
            )
        ),
    ]
    assert tuple(found.records.select(*sums).first() or ()) == expected
    assert found.quarantine.count() == 0
