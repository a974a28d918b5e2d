"""Fixtures that every test may use: one Spark session a run, and the corpora's folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from corpusmill import session
from corpusmill.settings import SparkSettings

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CORPUSMILL_DATA", ROOT.parent / "shared" / "data"))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one session of the test run; its workers import the package from the source tree."""
    paths = [str(ROOT / "lib"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    # Many short jobs: the JVM's second compiler and its parallel collectors take more than they
    # give.
    log = (Path(session.__file__).parent / "log4j2.properties").as_uri()
    java = f"-Dlog4j2.configurationFile={log} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    settings = SparkSettings(
        master="local[2]",
        shuffle_partitions=4,
        conf={"spark.sql.files.minPartitionNum": "2", "spark.driver.extraJavaOptions": java},
    )
    started = session.start("corpusmill-tests", settings)
    yield started
    started.stop()


@pytest.fixture(scope="session")
def corpora() -> Path:
    """Return the folder of the real corpora, or skip with the reason."""
    if not DATA.is_dir():
        pytest.skip(f"no corpora at {DATA}; set CORPUSMILL_DATA")
    return DATA
