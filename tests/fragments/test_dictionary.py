"""Matching of fragments against the enumeration of all fragments of a tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from corpusmill.fragments.dictionary import build_dictionary, count_fragments, fragment_values
from corpusmill.fragments.forests import intern
from corpusmill.fragments.mining import mine
from corpusmill.fragments.trie import Fragments
from corpusmill.types import Forest
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests, random_tree

QUICK = settings(max_examples=40, deadline=None)


def mined_from(forest, limit=1_000_000, maxexp=100):
    """Mine all fragments of a forest, or the best of them."""
    interned = intern(forest_of(forest))
    weights = np.random.default_rng(len(forest)).normal(size=len(interned.subtrees.labels))
    return interned, mine(interned.subtrees, weights, 0.4, limit, maxexp).fragments


def chosen_from(fragments, numbers):
    """Keep some of the fragments, in that order."""
    parts = [
        fragments.moves[3 * fragments.offsets[k] : 3 * fragments.offsets[k + 1]] for k in numbers
    ]
    offsets = np.cumsum([0, *(len(part) // 3 for part in parts)])
    moves = np.concatenate([np.zeros(0, np.int32), *parts])
    return Fragments(offsets.astype(np.int64), moves, fragments.weights[numbers])


def trees_of(fragments, productions):
    spans = zip(3 * fragments.offsets[:-1], 3 * fragments.offsets[1:], strict=True)
    return [slow.grown(fragments.moves[a:b].tolist(), productions) for a, b in spans]


def counted(fragments, interned):
    return count_fragments(build_dictionary(fragments), interned, len(fragments.weights))


def expected_counts(fragments, productions, forest):
    known = trees_of(fragments, productions)
    found = np.zeros((len(forest), len(known)))
    for t, tree in enumerate(forest):
        counts = slow.sst_counts(tree)
        found[t] = [counts[fragment] for fragment in known]
    return found


@QUICK
@given(forests(most=4, most_leaves=7), forests(most=4, labels=4, most_leaves=7))
def test_counts_over_all_fragments_are_the_enumeration(training, others):
    interned, fragments = mined_from(training)
    test = intern(forest_of(others), productions=interned.productions)
    expected = expected_counts(fragments, interned.productions, others)
    assert_array_equal(counted(fragments, test).toarray(), expected)


@QUICK
@given(forests(most=4, most_leaves=7), forests(most=3, most_leaves=7), st.integers(0, 2**32 - 1))
def test_counts_over_some_fragments_in_any_order(training, others, seed):
    """Prefixes that are no fragments of the dictionary are walked, but not counted."""
    interned, fragments = mined_from(training)
    rng = np.random.default_rng(seed)
    size = len(fragments.weights)
    fragments = chosen_from(fragments, rng.permutation(size)[: rng.integers(0, size + 1)])
    test = intern(forest_of(others), productions=interned.productions)
    expected = expected_counts(fragments, interned.productions, others)
    found = counted(fragments, test)
    assert found.shape == expected.shape
    assert_array_equal(found.toarray(), expected)


def test_counts_of_larger_trees():
    rng = np.random.default_rng(3)
    training = [random_tree(rng, 16, 2) for _ in range(20)]
    others = [random_tree(rng, 16, 2) for _ in range(20)]
    interned, fragments = mined_from(training, limit=300, maxexp=2)
    test = intern(forest_of(others), productions=interned.productions)
    expected = expected_counts(fragments, interned.productions, others)
    assert expected.sum() > 100
    assert_array_equal(counted(fragments, test).toarray(), expected)


@QUICK
@given(forests(most=4))
def test_indices_ascend_within_a_row(forest):
    interned, fragments = mined_from(forest)
    found = counted(fragments, interned)
    for begin, end in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        assert np.all(np.diff(found.indices[begin:end]) > 0)
    assert found.dtype == np.float64


@pytest.mark.parametrize("relevance", ["depth", "productions"])
@QUICK
@given(forests(most=4, most_leaves=8))
def test_values_are_those_of_the_definition(relevance, forest):
    interned, fragments = mined_from(forest)
    known = trees_of(fragments, interned.productions)
    if relevance == "depth":
        expected = [0.4 ** slow.depth(fragment) for fragment in known]
    else:
        expected = [0.4 ** (slow.productions_in(fragment) / 2) for fragment in known]
    assert_allclose(fragment_values(fragments, 0.4, relevance), expected, rtol=1e-12)


def test_a_dictionary_of_nothing():
    nothing = Fragments(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    interned = intern(forest_of([(0, ((1, ()),)), None]))
    assert counted(nothing, interned).shape == (2, 0)
    assert fragment_values(nothing, 0.4, "depth").shape == (0,)
    assert fragment_values(nothing, 0.4, "productions").shape == (0,)


@pytest.mark.parametrize("forest", [[], [None], [(0, ())], [(7, ((8, ()),)), None]])
def test_trees_without_a_fragment(forest):
    interned, fragments = mined_from([(0, ((1, ((2, ()),)),))])
    test = intern(forest_of(forest), productions=interned.productions)
    found = counted(fragments, test)
    assert found.shape == (len(forest), 3)
    assert found.nnz == 0


def test_a_chain_of_50000_levels_is_matched():
    depth = 50_000
    arities = np.r_[np.ones(depth - 1, np.int32), np.zeros(1, np.int32)]
    chain = Forest(np.array([0, depth]), np.zeros(depth, np.int32), arities)
    interned, fragments = mined_from([(0, ((0, ((0, ((0, ()),)),)),))])
    test = intern(chain, productions=interned.productions)
    found = counted(fragments, test).toarray()[0]
    sizes = np.diff(fragments.offsets)
    assert_array_equal(found, depth - sizes)


def test_a_node_of_50000_children_is_matched():
    children = 50_000
    labels = np.r_[[0], np.tile([1, 2], children)].astype(np.int32)
    arities = np.r_[[children], np.tile([1, 0], children)].astype(np.int32)
    wide = intern(Forest(np.array([0, len(labels)]), labels, arities))
    mined = mine(wide.subtrees, np.ones(len(wide.subtrees.labels)), 0.4, 10**6, 4).fragments
    found = counted(mined, wide).toarray()[0]
    # The root alone, or with any one of its children; and the child's own, once a child.
    assert len(found) == children + 2
    assert sorted(np.unique(found).tolist()) == [1.0, float(children)]
