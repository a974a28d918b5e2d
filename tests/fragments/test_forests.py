"""Hash-consing of forests against dicts."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.fragments.forests import (
    LEAF,
    NO_PRODUCTIONS,
    NO_SUBTREES,
    bags_of_subtrees,
    intern,
)
from corpusmill.types import Forest
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests

QUICK = settings(max_examples=50, deadline=None)


def check(interned, numbers):
    """Compare what `intern` found with what dicts found."""
    assert slow.spelled(interned.subtrees) == numbers.subtrees
    assert slow.rules(interned.productions) == numbers.productions
    assert interned.nodes.tolist() == numbers.nodes
    expected = [
        numbers.productions.index(slow.rule_of(tree)) if tree[1] else LEAF
        for tree in numbers.subtrees
    ]
    assert interned.subtrees.productions.tolist() == expected


@QUICK
@given(forests(most=6))
def test_intern_is_the_reference(forest):
    check(intern(forest_of(forest)), slow.number(forest))


@QUICK
@given(forests(), forests(labels=4))
def test_known_subtrees_and_productions_keep_their_numbers(first, second):
    known = intern(forest_of(first))
    found = intern(forest_of(second), known.subtrees, known.productions)
    numbers = slow.number(first)
    check(found, slow.number(second, numbers.subtrees, numbers.productions))


@QUICK
@given(forests(), forests(labels=4))
def test_productions_can_be_known_without_subtrees(first, second):
    known = intern(forest_of(first)).productions
    found = intern(forest_of(second), productions=known)
    check(found, slow.number(second, rules=slow.number(first).productions))


@QUICK
@given(forests())
def test_interning_again_finds_nothing_new(forest):
    flat = forest_of(forest)
    once = intern(flat)
    again = intern(flat, once.subtrees, once.productions)
    for before, after in zip(
        (*once[0], *once[1], *once[2:]), (*again[0], *again[1], *again[2:]), strict=True
    ):
        np.testing.assert_array_equal(before, after)


@QUICK
@given(forests(), st.randoms(use_true_random=False))
def test_the_subtrees_are_the_same_in_any_order_of_the_trees(forest, random):
    shuffled = random.sample(forest, len(forest))
    found, others = intern(forest_of(forest)), intern(forest_of(shuffled))
    assert set(slow.spelled(found.subtrees)) == set(slow.spelled(others.subtrees))
    assert set(slow.rules(found.productions)) == set(slow.rules(others.productions))


@QUICK
@given(forests())
def test_children_come_before_parents(forest):
    subtrees = intern(forest_of(forest)).subtrees
    parents = np.repeat(np.arange(len(subtrees.labels)), np.diff(subtrees.child_offsets))
    assert np.all(subtrees.children < parents)


@QUICK
@given(forests())
def test_bags_count_the_subtrees_of_each_tree(forest):
    interned = intern(forest_of(forest))
    bags = bags_of_subtrees(interned)
    spelled = slow.spelled(interned.subtrees)
    for t, tree in enumerate(forest):
        part = slice(bags.offsets[t], bags.offsets[t + 1])
        ids = bags.ids[part].tolist()
        assert ids == sorted(set(ids))
        counts = dict(zip([spelled[u] for u in ids], bags.counts[part].tolist(), strict=True))
        assert counts == Counter(slow.nodes_of(tree))


def test_a_forest_without_trees():
    interned = intern(forest_of([]))
    check(interned, slow.number([]))
    assert len(interned.offsets) == 1
    assert bags_of_subtrees(interned).offsets.tolist() == [0]


def test_a_forest_of_empty_trees():
    interned = intern(forest_of([None, None]))
    check(interned, slow.number([None, None]))
    assert interned.offsets.tolist() == [0, 0, 0]


def test_what_is_known_is_not_changed():
    known = intern(forest_of([(0, ((1, ()),))]))
    before = [array.copy() for array in (*known.subtrees, *known.productions)]
    intern(forest_of([(0, ((2, ()), (1, ())))]), known.subtrees, known.productions)
    for array, old in zip((*known.subtrees, *known.productions), before, strict=True):
        np.testing.assert_array_equal(array, old)
    assert len(NO_SUBTREES.labels) == 0
    assert len(NO_PRODUCTIONS.offsets) == 1


def test_a_chain_of_100000_levels_needs_no_stack():
    depth = 100_000
    arities = np.ones(depth, np.int32)
    arities[-1] = 0
    chain = Forest(np.array([0, depth]), np.zeros(depth, np.int32), arities)
    interned = intern(chain)
    assert len(interned.subtrees.labels) == depth
    assert interned.nodes.tolist() == list(range(depth - 1, -1, -1))
    assert slow.rules(interned.productions) == [(0, 0)]


def test_50000_children_are_one_production():
    children = 50_000
    arities = np.zeros(children + 1, np.int32)
    arities[0] = children
    labels = np.r_[0, np.arange(children) % 7].astype(np.int32)
    interned = intern(Forest(np.array([0, children + 1]), labels, arities))
    assert len(interned.subtrees.labels) == 8
    assert interned.productions.labels.tolist() == labels.tolist()
    assert interned.nodes[0] == 7


def test_labels_that_hash_alike_stay_apart():
    """Many keys of the same few lengths: full comparison, whatever the hash does."""
    rng = np.random.default_rng(3)
    labels = rng.integers(-(2**31), 2**31, 20_000, dtype=np.int64).astype(np.int32)
    arities = np.tile([1, 0], 10_000).astype(np.int32)
    interned = intern(Forest(np.arange(0, 20_001, 2), labels, arities))
    pairs = {tuple(pair) for pair in labels.reshape(-1, 2).tolist()}
    assert len(interned.productions.offsets) - 1 == len(pairs)
    assert len(interned.subtrees.labels) == len(pairs) + len(set(labels[1::2].tolist()))
