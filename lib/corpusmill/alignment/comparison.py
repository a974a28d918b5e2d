"""DBA beside its baselines on instances whose classes are known: splits, methods, metrics.

The protocol. Patterns are drawn into splits, three quarters to train. Training sees the label
sets of patterns, never the class of an instance. Features are chosen on the training part.
Every metric is computed twice over the test part's instances: with the label sets of the test
patterns unknown, and known, which rules every other class out (and, for DBA, takes part in the
inference). One call of `score` is one method on one split, independent of all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from corpusmill.alignment import baselines, learning
from corpusmill.alignment.baselines import owners
from corpusmill.alignment.model import train as train_dba
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.evaluation.ranking import ClassIds, accuracy_at, f1_single
from corpusmill.settings import Settings
from corpusmill.types import AnyArray, Bags, Floats, Offsets, Patterns

METHODS = ("dba", "mnb_tf", "mnb_tfidf", "svm_tf", "svm_tfidf")
METRICS = ("accuracy_at_1", "accuracy_at_2", "accuracy_at_3", "f1_micro", "f1_macro")


class ComparisonSettings(Settings):
    """The splits, the features, and the settings of the baselines.

    The defaults of the baselines are those that did best on development data: inner splits of
    the training part of one split.
    """

    splits: int = Field(5, ge=1, description="random splits")
    test_share: float = Field(0.25, gt=0.0, lt=1.0, description="patterns in the test part")
    min_count: int = Field(2, ge=1, description="training instances that a feature occurs in")
    mnb_tf_smoothing: float = Field(0.1, gt=0.0)
    mnb_tfidf_smoothing: float = Field(3.0, gt=0.0)
    svm_tf_cost: float = Field(0.1, gt=0.0)
    svm_tfidf_cost: float = Field(0.05, gt=0.0)


class Corpus(NamedTuple):
    """Patterns whose label sets and whose instances' classes are known.

    Attributes
    ----------
    patterns : Patterns
        All labelled, none empty, each instance once (a weight counts in training alone).
    gold : ClassIds, shape (instances,)
        The true class of each instance, one of its pattern's labels.
    features : int
        D.
    """

    patterns: Patterns
    gold: ClassIds
    features: int


class Split(NamedTuple):
    """Numbers of patterns, rising."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


def random_splits(patterns: int, count: int, test_share: float, seed: int) -> list[Split]:
    """Draw random splits, each independent of the others.

    Parameters
    ----------
    patterns : int
        How many there are, at least 2.
    count : int
        Splits.
    test_share : float
        Of the patterns; rounded up, at least one and never all.
    seed : int

    Returns
    -------
    list of Split
    """
    rng = np.random.default_rng(seed)
    size = min(max(1, int(np.ceil(test_share * patterns))), patterns - 1)
    orders = [rng.permutation(patterns) for _ in range(count)]
    return [Split(np.sort(order[size:]), np.sort(order[:size])) for order in orders]


def take(patterns: Patterns, rows: NDArray[np.int64]) -> tuple[Patterns, NDArray[np.int64]]:
    """Select patterns.

    Parameters
    ----------
    patterns : Patterns
    rows : int64, shape (k,)

    Returns
    -------
    Patterns
        Of k patterns.
    instances : int64
        The numbers that their instances had.
    """
    instances, offsets = _parts(patterns.offsets, rows)
    features, bag_offsets = _parts(patterns.bags.offsets, instances)
    bags = Bags(bag_offsets, patterns.bags.ids[features], patterns.bags.counts[features])
    taken = Patterns(
        offsets,
        bags,
        patterns.weights[instances],
        patterns.labels[rows],
        patterns.labelled[rows],
    )
    return taken, instances


def choose_features(train: Patterns, features: int, min_count: int) -> NDArray[np.int64]:
    """Return the features that occur in at least `min_count` instances, rising."""
    having = np.bincount(train.bags.ids[train.bags.counts > 0], minlength=features)
    return np.flatnonzero(having >= min_count)


def restrict(patterns: Patterns, features: int, chosen: NDArray[np.int64]) -> Patterns:
    """Keep only the chosen features, numbered anew from 0; an instance may become empty."""
    number = np.full(features, -1, dtype=np.int32)
    number[chosen] = np.arange(len(chosen), dtype=np.int32)
    ids = number[patterns.bags.ids]
    kept = ids >= 0
    ends = np.concatenate([[0], np.cumsum(kept)])
    bags = Bags(ends[patterns.bags.offsets], ids[kept], patterns.bags.counts[kept])
    return patterns._replace(bags=bags)


