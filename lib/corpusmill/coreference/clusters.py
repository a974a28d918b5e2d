"""From trees to clusters. Kernels on flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Flags


@njit(cache=True, nogil=True)
def clusters_of_tree(antecedents: AnyArray) -> AnyArray:
    """Name each mention's cluster by the first mention in it.

    Parameters
    ----------
    antecedents : int64, shape (mentions,)
        The antecedent of each, before it, or -1 for none.

    Returns
    -------
    int64, shape (mentions,)
    """
    clusters = np.arange(len(antecedents))
    for mention in range(len(antecedents)):
        if antecedents[mention] >= 0:
            clusters[mention] = clusters[antecedents[mention]]
    return clusters


def join_given(antecedents: AnyArray, given: AnyArray) -> AnyArray:
    """Attach mentions of a given cluster that are roots to the one before them in that cluster.

    A search does so itself, but only as far as its window reaches.

    Parameters
    ----------
    antecedents : int64, shape (mentions,)
        -1 for the root.
    given : int64, shape (mentions,)
        Clusters that are known, -1 for none.

    Returns
    -------
    int64, shape (mentions,)
    """
    order = np.argsort(given, kind="stable")
    before = np.full(len(given), -1)
    same = given[order[1:]] == given[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    return np.where((antecedents < 0) & (given >= 0), before, antecedents)


def kept_mentions(clusters: AnyArray) -> Flags:
    """Tell which mentions are in a cluster with others; clusters are from 0."""
    return np.asarray(np.bincount(clusters, minlength=1)[clusters] > 1)
