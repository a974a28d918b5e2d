"""Print a small table of the queries that the demo disambiguated, ambiguous entities first."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

ROWS = 12
SHARES = 3


def ranked(classes: list[str], probabilities: list[float]) -> str:
    """Return the first classes with their probabilities: ``animal 0.91, car 0.09``."""
    pairs = zip(classes, probabilities, strict=True)
    return ", ".join(f"{name} {share:.2f}" for name, share in list(pairs)[:SHARES])


def table(predictions: pd.DataFrame) -> str:
    """Return at most `ROWS` rows as text: entities with several classes first, one query each."""
    ambiguous = predictions.assign(
        top=[classes[0] for classes in predictions["classes"]],
        several=[len(classes) > 1 for classes in predictions["classes"]],
    )
    meanings = ambiguous.groupby("entity")["top"].transform("nunique")
    ambiguous = ambiguous.assign(meanings=meanings).sort_values(
        ["several", "meanings", "entity", "top", "query"],
        ascending=[False, False, True, True, True],
    )
    chosen = ambiguous.drop_duplicates(["entity", "top"]).head(ROWS)
    lines = [("query", "entity", "classes", "because of")]
    lines += [
        (row["query"], row["entity"], ranked(row["classes"], row["probabilities"]), words)
        for row in chosen.to_dict("records")
        for words in [" ".join(row["context_words"])]
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        "  ".join(
            [*(cell.ljust(width) for cell, width in zip(line, widths, strict=False)), line[3]]
        )
        for line in lines
    )


def main() -> int:
    """Read the Parquet folder that the command line names and print the table."""
    [folder] = sys.argv[1:]
    predictions = pd.read_parquet(Path(folder))
    predictions = predictions[predictions["classes"].map(len) > 0]
    print(f"\n{table(predictions)}\n\n{len(predictions)} queries with an entity; all: {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
