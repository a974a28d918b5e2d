"""Documents with coreference: what each format says, what is refused, and there and back."""

from __future__ import annotations

import gzip
import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora import annotated_rows as rows
from corpusmill.corpora import coreference_conll2012 as conll2012
from corpusmill.corpora import coreference_conllu as conllu
from corpusmill.corpora import coreference_json as json_lines
from corpusmill.corpora.annotated_rows import AnnotatedDocument, MalformedDocument, Mention
from corpusmill.corpora.coreference_formats import (
    CONTROL_CHARACTERS,
    DUPLICATE,
    FORMATS,
    NOT_UTF8,
    FormatName,
    parse_file,
    parse_pieces,
)
from corpusmill.errors import DataError

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


# CoNLL-2012.


def test_columns_of_conll_2012():
    assert parse(FISHERS) == AnnotatedDocument(
        document_id="tale/fishers",
        part=2,
        genre="tale",
        words=["Ada", "sold", "her", "boat", "-LRB-", "Zor", ".", "It", "sank"],
        pos=["NNP", "VBD", "PRP$", "NN", "-LRB-", "NNP", ".", "PRP", "VBD"],
        lemmas=["", "sell", "", "boat", "", "Zor", "", "", "sink"],
        speakers=["narrator"] * 7 + [""] * 2,
        sentence_offsets=[0, 7, 9],
        constituent_labels=["TOP", "S", "NP", "VP", "NP", "NP"],
        constituent_starts=[0, 0, 0, 1, 2, 2],
        constituent_ends=[7, 7, 1, 7, 6, 4],
        constituent_parents=[-1, 0, 1, 1, 3, 4],
        heads=[],
        relations=[],
        entity_starts=[0, 4, 4],
        entity_ends=[1, 7, 6],
        entity_labels=["PERSON", "ORG", "GPE"],
        mention_starts=[0, 2, 2, 7],
        mention_ends=[1, 6, 3, 8],
        mention_clusters=[4, 7, 4, 7],
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda text: re.sub(r"(?<!#begin)(?<!#end)(?<!;)(?<!document)(?<!part) +", "\t", text),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "# a remark\n\n" + text.replace("\n\n", "\n\n\n"),
        lambda text: text.replace("(7|(4)", "(7(4)"),
        lambda text: text.replace("(tale/fishers)", "").replace("; part 002", ""),
        lambda text: text.rstrip("\n"),
    ],
    ids=["tabs", "returns", "byte order mark", "blank lines", "no bar", "no name", "no last feed"],
)
def test_variants_of_the_columns(change: Any):
    assert parse(change(FISHERS)) == parse(FISHERS)


def test_columns_of_predicates_are_passed_over():
    wide = re.sub(r"(?m)(\S+)$", r"(ARG0*) * \1", FISHERS.split("\n\n", maxsplit=1)[0])
    assert mentions(parse(f"{wide}\n#end document\n")) == [(0, 1, 4), (2, 6, 7), (2, 3, 4)]


def test_no_coreference_column():
    text = begin("", "")
    assert parse(text).mention_starts is None
    assert parse(text).words == ["w0", "w1"]
    assert parse(begin("", columns="d 0 0 w{}{}")).mention_clusters is None


def test_no_mentions_are_known():
    assert mentions(parse(begin("-", "_"))) == []


def test_short_forms():
    short = parse(begin("(0", "0)|(1)\t", columns="d\t0\t0\tw{}\t{}"))
    assert (short.words, mentions(short)) == (["w0", "w1"], [(0, 2, 0), (1, 2, 1)])
    shortest = parse("#begin document (d); \nd (3\nd -\nd 3)\n#end document")
    assert (shortest.words, mentions(shortest)) == (["_"] * 3, [(0, 3, 3)])


def test_one_token_document():
    document = parse(begin("(0)"))
    assert (document.sentence_offsets, mentions(document)) == ([0, 1], [(0, 1, 0)])


def test_brackets_of_different_clusters_may_cross():
    assert mentions(parse(begin("(0", "(1", "0)", "1)"))) == [(0, 3, 0), (1, 4, 1)]


