"""The one place where numpy kernels meet Spark: split, run a kernel, merge.

Every exchange is Arrow in and Arrow out. What a kernel needs beside its rows (a
model, a vocabulary) travels in its closure, which Spark broadcasts when it is
large; a kernel must therefore be a plain function over plain values and never a
bound method. Numba kernels belong at module level, where a reused worker keeps
the compiled code.

| need | function |
| --- | --- |
| rows to other rows | `map_partitions`, or `expand_partitions` where they are many |
| rows to the same rows with more columns, broken ones told apart | `append_columns` |
| groups of rows to other rows | `map_groups` |
| rows to one sum of arrays | `sum_arrays` |
| all tasks at once, knowing each other | `barrier_map` |
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import BarrierTaskContext, TaskContext
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_schema

from corpusmill.errors import SchemaError, UsageError
from corpusmill.types import AnyArray, Floats

GroupKernel = Callable[[int, pa.Table], pa.RecordBatch]
BatchKernel = Callable[[pa.RecordBatch], pa.RecordBatch]
ExpandKernel = Callable[[pa.RecordBatch], Iterator[pa.RecordBatch]]
SumKernel = Callable[[Iterator[pa.RecordBatch]], Mapping[str, AnyArray]]

ERROR = "error"
_NEW = "__corpusmill_new"
CHUNK_BYTES = 4 << 20
DIRECT_PARTITIONS = 8
DIRECT_BYTES = 64 << 20

_PARTIAL = T.StructType(
    [
        T.StructField("name", T.StringType(), nullable=False),
        T.StructField("chunk", T.IntegerType(), nullable=False),
        T.StructField("part", T.IntegerType(), nullable=False),
        T.StructField("data", T.BinaryType(), nullable=False),
    ]
)


class Peers(NamedTuple):
    """What a task of a barrier stage knows of the others.

    Attributes
    ----------
    rank : int
        This task's number, 0 to ``len(addresses) - 1``.
    addresses : list of str
        ``host:port`` of the executor of each task, by rank.
    all_gather : callable
        ``all_gather(message)`` waits for all tasks and returns their messages by rank.
    barrier : callable
        ``barrier()`` waits for all tasks.
    """

    rank: int
    addresses: list[str]
    all_gather: Callable[[str], list[str]]
    barrier: Callable[[], None]


BarrierKernel = Callable[[Peers, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def map_partitions(df: DataFrame, kernel: BatchKernel, schema: T.StructType) -> DataFrame:
    """Run a kernel over every Arrow batch of every partition.

    Parameters
    ----------
    df
        The rows; select the columns that the kernel needs before.
    kernel
        From a batch to a batch, of any number of rows. Its columns are matched by name and
        cast, without loss, to ``schema``. It is not called for an empty partition.
    schema
        The columns of the result.

    Returns
    -------
    DataFrame
        As many partitions as ``df``. An exception in the kernel ends the job.
    """

    def run(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        yield kernel(batch)

    return expand_partitions(df, run, schema)


def expand_partitions(df: DataFrame, kernel: ExpandKernel, schema: T.StructType) -> DataFrame:
    """Run a kernel that gives any number of batches for each, as `map_partitions` does for one.

    What a row grows into need not be in memory at once.
    """
    arrow = _arrow_schema(df.sparkSession, schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for new in kernel(batch):
                yield _conform(new, arrow)

    return df.mapInArrow(run, schema)


def append_columns(
    df: DataFrame,
    columns: Sequence[Column],
    kernel: BatchKernel,
    schema: T.StructType,
    names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Append columns to every row; a row that breaks the kernel is marked and kept.

    Only ``columns`` travel to the kernel; all others stay where they are. When the kernel
    raises on a batch, the batch is halved until the broken rows stand alone, which costs
    O(b log n) further calls for b broken rows among n.

    Parameters
    ----------
    df
        The rows.
    columns
        What the kernel reads, with aliases.
    kernel
        From a batch of ``columns`` to the new columns, one row for each row in order.
    schema
        The new columns.
    names
        What they, and ``error``, are called in the result, where not as in ``schema``.

    Returns
    -------
    DataFrame
        The columns of ``df``, those of ``schema`` (all nullable) and the string column
        ``error``: null, or the exception's name and text where the new columns are null.

    Raises
    ------
    SchemaError
        DATA06: a new column bears the name of one that is there.
    """
    added = marked_schema(schema)
    called = {name: (names or {}).get(name, name) for name in added.names}
    for name in called.values():
        if name in df.columns:
            raise SchemaError("DATA06", column=name)
    arrow = _arrow_schema(df.sparkSession, added)

    def run(rows: pa.Array) -> pa.Array:
        return marked(kernel, pa.RecordBatch.from_struct_array(rows), arrow).to_struct_array()

    udf = arrow_udf(run, added)  # type: ignore[call-overload]
    both = udf(F.struct(*columns))
    rows = df.withColumn(_NEW, both)
    new = [F.col(_NEW)[name].alias(called[name]) for name in added.names]
    return rows.select(*[F.col(f"`{name}`") for name in df.columns], *new)


