"""HTML pages of fragments and of the decisions they make, for reviewers. No Spark, no script.

Whatever comes from data is escaped. For and against a class are told apart by sign, by the side
and pattern of a bar, by solid and dashed boxes, and by colour last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate, pairwise
from math import fsum
from typing import Any, NamedTuple

import pandas as pd

from corpusmill.fragments import drawing
from corpusmill.fragments.drawing import Drawing, Mark, draw
from corpusmill.fragments.fragment import Fragment, fragment_text
from corpusmill.pages import page

MOST_DRAWN = 4000
"""Nodes of a tree; a larger one is only counted."""
_SMALLEST_CARD = 240

_STYLE = (
    drawing.STYLE
    + """
body { max-width: 100em; }
code { font-size: 12px; overflow-wrap: anywhere; }
.muted { color: #666; }
.scroll { overflow: auto; max-height: 26em; }
.bar { display: inline-block; height: 0.8em; border: 1px solid; box-sizing: border-box; }
.bar.for { background: #9ec5fe; border-color: #2563b8; }
.bar.against { border-color: #b45309; border-style: dashed;
  background: repeating-linear-gradient(45deg, #ffd8a8 0 3px, #fff 3px 6px); }
.columns { display: grid; grid-template-columns: 12em minmax(0, 1fr); gap: 2em; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow: auto; }
nav ol { list-style: none; padding: 0; margin: 1.6em 0; }
nav a { display: block; padding: 0.1em 0.3em; overflow-wrap: anywhere; }
@media (max-width: 60em) { .columns { display: block; } nav { position: static; } }
"""
)
_CARDS = """
.cards { display: flex; flex-wrap: wrap; gap: 0.8em; }
.cards::after { content: ""; flex: 1000 1 0; }
.card { border: 1px solid #ddd; border-radius: 6px; padding: 0.5em 0.8em; box-sizing: border-box;
  max-width: 100%; min-width: 0; }
.card p { margin: 0; }
.card .bar { display: block; margin: 0.2em 0 0.4em; }
.card code { display: block; max-height: 6em; overflow: auto; }
.card svg.tree { margin: 0.4em auto 0; }
"""
_EXAMPLES = """
section { margin-bottom: 3em; }
td.bars { padding: 0.25em 0.6em; white-space: nowrap; }
td.bars span.half { display: inline-block; width: 5em; line-height: 1; }
td.bars span.half:first-child { text-align: right; border-right: 1px solid #222;
  box-sizing: border-box; }
.overview { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 2em; }
table.decision td:not(:last-child), table.decision th { white-space: nowrap; }
table.decision td:last-child { width: 100%; }
tr.predicted td, tr.total td { font-weight: bold; }
table.scores { width: auto; }
summary { cursor: pointer; }
summary code { display: inline-block; vertical-align: top; max-width: 95%; max-height: 6em;
  overflow: auto; padding-top: 3px; }
h3 { margin-bottom: 0; }
@media (max-width: 50em) { .overview { display: block; } }
"""
_KINDS = Fragment(["a node", "a word", "its children left out"], [2, 0, 0], [True, True, False])


def fragments_page(best: pd.DataFrame, examples: int, title: str = "Fragments") -> str:
    """Lay out the best fragments of each class, drawn as trees.

    Parameters
    ----------
    best : pandas.DataFrame
        As from `tables.best_fragments`: ``class``, ``rank``, ``weight``, ``document_frequency``,
        ``fragment`` (its text), ``labels``, ``arities`` and ``expanded``, in the order to show.
    examples : int
        Training examples, among which ``document_frequency`` counts those with the fragment.
    title : str

    Returns
    -------
    str
        A page that needs nothing else.
    """
    groups = list(best.groupby("class", sort=False))
    entries = [
        f'{escape(str(name))} <span class="muted">{len(rows):,}</span>' for name, rows in groups
    ]
    sections = [
        f'<h2>{escape(str(name))}</h2><div class="cards">{_cards(rows, examples)}</div>'
        for name, rows in groups
    ]
    intro = (
        f"<p>{len(best):,} fragments by absolute weight, of {examples:,} training examples. "
        "A positive weight (solid bar) speaks for the class, a negative one (hatched bar) "
        f'against it.</p><div class="scroll">{draw(_KINDS).svg}</div>'
    )
    return page(title, _with_contents(title, intro, entries, sections), _STYLE + _CARDS)


def _with_contents(title: str, intro: str, entries: Sequence[str], sections: Sequence[str]) -> str:
    """Lay out sections beside a table of contents; all but the title is HTML."""
    links = "".join(f'<li><a href="#s{i}">{entry}</a></li>' for i, entry in enumerate(entries))
    parts = "".join(f'<section id="s{i}">{part}</section>' for i, part in enumerate(sections))
    return (
        f"<h1>{escape(title)}</h1>{intro}"
        f'<div class="columns"><nav><ol>{links}</ol></nav><main>{parts}</main></div>'
    )


def _signed(value: float) -> str:
    """Write a number with its sign."""
    return f"{value:+#.3g}".replace("-", "−") if value else "0"


def _bar(value: float, most: float) -> str:
    """Draw a bar as long as ``|value| / most`` of what it stands in."""
    share = abs(value) / most if most else 0.0
    kind = "for" if value >= 0 else "against"
    return f'<span class="bar {kind}" style="width:{100 * min(share, 1.0):.1f}%"></span>'


def _picture(fragment: Fragment, **marks: Any) -> Drawing:
    """Draw a tree in a box that scrolls, or say why not."""
    nodes = len(fragment.labels)
    if not 0 < nodes <= MOST_DRAWN:
        text = f"{nodes:,} nodes: too many to draw" if nodes else "no nodes"
        return Drawing(f'<p class="muted">{text}</p>', 0, 0)
    drawn = draw(fragment, **marks)
    return drawn._replace(svg=f'<div class="scroll">{drawn.svg}</div>')


def _cards(rows: pd.DataFrame, examples: int) -> str:
    most = rows["weight"].abs().max()
    return "".join(_card(row, most, examples) for row in rows.to_dict("records"))


def _card(row: dict[Any, Any], most: float, examples: int) -> str:
    drawn = _picture(Fragment(row["labels"], row["arities"], row["expanded"]))
    return (
        f'<article class="card" style="flex:1 1 {max(drawn.width, _SMALLEST_CARD) + 28}px">'
        f"<p><b>{row['rank']}.</b> {_signed(row['weight'])} "
        f'<span class="muted">in {row["document_frequency"]:,} of {examples:,}</span></p>'
        f"{_bar(row['weight'], most)}<code>{escape(row['fragment'])}</code>{drawn.svg}</article>"
    )


class Contribution(NamedTuple):
    """A fragment's part in a score.

    Attributes
    ----------
    fragment : Fragment
    weight : float
        Of the fragment, for the class.
    value : float
        Of the fragment, in the example; the contribution is ``weight * value``.
    occurrences : sequence of sequences of int
        For each occurrence its nodes, the root first, numbered through all trees of the example.
    """

    fragment: Fragment
    weight: float
    value: float
    occurrences: Sequence[Sequence[int]] = ()


class Explanation(NamedTuple):
    """A prediction and what decided it.

    Attributes
    ----------
    example_id : str
    predicted : str
    target : str or None
        The true class, where it is known.
    labels, arities, tree_offsets
        The example's trees, as in `corpora.schemas.TREES`.
    scores : mapping of str to float
        By class.
    biases : mapping of str to float
        By class; the part of a score that no feature has.
    contributions : mapping of str to sequence of Contribution
        By class, for instance the predicted and the true one; the strongest, in order.
    """

    example_id: str
    predicted: str
    target: str | None
    labels: Sequence[str]
    arities: Sequence[int]
    tree_offsets: Sequence[int]
    scores: Mapping[str, float]
    biases: Mapping[str, float]
    contributions: Mapping[str, Sequence[Contribution]]


def explanation_page(explanations: Sequence[Explanation], title: str = "Predictions") -> str:
    """Show what decided each prediction: trees, scores, and fragments with their contributions.

    Parameters
    ----------
    explanations : sequence of Explanation
    title : str

    Returns
    -------
    str
        A page that needs nothing else. In each example the fragments of one class, or one of
        them, are chosen to be marked in the trees.
    """
    most = max((_choices(item) for item in explanations), default=0)
    intro = (
        "<p>A contribution is the fragment's weight for the class times its value in the example; "
        "contributions and bias add up to the score. A node's box shows whether the fragments on "
        "it, or the one that is chosen, speak for the class (solid) or against it (dashed), and "
        "how strongly.</p>"
    )
    entries = [f"{escape(item.example_id)} {_verdict(item)}" for item in explanations]
    sections = [_example(number, item) for number, item in enumerate(explanations)]
    style = _STYLE + _EXAMPLES + "".join(map(_choice_style, range(most)))
    return page(title, _with_contents(title, intro, entries, sections), style)


def _verdict(item: Explanation) -> str:
    verdict = f"→ {escape(item.predicted)}"
    if item.target is None:
        return verdict
    return (
        f"{verdict} ✓"
        if item.target == item.predicted
        else f"{verdict} ✗, true: {escape(item.target)}"
    )


def _choices(item: Explanation) -> int:
    """Count what can be chosen: each class, each of its fragments."""
    return sum(1 + len(found) for found in item.contributions.values())


def _choice_style(choice: int) -> str:
    """Give the CSS that marks nodes while a radio button of the section is checked."""
    chosen, strength = f"section:has(.c{choice}:checked)", f"var(--c{choice})"
    return (
        f"{chosen} .for-{choice}>rect{{fill:rgb(120 170 250/{strength});stroke:#2563b8}}"
        f"{chosen} .against-{choice}>rect{{fill:rgb(255 170 80/{strength});stroke:#b45309;"
        f"stroke-dasharray:3 2}}{chosen} path.edge-{choice}{{stroke:#222;stroke-width:2px}}"
    )


def _example(number: int, item: Explanation) -> str:
    marks = _marks(item)
    trees = [
        _picture(
            Fragment(item.labels[begin:end], item.arities[begin:end], [True] * (end - begin)),
            marks={node - begin: mark for node, mark in marks.items() if begin <= node < end},
        ).svg
        for begin, end in pairwise(item.tree_offsets)
    ]
    first = _first_choices(item)
    decisions = [
        _decision(f"example-{number}", choice, name, item)
        for choice, name in zip(first, item.contributions, strict=True)
    ]
    return (
        f'<h2>{escape(item.example_id)} {_verdict(item)}</h2><div class="overview">'
        f"{_scores(item)}<div>{''.join(trees)}</div></div>{''.join(decisions)}"
    )


def _first_choices(item: Explanation) -> list[int]:
    """Give the number of each class among the choices, where its fragments follow it."""
    sizes = [1 + len(found) for found in item.contributions.values()]
    return [0, *accumulate(sizes)][: len(sizes)]


def _scores(item: Explanation) -> str:
    best_first = sorted(item.scores.items(), key=lambda pair: -pair[1])
    most = max((abs(score) for _, score in best_first), default=0.0)
    rows = "".join(
        f"<tr{' class=predicted' if name == item.predicted else ''}><td>{escape(name)}</td>"
        f'<td class="number">{_signed(score)}</td>{_two_sided(score, most)}</tr>'
        for name, score in best_first
    )
    return f'<div class="scroll"><table class="scores">{rows}</table></div>'


def _decision(group: str, choice: int, name: str, item: Explanation) -> str:
    """Lay out the fragments that decided the score of one class, and what makes up the rest."""
    found = item.contributions[name]
    parts = [each.weight * each.value for each in found]
    most = max(map(abs, parts), default=0.0)
    rows = [
        f"<tr><td>{_chooser(group, choice + rank, rank)}</td>{_two_sided(part, most)}"
        f'<td class="number">{_signed(part)}</td>'
        f'<td class="number muted">{_signed(each.weight)} × {each.value:.3g}</td>'
        f"<td>{_unfolding(each)}</td></tr>"
        for rank, (each, part) in enumerate(zip(found, parts, strict=True), start=1)
    ]
    score, bias = item.scores[name], item.biases[name]
    for label, part in ("everything else", score - bias - fsum(parts)), ("bias", bias):
        rows.append(
            f'<tr><td colspan="2"></td><td class="number">{_signed(part)}</td>'
            f'<td></td><td class="muted">{label}</td></tr>'
        )
    rows.append(
        f'<tr class="total"><td colspan="2"></td><td class="number">{_signed(score)}</td>'
        f"<td></td><td>score of {escape(name)}</td></tr>"
    )
    return (
        f"<h3>{_chooser(group, choice, escape(name))}</h3>"
        '<table class="decision"><tr><th></th><th></th><th class="number">contribution</th>'
        '<th class="number">weight × value</th><th>fragment</th></tr>'
        f"{''.join(rows)}</table>"
    )


def _chooser(group: str, choice: int, label: str | int) -> str:
    checked = "" if choice else " checked"
    return f'<label><input type="radio" name="{group}" class="c{choice}"{checked}> {label}</label>'


def _unfolding(each: Contribution) -> str:
    text = escape(fragment_text(each.fragment.labels, each.fragment.arities))
    drawn = _picture(each.fragment).svg
    return f"<details><summary><code>{text}</code></summary>{drawn}</details>"


def _two_sided(value: float, most: float) -> str:
    sides = (_bar(value, most), "") if value < 0 else ("", _bar(value, most))
    halves = "".join(f'<span class="half">{side}</span>' for side in sides)
    return f'<td class="bars">{halves}</td>'


def _marks(item: Explanation) -> dict[int, Mark]:
    """Give each node what the choices' styles look for."""
    marks = defaultdict(list)
    for choice, name in zip(_first_choices(item), item.contributions, strict=True):
        for node, mark in _marks_of_class(choice, name, item.contributions[name]):
            marks[node].append(mark)
    return {
        node: Mark(
            " ".join(mark.node for mark in found),
            " ".join(filter(None, (mark.edge for mark in found))),
            ";".join(mark.style for mark in found),
            "; ".join(filter(None, (mark.tip for mark in found))),
        )
        for node, found in marks.items()
    }


def _marks_of_class(
    choice: int, name: str, found: Sequence[Contribution]
) -> Iterator[tuple[int, Mark]]:
    shares: dict[int, float] = defaultdict(float)
    for rank, each in enumerate(found, start=1):
        part = each.weight * each.value
        for nodes in each.occurrences:
            for node in nodes:
                shares[node] += part / (len(each.occurrences) * len(nodes))
                mark = _mark(choice + rank, part, 0.8)
                edge = "" if node == nodes[0] else f"edge-{choice + rank}"
                yield node, mark._replace(edge=edge)
    most = max(map(abs, shares.values()), default=0.0)
    for node, share in shares.items():
        strength = 0.1 + 0.8 * abs(share) / most if most else 0.1
        yield node, _mark(choice, share, strength)._replace(tip=f"{_signed(share)} {name}")


def _mark(choice: int, value: float, strength: float) -> Mark:
    side = "for" if value >= 0 else "against"
    return Mark(f"{side}-{choice}", style=f"--c{choice}:{strength:.2f}")
