"""Metrics of entity linking: sums of counts that partitions can add, and what follows from them.

IE-driven (Carmel et al. 2014, ERD'14; Yang & Chang 2015, 4.1): a predicted mention is right if the
text has a gold mention of the same entity that it overlaps, or, exactly, has the same boundaries.
Precision is the share of predicted mentions that are right, recall the share of gold mentions that
are found, both pooled over all texts (micro). IR-driven (Fang & Chang 2014; Yang & Chang 2015): for
a query entity, which texts mention it; pooled over the query entities.

Where the papers are silent:

- A gold mention justifies one prediction and a prediction finds one gold mention: of all such
  pairings that with the most pairs counts. Two predictions over one gold mention are one right and
  one wrong.
- NIL is never right or wrong: gold NIL is left out, and what is predicted there is wrong, like any
  prediction without a gold mention. A gold entity that the knowledge base does not have counts as
  missed if the caller gives it a number, and is left out if as NIL.
- Where nothing was predicted, precision is 0, and recall is 0 where there is no gold; so is F1.
- In a division by type or length, precision divides the predicted mentions and recall the gold
  ones, each by its own type or length; overlapping mentions may differ in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from corpusmill.types import AnyArray, Flags, Floats, Offsets

NIL = -1
"""The number of no entity."""


class Links(NamedTuple):
    """Mentions of entities in texts.

    Attributes
    ----------
    offsets : Offsets, shape (texts + 1,)
        Text n has the mentions ``offsets[n]:offsets[n + 1]``, in any order.
    starts, ends : int, shape (mentions,)
        Places in the text, ends exclusive.
    entities : int, shape (mentions,)
        Numbers of entities, `NIL` for none.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    entities: AnyArray


class LinkCounts(NamedTuple):
    """Counts by group (type, length, query entity, or just one); those of parts add up.

    Attributes
    ----------
    right, predicted : Floats, shape (groups,)
        Predictions of the group that are right; all of them.
    found, gold : Floats, shape (groups,)
        Gold mentions of the group that were found; all of them. The sum of ``found`` is that of
        ``right``.
    """

    right: Floats
    predicted: Floats
    found: Floats
    gold: Floats


def match_links(gold: Links, predicted: Links, exact: bool = False) -> AnyArray:
    """Pair predicted with gold mentions of the same text and entity, each at most once.

    Parameters
    ----------
    gold, predicted
        Mentions of the same texts; those of one side may overlap one another.
    exact
        Only the same boundaries are a pair; otherwise whatever overlaps.

    Returns
    -------
    int64, shape (predicted mentions,)
        The gold mention of each, -1 for none. No other pairing has more pairs.

    Raises
    ------
    ValueError
        Not as many texts on both sides.

    Notes
    -----
    The mentions of a text and entity are taken by their ends; each is paired with the first free
    one of the other side that begins before its end. All that it could be paired with hold its last
    character, so that whatever comes later and overlaps the first of them overlaps the others too:
    the choice costs nothing. O(n log n) where the mentions of a side do not overlap; for m of one
    entity in one text that do, O(m^2) at worst.
    """
    _check(gold, predicted)
    texts = np.concatenate([_owners(gold.offsets), _owners(predicted.offsets)])
    starts, ends, entities = _both(gold, predicted)
    order = np.lexsort((starts, ends, entities, texts))
    order = order[entities[order] != NIL]
    gold_size = len(gold.entities)
    pairs = _pair(
        texts[order], entities[order], starts[order], ends[order], order < gold_size, exact
    )
    matched = np.full(len(predicted.entities), -1, np.int64)
    paired = (pairs >= 0) & (order >= gold_size)
    matched[order[paired] - gold_size] = order[pairs[paired]]
    return matched


def count_links(
    gold: Links,
    predicted: Links,
    exact: bool = False,
    gold_groups: AnyArray | None = None,
    predicted_groups: AnyArray | None = None,
    groups: int = 1,
) -> LinkCounts:
    """Count right and found mentions, IE-driven.

    Parameters
    ----------
    gold, predicted, exact
        As of `match_links`.
    gold_groups, predicted_groups : int, shape (mentions,)
        Group of each mention, below `groups`; all are of group 0 if not given.
    groups
        How many there are.

    Returns
    -------
    LinkCounts, shape (groups,)
    """
    matched = match_links(gold, predicted, exact)
    by_gold = np.zeros(len(gold.entities), np.int64) if gold_groups is None else gold_groups
    by_predicted = (
        np.zeros(len(matched), np.int64) if predicted_groups is None else predicted_groups
    )
    right = matched >= 0
    return LinkCounts(
        _sums(by_predicted[right], groups),
        _sums(by_predicted[predicted.entities != NIL], groups),
        _sums(by_gold[matched[right]], groups),
        _sums(by_gold[gold.entities != NIL], groups),
    )


def count_presence(
    gold_offsets: Offsets,
    gold_entities: AnyArray,
    predicted_offsets: Offsets,
    predicted_entities: AnyArray,
    queries: AnyArray,
) -> LinkCounts:
    """Count texts that mention each query entity, IR-driven.

    Parameters
    ----------
    gold_offsets, predicted_offsets : Offsets, shape (texts + 1,)
    gold_entities, predicted_entities : int
        Entities of text n at ``offsets[n]:offsets[n + 1]``, wherever they are in it; a second
        mention in one text makes no difference.
    queries : int, shape (queries,)
        The query entities, each once. Every text is judged for each of them.

    Returns
    -------
    LinkCounts, shape (queries,)
        ``right`` and ``found`` are both the texts that truly mention the entity and are said to.

    Raises
    ------
    ValueError
        The texts are not the same, or a query stands twice.
    """
    if len(gold_offsets) != len(predicted_offsets):
        raise ValueError("gold and predictions are of different texts")
    order = np.argsort(queries, kind="stable")
    ranked = queries[order]
    if (ranked[1:] == ranked[:-1]).any():
        raise ValueError("a query entity stands twice")
    size = max(len(queries), 1)
    gold = _presences(gold_offsets, gold_entities, ranked, order, size)
    predicted = _presences(predicted_offsets, predicted_entities, ranked, order, size)
    both = _sums(np.intersect1d(gold, predicted, assume_unique=True) % size, len(queries))
    return LinkCounts(
        both,
        _sums(predicted % size, len(queries)),
        both.copy(),
        _sums(gold % size, len(queries)),
    )