def test_brackets_of_one_cluster_close_the_most_recent():
    assert mentions(parse(begin("(0", "(0", "0)", "0)"))) == [(0, 4, 0), (1, 3, 0)]


def test_of_a_repeated_span_the_cluster_that_the_document_has_first_stays():
    assert mentions(parse(begin("(5)", "(9(5", "9)5)"))) == [(0, 1, 5), (1, 3, 5)]
    assert mentions(parse(begin("(9)|(5)|(9)"))) == [(0, 1, 9)]


def test_documents_in_one_file_and_text_between_them():
    text = FISHERS + "stray\n" + begin("(0)") + "\nmore\n" + begin("-")
    pieces = list(parse_pieces(text.encode(), "conll2012"))
    assert [piece.reason for piece in pieces] == [
        None, conll2012.OUTSIDE, None, conll2012.OUTSIDE, None
    ]  # fmt: skip
    stray = text.split("\n").index("stray") + 1
    assert pieces[1].line + 1 == stray
    assert faults("first\n" + text)[0] == (1, conll2012.OUTSIDE)


TOO_FEW = FISHERS.replace("- - narrator *        -\ntale/fishers 2 2", "- -\ntale/fishers 2 2")
_TREE = "d 0 0 w{} X {} - - - - * -"
_NAME = "d 0 0 w{} X * - - - - {} -"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        (TOO_FEW, 3, conll2012.WRONG_COLUMNS),
        (begin("-", "", "-"), 3, conll2012.WRONG_COLUMNS),
        (begin("-", columns="d 0 0 w{} X * {}"), 2, conll2012.WRONG_COLUMNS),
        (begin("-", "- -"), 3, conll2012.WRONG_COLUMNS),
        (begin("-", "(0", "-"), 3, rows.NOT_CLOSED),
        (FISHERS.replace("7)\n", "-\n"), 4, rows.NOT_CLOSED),
        (begin("-", "0)"), 3, rows.NOT_OPENED),
        (begin("-", "(a)"), 3, rows.BAD_BRACKET),
        (begin("-", "0"), 3, rows.BAD_BRACKET),
        (begin("(1234567890)"), 2, rows.BAD_BRACKET),
        (begin("(S(NP*)", "*", columns=_TREE), 3, rows.UNBALANCED),
        (begin("(S*)", "*)", columns=_TREE), 3, rows.NOT_COVERED),
        (begin("(S*", "*))", columns=_TREE), 3, rows.UNBALANCED),
        (begin("(S*)", "*", columns=_TREE), 3, rows.NOT_COVERED),
        (begin("*", "(S*)", columns=_TREE), 2, rows.NOT_COVERED),
        (begin("(S", "*)", columns=_TREE), 2, rows.BAD_PARSE),
        (begin("S*", "*)", columns=_TREE), 2, rows.BAD_PARSE),
        (begin("(*)", columns=_TREE), 2, rows.BAD_PARSE),
        (begin("(S**)", columns=_TREE), 2, rows.BAD_PARSE),
        (begin("(ORG*", "*", columns=_NAME), 2, rows.BAD_ENTITY),
        (begin("*)", columns=_NAME), 2, rows.BAD_ENTITY),
        (begin("ORG", columns=_NAME), 2, rows.BAD_ENTITY),
        ("#begin document (d); part 000\n\n#end document\n", 1, rows.NO_TOKENS),
        (FISHERS.removesuffix("#end document\n"), 1, conll2012.NO_END),
        (begin("-", columns="d\t0\t0\t\t{}{}"), 2, rows.EMPTY_WORD),
        (FISHERS.replace("sank", "sa\x00nk"), 11, CONTROL_CHARACTERS),
    ],
)
def test_refused_columns(text: str, line: int, reason: str):
    assert faults(text) == [(line, reason)]
    there = faults(FISHERS + text + begin("-"))
    assert there == [(1, None), (line + FISHERS.count("\n"), reason), (there[-1][0], None)]


def test_bytes_that_are_no_text():
    assert faults(FISHERS.encode().replace(b"sank", b"s\xffnk")) == [(11, NOT_UTF8)]


# CoNLL-U.


