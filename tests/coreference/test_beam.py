"""Beam search with non-local features against all trees, and against a slow beam."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.beam import beam_search
from corpusmill.coreference.greedy import best_first
from tests.coreference import slow
from tests.coreference.samples import (
    FAR,
    LOCAL,
    Prepared,
    Row,
    batch_of,
    document,
    prepare,
    random_batch,
    random_row,
)
from tests.coreference.test_greedy import numbered

BITS = 14
SHIFT = 64 - BITS


def none_given(prepared: Prepared) -> np.ndarray:
    return np.full(len(prepared.mentions.starts), -1)


def few_mentions(seed: int, most: int = 6) -> Prepared:
    """Documents of a sentence or two, cut to so many mentions by dropping rows with more."""
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    while len(rows) < 2:
        row = random_row(rng, f"d{len(rows)}", 2)
        if 4 <= len(prepare(batch_of(row)).mentions.starts) <= most:
            rows.append(row)
    return prepare(batch_of(*rows))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("window", [2, 3, 1000])
def test_a_wide_beam_finds_the_best_of_all_trees(seed, window):
    prepared = few_mentions(seed)
    weights = slow.whole_weights(seed, BITS)
    table = slow.Hashed(weights, SHIFT)
    for number in range(2):
        text = slow.Document(prepared, number, window)
        totals = {
            tree: sum(text.score(table, tree[:m], a) for m, a in enumerate(tree))
            for tree in text.trees()
        }
        best = max(totals, key=totals.__getitem__)
        found, scores = beam_search(
            prepared.arcs, number, weights, SHIFT, window, len(totals), none_given(prepared)
        )
        assert numbered(found, text) == best
        assert scores.sum() == totals[best]


@pytest.mark.parametrize("beam", [1, 2, 7])
@pytest.mark.parametrize("window", [3, 1000])
def test_a_narrow_beam_is_the_slow_beam(beam, window):
    prepared = prepare(random_batch(21, sentences=2), LOCAL + FAR)
    weights = slow.whole_weights(beam, BITS)
    for number in range(3):
        text = slow.Document(prepared, number, window)
        score, tree = slow.search(text, slow.Hashed(weights, SHIFT), beam)
        found, scores = beam_search(
            prepared.arcs, number, weights, SHIFT, window, beam, none_given(prepared)
        )
        assert numbered(found, text) == tree
        assert scores.sum() == score


@pytest.mark.parametrize("beam", [1, 4])
def test_with_local_features_the_beam_finds_the_greedy_tree(beam):
    prepared = prepare(random_batch(3, sentences=4), LOCAL)
    weights = slow.whole_weights(0, BITS)
    for number in range(3):
        found, scores = beam_search(
            prepared.arcs, number, weights, SHIFT, 1000, beam, none_given(prepared)
        )
        greedy, wanted, _ = best_first(
            prepared.arcs, number, weights, SHIFT, 1000, prepared.mentions.clusters
        )
        np.testing.assert_array_equal(found, greedy)
        np.testing.assert_allclose(scores, wanted, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_given_clusters_are_kept_and_other_mentions_are_free(seed):
    prepared = prepare(random_batch(seed, sentences=2), LOCAL + FAR)
    weights = slow.whole_weights(5, BITS)
    given = np.random.default_rng(seed).choice([-1, 3, 5], len(prepared.mentions.starts))
    for number in range(3):
        text = slow.Document(prepared, number)
        text.clusters = given[text.begin : text.begin + text.count].tolist()
        found, _ = beam_search(prepared.arcs, number, weights, SHIFT, 1000, 5, given)
        tree = numbered(found, text)
        assert tree == slow.search(text, slow.Hashed(weights, SHIFT), 5, given=True)[1]
        for m, a in enumerate(tree):
            assert text.clusters[m] < 0 or a in text.correct(m)


def test_documents_with_one_mention_or_none_have_their_trees():
    prepared = prepare(
        batch_of(
            document("none", ["(S (VP (VBD slept)))"]),
            document("one", ["(S (NP (NNP Mira)) (VP (VBD slept)))"]),
        )
    )
    weights = np.ones(1 << BITS)
    assert len(beam_search(prepared.arcs, 0, weights, SHIFT, 9, 3, none_given(prepared))[0]) == 0
    found, scores = beam_search(prepared.arcs, 1, weights, SHIFT, 9, 3, none_given(prepared))
    assert found.tolist() == [-1]
    assert scores.tolist() == [prepared.arcs.root.shape[1]]
