"""The alignment job from a raw query log to predictions, MLflow and the review notebook."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import nbformat
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from nbclient import NotebookClient

from corpusmill import storage
from corpusmill.alignment.model import AlignmentModel
from corpusmill.alignment.pipeline import JOB
from corpusmill.corpora.text import tokenize
from corpusmill.runner import run_job
from tests.jobs import ROOT, demo_arguments, metrics_of, run_all

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def arguments(place: Path) -> list[str]:
    return demo_arguments("alignment/demo.yaml", place)


@pytest.fixture(scope="module")
def demo(spark: Any, place: Path, arguments: list[str]) -> Iterator[Path]:
    yield from run_all(JOB, arguments, place, spark)


def test_nothing_of_the_log_is_lost(demo: Path) -> None:
    found = metrics_of(demo)
    predictions = pd.read_parquet(demo / "predictions")
    quarantine = pd.read_parquet(demo / "quarantine")
    lines = (ROOT / "lib/corpusmill/corpora/samples/query_log.tsv").read_bytes().splitlines()
    assert len(predictions) + len(quarantine) == len(lines) - 1
    assert predictions["query"].is_unique
    assert len(predictions) == found["input.queries"] == found["input.lines"]
    assert predictions["count"].sum() == found["input.occurrences"]
    assert found["input.quarantined"] == len(quarantine) == 6


def test_predictions_are_ranked_and_explained(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions")
    found = predictions.dropna(subset="entity")
    assert len(found) == metrics_of(demo)["input.matched"]
    assert predictions[predictions["entity"].isna()]["classes"].isna().all()
    for probabilities in found["probabilities"]:
        assert (np.diff(probabilities) <= 0).all()
        assert probabilities.sum() <= 1 + 1e-9
    rows: list[dict[str, Any]] = found.to_dict("records")  # type: ignore[assignment]
    for row in rows:
        words = tokenize(pa.array([row["query"]]))[0].as_py()
        assert set(row["context_words"]) <= set(words)
        assert (np.diff(row["evidence"]) <= 0).all()
        assert len(row["classes"]) == len(row["probabilities"])


def test_classes_are_found_without_having_been_seen(demo: Path) -> None:
    found = metrics_of(demo)
    assert found["evaluate.queries"] > 2500
    assert found["dba.accuracy_at_1"] > 0.9
    assert found["dba.accuracy_at_1"] <= found["dba.accuracy_at_2"] <= found["dba.accuracy_at_3"]
    assert found["dba.f1_macro"] > 0.85


def test_the_model_is_whole_and_tracked(demo: Path, place: Path) -> None:
    model = AlignmentModel.load(storage.resolve(str(demo), "model"))
    bounds = [item.bound for item in model.history]
    assert (np.diff(bounds) > 0).all()
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(experiment_names=["corpusmill"])
    assert (runs["status"] == "FINISHED").all()
    run = runs[runs["params.action"] == "train"].iloc[0]
    history = mlflow.MlflowClient().get_metric_history(run["run_id"], "bound")
    assert [item.value for item in sorted(history, key=lambda item: item.step)] == bounds
    artifacts = {item.path for item in mlflow.MlflowClient().list_artifacts(run["run_id"], "plots")}
    assert artifacts == {"plots/bound.png", "plots/parameters.png"}


def test_a_rerun_has_nothing_to_do_and_says_so(
    spark: Any, demo: Path, arguments: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    model, runs = storage.resolve(str(demo), "model"), sorted((demo / "runs").iterdir())
    assert run_job(JOB, ["train", *arguments], spark) == 0
    assert "already finished" in capfd.readouterr().err
    assert storage.resolve(str(demo), "model") == model
    assert sorted((demo / "runs").iterdir()) == runs


@pytest.mark.slow
def test_a_new_start_gives_the_same_bytes(spark: Any, demo: Path, arguments: list[str]) -> None:
    first = Path(storage.resolve(str(demo), "model"))
    before = {file.name: file.read_bytes() for file in first.iterdir()}
    assert run_job(JOB, ["train", *arguments, "restart=true"], spark) == 0
    again = Path(storage.resolve(str(demo), "model"))
    assert again != first
    assert {file.name: file.read_bytes() for file in again.iterdir()} == before


@pytest.mark.slow
def test_tomorrow_refines_yesterday(spark: Any, demo: Path, arguments: list[str]) -> None:
    words = [*arguments, f"output={demo.parent}/tomorrow", f"warm_start={demo}"]
    assert run_job(JOB, ["train", *words, "model.max_iter=3"], spark) == 0
    warm = AlignmentModel.load(storage.resolve(f"{demo.parent}/tomorrow", "model"))
    cold = AlignmentModel.load(storage.resolve(str(demo), "model"))
    assert warm.history[0].bound > cold.history[1].bound


@pytest.mark.slow
def test_the_review_notebook_runs(demo: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(ROOT / "notebooks" / "review_alignment.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{place}/mlflow.db")
    monkeypatch.setenv("CORPUSMILL_OUTPUT", str(demo))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "lib"))
    where = {"metadata": {"path": str(place)}}
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources=where).execute()
    printed = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])
    )
    assert "smallest gain" in printed
    kinds = {
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    }
    assert {"image/png", "text/html"} <= kinds
