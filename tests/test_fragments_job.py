"""The fragments job on the embedded sample: train, predict and evaluate."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest

from corpusmill import storage
from corpusmill.corpora.tree_formats import parse_bracketed
from corpusmill.corpora.trees import TreesSettings, read_trees
from corpusmill.fragments.estimator import FragmentClassifierModel
from corpusmill.fragments.model import FragmentsModel
from corpusmill.fragments.pipeline import JOB
from corpusmill.runner import run_job
from corpusmill.settings import QuarantineSettings
from tests.jobs import ROOT, demo_arguments, metrics_of, model_files, run_all

SAMPLES = ROOT / "lib" / "corpusmill" / "corpora" / "samples"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fragments")


@pytest.fixture(scope="module")
def arguments(place: Path) -> list[str]:
    return demo_arguments("fragments/demo.yaml", place)


@pytest.fixture(scope="module")
def demo(spark: Any, place: Path, arguments: list[str]) -> Iterator[Path]:
    yield from run_all(JOB, arguments, place, spark)


def test_every_example_is_predicted(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions")
    lines = (SAMPLES / "questions_trees_test.tsv").read_text().splitlines()
    assert len(predictions) == len(lines) - 1 == metrics_of(demo)["predict.examples"]
    assert predictions["example_id"].is_unique
    assert set(predictions["prediction"]) <= {"NUMBER", "PERSON", "PLACE", "TIME"}
    best = np.array(predictions["scores"].tolist()).argmax(axis=1)
    classes = np.array(["NUMBER", "PERSON", "PLACE", "TIME"])
    assert (classes[best] == predictions["prediction"]).all()


def test_metrics_are_those_of_the_predictions(demo: Path) -> None:
    predictions, found = pd.read_parquet(demo / "predictions"), metrics_of(demo)
    right = predictions["prediction"] == predictions["target"]
    assert found["linearised.accuracy"] == pytest.approx(right.mean())
    assert 0.5 < found["linearised.accuracy"] <= 1.0
    assert abs(found["linearised.accuracy"] - found["exact.accuracy"]) < 0.1
    for name in ("NUMBER", "PERSON", "PLACE", "TIME"):
        assert 0.0 < found[f"exact.{name}.f1"] <= 1.0


def test_deciding_fragments_are_read_back_and_occur(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions")
    shown = predictions[predictions["fragments"].map(len) > 0]
    assert len(shown) > 0.9 * len(predictions)
    for fragments, parts in zip(shown["fragments"], shown["contributions"], strict=True):
        assert len(fragments) == len(parts) <= 5
        assert (np.diff(parts) <= 0).all()
        assert (parts > 0).all()
        for text in fragments:
            parse_bracketed(text)


def test_the_table_of_fragments_is_ranked(demo: Path) -> None:
    table = pd.read_parquet(demo / "fragments")
    assert set(table["class"]) == {"NUMBER", "PERSON", "PLACE", "TIME"}
    for _, rows in table.groupby("class"):
        ordered = rows.sort_values("rank")
        assert (ordered["weight"].abs().diff().dropna() <= 0).all()
        assert list(ordered["rank"]) == list(range(1, len(ordered) + 1))
    assert (table["document_frequency"] > 0).all()


def test_mlflow_holds_pages_plots_and_the_model(demo: Path, place: Path) -> None:
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True)
    assert len(runs) == 3
    found = set()
    client = mlflow.MlflowClient()
    for run in runs["run_id"]:
        for folder in client.list_artifacts(run):
            found |= {item.path for item in client.list_artifacts(run, folder.path)}
    wanted = {
        "pages/fragments.html",
        "pages/predictions.html",
        "plots/weights.png",
        "plots/comparison.png",
        "tables/fragments.json",
        "tables/fragments.csv",
        "tables/comparison.json",
    }
    assert wanted <= found


@pytest.mark.slow
def test_a_second_training_gives_the_same_bytes(
    spark: Any, demo: Path, place: Path, arguments: list[str]
) -> None:
    again = [*arguments, f"output={place}/again", "partitions=3", "tracking.enabled=false"]
    assert run_job(JOB, ["train", *again], spark) == 0
    assert model_files(str(demo)) == model_files(f"{place}/again")


def test_all_ways_to_predict_agree(spark: Any, demo: Path) -> None:
    model = FragmentsModel.load(storage.resolve(str(demo), "model"))
    path = str(SAMPLES / "questions_trees_test.tsv")
    source = TreesSettings(path=path, header=True, trees=["tree"])
    rows = read_trees(spark, source, QuarantineSettings()).records
    job = pd.read_parquet(demo / "predictions").set_index("example_id").sort_index()
    frame = rows.toPandas().set_index("example_id").sort_index()
    on_arrays = model.predict_frame(frame)
    found = FragmentClassifierModel(model).transform(rows).toPandas()
    in_spark = found.set_index("example_id").sort_index()
    expected = np.array(job["scores"].tolist())
    for other in (on_arrays, in_spark):
        np.testing.assert_allclose(np.array(other["scores"].tolist()), expected, atol=1e-9)
        assert list(other["prediction"]) == list(job["prediction"])


@pytest.mark.parametrize(
    ("overrides", "status", "message"),
    [
        (["input.train.trees=[nothing]"], 2, "CONF04: input.train.trees"),
        (["model.miner=magic"], 2, "CONF04: model.miner"),
        (["model.feedback_rounds=2"], 2, "CONF11: .*model: feedback_rounds.*cascade"),
        (["input.train.path=/no/such.tsv"], 2, "CONF06: .*no such file"),
        (["classes=[A, B]"], 1, "FRAG02: class 'A'"),
        (["model.calibration_folds=3", "model.linear_solver=mllib"], 2, "CONF11: .*liblinear"),
    ],
)
def test_a_mistake_is_one_line(
    spark: Any,
    place: Path,
    arguments: list[str],
    capfd: pytest.CaptureFixture[str],
    overrides: list[str],
    status: int,
    message: str,
) -> None:
    out = f"output={place}/bad"
    words = ["train", *arguments, out, "tracking.enabled=false", *overrides]
    assert run_job(JOB, words, spark) == status
    told = capfd.readouterr().err
    assert "Traceback" not in told
    assert re.search(message, told), told


def test_a_row_of_more_trees_is_kept_and_told(
    spark: Any, demo: Path, place: Path, arguments: list[str]
) -> None:
    lines = ["PERSON |BT| (S (A b)) |ET|", "PLACE |BT| (S (A b)) |BT| (S (C d)) |ET|"]
    (place / "odd.svm").write_text("\n".join(lines) + "\n")
    source = f'input.test={{path: "{place}/odd.svm", format: svmlight}}'
    words = [*arguments, source, "tracking.enabled=false", "run_id=odd"]
    assert run_job(JOB, ["predict", *words], spark) == 0
    found = pd.read_parquet(Path(storage.resolve(str(demo), "predictions")))
    assert found["error"].notna().sum() == 1
    assert found.loc[found["error"].notna(), "prediction"].isna().all()
    assert "at most 1 trees" in found["error"].dropna().item()
    assert metrics_of(demo)["predict.not_predicted"] == 1
