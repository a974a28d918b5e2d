"""The HTML page of resolved documents and their errors, for reviewers. No Spark, no script.

Whatever comes from data is escaped. Gold stands beside predicted, sentence by sentence. A mention
is in brackets with the number of its cluster and a sign for what is wrong with it, so that nothing
is told by colour alone; brackets may cross.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from corpusmill.coreference.analysis import Example
from corpusmill.coreference.errors import TYPES
from corpusmill.pages import page
from corpusmill.types import Floats

_HUES = 12
_STYLE = (
    """
:root { color-scheme: light dark; --ink: #1c1c1c; --muted: #5a5a5a; --line: #c4c4c4;
  --stripe: #f4f4f4; --fill: 75% 88%; --edge: 75% 24%; --grey: #ececec; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececec; --muted: #a9a9a9; --line: #4a4a4a; --stripe: #202020;
    --fill: 45% 24%; --edge: 75% 80%; --grey: #303030; }
  body { background: #161616; }
  a { color: #8ab4f8; }
}
body { max-width: 90em; color: var(--ink); }
h2 { border-color: var(--line); }
tr:nth-child(even) { background: var(--stripe); }
td { overflow-wrap: anywhere; }
td.number { white-space: nowrap; }
a:focus-visible { outline: 3px solid; outline-offset: 2px; }
.muted { color: var(--muted); }
.tables { display: flex; flex-wrap: wrap; gap: 1em 3em; }
.tables table { width: auto; }
caption { text-align: left; font-weight: bold; padding: 0.4em 0.6em; }
.scroll { overflow-x: auto; }
table.examples td:nth-child(-n + 2) { width: 18%; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.3em 1em; }
dl dd { margin: 0; }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0 0.9em 0.6em;
  margin: 1em 0; }
article h3 { margin: 0.6em 0; overflow-wrap: anywhere; }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 0 2em; padding: 0.2em 0;
  border-top: 1px solid var(--line); }
.pair > p { margin: 0; line-height: 1.8; overflow-wrap: anywhere; min-width: 0; }
.pair.head { font-weight: bold; border: 0; }
.speaker { margin: 0.3em 0 0; }
mark { color: inherit; background: none; border-radius: 3px; padding: 0.08em 0; }
mark, b, sub { --hue: 0; }
mark.m { background: hsl(var(--hue) var(--fill)); }
b.m, sub.m { color: hsl(var(--hue) var(--edge)); font-weight: bold; }
mark.one { background: var(--grey); }
b.one, sub.one { color: var(--muted); }
/* Numbers read from left to right in any text. */
sub { line-height: 0; font-size: 78%; margin-inline: 0.05em; direction: ltr;
  unicode-bidi: isolate; }
