from __future__ import annotations

import numpy as np
import pytest

from corpusmill.alignment import baselines
from corpusmill.evaluation.multilabel import f1_multi
from corpusmill.types import Bags, Patterns


def corpus(
    seed: int, patterns: int = 80, classes: int = 4, features: int = 40
) -> tuple[Patterns, np.ndarray]:
    """Draw patterns whose instances use one class' own words and some that all share."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, patterns)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    labels = np.zeros((patterns, classes), bool)
    gold, rows = [], []
    for n in range(patterns):
        own = rng.choice(classes, size=2, replace=False)
        for _ in range(sizes[n]):
            c = int(rng.choice(own))
            labels[n, c] = True
            gold.append(c)
            words = np.concatenate(
                [rng.integers(8 * c, 8 * c + 8, 5), rng.integers(8 * classes, features, 2)]
            )
            rows.append(np.unique(words, return_counts=True))
    lengths = [len(ids) for ids, _ in rows]
    bags = Bags(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        np.concatenate([ids for ids, _ in rows]).astype(np.int32),
        np.concatenate([counts for _, counts in rows]).astype(np.float64),
    )
    weights = np.ones(len(rows))
    return Patterns(offsets, bags, weights, labels, np.ones(patterns, bool)), np.array(gold)


@pytest.mark.parametrize("tfidf", [False, True])
def test_instances_are_found_from_labels_of_patterns(tfidf: bool) -> None:
    train, _ = corpus(0)
    test, gold = corpus(1)
    for scores in (
        baselines.naive_bayes(train, test, 40, tfidf, smoothing=0.1),
        baselines.support_vectors(train, test, 40, tfidf, C=0.1, seed=0),
    ):
        assert scores.shape == (len(gold), 4)
        assert np.mean(scores.argmax(axis=1) == gold) > 0.9


def test_naive_bayes_is_its_formula() -> None:
    train, _ = corpus(2, patterns=12)
    test, _ = corpus(3, patterns=3)
    dense = baselines.matrix(train.bags, 40).toarray()
    prior, counts = np.zeros(4), np.full((4, 40), 0.5)
    for n in range(12):
        for m in range(train.offsets[n], train.offsets[n + 1]):
            for c in np.flatnonzero(train.labels[n]):
                share = 1 / train.labels[n].sum()
                prior[c] += share
                counts[c] += share * dense[m]
    log_b = np.log(counts / counts.sum(axis=1, keepdims=True))
    expected = baselines.matrix(test.bags, 40) @ log_b.T + np.log(prior / prior.sum())
    found = baselines.naive_bayes(train, test, 40, False, smoothing=0.5)
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("method", ["naive_bayes", "support_vectors", "miml_svm"])
def test_class_without_training_patterns_scores_lowest(method: str) -> None:
    train, _ = corpus(4)
    test, _ = corpus(5)
    labels = train.labels.copy()
    labels[:, 1] = False
    kept = labels.any(axis=1)
    labels[~kept, 0] = True
    train = train._replace(labels=labels)
    scores = {
        "naive_bayes": lambda: baselines.naive_bayes(train, test, 40, False, 0.1),
        "support_vectors": lambda: baselines.support_vectors(train, test, 40, True, 0.1, 0),
        "miml_svm": lambda: baselines.miml_svm(train, test, 40, 1.0, 0),
    }[method]()
    assert np.isfinite(scores).all()
    assert (scores.argmin(axis=1) == 1).all()


def test_hausdorff_is_its_definition() -> None:
    train, _ = corpus(6, patterns=7)
    test, _ = corpus(7, patterns=5)
    X, Z = (baselines.matrix(part.bags, 40) for part in (train, test))
    found = baselines.hausdorff(X, train.offsets, Z, test.offsets)
    for a in range(7):
        for b in range(5):
            rows = X[train.offsets[a] : train.offsets[a + 1]].toarray()
            others = Z[test.offsets[b] : test.offsets[b + 1]].toarray()
            pairs = np.linalg.norm(rows[:, None] - others[None], axis=2)
            expected = max(pairs.min(axis=1).max(), pairs.min(axis=0).max())
            assert found[a, b] == pytest.approx(expected)


def test_k_medoids_never_costs_more_than_its_start_and_finds_separate_groups() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(10 * k, 0.1, 20) for k in range(3)])
    distances = np.abs(points[:, None] - points[None])
    best = np.inf
    for seed in range(10):
        start = np.random.default_rng(seed).choice(60, size=3, replace=False)
        medoids = baselines.k_medoids(distances, 3, np.random.default_rng(seed))
        cost = distances[:, medoids].min(axis=1).sum()
        assert cost <= distances[:, start].min(axis=1).sum()
        assert len(set(medoids)) == 3
        best = min(best, cost)
    assert best < 10.0


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_miml_svm_classifies_patterns(kernel: baselines.Kernel) -> None:
    train, _ = corpus(8, patterns=200)
    test, _ = corpus(9)
    scores = baselines.miml_svm(train, test, 40, C=10.0, seed=0, kernel=kernel)
    assert f1_multi(test.labels, scores > 0).micro > 0.8


def test_miml_boost_classifies_patterns_and_repeats_itself() -> None:
    train, _ = corpus(10, patterns=200)
    test, _ = corpus(11)
    scores = baselines.miml_boost(train, test, 40, rounds=100)
    assert f1_multi(test.labels, scores > 0).micro > 0.8
    np.testing.assert_array_equal(scores, baselines.miml_boost(train, test, 40, rounds=100))
    few = baselines.miml_boost(train, train, 40, rounds=5)
    many = baselines.miml_boost(train, train, 40, rounds=100)
    assert f1_multi(train.labels, many > 0).micro > f1_multi(train.labels, few > 0).micro
