"""Kinds of errors: each by its definition, pairings as large as can be, counts that add up."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.evaluation.linking import NIL, Links, count_links
from corpusmill.linking.errors import (
    BOUNDARY,
    EXACT,
    KINDS,
    NAMES,
    NIL_CHOSEN,
    NO_CANDIDATE,
    NO_ENTITY,
    NO_SURFACE,
    NOTHING,
    OVER_NIL,
    PLACE_TAKEN,
    SECOND,
    WRONG_CANDIDATE,
    WRONG_NO_CANDIDATE,
    classify,
    count_kinds,
    count_partition,
    judge,
    kinds_table,
)
from tests.linking.scored import gold_batch, made_up_model

Mention = tuple[int, int, int]
KNOWN = 2


def links(texts: list[list[Mention]]) -> Links:
    flat = np.array([mention for text in texts for mention in text], np.int32).reshape(-1, 3)
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int64)
    return Links(offsets, *flat.T)


def overlap(a: Mention, b: Mention) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def most_pairs(some: list[Mention], others: list[Mention], same: bool) -> int:
    few, many = sorted((some, others), key=len)
    return max(
        sum(overlap(a, b) and (not same or a[2] == b[2]) for a, b in zip(few, order, strict=True))
        for order in permutations(many, len(few))
    )


def kind_of_pair(gold: Mention, found: Mention, candidates: list[Mention]) -> int:
    if gold[2] == found[2]:
        return EXACT if gold == found else BOUNDARY
    reachable = any(overlap(gold, each) and gold[2] == each[2] for each in candidates)
    return WRONG_CANDIDATE if reachable else WRONG_NO_CANDIDATE


def kind_of_missed(gold: Mention, found: list[Mention], candidates: list[Mention]) -> int:
    if gold[2] >= KNOWN:
        return NO_ENTITY
    if not any(overlap(gold, each) and gold[2] == each[2] for each in candidates):
        spelled = any(gold[:2] == each[:2] for each in candidates)
        return NO_CANDIDATE if spelled else NO_SURFACE
    return PLACE_TAKEN if any(overlap(gold, each) for each in found) else NIL_CHOSEN


def kind_of_spurious(found: Mention, gold: list[Mention]) -> int:
    over = {each[2] for each in gold if overlap(found, each)}
    if over - {NIL}:
        return SECOND
    return OVER_NIL if over else NOTHING


def mentions(least: int, largest: int) -> st.SearchStrategy[list[Mention]]:
    each = st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(least, largest))
    return st.lists(each.map(lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])), max_size=4)


TEXTS = st.lists(st.tuples(mentions(NIL, KNOWN), mentions(0, 1), mentions(0, 1)), max_size=3)


@settings(deadline=None, max_examples=200)
@given(TEXTS)
def test_every_mention_has_the_kind_that_its_definition_says(texts):
    golds, founds, candidates = ([text[at] for text in texts] for at in range(3))
    verdicts = classify(links(golds), links(founds), links(candidates), KNOWN)
    gold_at = found_at = 0
    for gold, found, near in texts:
        kinds = verdicts.gold[gold_at : gold_at + len(gold)].tolist()
        partners = verdicts.partners[found_at : found_at + len(found)]
        partners = np.where(partners < 0, partners, partners - gold_at).tolist()
        paired = [each for each in partners if each >= 0]
        assert len(paired) == len(set(paired))
        for n, (mention, partner) in enumerate(zip(found, partners, strict=True)):
            kind = verdicts.predicted[found_at + n]
            if partner < 0:
                assert kind == kind_of_spurious(mention, gold)
            else:
                assert overlap(mention, gold[partner])
                assert kind == kinds[partner] == kind_of_pair(gold[partner], mention, near)
        for n, mention in enumerate(gold):
            if mention[2] == NIL:
                assert kinds[n] == NIL
            elif n not in paired:
                assert kinds[n] == kind_of_missed(mention, found, near)
        real = [each for each in gold if each[2] != NIL]
        right = [n for n, kind in enumerate(kinds) if kind in (EXACT, BOUNDARY)]
        assert len(right) == most_pairs(real, found, same=True)
        left = [each for n, each in enumerate(gold) if n not in right and each[2] != NIL]
        unused = [each for each, p in zip(found, partners, strict=True) if p not in right]
        wrong = sum(kind in (WRONG_CANDIDATE, WRONG_NO_CANDIDATE) for kind in kinds)
        assert wrong == most_pairs(left, unused, same=False)
        gold_at, found_at = gold_at + len(gold), found_at + len(found)


@settings(deadline=None, max_examples=100)
@given(TEXTS)
def test_counts_agree_with_the_metrics_and_add_up_over_parts(texts):
    golds, founds, candidates = ([text[at] for text in texts] for at in range(3))

    def count(part: slice) -> np.ndarray:
        gold, found, near = (links(side[part]) for side in (golds, founds, candidates))
        return count_kinds(classify(gold, found, near, KNOWN))

    kinds = count(slice(None))
    counts = count_links(links(golds), links(founds))
    assert kinds[:NO_ENTITY].sum() + kinds[SECOND:].sum() == counts.predicted[0]
    assert kinds[:SECOND].sum() == counts.gold[0]
    assert kinds[: BOUNDARY + 1].sum() == counts.right[0]
    assert np.array_equal(kinds, count(slice(1)) + count(slice(1, None)))


def test_each_kind_by_hand():
    gold = [
        (0, 4, 0), (10, 18, 1), (20, 24, 0), (30, 34, 0), (40, 44, 2), (50, 54, 1), (60, 64, 1),
        (70, 74, 0), (75, 79, 1), (80, 84, 1), (90, 94, NIL), (100, 110, 0),
    ]  # fmt: skip
    found = [
        (0, 4, 0), (10, 14, 1), (20, 24, 1), (30, 34, 1), (70, 79, 0), (90, 94, 1), (96, 98, 0),
        (100, 104, 0), (105, 110, 0),
    ]  # fmt: skip
    near = [*found, (20, 24, 0), (60, 64, 0), (75, 79, 1), (80, 84, 1)]
    verdicts = classify(links([gold]), links([found]), links([near]), KNOWN)
    missed = [NO_ENTITY, NO_SURFACE, NO_CANDIDATE]
    assert verdicts.gold.tolist() == [
        EXACT, BOUNDARY, WRONG_CANDIDATE, WRONG_NO_CANDIDATE, *missed, BOUNDARY, PLACE_TAKEN,
        NIL_CHOSEN, NIL, BOUNDARY,
    ]  # fmt: skip
    assert verdicts.predicted.tolist() == [
        EXACT, BOUNDARY, WRONG_CANDIDATE, WRONG_NO_CANDIDATE, BOUNDARY, OVER_NIL, NOTHING,
        BOUNDARY, SECOND,
    ]  # fmt: skip
    assert count_kinds(verdicts).tolist() == [1, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]


def test_no_texts_and_no_mentions_are_nothing():
    for texts in range(3):
        none = links([[]] * texts)
        assert not count_kinds(classify(none, none, none, KNOWN)).any()
    assert not count_partition(iter(()))["kinds"].any()


def test_kinds_have_distinct_names_of_four_groups():
    assert len(set(NAMES)) == len(KINDS)
    groups = [kind.group for kind in KINDS]
    assert list(dict.fromkeys(groups)) == ["right", "wrong", "missed", "spurious"]
    assert all(kind.title and kind.meaning for kind in KINDS)


def test_shares_are_of_the_sides_that_a_kind_belongs_to():
    table = kinds_table(np.arange(1.0, 13.0))
    assert table["count"].tolist() == list(range(1, 13))
    assert table["of_gold"].sum() == pytest.approx(1.0)
    assert table["of_predicted"].sum() == pytest.approx(1.0)
    assert table["of_gold"].isna().tolist() == [kind.group == "spurious" for kind in KINDS]
    assert table["of_predicted"].isna().tolist() == [kind.group == "missed" for kind in KINDS]
    assert kinds_table(np.zeros(12))["of_gold"].sum() == 0.0


def test_a_batch_is_judged_as_its_links_are_counted():
    batch, model = gold_batch(), made_up_model()
    judged = judge(batch, model)
    kinds = count_kinds(judged.verdicts)
    counts = count_links(judged.gold, judged.predicted)
    assert kinds[: BOUNDARY + 1].sum() == counts.right[0] > 0
    assert kinds[:SECOND].sum() == counts.gold[0] == 7
    assert kinds[NO_ENTITY] == 1
    parts = pa.Table.from_batches([batch]).to_batches(max_chunksize=2)
    assert np.array_equal(count_partition((part, model) for part in parts)["kinds"], kinds)
