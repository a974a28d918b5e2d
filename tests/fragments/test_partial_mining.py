"""Mining for the PTK against the enumeration of all fragments, and the algorithm on trees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from corpusmill.fragments.dictionary import build_dictionary
from corpusmill.fragments.forests import intern
from corpusmill.fragments.mining import INDEX_BYTES, subtree_weights
from corpusmill.fragments.partial import build_label_index, partial_rows, partial_self_kernel
from corpusmill.fragments.partial_fragments import partial_values, sum_partial_fragments
from corpusmill.fragments.partial_mining import mine_partial
from corpusmill.types import Forest
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests, random_tree

QUICK = settings(max_examples=40, deadline=None)
ALL = 1_000_000
MU = 0.3


def spelled(mined):
    """Give the fragments that were mined, as trees with their weights."""
    offsets, moves, weights = mined.fragments
    trees = [slow.grown_partial(moves[3 * a : 3 * b].tolist()) for a, b in pairwise(offsets)]
    assert len(set(trees)) == len(trees)
    return list(zip(trees, weights.tolist(), strict=True))


def machine(forest, seed, decay, mu=MU):
    """Give a forest, random beta, the norms of its trees and the weights of its subtrees."""
    interned = intern(forest_of(forest))
    beta = np.random.default_rng(seed).normal(size=len(forest))
    norms = np.sqrt(partial_self_kernel(interned, decay, mu))
    size = len(interned.subtrees.labels)
    weights = subtree_weights(interned.offsets, interned.nodes, beta, norms, size)
    return interned, beta, norms, weights


@QUICK
@given(
    forests(most=4, labels=2, most_leaves=7, most_children=5), st.integers(0, 999),
    st.sampled_from([0.4, 1.0]), st.sampled_from([0.3, 1.0]),
)  # fmt: skip
def test_mining_without_limits_finds_all_fragments(forest, seed, decay, mu):
    interned, beta, norms, weights = machine(forest, seed, decay, mu)
    expected: dict[slow.Tree, float] = {}
    for tree, b, norm in zip(forest, beta, norms, strict=True):
        for fragment, value in slow.ptk_vector(tree, decay, mu).items():
            expected[fragment] = expected.get(fragment, 0.0) + b * value / norm
    mined = mine_partial(interned.subtrees, weights, decay, mu, ALL)
    found = dict(spelled(mined))
    assert found.keys() == expected.keys()
    assert mined.generated == len(expected)
    for fragment, weight in found.items():
        assert weight == pytest.approx(expected[fragment], rel=1e-9, abs=1e-12)
    sizes = np.abs(mined.fragments.weights)
    assert np.all(sizes[:-1] >= sizes[1:])


@QUICK
@given(forests(most=4), forests(most=3, labels=4), st.integers(0, 999))
def test_all_mined_fragments_give_the_machine_s_score(training, others, seed):
    """sum_j w_j x_j = sum_i beta_i K(T_i, T) / ||T_i||."""
    interned, beta, norms, weights = machine(training, seed, 0.4)
    fragments = mine_partial(interned.subtrees, weights, 0.4, MU, ALL).fragments
    test = intern(forest_of(others))
    sums = sum_partial_fragments(build_dictionary(fragments), test, len(fragments.weights), 0.4)
    values = partial_values(fragments, 0.4, MU)
    rows = partial_rows(build_label_index(interned), test, 0.4, MU)
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    assert_allclose(sums @ (values * fragments.weights), rows @ (scale * beta), atol=1e-10)


def weighted(interned, weights):
    return list(zip(slow.spelled(interned.subtrees), weights.tolist(), strict=True))


@st.composite
def weighted_subtrees(draw):
    """Subtrees with weights whose sums and products by powers of a half are exact."""
    interned = intern(forest_of(draw(forests(most=4, most_leaves=7, most_children=5))))
    size = len(interned.subtrees.labels)
    weights = draw(st.lists(st.integers(-8, 8), min_size=size, max_size=size))
    return interned, np.array(weights, float) / 8.0


@settings(max_examples=80, deadline=None)
@given(weighted_subtrees(), st.integers(1, 40))
def test_greedy_mining_is_the_algorithm(case, limit):
    """Best L, their order, what was generated and when it stopped; ties go to the older."""
    interned, weights = case
    mined = mine_partial(interned.subtrees, weights, 0.5, 0.25, limit)
    pairs = [(t, w) for t, w in weighted(interned, weights) if w]
    expected = slow.mine_partial(pairs, 0.5, 0.25, limit)
    assert spelled(mined) == expected.best
    assert (mined.generated, mined.rounds) == (expected.generated, expected.rounds)


def test_larger_forests_are_mined_as_the_algorithm_says():
    rng = np.random.default_rng(6)
    interned = intern(forest_of([random_tree(rng, 10, 3, 4) for _ in range(12)]))
    weights = rng.integers(1, 65, len(interned.subtrees.labels)) / 64.0
    for limit in (1, 10, 100, 300):
        mined = mine_partial(interned.subtrees, weights, 0.5, 0.25, limit)
        expected = slow.mine_partial(weighted(interned, weights), 0.5, 0.25, limit)
        assert spelled(mined) == expected.best
        assert (mined.generated, mined.rounds) == (expected.generated, expected.rounds)


@pytest.mark.parametrize("forest", [[], [None], [None, None]])
def test_nothing_to_mine(forest):
    mined = mine_partial(intern(forest_of(forest)).subtrees, np.zeros(0), 0.4, 0.4, 10)
    assert mined.generated == 0
    assert mined.fragments.offsets.tolist() == [0]
    assert len(mined.fragments.moves) == len(mined.fragments.weights) == 0


def test_subtrees_without_weight_are_not_mined():
    interned = intern(forest_of([(0, ((1, ((2, ()),)),))]))
    assert mine_partial(interned.subtrees, np.zeros(3), 0.4, 0.4, 10).generated == 0


def test_a_tree_of_one_node_is_a_fragment():
    interned = intern(forest_of([(7, ()), None]))
    found = spelled(mine_partial(interned.subtrees, np.array([2.0]), 0.4, 0.25, 10))
    assert found == [((7, ()), pytest.approx(2.0 * 0.5 * 0.4))]


def test_a_chain_of_20000_levels_is_mined():
    depth, limit = 20_000, 30
    arities = np.r_[np.ones(depth - 1, np.int32), np.zeros(1, np.int32)]
    interned = intern(Forest(np.array([0, depth]), np.zeros(depth, np.int32), arities))
    mined = mine_partial(interned.subtrees, np.ones(depth), 0.4, 0.25, limit)
    assert mined.rounds == limit + 1
    sizes = np.arange(1, limit + 1)
    assert_allclose(mined.fragments.weights, 0.4 * 0.5**sizes * (depth + 1 - sizes))


def test_a_node_of_many_children_of_one_label_is_mined():
    """Of 400 there are 4 10^12 ways to choose six, which are no more than 400 states."""
    children = 400
    interned = intern(forest_of([(0, ((1, ()),) * children)]))
    weights = (interned.subtrees.labels == 0).astype(float)
    found = dict(spelled(mine_partial(interned.subtrees, weights, 0.5, 0.25, 20)))
    assert found[0, ()] == 0.25
    ends = np.full(children, 0.125)  # by the last child
    for size in range(1, 7):
        assert found[0, ((1, ()),) * size] == pytest.approx(ends.sum())
        before = [0.25 * ends[:i] @ 0.5 ** np.arange(i)[::-1] for i in range(children)]
        ends = np.array(before)


def test_the_index_keeps_within_its_bytes():
    """The best grow first; what is found is as without a limit."""
    rng = np.random.default_rng(0)
    interned = intern(forest_of([random_tree(rng, 11, 4, 6) for _ in range(20)]))
    weights = rng.normal(size=len(interned.subtrees.labels))
    every = dict(spelled(mine_partial(interned.subtrees, weights, 0.4, MU, ALL)))
    whole = mine_partial(interned.subtrees, weights, 0.4, MU, 2000)
    for room in (0, 2 * INDEX_BYTES * 20, 2 * INDEX_BYTES * 200):
        tight = mine_partial(interned.subtrees, weights, 0.4, MU, 2000, max_bytes=room)
        assert 0 < tight.generated < whole.generated
        for fragment, weight in spelled(tight):
            assert weight == pytest.approx(every[fragment])
