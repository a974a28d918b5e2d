"""Trees and fragments as inline SVG. No Spark, no recursion: depth is bounded by memory alone.

The layout is that of Reingold and Tilford (1981, Tidier drawings of trees) for labels of
different widths: siblings' subtrees stand as near to each other as their outlines allow, a parent
above the middle of its first and last child. An outline is kept with its deepest level first, so
that two of them are joined in the time of the lower one, and a whole tree in O(nodes).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from html import escape
from math import ceil
from typing import NamedTuple
from unicodedata import category, east_asian_width

from corpusmill.fragments.fragment import Fragment

FONT_SIZE = 13
MARGIN = 8
_BOX = 20
_EDGE, _STEEPNESS, _LONGEST_EDGE = 20.0, 0.08, 140.0
"""Least height of an edge, share of its width that it is high at least, and most height."""
_GAP = 10.0
_PADDING = 5.0
_LONGEST_LABEL = 32
_JOINERS = "\u200c\u200d"
_NARROW, _BROAD = frozenset("fijlrtI.,;:'`!|()[]{} -/\\"), frozenset("mwMW@%&")

STYLE = f"""
svg.tree {{ display: block; font: {FONT_SIZE}px sans-serif; }}
svg.tree text {{ text-anchor: middle; fill: #222; white-space: pre; unicode-bidi: isolate; }}
svg.tree rect {{ fill: none; rx: 4px; }}
svg.tree path {{ stroke: #999; fill: none; }}
svg.tree .word text {{ font-style: italic; fill: #00591e; }}
svg.tree .left-out rect {{ fill: #f3f3f3; stroke: #888; stroke-dasharray: 3 2; }}
svg.tree .left-out text {{ fill: #555; }}
"""
"""CSS of all drawings: words are italic, nodes whose children are left out in dashed boxes."""


class Mark(NamedTuple):
    """What a node looks like beyond its kind: CSS classes, style and a text to point at."""

    node: str = ""
    edge: str = ""
    style: str = ""
    tip: str = ""


class Drawing(NamedTuple):
    """An SVG element and its size in pixels."""

    svg: str
    width: int
    height: int


def draw(fragment: Fragment, marks: Mapping[int, Mark] | None = None) -> Drawing:
    """Draw a fragment, or a tree, which is a fragment that leaves nothing out.

    Parameters
    ----------
    fragment : Fragment
        One tree with at least one node.
    marks : mapping of int to Mark, optional
        By node; the edge is the one to the node's parent. All but ``tip`` goes into the SVG as
        it is.

    Returns
    -------
    Drawing
        Labels are escaped; one longer than 32 characters is cut, and whole in the tip.

    Raises
    ------
    ValueError
        If the arities are not those of one tree.
    """
    above = parents(fragment.arities)
    labels = [visible(label) for label in fragment.labels]
    shown = [_cut(label) for label in labels]
    widths = [_width(label) + 2 * _PADDING for label in shown]
    x, width = _columns(fragment.arities, above, widths)
    tops = _tops(x, above)
    parts = []
    for node, parent in enumerate(above):
        mark = (marks or {}).get(node, Mark())
        cut = labels[node] if labels[node] != shown[node] else ""
        tip = escape("; ".join(filter(None, [cut, mark.tip])))
        classes = " ".join(filter(None, ["node", _kind(fragment, node), mark.node]))
        parts.append(
            f'<g class="{classes}" style="{mark.style}">'
            + (f"<title>{tip}</title>" if tip else "")
            + (_edge(x, tops, node, parent, mark.edge) if parent >= 0 else "")
            + _label(shown[node], x[node], tops[node], widths[node])
            + "</g>"
        )
    height = max(tops) + _BOX + MARGIN
    svg = (
        f'<svg class="tree" role="img" aria-label="tree of {len(above)} nodes" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )
    return Drawing(svg, width, height)


def parents(arities: Sequence[int]) -> list[int]:
    """Give each node's parent, -1 for the root; ValueError if this is not one tree."""
    found: list[int] = []
    waiting = [-1]  # a node once for every child that is still to come
    for node, arity in enumerate(arities):
        if not waiting or arity < 0:
            raise ValueError(f"node {node} does not belong to the tree")
        found.append(waiting.pop())
        waiting += [node] * int(arity)
    if waiting:
        raise ValueError(f"{len(waiting)} nodes of the tree are missing")
    return found


def visible(label: str) -> str:
    """Show what would not be seen or would reorder its surroundings, as Python writes it."""
    shown = (c if c.isprintable() or c in _JOINERS else repr(c)[1:-1] for c in label)
    return "".join(shown) or "∅"


def _kind(fragment: Fragment, node: int) -> str:
    if not fragment.expanded[node]:
        return "left-out"
    return "" if fragment.arities[node] else "word"


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST_LABEL else f"{label[: _LONGEST_LABEL - 1]}…"


def _width(label: str) -> float:
    """Estimate a text's width; the browser's font is not known, so rather too much."""
    return FONT_SIZE * sum(map(_character_width, label))


def _character_width(character: str) -> float:
    if category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if east_asian_width(character) in "WF":
        return 1.05
    if character in _NARROW:
        return 0.4
    if character in _BROAD:
        return 0.98
    return 0.72 if character.isupper() else 0.63


def _edge(x: list[float], tops: list[int], node: int, parent: int, classes: str) -> str:
    start = f"M{x[parent]:.1f} {tops[parent] + _BOX}"
    return f'<path class="{classes}" d="{start}L{x[node]:.1f} {tops[node]}"/>'


def _label(text: str, x: float, top: int, width: float) -> str:
    return (
        f'<rect x="{x - width / 2:.1f}" y="{top}" width="{width:.1f}" height="{_BOX}"/>'
        f'<text x="{x:.1f}" y="{top + 0.72 * _BOX:.1f}">{escape(text)}</text>'
    )


def _tops(x: list[float], above: list[int]) -> list[int]:
    """Give each node's upper end; levels are the further apart, the wider the edges between."""
    depths = [0] * len(above)
    widest: dict[int, float] = defaultdict(float)
    for node, parent in enumerate(above[1:], start=1):
        depths[node] = depths[parent] + 1
        widest[depths[node]] = max(widest[depths[node]], abs(x[node] - x[parent]))
    tops = [MARGIN]
    for depth in range(1, max(depths) + 1):
        edge = min(max(_EDGE, _STEEPNESS * widest[depth]), _LONGEST_EDGE)
        tops.append(tops[-1] + _BOX + round(edge))
    return [tops[depth] for depth in depths]


class _Side:
    """One side of an outline by level, deepest first, moved by ``shift``."""

    def __init__(self) -> None:
        self.levels: list[float] = []
        self.shift = 0.0

    def top(self, levels: int) -> list[float]:
        return [value + self.shift for value in self.levels[len(self.levels) - levels :]]

    def replace_top(self, values: list[float]) -> None:
        self.levels[len(self.levels) - len(values) :] = [value - self.shift for value in values]


class _Outline:
    """The left and right ends of a subtree's levels, from its root's middle."""

    def __init__(self, root: int) -> None:
        self.root = root
        self.left, self.right = _Side(), _Side()

    def move(self, by: float) -> None:
        self.left.shift += by
        self.right.shift += by

    def put_root(self, width: float) -> None:
        self.left.levels.append(-width / 2 - self.left.shift)
        self.right.levels.append(width / 2 - self.right.shift)

    def add_right(self, other: _Outline) -> float:
        """Put another subtree as near as it goes to the right; return how far it was moved."""
        common = min(len(self.left.levels), len(other.left.levels))
        ends = zip(self.right.top(common), other.left.top(common), strict=True)
        move = max(end - begin for end, begin in ends) + _GAP
        other.move(move)
        if len(self.left.levels) >= len(other.left.levels):
            self.right.replace_top(other.right.top(common))
        else:
            other.left.replace_top(self.left.top(common))
            self.left, self.right = other.left, other.right
        return move


def _columns(
    arities: Sequence[int], above: list[int], widths: list[float]
) -> tuple[list[float], int]:
    """Give each node's middle, and the width of the drawing."""
    from_parent = [0.0] * len(above)
    waiting: list[_Outline] = []
    # Backwards, a node's children lie on the stack, the first on top, when it is reached.
    for node in range(len(above) - 1, -1, -1):
        outline = _Outline(node)
        if arities[node]:
            children = [waiting.pop() for _ in range(arities[node])]
            outline.left, outline.right = children[0].left, children[0].right
            for child in children[1:]:
                from_parent[child.root] = outline.add_right(child)
            middle = from_parent[children[-1].root] / 2
            for child in children:
                from_parent[child.root] -= middle
            outline.move(-middle)
        outline.put_root(widths[node])
        waiting.append(outline)
    whole = waiting[0]
    x = [MARGIN - min(whole.left.top(len(whole.left.levels)))] * len(above)
    for node, parent in enumerate(above[1:], start=1):
        x[node] = x[parent] + from_parent[node]
    return x, ceil(x[0] + max(whole.right.top(len(whole.right.levels))) + MARGIN)
