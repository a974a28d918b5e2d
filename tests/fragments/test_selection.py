"""Choosing fragments by chi-squared and by L1 weights, counted by hand and by libraries."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2_contingency

from corpusmill.fragments.by_kernel import mine_frequent
from corpusmill.fragments.examples import Examples
from corpusmill.fragments.forests import intern
from corpusmill.fragments.selection import best_of, chi_squared, l1_weights, select
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.trie import Fragments
from tests.fragments.reference import forest_of, random_tree


def random_counts(seed: int) -> tuple[csr_array, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    dense = rng.integers(0, 3, (30, 8)) * (rng.random((30, 8)) < 0.5)
    return (
        csr_array(dense.astype(float)),
        rng.random(30) < 0.4,
        rng.integers(1, 4, 30).astype(float),
    )


@pytest.mark.parametrize("seed", range(5))
def test_chi_squared_is_scipy_s(seed: int) -> None:
    counts, positive, copies = random_counts(seed)
    found = chi_squared(counts, positive, copies)
    present = counts.toarray() > 0
    for j in range(present.shape[1]):
        cells = [
            [copies[(positive == p) & (present[:, j] == h)].sum() for h in (True, False)]
            for p in (True, False)
        ]
        assert found[j] == pytest.approx(chi2_contingency(cells, correction=False).statistic)


def test_chi_squared_without_a_difference_is_zero() -> None:
    everywhere = csr_array(np.ones((4, 1)))
    assert chi_squared(everywhere, np.array([True, False, True, False]), np.ones(4)) == 0.0
    assert chi_squared(everywhere, np.ones(4, bool), np.ones(4)) == 0.0


def test_l1_weights_choose_what_tells_the_classes_apart() -> None:
    rng = np.random.default_rng(0)
    positive = rng.random(60) < 0.5
    noise = rng.random((60, 5)) < 0.5
    counts = csr_array(np.column_stack([noise[:, :2], positive, noise[:, 2:]]).astype(float))
    weights = l1_weights(counts, positive, np.ones(60), LearnerSettings(linear_cost=1.0))
    assert weights.argmax() == 2
    assert np.all(weights >= 0)
    nothing = l1_weights(counts, np.ones(60, bool), np.ones(60), LearnerSettings())
    np.testing.assert_array_equal(nothing, np.zeros(6))


def test_the_best_keep_their_moves() -> None:
    moves = np.array([1, 0, 7, 1, 0, 8, 1, 2, 9, 1, 0, 9], np.int32)
    fragments = Fragments(np.array([0, 1, 3, 4]), moves, np.zeros(3))
    found = best_of(fragments, np.array([0.5, 2.0, 0.0]), limit=5)
    np.testing.assert_array_equal(found.offsets, [0, 2, 3])
    np.testing.assert_array_equal(found.moves, [1, 0, 8, 1, 2, 9, 1, 0, 7])
    np.testing.assert_array_equal(found.weights, [2.0, 0.5])


def test_copies_count_like_examples_written_out() -> None:
    rng = np.random.default_rng(3)
    trees = [random_tree(rng, 12, 4) for _ in range(20)]
    codes, copies = rng.integers(0, 3, 20), rng.integers(1, 4, 20)
    settings = LearnerSettings(miner="chi2", limit=20, maxexp=2)
    once = select(Examples((forest_of(trees),)), codes, copies.astype(float), range(3), settings)
    written = [tree for tree, n in zip(trees, copies, strict=True) for _ in range(n)]
    again = select(
        Examples((forest_of(written),)), np.repeat(codes, copies), np.ones(copies.sum()),
        range(3), settings,
    )  # fmt: skip
    for one, two in zip(once, again, strict=True):
        np.testing.assert_allclose(one[0].weights, two[0].weights)
        assert 0 < len(one[0].weights) <= 20
    counts, positive, several = random_counts(1)
    rows = np.repeat(np.arange(30), several.astype(int))
    written_out = csr_array(counts[rows]), positive[rows], np.ones(len(rows))
    gentle = LearnerSettings(linear_cost=0.1)
    np.testing.assert_allclose(
        l1_weights(counts, positive, several, gentle), l1_weights(*written_out, gentle), atol=0.01
    )


@pytest.mark.parametrize("kernel", ["sst", "ptk"])
@pytest.mark.parametrize("miner", ["chi2", "l1"])
def test_mining_gives_at_most_l_of_each_machine(
    miner: Literal["chi2", "l1"], kernel: Literal["sst", "ptk"]
) -> None:
    rng = np.random.default_rng(4)
    examples = Examples((forest_of([random_tree(rng, 12, 4) for _ in range(20)]),))
    settings = LearnerSettings(miner=miner, limit=5, linear_cost=1.0, kernel=kernel)
    found = select(examples, rng.integers(0, 2, 20), np.ones(20), [0], settings)
    assert 0 < len(found[0][0].weights) <= 5


def test_frequent_partial_trees_are_those_whose_values_sum_up_to_most() -> None:
    """A node of many children does not win by its number of ways to choose some of them."""
    wide = (0, ((1, ()),) * 30)
    interned = intern(forest_of([wide, *[(2, ((3, ()),))] * 40]))
    often = np.bincount(interned.nodes).astype(float)
    found = mine_frequent(interned.subtrees, often, 4, LearnerSettings(kernel="ptk"))
    assert {tuple(moves) for moves in np.split(found.moves, 3 * found.offsets[1:-1])} == {
        (1, 0, 1), (1, 0, 2), (1, 0, 3), (1, 0, 2, 0, 0, 3),
    }  # fmt: skip
