"""Hashes of sequences of words or labels. Kernels on flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.types import AnyArray

FACTOR = 0x9E3779B97F4A7C15
"""What the hash of a sequence is multiplied by before the next item's is added."""


@njit(cache=True, nogil=True)
def span_hashes(starts: AnyArray, ends: AnyArray, words: AnyArray) -> AnyArray:
    """Hash the words of spans.

    Parameters
    ----------
    starts, ends : int64, shape (spans,)
    words : uint64, shape (tokens,)
        Hashes.

    Returns
    -------
    uint64, shape (spans,)
        Of words w_1 .. w_n the sum of FACTOR^(n - k) w_k modulo 2^64.
    """
    result = np.zeros(len(starts), np.uint64)
    for span in range(len(starts)):
        for token in range(starts[span], ends[span]):
            result[span] = result[span] * np.uint64(FACTOR) + words[token]
    return result
