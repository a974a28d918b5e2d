"""Clusters of partial trees, by version. Kernels on flat arrays.

A cluster is never changed where several trees hold it: attaching a mention makes a new version.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.coreference.hashing import FACTOR
from corpusmill.types import AnyArray


class Versions(NamedTuple):
    """Clusters that partial trees have, by version.

    Attributes
    ----------
    used : int64, shape (1,)
        How many there are.
    sizes, firsts, lasts : int32, shape (versions,)
        Mentions in it, and the first and the last of them.
    shapes : uint64, shape (versions,)
        A hash of the types of its mentions from left to right.
    """

    used: AnyArray
    sizes: AnyArray
    firsts: AnyArray
    lasts: AnyArray
    shapes: AnyArray


@njit(cache=True, nogil=True)
def new_versions(mentions: int, items: int) -> Versions:
    """Give room for the versions of so many items in all agendas."""
    # One each for the mentions alone, and one an item and mention.
    room = mentions * (items + 1)
    return Versions(
        np.zeros(1, np.int64),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.uint64),
    )


@njit(cache=True, nogil=True)
def start_cluster(versions: Versions, mention: int, kind: int) -> int:
    """Make the cluster of one mention; give its version."""
    number = versions.used[0]
    versions.used[0] += 1
    versions.sizes[number] = 1
    versions.firsts[number] = versions.lasts[number] = mention
    versions.shapes[number] = np.uint64(kind)
    return int(number)


@njit(cache=True, nogil=True)
def extend_cluster(versions: Versions, number: int, mention: int, kind: int) -> None:
    """Add a mention to a version in its place, for who holds a single tree."""
    versions.sizes[number] += 1
    versions.lasts[number] = mention
    versions.shapes[number] = versions.shapes[number] * np.uint64(FACTOR) + np.uint64(kind)


@njit(cache=True, nogil=True)
def grow_cluster(versions: Versions, cluster: int, mention: int, kind: int) -> int:
    """Make a cluster with one mention more; give its version."""
    number = versions.used[0]
    versions.used[0] += 1
    versions.sizes[number] = versions.sizes[cluster]
    versions.firsts[number] = versions.firsts[cluster]
    versions.shapes[number] = versions.shapes[cluster]
    extend_cluster(versions, number, mention, kind)
    return int(number)
