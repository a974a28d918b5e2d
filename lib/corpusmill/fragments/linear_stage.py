"""Linear machines on the vectors of a DataFrame's examples (ESL of the paper)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.ml.classification import LinearSVC
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from scipy.sparse import csr_array

from corpusmill import splits
from corpusmill.corpora.schemas import DOUBLES, INTS
from corpusmill.fragments.batches import read_sparse, sparse_columns
from corpusmill.fragments.corpus import COPIES
from corpusmill.fragments.learning import class_weights
from corpusmill.fragments.linear import LinearMachine, train_linear
from corpusmill.fragments.model import machine_vectors
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.types import AnyArray

VECTORS = T.StructType(
    [
        T.StructField("example_id", T.StringType()),
        T.StructField("target", T.StringType()),
        T.StructField(COPIES, T.DoubleType()),
        T.StructField("ids", INTS),
        T.StructField("values", DOUBLES),
    ]
)
"""A distinct example as a vector over the space of all fragments."""
_OWN = T.StructType([T.StructField("machine", T.IntegerType()), *VECTORS])
_TRAINED = T.StructType(
    [
        T.StructField("machine", T.IntegerType()),
        T.StructField("weights", DOUBLES),
        T.StructField("bias", T.DoubleType()),
        T.StructField("slope", T.DoubleType()),
        T.StructField("offset", T.DoubleType()),
        T.StructField("converged", T.BooleanType()),
    ]
)


class Task(NamedTuple):
    """What the machines are trained for, and on.

    Attributes
    ----------
    classes : tuple of str
        Machine m tells class m from all others.
    members : csr_array, shape (machines, columns)
        Whose columns are stored are the machine's own.
    sizes : list of int
        Fragments by tree slot.
    settings : LearnerSettings
    seed : int
    """

    classes: tuple[str, ...]
    members: csr_array
    sizes: list[int]
    settings: LearnerSettings
    seed: int

    def own(self, machine: int) -> AnyArray:
        """Give a machine's own columns."""
        begin, end = self.members.indptr[machine : machine + 2]
        return self.members.indices[begin:end]


def train_machines_in_spark(vectors: DataFrame, task: Task) -> list[LinearMachine]:
    """Train a linear machine a class on vectors of `VECTORS`, weights over its own columns."""
    own = splits.map_partitions(vectors, partial(_own_vectors, task=task), _OWN)
    if task.settings.linear_solver == "liblinear":
        return _by_liblinear(own, task)
    own.persist()
    try:
        return [_by_mllib(own, machine, task) for machine in range(task.members.shape[0])]
    finally:
        own.unpersist()


def _own_vectors(batch: pa.RecordBatch, task: Task) -> pa.RecordBatch:
    """Write each vector once for each machine, over its own columns; a kernel."""
    matrix = read_sparse(batch, task.members.shape[1])
    batches = []
    for machine in range(task.members.shape[0]):
        units = machine_vectors(matrix, task.own(machine), task.sizes, task.settings)
        columns = {
            "machine": pa.array(np.full(batch.num_rows, machine, np.int32)),
            **{name: batch[name] for name in ("example_id", "target", COPIES)},
            **sparse_columns(units),
        }
        batches.append(pa.RecordBatch.from_pydict(columns, schema=splits.schema_of(_OWN)))
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _by_liblinear(own: DataFrame, task: Task) -> list[LinearMachine]:
    """Train each machine in a task of its own, which holds its vectors."""
    kernel = partial(_train_group, task=task)
    count = task.members.shape[0]
    found = splits.map_groups(own, "machine", kernel, _TRAINED, count).toArrow()
    return [
        LinearMachine(
            np.array(row["weights"]), row["bias"], row["slope"], row["offset"], row["converged"]
        )
        for row in found.sort_by("machine").to_pylist()
    ]


def _train_group(machine: int, rows: pa.Table, task: Task) -> pa.RecordBatch:
    """Train one machine; the kernel of `_by_liblinear`."""
    (batch,) = rows.sort_by("example_id").combine_chunks().to_batches()
    matrix = read_sparse(batch, len(task.own(machine)))
    positive = pc.equal(batch["target"], task.classes[machine]).to_numpy(zero_copy_only=False)
    copies = batch[COPIES].to_numpy(zero_copy_only=False)
    trained = train_linear(matrix, positive, copies, task.settings, task.seed)
    row = {"machine": machine, **trained._asdict()}
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_TRAINED))


def _by_mllib(own: DataFrame, machine: int, task: Task) -> LinearMachine:
    """Train one machine by Spark's LinearSVC, which keeps the vectors where they are."""
    settings, name, size = task.settings, task.classes[machine], len(task.own(machine))
    mine = own.where(F.col("machine") == machine)
    is_class = (F.col("target") == name).cast("double")
    sums = mine.agg(F.sum(COPIES).alias("all"), F.sum(is_class * F.col(COPIES)).alias("own"))
    total, positive = sums.collect()[0]
    signs, counts = np.array([1.0, -1.0]), np.array([positive, total - positive])
    ours, others = class_weights(signs, counts, settings.class_weight).tolist()
    # A vector of no column is none to Spark.
    width = max(size, 1)
    to_vector = F.udf(lambda ids, values: Vectors.sparse(width, ids, values), VectorUDT())
    svc = LinearSVC(
        weightCol="weight", regParam=1.0 / (settings.linear_cost * total),
        maxIter=settings.linear_max_iter, standardization=False,
    )  # fmt: skip
    rows = mine.select(
        is_class.alias("label"),
        (F.col(COPIES) * F.when(is_class == 1.0, ours).otherwise(others)).alias("weight"),
        to_vector("ids", "values").alias("features"),
    ).persist()
    try:
        model = svc.fit(rows)
        iterations = model.summary().totalIterations
    finally:
        rows.unpersist()
    weights = np.asarray(model.coefficients.toArray()[:size])
    converged = iterations < settings.linear_max_iter
    return LinearMachine(weights, float(model.intercept), np.nan, np.nan, converged)
