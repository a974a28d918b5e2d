"""The Spark session of a job: made once, from the conf or from spark-submit."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

from corpusmill.settings import SparkSettings

DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.python.worker.faulthandler.enabled": "true",
}
# Spinning threads of BLAS and OpenMP on busy cores cost more than they give: one thread a task.
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}


def start(name: str, settings: SparkSettings) -> SparkSession:
    """Start, or get, the session.

    Properties given to spark-submit win over the conf, and the conf over the
    defaults. The workers run the driver's Python unless an archive brings its own
    (``PYSPARK_PYTHON``), and keep numba's compiled kernels in one folder a machine.

    Parameters
    ----------
    name
        The application's name.
    settings
        Master, shuffle partitions and further properties.

    Returns
    -------
    SparkSession
        The running session, its log at level ERROR.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cache = Path(tempfile.gettempdir()) / f"corpusmill-numba-{getpass.getuser()}"
    os.environ.setdefault("NUMBA_CACHE_DIR", str(cache))
    builder = SparkSession.builder.appName(name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        builder = builder.master(settings.master)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    properties = {
        **DEFAULTS,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.executorEnv.NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"],
        **{f"spark.executorEnv.{key}": value for key, value in WORKER_ENVIRONMENT.items()},
        **settings.conf,
    }
    for key, value in properties.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
