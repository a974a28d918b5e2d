"""Documents with coreference, in any of their formats -> ANNOTATED_DOCUMENTS, and back to text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill.corpora.annotated_rows import (
    AnnotatedDocument,
    Piece,
    blank_speakers,
    drop_singletons,
)
from corpusmill.corpora.coreference_formats import (
    DUPLICATE,
    FORMATS,
    FormatName,
    parse_record,
    stem,
)
from corpusmill.corpora.quarantine import KEPT_CHARS, TOO_LONG, Read, separate
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS
from corpusmill.corpora.sources import read_lines
from corpusmill.settings import QuarantineSettings, Settings
from corpusmill.splits import schema_of
from corpusmill.storage.places import Place

# Rows that leave a task together: enough tokens to be worth a batch, few enough for its memory.
_BATCH_TOKENS = 1 << 16


class DocumentsSettings(Settings):
    """Documents with coreference: files, format and what of them is read."""

    path: str = Field(min_length=1)
    format: FormatName = "conll2012"
    speakers: Literal["keep", "blank"] = "keep"
    singletons: bool = Field(True, description="whether clusters of one mention are read")


def read_documents(
    spark: SparkSession,
    source: DocumentsSettings,
    quarantine: QuarantineSettings,
    key: str = "documents",
) -> Read:
    """Read documents with coreference.

    Parameters
    ----------
    spark
        The session.
    source
        Files, format and what of them is read.
    quarantine
        How long a document may be, in characters of its file.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        ANNOTATED_DOCUMENTS and QUARANTINE. A document with a fault is quarantined whole, and its
        position is the line of the fault. Of documents of the same name and part the first stays,
        by the files' names and the place there.

    Raises
    ------
    UsageError
        A path with nothing to read.
    DataError
        A damaged file, when the result is computed.

    Notes
    -----
    Files without compression are cut where Spark cuts them, at the next document; a compressed
    one is one task. A task holds an Arrow batch of documents and their rows.
    """
    separator = FORMATS[source.format].separator
    records = read_lines(spark, source.path, key, separator)
    parsed = records.mapInArrow(_parser(source, quarantine.max_record_chars), _PARSED)
    return separate(_refuse_duplicates(parsed), ANNOTATED_DOCUMENTS)


_PARSED = T.StructType(
    [
        *(T.StructField(name, T.StringType()) for name in ("source", "position", "reason")),
        T.StructField("record", T.BinaryType()),
        *(T.StructField(name, T.LongType()) for name in ("block", "line", "piece")),
        *(T.StructField(field.name, field.dataType) for field in ANNOTATED_DOCUMENTS),
    ]
)
_Batches = Iterator[pa.RecordBatch]


def _parser(source: DocumentsSettings, max_chars: int) -> Callable[[_Batches], _Batches]:
    """Give the function that parses a partition's records, which come block by block in order."""
    format_name = source.format
    begin = FORMATS[format_name].separator[1:].encode()
    blank, singletons = source.speakers == "blank", source.singletons

    def pieces(record: _Record) -> list[Piece]:
        # A character has at most four bytes: the first test spares counting them.
        if len(record.value) > max_chars and _chars(record.value) > max_chars:
            return [Piece(0, None, TOO_LONG)]
        return parse_record(
            record.value, format_name, record.is_first, stem(unquote(record.source))
        )

    def chosen(document: AnnotatedDocument) -> AnnotatedDocument:
        document = blank_speakers(document) if blank else document
        return document if singletons else drop_singletons(document)

    def parse(batches: _Batches) -> _Batches:
        arrow = schema_of(_PARSED)
        rows: list[dict[str, Any]] = []
        tokens = 0
        for record, before in _count_lines(_records(batches, begin)):
            for number, piece in enumerate(pieces(record)):
                rows.append(_fault(record, before, number, piece))
                if piece.document is not None:
                    rows[-1].update(chosen(piece.document)._asdict())
                    tokens += len(piece.document.words)
            if tokens >= _BATCH_TOKENS:
                yield pa.RecordBatch.from_pylist(rows, arrow)
                rows, tokens = [], 0
        yield pa.RecordBatch.from_pylist(rows, arrow)

    return parse


class _Record(NamedTuple):
    """A row of `read_lines`, with the beginning that its separator took from it."""

    source: str
    block: int
    line: int
    value: bytes

    @property
    def is_first(self) -> bool:
        """Whether the file begins with it."""
        return self.block == 0 and self.line == 1


def _records(batches: _Batches, begin: bytes) -> Iterator[_Record]:
    for batch in batches:
        columns = [batch[name] for name in _Record._fields]
        for row in range(batch.num_rows):
            record = _Record(*(column[row].as_py() for column in columns))
            yield record if record.is_first else record._replace(value=begin + record.value)


def _count_lines(records: Iterable[_Record]) -> Iterator[tuple[_Record, int]]:
    """Add how many lines of the block are before each record."""
    block, before = None, 0
    for record in records:
        if (record.source, record.block) != block:
            block, before = (record.source, record.block), 0
        yield record, before
        before += record.value.count(b"\n") + 1


def _fault(record: _Record, before: int, number: int, piece: Piece) -> dict[str, Any]:
    """Give the columns of `_PARSED` that are not the document's."""
    place = f"line {before + piece.line + 1}"
    if record.block:
        place = f"byte {record.block}, {place}"
    return {
        "source": record.source,
        "position": place if piece.token is None else f"{place}, token {piece.token + 1}",
        "reason": piece.reason,
        "record": record.value[: 4 * KEPT_CHARS],
        "block": record.block,
        "line": record.line,
        "piece": number,
    }


def _chars(value: bytes) -> int:
    return len(value.decode("utf-8", "replace"))


def _refuse_duplicates(parsed: DataFrame) -> DataFrame:
    good = F.col("reason").isNull()
    place = ["source", "block", "line", "piece"]
    # A piece that is bad by itself is a group by itself.
    keys = [F.when(good, F.col(name)) for name in ("document_id", "part")]
    alone = [F.when(~good, F.col(name)) for name in place]
    number = F.row_number().over(Window.partitionBy(*keys, *alone).orderBy(*place))
    return parsed.withColumn("number", number).withColumn(
        "reason", F.coalesce("reason", F.when(F.col("number") > 1, DUPLICATE))
    )


def write_documents(df: DataFrame, path: str, format: FormatName) -> None:
    """Write documents as text, a file a partition.

    Parameters
    ----------
    df
        The columns of ANNOTATED_DOCUMENTS; its mentions are written, so that predicted ones take
        the place of ``mention_starts``, ``mention_ends`` and ``mention_clusters``.
    path
        The folder, or its URI; what is in it is replaced.
    format
        As of `DocumentsSettings`. What it cannot hold is left out; see its ``write_`` function.

    Notes
    -----
    A reader of the format, and the reference scorer, find every mention once and all brackets
    closed. Files and documents are in the order of the partitions and their rows.
    """
    write = FORMATS[format].write

    def run(batches: _Batches) -> _Batches:
        for batch in batches:
            for row in range(batch.num_rows):
                (fields,) = batch.slice(row, 1).to_pylist()
                # The writer of text files ends each value with a line feed.
                text = write(AnnotatedDocument(**fields)).removesuffix("\n")
                yield pa.RecordBatch.from_pydict({"value": [text]})

    names = [field.name for field in ANNOTATED_DOCUMENTS]
    texts = df.select(*names).mapInArrow(run, "value string")
    texts.write.mode("overwrite").text(Place.of(path).uri, lineSep="\n")
