"""What another system says, put beside the texts of a test set."""

from __future__ import annotations

import io

import pytest
from pyspark.sql import SparkSession

from corpusmill.errors import DataError
from corpusmill.linking.tasks.evaluation import beside
from corpusmill.progress import Progress

pytestmark = pytest.mark.spark


def told(spark: SparkSession, ids: list[str]) -> tuple[int, str]:
    """How many rows come out for texts a, b and c, and the lines that are told."""
    stream = io.StringIO()
    texts = spark.createDataFrame([("a",), ("b",), ("c",)], "text_id string")
    said = spark.createDataFrame(
        [(name, ["Rome"]) for name in ids], "text_id string, system_entities array<string>"
    )
    found = beside(Progress(stream), texts, said, "input.systems.tweets")
    return found.count(), stream.getvalue()


def test_the_share_of_texts_that_a_system_knows_is_told(spark):
    assert told(spark, ["a", "c", "z"]) == (
        3,
        "input.systems.tweets says something of 2 of 3 texts (66.7%) and counts as wrong on the "
        "others\n",
    )
    assert told(spark, ["a", "b", "c"]) == (3, "")


def test_a_system_of_other_texts_is_refused(spark):
    with pytest.raises(DataError, match=r"DATA03: input\.systems\.tweets .* none of its ids"):
        told(spark, ["A", "z"])
