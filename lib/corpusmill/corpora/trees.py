"""Trees in any of their formats -> TREES: tables, lines of a toolkit, treebank files, JSON.

Parsing runs over Arrow batches: a line or a row at a time only where the format has a frame
around its trees, never a node at a time, but for JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
from pydantic import Field, model_validator
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.functions import arrow_udf

from corpusmill.corpora.quarantine import KEPT_CHARS, Read, separate
from corpusmill.corpora.schemas import TREES
from corpusmill.corpora.sources import ColumnName, FileSettings, read_table, read_text, read_whole
from corpusmill.corpora.tree_formats import (
    FileTrees,
    Kept,
    MalformedTree,
    Tree,
    Trees,
    parse_conll,
    parse_mrg,
    parse_texts,
)
from corpusmill.corpora.tree_json import parse_json, parse_json_record
from corpusmill.corpora.tree_lines import Line, split_kelp, split_svmlight, untyped
from corpusmill.settings import QuarantineSettings, Settings
from corpusmill.splits import schema_of
from corpusmill.types import Offsets

NO_TREE = "no tree"
EMPTY_ID = "empty example id"

_KEEPING = frozenset({"keep_traces", "keep_function_tags"})
_FIELDS = frozenset({"target", "trees", "example_id"})
_OPTIONS: dict[str, frozenset[str]] = {
    "tsv": _KEEPING | _FIELDS | {"header", "columns"},
    "jsonl": _KEEPING | _FIELDS,
    "parquet": _KEEPING | _FIELDS,
    "bracketed": _KEEPING,
    "mrg": _KEEPING,
    "conll": _KEEPING | {"pos", "parse", "word"},
    "svmlight": _KEEPING | {"trees", "vector"},
    "kelp": frozenset({"trees"}),
    "json": _FIELDS,
}


class TreesSettings(Settings):
    """Trees: their files, format and what of them is read. Each format has keys of its own."""

    path: str = Field(min_length=1)
    format: Literal[
        "tsv", "jsonl", "parquet", "bracketed", "mrg", "conll", "svmlight", "kelp", "json"
    ] = "tsv"
    header: bool = Field(False, description="TSV: the first line of each file names the columns")
    columns: list[str] | None = Field(None, description="TSV without header: the columns' names")
    target: ColumnName | None = Field("target", description="column of the class, null for none")
    trees: list[ColumnName] | None = Field(
        None,
        min_length=1,
        description="columns, fields, names (KeLP) or numbers (SVM-Light-TK) of the trees",
    )
    example_id: ColumnName | None = Field(None, description="column of a unique name")
    keep_traces: bool = True
    keep_function_tags: bool = True
    pos: int = Field(0, ge=0, description="CoNLL: column of the parts of speech, from 0")
    parse: int = Field(1, ge=0, description="CoNLL: column of the parse")
    word: int | None = Field(None, ge=0, description="CoNLL: column of the words")
    vector: int = Field(0, ge=0, description="SVM-Light-TK: which vector of an example, from 0")

    @model_validator(mode="after")
    def _check_options(self) -> TreesSettings:
        allowed = _OPTIONS[self.format]
        for name in sorted(self.model_fields_set - {"path", "format"}):
            if name not in allowed:
                raise ValueError(
                    f"{name} is no key of format {self.format}; its keys are "
                    f"{', '.join(sorted(allowed))}"
                )
        self._check_names()
        return self

    def _check_names(self) -> None:
        wanted = self.trees or []
        if self.format == "svmlight":
            if not all(isinstance(name, int) and name >= 0 for name in wanted):
                raise ValueError("trees of format svmlight are numbers from 0")
        elif self.format in ("kelp", "json"):
            if not all(
                isinstance(name, str)
                for name in [*wanted, self.target or "", self.example_id or ""]
            ):
                raise ValueError(f"fields of format {self.format} have names, no numbers")
            if self.format == "json" and not wanted and self.model_fields_set & _FIELDS:
                raise ValueError("target and example_id stand beside trees; name the trees too")


def read_trees(
    spark: SparkSession, source: TreesSettings, quarantine: QuarantineSettings, key: str = "trees"
) -> Read:
    """Read trees.

    Parameters
    ----------
    spark
        The session.
    source
        Files, format and its options.
    quarantine
        How long a record may be: a line, or a tree of a treebank file.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        TREES and QUARANTINE; the position of a malformed tree ends with the character where it
        was found, ``line 17, character 42``. Unless a column has it, ``example_id`` is a hash of
        the file's name, the place there and the text: the same in every run that splits the files
        alike.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    if source.format in ("mrg", "conll"):
        return separate(_parse_files(spark, source, quarantine, key), TREES)
    if source.format in ("tsv", "jsonl", "parquet"):
        table, kernel, texts = _table(spark, source, quarantine, key)
    else:
        table = read_text(spark, source.path, quarantine, key)
        kernel, texts = _line_kernel(source), ["text"]
        if source.format == "svmlight":
            table = table.where(~F.coalesce(F.col("text").startswith("#"), F.lit(False)))
    return separate(_parse_rows(table, kernel, texts), TREES)


