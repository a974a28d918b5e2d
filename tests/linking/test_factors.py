"""Candidates, features and factors of texts against the slow way."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from corpusmill.corpora.schemas import FACTORS
from corpusmill.linking.candidates import Mentions
from corpusmill.linking.coherence import coherence
from corpusmill.linking.factors import candidates_of, factors_of
from corpusmill.linking.features import FEATURE_NAMES, FEATURES
from corpusmill.linking.knowledge import Knowledge
from corpusmill.storage.arrays import pack, unpack
from tests.linking import slow
from tests.linking.invented import TEXTS, knowledge

FEW = 2


def batch(texts: Sequence[str | None], **more: list) -> pa.RecordBatch:
    ids = [f"t{place}" for place in range(len(texts))]
    lists = {"mention_starts": pa.int32(), "mention_ends": pa.int32()}
    columns = {"text_id": pa.array(ids, pa.string()), "text": pa.array(texts, pa.string())}
    for name, values in more.items():
        columns[name] = pa.array(values, pa.list_(lists.get(name, pa.string())))
    return pa.record_batch(columns)


@pytest.mark.parametrize("most", [1, FEW, 20])
def test_candidates_and_features_are_those_of_the_slow_way(most: int):
    known = knowledge()
    found = candidates_of(pa.array(TEXTS), known, most)
    expected = [(n, row) for n, text in enumerate(TEXTS) for row in slow.rows(text, most)]
    mentions, texts = found.mentions, found.units.characters.texts
    of_mention = np.searchsorted(mentions.texts, np.arange(len(mentions.firsts)), "right") - 1
    entities = mentions.entities(known.lexicon)
    assert len(expected) == len(entities) > 50
    for row, (text, wanted) in enumerate(expected):
        mention = mentions.owners[row]
        assert of_mention[mention] == text
        begin = texts[text]
        assert wanted["span"] == (mentions.begins[mention] - begin, mentions.ends[mention] - begin)
        entity = int(entities[row])
        title = None if entity < 0 else known.entities.names[entity].as_py()
        assert wanted["entity"] == (None if title is None else slow.entity_key(title))
        values = dict(zip(FEATURE_NAMES, found.features[row].tolist(), strict=True))
        slowly = {name: float(wanted["features"].get(name, 0)) for name in FEATURE_NAMES}
        # Priors and their like are kept in 32 bits.
        assert values == pytest.approx(slowly, rel=1e-6, abs=1e-6)
        assert set(wanted["features"]) <= set(FEATURE_NAMES)


def test_features_have_distinct_names_and_say_what_they_are():
    assert len(set(FEATURE_NAMES)) == len(FEATURES)
    assert all(feature.sort and feature.formula for feature in FEATURES)


def test_every_feature_takes_several_values():
    features = candidates_of(pa.array(TEXTS), knowledge(), 20).features
    same = [
        name for name, column in zip(FEATURE_NAMES, features.T, strict=True) if not np.ptp(column)
    ]
    # Of these the invented knowledge has no case.
    unseen = {"by_redirect", "is_product", "is_event", "is_character", "is_brand", "is_name"}
    unseen |= {"has_date", "has_organization", "has_event", "has_product", "initials"}
    assert set(same) <= unseen


def test_factors_lead_back_to_text_and_entity():
    texts = batch([*TEXTS, None])
    known = knowledge()
    factors = factors_of(texts, known, FEW)
    factors.cast(to_arrow_schema(FACTORS))
    found = candidates_of(texts["text"], known, FEW)
    begins, ends = found.spans(found.mentions.rows[:-1])
    entities = found.mentions.entities(known.lexicon)
    assert factors["example_id"].equals(texts["text_id"])
    width = len(FEATURES)
    for place, text in enumerate([*TEXTS, ""]):
        expected = slow.rows(text, FEW)
        row = {name: factors[name][place].as_py() for name in factors.schema.names}
        firsts = [n for n, each in enumerate(expected) if each["entity"] is None]
        assert row["row_offsets"] == [*firsts, len(expected)]
        assert len(row["features"]) == width * len(expected)
        mine = slice(*found.mentions.texts[place : place + 2])
        assert list(zip(begins[mine].tolist(), ends[mine].tolist(), strict=True)) == [
            expected[n]["span"] for n in firsts
        ]
        assert [(a, b) for a, b in zip(row["starts"], row["ends"], strict=True)] == [
            expected[n]["units"] for n in firsts
        ]
        names = [
            None if entity < 0 else slow.entity_key(known.entities.names[entity].as_py())
            for entity in entities[
                slice(*found.mentions.rows[found.mentions.texts][place : place + 2])
            ]
        ]
        assert names == [each["entity"] for each in expected]
        assert row["gold"] is None


def test_gold_is_the_row_of_span_and_entity():
    text = "Rome, New York Giants, U.S. and Obamas"
    texts = batch(
        [text, "nothing", text],
        mention_starts=[[0, 6, 6, 23, 32, 0], [], [28]],
        mention_ends=[[4, 14, 21, 27, 38, 4], [], [31]],
        mention_entities=[
            ["A.S. Roma", "Big_Apple", "new york giants", "No_Such_Page", "Barack_Obama", None],
            [],
            ["Rome"],
        ],
    )
    factors = factors_of(texts, knowledge(), 20)
    rows = slow.rows(text, 20)
    wanted = {((0, 4), "asroma"), ((6, 21), "newyorkgiants"), ((32, 38), "barackobama")}
    gold = [n for n, row in enumerate(rows) if (row["span"], row["entity"]) in wanted]
    assert factors["gold"].to_pylist() == [gold, [], []]
    assert len(gold) == 3


@pytest.mark.parametrize("seed", range(20))
def test_overlapping_gold_is_resolved_longest_first(seed: int):
    text = "new york giants u.s. rome new york obama"
    rows = [row for row in slow.rows(text, 20) if row["entity"] is not None]
    chance = np.random.default_rng(seed)
    titles = {slow.entity_key(name): name for name in knowledge().entities.names.to_pylist()}
    given = [rows[n] for n in chance.permutation(len(rows))[:6]]
    texts = batch(
        [text],
        mention_starts=[[row["span"][0] for row in given]],
        mention_ends=[[row["span"][1] for row in given]],
        mention_entities=[[titles[row["entity"]] for row in given]],
    )
    kept: list[tuple[int, int]] = []
    wanted = set()
    for row in sorted(given, key=lambda row: (row["span"][0] - row["span"][1], row["span"][0])):
        begin, end = row["span"]
        if all(end <= a or b <= begin for a, b in kept):
            kept.append((begin, end))
            wanted.add((row["span"], row["entity"]))
    every = slow.rows(text, 20)
    gold = [n for n, row in enumerate(every) if (row["span"], row["entity"]) in wanted]
    assert factors_of(texts, knowledge(), 20)["gold"].to_pylist() == [gold]


def test_batches_do_not_matter():
    whole = factors_of(batch(TEXTS), knowledge(), FEW)
    for place, text in enumerate(TEXTS):
        alone = factors_of(batch([text]), knowledge(), FEW)
        for name in whole.schema.names[1:]:
            assert alone[name][0] == whole[name][place], name


def test_further_features_stand_behind():
    texts = batch(TEXTS)
    rows = len(candidates_of(texts["text"], knowledge(), FEW).features)
    further = np.arange(2.0 * rows).reshape(rows, 2)
    factors = factors_of(texts, knowledge(), FEW, further)
    matrix = factors["features"].flatten().to_numpy().reshape(rows, -1)
    assert (matrix[:, len(FEATURES) :] == further).all()


def test_no_texts_and_long_texts():
    assert len(factors_of(batch([]), knowledge(), FEW)) == 0
    long = factors_of(batch(["Rome and New York " * 5000, "x" * 100_000]), knowledge(), FEW)
    assert [len(spans) for spans in long["starts"].to_pylist()] == [15_000, 0]


def test_knowledge_is_saved_as_arrays():
    known = knowledge()
    again = Knowledge.of_arrays(unpack(pack(known.arrays())))
    assert factors_of(batch(TEXTS), again, FEW).equals(factors_of(batch(TEXTS), known, FEW))
    arrays = known.arrays()
    del arrays["lexicon.prior"]
    with pytest.raises(KeyError, match=r"lexicon\.prior"):
        Knowledge.of_arrays(arrays)


def related(mentions: Mentions, chosen: np.ndarray, row: int) -> float:
    known = knowledge()
    names = known.entities.names.to_pylist()
    numbers = mentions.entities(known.lexicon)
    entities = ["" if n < 0 else slow.entity_key(names[n]) for n in numbers]
    texts = np.searchsorted(mentions.rows[mentions.texts], np.arange(len(numbers)), "right")
    mine = entities[row]
    if not mine:
        return 0.0
    same_text = np.flatnonzero(chosen & (texts == texts[row]))
    others = {entities[r] for r in same_text} - {mine, ""}
    theirs = set().union(*(slow.IN_LINKS[other] for other in others))
    union = theirs | slow.IN_LINKS[mine]
    return len(theirs & slow.IN_LINKS[mine]) / len(union) if union else 0.0


@pytest.mark.parametrize("seed", range(5))
def test_coherence_is_the_jaccard_of_in_links(seed: int):
    mentions = candidates_of(pa.array(TEXTS), knowledge(), 20).mentions
    chosen = np.random.default_rng(seed).random(len(mentions.owners)) < 0.4
    found = coherence(mentions, chosen, knowledge())
    slowly = np.array([related(mentions, chosen, row) for row in range(len(chosen))])
    assert found[:, 0] == pytest.approx(slowly)
    for row, mention in enumerate(mentions.owners):
        best = slowly[mentions.owners == mention].max()
        assert found[row, 1] == (slowly[row] > 0 and slowly[row] == pytest.approx(best))
    assert found[:, 1].any()
