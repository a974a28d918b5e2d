"""Figures and tables of a boosting run for reviewers. No Spark."""

from __future__ import annotations

from collections.abc import Sequence

import lightgbm as lgb
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from corpusmill.boosting.model import BoostingModel
from corpusmill.types import Floats

MOST_FEATURES = 40


def loss_figure(losses: Sequence[float] | Floats, loss: str, title: str = "Training") -> Figure:
    """Draw the mean training loss an example before each round."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(np.arange(len(losses)), losses)
    unit = "nats" if loss == "logistic" else "units of the score"
    axes.set(xlabel="trees", ylabel=f"{loss} loss an example ({unit})", title=title)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def importance_table(model: BoostingModel) -> pd.DataFrame:
    """Give for each feature the gain of its splits, as a share, and their number, by gain.

    Returns
    -------
    pandas.DataFrame
        ``feature``, ``gain`` (sums to one unless nothing was split) and ``splits``.
    """
    booster = lgb.Booster(model_str=model.trees)
    gain = booster.feature_importance("gain")
    table = pd.DataFrame(
        {
            "feature": model.names,
            "gain": gain / (gain.sum() or 1.0),
            "splits": booster.feature_importance("split"),
        }
    )
    return table.sort_values(["gain", "feature"], ascending=[False, True], ignore_index=True)


def importance_figure(table: pd.DataFrame, title: str = "Features by gain") -> Figure:
    """Draw the features with the most gain, at most `MOST_FEATURES`."""
    used = table[table["gain"] > 0.0]
    shown = used.head(MOST_FEATURES)
    figure = Figure(figsize=(7, max(2.5, 0.24 * len(shown) + 1.0)), layout="constrained")
    axes = figure.subplots()
    place = np.arange(len(shown))
    axes.barh(place, shown["gain"])
    # A dollar in a feature's name is a dollar.
    axes.set_yticks(place, list(shown["feature"]), parse_math=False)
    axes.invert_yaxis()
    more = f", the first {MOST_FEATURES} of {len(used)}" if len(used) > len(shown) else ""
    axes.set(xlabel="share of the gain", title=f"{title}{more}")
    return figure