class Scores(NamedTuple):
    """A method's scores of test instances, higher is better.

    Attributes
    ----------
    unknown, known : Floats, shape (instances, C)
        With the label sets of the test patterns unknown, and known: then -inf outside them.
    gold : ClassIds, shape (instances,)
    """

    unknown: Floats
    known: Floats
    gold: ClassIds


def score(
    corpus: Corpus,
    split: Split,
    method: str,
    comparison: ComparisonSettings,
    learner: LearnerSettings,
    seed: int,
) -> Scores:
    """Train one method on one split and score the test part's instances.

    Parameters
    ----------
    corpus : Corpus
    split : Split
    method : str
        One of `METHODS`.
    comparison : ComparisonSettings
        The baselines' settings.
    learner : LearnerSettings
        DBA's settings.
    seed : int
        Of the baselines that draw.

    Returns
    -------
    Scores
    """
    train, _ = take(corpus.patterns, split.train)
    test, instances = take(corpus.patterns, split.test)
    chosen = choose_features(train, corpus.features, comparison.min_count)
    train = restrict(train, corpus.features, chosen)
    test = restrict(test, corpus.features, chosen)
    if method == "dba":
        unknown, known = _dba(train, test, len(chosen), learner)
    else:
        unknown = _baseline(method, train, test, len(chosen), comparison, seed)
        known = unknown
    allowed = test.labels[owners(test.offsets)]
    return Scores(unknown, np.where(allowed, known, -np.inf), corpus.gold[instances])


def measure(method: str, scores: Scores) -> dict[str, float]:
    """Compute the metrics of a method.

    Returns
    -------
    dict of str to float
        ``<method>.<metric>`` for the `METRICS`, and the same once more under
        ``known_labels.``.
    """
    found = {
        f"{method}.": _metrics(scores.unknown, scores.gold),
        f"known_labels.{method}.": _metrics(scores.known, scores.gold),
    }
    return {prefix + name: value for prefix, part in found.items() for name, value in part.items()}


def confusion(scores: Floats, gold: ClassIds) -> Floats:
    """Count instances by true class (rows) and best-scored class (columns), shape (C, C)."""
    classes = scores.shape[1]
    cells = gold * classes + scores.argmax(axis=1)
    counts = np.bincount(cells, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.float64)


def average(results: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each metric over the splits that have it, by name."""
    names = sorted({name for result in results for name in result})
    return {
        name: float(np.mean([result[name] for result in results if name in result]))
        for name in names
    }


def _dba(
    train: Patterns, test: Patterns, features: int, learner: LearnerSettings
) -> tuple[Floats, Floats]:
    classes = [str(c) for c in range(train.labels.shape[1])]
    model = train_dba(learning.sum_over([train]), classes, features, learner)
    unlabelled = test._replace(labelled=np.zeros_like(test.labelled))
    return model.infer(unlabelled).phi, model.infer(test).phi


def _baseline(
    method: str,
    train: Patterns,
    test: Patterns,
    features: int,
    comparison: ComparisonSettings,
    seed: int,
) -> Floats:
    if method == "mnb_tf":
        smoothing = comparison.mnb_tf_smoothing
        return baselines.naive_bayes(train, test, features, False, smoothing)
    if method == "mnb_tfidf":
        smoothing = comparison.mnb_tfidf_smoothing
        return baselines.naive_bayes(train, test, features, True, smoothing)
    if method == "svm_tf":
        cost = comparison.svm_tf_cost
        return baselines.support_vectors(train, test, features, False, cost, seed)
    if method == "svm_tfidf":
        cost = comparison.svm_tfidf_cost
        return baselines.support_vectors(train, test, features, True, cost, seed)
    raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")


def _metrics(scores: Floats, gold: ClassIds) -> dict[str, float]:
    f1 = f1_single(gold, scores.argmax(axis=1))
    accuracies = [accuracy_at(scores, gold, n) for n in (1, 2, 3)]
    return dict(zip(METRICS, [*accuracies, *f1], strict=True))


def _parts(offsets: Offsets, rows: AnyArray) -> tuple[NDArray[np.int64], Offsets]:
    """Return where the values of the given parts lie, and the offsets of the parts alone."""
    sizes = np.diff(offsets)[rows]
    ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    places = np.arange(ends[-1]) + np.repeat(offsets[rows] - ends[:-1], sizes)
    return places, ends
