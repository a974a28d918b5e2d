"""Trees through Spark: every format gives TREES, every bad record its place in quarantine."""

from __future__ import annotations

import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from corpusmill.corpora.embedded import sample_path
from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.schemas import TREES
from corpusmill.corpora.tree_formats import write_bracketed
from corpusmill.corpora.trees import TreesSettings, read_trees
from corpusmill.errors import UsageError
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()


def read(spark: SparkSession, path: object, limits: QuarantineSettings = LIMITS, **options: Any):
    found = read_trees(spark, TreesSettings(path=str(path), **options), limits)
    assert [field.name for field in found.records.schema] == TREES.names
    assert found.records.schema.simpleString() == TREES.simpleString()
    return found


def trees_of(row: Row) -> list[str]:
    """Write the trees of a row."""
    cuts = list(zip(row["tree_offsets"], row["tree_offsets"][1:], strict=False))
    assert row["tree_offsets"][0] == 0
    assert row["tree_offsets"][-1] == len(row["node_labels"]) == len(row["node_arities"])
    return [write_bracketed(row["node_labels"][b:e], row["node_arities"][b:e]) for b, e in cuts]


def places(found) -> dict[str, str]:
    return {row["position"]: row["reason"] for row in found.quarantine.collect()}


@pytest.mark.spark
def test_table(spark: SparkSession, tmp_path: Path):
    lines = [
        "class\tparse\tother",
        "A\t(S (NP-SBJ dog) (VP barks))\t(X y)",
        " \t( (S (-NONE- *)) )\t",
        "B\t(S (NP)\t(X)",
        "B\t(S)\t(X))",
        "B\t(S",
        "",
        "B\tS\t(X",
        "C\t(S a\\x20b)\t()",
    ]
    (tmp_path / "a.tsv").write_bytes(
        "\n".join(lines).encode() + b"\nC\t(S \xff)\t\nC\t(S \x01)\t\n"
    )
    options: dict[str, Any] = {
        "header": True,
        "target": "class",
        "trees": ["parse", "other"],
    }
    found = read(spark, tmp_path, **options)
    rows = found.records.collect()
    assert [(row["target"], *trees_of(row)) for row in rows] == [
        ("A", "(S (NP-SBJ dog) (VP barks))", "(X y)"),
        (None, "(S (-NONE- *))", "()"),
        ("C", "(S a\\x20b)", "()"),
    ]
    assert {row["example_id"] for row in rows} == {
        row["example_id"] for row in read(spark, tmp_path, **options).records.collect()
    }
    assert len({row["example_id"] for row in rows}) == 3
    assert [row["vector_ids"] for row in rows] == [[], [], []]
    assert places(found) == {
        "line 4, column parse, character 1": "unbalanced bracket",
        "line 5, column other, character 4": "unbalanced bracket",
        "line 6": "wrong number of columns",
        "line 7": "empty line",
        "line 8, column parse, character 1": "text outside of brackets",
        "line 10": "not UTF-8",
        "line 11": "control characters",
    }
    assert found.quarantine.where("position like 'line 4%'").first()["record"] == lines[3].replace(
        "\t", "\\x09"
    )

    bare = read(spark, tmp_path, **options, keep_traces=False, keep_function_tags=False)
    assert [trees_of(row)[0] for row in bare.records.collect()] == [
        "(S (NP dog) (VP barks))",
        "()",
        "(S a\\x20b)",
    ]


@pytest.mark.spark
def test_ids_in_files_of_one_name(spark: SparkSession, tmp_path: Path):
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "part.mrg").write_text(f"(A {number})\n")
    for kind in ("bracketed", "mrg"):
        rows = read(spark, tmp_path / "*" / "part.mrg", format=kind).records.collect()
        assert len({row["example_id"] for row in rows}) == 2


