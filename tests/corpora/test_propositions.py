"""Propositions: parallel layers, gold trees with PropBank, bad sentences, the corpora's counts."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora import proposition_layers as layers
from corpusmill.corpora import propositions as corpus
from corpusmill.corpora.proposition_layers import Layer, parse_layers
from corpusmill.corpora.propositions import (
    ConllSettings,
    PropbankSettings,
    read_propositions,
    take_first,
)
from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.schemas import PROPOSITIONS, TREES
from corpusmill.corpora.sources import FileSettings
from corpusmill.corpora.tree_formats import write_bracketed
from corpusmill.errors import DataError, UsageError
from corpusmill.fragments.srl import PAIRS, boundary_examples, count_pairs, role_examples
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()
# "The dog that barked chased cats", "They slept" and "Yes".
PROPS = """\
-      *      (A0*
-      (A0*)  *
-      (R-A0*)  *
bark   (V*)  *)
chase  *      (V*)
-      *      (A1*)

-      (A0*)
sleep  (V*)

-
"""
PARSES = """\
DT  (S1(S(NP(NP*
NN  *)
WDT (SBAR(WHNP*)
VBD (S(VP*))))
VBD (VP*
NNS (NP*))))

PRP (S1(S(NP*)
VBD (VP*)))

UH (S1(INTJ*))
"""
SENTENCES = PROPS.encode().split(b"\n\n")
TREES_OF = PARSES.encode().split(b"\n\n")


def parsed(props: bytes, parses: bytes, limit: int = 65_536) -> list[dict]:
    batch = parse_layers("d", Layer("d.props", props), Layer("d.synt", parses), limit)
    batch.validate(full=True)
    return batch.to_pylist()


def arguments_of(row: dict) -> list[tuple[int, str, list[tuple[str, int, int]]]]:
    """Return token, lemma and arguments of each predicate."""
    spans = list(
        zip(row["argument_labels"], row["argument_firsts"], row["argument_lasts"], strict=True)
    )
    bounds = row["argument_offsets"]
    return [
        (token, lemma, spans[begin:end])
        for token, lemma, begin, end in zip(
            row["predicates"], row["lemmas"], bounds[:-1], bounds[1:], strict=True
        )
    ]


def test_layers_are_read_side_by_side():
    rows = parsed(PROPS.encode(), PARSES.encode())
    assert [row["reason"] for row in rows] == [None] * 3
    assert [(row["document_id"], row["sentence"]) for row in rows] == [("d", k) for k in range(3)]
    assert not any(row["has_words"] for row in rows)
    assert [write_bracketed(row["node_labels"], row["node_arities"]) for row in rows] == [
        "(S1 (S (NP (NP DT NN) (SBAR (WHNP WDT) (S (VP VBD)))) (VP VBD (NP NNS))))",
        "(S1 (S (NP PRP) (VP VBD)))",
        "(S1 (INTJ UH))",
    ]
    assert [arguments_of(row) for row in rows] == [
        [
            (3, "bark", [("A0", 1, 2), ("R-A0", 2, 3), ("V", 3, 4)]),
            (4, "chase", [("A0", 0, 4), ("V", 4, 5), ("A1", 5, 6)]),
        ],
        [(1, "sleep", [("A0", 0, 1), ("V", 1, 2)])],
        [],
    ]


def test_nested_spans_come_outer_first():
    props = b"say (A1(A2* (V*)\n- *)) *\nhear * *\n"
    row = parsed(props, b"VB (S*\nNN *\nVB *)\n")[0]
    assert row["reason"] is None
    assert arguments_of(row)[0] == (0, "say", [("A1", 0, 2), ("A2", 0, 2)])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n\n", b"\n \t\n\n\n"),
        lambda text: b"\n\n" + text.rstrip(b"\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b" ", b"\t\t"),
    ],
    ids=["returns", "more blank lines", "no last feed", "byte order mark", "tabs"],
)
def test_layout_does_not_matter(change):
    expected = parsed(PROPS.encode(), PARSES.encode())
    assert parsed(change(PROPS.encode()), change(PARSES.encode())) == expected


BAD = {
    "a span that stays open": (b"-  (A0*\nsleep  (V*)", None, layers.BAD_SPANS, "d.props", 9),
    "a span that was not opened": (b"-  *)\nsleep  (V*)", None, layers.BAD_SPANS, "d.props", 8),
    "a span without a label": (b"-  (*)\nsleep  (V*)", None, layers.BAD_SPANS, "d.props", 8),
    "no star": (b"-  A0\nsleep  (V*)", None, layers.BAD_SPANS, "d.props", 8),
    "a column too many": (b"- * *\nsleep (V*)", None, layers.WRONG_COLUMNS, "d.props", 9),
    "a predicate too many": (b"eat (A0*)\nsleep (V*)", None, layers.WRONG_PREDICATES, "d.props", 8),
    "no predicate": (b"- (A0*)\n- (V*)", None, layers.WRONG_PREDICATES, "d.props", 8),
    "bad bytes": (b"-  (A\xff*)\nsleep (V*)", None, layers.NOT_UTF8, "d.props", 8),
    "a token too few": (b"sleep (V*)", None, layers.DIFFERENT_LENGTH, "d.props", 8),
    "a bracket that stays open": (
        None,
        b"PRP (S1(S(NP*)\nVBD (VP*))",
        "unbalanced bracket",
        "d.synt",
        8,
    ),
    "a bracket too many": (
        None,
        b"PRP (S1(S(NP*)\nVBD (VP*))))",
        "unbalanced bracket",
        "d.synt",
        9,
    ),
    "two trees": (None, b"PRP (S1*)\nVBD (S1*)", "something after the tree", "d.synt", 9),
    "no parse": (None, b"PRP\nVBD", "too few columns", "d.synt", 8),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_sentence_costs_no_other(name: str):
    props, parses, reason, source, line = BAD[name]
    rows = parsed(
        b"\n\n".join([SENTENCES[0], props or SENTENCES[1], SENTENCES[2]]),
        b"\n\n".join([TREES_OF[0], parses or TREES_OF[1], TREES_OF[2]]),
    )
    good = parsed(PROPS.encode(), PARSES.encode())
    assert [rows[0], rows[2]] == [good[0], good[2]]
    assert (rows[1]["reason"], rows[1]["source"]) == (reason, source)
    assert rows[1]["position"] == f"sentence 1, line {line}"
    assert rows[1]["record"].strip() == (props or parses or b"").strip()


def test_lost_sentence_ends_what_can_be_trusted():
    rows = parsed(PROPS.encode(), b"\n\n".join([TREES_OF[0], TREES_OF[2]]))
    assert [row["reason"] for row in rows] == [None, *[layers.DIFFERENT_LENGTH] * 2]
    assert [row["position"] for row in rows[1:]] == ["sentence 1, line 8", "sentence 2, line 11"]
    rows = parsed(PROPS.encode(), b"")
    assert [row["reason"] for row in rows] == [layers.DIFFERENT_LENGTH] * 3
    rows = parsed(b"", PARSES.encode())
    assert [(row["reason"], row["source"]) for row in rows] == [
        (layers.DIFFERENT_LENGTH, "d.synt")
    ] * 3


def test_long_sentence_is_bad():
    rows = parsed(PROPS.encode(), PARSES.encode(), limit=60)
    assert [row["reason"] for row in rows] == [layers.TOO_LONG, None, None]


TOKENS = st.sampled_from([b"-", b"go", b"*", b"(A0*)", b"(A0*", b"*)", b"(S(NP*", b"*))", b"("])
SOUP = st.lists(
    st.one_of(TOKENS, st.just(b" "), st.just(b"\n"), st.just(b"\n\n"), st.binary(max_size=3)),
    max_size=40,
).map(b" ".join)


@settings(deadline=None)
@given(SOUP, SOUP)
def test_any_bytes_are_good_or_bad(props: bytes, parses: bytes):
    for row in parsed(props, parses):
        if row["reason"] is None:
            assert row["node_arities"].count(0) > max([0, *row["predicates"]])
            assert len(row["argument_offsets"]) == len(row["predicates"]) + 1
        else:
            assert row["record"] or row["reason"] == layers.DIFFERENT_LENGTH


@st.composite
def sentence(draw) -> tuple[list[list[str]], list]:
    """Draw a sentence's lines and the propositions that they say."""
    size = draw(st.integers(1, 6))
    tokens = sorted(draw(st.sets(st.integers(0, size - 1), max_size=3)))
    lines = [["go" if token in tokens else "-"] for token in range(size)]
    expected = []
    for token in tokens:
        cuts = sorted(draw(st.sets(st.integers(0, size), max_size=4)))
        spans = [("A1", *pair) for pair in pairwise(cuts)]
        spans = [span for span in spans if draw(st.booleans())]
        begins, ends = {s[1] for s in spans}, {s[2] for s in spans}
        for place, line in enumerate(lines):
            line.append(f"{'(A1' * (place in begins)}*{')' * (place + 1 in ends)}")
        expected.append((token, "go", spans))
    return lines, expected


