"""Kernel machines and mining on splits of a DataFrame's examples (KSL and FMI of the paper)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from scipy.sparse import csr_array, vstack

from corpusmill import splits
from corpusmill.corpora.schemas import INTS, TREES
from corpusmill.fragments.corpus import COPIES, Corpus, class_codes
from corpusmill.fragments.examples import Examples
from corpusmill.fragments.learning import mine_split, support_vectors, train_machines
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.trie import Fragments
from corpusmill.types import AnyArray, Floats

_SUPPORT = T.StructType(
    [*TREES, T.StructField(COPIES, T.DoubleType()), T.StructField("split", T.IntegerType())]
)
_MINED = T.StructType(
    [
        T.StructField("machine", T.IntegerType()),
        T.StructField("slot", T.IntegerType()),
        T.StructField("moves", INTS),
    ]
)


class Mined(NamedTuple):
    """What the splits gave, united.

    Attributes
    ----------
    fragments : tuple of Fragments
        By tree slot, in the order of their spelling.
    members : csr_array, shape (machines, fragments of all slots and features of the vector)
        1 where the fragment was mined for the machine; every machine has all features.
    """

    fragments: tuple[Fragments, ...]
    members: csr_array


def assign_splits(rows: DataFrame, settings: LearnerSettings, seed: int) -> DataFrame:
    """Add ``split``, by the example's id and the seed alone, whatever the partitions.

    Parameters
    ----------
    rows : DataFrame
        Of unique ``example_id``.
    settings : LearnerSettings
        ``split_by`` "random": a hash of the id; "class": its rank by that hash within the class,
        for which one task a class sorts the ids.
    seed : int
    """
    key = F.xxhash64(F.lit(seed), F.col("example_id"))
    if settings.split_by == "random":
        return rows.withColumn("split", F.pmod(key, F.lit(settings.splits)).cast("int"))
    place = F.row_number().over(Window.partitionBy("target").orderBy(key, "example_id"))
    split = ((place - 1) % settings.splits).cast("int").alias("split")
    return rows.join(rows.select("example_id", "target", split).drop("target"), "example_id")


def mine_fragments(rows: DataFrame, corpus: Corpus, settings: LearnerSettings, seed: int) -> Mined:
    """Learn and mine every split, and unite what was found, by machine and tree slot.

    Parameters
    ----------
    rows : DataFrame
        Of distinct examples with unique ``example_id`` and ``copies``; cached by the caller.
    """
    parts, count = assign_splits(rows, settings, seed), settings.splits
    kept: list[DataFrame] = []
    if settings.merge == "cascade":
        parts, count = _cascade(parts, corpus, settings, kept), 1
    kernel = partial(_mine_group, corpus=corpus, settings=settings)
    mined = splits.map_groups(parts, "split", kernel, _MINED, count)
    machines = F.array_sort(F.collect_set("machine")).alias("machines")
    try:
        found = mined.groupBy("slot", "moves").agg(machines).toArrow().combine_chunks()
    finally:
        for each in kept:
            each.unpersist()
    return _united(found, corpus)


def _cascade(
    parts: DataFrame, corpus: Corpus, settings: LearnerSettings, kept: list[DataFrame]
) -> DataFrame:
    """Merge support vectors pair by pair (Graf et al. 2004), down to the last pair or single.

    Feedback puts the last support vectors into every split and begins again; ``kept`` receives
    what is cached for that.
    """
    kernel = partial(_support_group, corpus=corpus, settings=settings)
    whole = parts
    for turn in range(settings.feedback_rounds + 1):
        count = settings.splits
        while count > 1:
            parts = splits.map_groups(parts, "split", kernel, _SUPPORT, count)
            parts = parts.withColumn("split", F.floor(F.col("split") / 2).cast("int"))
            count = -(-count // 2)
        if turn < settings.feedback_rounds:
            last = splits.map_groups(parts, "split", kernel, _SUPPORT, 1).drop("split").persist()
            kept.append(last)
            everywhere = F.explode(F.sequence(F.lit(0), F.lit(settings.splits - 1)))
            fresh = whole.join(last.select("example_id"), "example_id", "left_anti")
            parts = fresh.unionByName(last.withColumn("split", everywhere))
    return parts


def read_group(rows: pa.Table, corpus: Corpus) -> tuple[pa.RecordBatch, Examples, AnyArray, Floats]:
    """Read the rows of a group, once each, in an order that does not depend on the shuffle.

    Returns
    -------
    tuple
        The rows, their trees, classes and copies.
    """
    rows = rows.sort_by("example_id").combine_chunks()
    ids = rows["example_id"].combine_chunks()
    # Feedback brings the same example into several splits, which meet again when they are merged.
    again = pc.fill_null(pc.equal(ids[1:], ids[:-1]), False).to_numpy(zero_copy_only=False)
    (batch,) = rows.filter(pa.array(np.r_[True, ~again])).combine_chunks().to_batches()
    copies = batch[COPIES].to_numpy(zero_copy_only=False)
    return batch, corpus.examples(batch), class_codes(batch["target"], corpus.classes), copies


def _mine_group(
    split: int, rows: pa.Table, corpus: Corpus, settings: LearnerSettings
) -> pa.RecordBatch:
    """Learn and mine one split; the kernel of `mine_fragments`."""
    _, examples, codes, copies = read_group(rows, corpus)
    found = mine_split(examples, codes, copies, range(corpus.machines), settings)
    batches = []
    for machine, by_slot in enumerate(found):
        for slot, fragments in enumerate(by_slot):
            offsets = pa.array((3 * fragments.offsets).astype(np.int32))
            count = len(fragments.weights)
            columns = [
                pa.array(np.full(count, machine, np.int32)),
                pa.array(np.full(count, slot, np.int32)),
                pa.ListArray.from_arrays(offsets, pa.array(fragments.moves)),
            ]
            batches.append(pa.RecordBatch.from_arrays(columns, schema=splits.schema_of(_MINED)))
    return whole_batch(pa.Table.from_batches(batches))


def whole_batch(table: pa.Table) -> pa.RecordBatch:
    """Give a table as one batch, also when it has no rows."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _support_group(
    split: int, rows: pa.Table, corpus: Corpus, settings: LearnerSettings
) -> pa.RecordBatch:
    """Keep the support vectors of one split, or all of a class alone; the cascade's kernel."""
    batch, examples, codes, copies = read_group(rows, corpus)
    names = [field.name for field in _SUPPORT]
    if len(np.unique(codes)) < 2:
        return batch.select(names)
    machines = train_machines(examples, codes, copies, range(corpus.machines), settings)
    kept = machines.rows[support_vectors(machines)]
    return batch.take(pa.array(kept)).select(names)


