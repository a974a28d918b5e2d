"""Examples of errors: chosen by chance and by kind, cut around the mention, told in full."""

from __future__ import annotations

import pyarrow as pa
import pytest

from corpusmill.evaluation.linking import NIL
from corpusmill.linking.errors import EXACT, KINDS, count_kinds, judge
from corpusmill.linking.examples import (
    AROUND,
    LONGEST,
    Example,
    choose_examples,
    window,
)
from tests.linking.scored import FAMILY, GOLD, gold_batch, made_up_model

MANY = 100


def test_every_kind_that_occurs_has_an_example_and_every_mention_its_place():
    batch, model = gold_batch(), made_up_model()
    examples = choose_examples(batch, model, MANY)
    counts = count_kinds(judge(batch, model).verdicts)
    assert {each.kind for each in examples} == {n for n in range(len(KINDS)) if counts[n]}
    predictions = model.predict_batch(batch.select(["text"])).to_pylist()
    for example in examples:
        number = [f"t<{n}>" for n in range(len(GOLD))].index(example.text_id)
        assert example.text == GOLD[number][0]
        assert not example.before
        assert not example.after
        assert example.pairs[example.focus].kind == example.kind
        row = predictions[number]
        told = [pair.predicted for pair in example.pairs if pair.predicted]
        for at, name in enumerate(
            ("mention_starts", "mention_ends", "mention_entities", "mention_scores",
             "mention_probabilities", "runner_up_entities", "runner_up_probabilities")
        ):  # fmt: skip
            assert [side[at] for side in told] == row[name]
        gold = sorted(pair.gold[:3] for pair in example.pairs if pair.gold)
        wanted = batch.slice(number, 1).to_pylist()[0]
        names = ("mention_starts", "mention_ends", "mention_entities")
        assert gold == sorted(zip(*(wanted[name] for name in names), strict=True))


def test_the_gold_entity_s_own_score_is_told_where_it_was_a_candidate():
    examples = choose_examples(gold_batch(), made_up_model(), MANY)
    for pair in (pair for example in examples for pair in example.pairs):
        if pair.gold is None:
            continue
        reachable = pair.kind != NIL and KINDS[pair.kind].name in (
            "right_exact", "right_boundary", "wrong_candidate", "missed_place", "missed_nil"
        )  # fmt: skip
        assert (pair.gold.score is not None) == reachable
        if pair.kind == EXACT:
            assert pair.predicted
            assert pair.gold.score == pair.predicted.score


def test_the_texts_of_least_chance_are_chosen():
    batch, model = gold_batch(), made_up_model()
    every = choose_examples(batch, model, MANY)
    assert [(e.kind, e.chance) for e in every] == sorted((e.kind, e.chance) for e in every)
    firsts: dict[int, Example] = {}
    for example in every:
        firsts.setdefault(example.kind, example)
    assert choose_examples(batch, model, 1) == list(firsts.values())


def test_an_example_survives_json():
    for example in choose_examples(gold_batch(), made_up_model(), MANY):
        assert Example.from_json(example.to_json()) == example


@pytest.mark.parametrize("texts", [[], [("", [])], [("nothing at all", [])]])
def test_without_mentions_there_is_no_example(texts):
    assert choose_examples(gold_batch(texts), made_up_model(), MANY) == []


@pytest.mark.parametrize("filler", ["word ", "x", FAMILY, "e\u0301", "\u0301"])
def test_a_long_text_is_cut_around_the_mention(filler):
    text = f"{filler * 500} Rome {filler * 500}"
    examples = choose_examples(gold_batch([(text, ["Rome Rome"])]), made_up_model(), 1)
    for example in examples:
        assert len(example.text) <= LONGEST + 2 * AROUND
        assert "Rome" in example.text
        assert example.before
        assert example.after
    pair = examples[0].pairs[examples[0].focus]
    assert pair.gold
    assert examples[0].text[pair.gold.start : pair.gold.end] == "Rome"


def test_a_mention_of_any_length_is_shown_from_its_beginning():
    text = f"Rome {'and so on ' * 1000}"
    batch = gold_batch([(text, [])])
    columns = {"mention_starts": [[0]], "mention_ends": [[len(text)]], "mention_entities": [["X"]]}
    for name, values in columns.items():
        at, field = batch.schema.get_field_index(name), batch.schema.field(name)
        batch = batch.set_column(at, field, pa.array(values, field.type))
    for example in choose_examples(batch, made_up_model(), 1):
        assert len(example.text) <= LONGEST + AROUND
        assert (example.before, example.after) == (False, True)


def test_a_cut_parts_no_letter_from_its_marks():
    for filler in (FAMILY, "e\u0301"):
        text = f"{filler * 200} Rome {filler * 200}"
        start = text.index("Rome")
        left, right = window(text, start, start + 4)
        for place in (left, right):
            assert text[place] not in "\u0301\u200d"
            assert text[place - 1] != "\u200d"
        assert start - AROUND <= left < start
        assert start + 4 < right <= start + 4 + AROUND