def sentence(*words: str) -> str:
    """Write words, each with its head, relation and MISC, as a sentence."""
    lines = []
    for number, word in enumerate(words, 1):
        form, head, relation, misc = word.split(" ")
        lines.append(f"{number}\t{form}\t_\tX\t_\t_\t{head}\t{relation}\t_\t{misc}\n")
    return "".join(lines) + "\n"


BOATS = (
    "# newdoc id = tale/boats\n"
    "# global.Entity = eid-etype-head-other\n"
    "# speaker = Ada\n"
    "1\tAda\tAda\tPROPN\tNNP\tNumber=Sing\t2\tnsubj\t_\tEntity=(e4-person-1)\n"
    "2-3\tsoldher\t_\t_\t_\t_\t_\t_\t_\tEntity=(e9)\n"
    "2\tsold\tsell\tVERB\tVBD\t_\t0\troot\t_\t_\n"
    "3\ther\t_\tPRON\t_\t_\t4\tnmod\t_\tSpaceAfter=No|Entity=(e7-object-2(e4-person-1)\n"
    "4\tboat\tboat\tNOUN\t_\t_\t2\tobj\t_\tEntity=e7)\n"
    "4.1\t_\t_\t_\t_\t_\t_\t_\t_\tEntity=(e5-event-1)\n"
    "\n" + sentence("It 2 nsubj Entity=(e7-object-1)", "sank 0 root _")
)


def test_columns_of_conll_u():
    found = parse(BOATS, "conllu")
    assert (found.document_id, found.part, found.genre) == ("tale/boats", 0, "tale")
    assert found.words == ["Ada", "sold", "her", "boat", "It", "sank"]
    assert found.pos == ["NNP", "VBD", "PRON", "NOUN", "X", "X"]
    assert found.lemmas == ["Ada", "sell", "", "boat", "", ""]
    assert found.speakers == ["Ada"] * 4 + [""] * 2
    assert found.sentence_offsets == [0, 4, 6]
    assert found.heads == [1, -1, 3, 1, 5, -1]
    assert found.relations == ["nsubj", "root", "nmod", "obj", "nsubj", "root"]
    assert mentions(found) == [(0, 1, 4), (2, 4, 7), (2, 3, 4), (4, 5, 7)]


def test_plain_dependencies_have_no_mentions():
    found = parse(sentence("Fish 2 nsubj _", "swim 0 root _"), "conllu", "fish")
    assert (found.document_id, found.heads, found.mention_starts) == ("fish", [1, -1], None)


def test_no_dependencies():
    found = parse(sentence("Fish _ _ _", "swim _ _ _"), "conllu", "fish")
    assert (found.heads, found.relations) == ([], [])


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["(a-x", "b)", "a)"], None),
        (["(a-x(b-x", "a)", "b)"], [(0, 3, 0), (0, 2, 1)]),
        (["(a[1/2]-x)", "(b-x)", "(a[2/2]-x)"], [(0, 1, 0), (1, 2, 1)]),
        (["(a[1/2]-x)", "(a[2/2]-x", "a[2/2])"], [(0, 1, 0)]),
        (["(e5-x", "_", "e5)(e2-x)"], [(0, 3, 5), (2, 3, 2)]),
        (["(a-x)", "(a-x)", "_"], [(0, 1, 0), (1, 2, 0)]),
        (["(a", "(a", "a)a)"], [(0, 3, 0), (1, 3, 0)]),
    ],
)
def test_brackets_of_entity(cells: list[str], expected: list[tuple[int, int, int]] | None):
    text = sentence(*(f"w _ _ {f'Entity={cell}' if cell != '_' else '_'}" for cell in cells))
    if expected is None:
        assert faults("# newdoc id = d\n" + text, "conllu") == [(3, rows.NOT_OPENED)]
    else:
        assert mentions(parse(text, "conllu", "d")) == sorted(
            expected, key=lambda span: (span[0], -span[1])
        )


def test_the_place_of_the_id_is_that_of_the_global_comment():
    text = "# global.Entity = etype-eid-head\n" + sentence("w _ _ Entity=(person-e3-1)")
    assert mentions(parse(text, "conllu", "d")) == [(0, 1, 3)]


