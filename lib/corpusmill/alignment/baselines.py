"""What DBA is compared with: naive Bayes, SVM, MIMLSVM and MIMLBoost, on arrays. No Spark.

`naive_bayes` and `support_vectors` score instances, trained from the labels of patterns alone: an
instance carries the label set of its pattern. On patterns of one instance each they are the
ordinary classifiers of whole documents. `miml_svm` and `miml_boost` score patterns.

Each trains on some patterns, all labelled, and returns scores of others with a column a class:
higher is more likely. Classes that no training pattern has, score lowest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.naive_bayes import MultinomialNB
from sklearn.preprocessing import normalize
from sklearn.svm import SVC, LinearSVC

from corpusmill.types import Bags, Flags, Floats, Offsets, Patterns

MAX_STEP = 10.0
"""The longest step of boosting, taken where no bag is wrong and any step would do."""

Kernel = Literal["linear", "rbf"]


def matrix(bags: Bags, features: int) -> sparse.csr_matrix:
    """Wrap bags as a sparse matrix, shape (bags, features), without a copy."""
    shape = (len(bags.offsets) - 1, features)
    return sparse.csr_matrix((bags.counts, bags.ids, bags.offsets), shape=shape)


def inverse_document_frequencies(X: sparse.csr_matrix) -> Floats:
    """Return 1 + ln((1 + n) / (1 + n_d)) a feature, n_d of n rows having it (as scikit-learn)."""
    having = np.bincount(X.indices[X.data > 0], minlength=X.shape[1])
    weights: Floats = 1.0 + np.log((1.0 + X.shape[0]) / (1.0 + having))
    return weights


def owners(offsets: Offsets) -> NDArray[np.int64]:
    """Return the pattern of each instance."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def naive_bayes(
    train: Patterns, test: Patterns, features: int, tfidf: bool, smoothing: float
) -> Floats:
    """Score instances by multinomial naive Bayes.

    A training instance is copied to each of the labels of its pattern, each copy with weight
    1 / |Y|, as the truth is one of them.

    Parameters
    ----------
    train, test : Patterns
    features : int
        D.
    tfidf : bool
        Whether counts are multiplied by inverse document frequencies.
    smoothing : float
        Pseudo-occurrences of every feature in every class, in units of a (weighted) count.

    Returns
    -------
    Floats, shape (test instances, classes)
        log p(c) + sum_d x_d log p(d | c).

    Notes
    -----
    O(nonzeros * mean |Y|).
    """
    X, X_test = matrix(train.bags, features), matrix(test.bags, features)
    if tfidf:
        idf = sparse.diags_array(inverse_document_frequencies(X))
        X, X_test = (X @ idf).tocsr(), (X_test @ idf).tocsr()
    labels = train.labels[owners(train.offsets)]
    rows, classes = np.nonzero(labels)
    weights = train.weights[rows] / labels.sum(axis=1)[rows]
    learner = MultinomialNB(alpha=smoothing).fit(X[rows], classes, sample_weight=weights)
    return _spread(learner.predict_joint_log_proba(X_test), learner.classes_, labels.shape[1])


def support_vectors(
    train: Patterns, test: Patterns, features: int, tfidf: bool, C: float, seed: int
) -> Floats:
    """Score instances by one linear SVM a class against the rest.

    As in MIMLSVM's scheme an instance is a positive example of every label of its pattern.
    Rows have Euclidean length 1; the two sides of a class weigh the same.

    Parameters
    ----------
    train, test : Patterns
    features : int
        D.
    tfidf : bool
        Whether counts are multiplied by inverse document frequencies.
    C : float
        Cost of the margin's violation.
    seed : int

    Returns
    -------
    Floats, shape (test instances, classes)
        Decision values.

    Notes
    -----
    O(classes * nonzeros) a pass over the data, some tens of passes.
    """
    X, X_test = matrix(train.bags, features), matrix(test.bags, features)
    if tfidf:
        idf = sparse.diags_array(inverse_document_frequencies(X))
        X, X_test = (X @ idf).tocsr(), (X_test @ idf).tocsr()
    X, X_test = normalize(X), normalize(X_test)
    labels = train.labels[owners(train.offsets)]

    def decide(positive: Flags) -> Floats:
        learner = LinearSVC(C=C, class_weight="balanced", random_state=seed, max_iter=5_000)
        learner.fit(X, positive, sample_weight=train.weights)
        values: Floats = learner.decision_function(X_test)
        return values

    return _one_against_rest(labels, X_test.shape[0], decide)