def _united(found: pa.Table, corpus: Corpus) -> Mined:
    """Put the distinct fragments into an order that depends on nothing but themselves."""
    slots = found["slot"].to_numpy()
    fragments, chosen = [], []
    for slot in range(corpus.slots):
        rows = np.flatnonzero(slots == slot)
        moves = found["moves"].combine_chunks().take(pa.array(rows))
        lengths = moves.value_lengths().to_numpy(zero_copy_only=False) // 3
        offsets = _running(lengths)
        flat = moves.flatten().to_numpy(zero_copy_only=False).reshape(-1, 3)
        order = _spelling_order(offsets, flat)
        sorted_offsets = _running(lengths[order])
        places = np.repeat(offsets[order] - sorted_offsets[:-1], lengths[order])
        spelt = flat[places + np.arange(offsets[-1])].reshape(-1).astype(np.int32)
        fragments.append(Fragments(sorted_offsets, spelt, np.zeros(len(rows))))
        chosen.append(rows[order])
    machines = found["machines"].combine_chunks().take(pa.array(np.concatenate(chosen)))
    columns = csr_array(
        (
            np.ones(len(machines.flatten())),
            machines.flatten().to_numpy(zero_copy_only=False),
            _running(machines.value_lengths().to_numpy(zero_copy_only=False)),
        ),
        shape=(len(machines), corpus.machines),
    )
    features = csr_array(np.ones((corpus.vector_size, corpus.machines)))
    members = csr_array(vstack([columns, features]).T)
    members.sort_indices()
    return Mined(tuple(fragments), members)


def _running(lengths: AnyArray) -> AnyArray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _spelling_order(offsets: AnyArray, moves: AnyArray) -> AnyArray:
    """Order fragments by length, then by their moves."""
    lengths = np.diff(offsets)
    blocks = []
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        keys = moves[offsets[rows][:, None] + np.arange(length)].reshape(len(rows), -1)
        blocks.append(rows[np.lexsort(keys.T[::-1])])
    return np.concatenate(blocks) if blocks else np.zeros(0, np.int64)
