"""Documents in CoNLL-U, with the entities of CorefUD 1.x or without, read and written. No Spark.

CoNLL-U: https://universaldependencies.org/format.html. ``Entity`` in MISC holds brackets without a
separator: ``(e1-person-1`` begins a mention of entity e1, ``e1)`` ends it, ``(e1-person-1)`` is a
mention of one word; ``# global.Entity`` names the parts between hyphens. Discontinuous mentions are
given in parts, ``(e1[1/2]-person``: the first part is taken as the mention, others are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from corpusmill.corpora.annotated_rows import (
    BAD_HEAD,
    EMPTY_WORD,
    MAX_NUMBER,
    NO_ID,
    NO_TOKENS,
    AnnotatedDocument,
    Brackets,
    MalformedDocument,
    Mention,
    Piece,
    check_heads,
    genre_of,
    one_field,
    with_mentions,
    writable_mentions,
)

BEGIN = "# newdoc"

BAD_LINE = "bad token line: 10 columns with tabs, numbered from 1 in each sentence"
BAD_ENTITY = "bad Entity: (e1-person-1, e1) and (e1-person-1) are allowed, one after another"
_DEFAULT = "eid-etype-head-other"
_NAMES_OF_ID = ("eid", "GRP")

_COMMENT = re.compile(r"#\s*([^=]*?)\s*(?:=\s*(.*?)\s*)?$")
_NOT_A_WORD = re.compile(r"\d+(?:-|\.)\d+")
_BRACKETS = re.compile(r"\(([^()]+)\)|\(([^()]+)|([^()]+)\)")
_PART = re.compile(r"\[(\d+)/\d+\]$")
_NUMBERED = re.compile(r"e(0|[1-9]\d{0,8})")
_COLUMNS = 10


def read_conllu(text: str, head: bool, name: str) -> list[Piece]:
    """Read a record: a document from its ``# newdoc`` on.

    Parameters
    ----------
    text
        From ``# newdoc`` to before the next one; of the first record of a file what is before the
        first of them.
    head
        Whether it is the first record of a file. Without ``# newdoc`` it is a document if it has
        tokens.
    name
        What that document is called.

    Returns
    -------
    list of Piece
        A document or its fault, or nothing.
    """
    lines = text.split("\n")
    named = lines[0].startswith(BEGIN)
    if head and not named and all(not line or line.startswith("#") for line in lines):
        return []
    reader = _Reader("" if named else name)
    try:
        for number, line in enumerate(lines):
            reader.read(number, line)
        return [Piece(0, reader.finish())]
    except MalformedDocument as fault:
        place = fault.line if fault.token is None else reader.places[fault.token]
        return [Piece(place or 0, None, fault.reason)]


class _Reader:
    """The lists of a document, filled line by line."""

    def __init__(self, name: str) -> None:
        self.name, self.part = name, 0
        self.words: list[str] = []
        self.pos: list[str] = []
        self.lemmas: list[str] = []
        self.speakers: list[str] = []
        self.heads: list[int | None] = []
        self.relations: list[str] = []
        self.places: list[int] = []
        self.offsets = [0]
        self.speaker = ""
        self.known = False
        self.entities = _Entities()

    def read(self, number: int, line: str) -> None:
        if not line.strip():
            self.end_sentence()
        elif line.startswith("#"):
            self.read_comment(line)
        else:
            fields = line.split("\t")
            if len(fields) != _COLUMNS:
                raise MalformedDocument(BAD_LINE, line=number)
            self.read_word(number, fields)

    def read_comment(self, line: str) -> None:
        found = _COMMENT.match(line)
        key, value = (found[1], found[2] or "") if found else ("", "")
        if key == "newdoc id":
            self.name = value
        elif key == "part" and value.isascii() and value.isdigit() and int(value) < MAX_NUMBER:
            self.part = int(value)
        elif key == "speaker":
            self.speaker = "" if value in ("_", "-") else value
        elif key == "global.Entity":
            self.known = True
            self.entities.name_fields(value)

    def read_word(self, number: int, fields: Sequence[str]) -> None:
        token = len(self.words)
        is_word = not _NOT_A_WORD.fullmatch(fields[0])
        if is_word:
            if fields[0] != str(token - self.offsets[-1] + 1):
                raise MalformedDocument(BAD_LINE, line=number)
            if not fields[1]:
                raise MalformedDocument(EMPTY_WORD, line=number)
            self.places.append(number)
            self.words.append(fields[1])
            self.lemmas.append(_plain(fields[2]))
            self.pos.append(_plain(fields[4]) or _plain(fields[3]))
            self.speakers.append(self.speaker)
            self.heads.append(self.head(fields[6], number))
            self.relations.append(_plain(fields[7]))
        # A multi-word token is there again as its words; an empty node is a place between words.
        if "Entity=" in fields[9] and "-" not in fields[0]:
            self.known = True
            self.entities.read(fields[9], token, token + is_word, number)

    def head(self, field: str, number: int) -> int | None:
        if field == "_":
            return None
        if not (field.isascii() and field.isdigit() and len(field) < 10):
            raise MalformedDocument(BAD_HEAD, line=number)
        return int(field) - 1 + self.offsets[-1] if field != "0" else -1

    def end_sentence(self) -> None:
        self.entities.end_sentence()
        self.speaker = ""
        if len(self.words) > self.offsets[-1]:
            self.offsets.append(len(self.words))

    def finish(self) -> AnnotatedDocument:
        self.end_sentence()
        if not self.name:
            raise MalformedDocument(NO_ID)
        if not self.words:
            raise MalformedDocument(NO_TOKENS)
        heads = [head for head in self.heads if head is not None]
        if heads and len(heads) != len(self.words):
            raise MalformedDocument(BAD_HEAD, self.heads.index(None))
        check_heads(heads, self.offsets)
        document = AnnotatedDocument(
            self.name,
            self.part,
            genre_of(self.name),
            self.words,
            self.pos,
            self.lemmas,
            self.speakers,
            self.offsets,
            *([], [], [], []),
            heads,
            self.relations if heads else [],
            *([], [], []),
            *(None, None, None),
        )
        return with_mentions(document, self.entities.mentions() if self.known else None)


class _Entities:
    """Mentions from ``Entity`` in MISC."""

    def __init__(self) -> None:
        self.first_parts = Brackets()
        self.later_parts = Brackets()
        self.place_of_id = 0

    def name_fields(self, names: str) -> None:
        """Take the value of ``# global.Entity``."""
        fields = names.split("-")
        places = [fields.index(name) for name in _NAMES_OF_ID if name in fields]
        self.place_of_id = places[0] if places else 0

    def end_sentence(self) -> None:
        """See that nothing is open."""
        self.first_parts.end_sentence()
        self.later_parts.end_sentence()

    def read(self, misc: str, start: int, end: int, line: int) -> None:
        """Read brackets: those that open at `start` and those that close at `end`."""
        for value in misc.split("|"):
            if value.startswith("Entity="):
                self._read(value.removeprefix("Entity="), start, end, line)

    def _read(self, value: str, start: int, end: int, line: int) -> None:
        if _BRACKETS.sub("", value):
            raise MalformedDocument(BAD_ENTITY, line=line)
        for whole, opening, closing in _BRACKETS.findall(value):
            if whole:
                name = self._id(whole, line)
                self._brackets(name).add(name, start, end)
            elif opening:
                name = self._id(opening, line)
                self._brackets(name).open(name, start)
            else:
                # In an older form an end has fields of its beginning.
                self._close(self._id(closing, line) if "-" in closing else closing, end, line)

    def _close(self, name: str, end: int, line: int) -> None:
        try:
            self._brackets(name).close(name, end)
        except MalformedDocument as fault:
            raise MalformedDocument(fault.reason, line=line) from None

    def _brackets(self, name: str) -> Brackets:
        part = _PART.search(name)
        return self.later_parts if part and part[1] != "1" else self.first_parts

    def _id(self, fields: str, line: int) -> str:
        values = fields.split("-")
        if self.place_of_id >= len(values) or not values[self.place_of_id]:
            raise MalformedDocument(BAD_ENTITY, line=line)
        return values[self.place_of_id]

    def mentions(self) -> list[Mention]:
        """Return the mentions; e7 is cluster 7 if all entities are called so."""
        mentions = self.first_parts.mentions()
        found = [(start, end, _PART.sub("", str(name))) for start, end, name in mentions]
        names: dict[str, int] = {}
        numbered = all(_NUMBERED.fullmatch(name) for _, _, name in found)
        return [
            Mention(start, end, int(name[1:]) if numbered else names.setdefault(name, len(names)))
            for start, end, name in found
        ]


