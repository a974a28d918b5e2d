"""Training fragments over the rows of a DataFrame, stage by stage.

| stage (the paper's name) | split | kernel | merge |
| --- | --- | --- | --- |
| vocabulary | partitions | distinct productions | union |
| learn and mine (KSL, FMI) | S splits | SST machines, greedy mining | union, or a cascade before |
| vectors (TFX) | partitions | the dictionary's fragments of a tree | none |
| linear machines (ESL) | classes | liblinear, or Spark's LinearSVC over partitions | none |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.ml.classification import LinearSVC
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T
from scipy.sparse import csr_array, vstack

from corpusmill import splits
from corpusmill.corpora.schemas import DOUBLES, INTS, STRINGS, TREES
from corpusmill.errors import DataError
from corpusmill.fragments.batches import (
    productions_of,
    read_forests,
    read_sparse,
    sparse_columns,
)
from corpusmill.fragments.examples import Examples
from corpusmill.fragments.learning import (
    class_weights,
    machine_classes,
    mine_split,
    support_vectors,
    train_machines,
)
from corpusmill.fragments.linear import train_linear
from corpusmill.fragments.mining import Fragments
from corpusmill.fragments.model import Calibration, FragmentsModel, Space, machine_vectors
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.types import AnyArray, Floats, Forest

MAX_CLASSES = 1_000
COPIES = "copies"
_TREE_COLUMNS = ["node_labels", "node_arities", "tree_offsets", "vector_ids", "vector_values"]

_PRODUCTIONS = T.StructType([T.StructField("production", STRINGS)])
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
_VECTORS = T.StructType(
    [
        T.StructField("example_id", T.StringType()),
        T.StructField("target", T.StringType()),
        T.StructField(COPIES, T.DoubleType()),
        T.StructField("ids", INTS),
        T.StructField("values", DOUBLES),
    ]
)
_LINEAR = T.StructType(
    [
        T.StructField("machine", T.IntegerType()),
        T.StructField("ids", INTS),
        T.StructField("values", DOUBLES),
        T.StructField("bias", T.DoubleType()),
        T.StructField("slope", T.DoubleType()),
        T.StructField("offset", T.DoubleType()),
        T.StructField("converged", T.BooleanType()),
    ]
)

OnStage = Callable[[str], None]
"""Told the name of each stage as it begins."""


class Corpus(NamedTuple):
    """What a kernel must know of the rows before it reads them.

    Attributes
    ----------
    classes : tuple of str
    vocabulary : Vocabulary
    slots : int
        Trees an example, at most.
    vector_size : int
        Columns of the feature vectors; 0 where they are not used.
    """

    classes: tuple[str, ...]
    vocabulary: Vocabulary
    slots: int
    vector_size: int

    @property
    def machines(self) -> int:
        """Give the number of machines: one a class, but one for two classes."""
        return machine_classes(len(self.classes))

    def forests(self, batch: pa.RecordBatch) -> tuple[Forest, ...]:
        """Read the trees of rows, one forest a slot."""
        return read_forests(batch, self.vocabulary, self.slots)

    def examples(self, batch: pa.RecordBatch) -> Examples:
        """Read tree rows."""
        forests = self.forests(batch)
        vectors = None
        if self.vector_size:
            vectors = read_sparse(batch, self.vector_size, "vector_ids", "vector_values")
        return Examples(forests, self.vocabulary.productions, vectors)

    def codes(self, targets: pa.Array) -> AnyArray:
        """Give the numbers of classes; DATA05 names one that is not known."""
        found = pc.index_in(targets, value_set=pa.array(self.classes, pa.string()))
        if found.null_count:
            unknown = targets.filter(found.is_null())[0].as_py()
            raise DataError(
                "DATA05", name=unknown, where="column 'target'",
                allowed=", ".join(self.classes[:20]),
            )  # fmt: skip
        return found.to_numpy(zero_copy_only=False).astype(np.int64)


def survey(rows: DataFrame, settings: LearnerSettings, classes: Sequence[str] = ()) -> Corpus:
    """Look through the rows once for their classes and sizes, and once for their productions.

    Raises
    ------
    DataError
        DATA03: no row has a target, or all have the same; FRAG01: too many classes.
    """
    found = rows.agg(
        F.max(F.size("tree_offsets") - 1).alias("slots"),
        F.max(F.array_max("vector_ids")).alias("vector"),
        F.slice(F.array_sort(F.collect_set("target")), 1, MAX_CLASSES + 1).alias("classes"),
    ).first()
    names = tuple(classes) or tuple(found["classes"] if found else ())
    if len(names) < 2:
        hint = "there must be two classes at least"
        raise DataError("DATA03", source="column 'target'", hint=hint)
    if len(names) > MAX_CLASSES:
        raise DataError("FRAG01", limit=MAX_CLASSES)
    parts = splits.map_partitions(rows.select(*_TREE_COLUMNS), productions_of, _PRODUCTIONS)
    productions = parts.distinct().toArrow()["production"].combine_chunks()
    vector_size = 0
    if settings.vector_weight and found is not None and found["vector"] is not None:
        vector_size = int(found["vector"]) + 1
    slots = max(1, int(found["slots"] or 1)) if found is not None else 1
    return Corpus(names, Vocabulary.of(productions), slots, vector_size)


def fit_trees(
    rows: DataFrame,
    settings: LearnerSettings,
    seed: int = 13,
    classes: Sequence[str] = (),
    on_stage: OnStage = lambda _: None,
) -> FragmentsModel:
    """Mine fragments on the splits of the rows and train linear machines on all of them.

    Parameters
    ----------
    rows : DataFrame
        Of `corpusmill.corpora.schemas.TREES`; cached by the caller. Rows without a target are
        left out.
    settings : LearnerSettings
    seed : int
        Of the splits, of liblinear and of the calibration.
    classes : sequence of str
        By default the targets, sorted. Of two, the first is the positive one.
    on_stage : callable

    Returns
    -------
    FragmentsModel
        The same for any number of partitions and cores.

    Raises
    ------
    DataError
        No target, one class only, or a broken row.
    """
    rows = rows.where(F.col("target").isNotNull())
    on_stage("vocabulary")
    corpus = survey(rows, settings, classes)
    on_stage("learn and mine")
    mined = mine_fragments(rows, corpus, settings, seed)
    space = Space(corpus.vocabulary, mined.fragments, corpus.vector_size, settings)
    on_stage("vectors")
    distinct = rows.groupBy(*_TREE_COLUMNS, "target").agg(
        F.min("example_id").alias("example_id"), F.count("*").cast("double").alias(COPIES)
    )
    vectors = splits.map_partitions(distinct, partial(_vectors, space=space), _VECTORS).persist()
    try:
        frequencies = splits.sum_arrays(
            vectors.select("ids", COPIES), partial(_frequencies, size=space.size)
        )["documents"]
        on_stage("linear machines")
        train = _liblinear if settings.linear_solver == "liblinear" else _mllib
        machines = train(vectors, corpus.classes, space, mined.members, seed)
    finally:
        vectors.unpersist()
    return FragmentsModel(
        corpus.classes, space, machines.weights, machines.bias, machines.calibration,
        frequencies.astype(np.int64),
    )  # fmt: skip


def assign_splits(rows: DataFrame, settings: LearnerSettings, seed: int) -> DataFrame:
    """Add ``split``, by the example's id and the seed alone, whatever the partitions."""
    key = F.xxhash64(F.lit(seed), F.col("example_id"))
    if settings.split_by == "random":
        split = F.pmod(key, F.lit(settings.splits))
    else:
        place = F.row_number().over(Window.partitionBy("target").orderBy(key, "example_id"))
        split = (place - 1) % settings.splits
    return rows.withColumn("split", split.cast("int"))


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


