"""From posteriors to what people read: ranked classes and the words that decided. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.alignment.batches import list_column, read_patterns
from corpusmill.alignment.model import AlignmentModel
from corpusmill.types import AnyArray, Bags, Floats, LogProbs, Offsets, Probabilities


class Ranking(NamedTuple):
    """Classes of instances, best first.

    Attributes
    ----------
    offsets : Offsets, shape (instances + 1,)
    classes : int64, shape (offsets[-1],)
    probabilities : Probabilities, shape (offsets[-1],)
    """

    offsets: Offsets
    classes: AnyArray
    probabilities: Probabilities


def rank(phi: Probabilities, most: int, least: float = 1e-3) -> Ranking:
    """Rank the classes of each instance.

    Parameters
    ----------
    phi : Probabilities, shape (instances, C)
    most : int
        How many classes at the most.
    least : float
        Classes below this probability are left out, except the best.

    Returns
    -------
    Ranking
        Ties by class number.
    """
    order = np.argsort(-phi, axis=1, kind="stable")[:, :most]
    sorted_phi = np.take_along_axis(phi, order, axis=1)
    kept = sorted_phi >= least
    kept[:, 0] = True
    offsets = np.concatenate([[0], kept.sum(axis=1).cumsum()])
    return Ranking(offsets, order[kept], sorted_phi[kept])


class Words(NamedTuple):
    """Features that spoke for the best class, strongest first.

    Attributes
    ----------
    offsets : Offsets, shape (instances + 1,)
    ids : int64, shape (offsets[-1],)
    evidence : Floats, shape (offsets[-1],)
        Nats.
    """

    offsets: Offsets
    ids: AnyArray
    evidence: Floats


def deciding_words(bags: Bags, phi: Probabilities, log_b: LogProbs, most: int) -> Words:
    """Find the features that speak for the best class against the second best.

    The evidence of feature d in instance m is x_md (log b_{c1 d} - log b_{c2 d}), c1 and c2
    the most probable classes of m. Only positive evidence is given.

    Parameters
    ----------
    bags : Bags
        The instances.
    phi : Probabilities, shape (instances, C)
        With a single class nothing was decided.
    log_b : LogProbs, shape (D, C)
    most : int
        How many an instance.

    Returns
    -------
    Words

    Notes
    -----
    O(nonzeros log nonzeros).
    """
    instances = len(bags.offsets) - 1
    if phi.shape[1] < 2:
        return Words(np.zeros(instances + 1, np.int64), np.zeros(0, np.int64), np.zeros(0))
    row = np.repeat(np.arange(instances), np.diff(bags.offsets))
    best = np.argsort(-phi, axis=1, kind="stable")[:, :2]
    first, second = best[row, 0], best[row, 1]
    evidence = bags.counts * (log_b[bags.ids, first] - log_b[bags.ids, second])
    order = np.lexsort((-evidence, row))
    place = np.arange(len(order)) - bags.offsets[row[order]]
    order = order[(place < most) & (evidence[order] > 0.0)]
    offsets = np.concatenate([[0], np.bincount(row[order], minlength=instances).cumsum()])
    return Words(offsets, bags.ids[order].astype(np.int64), evidence[order])


def disambiguate(
    batch: pa.RecordBatch,
    model: AlignmentModel,
    classes: int,
    words: int,
    use_labels: bool,
    carried: Sequence[str],
) -> pa.RecordBatch:
    """Give a row for each instance of pattern rows.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Pattern rows with ``name``.
    model : AlignmentModel
        Of the multinomial kind.
    classes, words : int
        How many of each at the most.
    use_labels : bool
        Whether the pattern's label set is known.
    carried : sequence of str
        Columns with an entry an instance, which are kept.

    Returns
    -------
    pyarrow.RecordBatch
        ``name``, the carried columns, ``classes`` and ``probabilities`` (best first),
        ``context_words`` and their ``evidence`` in nats (strongest first).
    """
    patterns = read_patterns(batch, model.classes, model.size, use_labels)
    posterior = model.infer(patterns)
    ranking = rank(posterior.phi, classes)
    log_b = model.parameters.instances.arrays()["log_b"]
    found = deciding_words(patterns.bags, posterior.phi, log_b, words)
    pattern = pa.array(np.repeat(np.arange(batch.num_rows), np.diff(patterns.offsets)))
    class_names = pa.array(model.classes, pa.string())
    features = pa.array(model.features, pa.string())
    return pa.RecordBatch.from_pydict(
        {
            "name": batch["name"].take(pattern),
            **{name: batch[name].flatten() for name in carried},
            "classes": list_column(class_names.take(pa.array(ranking.classes)), ranking.offsets),
            "probabilities": list_column(ranking.probabilities, ranking.offsets),
            "context_words": list_column(features.take(pa.array(found.ids)), found.offsets),
            "evidence": list_column(found.evidence, found.offsets),
        }
    )