def _plain(field: str) -> str:
    return "" if field == "_" else field


def write_conllu(document: AnnotatedDocument) -> str:
    """Write a document in CoNLL-U, its mentions as ``Entity`` after CorefUD 1.x.

    Parts of speech stand in XPOS. Cluster 7 is entity e7; the head of a mention is its first word
    whose own head is outside of it. A sentence has the speaker of its first word that has one. Of
    mentions what `writable_mentions` says is written. Constituents and named entities have no place
    in this format.

    Raises
    ------
    ValueError
        As `writable_mentions`.
    """
    mentions = writable_mentions(document)
    name = one_field(document.document_id)
    lines = [f"{BEGIN} id = {name}"]
    if document.part:
        lines.append(f"# part = {document.part}")
    if mentions is not None:
        lines.append(f"# global.Entity = {_DEFAULT}")
    cells = _entity_cells(mentions or [], document)
    for number, (start, end) in enumerate(pairwise(document.sentence_offsets), 1):
        lines += [f"# sent_id = {name}-{number}", f"# text = {' '.join(document.words[start:end])}"]
        speaker = next(filter(None, document.speakers[start:end]), "")
        if speaker:
            lines.append(f"# speaker = {one_field(speaker)}")
        lines += [_line(document, start, token, cells[token]) for token in range(start, end)]
        lines.append("")
    return "\n".join([*lines, ""])


def _line(document: AnnotatedDocument, start: int, token: int, entity: str) -> str:
    head, relation = "_", "_"
    if document.heads:
        value = document.heads[token]
        head, relation = str(value - start + 1 if value >= 0 else 0), document.relations[token]
    fields = [
        str(token - start + 1),
        document.words[token],
        document.lemmas[token],
        "_",
        document.pos[token],
        "_",
        head,
        relation,
        "_",
        f"Entity={entity}" if entity else "_",
    ]
    return "\t".join(field or "_" for field in fields)


def _entity_cells(mentions: Sequence[Mention], document: AnnotatedDocument) -> list[str]:
    """Write of each word ends, then beginnings, the longer first, then whole mentions."""
    cells = [""] * len(document.words)
    for start, end, cluster in reversed(mentions):
        if end > start + 1:
            cells[end - 1] += f"e{cluster})"
    for start, end, cluster in mentions:
        opening = f"(e{cluster}--{_head(document.heads, start, end) - start + 1}"
        cells[start] += f"{opening})" if end == start + 1 else opening
    return cells


def _head(heads: Sequence[int], start: int, end: int) -> int:
    outside = (token for token in range(start, end) if heads and not start <= heads[token] < end)
    return next(outside, start)
