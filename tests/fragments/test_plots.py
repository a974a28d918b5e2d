"""Figures and tables of fragments: numbers that are right, names to the letter, nothing to draw."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from corpusmill.fragments import plots, tables
from corpusmill.fragments.fragment import Fragment

RUNS = pd.DataFrame(
    {
        "setting": ["splits", "splits", "splits", "$L$", "$L$"],
        "value": [50, 1, 50, 1000, np.inf],
        "metric": [81.0, 82.0, 83.0, 80.0, 81.5],
        "seconds": [1.0, 9.0, 3.0, 2.0, 30.0],
    }
)
METRICS = {
    "exact.accuracy": 0.916,
    "linearised.accuracy": 0.918,
    "exact.NUM.f1": 0.9029,
    "linearised.NUM.f1": 0.9,
    "exact.a.b.f1": 0.5,
    "linearised.a.b.f1": 0.75,
    "exact.train_seconds": 3.0,
    "linearised.train_seconds": 1.0,
    "exact.NUM.recall": 0.8,
    "splits": 50.0,
}
WEIGHTS = np.array([[0.5, -2.0, 0.0, np.nan, 0.5], [0.0, 0.0, 0.0, 0.0, -1.0]])


def drawn(figure: Figure) -> list[Any]:
    figure.savefig(BytesIO(), dpi=20)
    return figure.axes


def legend_of(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_splits_are_drawn_in_order_with_their_means() -> None:
    first, _, seconds, other = drawn(plots.splits_figure(RUNS, "F1", exact=81.8))
    assert [tick.get_text() for tick in seconds.get_xticklabels()] == ["1", "50"]
    assert [tick.get_text() for tick in other.get_xticklabels()] == ["1,000", "all"]
    np.testing.assert_allclose(first.lines[0].get_ydata(), [82.0, 82.0])
    np.testing.assert_allclose(first.lines[2].get_ydata(), 81.8)
    low, high = seconds.get_ylim()
    assert low == 0
    assert high > 30


def test_comparison_is_in_percent_and_classes_come_first() -> None:
    table = tables.comparison_table(METRICS)
    assert table[["class", "metric"]].to_numpy().tolist() == [
        ["NUM", "f1"],
        ["a.b", "f1"],
        ["", "accuracy"],
    ]
    np.testing.assert_allclose(table["difference"], [-0.29, 25.0, 0.2])
    axes = drawn(plots.comparison_figure(table))[0]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["NUM", "a.b", "accuracy"]
    np.testing.assert_allclose([bar.get_width() for bar in axes.patches[:3]], table["exact"])


def test_fits_find_the_power_again() -> None:
    sizes = np.array([1000, 3000, 10_000])
    times = pd.concat(
        [
            pd.DataFrame({"method": "exact", "examples": sizes, "seconds": 1e-6 * sizes**1.9}),
            pd.DataFrame({"method": "$a$ _b", "examples": sizes, "seconds": 1e-3 * sizes**1.0}),
            pd.DataFrame({"method": "_once", "examples": [1000, 1000], "seconds": [5.0, 6.0]}),
        ]
    )
    fits = plots.growth_fits(times)
    assert fits["method"].tolist() == ["exact", "$a$ _b", "_once"]
    np.testing.assert_allclose(fits["exponent"], [1.9, 1.0, np.nan])
    np.testing.assert_allclose(fits["factor"], [1e-6, 1e-3, np.nan])
    axes = drawn(plots.growth_figure(times))[0]
    assert legend_of(axes) == ["exact: n^1.90", "$a$ _b: n^1.00", "_once"]


def test_weights_are_sorted_by_size_without_zeros() -> None:
    axes = drawn(plots.weights_figure(["A", "_$b$"], WEIGHTS))[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2.0, 0.5, 0.5])
    np.testing.assert_allclose(axes.lines[1].get_ydata(), [1.0])
    assert legend_of(axes) == ["A", "_$b$"]


def test_weights_that_rounding_left_do_not_stretch_the_axis() -> None:
    axes = drawn(plots.weights_figure(["A"], [np.array([2.0, -1.0, 1e-12, -1e-18])]))[0]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [2.0, 1.0])


def test_many_classes_have_no_legend() -> None:
    names = [f"class {i}" for i in range(50)]
    axes = drawn(plots.weights_figure(names, np.ones((50, 3))))[0]
    assert axes.get_legend() is None
    assert len(axes.lines) == 50


@pytest.mark.parametrize(
    "figure",
    [
        lambda: plots.splits_figure(RUNS[:0], "F1", exact=0.5),
        lambda: plots.comparison_figure(tables.comparison_table({})),
        lambda: plots.growth_figure(pd.DataFrame(columns=["method", "examples", "seconds"])),
        lambda: plots.weights_figure([], np.zeros((0, 0))),
        lambda: plots.weights_figure(["A"], np.zeros((1, 3))),
    ],
)
def test_nothing_to_draw_is_a_figure_too(figure: Callable[[], Figure]) -> None:
    drawn(figure())


def test_best_fragments_are_by_absolute_weight_ties_by_number() -> None:
    asked = []

    def fragment(number: int) -> Fragment:
        asked.append(number)
        return Fragment(["N", f"word{number}"], [1, 0], [True, True])

    best = tables.best_fragments(["A", "B"], WEIGHTS, np.arange(5), fragment, most=2)
    assert asked == [1, 0, 4]
    assert best["class"].tolist() == ["A", "A", "B"]
    assert best["rank"].tolist() == [1, 2, 1]
    assert best["weight"].tolist() == [-2.0, 0.5, -1.0]
    assert best["document_frequency"].tolist() == [1, 0, 4]
    assert best["arities"].tolist() == [[1, 0]] * 3
    table = tables.fragments_table(best)
    assert list(table) == ["class", "rank", "fragment", "weight", "document_frequency"]
    assert table["fragment"].tolist() == ["(N (word1))", "(N (word0))", "(N (word4))"]


def test_no_fragments_is_a_table_too() -> None:
    best = tables.best_fragments([], np.zeros((0, 0)), np.zeros(0), lambda _: Fragment([], [], []))
    assert len(tables.fragments_table(best)) == 0