@pytest.mark.spark
def test_ids_of_a_column(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text("x1\t(A)\n \t(B)\nx3\t(C)\nx4\t\n")
    found = read(spark, tmp_path, target=None, trees=[1], example_id=0)
    rows = found.records.collect()
    assert [(row["example_id"], row["target"], *trees_of(row)) for row in rows] == [
        ("x1", None, "(A)"),
        ("x3", None, "(C)"),
        ("x4", None, "()"),
    ]
    assert places(found) == {"line 2": "empty example id"}


@pytest.mark.spark
def test_json_lines_and_parquet_with_brackets(spark: SparkSession, tmp_path: Path):
    values = [("(A b)", "x"), ("(A", "y"), (None, "z"), ("", None)]
    lines = [json.dumps({"t": tree, "c": target}) for tree, target in values]
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, '{"c": "w"}', "{"]) + "\n")
    table = pa.table({"t": [tree for tree, _ in values], "c": [target for _, target in values]})
    pq.write_table(table, tmp_path / "a.parquet")
    for kind, unit in (("jsonl", "line"), ("parquet", "row")):
        found = read(spark, tmp_path / f"a.{kind}", format=kind, target="c", trees=["t"])
        rows = found.records.collect()
        assert [(row["target"], *trees_of(row)) for row in rows] == [("x", "(A b)"), (None, "()")]
        bad = places(found)
        assert bad.pop(f"{unit} 2, column t, character 1") == "unbalanced bracket"
        assert bad.pop(f"{unit} 3") == "no tree"
        assert bad == ({"line 5": "no tree", "line 6": "bad JSON"} if kind == "jsonl" else {})


@pytest.mark.spark
def test_bracketed_lines(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"(A\tb)\r\n\n()\n(\xc3\xa9 (B)) x\n")
    found = read(spark, tmp_path, format="bracketed")
    assert [(row["target"], *trees_of(row)) for row in found.records.collect()] == [
        (None, "(A b)"),
        (None, "()"),
    ]
    assert places(found) == {
        "line 2": "empty line",
        "line 4, character 9": "something after the tree",
    }


@pytest.mark.spark
def test_deep_wide_and_long_lines(spark: SparkSession, tmp_path: Path):
    deep, wide = 100_000, 50_000
    lines = ["(A " * deep + "b" + ")" * deep, "(A" + " (B)" * wide + ")", "(C)", "(A" * deep]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    whole = read(spark, tmp_path, QuarantineSettings(max_record_chars=10**6), format="bracketed")
    sizes = [
        row["size"] for row in whole.records.select(F.size("node_labels").alias("size")).collect()
    ]
    assert sizes == [deep + 1, wide + 1, 1]
    assert places(whole) == {f"line 4, character {2 * deep - 1}": "unbalanced bracket"}
    short = read(spark, tmp_path, format="bracketed")
    assert [trees_of(row) for row in short.records.collect()] == [["(C)"]]
    assert count_reasons(short.quarantine) == {"too long": 3}


@pytest.mark.spark
def test_svm_light_tk(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.dat").write_text(
        "# a comment\n"
        "+1 |BT| (A b) |BT| |ET| 1:0.5 4:2 |EV|\n"
        "-1 |BT| (A) |ET| |BV| |BV| 3:1 |EV|\n"
        "-1\n"
        "1 |BT| (A)\n"
        "1 |BT| (A) |BT| (B |ET|\n"
        "1 |BT| (A) |ET| 1:nan\n"
        "\n"
    )
    found = read(spark, tmp_path, format="svmlight")
    rows = found.records.collect()
    assert [
        (row["target"], trees_of(row), row["vector_ids"], row["vector_values"]) for row in rows
    ] == [
        ("1", ["(A b)", "()"], [1, 4], [0.5, 2.0]),
        ("-1", ["(A)"], [], []),
        ("-1", [], [], []),
    ]
    assert places(found) == {
        "line 5, character 3": "mark without its end",
        "line 6, character 17": "unbalanced bracket",
        "line 7, character 17": "bad vector",
        "line 8": "empty line",
    }
    # What is not wanted is not looked at.
    second = read(spark, tmp_path, format="svmlight", trees=[0], vector=1)
    assert [(trees_of(row), row["vector_ids"]) for row in second.records.collect()] == [
        (["(A b)"], []),
        (["(A)"], [3]),
        (["(A)"], []),
        (["(A)"], []),
    ]


