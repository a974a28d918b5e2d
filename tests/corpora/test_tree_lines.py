"""Lines of SVM-Light-TK and KeLP."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora.tree_formats import MalformedTree, parse_texts
from corpusmill.corpora.tree_lines import Line, split_kelp, split_svmlight, untyped


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("1 |BT| (A b) |ET|", Line("1", [" (A b) "], [6], [], [])),
        ("1 |BT| (A) |BT| |BT|(# #)|ET|", Line("1", [" (A) ", " ", "(# #)"], [6, 15, 20], [], [])),
        ("+1 |BT| |ET| 1:0.5 7:-2e-1 |EV|", Line("1", [" "], [7], [1, 7], [0.5, -0.2])),
        ("1 |BT|(A)|ET| 2:1", Line("1", ["(A)"], [6], [2], [1.0])),
        ("1\t|BT| (A) |ET| |BV| 1:1 |EV| # why", Line("1", [" (A) "], [6], [1], [1.0])),
        ("2.5 qid:3 1:2 5:1 # a comment", Line("2.5", [], [], [1, 5], [2.0, 1.0])),
        ("1 |BV| 3:1 |EV|", Line("1", [], [], [3], [1.0])),
        ("ABBR", Line("ABBR", [], [], [], [])),
        ("|BT| (A) |ET|", Line(None, [" (A) "], [4], [], [])),
    ],
)  # fmt: skip
def test_lines_of_svm_light_tk(line: str, expected: Line):
    assert split_svmlight(line) == expected
    for text, begin in zip(expected.texts, expected.begins, strict=True):
        assert line[begin:].startswith(text)


def test_wanted_trees_and_vectors_of_svm_light_tk():
    line = "1 |BT| (A) |BT| (B) |ET| 1:1 |BV| |BV| 3:3 |EV|"
    assert split_svmlight(line, trees=[1, 0]).texts == [" (B) ", " (A) "]
    assert [split_svmlight(line, vector=number).ids for number in range(4)] == [[1], [], [3], []]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 |BT| (A)", "mark without its end at character 3"),
        ("1 |ET|", "misplaced mark at character 3"),
        ("1 |BT| (A) |BV| 1:1 |EV|", "misplaced mark at character 12"),
        ("1 |BT| (A) |ET| 1:1 |EV| |BT| (B) |ET|", "misplaced mark at character 26"),
        ("1 |BT| (A) |ET| 1:1 |EV| x", "something between two representations at character 26"),
        ("1 |BT| (A) |ET| 3:1 2:1", "bad vector at character 21"),
        ("1 |BT| (A) |ET| 3:1 3:1", "bad vector at character 21"),
        ("1 |BT| (A) |ET| 0:1", "bad vector at character 17"),
        ("1 |BT| (A) |ET| 1:nan", "bad vector at character 17"),
        ("1 |BT| (A) |ET| 1:inf", "bad vector at character 17"),
        ("1 |BT| (A) |ET| 1:", "bad vector at character 17"),
        ("1 |BT| (A) |ET| a:1", "bad vector at character 17"),
        ("1 |BT| (A) |ET| 2147483648:1", "bad vector at character 17"),
        ("1 word", "bad vector at character 3"),
    ],
)
def test_faults_of_svm_light_tk(line: str, message: str):
    with pytest.raises(MalformedTree, match=f"^{re.escape(message)}$"):
        split_svmlight(line)


def test_a_wanted_tree_must_be_there():
    with pytest.raises(MalformedTree, match=r"^no tree 1 at character 14$"):
        split_svmlight("1 |BT|(A)|ET|", trees=[1])
    with pytest.raises(MalformedTree, match=r"^no tree lct at character 15$"):
        split_kelp("A |BV:lct||EV|", trees=["lct"])


FEATURES = st.dictionaries(
    st.integers(1, 2**31 - 1), st.floats(allow_nan=False, allow_infinity=False), max_size=5
)


@settings(deadline=None)
@given(st.lists(st.sampled_from(["(A)", "", "(A b)"]), max_size=4), st.lists(FEATURES, max_size=3))
def test_what_svm_light_tk_writes_is_read_back(trees: list[str], vectors: list[dict[int, float]]):
    line = "1"
    if trees:
        line += " " + " ".join(f"|BT| {tree}" for tree in trees) + " |ET|"
    for vector in vectors:
        line += " |BV| " + " ".join(f"{key}:{vector[key]!r}" for key in sorted(vector))
    if vectors:
        line += " |EV|"
    found = split_svmlight(line)
    assert [text.strip() for text in found.texts] == trees
    for number, vector in enumerate(vectors):
        found = split_svmlight(line, vector=number)
        assert dict(zip(found.ids, found.values, strict=True)) == vector


KELP = (
    "HUM |BS:text| Who? |ES| |BV:bow| who:1.0 |EV| |BT:a| (NOTYPE##A(LEX##who::w)) |ET| "
    "|BT| (B) |ET| |BT:empty| |ET|  "
)


def test_lines_of_kelp():
    found = split_kelp(KELP)
    assert found.target == "HUM"
    assert found.texts == [" (NOTYPE##A(LEX##who::w)) ", " (B) ", " "]
    assert split_kelp(KELP, trees=["3", "a"]).texts == [found.texts[1], found.texts[0]]
    assert [
        KELP[begin:].startswith(text) for text, begin in zip(found.texts, found.begins, strict=True)
    ]
    trees = parse_texts(pa.array(found.texts, pa.large_string()))
    assert untyped(trees.labels).to_pylist() == ["A", "LEX##who::w", "B"]
    assert split_kelp("A B |BT| (C) |ET|").target == "A B"
    assert split_kelp("A") == Line("A", [], [], [], [])
    assert split_kelp("|BT| (A) |ET|").target is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A |BT:x| (A)", "mark without its end at character 3"),
        ("A |BT:x| (A) |EV|", "mark without its end at character 3"),
        ("A |BT:x| (A) |ET| |BT:x| (B) |ET|", "two representations of one name at character 19"),
        ("A |BT| (A) |ET| junk", "something between two representations at character 17"),
        ("A |BT (A) |ET|", "something between two representations at character 3"),
        ("A |<| |BT| (A) |ET| |,| |BT| (B) |ET| |>|", "pair of examples at character 3"),
    ],
)
def test_faults_of_kelp(line: str, message: str):
    with pytest.raises(MalformedTree, match=f"^{re.escape(message)}$"):
        split_kelp(line)


@pytest.mark.corpus
def test_the_kelp_files_of_the_questions(corpora: Path):
    targets: Counter[str | None] = Counter()
    for name in ("train_5500", "TREC_10"):
        path = corpora / "trec_qc_parsed" / f"kelp_{name}.coarse.klp.gz"
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        found = [split_kelp(line, ["grct", "lct", "loct", "cgrct", "clct"]) for line in lines]
        targets.update(line.target for line in found)
        texts = [text for line in found for text in line.texts]
        assert len(texts) == 5 * len(lines)
        assert parse_texts(pa.array(texts, pa.large_string())).faults == {}
    assert sum(targets.values()) == 5_952
    assert len(targets) == 6
