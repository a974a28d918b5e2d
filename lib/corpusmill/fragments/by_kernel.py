"""What depends on the kernel of the settings: how fragments are mined, counted and valued."""

from __future__ import annotations

from scipy.sparse import csr_array

from corpusmill.fragments import dictionary, mining, partial_fragments, partial_mining
from corpusmill.fragments.dictionary import Dictionary
from corpusmill.fragments.examples import self_norms
from corpusmill.fragments.forests import Interned, Subtrees
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.trie import Fragments
from corpusmill.types import Floats


def mine_weighted(subtrees: Subtrees, weights: Floats, settings: LearnerSettings) -> Fragments:
    """Mine the L fragments that weigh most in a machine, from the weights of its subtrees."""
    most = settings.mining_mb << 20
    if settings.kernel == "ptk":
        return partial_mining.mine_partial(
            subtrees, weights, settings.decay, settings.mu, settings.limit, most
        ).fragments
    return mining.mine(
        subtrees, weights, settings.decay, settings.limit, settings.maxexp, settings.relevance, most
    ).fragments


def mine_frequent(
    subtrees: Subtrees, occurrences: Floats, limit: int, settings: LearnerSettings
) -> Fragments:
    """Mine the fragments that occur most often, from how often subtrees occur.

    Of the PTK those whose values sum up to most: a node of many children holds so many
    occurrences of fragments with some of them that the mere number tells little.
    """
    often = settings.model_copy(update={"limit": limit, "relevance": "depth"})
    if settings.kernel == "sst":
        often = often.model_copy(update={"decay": 1.0})
    return mine_weighted(subtrees, occurrences, often)


def occurrence_values(fragments: Fragments, settings: LearnerSettings) -> Floats:
    """Give the value of one occurrence of each fragment, of one without gaps for the PTK."""
    if settings.kernel == "ptk":
        return partial_fragments.partial_values(fragments, settings.decay, settings.mu)
    return dictionary.fragment_values(fragments, settings.decay, settings.relevance)


def sum_occurrences(
    known: Dictionary, interned: Interned, size: int, settings: LearnerSettings
) -> csr_array:
    """Count the fragments of a dictionary in trees, shape (trees, size); less for gaps (PTK)."""
    if settings.kernel == "ptk":
        return partial_fragments.sum_partial_fragments(known, interned, size, settings.decay)
    return dictionary.count_fragments(known, interned, size)


def norms_of(interned: Interned, settings: LearnerSettings) -> Floats:
    """Give sqrt(K(T, T)) of each tree."""
    return self_norms(interned, settings.decay, settings.kernel, settings.mu)
