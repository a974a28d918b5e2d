"""DBA beside its baselines on the label sets of documents and on the classes of paragraphs.

Three questions, on arrays. One call of `evaluate`, `evaluate_practitioner` or
`evaluate_paragraphs` is one method on one split, independent of all others.

`evaluate` (the paper's section 6.1)
    Hamming accuracy on random splits of the corpus that `documents.paper_corpus` draws.
`evaluate_practitioner`
    Micro and macro F1 on given train and test parts, with all features.
`evaluate_paragraphs`
    The class of each paragraph from the label sets of documents alone, on documents that
    `documents.join_documents` put together from such with one label, so that the truth is known.

Every method gives scores of patterns. Where a score becomes a decision, one cut-off a class is
chosen on held-out scores of the training part, which `held_out` computes fold by fold. For
``dba`` the same held-out phibar fit the read-out of `readout`; ``dba_diagonal`` is the paper's
form, cut-offs of a class's own phibar_c.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.naive_bayes import MultinomialNB
from sklearn.svm import LinearSVC

from corpusmill.alignment import baselines, learning, readout
from corpusmill.alignment.baselines import matrix, owners
from corpusmill.alignment.comparison import Split, choose_features, restrict, take
from corpusmill.alignment.documents import (
    PaperCorpusSettings,
    join_documents,
    whole_documents,
    without_empty,
)
from corpusmill.alignment.kernels import Posterior
from corpusmill.alignment.model import train as train_dba
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.evaluation.multilabel import f1_multi, hamming_accuracy
from corpusmill.evaluation.ranking import f1_single
from corpusmill.settings import Settings
from corpusmill.types import Flags, Floats, Patterns

PAPER_METHODS = ("dba", "dba_diagonal", "mnb", "mimlsvm", "mimlboost")
PRACTITIONER_METHODS = ("dba", "dba_diagonal", "mnb", "svm")
PARAGRAPH_METHODS = ("dba", "mnb", "svm", "mnb_instances", "svm_instances")

Criterion = Literal["accuracy", "f1"]
Scorer = Callable[[Patterns, Patterns], Floats]
"""Trains on the first patterns, scores the second: shape (patterns, classes)."""


class ClassificationSettings(Settings):
    """The corpora drawn, the splits, and the settings of the baselines.

    The defaults of the baselines are those that did best on development data: inner folds of a
    training part.
    """

    runs: int = Field(5, ge=1, description="random splits of the paper's setting")
    paper: PaperCorpusSettings = PaperCorpusSettings()
    train_documents: int = Field(1_200, ge=1, description="documents to train on in a run")
    folds: int = Field(5, ge=2, description="of the training part, to choose cut-offs")
    min_documents: int = Field(2, ge=1, description="documents of a feature, all features")
    token_weight: float = Field(
        0.5,
        gt=0.0,
        description="what an occurrence counts in DBA; below 1 paragraphs are less sure",
    )
    joined: int = Field(3, ge=2, description="documents in a joined one at the most, 2 at least")
    mnb_smoothing: float = Field(0.1, gt=0.0, description="pseudo-occurrences of each feature")
    svm_cost: float = Field(1.0, gt=0.0, description="LinearSVC's C")
    mimlsvm_cost: float = Field(10.0, gt=0.0, description="C of MIMLSVM's machines")
    mimlboost_rounds: int = Field(800, ge=1, description="of boosting at the most")


def draw_splits(patterns: int, runs: int, train: int, seed: int) -> list[Split]:
    """Draw random splits with a given number of patterns to train on.

    Parameters
    ----------
    patterns : int
        How many there are, more than `train`.
    runs : int
        Splits, each independent of the others.
    train : int
        Patterns to train on.
    seed : int

    Returns
    -------
    list of Split
    """
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(patterns) for _ in range(runs)]
    return [Split(np.sort(order[:train]), np.sort(order[train:])) for order in orders]


def held_out(scorer: Scorer, train: Patterns, folds: int, seed: int) -> Floats:
    """Score each training pattern by a learner that has not seen it.

    Parameters
    ----------
    scorer : Scorer
    train : Patterns
        At least as many as folds.
    folds : int
        Random ones of equal size.
    seed : int

    Returns
    -------
    Floats, shape (patterns, C)
    """
    order = np.random.default_rng(seed).permutation(len(train.offsets) - 1)
    scores = np.empty(train.labels.shape)
    for rows in np.array_split(order, folds):
        rest = np.setdiff1d(order, rows)
        scores[rows] = scorer(take(train, rest)[0], take(train, rows)[0])
    return scores


def best_cutoffs(scores: Floats, labels: Flags, criterion: Criterion) -> Floats:
    """Choose a cut-off a class: half way between two scores, where the criterion is best.

    Parameters
    ----------
    scores : Floats, shape (patterns, C)
        Held out; a pattern has the class where its score reaches the cut-off.
    labels : Flags, shape (patterns, C)
    criterion : {"accuracy", "f1"}

    Returns
    -------
    Floats, shape (C,)
        Of equally good ones the highest; inf where no pattern had better get the class.

    Notes
    -----
    O(C patterns log patterns).
    """
    order = np.argsort(-scores, axis=0, kind="stable")
    ranked = np.take_along_axis(scores, order, axis=0)
    hits = np.take_along_axis(labels, order, axis=0).cumsum(axis=0)
    hits = np.concatenate([np.zeros((1, scores.shape[1]), dtype=hits.dtype), hits])
    chosen = np.arange(len(hits))[:, None]
    if criterion == "accuracy":
        value = 2.0 * hits - chosen
    else:
        value = 2.0 * hits / np.maximum(chosen + hits[-1], 1)
    edge = np.full((1, scores.shape[1]), np.inf)
    above = np.concatenate([edge, ranked])
    below = np.concatenate([ranked, -edge])
    # Equal scores cannot be told apart.
    value = np.where(above > below, value, -np.inf)
    best = value.argmax(axis=0)[None, :]
    high = np.take_along_axis(above, best, axis=0)[0]
    low = np.take_along_axis(below, best, axis=0)[0]
    middle = 0.5 * (high + np.where(np.isinf(low), high, low))
    return np.where(middle > low, middle, high)


def binary_bayes(train: Patterns, test: Patterns, features: int, smoothing: float) -> Floats:
    """Score instances by one binary multinomial naive Bayes a class; an instance is a sample.

    Returns
    -------
    Floats, shape (test instances, C)
        log p(y_c = 1 | x) - log p(y_c = 0 | x); 0 for a class that divides nothing.
    """
    X, X_test = matrix(train.bags, features), matrix(test.bags, features)

    def score(positive: Flags) -> Floats:
        learner = MultinomialNB(alpha=smoothing).fit(X, positive)
        joint = learner.predict_joint_log_proba(X_test)
        odds: Floats = joint[:, 1] - joint[:, 0]
        return odds

    return _class_by_class(train.labels[owners(train.offsets)], X_test.shape[0], score)


def binary_support_vectors(
    train: Patterns, test: Patterns, features: int, C: float, seed: int
) -> Floats:
    """Score instances by one LinearSVC a class on (1 + log TF)-IDF of Euclidean length 1.

    Returns
    -------
    Floats, shape (test instances, C)
        Decision values; 0 for a class that divides nothing.
    """
    weighting = TfidfTransformer(sublinear_tf=True)
    X = weighting.fit_transform(matrix(train.bags, features))
    X_test = weighting.transform(matrix(test.bags, features))

    def score(positive: Flags) -> Floats:
        learner = LinearSVC(C=C, random_state=seed).fit(X, positive)
        values: Floats = learner.decision_function(X_test)
        return values

    return _class_by_class(train.labels[owners(train.offsets)], X_test.shape[0], score)


def _class_by_class(labels: Flags, rows: int, score: Callable[[Flags], Floats]) -> Floats:
    out = np.zeros((rows, labels.shape[1]))
    for c, positive in enumerate(labels.T):
        if positive.any() and not positive.all():
            out[:, c] = score(positive)
    return out


class Aligned(NamedTuple):
    """What DBA infers of test patterns, their labels unknown and known."""

    unknown: Posterior
    known: Posterior


def align(
    train: Patterns,
    test: Patterns,
    features: int,
    token_weight: float,
    learner: LearnerSettings,
) -> Aligned:
    """Train DBA and infer the test patterns.

    Parameters
    ----------
    train, test : Patterns
        All labelled.
    features : int
        D.
    token_weight : float
        Counts are multiplied by it: words of a paragraph are not independent, so the
        likelihood is tempered.
    learner : LearnerSettings
    """
    train, test = _weighted(train, token_weight), _weighted(test, token_weight)
    classes = [str(c) for c in range(train.labels.shape[1])]
    model = train_dba(learning.sum_over([train]), classes, features, learner)
    unlabelled = test._replace(labelled=np.zeros_like(test.labelled))
    return Aligned(model.infer(unlabelled), model.infer(test))


def _weighted(patterns: Patterns, token_weight: float) -> Patterns:
    bags = patterns.bags._replace(counts=token_weight * patterns.bags.counts)
    return patterns._replace(bags=bags)


def scorer(
    method: str,
    features: int,
    settings: ClassificationSettings,
    learner: LearnerSettings,
    seed: int,
) -> Scorer:
    """Give how a method scores patterns: naive Bayes and SVM see whole documents.

    Parameters
    ----------
    method : str
        One of `PAPER_METHODS` or `PRACTITIONER_METHODS`.
    features : int
        D.
    settings : ClassificationSettings
    learner : LearnerSettings
        DBA's.
    seed : int
        Of the methods that draw.
    """

    def whole(score: Callable[..., Floats], **how: float | int) -> Scorer:
        def run(train: Patterns, test: Patterns) -> Floats:
            parts = [whole_documents(part, features) for part in (train, test)]
            return score(*parts, features, **how)

        return run

    def dba(train: Patterns, test: Patterns) -> Floats:
        return align(train, test, features, settings.token_weight, learner).unknown.mean

    scorers: dict[str, Scorer] = {
        "dba": dba,
        "dba_diagonal": dba,
        "mnb": whole(binary_bayes, smoothing=settings.mnb_smoothing),
        "svm": whole(binary_support_vectors, C=settings.svm_cost, seed=seed),
        "mimlsvm": partial(
            baselines.miml_svm, features=features, C=settings.mimlsvm_cost, seed=seed
        ),
        "mimlboost": partial(
            baselines.miml_boost, features=features, rounds=settings.mimlboost_rounds
        ),
    }
    return scorers[method]


def evaluate(
    corpus: Patterns,
    split: Split,
    method: str,
    classes: Sequence[str],
    settings: ClassificationSettings,
    learner: LearnerSettings,
    seed: int,
) -> dict[str, float]:
    """Measure one of `PAPER_METHODS` on one split of the paper's setting.

    Parameters
    ----------
    corpus : Patterns
        From `documents.paper_corpus`.
    split : Split
        From `draw_splits`.
    method : str
    classes : sequence of str
        Names, in the order of the labels' columns.
    settings : ClassificationSettings
    learner : LearnerSettings
        DBA's.
    seed : int

    Returns
    -------
    dict of str to float
        ``<method>.hamming_accuracy``, the same with ``.<class>``, ``<method>.f1_micro`` and
        ``<method>.f1_macro``.
    """
    features = int(corpus.bags.ids.max(initial=-1)) + 1
    train, test = take(corpus, split.train)[0], take(corpus, split.test)[0]
    predicted = _decide(method, train, test, features, "accuracy", settings, learner, seed)
    by_class, overall = hamming_accuracy(test.labels, predicted)
    metrics = {f"{method}.hamming_accuracy": overall, **_f1(method, test.labels, predicted)}
    for name, value in zip(classes, by_class, strict=True):
        metrics[f"{method}.hamming_accuracy.{name}"] = float(value)
    return metrics


def evaluate_practitioner(
    train: Patterns,
    test: Patterns,
    features: int,
    method: str,
    settings: ClassificationSettings,
    learner: LearnerSettings,
    seed: int,
) -> dict[str, float]:
    """Measure one of `PRACTITIONER_METHODS` on given parts, with the features of the first.

    Returns
    -------
    dict of str to float
        ``practitioner.<method>.f1_micro`` and ``.f1_macro``.
    """
    train, test, features = _known_features(train, test, features, settings)
    predicted = _decide(method, train, test, features, "f1", settings, learner, seed)
    return _f1(f"practitioner.{method}", test.labels, predicted)


def evaluate_paragraphs(
    train: Patterns,
    test: Patterns,
    features: int,
    method: str,
    settings: ClassificationSettings,
    learner: LearnerSettings,
    seed: int,
) -> dict[str, float]:
    """Measure one of `PARAGRAPH_METHODS` on joined documents, learned from joined documents.

    The linear classifiers have no notion of paragraphs. They are tried both ways: trained on
    whole joined documents and applied to paragraphs (``mnb``, ``svm``), and trained on
    paragraphs that carry all labels of their document (``mnb_instances``, ``svm_instances``).

    Returns
    -------
    dict of str to float
        ``paragraphs.<method>.accuracy`` and ``.f1_macro`` where the test documents' labels are
        unknown, and the same under ``paragraphs.known_labels.``, where classes outside of them
        are ruled out.
    """
    train, test, features = _known_features(train, test, features, settings)
    learned, _ = join_documents(train, settings.joined, seed)
    joined, gold = join_documents(test, settings.joined, seed)
    allowed = joined.labels[owners(joined.offsets)]
    if method == "dba":
        found = align(learned, joined, features, settings.token_weight, learner)
        unknown, known = found.unknown.phi, found.known.phi
    else:
        kind, _, per_instance = method.partition("_")
        source = learned if per_instance else whole_documents(learned, features)
        if kind == "mnb":
            unknown = binary_bayes(source, joined, features, settings.mnb_smoothing)
        else:
            unknown = binary_support_vectors(source, joined, features, settings.svm_cost, seed)
        known = unknown
    metrics = {}
    for prefix, scores in (
        ("paragraphs", unknown),
        ("paragraphs.known_labels", np.where(allowed, known, -np.inf)),
    ):
        f1 = f1_single(gold, scores.argmax(axis=1))
        metrics[f"{prefix}.{method}.accuracy"] = f1.micro
        metrics[f"{prefix}.{method}.f1_macro"] = f1.macro
    return metrics


def _known_features(
    train: Patterns, test: Patterns, features: int, settings: ClassificationSettings
) -> tuple[Patterns, Patterns, int]:
    """Keep the features that enough training documents have, and instances with any."""
    documents = whole_documents(train, features)
    chosen = choose_features(documents, features, settings.min_documents)
    parts = [without_empty(restrict(part, features, chosen)) for part in (train, test)]
    return parts[0], parts[1], len(chosen)


def _decide(
    method: str,
    train: Patterns,
    test: Patterns,
    features: int,
    criterion: Criterion,
    settings: ClassificationSettings,
    learner: LearnerSettings,
    seed: int,
) -> Flags:
    score = scorer(method, features, settings, learner, seed)
    left_out = held_out(score, train, settings.folds, seed)
    scores = score(train, test)
    if method == "dba":
        read = readout.fit(
            lambda at: readout.step_sums(left_out, train.labels, at),
            left_out.shape[1],
            learner.read_out_precision,
        )
        left_out, scores = read.scores(left_out), read.scores(scores)
    return scores >= best_cutoffs(left_out, train.labels, criterion)


def _f1(name: str, gold: Flags, predicted: Flags) -> dict[str, float]:
    f1 = f1_multi(gold, predicted)
    return {f"{name}.f1_micro": f1.micro, f"{name}.f1_macro": f1.macro}


def accuracy_chart(
    metrics: Mapping[str, float], classes: Sequence[str], methods: Sequence[str]
) -> Figure:
    """Draw Hamming accuracy a class and overall, a bar a method (the paper's figure 2).

    Parameters
    ----------
    metrics : mapping of str to float
        From `evaluate`, averaged over the runs; methods that are not in it are left out.
    classes, methods : sequence of str
        In the order of the drawing.
    """
    drawn = [name for name in methods if f"{name}.hamming_accuracy" in metrics]
    keys = [f"hamming_accuracy.{name}" for name in classes] + ["hamming_accuracy"]
    values = np.array([[100.0 * metrics[f"{name}.{key}"] for key in keys] for name in drawn])
    figure = Figure(figsize=(11, 4), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / max(len(drawn), 1)
    for number, name in enumerate(drawn):
        places = np.arange(len(keys)) + (number - (len(drawn) - 1) / 2) * width
        axes.bar(places, values[number], width, label=name)
    names = [*classes, "overall"]
    axes.set_xticks(np.arange(len(keys)), names, rotation=30, parse_math=False)
    axes.set_ylabel("Hamming accuracy (%)")
    axes.set_ylim(max(0.0, np.floor(values.min(initial=100.0) / 10.0) * 10.0 - 5.0), 100.0)
    axes.legend(ncols=max(len(drawn), 1), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
