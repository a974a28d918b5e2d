"""Heads of constituents, and quotations."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.documents import read_batch
from corpusmill.coreference.syntax import quoted_tokens
from tests.coreference.samples import batch_of, document

HEADS = [
    ("english", "(NP (DT the) (JJ old) (NN miller))", "miller"),
    ("english", "(NP (NNP Mira) (NNP Tobel))", "Tobel"),
    ("english", "(NP (NP (DT the) (NN owl)) (PP (IN of) (NP (NNP Orlan))))", "owl"),
    ("english", "(NP (NP (NNP Orlan) (POS 's)) (NN kettle))", "kettle"),
    ("english", "(NP (NP (NNP Mira)) (CC and) (NP (NNP Tobel)))", "and"),
    ("english", "(NP (NP (NNP Mira)) (, ,) (NP (NN owl)) (CC or) (NP (NNP Tobel)))", "or"),
    ("english", "(NP (NN bread) (CC and) (NN butter))", "butter"),
    ("english", "(NP (DT the) (JJ old))", "old"),
    ("english", "(NP (DT the) (CD three))", "three"),
    ("english", "(NP (DT those))", "those"),
    ("english", "(VP (MD will) (VP (VB mend) (NP (PRP it))))", "will"),
    ("english", "(VP (TO to) (VP (VB mend) (NP (PRP it))))", "to"),
    ("english", "(S (NP (PRP she)) (ADVP (RB soon)) (VP (VBD slept)))", "slept"),
    ("english", "(PP (IN near) (NP (DT the) (NN river)))", "near"),
    ("english", "(PP (ADVP (RB just)) (IN near) (NP (NN home)))", "near"),
    ("english", "(SBAR (WHNP (WP who)) (S (VP (VBD slept))))", "who"),
    ("english", "(ODD (XX one) (XX two))", "one"),
    ("chinese", "(NP (NP (NR Hetang)) (NN mofang))", "mofang"),
    ("chinese", "(NP (CP (IP (VP (VV mai)))  (DEC de)) (NP (NN ren)))", "ren"),
    ("chinese", "(NP (PN ta))", "ta"),
    ("chinese", "(VP (ADVP (AD hen)) (VP (VV xihuan) (NP (PN ta))))", "xihuan"),
    ("chinese", "(IP (NP (PN ta)) (VP (VV lai)))", "lai"),
    ("chinese", "(PP (P zai) (NP (NN jia)))", "zai"),
    ("chinese", "(LCP (NP (NN jia)) (LC li))", "li"),
    ("chinese", "(ODD (XX one) (XX two))", "two"),
    ("arabic", "(NP (NN bab) (NP (DT+NN bayt)))", "bab"),
    ("arabic", "(NP (NP (NN bab)) (PP (IN fi) (NP (NNP Lurad))))", "bab"),
    ("arabic", "(NP (DET ha) (PRP huwa))", "huwa"),
    ("arabic", "(S (VP (VBD kataba) (NP (NNP Mira))))", "kataba"),
    ("arabic", "(NP (NP (NN walad)) (CC wa) (NP (NN bint)))", "wa"),
    ("arabic", "(ODD (XX one) (XX two))", "one"),
]


@pytest.mark.parametrize(("language", "tree", "head"), HEADS)
def test_heads_are_those_of_the_rules(language, tree, head):
    other = "(S (NP (PRP he)) (VP (VBD ran)))"  # tokens and constituents are counted in the batch
    documents = read_batch(batch_of(document("a", [other]), document("b", [other, tree])), language)
    node = int(documents.constituents.offsets[1]) + 3
    found = documents.constituents.heads[node]
    assert documents.words.values[documents.words.codes[found]] == head


def test_a_word_beside_constituents_takes_part():
    tree = "(VP (ADVP (RB soon)) (VBD met) (NP (NP (DT the) (NN owl)) (PP (IN of) (NP (NN home)))))"
    documents = read_batch(batch_of(document("a", [tree])), "english")
    heads = documents.constituents.heads.tolist()
    assert heads == [1, 0, 3, 3, 4, 5]  # VP, ADVP, NP, NP, PP, NP


def test_chains_of_constituents_may_be_deep():
    deep = 5000
    row = document("a", ["(NP (NN owl))"])
    row["constituent_labels"] = ["NP"] * deep
    row["constituent_starts"], row["constituent_ends"] = [0] * deep, [1] * deep
    row["constituent_parents"] = list(range(-1, deep - 1))
    documents = read_batch(batch_of(row), "english")
    assert (documents.constituents.heads == 0).all()


@pytest.mark.parametrize(
    ("marks", "inside"),
    [
        ([2, 0, 2, 2, 0, 2], [0, 0, 1, 1, 0, 0]),
        ([1, 2, -1, 2], [0, 1, 0, 0]),
        ([2, 1, 2, 2], [0, 0, 1, 1]),  # never closed: to the end of the document
        ([-1, 2, -1, 2], [0, 0, 0, 0]),
        ([1, 2, 1, 2, -1, 2], [0, 1, 0, 1, 0, 0]),
        ([1, 2, 0, 2], [0, 1, 0, 0]),  # a mark that may do either closes what another opened
        ([], []),
    ],
)
def test_what_stands_between_quotation_marks_is_quoted(marks, inside):
    found = quoted_tokens(np.array([0, len(marks)]), np.array(marks, np.int8))
    assert found.tolist() == [bool(each) for each in inside]


def test_a_quotation_ends_with_its_document():
    marks = np.array([1, 2, 2, 2], np.int8)
    assert quoted_tokens(np.array([0, 2, 2, 4]), marks).tolist() == [False, True, False, False]
