"""Mining against the enumeration of all fragments, and against the greedy algorithm on trees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from corpusmill.fragments.dictionary import build_dictionary, count_fragments, fragment_values
from corpusmill.fragments.examples import self_norms
from corpusmill.fragments.forests import intern
from corpusmill.fragments.kernels import build_index, tree_rows
from corpusmill.fragments.mining import INDEX_BYTES, mine, subtree_weights
from corpusmill.types import Forest
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests, random_tree

QUICK = settings(max_examples=40, deadline=None)
RELEVANCES = ["depth", "productions"]
ALL = 1_000_000


def values_of(fragment, decay, relevance):
    if relevance == "depth":
        return decay ** slow.depth(fragment)
    return decay ** (slow.productions_in(fragment) / 2)


def spelled(interned, mined):
    """Give the fragments that were mined, as trees with their weights."""
    offsets, moves, weights = mined.fragments
    trees = [
        slow.grown(moves[3 * begin : 3 * end].tolist(), interned.productions)
        for begin, end in pairwise(offsets)
    ]
    assert len(set(trees)) == len(trees)
    return list(zip(trees, weights.tolist(), strict=True))


def machine(forest, seed, decay):
    """Give a forest, random beta and the norms of its trees."""
    interned = intern(forest_of(forest))
    beta = np.random.default_rng(seed).normal(size=len(forest))
    return interned, beta, self_norms(interned, decay)


def weights_of(interned, beta, norms):
    size = len(interned.subtrees.labels)
    return subtree_weights(interned.offsets, interned.nodes, beta, norms, size)


@QUICK
@given(forests(), st.integers(0, 999))
def test_subtree_weights_are_sums_over_occurrences(forest, seed):
    interned, beta, norms = machine(forest, seed, 0.4)
    expected = dict.fromkeys(slow.spelled(interned.subtrees), 0.0)
    for tree, b, norm in zip(forest, beta, norms, strict=True):
        for node in slow.nodes_of(tree):
            expected[node] += b / norm if norm > 0 else 0.0
    assert_allclose(weights_of(interned, beta, norms), list(expected.values()), atol=1e-12)


@pytest.mark.parametrize("relevance", RELEVANCES)
@QUICK
@given(forests(most=4, most_leaves=8), st.integers(0, 999), st.sampled_from([0.4, 1.0]))
def test_mining_without_limits_finds_all_fragments(relevance, forest, seed, decay):
    interned, beta, norms = machine(forest, seed, decay)
    expected: dict[slow.Tree, float] = {}
    for tree, b, norm in zip(forest, beta, norms, strict=True):
        for fragment, times in slow.sst_counts(tree).items():
            value = b * times * values_of(fragment, decay, relevance) / norm
            expected[fragment] = expected.get(fragment, 0.0) + value
    mined = mine(interned.subtrees, weights_of(interned, beta, norms), decay, ALL, ALL, relevance)
    found = spelled(interned, mined)
    assert dict(found).keys() == expected.keys()
    assert mined.generated == len(expected)
    for fragment, weight in found:
        assert weight == pytest.approx(expected[fragment], rel=1e-9, abs=1e-12)
    sizes = np.abs(mined.fragments.weights)
    assert np.all(sizes[:-1] >= sizes[1:])


@QUICK
@given(forests(most=4), forests(most=3, labels=4), st.integers(0, 999))
def test_all_mined_fragments_give_the_machine_s_score(training, others, seed):
    """sum_j w_j x_j = sum_i beta_i K(T_i, T) / (||T_i|| ||T||), by the kernel's own values."""
    interned, beta, norms = machine(training, seed, 0.4)
    mined = mine(interned.subtrees, weights_of(interned, beta, norms), 0.4, ALL, ALL, "productions")
    fragments = mined.fragments
    test = intern(forest_of(others), productions=interned.productions)
    counts = count_fragments(build_dictionary(fragments), test, len(fragments.weights))
    values = fragment_values(fragments, 0.4, "productions")
    rows = tree_rows("sst", build_index(interned), test, 0.4)
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    assert_allclose(counts @ (values * fragments.weights), rows @ (scale * beta), atol=1e-10)


@st.composite
def weighted_subtrees(draw):
    """Subtrees with weights whose sums and products by powers of a half are exact."""
    interned = intern(forest_of(draw(forests(most=4, most_leaves=7))))
    size = len(interned.subtrees.labels)
    weights = draw(st.lists(st.integers(-8, 8), min_size=size, max_size=size))
    return interned, np.array(weights, float) / 8.0


