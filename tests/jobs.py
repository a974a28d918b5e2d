"""What the tests of every job share: a whole run on its demo conf."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mlflow

from corpusmill.runner import Job, run_job

ROOT = Path(__file__).resolve().parents[1]


def demo_arguments(conf: str, place: Path) -> list[str]:
    """Arguments that run a conf below a folder of the test."""
    path = str(ROOT / "conf" / conf)
    return ["--conf", path, f"output={place}/out", f"tracking.uri=sqlite:///{place}/mlflow.db"]


def run_all(job: Job, arguments: Sequence[str], place: Path, spark: Any) -> Iterator[Path]:
    """Run train, predict and evaluate, and give the output; the body of a fixture."""
    for action in ("train", "predict", "evaluate"):
        assert run_job(job, [action, *arguments], spark) == 0
    yield place / "out"
    mlflow.set_tracking_uri("")


def metrics_of(output: Path) -> dict[str, float]:
    """The metrics of an output."""
    found: dict[str, float] = json.loads((output / "metrics.json").read_text())
    return found


def model_files(output: str) -> dict[str, bytes]:
    """The files of an output's model."""
    from corpusmill import storage

    folder = Path(storage.resolve(output, "model"))
    return {file.name: file.read_bytes() for file in folder.iterdir()}
