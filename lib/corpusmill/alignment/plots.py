"""Figures and tables of a DBA run for reviewers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from corpusmill.alignment.learning import Iteration
from corpusmill.alignment.model import AlignmentModel
from corpusmill.types import Floats

TOP_WORDS = 15


def bound_figure(history: Sequence[Iteration]) -> Figure:
    """Draw the bound and the E-step's rounds over the iterations."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    numbers = [item.number for item in history]
    axes.plot(numbers, [item.bound for item in history], marker="o", label="bound")
    axes.set(xlabel="EM iteration", ylabel="evidence lower bound (nats)", title="Training")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    rounds = axes.twinx()
    rounds.plot(numbers, [item.rounds for item in history], color="tab:gray", linestyle=":")
    rounds.set_ylabel("E-step rounds a pattern (dotted)")
    rounds.set_ylim(bottom=0)
    return figure


def parameters_figure(model: AlignmentModel) -> Figure:
    """Draw a and lambda of each class."""
    names = list(model.classes)
    place = np.arange(len(names))
    figure = Figure(figsize=(9, max(3.0, 0.28 * len(names) + 1.2)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.barh(place, model.parameters.alpha)
    left.set_xlabel("a (Dirichlet prior)")
    left.set_yticks(place, names, parse_math=False)  # a dollar in a class's name is a dollar
    left.invert_yaxis()
    right.barh(place, model.parameters.lam, color="tab:orange")
    right.set(xlabel="lambda (utility of the class)")
    return figure


def top_words(model: AlignmentModel, most: int = TOP_WORDS) -> pd.DataFrame:
    """Give each class's strongest words by b_cd log(b_cd / mean over classes of b_d).

    Returns
    -------
    pandas.DataFrame
        ``class``, ``rank``, ``word``, ``probability`` and ``log_ratio`` (nats).
    """
    b = model.parameters.instances.means()
    ratio = np.log(b) - np.log(b.mean(axis=1, keepdims=True))
    score = b * ratio
    best = np.argsort(-score, axis=0, kind="stable")[:most]
    rows = [
        {
            "class": name,
            "rank": rank + 1,
            "word": model.features[word],
            "probability": float(b[word, c]),
            "log_ratio": float(ratio[word, c]),
        }
        for c, name in enumerate(model.classes)
        for rank, word in enumerate(best[:, c])
    ]
    return pd.DataFrame(rows)


def metrics_table(metrics: Mapping[str, float], methods: Sequence[str]) -> pd.DataFrame:
    """Lay out the metrics of a comparison: a row a method, a column a metric."""
    rows = [
        {
            "labels": "known" if prefix else "unknown",
            "method": method,
            **{
                name.removeprefix(f"{prefix}{method}."): value
                for name, value in metrics.items()
                if name.startswith(f"{prefix}{method}.")
            },
        }
        for prefix in ("", "known_labels.")
        for method in methods
    ]
    return pd.DataFrame(rows)


def metrics_frame(metrics: Mapping[str, float]) -> pd.DataFrame:
    """List metrics by name."""
    return pd.DataFrame(sorted(metrics.items()), columns=["metric", "value"])


def accuracy_figure(metrics: Mapping[str, float], methods: Sequence[str]) -> Figure:
    """Draw accuracy at 1, 2, 3 and F1 of every method, labels unknown and known."""
    names = ["accuracy_at_1", "accuracy_at_2", "accuracy_at_3", "f1_macro"]
    figure = Figure(figsize=(11, 4), layout="constrained")
    width = 0.8 / len(methods)
    for axes, prefix in zip(figure.subplots(1, 2, sharey=True), ("", "known_labels."), strict=True):
        for i, method in enumerate(methods):
            place = np.arange(len(names)) + (i - (len(methods) - 1) / 2) * width
            values = [metrics[f"{prefix}{method}.{name}"] for name in names]
            axes.bar(place, values, width, label=method)
        axes.set_xticks(np.arange(len(names)), names)
        axes.set_title("label set known" if prefix else "label set unknown")
        axes.set_ylim(0, 1)
        axes.grid(axis="y", alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(methods))
    return figure


def classes_figure(confusions: Mapping[str, Floats]) -> Figure:
    """Draw each method's precision and recall over the classes, sorted (the paper's figure 3)."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for method, counts in confusions.items():
        hits = np.diag(counts)
        precision = hits / np.maximum(counts.sum(axis=0), 1.0)
        recall = hits / np.maximum(counts.sum(axis=1), 1.0)
        left.plot(np.sort(precision)[::-1], marker=".", label=method)
        right.plot(np.sort(recall)[::-1], marker=".", label=method)
    left.set(xlabel="classes by precision", ylabel="precision", ylim=(0, 1))
    right.set(xlabel="classes by recall", ylabel="recall")
    right.legend(fontsize="small")
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def confusion_table(counts: Floats, classes: Sequence[str]) -> pd.DataFrame:
    """Lay out a confusion matrix, true classes down and predicted across."""
    table = pd.DataFrame(counts.astype(int), columns=list(classes))
    table.insert(0, "true class", list(classes))
    return table


def confusion_figure(counts: Floats, classes: Sequence[str]) -> Figure:
    """Draw a confusion matrix, each row as shares of the true class."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    size = max(4.0, 0.38 * len(classes) + 2.0)
    figure = Figure(figsize=(size, size * 0.9), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    place = np.arange(len(classes))
    axes.set_xticks(place, classes, rotation=90, parse_math=False)
    axes.set_yticks(place, classes, parse_math=False)
    axes.set(xlabel="predicted", ylabel="true")
    for row, column in zip(*np.nonzero(shares >= 0.1), strict=True):
        color = "white" if shares[row, column] > 0.5 else "black"
        text = f"{100 * shares[row, column]:.0f}"
        axes.text(column, row, text, ha="center", va="center", color=color, fontsize=7)
    figure.colorbar(image, label="share of the true class", shrink=0.7)
    return figure
