"""The comparison of pattern classifiers, on small drawn corpora."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from corpusmill.alignment import classification as subject
from corpusmill.alignment.baselines import matrix
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.types import Bags, Patterns

CLASSES = ("one", "two", "three")
FEATURES = 12
SETTINGS = subject.ClassificationSettings(folds=3, mimlboost_rounds=10)
LEARNER = LearnerSettings(max_iter=3, label_sparsity=float("inf"))


def draw_patterns(count: int, seed: int, labels_at_most: int = 2) -> Patterns:
    """Each class has four features of its own; a paragraph has one class and some noise."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((count, 3), dtype=bool)
    sizes = rng.integers(2, 5, size=count)
    rows = []
    for n in range(count):
        own = rng.choice(3, size=rng.integers(1, labels_at_most + 1), replace=False)
        labels[n, own] = True
        for m in range(sizes[n]):
            topic = own[m % len(own)]
            share = np.where(np.arange(FEATURES) // 4 == topic, 8.0, 1.0)
            rows.append(rng.multinomial(15, share / share.sum()))
    dense = np.array(rows)
    row, ids = np.nonzero(dense)
    bags = Bags(
        np.concatenate([[0], np.bincount(row, minlength=len(dense)).cumsum()]),
        ids.astype(np.int32),
        dense[row, ids].astype(np.float64),
    )
    offsets = np.concatenate([[0], sizes.cumsum()])
    return Patterns(offsets, bags, np.ones(len(dense)), labels, np.ones(count, dtype=bool))


@pytest.mark.parametrize("criterion", ["accuracy", "f1"])
@pytest.mark.parametrize("seed", range(20))
def test_cutoffs_reach_the_best_value_that_trying_every_one_finds(criterion, seed):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, size=(9, 2)).astype(float)
    labels = rng.random((9, 2)) < 0.4

    def value(predicted, gold):
        if criterion == "accuracy":
            return (predicted == gold).mean()
        return 2 * (predicted & gold).sum() / max(predicted.sum() + gold.sum(), 1)

    cutoffs = subject.best_cutoffs(scores, labels, criterion)
    for c in range(2):
        tried = [*np.unique(scores[:, c]), np.inf]
        best = max(value(scores[:, c] >= cut, labels[:, c]) for cut in tried)
        assert value(scores[:, c] >= cutoffs[c], labels[:, c]) == pytest.approx(best)


def test_a_cutoff_lies_half_way_between_scores():
    scores = np.array([[0.1], [0.2], [0.6], [0.9]])
    labels = np.array([[False], [False], [True], [True]])
    assert subject.best_cutoffs(scores, labels, "accuracy")[0] == pytest.approx(0.4)


def test_a_class_without_positives_is_never_given():
    cutoffs = subject.best_cutoffs(np.zeros((3, 1)), np.zeros((3, 1), dtype=bool), "accuracy")
    assert cutoffs[0] == np.inf


def test_held_out_scores_come_from_learners_that_have_not_seen_the_pattern():
    patterns = draw_patterns(10, seed=0)
    patterns = patterns._replace(weights=np.repeat(np.arange(10.0), np.diff(patterns.offsets)))

    def first_weights(part):
        return part.weights[part.offsets[:-1]]

    def score(train, test):
        assert not set(first_weights(train)) & set(first_weights(test))
        assert len(first_weights(train)) + len(first_weights(test)) == 10
        return np.repeat(first_weights(test)[:, None], 3, axis=1)

    scores = subject.held_out(score, patterns, folds=4, seed=1)
    assert scores[:, 0].tolist() == list(range(10))


def test_bayes_agrees_with_one_against_rest():
    train, test = draw_patterns(30, seed=1), draw_patterns(10, seed=2)
    labels = train.labels[np.repeat(np.arange(30), np.diff(train.offsets))]
    reference = OneVsRestClassifier(MultinomialNB(alpha=0.5)).fit(
        matrix(train.bags, FEATURES), labels
    )
    odds = subject.binary_bayes(train, test, FEATURES, 0.5)
    expected = reference.predict_proba(matrix(test.bags, FEATURES))
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-odds)), expected, atol=1e-12)


