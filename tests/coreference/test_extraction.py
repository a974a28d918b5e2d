"""Candidate mentions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from corpusmill.coreference.documents import read_batch
from corpusmill.coreference.extraction import (
    coordinated,
    extract_mentions,
    given_mentions,
    gold_clusters,
    longest_of_head,
    subtrees,
)
from corpusmill.coreference.settings import MentionSettings
from tests.coreference.samples import Row, batch_of, document, random_batch

TREE = (
    "(S (NP (NP (DT the) (NN miller)) (PP (IN of) (NP (NNP Orlan))))"
    " (VP (VBD sold) (NP (PRP$ his) (NN barge)) (PP (IN to) (NP (CD two) (NNS owls)))))"
)


def spans_of(*rows: Row, gold: bool = False, **settings) -> list[tuple[int, int]]:
    documents = read_batch(batch_of(*rows), "english")
    found = extract_mentions(documents, MentionSettings(**settings), inject_gold=gold)
    return list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))


def test_noun_phrases_and_pronouns_are_mentions_the_longest_of_each_head():
    assert spans_of(document("a", [TREE])) == [(0, 4), (3, 4), (5, 7), (5, 6), (8, 10)]
    all_ = spans_of(document("a", [TREE]), one_per_head=False)
    assert all_ == [(0, 4), (0, 2), (3, 4), (5, 7), (5, 6), (8, 10)]


def test_settings_say_what_is_a_mention():
    row = document("a", [TREE], entities=[(3, 4, "GPE"), (8, 9, "CARDINAL"), (1, 2, "JOB")])
    plain: dict[str, Any] = {"one_per_head": False, "constituents": [], "tags": []}
    assert spans_of(row, **plain) == [(1, 2), (3, 4)]
    assert spans_of(row, **plain, not_entities=["JOB"]) == [(3, 4), (8, 9)]
    assert spans_of(row, **plain, entities=False) == []
    assert spans_of(row, constituents=["PP"], tags=["NN"], entities=False, one_per_head=False) == [
        (1, 2), (2, 4), (6, 7), (7, 10),
    ]  # fmt: skip


def test_true_mentions_are_added_where_asked_for_and_kept():
    row = document("a", [TREE], clusters=[(0, 2, 1), (4, 5, 2), (3, 4, 1)])
    assert spans_of(row) == [(0, 4), (3, 4), (5, 7), (5, 6), (8, 10)]
    assert spans_of(row, gold=True) == [
        (0, 4), (0, 2), (3, 4), (4, 5), (5, 7), (5, 6), (8, 10),
    ]  # fmt: skip


def test_given_mentions_are_those_of_the_documents():
    row = document("a", [TREE], clusters=[(0, 2, 1), (4, 5, 2), (3, 4, 1)])
    found = given_mentions(read_batch(batch_of(document("b", [TREE]), row), "english"))
    assert found.offsets.tolist() == [0, 0, 3]
    assert (found.starts.tolist(), found.ends.tolist()) == ([10, 13, 14], [12, 14, 15])
    assert found.clusters.tolist() == [1, 1, 2]
    assert found.heads.tolist() == [11, 13, 14]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("gold", [True, False])
@pytest.mark.parametrize("one_per_head", [True, False])
def test_no_span_stands_twice_and_all_are_in_order(seed, gold, one_per_head):
    batch = random_batch(seed, documents=4)
    documents = read_batch(batch, "english")
    settings = MentionSettings(one_per_head=one_per_head)
    mentions = extract_mentions(documents, settings, inject_gold=gold)
    assert mentions.offsets[-1] == len(mentions.starts)
    for number, row in enumerate(batch.to_pylist()):
        begin, end = mentions.offsets[number : number + 2]
        first = documents.tokens.offsets[number]
        spans = [
            (int(s - first), int(e - first))
            for s, e in zip(mentions.starts[begin:end], mentions.ends[begin:end], strict=True)
        ]
        assert all(0 <= start < stop <= len(row["words"]) for start, stop in spans)
        assert spans == sorted(set(spans), key=lambda span: (span[0], -span[1]))
        true = dict(
            zip(
                zip(row["mention_starts"], row["mention_ends"], strict=True),
                row["mention_clusters"],
                strict=True,
            )
        )
        assert mentions.clusters[begin:end].tolist() == [true.get(span, -1) for span in spans]
        if gold:
            assert set(true) <= set(spans)
        heads = mentions.heads[begin:end].tolist()
        assert all(s <= h - first < e for h, (s, e) in zip(heads, spans, strict=True))
        if one_per_head and not gold:
            assert len(set(heads)) == len(heads)


def test_the_constituent_around_a_mention_is_the_smallest_of_one_span_the_highest():
    row = document(
        "a",
        ["(S (NP (NP (NP (NN owl)))) (VP (VBD saw) (NP (PRP$ its) (JJ old) (NN river))))"],
        clusters=[(2, 3, 0), (3, 4, 1), (1, 3, 2)],
    )
    documents = read_batch(batch_of(row), "english")
    mentions = extract_mentions(documents, MentionSettings(), inject_gold=True)
    spans = list(zip(mentions.starts.tolist(), mentions.ends.tolist(), strict=True))
    # 0 S, 1-3 NP, 4 VP, 5 NP
    assert dict(zip(spans, mentions.nodes.tolist(), strict=True)) == {
        (0, 1): 1, (1, 3): 4, (2, 5): 5, (2, 3): 5, (3, 4): 5,
    }  # fmt: skip
    # Where the head of the constituent is outside: the last noun, else the last token.
    assert dict(zip(spans, mentions.heads.tolist(), strict=True)) == {
        (0, 1): 0, (1, 3): 1, (2, 5): 4, (2, 3): 2, (3, 4): 3,
    }  # fmt: skip


def test_coordinations_have_a_conjunction_as_head():
    tree = "(S (NP (NP (NNP Mira)) (CC and) (NP (NNP Tobel))) (VP (VBD slept)))"
    documents = read_batch(batch_of(document("a", [tree])), "english")
    mentions = extract_mentions(documents, MentionSettings())
    assert mentions.starts.tolist() == [0, 0, 2]
    assert coordinated(mentions, documents.tokens).tolist() == [True, False, False]


def bare(heads: list[int], tags: str, **more) -> Row:
    words = " ".join(f"({tag} w{at})" for at, tag in enumerate(tags.split()))
    return document("a", [f"(S {words})"], parsed=False, heads=heads, **more)


def test_without_constituents_nouns_have_all_that_depends_on_them():
    #         w0 <- w1 <- w2(root) -> w4 -> w3, w4 -> w6 -> w5
    row = bare([1, 2, -1, 4, 2, 6, 4], "DT NN VBD DT NN IN NN")
    assert spans_of(row, one_per_head=False) == [(0, 2), (3, 7), (5, 7)]
    assert spans_of(row, subtrees=False) == []


def test_a_head_without_constituents_is_what_depends_on_outside():
    row = bare([1, 2, -1, 4, 2, 6, 4], "DT NN VBD DT NN IN NN", clusters=[(3, 7, 0), (5, 7, 1)])
    documents = read_batch(batch_of(row), "english")
    mentions = extract_mentions(documents, MentionSettings(), inject_gold=True)
    assert mentions.heads.tolist() == [1, 4, 6]
    assert mentions.nodes.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("heads", [[1, 2, 0], [0, 0, 1], [1, 0, -1]])
def test_cycles_of_dependencies_come_to_an_end(heads):
    documents = read_batch(batch_of(bare(heads, "NN NN NN")), "english")
    starts, ends = subtrees(documents.tokens, np.ones(3, np.bool_))
    assert (starts >= 0).all()
    assert (ends <= 3).all()
    mentions = extract_mentions(documents, MentionSettings())
    assert len(mentions.starts) > 0


@pytest.mark.parametrize("seed", range(5))
def test_subtrees_are_those_of_a_slow_climb(seed):
    rng = np.random.default_rng(seed)
    rank = rng.permutation(8)
    heads = [int(rng.choice(np.flatnonzero(rank < r))) if r else -1 for r in rank]
    documents = read_batch(batch_of(bare([-1], "NN"), bare(heads, " ".join(["NN"] * 8))), "english")
    starts, ends = subtrees(documents.tokens, np.ones(9, np.bool_))

    def below(token):
        return {token}.union(*(below(m) for m in range(8) if heads[m] == token))

    wanted = [(min(below(m)) + 1, max(below(m)) + 2) for m in range(8)]
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [(0, 1), *wanted]


def test_the_head_of_a_span_with_the_root_is_the_root():
    row = bare([1, -1, 3, 1], "DT NN IN NN", clusters=[(0, 4, 0), (3, 4, 1)])
    documents = read_batch(batch_of(row), "english")
    mentions = extract_mentions(documents, MentionSettings(), inject_gold=True)
    assert mentions.heads.tolist() == [1, 3, 3]
    assert spans_of(row) == [(0, 4), (2, 4)]


def test_without_dependencies_the_last_noun_is_the_head():
    row = bare([], "DT NN IN NN RB", clusters=[(0, 5, 0), (2, 3, 1)])
    documents = read_batch(batch_of(row), "english")
    mentions = extract_mentions(documents, MentionSettings(subtrees=False), inject_gold=True)
    assert mentions.heads.tolist() == [3, 2]


def test_documents_with_constituents_have_no_subtrees():
    row = document("a", ["(S (NP (NN owl)) (VP (VBD slept) (ADVP (NN home))))"], heads=[1, -1, 1])
    assert spans_of(row) == [(0, 1)]
    assert spans_of(row, bare([-1, 0], "NN NN")) == [(0, 1), (3, 5), (4, 5)]


def test_true_clusters_are_found_by_span():
    row = document("a", [TREE], clusters=[(0, 2, 4), (0, 4, 0)])
    gold = read_batch(batch_of(document("b", [TREE]), row), "english").gold
    starts, ends = np.array([0, 10, 10, 10]), np.array([2, 12, 14, 13])
    assert gold_clusters(starts, ends, gold).tolist() == [-1, 4, 0, -1]
    none = read_batch(batch_of(document("b", [TREE])), "english").gold
    assert gold_clusters(starts, ends, none).tolist() == [-1] * 4


def test_of_mentions_with_one_head_the_longest_is_kept():
    documents = read_batch(random_batch(3), "english")
    mentions = extract_mentions(documents, MentionSettings(one_per_head=False))
    keep = longest_of_head(mentions)
    lengths = mentions.ends - mentions.starts
    for head in np.unique(mentions.heads):
        same = np.flatnonzero(mentions.heads == head)
        assert keep[same].sum() == 1
        assert lengths[same][keep[same]] == lengths[same].max()


@pytest.mark.parametrize("gold", [True, False])
def test_where_there_is_nothing_nothing_is_found(gold):
    bare_word = document("a", ["(FRAG (UH oh))"], clusters=[])
    assert spans_of(bare_word, gold=gold) == []
    assert spans_of(document("a", ["(FRAG (UH oh))"], parsed=False), gold=gold) == []
    documents = read_batch(random_batch(1).slice(0, 0), "english")
    mentions = extract_mentions(documents, MentionSettings(), inject_gold=gold)
    assert (mentions.offsets.tolist(), len(mentions.starts)) == ([0], 0)


def test_one_token_is_a_mention():
    row = document("a", ["(NP (NNP Mira))"], clusters=[(0, 1, 0)])
    assert spans_of(row) == spans_of(row, gold=True) == [(0, 1)]


def test_chains_of_constituents_may_be_deep():
    deep = 5000
    row = document("a", ["(NP (NN owl) (NN tree))"])
    row["constituent_labels"] = ["NP"] * deep
    row["constituent_starts"] = [0] * deep
    row["constituent_ends"] = [2] * deep
    row["constituent_parents"] = list(range(-1, deep - 1))
    assert spans_of(row, one_per_head=False) == [(0, 2)]
    assert all(a < b for a, b in pairwise(spans_of(row, row)))