def test_ends_with_the_fields_of_their_beginnings():
    text = "# global.Entity = entity-GRP-infstat\n" + sentence(
        "w _ _ Entity=(person-8-new", "w _ _ Entity=person-8)"
    )
    assert mentions(parse(text, "conllu", "d")) == [(0, 2, 0)]


def test_a_mention_from_an_empty_node_on_begins_with_the_next_word():
    text = "1.1\t_\t_\t_\t_\t_\t_\t_\t_\tEntity=(e0\n2\tw\t_\t_\t_\t_\t_\t_\t_\tEntity=e0)\n"
    first = sentence("v _ _ _").removesuffix("\n")
    assert mentions(parse(first + text, "conllu", "d")) == [(1, 2, 0)]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("1\tone\ttwo\n", 2, conllu.BAD_LINE),
        (sentence("w 0 root _").replace("1\t", "2\t", 1), 2, conllu.BAD_LINE),
        (sentence("w 0 root _").replace("w", "", 1), 2, rows.EMPTY_WORD),
        (sentence("w 0 root _", "v x dep _"), 3, rows.BAD_HEAD),
        (sentence("w 0 root _", "v 3 dep _"), 3, rows.BAD_HEAD),
        (sentence("w 0 root _", "v _ _ _"), 3, rows.BAD_HEAD),
        (sentence("w 2 dep _", "v 1 dep _"), 2, rows.CYCLE),
        (sentence("w 0 root _", "v 2 dep _"), 3, rows.CYCLE),
        (sentence("w 0 root Entity=(e1-x"), 2, rows.NOT_CLOSED),
        (sentence("w 0 root Entity=e1"), 2, conllu.BAD_ENTITY),
        (sentence("w 0 root Entity=(-x)"), 2, conllu.BAD_ENTITY),
        ("\n", 1, rows.NO_TOKENS),
    ],
)
def test_refused_conll_u(text: str, line: int, reason: str):
    whole = f"# newdoc id = d\n{text}\n"
    assert faults(whole, "conllu") == [(line, reason)]
    good = "# newdoc id = e\n" + sentence("w 0 root _")
    assert faults("# remark\n" + whole + good, "conllu")[0] == (line + 1, reason)
    assert faults(whole + good, "conllu")[1][1] is None


def test_a_document_of_conll_u_needs_a_name():
    assert faults("# newdoc\n" + sentence("w 0 root _"), "conllu") == [(1, rows.NO_ID)]


# JSON lines.

RIVER: dict[str, Any] = {
    "document_id": "river",
    "part": 3,
    "genre": "song",
    "sentences": [["The", "river"], [], ["it", "runs", "deep"]],
    "pos": [["DT", "NN"], [], ["PRP", None, ""]],
    "speakers": [["", ""], [], ["Bo", "Bo", "Bo"]],
    "heads": [[1, -1], [], [3, -1, 3]],
    "entities": [[2, 4, "B"], [0, 2, "A"]],
    "clusters": [[[2, 3]], [[2, 3]], [[2, 4], [0, 2], [0, 2]]],
}


def test_keys_of_json():
    found = parse(json.dumps(RIVER), "json")
    assert (found.document_id, found.part, found.genre) == ("river", 3, "song")
    assert found.words == ["The", "river", "it", "runs", "deep"]
    assert found.pos == ["DT", "NN", "PRP", "", ""]
    assert found.lemmas == [""] * 5
    assert found.speakers == ["", "", "Bo", "Bo", "Bo"]
    assert found.sentence_offsets == [0, 2, 5]
    assert (found.heads, found.relations) == ([1, -1, 3, -1, 3], [""] * 5)
    spans = (found.entity_starts, found.entity_ends, found.entity_labels)
    assert spans == ([0, 2], [2, 4], ["A", "B"])
    assert mentions(found) == [(0, 2, 1), (2, 4, 1), (2, 3, 0)]


