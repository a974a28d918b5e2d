"""What `make dist` builds, submitted to real executor processes from another folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyspark
import pytest

from corpusmill.session import EXECUTOR_CACHE
from tests.conftest import ROOT

pytestmark = pytest.mark.cluster

DIST = ROOT / "dist"
DRIVER = ROOT / "build" / "environment" / "bin" / "python"
Submit = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submit]:
    """Yield a function that runs spark-submit in ``tmp_path`` with what ``make dist`` built."""
    [package] = DIST.glob("corpusmill-*.zip")
    home = spark_home(tmp_path / "spark")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {
        "SPARK_HOME": str(home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_DRIVER_PYTHON": str(DRIVER),
        "PYSPARK_PYTHON": "./environment/bin/python",
    }

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(home / "bin" / "spark-submit"),
            "--master=local-cluster[2,1,1024]",
            "--conf=spark.sql.shuffle.partitions=5",
            f"--py-files={package}",
            f"--archives={DIST / 'environment.tar.gz'}#environment",
            *words,
        ]
        return subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=1500,
            check=False,
        )

    yield run
    shutil.rmtree(home / "work", ignore_errors=True)


def spark_home(folder: Path) -> Path:
    """Make ``folder`` a SPARK_HOME: executors work, and leave gigabytes, in its folder work."""
    folder.mkdir()
    for part in Path(pyspark.__path__[0]).iterdir():
        if part.name != "work":  # left by executors of someone else
            (folder / part.name).symlink_to(part)
    return folder


def probe(submit: Submit, tmp_path: Path) -> dict[str, Any]:
    """Submit the probe and return what it printed."""
    shutil.copy(ROOT / "tests" / "cluster_probe.py", tmp_path)
    done = submit("cluster_probe.py")
    lines = [line for line in done.stdout.splitlines() if line.startswith("PROBE ")]
    assert len(lines) == 1, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(lines[0].removeprefix("PROBE "))
    return report


def test_every_process_imports_what_was_shipped(submit: Submit, tmp_path: Path) -> None:
    report = probe(submit, tmp_path)
    assert ".zip/corpusmill/" in report["driver"]
    assert not [entry for entry in report["path"] if Path(entry) in {ROOT, ROOT / "lib"}]
    assert report["master"] == "local-cluster[2,1,1024]"
    assert report["shuffle_partitions"] == "5", "spark-submit wins over the conf"
    assert report["min_partitions"] == "7", "the conf wins over Spark's defaults"
    assert report["time_zone"] == "UTC", "the project's defaults hold where nobody says otherwise"
    workers = report["workers"]
    assert len({worker["process"] for worker in workers}) == 2, "two executors worked"
    for worker in workers:
        assert ".zip/corpusmill/" in worker["package"]
        assert str(tmp_path) in worker["python"]
        assert "/environment/bin/python" in worker["python"]
        assert worker["threads"] == "1"
        assert worker["cache"] == EXECUTOR_CACHE


CONF = """\
name: shipped
output: {folder}/run
input:
  kind: query_log
  sources: [{{path: "{folder}/query_log.tsv", header: true}}]
  entities: {{path: "{folder}/entities.tsv", header: true}}
model: {{max_iter: 5}}
tracking: {{uri: "sqlite:///{folder}/mlflow.db"}}
"""


@pytest.mark.slow
def test_the_alignment_job_trains_and_predicts_on_executors(submit: Submit, tmp_path: Path) -> None:
    for name in ("query_log.tsv", "entities.tsv"):
        shutil.copy(ROOT / "lib" / "corpusmill" / "corpora" / "samples" / name, tmp_path)
    (tmp_path / "conf.yaml").write_text(CONF.format(folder=tmp_path))
    job = str(DIST / "jobs" / "alignment.py")
    for action in ("train", "predict"):
        done = submit(job, action, "--conf", "conf.yaml")
        assert done.returncode == 0, done.stderr[-3000:]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text("utf-8"))
    assert metrics
    predictions = pd.read_parquet(tmp_path / "run" / "predictions")
    found = predictions[predictions["entity"].notna()]
    assert len(found) > 100
    sums = found["probabilities"].map(sum)
    assert sums.between(0.0, 1.0 + 1e-9).all()
    assert (found["classes"].map(len) == found["probabilities"].map(len)).all()
