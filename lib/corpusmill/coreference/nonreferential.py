"""Pronouns that refer to nothing, as in "it rains" and "you know". No Spark.

A logistic regression says how probably a pronoun is in no true cluster; candidates that are so with
a high probability are no mentions. For the training documents themselves it is trained on the other
folds, so that it errs there as it will elsewhere.

Source: Björkelund & Kuhn (2014, section 7), after Björkelund & Farkas (2012, section 2).
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from corpusmill.coreference.arcs import places, slot_sums
from corpusmill.coreference.attributes import ATOMS
from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.templates import ANAPHOR, Group, compile_templates, parse_templates
from corpusmill.types import AnyArray, Flags, Floats

BITS = 16
FOLDS = 5
"""Parts of the training documents, each judged by what is learned on the others."""
MOST_PRONOUNS = 200_000
"""Pronouns to train on at most."""
_TEMPLATES = """
ana.pronoun
ana.pronoun + ana.before
ana.pronoun + ana.after
ana.pronoun + ana.before_tag + ana.after_tag
ana.pronoun + ana.second_before
ana.pronoun + ana.second_after
ana.pronoun + ana.after + ana.second_after
ana.pronoun + ana.governor
ana.pronoun + ana.governor + ana.role
ana.pronoun + ana.path
ana.pronoun + ana.role
ana.pronoun + ana.genre
ana.pronoun + ana.spoken
ana.pronoun + ana.quoted
"""


class Nonreferential(NamedTuple):
    """Classifiers of pronouns.

    Attributes
    ----------
    coefficients : float64, shape (FOLDS + 1, 2^BITS + 1)
        Weights and intercept: of the classifier for each fold, trained on the others, and of that
        for new documents; all 0 is a classifier that removes nothing.
    """

    coefficients: Floats


NOTHING_REMOVED = Nonreferential(np.zeros((0, 1)))
"""The classifier before it is trained."""


@cache
def _group() -> Group:
    return compile_templates(parse_templates(_TEMPLATES.splitlines(), "templates")).anaphor


def pronoun_features(atoms: AnyArray, words: list[str]) -> tuple[AnyArray, AnyArray]:
    """Find the pronouns that may refer to nothing, and their features.

    Parameters
    ----------
    atoms : uint64, shape (mentions, ATOMS)
    words : list of str
        Lower-cased pronouns.

    Returns
    -------
    rows : int64, shape (pronouns,)
        Mentions.
    features : int32, shape (pronouns, templates)
        Places among 2^BITS weights.
    """
    pronouns = atoms[:, ATOMS.index("pronoun")]
    rows = np.flatnonzero(np.isin(pronouns, hash_strings(words)) & (pronouns != 0))
    group = _group()
    hashed = slot_sums(atoms[rows], group, ANAPHOR) + group.seeds
    return rows, places(hashed, 64 - BITS).astype(np.int32)


def fit_nonreferential(features: AnyArray, labels: Flags, folds: AnyArray) -> Nonreferential:
    """Train the classifiers.

    Parameters
    ----------
    features : int32, shape (pronouns, templates)
    labels : Flags, shape (pronouns,)
        Whether it is in no true cluster.
    folds : int64, shape (pronouns,)
        The fold of its document.

    Returns
    -------
    Nonreferential
        L2-regularised with cost 1. Where all labels are equal the classifier removes nothing.
    """
    result = np.zeros((FOLDS + 1, (1 << BITS) + 1))
    rows, templates = features.shape
    # A weight that no pronoun has stays 0; the solver need not carry it.
    used, columns = np.unique(features.ravel(), return_inverse=True)
    matrix = sparse.csr_matrix(
        (np.ones(rows * templates), columns, np.arange(rows + 1) * templates),
        shape=(rows, len(used)),
    )
    for fold in range(FOLDS + 1):
        others = folds != fold
        if len(np.unique(labels[others])) == 2:
            learner = LogisticRegression(max_iter=1000).fit(matrix[others], labels[others])
            result[fold, used] = learner.coef_[0]
            result[fold, -1] = learner.intercept_[0]
    return Nonreferential(result)


def probabilities(model: Nonreferential, features: AnyArray, folds: AnyArray) -> Floats:
    """Give the probability that a pronoun refers to nothing; shape (pronouns,).

    Parameters
    ----------
    model : Nonreferential
    features : int32, shape (pronouns, templates)
    folds : int64, shape (pronouns,)
        The fold that its document was in in training, `FOLDS` for a new one.
    """
    scores = model.coefficients[folds[:, None], features].sum(axis=1)
    return 1.0 / (1.0 + np.exp(-scores - model.coefficients[folds, -1]))
