"""Pages of fragments: what is there is shown once, told apart and escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pandas as pd
import pytest

from corpusmill.fragments.fragment import Fragment
from corpusmill.fragments.pages import (
    MOST_DRAWN,
    Contribution,
    Explanation,
    explanation_page,
    fragments_page,
)
from corpusmill.fragments.tables import best_fragments

HOW = Fragment(["WHADVP", "WRB", "How"], [1, 1, 0], [True, True, True])
ABOVE = Fragment(["SQ", "VP", "."], [2, 0, 0], [True, False, False])
EVIL = Fragment(['<script>alert("x")</script>'], [0], [True])
DEEP = Fragment([f"deep{i}" for i in range(2000)], [1] * 1999 + [0], [True] * 2000)
VOID = {"meta", "input", "br"}


class Elements(HTMLParser):
    """The texts of a page by element, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def of(self, tag: str) -> list[str]:
        return [text for found, text in self.texts if found == tag]


def best(fragments: list[Fragment], weights: list[list[float]], classes: list[str]) -> pd.DataFrame:
    return best_fragments(
        classes, np.array(weights), np.arange(len(fragments)) + 1, lambda i: fragments[i]
    )


def explanation(**changes: Any) -> Explanation:
    trees = Explanation(
        example_id="q<1>",
        predicted="DESC",
        target="NUM",
        labels=["SQ", "WHADVP", "WRB", "How", ".", "X", "y"],
        arities=[2, 1, 1, 0, 0, 1, 0],
        tree_offsets=[0, 5, 5, 7],
        scores={"DESC": 0.75, "NUM": -0.5},
        biases={"DESC": -0.25, "NUM": 0.0},
        contributions={
            "DESC": [
                Contribution(HOW, 2.0, 0.5, [[1, 2, 3]]),
                Contribution(Fragment(["X", "y"], [1, 0], [True, True]), -0.5, 0.5, [[5, 6]]),
            ],
            "NUM": [Contribution(EVIL, -1.0, 0.5)],
        },
    )
    return trees._replace(**changes)


def test_fragments_are_drawn_by_class_in_order() -> None:
    page = fragments_page(
        best([HOW, ABOVE], [[0.5, -1.5], [2.0, 0.0]], ["DESC", "NUM"]), examples=1234
    )
    elements = Elements(page)
    assert elements.of("h2") == ["DESC", "NUM"]
    texts = ["(SQ (VP) (.))", "(WHADVP (WRB (How)))", "(WHADVP (WRB (How)))"]
    assert elements.of("code") == texts
    drawn = ["SQ", "VP", ".", *HOW.labels, *HOW.labels]
    assert elements.of("text")[3:] == drawn  # behind the legend
    assert "−1.50" in page
    assert "in 2 of 1,234" in page
    assert page.count('class="bar against"') == 1
    assert page.count('class="bar for"') == 2
    assert [f'href="#s{i}"' in page and f'id="s{i}"' in page for i in range(2)] == [True, True]


def test_no_fragments_is_a_page_too() -> None:
    page = fragments_page(best([], np.zeros((2, 0)).tolist(), ["A", "B"]), examples=0)
    assert "0 fragments" in page
    assert "article" not in Elements(page).tags


def test_names_and_labels_from_data_are_escaped() -> None:
    name = "<i>&\"'</i>"
    page = fragments_page(best([EVIL], [[1.0]], [name]), examples=1, title="<i>")
    elements = Elements(page)
    assert "".join(elements.of("h2")) == name
    assert "<script" not in page
    assert "<i>" not in page


def test_a_page_asks_for_nothing_from_elsewhere() -> None:
    pages = fragments_page(best([HOW], [[1.0]], ["A"]), 1), explanation_page([explanation()])
    for page in pages:
        assert not re.search(r"https?:|src=|url\(|@import|<script|<link|\son\w+=", page)


def test_a_deep_fragment_is_drawn_in_a_box_that_scrolls() -> None:
    elements = Elements(fragments_page(best([DEEP], [[1.0]], ["A"]), examples=1))
    assert elements.of("text")[3:] == DEEP.labels


def test_a_tree_too_large_to_draw_is_counted() -> None:
    nodes = MOST_DRAWN + 1
    large = Fragment(["x"] * nodes, [nodes - 1] + [0] * (nodes - 1), [True] * nodes)
    page = fragments_page(best([large], [[1.0]], ["A"]), examples=1)
    assert f"{nodes:,} nodes: too many to draw" in page


def test_a_prediction_shows_scores_and_contributions_that_add_up() -> None:
    page = explanation_page([explanation()])
    elements = Elements(page)
    assert elements.of("h2") == ["q<1> → DESC ✗, true: NUM"]
    assert elements.of("code") == [
        "(WHADVP (WRB (How)))",
        "(X (y))",
        '(<script>alert\\x28"x"\\x29</script>)',
    ]
    numbers = [text for text in elements.of("td") if re.fullmatch(r"[+−][.\d]+|0", text)]
    # the scores, best first; then for each class its fragments, everything else, bias and score
    assert numbers[:2] == ["+0.750", "−0.500"]
    assert numbers[2:7] == ["+1.00", "−0.250", "+0.250", "−0.250", "+0.750"]
    assert numbers[7:] == ["−0.500", "0", "0", "−0.500"]
    assert "+2.00 × 0.5" in elements.of("td")


def test_each_node_of_a_prediction_is_drawn_once_with_its_marks() -> None:
    item = explanation(contributions={"DESC": explanation().contributions["DESC"]})
    page = explanation_page([item])
    trees = page[: page.index("<h3>")]
    assert re.findall(r"<text[^>]*>([^<]*)</text>", trees) == item.labels
    nodes = re.findall(r'<g class="node ?([^"]*)"', trees)
    assert nodes == [
        "", "for-1 for-0", "for-1 for-0", "word for-1 for-0", "word",
        "against-2 against-0", "word against-2 against-0",
    ]  # fmt: skip
    assert re.findall(r'<path class="([^"]*)"', trees) == ["", "edge-1", "edge-1", "", "edge-2"]
    assert page.count(" checked") == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": [], "arities": [], "tree_offsets": [0], "contributions": {}},
        {"labels": [], "arities": [], "tree_offsets": [0, 0], "contributions": {"DESC": []}},
        {"target": None, "scores": {}, "contributions": {}},
        {"contributions": {"DESC": [Contribution(HOW, 0.0, 0.0, [[1, 2, 3]])]}},
        {"contributions": {"DESC": [Contribution(HOW, float("nan"), 1.0, [[1, 2, 3]])]}},
    ],
)
def test_a_prediction_with_little_to_say_is_a_page_too(changes: dict[str, Any]) -> None:
    assert "q&lt;1&gt;" in explanation_page([explanation(**changes)])


def test_no_predictions_is_a_page_too() -> None:
    assert "<nav>" in explanation_page([])
