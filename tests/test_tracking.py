"""Runs, metrics and models as MLflow keeps them."""

from __future__ import annotations

import fcntl
import json
import os
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib.figure
import mlflow
import numpy as np
import pandas as pd
import pytest
import yaml

from corpusmill import models, storage, tracking
from corpusmill.errors import CorpusmillError, ModelError, UsageError
from corpusmill.settings import TrackingSettings
from corpusmill.tracking import Tracker

ROOT = Path(__file__).resolve().parents[1]
# mlflow itself uses what pandas, pydantic and SQLAlchemy have deprecated.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
]

TINY = """
import pandas as pd
from corpusmill import storage

class Tiny:
    def __init__(self, weight):
        self.weight = weight

    @classmethod
    def load(cls, folder):
        return cls(float(storage.load_model(folder, "tiny").arrays["w"]))

    def predict_frame(self, frame):
        values = [[self.weight * x, -x] for x in frame["x"]]
        return pd.DataFrame({"twice": frame["x"] * self.weight, "both": values})
"""


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[TrackingSettings]:
    yield TrackingSettings(uri=f"sqlite:///{tmp_path}/db/mlflow.db")
    assert mlflow.active_run() is None


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A saved model of a kind that is allowed for this test only."""
    (tmp_path / "tiny_kind.py").write_text(TINY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(models.MODEL_KINDS, "tiny", "tiny_kind:Tiny")
    storage.save_model(str(tmp_path / "tiny"), "tiny", 1, {"w": np.array(2.0)}, {})
    yield str(tmp_path / "tiny")
    sys.modules.pop("tiny_kind", None)


def finished(tracker: Tracker) -> Any:
    return mlflow.get_run(str(tracker.run_id))


def artifact(tracker: Tracker, path: str) -> Path:
    location = finished(tracker).info.artifact_uri.removeprefix("file://")
    return Path(location) / path


def can_open(folder: Path) -> bool:
    """Tell whether another job could open the database in a folder now."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def test_one_job_at_a_time_makes_the_tables(tmp_path, settings, monkeypatch):
    meanwhile = []
    make = tracking._experiment_id

    def made(*arguments):
        meanwhile.append(can_open(tmp_path / "db"))
        return make(*arguments)

    monkeypatch.setattr(tracking, "_experiment_id", made)
    with Tracker(settings, "run"):
        assert meanwhile == [False]
        assert can_open(tmp_path / "db")


def test_run_is_kept_whole(settings: TrackingSettings, tmp_path: Path):
    figure = matplotlib.figure.Figure()
    figure.subplots().plot([1, 2])
    with Tracker(settings, "alignment train", {"team": "a"}) as tracker:
        tracker.log_params({"seed": 1, "model": {"names": ["a"] * 1000, "path": None}})
        tracker.log_metrics({"bound": -2.0}, step=1)
        tracker.log_metrics({"bound": -1.0, "f1 (macro)": 0.5, "missing": None}, step=2)
        tracker.log_conf({"seed": 1, "name": "ä"})
        tracker.log_figure(figure, "plots/bound.png")
        tracker.log_table(pd.DataFrame({"class": ["a"], "f1": [0.5]}), "tables/classes.json")
        tracker.log_html("<p>ä</p>", "pages/review.html")
        tracker.log_input("corpus.path", "f" * 64, "hdfs://nn/log.tsv")
    run = finished(tracker)
    assert run.info.status == "FINISHED"
    assert run.info.run_name == "alignment train"
    assert run.data.tags["team"] == "a"
    assert run.data.params["seed"] == "1"
    assert run.data.params["model.path"] == "None"
    assert len(run.data.params["model.names"]) == 500
    assert run.data.metrics == {"bound": -1.0, "f1 _macro_": 0.5}
    history = mlflow.MlflowClient().get_metric_history(str(tracker.run_id), "bound")
    assert [(point.step, point.value) for point in history] == [(1, -2.0), (2, -1.0)]
    assert run.info.artifact_uri.startswith(f"file://{tmp_path}/db/mlartifacts/")
    assert artifact(tracker, "conf.yaml").read_text() == "seed: 1\nname: ä\n"
    assert artifact(tracker, "plots/bound.png").read_bytes().startswith(b"\x89PNG")
    table = json.loads(artifact(tracker, "tables/classes.json").read_text())
    assert table["data"] == [["a", 0.5]]
    assert artifact(tracker, "pages/review.html").read_text() == "<p>ä</p>"
    (used,) = run.inputs.dataset_inputs
    assert (used.dataset.name, used.dataset.digest) == ("corpus.path", "f" * 36)
    assert "hdfs://nn/log.tsv" in used.dataset.source


