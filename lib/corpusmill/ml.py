"""What every pyspark.ml estimator here shares: Params from settings, column checks, saving.

An estimator's parameters are declared once, as a settings class; `with_settings` turns its
fields into pyspark.ml Params of the same meaning, in camelCase. A saved estimator or model is
Spark's metadata beside, for a model, a checked model folder; loading instantiates nothing but
the class that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self, TypeVar

from pydantic import ValidationError, create_model
from pyspark.ml.param import Param, Params
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill.errors import ModelError, SchemaError, StorageError, UsageError
from corpusmill.settings import Settings
from corpusmill.storage import Place

AnyParams = TypeVar("AnyParams", bound=type[Params])
AnySettings = TypeVar("AnySettings", bound=Settings)
AnyModel = TypeVar("AnyModel", bound=Params)


def param_name(field: str) -> str:
    """Turn ``max_iter`` into ``maxIter``."""
    return re.sub(r"_(\w)", lambda match: match.group(1).upper(), field)


def with_settings(kind: type[Settings]) -> Callable[[AnyParams], AnyParams]:
    """Give a Params class a Param for each field of a settings class.

    Every field needs a default and a description; a value is checked by the field, and a bad
    one is a UsageError (CONF04) that names the Param. What fields must be together is looked at
    by `settings_of`, because Params are set one after the other.
    """

    def converter(field: str) -> Callable[[Any], Any]:
        info = kind.model_fields[field]
        definition: dict[str, Any] = {field: (info.annotation, info)}
        alone = create_model(field, __base__=Settings, **definition)

        def convert(value: Any) -> Any:
            try:
                return getattr(alone.model_validate({field: value}), field)
            except ValidationError as error:
                problem = error.errors()[0]["msg"]
                name = param_name(field)
                raise UsageError("CONF04", key=name, value=value, problem=problem) from None

        return convert

    def decorate(cls: AnyParams) -> AnyParams:
        for field, info in kind.model_fields.items():
            name = param_name(field)
            doc = info.description or field
            setattr(cls, name, Param(Params._dummy(), name, doc, converter(field)))
        return cls

    return decorate


def settings_defaults(kind: type[Settings]) -> dict[str, Any]:
    """Give the defaults of a settings class under the Params' names."""
    return {param_name(field): value for field, value in dict(kind()).items()}


def settings_of(params: Params, kind: type[AnySettings]) -> AnySettings:
    """Gather a settings object from the Params of `with_settings`.

    Raises
    ------
    UsageError
        CONF11: they do not go together.
    """
    values = {field: params.getOrDefault(param_name(field)) for field in kind.model_fields}
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError("CONF11", problem=problem) from None


def with_params_of(estimator: Params, model: AnyModel, kind: type[Params]) -> AnyModel:
    """Give a fitted model its estimator's uid, and those Params of ``kind`` that were set."""
    for param in kind().params:
        if estimator.isSet(param.name):
            model._set(**{param.name: estimator.getOrDefault(param.name)})
    model._resetUid(estimator.uid)
    return model


def checked_columns(
    df: DataFrame, names: Mapping[str, str], schema: T.StructType, optional: frozenset[str]
) -> list[Column]:
    """Give the columns that a kernel reads, cast, under their fixed names.

    Parameters
    ----------
    df
        The user's rows.
    names
        Fixed name to the user's column.
    schema
        The fixed names' types.
    optional
        Fixed names whose column may be missing: they are null then.

    Returns
    -------
    list of Column
        A list with a null in it, as only files can hold them, keeps it: kernels refuse such a row.

    Raises
    ------
    SchemaError
        DATA04, on the driver, naming the column that is missing or of a type that does not
        cast to the wanted one.
    """
    columns: list[Column] = []
    for field in schema:
        name = names[field.name]
        if name in df.columns:
            _check_type(name, df.schema[name].dataType, field.dataType)
            column = _cast(F.col(f"`{name}`"), df.schema[name].dataType, field.dataType)
        elif field.name in optional:
            column = F.lit(None).cast(field.dataType)
        else:
            wanted = field.dataType.simpleString()
            raise SchemaError("DATA04", column=name, found="missing", expected=wanted)
        columns.append(column.alias(field.name))
    return columns