def miml_svm(
    train: Patterns,
    test: Patterns,
    features: int,
    C: float,
    seed: int,
    medoids_share: float = 0.2,
    kernel: Kernel = "linear",
) -> Floats:
    """Score patterns by MIMLSVM.

    The training bags are clustered by k-medoids under the Hausdorff distance; a bag becomes the
    vector of its distances to the medoids; one SVM a class separates those vectors (Zhou and
    Zhang, Multi-instance multi-label learning with application to scene classification, NIPS
    2006). Instances are normalised to Euclidean length 1.

    Parameters
    ----------
    train, test : Patterns
        Every pattern has instances.
    features : int
        D.
    C : float
        Cost of the margin's violation.
    seed : int
    medoids_share : float
        k as a share of the training patterns; 0.2 in the paper.
    kernel : {"linear", "rbf"}

    Returns
    -------
    Floats, shape (test patterns, classes)
        Decision values; the paper predicts the positive ones, else the best.

    Notes
    -----
    O(I^2 * nonzeros a row) for I training instances, and a float64 matrix of the training
    patterns' distances.
    """
    X = normalize(matrix(train.bags, features))
    X_test = normalize(matrix(test.bags, features))
    distances = hausdorff(X, train.offsets, X, train.offsets)
    count = max(1, round(medoids_share * len(distances)))
    medoids = k_medoids(distances, count, np.random.default_rng(seed))
    chosen = np.concatenate([np.arange(train.offsets[m], train.offsets[m + 1]) for m in medoids])
    sizes = np.diff(train.offsets)[medoids]
    medoid_offsets = np.concatenate([[0], np.cumsum(sizes)])
    inputs = distances[:, medoids]
    outputs = hausdorff(X_test, test.offsets, X[chosen], medoid_offsets)

    def decide(positive: Flags) -> Floats:
        learner = SVC(C=C, kernel=kernel, random_state=seed).fit(inputs, positive)
        values: Floats = learner.decision_function(outputs)
        return values

    return _one_against_rest(train.labels, len(outputs), decide)


def hausdorff(
    X: sparse.csr_matrix, offsets: Offsets, Z: sparse.csr_matrix, Z_offsets: Offsets
) -> Floats:
    """Compute the Hausdorff distance of each bag of X to each bag of Z.

    max(max_{x in A} min_{z in B} |x - z|, max_{z in B} min_{x in A} |x - z|), Euclidean.

    Parameters
    ----------
    X, Z : sparse matrices
        Instances in rows.
    offsets, Z_offsets : Offsets
        The bags; none is empty.

    Returns
    -------
    Floats, shape (bags of X, bags of Z)

    Notes
    -----
    O(rows of X * nonzeros of Z); memory for one bag of X against all of Z.
    """
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    Z_squares = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
    transposed = Z.T.tocsr()
    out = np.empty((len(offsets) - 1, len(Z_offsets) - 1))
    for bag in range(len(out)):
        rows = slice(offsets[bag], offsets[bag + 1])
        products = (X[rows] @ transposed).toarray()
        square = squares[rows, None] + Z_squares - 2.0 * products
        there = np.minimum.reduceat(square, Z_offsets[:-1], axis=1).max(axis=0)
        back = np.maximum.reduceat(square.min(axis=0), Z_offsets[:-1])
        out[bag] = np.sqrt(np.maximum(np.maximum(there, back), 0.0))
    return out


def k_medoids(
    distances: Floats, count: int, rng: np.random.Generator, max_iter: int = 100
) -> NDArray[np.int64]:
    """Choose medoids by alternating assignment and update.

    Parameters
    ----------
    distances : Floats, shape (items, items)
        Symmetric.
    count : int
        Medoids, at most the items.
    rng : numpy.random.Generator
        Draws the first medoids.
    max_iter : int
        Rounds at the most.

    Returns
    -------
    int64, shape (count,)
        Rising. Every update lowers the sum of distances to the nearest medoid or is the last.

    Notes
    -----
    O(items^2) a round.
    """
    medoids = np.sort(rng.choice(len(distances), size=count, replace=False))
    for _ in range(max_iter):
        cluster = distances[:, medoids].argmin(axis=1)
        # A medoid is its own cluster's even where another one has distance 0.
        cluster[medoids] = np.arange(count)
        updated = medoids.copy()
        for k in range(count):
            members = np.flatnonzero(cluster == k)
            inner = distances[np.ix_(members, members)].sum(axis=0)
            best = int(inner.argmin())
            if inner[best] < inner[np.searchsorted(members, medoids[k])]:
                updated[k] = members[best]
        updated.sort()
        if np.array_equal(updated, medoids):
            break
        medoids = updated
    return medoids


