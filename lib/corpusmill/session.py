"""The Spark session of a job: made once, from the conf or from spark-submit."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from corpusmill.settings import SparkSettings

DEFAULTS = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "4096",
    # A row may be a whole document: thousands of them do not fit into the heap at once.
    "spark.sql.execution.arrow.maxBytesPerBatch": "32m",
    "spark.sql.execution.pyspark.udf.faulthandler.enabled": "true",
    "spark.python.worker.faulthandler.enabled": "true",
    # A barrier stage that will never get its slots fails after 15 seconds instead of ten minutes.
    "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "5s",
    "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "3",
}
# What they write of a failed task, a hundred lines of Java for a file cut short, a job says in one
# line, or the exception that it ends with holds it.
TOLD_BY_THE_JOB = (
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.util.Utils",
    "org.apache.spark.sql.execution.datasources.FileFormatWriter",
)
# Spinning threads of BLAS and OpenMP on busy cores cost more than they give: one thread a task.
WORKER_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
}
# A folder in the executor's own working folder, which every cluster manager makes writable.
EXECUTOR_CACHE = "kernel-cache"


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
        The running session; its log is at level ERROR, without the traces of failed tasks, unless
        ``spark.log.level`` says otherwise.
    """
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    submitted = _submitted_properties()
    master = submitted.get("spark.master", settings.master)
    quiet: dict[str, str] = {}
    if not submitted:
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        # The log level alone comes too late for what Spark says while it starts.
        file = (Path(__file__).parent / "log4j2.properties").as_uri()
        # Without its heap Java's threads die one by one, and the job waits for them for ever.
        options = f"-Dlog4j2.configurationFile={file} -XX:+ExitOnOutOfMemoryError"
        quiet = {"spark.driver.extraJavaOptions": options}
    properties = {
        **DEFAULTS,
        **{f"spark.executorEnv.{key}": value for key, value in WORKER_ENVIRONMENT.items()},
        **{f"spark.executorEnv.{key}": value for key, value in _kernel_cache(master).items()},
        **quiet,
        "spark.master": master,
        "spark.app.name": name,
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        **settings.conf,
    }
    builder = SparkSession.builder
    for key, value in properties.items():
        if key not in submitted:
            builder = builder.config(key, value)
    started = builder.getOrCreate()
    if "spark.log.level" not in {**submitted, **settings.conf}:
        _silence(TOLD_BY_THE_JOB)
    return started


def _silence(loggers: Sequence[str]) -> None:
    jvm: Any = SparkContext._jvm
    if jvm is None:  # the driver is elsewhere
        return
    log4j = jvm.org.apache.logging.log4j
    for name in loggers:
        log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def _submitted_properties() -> dict[str, str]:
    """Return what spark-submit was given; empty under plain ``python``.

    A session's builder overrides the properties of spark-submit, so they have to be known first.
    Under plain ``python`` the JVM does not run yet and must not be started here: its memory is
    among the properties that the builder sets.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()  # no public call attaches to the JVM without a context
    return dict(SparkConf().getAll())


def _kernel_cache(master: str) -> dict[str, str]:
    """Return the variables that tell numba where to keep compiled kernels.

    What lies there is code, so it is never a place where others may write, such as a guessable
    name in /tmp. ``NUMBA_CACHE_DIR`` counts for modules in files, ``XDG_CACHE_HOME`` for modules
    in a zip.
    """
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "corpusmill"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # a user without a home, as containers have
        folder = Path(tempfile.mkdtemp(prefix="corpusmill-"))
    os.environ.setdefault("NUMBA_CACHE_DIR", str(folder))
    if master.partition("[")[0] == "local":
        return {"NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"], "XDG_CACHE_HOME": str(folder)}
    return {"NUMBA_CACHE_DIR": EXECUTOR_CACHE, "XDG_CACHE_HOME": EXECUTOR_CACHE}
