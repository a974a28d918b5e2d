"""Structures for semantic role labelling, on flat arrays.

A *pair* is a predicate's node p and a candidate node a of the same parse tree. Its structure, the
AST_m of Moschitti, Pighin and Basili (2008), is the least tree that covers all and only the words
of p and a: the paths from their lowest common ancestor to both, and what is below them. Other
children of the path's nodes cover other words and are left out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Forest, Offsets

NO_ARGUMENT = -1
"""The role of a node that covers no argument."""

_kernel = njit(cache=True, nogil=True, error_model="numpy")


class Layout(NamedTuple):
    """Where the nodes of a forest are, and the tokens below them.

    Attributes
    ----------
    parents : Offsets, shape (nodes,)
        A node's number in the forest; -1 for a root.
    ends : Offsets, shape (nodes,)
        The subtree of node n has the nodes ``n:ends[n]``.
    firsts, lasts : int32, shape (nodes,)
        It covers the leaves ``firsts[n]:lasts[n]`` of its tree.
    """

    parents: Offsets
    ends: Offsets
    firsts: AnyArray
    lasts: AnyArray


class Annotation(NamedTuple):
    """Predicates of the trees of a forest and the spans of their arguments.

    Attributes
    ----------
    offsets : Offsets, shape (trees + 1,)
        Tree t has the predicates ``offsets[t]:offsets[t + 1]``.
    tokens : int32, shape (predicates,)
        The predicate's leaf, from 0 in its tree.
    spans : Offsets, shape (predicates + 1,)
        Predicate p has the arguments ``spans[p]:spans[p + 1]``.
    firsts, lasts : int32, shape (arguments,)
        Argument k covers the leaves ``firsts[k]:lasts[k]``.
    roles : int32, shape (arguments,)
        At least 0; `NO_ARGUMENT` for a span that does not count.
    """

    offsets: Offsets
    tokens: AnyArray
    spans: Offsets
    firsts: AnyArray
    lasts: AnyArray
    roles: AnyArray


class Pairs(NamedTuple):
    """Predicates and their candidates.

    Attributes
    ----------
    predicates : Offsets, shape (pairs,)
        The predicate's number in the annotation.
    predicate_nodes, candidates : Offsets, shape (pairs,)
        The two nodes' numbers in the forest.
    roles : int32, shape (pairs,)
        The role of the argument that the candidate covers exactly, or `NO_ARGUMENT`.
    """

    predicates: Offsets
    predicate_nodes: Offsets
    candidates: Offsets
    roles: AnyArray


def lay_out(forest: Forest) -> Layout:
    """Find parents, ends of subtrees and covered leaves; O(nodes), without recursion."""
    return Layout(*_lay_out(forest.offsets, forest.arities))


@_kernel
def _lay_out(offsets, arities):  # type: ignore[no-untyped-def]
    nodes = len(arities)
    parents, ends = np.full(nodes, -1, np.int64), np.empty(nodes, np.int64)
    firsts, lasts = np.empty(nodes, np.int32), np.empty(nodes, np.int32)
    waiting = arities.copy()
    for t in range(len(offsets) - 1):
        leaf, parent = 0, -1
        for node in range(offsets[t], offsets[t + 1]):
            while parent >= 0 and waiting[parent] == 0:
                ends[parent], lasts[parent] = node, leaf
                parent = parents[parent]
            parents[node] = parent
            if parent >= 0:
                waiting[parent] -= 1
            firsts[node] = leaf
            leaf += arities[node] == 0
            parent = node
        while parent >= 0:
            ends[parent], lasts[parent] = offsets[t + 1], leaf
            parent = parents[parent]
    return parents, ends, firsts, lasts
