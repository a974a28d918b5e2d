"""Metrics of coreference resolution: counts a document that partitions can add.

The counts and metrics are those of the reference scorer, version 8.01 (Pradhan et al. 2014,
P14-2006; its LEA extension for LEA):

- MUC (Vilain et al. 1995), B3 (Bagga & Baldwin 1998) and CEAF (Luo 2005) by mentions and by
  entities, on the clusters as they are: nothing is added for mentions of one side only.
- BLANC for predicted mentions (Luo et al. 2014, P14-2005): links within clusters and links between
  them, each side with its own mentions.
- LEA (Moosavi & Strube 2016): a cluster of one mention has one link, to itself, which only such a
  cluster of the other side has too.
- The CoNLL average is the mean F1 of MUC, B3 and CEAF by entities (Pradhan et al. 2011).

Over documents, numerators and denominators are summed (micro), those of BLANC for its two kinds of
links. A mention is found if one of the other side has the same boundaries. Of mentions of one side
with the same boundaries in a document the first stays and the others do not count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching
from scipy.stats import wilcoxon as signed_rank

from corpusmill.types import AnyArray, Floats, Offsets

_DENSE = 1 << 16
"""Overlaps with more pairs of clusters than this are aligned as sparse graphs, smaller ones, which
that would slow down, as tables."""


class Mentions(NamedTuple):
    """Mentions of documents in clusters.

    Attributes
    ----------
    offsets : Offsets, shape (documents + 1,)
        Document n has the mentions ``offsets[n]:offsets[n + 1]``, in any order.
    starts, ends : int, shape (mentions,)
        Tokens in the document, ends exclusive (or inclusive: they are only compared).
    clusters : int, shape (mentions,)
        Mentions of a document with the same number are one cluster.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    clusters: AnyArray


class CoreferenceCounts(NamedTuple):
    """Counts a document; those of all documents, or of parts of them, add up.

    Each of them is Floats of shape (documents, 4): numerator and denominator of recall, numerator
    and denominator of precision.

    Attributes
    ----------
    mentions
        Mentions found, and all.
    muc
        Links that join the parts of clusters.
    b3
        Shares of a mention's cluster that its cluster on the other side has too; mentions.
    ceafm, ceafe
        Similarity of the aligned clusters; all mentions, or all clusters.
    lea
        Shares of a cluster's links that the other side has too, times its mentions; mentions.
    coreferent, separate
        Pairs of mentions within a cluster, and of two clusters: the links of BLANC.
    """

    mentions: Floats
    muc: Floats
    b3: Floats
    ceafm: Floats
    ceafe: Floats
    lea: Floats
    coreferent: Floats
    separate: Floats


class SignedRank(NamedTuple):
    """A Wilcoxon signed-rank test.

    Attributes
    ----------
    statistic : float
        The smaller sum of the ranks of the differences of one sign.
    p_value : float
        Two-sided.
    documents : int
        Documents whose values differ; the others say nothing.
    """

    statistic: float
    p_value: float
    documents: int


class _Overlaps(NamedTuple):
    """Clusters of both sides and how many mentions they share, only where they share any.

    ``keys`` and ``responses`` are the documents of the gold and the system's clusters. Cell i is
    of the gold cluster ``rows[i]`` and the system's ``columns[i]``, which share ``cells[i]``.
    """

    keys: AnyArray
    key_sizes: Floats
    responses: AnyArray
    response_sizes: Floats
    rows: AnyArray
    columns: AnyArray
    cells: Floats