@pytest.mark.parametrize(("relevance", "decay"), [("depth", 0.5), ("productions", 0.25)])
@settings(max_examples=50, deadline=None)
@given(weighted_subtrees(), st.integers(1, 40), st.sampled_from([1, 2, 4]))
def test_greedy_mining_is_the_algorithm(relevance, decay, case, limit, maxexp):
    """Best L, their order, what was generated and when it stopped; ties go to the older."""
    interned, weights = case
    mined = mine(interned.subtrees, weights, decay, limit, maxexp, relevance)
    trees = slow.spelled(interned.subtrees)
    pairs = [(t, w) for t, w in zip(trees, weights.tolist(), strict=True) if t[1] and w]
    expected = slow.mine(pairs, decay, limit, maxexp, relevance)
    assert spelled(interned, mined) == expected.best
    assert mined.generated == expected.generated
    assert mined.rounds == expected.rounds


def test_larger_forests_are_mined_as_the_algorithm_says():
    rng = np.random.default_rng(6)
    interned = intern(forest_of([random_tree(rng, 14, 3) for _ in range(30)]))
    weights = rng.integers(-64, 65, len(interned.subtrees.labels)) / 64.0
    trees = slow.spelled(interned.subtrees)
    pairs = [(t, w) for t, w in zip(trees, weights.tolist(), strict=True) if t[1] and w]
    for limit in (1, 10, 100, 1000):
        mined = mine(interned.subtrees, weights, 0.5, limit, 2, "depth")
        expected = slow.mine(pairs, 0.5, limit, 2, "depth")
        assert spelled(interned, mined) == expected.best
        assert (mined.generated, mined.rounds) == (expected.generated, expected.rounds)


@pytest.mark.parametrize("forest", [[], [None], [(0, ())], [(0, ()), None]])
def test_nothing_to_mine(forest):
    interned = intern(forest_of(forest))
    mined = mine(interned.subtrees, np.ones(len(interned.subtrees.labels)), 0.4, 10, 4)
    assert mined.generated == 0
    assert mined.fragments.offsets.tolist() == [0]
    assert len(mined.fragments.moves) == len(mined.fragments.weights) == 0


def test_subtrees_without_weight_are_not_mined():
    interned = intern(forest_of([(0, ((1, ((2, ()),)),))]))
    assert mine(interned.subtrees, np.zeros(3), 0.4, 10, 4).generated == 0


def wide(children):
    return 0, tuple((1, ((2 + k, ()),)) for k in range(children))


def test_wide_nodes_expand_fewer_children_at_once():
    """Of 30 children four at once would be more than 10,000 ways; of 200 two would."""
    for children, ways in ((30, 30 + 435 + 4060), (200, 200)):
        interned = intern(forest_of([wide(children)]))
        weights = np.ones(len(interned.subtrees.labels))
        mined = mine(interned.subtrees, weights, 0.4, ALL, 4)
        assert mined.generated == children + 1 + ways


def test_any_number_of_nodes_may_be_asked_for():
    interned = intern(forest_of([wide(5)]))
    mined = mine(interned.subtrees, np.ones(len(interned.subtrees.labels)), 0.4, ALL, 10**12)
    assert mined.generated == 5 + 2**5


@pytest.mark.long
def test_a_chain_of_20000_levels_is_mined():
    """Until an occurrence's weight has no digits left, not to the last of the levels."""
    depth = 20_000
    arities = np.r_[np.ones(depth - 1, np.int32), np.zeros(1, np.int32)]
    interned = intern(Forest(np.array([0, depth]), np.zeros(depth, np.int32), arities))
    mined = mine(interned.subtrees, np.ones(depth), 0.4, 5000, 4, "depth")
    assert 0 < mined.rounds < 1000
    weights = mined.fragments.weights
    assert_allclose(weights[:3], 0.4 ** np.arange(1, 4) * (depth - np.arange(1, 4)))


def test_the_index_keeps_within_its_bytes():
    """A round that does not fit expands fewer nodes at once; what fits is as without a limit."""
    rng = np.random.default_rng(0)
    bush = tuple((1, ((0, ((9, ()),)),)) for _ in range(7))
    forest = [(2, bush[:k]) for k in range(4, 8)] + [random_tree(rng, 20, 3) for _ in range(5)]
    interned = intern(forest_of(forest))
    weights = rng.normal(size=len(interned.subtrees.labels))
    whole = mine(interned.subtrees, weights, 0.4, ALL, 4)
    room = INDEX_BYTES * (whole.generated // 4)
    tight = mine(interned.subtrees, weights, 0.4, ALL, 4, max_bytes=room)
    assert tight.generated * INDEX_BYTES <= room
    assert 0 < tight.generated < whole.generated
    every = dict(spelled(interned, whole))
    for fragment, weight in spelled(interned, tight):
        assert weight == pytest.approx(every[fragment])
    base = mine(interned.subtrees, weights, 0.4, ALL, 4, max_bytes=0)
    assert base.rounds == 1
