"""Bracketed trees, treebank files and parse columns: agreement with a recursive reader, faults."""

from __future__ import annotations

import gzip
import re
import tarfile
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpusmill.corpora import tree_formats as formats
from corpusmill.corpora.tree_formats import (
    Kept,
    MalformedTree,
    Tree,
    parse_bracketed,
    parse_conll,
    parse_mrg,
    parse_texts,
    write_bracketed,
)

BARE = Kept(traces=False, function_tags=False)


def flatten(node) -> Tree:
    """Return a nested (label, children) as labels and arities."""
    label, children = node
    tree = Tree([label], [len(children)])
    for child in children:
        below = flatten(child)
        tree.labels.extend(below.labels)
        tree.arities.extend(below.arities)
    return tree


LABELS = st.one_of(
    st.sampled_from(
        ["NP", "-LRB-", "(", ")", "", " ", "\\x", "\\x41", "\\", "1\\/2", "\\x4", "a\nb"]
    ),
    st.text(max_size=6),
)


def nested(labels):
    leaves = labels.map(lambda label: (label, []))
    return st.recursive(
        leaves, lambda below: st.tuples(labels, st.lists(below, max_size=4)), max_leaves=20
    )


@settings(deadline=None)
@given(nested(LABELS))
def test_what_is_written_is_read_back(node):
    tree = flatten(node)
    text = write_bracketed(*tree)
    assert parse_bracketed(text) == tree
    assert parse_bracketed(f"( {text} )") == tree
    assert re.search(r"[\x00-\x1f]", text) is None


@pytest.mark.parametrize(
    ("text", "labels", "arities"),
    [
        ("(S (NP (DT the) (NN dog)) barks)", "S NP DT the NN dog barks", [2, 2, 1, 0, 1, 0, 0]),
        ("( (S (NN a)) )", "S NN a", [1, 1, 0]),
        ("(A(B)(C))", "A B C", [2, 0, 0]),
        ("(A b(C)d)", "A b C d", [3, 0, 0, 0]),
        (" ( A\t( B\r\n) ) ", "A B", [1, 0]),
        ("(-LRB- -LRB-)", "-LRB- -LRB-", [1, 0]),
        ("(CD 1\\/2)", "CD 1\\/2", [1, 0]),
        ("(A)", "A", [0]),
        ("(Größe Straße)", "Größe Straße", [1, 0]),
    ],
)
def test_trees(text: str, labels: str, arities: list[int]):
    assert parse_bracketed(text) == (labels.split(), arities)


@pytest.mark.parametrize("text", ["", " ", "()", "( )\n"])
def test_the_empty_tree(text: str):
    assert parse_bracketed(text) == ([], [])
    assert write_bracketed([], []) == "()"


def test_escapes():
    tree = Tree(["New York", "(", "", "\\x28", "1\\/2", "\\x"], [5, 0, 0, 0, 0, 0])
    text = r"(New\x20York \x28 \x \x5cx28 1\/2 \x5cx)"
    assert write_bracketed(*tree) == text
    assert parse_bracketed(text) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(A (B b)", "unbalanced bracket at character 1"),
        ("(A (B (C c)", "unbalanced bracket at character 4"),
        ("(A (B b)))", "unbalanced bracket at character 10"),
        (")", "unbalanced bracket at character 1"),
        ("word", "text outside of brackets at character 1"),
        ("(A b) c", "something after the tree at character 7"),
        ("(A b) (C d)", "something after the tree at character 7"),
        ("(A (B b) ())", "node without a label at character 10"),
        ("(A ((B b)))", "node without a label at character 4"),
        ("((A a) (B b))", "node without a label at character 1"),
        ("((A a) b)", "node without a label at character 1"),
        ("(())", "node without a label at character 2"),
        ("(é (ü ß)", "unbalanced bracket at character 1"),
        ("(é ü))", "unbalanced bracket at character 6"),
        ("(A b\x01)", "control characters at character 5"),
        ("\x7fELF\x02\x00", "text outside of brackets at character 1"),
        ("(A \ud800)", "half a character at character 4"),
    ],
)
def test_faults_have_a_reason_and_a_place(text: str, message: str):
    with pytest.raises(MalformedTree, match=f"^{re.escape(message)}$"):
        parse_bracketed(text)