def test_secrets_do_not_reach_the_store(settings: TrackingSettings):
    conf: dict[str, Any] = {
        "output": "s3a://me:hidden@bucket/out",
        "spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "hidden", "spark.task.cpus": "1"}},
        "sources": [{"path": "hdfs://host/log", "token_weight": 0.5}],
    }
    with Tracker(settings, "job", {"corpusmill.output": conf["output"]}) as tracker:
        tracker.log_params(conf)
        tracker.log_conf(conf)
    run = finished(tracker)
    kept = artifact(tracker, "conf.yaml").read_text()
    assert "hidden" not in f"{run.data.params} {run.data.tags} {kept}"
    assert yaml.safe_load(kept) == {
        "output": "s3a://(redacted)@bucket/out",
        "spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "(redacted)", "spark.task.cpus": "1"}},
        "sources": [{"path": "hdfs://host/log", "token_weight": 0.5}],
    }


def test_password_of_the_store_is_not_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with (
        pytest.raises(UsageError, match=r"^CONF06: .*http://\(redacted\)@127\.0\.0\.1:1") as caught,
        Tracker(TrackingSettings(uri="http://me:hidden@127.0.0.1:1"), "job"),
    ):
        pass
    assert "hidden" not in str(caught.value)


def test_a_curve_has_a_value_a_step(settings: TrackingSettings):
    values = [1.0 / (1 + step) for step in range(1003)]
    with Tracker(settings, "job") as tracker:
        tracker.log_curve("first loss (a)", values[:2])
        tracker.log_curve("first loss (a)", values[2:], first_step=2)
    run = finished(tracker)
    (name,) = run.data.metrics
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, name)
    assert {point.step: point.value for point in history} == dict(enumerate(values))


def test_parent_and_children_keep_their_own_metrics(settings: TrackingSettings):
    with Tracker(settings, "job") as job, job.child("fold 1") as fold:
        fold.log_metrics({"f1": 0.1})
        job.log_metrics({"f1": 0.9})
        job.log_html("x", "of_the_job.html")
    assert finished(job).data.metrics == {"f1": 0.9}
    assert finished(fold).data.metrics == {"f1": 0.1}
    assert finished(fold).data.tags["mlflow.parentRunId"] == job.run_id
    assert finished(fold).info.experiment_id == finished(job).info.experiment_id
    assert artifact(job, "of_the_job.html").exists()


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError, "FAILED"), (KeyboardInterrupt, "KILLED")]
)
def test_failed_run_is_called_so(
    settings: TrackingSettings, error: type[BaseException], status: str
):
    tracker = Tracker(settings, "job")
    with pytest.raises(error), tracker:  # noqa: PT012
        fold = tracker.child("fold")
        with fold:
            raise error
    assert finished(tracker).info.status == status
    assert finished(fold).info.status == status


