"""Scores of LightGBM's trees: read from its text format once, and computed in blocks of rows.

All nodes of a tree are tested on a block of rows at a time, which takes vector instructions where
a descent takes branches. Leaves are numbered from left to right, a bit each; a node whose test
fails clears the bits of the leaves to its left, and the lowest bit that is left is the row's leaf
(QuickScorer: Lucchese et al., SIGIR 2015; in vectors of rows: SIGIR 2016). The tests are the bits
of LightGBM's own, and trees are added in its order, so the scores are the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Flags, Floats, Offsets

_kernel = njit(cache=True, nogil=True, error_model="numpy")
BLOCK = 128
"""Rows at a time: their features stay in the second cache, the bits of a tree in the first."""
BITS = 64
"""Leaves of a tree at most whose nodes are all tested; larger ones are descended."""
ZERO = float(np.float32(1e-35))
"""LightGBM takes what is no larger for 0."""
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_SHIFT = 1, 2, 2
_MISSING_NEVER, _MISSING_ZERO, _MISSING_NAN = range(3)
# The upper six bits of a power of two times this number tell which one it is.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
_SHIFT, _ONE, _EVERY = np.uint64(58), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
_PLACES = ((_ONE << np.arange(BITS, dtype=np.uint64)) * _DE_BRUIJN) >> _SHIFT


class Ensemble(NamedTuple):
    """Trees, one after the other, in flat arrays.

    Attributes
    ----------
    width : int
        Features of a row.
    features : int64, shape (columns,)
        The feature of each column: only those that are split by.
    zeros : Flags, shape (columns,)
        Whether 0 counts as missing in the column.
    nodes : Offsets, shape (trees + 1,)
        Tree t has the nodes ``nodes[t]:nodes[t + 1]``, its root first; none if it is one leaf.
    columns : int64, shape (nodes,)
        What the node looks at.
    thresholds : Floats, shape (nodes,)
        A row goes to the left if its value is at most this.
    missing_right : Flags, shape (nodes,)
        Whether a row goes to the right where its value is NaN.
    lefts, rights : int64, shape (nodes,)
        Children by their number in the tree, larger than the node's; ``~leaf`` for a leaf.
    masks : uint64, shape (nodes,)
        The bits of the leaves that are left for a row that goes to the right; in trees of at most
        `BITS` leaves.
    leaves : Offsets, shape (trees + 1,)
        Tree t has the values ``leaves[t]:leaves[t + 1]``: `BITS` of them if it has no more leaves.
    values : Floats
        Of leaf after leaf, or of leaf after `_PLACES` of its bit where there are `BITS`.
    """

    width: int
    features: AnyArray
    zeros: Flags
    nodes: Offsets
    columns: AnyArray
    thresholds: Floats
    missing_right: Flags
    lefts: AnyArray
    rights: AnyArray
    masks: AnyArray
    leaves: Offsets
    values: Floats


@_kernel
def _columns_of(features, zeros, rows, block):  # type: ignore[no-untyped-def]
    """Set the columns of a block of rows, where what is missing is NaN."""
    for c in range(len(features)):
        feature, zero = features[c], np.nan if zeros[c] else 0.0
        for r in range(len(rows)):
            value = rows[r, feature]
            block[c, r] = zero if abs(value) <= ZERO else value


@_kernel
def _test_all(first, end, columns, thresholds, missing_right, masks, block, left):  # type: ignore[no-untyped-def]
    """Set the bits of the leaves that no test excludes."""
    left[:] = _EVERY
    for n in range(first, end):
        values, threshold, mask = block[columns[n]], thresholds[n], masks[n]
        # Comparing with NaN is false: one form for either side that it may go to.
        if missing_right[n]:
            for r in range(BLOCK):
                left[r] &= _EVERY if values[r] <= threshold else mask
        else:
            for r in range(BLOCK):
                left[r] &= mask if values[r] > threshold else _EVERY


@_kernel
def _descend(first, columns, thresholds, missing_right, lefts, rights, block, r):  # type: ignore[no-untyped-def]
    """Find the leaf of a row of the block."""
    n = 0
    while n >= 0:
        at = first + n
        value = block[columns[at], r]
        to_left = value <= thresholds[at] or (np.isnan(value) and not missing_right[at])
        n = lefts[at] if to_left else rights[at]
    return ~n


@_kernel
def _predict(  # type: ignore[no-untyped-def]
    features, zeros, nodes, columns, thresholds, missing_right, lefts, rights, masks, leaves,
    values, rows, scores,
):  # fmt: skip
    block = np.zeros((len(features), BLOCK))
    left = np.empty(BLOCK, np.uint64)
    for begin in range(0, len(rows), BLOCK):
        end = min(begin + BLOCK, len(rows))
        _columns_of(features, zeros, rows[begin:end], block)
        for t in range(len(nodes) - 1):
            found = values[leaves[t] : leaves[t + 1]]
            if len(found) == BITS:
                _test_all(
                    nodes[t], nodes[t + 1], columns, thresholds, missing_right, masks, block, left
                )
                for r in range(end - begin):
                    lowest = left[r] & (~left[r] + _ONE)
                    scores[begin + r] += found[(lowest * _DE_BRUIJN) >> _SHIFT]
            else:
                for r in range(end - begin):
                    scores[begin + r] += found[
                        _descend(
                            nodes[t], columns, thresholds, missing_right, lefts, rights, block, r
                        )
                    ]


def predict_trees(ensemble: Ensemble, features: Floats) -> Floats:
    """Compute F, the sum over trees of the value of the leaf that a row falls into.

    Parameters
    ----------
    ensemble : Ensemble
    features : Floats, shape (rows, ensemble.width)
        NaN where missing.

    Returns
    -------
    Floats, shape (rows,)
        What LightGBM predicts as the raw score, to the last bit.

    Raises
    ------
    ValueError
        Rows have another number of features.

    Notes
    -----
    O(rows * nodes), four nodes or so at once, in trees of at most `BITS` leaves; in larger ones
    O(rows * depth).
    """
    rows = np.ascontiguousarray(features, np.float64)
    if rows.ndim != 2 or rows.shape[1] != ensemble.width:
        raise ValueError(f"rows of {ensemble.width} features expected, got {rows.shape}")
    scores = np.zeros(len(rows))
    _predict(*ensemble[1:], rows, scores)
    return scores


def scores_of(text: str, features: Floats) -> Floats:
    """Compute F of each row, shape (rows,), by trees in LightGBM's text format."""
    return predict_trees(read_trees(text), features)


