"""Records of gold sets: what they say, what they get wrong, overlapping mentions."""

from __future__ import annotations

import itertools
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.corpora.linked_text_formats import (
    MalformedText,
    Mention,
    annotate,
    drop_overlapping,
    locate,
    parse_elevant,
    parse_record,
    parse_webis,
)

TEXT = "Zorvan met Ada in 𝒜lder Bay"


def record(*mentions: dict[str, Any], **more: Any) -> str:
    return json.dumps({"text": TEXT, "mentions": list(mentions)} | more)


def test_tweets():
    line = record(
        {"start": 11, "end": 14, "surface": "Ada", "entity": "ada Lovelace", "type": "Person"},
        {"start": 17, "end": 27, "entity": None, "nil": "NIL7", "type": None},
        id=7,
        split="dev",
    )
    found = parse_record(line)
    assert found == (
        "7",
        "dev",
        TEXT,
        [Mention(11, 14, "Ada_Lovelace", "Person"), Mention(18, 27, None, None)],
        0,
        ["Ada_Lovelace"],
    )
    assert parse_record(json.dumps({"query": "a", "mentions": []})).text_id is None


def test_several_entities_of_a_mention_and_concepts_without_one():
    entities = [{"entity": "Ada", "score": 0.3}, {"entity": "Ada_(name)", "score": 0.7}]
    found = parse_record(record({"start": 11, "end": 14, "entities": entities}))
    assert found.mentions == [Mention(11, 14, "Ada_(name)")]
    assert found.entities == ["Ada_(name)", "Ada"]
    assert parse_record(record({"start": 0, "end": 6, "entities": []})).mentions[0].entity is None
    huge = [{"entity": "Ada", "score": 10**400}, {"entity": "Bay", "score": 1.5}, {"score": "9"}]
    found = parse_record(record({"start": 0, "end": 6, "entities": huge}))
    assert (found.mentions[0].entity, found.entities) == ("Ada", ["Ada", "Bay"])
    concepts = [{"entity": "Bay"}, {"entity": "-"}, {"entity": "bay"}]
    found = parse_record(json.dumps({"text": TEXT, "concepts": concepts}))
    assert (found.mentions, found.entities) == ([], ["Bay"])


def test_mentions_in_words():
    found = parse_record(record({"tok_start": 4, "tok_end": 6, "surface": "𝒜lder Bay"}))
    assert found.mentions == [Mention(18, 27)]


def test_elevant():
    labels = [
        {"span": [11, 14], "entity_id": "Q7259", "type": "Q5"},
        {"span": [0, 6], "entity_id": "<NIL>"},
    ]
    found = parse_elevant(json.dumps({"id": 0, "text": TEXT, "labels": labels}))
    assert (found.text_id, found.entities) == ("0", ["Q7259"])
    assert found.mentions == [Mention(0, 6), Mention(11, 14, "Q7259", "Q5")]


def test_webis():
    wiki = "https://en.wikipedia.org/wiki/"
    explicit = [
        {"mention": "bay", "entity": [wiki + "Bay"], "relevance": 1},
        {"mention": "bay", "entity": [wiki + "Bay_(colour)"], "relevance": 2},
        {"mention": "ADA", "entity": ["https://ada.example/"], "relevance": 2},
    ]
    implicit = [{"mention": "all", "entity": [wiki + "Alder_Bay"], "relevance": 2}]
    line = {"query": TEXT, "explicit_entities": explicit, "implicit_entities": implicit}
    found = parse_webis(json.dumps(line))
    assert found.mentions == [Mention(11, 14), Mention(24, 27, "Bay_(colour)")]
    assert (found.dropped, found.entities) == (1, ["Bay_(colour)", "Bay", "Alder_Bay"])


def test_annotations_without_a_place():
    found = annotate("q", TEXT, ["met  ADA", " "], ["<dbpedia:Ada>", "bay"])
    assert found == ("q", None, TEXT, [Mention(7, 14, "Ada")], 0, ["Ada", "Bay"])


@pytest.mark.parametrize(
    ("text", "surface", "place"),
    [
        ("to N. Ireland", "n . ireland", (3, 13)),
        ("washington d.c. located", "washington d . c .", (0, 14)),
        ('"cold snooker" news', "cold snooker news", (1, 19)),
        ("newyork york", "york", (8, 12)),
        ("newyork", "york", (3, 7)),
        ("İx ada's", "ADA's", (3, 8)),
        ("a ?? b", " ?? ", (2, 4)),
        ("a_b", "a b", (0, 3)),
    ],
)
def test_a_mention_is_found_by_its_words(text: str, surface: str, place: tuple[int, int]):
    assert locate(text, surface) == place


