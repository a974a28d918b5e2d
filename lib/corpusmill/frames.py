"""Pandas frames, as served models get them, to Arrow. No Spark."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd
import pyarrow as pa

from corpusmill.errors import DataError, SchemaError


def record_batch(
    frame: pd.DataFrame, schema: pa.Schema, optional: Collection[str] = ()
) -> pa.RecordBatch:
    """Read the columns that a model needs, in the schema's order.

    Parameters
    ----------
    frame : pandas.DataFrame
        Other columns are passed over.
    schema : pyarrow.Schema
    optional
        Columns that may be missing, and then are missing in the result.

    Raises
    ------
    SchemaError
        DATA04: a column is missing.
    DataError
        DATA01: a column holds something else.
    """
    for item in schema:
        if item.name not in frame.columns and item.name not in optional:
            wanted = str(item.type)
            raise SchemaError("DATA04", column=item.name, found="missing", expected=wanted)
    fields = [item for item in schema if item.name in frame.columns]
    try:
        return pa.RecordBatch.from_pandas(frame, pa.schema(fields), preserve_index=False)
    except pa.ArrowException as error:
        problem = ": ".join(str(part) for part in reversed(error.args))
        raise DataError("DATA01", source="the frame", problem=problem) from error