_EXAMPLE = T.StructType(
    [
        T.StructField("reason", T.StringType()),
        T.StructField("place", T.StringType()),
        T.StructField("example_id", T.StringType()),
        T.StructField("target", T.StringType()),
        *(field for field in TREES if field.name not in ("example_id", "target")),
    ]
)
"""What a kernel gives for a row: ``place`` is what its position ends with."""

_Kernel = Callable[[list[pa.Array]], pa.RecordBatch]


def _parse_rows(table: DataFrame, kernel: _Kernel, texts: list[str]) -> DataFrame:
    """Give checked records; ``target`` and ``example_id`` of the table come before the kernel's."""

    def run(*columns: pa.Array) -> pa.Array:
        return kernel(list(columns)).to_struct_array()

    # Not deterministic in Spark's sense: a filter on its result must not be pushed below it,
    # where it would be computed a second time.
    parse = arrow_udf(run, _EXAMPLE).asNondeterministic()  # type: ignore[call-overload]
    usable = [F.when(F.col("reason").isNull(), F.col(name)) for name in texts]
    found = F.col("parsed")
    own_id = F.col("example_id") if "example_id" in table.columns else found["example_id"]
    target = F.col("target") if "target" in table.columns else found["target"]
    reasons = [F.col("reason"), found["reason"], F.when(F.trim(own_id) == "", EMPTY_ID)]
    return table.withColumn("parsed", parse(*usable)).select(
        "source",
        F.concat("position", F.coalesce(found["place"], F.lit(""))).alias("position"),
        F.coalesce(*reasons).alias("reason"),
        "record",
        F.coalesce(F.trim(own_id), _hashed("position", *texts)).alias("example_id"),
        F.nullif(F.trim(target), F.lit("")).alias("target"),
        *(found[field.name].alias(field.name) for field in TREES if field.name in _LISTS),
    )


def _hashed(*parts: str) -> Column:
    # The folder is not part of the id: a corpus that moves keeps its splits. The text is, for the
    # files of a table often have the same names in several folders.
    return F.xxhash64(F.substring_index("source", "/", -1), *parts).cast("string")


def _table(
    spark: SparkSession, source: TreesSettings, limits: QuarantineSettings, key: str
) -> tuple[DataFrame, _Kernel, list[str]]:
    columns = source.trees or ["tree"]
    names = [f"trees_{number}" for number in range(len(columns))] if columns[1:] else ["trees"]
    fields = dict(zip(names, columns, strict=True))
    for name, column in (("target", source.target), ("example_id", source.example_id)):
        if column is not None:
            fields[name] = column
    files = FileSettings(**source.model_dump(include={"path", "format", "header", "columns"}))
    table = read_table(spark, files, fields, limits, key)
    kept = Kept(source.keep_traces, source.keep_function_tags)
    return table, partial(_parse_columns, [str(column) for column in columns], kept), names


