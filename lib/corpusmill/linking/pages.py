"""The HTML page of a linker's errors, for reviewers. No Spark, no script.

Whatever comes from data is escaped. Gold mentions are underlined, predicted ones have a background;
the line of a wrong one is wavy, so that nothing is told by colour alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from math import isnan
from typing import Any

from corpusmill.evaluation.linking import NIL, LinkCounts, link_metrics
from corpusmill.linking.errors import BOUNDARY, KINDS, NO_ENTITY, SECOND, kinds_table
from corpusmill.linking.examples import Example, Pair, Side
from corpusmill.pages import page
from corpusmill.types import Floats

_SIGNS = {"right": "✓", "wrong": "≠", "missed": "−", "spurious": "+"}
_STYLE = """
:root { color-scheme: light dark; --ink: #222; --muted: #5c5c5c; --line: #ccc; --stripe: #f5f5f5;
  --right: #1b7a3d; --right-back: #cdeed6; --wrong: #a35200; --wrong-back: #ffe0b8;
  --missed: #b3261e; --missed-back: #f7cfcc; --spurious: #6a3fb5; --spurious-back: #e4d9f9; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ddd; --muted: #a0a0a0; --line: #555; --stripe: #232323;
    --right: #6fd08c; --right-back: #1e4a2c; --wrong: #ffb35c; --wrong-back: #573706;
    --missed: #ff8a80; --missed-back: #5c2320; --spurious: #c3a6ff; --spurious-back: #41306b; }
  body { background: #161616; }
  a { color: #8ab4f8; }
}
body { max-width: 80em; color: var(--ink); }
h2 { border-color: var(--line); }
tr:nth-child(even) { background: var(--stripe); }
td { overflow-wrap: break-word; }
td.number, th.number { white-space: nowrap; }
a:focus-visible { outline: 3px solid; outline-offset: 2px; }
.muted { color: var(--muted); }
.sign { display: inline-block; width: 1.2em; font-weight: bold; }
.right { color: var(--right); } .wrong { color: var(--wrong); }
.missed { color: var(--missed); } .spurious { color: var(--spurious); }
table.kinds { width: auto; }
table.kinds td:last-child { width: 14em; }
.bar { display: inline-block; height: 0.8em; border: 1px solid; box-sizing: border-box;
  min-width: 1px; }
.bar.right { background: var(--right-back); } .bar.wrong { background: var(--wrong-back); }
.bar.missed { background: var(--missed-back); }
.bar.spurious { background: var(--spurious-back); }
dl.legend { display: grid; grid-template-columns: max-content 1fr; gap: 0.3em 1em; }
dl.legend dd { margin: 0; }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0.5em 0.8em;
  margin: 0.8em 0; overflow-x: auto; }
article p { margin: 0; }
p.text { font-size: 115%; line-height: 1.9; white-space: pre-wrap; overflow-wrap: anywhere; }
article table { margin-top: 0.4em; font-size: 93%; table-layout: fixed; }
article th:nth-child(1) { width: 8em; } article th:nth-child(5) { width: 4em; }
article th:nth-child(6) { width: 6em; }
@media (max-width: 50em) {
  article table { table-layout: auto; }
  td, th { padding: 0.25em 0.3em; }
  table.kinds td:last-child, table.kinds th:last-child { display: none; }
}
tr.focus td { font-weight: bold; }
tr.focus td .muted { font-weight: normal; }
mark { color: inherit; background: none; text-underline-offset: 0.25em; }
mark.focus { font-weight: bold; }
mark.g-right { text-decoration: underline 3px var(--right); }
mark.g-wrong { text-decoration: underline wavy 2px var(--wrong); }
mark.g-missed { text-decoration: underline 3px var(--missed); }
mark.g-nil { text-decoration: underline dotted 3px var(--muted); }
mark.p-right { background: var(--right-back); }
mark.p-wrong { background: var(--wrong-back); }
mark.p-spurious { background: var(--spurious-back); }
@media print { mark, .bar { print-color-adjust: exact; } }
"""
_LEGEND = (
    ("g-right p-right", "right: predicted (background) and in gold (line), the same entity"),
    ("g-wrong p-wrong", "wrong: predicted (background) and in gold (wavy line), another entity"),
    ("g-missed", "missed: in gold (line), not predicted"),
    ("p-spurious", "spurious: predicted (background), not in gold"),
    ("g-nil", "in gold without an entity (NIL)"),
)


def errors_page(name: str, counts: Floats, examples: Sequence[Example]) -> str:
    """Lay out how often each kind of error occurs, and texts that show it.

    Parameters
    ----------
    name : str
        What was linked.
    counts : Floats, shape (kinds,)
        As from `errors.count_kinds`, summed.
    examples : sequence of Example
        In the order to show.

    Returns
    -------
    str
        A page that needs nothing else.
    """
    by_kind: dict[int, list[Example]] = defaultdict(list)
    for example in examples:
        by_kind[example.kind].append(example)
    # What is right comes last: errors are what the page is for.
    order = [*range(BOUNDARY + 1, len(KINDS)), *range(BOUNDARY + 1)]
    sections = [_section(kind, counts, by_kind[kind]) for kind in order if by_kind[kind]]
    title = f"Errors: {name}"
    body = (
        f"<h1>{escape(title)}</h1>{_summary(counts)}{_kinds(counts, by_kind)}"
        f"{_legend()}<main>{''.join(sections)}</main>"
    )
    return page(title, body, _STYLE)


def _summary(counts: Floats) -> str:
    right = counts[: BOUNDARY + 1].sum()
    gold = counts[:SECOND].sum()
    predicted = counts[:NO_ENTITY].sum() + counts[SECOND:].sum()
    found = link_metrics(LinkCounts(*(each.reshape(1) for each in (right, predicted, right, gold))))
    shares = ", ".join(
        f"{label} {100.0 * found[key]:.1f} %"
        for label, key in (("precision", "precision"), ("recall", "recall"), ("F1", "f1"))
    )
    return (
        f"<p>{gold:,.0f} mentions of entities in gold, {predicted:,.0f} predicted, {right:,.0f} "
        f"right: {shares}. A prediction is right if it overlaps a gold mention of the same "
        "entity.</p>"
    )


def _kinds(counts: Floats, shown: dict[int, list[Example]]) -> str:
    """Lay out the table of kinds, each a link to its examples."""
    most = max(counts.max(), 1.0)
    rows = []
    for number, row in enumerate(kinds_table(counts).to_dict("records")):
        title = f"{_sign(KINDS[number].group)}{escape(row['title'])}"
        if shown.get(number):
            title = f'<a href="#{row["kind"]}">{title}</a>'
        bar = _bar(KINDS[number].group, row["count"] / most) if row["count"] else ""
        shares = "".join(_share(row[side]) for side in ("of_gold", "of_predicted"))
        rows.append(
            f'<tr><td>{title}</td><td class="number">{row["count"]:,}</td>{shares}'
            f"<td>{bar}</td></tr>"
        )
    return (
        '<table class="kinds" id="kinds"><tr><th>kind</th><th class="number">mentions</th>'
        '<th class="number">of gold</th><th class="number">of predicted</th><th></th></tr>'
        f"{''.join(rows)}</table>"
    )


def _share(share: float) -> str:
    return f'<td class="number">{"" if isnan(share) else f"{100.0 * share:.1f} %"}</td>'


def _bar(group: str, share: float) -> str:
    return f'<span class="bar {group}" style="width:{100.0 * share:.1f}%"></span>'


def _sign(group: str) -> str:
    return f'<span class="sign {group}">{_SIGNS[group]}</span>'


def _legend() -> str:
    rows = "".join(
        f'<dt><mark class="{look}">mention</mark></dt><dd>{meaning}</dd>'
        for look, meaning in _LEGEND
    )
    return (
        f'<h2>How to read the examples</h2><dl class="legend">{rows}</dl><p>The mention that a '
        "text is an example for is bold. F is the score of the entity less that of Nil, bias "
        "included; in grey behind a gold entity that was a candidate stand its own F and "
        "probability. The runner-up is what else the predicted mention most probably is.</p>"
    )


def _section(number: int, counts: Floats, examples: Sequence[Example]) -> str:
    kind = KINDS[number]
    return (
        f'<section id="{kind.name}"><h2>{_sign(kind.group)}{escape(kind.title)} '
        f'<span class="muted">{counts[number]:,.0f}</span></h2><p>{escape(kind.meaning)} '
        f'<a href="#kinds">All kinds</a></p>{"".join(map(_example, examples))}</section>'
    )


def _example(example: Example) -> str:
    before, after = ("… " if example.before else ""), (" …" if example.after else "")
    rows = "".join(
        _row(example.text, pair, number == example.focus)
        for number, pair in enumerate(example.pairs)
    )
    return (
        f'<article><p class="muted">{escape(example.text_id)}</p><p class="text" dir="auto">'
        f"{before}{''.join(_runs(example))}{after}</p><table><tr><th>outcome</th>"
        '<th>mention</th><th>gold</th><th>predicted</th><th class="number">F</th>'
        '<th class="number">probability</th><th>runner-up</th></tr>'
        f"{rows}</table></article>"
    )


def _runs(example: Example) -> Iterator[str]:
    """Mark the text: each run of characters between the bounds of mentions by what covers it."""
    sides = [
        (number, pair.kind, side, end)
        for number, pair in enumerate(example.pairs)
        for side, end in ((pair.gold, "g"), (pair.predicted, "p"))
        if side is not None
    ]
    places = {0, len(example.text)}
    for _, _, side, _ in sides:
        places |= {side.start, side.end}
    bounds = sorted(places)
    for begin, end in pairwise(bounds):
        over = [each for each in sides if each[2].start <= begin and end <= each[2].end]
        text = escape(example.text[begin:end])
        looks = {f"{which}-{_group(kind)}" for _, kind, _, which in over}
        if any(number == example.focus for number, *_ in over):
            looks.add("focus")
        yield f'<mark class="{" ".join(sorted(looks))}">{text}</mark>' if over else text


def _group(kind: int) -> str:
    return "nil" if kind == NIL else KINDS[kind].group


def _row(text: str, pair: Pair, focus: bool) -> str:
    gold, predicted = pair.gold, pair.predicted
    outcome = "in gold only, NIL"
    if pair.kind != NIL:
        group = KINDS[pair.kind].group
        outcome = f"{_sign(group)}{group}"
    spans = dict.fromkeys(side[:2] for side in (gold, predicted) if side)
    surface = " / ".join(f"<bdi>{escape(text[begin:end])}</bdi>" for begin, end in spans)
    return (
        f"<tr{' class=focus' if focus else ''}><td>{outcome}</td><td>{surface}</td>"
        f"<td>{_gold(gold)}</td>{_predicted(predicted)}</tr>"
    )


def _gold(side: Side | None) -> str:
    if side is None:
        return ""
    if side.score is None:
        return _title(side.entity)
    own = f"{_signed(side.score)}, {side.probability:.2f}"
    return f'{_title(side.entity)} <span class="muted">{own}</span>'


def _predicted(side: Side | None) -> str:
    if side is None:
        return '<td></td><td class="number"></td><td class="number"></td><td></td>'
    second = (
        f'{_title(side.second, "Nil")} <span class="muted">{side.second_probability:.2f}</span>'
    )
    return (
        f'<td>{_title(side.entity)}</td><td class="number">{_signed(side.score)}</td>'
        f'<td class="number">{side.probability:.2f}</td><td>{second}</td>'
    )


def _title(entity: str | None, none: str = "NIL") -> str:
    return none if entity is None else f"<bdi>{escape(entity.replace('_', ' '))}</bdi>"


def _signed(value: Any) -> str:
    return f"{value:+.2f}".replace("-", "−")