def _cast(column: Column, found: T.DataType, wanted: T.DataType) -> Column:
    if not isinstance(found, T.ArrayType) or not isinstance(wanted, T.ArrayType):
        return column.cast(wanted)
    if not found.containsNull or wanted.containsNull:
        return column.cast(wanted)
    # Whatever is read from a file may hold nulls, as far as Spark knows: the cast keeps them.
    return column.cast(T.ArrayType(wanted.elementType))


def _check_type(column: str, found: T.DataType, wanted: T.DataType) -> None:
    inner, goal = found, wanted
    if isinstance(found, T.ArrayType) and isinstance(wanted, T.ArrayType):
        inner, goal = found.elementType, wanted.elementType
    numeric = isinstance(goal, T.NumericType) and isinstance(inner, T.NumericType)
    alike = isinstance(found, T.ArrayType) == isinstance(wanted, T.ArrayType)
    if not alike or not (numeric or type(inner) is type(goal)):
        raise SchemaError(
            "DATA04",
            column=column,
            found=found.simpleString(),
            expected=wanted.simpleString(),
        )


class ArrayModel(Protocol):
    """A model on arrays that saves itself into a folder and loads itself from one."""

    def save(self, folder: str) -> None:
        """Save under a manifest."""
        ...

    @classmethod
    def load(cls, folder: str) -> Self:
        """Load what the manifest vouches for."""
        ...


class Saved(MLReadable[Any], MLWritable):
    """Saving and loading of an estimator, or of a model around an `ArrayModel`.

    A model class names the class of its array model as ``array_model`` and takes an instance
    of it as its one argument, kept as ``model``.
    """

    array_model: type[ArrayModel] | None = None

    def write(self) -> MLWriter:
        """Return the writer; ``write().overwrite().save(path)`` replaces."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Any]:
        """Return the reader."""
        return _Reader(cls)


class _Writer(MLWriter):
    def __init__(self, instance: Any) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:  # noqa: N802
        if Place.of(f"{path}/metadata").exists():
            problem = "a model is there already; write().overwrite().save(path) replaces it"
            raise StorageError("STORE01", path=path, problem=problem)
        DefaultParamsWriter.saveMetadata(self.instance, path, self.sparkSession)
        if self.instance.array_model is not None:
            self.instance.model.save(f"{path}/model")


class _Reader(MLReader[Any]):
    def __init__(self, cls: type[Saved]) -> None:
        super().__init__()
        self.cls = cls

    def load(self, path: str) -> Any:
        name = f"{self.cls.__module__}.{self.cls.__name__}"
        metadata = _metadata(path, name, self.sparkSession)
        array_model = self.cls.array_model
        arguments = [] if array_model is None else [array_model.load(f"{path}/model")]
        instance: Any = self.cls(*arguments)
        try:
            instance._resetUid(metadata["uid"])
            DefaultParamsReader.getAndSetParams(instance, metadata)
        except (
            AssertionError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
            UsageError,
        ) as e:
            problem = "its metadata does not fit"
            raise ModelError("MODEL01", path=path, kind=name, problem=problem) from e
        return instance


def _metadata(path: str, name: str, session: Any) -> dict[str, Any]:
    try:
        metadata: dict[str, Any] = DefaultParamsReader.loadMetadata(path, session)
    except Exception as error:  # Spark raises many kinds for a missing or damaged folder
        problem = "its metadata is missing or damaged"
        raise ModelError("MODEL01", path=path, kind=name, problem=problem) from error
    if metadata.get("class") != name:
        problem = f"its metadata names {metadata.get('class')!r}"
        raise ModelError("MODEL01", path=path, kind=name, problem=problem)
    return metadata
