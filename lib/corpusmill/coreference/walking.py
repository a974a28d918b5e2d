"""The features of the arcs of a whole tree, by their hashes. Kernels and arrays, no Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.coreference.arcs import Arcs
from corpusmill.coreference.beam import nonlocal_hashes
from corpusmill.coreference.pairs import PAIR_ATOMS, compare
from corpusmill.coreference.templates import (
    ANAPHOR,
    ANTECEDENT,
    FIRST,
    GRAND,
    LAST,
    MENTION_SLOTS,
    SIBLING,
)
from corpusmill.coreference.versions import extend_cluster, new_versions, start_cluster
from corpusmill.types import AnyArray


class Walked(NamedTuple):
    """What stands around the arcs of a tree.

    Attributes
    ----------
    around : int64, shape (mentions, MENTION_SLOTS)
        The mention of the document in each slot of the arc to a mention, -1 for none.
    values : uint64, shape (mentions, PAIR_ATOMS)
    hashes : uint64, shape (mentions, non-local templates)
    """

    around: AnyArray
    values: AnyArray
    hashes: AnyArray


class Features(NamedTuple):
    """The features of each arc of a tree.

    Attributes
    ----------
    mentions : int64, shape (features,)
        The anaphor.
    columns : int64, shape (features,)
        Of the template: those of arcs from the root, then of the anaphor, the antecedent, pairs,
        and non-local ones.
    hashes : uint64, shape (features,)
    """

    mentions: AnyArray
    columns: AnyArray
    hashes: AnyArray


@njit(cache=True, nogil=True)
def walk_tree(arcs: Arcs, begin: int, tree: AnyArray) -> Walked:
    """Go over a tree from left to right as `beam.beam_search` does.

    Parameters
    ----------
    arcs : Arcs
    begin : int
        The document's first mention in the batch.
    tree : int64, shape (mentions,)
        Antecedents, counted in the document; -1 for the root.
    """
    count = len(tree)
    versions, cluster = new_versions(count, 1), np.empty(count, np.int64)
    around = np.full((count, MENTION_SLOTS), -1)
    values = np.zeros((count, len(PAIR_ATOMS)), np.uint64)
    hashes = np.zeros((count, arcs.slots.shape[2]), np.uint64)
    child = np.full(count, -1)
    for mention in range(count):
        antecedent, kind = tree[mention], arcs.types[begin + mention]
        around[mention, ANAPHOR] = mention
        if antecedent < 0:
            cluster[mention] = start_cluster(versions, mention, kind)
            continue
        version, above = cluster[antecedent], begin + antecedent
        compare(arcs.attributes, begin + mention, above, above + 1, values[mention : mention + 1])
        nonlocal_hashes(
            arcs, begin, antecedent, mention, versions, version,
            tree[antecedent], child[antecedent], values, mention, hashes[mention],
        )  # fmt: skip
        around[mention, ANTECEDENT] = antecedent
        around[mention, GRAND], around[mention, SIBLING] = tree[antecedent], child[antecedent]
        around[mention, FIRST] = versions.firsts[version]
        around[mention, LAST] = versions.lasts[version]
        extend_cluster(versions, version, mention, kind)
        cluster[mention], child[antecedent] = version, mention
    return Walked(around, values, hashes)


def arc_features(arcs: Arcs, begin: int, tree: AnyArray, walked: Walked, far: bool) -> Features:
    """Give the features of all arcs of a tree.

    Parameters
    ----------
    arcs : Arcs
    begin, tree
        As in `walk_tree`.
    walked : Walked
    far : bool
        Whether non-local features are among them.

    Notes
    -----
    O(mentions times templates) time and memory.
    """
    new, old = np.flatnonzero(tree < 0), np.flatnonzero(tree >= 0)
    above, below = begin + tree[old], begin + old
    pair = arcs.left[above] + arcs.right[below]
    template = np.repeat(np.arange(pair.shape[1]), np.diff(arcs.pair_offsets))
    products = walked.values[old][:, arcs.pair_atoms] * arcs.pair_salts
    np.add.at(pair.T, template, products.T)
    parts = [arcs.anaphor[below], arcs.antecedent[above], pair]
    near = np.hstack([*parts, walked.hashes[old]] if far else parts)
    root = arcs.root[begin + new]
    width = root.shape[1]
    return Features(
        np.concatenate([np.repeat(new, width), np.repeat(old, near.shape[1])]),
        np.concatenate(
            [
                np.tile(np.arange(width), len(new)),
                np.tile(np.arange(near.shape[1]) + width, len(old)),
            ]
        ),
        np.concatenate([root.ravel(), near.ravel()]),
    )
