"""Select: which feature templates help, candidates tried in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.coreference.fitting import prepare_documents
from corpusmill.coreference.preparation import Preparation, read_templates
from corpusmill.coreference.selection import Step, select_templates, worth
from corpusmill.coreference.tasks.documents import inputs_of, read
from corpusmill.coreference.tasks.settings import CoreferenceSettings
from corpusmill.coreference.templates import parse_templates
from corpusmill.corpora.schemas import QUARANTINE, STRINGS
from corpusmill.errors import UsageError
from corpusmill.storage import Place

if TYPE_CHECKING:
    from corpusmill.runner import Context

_SETS = T.StructType(
    [
        T.StructField("number", T.IntegerType(), nullable=False),
        T.StructField("templates", STRINGS, nullable=False),
    ]
)
_SCORES = T.StructType(
    [
        T.StructField("number", T.IntegerType(), nullable=False),
        T.StructField("score", T.DoubleType(), nullable=False),
    ]
)


def select(context: Context) -> None:
    """Select templates on the training documents and write them to ``templates.txt``.

    The documents, ``selection.documents`` at most, go to every task.
    """
    conf: CoreferenceSettings = context.settings
    if conf.selection.candidates is None:
        problem = "this action reads a file of templates that may be added"
        raise UsageError("CONF05", key="selection.candidates", problem=problem)
    current, candidates = (
        tuple(each.name for each in parse_templates(list(read_templates(name, key)), name))
        for name, key in (
            (conf.model.templates, "model.templates"),
            (conf.selection.candidates, "selection.candidates"),
        )
    )
    if conf.model.regime == "greedy":
        far = [each.name for each in parse_templates(list(candidates), "") if not each.local]
        if far:
            problem = f"regime greedy needs local templates; selection.candidates has {far[0]!r}"
            raise UsageError("CONF11", problem=problem)
    documents = read(context, conf.input.train, "input.train", gold=True)
    context.run.write_parquet("quarantine", documents.quarantine, schema=QUARANTINE)
    settings = conf.model.model_copy(update={"iterations": conf.selection.iterations})
    chosen = documents.records.orderBy(F.xxhash64("document_id", "part"))
    rows = context.cached(inputs_of(chosen.limit(conf.selection.documents)))
    preparation = prepare_documents(rows, settings, conf.seed)
    batch = rows.toArrow().combine_chunks().to_batches()[0]
    steps: list[Step] = []
    with context.progress.stage("select") as stage:

        def on_step(step: Step) -> None:
            steps.append(step)
            told = f"CoNLL average {100.0 * step.score:.2f} {step.change}"
            stage.update(len(steps), 1 + conf.selection.rounds, told)
            context.tracker.log_metrics({"select.conll_avg": step.score}, step=len(steps) - 1)

        score = partial(score_sets, context, batch, preparation)
        lines = select_templates(current, candidates, score, conf.selection.rounds, on_step)
    Place.of(context.run.path("templates.txt")).write("".join(f"{x}\n" for x in lines).encode())
    context.tracker.log_table(pd.DataFrame(steps), "tables/selection.json")
    context.run.write_metrics(
        {"select": {"templates": len(lines), "first": steps[0].score, "last": steps[-1].score}}
    )


def score_sets(
    context: Context,
    batch: pa.RecordBatch,
    preparation: Preparation,
    sets: Sequence[tuple[str, ...]],
) -> list[float]:
    """Give what each set of templates is worth, each in a task of its own."""
    numbered = [(number, list(lines)) for number, lines in enumerate(sets)]
    rows = context.spark.createDataFrame(numbered, _SETS).repartitionById(
        len(sets), F.col("number")
    )
    kernel = partial(score_rows, batch=batch, preparation=preparation, seed=context.settings.seed)
    found = splits.map_partitions(rows, kernel, _SCORES).toArrow().sort_by("number")
    return [float(value) for value in found.column("score").to_pylist()]


def score_rows(
    rows: pa.RecordBatch, batch: pa.RecordBatch, preparation: Preparation, seed: int
) -> pa.RecordBatch:
    """Train and measure once a row; the kernel of `score_sets`."""
    scores = [
        worth(batch, preparation, tuple(lines), seed)
        for lines in rows.column("templates").to_pylist()
    ]
    return pa.RecordBatch.from_arrays([rows.column("number"), pa.array(scores)], _SCORES.names)
