"""Typed settings: one YAML a job and corpus, checked before anything runs.

Every key is a field of a pydantic model; an unknown key, a wrong type or a bad
value ends the job with one line that names the key and what is allowed. A value
may hold ``${CORPUSMILL_DATA}``, replaced from the environment, and ``${CORPUSMILL_SAMPLES}``,
the folder of the embedded samples; nothing else in a conf file is expanded or executed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from corpusmill.errors import UsageError

MAX_CONF_BYTES = 1 << 20
MAX_WHOLE = 2**31 - 1
"""The largest whole number in a conf: what Spark and numpy take everywhere."""
DEFAULT_DATA = "../shared/data"


class Settings(BaseModel):
    """Base of all settings: immutable, strict about types, unknown keys and NaN refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    @field_validator("*")
    @classmethod
    def _refuse_huge(cls, value: Any) -> Any:
        if isinstance(value, int) and value > MAX_WHOLE:
            raise PydanticCustomError("huge", f"Input should be at most {MAX_WHOLE}")
        return value


class SparkSettings(Settings):
    """How the job meets Spark when it is not submitted with settings of its own."""

    master: str = Field("local[*]", description="used unless spark-submit names a master")
    shuffle_partitions: int = Field(8, ge=1, le=100_000)
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
    output: str = Field(pattern=r"\S", description="folder or URI under which runs are committed")
    seed: int = Field(13, ge=0)
    run_id: str = Field("auto", pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    restart: bool = False
    spark: SparkSettings = SparkSettings()
    tracking: TrackingSettings = TrackingSettings()
    quarantine: QuarantineSettings = QuarantineSettings()


# YAML 1.1 wants a dot and a sign in 1.0e+5; people write 1e5 and 1e-4, and mean numbers.
_NUMBER = re.compile(r"^[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]+$")
AnySettings = TypeVar("AnySettings", bound=Settings)


class _StrictLoader(yaml.SafeLoader):
    """`yaml.SafeLoader` that refuses a key written twice, aliases and merges.

    A few lines of aliases of aliases stand for more values than fit in memory.
    """

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.events.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(
                None, None, "aliases (&, *) are not allowed; write the value again", mark
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(
                    None, None, "merges (<<) are not allowed; write the keys", key_node.start_mark
                )
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


_StrictLoader.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBER, list("-+0123456789"))


def load(path: str, overrides: list[str], kind: type[AnySettings]) -> AnySettings:
    """Read a conf file, apply ``key=value`` overrides and validate it.

    Parameters
    ----------
    path
        A YAML file of at most 1 MiB. With ``extends: FILE``, a path from the folder of this one,
        it is read on top of that file: sections are merged, lists are joined, the other's items
        first, and other values of this file count.
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
    tree = _extended(path, ())
    for argument in overrides:
        _override(tree, argument)
    tree = _without_empty(_expand(tree, path))
    try:
        # As JSON, where a list is also a tuple, and YAML's dates are the text that they were.
        return kind.model_validate_json(json.dumps(tree, default=str))
    except ValidationError as error:
        raise _explain(error, kind) from None


def _extended(path: str, seen: tuple[str, ...]) -> dict[str, Any]:
    tree = _read_yaml(path)
    base = tree.pop("extends", None)
    if base is None:
        return tree
    if not isinstance(base, str):
        raise UsageError("CONF04", key="extends", value=repr(base), problem="must be a path")
    path = os.path.normpath(path)
    if path in seen:
        chain = " -> ".join([*seen[seen.index(path) :], path])
        raise UsageError("CONF11", problem=f"{chain} extends itself")
    merged: dict[str, Any] = _merged(_extended(str(Path(path).parent / base), (*seen, path)), tree)
    return merged


def _merged(base: Any, tree: Any) -> Any:
    if isinstance(base, dict) and isinstance(tree, dict):
        return base | {
            key: _merged(base[key], value) if key in base else value for key, value in tree.items()
        }
    if isinstance(base, list) and isinstance(tree, list):
        return base + tree
    return tree


def _read_yaml(path: str) -> dict[str, Any]:
    file = Path(path)
    # A name that no file system takes is no file, which os.path says without an error.
    if "\0" in path or not os.path.isfile(path):
        raise UsageError("CONF01", path=repr(path) if "\0" in path else path)
    if file.stat().st_size > MAX_CONF_BYTES:
        raise UsageError("CONF02", path=path, problem="larger than 1 MiB")
    try:
        tree = yaml.load(file.read_bytes().decode("utf-8"), _StrictLoader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError("CONF02", path=path, problem=error) from None
    if not isinstance(tree, dict):
        raise UsageError("CONF02", path=path, problem="the top level must be keys and values")
    return tree


def _override(tree: dict[str, Any], argument: str) -> None:
    key, equals, text = argument.partition("=")
    *parents, last = key.split(".")
    if not equals or not all([*parents, last]):
        raise UsageError("CONF07", argument=argument)
    try:
        value = yaml.load(text, _StrictLoader)  # noqa: S506 - a SafeLoader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError("CONF04", key=key, value=_shown(text), problem=error) from None
    for parent in parents:
        branch = tree.setdefault(parent, {})
        if branch is None:  # a section without keys
            branch = tree[parent] = {}
        if not isinstance(branch, dict):
            whole = isinstance(branch, list)
            problem = f"{parent} is a list: give it whole" if whole else f"{parent} has no parts"
            raise UsageError("CONF04", key=key, value=_shown(text), problem=problem)
        tree = branch
    tree[last] = value


def _without_empty(tree: dict[str, Any]) -> dict[str, Any]:
    """Leave out top-level keys without a value: a section whose keys are all defaults."""
    return {key: value for key, value in tree.items() if value is not None}


def _expand(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _expand(item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_expand(item, path) for item in value]
    if not isinstance(value, str):
        return value
    if not value.isascii() and re.search("[\ud800-\udfff]", value):
        raise UsageError("CONF02", path=path, problem=f"{value!r} holds half a character")

    def substitute(match: re.Match[str]) -> str:
        name = match.group(1)
        if name == "CORPUSMILL_DATA":
            return os.environ.get(name, DEFAULT_DATA)
        if name == "CORPUSMILL_SAMPLES":
            return str(Path(__file__).parent / "corpora" / "samples")
        raise UsageError("CONF08", path=path, name=name)

    return re.sub(r"\$\{(\w+)\}", substitute, value)


def _explain(error: ValidationError, kind: type[BaseModel]) -> UsageError:
    first = error.errors()[0]
    problem = first["msg"].removeprefix("Value error, ")
    of_a_section = first["type"] == "value_error" and isinstance(first["input"], dict)
    if not first["loc"] or of_a_section:
        section = ".".join(str(part) for part in first["loc"])
        return UsageError("CONF11", problem=f"{section}: {problem}" if section else problem)
    fields, location = _find(first["loc"], kind)
    key = ".".join(str(part) for part in location)
    allowed = ", ".join(sorted(fields.model_fields)) if fields else "nothing"
    if first["type"] == "extra_forbidden":
        return UsageError("CONF03", key=key, allowed=allowed)
    if first["type"] == "missing":
        return UsageError("CONF05", key=key, problem=f"allowed here: {allowed}")
    context = first.get("ctx", {})
    if first["type"] == "union_tag_not_found":
        key = f"{key}.{str(context['discriminator']).strip(chr(39))}"
        return UsageError("CONF05", key=key, problem="it says which kind this is")
    if first["type"] == "union_tag_invalid":
        key = f"{key}.{str(context['discriminator']).strip(chr(39))}"
        problem = f"allowed: {context['expected_tags']}"
        return UsageError("CONF04", key=key, value=_shown(repr(context["tag"])), problem=problem)
    if first["type"] in ("model_type", "model_attributes_type"):
        last = location[-1]
        part = fields  # of the items, where the key is a place in a list or a name
        if fields and last in fields.model_fields:
            part = _settings_of(fields.model_fields[last].annotation)
        problem = f"expected keys: {', '.join(sorted(part.model_fields))}" if part else problem
    return UsageError("CONF04", key=key, value=_shown(repr(first["input"])), problem=problem)


def _shown(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _find(
    location: tuple[int | str, ...], kind: type[BaseModel]
) -> tuple[type[BaseModel] | None, list[int | str]]:
    """Give the settings around a key, and its place as the conf writes it.

    pydantic puts the name of a union's form between the keys; a conf does not.
    """
    around: type[BaseModel] | None = kind
    annotation: Any = kind
    written: list[int | str] = []
    for number, part in enumerate(location):
        form = _form(annotation, part) if written and isinstance(part, str) else None
        if form is not None and number < len(location) - 1:
            around = annotation = form
            continue
        written.append(part)
        if number == len(location) - 1 or isinstance(part, int):
            continue
        if around is not None and part in around.model_fields:
            annotation = around.model_fields[part].annotation
            around = _settings_of(annotation)
    return around, written


def _form(annotation: Any, name: str) -> type[BaseModel] | None:
    """Give the form of a union that is called so, or whose discriminating value it is."""
    if isinstance(annotation, type):
        if not issubclass(annotation, BaseModel):
            return None
        values = [
            value
            for field in annotation.model_fields.values()
            for value in getattr(field.annotation, "__args__", ())
        ]
        return annotation if name == annotation.__name__ or name in values else None
    for part in getattr(annotation, "__args__", ()):
        found = _form(part, name)
        if found is not None:
            return found
    return None


def _settings_of(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in getattr(annotation, "__args__", ()):
        found = _settings_of(part)
        if found is not None:
            return found
    return None