@settings(deadline=None)
@given(st.lists(sentence(), max_size=4))
def test_written_propositions_are_read_again(sentences: list):
    props = "\n\n".join("\n".join(" ".join(line) for line in lines) for lines, _ in sentences)
    parses = "\n\n".join(
        "\n".join(["X (S*", *["X *"] * (len(lines) - 1)]) for lines, _ in sentences
    )
    parses = "\n\n".join(block + ")" for block in parses.split("\n\n")) if sentences else ""
    rows = parsed(props.encode(), parses.encode())
    assert [row["reason"] for row in rows] == [None] * len(sentences)
    assert [arguments_of(row) for row in rows] == [expected for _, expected in sentences]


def write_conll(folder: Path, documents: dict[str, tuple[bytes, bytes]]) -> Path:
    for layer, number in (("props", 0), ("synt.cha", 1)):
        (folder / layer).mkdir()
        for name, texts in documents.items():
            (folder / layer / f"{name}.{layer}.gz").write_bytes(gzip.compress(texts[number]))
    return folder


@pytest.mark.spark
def test_files_are_paired_by_document(spark: SparkSession, tmp_path: Path):
    good = (PROPS.encode(), PARSES.encode())
    documents = {
        "a.02": good,
        "a.03": (PROPS.replace("(A1*)", "(A1*").encode(), PARSES.encode()),
        "a.04": (b"", b""),
        "a.05": (b"", PARSES.encode()),
    }
    folder = str(write_conll(tmp_path, documents))
    found = read_propositions(spark, ConllSettings(kind="conll2005", path=folder), LIMITS)
    assert found.records.schema.simpleString() == PROPOSITIONS.simpleString()
    rows = found.records.orderBy("document_id", "sentence").collect()
    assert [(row["document_id"], row["sentence"]) for row in rows] == [
        ("a.02", 0), ("a.02", 1), ("a.02", 2), ("a.03", 1), ("a.03", 2),
    ]  # fmt: skip
    bad = found.quarantine.orderBy("source", "position").collect()
    assert [(Path(row["source"]).name, row["position"], row["reason"]) for row in bad] == [
        ("a.03.props.gz", "sentence 0, line 6", layers.BAD_SPANS),
        *[
            ("a.05.synt.cha.gz", f"sentence {k}, line {line}", layers.DIFFERENT_LENGTH)
            for k, line in enumerate([1, 8, 11])
        ],
    ]
    chosen = ConllSettings(kind="conll2005", path=folder, documents=["a.03"])
    assert read_propositions(spark, chosen, LIMITS).records.count() == 2