def marked_schema(schema: T.StructType) -> T.StructType:
    """Give the columns that `append_columns` appends: those of a schema, nullable, and `ERROR`."""
    fields = [T.StructField(field.name, field.dataType) for field in schema]
    return T.StructType([*fields, T.StructField(ERROR, T.StringType())])


def marked(kernel: BatchKernel, batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Run a kernel on a batch as `append_columns` does.

    Parameters
    ----------
    kernel
        One row for each row in order.
    batch
        What it reads.
    schema
        Arrow's form of `marked_schema` of the kernel's columns.

    Returns
    -------
    pa.RecordBatch
        Of `schema`, as many rows as `batch`.
    """
    return pa.concat_batches([new for _, new in _isolate(kernel, batch, schema)])


def map_groups(
    df: DataFrame, group: str, kernel: GroupKernel, schema: T.StructType, groups: int
) -> DataFrame:
    """Run a kernel on every group of rows, each in a task of its own.

    Parameters
    ----------
    df
        The rows. A group has to fit into a worker's memory.
    group
        The int column that says which group a row belongs to, from 0 to ``groups`` - 1.
    kernel
        From a group's number and its rows to a batch of ``schema``; not called for no rows.
    schema
        The columns of the result.
    groups
        How many groups there are.
    """
    arrow = _arrow_schema(df.sparkSession, schema)

    def run(key: tuple[pa.Scalar, ...], rows: pa.Table) -> pa.Table:
        new = kernel(key[0].as_py(), rows.combine_chunks())
        return pa.Table.from_batches([_conform(new, arrow)], arrow)

    # By its number, not by a hash of it: of two hashed groups both may fall into one task.
    placed = df.repartitionById(groups, F.col(group))
    return placed.groupBy(group).applyInArrow(run, schema)


def sum_arrays(
    df: DataFrame, kernel: SumKernel, partitions: int | None = None
) -> dict[str, Floats]:
    """Sum named arrays over the partitions: ``sums[k] = sum over p of kernel(p)[k]``.

    The order of summation is fixed by the partitions' numbers (groups of
    max(8, sqrt(partitions)) neighbours, then the groups), so that the same
    partitioning gives the same bits. Few partitions with small arrays are added on
    the driver; otherwise the groups are added on the executors, array by array in
    pieces of 4 MiB, and the driver receives one sum.

    Parameters
    ----------
    df
        The rows; cache them when this is called in a loop.
    kernel
        From the batches of a partition to arrays by name. Without a batch it returns zeros
        of the same shapes; it is called so once on the driver, and for every empty partition.
    partitions
        The number of partitions of ``df`` if known, which spares a small job.

    Returns
    -------
    dict of str to Floats
        The sums, float64, in the kernel's shapes.

    Raises
    ------
    ValueError
        The kernel's names or shapes differ between partitions.
    """
    zeros = {name: np.asarray(array, np.float64) for name, array in kernel(iter(())).items()}
    shapes = {name: array.shape for name, array in zeros.items()}
    arrow = _arrow_schema(df.sparkSession, _PARTIAL)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        arrays = kernel(batches)
        found = {name: np.shape(array) for name, array in arrays.items()}
        if found != shapes:
            raise ValueError(f"the kernel gave {found}; for no rows it gave {shapes}")
        for name, array in arrays.items():
            yield from _chunks(name, array, arrow)

    rows = df.mapInArrow(run, _PARTIAL)
    parts = count_partitions(df) if partitions is None else partitions
    fan_in = max(DIRECT_PARTITIONS, math.isqrt(max(parts - 1, 0)) + 1)
    total_bytes = sum(array.nbytes for array in zeros.values())
    if parts > DIRECT_PARTITIONS or parts * total_bytes > DIRECT_BYTES:
        while parts > 1:
            rows = _add_groups(rows, fan_in, parts, total_bytes)
            parts = -(-parts // fan_in)
    return _collect_sums(rows, zeros)


def count_partitions(df: DataFrame) -> int:
    """Return the number of partitions, empty ones too, by a job that brings no row to a worker.

    It goes through all rows, so cache them before.
    """
    one = _arrow_schema(df.sparkSession, T.StructType([T.StructField("one", T.IntegerType())]))

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # A worker that leaves its rows unread is thrown away, and the next one imports all again.
        for _ in batches:
            pass
        yield pa.RecordBatch.from_arrays([pa.array([1], pa.int32())], schema=one)

    # Always false, which the optimizer cannot know: it would leave no partition.
    no_rows = df.where(F.spark_partition_id() < 0)
    return no_rows.mapInArrow(run, "one int").count()


def barrier_map(
    df: DataFrame, key: str, kernel: BarrierKernel, schema: T.StructType, tasks: int
) -> DataFrame:
    """Run a kernel in ``tasks`` tasks that start together and know each other.

    The stage ends in a shuffle, so that Spark runs it again (as a whole) when a task
    dies; a barrier stage that is collected directly would fail for good.

    Parameters
    ----------
    df
        The rows; a task may get none.
    key
        The column by whose hash rows are spread over the tasks, always in the same way.
    kernel
        From the task's peers and batches to batches of ``schema``. It may run several times.
    schema
        The columns of the result.
    tasks
        The number of tasks, at most the cluster's slots.

    Returns
    -------
    DataFrame
        One partition with all rows, in no particular order.

    Raises
    ------
    UsageError
        There are fewer slots than tasks. Where the slots cannot be told beforehand (a cluster
        that gives no fixed number), Spark itself looks every
        ``spark.scheduler.barrier.maxConcurrentTasksCheck.interval`` (here 5 s), up to
        ``...maxFailures`` (here 3) times, before it fails the job.
    """
    slots, master = slots_of(df.sparkSession)
    if slots is not None and tasks > slots:
        raise UsageError("SPARK04", tasks=tasks, slots=slots, master=master)
    arrow = _arrow_schema(df.sparkSession, schema)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = BarrierTaskContext.get()
        peers = Peers(
            context.partitionId(),
            [info.address for info in context.getTaskInfos()],
            context.allGather,
            context.barrier,
        )
        for batch in kernel(peers, batches):
            yield _conform(batch, arrow)

    spread = df.repartition(tasks, F.col(key))
    return spread.mapInArrow(run, schema, barrier=True).repartition(1)


def arrow_schema(df: DataFrame) -> pa.Schema:
    """Return the schema of the batches that a kernel gets of ``df``."""
    return _arrow_schema(df.sparkSession, df.schema)


def schema_of(schema: T.StructType) -> pa.Schema:
    """Return Arrow's form of a schema without timestamps, for kernels that build rows."""
    return to_arrow_schema(schema, timezone="UTC")


