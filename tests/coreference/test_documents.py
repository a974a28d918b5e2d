"""Batches of documents as flat arrays."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.documents import hash_strings, read_batch
from tests.coreference.samples import batch_of, document, random_batch

TREES = ["(S (NP (NNP Mira)) (VP (VBD saw) (NP (PRP him))))", "(S (NP (DT The) (NN owl)))"]


def two_documents():
    return batch_of(
        document("a", TREES, genre="tale", speakers=["Ann", ""], clusters=[(0, 1, 7), (2, 3, 8)]),
        document(
            "b",
            TREES[1:],
            parsed=False,
            heads=[1, -1],
            relations=["det", "root"],
            entities=[(1, 2, "BIRD")],
        ),
    )


def test_tokens_and_spans_are_counted_over_the_batch():
    documents = read_batch(two_documents(), "english")
    tokens, nodes = documents.tokens, documents.constituents
    assert documents.size == 2
    assert tokens.offsets.tolist() == [0, 5, 7]
    assert tokens.sentence_offsets.tolist() == [0, 3, 5, 7]
    assert tokens.sentences.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert nodes.offsets.tolist() == [0, 6, 6]
    assert nodes.starts.tolist() == [0, 0, 1, 2, 3, 3]
    assert nodes.ends.tolist() == [3, 1, 3, 3, 5, 5]
    assert nodes.parents.tolist() == [-1, 0, 0, 2, -1, 4]
    assert (documents.gold.starts.tolist(), documents.gold.ends.tolist()) == ([0, 2], [1, 3])
    assert (documents.gold.labels.tolist(), documents.gold.offsets.tolist()) == ([7, 8], [0, 2, 2])
    assert (documents.entities.starts.tolist(), documents.entities.ends.tolist()) == ([6], [7])
    assert documents.known.tolist() == [True, False]
    assert tokens.governors.tolist() == [-1] * 5 + [6, -1]


def test_strings_are_hashes_and_0_is_what_is_not_there():
    documents = read_batch(two_documents(), "english")
    tokens = documents.tokens

    def hashed(*words):
        return hash_strings(list(words)).tolist()

    assert tokens.forms.tolist() == hashed("Mira", "saw", "him", "The", "owl", "The", "owl")
    assert tokens.lowers[3:].tolist() == hashed("the", "owl", "the", "owl")
    assert tokens.speakers.tolist() == hashed("Ann", "Ann", "Ann", "", "", "", "")
    assert tokens.relations.tolist() == [0] * 5 + hashed("det", "root")
    assert documents.genres.tolist() == hashed("tale", "")
    assert hashed("", "x", "")[::2] == [0, 0]
    assert documents.entities.labels.tolist() == hashed("BIRD")


def test_a_slice_of_a_batch_is_read_as_a_batch_of_its_rows():
    batch = random_batch(1, documents=4)
    whole, part = read_batch(batch, "english"), read_batch(batch.slice(1, 2), "english")
    begin, end = whole.tokens.offsets[1], whole.tokens.offsets[3]
    np.testing.assert_array_equal(part.tokens.forms, whole.tokens.forms[begin:end])
    np.testing.assert_array_equal(part.tokens.governors, whole.tokens.governors[begin:end])
    nodes = slice(*whole.constituents.offsets[[1, 3]])
    np.testing.assert_array_equal(part.constituents.heads + begin, whole.constituents.heads[nodes])
    offsets = whole.gold.offsets
    np.testing.assert_array_equal(part.gold.offsets, offsets[1:4] - offsets[1])


def test_documents_do_not_depend_on_their_neighbours():
    batch = random_batch(2, documents=3)
    whole = read_batch(batch, "english")
    for number in range(3):
        alone = read_batch(batch.slice(number, 1), "english")
        begin, end = whole.tokens.offsets[number : number + 2]
        for field in ("forms", "lowers", "tags", "classes", "quoted", "speakers", "relations"):
            here = getattr(whole.tokens, field)[begin:end]
            np.testing.assert_array_equal(here, getattr(alone.tokens, field))


@pytest.mark.parametrize("columns", [True, False])
def test_no_documents_are_a_batch(columns):
    batch = random_batch(1).slice(0, 0)
    if not columns:
        batch = batch.drop_columns(["mention_starts", "mention_ends", "mention_clusters"])
    documents = read_batch(batch, "english")
    assert documents.size == 0
    assert len(documents.tokens.forms) == len(documents.gold.starts) == 0
    assert documents.tokens.sentence_offsets.tolist() == [0]


def test_without_columns_of_mentions_nothing_is_known():
    batch = two_documents().drop_columns(["mention_starts", "mention_ends", "mention_clusters"])
    documents = read_batch(batch, "english")
    assert not documents.known.any()
    assert documents.gold.offsets.tolist() == [0, 0, 0]


def test_a_document_without_mentions_is_known():
    documents = read_batch(batch_of(document("a", TREES, clusters=[])), "english")
    assert documents.known.tolist() == [True]


def test_documents_without_tokens_have_no_sentences():
    batch = batch_of(document("a", []), document("b", TREES[1:]), document("c", []))
    documents = read_batch(batch, "english")
    assert documents.tokens.offsets.tolist() == [0, 0, 2, 2]
    assert documents.tokens.sentence_offsets.tolist()[-1] == 2
    assert documents.tokens.sentences.tolist() == [0, 0]
