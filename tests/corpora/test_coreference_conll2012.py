"""CoNLL-2012 columns with coreference: what they say and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from corpusmill.corpora import annotated_rows as rows
from corpusmill.corpora import coreference_conll2012 as conll2012
from corpusmill.corpora.annotated_rows import AnnotatedDocument
from corpusmill.corpora.coreference_formats import (
    CONTROL_CHARACTERS,
    NOT_UTF8,
    parse_pieces,
)
from tests.corpora.coreference_documents import FISHERS, begin, faults, mentions, parse


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