def _line_kernel(source: TreesSettings) -> _Kernel:
    kept = Kept(source.keep_traces, source.keep_function_tags)
    names: Any = source.trees
    fields: list[Any] = [source.example_id, source.target]
    if source.format == "bracketed":
        return partial(_parse_columns, [], kept)
    if source.format == "svmlight":
        split = partial(split_svmlight, trees=names, vector=source.vector)
        return partial(_parse_lines, split, kept, False)
    if source.format == "kelp":
        return partial(_parse_lines, partial(split_kelp, trees=names), kept, True)
    return partial(_parse_json_lines, fields, names)


class _Rows(NamedTuple):
    """What is known of the rows beside their trees."""

    faults: dict[int, tuple[str, str]]
    ids: list[str | None] | None = None
    targets: list[str | None] | None = None
    vector_ids: list[list[int]] | None = None
    vector_values: list[list[float]] | None = None


_SCHEMA = schema_of(_EXAMPLE)
_LISTS = _SCHEMA.names[4:]


def _at(fault: MalformedTree, offset: int = 0) -> str:
    return f", character {fault.position + offset}"


def _parse_columns(names: list[str], kept: Kept, columns: list[pa.Array]) -> pa.RecordBatch:
    """Parse rows of one or several trees, a column each."""
    rows, width = len(columns[0]), len(columns)
    by_row = np.arange(rows * width).reshape(width, rows).T.reshape(-1)
    texts = pa.concat_arrays([column.cast(pa.large_string()) for column in columns])
    trees = parse_texts((texts if width == 1 else texts.take(pa.array(by_row))).fill_null(""), kept)
    faults: dict[int, tuple[str, str]] = {}
    for number, fault in trees.faults.items():
        column = f", column {names[number % width]}" if names else ""
        faults.setdefault(number // width, (fault.reason, column + _at(fault)))
    if texts.null_count:
        for number in np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False)).tolist():
            faults.setdefault(number % rows, (NO_TREE, ""))
    return _batch(trees, np.arange(rows + 1) * width, _Rows(faults))


def _parse_lines(
    split: Callable[[str], Line], kept: Kept, kelp: bool, columns: list[pa.Array]
) -> pa.RecordBatch:
    """Parse lines that hold any number of trees."""
    lines: list[Line] = []
    faults: dict[int, tuple[str, str]] = {}
    for number, text in enumerate(columns[0].to_pylist()):
        try:
            lines.append(split(text or ""))
        except MalformedTree as malformed:
            lines.append(Line(None, [], [], [], []))
            faults[number] = (malformed.reason, _at(malformed))
    offsets = _offsets(len(line.texts) for line in lines)
    begins = [begin for line in lines for begin in line.begins]
    texts = [text for line in lines for text in line.texts]
    trees = parse_texts(pa.array(texts, pa.large_string()), kept)
    for number, fault in trees.faults.items():
        line = int(np.searchsorted(offsets, number, "right")) - 1
        faults.setdefault(line, (fault.reason, _at(fault, begins[number])))
    if kelp:
        trees = trees._replace(labels=untyped(trees.labels))
    rows = _Rows(
        faults,
        targets=[line.target for line in lines],
        vector_ids=[line.ids for line in lines],
        vector_values=[line.values for line in lines],
    )
    return _batch(trees, offsets, rows)


def _parse_json_lines(
    fields: list[str | None], names: list[str] | None, columns: list[pa.Array]
) -> pa.RecordBatch:
    """Parse lines of JSON: trees, or objects with trees."""
    ids: list[str | None] = []
    targets: list[str | None] = []
    found: list[list[Tree]] = []
    faults: dict[int, tuple[str, str]] = {}
    for number, text in enumerate(columns[0].to_pylist()):
        texts: list[str | None] = [None, None]
        trees: list[Tree] = []
        try:
            if text is not None and names is None:
                trees = [parse_json(text)]
            elif text is not None and names is not None:
                texts, trees = parse_json_record(text, fields, names)
        except MalformedTree as fault:
            faults[number] = (fault.reason, _at(fault))
        ids.append(texts[0])
        targets.append(texts[1])
        found.append(trees)
    flat = [tree for trees in found for tree in trees]
    labels = pa.array([label for tree in flat for label in tree.labels], pa.large_string())
    arities = np.array([arity for tree in flat for arity in tree.arities], np.int32)
    parsed = Trees(_offsets(len(tree.labels) for tree in flat), labels, arities, {})
    rows = _Rows(faults, ids=ids, targets=targets)
    return _batch(parsed, _offsets(len(trees) for trees in found), rows)