def count_coreference(gold: Mentions, system: Mentions) -> CoreferenceCounts:
    r"""Count what the metrics are made of.

    Parameters
    ----------
    gold, system
        Mentions of the same documents, singletons included if they are to count.

    Returns
    -------
    CoreferenceCounts, shape (documents, 4)

    Raises
    ------
    ValueError
        Not as many documents on both sides.

    Notes
    -----
    With :math:`k` a gold cluster, :math:`r` one of the system, :math:`c = |k \cap r|` and sums over
    the pairs with :math:`c > 0`, the numerators of recall are :math:`\sum (c - 1)` for MUC,
    :math:`\sum c^2 / |k|` for B3, :math:`\sum c (c - 1) / (|k| - 1)` for LEA, and for CEAF the
    largest :math:`\sum \phi(k, r)` with each cluster at most once, where :math:`\phi` is :math:`c`
    or :math:`2 c / (|k| + |r|)`. Pairs of mentions are counted by formula. O(n log n) in mentions,
    plus the alignment: each connected part of the graph of overlapping clusters for itself, cubic
    in its clusters at worst, in memory linear in mentions.
    """
    if len(gold.offsets) != len(system.offsets):
        raise ValueError("gold and system are of different documents")
    size = len(gold.offsets) - 1
    overlaps = _overlap(gold, system)
    keys, key_sizes, responses, response_sizes, rows, columns, cells = overlaps
    places, of_key, of_response = keys[rows], key_sizes[rows], response_sizes[columns]
    found, in_gold, in_system = (
        _add(*each, size)
        for each in ((places, cells), (keys, key_sizes), (responses, response_sizes))
    )
    golds, systems = _add(keys, 1, size), _add(responses, 1, size)
    same = _align(overlaps, cells, size)
    alike = _align(overlaps, 2.0 * cells / (of_key + of_response), size)
    joined = found - _add(places, 1, size)
    alone = (of_key == 1.0) & (of_response == 1.0)
    shares = [_add(places, cells**2 / sizes, size) for sizes in (of_key, of_response)]
    resolved = [
        _add(places, _shared_links(cells, sizes, alone), size) for sizes in (of_key, of_response)
    ]
    return CoreferenceCounts(
        _four(found, in_gold, found, in_system),
        _four(joined, in_gold - golds, joined, in_system - systems),
        _four(shares[0], in_gold, shares[1], in_system),
        _four(same, in_gold, same, in_system),
        _four(alike, golds, alike, systems),
        _four(resolved[0], in_gold, resolved[1], in_system),
        *_count_links(overlaps, found, in_gold, in_system),
    )


def coreference_metrics(counts: CoreferenceCounts) -> dict[str, float]:
    """Give recall, precision and F1 of every metric over all documents.

    Parameters
    ----------
    counts
        Of any number of documents, or sums of them.

    Returns
    -------
    dict of str to float
        ``<metric>.recall``, ``.precision`` and ``.f1`` for ``mentions``, ``muc``, ``b3``,
        ``ceafm``, ``ceafe``, ``lea`` and ``blanc``, and ``conll_avg``. Shares of one; 0 where there
        is nothing to divide by.
    """
    sums = CoreferenceCounts(*(each.reshape(-1, 4).sum(axis=0) for each in counts))
    return {name: float(value) for name, value in _metrics(sums).items()}


def document_values(counts: CoreferenceCounts, metric: str) -> Floats:
    """Give a metric's value in each document.

    Parameters
    ----------
    counts
        Of the documents.
    metric
        A key of `coreference_metrics`.

    Returns
    -------
    Floats, shape (documents,)
    """
    return _metrics(counts)[metric]


def wilcoxon(a: CoreferenceCounts, b: CoreferenceCounts, metric: str) -> SignedRank:
    """Test whether two runs differ in a metric's values by document.

    Parameters
    ----------
    a, b
        Counts of both runs in the same documents, in the same order.
    metric
        A key of `coreference_metrics`.

    Returns
    -------
    SignedRank
        ``p_value`` is 1 where all documents have equal values.

    Raises
    ------
    ValueError
        Not the same number of documents.

    Notes
    -----
    Wilcoxon's signed-rank test, two-sided, without the documents that are equal. With n documents
    that differ no p-value is below :math:`2^{1 - n}`: it takes 6 of them for p < 0.05 and 8 for
    p < 0.01.
    """
    if len(a.muc) != len(b.muc):
        raise ValueError("the runs are of different documents")
    differences = document_values(a, metric) - document_values(b, metric)
    # Equal values may be sums in another order.
    differing = differences[np.abs(differences) > 1e-12]
    if not len(differing):
        return SignedRank(0.0, 1.0, 0)
    found = signed_rank(differing)
    return SignedRank(float(found.statistic), float(found.pvalue), len(differing))


