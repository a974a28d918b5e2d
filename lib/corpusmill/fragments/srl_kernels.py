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


def find_pairs(forest: Forest, layout: Layout, annotation: Annotation, words: AnyArray) -> Pairs:
    """Pair every predicate with its candidates.

    A predicate's node is its part of speech. Candidates are all nodes that neither cover it nor are
    below it, but for words: tree by tree, predicate by predicate, in preorder. A candidate has the
    role of the first argument that it covers exactly; a part of speech only where its parent
    covers more.

    Parameters
    ----------
    forest : Forest
    layout : Layout
        Of `forest`.
    annotation : Annotation
    words : bool, shape (trees,)
        Whether the leaves are words, below parts of speech; otherwise they are parts of speech.

    Notes
    -----
    O(predicates of a tree times its nodes, and for each of these the predicate's arguments).
    """
    return Pairs(*_find_pairs(forest.offsets, forest.arities, layout, annotation, words))


@_kernel
def _find_pairs(offsets, arities, layout, annotation, words):  # type: ignore[no-untyped-def]
    room = 0
    for t in range(len(offsets) - 1):
        predicates = annotation.offsets[t + 1] - annotation.offsets[t]
        room += predicates * (offsets[t + 1] - offsets[t])
    predicates, predicate_nodes = np.empty(room, np.int64), np.empty(room, np.int64)
    candidates, roles = np.empty(room, np.int64), np.empty(room, np.int32)
    count = 0
    for t in range(len(offsets) - 1):
        begin, end = offsets[t], offsets[t + 1]
        for predicate in range(annotation.offsets[t], annotation.offsets[t + 1]):
            node = _part_of_speech(
                arities, layout, begin, end, annotation.tokens[predicate], words[t]
            )
            for candidate in range(begin, end):
                covers = candidate <= node < layout.ends[candidate]
                below = node <= candidate < layout.ends[node]
                if covers or below or (words[t] and arities[candidate] == 0):
                    continue
                predicates[count], predicate_nodes[count] = predicate, node
                candidates[count] = candidate
                roles[count] = _role(arities, layout, annotation, predicate, candidate, words[t])
                count += 1
    return (
        predicates[:count].copy(), predicate_nodes[:count].copy(), candidates[:count].copy(),
        roles[:count].copy(),
    )  # fmt: skip


@_kernel
def _part_of_speech(arities, layout, begin, end, token, words):  # type: ignore[no-untyped-def]
    """Find the node of a token's part of speech; the last node for a token that is not there."""
    for node in range(begin, end):
        if arities[node] == 0 and layout.firsts[node] == token:
            return layout.parents[node] if words and layout.parents[node] >= 0 else node
    return end - 1


@_kernel
def _role(arities, layout, annotation, predicate, node, words):  # type: ignore[no-untyped-def]
    first, last, parent = layout.firsts[node], layout.lasts[node], layout.parents[node]
    tag = arities[node] == 0 or (words and arities[node] == 1 and arities[node + 1] == 0)
    if tag and parent >= 0 and layout.firsts[parent] == first and layout.lasts[parent] == last:
        return NO_ARGUMENT
    for k in range(annotation.spans[predicate], annotation.spans[predicate + 1]):
        if annotation.firsts[k] == first and annotation.lasts[k] == last:
            return annotation.roles[k]
    return NO_ARGUMENT


def span_pairs(forest: Forest, layout: Layout, pairs: Pairs, labels: int) -> Forest:
    """Extract the structure of every pair.

    It has the lowest common ancestor of the two nodes, the nodes between, the two nodes and all
    that is below them. A path's node keeps no child but the next on the path; the ancestor has
    two children.

    Parameters
    ----------
    forest : Forest
    layout : Layout
        Of `forest`.
    pairs : Pairs
        No candidate covers its predicate or is below it.
    labels : int
        Number of labels L: the predicate's node has its label plus L, the candidate's plus 2 L.

    Returns
    -------
    Forest
        A tree a pair.

    Notes
    -----
    O(nodes of the result).
    """
    return Forest(
        *_span_pairs(
            forest.labels, forest.arities, layout, pairs.predicate_nodes, pairs.candidates, labels
        )
    )


@_kernel
def _climb(layout, node, other):  # type: ignore[no-untyped-def]
    """Return the lowest ancestor that covers the other node too, and how many are between."""
    between = 0
    node = layout.parents[node]
    while not node <= other < layout.ends[node]:
        between += 1
        node = layout.parents[node]
    return node, between


@_kernel
def _span_pairs(labels, arities, layout, predicates, candidates, many):  # type: ignore[no-untyped-def]
    offsets = np.zeros(len(predicates) + 1, np.int64)
    for k in range(len(predicates)):
        predicate, candidate = predicates[k], candidates[k]
        _, above = _climb(layout, predicate, candidate)
        _, beside = _climb(layout, candidate, predicate)
        below = layout.ends[predicate] - predicate + layout.ends[candidate] - candidate
        offsets[k + 1] = offsets[k] + 1 + above + beside + below
    out_labels, out_arities = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32)
    for k in range(len(predicates)):
        left, right = predicates[k], candidates[k]
        left_mark, right_mark = many, 2 * many
        if right < left:
            left, right = right, left
            left_mark, right_mark = right_mark, left_mark
        top, _ = _climb(layout, left, right)
        at = offsets[k]
        out_labels[at], out_arities[at] = labels[top], 2
        at = _write_branch(
            labels, arities, layout, top, left, left_mark, at + 1, out_labels, out_arities
        )
        _write_branch(labels, arities, layout, top, right, right_mark, at, out_labels, out_arities)
    return offsets, out_labels, out_arities


@_kernel
def _write_branch(  # type: ignore[no-untyped-def]
    labels, arities, layout, top, node, mark, at, out_labels, out_arities
):
    """Write the path below ``top`` to a node, and its subtree; return where the next begins."""
    _, between = _climb(layout, node, top)
    above = layout.parents[node]
    for step in range(between):
        place = at + between - 1 - step
        out_labels[place], out_arities[place] = labels[above], 1
        above = layout.parents[above]
    at += between
    size = layout.ends[node] - node
    out_labels[at : at + size] = labels[node : node + size]
    out_arities[at : at + size] = arities[node : node + size]
    out_labels[at] += mark
    return at + size
