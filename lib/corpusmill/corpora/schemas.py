"""The documented schema of each kind of record, in one place.

A row carries ragged data as flat list columns with offsets, as Arrow lays them
out, so that a partition reaches a kernel without a copy a row.
"""

from __future__ import annotations

from pyspark.sql import types as T

DOUBLES = T.ArrayType(T.DoubleType(), containsNull=False)
INTS = T.ArrayType(T.IntegerType(), containsNull=False)
STRINGS = T.ArrayType(T.StringType(), containsNull=False)

QUERIES = T.StructType(
    [
        T.StructField("query", T.StringType(), nullable=False),
        T.StructField("count", T.LongType(), nullable=False),
        T.StructField("timestamp", T.TimestampType(), nullable=True),
        T.StructField("source", T.StringType(), nullable=False),
    ]
)
"""A line of a query log: the query as it stands there, how often, when, from which file."""

ENTITY_CLASSES = T.StructType(
    [
        T.StructField("entity", T.StringType(), nullable=False),
        T.StructField("class", T.StringType(), nullable=False),
    ]
)
"""An entity and one of its possible classes; an entity may stand in several rows."""

DOCUMENTS = T.StructType(
    [
        T.StructField("document_id", T.StringType(), nullable=False),
        T.StructField("split", T.StringType(), nullable=False),
        T.StructField("labels", STRINGS, nullable=False),
        T.StructField("title", T.StringType(), nullable=False),
        T.StructField("paragraphs", STRINGS, nullable=False),
    ]
)
"""A labelled document: ``split`` is train, test or unused."""

QUESTIONS = T.StructType(
    [
        T.StructField("question_id", T.LongType(), nullable=False),
        T.StructField("category", T.StringType(), nullable=False),
        T.StructField("question", T.StringType(), nullable=False),
        T.StructField("answer", T.StringType(), nullable=True),
    ]
)
"""A question with its category."""

QUARANTINE = T.StructType(
    [
        T.StructField("source", T.StringType(), nullable=False),
        T.StructField("position", T.StringType(), nullable=False),
        T.StructField("reason", T.StringType(), nullable=False),
        T.StructField("record", T.StringType(), nullable=False),
    ]
)
"""A bad record: its file, its place there, why, and its beginning (no UTF-8: escaped)."""

PATTERNS = T.StructType(
    [
        T.StructField("pattern_id", T.StringType(), nullable=False),
        T.StructField("labels", STRINGS, nullable=True),
        T.StructField("instance_offsets", INTS, nullable=False),
        T.StructField("instance_weights", DOUBLES, nullable=False),
        T.StructField("feature_ids", INTS, nullable=False),
        T.StructField("feature_counts", DOUBLES, nullable=False),
    ]
)
"""A pattern for `alignment`: instance m of the row holds the features
``feature_ids[instance_offsets[m]:instance_offsets[m + 1]]``, each ``feature_counts`` times, and
occurs ``instance_weights[m]`` times. ``labels`` is null where they are not known."""
