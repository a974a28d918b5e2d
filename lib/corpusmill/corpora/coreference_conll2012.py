"""Documents in the columns of the CoNLL-2012 shared task, read and written. No Spark.

Columns, from Pradhan et al. 2012 (CoNLL-2012 shared task, table 3): document, part, number of the
word, word, part of speech, parse bit, lemma, frameset, word sense, speaker, named entities, a
column a predicate, coreference. The short form of the reference scorer's test cases has the first
four and coreference; its shortest has document and coreference, words are then all _.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from corpusmill.corpora.annotated_rows import (
    BAD_BRACKET,
    BAD_ENTITY,
    EMPTY_WORD,
    MAX_NUMBER,
    NO_ID,
    NO_TOKENS,
    AnnotatedDocument,
    Brackets,
    MalformedDocument,
    Mention,
    Piece,
    genre_of,
    one_field,
    parse_bits,
    with_mentions,
    writable_mentions,
)

BEGIN = "#begin document"
END = "#end document"

NO_END = "document without #end document"
OUTSIDE = "text outside of documents"
WRONG_COLUMNS = (
    "wrong number of columns: 12 or more, 11 without coreference; or 5, 4 without coreference; "
    "or 2; the same number in a sentence, one kind in a document"
)

_HEADER = re.compile(r"#begin document\s*(?:\((.*)\))?\s*;?\s*(?:part\s+(\d+))?\s*;?\s*$")
_PARTS = re.compile(r"\((\d{1,9})\)|\((\d{1,9})(?!\d)|(\d{1,9})\)|\|")
_NONE = frozenset({"-", "_", "*", ""})
_NAMES = re.compile(r"\(([^()*|\s]+)")
_SHORTEST, _SHORT, _FULL = 1, 4, 11
_PLAIN = {"-": "", "_": ""}


def read_conll2012(text: str, head: bool, name: str) -> list[Piece]:
    """Read a record: a document from its begin line on and what follows it.

    Parameters
    ----------
    text
        From ``#begin document`` to before the next one; of the first record of a file what is
        before the first document.
    head, name
        Not used: every document has a name.

    Returns
    -------
    list of Piece
        At most a document or its fault, and text outside of it.
    """
    lines = text.split("\n")
    if not lines[0].startswith(BEGIN):
        return _outside(lines, 0)
    end = next((i for i, line in enumerate(lines) if line.startswith(END)), None)
    if end is None:
        return [Piece(0, None, NO_END)]
    places: list[int] = []
    try:
        piece = Piece(0, _parse(lines[:end], places))
    except MalformedDocument as fault:
        line = 0 if fault.token is None else places[fault.token]
        piece = Piece(line, None, fault.reason)
    return [piece, *_outside(lines, end + 1)]


def _outside(lines: Sequence[str], first: int) -> list[Piece]:
    for number, line in enumerate(lines[first:], first):
        if line.strip() and not line.startswith("#"):
            return [Piece(number, None, OUTSIDE)]
    return []


def _parse(lines: Sequence[str], places: list[int]) -> AnnotatedDocument:
    """Parse a document without its end line; `places` gets the line of each token."""
    rows, offsets = _rows(lines, places)
    if not rows:
        raise MalformedDocument(NO_TOKENS)
    width, known = _check_widths(rows, offsets)
    document_id, part = _name(lines[0], rows[0])
    words = ["_"] * len(rows) if width == _SHORTEST else [row[3] for row in rows]
    if "" in words:
        raise MalformedDocument(EMPTY_WORD, words.index(""))
    no = [""] * len(words)
    full = width == _FULL
    entities = _entities([row[10] for row in rows], offsets) if full else ([], [], [])
    bits = [row[5] for row in rows] if full else ["*"] * len(rows)
    document = AnnotatedDocument(
        document_id,
        part,
        genre_of(document_id),
        words,
        _known([row[4] for row in rows]) if full else no,
        _known([row[6] for row in rows]) if full else no,
        _known([row[9] for row in rows]) if full else no,
        offsets,
        *parse_bits(bits, offsets),
        [],
        [],
        *entities,
        None,
        None,
        None,
    )
    return with_mentions(document, _mentions([row[-1] for row in rows], offsets) if known else None)


def _rows(lines: Sequence[str], places: list[int]) -> tuple[list[list[str]], list[int]]:
    rows: list[list[str]] = []
    offsets = [0]
    for number, raw in enumerate(lines):
        line = raw.rstrip(" \t")
        if line.startswith("#"):
            continue
        if line:
            tabs = "\t" in line
            rows.append(line.split("\t") if tabs else [x for x in line.split(" ") if x])
            places.append(number)
        elif len(rows) > offsets[-1]:
            offsets.append(len(rows))
    if len(rows) > offsets[-1]:
        offsets.append(len(rows))
    return rows, offsets


def _check_widths(rows: Sequence[Sequence[str]], offsets: Sequence[int]) -> tuple[int, bool]:
    """Return how many columns there are before those of predicates, and whether coreference is."""
    first = len(rows[0])
    full = first >= _FULL
    if first not in (_SHORTEST + 1, _SHORT, _SHORT + 1) and not full:
        raise MalformedDocument(WRONG_COLUMNS, 0)
    for start, end in pairwise(offsets):
        width = len(rows[start])
        same = width == first or (first > _FULL and width > _FULL)
        for token in range(start, end):
            if not same or len(rows[token]) != width:
                raise MalformedDocument(WRONG_COLUMNS, token)
    if full:
        return _FULL, first > _FULL
    return (_SHORTEST, True) if first == _SHORTEST + 1 else (_SHORT, first > _SHORT)


def _name(line: str, row: Sequence[str]) -> tuple[str, int]:
    """Take the name of the begin line, or what it lacks of the first token line."""
    found = _HEADER.match(line)
    name, part = (found[1], found[2]) if found else (None, None)
    name = (name or row[0]).strip()
    number = part or (row[1] if len(row) > _SHORTEST + 1 else "0")
    if not name:
        raise MalformedDocument(NO_ID)
    usable = number.isascii() and number.isdigit() and int(number) < MAX_NUMBER
    return name, int(number) if usable else 0


def _known(column: Sequence[str]) -> list[str]:
    return [_PLAIN.get(value, value) for value in column]


def _mentions(column: Sequence[str], offsets: Sequence[int]) -> list[Mention]:
    brackets = Brackets()
    last = 0
    for token, cell in enumerate(column):
        if token == offsets[last + 1]:
            brackets.end_sentence()
            last += 1
        if cell not in _NONE:
            _read_cell(cell, token, brackets)
    brackets.end_sentence()
    return [Mention(start, end, int(str(name))) for start, end, name in brackets.mentions()]


def _read_cell(cell: str, token: int, brackets: Brackets) -> None:
    """Take whole mentions, then beginnings, then ends: the order of the reference scorer."""
    if _PARTS.sub("", cell):
        raise MalformedDocument(BAD_BRACKET, token)
    found = _PARTS.findall(cell)
    for whole, _, _ in found:
        if whole:
            brackets.add(int(whole), token, token + 1)
    for _, opening, _ in found:
        if opening:
            brackets.open(int(opening), token)
    for _, _, closing in found:
        if closing:
            brackets.close(int(closing), token + 1)


def _entities(
    column: Sequence[str], offsets: Sequence[int]
) -> tuple[list[int], list[int], list[str]]:
    """Read named entities, which may nest; in preorder."""
    starts: list[int] = []
    ends: list[int] = []
    labels: list[str] = []
    ends_of_sentences = set(offsets)
    stack: list[int] = []
    for token, cell in enumerate(column):
        if stack and token in ends_of_sentences:
            raise MalformedDocument(BAD_ENTITY, starts[stack[-1]])
        if cell in _NONE:
            continue
        names = _NAMES.findall(cell)
        closing = cell.count(")")
        stack += range(len(starts), len(starts) + len(names))
        if _NAMES.sub("", cell) not in ("*" + ")" * closing, ")" * closing) or closing > len(stack):
            raise MalformedDocument(BAD_ENTITY, token)
        starts += [token] * len(names)
        ends += [0] * len(names)
        labels += names
        for _ in range(closing):
            ends[stack.pop()] = token + 1
    if stack:
        raise MalformedDocument(BAD_ENTITY, starts[stack[-1]])
    return starts, ends, labels


def write_conll2012(document: AnnotatedDocument) -> str:
    """Write a document in the columns of CoNLL-2012, separated by tabs, with its end line.

    Framesets and word senses are ``-``, there are no columns of predicates. Without coreference
    there are 11 columns. White space inside of a field becomes ``_``; of two named entities that
    cross the second is left out, and of mentions what `writable_mentions` says. Dependencies have
    no place in this format.

    Raises
    ------
    ValueError
        As `writable_mentions`.
    """
    mentions = writable_mentions(document)
    size = len(document.words)
    name = one_field(document.document_id)
    # A line that begins with # is a comment.
    name = f"_{name}" if name.startswith("#") else name
    columns = [
        [one_field(word) for word in document.words],
        _fields(document.pos),
        _bits(document),
        _fields(document.lemmas),
        ["-"] * size,
        ["-"] * size,
        _fields(document.speakers),
        _entity_cells(document),
    ]
    if mentions is not None:
        columns.append(_mention_cells(mentions, size))
    rows = list(zip(*columns, strict=True))
    lines = [f"{BEGIN} ({name}); part {document.part:03d}"]
    for start, end in pairwise(document.sentence_offsets):
        for number, row in enumerate(rows[start:end]):
            lines.append("\t".join((name, str(document.part), str(number), *row)))
        lines.append("")
    return "\n".join([*lines, END, ""])


def _fields(values: Sequence[str]) -> list[str]:
    return [one_field(value) or "-" for value in values]


def _bits(document: AnnotatedDocument) -> list[str]:
    opening = [""] * len(document.words)
    closing = [0] * len(document.words)
    for label, start, end in zip(
        document.constituent_labels,
        document.constituent_starts,
        document.constituent_ends,
        strict=True,
    ):
        opening[start] += f"({label}"
        closing[end - 1] += 1
    return [f"{before}*{')' * after}" for before, after in zip(opening, closing, strict=True)]


def _entity_cells(document: AnnotatedDocument) -> list[str]:
    opening: list[list[str]] = [[] for _ in document.words]
    closing = [0] * len(document.words)
    ends: list[int] = []
    spans = zip(document.entity_starts, document.entity_ends, document.entity_labels, strict=True)
    for start, end, label in sorted(spans, key=lambda span: (span[0], -span[1])):
        while ends and ends[-1] <= start:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            opening[start].append(f"({label}")
            closing[end - 1] += 1
    return [
        f"{before[0]})" if len(before) == after == 1 else f"{''.join(before)}*{')' * after}"
        for before, after in zip(opening, closing, strict=True)
    ]


def _mention_cells(mentions: Sequence[Mention], size: int) -> list[str]:
    """Write of each token the longer beginnings first, then whole mentions, then ends."""
    cells: list[list[str]] = [[] for _ in range(size)]
    for start, end, cluster in mentions:
        cells[start].append(f"({cluster})" if end == start + 1 else f"({cluster}")
    for start, end, cluster in reversed(mentions):
        if end > start + 1:
            cells[end - 1].append(f"{cluster})")
    return ["|".join(cell) or "-" for cell in cells]
