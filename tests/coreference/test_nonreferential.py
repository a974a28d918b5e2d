"""Pronouns that refer to nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from corpusmill.coreference.attributes import ATOMS
from corpusmill.coreference.nonreferential import (
    BITS,
    FOLDS,
    fit_nonreferential,
    probabilities,
    pronoun_features,
)
from tests.coreference.samples import Row, batch_of, document, prepare

RAINS = "(S (NP (PRP It)) (VP (VBD rained) (ADVP (RB again))))"
BROKE = "(S (NP (PRP It)) (VP (VBD broke) (PP (IN near) (NP (PRP us)))))"


@pytest.fixture(autouse=True)
def one_thread():
    """As on Spark's executors; on a busy machine more threads wait for each other."""
    with threadpool_limits(1):
        yield


def documents(count: int) -> list[Row]:
    """In each, an it that is in no cluster and one that is."""
    return [document(f"d{n}", [RAINS, BROKE], clusters=[(3, 4, 0)]) for n in range(count)]


def examples(rows: list[Row], words: list[str]):
    prepared = prepare(batch_of(*rows))
    found, features = pronoun_features(prepared.table.atoms, words)
    labels = prepared.mentions.clusters[found] < 0
    owner = np.searchsorted(prepared.mentions.offsets, found, side="right") - 1
    return features, labels, owner


def test_only_the_pronouns_asked_for_are_looked_at():
    prepared = prepare(batch_of(*documents(2)))
    heads = prepared.table.atoms[:, ATOMS.index("head")]
    for words, count in ((["it"], 4), (["it", "us"], 6), (["he"], 0), ([], 0)):
        rows, features = pronoun_features(prepared.table.atoms, words)
        assert (len(rows), len(features)) == (count, count)
        assert len(np.unique(heads[rows])) == min(len(words), count)
        assert (features >= 0).all()
        assert (features < 1 << BITS).all()


def test_it_is_learned_which_pronouns_refer_to_nothing():
    features, labels, owner = examples(documents(20), ["it"])
    model = fit_nonreferential(features, labels, owner % FOLDS)
    for folds in (owner % FOLDS, np.full(len(owner), FOLDS)):
        found = probabilities(model, features, folds)
        assert (found[labels] > 0.8).all()
        assert (found[~labels] < 0.2).all()


def test_a_fold_is_judged_by_what_was_learned_on_the_others():
    """Labels of one fold are turned round: its classifier does not know, all others do."""
    features, labels, owner = examples(documents(20), ["it"])
    folds = owner % FOLDS
    odd = np.where(folds == 2, ~labels, labels)
    plain, turned = (fit_nonreferential(features, each, folds) for each in (labels, odd))
    np.testing.assert_array_equal(plain.coefficients[2], turned.coefficients[2])
    for fold in (0, 1, 3, 4, FOLDS):
        assert not np.array_equal(plain.coefficients[fold], turned.coefficients[fold])
    found = probabilities(turned, features, folds)
    assert ((found > 0.5) == labels)[folds == 2].all()


def test_where_all_are_alike_nothing_is_removed():
    features, labels, owner = examples(documents(6), ["it"])
    for each in (np.zeros_like(labels), np.ones_like(labels)):
        model = fit_nonreferential(features, each, owner % FOLDS)
        assert not model.coefficients.any()
        assert (probabilities(model, features, owner % FOLDS) == 0.5).all()


def test_without_pronouns_there_is_a_classifier_that_removes_nothing():
    features, labels, owner = examples(documents(2), ["he"])
    model = fit_nonreferential(features, labels, owner)
    assert not model.coefficients.any()
    assert len(probabilities(model, features, owner)) == 0


def test_probabilities_are_those_of_a_logistic_regression():
    features, labels, owner = examples(documents(8), ["it", "us"])
    model = fit_nonreferential(features, labels, owner % FOLDS)
    found = probabilities(model, features, np.full(len(owner), FOLDS))
    for row, chance in zip(features, found, strict=True):
        score = sum(model.coefficients[FOLDS, at] for at in row) + model.coefficients[FOLDS, -1]
        np.testing.assert_allclose(chance, 1 / (1 + np.exp(-score)))


def test_weights_are_those_of_a_regression_on_all_places():
    features, labels, owner = examples(documents(8), ["it", "us"])
    wide = np.zeros((len(labels), 1 << BITS))
    np.add.at(wide, (np.arange(len(labels))[:, None], features), 1.0)
    learner = LogisticRegression(max_iter=1000).fit(wide, labels)
    found = fit_nonreferential(features, labels, owner % FOLDS).coefficients[FOLDS]
    np.testing.assert_allclose(found[:-1], learner.coef_[0], atol=1e-4)
    np.testing.assert_allclose(found[-1], learner.intercept_[0], atol=1e-4)
