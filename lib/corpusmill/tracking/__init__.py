"""MLflow runs: parameters, metrics, plots, tables and the model. The only user of mlflow."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import yaml

from corpusmill import models
from corpusmill.errors import CorpusmillError, UsageError
from corpusmill.settings import TrackingSettings
from corpusmill.storage import Place

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# Set before mlflow is imported: it speaks to nobody but the tracking server, it prints no
# greeting, and an unreachable server is told within seconds and not after minutes of retries.
ENVIRONMENT = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
QUIET = ("mlflow", "alembic", "sqlalchemy")
MAX_PARAM_CHARS = 500
# As Spark's own spark.redaction.regex, and the user:password of a URI.
SECRET_KEY = re.compile(r"(?i)secret|password|token|access[.]?key")
SECRET_IN_URI = re.compile(r"(?<=://)[^/@\s]*:[^/@\s]*(?=@)")
REDACTED = "(redacted)"
# What a served model imports; each is pinned to the version that logged it.
SERVED_WITH = tuple("mlflow numba numpy pandas pyarrow pydantic PyYAML scipy".split())


class Tracker:
    """One MLflow run as a context manager; does nothing where tracking is off.

    Log on the driver only. The run ends as FINISHED, as FAILED after an exception, as KILLED
    after an interruption.

    Parameters
    ----------
    settings
        Where MLflow keeps the runs.
    name
        The run's name.
    tags
        The run's tags.
    """

    def __init__(
        self, settings: TrackingSettings, name: str, tags: Mapping[str, str] | None = None
    ) -> None:
        self.settings = settings
        self.name = name
        self.tags = without_secrets(tags or {})
        self.run_id: str | None = None
        self._mlflow: Any = None

    def __enter__(self) -> Self:
        if not self.settings.enabled:
            return self
        self._mlflow = _import_mlflow()
        try:
            self._mlflow.set_tracking_uri(self.settings.uri)
            with _alone(self.settings):
                experiment = _experiment_id(self._mlflow, self.settings)
            run = self._mlflow.start_run(
                experiment_id=experiment,
                run_name=self.name,
                tags=self.tags,
                nested=True,
                log_system_metrics=False,
            )
        except Exception as error:
            path, problem = without_secrets(self.settings.uri), _first_line(error)
            raise UsageError("CONF06", key="tracking.uri", path=path, problem=problem) from error
        self.run_id = run.info.run_id
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._mlflow is None:
            return
        failed = "FAILED" if kind is None or issubclass(kind, Exception) else "KILLED"
        status = "FINISHED" if kind is None else failed
        try:
            self._mlflow.end_run(status)
        except Exception as problem:
            if error is None:
                raise self._error(problem) from problem
            # The job's own error is the one to tell.

    def child(self, name: str) -> Tracker:
        """Return a run below this one, for a fold, a split or a stage, to be entered in turn."""
        return Tracker(self.settings, name)

    def log_params(self, params: Mapping[str, Any]) -> None:
        """Log nested parameters under dotted names, long values cut, secrets left out."""
        with self._logging() as mlflow:
            if mlflow is not None:
                mlflow.log_params(dict(_flat(without_secrets(params))), run_id=self.run_id)

    def log_metrics(self, metrics: Mapping[str, float | None], step: int | None = None) -> None:
        """Log numbers by name; None is left out. ``step`` is the iteration."""
        known = {_metric_name(name): value for name, value in metrics.items() if value is not None}
        with self._logging() as mlflow:
            if mlflow is not None and known:
                mlflow.log_metrics(known, step=step, run_id=self.run_id)

    def log_curve(self, name: str, values: Iterable[float], first_step: int = 0) -> None:
        """Log a number at consecutive steps in one call: one each takes a tenth of a second."""
        with self._logging() as mlflow:
            if mlflow is not None:
                now = int(1000 * time.time())
                points = [
                    mlflow.entities.Metric(_metric_name(name), float(value), now, step)
                    for step, value in enumerate(values, first_step)
                ]
                mlflow.MlflowClient().log_batch(self.run_id, metrics=points)

    def log_figure(self, figure: Figure, path: str) -> None:
        """Log a matplotlib figure, for instance as ``plots/bound.png``."""
        with self._logging() as mlflow:
            if mlflow is not None:
                mlflow.MlflowClient().log_figure(self.run_id, figure, path)

    def log_table(self, table: pd.DataFrame, path: str) -> None:
        """Log a small table, for instance as ``tables/classes.json``."""
        with self._logging() as mlflow:
            if mlflow is not None:
                mlflow.MlflowClient().log_table(self.run_id, table, path)

    def log_csv(self, table: pd.DataFrame, path: str) -> None:
        """Log a table as a file to take away, for instance as ``tables/fragments.csv``."""
        with self._logging() as mlflow:
            if mlflow is not None:
                mlflow.MlflowClient().log_text(self.run_id, table.to_csv(index=False), path)

    def log_html(self, text: str, path: str) -> None:
        """Log a page, for instance as ``pages/review.html``."""
        with self._logging() as mlflow:
            if mlflow is not None:
                mlflow.MlflowClient().log_text(self.run_id, text, path)

    def log_conf(self, conf: Mapping[str, Any]) -> None:
        """Log the resolved conf, less its secrets, as ``conf.yaml``, which can be run again."""
        with self._logging() as mlflow:
            if mlflow is not None:
                shown = without_secrets(conf)
                text = yaml.safe_dump(shown, sort_keys=False, allow_unicode=True)
                mlflow.MlflowClient().log_text(self.run_id, text, "conf.yaml")

    def log_input(self, name: str, digest: str, source: str) -> None:
        """Log which data the run read.

        Parameters
        ----------
        name
            What it is, for instance the key of the conf that names it.
        digest
            Its fingerprint; the first 36 characters are kept.
        source
            Path or URI.
        """
        with self._logging() as mlflow:
            if mlflow is not None:
                _log_input(mlflow, self.run_id, name, digest[:36], without_secrets(source))

    def log_model(self, folder: str, kind: str, input_example: pd.DataFrame) -> str | None:
        """Log a saved model as a pyfunc from code, without pickle.

        The model's folder goes in as an artifact, the package's source as code, so that
        `mlflow.pyfunc.load_model` and ``spark_udf(..., env_manager="local")`` need no
        install of corpusmill.

        Parameters
        ----------
        folder
            A path or URI, as `corpusmill.models.load` takes it.
        kind
            A key of `corpusmill.models.MODEL_KINDS`.
        input_example
            A few rows; the signature comes from them and from the model's answer.

        Returns
        -------
        str or None
            The model's URI, None where tracking is off.
        """
        with self._logging() as mlflow:
            if mlflow is None:
                return None
            answer = models.load(kind, folder).predict_frame(input_example)
            with tempfile.TemporaryDirectory() as scratch:
                package = _copy_tree(files("corpusmill"), Path(scratch) / "corpusmill")
                weights = _local_copy(folder, Path(scratch) / "model")
                logged = mlflow.pyfunc.log_model(
                    name="model",
                    python_model=str(package / "tracking" / "pyfunc_model.py"),
                    artifacts={"model": str(weights)},
                    model_config={"kind": kind},
                    code_paths=[str(package)],
                    signature=mlflow.models.infer_signature(input_example, answer),
                    input_example=input_example,
                    pip_requirements=[f"{name}=={version(name)}" for name in SERVED_WITH],
                )
            return str(logged.model_uri)

    @contextmanager
    def _logging(self) -> Iterator[Any]:
        if self._mlflow is None:
            yield None
            return
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", module=r"mlflow\b")
                yield self._mlflow
        except CorpusmillError:
            raise
        except Exception as error:
            raise self._error(error) from error

    def _error(self, error: BaseException) -> CorpusmillError:
        uri = without_secrets(self.settings.uri)
        return CorpusmillError("TRACK01", uri=uri, problem=_first_line(error))


def _import_mlflow() -> Any:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Takes seconds; a job without tracking and one with a bad conf do without it.
        import mlflow  # noqa: PLC0415
        import mlflow.pyfunc  # noqa: PLC0415
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.ERROR)
    return mlflow


def _experiment_id(mlflow: Any, settings: TrackingSettings) -> str:
    found = mlflow.get_experiment_by_name(settings.experiment)
    if found is not None:
        return str(found.experiment_id)
    folder = _database_folder(settings)
    # A database file keeps its artifacts beside it; a server knows its own place.
    location = (folder / "mlartifacts").as_uri() if folder else None
    return str(mlflow.create_experiment(settings.experiment, artifact_location=location))


def _database_folder(settings: TrackingSettings) -> Path | None:
    database = re.match(r"^sqlite:///(?P<path>[^?]+)", settings.uri)
    return Path(database["path"]).resolve().parent if database else None


@contextmanager
def _alone(settings: TrackingSettings) -> Iterator[None]:
    """Let one job at a time open a database file: MLflow makes its tables without a lock."""
    folder = _database_folder(settings)
    with ExitStack() as stack:
        # Where there can be no folder MLflow tells why; some file systems have no locks.
        with suppress(OSError):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(folder, os.O_RDONLY)
                stack.callback(os.close, handle)
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _log_input(mlflow: Any, run_id: str | None, name: str, digest: str, source: str) -> None:
    from mlflow.data.dataset_source_registry import resolve_dataset_source  # noqa: PLC0415
    from mlflow.entities import Dataset, DatasetInput, InputTag  # noqa: PLC0415

    origin = resolve_dataset_source(source)
    kind = origin._get_source_type()
    dataset = Dataset(name, digest, kind, json.dumps(origin.to_dict()))
    tags = [InputTag("mlflow.data.context", name)]
    mlflow.MlflowClient().log_inputs(run_id, [DatasetInput(dataset, tags)])


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a conf, or a part of it under its name, with ``(redacted)`` for what is secret.

    Texts under a key that Spark redacts too, and user and password in a URI.
    """
    if isinstance(value, Mapping):
        return {key: without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, name) for item in value]
    if not isinstance(value, str):
        return value
    return REDACTED if SECRET_KEY.search(name) else SECRET_IN_URI.sub(REDACTED, value)


def _flat(params: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in params.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
            continue
        text = str(value)
        cut = text if len(text) <= MAX_PARAM_CHARS else f"{text[: MAX_PARAM_CHARS - 3]}..."
        yield f"{prefix}{name}", cut


def _metric_name(name: str) -> str:
    return re.sub(r"[^\w\-. :/]", "_", name)


def _first_line(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return SECRET_IN_URI.sub(REDACTED, text.splitlines()[0])[:300]


def _copy_tree(source: Traversable, target: Path) -> Path:
    """Copy a package's files, from a folder or from the zip it was imported from."""
    target.mkdir(parents=True)
    for item in source.iterdir():
        if item.name == "__pycache__":
            continue
        if item.is_dir():
            _copy_tree(item, target / item.name)
        else:
            (target / item.name).write_bytes(item.read_bytes())
    return target


def _local_copy(folder: str, target: Path) -> Path:
    place = Place.of(folder)
    for name, _ in place.files():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((place / name).read())
    return target
