"""The linking job on the embedded sample."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest

from corpusmill import storage
from corpusmill.linking.errors import BOUNDARY, NAMES, SECOND
from corpusmill.linking.model import PREDICTIONS, LinkingModel
from corpusmill.linking.pipeline import JOB
from corpusmill.runner import run_job
from tests.jobs import ROOT, demo_arguments, metrics_of, run_all

SAMPLES = ROOT / "lib" / "corpusmill" / "corpora" / "samples"
TEXTS = SAMPLES / "linking_texts.jsonl"
METHODS = ("smart", "smart_entity", "mart", "perceptron")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("linking")


@pytest.fixture(scope="module")
def arguments(place: Path) -> list[str]:
    return demo_arguments("linking/demo.yaml", place)


@pytest.fixture(scope="module")
def demo(spark: Any, place: Path, arguments: list[str]) -> Iterator[Path]:
    yield from run_all(JOB, arguments, place, spark)


def gold_texts() -> dict[str, Any]:
    lines = (SAMPLES / "linking_texts.jsonl").read_text().splitlines()
    texts = [json.loads(line) for line in lines]
    return {text["id"]: text for text in texts if text["split"] == "test"}


def spans(text: Any) -> set[tuple[int, int, str]]:
    return {(m["start"], m["end"], m["entity"]) for m in text["mentions"]}


def test_exact_metrics_are_those_of_the_predictions(demo: Path) -> None:
    gold, found = gold_texts(), metrics_of(demo)
    predictions = pd.read_parquet(demo / "predictions").set_index("text_id")
    assert set(predictions.index) == set(gold)
    right = predicted = 0
    for name, row in predictions.iterrows():
        links = set(
            zip(row["mention_starts"], row["mention_ends"], row["mention_entities"], strict=True)
        )
        right += len(links & spans(gold[str(name)]))
        predicted += len(links)
    total = sum(len(text["mentions"]) for text in gold.values())
    assert found["smart_entity.exact.precision"] == pytest.approx(right / predicted)
    assert found["smart_entity.exact.recall"] == pytest.approx(right / total)
    assert found["gold_mentions"] == total


def test_every_method_is_measured_below_the_ceiling(demo: Path) -> None:
    found = metrics_of(demo)
    for method in METHODS:
        for part in ("precision", "recall", "f1"):
            assert found[f"{method}.{part}"] == found[f"sample.{method}.{part}"]
        assert 0.5 < found[f"{method}.f1"] <= 1.0
        assert found[f"{method}.recall"] <= found["candidate_recall"] + 1e-12
        assert found[f"{method}.exact.f1"] <= found[f"{method}.f1"] + 1e-12
        assert 0.0 < found[f"{method}.ir.f1"] <= 1.0
    assert 0.9 < found["candidate_recall_exact"] <= found["candidate_recall"] <= 1.0


def test_mentions_are_in_the_text_and_do_not_overlap(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions")
    for _, row in predictions.iterrows():
        starts, ends = row["mention_starts"], row["mention_ends"]
        assert (np.array(starts) < np.array(ends)).all()
        assert (np.array(ends[:-1]) <= np.array(starts[1:])).all()
        assert all(0 <= end <= len(row["text"]) for end in ends)
        chance, second = row["mention_probabilities"], row["runner_up_probabilities"]
        assert ((chance > 0.0) & (chance <= 1.0) & (chance + second <= 1.0 + 1e-9)).all()
        for entity, other in zip(row["mention_entities"], row["runner_up_entities"], strict=True):
            assert entity != other


def test_a_saved_model_and_its_pyfunc_link_alike(demo: Path, place: Path) -> None:
    model = LinkingModel.load(storage.resolve(str(demo), "model"))
    frame = pd.read_parquet(demo / "predictions").sort_values("text_id").reset_index()
    alone = model.predict_frame(frame[["text"]])
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    trained: Any = next(run for run in runs if run.info.run_name == "demo train")
    logged = mlflow.search_logged_models([trained.info.experiment_id], output_format="list")
    served = mlflow.pyfunc.load_model(logged[0].model_uri).predict(frame[["text"]].head(5))
    for name in PREDICTIONS.names:
        for number, value in enumerate(alone[name]):
            assert list(value) == list(frame[name][number])
            if number < len(served):
                assert list(value) == list(served[name][number])
    names = {
        file.path for file in mlflow.MlflowClient().list_artifacts(trained.info.run_id, "plots")
    }
    assert {"plots/first_bias.png", "plots/second_bias.png", "plots/first_loss.png"} <= names
    for name in ("first_loss", "second_loss"):
        history = mlflow.MlflowClient().get_metric_history(trained.info.run_id, name)
        assert [point.step for point in history] == list(range(40))


def test_errors_are_counted_by_kind_and_shown(demo: Path, place: Path) -> None:
    found = metrics_of(demo)
    counts = [found[f"errors.{name}"] for name in NAMES]
    assert sum(counts[:SECOND]) == found["gold_mentions"]
    right = sum(counts[: BOUNDARY + 1])
    assert found["smart_entity.recall"] == pytest.approx(right / found["gold_mentions"])
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    evaluated: Any = next(run for run in runs if run.info.run_name == "demo evaluate")
    page = mlflow.artifacts.load_text(f"{evaluated.info.artifact_uri}/pages/errors.html")
    assert "<h1>Errors: sample</h1>" in page
    assert page.count("<article>") >= sum(count > 0 for count in counts)


@pytest.mark.slow
def test_knowledge_in_parts_finds_and_measures_the_same(
    demo: Path, arguments: list[str], spark: Any
) -> None:
    before, metrics = pd.read_parquet(demo / "predictions"), metrics_of(demo)
    for action in ("predict", "evaluate"):
        assert run_job(JOB, [action, *arguments, "broadcast_mb=0"], spark) == 0
    after = pd.read_parquet(demo / "predictions")
    one, other = (rows.sort_values("text_id", ignore_index=True) for rows in (before, after))
    pd.testing.assert_frame_equal(one, other, check_exact=True)
    found = {key: value for key, value in metrics_of(demo).items() if "seconds" not in key}
    assert found == {key: value for key, value in metrics.items() if "seconds" not in key}


def test_queries_of_a_log_are_linked_once_each(
    demo: Path, place: Path, arguments: list[str], spark: Any
) -> None:
    log = place / "log.tsv"
    log.write_text("flights to quell\nflights to quell\nlistening to summer on repeat\n")
    changed = [*arguments, "input.texts=null", f"input.queries=[{{path: {log}, columns: [query]}}]"]
    assert run_job(JOB, ["predict", *changed], spark) == 0
    found = pd.read_parquet(demo / "predictions").set_index("text")
    assert found["count"].to_dict() == {"flights to quell": 2, "listening to summer on repeat": 1}


@pytest.mark.slow
def test_texts_without_gold_are_linked(
    demo: Path, place: Path, arguments: list[str], spark: Any
) -> None:
    texts = place / "raw.jsonl"
    texts.write_text('{"id": "a", "text": "flights to quell"}\n{"id": "b"}\n')
    changed = [*arguments, f"input.texts={{path: {texts}}}", "quarantine.max_share=1"]
    assert run_job(JOB, ["predict", *changed], spark) == 0
    assert pd.read_parquet(demo / "predictions")["text_id"].tolist() == ["a"]
    assert pd.read_parquet(demo / "quarantine")["reason"].tolist() == ["no text"]


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        ([f"input.train=[{{path: {TEXTS}, splits: [none]}}]"], 1, "DATA03: input.train"),
        ([f"input.train=[{{path: {TEXTS}, share: [1, 0]}}]"], 2, "CONF11"),
        ([f"input.systems={{other: {{path: {TEXTS}, questions: x}}}}"], 2, "CONF11"),
        (["knowledge.lexicon=[]"], 2, "CONF04: knowledge.lexicon"),
        (["knowledge.lexicon.0.path=/nowhere"], 2, "CONF0"),
        (["model.candidates=0"], 2, "CONF04: model.candidates"),
        (["model.structure=chain"], 2, "CONF04: model.structure"),
        (["knowledge.common=[{path: x, pattern: '('}]"], 2, "CONF04: knowledge.common.0.pattern"),
    ],
)
def test_a_user_s_mistake_is_one_line(
    tmp_path: Path, spark: Any, capfd: Any, change: list[str], status: int, message: str
) -> None:
    arguments = [*demo_arguments("linking/demo.yaml", tmp_path), *change]
    assert run_job(JOB, ["train", *arguments], spark) == status
    told = capfd.readouterr().err
    assert message in told
    assert "Traceback" not in told
