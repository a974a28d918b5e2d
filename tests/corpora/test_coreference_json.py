"""JSON lines with coreference: what they say and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpusmill.corpora import annotated_rows as rows
from corpusmill.corpora import coreference_json as json_lines
from tests.corpora.coreference_documents import faults, mentions, parse

RIVER: dict[str, Any] = {
    "document_id": "river",
    "part": 3,
    "genre": "song",
    "sentences": [["The", "river"], [], ["it", "runs", "deep"]],
    "pos": [["DT", "NN"], [], ["PRP", None, ""]],
    "speakers": [["", ""], [], ["Bo", "Bo", "Bo"]],
    "heads": [[1, -1], [], [3, -1, 3]],
    "entities": [[2, 4, "B"], [0, 2, "A"]],
    "clusters": [[[2, 3]], [[2, 3]], [[2, 4], [0, 2], [0, 2]]],
}


def test_keys_of_json():
    found = parse(json.dumps(RIVER), "json")
    assert (found.document_id, found.part, found.genre) == ("river", 3, "song")
    assert found.words == ["The", "river", "it", "runs", "deep"]
    assert found.pos == ["DT", "NN", "PRP", "", ""]
    assert found.lemmas == [""] * 5
    assert found.speakers == ["", "", "Bo", "Bo", "Bo"]
    assert found.sentence_offsets == [0, 2, 5]
    assert (found.heads, found.relations) == ([1, -1, 3, -1, 3], [""] * 5)
    spans = (found.entity_starts, found.entity_ends, found.entity_labels)
    assert spans == ([0, 2], [2, 4], ["A", "B"])
    assert mentions(found) == [(0, 2, 1), (2, 4, 1), (2, 3, 0)]


def test_json_without_clusters():
    assert parse('{"document_id": "a/b", "sentences": [["w"]]}', "json").genre == "a"
    assert parse('{"document_id": "a", "sentences": [["w"]]}', "json").mention_starts is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sentences": ["The river"]}, json_lines.NO_OBJECT),
        ({"sentences": None}, json_lines.NO_OBJECT),
        ({"document_id": 7}, json_lines.NO_OBJECT),
        ({"document_id": " "}, rows.NO_ID),
        ({"sentences": [[]]}, rows.NO_TOKENS),
        ({"sentences": [["The", " "], [], ["it", "runs", "deep"]]}, rows.EMPTY_WORD),
        ({"sentences": [["The", "a\tb"], [], ["it", "runs", "deep"]]}, json_lines.BAD_TEXT),
        ({"sentences": [["The", "\ud800"], [], ["it", "runs", "deep"]]}, json_lines.BAD_TEXT),
        ({"part": -1}, json_lines.BAD_PART),
        ({"part": True}, json_lines.BAD_PART),
        ({"pos": [["DT"]]}, json_lines.BAD_SHAPE),
        ({"pos": [["DT", 3], [], ["a", "b", "c"]]}, json_lines.BAD_SHAPE),
        ({"heads": [[1, -1], [], [0, -1, 3]]}, rows.BAD_HEAD),
        ({"heads": [[1, 0], [], [3, -1, 3]]}, rows.CYCLE),
        ({"heads": [[1, "x"], [], [3, -1, 3]]}, rows.BAD_HEAD),
        ({"entities": [[0, 2, "A B"]]}, json_lines.BAD_LABEL),
        ({"entities": [[0, 3, "A"]]}, rows.BAD_SPAN),
        ({"clusters": [[0, 2]]}, json_lines.BAD_CLUSTERS),
        ({"clusters": [[[1, 3]]]}, rows.BAD_SPAN),
        ({"clusters": [[[2, 2]]]}, rows.BAD_SPAN),
        ({"clusters": [[[2, 9]]]}, rows.BAD_SPAN),
        ({"clusters": [[[-1, 1]]]}, rows.BAD_SPAN),
        ({"clusters": [[[0.0, 1]]]}, rows.BAD_SPAN),
        ({"clusters": {}}, json_lines.BAD_CLUSTERS),
    ],
)
def test_refused_json(change: dict[str, Any], reason: str):
    line = json.dumps(RIVER | change)
    assert faults(f"{line}\n{json.dumps(RIVER)}\n", "json") == [(1, reason), (2, None)]


def test_lines_that_are_no_json():
    deep = "[" * 100_000
    assert [reason for _, reason in faults(f"{{\n\n[]\n{deep}\n", "json")] == [
        json_lines.BAD_JSON, json_lines.EMPTY_LINE, json_lines.NO_OBJECT, json_lines.BAD_JSON
    ]  # fmt: skip