def covered(gold: Links, candidates: Links, exact: bool = False) -> Flags:
    """Tell which gold mentions a linker could find: those with a candidate of the same entity.

    Parameters
    ----------
    gold
        Gold mentions.
    candidates
        All mentions and entities that the linker chooses from, in the same texts.
    exact
        As of `match_links`.

    Returns
    -------
    Flags, shape (gold mentions,)
        False for NIL. Their share among those not NIL is the candidate recall, which no recall
        passes.

    Raises
    ------
    ValueError
        Not as many texts on both sides.

    Notes
    -----
    Of the candidates that begin before a mention's end, the one with the largest end decides.
    O(n log n).
    """
    _check(gold, candidates)
    size = len(gold.entities)
    owners = np.concatenate([_owners(gold.offsets), _owners(candidates.offsets)])
    starts, ends, entities = _both(gold, candidates)
    width = int(max(entities.max(initial=0), ends.max(initial=0))) + 2
    # The same number for the same text and entity, small enough to be multiplied again.
    keys = np.unique(owners * width + entities + 1, return_inverse=True)[1]
    if exact:
        spans = np.unique(starts * width + ends, return_inverse=True)[1]
        whole = keys * (len(spans) + 1) + spans
        found = np.isin(whole[:size], whole[size:])
    else:
        begins, stops = keys * width + starts, keys * width + ends
        order = size + np.argsort(begins[size:], kind="stable")
        largest = np.concatenate(([-1], np.maximum.accumulate(stops[order])))
        before = np.searchsorted(begins[order], stops[:size])
        found = largest[before] > begins[:size]
    return found & (gold.entities != NIL)


def link_metrics(counts: LinkCounts, groups: Sequence[str] = ()) -> dict[str, float]:
    """Give micro precision, recall and F1.

    Parameters
    ----------
    counts
        Sums over all texts.
    groups
        Names of the groups; without them only the metrics of all groups together.

    Returns
    -------
    dict of str to float
        ``precision``, ``recall`` and ``f1`` over all groups, and ``<group>.precision`` and so on.
        Shares of one; 0 where there is nothing to divide by.
    """
    metrics = _shares([float(each.sum()) for each in counts], "")
    for group, name in enumerate(groups):
        metrics |= _shares([float(each[group]) for each in counts], f"{name}.")
    return metrics


def _shares(counts: Sequence[float], prefix: str) -> dict[str, float]:
    right, predicted, found, gold = counts
    precision = right / predicted if predicted else 0.0
    recall = found / gold if gold else 0.0
    total = precision + recall
    f1 = 2.0 * precision * recall / total if total else 0.0
    return {f"{prefix}precision": precision, f"{prefix}recall": recall, f"{prefix}f1": f1}


def _check(gold: Links, other: Links) -> None:
    if len(gold.offsets) != len(other.offsets):
        raise ValueError("gold and predictions are of different texts")


def _both(one: Links, other: Links) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return starts, ends and entities of one side, then of the other."""
    return (
        np.concatenate([one.starts, other.starts]).astype(np.int64),
        np.concatenate([one.ends, other.ends]).astype(np.int64),
        np.concatenate([one.entities, other.entities]).astype(np.int64),
    )


def _owners(offsets: Offsets) -> AnyArray:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _sums(groups: AnyArray, size: int) -> Floats:
    return np.bincount(groups, minlength=size).astype(np.float64)


def _presences(
    offsets: Offsets, entities: AnyArray, ranked: AnyArray, order: AnyArray, size: int
) -> AnyArray:
    """Return the distinct pairs of a text and a query, as ``text * size + query``."""
    if not len(ranked):
        return np.zeros(0, np.int64)
    places = np.minimum(np.searchsorted(ranked, entities), len(ranked) - 1)
    asked = ranked[places] == entities
    return np.unique(_owners(offsets)[asked] * size + order[places[asked]])


@numba.njit(cache=True, nogil=True)
def _pair(
    texts: AnyArray,
    entities: AnyArray,
    starts: AnyArray,
    ends: AnyArray,
    is_gold: Flags,
    exact: bool,
) -> AnyArray:
    size = len(texts)
    pairs = np.full(size, -1, np.int64)
    # The smallest start from here to the last mention of the text and entity: where it is beyond an
    # end, no pair comes any more.
    smallest = starts.copy()
    for i in range(size - 2, -1, -1):
        if texts[i] == texts[i + 1] and entities[i] == entities[i + 1]:
            smallest[i] = min(starts[i], smallest[i + 1])
    for i in range(size):
        if pairs[i] >= 0:
            continue
        for j in range(i + 1, size):
            if texts[j] != texts[i] or entities[j] != entities[i] or smallest[j] >= ends[i]:
                break
            same = starts[j] == starts[i] and ends[j] == ends[i]
            fits = same if exact else starts[j] < ends[i]
            if fits and pairs[j] < 0 and is_gold[j] != is_gold[i]:
                pairs[i] = j
                pairs[j] = i
                break
    return pairs