def _metrics(counts: CoreferenceCounts) -> dict[str, Floats]:
    metrics: dict[str, Floats] = {}
    for name in ("mentions", "muc", "b3", "ceafm", "ceafe", "lea"):
        metrics |= _named(name, *_shares(getattr(counts, name)))
    metrics |= _named("blanc", *_blanc(counts.coreferent, counts.separate))
    three = [metrics[f"{name}.f1"] for name in ("muc", "b3", "ceafe")]
    return metrics | {"conll_avg": np.mean(three, axis=0)}


def _named(name: str, recall: Floats, precision: Floats, f1: Floats) -> dict[str, Floats]:
    return {f"{name}.recall": recall, f"{name}.precision": precision, f"{name}.f1": f1}


def _shares(counts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return recall, precision and F1 of counts of shape (..., 4)."""
    recall = _ratio(counts[..., 0], counts[..., 1])
    precision = _ratio(counts[..., 2], counts[..., 3])
    return recall, precision, _ratio(2.0 * precision * recall, precision + recall)


def _blanc(coreferent: Floats, separate: Floats) -> tuple[Floats, ...]:
    """Return the mean of both kinds of links; if gold has but one kind, that alone."""
    one, two = np.array(_shares(coreferent)), np.array(_shares(separate))
    has_one, has_two = coreferent[..., 1] > 0, separate[..., 1] > 0
    mean = np.where(has_one & has_two, (one + two) / 2.0, np.where(has_one, one, two))
    return tuple(np.where(has_one | has_two, mean, 0.0))


def _ratio(numerators: Floats, denominators: Floats) -> Floats:
    there = denominators > 0
    return np.where(there, numerators / np.where(there, denominators, 1.0), 0.0)


def _four(*counts: Floats) -> Floats:
    return np.stack(counts, axis=1)


def _add(places: AnyArray, values: Floats | float, size: int) -> Floats:
    return np.bincount(places, np.broadcast_to(values, len(places)), size).astype(np.float64)


def _count_links(
    overlaps: _Overlaps, found: Floats, in_gold: Floats, in_system: Floats
) -> tuple[Floats, Floats]:
    """Count the links of BLANC, within clusters and between them, from the mentions by document."""
    keys, key_sizes, responses, response_sizes, rows, columns, cells = overlaps
    size = len(found)
    right = _add(keys[rows], _pairs(cells), size)
    within_gold = _add(keys, _pairs(key_sizes), size)
    within_system = _add(responses, _pairs(response_sizes), size)
    # Of the pairs of mentions found, those within a gold cluster and those within one of the system
    # are taken away, and so those within both twice.
    of_gold = _add(keys, _pairs(_add(rows, cells, len(keys))), size)
    of_system = _add(responses, _pairs(_add(columns, cells, len(responses))), size)
    apart = _pairs(found) - of_gold - of_system + right
    return (
        _four(right, within_gold, right, within_system),
        _four(apart, _pairs(in_gold) - within_gold, apart, _pairs(in_system) - within_system),
    )


def _pairs(sizes: Floats) -> Floats:
    return sizes * (sizes - 1.0) / 2.0


def _shared_links(cells: Floats, sizes: Floats, alone: AnyArray) -> Floats:
    """Return what each overlap adds for LEA: a cluster's mentions times a share of its links."""
    return np.where(sizes > 1.0, cells * (cells - 1.0) / np.maximum(sizes - 1.0, 1.0), alone * 1.0)


def _overlap(gold: Mentions, system: Mentions) -> _Overlaps:
    """Drop repeated mentions, number the clusters through, and count what they share."""
    documents = np.concatenate(
        [np.repeat(np.arange(len(each) - 1), np.diff(each)) for each in (gold[0], system[0])]
    )
    starts = np.concatenate([gold.starts, system.starts]).astype(np.int64)
    ends = np.concatenate([gold.ends, system.ends]).astype(np.int64)
    sides = np.repeat([0, 1], [len(gold.starts), len(system.starts)])
    order = np.lexsort((sides, ends, starts, documents))
    spans = np.stack([documents, starts, ends])[:, order]
    same = np.zeros(len(order), np.bool_)
    same[1:] = (spans[:, 1:] == spans[:, :-1]).all(axis=0)
    changed = np.ones(len(order), np.bool_)
    changed[1:] = sides[order][1:] != sides[order][:-1]
    kept = ~same | changed
    order, same = order[kept], same[kept]
    of_gold = sides[order] == 0
    clusters = np.concatenate([gold.clusters, system.clusters])[order]
    keys, key_sizes, in_keys = _number(documents[order[of_gold]], clusters[of_gold])
    responses, response_sizes, in_responses = _number(
        documents[order[~of_gold]], clusters[~of_gold]
    )
    ids = np.empty(len(order), np.int64)
    ids[of_gold], ids[~of_gold] = in_keys, in_responses
    # What has the same span as the one before is of the system, and the one before of gold.
    at = np.flatnonzero(same)
    width = max(len(responses), 1)
    shared, cells = np.unique(ids[at - 1] * width + ids[at], return_counts=True)
    return _Overlaps(
        keys,
        key_sizes,
        responses,
        response_sizes,
        shared // width,
        shared % width,
        cells.astype(np.float64),
    )


def _number(documents: AnyArray, clusters: AnyArray) -> tuple[AnyArray, Floats, AnyArray]:
    """Return the clusters' documents and sizes, and the number of each mention's cluster."""
    values, places = np.unique(clusters, return_inverse=True)
    width = max(len(values), 1)
    keys, ids, sizes = np.unique(
        documents * width + places, return_inverse=True, return_counts=True
    )
    return keys // width, sizes.astype(np.float64), ids


def _align(overlaps: _Overlaps, weights: Floats, documents: int) -> Floats:
    """Return, a document, the largest sum of weights of cells in different rows and columns."""
    rows, columns = overlaps.rows, overlaps.columns
    if not len(rows):
        return np.zeros(documents)
    size = len(overlaps.keys) + len(overlaps.responses)
    graph = coo_array((weights, (rows, columns + len(overlaps.keys))), (size, size))
    part = connected_components(graph, directed=False)[1][rows]
    order = np.argsort(part, kind="stable")
    part, rows, columns, weights = part[order], rows[order], columns[order], weights[order]
    begins = np.flatnonzero(np.diff(part, prepend=-1))
    bounds = np.append(begins, len(order))
    best = np.maximum.reduceat(weights, begins)
    # In a part of one row or one column that best cell is all.
    several = np.minimum(_distinct(part, rows), _distinct(part, columns)) > 1
    for which in np.flatnonzero(several):
        cells = slice(bounds[which], bounds[which + 1])
        best[which] = _assign(rows[cells], columns[cells], weights[cells])
    return _add(overlaps.keys[rows[begins]], best, documents)


def _distinct(parts: AnyArray, values: AnyArray) -> AnyArray:
    """Count the different values in each part."""
    width = int(values.max()) + 1
    return np.unique(np.unique(parts * width + values) // width, return_counts=True)[1]


def _assign(rows: AnyArray, columns: AnyArray, weights: Floats) -> float:
    (row_values, at_rows), (column_values, at_columns) = (
        np.unique(each, return_inverse=True) for each in (rows, columns)
    )
    height, width = len(row_values), len(column_values)
    if height * width <= _DENSE:
        table = np.zeros((height, width))
        table[at_rows, at_columns] = weights
        return float(table[linear_sum_assignment(table, maximize=True)].sum())
    # The cheapest matching of all rows; each has a column of its own too, which is worth nothing.
    top = weights.max() + 1.0
    costs = np.append(top - weights, np.full(height, top))
    own = np.arange(height)
    places = np.append(at_rows, own), np.append(at_columns, width + own)
    graph = coo_array((costs, places), (height, width + height)).tocsr()
    return float((top - graph[min_weight_full_bipartite_matching(graph)]).sum())
