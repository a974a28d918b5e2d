"""Copied to another folder and submitted by test_cluster: says who imports what from where."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

import pandas as pd

import corpusmill
from corpusmill import session
from corpusmill.settings import SparkSettings


def describe(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """Yield one row: this worker's Python, where it has corpusmill from, its kernel cache."""
    for _ in batches:
        pass
    yield pd.DataFrame(
        {
            "python": [sys.executable],
            "package": [str(corpusmill.__file__)],
            "process": [os.getppid()],
            "cache": [os.environ["NUMBA_CACHE_DIR"]],
            "threads": [os.environ["OMP_NUM_THREADS"]],
        }
    )


def main() -> None:
    """Print one line of JSON about the driver, its properties and its workers."""
    settings = SparkSettings(
        master="local[1]", shuffle_partitions=3, conf={"spark.sql.files.minPartitionNum": "7"}
    )
    spark = session.start("probe", settings)
    schema = "python string, package string, process long, cache string, threads string"
    workers = spark.range(0, 8, 1, 4).mapInPandas(describe, schema).toPandas()
    report = {
        "driver": corpusmill.__file__,
        "path": sys.path,
        "master": spark.conf.get("spark.master"),
        "shuffle_partitions": spark.conf.get("spark.sql.shuffle.partitions"),
        "min_partitions": spark.conf.get("spark.sql.files.minPartitionNum"),
        "time_zone": spark.conf.get("spark.sql.session.timeZone"),
        "workers": workers.to_dict("records"),
    }
    print("PROBE " + json.dumps(report))  # noqa: T201 - read by the test
    spark.stop()


if __name__ == "__main__":
    main()
