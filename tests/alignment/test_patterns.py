"""Instance rows to pattern rows, against a plain dictionary."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill.alignment.batches import read_patterns
from corpusmill.alignment.patterns import (
    VocabularySettings,
    assemble,
    build_vocabulary,
    label_sets,
)
from corpusmill.errors import DataError

pytestmark = pytest.mark.spark

SCHEMA = T.StructType(
    [
        T.StructField("pattern_id", T.StringType(), nullable=False),
        T.StructField("tokens", T.ArrayType(T.StringType()), nullable=False),
        T.StructField("weight", T.DoubleType(), nullable=False),
        T.StructField("query", T.StringType()),
        T.StructField("marks", T.ArrayType(T.IntegerType())),
    ]
)
WORDS = ["the", "of", "tiger", "river", "zeta"]
HEAVY = "heavy"


def assembled(df, words, partitions, most, carried=()):
    """Assemble with nothing known of the patterns but their names."""
    names = df.selectExpr("pattern_id as name").distinct()
    return assemble(df, words, partitions, most, names, carried)


def instances_of(seed=1, rows=60):
    """Random instances; one entity holds half of them, some have no known token."""
    rng = np.random.default_rng(seed)
    tokens = [*WORDS, "unknown", "rare"]
    return [
        (
            HEAVY if n % 2 else f"entity {rng.integers(0, 6)}",
            [tokens[i] for i in rng.integers(0, len(tokens), rng.integers(0, 5))],
            float(rng.integers(1, 9)),
            f"query {n}",
            [n] * int(rng.integers(0, 3)),
        )
        for n in range(rows)
    ]


def frame(spark, rows, partitions=3):
    return spark.createDataFrame(rows, SCHEMA).repartition(partitions)


def expected_of(rows, carried=False):
    """Each pattern's instances: known tokens with counts, weight, carried values."""
    found = defaultdict(list)
    for name, tokens, weight, query, marks in rows:
        bag = tuple(sorted(Counter(WORDS.index(t) for t in tokens if t in WORDS).items()))
        found[name].append((bag, weight, *((query, tuple(marks)) if carried else ())))
    return {name: sorted(items) for name, items in found.items()}


def found_in(rows, carried=False):
    """The same, gathered from pattern rows; also checks their layout."""
    found = defaultdict(list)
    for row in rows:
        offsets = row.instance_offsets
        assert offsets[0] == 0
        assert offsets[-1] == len(row.feature_ids) == len(row.feature_counts)
        assert len(row.instance_weights) == len(offsets) - 1
        for m in range(len(offsets) - 1):
            part = slice(offsets[m], offsets[m + 1])
            ids = row.feature_ids[part]
            assert ids == sorted(set(ids))
            bag = tuple(zip(ids, row.feature_counts[part], strict=True))
            extra = (row.query[m], tuple(row.marks[m])) if carried else ()
            found[row.name].append((bag, row.instance_weights[m], *extra))
    return {name: sorted(items) for name, items in found.items()}


@pytest.mark.parametrize("most", [1000, 7, 1])
def test_patterns_are_the_dictionary(spark, most):
    """Whatever the cut of large patterns: no instance is lost or doubled."""
    rows = instances_of()
    df = assembled(frame(spark, rows), WORDS, 4, most, ["query", "marks"])
    got = df.collect()
    assert found_in(got, carried=True) == expected_of(rows, carried=True)
    assert df.columns[-2:] == ["query", "marks"]
    ids = [row.pattern_id for row in got]
    assert len(set(ids)) == len(ids)
    for row in got:
        uncut = sum(name == row.name for name, *_ in rows) <= most
        assert (row.pattern_id == row.name) is uncut
        assert row.pattern_id.startswith(row.name)


def test_a_heavy_pattern_is_cut_into_even_parts(spark):
    """Half of 600 distinct contexts belong to one entity."""
    rows = [
        (HEAVY if n % 2 else f"e{n % 20}", [f"t{n}", "the"], 1.0, None, None) for n in range(600)
    ]
    got = assembled(frame(spark, rows), ["the"], 4, 50).collect()
    sizes = {row.pattern_id: len(row.instance_weights) for row in got}
    parts = [size for name, size in sizes.items() if name.startswith(f"{HEAVY}#")]
    assert HEAVY not in sizes
    assert sum(parts) == 300
    assert len(parts) == 6
    assert max(parts) < 2 * 50
    assert sum(sizes.values()) == 600


def test_a_name_like_that_of_a_part_is_another_pattern(spark):
    names = ("e", "e#0")
    rows = [(name, [f"t{n}"], 1.0, f"{name} {n}", None) for name in names for n in range(9)]
    got = assembled(frame(spark, rows), WORDS, 2, 8, ["query"]).collect()
    found = sorted((row.name, query) for row in got for query in row.query)
    assert found == sorted((name, query) for name, _, _, query, _ in rows)


@pytest.mark.slow
def test_order_is_repeatable_whatever_the_partitions(spark):
    rows = instances_of(2)
    texts = []
    for given, partitions in ((rows, 1), (rows, 3), (rows[::-1], 7)):
        df = assembled(frame(spark, given, partitions), WORDS, 2, 10, ["query"])
        assert df.rdd.getNumPartitions() == 2
        texts.append([row.j for row in df.select(F.to_json(F.struct("*")).alias("j")).collect()])
    assert texts[0] == texts[1] == texts[2]


def test_rows_are_what_the_kernels_read(spark):
    rows = instances_of(3)
    df = assembled(frame(spark, rows), WORDS, 1, 1000)
    (batch,) = df.toArrow().combine_chunks().to_batches()
    patterns = read_patterns(batch, ["a"], len(WORDS))
    assert patterns.offsets[-1] == len(rows)
    assert patterns.weights.sum() == sum(row[2] for row in rows)
    known = sum(token in WORDS for row in rows for token in row[1])
    assert patterns.bags.counts.sum() == known


def test_without_instances_there_are_no_patterns(spark):
    df = assembled(frame(spark, []), WORDS, 2, 10, ["query"])
    assert df.count() == 0
    assert "query" in df.columns


def test_an_instance_without_known_tokens_stays(spark):
    got = assembled(frame(spark, [("e", ["unknown"], 2.0, "q", [])]), WORDS, 1, 10).collect()
    assert [(r.instance_offsets, r.instance_weights, r.feature_ids) for r in got] == [
        ([0, 0], [2.0], [])
    ]


def test_vocabulary_is_counted_by_instances(spark):
    rows = instances_of(4)
    counts = Counter(token for row in rows for token in set(row[1]))
    ranked = sorted(counts, key=lambda token: (-counts[token], token))
    df = frame(spark, rows)
    for size, least in ((100, 1), (3, 1), (100, sorted(counts.values())[3])):
        wanted = [token for token in ranked if counts[token] >= least][:size]
        assert build_vocabulary(df, VocabularySettings(min_count=least, size=size)) == wanted


def test_an_empty_vocabulary_is_refused(spark):
    with pytest.raises(DataError, match=r"DATA03: .*vocabulary\.min_count"):
        build_vocabulary(frame(spark, instances_of()), VocabularySettings(min_count=1000))


def test_label_sets_are_sorted_sets(spark):
    rows = [("e", "b"), ("e", "a"), ("e", "b"), ("f", "c")]
    df = spark.createDataFrame(rows, "entity string, class string")
    got = label_sets(df, F.col("entity"), F.col("class")).collect()
    assert {row.name: row.labels for row in got} == {"e": ["a", "b"], "f": ["c"]}