@pytest.mark.parametrize("surface", ["", " ", "c", "a c", "?"])
def test_a_mention_that_is_not_there(surface: str):
    with pytest.raises(MalformedText, match=r"^mention that is not in the text at mention 3$"):
        locate("a b", surface, 3)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "bad JSON"),
        ("[" * 100_000, "bad JSON"),
        ("[]", "no JSON object"),
        ('{"mentions": []}', "no text"),
        ('{"text": 1, "mentions": []}', "no text"),
        ('{"text": " ", "mentions": []}', "empty text"),
        ('{"text": "a\\u0007", "mentions": []}', "control characters"),
        ('{"text": "a\\ud800", "mentions": []}', "half a character"),
        ('{"text": "a", "id": "\\ud800", "mentions": []}', "half a character"),
        (record({"start": 0, "end": 1, "entity": "\ud800"}), "half a character"),
        ('{"text": "a"}', "no mentions"),
        ('{"text": "a", "mentions": {}}', "bad mention"),
        (record(id=["x"]), "bad id"),
        (record({"start": 0, "end": 1}, 3), "bad mention at mention 2"),  # type: ignore[arg-type]
        (record({"start": 0, "end": 1, "entity": 3}), "bad mention at mention 1"),
        (record({"start": 0, "end": 1, "entity": []}), "bad mention at mention 1"),
        (record({"start": 0, "end": 1, "entities": 3}), "bad mention at mention 1"),
        (record({"end": 1}), "bad offsets at mention 1"),
        (record({"start": "0", "end": 1}), "bad offsets at mention 1"),
        (record({"start": 0.0, "end": 1}), "bad offsets at mention 1"),
        (record({"start": False, "end": 1}), "bad offsets at mention 1"),
        (record({"start": -1, "end": 1}), "mention outside of the text at mention 1"),
        (record({"start": 0, "end": 10**400}), "mention outside of the text at mention 1"),
        (record({"start": 0, "end": 28}), "mention outside of the text at mention 1"),
        (record({"tok_start": 0, "tok_end": 7}), "mention outside of the text at mention 1"),
        (record({"start": 2, "end": 2}), "empty mention at mention 1"),
        (record({"start": 3, "end": 2}), "empty mention at mention 1"),
        (record({"start": 6, "end": 7}), "empty mention at mention 1"),
        (
            record({"start": 0, "end": 3, "surface": "zor"}),
            "mention that is not in the text at mention 1",
        ),
    ],
)
def test_faults_of_a_record(line: str, message: str):
    with pytest.raises(MalformedText, match=f"^{re.escape(message)}$"):
        parse_record(line)


@pytest.mark.parametrize(
    ("parse", "line", "message"),
    [
        (parse_elevant, {}, "no mentions"),
        (parse_elevant, {"labels": [{"span": [1]}]}, "bad offsets at mention 1"),
        (
            parse_elevant,
            {"labels": [{"span": [0, 99]}]},
            "mention outside of the text at mention 1",
        ),
        (parse_webis, {}, "no mentions"),
        (parse_webis, {"explicit_entities": [{"entity": []}]}, "bad mention at mention 1"),
        (parse_webis, {"explicit_entities": [{"mention": "ada"}]}, "bad mention at mention 1"),
    ],
)
def test_faults_of_other_records(parse, line: dict[str, Any], message: str):
    with pytest.raises(MalformedText, match=f"^{re.escape(message)}$"):
        parse(json.dumps({"text": TEXT} | line))


SPANS = st.tuples(st.integers(0, 8), st.integers(1, 4), st.sampled_from([None, "A", "B"]))


@given(st.lists(SPANS, max_size=7))
def test_of_overlapping_mentions_linked_and_long_ones_stay(spans):
    mentions = [Mention(start, start + size, entity) for start, size, entity in spans]
    kept: list[Mention] = []
    for linked, size in itertools.product((True, False), range(4, 0, -1)):
        for mention in mentions:
            if (mention.entity is not None, mention.end - mention.start) == (linked, size) and all(
                mention.end <= other.start or other.end <= mention.start for other in kept
            ):
                kept.append(mention)
    assert drop_overlapping(mentions) == sorted(kept)


def test_many_mentions():
    mentions = [Mention(place, place + 2, "A") for place in range(100_000)]
    started = time.process_time()
    assert len(drop_overlapping(mentions)) == 50_000
    assert time.process_time() - started < 20
