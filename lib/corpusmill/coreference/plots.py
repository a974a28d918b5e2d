"""Figures of a run for reviewers, and the input example of a served model. No Spark."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure


def curve_figure(curve: Mapping[int, float]) -> Figure:
    """Draw the CoNLL average on development documents over passes."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(list(curve), [100.0 * value for value in curve.values()], marker="o")
    axes.set(xlabel="iterations", ylabel="CoNLL average, percent", title="development documents")
    return figure


def example_documents() -> pd.DataFrame:
    """Give an invented document as the input example of a served model."""
    words = "Ada met Bob . She likes him .".split()
    row = {
        "document_id": "example",
        "genre": "",
        "words": words,
        "pos": "NNP VBD NNP . PRP VBZ PRP .".split(),
        "lemmas": "Ada meet Bob . she like he .".split(),
        "speakers": [""] * len(words),
        "sentence_offsets": [0, 4, 8],
        "constituent_labels": ["S", "NP", "VP", "NP", "S", "NP", "VP", "NP"],
        "constituent_starts": [0, 0, 1, 2, 4, 4, 5, 6],
        "constituent_ends": [4, 1, 3, 3, 8, 5, 7, 7],
        "constituent_parents": [-1, 0, 0, 2, -1, 4, 4, 6],
        "heads": [1, -1, 1, 1, 5, -1, 5, 5],
        "relations": "nsubj root obj punct nsubj root obj punct".split(),
        "entity_starts": [0, 2],
        "entity_ends": [1, 3],
        "entity_labels": ["PERSON", "PERSON"],
    }
    return pd.DataFrame([row])
