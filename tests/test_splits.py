"""Splits: kernels over Arrow batches, isolated broken rows, tree-reduced sums, barriers."""

from __future__ import annotations

import os
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.errors import SchemaError, UsageError

pytestmark = pytest.mark.spark

DOUBLED = T.StructType([T.StructField("double", T.LongType())])
GROUPED = T.StructType(
    [T.StructField("group", T.IntegerType()), T.StructField("rows", T.LongType())]
)
ROWS = 100


def numbers(spark, partitions, rows=ROWS):
    return spark.range(0, rows, 1, partitions)


def double(batch):
    return pa.record_batch({"double": pc.multiply(batch["id"], 2)})


def moments(batches):
    """A SumKernel of awkward numbers, so that a lost or doubled row shows."""
    total, count, matrix = np.zeros(3), np.zeros(()), np.zeros((2, 2))
    for batch in batches:
        x = np.sqrt(batch["id"].to_numpy().astype(float) + 0.1)
        total += [x.sum(), (x**2).sum(), (x**3).sum()]
        count += x.size
        matrix += np.outer([1.0, x.sum()], [1.0, x.sum()])
    return {"total": total, "count": count, "matrix": matrix}


def appended(df, kernel, schema):
    return splits.append_columns(df, [df.id], kernel, schema)


def expected_total(rows=ROWS):
    x = np.sqrt(np.arange(rows) + 0.1)
    return np.array([x.sum(), (x**2).sum(), (x**3).sum()])


# map_partitions


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_map_partitions_is_the_kernel_on_all_rows(spark, partitions):
    df = splits.map_partitions(numbers(spark, partitions), double, DOUBLED)
    assert sorted(row.double for row in df.collect()) == [2 * i for i in range(ROWS)]


def test_map_partitions_may_change_the_number_of_rows(spark):
    def repeat(batch):
        return pa.record_batch({"double": pa.array(np.repeat(batch["id"].to_numpy(), 3))})

    df = splits.map_partitions(numbers(spark, 3), repeat, DOUBLED)
    assert Counter(row.double for row in df.collect()) == dict.fromkeys(range(ROWS), 3)


def test_expand_partitions_takes_any_number_of_batches(spark):
    def expand(batch):
        for number in batch["id"].to_pylist():
            if number % 3:
                yield pa.record_batch({"double": [2 * number] * number})

    df = splits.expand_partitions(numbers(spark, 3, rows=10), expand, DOUBLED)
    expected = Counter({2 * i: i for i in range(10) if i % 3})
    assert Counter(row.double for row in df.collect()) == expected


def test_more_partitions_than_rows_and_no_rows(spark):
    assert splits.map_partitions(numbers(spark, 7, rows=2), double, DOUBLED).count() == 2
    assert splits.map_partitions(numbers(spark, 3).filter("id < 0"), double, DOUBLED).count() == 0


def test_results_are_cast_and_ordered_by_the_schema(spark):
    schema = T.StructType(
        [T.StructField("a", T.DoubleType()), T.StructField("b", T.ArrayType(T.IntegerType()))]
    )

    def kernel(batch):
        lists = pa.ListArray.from_arrays(
            pa.array(np.arange(batch.num_rows + 1, dtype=np.int32)), batch["id"]
        )
        return pa.record_batch({"b": lists, "a": batch["id"]})

    rows = splits.map_partitions(numbers(spark, 2, rows=3), kernel, schema).collect()
    assert sorted(rows) == [(0.0, [0]), (1.0, [1]), (2.0, [2])]


def test_wrong_columns_are_named(spark):
    with pytest.raises(Exception, match=r"the kernel gave columns \['id'\], not \['double'\]"):
        splits.map_partitions(numbers(spark, 1), lambda batch: batch, DOUBLED).collect()


# append_columns


def append(df, kernel, schema=DOUBLED):
    return splits.append_columns(df, [F.col("id")], kernel, schema)


def fragile(batch):
    if pc.any(pc.equal(pc.bit_wise_and(batch["id"], 31), 7)).as_py():
        raise ValueError("seven")
    return double(batch)


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_broken_rows_stand_alone_and_keep_their_columns(spark, partitions):
    rows = appended(numbers(spark, partitions), fragile, DOUBLED).collect()
    assert sorted(row.id for row in rows) == list(range(ROWS))
    broken = {row.id for row in rows if row.error is not None}
    assert broken == {7, 39, 71}
    for row in rows:
        assert (row.double, row.error) == (
            (None, "ValueError: seven") if row.id in broken else (2 * row.id, None)
        )