def read_node(tokens: list[str], at: int):
    """Return the nested tree that begins at a bracket, and where it ends."""
    label, children = "", []
    at += 1
    if tokens[at] not in "()":
        label, at = tokens[at], at + 1
    while tokens[at] != ")":
        if tokens[at] == "(":
            child, at = read_node(tokens, at)
            children.append(child)
        else:
            children.append((tokens[at], []))
            at += 1
    return (label, children), at + 1


def is_labelled(node) -> bool:
    return node[0] != "" and all(is_labelled(child) for child in node[1])


def read_recursively(text: str) -> Tree | None:
    """Read a tree by recursive descent; None for a malformed text."""
    tokens = re.findall(r"[()]|[^() ]+", text)
    if not tokens:
        return Tree([], [])
    try:
        root, end = read_node(tokens, 0)
    except IndexError:
        return None
    if tokens[0] != "(" or end < len(tokens):
        return None
    if root == ("", []):
        return Tree([], [])
    if not root[0] and len(root[1]) == 1 and tokens[1] == "(":
        root = root[1][0]
    return flatten(root) if is_labelled(root) else None


@settings(deadline=None)
@given(st.text(alphabet="(()) ab", max_size=14))
@example("((a))")
@example("( (a) )")
def test_any_text_is_read_as_by_recursive_descent(text: str):
    expected = read_recursively(text)
    if expected is None:
        with pytest.raises(MalformedTree):
            parse_bracketed(text)
    else:
        assert parse_bracketed(text) == expected


@settings(deadline=None)
@given(st.lists(st.text(alphabet="(()) ab", max_size=10), max_size=8), st.integers(0, 3))
def test_texts_do_not_touch_each_other(texts: list[str], skipped: int):
    array = pa.array(texts, pa.large_string())[skipped:]
    together = parse_texts(array)
    for number, text in enumerate(texts[skipped:]):
        alone = parse_texts(pa.array([text], pa.large_string()))
        assert str(together.faults.get(number)) == str(alone.faults.get(0))
        if number not in together.faults:
            assert together.tree(number) == alone.tree(0)


def strip_recursively(node, keep: Kept):
    """Return a nested tree without traces and tags, None where nothing is left."""
    label, children = node
    if label == "-NONE-" and not keep.traces:
        return None
    left = [child for child in (strip_recursively(child, keep) for child in children) if child]
    if children and not left:
        return None
    if left and not keep.function_tags and not label.startswith("-"):
        label = label[0] + re.split("[-=]", label[1:])[0]
    return label, left


PENN = st.sampled_from(["NP", "NP-SBJ-1", "S=2", "-NONE-", "-LRB-", "*T*-1", "-", "so-called"])


@settings(deadline=None)
@given(nested(PENN), st.booleans(), st.booleans())
def test_traces_and_function_tags_are_dropped_as_by_recursion(node, traces: bool, tags: bool):
    keep = Kept(traces, tags)
    left = strip_recursively(node, keep)
    expected = Tree([], []) if left is None else flatten(left)
    assert parse_bracketed(write_bracketed(*flatten(node)), keep) == expected


def test_wrong_arities_are_not_written():
    with pytest.raises(ValueError, match="node 1 comes after the end of the tree"):
        write_bracketed(["A", "B"], [0, 0])
    with pytest.raises(ValueError, match="1 children are missing"):
        write_bracketed(["A", "B"], [2, 0])


def test_deep_and_wide_trees():
    deep, wide = 100_000, 50_000
    started = time.perf_counter()
    tree = parse_bracketed("(A " * deep + "b" + ")" * deep)
    assert (len(tree.labels), sum(tree.arities)) == (deep + 1, deep)
    assert parse_bracketed(write_bracketed(*tree), BARE) == tree
    tree = parse_bracketed("(A" + " (B)" * wide + ")")
    assert tree.arities == [wide, *([0] * wide)]
    assert parse_bracketed(write_bracketed(*tree), BARE) == tree
    with pytest.raises(MalformedTree, match=f"unbalanced bracket at character {2 * deep + 1}$"):
        parse_bracketed("(A" * deep + "(B")
    assert time.perf_counter() - started < 20


MRG = """
( (S
    (NP-SBJ (NNP Mr.)
      (NNP Brown) )
    (VP (VBZ is) ) ))
( (S (NP-SBJ-1 (-NONE- *) )
    (VP broken
( (FRAG (NN Noon) (. .) )) (S (NN x))
stray ) text
( (S (-NONE- *) ))
(X)"""


