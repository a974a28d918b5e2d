"""The examples of a job: read, checked row by row, counted."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.boosting.batches import read_examples
from corpusmill.boosting.tasks.settings import BoostingSettings, FactorsSource
from corpusmill.corpora import quarantine
from corpusmill.corpora.schemas import FACTORS, QUARANTINE
from corpusmill.errors import DataError, UsageError
from corpusmill.ml import checked_columns

if TYPE_CHECKING:
    from corpusmill.runner import Context

Part = Literal["train", "test"]
OPTIONAL = frozenset({"starts", "ends", "previous", "labels", "gold"})
CORRUPT = "__corrupt"
WRONG_TYPE = "not JSON, or a value of another type"
_CHECKED = T.StructType([T.StructField("rows", T.LongType())])


def read_factors_of(context: Context, part: Part, width: int | None = None) -> DataFrame:
    """Read the examples of a part; those that are broken go to the run's quarantine.

    Parameters
    ----------
    context
        The action's.
    part
        Of the input.
    width
        Features a row; by default what most examples of the part have.

    Returns
    -------
    DataFrame
        FACTORS, cached, in ``partitions`` partitions.

    Raises
    ------
    UsageError
        CONF05: the conf names no such part.
    SchemaError
        DATA04: a column is missing or of another type.
    DataError
        No examples, or too many bad ones.
    """
    conf: BoostingSettings = context.settings
    source = getattr(conf.input, part)
    if source is None:
        problem = f"this action reads the {part} examples"
        raise UsageError("CONF05", key=f"input.{part}", problem=problem)
    with context.progress.stage(f"read {part}"):
        given = _given(context, source)
        names = {field.name: field.name for field in FACTORS}
        rows = given.select(*checked_columns(given, names, FACTORS, OPTIONAL), CORRUPT)
        rows = context.cached(rows.repartition(conf.partitions, "example_id"))
        kernel = partial(
            check_rows, structure=conf.model.structure, width=width or _usual_width(rows, part)
        )
        columns = [F.col(name) for name in FACTORS.names]
        marked = splits.append_columns(rows, columns, kernel, _CHECKED)
        spoiled = F.when(F.col(CORRUPT).isNotNull(), F.lit(WRONG_TYPE))
        checked = context.cached(marked.withColumn(splits.ERROR, F.coalesce(spoiled, splits.ERROR)))
        broken = checked.where(F.col(splits.ERROR).isNotNull())
        bad = context.cached(broken.select(*_quarantined(source.path, conf)))
        context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
        reasons = quarantine.count_reasons(bad)
        good = context.cached(checked.where(F.col(splits.ERROR).isNull()).select(FACTORS.names))
        count = good.count()
    quarantine.check_share(f"input.{part}", count, reasons, conf.quarantine)
    if not count:
        raise DataError("DATA03", source=f"input.{part}", hint="there is no example")
    context.run.write_metrics(
        {f"input.{part}": {"examples": count, "quarantined": sum(reasons.values())}}
    )
    return good


def _given(context: Context, source: FactorsSource) -> DataFrame:
    """Read a source as it is, with a column that is null unless a line of JSON was spoiled."""
    reader = context.spark.read.format(source.format)
    if source.format != "json":
        return reader.load(source.path).withColumn(CORRUPT, F.lit(None).cast("string"))
    schema = T.StructType([*FACTORS, T.StructField(CORRUPT, T.StringType())])
    return reader.schema(schema).option("columnNameOfCorruptRecord", CORRUPT).load(source.path)


def check_rows(batch: pa.RecordBatch, structure: str, width: int) -> pa.RecordBatch:
    """Read a batch and forget it; what is broken raises. The kernel of `read_factors_of`."""
    examples = read_examples(batch, structure, width)
    bounds = examples.factors.example_rows()
    return pa.RecordBatch.from_arrays(
        [pa.array(bounds[1:] - bounds[:-1])], schema=splits.schema_of(_CHECKED)
    )


def _usual_width(rows: DataFrame, part: Part) -> int:
    size = F.try_element_at("row_offsets", F.lit(-1))
    width = F.size("features") / size
    found = rows.where(size > 0).groupBy(width.alias("width")).count()
    most = found.orderBy(F.desc("count"), "width").limit(1).collect()
    if not most or most[0]["width"] is None or most[0]["width"] % 1:
        hint = "there must be an example with a row and whole features a row"
        raise DataError("DATA03", source=f"input.{part}", hint=hint)
    return int(most[0]["width"])


def _quarantined(path: str, conf: BoostingSettings) -> list[Column]:
    written = F.to_json(F.struct(*[F.col(name) for name in FACTORS.names]))
    record = F.coalesce(F.col(CORRUPT), written)
    return [
        F.lit(path).alias("source"),
        F.coalesce("example_id", F.lit("?")).alias("position"),
        F.regexp_replace(splits.ERROR, r"^\w+: DATA01: example .*?: ", "").alias("reason"),
        F.substring(record, 1, conf.quarantine.max_record_chars).alias("record"),
    ]
