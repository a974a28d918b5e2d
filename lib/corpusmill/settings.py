"""Typed settings: one YAML a job and corpus, checked before anything runs.

Every key is a field of a pydantic model; an unknown key, a wrong type or a bad
value ends the job with one line that names the key and what is allowed. A value
may hold ``${CORPUSMILL_DATA}``, which is replaced from the environment; nothing
else in a conf file is expanded or executed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from corpusmill.errors import UsageError

MAX_CONF_BYTES = 1 << 20
DEFAULT_DATA = "../shared/data"


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SparkSettings(Settings):
    """How the job meets Spark when it is not submitted with settings of its own."""

    master: str = Field("local[*]", description="used unless spark-submit names a master")
    shuffle_partitions: int = Field(8, ge=1)
    conf: dict[str, str] = Field(default_factory=dict, description="further Spark properties")


class TrackingSettings(Settings):
    """Where MLflow keeps the runs."""

    enabled: bool = True
    uri: str = Field("sqlite:///mlflow.db", description="any MLflow tracking URI")
    experiment: str = "corpusmill"


class QuarantineSettings(Settings):
    """How many bad records a job accepts before it stops."""

    max_share: float = Field(0.05, ge=0.0, le=1.0)
    max_record_chars: int = Field(65_536, ge=1)


class JobSettings(Settings):
    """What every job's conf holds.

    ``run_id`` "auto" derives the run's name from the conf and the inputs, so that
    a rerun of an unfinished job resumes it and a rerun of a finished one does
    nothing; ``restart`` computes it again.
    """

    name: str
    output: str = Field(description="folder or URI under which runs are committed")
    seed: int = Field(13, ge=0)
    run_id: str = Field("auto", pattern=r"^[A-Za-z0-9._-]+$")
    restart: bool = False
    spark: SparkSettings = SparkSettings()
    tracking: TrackingSettings = TrackingSettings()
    quarantine: QuarantineSettings = QuarantineSettings()


AnySettings = TypeVar("AnySettings", bound=Settings)


class _StrictLoader(yaml.SafeLoader):
    """`yaml.SafeLoader` that refuses a key written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str | int | float | bool):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a plain word", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} stands twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load(path: str, overrides: list[str], kind: type[AnySettings]) -> AnySettings:
    """Read a conf file, apply ``key=value`` overrides and validate it.

    Parameters
    ----------
    path
        A YAML file of at most 1 MiB.
    overrides
        ``dotted.key=value`` words; the value is read as YAML.
    kind
        The settings class to fill.

    Returns
    -------
    AnySettings
        The validated, immutable settings.

    Raises
    ------
    UsageError
        One line naming the key and what is allowed.
    """
    tree = _read_yaml(path)
    for argument in overrides:
        _override(tree, argument)
    tree = _expand(tree, path)
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise _explain(error, kind) from None


def _read_yaml(path: str) -> dict[str, Any]:
    file = Path(path)
    if not file.is_file():
        raise UsageError("CONF01", path=path)
    if file.stat().st_size > MAX_CONF_BYTES:
        raise UsageError("CONF02", path=path, problem="larger than 1 MiB")
    try:
        tree = yaml.load(file.read_bytes().decode("utf-8"), _StrictLoader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError("CONF02", path=path, problem=error) from None
    if not isinstance(tree, dict):
        raise UsageError("CONF02", path=path, problem="the top level must be keys and values")
    return tree


def _override(tree: dict[str, Any], argument: str) -> None:
    key, equals, text = argument.partition("=")
    if not equals or not key:
        raise UsageError("CONF07", argument=argument)
    try:
        value = yaml.load(text, _StrictLoader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise UsageError("CONF04", key=key, value=text, problem=error) from None
    *parents, last = key.split(".")
    for parent in parents:
        branch = tree.setdefault(parent, {})
        if not isinstance(branch, dict):
            raise UsageError("CONF04", key=key, value=text, problem=f"{parent} has no parts")
        tree = branch
    tree[last] = value


def _expand(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, path) for item in value]
    if not isinstance(value, str):
        return value

    def substitute(match: re.Match[str]) -> str:
        name = match.group(1)
        if name != "CORPUSMILL_DATA":
            raise UsageError("CONF08", path=path, name=name)
        return os.environ.get(name, DEFAULT_DATA)

    return re.sub(r"\$\{(\w+)\}", substitute, value)


def _explain(error: ValidationError, kind: type[BaseModel]) -> UsageError:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return UsageError("CONF03", key=key, allowed=_allowed_keys(first["loc"], kind))
    if first["type"] == "missing":
        return UsageError(
            "CONF05", key=key, problem=f"allowed here: {_allowed_keys(first['loc'], kind)}"
        )
    shown = repr(first["input"])
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return UsageError("CONF04", key=key, value=shown, problem=first["msg"])


def _allowed_keys(location: tuple[int | str, ...], kind: type[BaseModel]) -> str:
    fields: type[BaseModel] | None = kind
    for part in location[:-1]:
        if fields is None or not isinstance(part, str) or part not in fields.model_fields:
            continue
        fields = _settings_of(fields.model_fields[part].annotation)
    return ", ".join(sorted(fields.model_fields)) if fields else "see CONTRIBUTING.md"


def _settings_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _settings_of(part)
        if found is not None:
            return found
    return None
