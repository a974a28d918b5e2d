"""Tree kernels against the enumeration of all fragments."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from corpusmill.fragments import kernels, partial
from corpusmill.fragments.forests import bags_of_subtrees, intern
from corpusmill.fragments.kernels import TreeKernel, build_index, tree_rows
from corpusmill.fragments.partial import build_label_index, partial_rows, partial_self_kernel
from corpusmill.fragments.self_kernels import self_kernel
from corpusmill.types import Forest
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, forests, random_tree

QUICK = settings(max_examples=25, deadline=None)
KERNELS: list[TreeKernel] = ["sst", "st", "sst_bow"]
DECAYS = st.sampled_from([0.1, 0.4, 1.0])


def interned_pair(left, right):
    """Number two forests, the second on top of the first."""
    known = intern(forest_of(left))
    return known, intern(forest_of(right), known.subtrees, known.productions)


# Rows against enumeration


@pytest.mark.parametrize("kernel", KERNELS)
@QUICK
@given(forests(most=4), DECAYS)
def test_kernels_are_inner_products_of_fragments(kernel, forest, decay):
    interned = intern(forest_of(forest))
    found = tree_rows(kernel, build_index(interned), interned, decay)
    assert_allclose(found, slow.gram(kernel, forest, forest, decay), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
@QUICK
@given(forests(most=3), forests(most=3, labels=4), DECAYS)
def test_rows_of_trees_that_the_index_does_not_know(kernel, known, others, decay):
    training, test = interned_pair(known, others)
    found = tree_rows(kernel, build_index(training), test, decay)
    assert_allclose(found, slow.gram(kernel, others, known, decay), rtol=1e-12)


@QUICK
@given(forests(most=3), forests(most=3, labels=4))
def test_sst_needs_only_the_productions_to_be_the_index_s(known, others):
    training = intern(forest_of(known))
    test = intern(forest_of(others), productions=training.productions)
    found = tree_rows("sst", build_index(training), test, 0.4)
    assert_allclose(found, slow.gram("sst", others, known, 0.4), rtol=1e-12)


@QUICK
@given(forests(most=3, most_leaves=5), DECAYS, st.sampled_from([0.3, 1.0]))
def test_ptk_is_an_inner_product_of_fragments(forest, decay, mu):
    interned = intern(forest_of(forest))
    found = partial_rows(build_label_index(interned), interned, decay, mu)
    assert_allclose(found, slow.gram("ptk", forest, forest, decay, mu), rtol=1e-12)


@QUICK
@given(forests(most=3, most_leaves=5), forests(most=2, labels=4, most_leaves=5))
def test_ptk_of_trees_that_the_index_does_not_know(known, others):
    training, test = interned_pair(known, others)
    found = partial_rows(build_label_index(training), test, 0.4, 0.5)
    assert_allclose(found, slow.gram("ptk", others, known, 0.4, 0.5), rtol=1e-12)


def test_ptk_of_wide_nodes_counts_gaps():
    node = (0, tuple((label, ()) for label in (1, 2, 1, 3, 1, 2)))
    other = (0, ((1, ()), (3, ()), (2, ((1, ()), (2, ()))), (1, ()), (2, ())))
    forest = [node, other]
    interned = intern(forest_of(forest))
    found = partial_rows(build_label_index(interned), interned, 0.4, 0.7)
    assert_allclose(found, slow.gram("ptk", forest, forest, 0.4, 0.7), rtol=1e-12)


def test_values_that_can_be_checked_by_hand():
    """(S (A x) (B y)) and (S (A x) (B z)) share S -> A B, with A -> x below or not, and A -> x."""
    x, y, z = (((label, ()),) for label in (7, 8, 9))
    forest = [(0, ((1, x), (2, y))), (0, ((1, x), (2, z)))]
    interned = intern(forest_of(forest))
    index = build_index(interned)
    assert tree_rows("sst", index, interned, 0.5)[0, 1] == 0.5 * 1.5 + 0.5
    assert tree_rows("st", index, interned, 0.5)[0, 1] == 0.5
    assert tree_rows("st", index, interned, 0.5)[0, 0] == 0.5 + 0.5 + 0.5**3
    assert tree_rows("sst_bow", index, interned, 0.5)[0, 1] == 0.5 * 1.5 + 0.5 + 0.5


def ptk(forest, decay, mu):
    interned = intern(forest_of(forest))
    return partial_rows(build_label_index(interned), interned, decay, mu)


def test_ptk_values_that_can_be_checked_by_hand():
    """(S a b c) and (S a c): single nodes, one child, and both, which skip one child once."""
    forest = [(0, ((1, ()), (2, ()), (3, ()))), (0, ((1, ()), (3, ())))]
    decay, mu = 0.5, 0.25
    leaf = mu * decay**2
    expected = 2 * leaf + mu * (decay**2 + 2 * leaf + decay * leaf**2)
    assert ptk(forest, decay, mu)[0, 1] == pytest.approx(expected, rel=1e-14)


def test_ptk_of_a_leaf_and_an_inner_node_of_its_label():
    forest = [(0, ()), (0, ((1, ()),))]
    assert ptk(forest, 0.5, 0.25)[0, 1] == 0.25 * 0.25


# K(T, T)


@pytest.mark.parametrize("kernel", KERNELS)
@QUICK
@given(forests(), DECAYS)
def test_self_kernel_is_the_diagonal(kernel, forest, decay):
    interned = intern(forest_of(forest))
    expected = np.diag(slow.gram(kernel, forest, forest, decay))
    assert_allclose(self_kernel(kernel, interned, decay), expected, rtol=1e-12)


@QUICK
@given(forests(most_leaves=5), DECAYS, st.sampled_from([0.3, 1.0]))
def test_ptk_self_kernel_is_the_diagonal(forest, decay, mu):
    expected = np.diag(slow.gram("ptk", forest, forest, decay, mu))
    found = partial_self_kernel(intern(forest_of(forest)), decay, mu)
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("nodes", [200, 250, 256, 257, 258, 262, 300, 900])
def test_self_kernel_of_large_trees_is_their_row(nodes):
    """On both sides of the size up to which a table of all pairs is used."""
    rng = np.random.default_rng(nodes)
    forest = [random_tree(rng, size, 3) for size in (20, nodes, nodes, 5)]
    interned = intern(forest_of(forest))
    index = build_index(interned)
    for kernel in KERNELS:
        expected = np.diag(tree_rows(kernel, index, interned, 0.3))
        assert_allclose(self_kernel(kernel, interned, 0.3), expected, rtol=1e-10)
    expected = np.diag(partial_rows(build_label_index(interned), interned, 0.3, 0.3))
    assert_allclose(partial_self_kernel(interned, 0.3, 0.3), expected, rtol=1e-10)


@pytest.mark.parametrize("inner", [255, 256, 257])
def test_self_kernel_at_the_size_of_the_table(inner):
    tree: slow.Tree = (0, ())
    for _ in range(inner):
        tree = (0, (tree,))
    interned = intern(forest_of([tree, tree]))
    expected = tree_rows("sst", build_index(interned), interned, 0.4)
    assert_allclose(self_kernel("sst", interned, 0.4), np.diag(expected), rtol=1e-12)


# What kernels must be


@QUICK
@given(forests(most=8, most_leaves=8), DECAYS, st.randoms(use_true_random=False))
def test_kernels_are_symmetric_and_do_not_depend_on_the_order_of_trees(forest, decay, random):
    order = random.sample(range(len(forest)), len(forest))
    interned, shuffled = intern(forest_of(forest)), intern(forest_of([forest[k] for k in order]))
    for kernel in KERNELS:
        found = tree_rows(kernel, build_index(interned), interned, decay)
        assert_allclose(found, found.T, rtol=1e-12)
        other = tree_rows(kernel, build_index(shuffled), shuffled, decay)
        assert_allclose(other, found[np.ix_(order, order)], rtol=1e-12)
    found = partial_rows(build_label_index(interned), interned, decay, 0.4)
    assert_allclose(found, found.T, rtol=1e-12)
    other = partial_rows(build_label_index(shuffled), shuffled, decay, 0.4)
    assert_allclose(other, found[np.ix_(order, order)], rtol=1e-12)


@QUICK
@given(forests(), st.integers(0, 3))
def test_rows_are_added_to_what_is_there(forest, first):
    interned = intern(forest_of(forest))
    index, subtrees = build_index(interned), interned.subtrees
    whole = tree_rows("sst_bow", index, interned, 0.4)
    values = kernels.same_values("sst_bow", subtrees, 0.4)
    rows = np.ones((len(forest) - first, len(forest))) if first < len(forest) else np.ones((0, 1))
    offsets = interned.offsets[min(first, len(forest)) :]
    kernels.add_rows("sst_bow", index, subtrees, values, offsets, interned.nodes, 0.4, rows)
    assert_allclose(rows - 1.0, whole[first:][:, : rows.shape[1]], atol=1e-12)


# Edges


def test_an_index_of_nothing():
    nothing = intern(forest_of([]))
    index = build_index(nothing)
    test = intern(forest_of([(0, ((1, ()),)), None]))
    for kernel in KERNELS:
        assert tree_rows(kernel, index, test, 0.4).shape == (2, 0)
        assert self_kernel(kernel, nothing, 0.4).shape == (0,)
    assert partial_rows(build_label_index(nothing), test, 0.4, 0.4).shape == (2, 0)
    assert partial_self_kernel(nothing, 0.4, 0.4).shape == (0,)


def test_a_forest_without_inner_nodes():
    forest = [(0, ()), (1, ()), None, (0, ())]
    training, test = interned_pair(forest, [(0, ((1, ()),)), (1, ())])
    assert not tree_rows("sst", build_index(training), test, 0.4).any()
    assert not tree_rows("st", build_index(training), test, 0.4).any()
    bow = tree_rows("sst_bow", build_index(training), test, 0.4)
    assert_array_equal(bow, [[0, 0.4, 0, 0], [0, 0.4, 0, 0]])
    assert_array_equal(self_kernel("sst", training, 0.4), np.zeros(4))


def test_an_index_of_subtrees_without_trees():
    """What `corpusmill.fragments.scoring` builds."""
    interned = intern(forest_of([(0, ((1, ()), (0, ((1, ()),))))]))
    nothing = interned._replace(offsets=np.zeros(1, np.int64), nodes=np.zeros(0, np.int32))
    index = build_index(nothing)
    assert index.trees == 0
    assert_array_equal(np.sort(index.places), np.arange(len(interned.subtrees.labels)))


def test_places_follow_productions_with_leaves_at_the_end():
    interned = intern(forest_of([(0, ((1, ((0, ()),)), (1, ((2, ()),)))), (1, ((2, ()),))]))
    index = build_index(interned)
    inner = interned.subtrees.productions >= 0
    assert index.places[inner].max() < index.groups[-1] <= index.places[~inner].min()
    for rule in range(len(index.groups) - 1):
        here = np.flatnonzero(interned.subtrees.productions == rule)
        expected = range(index.groups[rule], index.groups[rule + 1])
        assert sorted(index.places[here].tolist()) == list(expected)


@QUICK
@given(forests(most=1, most_leaves=12))
def test_few_nodes_are_half_done_at_a_time(forest):
    interned = intern(forest_of(forest))
    order, parents, ranks = kernels.heavy_first(interned.nodes, interned.subtrees.child_offsets)
    size = len(interned.nodes)
    assert sorted(order.tolist()) == list(range(size))
    most = 0
    done: set[int] = set()
    for at in reversed(order.tolist()):
        children = [child for child in range(size) if parents[child] == at]
        assert done >= set(children)
        assert sorted(ranks[children].tolist()) == list(range(len(children)))
        done.add(at)
        begun = {int(parents[child]) for child in done} - done - {-1}
        most = max(most, len(begun))
    assert most <= np.log2(max(size, 1)) + 1


def comb(teeth: int, left: bool) -> Forest:
    """Nodes of one production, each with a child that goes on and one that does not."""
    if left:
        labels = [0] * teeth + [1] + [2, 1] * teeth
        arities = [2] * teeth + [0] + [1, 0] * teeth
    else:
        labels, arities = [0, 2, 1] * teeth + [1], [2, 1, 0] * teeth + [0]
    return one_tree(labels, arities)


def one_tree(labels, arities) -> Forest:
    offsets = np.array([0, len(labels)])
    return Forest(offsets, np.array(labels, np.int32), np.array(arities, np.int32))


def shapes(nodes: int) -> dict[str, Forest]:
    chain = one_tree([0] * nodes, [1] * (nodes - 1) + [0])
    flat = one_tree([0, *range(1, nodes)], [nodes - 1] + [0] * (nodes - 1))
    third = nodes // 3
    rest = [number for k in range(third) for number in (1, 2, 3 + k)]
    wide = one_tree([0, *rest], [third, *[1, 1, 0] * third])
    return {
        "chain": chain,
        "flat": flat,
        "wide": wide,
        "left": comb(third, True),
        "right": comb(third, False),
    }


@pytest.mark.parametrize("shape", ["chain", "flat", "wide", "left", "right"])
def test_scratch_stays_small_for_any_shape(shape):
    """A tree of 3,000 nodes never needs a number for each of its pairs of nodes."""
    interned = intern(shapes(3000)[shape])
    index, subtrees = build_index(interned), interned.subtrees
    row = np.zeros(1)
    scratch = kernels.sst_row(
        index, subtrees.productions, subtrees.child_offsets, interned.nodes, 0.1, row, np.empty(1)
    )
    assert len(scratch) <= 4 * 13 * 3000
    assert row[0] > 0
    scratch = partial._row(
        build_label_index(interned), subtrees.labels, subtrees.child_offsets, subtrees.children,
        interned.nodes, 0.1, 0.1, row, np.empty(1),
    )  # fmt: skip
    assert len(scratch) <= 12 * 13 * 3000


@pytest.mark.parametrize("shape", ["chain", "flat", "wide", "left", "right"])
def test_shapes_are_the_slow_sum_over_pairs(shape):
    interned = intern(shapes(20)[shape])
    pairs = slow.sst_by_pairs(interned, 0.4)
    assert_allclose(tree_rows("sst", build_index(interned), interned, 0.4), pairs, rtol=1e-12)
    pairs = slow.ptk_by_pairs(interned, 0.4, 0.3)
    found = partial_rows(build_label_index(interned), interned, 0.4, 0.3)
    assert_allclose(found, pairs, rtol=1e-12)


@QUICK
@given(st.integers(0, 2**32 - 1), DECAYS)
def test_larger_trees_are_the_slow_sum_over_pairs(seed, decay):
    rng = np.random.default_rng(seed)
    forest = [random_tree(rng, int(rng.integers(1, 40)), 3, 5) for _ in range(3)]
    interned = intern(forest_of(forest))
    pairs = slow.sst_by_pairs(interned, decay)
    assert_allclose(tree_rows("sst", build_index(interned), interned, decay), pairs, rtol=1e-10)
    pairs = slow.ptk_by_pairs(interned, decay, 0.3)
    found = partial_rows(build_label_index(interned), interned, decay, 0.3)
    assert_allclose(found, pairs, rtol=1e-10)


@pytest.mark.long
def test_a_tree_of_50000_nodes_among_small_ones():
    rng = np.random.default_rng(5)
    large = random_tree(rng, 50_000, 40, 5)
    forest = [random_tree(rng, 15, 40) for _ in range(50)]
    interned = intern(forest_of([*forest, large, *forest]))
    squares = self_kernel("sst", interned, 0.4)
    row = np.zeros((1, 101))
    index = build_index(interned)
    offsets = interned.offsets[50:52]
    kernels.add_rows("sst", index, interned.subtrees, None, offsets, interned.nodes, 0.4, row)
    assert_allclose(row[0, 50], squares[50], rtol=1e-10)
    small = intern(forest_of(forest))
    assert_allclose(squares[:50], self_kernel("sst", small, 0.4), rtol=1e-12)
    assert_allclose(squares[51:], squares[:50], rtol=1e-12)
    assert np.all(row[0] ** 2 <= squares * squares[50] * (1 + 1e-12))


def test_a_kernel_beyond_all_numbers_is_infinite():
    children = 5000
    labels = [0, *np.tile([1, 2], children).tolist()]
    tree = one_tree(labels, [children, *np.tile([1, 0], children).tolist()])
    assert self_kernel("sst", intern(tree), 0.4)[0] == np.inf
    assert self_kernel("st", intern(tree), 0.4)[0] == pytest.approx(0.4 * children**2)


def test_bags_and_postings_agree():
    rng = np.random.default_rng(1)
    interned = intern(forest_of([random_tree(rng, 12, 2) for _ in range(30)]))
    index = build_index(interned)
    bags = bags_of_subtrees(interned)
    for t in range(30):
        for k in range(bags.offsets[t], bags.offsets[t + 1]):
            place = index.places[bags.ids[k]]
            begin, end = index.postings.offsets[place : place + 2]
            assert np.count_nonzero(index.postings.trees[begin:end] == t) == bags.counts[k]