def test_other_columns_and_new_names(spark):
    df = numbers(spark, 3, rows=9).selectExpr("id as n", "array(id) as untouched")
    columns = [F.col("n").alias("id")]
    names = {"double": "twice", "error": "trouble"}
    found = splits.append_columns(df, columns, fragile, DOUBLED, names)
    assert found.columns == ["n", "untouched", "twice", "trouble"]
    rows = found.collect()
    assert [row.n for row in rows if row.trouble] == [7]
    assert all(row.untouched == [row.n] for row in rows)


def test_every_row_broken(spark):
    def kernel(batch):
        raise RuntimeError("always")

    rows = appended(numbers(spark, 3, rows=9), kernel, DOUBLED).collect()
    assert {(row.double, row.error) for row in rows} == {(None, "RuntimeError: always")}
    assert len(rows) == 9


def test_an_overflow_breaks_its_row_alone(spark):
    schema = T.StructType([T.StructField("small", T.ByteType())])

    def kernel(batch):
        return pa.record_batch({"small": pc.multiply(batch["id"], 2)})

    rows = appended(numbers(spark, 1), kernel, schema).collect()
    assert [row.small for row in rows if row.error is None] == list(range(0, 128, 2))
    assert all("128" in row.error for row in rows if row.id == 64)


def test_a_kernel_that_loses_rows_is_an_error_of_the_job(spark):
    def kernel(batch):
        return double(batch.slice(1))

    with pytest.raises(Exception, match="the kernel gave 99 rows for 100"):
        appended(numbers(spark, 1), kernel, DOUBLED).collect()


@pytest.mark.parametrize("name", ["id", "error"])
def test_a_column_that_is_there_is_refused(spark, name):
    schema = T.StructType([T.StructField(name, T.LongType())])
    df = numbers(spark, 1)
    if name == "error":
        df, schema = df.selectExpr("id", "id as error"), DOUBLED
    with pytest.raises(SchemaError, match=f"column '{name}' is already there"):
        appended(df, double, schema)


# map_groups


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_every_group_has_a_task_of_its_own(spark, groups):
    rows = spark.range(60).withColumn("group", (F.col("id") % groups).cast("int"))

    def kernel(group, table):
        return pa.RecordBatch.from_pylist([{"group": group, "rows": table.num_rows}])

    found = splits.map_groups(rows, "group", kernel, GROUPED, groups)
    placed = found.withColumn("task", F.spark_partition_id()).collect()
    assert {row["group"]: row["rows"] for row in placed} == dict.fromkeys(
        range(groups), 60 // groups
    )
    assert len({row["task"] for row in placed}) == groups


# sum_arrays


@pytest.mark.parametrize("partitions", [1, 3, 7])
def test_sums_do_not_depend_on_the_partitions(spark, partitions):
    sums = splits.sum_arrays(numbers(spark, partitions), moments)
    np.testing.assert_allclose(sums["total"], expected_total(), rtol=1e-12)
    assert sums["count"].shape == ()
    assert sums["count"] == ROWS
    assert sums["matrix"].shape == (2, 2)
    assert sums["matrix"].dtype == np.float64


def test_empty_partitions_and_no_partition_give_zeros(spark):
    few = splits.sum_arrays(numbers(spark, 5, rows=2), moments)
    np.testing.assert_allclose(few["total"], expected_total(2), rtol=1e-12)
    empty = spark.createDataFrame([], "id long")
    assert splits.sum_arrays(empty, moments)["total"].tolist() == [0.0, 0.0, 0.0]
    assert splits.count_partitions(numbers(spark, 5, rows=2)) == 5


def test_counting_partitions_leaves_the_workers_alive(spark):
    """A worker that died would be started again, with all its imports, for the next job."""

    def process(_):
        return pa.RecordBatch.from_pydict({"pid": pa.array([os.getpid()])})

    def processes():
        one = numbers(spark, 1)
        kind = T.StructType([T.StructField("pid", T.LongType())])
        return {splits.map_partitions(one, process, kind).collect()[0].pid for _ in range(6)}

    before = processes()
    for _ in range(6):
        splits.count_partitions(numbers(spark, 1))
    assert processes() <= before


def test_the_tree_gives_the_bits_of_the_direct_sum(spark, monkeypatch):
    direct = splits.sum_arrays(numbers(spark, 5), moments, partitions=5)
    monkeypatch.setattr(splits, "DIRECT_BYTES", 0)
    tree = splits.sum_arrays(numbers(spark, 5), moments, partitions=5)
    for name, array in direct.items():
        assert tree[name].tobytes() == array.tobytes()