def test_json_without_clusters():
    assert parse('{"document_id": "a/b", "sentences": [["w"]]}', "json").genre == "a"
    assert parse('{"document_id": "a", "sentences": [["w"]]}', "json").mention_starts is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sentences": ["The river"]}, json_lines.NO_OBJECT),
        ({"sentences": None}, json_lines.NO_OBJECT),
        ({"document_id": 7}, json_lines.NO_OBJECT),
        ({"document_id": " "}, rows.NO_ID),
        ({"sentences": [[]]}, rows.NO_TOKENS),
        ({"sentences": [["The", " "], [], ["it", "runs", "deep"]]}, rows.EMPTY_WORD),
        ({"sentences": [["The", "a\tb"], [], ["it", "runs", "deep"]]}, json_lines.BAD_TEXT),
        ({"sentences": [["The", "\ud800"], [], ["it", "runs", "deep"]]}, json_lines.BAD_TEXT),
        ({"part": -1}, json_lines.BAD_PART),
        ({"part": True}, json_lines.BAD_PART),
        ({"pos": [["DT"]]}, json_lines.BAD_SHAPE),
        ({"pos": [["DT", 3], [], ["a", "b", "c"]]}, json_lines.BAD_SHAPE),
        ({"heads": [[1, -1], [], [0, -1, 3]]}, rows.BAD_HEAD),
        ({"heads": [[1, 0], [], [3, -1, 3]]}, rows.CYCLE),
        ({"heads": [[1, "x"], [], [3, -1, 3]]}, rows.BAD_HEAD),
        ({"entities": [[0, 2, "A B"]]}, json_lines.BAD_LABEL),
        ({"entities": [[0, 3, "A"]]}, rows.BAD_SPAN),
        ({"clusters": [[0, 2]]}, json_lines.BAD_CLUSTERS),
        ({"clusters": [[[1, 3]]]}, rows.BAD_SPAN),
        ({"clusters": [[[2, 2]]]}, rows.BAD_SPAN),
        ({"clusters": [[[2, 9]]]}, rows.BAD_SPAN),
        ({"clusters": [[[-1, 1]]]}, rows.BAD_SPAN),
        ({"clusters": [[[0.0, 1]]]}, rows.BAD_SPAN),
        ({"clusters": {}}, json_lines.BAD_CLUSTERS),
    ],
)
def test_refused_json(change: dict[str, Any], reason: str):
    line = json.dumps(RIVER | change)
    assert faults(f"{line}\n{json.dumps(RIVER)}\n", "json") == [(1, reason), (2, None)]


def test_lines_that_are_no_json():
    deep = "[" * 100_000
    assert [reason for _, reason in faults(f"{{\n\n[]\n{deep}\n", "json")] == [
        json_lines.BAD_JSON, json_lines.EMPTY_LINE, json_lines.NO_OBJECT, json_lines.BAD_JSON
    ]  # fmt: skip


# Files.


def test_a_file_without_spark(tmp_path: Path):
    path = tmp_path / "tales.v1.gz"
    path.write_bytes(gzip.compress((FISHERS + begin("(0)")).encode()))
    found = parse_file(path)
    assert found[0] == parse(FISHERS)._asdict()
    assert [row["document_id"] for row in found] == ["tale/fishers", "d"]
    path.write_text(FISHERS + begin("(0)") + begin("-"), encoding="utf-8")
    with pytest.raises(DataError, match=f"line 17: {DUPLICATE}"):
        parse_file(path)


# There and back.

WORDS = st.text("ab-_(1É\xa0", min_size=1, max_size=3).filter(str.strip)
LABELS = st.sampled_from(["NP", "S", "WHADJP", "X-1"])


@st.composite
def trees(draw: st.DrawFn, size: int, first: int) -> list[tuple[str, int, int]]:
    """Draw constituents that nest and cover; sorted by start and end they are in preorder."""
    cuts = draw(st.lists(st.tuples(st.integers(0, size), st.integers(0, size)), max_size=6))
    spans = [(0, size)]
    for start, end in ((min(cut), max(cut)) for cut in cuts):
        crossing = any(a < start < b < end or start < a < end < b for a, b in spans)
        if start < end and not crossing:
            spans.append((start, end))
    spans.sort(key=lambda span: (span[0], -span[1]))
    return [(draw(LABELS), first + start, first + end) for start, end in spans]


