"""The embedded samples are what the script writes, and what the demo needs."""

from __future__ import annotations

import re
import runpy
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from corpusmill.corpora import embedded
from corpusmill.corpora.gazetteer import Gazetteer
from corpusmill.corpora.tree_formats import parse_texts

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


def rows(name):
    lines = embedded.sample_path(name).read_text("utf-8", errors="replace").splitlines()
    return [line.split("\t") for line in lines[1:]]


def test_the_samples_are_those_of_the_scripts():
    made = runpy.run_path(str(SCRIPTS / "make_samples.py"))["samples"]()
    made |= runpy.run_path(str(SCRIPTS / "make_question_trees.py"))["samples"]()
    assert sorted(made) == sorted(embedded.NAMES)
    for name, lines in made.items():
        assert embedded.sample_path(name).read_bytes() == b"\n".join(lines) + b"\n"


def test_the_samples_are_small_and_known_by_name():
    assert sum(embedded.sample_path(name).stat().st_size for name in embedded.NAMES) < 400_000
    with pytest.raises(ValueError, match=r"no sample 'x'; there are query_log\.tsv"):
        embedded.sample_path("x")


def test_every_gold_query_has_an_entity_of_its_class_and_no_other_query_has_one():
    listed = rows("entities.tsv")
    built = Gazetteer.build([entity for entity, _ in listed])
    classes: dict[str, set[str]] = {}
    for (_, kind), number in zip(listed, built.canonical, strict=True):
        classes.setdefault(built.names[number].as_py(), set()).add(kind)
    assert all(2 <= len(kinds) <= 4 for kinds in classes.values())

    gold = dict(rows("gold.tsv"))
    good = [row[0] for row in rows("query_log.tsv")[:-6]]
    assert len(set(good)) == len(good) == 3000
    assert set(gold) < set(good)
    found = built.annotate(pa.array(good))["entity"].to_pylist()
    for query, entity in zip(good, found, strict=True):
        assert (entity is not None) == (query in gold)
        assert entity is None or gold[query] in classes[entity]


def test_the_questions_are_trees_of_four_classes_and_no_word_tells_which():
    asked = rows("questions_trees_train.tsv") + rows("questions_trees_test.tsv")
    assert len({tree for _, tree in asked}) == len(asked) == 600
    targets = Counter(target for target, _ in asked)
    assert min(targets.values()) > 100
    assert len(targets) == 4
    trees = parse_texts(pa.array([tree for _, tree in asked], pa.large_string()))
    assert trees.faults == {}
    labels = set(trees.labels.to_pylist())
    assert {"SBARQ", "WHNP", "WHADVP", "WHPP", "SBAR", "Which", "Name"} < labels
    with_word: dict[str, Counter[str]] = {}
    for target, tree in asked:
        for word in set(re.findall(r" ([^() ]+)\)", tree)):
            with_word.setdefault(word, Counter())[target] += 1
    for target, size in targets.items():
        for word, by_class in with_word.items():
            others = sum(by_class.values()) - by_class[target]
            right = by_class[target] + len(asked) - size - others
            assert right < 0.95 * len(asked), word
