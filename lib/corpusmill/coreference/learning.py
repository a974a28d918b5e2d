"""Passes of online learning over documents, and averages of partitions. No Spark.

Source: Björkelund & Kuhn (2014); McDonald, Hall & Mann (2010) for iterative parameter mixing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.coreference.agendas import REGIMES, learn_beam
from corpusmill.coreference.greedy import learn_greedy
from corpusmill.coreference.preparation import Preparation, Prepared
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.coreference.updates import Learner, averaged, new_learner
from corpusmill.types import AnyArray, Floats


class Progress(NamedTuple):
    """Where learning stands.

    Attributes
    ----------
    weights : float64, shape (2^bits,)
        To go on with.
    totals : float64, shape (2^bits,)
        The sum of the weights after each document of each pass.
    steps : float
        How many these are.
    losses : float64, shape (passes,)
        Of wrong arcs, a document.
    lengths : float64, shape (passes,)
        The mean length of the latent trees' arcs in mentions, but for those from the root.
    """

    weights: Floats
    totals: Floats
    steps: float
    losses: Floats
    lengths: Floats

    def average(self) -> Floats:
        """Give the averaged weights."""
        return self.totals / max(self.steps, 1.0)


OnPass = Callable[[Progress, Preparation], None]
"""What is called after each pass."""


def start(settings: LearnerSettings) -> Progress:
    """Give the state before the first pass."""
    places = 1 << settings.bits
    return Progress(np.zeros(places), np.zeros(places), 0.0, np.zeros(0), np.zeros(0))


def learn_documents(
    prepared: Iterable[Prepared],
    weights: Floats,
    settings: LearnerSettings,
) -> dict[str, Floats]:
    """Make one pass over the documents of a partition.

    Parameters
    ----------
    prepared : iterable of Prepared
        The documents, some at a time, in order.
    weights : float64, shape (2^bits,)
        To begin with.
    settings : LearnerSettings

    Returns
    -------
    dict of arrays
        What is summed over partitions: ``weights`` at the end, times ``share`` (documents, or
        those that were updated with); ``totals``, the sum of the weights after each document; and
        ``counts``, shape (4,): documents, loss, length and number of the latent trees' arcs.
    """
    learner = new_learner(settings.bits, settings.update, settings.aggressiveness, weights)
    counts, updates = np.zeros(4), 0
    for piece in prepared:
        for document in range(piece.documents.size):
            found = _learn(piece, document, learner, settings)
            counts += (1.0, *found)
            updates += found[0] > 0.0
    documents = counts[0]
    share = documents if settings.mixing == "documents" else float(updates)
    totals = documents * averaged(learner)
    return {
        "weights": share * learner.weights,
        "share": np.array([share]),
        "totals": totals,
        "counts": counts,
    }


def _learn(
    piece: Prepared, document: int, learner: Learner, settings: LearnerSettings
) -> tuple[float, int, int]:
    shift, clusters = 64 - settings.bits, piece.mentions.clusters
    if settings.regime == "greedy":
        return learn_greedy(piece.arcs, document, learner, shift, settings.window, clusters)
    regime = REGIMES.index(settings.regime)
    return learn_beam(
        piece.arcs, document, learner, shift, settings.window, clusters, settings.beam, regime
    )


def learn_partition(
    batches: Iterator[pa.RecordBatch],
    preparation: Preparation,
    weights: tuple[AnyArray, Floats],
    seed: int,
    iteration: int,
) -> dict[str, Floats]:
    """Make a pass over a partition's documents; the kernel of `fitting`.

    The documents are put in the order of their ids and then shuffled, so that the order does not
    depend on how Spark brought them.
    """
    settings = preparation.settings
    first = dense(*weights, settings.bits)
    rows = [batch for batch in batches if batch.num_rows]
    if not rows:
        return learn_documents([], first, settings)
    table = pa.Table.from_batches(rows).combine_chunks()
    order = _by_name(table)
    shuffled = order[order_of(seed, iteration).permutation(len(order))]
    batch = table.take(pa.array(shuffled)).combine_chunks().to_batches()[0]
    return learn_documents(preparation.prepare(batch, training=True), first, settings)


def learn_batch(
    batch: pa.RecordBatch,
    preparation: Preparation,
    seed: int,
    on_pass: OnPass | None = None,
) -> Progress:
    """Make all passes over documents in memory, in one partition.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    preparation : Preparation
    seed : int
        Of the order of documents.
    on_pass : callable, optional
        Called after each pass.
    """
    progress = start(preparation.settings)
    for iteration in range(preparation.settings.iterations):
        weights = sparse(progress.weights)
        progress = mixed(
            progress, learn_partition(iter([batch]), preparation, weights, seed, iteration)
        )
        if on_pass is not None:
            on_pass(progress, preparation)
    return progress


def _by_name(table: pa.Table) -> AnyArray:
    """Give the order of documents by id and part; int64."""
    names = table.select([name for name in ("document_id", "part") if name in table.column_names])
    keys = [(name, "ascending") for name in names.column_names]
    return pc.sort_indices(names, sort_keys=keys).to_numpy()


def mixed(progress: Progress, sums: dict[str, Floats]) -> Progress:
    """Go one pass further with the sums over partitions of `learn_documents`.

    The weights become the mean of the partitions', each as often as it has documents (or
    documents that were updated with); where there was no update at all they stay.
    """
    documents, loss, length, arcs = sums["counts"].tolist()
    share = float(sums["share"][0])
    return Progress(
        sums["weights"] / share if share else progress.weights,
        progress.totals + sums["totals"],
        progress.steps + documents,
        np.append(progress.losses, loss / max(documents, 1.0)),
        np.append(progress.lengths, length / max(arcs, 1.0)),
    )


def order_of(seed: int, iteration: int) -> np.random.Generator:
    """Give the generator of the order of documents in a pass."""
    return np.random.default_rng([seed, iteration])


def sparse(weights: Floats) -> tuple[AnyArray, Floats]:
    """Give the places and values of the weights that are not 0."""
    places = np.flatnonzero(weights)
    return places, weights[places]


def dense(places: AnyArray, values: Floats, bits: int) -> Floats:
    """Undo `sparse`."""
    weights = np.zeros(1 << bits)
    weights[places] = values
    return weights