@pytest.mark.spark
def test_kelp(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.klp").write_text(
        "HUM |BS:text| Who ? |ES| |BT:a| (NOTYPE##A(LEX##who::w)) |ET| |BT:b| (B) |ET|\n"
        "LOC |BT:b| (B(C)) |ET|\n"
        "LOC |BT:a| (B(C) |ET| |BT:b| (B) |ET|\n"
    )
    found = read(spark, tmp_path, format="kelp")
    assert [(row["target"], trees_of(row)) for row in found.records.collect()] == [
        ("HUM", ["(A LEX##who::w)", "(B)"]),
        ("LOC", ["(B C)"]),
    ]
    assert places(found) == {"line 3, character 12": "unbalanced bracket"}
    named = read(spark, tmp_path, format="kelp", trees=["b", "a"])
    assert [trees_of(row) for row in named.records.collect()] == [["(B)", "(A LEX##who::w)"]]
    assert set(places(named).values()) == {"no tree a", "unbalanced bracket"}


@pytest.mark.spark
def test_json(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.json").write_text(
        '["Call", {"label": "Name", "children": ["print"]}, ["Str", "a (b)"]]\n'
        '[]\n["A", []]\n{"a": 1\n'
    )
    found = read(spark, tmp_path, format="json")
    assert [(row["target"], *trees_of(row)) for row in found.records.collect()] == [
        (None, r"(Call (Name print) (Str a\x20\x28b\x29))"),
        (None, "()"),
    ]
    assert places(found) == {
        "line 3, character 7": "node without a label",
        "line 4, character 8": "bad JSON",
    }
    (tmp_path / "a.json").write_text(
        '{"id": "f1", "kind": "good", "before": ["A"], "after": ["A", "b"]}\n'
        '{"id": 2, "kind": null, "before": ["A"], "after": [], "more": {}}\n'
        '{"id": "", "kind": "bad", "before": ["A"], "after": []}\n'
        '{"id": "f4", "kind": "bad", "before": ["A"]}\n'
    )
    options: dict[str, Any] = {"target": "kind", "example_id": "id", "trees": ["before", "after"]}
    found = read(spark, tmp_path, format="json", **options)
    assert [
        (row["example_id"], row["target"], *trees_of(row)) for row in found.records.collect()
    ] == [
        ("f1", "good", "(A)", "(A b)"),
        ("2", None, "(A)", "()"),
    ]
    assert places(found) == {"line 3": "empty example id", "line 4, character 45": "no tree after"}


@pytest.mark.spark
def test_treebank_files(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.mrg").write_bytes(
        b"\n( (S\n    (NP-SBJ (-NONE- *))\n    (VP (VB go)) ))\n( (S (NP\n( (X) )\n(B \xff)\n"
    )
    (tmp_path / "b.mrg").write_bytes(b"")
    (tmp_path / "c.mrg").write_bytes(b"\x00\x01\x02 nothing")
    found = read(spark, tmp_path / "*.mrg", format="mrg")
    rows = found.records.collect()
    assert sorted(trees_of(row)[0] for row in rows) == [
        "(S (NP-SBJ (-NONE- *)) (VP (VB go)))",
        "(X)",
    ]
    assert len({row["example_id"] for row in rows}) == 2
    assert {
        (row["source"].split("/")[-1], row["position"], row["reason"], row["record"])
        for row in found.quarantine.collect()
    } == {
        ("a.mrg", "line 5, character 6", "unbalanced bracket", "( (S (NP\\x0a"),
        ("a.mrg", "line 7, character 4", "not UTF-8", "(B \\xff)"),
        ("c.mrg", "line 1, character 1", "control characters", "\\x00\\x01\\x02 nothing"),
    }
    short = read(spark, tmp_path / "a.mrg", QuarantineSettings(max_record_chars=20), format="mrg")
    assert count_reasons(short.quarantine)["too long"] == 1
    bare = read(
        spark, tmp_path / "*.mrg", format="mrg", keep_traces=False, keep_function_tags=False
    )
    assert sorted(trees_of(row)[0] for row in bare.records.collect()) == ["(S (VP (VB go)))", "(X)"]


