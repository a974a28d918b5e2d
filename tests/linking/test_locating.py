"""Places of entities that gold names alone, against the slow way."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.linking.locating import locate_entities
from tests.linking import slow
from tests.linking.invented import TEXTS, knowledge

MOST = 3
NAMES = ["Rome", "a.s. roma", "New_York_City", "Barack_Obama", "No_Such_Page", "New_York_Giants"]


def texts_of(named: list[list[str]], mentioned: list[bool]) -> pa.RecordBatch:
    size = len(TEXTS)
    return pa.record_batch(
        {
            "text_id": pa.array([f"t{n}" for n in range(size)]),
            "text": pa.array(TEXTS),
            "mention_starts": pa.array([[0] * flag for flag in mentioned], pa.list_(pa.int32())),
            "mention_ends": pa.array([[1] * flag for flag in mentioned], pa.list_(pa.int32())),
            "mention_entities": pa.array([[None] * f for f in mentioned], pa.list_(pa.string())),
            "text_entities": pa.array(named, pa.list_(pa.string())),
        }
    )


def slowly(text: str, names: list[str]) -> list[tuple[int, int, str]]:
    found = []
    for name in dict.fromkeys(names):
        spans = [r["span"] for r in slow.rows(text, MOST) if r["entity"] == slow.entity_key(name)]
        if spans:
            start, end = min(spans, key=lambda span: (span[0] - span[1], span[0]))
            found.append((start, end, name))
    return sorted(found, key=lambda each: each[0])


@pytest.mark.parametrize("seed", range(10))
def test_an_entity_stands_at_its_longest_candidate(seed: int):
    chance = np.random.default_rng(seed)
    named = [[NAMES[n] for n in chance.permutation(len(NAMES))[: seed % 4 + 1]] for _ in TEXTS]
    mentioned = (chance.random(len(TEXTS)) < 0.3).tolist()
    given = texts_of(named, mentioned)
    placed = locate_entities(given, knowledge(), MOST)
    assert placed.schema == given.schema
    some = 0
    for number, (before, after) in enumerate(
        zip(given.to_pylist(), placed.to_pylist(), strict=True)
    ):
        if mentioned[number]:
            assert after == before
            continue
        found = list(
            zip(*(after[f"mention_{n}"] for n in ("starts", "ends", "entities")), strict=True)
        )
        wanted = slowly(TEXTS[number], named[number])
        # Entities of one place may stand in any order.
        assert sorted(found) == sorted(wanted)
        assert [start for start, _, _ in found] == [start for start, _, _ in wanted]
        some += len(found)
    assert some


def test_texts_without_names_have_no_mentions():
    size = len(TEXTS)
    placed = locate_entities(texts_of([[]] * size, [False] * size), knowledge(), MOST)
    assert placed["mention_starts"].to_pylist() == [[]] * size
    empty = texts_of([[]] * size, [False] * size)[:0]
    assert len(locate_entities(empty, knowledge(), MOST)) == 0
