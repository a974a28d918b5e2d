"""Building lexicon, entities and words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.corpora.knowledge_names import LINK_KINDS, NAME_KINDS
from corpusmill.linking.entities import Entities
from corpusmill.linking.factors import factors_of
from corpusmill.linking.folding import keys_of
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.lexicon import Lexicon
from corpusmill.linking.words import Words
from tests.linking import slow
from tests.linking.invented import knowledge, lexicon_rows, table

COLUMNS = ["surface", "entity", "source", "kind", "count"]
NO_VALUES = pa.table(
    {
        "entity": pa.array([], pa.string()),
        "attribute": pa.array([], pa.string()),
        "value": pa.array([], pa.float64()),
    }
)
NO_LINKS = pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())})


def entities_of(pairs: list[tuple[str, str, str]]) -> Entities:
    rows = [(surface, entity, "made_up", kind, 1) for surface, entity, kind in pairs]
    return Entities.build(table(COLUMNS, rows), NO_VALUES, NO_LINKS)


@pytest.mark.parametrize("steps", [1, 8, 9, 12])
def test_a_redirect_too_long_to_follow_leads_nowhere(steps: int):
    chain = [f"Step {n}" for n in range(steps)] + ["Goal"]
    pairs = [(a, b, "redirect") for a, b in pairwise(chain)]
    entities = entities_of([*pairs, ("zzz", "Zzz top", "alias")])
    number = entities.numbers(pa.array(["Step 0"]))[0]
    assert (number == entities.numbers(pa.array(["Goal"]))[0]) == (steps <= 8)
    assert number != entities.numbers(pa.array(["Zzz top"]))[0]


def test_lexicon_holds_all_candidates_the_likeliest_first():
    lexicon, entities, _ = knowledge()
    names = [slow.entity_key(name) for name in entities.names.to_pylist()]
    assert sorted(names) == sorted(slow.TITLES)
    assert len(lexicon.surfaces.hashes) == len(slow.LEXICON)
    for surface, held in slow.LEXICON.items():
        number = lexicon.surfaces.find(slow_key(surface))[0]
        shown = range(lexicon.offsets[number], lexicon.offsets[number + 1])
        assert [names[lexicon.entities[c]] for c in shown] == slow.candidates(surface)
        for c in shown:
            kinds = held[names[lexicon.entities[c]]]
            assert lexicon.counts[c].tolist() == [kinds[kind] for kind in LINK_KINDS]
            bits = [lexicon.names[c] >> bit & 1 for bit in range(len(NAME_KINDS))]
            assert bits == [kinds[kind] > 0 for kind in NAME_KINDS]
        written = slow.WRITTEN[surface]
        assert lexicon.written[number].tolist() == [written[p] for p in ("upper", "first", "other")]


def slow_key(surface: str) -> np.ndarray:
    return keys_of(pa.array([surface]))


def test_titles_are_one_whatever_their_spelling():
    entities = entities_of([("a", "star wars", "text"), ("b", "Star_Wars", "text")])
    assert entities.names.to_pylist() == ["Star_Wars"]
    assert entities.numbers(pa.array(["STAR WARS", "Star_Wars", "Trek", "?"])).tolist() == [
        0,
        0,
        -1,
        -1,
    ]


def test_redirects_are_followed_to_their_end():
    chain = [("A", "B", "redirect"), ("B", "C", "redirect"), ("x", "A", "text")]
    entities = entities_of(chain)
    assert entities.names.to_pylist() == ["C"]
    assert entities.numbers(pa.array(["A", "B", "C"])).tolist() == [0, 0, 0]


def test_redirects_in_a_circle_end():
    circle = [("A", "B", "redirect"), ("B", "A", "redirect"), ("C", "C", "redirect")]
    entities = entities_of(circle)
    assert sorted(entities.names.to_pylist()) == ["A", "B", "C"]


def test_unknown_kinds_are_refused():
    rows = table(COLUMNS, [("a", "A", "s", "hearsay", 1)])
    with pytest.raises(ValueError, match="'hearsay' is no kind of a lexicon's row"):
        Lexicon.build(rows, Entities.build(rows, NO_VALUES, NO_LINKS))


def test_an_empty_lexicon_finds_nothing():
    rows = lexicon_rows().slice(0, 0)
    entities = Entities.build(rows, NO_VALUES, NO_LINKS)
    lexicon = Lexicon.build(rows, entities)
    known = Knowledge(lexicon, entities, Words.build({}, None, entities))
    texts = pa.record_batch({"text_id": ["t"], "text": ["Rome and York"]})
    assert factors_of(texts, known, 20)["starts"].to_pylist() == [[]]


def test_words_are_counted_as_the_slow_way_does():
    words = knowledge().words
    for place, background in enumerate(("texts", "edited")):
        seen, capitals = slow.BACKGROUND[background]
        for word, count in seen.items():
            row = words.find(slow_key(word))[0]
            assert words.counts[row, place] == count
            assert words.capitals[row, place] == capitals[word]
        assert words.counts[:, place].sum() == seen.total()
