"""Fragments as a pyspark.ml estimator, and its stages over the rows of a DataFrame.

| stage (the paper's name) | split | kernel | merge |
| --- | --- | --- | --- |
| vocabulary | partitions | distinct productions | union |
| learn and mine (KSL, FMI) | S splits | SST machines, greedy mining | union, or a cascade before |
| vectors (TFX) | partitions | the dictionary's fragments of a tree | none |
| linear machines (ESL) | classes | liblinear, or Spark's LinearSVC over partitions | none |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.classification import LinearSVC
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasSeed
from pyspark.sql import Column, DataFrame, Window
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
from corpusmill.fragments.model import Calibration, FragmentsModel, Space
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.ml import Saved, checked_columns, settings_defaults, settings_of, with_settings
from corpusmill.types import AnyArray, Floats, Forest

MAX_CLASSES = 1_000
COPIES = "copies"
_TREE_COLUMNS = ["node_labels", "node_arities", "tree_offsets", "vector_ids", "vector_values"]

OUTPUTS = T.StructType(
    [
        T.StructField("prediction", T.StringType()),
        T.StructField("scores", DOUBLES),
        T.StructField("probability", DOUBLES),
    ]
)
"""The columns of `FragmentsModel.predict_batch`."""

_PRODUCTIONS = T.StructType([T.StructField("production", STRINGS)])
_SUPPORT = T.StructType(
    [*TREES, T.StructField(COPIES, T.DoubleType()), T.StructField("split", T.IntegerType())]
)
_MINED = T.StructType([T.StructField("slot", T.IntegerType()), T.StructField("moves", INTS)])
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
    space = Space(
        corpus.vocabulary,
        mine_fragments(rows, corpus, settings, seed),
        corpus.vector_size,
        settings,
    )
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
        machines = train(vectors, corpus.classes, space.size, settings, seed)
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


def mine_fragments(
    rows: DataFrame, corpus: Corpus, settings: LearnerSettings, seed: int
) -> tuple[Fragments, ...]:
    """Learn and mine every split, and unite what was found, by tree slot."""
    parts = assign_splits(rows, settings, seed).withColumn(COPIES, F.lit(1.0))
    count = settings.splits
    if settings.merge == "cascade":
        parts, count = _cascade(parts, corpus, settings), 1
    kernel = partial(_mine_group, corpus=corpus, settings=settings)
    mined = splits.map_groups(parts, ["split"], kernel, _MINED, count)
    found = mined.distinct().toArrow().combine_chunks()
    return tuple(_united(found, slot) for slot in range(corpus.slots))


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
    slots, columns = [], []
    for by_slot in found:
        for slot, fragments in enumerate(by_slot):
            offsets = pa.array((3 * fragments.offsets).astype(np.int32))
            columns.append(pa.ListArray.from_arrays(offsets, pa.array(fragments.moves)))
            slots.append(np.full(len(fragments.weights), slot, np.int32))
    return pa.RecordBatch.from_arrays(
        [pa.array(np.concatenate(slots)), pa.concat_arrays(columns)],
        schema=splits.schema_of(_MINED),
    )


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


def _united(found: pa.Table, slot: int) -> Fragments:
    """Give the distinct fragments of a slot, in an order that depends on nothing else."""
    moves = found["moves"].combine_chunks().filter(pc.equal(found["slot"].combine_chunks(), slot))
    lengths = moves.value_lengths().to_numpy(zero_copy_only=False) // 3
    offsets = np.zeros(len(moves) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    flat = moves.flatten().to_numpy(zero_copy_only=False).reshape(-1, 3)
    order = _spelling_order(offsets, flat)
    sizes = lengths[order]
    sorted_offsets = np.zeros(len(moves) + 1, np.int64)
    np.cumsum(sizes, out=sorted_offsets[1:])
    places = np.repeat(offsets[order] - sorted_offsets[:-1], sizes) + np.arange(offsets[-1])
    return Fragments(
        sorted_offsets, flat[places].reshape(-1).astype(np.int32), np.zeros(len(moves))
    )


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


def _frequencies(batches: Any, size: int) -> dict[str, Floats]:
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
    vectors: DataFrame, classes: Sequence[str], size: int, settings: LearnerSettings, seed: int
) -> _Linear:
    """Train each machine in a task of its own, which holds all vectors."""
    count = machine_classes(len(classes))
    machines = vectors.sparkSession.range(count).select(F.col("id").cast("int").alias("machine"))
    kernel = partial(_train_group, classes=tuple(classes), size=size, settings=settings, seed=seed)
    found = splits.map_groups(
        vectors.crossJoin(F.broadcast(machines)), ["machine"], kernel, _LINEAR, count
    ).toArrow()
    table = found.sort_by("machine").combine_chunks()
    rows = [read_sparse(batch, size) for batch in table.to_batches()]
    calibration = Calibration(table["slope"].to_numpy(), table["offset"].to_numpy())
    return _Linear(csr_array(vstack(rows, format="csr")), table["bias"].to_numpy(), calibration)


def _train_group(
    key: tuple[Any, ...],
    rows: pa.Table,
    classes: tuple[str, ...],
    size: int,
    settings: LearnerSettings,
    seed: int,
) -> pa.RecordBatch:
    """Train the linear machine of one class; the kernel of ESL."""
    (machine,) = key
    (batch,) = rows.sort_by("example_id").combine_chunks().to_batches()
    matrix = read_sparse(batch, size)
    positive = pc.equal(batch["target"], classes[machine]).to_numpy(zero_copy_only=False)
    copies = batch[COPIES].to_numpy(zero_copy_only=False)
    trained = train_linear(matrix, positive, copies, settings, seed)
    used = np.flatnonzero(trained.weights)
    row = {
        "machine": machine,
        "ids": used,
        "values": trained.weights[used],
        "bias": trained.bias,
        "slope": trained.slope,
        "offset": trained.offset,
        "converged": trained.converged,
    }
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_LINEAR))


def _mllib(
    vectors: DataFrame, classes: Sequence[str], size: int, settings: LearnerSettings, seed: int
) -> _Linear:
    """Train each machine by Spark's LinearSVC, which keeps the vectors where they are."""
    to_vector = F.udf(lambda ids, values: Vectors.sparse(size, ids, values), VectorUDT())
    sizes = vectors.groupBy("target").agg(F.sum(COPIES).alias(COPIES)).collect()
    counts = np.array([row[COPIES] for row in sizes])
    rows = vectors.select("target", COPIES, to_vector("ids", "values").alias("features")).persist()
    svc = LinearSVC(
        weightCol="weight", regParam=1.0 / (settings.linear_cost * counts.sum()),
        maxIter=settings.linear_max_iter, standardization=False,
    )  # fmt: skip
    weights, bias = [], []
    try:
        for name in classes[: machine_classes(len(classes))]:
            positive = np.array([row["target"] == name for row in sizes])
            factors = class_weights(np.where(positive, 1.0, -1.0), counts, settings.class_weight)
            is_class = F.col("target") == name
            factor = F.when(is_class, float(factors[positive].mean())).otherwise(
                float(factors[~positive].mean())
            )
            labelled = rows.withColumn("label", is_class.cast("double"))
            model = svc.fit(labelled.withColumn("weight", F.col(COPIES) * factor))
            weights.append(csr_array(model.coefficients.toArray()[None, :]))
            bias.append(model.intercept)
    finally:
        rows.unpersist()
    nothing = np.full(len(bias), np.nan)
    return _Linear(
        csr_array(vstack(weights, format="csr")), np.array(bias), Calibration(nothing, nothing)
    )