@media (max-width: 50em) {
  td, th { padding: 0.25em 0.3em; }
  dl { grid-template-columns: 1fr; gap: 0 1em; } dl dd { margin-bottom: 0.5em; }
  .pair { grid-template-columns: 1fr; padding: 0.4em 0; }
  .pair.head { display: none; }
  .pair > p::before { content: attr(data-side) ": "; font-size: 85%; color: var(--muted); }
  td.number { white-space: normal; overflow-wrap: normal; }
  td .share { display: block; }
}
@media print { mark { print-color-adjust: exact; } }
"""
    # Neighbouring numbers get hues that are far apart.
    + "".join(f".h{n} {{ --hue: {n * 5 % _HUES * 360 // _HUES}; }}\n" for n in range(_HUES))
)
WORDS = 3000
"""So many words of a document are shown."""

_MISSED, _SPURIOUS, _ELSEWHERE = "−", "+", "≠"
_LEGEND = (
    ("", "in brackets with the number of its cluster"),
    (_MISSED, "in gold only: missed"),
    (_SPURIOUS, "predicted only: spurious"),
    (_ELSEWHERE, "on the other side in another cluster"),
)

Span: TypeAlias = tuple[int, int, int]
"""Start, end (exclusive) and cluster of a mention."""

_Numbers: TypeAlias = dict[tuple[int, int], int]
"""The number of the cluster of each mention by start and end."""


class Document(NamedTuple):
    """A document as it is shown.

    Attributes
    ----------
    name : str
    words : sequence of str
    sentence_offsets : sequence of int
        Sentence s is the words ``sentence_offsets[s]:sentence_offsets[s + 1]``.
    speakers : sequence of str
        The speaker of each word, "" for none; or empty.
    gold, predicted : sequence of Span
        Mentions, in any order.
    """

    name: str
    words: Sequence[str]
    sentence_offsets: Sequence[int]
    speakers: Sequence[str]
    gold: Sequence[Span]
    predicted: Sequence[Span]


class ErrorTable(NamedTuple):
    """Errors of recall or precision by types, and the links they are among.

    Attributes
    ----------
    errors, links : Floats, shape (3, 3)
        As of `errors.count_types`.
    """

    errors: Floats
    links: Floats


def coreference_page(
    name: str,
    metrics: Mapping[str, float],
    tables: Mapping[str, ErrorTable],
    examples: Sequence[Example],
    documents: Sequence[Document],
) -> str:
    """Lay out metrics, errors by type with examples, and documents with their clusters.

    Parameters
    ----------
    name : str
        What was resolved.
    metrics : mapping of str to float
        As of `evaluation.coreference.coreference_metrics`.
    tables : mapping of str to ErrorTable
        For "recall" and "precision".
    examples, documents
        In the order to show.

    Returns
    -------
    str
        A page that needs nothing else.
    """
    title = f"Coreference: {name}"
    errors = "".join(_error_table(of, table) for of, table in tables.items())
    body = (
        f"<h1>{escape(title)}</h1>{_metrics(metrics)}"
        '<h2 id="errors">Errors by type</h2><p>A link joins an anaphor to a mention before it. A '
        "link of a gold cluster that the system does not have is an error of recall, a link of the "
        f'system that gold does not have one of precision.</p><div class="tables">{errors}</div>'
        f"{_examples(examples)}<h2>Documents</h2>{_legend()}"
        f"<main>{''.join(map(_document, documents))}</main>"
    )
    return page(title, body, _STYLE)


def _metrics(metrics: Mapping[str, float]) -> str:
    names = [key.removesuffix(".f1") for key in metrics if key.endswith(".f1")]
    rows = "".join(
        f"<tr><td>{escape(name)}</td>"
        + "".join(
            f'<td class="number">{100.0 * metrics[f"{name}.{each}"]:.2f}</td>'
            for each in ("recall", "precision", "f1")
        )
        + "</tr>"
        for name in names
    )
    return (
        f"<p>CoNLL average <strong>{100.0 * metrics['conll_avg']:.2f}</strong></p>"
        '<div class="tables"><table><tr><th>metric</th><th class="number">recall</th>'
        f'<th class="number">precision</th><th class="number">F1</th></tr>{rows}</table></div>'
    )


def _error_table(of: str, table: ErrorTable) -> str:
    errors, links = (np.vstack([each, each.sum(axis=0)]) for each in table)
    rows = "".join(
        f"<tr><th>{anaphor}</th>{''.join(map(_cell, errors[a], links[a]))}"
        f"{_cell(errors[a].sum(), links[a].sum())}</tr>"
        for a, anaphor in enumerate((*TYPES, "all"))
    )
    heads = "".join(f'<th class="number">{each}</th>' for each in (*TYPES, "all"))
    return (
        f'<div class="scroll"><table><caption>{escape(of)}: errors, of all links</caption>'
        f"<tr><th>anaphor ↓ antecedent →</th>{heads}</tr>{rows}</table></div>"
    )


def _cell(errors: float, links: float) -> str:
    share = f' <span class="share muted">{100.0 * errors / links:.0f} %</span>' if links else ""
    return f'<td class="number">{errors:,.0f} of {links:,.0f}{share}</td>'


def _examples(examples: Sequence[Example]) -> str:
    groups: dict[tuple[str, tuple[int, int]], list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.of, example.types].append(example)
    parts = []
    for (of, (anaphor, antecedent)), shown in groups.items():
        rows = "".join(map(_example, shown))
        parts.append(
            f"<h3>{escape(of)}: {TYPES[anaphor]} to {TYPES[antecedent]}</h3>"
            '<table class="examples"><tr><th>document</th><th>antecedent</th><th>anaphor</th></tr>'
            f"{rows}</table>"
        )
    return "".join(parts)


def _example(example: Example) -> str:
    name, antecedent, before, anaphor, after = map(escape, example[2:])
    return (
        f"<tr><td>{name}</td><td><bdi>{antecedent}</bdi></td>"
        f'<td dir="auto">{before} <strong>[{anaphor}]</strong> {after}</td></tr>'
    )


def _legend() -> str:
    look = _look(1, False)
    rows = "".join(
        f"<dt><b{look}>[</b><mark{look}>mention</mark><b{look}>]</b><sub{look}>1{sign}</sub></dt>"
        f"<dd>{meaning}</dd>"
        for sign, meaning in _LEGEND
    )
    return (
        f"<dl>{rows}</dl><p>A predicted cluster has the number and colour of the gold cluster with "
        "which it shares most mentions, or one of its own. Clusters of one mention are grey. A "
        "word has the colour of the shortest mention around it.</p>"
    )


def _document(document: Document) -> str:
    gold, predicted = _numbered(document)
    cut = min(len(document.words), WORDS)
    sides = {
        "gold": _lay_out(document.words[:cut], gold, predicted, _MISSED),
        "predicted": _lay_out(document.words[:cut], predicted, gold, _SPURIOUS),
    }
    rows = [
        part
        for begin, end in pairwise(document.sentence_offsets)
        if begin < cut
        for part in (
            _speaker(document.speakers, begin),
            _sentence(sides, range(begin, min(end, cut))),
        )
    ]
    if cut < len(document.words):
        rows.append(
            f'<p class="muted">Cut: the first {cut:,} of {len(document.words):,} words are '
            "shown.</p>"
        )
    return (
        f"<article><h3>{escape(document.name)}</h3>"
        f'<div class="pair head"><p>gold</p><p>predicted</p></div>{"".join(rows)}</article>'
    )


def _speaker(speakers: Sequence[str], begin: int) -> str:
    """Name the speaker of a sentence that begins here, where it is not who spoke before."""
    if not speakers or speakers[begin] == (speakers[begin - 1] if begin else ""):
        return ""
    return f'<p class="speaker muted">{escape(speakers[begin]) or "(no speaker)"}:</p>'


def _sentence(sides: Mapping[str, _Layout], words: range) -> str:
    texts = "".join(
        f'<p dir="auto" data-side="{label}">{"".join(_runs(side, words))}</p>'
        for label, side in sides.items()
    )
    return f'<div class="pair">{texts}</div>'


def _runs(side: _Layout, words: range) -> Iterator[str]:
    """Mark the words: each run between brackets by what is around it."""
    bounds = [
        place
        for place in words
        if place == words.start
        or place in side.opens
        or place - 1 in side.closes
        or side.looks[place] != side.looks[place - 1]
    ]
    for begin, end in pairwise([*bounds, words.stop]):
        text = escape(" ".join(side.words[begin:end]))
        look = side.looks[begin]
        yield side.opens.get(begin, "")
        yield f"<mark{look}>{text}</mark>" if look else text
        yield side.closes.get(end - 1, "") + ("" if end == words.stop else " ")


class _Layout(NamedTuple):
    """One side of a document: brackets before and after words, and the class of each word."""

    words: Sequence[str]
    opens: Mapping[int, str]
    closes: Mapping[int, str]
    looks: Sequence[str]


def _lay_out(words: Sequence[str], own: _Numbers, other: _Numbers, alone: str) -> _Layout:
    sizes = Counter(own.values())
    opens: dict[int, str] = defaultdict(str)
    closes: dict[int, str] = defaultdict(str)
    looks = [""] * len(words)
    # Longer ones open first and close last; shorter ones colour the words after them.
    for (start, end), number in sorted(own.items(), key=lambda each: each[0][0] - each[0][1]):
        stop = min(end, len(words))
        if start >= stop:
            continue
        look = _look(number, sizes[number] == 1)
        there = other.get((start, end))
        sign = alone if there is None else "" if there == number else _ELSEWHERE
        opens[start] += f"<b{look}>[</b>"
        closes[stop - 1] = f"<b{look}>]</b><sub{look}>{number}{sign}</sub>" + closes[stop - 1]
        looks[start:stop] = [look] * (stop - start)
    return _Layout(words, opens, closes, looks)


def _look(number: int, single: bool) -> str:
    return ' class="one"' if single else f' class="m h{number % _HUES}"'


def _numbered(document: Document) -> tuple[_Numbers, _Numbers]:
    """Give clusters of the two sides that share most the same number."""
    gold, predicted = (
        {(start, end): cluster for start, end, cluster in reversed(_in_order(side))}
        for side in (document.gold, document.predicted)
    )
    numbers: dict[int, int] = {}
    for _, _, cluster in _in_order(document.gold):
        numbers.setdefault(cluster, len(numbers) + 1)
    shared = Counter(
        (numbers[gold[span]], cluster) for span, cluster in predicted.items() if span in gold
    )
    found: dict[int, int] = {}
    taken = set()
    for (number, cluster), _ in sorted(shared.items(), key=lambda each: (-each[1], each[0])):
        if number not in taken and cluster not in found:
            found[cluster] = number
            taken.add(number)
    following = len(numbers)
    for _, _, cluster in _in_order(document.predicted):
        if cluster not in found:
            following += 1
            found[cluster] = following
    return (
        {span: numbers[cluster] for span, cluster in gold.items()},
        {span: found[cluster] for span, cluster in predicted.items()},
    )


def _in_order(mentions: Sequence[Span]) -> list[Span]:
    return sorted(mentions, key=lambda each: (each[0], -each[1]))