def _arrow_schema(spark: SparkSession, schema: T.StructType) -> pa.Schema:
    large = spark.conf.get("spark.sql.execution.arrow.useLargeVarTypes") == "true"
    zone = spark.conf.get("spark.sql.session.timeZone")
    return to_arrow_schema(schema, timezone=zone, prefers_large_types=large)


def _conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Order and cast the columns of a kernel's result as its schema says."""
    missing = set(schema.names) - set(batch.schema.names)
    if missing or batch.num_columns != len(schema):
        raise ValueError(f"the kernel gave columns {batch.schema.names}, not {schema.names}")
    columns = [batch.column(field.name).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _isolate(
    kernel: BatchKernel, batch: pa.RecordBatch, schema: pa.Schema
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Yield parts of a batch, in order, each with its new columns (`schema`, error last)."""
    wanted = pa.schema(list(schema)[:-1])
    waiting = [batch]
    while waiting:
        part = waiting.pop()
        rows = part.num_rows
        try:
            new = _conform(kernel(part), wanted)
        except MemoryError:
            raise
        except Exception as error:
            if rows > 1:
                # Copied, because kernels may rely on lists that start at offset zero.
                order = pa.array(np.arange(rows, dtype=np.int64))
                waiting.extend((part.take(order[rows // 2 :]), part.take(order[: rows // 2])))
                continue
            columns = [pa.nulls(rows, field.type) for field in wanted]
            reason = f"{type(error).__name__}: {error}"
        else:
            if new.num_rows != rows:
                raise ValueError(f"the kernel gave {new.num_rows} rows for {rows}")
            columns, reason = new.columns, ""
        errors = pa.array([reason or None] * rows, schema[-1].type)
        yield part, pa.RecordBatch.from_arrays([*columns, errors], schema=schema)


def _chunks(name: str, array: AnyArray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    flat = np.ascontiguousarray(array, "<f8").reshape(-1)
    step = CHUNK_BYTES // flat.itemsize
    part = TaskContext.get().partitionId()  # type: ignore[union-attr]
    for chunk, begin in enumerate(range(0, flat.size, step)):
        yield _partial(name, chunk, part, flat[begin : begin + step], schema)


def _partial(name: str, chunk: int, part: int, data: AnyArray, schema: pa.Schema) -> pa.RecordBatch:
    row = ([name], [chunk], [part], [data.tobytes()])
    columns = [pa.array(value, field.type) for value, field in zip(row, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _add_groups(rows: DataFrame, fan_in: int, parts: int, total_bytes: int) -> DataFrame:
    """Add each ``fan_in`` neighbouring parts of every chunk: one row a chunk and group."""
    arrow = _arrow_schema(rows.sparkSession, _PARTIAL)
    groups = -(-parts // fan_in) * (1 + total_bytes // CHUNK_BYTES)
    tasks = min(groups, int(rows.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1))
    group = F.floor(F.col("part") / fan_in).cast("int")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key: tuple[str, int, int] | None = None
        total = np.zeros(0)
        for batch in batches:
            for name, chunk, part, data in zip(*batch.columns, strict=True):
                found = (name.as_py(), chunk.as_py(), part.as_py() // fan_in)
                values = np.frombuffer(data.as_buffer(), "<f8")
                if found == key:
                    total += values
                    continue
                if key is not None:
                    yield _partial(*key, total, arrow)
                key, total = found, values.copy()
        if key is not None:
            yield _partial(*key, total, arrow)

    # A sort, not a grouped map: it streams one chunk at a time in the order of the parts.
    ordered = rows.repartition(tasks, "name", "chunk", group).sortWithinPartitions(
        "name", "chunk", "part"
    )
    return ordered.mapInArrow(run, _PARTIAL)


def _collect_sums(rows: DataFrame, zeros: dict[str, Floats]) -> dict[str, Floats]:
    table = rows.toArrow()
    order = pc.sort_indices(table, sort_keys=[("part", "ascending")])
    sums = {name: np.zeros(array.size) for name, array in zeros.items()}
    step = CHUNK_BYTES // 8
    for index in order.to_pylist():
        begin = table["chunk"][index].as_py() * step
        values = np.frombuffer(table["data"][index].as_buffer(), "<f8")
        sums[table["name"][index].as_py()][begin : begin + values.size] += values
    return {name: flat.reshape(zeros[name].shape) for name, flat in sums.items()}


def slots_of(spark: SparkSession) -> tuple[int | None, str]:
    """Return how many tasks run at once, None where the conf does not say, and the master."""

    def read(key: str, default: str) -> str:
        return str(spark.conf.get(key, default))

    master = read("spark.master", "")
    per_task = int(read("spark.task.cpus", "1"))
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?", master)
    cluster = re.fullmatch(r"local-cluster\[(\d+),\s*(\d+),\s*\d+\]", master)
    if local:
        cores: Any = local[1] or "1"
        return (os.cpu_count() or 1 if cores == "*" else int(cores)) // per_task, master
    if cluster:
        return int(cluster[1]) * (int(cluster[2]) // per_task), master
    instances = int(read("spark.executor.instances", "0"))
    executor_cores = int(read("spark.executor.cores", "0"))
    if instances and executor_cores:
        return instances * (executor_cores // per_task), master
    return None, master