def test_treebank_file():
    found = parse_mrg(MRG.encode())
    written = [
        "" if number in found.trees.faults else write_bracketed(*found.trees.tree(number))
        for number in range(7)
    ]
    assert written == [
        "(S (NP-SBJ (NNP Mr.) (NNP Brown)) (VP (VBZ is)))",
        "",
        "(FRAG (NN Noon) (. .))",
        "(S (NN x))",
        "",
        "(S (-NONE- *))",
        "(X)",
    ]
    assert {number: str(fault) for number, fault in found.trees.faults.items()} == {
        1: "unbalanced bracket at character 5",
        4: "text outside of brackets at character 1",
    }
    assert found.lines.tolist() == [2, 7, 8, 8, 9, 10, 11]
    bare = parse_mrg(b"\xef\xbb\xbf" + MRG.encode(), BARE)
    assert write_bracketed(*bare.trees.tree(0)) == "(S (NP (NNP Mr.) (NNP Brown)) (VP (VBZ is)))"
    assert bare.trees.tree(5) == ([], [])
    assert bare.begins[0] == len(b"\xef\xbb\xbf\n")


@settings(deadline=None)
@given(st.binary(max_size=60), st.lists(nested(PENN), max_size=4), st.integers(1, 40))
def test_no_byte_of_a_treebank_file_is_lost(noise: bytes, trees, limit: int):
    data = noise + b"\n" + "\n".join(write_bracketed(*flatten(tree)) for tree in trees).encode()
    found = parse_mrg(data, max_chars=limit)
    kept = b"".join(data[b:e] for b, e in zip(found.begins, found.ends, strict=True))
    read = data.removeprefix(b"\xef\xbb\xbf")
    assert b"".join(kept.split()) == b"".join(read.split())
    assert len(found.trees.offsets) == len(found.lines) + 1


def test_bytes_that_are_no_text_cost_one_tree():
    found = parse_mrg(b"(A a)\n(B \xff)\n\n(C " + b"c" * 50 + b")\n(D d)", max_chars=20)
    assert {number: str(fault) for number, fault in found.trees.faults.items()} == {
        1: "not UTF-8 at character 4",
        2: "too long at character 1",
    }
    assert found.lines.tolist() == [1, 2, 4, 5]
    assert found.trees.tree(3) == (["D", "d"], [1, 0])


def test_many_faults_take_linear_time():
    started = time.perf_counter()
    found = parse_mrg(b"(A (B b)\n" * 20_000)
    assert len(found.trees.faults) == 20_000
    assert len(parse_mrg(b"x)\n" * 20_000).trees.faults) == 20_000
    on_one_line = parse_mrg(b"(A ())" * 20_000).trees.faults
    assert on_one_line[19_999].position == 6 * 20_000 - 2
    assert len(parse_conll(b"NN (A*\n\n" * 20_000).trees.faults) == 20_000
    assert time.perf_counter() - started < 20


CONLL = """#begin document (d); part 000
d 0 0 The DT (TOP(S(NP* -
d 0 1 ( -LRB- * -
d 0 2 dog NN *) -
d 0 3 #1 CD (VP*))) -

d 0 0 One NN (TOP*) -
#end document
"""


def test_parse_columns():
    found = parse_conll(CONLL.encode(), pos=4, parse=5, word=3)
    assert found.trees.faults == {}
    assert found.lines.tolist() == [2, 7]
    assert found.trees.tree(0) == (
        ["TOP", "S", "NP", "DT", "The", "-LRB-", "(", "NN", "dog", "VP", "CD", "#1"],
        [1, 2, 3, 1, 0, 1, 0, 1, 0, 1, 1, 0],
    )
    assert parse_bracketed(write_bracketed(*found.trees.tree(0))) == found.trees.tree(0)
    bare = parse_conll(CONLL.encode(), pos=4, parse=5)
    assert write_bracketed(*bare.trees.tree(0)) == "(TOP (S (NP DT -LRB- NN) (VP CD)))"
    assert write_bracketed(*bare.trees.tree(1)) == "(TOP NN)"


