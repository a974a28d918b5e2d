"""The examples of a job: read, checked, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora import quarantine
from corpusmill.corpora.propositions import PropositionSettings, read_propositions, take_first
from corpusmill.corpora.schemas import PROPOSITIONS, QUARANTINE, TREES
from corpusmill.corpora.trees import read_trees
from corpusmill.errors import DataError, UsageError
from corpusmill.fragments.srl import PAIRS, boundary_examples, count_pairs, role_examples
from corpusmill.fragments.tasks.settings import FragmentsSettings, PropositionsInput, TreesInput

if TYPE_CHECKING:
    from corpusmill.runner import Context

Part = Literal["train", "test"]
_COUNTED = T.StructType([*PROPOSITIONS, T.StructField(PAIRS, T.IntegerType(), nullable=False)])


def read_examples(
    context: Context, part: Part, labelled: bool = True, keep_bad: bool = True
) -> DataFrame:
    """Read the examples of a part; bad records go to the run's quarantine.

    Parameters
    ----------
    context
        The action's.
    part
        Of the input.
    labelled
        Whether examples without a target are an error.
    keep_bad
        Whether bad records are written, as the first reader of a run does.

    Returns
    -------
    DataFrame
        TREES, cached, in ``partitions`` partitions.

    Raises
    ------
    UsageError
        CONF05: the conf names no such part.
    DataError
        No examples, or too many bad records.
    """
    conf: FragmentsSettings = context.settings
    source = getattr(conf.input, part)
    if source is None:
        problem = f"this action reads the {part} examples"
        raise UsageError("CONF05", key=f"input.{part}", problem=problem)
    with context.progress.stage(f"read {part}"):
        if isinstance(conf.input, TreesInput):
            read = read_trees(context.spark, source, conf.quarantine, f"input.{part}")
            rows = read.records
        else:
            read = read_propositions(context.spark, source, conf.quarantine, f"input.{part}")
            rows = _pairs(context, read.records, conf.input, part)
        bad = context.cached(read.quarantine)
        if keep_bad:
            context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
        reasons = quarantine.count_reasons(bad)
        rows = context.cached(rows.repartition(conf.partitions, "example_id"))
        count = rows.count()
        without = rows.where(F.col("target").isNull()).count() if labelled else 0
    quarantine.check_share(f"input.{part}", count, reasons, conf.quarantine)
    if count == without:
        hint = "there is no example with a target" if count else "there is no example"
        raise DataError("DATA03", source=f"input.{part}", hint=hint)
    context.run.write_metrics(
        {f"input.{part}": {"examples": count, "quarantined": sum(reasons.values())}}
    )
    return rows


def _pairs(
    context: Context, sentences: DataFrame, task: PropositionsInput, part: Part
) -> DataFrame:
    """Make the examples of semantic role labelling."""
    if task.examples == "roles":
        return splits.map_partitions(sentences, role_examples, TREES)
    if part == "train" and task.train_pairs is not None:
        return first_pairs(context.cached(sentences), task.train_pairs)
    return splits.map_partitions(sentences, boundary_examples, TREES)


def first_pairs(sentences: DataFrame, pairs: int) -> DataFrame:
    """Make the first so many examples of boundary classification; reads the sentences twice."""
    counted = splits.map_partitions(sentences, count_pairs, _COUNTED)
    first = take_first(counted, PAIRS, pairs).select(_COUNTED.names)
    return splits.map_partitions(first, boundary_examples, TREES)


def paths_of(source: object) -> dict[str, str]:
    """Name the paths of a source, by its own keys."""
    if isinstance(source, PropositionSettings) and source.kind == "propbank":
        return {"trees.path": source.trees.path, "propositions.path": source.propositions.path}
    return {"path": source.path}  # type: ignore[attr-defined]
