"""Trees in JSON: agreement with the standard library, depth, faults."""

from __future__ import annotations

import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora.tree_formats import MalformedTree, Tree, parse_bracketed
from corpusmill.corpora.tree_json import Record, parse_json, parse_json_record

SCALARS = st.one_of(
    st.text(max_size=4),
    st.integers(),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
)


def label_of(value) -> str:
    if isinstance(value, list | dict):
        raise KeyError(value)
    return value if isinstance(value, str) else json.dumps(value)


def flatten(value) -> Tree:
    """Read a value of the json module as a tree, by recursion."""
    if isinstance(value, list):
        label, children = value[0], value[1:]
    elif isinstance(value, dict):
        label, children = value["label"], value.get("children") or []
    else:
        label, children = value, []
    tree = Tree([label_of(label)], [len(children)])
    for child in children:
        below = flatten(child)
        tree.labels.extend(below.labels)
        tree.arities.extend(below.arities)
    return tree


def objects(below):
    other = st.dictionaries(st.sampled_from(["x", "Label", ""]), st.recursive(SCALARS, st.lists))
    children = st.one_of(st.none(), st.lists(below, max_size=3))
    return st.builds(
        lambda label, children, more: more | {"children": children, "label": label},
        SCALARS,
        children,
        other,
    )


NODES = st.recursive(
    SCALARS,
    lambda below: st.one_of(
        st.tuples(SCALARS, st.lists(below, max_size=3)).map(lambda pair: [pair[0], *pair[1]]),
        objects(below),
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(NODES, st.sampled_from([None, 0, 2]), st.booleans())
def test_trees_are_those_of_the_standard_library(value, indent, ascii_only: bool):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse_json(text) == flatten(value)


@settings(deadline=None)
@given(st.text(alphabet='[]{}:,"a1 \\e-.', max_size=12))
def test_what_is_no_json_is_no_tree(text: str):
    try:
        value = json.loads(text)
        arities = [] if value == [] else flatten(value).arities
    except (ValueError, KeyError, IndexError):
        with pytest.raises(MalformedTree):
            parse_json(text)
    else:
        assert parse_json(text).arities == arities


def test_source_code():
    text = """{"label": "Call", "line": 3, "children": [
        {"label": "Name", "children": ["print"]},
        ["Num", 42], {"label": "Str", "children": ["a (b)"]}, {"children": null, "label": "Pass"}
    ]}"""
    tree = parse_json(text)
    assert tree == (
        ["Call", "Name", "print", "Num", "42", "Str", "a (b)", "Pass"],
        [4, 1, 0, 1, 0, 1, 0, 0],
    )
    assert parse_json("[]") == ([], [])
    assert parse_json('"leaf"') == (["leaf"], [0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "bad JSON at character 1"),
        ('["a"', "bad JSON at character 5"),
        ('["a",]', "bad JSON at character 6"),
        ('["a" "b"]', "bad JSON at character 6"),
        ('["a"] x', "bad JSON at character 7"),
        ('["a"}', "bad JSON at character 5"),
        ('{"label": "a",}', "bad JSON at character 15"),
        ('{"label" "a"}', "bad JSON at character 10"),
        ("{1: 2}", "bad JSON at character 2"),
        ("[01]", "bad JSON at character 3"),
        ('["a\x01"]', "bad JSON at character 2"),
        ("[nan]", "bad JSON at character 2"),
        ("{}", "node without a label at character 1"),
        ('["a", []]', "node without a label at character 7"),
        ('[["a"]]', "node without a label at character 1"),
        ('{"children": []}', "node without a label at character 1"),
        ('{"label": ["a"]}', "node without a label at character 1"),
        ('{"label": "a", "label": "b"}', "label or children twice at character 25"),
        ('{"label": "a", "children": "b"}', "children that are no array at character 28"),
        ('["a", "\\ud800"]', "half a character at character 7"),
    ],
)
def test_faults_have_a_reason_and_a_place(text: str, message: str):
    with pytest.raises(MalformedTree, match=f"^{re.escape(message)}$"):
        parse_json(text)


def test_fields_of_an_object():
    text = '{"id": 7, "x": {"tree": ["no"]}, "tree": ["A", "b"], "class": "C", "other": "T"}'
    record = parse_json_record(text, ["id", "class", None, "none"], ["other", "tree"])
    assert record == Record(["7", "C", None, None], [Tree(["T"], [0]), Tree(["A", "b"], [1, 0])])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["A"]', "no JSON object at character 1"),
        ('{"class": "C"}', "no tree tree at character 15"),
        ('{"class": ["C"], "tree": "A"}', "neither text nor a number at character 11"),
        ('{"class": "C", "tree": {}}', "node without a label at character 24"),
    ],
)
def test_faults_of_an_object(text: str, message: str):
    with pytest.raises(MalformedTree, match=f"^{re.escape(message)}$"):
        parse_json_record(text, ["class"], ["tree"])


def test_deep_and_wide_trees():
    deep, wide = 100_000, 50_000
    started = time.perf_counter()
    tree = parse_json('["A",' * deep + '"b"' + "]" * deep)
    assert tree == parse_bracketed("(A " * deep + "b" + ")" * deep)
    tree = parse_json('{"label":"A","children":[' * deep + '"b"' + "]}" * deep)
    assert tree == parse_bracketed("(A " * deep + "b" + ")" * deep)
    assert parse_json('["A"' + ',"b"' * wide + "]").arities == [wide, *([0] * wide)]
    with pytest.raises(MalformedTree, match="bad JSON"):
        parse_json("[" * deep)
    assert time.perf_counter() - started < 60
