"""The kernel of examples: normalised, summed over trees, combined with vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array

from corpusmill.errors import DataError
from corpusmill.fragments.examples import (
    ExampleKernel,
    Examples,
    KernelSettings,
    self_norms,
    take,
)
from corpusmill.fragments.forests import intern
from corpusmill.fragments.solver import solve
from tests.fragments import reference as slow
from tests.fragments.reference import forest_of, random_tree, trees

QUICK = settings(max_examples=30, deadline=None)
FEATURES = 6


@st.composite
def drawn(draw, count, slots, labels=3):
    """Lists of trees by slot, and a matrix of features, some rows of which are 0."""
    forests = [
        draw(st.lists(trees(labels, 5), min_size=count, max_size=count)) for _ in range(slots)
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return forests, rng.normal(size=(count, FEATURES)) * (rng.random((count, FEATURES)) < 0.3)


def examples_of(forests, matrix=None):
    flat = tuple(forest_of(forest) for forest in forests)
    return Examples(flat, vectors=None if matrix is None else csr_array(matrix))


def divide(gram, left, right):
    scales = [np.divide(1, np.sqrt(s), out=np.zeros(len(s)), where=s > 0) for s in (left, right)]
    return scales[0][:, None] * gram * scales[1]


def slow_rows(left, right, how):
    """Combine kernels by enumeration of fragments, as the module says."""
    decays = (how.decay, how.mu)
    found = np.zeros((len(left[1]), len(right[1])))
    for a, b in zip(left[0], right[0], strict=True):
        part = slow.gram(how.kernel, a, b, *decays)
        if how.normalise:
            squares = [np.diag(slow.gram(how.kernel, trees, trees, *decays)) for trees in (a, b)]
            part = divide(part, *squares)
        found += how.tree_weight * part
    part = left[1] @ right[1].T
    if how.normalise_vectors:
        part = divide(part, *(np.square(matrix).sum(axis=1) for matrix in (left[1], right[1])))
    return found + how.vector_weight * part


hows = st.builds(
    KernelSettings,
    kernel=st.sampled_from(["sst", "st", "sst_bow", "ptk"]),
    decay=st.sampled_from([0.4, 1.0]),
    mu=st.just(0.3),
    normalise=st.booleans(),
    normalise_vectors=st.booleans(),
    tree_weight=st.sampled_from([0.0, 1.0, 0.7]),
    vector_weight=st.sampled_from([0.0, 1.0, 2.5]),
)


@QUICK
@given(drawn(4, 2), hows)
def test_kernel_of_examples_is_the_combination(training, how):
    kernel = ExampleKernel(examples_of(*training), how)
    expected = slow_rows(training, training, how)
    found = np.array([kernel.row(i) for i in range(4)])
    assert_allclose(found, expected, atol=1e-12)
    assert_allclose(kernel.diagonal, np.diag(expected), atol=1e-12)


@QUICK
@given(drawn(3, 2), drawn(2, 2, labels=4), hows)
def test_rows_of_other_examples(training, others, how):
    kernel = ExampleKernel(examples_of(*training), how)
    found = kernel.rows(examples_of(*others))
    assert_allclose(found, slow_rows(others, training, how), atol=1e-12)


@QUICK
@given(drawn(9, 1), hows)
def test_kernels_are_positive_semidefinite(training, how):
    kernel = ExampleKernel(examples_of(*training), how)
    gram = np.array([kernel.row(i) for i in range(9)])
    assert_allclose(gram, gram.T, atol=1e-12)
    assert np.linalg.eigvalsh(gram).min() >= -1e-10 * max(1.0, np.abs(gram).max())


@pytest.mark.parametrize("kernel", ["sst", "st", "sst_bow", "ptk"])
def test_normalised_kernels_are_positive_semidefinite_on_larger_trees(kernel):
    rng = np.random.default_rng(8)
    forest = [random_tree(rng, int(rng.integers(1, 25)), 3) for _ in range(60)]
    machine = ExampleKernel(examples_of([forest]), KernelSettings(kernel=kernel))
    gram = np.array([machine.row(i) for i in range(60)])
    assert np.linalg.eigvalsh(gram).min() >= -1e-10
    assert gram.max() <= 1 + 1e-12
    sizes = machine.norms[0] > 0
    assert_allclose(np.diag(gram), sizes.astype(float), rtol=1e-12)


def test_examples_without_vectors_and_vectors_without_weight():
    forests = [[(0, ((1, ()),)), (0, ((2, ()),))]]
    plain = ExampleKernel(examples_of(forests), KernelSettings())
    left_out = ExampleKernel(
        examples_of(forests, np.ones((2, FEATURES))), KernelSettings(vector_weight=0.0)
    )
    assert_array_equal(plain.row(0), [1.0, 0.0])
    assert_array_equal(left_out.row(0), [1.0, 0.0])
    assert_array_equal(plain.diagonal, [1.0, 1.0])


def test_features_that_training_did_not_have_are_left_out():
    forests = [[None, None]]
    kernel = ExampleKernel(examples_of(forests, np.eye(2, 3)), KernelSettings())
    others = examples_of(forests, np.array([[2.0, 0, 0, 9.0], [0, 0, 5.0, 1.0]]))
    assert_array_equal(kernel.rows(others), [[2.0, 0.0], [0.0, 0.0]])


def test_known_productions_keep_their_numbers():
    forest = forest_of([(0, ((1, ((2, ()),)),))])
    known = intern(forest_of([(5, ((6, ()),)), (1, ((2, ()),))])).productions
    (interned,) = Examples((forest,), known).interned()
    assert interned.productions.labels.tolist()[: len(known.labels)] == known.labels.tolist()
    assert interned.subtrees.productions.max() == 2


@QUICK
@given(drawn(5, 2), st.lists(st.integers(0, 4), max_size=8))
def test_taking_examples(training, rows):
    taken = take(examples_of(*training), np.array(rows, np.int64))
    forests, matrix = training
    expected = examples_of([[forest[k] for k in rows] for forest in forests], matrix[rows])
    for found, forest in zip(taken.trees, expected.trees, strict=True):
        for left, right in zip(found, forest, strict=True):
            assert_array_equal(left, right)
    assert taken.vectors is not None
    assert_array_equal(taken.vectors.toarray(), matrix[rows])


def test_roots_tell_which_trees_are_the_same():
    first, second = (0, ((1, ()),)), (0, ((2, ()),))
    roots = examples_of([[first, None, second, first], [None, None, second, second]]).roots()
    assert roots[0][0] == roots[0][3] != roots[0][2]
    assert roots[0][1] == -1
    assert roots[1].tolist()[:2] == [-1, -1]


def test_norms_of_the_sst_kernel():
    forest = [(0, ((1, ()),)), None, (0, ())]
    assert_allclose(self_norms(intern(forest_of(forest)), 0.25), [0.5, 0.0, 0.0])


# A tree whose kernel with itself exceeds the floating-point numbers

WIDE = (0, tuple((1, ((2, ()),)) for _ in range(3000)))
SMALL = (1, ((2, ()),))


def test_a_tree_beyond_all_numbers_counts_as_empty():
    kernel = ExampleKernel(examples_of([[SMALL, WIDE, WIDE, SMALL]]), KernelSettings())
    assert_array_equal(kernel.diagonal, [1.0, 0.0, 0.0, 1.0])
    assert_array_equal(kernel.row(0), [1.0, 0.0, 0.0, 1.0])
    assert_array_equal(kernel.row(1), np.zeros(4))
    assert_array_equal(kernel.rows(examples_of([[WIDE, SMALL]])), [[0, 0, 0, 0], [1, 0, 0, 1]])


def test_a_tree_beyond_all_numbers_is_refused_without_normalisation():
    with pytest.raises(DataError, match="tree of example 1: its kernel"):
        ExampleKernel(examples_of([[SMALL, WIDE]]), KernelSettings(normalise=False))
    fine = ExampleKernel(examples_of([[SMALL]]), KernelSettings(normalise=False))
    with pytest.raises(DataError, match="tree of example 0: its kernel"):
        fine.rows(examples_of([[WIDE]]))


def test_a_machine_is_trained_through_rows():
    rng = np.random.default_rng(5)
    forest = [random_tree(rng, 12, 3) for _ in range(60)]
    kernel = ExampleKernel(examples_of([forest]), KernelSettings())
    signs = np.where([tree[0] == 0 for tree in forest], 1.0, -1.0)
    solution = solve(kernel.row, kernel.diagonal, signs, np.full(60, 10.0))
    scores = kernel.rows(examples_of([forest])) @ solution.beta + solution.bias
    assert np.mean((scores > 0) == (signs > 0)) > 0.9
