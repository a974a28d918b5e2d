"""Corpora of documents for the comparison of classifiers, on arrays. No Spark.

A document is a pattern, its title and its paragraphs are instances.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from corpusmill.alignment.baselines import matrix, owners
from corpusmill.alignment.comparison import restrict, take
from corpusmill.evaluation.ranking import ClassIds
from corpusmill.settings import Settings
from corpusmill.types import Bags, Flags, Patterns


class PaperCorpusSettings(Settings):
    """How the paper's corpus is drawn from documents with all their tokens."""

    features: int = Field(500, ge=1, description="words, those in the most documents")
    min_tokens: int = Field(20, ge=0, description="a document's occurrences of those words")
    several_labels: float = Field(
        0.384, ge=0.0, le=1.0, description="the share of documents with several labels"
    )


def word_features(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of the features that are words: no stop word, no digit in them."""
    return np.array(
        [
            number
            for number, name in enumerate(names)
            if name not in ENGLISH_STOP_WORDS and not any(map(str.isdigit, name))
        ],
        dtype=np.int64,
    )


def content_features(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the numbers of the features that are no stop words."""
    kept = [number for number, name in enumerate(names) if name not in ENGLISH_STOP_WORDS]
    return np.array(kept, dtype=np.int64)


def words_and_pairs(tokens: pa.ListArray, titles: Flags) -> pa.ListArray:
    """Turn the tokens of instances into features: words, and pairs of neighbours.

    Parameters
    ----------
    tokens : pa.ListArray of string
        A list an instance, from `corpusmill.corpora.text.tokenize`, without nulls.
    titles : Flags, shape (instances,)
        Which are titles: their words are features apart, ``title:wheat`` beside ``wheat``.

    Returns
    -------
    pa.ListArray of string
        Without stop words: each instance's words, then its pairs ``wheat_exports``. A pair may
        bridge a stop word and never leaves its instance.

    Notes
    -----
    O(tokens).
    """
    sizes = pc.list_value_length(tokens).to_numpy(zero_copy_only=False)
    flat = tokens.flatten()
    stop = pc.is_in(flat, value_set=pa.array(sorted(ENGLISH_STOP_WORDS), pa.string()))
    kept = ~stop.to_numpy(zero_copy_only=False).astype(bool)
    row = np.repeat(np.arange(len(tokens)), sizes)[kept]
    words = flat.filter(pa.array(kept))
    named = pc.binary_join_element_wise("title:", words, "")
    words = pc.if_else(pa.array(titles[row], pa.bool_()), named, words)
    beside = row[1:] == row[:-1]
    first, second = (part.filter(pa.array(beside)) for part in (words[:-1], words[1:]))
    features = pa.concat_arrays([words, pc.binary_join_element_wise(first, second, "_")])
    rows = np.concatenate([row, row[1:][beside]])
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate([[0], np.bincount(rows, minlength=len(tokens)).cumsum()])
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), features.take(pa.array(order))
    )


def paper_corpus(
    patterns: Patterns, names: Sequence[str], settings: PaperCorpusSettings, seed: int
) -> Patterns:
    """Draw the paper's corpus from documents with all their tokens.

    The paper reports 1,879 documents, 38.4% with several labels, which no bound on the length
    of the documents yields: of those with a label in the ten largest classes a tenth has
    several. So as Zhou and Zhang did with theirs, documents with one label are left out at
    random. In order:

    1. features: the words (`word_features`) in the most documents,
    2. documents with at least ``min_tokens`` occurrences of them, of any label set but the empty,
    3. all documents with several labels, and so many others, drawn, that
       ``several_labels`` is their share.

    Parameters
    ----------
    patterns : Patterns
        Documents, all labelled; an instance is a paragraph or the title. Its weight is kept,
        but its tokens count once.
    names : sequence of str
        The features' names.
    settings : PaperCorpusSettings
    seed : int

    Returns
    -------
    Patterns
        With ``features`` features. Empty instances are left out.
    """
    words = word_features(names)
    once = patterns._replace(weights=np.ones(len(patterns.weights)))
    documents = matrix(whole_documents(once, len(names)).bags, len(names))
    having = np.bincount(documents.indices[documents.data > 0], minlength=len(names))[words]
    frequent = np.sort(words[np.argsort(-having, kind="stable")[: settings.features]])
    tokens = np.asarray(documents[:, frequent].sum(axis=1)).ravel()
    labels = patterns.labels.sum(axis=1)
    long_enough = tokens >= settings.min_tokens
    several = np.flatnonzero(long_enough & (labels > 1))
    single = np.flatnonzero(long_enough & (labels == 1))
    share = settings.several_labels
    wanted = round(len(several) * (1.0 - share) / share) if share > 0.0 else len(single)
    drawn = np.random.default_rng(seed).permutation(single)[:wanted]
    chosen, _ = take(patterns, np.sort(np.concatenate([several, drawn])))
    return without_empty(restrict(chosen, len(names), frequent))


def without_empty(patterns: Patterns) -> Patterns:
    """Leave out instances without features; a pattern may thereby lose all of them."""
    kept = np.diff(patterns.bags.offsets) > 0
    ends = np.concatenate([[0], np.cumsum(kept)])
    bags = patterns.bags._replace(
        offsets=np.concatenate([[0], patterns.bags.offsets[1:][kept]]).astype(np.int64)
    )
    return patterns._replace(
        offsets=ends[patterns.offsets].astype(np.int64), bags=bags, weights=patterns.weights[kept]
    )


def whole_documents(patterns: Patterns, features: int) -> Patterns:
    """Merge the instances of each pattern into one, its weighted sum."""
    count = len(patterns.offsets) - 1
    shape = (count, len(patterns.weights))
    summing = sparse.csr_matrix(
        (patterns.weights, np.arange(len(patterns.weights)), patterns.offsets), shape=shape
    )
    X = (summing @ matrix(patterns.bags, features)).tocsr()
    X.sort_indices()
    bags = Bags(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data)
    return patterns._replace(
        offsets=np.arange(count + 1, dtype=np.int64), bags=bags, weights=np.ones(count)
    )


def join_documents(patterns: Patterns, most: int, seed: int) -> tuple[Patterns, ClassIds]:
    """Put documents with one label together, so that the class of every paragraph is known.

    Parameters
    ----------
    patterns : Patterns
        All labelled; those with another number of labels than one are left out.
    most : int
        Documents in a joined one, drawn evenly from 2 to `most`; the last may have one.
    seed : int

    Returns
    -------
    Patterns
        Each with the union of its documents' labels.
    gold : ClassIds, shape (instances,)
        The label of the document that the instance came from.
    """
    rng = np.random.default_rng(seed)
    single, _ = take(patterns, rng.permutation(np.flatnonzero(patterns.labels.sum(axis=1) == 1)))
    count = len(single.offsets) - 1
    ends = rng.integers(2, most + 1, size=count).cumsum()
    cuts = np.concatenate([[0], ends[ends < count], [count]]) if count else np.zeros(1, np.int64)
    labels = np.logical_or.reduceat(single.labels, cuts[:-1], axis=0) if count else single.labels
    joined = Patterns(
        single.offsets[cuts], single.bags, single.weights, labels, np.ones(len(labels), dtype=bool)
    )
    return joined, single.labels.argmax(axis=1)[owners(single.offsets)]
