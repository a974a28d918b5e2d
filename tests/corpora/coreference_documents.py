"""A document of coreference, and how tests read what is parsed of a text."""

from __future__ import annotations

from corpusmill.corpora import annotated_rows as rows
from corpusmill.corpora.annotated_rows import AnnotatedDocument
from corpusmill.corpora.coreference_formats import (
    FormatName,
    parse_pieces,
)

FISHERS = """\
#begin document (tale/fishers); part 002
tale/fishers 2 0 Ada   NNP (TOP(S(NP*)  -    - - narrator (PERSON) (4)
tale/fishers 2 1 sold  VBD (VP*         sell - - narrator *        -
tale/fishers 2 2 her   PRP$ (NP(NP*     -    - - narrator *        (7|(4)
tale/fishers 2 3 boat  NN  *)           boat - - narrator *        -
tale/fishers 2 4 -LRB- -LRB- *          -    - - narrator (ORG(GPE* -
tale/fishers 2 5 Zor   NNP *)           Zor  - - narrator *)       7)
tale/fishers 2 6 .     .   *)))         -    - - narrator *)       -

tale/fishers 2 0 It    PRP (NOPARSE*    -    - - -        *        (7)
tale/fishers 2 1 sank  VBD *)           sink - - -        *        -

#end document
"""


def parse(text: str, format: FormatName = "conll2012", name: str = "") -> AnnotatedDocument:
    (piece,) = parse_pieces(text.encode(), format, name)
    assert piece.document is not None, piece.reason
    return piece.document


def faults(data: str | bytes, format: FormatName = "conll2012") -> list[tuple[int, str | None]]:
    data = data.encode() if isinstance(data, str) else data
    return [(piece.line + 1, piece.reason) for piece in parse_pieces(data, format)]


def mentions(document: AnnotatedDocument) -> list[tuple[int, int, int]]:
    found = rows.mentions_of(document)
    assert found is not None
    return [(mention.start, mention.end, mention.cluster) for mention in found]


def begin(*cells: str, columns: str = "d 0 0 w{} X * - - - - * {}") -> str:
    lines = [columns.format(number, cell) for number, cell in enumerate(cells)]
    return "\n".join(["#begin document (d); part 000", *lines, "#end document", ""])
