"""Reuters-21578 in its original SGML -> DOCUMENTS, with the ModApte split.

The files are no valid XML: Latin-1 bytes, references to control characters, elements in no
order that a parser could rely on. Documents are therefore found by their tags. The format is
described in the collection's README (Lewis 1997, sections VI to VIII).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

import pyarrow as pa
from pydantic import Field
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from corpusmill.corpora.quarantine import KEPT_CHARS, TOO_LONG, Read, separate
from corpusmill.corpora.schemas import DOCUMENTS
from corpusmill.corpora.sources import read_whole
from corpusmill.settings import QuarantineSettings, Settings

NOT_CLOSED = "document without end"
NO_ID = "document without NEWID"
NO_TEXT = "document without TEXT"
OUTSIDE = "text outside of documents"

# A document ends before the next one begins, so that a file of starts alone takes linear time.
_START = re.compile(rb"<REUTERS\b([^>]*)>")
_END = b"</REUTERS>"
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_DOCTYPE = re.compile(rb"<!DOCTYPE[^<>]*>")
_REFERENCE = re.compile(r"&(?:#(\d{1,7})|(lt|gt|amp|quot|apos));")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_INDENT = re.compile(r"(?:^|\n) {4,}")
# The wire's end mark stands on a line of its own, in any case, at times with dots.
_END_MARK = re.compile(r"(?:^|\n)\s*reuters?\s*(?:\.{3})?\s*$", re.IGNORECASE)


class ReutersSettings(Settings):
    """Where the SGML files are."""

    path: str = Field(min_length=1)


class Document(NamedTuple):
    """A document as parsed: fields as in DOCUMENTS."""

    document_id: str
    split: str
    labels: list[str]
    title: str
    paragraphs: list[str]


class BadPiece(NamedTuple):
    """Bytes of a file that are no document, with the reason and the place of the first."""

    offset: int
    reason: str
    piece: bytes


class Parsed(NamedTuple):
    """What a file holds."""

    documents: list[Document]
    bad: list[BadPiece]


def parse_sgml(data: bytes, max_chars: int = 65_536) -> Parsed:
    """Parse one SGML file of Reuters-21578.

    Parameters
    ----------
    data
        The file's bytes, Latin-1.
    max_chars
        A longer document is bad.

    Returns
    -------
    Parsed
        Every byte that is no white space and no document type is in a document or a bad piece.

    Notes
    -----
    The split is ModApte: a document with TOPICS="YES" is ``train`` or ``test`` by its LEWISSPLIT,
    every other is ``unused``. A paragraph starts with four or more spaces, the body's first one
    anyhow; runs of white space become one space. References to control characters vanish, the
    end mark " Reuter" is dropped. BRIEF documents have no paragraphs; of UNPROC ones the whole
    text is taken, and they have no title.
    """
    documents: list[Document] = []
    starts = list(_START.finditer(data))
    first = starts[0].start() if starts else len(data)
    bad = _outside(data, 0, first)
    for match, following in zip_longest(starts, starts[1:]):
        limit = following.start() if following else len(data)
        found = data.find(_END, match.end(), limit)
        end = found + len(_END) if found >= 0 else limit
        if found < 0:
            parsed: Document | str = NOT_CLOSED
        elif end - match.start() > max_chars:
            parsed = TOO_LONG
        else:
            content = data[match.end() : found].decode("latin-1")
            parsed = _parse_document(match[1].decode("latin-1"), content)
        if isinstance(parsed, Document):
            documents.append(parsed)
        else:
            bad.append(BadPiece(match.start(), parsed, data[match.start() : end]))
        bad += _outside(data, end, limit)
    return Parsed(documents, bad)


def _outside(data: bytes, start: int, end: int) -> list[BadPiece]:
    piece = _DOCTYPE.sub(b"", data[start:end]).strip()
    return [BadPiece(start, OUTSIDE, piece)] if piece else []


def _parse_document(attributes: str, content: str) -> Document | str:
    """Return the document, or the reason why it is none."""
    values = dict(_ATTRIBUTE.findall(attributes))
    if not values.get("NEWID"):
        return NO_ID
    text = _element(content, "TEXT")
    if text is None:
        return NO_TEXT
    body = _element(text, "BODY")
    if body is None:
        body = text if re.search(r'<TEXT[^>]*TYPE="UNPROC"', content) else ""
    return Document(
        document_id=values["NEWID"],
        split=_mod_apte(values),
        labels=_topics(content),
        title=_squeeze(_unescape(_element(text, "TITLE") or "")),
        paragraphs=_paragraphs(body),
    )


def _topics(content: str) -> list[str]:
    """Return the topics in order, each once: two documents of the collection repeat one."""
    return list(dict.fromkeys(re.findall(r"<D>(.*?)</D>", _element(content, "TOPICS") or "")))


def _mod_apte(values: dict[str, str]) -> str:
    if values.get("TOPICS") != "YES":
        return "unused"
    return {"TRAIN": "train", "TEST": "test"}.get(values.get("LEWISSPLIT", ""), "unused")


def _element(content: str, name: str) -> str | None:
    match = re.search(rf"<{name}\b[^>]*>(.*?)</{name}>", content, re.DOTALL)
    return match[1] if match else None


def _paragraphs(body: str) -> list[str]:
    text = _END_MARK.sub("", _unescape(body).rstrip())
    paragraphs = [_squeeze(part) for part in _INDENT.split(text)]
    return [paragraph for paragraph in paragraphs if paragraph]


def _unescape(text: str) -> str:
    def character(match: re.Match[str]) -> str:
        if match[2]:
            return _ENTITIES[match[2]]
        code = int(match[1])
        return chr(code) if 32 <= code != 127 and code <= 0x10FFFF else ""

    return _REFERENCE.sub(character, text)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


_PARSED = T.StructType(
    [
        T.StructField("source", T.StringType()),
        T.StructField("position", T.StringType()),
        T.StructField("reason", T.StringType()),
        T.StructField("record", T.BinaryType()),
        *(T.StructField(field.name, field.dataType) for field in DOCUMENTS),
    ]
)


def read_reuters(
    spark: SparkSession,
    source: ReutersSettings,
    quarantine: QuarantineSettings,
    key: str = "reuters",
) -> Read:
    """Read the SGML files of Reuters-21578, one task a file at most.

    Parameters
    ----------
    spark
        The session.
    source
        The files.
    quarantine
        How long a document may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        DOCUMENTS and QUARANTINE; a bad piece's position is its byte in the decompressed file.

    Raises
    ------
    UsageError
        A path with nothing to read.
    DataError
        A damaged file, when the result is computed.
    """
    max_chars = quarantine.max_record_chars

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield _rows(row["source"], parse_sgml(row["value"], max_chars))

    files: DataFrame = read_whole(spark, source.path, key)
    return separate(files.mapInArrow(parse, _PARSED), DOCUMENTS)


def _rows(source: str, parsed: Parsed) -> pa.RecordBatch:
    good = [
        {"source": source, "position": f"document {document.document_id}", **document._asdict()}
        for document in parsed.documents
    ]
    bad = [
        {
            "source": source,
            "position": f"byte {piece.offset}",
            "reason": piece.reason,
            "record": piece.piece[:KEPT_CHARS].decode("latin-1").encode(),
        }
        for piece in parsed.bad
    ]
    return pa.RecordBatch.from_pylist(good + bad, schema=_ARROW)


_ARROW = pa.schema(
    [
        ("source", pa.string()),
        ("position", pa.string()),
        ("reason", pa.string()),
        ("record", pa.binary()),
        ("document_id", pa.string()),
        ("split", pa.string()),
        ("labels", pa.list_(pa.string())),
        ("title", pa.string()),
        ("paragraphs", pa.list_(pa.string())),
    ]
)
