from __future__ import annotations

import gzip
import time
from collections import defaultdict
from pathlib import Path

import pytest

from corpusmill.alignment.mentions import contexts, mentions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Who wrote the score of Star Wars?", ["star wars"]),
        ("In The Poseidon Adventure the ship turns over.", ["poseidon adventure"]),
        (
            "The Beatles met Elvis Presley in Los Angeles.",
            ["beatles", "elvis presley", "los angeles"],
        ),
        ("Which of these is in the Gulf of Mexico?", ["gulf of mexico"]),
        ("Who starred in Back to the Future?", ["back to the future"]),
        ("Snakes lay eggs.", []),
        ("Where do snakes live? Snakes live in Africa.", ["africa"]),
        ("On Monday in May he came.", []),
        ("What is Spain's Juan Carlos?", ["spain", "juan carlos"]),
        ("Did J. R. R. Tolkien visit St. Louis?", ["j r r tolkien", "st louis"]),
        ("a film with Penélope Cruz", ["penelope cruz"]),
        ("He played in “Cats” and Grease", ["grease"]),
        ("France, Italy and Spain are there", ["italy and spain"]),
        ("the of and", []),
        ("", []),
        ("¿? ...", []),
    ],
)
def test_mentions(text: str, expected: list[str]) -> None:
    words, found = mentions(text)
    assert [mention.entity for mention in found] == expected
    for mention in found:
        assert " ".join(words[mention.begin : mention.end]) == mention.entity


def test_context_is_the_question_less_every_mention_of_the_entity() -> None:
    text = "Did Mozart play for Mozart's father in Vienna?"
    assert contexts(text) == [
        ("mozart", ["did", "play", "for", "father", "in", "vienna"]),
        ("vienna", ["did", "mozart", "play", "for", "mozart", "father", "in"]),
    ]


@pytest.mark.parametrize("unit", ["A", "A ", "A. ", "a'", "A&", "The Of ", '"', "é’", "x-"])
def test_time_is_linear_in_the_text(unit: str) -> None:
    began = time.perf_counter()
    mentions(unit * 200_000)
    assert time.perf_counter() - began < 20.0


@pytest.mark.corpus
def test_trivia_questions_give_the_stated_counts(corpora: Path) -> None:
    left_out = {"general", "newest", "rated", "for-kids"}
    instances: dict[str, list[str]] = defaultdict(list)
    with gzip.open(corpora / "labelled_questions" / "opentriviaqa.tsv.gz", "rt") as lines:
        next(lines)
        pairs = {tuple(line.split("\t")[:2]) for line in lines}
    for category, question in sorted(pairs):
        if category not in left_out:
            for entity, _ in contexts(question):
                instances[entity].append(category)
    kept = [held for held in instances.values() if len(held) >= 5 and len(set(held)) >= 2]
    assert len(kept) == 1690
    assert sum(len(held) for held in kept) == 27_758
    assert len({category for held in kept for category in held}) == 18