def mine_fragments(rows: DataFrame, corpus: Corpus, settings: LearnerSettings, seed: int) -> Mined:
    """Learn and mine every split, and unite what was found, by machine and tree slot."""
    parts = assign_splits(rows, settings, seed).withColumn(COPIES, F.lit(1.0))
    count = settings.splits
    if settings.merge == "cascade":
        parts, count = _cascade(parts, corpus, settings), 1
    kernel = partial(_mine_group, corpus=corpus, settings=settings)
    mined = splits.map_groups(parts, ["split"], kernel, _MINED, count)
    machines = F.array_sort(F.collect_set("machine")).alias("machines")
    found = mined.groupBy("slot", "moves").agg(machines).toArrow().combine_chunks()
    return _united(found, corpus)


def _cascade(parts: DataFrame, corpus: Corpus, settings: LearnerSettings) -> DataFrame:
    """Merge support vectors pair by pair (Graf et al. 2004), down to the last pair or single."""
    kernel = partial(_support_group, corpus=corpus, settings=settings)
    whole = parts
    for turn in range(settings.feedback_rounds + 1):
        count = settings.splits
        while count > 1:
            parts = splits.map_groups(parts, ["split"], kernel, _SUPPORT, count)
            parts = parts.withColumn("split", F.floor(F.col("split") / 2).cast("int"))
            count = -(-count // 2)
        if turn < settings.feedback_rounds:
            kept = splits.map_groups(parts, ["split"], kernel, _SUPPORT, 1).drop("split")
            everywhere = F.explode(F.sequence(F.lit(0), F.lit(settings.splits - 1)))
            fresh = whole.join(kept.select("example_id"), "example_id", "left_anti")
            parts = fresh.unionByName(kept.withColumn("split", everywhere))
    return parts


def read_group(rows: pa.Table, corpus: Corpus) -> tuple[pa.RecordBatch, Examples, AnyArray, Floats]:
    """Read the rows of a group, in an order that does not depend on the shuffle.

    Returns
    -------
    tuple
        The rows, their trees, classes and copies.
    """
    (batch,) = rows.sort_by("example_id").combine_chunks().to_batches()
    copies = batch[COPIES].to_numpy(zero_copy_only=False)
    return batch, corpus.examples(batch), corpus.codes(batch["target"]), copies


def _mine_group(
    key: tuple[Any, ...], rows: pa.Table, corpus: Corpus, settings: LearnerSettings
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
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


def _support_group(
    key: tuple[Any, ...], rows: pa.Table, corpus: Corpus, settings: LearnerSettings
) -> pa.RecordBatch:
    """Keep the support vectors of one split; the kernel of the cascade."""
    batch, examples, codes, copies = read_group(rows, corpus)
    machines = train_machines(examples, codes, copies, range(corpus.machines), settings)
    chosen = support_vectors(machines)
    kept = batch.take(pa.array(machines.rows[chosen]))
    at = kept.schema.get_field_index(COPIES)
    kept = kept.set_column(at, COPIES, pa.array(machines.copies[chosen]))
    return kept.select([field.name for field in _SUPPORT])


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


def _vectors(batch: pa.RecordBatch, space: Space) -> pa.RecordBatch:
    """Write distinct examples as vectors; the kernel of TFX."""
    columns = {
        "example_id": batch["example_id"],
        "target": batch["target"],
        COPIES: batch[COPIES],
        **sparse_columns(space.vectors(batch)),
    }
    return pa.RecordBatch.from_pydict(columns, schema=splits.schema_of(_VECTORS))


def _frequencies(batches: Iterator[pa.RecordBatch], size: int) -> dict[str, Floats]:
    """Count the examples that hold each fragment; the kernel of a sum over partitions."""
    total = np.zeros(size)
    for batch in batches:
        vectors = batch["ids"]
        copies = np.repeat(
            batch[COPIES].to_numpy(zero_copy_only=False),
            vectors.value_lengths().to_numpy(zero_copy_only=False),
        )
        total += np.bincount(vectors.flatten().to_numpy(zero_copy_only=False), copies, size)
    return {"documents": total}


class _Linear(NamedTuple):
    """The linear machines of all classes."""

    weights: csr_array
    bias: Floats
    calibration: Calibration


def _liblinear(
    vectors: DataFrame, classes: Sequence[str], space: Space, members: csr_array, seed: int
) -> _Linear:
    """Train each machine in a task of its own, which holds the vectors over its fragments."""
    count = members.shape[0]
    machines = vectors.sparkSession.range(count).select(F.col("id").cast("int").alias("machine"))
    # The space itself would travel with its dictionary.
    kernel = partial(
        _train_group, classes=tuple(classes), sizes=space.sizes, members=members,
        settings=space.settings, seed=seed,
    )  # fmt: skip
    found = splits.map_groups(
        vectors.crossJoin(F.broadcast(machines)), ["machine"], kernel, _LINEAR, count
    ).toArrow()
    table = found.sort_by("machine").combine_chunks()
    rows = [read_sparse(batch, space.size) for batch in table.to_batches()]
    calibration = Calibration(table["slope"].to_numpy(), table["offset"].to_numpy())
    return _Linear(csr_array(vstack(rows, format="csr")), table["bias"].to_numpy(), calibration)


def _train_group(
    key: tuple[Any, ...],
    rows: pa.Table,
    classes: tuple[str, ...],
    sizes: Sequence[int],
    members: csr_array,
    settings: LearnerSettings,
    seed: int,
) -> pa.RecordBatch:
    """Train the linear machine of one class; the kernel of ESL."""
    (machine,) = key
    (batch,) = rows.sort_by("example_id").combine_chunks().to_batches()
    own = members[[machine]].indices
    matrix = machine_vectors(read_sparse(batch, members.shape[1]), own, sizes, settings)
    positive = pc.equal(batch["target"], classes[machine]).to_numpy(zero_copy_only=False)
    copies = batch[COPIES].to_numpy(zero_copy_only=False)
    trained = train_linear(matrix, positive, copies, settings, seed)
    row = {
        "machine": machine,
        "ids": own,
        "values": trained.weights[own],
        "bias": trained.bias,
        "slope": trained.slope,
        "offset": trained.offset,
        "converged": trained.converged,
    }
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_LINEAR))


