"""Heads of constituents, and quotations. Kernels on flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.coreference.languages import CONJUNCTION, HeadRules
from corpusmill.types import AnyArray, Flags, Offsets


@njit(cache=True, nogil=True)
def find_heads(
    starts: AnyArray,
    ends: AnyArray,
    parents: AnyArray,
    labels: AnyArray,
    tags: AnyArray,
    classes: AnyArray,
    rules: HeadRules,
) -> AnyArray:
    """Find the head token of each constituent from below.

    Parameters
    ----------
    starts, ends, parents : int64, shape (constituents,)
        In preorder; -1 is no parent.
    labels : int32, shape (constituents,)
        Codes of labels.
    tags : int32, shape (tokens,)
        Codes of tags.
    classes : int8, shape (tokens,)
    rules : HeadRules

    Returns
    -------
    int64, shape (constituents,)

    Notes
    -----
    O(constituents and tokens below each, times steps of its rule).
    """
    count = len(starts)
    heads = np.empty(count, np.int64)
    # In preorder the children of a constituent follow it; the last child is chained first.
    first_child = np.full(count, -1, np.int64)
    next_sibling = np.full(count, -1, np.int64)
    items = np.empty(1, np.int64)
    tokens = np.empty(1, np.int64)
    names = len(rules.noun_phrases)
    for node in range(count - 1, -1, -1):
        size = ends[node] - starts[node]
        if size > len(items):
            items = np.empty(2 * size, np.int64)
            tokens = np.empty(2 * size, np.int64)
        total = 0
        at, child = starts[node], first_child[node]
        while at < ends[node]:
            if child >= 0 and starts[child] <= at:
                if ends[child] > at:
                    items[total], tokens[total] = labels[child], heads[child]
                    total += 1
                    at = ends[child]
                child = next_sibling[child]
            else:
                items[total], tokens[total] = names + tags[at], at
                total += 1
                at += 1
        heads[node] = _head(node, labels, items[:total], tokens[:total], classes, rules)
        if parents[node] >= 0:
            next_sibling[node] = first_child[parents[node]]
            first_child[parents[node]] = node
    return heads


@njit(cache=True, nogil=True)
def _head(
    node: int,
    labels: AnyArray,
    items: AnyArray,
    tokens: AnyArray,
    classes: AnyArray,
    rules: HeadRules,
) -> int:
    """Choose among the children: `items` are their codes, `tokens` their heads."""
    total = len(items)
    label = labels[node]
    names = len(rules.noun_phrases)
    if rules.noun_phrases[label]:
        for k in range(1, total - 1):
            if items[k] >= names and classes[tokens[k]] == CONJUNCTION:
                before, after = items[k - 1], items[k + 1]
                if before < names and after < names:
                    return int(tokens[k])
    for step in range(rules.step_offsets[label], rules.step_offsets[label + 1]):
        for k in range(total):
            child = k if rules.directions[step] == 0 else total - 1 - k
            if rules.wanted[step, items[child]]:
                return int(tokens[child])
    return int(tokens[0] if rules.default == 0 else tokens[total - 1])


@njit(cache=True, nogil=True)
def quoted_tokens(offsets: Offsets, marks: AnyArray) -> Flags:
    """Tell for each token whether it stands in a quotation.

    Parameters
    ----------
    offsets : Offsets, shape (documents + 1,)
    marks : int8, shape (tokens,)
        1 opens, -1 closes, 0 does either, 2 is no quotation mark.

    Returns
    -------
    Flags, shape (tokens,)
        The marks themselves are not in it.
    """
    quoted = np.zeros(len(marks), np.bool_)
    for document in range(len(offsets) - 1):
        inside = False
        for token in range(offsets[document], offsets[document + 1]):
            if marks[token] == 2:
                quoted[token] = inside
            else:
                inside = marks[token] == 1 or (marks[token] == 0 and not inside)
    return quoted
