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


def kept_mentions(clusters: AnyArray) -> Flags:
    """Tell which mentions are in a cluster with others; clusters are from 0."""
    return np.asarray(np.bincount(clusters, minlength=1)[clusters] > 1)