def _mllib(
    vectors: DataFrame, classes: Sequence[str], space: Space, members: csr_array, seed: int
) -> _Linear:
    """Train each machine by Spark's LinearSVC, which keeps the vectors where they are."""
    settings, size = space.settings, space.size
    sizes = vectors.groupBy("target").agg(F.sum(COPIES).alias(COPIES)).collect()
    counts = np.array([row[COPIES] for row in sizes])
    svc = LinearSVC(
        weightCol="weight", regParam=1.0 / (settings.linear_cost * counts.sum()),
        maxIter=settings.linear_max_iter, standardization=False,
    )  # fmt: skip
    to_vector = F.udf(lambda ids, values: Vectors.sparse(size, ids, values), VectorUDT())
    weights, bias = [], []
    for machine in range(members.shape[0]):
        own = members[[machine]].indices
        kernel = partial(_unit_vectors, own=own, sizes=space.sizes, size=size, settings=settings)
        units = splits.map_partitions(vectors, kernel, _VECTORS)
        positive = np.array([row["target"] == classes[machine] for row in sizes])
        factors = class_weights(np.where(positive, 1.0, -1.0), counts, settings.class_weight)
        of_class = dict(zip((row["target"] for row in sizes), factors.tolist(), strict=True))
        factor = F.create_map(*[F.lit(x) for item in of_class.items() for x in item])
        rows = units.select(
            (F.col("target") == classes[machine]).cast("double").alias("label"),
            (F.col(COPIES) * factor[F.col("target")]).alias("weight"),
            to_vector("ids", "values").alias("features"),
        ).persist()
        try:
            model = svc.fit(rows)
        finally:
            rows.unpersist()
        values = model.coefficients.toArray()[own]
        weights.append(csr_array((values, own, [0, len(own)]), shape=(1, size)))
        bias.append(model.intercept)
    nothing = np.full(len(bias), np.nan)
    return _Linear(
        csr_array(vstack(weights, format="csr")), np.array(bias), Calibration(nothing, nothing)
    )


def _unit_vectors(
    batch: pa.RecordBatch, own: AnyArray, sizes: Sequence[int], size: int, settings: LearnerSettings
) -> pa.RecordBatch:
    """Write vectors over a machine's own fragments; a kernel."""
    matrix = machine_vectors(read_sparse(batch, size), own, sizes, settings)
    columns = {
        **{name: batch[name] for name in ("example_id", "target", COPIES)},
        **sparse_columns(matrix),
    }
    return pa.RecordBatch.from_pydict(columns, schema=splits.schema_of(_VECTORS))
