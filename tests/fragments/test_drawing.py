"""Drawings: each node once, no two on top of each other, whatever the shape."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from itertools import pairwise

import numpy as np
import pytest

from corpusmill.fragments.drawing import Mark, draw, parents
from corpusmill.fragments.fragment import Fragment

BOX = re.compile(
    r'<rect x="([-.\d]+)" y="([\d]+)" width="([.\d]+)" height="20"/><text[^>]*>([^<]*)</text>'
)


def boxes(svg: str) -> list[tuple[float, float, float, str]]:
    return [
        (float(x), float(y), float(width), unescape(text)) for x, y, width, text in BOX.findall(svg)
    ]


def random_fragment(rng: np.random.Generator, nodes: int) -> Fragment:
    """Give a random tree by cutting a preorder of arities where it closes."""
    arities: list[int] = []
    open_places = 1
    while open_places:
        most = min(4, nodes - len(arities) - open_places)
        arities.append(int(rng.integers(0, most + 1)) if most > 0 else 0)
        open_places += arities[-1] - 1
    labels = ["W" * int(rng.integers(1, 9)) + str(i) for i in range(len(arities))]
    return Fragment(labels, arities, [bool(a) or i % 3 > 0 for i, a in enumerate(arities)])


@pytest.mark.parametrize("seed", range(30))
def test_nodes_are_drawn_once_in_order_and_apart(seed: int) -> None:
    fragment = random_fragment(np.random.default_rng(seed), 60)
    drawing = draw(fragment)
    found = boxes(drawing.svg)
    assert [text for *_, text in found] == fragment.labels
    middles = [x + width / 2 for x, _, width, _ in found]
    above = parents(fragment.arities)
    levels = sorted({y for _, y, *_ in found})
    assert all(below - y >= 40 for y, below in pairwise(levels))
    by_level: dict[float, list[tuple[float, float]]] = {}
    for node, (x, y, width, _) in enumerate(found):
        assert x >= 0
        assert x + width <= drawing.width
        assert y + 20 <= drawing.height
        children = [child for child, parent in enumerate(above) if parent == node]
        if children:
            ends = middles[children[0]], middles[children[-1]]
            assert middles[node] == pytest.approx(sum(ends) / 2, abs=0.2)
            assert {levels.index(found[child][1]) for child in children} == {levels.index(y) + 1}
        by_level.setdefault(y, []).append((x, width))
    for level in by_level.values():  # preorder is left to right on each level
        assert all(x + width < right for (x, width), (right, _) in pairwise(level))


def test_a_chain_of_2000_levels_is_drawn() -> None:
    labels = [f"level {i}" for i in range(2000)]
    drawing = draw(Fragment(labels, [1] * 1999 + [0], [True] * 2000))
    assert Counter(text for *_, text in boxes(drawing.svg)) == Counter(labels)
    assert drawing.height > 2000 * 20
    assert drawing.width < 200


def test_a_wide_tree_is_as_wide_as_its_words() -> None:
    labels = ["top", *(f"word{i}" for i in range(1000))]
    drawing = draw(Fragment(labels, [1000] + [0] * 1000, [True] * 1001))
    assert len(boxes(drawing.svg)) == 1001
    assert drawing.height < 200


def test_words_and_nodes_without_their_children_look_different() -> None:
    svg = draw(Fragment(["NP", "word", "NN", "X"], [2, 0, 1, 0], [True, True, True, False])).svg
    kinds = re.findall(r'<g class="([^"]*)"', svg)
    assert kinds == ["node", "node word", "node", "node left-out"]


def test_one_node_has_no_edge() -> None:
    assert "<path" not in draw(Fragment(["NN"], [0], [False])).svg


def test_labels_are_escaped_and_what_is_not_seen_is_written() -> None:
    labels = ['<img src=x onerror="a">', "&amp;", "", "a\tb", "\u202ex", "می\u200cروم"]
    svg = draw(Fragment(labels, [5, 0, 0, 0, 0, 0], [True] * 6)).svg
    assert "<img" not in svg
    assert [text for *_, text in boxes(svg)] == [
        labels[0], "&amp;", "∅", "a\\tb", "\\u202ex", labels[5],
    ]  # fmt: skip


def test_a_long_label_is_cut_and_whole_in_the_tip() -> None:
    label = "<" * 50
    svg = draw(Fragment([label], [0], [True])).svg
    assert f"<title>{'&lt;' * 50}</title>" in svg
    assert boxes(svg)[0][3] == "<" * 31 + "…"


def test_marks_reach_their_node_and_edge() -> None:
    marks = {1: Mark("for-0", "edge-0", "--c0:0.5", "+1 <b>")}
    svg = draw(Fragment(["A", "b"], [1, 0], [True, True]), marks).svg
    assert '<g class="node word for-0" style="--c0:0.5"><title>+1 &lt;b&gt;</title>' in svg
    assert '<path class="edge-0"' in svg


@pytest.mark.parametrize("arities", [[], [1], [0, 0], [2, 0], [-1]])
def test_what_is_not_one_tree_is_refused(arities: list[int]) -> None:
    with pytest.raises(ValueError, match=r"tree"):
        draw(Fragment(["x"] * len(arities), arities, [True] * len(arities)))
