"""The boosting job on the embedded sample, and with input that is broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lightgbm as lgb
import mlflow
import numpy as np
import pandas as pd
import pytest

from corpusmill import storage
from corpusmill.boosting.batches import FACTOR_ROWS, read_examples
from corpusmill.boosting.estimator import StructuredBoostingModel
from corpusmill.boosting.fitting import Progress, fit_factors
from corpusmill.boosting.model import OPTIONAL, BoostingModel
from corpusmill.boosting.pipeline import JOB
from corpusmill.boosting.tasks import training
from corpusmill.corpora.schemas import FACTORS
from corpusmill.frames import record_batch
from corpusmill.runner import run_job
from tests.jobs import ROOT, demo_arguments, metrics_of, model_files, run_all

SAMPLES = ROOT / "lib" / "corpusmill" / "corpora" / "samples"

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("boosting")


@pytest.fixture(scope="module")
def arguments(place: Path) -> list[str]:
    return demo_arguments("boosting/demo.yaml", place)


@pytest.fixture(scope="module")
def demo(spark: Any, place: Path, arguments: list[str]) -> Iterator[Path]:
    yield from run_all(JOB, arguments, place, spark)


def sample(name: str) -> Any:
    lines = (SAMPLES / f"factors_{name}.jsonl").read_text().splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def test_metrics_are_those_of_the_predictions(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions").set_index("example_id")
    gold, found = sample("test").set_index("example_id")["gold"], metrics_of(demo)
    assert set(predictions.index) == set(gold.index)
    pairs = [(set(predictions["prediction"][name]), set(gold[name])) for name in gold.index]
    right = sum(len(a & b) for a, b in pairs)
    assert found["boosting.precision"] == pytest.approx(right / sum(len(a) for a, _ in pairs))
    assert found["boosting.recall"] == pytest.approx(right / sum(len(b) for _, b in pairs))
    assert found["boosting.whole_outputs"] == pytest.approx(np.mean([a == b for a, b in pairs]))
    assert found["boosting.f1"] > 0.6
    assert found["train.last_loss"] < found["train.first_loss"]


def test_all_ways_to_predict_agree(demo: Path, spark: Any) -> None:
    test = sample("test")
    model = BoostingModel.load(storage.resolve(str(demo), "model"))
    found = model.predict_frame(test)
    job = pd.read_parquet(demo / "predictions").set_index("example_id").loc[test["example_id"]]
    rows = spark.createDataFrame(test.assign(previous=None, labels=None)[FACTORS.names], FACTORS)
    spread = StructuredBoostingModel(model).transform(rows).toPandas().set_index("example_id")
    for name in ("prediction", "scores", "probability"):
        for a, b, c in zip(found[name], job[name], spread[name], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)
            np.testing.assert_allclose(a, c, rtol=0, atol=1e-12)


def test_the_pyfunc_predicts_alike(demo: Path, place: Path, spark: Any) -> None:
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    trained = next(run for run in runs if run.info.run_name == "demo train")
    logged = mlflow.search_logged_models([trained.info.experiment_id], output_format="list")
    served = mlflow.pyfunc.load_model(logged[0].model_uri)
    test = sample("test").head(5)
    model = BoostingModel.load(storage.resolve(str(demo), "model"))
    for a, b in zip(
        served.predict(test)["scores"], model.predict_frame(test)["scores"], strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)
    client = mlflow.MlflowClient()
    names = {file.path for file in client.list_artifacts(trained.info.run_id, "plots")}
    assert names == {"plots/importance.png", "plots/loss.png"}
    history = client.get_metric_history(trained.info.run_id, "loss")
    assert [point.step for point in history] == list(range(20))


def test_probabilities_are_those_of_outputs(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions").set_index("example_id")
    test = sample("test").set_index("example_id")
    for name, chance in predictions["probability"].items():
        sums = np.add.reduceat(chance, test["row_offsets"][name][:-1])
        np.testing.assert_allclose(sums, 1.0, atol=1e-12)


@pytest.mark.slow
def test_broken_examples_go_to_quarantine(tmp_path: Path, spark: Any, capfd: Any) -> None:
    train = sample("train")
    train.at[3, "ends"] = [0] * len(train.at[3, "ends"])
    train.at[4, "features"] = train.at[4, "features"][:-1]
    train.at[5, "gold"] = [10_000]
    train.at[6, "gold"] = None
    train.at[7, "features"] = [None, *train.at[7, "features"][1:]]
    train.at[8, "row_offsets"] = []
    train.at[9, "gold"] = [None]
    path = tmp_path / "broken.jsonl"
    train.to_json(path, orient="records", lines=True)
    arguments = [*demo_arguments("boosting/demo.yaml", tmp_path), f"input.train.path={path}"]
    assert run_job(JOB, ["train", *arguments, "model.trees=2"], spark) == 0
    bad = pd.read_parquet(tmp_path / "out" / "quarantine").sort_values("position")
    assert list(bad["position"]) == [f"text-{n:03d}" for n in (3, 4, 5, 7, 8, 9)]
    assert [reason.split(" ")[0] for reason in bad["reason"]] == [
        "0",
        "features",
        "gold",
        "features",
        "row_offsets",
        "gold",
    ]
    assert metrics_of(tmp_path / "out")["input.train.quarantined"] == 6
    assert run_job(JOB, ["train", *arguments, "quarantine.max_share=0.01"], spark) == 1
    assert "DATA02: 6 of 160 records" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["input.train.path=/nowhere"], "CONF06: cannot read input.train.path"),
        (["model.structure=tree"], "CONF04: model.structure = 'tree'"),
        (["feature_names=[a]"], "BOOST01: 1 feature names for 5 features a row"),
        (["input.train.format=parquet"], "error: "),
        (["model.structure=chain"], "DATA02: "),
    ],
)
def test_a_user_s_mistake_is_one_line(
    tmp_path: Path, spark: Any, capfd: Any, change: list[str], message: str
) -> None:
    arguments = [*demo_arguments("boosting/demo.yaml", tmp_path), *change]
    assert run_job(JOB, ["train", *arguments], spark) in (1, 2)
    told = capfd.readouterr().err
    assert message in told
    assert "Traceback" not in told


def test_a_killed_training_is_resumed(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, demo: Path
) -> None:
    arguments = ["train", *demo_arguments("boosting/demo.yaml", tmp_path)]
    real = fit_factors
    begun = []

    def killed(*given: Any) -> Any:
        rows, settings, seed, names, block, on_block, start = given
        begun.append(len(start.losses))

        def once(done: Progress) -> None:
            on_block(done)
            raise KeyboardInterrupt

        return real(rows, settings, seed, names, block, once, start)

    monkeypatch.setattr(training, "fit_factors", killed)
    assert run_job(JOB, arguments, spark) == 1
    assert not (tmp_path / "out" / "current.json").exists()
    assert run_job(JOB, arguments, spark) == 1
    assert begun == [0, 10]
    monkeypatch.undo()
    assert run_job(JOB, arguments, spark) == 0
    assert model_files(str(tmp_path / "out")) == model_files(str(demo))


def test_trees_open_in_lightgbm(demo: Path) -> None:
    folder = Path(storage.resolve(str(demo), "model"))
    model = BoostingModel.load(str(folder))
    booster = lgb.Booster(model_file=str(folder / "trees.txt"))
    batch = record_batch(sample("test"), FACTOR_ROWS, OPTIONAL)
    features = read_examples(batch, "spans", len(model.names)).features
    np.testing.assert_array_equal(booster.predict(features, raw_score=True), model.scores(features))
