"""Patterns from instances: vocabulary, feature ids, and one row a pattern.

An *instance row* is a pattern's name, the instance's tokens and its weight, with whatever
columns are carried along. Everything here is a join or a sum by key; the vocabulary, whose
size the conf bounds, is the only thing that reaches the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.alignment.batches import list_column
from corpusmill.alignment.model import AlignmentModel
from corpusmill.corpora.schemas import DOUBLES, INTS, STRINGS
from corpusmill.errors import DataError
from corpusmill.settings import Settings
from corpusmill.types import Offsets


class VocabularySettings(Settings):
    """Which tokens are features."""

    min_count: int = Field(2, ge=1, description="instances that a feature occurs in at least")
    size: int = Field(100_000, ge=1, description="so many of the most frequent, at the most")


def build_vocabulary(instances: DataFrame, settings: VocabularySettings) -> list[str]:
    """Collect the tokens that occur in the most instances.

    Parameters
    ----------
    instances
        Instance rows, each counted once whatever its weight.
    settings
        Bounds; at most ``size`` tokens come to the driver.

    Returns
    -------
    list of str
        By falling frequency, equally frequent ones by name.

    Raises
    ------
    DataError
        DATA03: no token is frequent enough.
    """
    counts = (
        instances.select(F.explode(F.array_distinct("tokens")).alias("token"))
        .groupBy("token")
        .count()
        .where(F.col("count") >= settings.min_count)
        .orderBy(F.desc("count"), "token")
        .limit(settings.size)
    )
    words: list[str] = counts.select("token").toArrow()["token"].to_pylist()
    if not words:
        hint = f"no token occurs in {settings.min_count} instances (vocabulary.min_count)"
        raise DataError("DATA03", source="the instances", hint=hint)
    return words


def assemble(
    instances: DataFrame,
    vocabulary: Sequence[str],
    partitions: int,
    max_instances: int,
    described: DataFrame,
    carried: Sequence[str] = (),
) -> DataFrame:
    """Turn instance rows into pattern rows.

    Tokens outside the vocabulary are dropped; an instance may thereby become empty. A pattern
    of more than ``max_instances`` is cut into several, ``name#0``, ``name#1`` and so on, by a
    hash of the tokens, so that one heavy pattern neither fills a worker's memory nor
    loses an instance.

    Parameters
    ----------
    instances
        Columns ``pattern_id``, ``tokens``, ``weight`` and those of ``carried``.
    vocabulary
        The features' names in order.
    partitions
        How many partitions the result has.
    max_instances
        In a row.
    described
        What is known of a pattern: ``name`` and further columns, such as ``labels``. A pattern
        without a row here is left out.
    carried
        Further columns of the instances, which become lists with an entry an instance.

    Returns
    -------
    DataFrame
        ``pattern_id``, ``name`` (the pattern before it was cut), the feature columns of
        `corpusmill.corpora.schemas.PATTERNS`, the carried lists and what describes it. Rows
        and instances are in a fixed order, so that sums over them are repeatable.
    """
    sizes = instances.groupBy("pattern_id").count().where(F.col("count") > max_instances)
    cuts = F.ceil(F.col("count") / max_instances)
    chunk = F.pmod(F.xxhash64("tokens"), cuts).cast("string")
    kept = ["pattern_id", "name", "weight", *carried]
    named = instances.join(F.broadcast(sizes), "pattern_id", "left").select(
        F.concat_ws("#", F.col("pattern_id"), chunk).alias("pattern_id"),
        F.col("pattern_id").alias("name"),
        "weight",
        *{"tokens": None, **dict.fromkeys(carried)},
    )
    number = partial(_number_tokens, words=pa.array(vocabulary, pa.string()), kept=kept)
    fields = [named.schema[name] for name in kept]
    numbered = splits.map_partitions(named, number, T.StructType([*fields, *_FEATURES]))
    item = F.struct(*carried, "feature_ids", "feature_counts", "weight")
    # By the name too: "e#1" may be a part of "e" and the name of another pattern.
    grouped = numbered.groupBy("pattern_id", "name").agg(
        F.sort_array(F.collect_list(item)).alias("items")
    )
    lists = [T.StructField(name, T.ArrayType(named.schema[name].dataType)) for name in carried]
    rows = splits.map_partitions(
        grouped, partial(_flatten, carried=tuple(carried)), T.StructType([*_PATTERN, *lists])
    )
    # Joined first: the shuffle of a join would undo the partitions and their order.
    rows = rows.join(described, "name").repartition(partitions, "pattern_id")
    return rows.sortWithinPartitions("pattern_id", "name")


_FEATURES = [T.StructField("feature_ids", INTS), T.StructField("feature_counts", DOUBLES)]
_PATTERN = [
    T.StructField("pattern_id", T.StringType(), nullable=False),
    T.StructField("name", T.StringType(), nullable=False),
    T.StructField("instance_offsets", INTS),
    T.StructField("instance_weights", DOUBLES),
    *_FEATURES,
]


def _number_tokens(batch: pa.RecordBatch, words: pa.Array, kept: list[str]) -> pa.RecordBatch:
    """Replace tokens by feature ids and counts, ids rising within an instance."""
    offsets = _bounds(batch["tokens"])
    ids = pc.index_in(batch["tokens"].flatten(), value_set=words)
    known = np.asarray(ids.is_valid())
    rows = np.repeat(np.arange(batch.num_rows), np.diff(offsets))[known]
    keys = rows * len(words) + ids.drop_null().to_numpy(zero_copy_only=False)
    unique, counts = np.unique(keys, return_counts=True)
    per_row = np.bincount(unique // len(words), minlength=batch.num_rows)
    bounds = np.concatenate([[0], per_row.cumsum()])
    features = (unique % len(words)).astype(np.int32)
    numbered = batch.select(kept).append_column("feature_ids", list_column(features, bounds))
    return numbered.append_column("feature_counts", list_column(counts.astype(np.float64), bounds))


def _flatten(batch: pa.RecordBatch, carried: tuple[str, ...]) -> pa.RecordBatch:
    """Turn a list of instances into flat lists with offsets."""
    offsets = _bounds(batch["items"])
    items = batch["items"].flatten()
    instance_bounds = _bounds(items.field("feature_ids"))
    starts = instance_bounds[offsets[:-1]]
    row = np.repeat(np.arange(batch.num_rows), np.diff(offsets) + 1)
    place = np.arange(len(row)) - row
    inner = (instance_bounds[place] - starts[row]).astype(np.int32)
    columns = {
        "pattern_id": batch["pattern_id"],
        "name": batch["name"],
        "instance_offsets": list_column(inner, offsets + np.arange(batch.num_rows + 1)),
        "instance_weights": list_column(items.field("weight"), offsets),
        "feature_ids": list_column(items.field("feature_ids").flatten(), instance_bounds[offsets]),
        "feature_counts": list_column(
            items.field("feature_counts").flatten(), instance_bounds[offsets]
        ),
    }
    columns |= {name: list_column(items.field(name), offsets) for name in carried}
    return pa.RecordBatch.from_pydict(columns)


def _bounds(lists: pa.Array) -> Offsets:
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def label_sets(rows: DataFrame, name: Column, label: Column) -> DataFrame:
    """Gather the sorted label set of each name."""
    return rows.groupBy(name.alias("name")).agg(
        F.sort_array(F.collect_set(label)).cast(STRINGS).alias("labels")
    )


def known_to(model: AlignmentModel, labels: DataFrame) -> DataFrame:
    """Keep the labels that are classes of the model; ``labels`` has the columns of `label_sets`."""
    classes = F.array(*[F.lit(name) for name in model.classes]).cast(STRINGS)
    return labels.withColumn("labels", F.array_intersect("labels", classes))
