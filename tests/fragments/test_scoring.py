"""Scores by subtrees against the sum over support vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from corpusmill.fragments import scoring
from corpusmill.fragments.examples import self_norms
from corpusmill.fragments.forests import intern
from corpusmill.fragments.mining import subtree_weights
from corpusmill.fragments.scoring import SubtreeWeights, score, score_partial
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests, random_tree

QUICK = settings(max_examples=40, deadline=None)
DECAY = 0.4


def machines_of(interned, betas):
    """Take machines over the trees of a forest apart."""
    norms, size = self_norms(interned, DECAY), len(interned.subtrees.labels)
    columns = [subtree_weights(interned.offsets, interned.nodes, b, norms, size) for b in betas.T]
    return SubtreeWeights(interned.subtrees, interned.productions, np.column_stack(columns))


def scores_of(model, forest):
    interned = intern(forest_of(forest), model.subtrees, model.productions)
    return score(model, model.indexed(), interned, self_norms(interned, DECAY), DECAY)


def normalised(left, right):
    """Give the normalised SST kernel by enumeration, 0 for empty trees."""
    rows = slow.gram("sst", left, right, DECAY)
    for trees, axis in ((left, 0), (right, 1)):
        squares = np.array([slow.gram("sst", [tree], [tree], DECAY)[0, 0] for tree in trees])
        scale = np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1)), 0)
        rows *= np.expand_dims(scale, 1 - axis)
    return rows


@QUICK
@given(forests(most=4), forests(most=3, labels=4), st.integers(1, 3), st.integers(0, 999))
def test_score_is_the_sum_over_support_vectors(vectors, others, machines, seed):
    betas = np.random.default_rng(seed).normal(size=(len(vectors), machines))
    found = scores_of(machines_of(intern(forest_of(vectors)), betas), others)
    assert_allclose(found, normalised(others, vectors) @ betas, atol=1e-12)


@QUICK
@given(forests(most=4), forests(most=3, labels=4), st.integers(0, 999))
def test_partial_score_is_the_sum_over_support_vectors(vectors, others, seed):
    interned, test = intern(forest_of(vectors)), intern(forest_of(others))
    betas = np.random.default_rng(seed).normal(size=(len(vectors), 2))
    ones = np.ones(len(vectors))
    columns = [
        subtree_weights(interned.offsets, interned.nodes, b, ones, len(interned.subtrees.labels))
        for b in betas.T
    ]
    model = SubtreeWeights(interned.subtrees, interned.productions, np.column_stack(columns))
    norms = self_norms(test, DECAY, "ptk", 0.7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoring, "SUMS", 2 * len(interned.subtrees.labels))  # two trees at a time
        found = score_partial(model, model.labelled(), test, norms, DECAY, 0.7)
    expected = slow.gram("ptk", others, vectors, DECAY, 0.7) @ betas
    squares = np.array([slow.gram("ptk", [t], [t], DECAY, 0.7)[0, 0] for t in others])
    assert_allclose(norms, np.sqrt(squares))
    assert_allclose(found, expected / np.sqrt(np.where(squares > 0, squares, 1))[:, None])


def test_a_tree_whose_kernel_exceeds_all_numbers_scores_0():
    wide = (0, tuple((1, ((2, ()),)) for _ in range(5000)))
    model = machines_of(intern(forest_of([wide, (1, ((2, ()),))])), np.ones((2, 1)))
    assert_array_equal(scores_of(model, [wide, None]), np.zeros((2, 1)))
    assert scores_of(model, [(1, ((2, ()),))])[0, 0] == 1.0


def test_scores_do_not_depend_on_what_else_is_in_the_batch():
    rng = np.random.default_rng(2)
    forest = [random_tree(rng, 15, 3) for _ in range(20)]
    model = machines_of(intern(forest_of(forest)), rng.normal(size=(20, 2)))
    others = [random_tree(rng, 15, 4) for _ in range(10)]
    whole = scores_of(model, others)
    assert_array_equal(np.vstack([scores_of(model, [tree]) for tree in others]), whole)