def test_support_vectors_agree_with_one_against_rest():
    train, test = draw_patterns(30, seed=1), draw_patterns(10, seed=2)
    labels = train.labels[np.repeat(np.arange(30), np.diff(train.offsets))]
    weighting = TfidfTransformer(sublinear_tf=True).fit(matrix(train.bags, FEATURES))
    X, X_test = (weighting.transform(matrix(part.bags, FEATURES)) for part in (train, test))
    reference = OneVsRestClassifier(LinearSVC(random_state=0)).fit(X, labels)
    found = subject.binary_support_vectors(train, test, FEATURES, 1.0, 0)
    np.testing.assert_allclose(found, reference.decision_function(X_test))


def test_splits_have_the_size_asked_for_and_differ():
    splits = subject.draw_splits(20, runs=3, train=12, seed=0)
    for split in splits:
        assert len(split.train) == 12
        assert sorted([*split.train, *split.test]) == list(range(20))
    assert len({tuple(split.train) for split in splits}) == 3


@pytest.mark.parametrize("method", subject.PAPER_METHODS)
def test_every_method_of_the_paper_learns(method):
    corpus = draw_patterns(90, seed=3)
    (split,) = subject.draw_splits(90, runs=1, train=60, seed=0)
    metrics = subject.evaluate(corpus, split, method, CLASSES, SETTINGS, LEARNER, seed=0)
    names = [f"{method}.hamming_accuracy.{name}" for name in CLASSES]
    kinds = ("hamming_accuracy", "f1_micro", "f1_macro")
    assert set(metrics) == {*names, *(f"{method}.{kind}" for kind in kinds)}
    assert metrics[f"{method}.hamming_accuracy"] == pytest.approx(
        np.mean([metrics[name] for name in names])
    )
    assert metrics[f"{method}.hamming_accuracy"] > 0.75
    again = subject.evaluate(corpus, split, method, CLASSES, SETTINGS, LEARNER, seed=0)
    assert metrics == again


@pytest.mark.parametrize("method", subject.PRACTITIONER_METHODS)
def test_every_method_of_the_practitioner_learns(method):
    train, test = draw_patterns(80, seed=4), draw_patterns(40, seed=5)
    metrics = subject.evaluate_practitioner(
        train, test, FEATURES, method, SETTINGS, LEARNER, seed=0
    )
    assert set(metrics) == {f"practitioner.{method}.f1_micro", f"practitioner.{method}.f1_macro"}
    assert min(metrics.values()) > 0.85


def test_paragraphs_get_their_class_from_the_labels_of_joined_documents():
    train, test = draw_patterns(120, seed=6, labels_at_most=1), draw_patterns(40, 7, 1)
    metrics: dict[str, float] = {}
    for method in subject.PARAGRAPH_METHODS:
        metrics |= subject.evaluate_paragraphs(
            train, test, FEATURES, method, SETTINGS, LEARNER, seed=0
        )
    prefixes = ("paragraphs", "paragraphs.known_labels")
    assert set(metrics) == {
        f"{prefix}.{method}.{kind}"
        for prefix, method, kind in itertools.product(
            prefixes, subject.PARAGRAPH_METHODS, ("accuracy", "f1_macro")
        )
    }
    assert metrics["paragraphs.dba.accuracy"] > 0.85
    for method in subject.PARAGRAPH_METHODS:
        known = metrics[f"paragraphs.known_labels.{method}.accuracy"]
        assert known >= metrics[f"paragraphs.{method}.accuracy"]


def test_the_chart_has_a_bar_a_method_and_class_and_leaves_out_what_was_not_measured():
    metrics = {"dba.hamming_accuracy": 0.9, "mnb.hamming_accuracy": 0.8}
    for name in CLASSES:
        metrics |= {f"dba.hamming_accuracy.{name}": 0.95, f"mnb.hamming_accuracy.{name}": 0.7}
    axes = subject.accuracy_chart(metrics, CLASSES, subject.PAPER_METHODS).axes[0]
    heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    assert heights == pytest.approx([95.0] * 3 + [90.0] + [70.0] * 3 + [80.0])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["dba", "mnb"]