def _column(name: str, doc: str) -> Param[str]:
    return Param(Params._dummy(), name, doc, TypeConverters.toString)


@with_settings(LearnerSettings)
class FragmentsParams(HasSeed):
    """Params of the estimator and its model; the learner's are those of `LearnerSettings`."""

    exampleIdCol = _column("exampleIdCol", "the example's name, for splits and messages")
    targetCol = _column("targetCol", "its class, null where not known")
    nodeLabelsCol = _column("nodeLabelsCol", "the labels of its trees' nodes in preorder")
    nodeAritiesCol = _column("nodeAritiesCol", "the nodes' numbers of children")
    treeOffsetsCol = _column("treeOffsetsCol", "where each tree begins and ends")
    vectorIdsCol = _column("vectorIdsCol", "the feature vector's columns; may be missing")
    vectorValuesCol = _column("vectorValuesCol", "their values; may be missing")
    predictionCol = _column("predictionCol", "output: the predicted class")
    scoresCol = _column("scoresCol", "output: f, a number a class")
    probabilityCol = _column("probabilityCol", "output: p, a number a class, if calibrated")
    errorCol = _column("errorCol", "output: why a row could not be predicted, else null")

    def _set_all_defaults(self) -> None:
        names = {
            f"{camel}Col": name
            for camel, name in [
                ("exampleId", "example_id"),
                ("target", "target"),
                ("nodeLabels", "node_labels"),
                ("nodeArities", "node_arities"),
                ("treeOffsets", "tree_offsets"),
                ("vectorIds", "vector_ids"),
                ("vectorValues", "vector_values"),
                ("prediction", "prediction"),
                ("scores", "scores"),
                ("probability", "probability"),
                ("error", "fragments_error"),
            ]
        }
        self._setDefault(seed=13, **names, **settings_defaults(LearnerSettings))

    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return settings_of(self, LearnerSettings)

    def _inputs(self, df: DataFrame, optional: frozenset[str]) -> list[Column]:
        columns = {
            "example_id": self.getOrDefault(self.exampleIdCol),
            "target": self.getOrDefault(self.targetCol),
            "node_labels": self.getOrDefault(self.nodeLabelsCol),
            "node_arities": self.getOrDefault(self.nodeAritiesCol),
            "tree_offsets": self.getOrDefault(self.treeOffsetsCol),
            "vector_ids": self.getOrDefault(self.vectorIdsCol),
            "vector_values": self.getOrDefault(self.vectorValuesCol),
        }
        found = checked_columns(df, columns, TREES, optional | {"vector_ids", "vector_values"})
        nothing = {"vector_ids": F.array().cast(INTS), "vector_values": F.array().cast(DOUBLES)}
        names = [field.name for field in TREES]
        return [
            F.coalesce(column, nothing[name]).alias(name) if name in nothing else column
            for name, column in zip(names, found, strict=True)
        ]


