"""Figures of fragments and linearised kernels for reviewers. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from corpusmill.types import Floats

_MOST_NAMED = 12
"""Lines that a legend names; more are told apart by no one."""
_NEARLY_NONE = 1e-6
"""Of the largest weight: below it a weight is what rounding left, and would stretch the axis."""


def splits_figure(runs: pd.DataFrame, metric: str, exact: float | None = None) -> Figure:
    """Draw a metric and the time against each setting: number of splits, L, maxexp.

    Parameters
    ----------
    runs : pandas.DataFrame
        A row a run: ``setting`` (what was varied), ``value``, ``metric`` and ``seconds``; an
        infinite value is no limit. Runs of the same setting and value are points of their own,
        and the line runs through their means.
    metric : str
        What ``metric`` is, for the axis.
    exact : float, optional
        The exact kernel's, drawn as a line across.
    """
    settings = list(runs["setting"].unique())
    figure = Figure(figsize=(1.5 + 3.6 * max(len(settings), 1), 5.5), layout="constrained")
    grid = figure.subplots(2, max(len(settings), 1), sharex="col", sharey="row", squeeze=False)
    for (upper, lower), setting in zip(grid.T, settings, strict=False):
        rows = runs[runs["setting"] == setting]
        _draw_runs(upper, rows, "metric", "tab:blue")
        _draw_runs(lower, rows, "seconds", "tab:orange")
        if exact is not None:
            upper.axhline(exact, color="0.4", linestyle="--", label="exact kernel")
        lower.set_xlabel(setting, parse_math=False)
    grid[1, 0].set_ylim(bottom=0)  # shared by the row, hence after all is drawn
    grid[0, 0].set_ylabel(metric, parse_math=False)
    grid[1, 0].set_ylabel("seconds")
    if exact is not None and settings:
        grid[0, -1].legend()
    return figure


def _draw_runs(axes: Axes, rows: pd.DataFrame, column: str, color: str) -> None:
    """Draw a column against the values, evenly spaced: they are few, and grow by factors."""
    values = sorted(rows["value"].unique())
    means = rows.groupby("value")[column].mean()
    axes.plot(range(len(values)), [means[value] for value in values], color=color)
    place = [values.index(value) for value in rows["value"]]
    axes.plot(place, rows[column], color=color, marker="o", linestyle="none")
    axes.set_xticks(
        range(len(values)), [f"{value:,.10g}" if np.isfinite(value) else "all" for value in values]
    )
    axes.margins(x=0.1, y=0.15)
    axes.grid(axis="y", alpha=0.3)


def comparison_figure(comparison: pd.DataFrame) -> Figure:
    """Draw each class's F1, and what there is for all, exact beside linearised.

    Parameters
    ----------
    comparison : pandas.DataFrame
        As from `tables.comparison_table`.
    """
    rows = comparison[(comparison["metric"] == "f1") | (comparison["class"] == "")]
    names = (rows["class"] + " " + rows["metric"].where(rows["class"] == "", "")).str.strip()
    place = np.arange(len(rows))
    figure = Figure(figsize=(8, 1.4 + 0.42 * max(len(rows), 1)), layout="constrained")
    axes = figure.subplots()
    for shift, column, color in ((-0.2, "exact", "0.65"), (0.2, "linearised", "tab:blue")):
        bars = axes.barh(place + shift, rows[column], 0.4, label=column, color=color)
        axes.bar_label(bars, fmt="%.2f", padding=3, fontsize=8)
    axes.set_yticks(place, list(names), parse_math=False)
    axes.invert_yaxis()
    axes.set(xlabel="percent (F1 of a class)", xlim=(0, 108), xticks=range(0, 101, 20))
    figure.legend(loc="outside lower right", ncols=2)
    return figure


def growth_fits(times: pd.DataFrame) -> pd.DataFrame:
    """Fit seconds = factor * examples^exponent to each method, by least squares of logarithms.

    Parameters
    ----------
    times : pandas.DataFrame
        ``method``, ``examples`` and ``seconds``, all above 0.

    Returns
    -------
    pandas.DataFrame
        ``method``, ``exponent`` and ``factor``; NaN for a method of fewer than two sizes.
    """
    rows = []
    for method, group in times.groupby("method", sort=False):
        exponent, factor = np.nan, np.nan
        if group["examples"].nunique() > 1:
            logs = np.log(group[["examples", "seconds"]].to_numpy(np.float64))
            exponent, constant = np.polyfit(logs[:, 0], logs[:, 1], 1)
            factor = np.exp(constant)
        rows.append((method, float(exponent), float(factor)))
    return pd.DataFrame(rows, columns=["method", "exponent", "factor"])


def growth_figure(times: pd.DataFrame) -> Figure:
    """Draw training time against the number of examples, with each method's fitted power.

    Parameters
    ----------
    times : pandas.DataFrame
        As for `growth_fits`. A fit is drawn over the sizes of all methods, dashed where it says
        more than was measured.
    """
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="training examples", ylabel="seconds")
    axes.grid(which="major", alpha=0.3)
    for i, fit in enumerate(growth_fits(times).to_dict("records")):
        rows = times[times["method"] == fit["method"]]
        known = np.isfinite(fit["exponent"])
        label = f"{fit['method']}: n^{fit['exponent']:.2f}" if known else str(fit["method"])
        color = f"C{i}"
        axes.plot(rows["examples"], rows["seconds"], "o", color=color, label=label)
        if known:
            for sizes, style in (times["examples"], ":"), (rows["examples"], "-"):
                ends = np.array([sizes.min(), sizes.max()], np.float64)
                axes.plot(ends, fit["factor"] * ends ** fit["exponent"], style, color=color)
    _legend(axes)
    return figure


def weights_figure(classes: Sequence[str], weights: Sequence[Floats] | Floats) -> Figure:
    """Draw each class's fragments' absolute weights, largest first, without what is nearly 0.

    Parameters
    ----------
    classes : sequence of str
    weights : sequence of Floats
        By class, of its fragments.
    """
    figure = Figure(figsize=(7.5, 5), layout="constrained")
    axes = figure.subplots()
    axes.set(xscale="log", yscale="log", xlabel="rank of the fragment", ylabel="|weight|")
    axes.grid(which="major", alpha=0.3)
    few = len(classes) <= _MOST_NAMED
    for i, (name, row) in enumerate(zip(classes, weights, strict=True)):
        sizes = np.sort(np.abs(row[np.isfinite(row) & (row != 0)]))[::-1]
        sizes = sizes[sizes >= _NEARLY_NONE * sizes.max(initial=0.0)]
        style = {"color": f"C{i}", "label": name} if few else {"color": "0.3", "alpha": 0.3}
        axes.plot(np.arange(1, len(sizes) + 1), sizes, **style)
    if few:
        _legend(axes)
    else:
        axes.set_title(f"{len(classes)} classes")
    return figure


def _legend(axes: Axes) -> None:
    """Name the lines that have a label, to the letter: no formulas, no hidden names."""
    lines = [line for line in axes.lines if not str(line.get_label()).startswith("_child")]
    if not lines:
        return
    legend = axes.legend(lines, [str(line.get_label()) for line in lines], fontsize="small")
    for text in legend.get_texts():
        text.set_parse_math(False)
