"""HTML pages of fragments and of the decisions they make, for reviewers. No Spark, no script.

Whatever comes from data is escaped. For and against a class are told apart by sign, by the side
and pattern of a bar, by solid and dashed boxes, and by colour last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from math import fsum, isnan
from typing import Any, NamedTuple

import pandas as pd

from corpusmill.fragments import drawing
from corpusmill.fragments.drawing import Fragment, Mark
from corpusmill.pages import page

MOST_DRAWN = 4000
"""Nodes of a tree; a larger one is only counted."""
_WIDE_CARD = 340

_STYLE = (
    drawing.STYLE
    + """
body { max-width: 100em; }
code { font-size: 12px; overflow-wrap: anywhere; }
.scroll { overflow: auto; max-height: 26em; padding-bottom: 2px; }
.muted { color: #666; }
.bar { display: inline-block; height: 0.8em; border: 1px solid; box-sizing: border-box; }
.bar.for { background: #9ec5fe; border-color: #2563b8; }
.bar.against { border-color: #b45309; border-style: dashed;
  background: repeating-linear-gradient(45deg, #ffd8a8 0 3px, #fff 3px 6px); }
.legend svg.tree { display: inline-block; vertical-align: middle; margin: 0 0.2em; }
"""
)

_FRAGMENTS_STYLE = """
.columns { display: grid; grid-template-columns: minmax(8em, max-content) minmax(0, 1fr);
  gap: 2em; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto; }
nav ol { list-style: none; padding: 0; margin: 1.6em 0; max-width: 16em; }
nav a { display: block; padding: 0.1em 0.3em; overflow-wrap: anywhere; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(19em, 1fr)); gap: 0.8em; }
.card { border: 1px solid #ddd; border-radius: 6px; padding: 0.5em 0.8em; min-width: 0; }
.card.wide { grid-column: 1 / -1; }
.card p { margin: 0 0 0.3em; }
.card code { display: block; max-height: 6em; overflow: auto; }
.card svg.tree { margin: 0.3em auto 0; }
.rank { font-weight: bold; margin-right: 0.5em; }
.meter { display: block; margin: 0.2em 0; }
@media (max-width: 50em) { .columns { display: block; } nav { position: static; } }
"""

_LEGEND = Fragment(
    ["node", "word", "children left out"], [2, 0, 0], [True, True, False]
)


def fragments_page(best: pd.DataFrame, examples: int, title: str = "Fragments") -> str:
    """Lay out the best fragments of each class, drawn as trees.

    Parameters
    ----------
    best : pandas.DataFrame
        As of `tables.best_fragments`: ``class``, ``rank``, ``weight``, ``document_frequency``,
        ``fragment`` (bracketed), ``labels``, ``arities`` and ``expanded``; in order.
    examples : int
        Training examples, of which ``document_frequency`` counts those with the fragment.
    title : str

    Returns
    -------
    str
        A page that needs nothing else.
    """
    groups = list(best.groupby("class", sort=False))
    contents = "".join(
        f'<li><a href="#class-{number}">{escape(str(name))} '
        f'<span class="muted">{len(rows):,}</span></a></li>'
        for number, (name, rows) in enumerate(groups)
    )
    sections = "".join(
        f'<section id="class-{number}"><h2>{escape(str(name))}</h2>'
        f'<div class="cards">{_cards(rows, examples)}</div></section>'
        for number, (name, rows) in enumerate(groups)
    )
    body = (
        f"<h1>{escape(title)}</h1><p>The {len(best):,} fragments of greatest weight, by class, "
        f"of {examples:,} training examples. A positive weight speaks for the class "
        f"({_bar(1.0, 2.0)}), a negative one against it ({_bar(-1.0, 2.0)}). </p>{_legend()}"
        f'<div class="columns"><nav><ol>{contents}</ol></nav><main>{sections}</main></div>'
    )
    return page(title, body, _STYLE + _FRAGMENTS_STYLE)


def _cards(rows: pd.DataFrame, examples: int) -> str:
    most = rows["weight"].abs().max()
    return "".join(_card(row, most, examples) for row in rows.to_dict("records"))


def _card(row: dict[Any, Any], most: float, examples: int) -> str:
    picture, width = _picture(Fragment(row["labels"], row["arities"], row["expanded"]))
    kind = "card wide" if width > _WIDE_CARD else "card"
    return (
        f'<article class="{kind}"><p><span class="rank">{row["rank"]}</span>'
        f"{number(row['weight'])} "
        f'<span class="muted">in {row["document_frequency"]:,} of {examples:,}</span></p>'
        f'<span class="meter">{_bar(row["weight"], most)}</span>'
        f"<code>{escape(row['fragment'])}</code>{picture}</article>"
    )