def miml_boost(train: Patterns, test: Patterns, features: int, rounds: int) -> Floats:
    """Score patterns by MIMLBoost with decision stumps.

    A pattern X with labels Y becomes one multi-instance bag (X, c) a class c, positive where c
    is in Y; MIBoosting learns from all of them together (Zhou and Zhang 2006, after Xu and
    Frank 2004). The base learner h(x, c) of a round is a stump for each class: whether one
    feature occurs in x.

    With e(bag) the share of the bag's instances that h gets wrong, the round's step is the
    c >= 0 that minimises sum_bag W(bag) exp((2 e(bag) - 1) c), which also reweighs the bags.

    Parameters
    ----------
    train, test : Patterns
        Every training pattern has instances.
    features : int
        D.
    rounds : int
        At the most; fewer if no stump is left that helps.

    Returns
    -------
    Floats, shape (test patterns, classes)
        Sums of steps times mean votes of the instances; the paper predicts the positive ones.

    Notes
    -----
    O(rounds * classes * (nonzeros + D)).
    """
    X = _presence(matrix(train.bags, features))
    X_test = _presence(matrix(test.bags, features)).tocsc()
    columns, transposed = X.tocsc(), X.T.tocsr()
    owner, test_owner = owners(train.offsets), owners(test.offsets)
    sizes = np.diff(train.offsets)
    sign = np.where(train.labels, 1.0, -1.0)
    weights = np.full(sign.shape, 1.0 / sign.size)
    out = np.zeros((len(test.offsets) - 1, sign.shape[1]))
    test_sizes = np.maximum(np.diff(test.offsets), 1)[:, None]
    for _ in range(rounds):
        stump = _best_stumps(transposed, (weights * sign / sizes[:, None])[owner])
        votes = _mean_votes(columns, stump, owner, sizes[:, None])
        # 2 e - 1 is minus the mean of the right signs.
        loss = -sign * votes
        step = _best_step(weights, loss)
        if step <= 0.0:
            break
        out += step * _mean_votes(X_test, stump, test_owner, test_sizes)
        weights *= np.exp(loss * step)
        weights /= weights.sum()
        if step >= MAX_STEP:
            break
    return out


Stumps = tuple[NDArray[np.int64], Floats, Floats]
"""A class: the feature, the vote where it occurs, the vote where it does not."""


def _presence(X: sparse.csr_matrix) -> sparse.csr_matrix:
    X = X.copy()
    X.data = (X.data > 0.0).astype(np.float64)
    return X


def _best_stumps(transposed: sparse.csr_matrix, signed: Floats) -> Stumps:
    """Return the stumps of least weighted error; `signed` holds weight times sign."""
    present = transposed @ signed
    absent = signed.sum(axis=0) - present
    feature = (np.abs(present) + np.abs(absent)).argmax(axis=0)
    classes = np.arange(signed.shape[1])
    return feature, _sign(present[feature, classes]), _sign(absent[feature, classes])


def _sign(values: Floats) -> Floats:
    return np.where(values >= 0.0, 1.0, -1.0)


def _mean_votes(
    columns: sparse.csc_matrix, stumps: Stumps, owner: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Floats:
    """Return the mean vote of each bag's instances, shape (bags, classes)."""
    feature, where_present, where_absent = stumps
    out = np.zeros((len(sizes), len(feature)))
    for c, d in enumerate(feature):
        inside = slice(columns.indptr[d], columns.indptr[d + 1])
        held = columns.indices[inside][columns.data[inside] > 0.0]
        share = np.bincount(owner[held], minlength=len(sizes)) / sizes[:, 0]
        out[:, c] = share * where_present[c] + (1.0 - share) * where_absent[c]
    return out


def _best_step(weights: Floats, loss: Floats) -> float:
    """Minimise sum W exp(loss c) over 0 <= c <= MAX_STEP, which is convex."""
    if not (loss > 0.0).any():
        return MAX_STEP
    if (weights * loss).sum() >= 0.0:
        return 0.0
    found = minimize_scalar(
        lambda c: float((weights * np.exp(loss * c)).sum()),
        bounds=(0.0, MAX_STEP),
        method="bounded",
    )
    return float(found.x)


def _one_against_rest(labels: Flags, rows: int, decide: Callable[[Flags], Floats]) -> Floats:
    """Fill a column a class with `decide`; a class without two sides has no decision to learn."""
    out = np.full((rows, labels.shape[1]), np.nan)
    for c in range(labels.shape[1]):
        positive = labels[:, c]
        if positive.all():
            out[:, c] = 1.0
        elif positive.any():
            out[:, c] = decide(positive)
    return _lowest_where_missing(out)


def _spread(scores: Floats, known: NDArray[np.int64], classes: int) -> Floats:
    out = np.full((len(scores), classes), np.nan)
    out[:, known] = scores
    return _lowest_where_missing(out)


def _lowest_where_missing(scores: Floats) -> Floats:
    if not np.isnan(scores).any():
        return scores
    lowest = np.nanmin(scores) - 1.0 if not np.isnan(scores).all() else 0.0
    return np.where(np.isnan(scores), lowest, scores)
