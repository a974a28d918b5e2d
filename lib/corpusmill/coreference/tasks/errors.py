"""The errors of a resolver on one test set: counts by types of mentions, a page with examples."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.coreference.analysis import (
    CHANCE,
    SIDES,
    Example,
    choose_examples,
    count_errors,
    document_name,
    error_table,
)
from corpusmill.coreference.errors import TYPES
from corpusmill.coreference.model import DOCUMENT_ROWS, PREDICTIONS
from corpusmill.coreference.pages import Document, ErrorTable, coreference_page
from corpusmill.types import Floats

if TYPE_CHECKING:
    from corpusmill.runner import Context

EXAMPLES = 4
"""Errors that show a pair of types."""
DOCUMENTS = 3
"""Documents that are shown."""
_EXAMPLES = T.StructType(
    [
        T.StructField("kind", T.StringType()),
        T.StructField(CHANCE, T.LongType()),
        T.StructField("example", T.StringType()),
    ]
)


def log_errors(
    context: Context, name: str, rows: DataFrame, metrics: dict[str, float], language: str
) -> None:
    """Count a test set's errors by types of mentions, and log the counts and a page.

    Parameters
    ----------
    context
        The metrics ``errors.<side>.<anaphor>.<antecedent>`` and ``links...`` are written, with
        ``errors.<side>.all`` and ``links.<side>.all``; ``tables/errors.json`` and
        ``pages/errors.html`` are logged.
    name
        Of the test set.
    rows
        Resolved documents, cached.
    metrics
        Of the test set.
    language
        Whose head rules hold.
    """
    # By chance, but whatever the partitions.
    chance = F.xxhash64(F.lit(context.settings.seed), F.col("document_id"), F.col("part"))
    columns = [*DOCUMENT_ROWS.names, *PREDICTIONS.names[:4]]
    chosen = rows.select(*columns, chance.alias(CHANCE))
    with context.progress.stage("look at the errors"):
        sums = splits.sum_arrays(rows.select(*columns), partial(count_errors, language=language))
        examples, documents = _examples(chosen, language), _documents(chosen)
    context.run.write_metrics(_counts(sums))
    context.tracker.log_table(error_table(sums), "tables/errors.json")
    tables = {side: ErrorTable(sums[f"{side}_errors"], sums[f"{side}_links"]) for side in SIDES}
    page = coreference_page(name, metrics, tables, examples, documents)
    context.tracker.log_html(page, "pages/errors.html")


def _counts(sums: dict[str, Floats]) -> dict[str, float]:
    found = {}
    for side in SIDES:
        for part in ("errors", "links"):
            counts = sums[f"{side}_{part}"]
            found[f"{part}.{side}.all"] = float(counts.sum())
            for a, anaphor in enumerate(TYPES):
                for b, antecedent in enumerate(TYPES):
                    found[f"{part}.{side}.{anaphor}.{antecedent}"] = float(counts[a, b])
    return found


def _examples(rows: DataFrame, language: str) -> list[Example]:
    kernel = partial(example_rows, language=language, most=EXAMPLES)
    found = splits.map_partitions(rows, kernel, _EXAMPLES)
    rank = F.row_number().over(Window.partitionBy("kind").orderBy(CHANCE, "example"))
    first = found.withColumn("rank", rank).where(F.col("rank") <= EXAMPLES)
    written = first.orderBy("kind", "rank").toArrow()["example"].to_pylist()
    return [_read(each) for each in written]


def _read(written: str) -> Example:
    found = json.loads(written)
    anaphor, antecedent = found.pop("types")
    return Example(types=(anaphor, antecedent), **found)


def example_rows(batch: pa.RecordBatch, language: str, most: int) -> pa.RecordBatch:
    """Choose the examples of a batch; a kernel of `log_errors`."""
    rows = [
        {
            # Recall first, and then by types.
            "kind": f"{SIDES.index(example.of)} {example.types}",
            CHANCE: chance,
            "example": json.dumps(example._asdict()),
        }
        for chance, example in choose_examples(batch, language, most)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=splits.schema_of(_EXAMPLES))


def _documents(rows: DataFrame) -> list[Document]:
    first = rows.orderBy(CHANCE, "document_id", "part").limit(DOCUMENTS).toArrow().to_pylist()
    return [
        Document(
            document_name(row["document_id"], row["part"]),
            row["words"],
            row["sentence_offsets"],
            row["speakers"],
            *(
                list(zip(*(row[f"{kind}_{each}"] for each in _SPAN), strict=True))
                for kind in ("mention", "predicted")
            ),
        )
        for row in first
    ]


_SPAN = ("starts", "ends", "clusters")