@pytest.mark.spark
def test_what_is_not_there_is_one_line(spark: SparkSession, tmp_path: Path):
    def read(**options):
        source = ConllSettings(kind="conll2005", path=str(tmp_path), **options)
        return read_propositions(spark, source, LIMITS, "input.train")

    with pytest.raises(UsageError, match=r"CONF06.*input\.train\.path"):
        read()
    write_conll(tmp_path, {"a": (b"", b""), "b": (b"", b"")})
    with pytest.raises(UsageError, match=r"CONF04: input\.train\.documents = 'c': no such file"):
        read(documents=["a", "c"])
    with pytest.raises(UsageError, match=r"CONF06.*input\.train\.path"):
        read(parses="synt.upc")
    (tmp_path / "props" / "b.props").write_bytes(b"")
    with pytest.raises(DataError, match="layer props has 2 files of document b"):
        read()
    (tmp_path / "props" / "b.props").unlink()
    (tmp_path / "synt.cha" / "b.synt.cha.gz").unlink()
    with pytest.raises(DataError, match=r"layer synt\.cha has 0 files of document b"):
        read()


GOLD = """\
w1\t0\t(S (NP-SBJ (PRP They)) (VP (VBP want) (S (NP-SBJ (-NONE- *-1)) (VP (TO to) (VP (VB go))))))
w1\t1\t(S (NP (NN Rain)) (VP (VBD fell)
w1\tx\t(S (NN Rain))
w2\t0\t(S (NP (NN Rain)) (VP (VBD fell)))
w3\t0\t(S (NP (NN Rain)) (VP (VBD fell)))
v1\t0\t(S (NP (NN Rain)) (VP (VBD fell)
"""


