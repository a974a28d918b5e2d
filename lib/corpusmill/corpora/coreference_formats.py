"""The formats of documents with coreference: how a file falls into records, and parsers. No Spark.

A record begins where a document does, so that Spark cuts a large file at documents.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from corpusmill.corpora import coreference_conll2012, coreference_conllu
from corpusmill.corpora.annotated_rows import AnnotatedDocument, Piece
from corpusmill.corpora.coreference_conll2012 import read_conll2012, write_conll2012
from corpusmill.corpora.coreference_conllu import read_conllu, write_conllu
from corpusmill.corpora.coreference_json import read_json, write_json
from corpusmill.errors import DataError

FormatName = Literal["conll2012", "conllu", "json"]

NOT_UTF8 = "not UTF-8"
CONTROL_CHARACTERS = "control characters"
DUPLICATE = "second document of this name and part"

_CONTROL = re.compile(r"[\x00-\x08\x0B\x0C\x0E-\x1F]")
_GZIP = b"\x1f\x8b"
_MARK = b"\xef\xbb\xbf"


class Format(NamedTuple):
    """A format.

    Attributes
    ----------
    separator
        A line feed and what each record begins with.
    read
        From a record's text, whether it is its file's first, and the file's name to its pieces.
    write
        From a document to its text, which ends with a line feed.
    """

    separator: str
    read: Callable[[str, bool, str], list[Piece]]
    write: Callable[[AnnotatedDocument], str]


FORMATS: dict[str, Format] = {
    "conll2012": Format("\n" + coreference_conll2012.BEGIN, read_conll2012, write_conll2012),
    "conllu": Format("\n" + coreference_conllu.BEGIN, read_conllu, write_conllu),
    "json": Format("\n", read_json, write_json),
}


def parse_record(record: bytes, format: FormatName, head: bool, name: str) -> list[Piece]:
    """Parse a record of a file.

    Parameters
    ----------
    record
        The bytes between two separators of the format, with what the first of them ends with.
    format
        Its name.
    head
        Whether it is the first of the file, which no separator precedes.
    name
        What a document is called that has no name and is alone in its file.

    Returns
    -------
    list of Piece
        Documents and faults.
    """
    if head:
        record = record.removeprefix(_MARK)
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError as error:
        return [Piece(record.count(b"\n", 0, error.start), None, NOT_UTF8)]
    bad = _CONTROL.search(text)
    if bad:
        return [Piece(text.count("\n", 0, bad.start()), None, CONTROL_CHARACTERS)]
    return FORMATS[format].read(text.replace("\r\n", "\n").removesuffix("\r"), head, name)


def parse_pieces(data: bytes, format: FormatName, name: str = "") -> Iterator[Piece]:
    """Parse a whole file; lines count from 0 in the file."""
    separator = FORMATS[format].separator.encode()
    line = 0
    for number, found in enumerate(data.removesuffix(separator).split(separator)):
        record = separator[1:] + found if number else found
        for piece in parse_record(record, format, number == 0, name):
            yield piece._replace(line=line + piece.line)
        line += record.count(b"\n") + 1


def parse_file(path: str | Path, format: FormatName = "conll2012") -> list[dict[str, Any]]:
    """Parse a local file, compressed by gzip or not, without Spark.

    Returns
    -------
    list of dict
        Rows of ANNOTATED_DOCUMENTS, in the order of the file.

    Raises
    ------
    DataError
        DATA01 at the first fault.
    """
    data = Path(path).read_bytes()
    if data.startswith(_GZIP):
        data = gzip.decompress(data)
    rows = []
    seen = set()
    for piece in parse_pieces(data, format, stem(str(path))):
        document, reason = piece.document, piece.reason
        if document is not None and (document.document_id, document.part) in seen:
            reason = DUPLICATE
        if document is None or reason is not None:
            raise DataError("DATA01", source=str(path), problem=f"line {piece.line + 1}: {reason}")
        seen.add((document.document_id, document.part))
        rows.append(document._asdict())
    return rows


def stem(source: str) -> str:
    """Return a file's name up to its first dot."""
    return source.rsplit("/", 1)[-1].split(".", 1)[0]