@lru_cache(maxsize=4)
def read_trees(text: str) -> Ensemble:
    """Read LightGBM's text format; once a model, not once a batch.

    Raises
    ------
    ValueError
        It is none; the trees are of another kind (categorical splits, linear leaves, averages,
        several classes); or a tree is damaged: every child must be there, once, after its parent.

    Notes
    -----
    O(characters).
    """
    body, ended, _ = text.partition("\nend of trees")
    head, *parts = body.split("\nTree=")
    about = _fields(head)
    if not head.startswith("tree\n") or not ended:
        raise ValueError("no trees in LightGBM's text format, or not all of them")
    if "\naverage_output" in head or _count(about, "num_tree_per_iteration") != 1:
        raise ValueError("trees must be of one class, and added up")
    width = _count(about, "max_feature_idx") + 1
    if [part.partition("\n")[0] for part in parts] != [
        str(number) for number in range(len(about.get("tree_sizes", "").split()))
    ]:
        raise ValueError("tree_sizes and the trees do not fit together")
    return _ensemble(_Raw.of([_fields(part) for part in parts]), width)


class _Raw(NamedTuple):
    """The lists of all trees as the text has them, and the nodes and leaves of each tree."""

    nodes: Offsets
    split_feature: AnyArray
    threshold: Floats
    decision_type: AnyArray
    left_child: AnyArray
    right_child: AnyArray
    leaf_value: Floats

    @classmethod
    def of(cls, trees: Sequence[Mapping[str, str]]) -> _Raw:
        sizes = np.array([_count(tree, "num_leaves") for tree in trees], np.int64)
        for t, tree in enumerate(trees):
            if sizes[t] < 1 or _count(tree, "num_cat") or tree.get("is_linear", "0") != "0":
                raise ValueError(f"tree {t} has no leaf, categorical splits or linear leaves")
        lists = {
            name: _list(trees, name, sizes - (name != "leaf_value"), kind)
            for name, kind in _LISTS.items()
        }
        return cls(np.concatenate([[0], np.cumsum(sizes - 1)]), **lists)


_LISTS: dict[str, Any] = {
    "split_feature": np.int64,
    "threshold": np.float64,
    "decision_type": np.int64,
    "left_child": np.int64,
    "right_child": np.int64,
    "leaf_value": np.float64,
}


def _fields(part: str) -> dict[str, str]:
    pairs = (line.partition("=") for line in part.split("\n"))
    return {name: value for name, _, value in pairs}


def _count(fields: Mapping[str, str], name: str) -> int:
    value = fields.get(name, "")
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise ValueError(f"{name} is {value[:20]!r}")
    return int(value)


