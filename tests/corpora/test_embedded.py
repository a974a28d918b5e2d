"""The embedded samples are what the script writes, and what the demo needs."""

from __future__ import annotations

import runpy
from pathlib import Path

import pyarrow as pa
import pytest

from corpusmill.corpora import embedded
from corpusmill.corpora.gazetteer import Gazetteer

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_samples.py"


def rows(name):
    lines = embedded.sample_path(name).read_text("utf-8", errors="replace").splitlines()
    return [line.split("\t") for line in lines[1:]]


def test_the_samples_are_those_of_the_script():
    made = runpy.run_path(str(SCRIPT))["samples"]()
    assert sorted(made) == sorted(embedded.NAMES)
    for name, lines in made.items():
        assert embedded.sample_path(name).read_bytes() == b"\n".join(lines) + b"\n"


def test_the_samples_are_small_and_known_by_name():
    assert sum(embedded.sample_path(name).stat().st_size for name in embedded.NAMES) < 300_000
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