class FragmentClassifier(Estimator["FragmentClassifierModel"], FragmentsParams, Saved):
    """Trees to classes by mined fragments of the SST kernel and linear machines.

    The input columns are those of `corpusmill.corpora.schemas.TREES`, under any names.

    Parameters
    ----------
    **kwargs
        Any Param. ``classes`` are by default those found in ``targetCol``, sorted; of two, the
        first is the positive one.

    Examples
    --------
    >>> classifier = FragmentClassifier(limit=10_000, maxexp=2)
    >>> classifier.getOrDefault("maxexp")
    2
    """

    classes: Param[list[str]] = Param(
        Params._dummy(), "classes", "the classes in order", TypeConverters.toListString
    )

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._set_all_defaults()
        self._setDefault(classes=[])
        self._set(**kwargs)

    def _fit(self, dataset: DataFrame) -> FragmentClassifierModel:
        rows = dataset.select(*self._inputs(dataset, frozenset({"target"}))).persist()
        try:
            seed, classes = self.getOrDefault(self.seed), self.getOrDefault("classes")
            trained = fit_trees(rows, self.settings(), seed, classes)
        finally:
            rows.unpersist()
        fitted = FragmentClassifierModel(trained)
        for param in FragmentsParams().params:
            if self.isSet(param.name):
                fitted._set(**{param.name: self.getOrDefault(param.name)})
        return fitted._resetUid(self.uid)


class FragmentClassifierModel(Model, FragmentsParams, Saved):
    """Trained fragments; ``transform`` keeps all columns and appends the outputs.

    Parameters
    ----------
    model : FragmentsModel
        The model on arrays.
    """

    array_model = FragmentsModel

    def __init__(self, model: FragmentsModel) -> None:
        super().__init__()
        self._set_all_defaults()
        self.model = model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        kernel = partial(predict_rows, model=self.model)
        names = {
            "prediction": self.getOrDefault(self.predictionCol),
            "scores": self.getOrDefault(self.scoresCol),
            "probability": self.getOrDefault(self.probabilityCol),
            splits.ERROR: self.getOrDefault(self.errorCol),
        }
        inputs = self._inputs(dataset, frozenset({"example_id", "target"}))
        return splits.append_columns(dataset, inputs, kernel, OUTPUTS, names)


def predict_rows(batch: pa.RecordBatch, model: FragmentsModel) -> pa.RecordBatch:
    """Predict a batch; the kernel of ``transform``."""
    return model.predict_batch(batch)


class TargetEvaluator(Evaluator):
    """Accuracy of predicted classes, for `pyspark.ml.tuning.CrossValidator`.

    The share of rows with a target whose prediction equals it; a row without a prediction is
    wrong.

    Parameters
    ----------
    targetCol, predictionCol : str
    """

    targetCol = _column("targetCol", "the true class")
    predictionCol = _column("predictionCol", "the predicted class")

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._setDefault(targetCol="target", predictionCol="prediction")
        self._set(**kwargs)

    def _evaluate(self, dataset: DataFrame) -> float:
        target = F.col(f"`{self.getOrDefault(self.targetCol)}`")
        right = F.col(f"`{self.getOrDefault(self.predictionCol)}`").eqNullSafe(target)
        found = dataset.where(target.isNotNull()).agg(F.avg(right.cast("double")).alias("a"))
        accuracy = found.collect()[0]["a"]
        if accuracy is None:
            raise DataError("DATA03", source="the evaluated rows", hint="there is none")
        return float(accuracy)
