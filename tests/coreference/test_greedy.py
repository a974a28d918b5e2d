"""Best-first search against Chu-Liu-Edmonds, and its learning against an exact map."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from corpusmill.coreference.greedy import best_first, learn_greedy
from corpusmill.coreference.updates import averaged, new_learner
from tests.coreference import slow
from tests.coreference.samples import LOCAL, Prepared, batch_of, document, prepare, random_batch

BITS = 24
SHIFT = 64 - BITS


def chu_liu_edmonds(scores: np.ndarray) -> list[int]:
    """The head of each node but 0 in the best tree; scores[h, m], -inf where there is no arc."""
    size = len(scores)
    scores = scores.copy()
    np.fill_diagonal(scores, -np.inf)
    heads = [-1, *(int(scores[:, m].argmax()) for m in range(1, size))]
    cycle = find_cycle(heads)
    if not cycle:
        return heads
    rest = [node for node in range(size) if node not in cycle]
    inside = sum(scores[heads[m], m] for m in cycle)
    smaller = np.full((len(rest) + 1, len(rest) + 1), -np.inf)  # the last stands for the cycle
    enter, leave = {}, {}
    for at, node in enumerate(rest):
        for to, other in enumerate(rest):
            smaller[at, to] = scores[node, other]
        gains = {m: scores[node, m] - scores[heads[m], m] for m in cycle}
        enter[node] = max(gains, key=gains.__getitem__)
        smaller[at, -1] = inside + gains[enter[node]]
        leave[node] = max(cycle, key=lambda m: scores[m, node])
        smaller[-1, at] = scores[leave[node], node]
    found = chu_liu_edmonds(smaller)
    for at, node in enumerate(rest):
        if at:
            heads[node] = leave[node] if found[at] == len(rest) else rest[found[at]]
    into = rest[found[-1]]
    heads[enter[into]] = into
    return heads


def find_cycle(heads: list[int]) -> list[int]:
    for start in range(1, len(heads)):
        path, at = [], start
        while at > 0 and at not in path:
            path.append(at)
            at = heads[at]
        if at > 0:
            return path[path.index(at) :]
    return []


def total(scores: np.ndarray, heads: list[int]) -> float:
    return float(sum(scores[h, m] for m, h in enumerate(heads) if m))


@pytest.mark.parametrize("seed", range(20))
def test_chu_liu_edmonds_finds_the_best_of_all_trees(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(5, 5))
    trees = [[-1, *heads] for heads in product(range(5), repeat=4)]
    best = max(
        total(scores, heads)
        for heads in trees
        if not find_cycle(heads) and all(h != m for m, h in enumerate(heads))
    )
    assert total(scores, chu_liu_edmonds(scores)) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("window", [2, 1000])
def test_best_first_finds_the_tree_of_chu_liu_edmonds(seed, window):
    prepared = prepare(random_batch(seed), LOCAL)
    weights = slow.whole_weights(seed, 14)
    table = slow.Hashed(weights, 50)
    for number in range(3):
        text = slow.Document(prepared, number, window)
        graph = np.full((text.count + 1, text.count + 1), -np.inf)
        for m in range(text.count):
            for a in text.choices(m):
                graph[a + 1, m + 1] = text.score(table, (-1,) * m, a)
        found, scores, _ = best_first(
            prepared.arcs, number, weights, 50, window, prepared.mentions.clusters
        )
        heads = [-1, *(a - text.begin + 1 if a >= 0 else 0 for a in found.tolist())]
        best = chu_liu_edmonds(graph)
        assert scores.sum() == total(graph, heads) == total(graph, best)
        ties = [m for m in range(1, len(heads)) if (graph[:, m] == graph[:, m].max()).sum() > 1]
        assert all(heads[m] == best[m] for m in range(len(heads)) if m not in ties)
        # Mentions that are alike have equal arcs; most have not.
        assert 2 * len(ties) < text.count


@pytest.mark.parametrize("seed", range(3))
def test_the_latent_tree_is_the_best_correct_tree(seed):
    prepared = prepare(random_batch(seed, sentences=2), LOCAL)
    weights = slow.whole_weights(seed, 14)
    for number in range(3):
        text = slow.Document(prepared, number)
        _, latent = slow.greedy(text, slow.Hashed(weights, 50))
        assert text.is_correct(latent)
        found = best_first(prepared.arcs, number, weights, 50, 1000, prepared.mentions.clusters)[2]
        assert numbered(found, text) == latent


def numbered(antecedents: np.ndarray, text: slow.Document) -> slow.Tree:
    return tuple(a - text.begin if a >= 0 else -1 for a in antecedents.tolist())


def assert_same_weights(weights: np.ndarray, exact: slow.Learner, shift: int) -> None:
    """Also that the table is large enough: no two features share a place."""
    places = {key: slow.place_of(key, shift) for key in exact.weights}
    assert len(set(places.values())) == len(places)
    wanted = {places[key]: weight for key, weight in exact.nonzero().items()}
    at = np.flatnonzero(weights)
    assert dict(zip(at.tolist(), weights[at].tolist(), strict=True)) == wanted


@pytest.mark.parametrize("window", [3, 1000])
def test_hashed_features_learn_what_an_exact_map_learns(window):
    prepared = prepare(random_batch(11, documents=4, sentences=2), LOCAL)
    learner, exact = new_learner(BITS, "perceptron", 1.0), slow.Learner()
    wrong = 0.0
    for number in [0, 1, 2, 3] * 3:
        text = slow.Document(prepared, number, window)
        trees = best_first(
            prepared.arcs, number, learner.weights, SHIFT, window, prepared.mentions.clusters
        )
        assert (numbered(trees[0], text), numbered(trees[2], text)) == slow.greedy(
            text, exact.weights
        )
        found = learn_greedy(
            prepared.arcs, number, learner, SHIFT, window, prepared.mentions.clusters
        )
        assert found == slow.learn_greedy(text, exact)
        wrong += found[0]
    assert wrong > 10
    assert_same_weights(learner.weights, exact, SHIFT)
    assert not learner.delta.any()


@pytest.mark.parametrize("kind", ["pa", "pa1", "pa2"])
def test_passive_aggressive_learning_is_that_of_an_exact_map_up_to_rounding(kind):
    prepared = prepare(random_batch(12, documents=3, sentences=2), LOCAL)
    first = np.random.default_rng(0).normal(0, 0.1, 1 << 22)  # no two arcs are equally good
    learner = new_learner(22, kind, 0.02, first)
    exact = slow.Learner(kind, 0.02, slow.Hashed(first, 42))
    for number in [0, 1, 2] * 2:
        text = slow.Document(prepared, number)
        found = learn_greedy(prepared.arcs, number, learner, 42, 1000, prepared.mentions.clusters)
        assert found == slow.learn_greedy(text, exact)
    for key, weight in exact.weights.items():
        assert learner.weights[slow.place_of(key, 42)] == pytest.approx(weight, abs=1e-12)


def test_many_passes_over_few_documents_leave_few_errors():
    prepared = prepare(
        random_batch(5, documents=2), "ana.string + ant.string + pair.mentions\nana.string"
    )
    learner = new_learner(18, "pa", 1.0)
    losses = [
        sum(
            learn_greedy(prepared.arcs, number, learner, 46, 1000, prepared.mentions.clusters)[0]
            for number in range(2)
        )
        for _ in range(60)
    ]
    assert losses[0] > 3
    assert losses[-1] < losses[0] / 3


def test_the_average_is_that_of_the_weights_after_each_document():
    prepared = prepare(random_batch(6), LOCAL)
    learner, copies = new_learner(16, "perceptron", 1.0), []
    for number in [0, 1, 2, 0]:
        learn_greedy(prepared.arcs, number, learner, 48, 1000, prepared.mentions.clusters)
        copies.append(learner.weights.copy())
        np.testing.assert_allclose(averaged(learner), np.mean(copies, axis=0), atol=1e-12)
    assert copies[-1].any()


def test_documents_with_one_mention_or_none_have_their_trees():
    prepared = prepare(
        batch_of(
            document("none", ["(S (VP (VBD slept)))"], clusters=[]),
            document("one", ["(S (NP (NNP Mira)) (VP (VBD slept)))"], clusters=[(0, 1, 4)]),
        ),
        LOCAL,
    )
    learner = new_learner(10, "pa", 1.0)
    clusters = prepared.mentions.clusters
    for number, tree in ((0, []), (1, [-1])):
        found, scores, latent = best_first(prepared.arcs, number, learner.weights, 54, 9, clusters)
        assert (found.tolist(), latent.tolist(), len(scores)) == (tree, tree, len(tree))
        assert learn_greedy(prepared.arcs, number, learner, 54, 9, clusters) == (0.0, 0, 0)
    assert learner.steps[0] == 2


def test_ties_go_to_the_root_then_to_the_nearest():
    prepared = prepare(random_batch(2), "ana.type\npair.mentions")
    clusters = prepared.mentions.clusters
    found = best_first(prepared.arcs, 0, np.zeros(1 << 10), 54, 1000, clusters)[0]
    assert (found == -1).all()
    weights = np.ones(1 << 10)
    weights[prepared_root_places(prepared, 54)] = -9.0
    found = best_first(prepared.arcs, 0, weights, 54, 1000, clusters)[0]
    assert found.tolist() == [-1, *range(len(found) - 1)]


def prepared_root_places(prepared: Prepared, shift: int) -> list[int]:
    text = slow.Document(prepared, 0)
    keys = [key for m in range(text.count) for key in text.features((-1,) * m, -1)]
    return [slow.place_of(key, shift) for key in keys]
