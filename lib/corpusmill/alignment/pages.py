"""HTML pages of a DBA run for reviewers; everything that comes from data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd

from corpusmill.pages import page

_STYLE = """
mark { background: #ffe08a; }
span.evidence { color: #777; font-size: 85%; }
"""


def errors_page(errors: pd.DataFrame, judged: int, wrong: int) -> str:
    """Lay out wrongly disambiguated queries, grouped by true and predicted class.

    Parameters
    ----------
    errors : pandas.DataFrame
        ``query``, ``count``, ``entity``, ``class`` (the true one), and ``classes``,
        ``probabilities``, ``context_words``, ``evidence`` as predicted.
    judged, wrong : int
        Queries with a known class, and how many of them are wrong; `errors` may hold fewer.

    Returns
    -------
    str
        A page that needs nothing else.
    """
    parts = [
        f"<h1>Errors</h1><p>{wrong:,} of {judged:,} queries with a known class are wrong; the "
        f"{len(errors):,} most frequent are shown. Words that spoke for the predicted class "
        "against the second best carry their weight in nats.</p>"
    ]
    predicted = errors["classes"].str[0]
    groups = errors.groupby([errors["class"], predicted], sort=False)
    for (true, found), group in sorted(groups, key=lambda item: -len(item[1])):
        parts.append(
            f"<h2>{escape(str(true))} taken for {escape(str(found))} ({len(group)})</h2><table>"
            "<tr><th>query</th><th>count</th><th>classes</th><th>because of</th></tr>"
        )
        parts += [_row(row) for row in group.to_dict("records")]
        parts.append("</table>")
    return page("Errors", "".join(parts), _STYLE)


def _row(row: dict[Any, Any]) -> str:
    query = escape(str(row["query"]))
    classes = _pairs(row["classes"], row["probabilities"], ".2f")
    words = _pairs(row["context_words"], row["evidence"], ".1f")
    count = f'<td class="number">{row["count"]}</td>'
    entity = f" <mark>{escape(str(row['entity']))}</mark>"
    return f"<tr><td>{query}{entity}</td>{count}<td>{classes}</td><td>{words}</td></tr>"


def _pairs(names: Sequence[str], numbers: Sequence[float], form: str) -> str:
    return ", ".join(
        f'{escape(name)} <span class="evidence">{number:{form}}</span>'
        for name, number in zip(names, numbers, strict=True)
    )
