"""Figures and tables of a DBA run for reviewers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from corpusmill.alignment.learning import Iteration
from corpusmill.alignment.model import AlignmentModel

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
    left.set(xlabel="a (Dirichlet prior)", yticks=place, yticklabels=names)
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
