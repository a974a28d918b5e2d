"""Selection of templates: what is tried, what is taken, when it ends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from corpusmill.coreference.learned import begin_preparation
from corpusmill.coreference.selection import Step, quarters, select_templates, worth
from corpusmill.coreference.settings import LearnerSettings
from tests.coreference.samples import random_batch

_GAINS = {"a": 3.0, "b": 2.0, "c": -1.0, "d": 0.5}


def additive(sets: Sequence[tuple[str, ...]]) -> list[float]:
    return [sum(_GAINS[line] for line in lines) for lines in sets]


def test_what_helps_most_is_added_first_and_what_harms_is_removed():
    steps: list[Step] = []
    found = select_templates(("c", "b"), ("a", "b", "d"), additive, 10, steps.append)
    assert found == ("b", "a", "d")
    assert [step.change for step in steps] == ["", "+ a", "- c", "+ d"]
    assert [step.score for step in steps] == [1.0, 4.0, 5.0, 5.5]
    # Two to add and two to remove, then one and three, and so on.
    assert [step.tried for step in steps] == [1, 4, 4, 3]


def test_it_ends_after_so_many_rounds():
    assert select_templates(("b",), ("a", "d"), additive, 1, lambda step: None) == ("b", "a")


def test_the_last_template_is_not_removed():
    assert select_templates(("c",), (), additive, 5, lambda step: None) == ("c",)


def test_each_document_is_in_one_part():
    batch = random_batch(3, documents=40)
    train, held = quarters(batch)
    ids = train.column("document_id").to_pylist() + held.column("document_id").to_pylist()
    assert sorted(ids) == sorted(batch.column("document_id").to_pylist())
    assert 0 < held.num_rows < train.num_rows


@pytest.mark.long
def test_worth_is_repeatable_and_depends_on_the_templates():
    batch = random_batch(5, documents=40)
    settings = LearnerSettings(bits=14, iterations=3, nonreferential=[])
    preparation = begin_preparation(settings)
    nothing = worth(batch, preparation, ("ana.genre",), 13)
    words = worth(batch, preparation, ("pair.match + ana.type", "ana.head", "ant.type"), 13)
    assert 0.0 <= nothing <= 1.0
    assert words == worth(batch, preparation, ("pair.match + ana.type", "ana.head", "ant.type"), 13)
    assert words != nothing