def parents(spans: list[tuple[str, int, int]]) -> list[int]:
    """Find of each constituent the last one before it that holds it, sentence by sentence."""
    found = []
    for number, (_, start, end) in enumerate(spans):
        around = [i for i, (_, a, b) in enumerate(spans[:number]) if a <= start and end <= b]
        found.append(around[-1] if around else -1)
    return found


@st.composite
def documents(draw: st.DrawFn, format: FormatName) -> AnnotatedDocument:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    size = offsets[-1]

    def layer(texts: st.SearchStrategy[str]) -> list[str]:
        return draw(st.lists(texts, min_size=size, max_size=size))

    constituents: list[tuple[str, int, int]] = []
    entities: list[tuple[str, int, int]] = []
    heads: list[int] = []
    if format == "conll2012":
        for start, end in pairwise(offsets):
            constituents += draw(st.one_of(st.just([]), trees(end - start, start)))
    if format != "conllu":
        for start, end in pairwise(offsets):
            entities += draw(trees(end - start, start))[1:]
    if format != "conll2012" and draw(st.booleans()):
        for start, end in pairwise(offsets):
            heads += [
                draw(st.integers(start - 1, max(start - 1, t - 1))) for t in range(start, end)
            ]
            heads[start:] = [head if head >= start else -1 for head in heads[start:]]
    tags = st.sampled_from(["", "NN", "IN(", "a_b"])
    by_sentence = [draw(tags) for _ in lengths]
    speakers = [name for name, n in zip(by_sentence, lengths, strict=True) for _ in range(n)]
    name = draw(st.sampled_from(["d", "nw/d", "a/(b)"]))
    document = AnnotatedDocument(
        name,
        draw(st.integers(0, 1200)),
        rows.genre_of(name),
        layer(WORDS),
        layer(tags),
        layer(tags),
        speakers if format == "conllu" else layer(tags),
        offsets,
        [label for label, _, _ in constituents],
        [start for _, start, _ in constituents],
        [end for _, _, end in constituents],
        parents(constituents),
        heads,
        layer(tags) if heads else [],
        [start for _, start, _ in entities],
        [end for _, _, end in entities],
        [label for label, _, _ in entities],
        None,
        None,
        None,
    )
    return rows.with_mentions(document, draw(st.none() | spans_in(offsets)))


