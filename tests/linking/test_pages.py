"""The page of errors: all that is there is shown, told apart and escaped."""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

import numpy as np
import pytest

from corpusmill.evaluation.linking import NIL
from corpusmill.linking.errors import EXACT, KINDS, NAMES, NOTHING, PLACE_TAKEN, WRONG_CANDIDATE
from corpusmill.linking.examples import Example, Pair, Side, choose_examples
from corpusmill.linking.pages import errors_page
from tests.linking.scored import FAMILY, gold_batch, made_up_model

EVIL = '<script>alert("x")</script>&<b>'
COUNTS = np.arange(12.0) * 1000


class Page(HTMLParser):
    """The tags and texts of a page whose elements are all closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.append((self.open[-1], data))

    def marks(self) -> list[tuple[str, str]]:
        """The classes and texts of the marks behind the legend."""
        classes = [attrs["class"] for tag, attrs in self.tags if tag == "mark"]
        texts = [text for tag, text in self.texts if tag == "mark"]
        return list(zip(classes, texts, strict=True))[5:]


def example(text: str, pairs: list[Pair], kind: int = EXACT, focus: int = 0, **more) -> Example:
    made = Example(kind, 0, "an id", text, False, False, pairs, focus)
    return made._replace(**more)


def gold(start: int, end: int, entity: str | None = "Gold_(town)") -> Side:
    return Side(start, end, entity, None, None)


def found(start: int, end: int, entity: str = "Found") -> Side:
    return Side(start, end, entity, -1.25, 0.5, None, 0.25)


def test_counts_shares_and_examples_of_every_kind_are_there():
    texts = [example("Rome", [Pair(n, gold(0, 4), found(0, 4))], n) for n in range(12)]
    page = errors_page("y2013", COUNTS, texts)
    read = Page(page)
    ids = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    assert ids == ["kinds", *NAMES[2:], *NAMES[:2]]
    targets = {attrs["href"] for tag, attrs in read.tags if tag == "a"}
    assert targets == {f"#{name}" for name in ids}
    assert all(escape(kind.title) in page and escape(kind.meaning) in page for kind in KINDS)
    assert "36,000 mentions of entities in gold, 36,000 predicted, 1,000 right" in page
    assert page.count('class="bar ') == 11


def test_gold_and_predicted_mentions_are_marked_where_they_are():
    pairs = [
        Pair(EXACT, gold(0, 8), found(0, 8)),
        Pair(PLACE_TAKEN, gold(4, 12), None),
        Pair(NIL, gold(13, 15, None), None),
    ]
    page = errors_page("x", COUNTS, [example("New York City is big", pairs, PLACE_TAKEN, 1)])
    assert Page(page).marks() == [
        ("g-right p-right", "New "),
        ("focus g-missed g-right p-right", "York"),
        ("focus g-missed", " Cit"),
        ("g-nil", " i"),
    ]


def test_what_is_told_of_a_mention():
    pairs = [Pair(WRONG_CANDIDATE, gold(0, 4)._replace(score=-0.5, probability=0.1), found(0, 7))]
    texts = [text for _, text in Page(errors_page("x", COUNTS, [example("Rome is", pairs)])).texts]
    assert texts[texts.index("runner-up") + 1 :] == [
        "≠", "wrong", "Rome", " / ", "Rome is", "Gold (town)", " ", "−0.50, 0.10", "Found", "−1.25",
        "0.50", "Nil ", "0.25",
    ]  # fmt: skip


def test_texts_titles_and_names_are_escaped():
    pairs = [Pair(EXACT, gold(0, 5, EVIL), found(2, 30, EVIL)._replace(second=EVIL))]
    page = errors_page(EVIL, COUNTS, [example(EVIL, pairs, text_id=EVIL)])
    read = Page(page)
    assert "<script" not in page
    assert "b" not in {tag for tag, _ in read.tags}
    assert [text for tag, text in read.texts if tag == "h1"] == [f"Errors: {EVIL}"]
    assert "".join(text for _, text in read.marks()) == EVIL[:30]


def test_a_page_asks_for_nothing_from_elsewhere():
    page = errors_page("x", COUNTS, choose_examples(gold_batch(), made_up_model(), 5))
    assert not re.search(r"https?:|src=|url\(|@import|<script|<link|\son\w+=", page)


def test_right_to_left_texts_and_emoji_keep_their_characters():
    text = f"\u202e\u05e8\u05d5\u05de\u05d0 {FAMILY} Rome"
    start = text.index("Rome")
    page = errors_page("x", COUNTS, [example(text, [Pair(EXACT, None, found(start, start + 4))])])
    read = Page(page)
    assert ("p", text[:start]) in read.texts
    assert ("p", {"class": "text", "dir": "auto"}) in read.tags


@pytest.mark.parametrize(
    "examples",
    [[], [example("", [], NOTHING)], [example("cut", [Pair(NOTHING, None, found(3, 3))], NOTHING)]],
)
def test_little_to_show_is_a_page_too(examples):
    read = Page(errors_page("x", np.zeros(12), examples))
    assert len([tag for tag, _ in read.tags if tag == "section"]) == len(examples)
    assert read.marks() == []


def test_a_cut_text_says_so():
    page = errors_page("x", COUNTS, [example("Rome", [], before=True, after=True)])
    assert ">… Rome …<" in page
