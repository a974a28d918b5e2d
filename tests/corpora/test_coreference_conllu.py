"""CoNLL-U with coreference: what it says and what is refused."""

from __future__ import annotations

import pytest

from corpusmill.corpora import annotated_rows as rows
from corpusmill.corpora import coreference_conllu as conllu
from tests.corpora.coreference_documents import faults, mentions, parse


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