def _offsets(lengths: Iterable[int]) -> Offsets:
    return np.concatenate(([0], np.cumsum(np.fromiter(lengths, np.int64)))).astype(np.int64)


def _batch(trees: Trees, row_trees: Offsets, rows: _Rows) -> pa.RecordBatch:
    """Put the trees ``row_trees[r]:row_trees[r + 1]`` into row r."""
    size = len(row_trees) - 1
    row_nodes = trees.offsets[row_trees]
    counts = np.diff(row_trees) + 1
    starts = np.concatenate(([0], np.cumsum(counts)))
    # A row of k trees has k + 1 offsets, which count from its own first node.
    shift = np.repeat(row_trees[:-1] - starts[:-1], counts)
    offsets = trees.offsets[np.arange(starts[-1]) + shift] - np.repeat(row_nodes[:-1], counts)
    nothing = [None] * size
    empty: list[list[Any]] = [[]] * size
    columns = [
        [rows.faults[row][0] if row in rows.faults else None for row in range(size)],
        [rows.faults[row][1] if row in rows.faults else None for row in range(size)],
        rows.ids or nothing,
        rows.targets or nothing,
        _list_array(row_nodes, trees.labels.cast(pa.string())),
        _list_array(row_nodes, pa.array(trees.arities, pa.int32())),
        _list_array(starts, pa.array(offsets.astype(np.int32))),
        rows.vector_ids or empty,
        rows.vector_values or empty,
    ]
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type)
        for column, field in zip(columns, _SCHEMA, strict=True)
    ]
    arrays = [array.cast(field.type) for array, field in zip(arrays, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _list_array(offsets: Offsets, values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)


_IN_FILE = T.StructType(
    [
        T.StructField("source", T.StringType()),
        T.StructField("number", T.LongType()),
        T.StructField("checksum", T.LongType()),
        T.StructField("line", T.LongType()),
        T.StructField("record", T.BinaryType()),
        *_EXAMPLE,
    ]
)


def _parse_files(
    spark: SparkSession, source: TreesSettings, limits: QuarantineSettings, key: str
) -> DataFrame:
    """Parse files that are read whole, one task a file at most."""
    kept = Kept(source.keep_traces, source.keep_function_tags)
    options: dict[str, Any] = {"keep": kept, "max_chars": limits.max_record_chars}
    parse: Callable[..., FileTrees] = parse_mrg
    if source.format == "conll":
        parse = parse_conll
        options |= {"pos": source.pos, "parse": source.parse, "word": source.word}

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file, value in zip(*batch.columns, strict=True):
                data = value.as_py()
                yield _file_rows(file.as_py(), data, parse(data, **options))

    rows = read_whole(spark, source.path, key).mapInArrow(run, _IN_FILE)
    return rows.select(
        "source",
        F.concat(F.lit("line "), "line", F.coalesce("place", F.lit(""))).alias("position"),
        "reason",
        "record",
        _hashed("number", "checksum").alias("example_id"),
        "target",
        *_LISTS,
    )


def _file_rows(file: str, data: bytes, found: FileTrees) -> pa.RecordBatch:
    size = len(found.lines)
    faults = {row: (fault.reason, _at(fault)) for row, fault in found.trees.faults.items()}
    batch = _batch(found.trees, np.arange(size + 1), _Rows(faults))
    bounds = list(zip(found.begins.tolist(), found.ends.tolist(), strict=True))
    checksums = [crc32(data[begin:end]) for begin, end in bounds]
    records: list[bytes | None] = [None] * size
    for row in faults:
        begin, end = bounds[row]
        records[row] = data[begin : min(end, begin + 4 * KEPT_CHARS)]
    arrays = [
        pa.array([file] * size, pa.string()),
        pa.array(np.arange(size)),
        pa.array(checksums, pa.int64()),
        pa.array(found.lines),
        pa.array(records, pa.binary()),
        *batch.columns,
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema_of(_IN_FILE))
