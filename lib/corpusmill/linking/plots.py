"""Figures of a linking run for reviewers. No Spark."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from corpusmill.types import Floats


def bias_figure(biases: Floats, curves: Floats, chosen: float, title: str) -> Figure:
    """Draw precision, recall and F1 on the development texts over the Nil bias b.

    Parameters
    ----------
    biases : Floats, shape (biases,)
    curves : Floats, shape (3, biases)
    chosen : float
        Marked by a line.
    title : str
    """
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    styles = ("--", ":", "-")
    for values, name, style in zip(curves, ("precision", "recall", "F1"), styles, strict=True):
        axes.plot(biases, 100.0 * values, style, label=name)
    axes.axvline(chosen, color="tab:gray", linewidth=0.8)
    axes.set(xlabel=f"bias of Nil (chosen: {chosen:g})", ylabel="percent", title=title)
    axes.legend()
    return figure


def example_texts() -> pd.DataFrame:
    """Give invented texts as the input example of a served linker."""
    return pd.DataFrame({"text": ["cheap flights to paris", "Watching #StarWars with @obama"]})