def test_switched_off_it_does_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with Tracker(TrackingSettings(enabled=False), "job") as tracker:
        tracker.log_params({"a": 1})
        tracker.log_metrics({"a": 1.0})
        tracker.log_curve("a", [1.0])
        tracker.log_conf({})
        tracker.log_html("", "a.html")
        tracker.log_input("a", "b", "c")
        assert tracker.log_model("nowhere", "nothing", pd.DataFrame()) is None
        with tracker.child("fold") as fold:
            fold.log_metrics({"a": 1.0})
    assert tracker.run_id is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "uri", ["nosuch:x", "http://127.0.0.1:9", "sqlite:////proc/none/x.db", "postgresql://h:1/x"]
)
def test_bad_uri_is_one_line_that_names_the_key(uri: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with (
        pytest.raises(UsageError, match=r"^CONF06: cannot read tracking\.uri = .*: .+$"),
        Tracker(TrackingSettings(uri=uri), "job"),
    ):
        pass


def test_lost_store_is_one_line(settings: TrackingSettings):
    with (
        pytest.raises(CorpusmillError, match=r"^TRACK01: MLflow at sqlite:.*: .+$"),
        Tracker(settings, "job") as tracker,
    ):
        tracker.log_html("x", "../outside.html")
    assert finished(tracker).info.status == "FAILED"


def test_model_comes_back_from_code_alone(
    settings: TrackingSettings, tiny: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    example = pd.DataFrame({"x": [1.0, 3.0]})
    with Tracker(settings, "job") as tracker:
        uri = tracker.log_model(tiny, "tiny", example)
    assert uri is not None
    loaded = mlflow.pyfunc.load_model(uri)
    answer = loaded.predict(example)
    assert answer["twice"].tolist() == [2.0, 6.0]
    assert [list(pair) for pair in answer["both"]] == [[2.0, -1.0], [6.0, -3.0]]
    assert loaded.metadata.signature.inputs.input_names() == ["x"]
    assert loaded.metadata.signature.outputs.input_names() == ["twice", "both"]
    folder = Path(mlflow.artifacts.download_artifacts(uri))
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert "code/corpusmill/tracking/pyfunc_model.py" in names
    assert "artifacts/model/arrays.npz" in names
    assert not [name for name in names if name.endswith((".pkl", ".pyc", ".cloudpickle"))]
    required = (folder / "requirements.txt").read_text().split()
    assert f"numpy=={version('numpy')}" in required


def test_pins_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = dict(line.split("==") for line in project["dependencies"])
    assert {name: pins[name] for name in tracking.SERVED_WITH} == {
        name: version(name) for name in tracking.SERVED_WITH
    }


def test_altered_weights_are_refused_when_served(settings: TrackingSettings, tiny: str):
    with Tracker(settings, "job") as tracker:
        uri = tracker.log_model(tiny, "tiny", pd.DataFrame({"x": [1.0]}))
    arrays = Path(mlflow.artifacts.download_artifacts(str(uri))) / "artifacts/model/arrays.npz"
    arrays.write_bytes(arrays.read_bytes()[:-9] + b"x" * 9)
    with pytest.raises(ModelError, match=r"MODEL02: .*arrays.npz does not match"):
        mlflow.pyfunc.load_model(str(uri))


def test_unknown_kind_is_refused(settings: TrackingSettings, tiny: str):
    with pytest.raises(ModelError, match=r"MODEL03: 'os:system' is no kind of model; allowed: "):
        models.load("os:system", tiny)


@pytest.mark.spark
@pytest.mark.slow
def test_model_serves_in_spark(spark, settings: TrackingSettings, tmp_path: Path):
    from corpusmill.alignment import learning
    from corpusmill.alignment.learning import Parameters
    from corpusmill.alignment.model import AlignmentModel
    from corpusmill.alignment.settings import LearnerSettings

    learner = LearnerSettings()
    instances = learning.blank_instances(learner, 2, 3)
    parameters = Parameters(np.array([0.5, 2.0]), np.array([3.0, 1.0]), instances)
    model = AlignmentModel(("a", "b"), (), parameters, learner, np.array([0.7, 0.5]))
    model.save(str(tmp_path / "model"))
    example = pd.DataFrame(
        {
            "pattern_id": ["p", "q"],
            "instance_offsets": [[0, 2], [0, 1, 2]],
            "instance_weights": [[1.0], [2.0, 1.0]],
            "feature_ids": [[0, 1], [2, 0]],
            "feature_counts": [[1.0, 1.0], [3.0, 1.0]],
        }
    )
    with Tracker(settings, "job") as tracker:
        uri = tracker.log_model(str(tmp_path / "model"), "alignment", example)
    serve = mlflow.pyfunc.spark_udf(spark, str(uri), env_manager="local")
    rows = spark.createDataFrame(example).select("pattern_id", serve(*example).alias("out"))
    found = {row["pattern_id"]: row["out"]["probability"] for row in rows.collect()}
    expected = model.predict_frame(example)["probability"]
    for pattern, probabilities in zip(example["pattern_id"], expected, strict=True):
        np.testing.assert_allclose(found[pattern], probabilities, rtol=0, atol=1e-9)


def test_alignment_is_an_allowed_kind():
    from corpusmill.alignment.model import AlignmentModel

    assert models.MODEL_KINDS[AlignmentModel.KIND].endswith(f":{AlignmentModel.__name__}")


def test_nothing_is_printed(
    settings: TrackingSettings, tiny: str, capfd: pytest.CaptureFixture[str]
):
    with Tracker(settings, "job") as tracker:
        tracker.log_metrics({"a": 1.0})
        tracker.log_model(tiny, "tiny", pd.DataFrame({"x": [1.0]}))
    assert capfd.readouterr() == ("", "")