@st.composite
def spans_in(draw: st.DrawFn, offsets: list[int]) -> list[Mention]:
    """Draw mentions, repeated and crossing ones too."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        number = draw(st.integers(0, len(offsets) - 2))
        start = draw(st.integers(offsets[number], offsets[number + 1] - 1))
        end = draw(st.integers(start + 1, offsets[number + 1]))
        found.append(Mention(start, end, draw(st.integers(0, 3))))
    return found


def normal(document: AnnotatedDocument, format: FormatName) -> AnnotatedDocument:
    """Leave of a document what can be read."""
    found = rows.mentions_of(document)
    if found is None:
        return document
    if format == "json":
        found = rows.unique_mentions(found)
        numbers = sorted({mention.cluster for mention in found})
        found = [each._replace(cluster=numbers.index(each.cluster)) for each in found]
    else:
        found = rows.writable_mentions(document)
    return rows.with_mentions(document, found)


@pytest.mark.parametrize("format", list(FORMATS))
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_back(format: FormatName, data: st.DataObject):
    document = data.draw(documents(format))
    other = data.draw(documents(format))._replace(document_id="other")
    write = FORMATS[format].write
    pieces = list(parse_pieces((write(document) + write(other)).encode(), format))
    assert [piece.reason for piece in pieces] == [None, None]
    assert pieces[0].document == normal(document, format)
    again = write(normal(document, format))
    assert [piece.document for piece in parse_pieces(again.encode(), format)] == [
        normal(document, format)
    ]


def scored_mentions(text: str) -> list[tuple[int, int, int]]:
    """Read a coreference column as the reference scorer does: its errors are errors here."""
    found, token = [], 0
    opened: dict[str, list[int]] = defaultdict(list)
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        cell = re.split(r"\s+", line)[-1]
        for name in re.findall(r"\((\d+)\)", cell):
            found.append((token, token + 1, int(name)))
        cell = re.sub(r"\((\d+)\)", "", cell)
        for name in re.findall(r"\((\d+)", cell):
            opened[name].append(token)
        for name in re.findall(r"(\d+)\)", cell):
            found.append((opened[name].pop(), token + 1, int(name)))
        token += 1
    assert not any(opened.values())
    return found


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_reference_scorer_reads_every_mention_once(data: st.DataObject):
    document = data.draw(documents("conll2012"))
    found = data.draw(spans_in(document.sentence_offsets))
    written = conll2012.write_conll2012(rows.with_mentions(document, found))
    scored = scored_mentions(written)
    kept = [
        tuple(mention)
        for mention in rows.writable_mentions(rows.with_mentions(document, found)) or []
    ]
    assert sorted(scored) == sorted(kept)
    assert len({span[:2] for span in scored}) == len(scored)
    crossing = [
        (a, b)
        for a in rows.unique_mentions(found)
        for b in rows.unique_mentions(found)
        if a.cluster == b.cluster and a.start < b.start < a.end < b.end
    ]
    if not crossing:
        assert len(kept) == len({(mention.start, mention.end) for mention in found})


def test_fields_with_spaces_stay_one_field():
    spaced = parse(FISHERS)._replace(document_id="# two words", speakers=["A da"] * 9)
    found = parse(conll2012.write_conll2012(spaced))
    assert (found.document_id, found.speakers[0]) == ("_#_two_words", "A_da")


@pytest.mark.parametrize("mention", [Mention(6, 8, 0), Mention(0, 10, 0), Mention(0, 1, -1)])
@pytest.mark.parametrize("format", ["conll2012", "conllu"])
def test_mentions_that_no_bracket_can_hold_are_errors(mention: Mention, format: FormatName):
    document = rows.with_mentions(parse(FISHERS), [mention])
    with pytest.raises(ValueError, match="tale/fishers: Mention"):
        FORMATS[format].write(document)


def test_singletons_and_speakers():
    document = parse(begin("(0)", "(1)", "(0)"))
    assert mentions(rows.drop_singletons(document)) == [(0, 1, 0), (2, 3, 0)]
    assert rows.drop_singletons(parse(begin(""))) == parse(begin(""))
    assert set(rows.blank_speakers(parse(FISHERS)).speakers) == {""}


# Against slow references.


def is_fine(heads: list[int], offsets: list[int]) -> bool:
    for start, end in pairwise(offsets):
        for token in range(start, end):
            at = token
            for _ in range(end - start + 1):
                if at == -1:
                    break
                if not start <= heads[at] < end and heads[at] != -1:
                    return False
                at = heads[at]
            if at != -1:
                return False
    return True


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_heads_against_following_each(lengths: list[int], data: st.DataObject):
    offsets = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
    heads = []
    for start, end in pairwise(offsets):
        heads += [data.draw(st.integers(max(start - 1, -1), end - 1)) for _ in range(start, end)]
    if is_fine(heads, offsets):
        rows.check_heads(heads, offsets)
    else:
        with pytest.raises(MalformedDocument):
            rows.check_heads(heads, offsets)


def nested(bits: list[str]) -> list[tuple[str, int, int]]:
    """Read a tree by counting brackets from each opening one on."""
    text, found = [], []
    for token, bit in enumerate(bits):
        text += [(token, piece) for piece in re.findall(r"\([^(*]+|\*|\)", bit)]
    for number, (token, piece) in enumerate(text):
        if piece.startswith("("):
            depth = 0
            for last, other in text[number:]:
                depth += other.startswith("(") - (other == ")")
                if depth == 0:
                    found.append((piece[1:], token, last + 1))
                    break
    return found


@given(document=documents("conll2012"))
@settings(max_examples=40, deadline=None)
def test_parses_against_counting_brackets(document: AnnotatedDocument):
    lines = [x.split("\t") for x in conll2012.write_conll2012(document).split("\n") if "\t" in x]
    bits = [line[5] for line in lines]
    trees = rows.parse_bits(bits, document.sentence_offsets)
    assert list(zip(trees.labels, trees.starts, trees.ends, strict=True)) == nested(bits)
    assert trees.parents == document.constituent_parents
