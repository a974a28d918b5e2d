"""Learning with beam search against slow versions on an exact map."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from corpusmill.coreference.agendas import REGIMES, learn_beam
from corpusmill.coreference.greedy import learn_greedy
from corpusmill.coreference.updates import new_learner
from tests.coreference import slow
from tests.coreference.samples import FAR, LOCAL, batch_of, document, prepare, random_batch
from tests.coreference.test_greedy import assert_same_weights

BITS = 24
SHIFT = 64 - BITS


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize(("beam", "window"), [(1, 1000), (3, 1000), (4, 3)])
def test_each_regime_learns_what_its_slow_version_learns(regime, beam, window):
    prepared = prepare(random_batch(31, documents=3, sentences=2), LOCAL + FAR)
    learner, exact = new_learner(BITS, "perceptron", 1.0), slow.Learner()
    wrong = 0.0
    for number in [0, 1, 2, 1, 0]:
        text = slow.Document(prepared, number, window)
        found = learn_beam(
            prepared.arcs, number, learner, SHIFT, window, prepared.mentions.clusters,
            beam, REGIMES.index(regime),
        )  # fmt: skip
        assert found == slow.learn_beam(text, exact, beam, regime)
        wrong += found[0]
    assert wrong > 4
    assert_same_weights(learner.weights, exact, SHIFT)
    assert not learner.delta.any()


@pytest.mark.parametrize("regime", REGIMES)
def test_each_regime_learns_passive_aggressively_up_to_rounding(regime):
    prepared = prepare(random_batch(32, documents=2, sentences=2), LOCAL + FAR)
    first = np.random.default_rng(0).normal(0, 0.1, 1 << 22)  # no two arcs are equally good
    learner = new_learner(22, "pa", 1.0, first)
    exact = slow.Learner("pa", 1.0, slow.Hashed(first, 42))
    for number in [0, 1, 0]:
        text = slow.Document(prepared, number)
        found = learn_beam(
            prepared.arcs, number, learner, 42, 1000, prepared.mentions.clusters,
            3, REGIMES.index(regime),
        )  # fmt: skip
        assert found == slow.learn_beam(text, exact, 3, regime)
    for key, weight in exact.weights.items():
        assert learner.weights[slow.place_of(key, 42)] == pytest.approx(weight, abs=1e-9)


@pytest.mark.parametrize("beam", [1, 3, 10])
@pytest.mark.parametrize("window", [4, 1000])
def test_with_local_features_delayed_laso_is_the_baseline_update_for_update(beam, window):
    """Exactly so with perceptron updates, whose weights are integers.

    The best predicted tree is then the greedy one: ties fall to the root, then to the nearest
    antecedent, in both.
    """
    prepared = prepare(random_batch(41, documents=4, sentences=3), LOCAL)
    clusters = prepared.mentions.clusters
    greedy, delayed = (new_learner(18, "perceptron", 1.0) for _ in range(2))
    for number in [0, 1, 2, 3] * 4:
        one = learn_greedy(prepared.arcs, number, greedy, 46, window, clusters)
        two = learn_beam(
            prepared.arcs, number, delayed, 46, window, clusters, beam, REGIMES.index("delayed")
        )
        assert one == two
        np.testing.assert_array_equal(greedy.weights, delayed.weights)
        np.testing.assert_array_equal(greedy.sums, delayed.sums)


@pytest.mark.parametrize("beam", [1, 3, 10])
def test_with_local_features_delayed_laso_is_the_passive_aggressive_baseline(beam):
    """Up to rounding: a step size is a sum over features, which the two add in another order.

    Where arcs are equally good a difference in the last bit would choose another tree; here no two
    arcs are, since each has weights of its own from the start.
    """
    prepared = prepare(random_batch(42, documents=3), LOCAL)
    clusters = prepared.mentions.clusters
    first = np.random.default_rng(0).normal(0, 0.1, 1 << 18)
    greedy, delayed = (new_learner(18, "pa", 1.0, first) for _ in range(2))
    for number in [0, 1, 2] * 4:
        one = learn_greedy(prepared.arcs, number, greedy, 46, 1000, clusters)
        two = learn_beam(
            prepared.arcs, number, delayed, 46, 1000, clusters, beam, REGIMES.index("delayed")
        )
        assert one == two
        np.testing.assert_allclose(greedy.weights, delayed.weights, atol=1e-10)


def test_early_update_sees_less_of_a_document_than_laso():
    """With one tree an agenda, the first wrong arc ends the document."""
    prepared = prepare(random_batch(43, documents=3, sentences=5), LOCAL)
    losses = losses_of(prepared, ["early", "laso", "delayed"])
    assert 1.0 <= losses["early"] <= 1.5 * 3
    assert losses["delayed"] > losses["early"]
    assert losses["laso"] > losses["early"]


def losses_of(prepared, regimes: Sequence[str]) -> dict[str, float]:
    losses = {}
    for regime in regimes:
        learner = new_learner(16, "perceptron", 1.0)
        losses[regime] = sum(
            learn_beam(
                prepared.arcs, number, learner, 48, 1000, prepared.mentions.clusters,
                1, REGIMES.index(regime),
            )[0]
            for number in range(3)
        )  # fmt: skip
    return losses


@pytest.mark.parametrize("regime", range(4))
def test_documents_with_one_mention_or_none_teach_nothing(regime):
    prepared = prepare(
        batch_of(
            document("none", ["(S (VP (VBD slept)))"], clusters=[]),
            document("one", ["(S (NP (NNP Mira)) (VP (VBD slept)))"], clusters=[(0, 1, 4)]),
        )
    )
    learner = new_learner(12, "pa", 1.0)
    for number in range(2):
        found = learn_beam(
            prepared.arcs, number, learner, 52, 9, prepared.mentions.clusters, 2, regime
        )
        assert found == (0.0, 0, 0)
    assert not learner.weights.any()
    assert learner.steps[0] == 2


@pytest.mark.parametrize("regime", range(4))
def test_the_same_documents_give_the_same_weights(regime):
    prepared = prepare(random_batch(44), LOCAL + FAR)
    weights = []
    for _ in range(2):
        learner = new_learner(16, "pa", 1.0)
        for number in range(3):
            learn_beam(
                prepared.arcs, number, learner, 48, 1000, prepared.mentions.clusters, 4, regime
            )
        weights.append(learner.weights)
    np.testing.assert_array_equal(weights[0], weights[1])