@pytest.mark.spark
def test_parse_columns(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.gold").write_text("dogs NNS (S(NP*)\nbark VBP (VP*))\n\nx NN (S*\n")
    found = read(spark, tmp_path, format="conll", word=0, pos=1, parse=2)
    assert [trees_of(row)[0] for row in found.records.collect()] == [
        "(S (NP (NNS dogs)) (VP (VBP bark)))"
    ]
    assert places(found) == {"line 4, character 6": "unbalanced bracket"}


@pytest.mark.spark
def test_the_embedded_sample(spark: SparkSession):
    found = read(spark, sample_path("questions_trees_test.tsv"), header=True)
    rows = found.records.collect()
    assert len({row["example_id"] for row in rows}) == len(rows) == 150
    assert {row["target"] for row in rows} == {"PERSON", "PLACE", "TIME", "NUMBER"}
    assert found.quarantine.isEmpty()


@pytest.mark.spark
def test_a_column_that_is_not_there(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text("target\ttree\nA\t(B)\n")
    with pytest.raises(
        UsageError, match=r"trees\.trees = 'parse': no such column; there are target, tree"
    ):
        read(spark, tmp_path, header=True, trees=["parse"])
    with pytest.raises(UsageError, match=r"trees\.path"):
        read(spark, tmp_path / "none", header=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "mrg", "header": True}, "header is no key of format mrg; its keys are keep_"),
        ({"format": "tsv", "word": 1}, "word is no key of format tsv"),
        ({"format": "svmlight", "trees": ["a"]}, "trees of format svmlight are numbers from 0"),
        ({"format": "kelp", "trees": [1]}, "fields of format kelp have names, no numbers"),
        ({"format": "json", "trees": ["a"], "target": 1}, "fields of format json have names"),
        ({"format": "json", "target": "a"}, "name the trees too"),
        ({"trees": []}, "at least 1 item"),
        ({"format": "conll", "pos": -1}, "greater than or equal to 0"),
    ],
)
def test_settings_that_do_not_go_together(options, message: str):
    with pytest.raises(ValidationError, match=message):
        TreesSettings(path="a", **options)


@pytest.mark.spark
@pytest.mark.corpus
def test_question_trees(spark: SparkSession, corpora: Path):
    columns = ["bllip_tree", "stanford_tree_lowercased", "stanford_tree"]
    found = read(
        spark,
        corpora / "trec_qc_parsed" / "t*.tsv.gz",
        header=True,
        target="coarse",
        trees=columns,
    )
    assert count_reasons(found.quarantine) == {}
    rows = found.records.select("target", F.size("tree_offsets").alias("size")).collect()
    assert len(rows) == 5_952
    assert sum(row["size"] - 1 for row in rows) == 17_856
    assert sum(row["target"] == "ENTY" for row in rows) == 1_344


@pytest.mark.spark
@pytest.mark.corpus
def test_treebank_corpus(spark: SparkSession, corpora: Path, tmp_path: Path):
    with tarfile.open(corpora / "treebank" / "combined.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    found = read(spark, tmp_path / "combined" / "*.mrg", format="mrg")
    assert count_reasons(found.quarantine) == {}
    with gzip.open(
        corpora / "treebank" / "wsj_sample.trees.tsv.gz", "rt", encoding="utf-8"
    ) as file:
        expected = sorted(line.rstrip("\n").split("\t")[2] for line in file)
    rows = found.records.collect()
    assert len({row["example_id"] for row in rows}) == len(rows) == 3_914
    assert sorted(trees_of(row)[0] for row in rows) == expected
    path = corpora / "treebank" / "wsj_sample.trees.tsv.gz"
    table = read(spark, path, target=None, trees=[2])
    assert sorted(trees_of(row)[0] for row in table.records.collect()) == expected


@pytest.mark.spark
@pytest.mark.corpus
def test_conll_2005_and_kelp(spark: SparkSession, corpora: Path):
    path = corpora / "conll2005" / "train" / "synt.cha"
    found = read(spark, path, format="conll")
    assert found.records.count() == 39_832
    assert count_reasons(found.quarantine) == {}
    found = read(spark, corpora / "trec_qc_parsed" / "*.klp.gz", format="kelp", trees=["grct"])
    assert found.records.count() == 5_952
    assert count_reasons(found.quarantine) == {}