def proposition(doc: str, sent: int, pred: int, args: list, **more) -> str:
    fields = {"doc": doc, "sent": sent, "pred": pred, "lemma": "l", "pos": "VB", "roleset": "l.01"}
    return json.dumps({**fields, "args": args, **more})


@pytest.mark.spark
def test_propbank_on_gold_trees(spark: SparkSession, tmp_path: Path):
    (tmp_path / "trees.tsv").write_text(GOLD)
    lines = [
        proposition("w1", 0, 3, [["V", 3, 3], ["ARG1", 0, 0], ["C-ARG1", 2, 3, "partial"]]),
        proposition(
            "w1", 0, 1, [["ARG0", 0, 0], ["V", 1, 1], ["C-ARG1", 2, 3], ["R-ARGM-TMP", 0, 1]]
        ),
        proposition("w1", 0, 0, [], pos="PRP"),
        proposition("w1", 0, 2, [], roleset="be.03"),
        proposition("w1", 0, 2, [], pred_partial=True),
        proposition("w1", 1, 1, []),
        proposition("v1", 0, 1, []),
        proposition("v1", 0, 1, [["ARG1", 0]]),
        proposition("w2", 0, 1, [["ARG1", 0, 2]]),
        proposition("w9", 0, 1, []),
        proposition("w3", 0, 1, [["ARG1", 0]]),
        proposition("w3", 0, 1, [["ARG1", "a", 1]]),
        '{"doc": "w3"}',
        "no json",
    ]
    (tmp_path / "props.jsonl").write_text("\n".join(lines))
    source = PropbankSettings(
        kind="propbank",
        trees=FileSettings(
            path=str(tmp_path / "trees.tsv"), columns=["document", "sentence", "tree"]
        ),
        propositions=FileSettings(path=str(tmp_path / "props.jsonl"), format="jsonl"),
        leave_out=["be.03"],
        documents=["w"],
    )
    found = read_propositions(spark, source, LIMITS)
    (row,) = [row.asDict() for row in found.records.collect()]
    assert (row["document_id"], row["sentence"], row["has_words"]) == ("w1", 0, True)
    tree = write_bracketed(row["node_labels"], row["node_arities"])
    assert tree == "(S (NP (PRP They)) (VP (VBP want) (S (VP (TO to) (VP (VB go))))))"
    assert arguments_of(row) == [
        (1, "l", [("A0", 0, 1), ("V", 1, 2), ("C-A1", 2, 4), ("R-AM-TMP", 0, 2)]),
        (3, "l", [("V", 3, 4), ("A1", 0, 1)]),
    ]
    assert count_reasons(found.quarantine) == {
        "bad JSON": 1,
        corpus.BAD_NUMBER: 1,
        corpus.BAD_PROPOSITION: 3,
        corpus.NO_TREE: 1,
        corpus.OUTSIDE: 1,
        "unbalanced bracket": 1,
    }


COUNTED = T.StructType([*PROPOSITIONS, T.StructField(PAIRS, T.IntegerType(), nullable=False)])


@pytest.mark.spark
def test_limit_is_reached_from_the_beginning(spark: SparkSession):
    numbers = {("b", 0): 3, ("a", 1): 0, ("a", 0): 5, ("c", 0): 9, ("b", 10): 2, ("b", 2): 1}
    rows = [(*place, number) for place, number in numbers.items()]
    frame = spark.createDataFrame(rows, "document_id string, sentence int, n int").repartition(3)
    for limit in (0, 1, 5, 9, 100):
        left, expected = limit, set()
        for place in sorted(numbers):
            taken = min(left, numbers[place])
            left -= taken
            expected |= {(*place, taken)} if taken else set()
        found = take_first(frame, "n", limit).select("document_id", "sentence", "n").collect()
        assert {tuple(row) for row in found} == expected


