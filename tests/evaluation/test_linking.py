"""Metrics of linking: by hand, against a slow version, and as sums over parts."""

from __future__ import annotations

import time
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.evaluation.linking import (
    NIL,
    LinkCounts,
    Links,
    count_links,
    count_presence,
    covered,
    link_metrics,
    match_links,
)

Mention = tuple[int, int, int]
Texts = list[list[Mention]]


def links(texts: Texts) -> Links:
    flat = np.array([mention for text in texts for mention in text], np.int32).reshape(-1, 3)
    offsets = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int64)
    return Links(offsets, *flat.T)


def fits(a: Mention, b: Mention, exact: bool) -> bool:
    near = a[:2] == b[:2] if exact else a[0] < b[1] and b[0] < a[1]
    return near and a[2] == b[2] != NIL


def most_pairs(gold: list[Mention], predicted: list[Mention], exact: bool) -> int:
    """Try every order of the predictions against the gold mentions."""
    best = 0
    few, many = sorted((gold, predicted), key=len)
    for order in permutations(many, len(few)):
        best = max(best, sum(fits(a, b, exact) for a, b in zip(few, order, strict=True)))
    return best


MENTIONS = st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(NIL, 1)).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[2])
)
TEXT_PAIRS = st.lists(
    st.tuples(st.lists(MENTIONS, max_size=4), st.lists(MENTIONS, max_size=4)), max_size=2
)


@settings(deadline=None, max_examples=100)
@given(TEXT_PAIRS, st.booleans())
def test_no_pairing_has_more_pairs(texts, exact: bool):
    golds, predictions = [text[0] for text in texts], [text[1] for text in texts]
    gold, predicted = links(golds), links(predictions)
    matched = match_links(gold, predicted, exact)
    flat_gold = [(n, *mention) for n, text in enumerate(golds) for mention in text]
    flat_predicted = [(n, *mention) for n, text in enumerate(predictions) for mention in text]
    used = matched[matched >= 0].tolist()
    assert len(used) == len(set(used))
    for p, g in enumerate(matched.tolist()):
        if g >= 0:
            assert flat_predicted[p][0] == flat_gold[g][0]
            assert fits(flat_predicted[p][1:], flat_gold[g][1:], exact)
    assert len(used) == sum(most_pairs(g, p, exact) for g, p in texts)


@settings(deadline=None, max_examples=100)
@given(TEXT_PAIRS, st.booleans())
def test_covered_gold_has_a_candidate_of_its_entity(texts, exact: bool):
    gold, candidates = links([text[0] for text in texts]), links([text[1] for text in texts])
    expected = [any(fits(g, c, exact) for c in text[1]) for text in texts for g in text[0]]
    assert covered(gold, candidates, exact).tolist() == expected


def test_by_hand():
    # "Ada met Zor and Bob in Zorland", and a text with nothing.
    ada, zor, bob, zorland = 0, 1, 2, 3
    gold: Texts = [[(0, 3, ada), (8, 11, zor), (16, 19, NIL), (23, 30, zorland)], []]
    predicted: Texts = [
        [(0, 7, ada), (8, 11, zorland), (16, 19, bob), (23, 26, zorland), (27, 30, zorland)],
        [(2, 3, ada)],
    ]
    counts = count_links(links(gold), links(predicted))
    assert [each.tolist() for each in counts] == [[2], [6], [2], [3]]
    assert link_metrics(counts) == pytest.approx({"precision": 1 / 3, "recall": 2 / 3, "f1": 4 / 9})
    exact = count_links(links(gold), links(predicted), exact=True)
    assert [each.tolist() for each in exact] == [[0], [6], [0], [3]]
    assert covered(links(gold), links(predicted)).tolist() == [True, False, False, True]


def test_by_length():
    gold = links([[(0, 1, 0), (5, 15, 1), (20, 21, 2)]])
    predicted = links([[(0, 10, 0), (5, 15, 1), (30, 31, 2)]])
    long, longer = ((each.ends - each.starts > 1).astype(np.int64) for each in (gold, predicted))
    counts = count_links(gold, predicted, False, long, longer, 2)
    found = link_metrics(counts, ["one", "more"])
    assert found == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 3,
            "f1": 2 / 3,
            "one.precision": 0.0,
            "one.recall": 0.5,
            "one.f1": 0.0,
            "more.precision": 1.0,
            "more.recall": 1.0,
            "more.f1": 1.0,
        }
    )


def test_nothing_to_divide_by_is_zero():
    nothing = links([[], []])
    one = links([[(0, 1, 0)], []])
    zeros = {"precision": 0.0, "recall": 0.0, "f1": 0.0}
    for gold, predicted in ((nothing, nothing), (one, nothing), (nothing, one)):
        assert link_metrics(count_links(gold, predicted)) == zeros
    empty = links([])
    assert link_metrics(count_links(empty, empty)) == zeros
    assert covered(empty, empty).tolist() == []


def test_counts_of_parts_add_up():
    rng = np.random.default_rng(3)

    def draw() -> Texts:
        return [
            [
                (start, start + int(rng.integers(1, 4)), int(rng.integers(-1, 4)))
                for start in rng.integers(0, 12, rng.integers(0, 6)).tolist()
            ]
            for _ in range(40)
        ]

    gold, predicted = draw(), draw()

    def count(part: slice) -> LinkCounts:
        one, other = links(gold[part]), links(predicted[part])
        groups = np.maximum(one.entities, 0), np.maximum(other.entities, 0)
        return count_links(one, other, False, groups[0], groups[1], 4)

    whole = count(slice(None))
    parts = [count(slice(a, b)) for a, b in ((0, 11), (11, 11), (11, 40))]
    for total, *each in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(total, sum(each))
    assert whole.right.sum() == whole.found.sum() > 0


def ragged(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.concatenate(([0], np.cumsum([len(each) for each in lists])))
    return offsets.astype(np.int64), np.array([e for each in lists for e in each], np.int64)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(NIL, 5), max_size=4), st.lists(st.integers(NIL, 5), max_size=4)
        ),
        max_size=5,
    ),
    st.lists(st.integers(0, 7), unique=True, max_size=5),
)
def test_presence_of_query_entities(texts, queries: list[int]):
    gold, said = ([text[side] for text in texts] for side in (0, 1))
    counts = count_presence(*ragged(gold), *ragged(said), np.array(queries, np.int64))
    both = [sum(q in gold and q in said for gold, said in texts) for q in queries]
    assert counts.right.tolist() == counts.found.tolist() == both
    assert counts.predicted.tolist() == [sum(q in said for _, said in texts) for q in queries]
    assert counts.gold.tolist() == [sum(q in gold for gold, _ in texts) for q in queries]


def test_sides_that_do_not_fit_are_refused():
    one, two = links([[]]), links([[], []])
    for call in (match_links, covered):
        with pytest.raises(ValueError, match="different texts"):
            call(one, two)
    queries = np.array([1, 1])
    with pytest.raises(ValueError, match="different texts"):
        count_presence(one.offsets, one.entities, two.offsets, two.entities, queries)
    with pytest.raises(ValueError, match="twice"):
        count_presence(one.offsets, one.entities, one.offsets, one.entities, queries)


def test_many_mentions_of_one_entity_in_one_text():
    size = 20_000
    gold = links([[(3 * place, 3 * place + 2, 0) for place in range(size)]])
    predicted = links([[(3 * place + 2, 3 * place + 3, 0) for place in range(size)]])
    started = time.process_time()
    assert count_links(gold, predicted).right.sum() == 0
    assert count_links(gold, gold).right.sum() == size
    assert covered(gold, gold).all()
    assert time.process_time() - started < 20
