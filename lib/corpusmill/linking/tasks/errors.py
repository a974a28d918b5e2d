"""The errors of a linker on one set of texts: counts by kind, and a page with examples."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.linking.errors import NAMES, SECOND, count_partition, kinds_table
from corpusmill.linking.examples import CHANCE, Example, choose_examples
from corpusmill.linking.fitting import TEXT_COLUMNS
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.pages import errors_page
from corpusmill.linking.placement import map_texts, sum_texts
from corpusmill.linking.tasks.knowledge import placed

if TYPE_CHECKING:
    from corpusmill.runner import Context

EXAMPLES = 6
"""Texts that show a kind."""
_EXAMPLES = T.StructType(
    [
        T.StructField("kind", T.IntegerType()),
        T.StructField(CHANCE, T.LongType()),
        T.StructField("example", T.StringType()),
    ]
)


def log_errors(context: Context, name: str, rows: DataFrame, model: LinkingModel) -> None:
    """Count a test set's mentions by kind and log the counts, and a page of examples.

    The texts are linked twice, for counts and for examples: neither grows with them. Without a
    gold mention of an entity there is nothing to compare with, and nothing is logged.

    Parameters
    ----------
    context
        The metrics ``errors.<kind>`` are written, ``tables/errors.json`` and
        ``pages/errors.html`` logged.
    name
        Of the test set.
    rows
        LINKED_TEXTS, cached.
    model
    """
    # By chance, but whatever the partitions.
    chance = F.xxhash64(F.lit(context.settings.seed), F.col("text_id"))
    texts = placed(context, rows.select(*TEXT_COLUMNS).withColumn(CHANCE, chance), model.knowledge)
    with context.progress.stage("look at the errors"):
        counts = sum_texts(texts, count_partition, model)["kinds"]
        if not counts[:SECOND].any():
            # Gold names the entities of texts but not their places, as in sets of questions.
            return
        found = map_texts(texts, partial(example_rows, most=EXAMPLES), model, _EXAMPLES)
        rank = F.row_number().over(Window.partitionBy("kind").orderBy(CHANCE, "example"))
        first = found.withColumn("rank", rank).where(F.col("rank") <= EXAMPLES)
        chosen = first.orderBy("kind", "rank").toArrow()["example"].to_pylist()
    context.run.write_metrics({"errors": dict(zip(NAMES, counts.tolist(), strict=True))})
    context.tracker.log_table(kinds_table(counts), "tables/errors.json")
    page = errors_page(name, counts, [Example.from_json(written) for written in chosen])
    context.tracker.log_html(page, "pages/errors.html")


def example_rows(batch: pa.RecordBatch, model: LinkingModel, most: int) -> pa.RecordBatch:
    """Choose the examples of a batch; a kernel of `log_errors`."""
    rows = [
        {"kind": example.kind, CHANCE: example.chance, "example": example.to_json()}
        for example in choose_examples(batch, model, most)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=splits.schema_of(_EXAMPLES))