@pytest.mark.slow
@pytest.mark.spark
def test_first_pairs_are_the_same_for_any_partitions(spark: SparkSession):
    rows = [
        {field: row[field] for field in PROPOSITIONS.names}
        for name in ("b", "a", "c")
        for row in parse_layers(
            name, Layer("", PROPS.encode()), Layer("", PARSES.encode())
        ).to_pylist()
    ]
    every = pa.RecordBatch.from_pylist(rows, schema=splits.schema_of(PROPOSITIONS))
    ordered = every.sort_by([("document_id", "ascending"), ("sentence", "ascending")])
    expected = boundary_examples(ordered)["example_id"].to_pylist()[:26]
    for partitions in (1, 3):
        sentences = spark.createDataFrame(rows, PROPOSITIONS).repartition(partitions)
        first = take_first(splits.map_partitions(sentences, count_pairs, COUNTED), PAIRS, 26)
        found = splits.map_partitions(first, boundary_examples, TREES).select("example_id")
        assert sorted(row[0] for row in found.collect()) == sorted(expected)


def counts_of(spark: SparkSession, path: Path, first: tuple[int, list[str]] | None = None) -> tuple:
    """Count sentences, tokens, predicates, arguments; role examples; pairs and their nodes."""
    source = ConllSettings(kind="conll2005", path=str(path))
    found = read_propositions(spark, source, LIMITS)
    assert count_reasons(found.quarantine) == {}
    sentences = found.records.persist()
    sizes = sentences.agg(
        F.count("*"),
        F.sum(F.size(F.filter("node_arities", lambda arity: arity == 0))),
        F.sum(F.size("predicates")),
        F.sum(F.size(F.filter("argument_labels", lambda label: ~label.rlike("^V$|^C-")))),
    )
    roles = splits.map_partitions(sentences, role_examples, TREES).count()
    chosen = sentences
    if first:
        chosen = sentences.where(F.col("document_id").isin(first[1]))
        counted = splits.map_partitions(chosen, count_pairs, COUNTED).persist()
        chosen = take_first(counted, PAIRS, first[0])
    pairs = splits.map_partitions(chosen, boundary_examples, TREES).groupBy("target")
    nodes = F.round(F.avg(F.size("node_labels")), 2)
    targets = sorted(tuple(row) for row in pairs.agg(F.count("*"), nodes).collect())
    sentences.unpersist()
    return tuple(sizes.collect()[0]), roles, targets


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.long
def test_counts_of_section_24(spark: SparkSession, corpora: Path):
    assert counts_of(spark, corpora / "conll2005" / "devel") == (
        (1_346, 32_853, 3_248, 8_346),
        5_851,
        [("+1", 8_233, 12.67), ("-1", 140_941, 12.07)],
    )


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.slow
def test_counts_of_sections_2_to_21(spark: SparkSession, corpora: Path):
    sections = [f"train.{section:02d}" for section in range(2, 7)]
    assert counts_of(spark, corpora / "conll2005" / "train", (1_000_000, sections)) == (
        (39_832, 950_028, 90_750, 239_858),
        179_275,
        [("+1", 60_003, 12.84), ("-1", 939_997, 12.06)],
    )


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.long
def test_counts_of_propbank(spark: SparkSession, corpora: Path):
    source = PropbankSettings(
        kind="propbank",
        trees=FileSettings(
            path=str(corpora / "treebank" / "wsj_sample.trees.tsv.gz"),
            columns=["document", "sentence", "tree"],
        ),
        propositions=FileSettings(
            path=str(corpora / "propbank" / "wsj_sample.props.jsonl.gz"), format="jsonl"
        ),
    )
    found = read_propositions(spark, source, LIMITS)
    told = found.records.agg(
        F.countDistinct("document_id"), F.count("*"), F.sum(F.size("predicates"))
    )
    assert tuple(told.collect()[0]) == (144, 2_810, 9_221)
    assert count_reasons(found.quarantine) == {}
