"""Matching of fragments of the PTK against the enumeration of all their occurrences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from corpusmill.fragments.dictionary import build_dictionary
from corpusmill.fragments.forests import intern
from corpusmill.fragments.partial_fragments import (
    MOST_SKIPPED,
    partial_values,
    reach,
    sum_partial_fragments,
)
from corpusmill.fragments.partial_mining import mine_partial
from corpusmill.fragments.trie import Fragments
from corpusmill.types import Forest
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests, random_tree
from tests.fragments.test_dictionary import chosen_from

QUICK = settings(max_examples=40, deadline=None)
DECAY, MU = 0.4, 0.3


def mined_from(forest, limit=1_000_000):
    """Mine all fragments of a forest, or the best of them."""
    subtrees = intern(forest_of(forest)).subtrees
    weights = np.random.default_rng(len(forest)).normal(size=len(subtrees.labels))
    return mine_partial(subtrees, weights, DECAY, MU, limit).fragments


def trees_of(fragments):
    spans = zip(3 * fragments.offsets[:-1], 3 * fragments.offsets[1:], strict=True)
    return [slow.grown_partial(fragments.moves[a:b].tolist()) for a, b in spans]


def vectors(fragments, interned):
    """Give sums over occurrences times what each fragment is worth without gaps."""
    size = len(fragments.weights)
    sums = sum_partial_fragments(build_dictionary(fragments), interned, size, DECAY)
    return sums.toarray() * partial_values(fragments, DECAY, MU)


def expected_vectors(fragments, forest):
    known = trees_of(fragments)
    found = np.zeros((len(forest), len(known)))
    for t, tree in enumerate(forest):
        vector = slow.ptk_vector(tree, DECAY, MU)
        found[t] = [vector.get(fragment, 0.0) for fragment in known]
    return found


@QUICK
@given(
    forests(most=4, labels=2, most_leaves=7, most_children=5),
    forests(most=4, labels=3, most_leaves=7, most_children=5),
)
def test_values_over_all_fragments_are_the_enumeration(training, others):
    fragments = mined_from(training)
    found = vectors(fragments, intern(forest_of(others)))
    assert_allclose(found, expected_vectors(fragments, others), rtol=1e-9, atol=0)


@QUICK
@given(
    forests(most=4, most_leaves=7), forests(most=3, most_leaves=7), st.integers(0, 2**32 - 1)
)  # fmt: skip
def test_values_over_some_fragments_in_any_order(training, others, seed):
    """Prefixes that are no fragments of the dictionary are walked, but not summed."""
    fragments = mined_from(training)
    rng = np.random.default_rng(seed)
    size = len(fragments.weights)
    fragments = chosen_from(fragments, rng.permutation(size)[: rng.integers(0, size + 1)])
    found = vectors(fragments, intern(forest_of(others)))
    expected = expected_vectors(fragments, others)
    assert found.shape == expected.shape
    assert_allclose(found, expected, rtol=1e-9, atol=0)


def test_values_of_larger_trees():
    rng = np.random.default_rng(3)
    training = [random_tree(rng, 12, 2, 4) for _ in range(20)]
    others = [random_tree(rng, 10, 2, 4) for _ in range(12)]
    fragments = mined_from(training, limit=300)
    found = vectors(fragments, intern(forest_of(others)))
    assert np.count_nonzero(found) > 100
    assert_allclose(found, expected_vectors(fragments, others), rtol=1e-9, atol=0)


@QUICK
@given(forests(most=4))
def test_indices_ascend_within_a_row_and_are_there_once(forest):
    fragments = mined_from(forest)
    size = len(fragments.weights)
    interned = intern(forest_of(forest))
    found = sum_partial_fragments(build_dictionary(fragments), interned, size, DECAY)
    for begin, end in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        assert np.all(np.diff(found.indices[begin:end]) > 0)


def test_a_dictionary_of_nothing():
    nothing = Fragments(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
    assert vectors(nothing, intern(forest_of([(0, ((1, ()),)), None]))).shape == (2, 0)


@pytest.mark.parametrize("forest", [[], [None], [(5, ())], [(7, ((8, ()),)), None]])
def test_trees_without_a_fragment(forest):
    fragments = mined_from([(0, ((1, ((2, ()),)),))])
    found = vectors(fragments, intern(forest_of(forest)))
    assert found.shape == (len(forest), 6)
    assert not found.any()


def test_a_chain_of_50000_levels_is_matched():
    depth = 50_000
    arities = np.r_[np.ones(depth - 1, np.int32), np.zeros(1, np.int32)]
    chain = Forest(np.array([0, depth]), np.zeros(depth, np.int32), arities)
    fragments = mined_from([(0, ((0, ((0, ((0, ()),)),)),))])
    sizes = np.diff(fragments.offsets)
    assert_allclose(
        vectors(fragments, intern(chain))[0], (depth + 1 - sizes) * MU ** (sizes / 2) * DECAY
    )


def test_a_node_of_50000_children_of_one_label_is_matched():
    """Neither the ways to choose the children nor their pairs are gone through."""
    children = 50_000
    labels = np.r_[[0], np.ones(children, np.int32)].astype(np.int32)
    arities = np.r_[[children], np.zeros(children, np.int32)].astype(np.int32)
    wide = intern(Forest(np.array([0, len(labels)]), labels, arities))
    fragments = mined_from([(0, ((1, ()),) * 6)])
    found = dict(zip(trees_of(fragments), vectors(fragments, wide)[0], strict=True))
    assert found[1, ()] == pytest.approx(children * MU**0.5 * DECAY)
    ends = np.ones(children)
    for size in range(1, 7):
        expected = ends.sum() * MU ** ((size + 1) / 2) * DECAY**size
        assert found[0, ((1, ()),) * size] == pytest.approx(expected)
        sums = np.zeros(children)
        for i in range(1, children):
            sums[i] = DECAY * sums[i - 1] + ends[i - 1]
        ends = sums


def test_children_are_skipped_while_it_counts():
    assert reach(0.5) == 54
    assert reach(1.0) == reach(0.999999) == MOST_SKIPPED + 1
    assert reach(1e-300) == 1
