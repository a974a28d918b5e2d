"""Corpora of documents on arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.alignment import documents as subject
from corpusmill.alignment.baselines import matrix
from corpusmill.types import Bags, Patterns


def make_patterns(rows: list[list[list[int]]], labels: list[list[int]], classes: int) -> Patterns:
    """Rows are documents, of paragraphs, of feature numbers with repetitions."""
    instances = [np.unique(paragraph, return_counts=True) for row in rows for paragraph in row]
    bags = Bags(
        np.concatenate([[0], np.cumsum([len(ids) for ids, _ in instances])]).astype(np.int64),
        np.concatenate([ids for ids, _ in instances]).astype(np.int32),
        np.concatenate([counts for _, counts in instances]).astype(np.float64),
    )
    flags = np.zeros((len(rows), classes), dtype=bool)
    for flag, own in zip(flags, labels, strict=True):
        flag[own] = True
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Patterns(offsets, bags, np.ones(offsets[-1]), flags, np.ones(len(rows), dtype=bool))


def test_words_are_neither_stop_words_nor_numbers():
    assert subject.word_features(["the", "wheat", "1987", "q1", "corn"]).tolist() == [1, 4]


def test_features_are_words_and_pairs_and_titles_have_their_own():
    tokens = pa.array([["wheat", "prices", "rise"], ["the", "wheat", "of", "texas"], [], ["the"]])
    found = subject.words_and_pairs(tokens, np.array([True, False, False, True]))
    pair = "title:prices_title:rise"
    assert found.to_pylist() == [
        [*"title:wheat title:prices title:rise title:wheat_title:prices".split(), pair],
        ["wheat", "texas", "wheat_texas"],
        [],
        [],
    ]


@pytest.mark.parametrize("tokens", [[], [[]], [["the"]], [["wheat"]]])
def test_few_tokens_have_no_pairs(tokens):
    found = subject.words_and_pairs(
        pa.array(tokens, pa.list_(pa.string())), np.zeros(len(tokens), dtype=bool)
    )
    assert found.to_pylist() == [[word for word in row if word != "the"] for row in tokens]


def test_a_whole_document_is_the_weighted_sum_of_its_paragraphs():
    patterns = make_patterns([[[0, 0, 1], [1, 2]], [[2]]], [[0], [1]], 2)
    patterns = patterns._replace(weights=np.array([1.0, 2.0, 1.0]))
    whole = subject.whole_documents(patterns, 3)
    assert matrix(whole.bags, 3).toarray().tolist() == [[2.0, 3.0, 2.0], [0.0, 0.0, 1.0]]
    assert whole.offsets.tolist() == [0, 1, 2]
    assert whole.weights.tolist() == [1.0, 1.0]


def test_empty_paragraphs_are_left_out_and_nothing_else():
    patterns = make_patterns([[[0], []], [[]], [[1, 1], [2]]], [[0], [0], [0]], 1)
    patterns = patterns._replace(weights=np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    kept = subject.without_empty(patterns)
    assert kept.offsets.tolist() == [0, 1, 1, 3]
    assert kept.weights.tolist() == [1.0, 4.0, 5.0]
    assert matrix(kept.bags, 3).toarray().tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 1]]


def paper_patterns() -> tuple[Patterns, list[str]]:
    names = ["the", "wheat", "corn", "rare", "1987"]
    long = [[0, 0, 1, 1], [1, 2]]
    rows = [long] * 10 + [[[0, 0, 0, 0, 4, 4, 4], [1]], [[3, 3, 3, 3, 3]]]
    labels = [[0, 1]] * 3 + [[0]] * 7 + [[0, 1]] + [[0]]
    return make_patterns(rows, labels, 2), names


def test_the_papers_corpus_keeps_all_long_documents_with_several_labels_and_draws_the_others():
    patterns, names = paper_patterns()
    settings = subject.PaperCorpusSettings(features=2, min_tokens=3, several_labels=0.5)
    corpus = subject.paper_corpus(patterns, names, settings, seed=0)
    assert corpus.labels.sum(axis=1).tolist() == [2, 2, 2, 1, 1, 1]
    # wheat and corn are left, numbered anew; the rare word is in fewer documents.
    assert matrix(corpus.bags, 2)[:2].toarray().tolist() == [[2.0, 0.0], [1.0, 1.0]]
    again = subject.paper_corpus(patterns, names, settings, seed=0)
    np.testing.assert_array_equal(corpus.bags.ids, again.bags.ids)
    np.testing.assert_array_equal(corpus.labels, again.labels)


def test_the_weight_of_a_title_makes_no_document_longer():
    patterns, names = paper_patterns()
    heavy = patterns._replace(weights=np.full(len(patterns.weights), 4.0))
    settings = subject.PaperCorpusSettings(features=2, min_tokens=3, several_labels=0.0)
    corpus = subject.paper_corpus(heavy, names, settings, seed=0)
    assert len(corpus.labels) == 10
    assert set(corpus.weights) == {4.0}


def test_share_0_keeps_every_long_document():
    patterns, names = paper_patterns()
    settings = subject.PaperCorpusSettings(features=2, min_tokens=3, several_labels=0.0)
    assert len(subject.paper_corpus(patterns, names, settings, seed=0).labels) == 10


@pytest.mark.parametrize("seed", range(5))
def test_joined_documents_keep_their_paragraphs_and_know_their_classes(seed):
    rng = np.random.default_rng(seed)
    labels = [[0], [1], [2], [0, 1], *[[int(c)] for c in rng.integers(0, 3, size=8)]]
    # The features of a paragraph tell its document, and so its class.
    rows = [[[n, n], [n]][: 1 + n % 2] for n in range(12)]
    patterns = make_patterns(rows, labels, 3)
    joined, gold = subject.join_documents(patterns, 3, seed)
    documents = joined.bags.ids
    assert sorted(set(documents)) == [n for n in range(12) if n != 3]
    assert len(documents) == len(gold) == joined.offsets[-1]
    assert [labels[n][0] for n in documents] == gold.tolist()
    inside = np.split(documents, joined.offsets[1:-1])
    for flags, own in zip(joined.labels, inside, strict=True):
        assert set(np.flatnonzero(flags)) == {labels[n][0] for n in own}
    assert all(2 <= len(set(own)) <= 3 for own in inside[:-1])
    assert 1 <= len(set(inside[-1])) <= 3


def test_without_documents_of_one_label_nothing_is_joined():
    joined, gold = subject.join_documents(make_patterns([[[0]]], [[0, 1]], 2), 3, 0)
    assert len(joined.labels) == len(gold) == 0
    assert joined.offsets.tolist() == [0]
