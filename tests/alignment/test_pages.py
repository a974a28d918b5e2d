"""Pages: what is wrong is shown, counted and escaped."""

from __future__ import annotations

import pandas as pd

from corpusmill.alignment.pages import errors_page

ERRORS = pd.DataFrame(
    {
        "query": ["jaguar <b>speed</b>", "atlas stock", "atlas share"],
        "count": [5, 2, 1],
        "entity": ["Jaguar", "Atlas & Co", "Atlas & Co"],
        "class": ["car", "company", "company"],
        "classes": [["animal", "car"], ["game"], ["game"]],
        "probabilities": [[0.75, 0.25], [1.0], [1.0]],
        "context_words": [["speed"], ["stock"], []],
        "evidence": [[1.25], [0.5], []],
    }
)


def test_errors_are_grouped_and_escaped() -> None:
    page = errors_page(ERRORS, judged=1000, wrong=7)
    assert "7 of 1,000 queries" in page
    assert "<b>" not in page
    assert "jaguar &lt;b&gt;speed&lt;/b&gt;" in page
    assert "<mark>Atlas &amp; Co</mark>" in page
    assert page.index("company taken for game (2)") < page.index("car taken for animal (1)")
    assert 'animal <span class="evidence">0.75</span>' in page
    assert 'speed <span class="evidence">1.2</span>' in page


def test_no_errors_is_a_page_too() -> None:
    page = errors_page(ERRORS.iloc[:0], judged=3, wrong=0)
    assert "0 of 3 queries" in page
    assert "<table>" not in page