@pytest.mark.parametrize(
    ("lines", "line", "message"),
    [
        ("A (S*\nB *", 1, "unbalanced bracket at character 3"),
        ("A (S*)\nB *)", 2, "something after the tree at character 3"),
        ("A (S*))", 1, "unbalanced bracket at character 7"),
        ("A (S*)\nB (S*)", 2, "something after the tree at character 3"),
        ("A *", 1, "text outside of brackets at character 3"),
        ("A (S*\nB", 2, "too few columns at character 1"),
        ("A (S", 1, "parse bit without one asterisk at character 3"),
        ("A (S**)", 1, "parse bit without one asterisk at character 6"),
        ("A (S(*))", 1, "node without a label at character 5"),
        ("A\x01 (S*)", 1, "control characters at character 1"),
    ],
)
def test_faults_of_parse_columns(lines: str, line: int, message: str):
    found = parse_conll(f"{lines}\n\nC (S*)\n".encode())
    assert {number: str(fault) for number, fault in found.trees.faults.items()} == {0: message}
    assert found.lines[0] == line
    assert found.trees.tree(1) == (["S", "C"], [1, 0])


@settings(deadline=None)
@given(nested(st.sampled_from("S NP VP".split())))
def test_columns_and_brackets_say_the_same(node):
    """Every leaf becomes a token; a node without children, other than a leaf, there is not."""
    text = write_bracketed(*flatten(("S", [node])))
    lines: list[list[str]] = []
    bit = ""
    for part in re.findall(r"\([A-Z]+|\)|[A-Z]+", text):
        if part == ")":
            lines[-1][1] += ")"
        elif part[0] == "(":
            bit += part
        else:
            lines.append([part, bit + "*"])
            bit = ""
    columns = "\n".join(" ".join(line) for line in lines)
    assert parse_conll(columns.encode()).trees.tree(0) == parse_bracketed(text)


@pytest.mark.parametrize("data", [b"", b"\n\n", b" \r\n"])
def test_files_without_trees(data: bytes):
    assert len(parse_mrg(data).lines) == 0
    assert len(parse_conll(data).lines) == 0


@pytest.mark.corpus
def test_question_trees_round_trip(corpora: Path):
    texts = []
    for name in ("train", "test"):
        with gzip.open(
            corpora / "trec_qc_parsed" / f"{name}.tsv.gz", "rt", encoding="utf-8"
        ) as file:
            texts += [text for line in list(file)[1:] for text in line.rstrip("\n").split("\t")[4:]]
    assert len(texts) == 17_856
    started = time.perf_counter()
    trees = parse_texts(pa.array(texts, pa.large_string()))
    assert time.perf_counter() - started < 5
    assert trees.faults == {}
    assert [write_bracketed(*trees.tree(number)) for number in range(len(texts))] == texts


@pytest.mark.corpus
def test_both_forms_of_the_treebank_agree(corpora: Path):
    with gzip.open(
        corpora / "treebank" / "wsj_sample.trees.tsv.gz", "rt", encoding="utf-8"
    ) as file:
        lines = [line.rstrip("\n").split("\t")[2] for line in file]
    files = []
    with tarfile.open(corpora / "treebank" / "combined.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda each: each.name):
            content = archive.extractfile(member) if member.name.endswith(".mrg") else None
            if content is not None:
                files.append(content.read())
    assert (len(files), len(lines)) == (199, 3_914)
    for keep in (formats.KEEP_ALL, BARE):
        trees = [parse_mrg(data, keep).trees for data in files]
        assert not any(each.faults for each in trees)
        found = [each.tree(number) for each in trees for number in range(len(each.offsets) - 1)]
        one_line = parse_texts(pa.array(lines, pa.large_string()), keep)
        assert found == [one_line.tree(number) for number in range(len(lines))]
    inner = {
        label
        for tree in found
        for label, arity in zip(tree.labels, tree.arities, strict=True)
        if arity
    }
    assert {label for label in inner if "-" in label} == {"-LRB-", "-RRB-"}
    leaves = sum(arity == 0 for tree in found for arity in tree.arities)
    assert leaves == 94_084


@pytest.mark.corpus
@pytest.mark.long
def test_all_sentences_of_conll_2005(corpora: Path):
    sentences = tokens = 0
    for path in sorted((corpora / "conll2005" / "train" / "synt.cha").glob("*.gz")):
        found = parse_conll(gzip.decompress(path.read_bytes()))
        assert found.trees.faults == {}
        sentences += len(found.lines)
        tokens += int((found.trees.arities == 0).sum())
    assert (sentences, tokens) == (39_832, 950_028)