def _list(trees: Sequence[Mapping[str, str]], name: str, sizes: AnyArray, kind: Any) -> AnyArray:
    given = [tree.get(name, "").split() for tree in trees]
    for t, (values, size) in enumerate(zip(given, sizes.tolist(), strict=True)):
        if len(values) != size:
            raise ValueError(f"tree {t} has {len(values)} of {size} values of {name}")
    try:
        found: AnyArray = np.array(list(chain.from_iterable(given)), kind)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{name} holds something else than numbers") from error
    # An infinite threshold is one that only a missing value does not pass.
    if np.isnan(found).any() or (name != "threshold" and np.isinf(found).any()):
        raise ValueError(f"{name} holds a number that is not finite")
    return found


def _ensemble(raw: _Raw, width: int) -> Ensemble:
    _check(raw, width)
    missing = raw.decision_type >> _MISSING_SHIFT
    zero = missing == _MISSING_ZERO
    used, columns = np.unique(2 * raw.split_feature + zero, return_inverse=True)
    # A value that is never missing is 0 where it is NaN.
    to_left = np.where(
        missing == _MISSING_NEVER, raw.threshold >= 0.0, raw.decision_type & _DEFAULT_LEFT
    )
    sizes = np.diff(raw.nodes) + 1
    masks = np.full(len(raw.threshold), _EVERY)
    bits = np.zeros(len(raw.leaf_value), np.int64)
    _number_leaves(raw.nodes, raw.left_child, raw.right_child, masks, bits)
    tree = np.repeat(np.arange(len(sizes)), sizes)
    own = np.arange(len(tree)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    small = sizes <= BITS
    leaves = np.concatenate([[0], np.cumsum(np.where(small, BITS, sizes))])
    places = np.where(small[tree], _PLACES[np.minimum(bits, BITS - 1)].astype(np.int64), own)
    values = np.zeros(leaves[-1])
    values[leaves[tree] + places] = raw.leaf_value
    return Ensemble(
        width, used >> 1, (used & 1).astype(np.bool_), raw.nodes, columns, raw.threshold,
        to_left == 0, raw.left_child, raw.right_child, masks, leaves, values,
    )  # fmt: skip


def _check(raw: _Raw, width: int) -> None:
    """Refuse trees that are none.

    Raises
    ------
    ValueError
    """
    features, types = raw.split_feature, raw.decision_type
    for problem, wrong in {
        "splits by a feature that is not there": (features < 0) | (features >= width),
        "has a split that is none by numbers": (types & _CATEGORICAL != 0)
        | (types < 0)
        | (types >> _MISSING_SHIFT > _MISSING_NAN),
    }.items():
        if wrong.any():
            tree = np.searchsorted(raw.nodes, np.argmax(wrong), side="right") - 1
            raise ValueError(f"tree {tree} {problem}")
    damaged = _damaged(raw.nodes, raw.left_child, raw.right_child)
    if damaged >= 0:
        raise ValueError(f"tree {damaged} has a child that is not there, or in two places")


@_kernel
def _damaged(nodes, lefts, rights):  # type: ignore[no-untyped-def]
    """Give the first tree in which not every child is there once, after its parent; else -1."""
    for t in range(len(nodes) - 1):
        first, count = nodes[t], nodes[t + 1] - nodes[t]
        seen = np.zeros(2 * count + 1, np.bool_)
        for n in range(count):
            for child in (lefts[first + n], rights[first + n]):
                if child < ~count or child >= count or 0 <= child <= n:
                    return t
                place = child if child >= 0 else count + ~child
                if seen[place]:
                    return t
                seen[place] = True
    return -1


@_kernel
def _number_leaves(nodes, lefts, rights, masks, bits):  # type: ignore[no-untyped-def]
    """Set bits of leaves, numbered from left to right, and what a node's test leaves of them."""
    for t in range(len(nodes) - 1):
        first, count = nodes[t], nodes[t + 1] - nodes[t]
        # Of each node: the leaves below it, and how many are to the left of these.
        below, before = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for n in range(count - 1, -1, -1):
            for child in (lefts[first + n], rights[first + n]):
                below[n] += below[child] if child >= 0 else 1
        for n in range(count):
            passed = before[n]
            for child in (lefts[first + n], rights[first + n]):
                if child >= 0:
                    before[child] = passed
                    passed += below[child]
                else:
                    bits[first + t + ~child] = passed
                    passed += 1
            if count < BITS:
                left = lefts[first + n]
                size = np.uint64(below[left] if left >= 0 else 1)
                masks[first + n] = ~(((_ONE << size) - _ONE) << np.uint64(before[n]))