def test_two_levels_of_the_tree_give_the_same_bits_every_time(spark):
    first, again = (splits.sum_arrays(numbers(spark, 12), moments) for _ in range(2))
    np.testing.assert_allclose(first["total"], expected_total(), rtol=1e-12)
    assert first["total"].tobytes() == again["total"].tobytes()


def test_arrays_longer_than_a_chunk(spark, monkeypatch):
    size = splits.CHUNK_BYTES // 8 * 2 + 5

    def kernel(batches):
        array = np.zeros(size)
        for batch in batches:
            array[batch["id"].to_numpy()] += 1.0
            array[-1] += batch.num_rows
        return {"long": array}

    for limit in (splits.DIRECT_BYTES * 8, 0):
        monkeypatch.setattr(splits, "DIRECT_BYTES", limit)
        long = splits.sum_arrays(numbers(spark, 2), kernel, partitions=2)["long"]
        assert long.shape == (size,)
        assert long[:ROWS].tolist() == [1.0] * ROWS
        assert long[-1] == ROWS
        assert long.sum() == 2 * ROWS


def test_shapes_that_differ_are_an_error(spark):
    def kernel(batches):
        return {"x": np.zeros(sum(batch.num_rows for batch in batches))}

    with pytest.raises(Exception, match=r"the kernel gave .*; for no rows it gave"):
        splits.sum_arrays(numbers(spark, 2), kernel)


# barrier_map

PEERS = T.StructType(
    [
        T.StructField("rank", T.LongType()),
        T.StructField("rows", T.LongType()),
        T.StructField("told", T.ArrayType(T.StringType())),
        T.StructField("addresses", T.LongType()),
    ]
)


def introduce(peers, batches):
    rows = sum(batch.num_rows for batch in batches)
    told = peers.all_gather(f"{peers.rank}:{rows}")
    peers.barrier()
    yield pa.record_batch(
        {
            "rank": pa.array([peers.rank]),
            "rows": pa.array([rows]),
            "told": pa.array([told]),
            "addresses": pa.array([len(peers.addresses)]),
        }
    )


@pytest.mark.parametrize("rows", [1, ROWS])
def test_tasks_of_a_barrier_know_their_peers(spark, rows):
    found = splits.barrier_map(numbers(spark, 5, rows), "id", introduce, PEERS, tasks=2).collect()
    found.sort()
    assert [row.rank for row in found] == [0, 1]
    assert sum(row.rows for row in found) == rows
    assert [row.addresses for row in found] == [2, 2]
    told = [f"{row.rank}:{row.rows}" for row in found]
    assert [row.told for row in found] == [told, told]


def test_a_barrier_survives_a_task_that_dies_once(spark, tmp_path):
    mark = str(tmp_path / "died")

    def kernel(peers, batches):
        if peers.rank == 1 and not os.path.exists(mark):
            with open(mark, "w"):
                os._exit(1)
        yield from introduce(peers, batches)

    found = splits.barrier_map(numbers(spark, 2), "id", kernel, PEERS, tasks=2).collect()
    assert os.path.exists(mark)
    assert sum(row.rows for row in found) == ROWS


def test_too_few_slots_are_told_at_once(spark):
    with pytest.raises(UsageError, match=r"3 tasks needs .* local\[2\] has 2"):
        splits.barrier_map(numbers(spark, 2), "id", introduce, PEERS, tasks=3)


# Kernels


def test_numba_compiles_once_a_worker(spark):
    schema = T.StructType([T.StructField("pid", T.LongType()), T.StructField("n", T.LongType())])

    def kernel(batch):
        from corpusmill.corpora import gazetteer, gazetteer_kernels

        offsets, data = gazetteer.string_buffers(pa.array(["a", "b"]))
        gazetteer_kernels.hash_bytes(data, offsets)
        stats = gazetteer_kernels.hash_bytes.stats
        loads = sum(stats.cache_hits.values()) + sum(stats.cache_misses.values())
        return pa.record_batch({"pid": pa.array([os.getpid()]), "n": pa.array([loads])})

    rows = []
    for _ in range(2):
        rows += splits.map_partitions(numbers(spark, 8), kernel, schema).collect()
    tasks = Counter(row.pid for row in rows)
    assert max(tasks.values()) > 1, "no worker was used twice"
    assert {row.n for row in rows} == {1}


def test_what_a_closure_carries_is_the_kernel_and_plain_values(spark):
    class Holder:
        offset = 5

        def __reduce__(self):
            raise AssertionError("self was pickled")

        def shift(self, df):
            offset = self.offset
            return splits.map_partitions(
                df, lambda batch: pa.record_batch({"double": pc.add(batch["id"], offset)}), DOUBLED
            )

    assert Holder().shift(numbers(spark, 2, rows=1)).collect() == [(5,)]
