"""Errors by spanning trees: against a slow version, by hand, and as sums over parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.coreference.errors import (
    COMMON,
    NAME,
    PRONOUN,
    antecedent_links,
    count_types,
    spanning_links,
    wrong_links,
)
from corpusmill.evaluation.coreference import Mentions, count_coreference

Mention = tuple[int, int, int]
"""Start, end and cluster."""


def mentions(documents: list[list[Mention]]) -> Mentions:
    flat = np.array([each for document in documents for each in document], np.int32).reshape(-1, 3)
    offsets = np.concatenate(([0], np.cumsum([len(document) for document in documents])))
    return Mentions(offsets.astype(np.int64), *flat.T)


def slow_links(document: list[Mention], types: list[int], heads: list[int]):
    """Look at all mentions before each."""
    links = []
    for anaphor, (start, end, cluster) in enumerate(document):
        before = [
            (s, -e, n)
            for n, (s, e, c) in enumerate(document)
            if c == cluster and (s, -e) < (start, -end)
        ]
        alike = [each for each in before if heads[each[2]] == heads[anaphor]]
        if types[anaphor] != PRONOUN and alike:
            before = alike
        if before:
            links.append((max(before)[2], anaphor))
    return links


def slow_errors(links, document: list[Mention], other: list[Mention]):
    where = {(start, end): cluster for start, end, cluster in other}
    errors = []
    for link in links:
        clusters = [where.get(document[place][:2]) for place in link]
        if clusters[0] is None or clusters[0] != clusters[1]:
            errors.append(link)
    return errors


SPANS = [(start, start + length) for start in range(4) for length in (1, 2, 3)]


@st.composite
def sides(draw) -> tuple[list[Mention], list[int], list[int], list[Mention]]:
    def side() -> list[Mention]:
        spans = draw(st.lists(st.sampled_from(SPANS), unique=True, max_size=8))
        return [(*span, draw(st.integers(0, 2))) for span in spans]

    document = side()
    types = [draw(st.integers(0, 2)) for _ in document]
    return document, types, [draw(st.integers(0, 1)) for _ in document], side()


def recall_errors(gold: Mentions, system: Mentions, types, heads):
    return wrong_links(spanning_links(gold, types, heads), gold, system)


def precision_errors(gold: Mentions, system: Mentions, antecedents):
    return wrong_links(antecedent_links(system, antecedents), system, gold)


def pairs_of(links, offsets) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in offsets[1:]]
    for document, antecedent, anaphor in zip(*(each.tolist() for each in links), strict=True):
        begin = int(offsets[document])
        found[document].append((antecedent - begin, anaphor - begin))
    return found


@settings(deadline=None, max_examples=150)
@given(st.lists(sides(), max_size=3))
def test_links_and_errors_are_those_of_all_mentions_before(documents):
    gold = mentions([each[0] for each in documents])
    system = mentions([each[3] for each in documents])
    types, heads = (np.array([n for each in documents for n in each[k]], int) for k in (1, 2))
    links = [slow_links(*each[:3]) for each in documents]
    assert pairs_of(spanning_links(gold, types, heads), gold.offsets) == links
    errors = recall_errors(gold, system, types, heads)
    expected = [
        slow_errors(found, each[0], each[3]) for found, each in zip(links, documents, strict=True)
    ]
    assert pairs_of(errors, gold.offsets) == expected
    # No fewer than MUC's.
    muc = count_coreference(gold, system).muc
    missing = muc[:, 1] - muc[:, 0]
    assert (np.bincount(errors.documents, minlength=len(documents)) >= missing).all()
    assert count_types(spanning_links(gold, types, heads), types).sum() == muc[:, 1].sum()


ADA, ENGINEER, SHE, HER, ADA_AGAIN = (0, 1, 7), (3, 6, 7), (7, 8, 7), (9, 10, 7), (12, 13, 7)
GOLD = [ADA, ENGINEER, SHE, HER, ADA_AGAIN]
TYPES = np.array([NAME, COMMON, PRONOUN, PRONOUN, NAME])
HEADS = np.array([0, 1, 2, 3, 0])


def test_by_hand():
    links = spanning_links(mentions([GOLD]), TYPES, HEADS)
    assert links.anaphors.tolist() == [1, 2, 3, 4]
    # The name goes back to the name, not to the pronoun that is closer.
    assert links.antecedents.tolist() == [0, 1, 2, 0]
    # The engineer is missed, and the last mention is another's.
    system = mentions([[(*ADA[:2], 1), (*SHE[:2], 1), (*HER[:2], 1), (*ADA_AGAIN[:2], 2)]])
    errors = recall_errors(mentions([GOLD]), system, TYPES, HEADS)
    assert errors.documents.tolist() == [0, 0, 0]
    assert list(zip(errors.antecedents, errors.anaphors, strict=True)) == [(0, 1), (1, 2), (0, 4)]
    assert count_types(errors, TYPES).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert count_types(links, TYPES).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]


def test_errors_of_precision_are_the_system_s_own_links():
    system = mentions([[ADA, (2, 3, 7), SHE, HER]])
    # "her" was resolved to the first mention, over two that are closer.
    errors = precision_errors(mentions([GOLD]), system, np.array([-1, 0, 1, 0], np.int32))
    assert list(zip(errors.antecedents, errors.anaphors, strict=True)) == [(0, 1), (1, 2)]
    assert len(antecedent_links(system, np.array([-1, 0, 1, 0])).anaphors) == 3


def test_perfect_clusters_have_no_errors():
    gold = mentions([GOLD, [], GOLD[::-1]])
    types, heads = np.concatenate([TYPES, TYPES[::-1]]), np.concatenate([HEADS, HEADS[::-1]])
    renumbered = gold._replace(clusters=gold.clusters * 3 - 50)
    assert len(recall_errors(gold, renumbered, types, heads).anaphors) == 0
    assert len(spanning_links(gold, types, heads).anaphors) == 8


def test_the_same_span_in_another_document_is_no_twin():
    gold = mentions([[ADA, SHE], []])
    types, heads = np.array([NAME, PRONOUN]), np.array([0, 1])
    assert len(recall_errors(gold, mentions([[], [ADA, SHE]]), types, heads).anaphors) == 1


def test_no_documents_and_no_mentions():
    for documents in range(3):
        none = mentions([[] for _ in range(documents)])
        nobody = np.zeros(0, np.int64)
        assert len(recall_errors(none, none, nobody, nobody).anaphors) == 0
        assert count_types(precision_errors(none, none, nobody), nobody).sum() == 0


def test_other_documents_are_refused():
    links = spanning_links(mentions([GOLD]), TYPES, HEADS)
    with pytest.raises(ValueError, match="different documents"):
        wrong_links(links, mentions([GOLD]), mentions([GOLD, []]))
