"""The page of resolved documents: all that is there is shown, told apart and escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from corpusmill.coreference import pages
from corpusmill.coreference.analysis import Example
from corpusmill.coreference.pages import Document, ErrorTable, coreference_page
from corpusmill.evaluation.coreference import Mentions, coreference_metrics, count_coreference

EVIL = '<script>alert("x")</script>&<b>'
NONE = Mentions(np.zeros(1, np.int64), *(np.zeros(0, np.int32),) * 3)
METRICS = coreference_metrics(count_coreference(NONE, NONE))
TABLES = {
    "recall": ErrorTable(np.arange(9.0).reshape(3, 3), np.full((3, 3), 10.0)),
    "precision": ErrorTable(np.zeros((3, 3)), np.zeros((3, 3))),
}


class Page(HTMLParser):
    """The tags and texts of a page whose elements are all closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[tuple[str, str]] = []
        self.sides: dict[str, list[str]] = {"gold": [], "predicted": []}
        self.side: str | None = None
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
        if tag == "p":
            self.side = dict(attrs).get("data-side")
            if self.side:
                self.sides[self.side].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))
            if self.side and "p" in self.open:
                self.sides[self.side][-1] += data


def lay_out(*documents: Document, examples=()) -> str:
    return coreference_page("x", METRICS, TABLES, examples, documents)


def document(text: str, gold=(), predicted=(), **more) -> Document:
    words = text.split()
    return Document("one", words, [0, len(words)], [], gold, predicted)._replace(**more)


def sides(*documents: Document) -> dict[str, list[str]]:
    return Page(lay_out(*documents)).sides


def test_mentions_are_bracketed_and_numbered_by_cluster():
    gold = [(3, 4, 70), (0, 1, 8), (0, 4, 9), (5, 6, 8)]
    found = sides(document("Ada 's old engine and she", gold, gold))
    assert found == {side: ["[[Ada]2 's old [engine]3]1 and [she]2"] for side in found}


def test_clusters_that_share_most_have_one_number_and_errors_a_sign():
    gold = [(0, 1, 0), (2, 3, 0), (4, 5, 0), (6, 7, 1), (7, 8, 1)]
    predicted = [(0, 1, 5), (2, 3, 5), (4, 5, 4), (6, 7, 4), (7, 8, 4), (1, 2, 3)]
    found = sides(document("a b c d e f g h", gold, predicted))
    assert found["gold"] == ["[a]1 b [c]1 d [e]1≠ f [g]2 [h]2"]
    assert found["predicted"] == ["[a]1 [b]3+ [c]1 d [e]2≠ f [g]2 [h]2"]
    assert sides(document("a b", [(0, 2, 0)]))["gold"] == ["[a b]1−"]


def test_brackets_may_cross_and_leave_sentences():
    crossing = [(0, 3, 0), (2, 5, 1)]
    shown = document("a b c d e", crossing, crossing, sentence_offsets=[0, 4, 5])
    assert sides(shown)["gold"] == ["[a b [c]1 d", "e]2"]


def test_a_repeated_mention_is_shown_once():
    found = sides(document("a b", [(0, 1, 0)], [(0, 1, 3), (0, 1, 4), (1, 2, 4)]))
    assert found["predicted"] == ["[a]1 [b]2+"]


def test_a_word_has_the_look_of_the_shortest_mention_around_it():
    page = lay_out(document("a b c", [(0, 3, 0), (1, 2, 1), (2, 3, 1)]))
    article = page[page.index("<article>") :]
    marks = re.findall(r'<mark class="([^"]*)">([^<]*)</mark>', article)
    assert marks == [("one", "a"), ("m h2", "b"), ("m h2", "c")]


def test_speakers_are_named_where_they_change():
    shown = document("a b c d", speakers=["X", "X", "", "Y"], sentence_offsets=[0, 1, 2, 3, 4])
    texts = [text for tag, text in Page(lay_out(shown)).texts if tag == "p"]
    assert [text for text in texts if text.endswith(":")] == ["X:", "(no speaker):", "Y:"]


def test_a_long_document_is_cut_and_says_so(monkeypatch):
    monkeypatch.setattr(pages, "WORDS", 3)
    page = lay_out(
        document("a b c d e f", [(1, 5, 0), (4, 5, 1)], sentence_offsets=[0, 2, 5, 6]),
        document("a b c", sentence_offsets=[0, 3]),
    )
    assert Page(page).sides["gold"] == ["a [b", "c]1−", "a b c"]
    assert page.count("Cut: ") == 1
    assert "Cut: the first 3 of 6 words are shown." in page


def test_tables_of_errors_have_sums_and_shares():
    texts = [text for _, text in Page(lay_out()).texts]
    begin = texts.index("recall: errors, of all links")
    assert texts[begin + 1 :][:14] == [
        "anaphor ↓ antecedent →", "name", "common", "pronoun", "all",
        "name", "0 of 10 ", "0 %", "1 of 10 ", "10 %", "2 of 10 ", "20 %", "3 of 30 ", "10 %",
    ]  # fmt: skip
    assert "36 of 90 " in texts
    assert texts.count("0 of 0") == 16


def test_examples_are_shown_in_context_under_their_types():
    example = Example("recall", (2, 0), "d", "Ada Varn", "… then", "she", "left …")
    page = lay_out(examples=[example, example._replace(of="precision"), example])
    assert re.findall("<h3>(.*?)</h3>", page) == [
        "recall: pronoun to name",
        "precision: pronoun to name",
    ]
    assert page.count("<bdi>Ada Varn</bdi>") == 3
    assert "… then <strong>[she]</strong> left …" in page


def test_texts_titles_and_names_are_escaped():
    words = [EVIL, EVIL]
    one = Document(EVIL, words, [0, 2], [EVIL, EVIL], [(0, 1, 0)], [(1, 2, 0)])
    example = Example(EVIL, (0, 0), *[EVIL] * 5)
    page = coreference_page(EVIL, METRICS, {EVIL: TABLES["recall"]}, [example], [one])
    read = Page(page)
    assert "<script" not in page
    assert [text for tag, text in read.texts if tag == "h1"] == [f"Coreference: {EVIL}"]
    assert read.sides["gold"] == [f"[{EVIL}]1− {EVIL}"]


def test_a_page_asks_for_nothing_from_elsewhere():
    page = lay_out(document("a b", [(0, 1, 0)], [(0, 1, 0)]))
    assert not re.search(r"https?:|src=|url\(|@import|<script|<link|\son\w+=", page)


@pytest.mark.parametrize("offsets", [[], [0], [0, 0]])
def test_little_to_show_is_a_page_too(offsets: list[int]):
    found = sides(Document("", [], offsets, [], [], []))
    assert set(found["gold"]) <= {""}
