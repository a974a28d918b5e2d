"""Run the query-log job on the embedded sample in one Spark session and show what it found."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from corpusmill import session, settings
from corpusmill.alignment.pipeline import JOB
from corpusmill.alignment.tasks.settings import AlignmentSettings
from corpusmill.runner import run_job

CONF = "conf/alignment/demo.yaml"
ROWS = 12
SHARES = 3


def main() -> int:
    """Train, predict and evaluate; then print the table and what to do next."""
    conf = settings.load(CONF, [], AlignmentSettings)
    spark = session.start("corpusmill demo", conf.spark)
    try:
        for action in ("train", "predict", "evaluate"):
            status = run_job(JOB, [action, "--conf", CONF], spark)
            if status:
                return status
    finally:
        spark.stop()
    folder = Path(conf.output)
    predictions = pd.read_parquet(folder / "predictions").dropna(subset="entity")
    metrics = pd.read_json(folder / "metrics.json", typ="series")
    print(f"\n{table(predictions)}\n")
    print(
        f"{len(predictions):,} queries with an entity, {metrics['dba.accuracy_at_1']:.1%} of them "
        f"with the right class first;\nno query's class was seen in training. "
        f"All of them: {folder}/predictions"
    )
    print(
        "\nReview the run in a browser at http://127.0.0.1:5000 with:\n  .venv/bin/mlflow ui "
        f"--backend-store-uri {conf.tracking.uri} --host 127.0.0.1 --port 5000"
    )
    return 0


def table(predictions: pd.DataFrame) -> str:
    """Return some queries as text, those whose entities were taken in several ways first."""
    rows = predictions.assign(top=predictions["classes"].str[0])
    rows["meanings"] = rows.groupby("entity")["top"].transform("nunique")
    rows = rows.sort_values(
        ["meanings", "entity", "top", "count", "query"], ascending=[False, True, True, False, True]
    )
    chosen = rows.drop_duplicates(["entity", "top"]).head(ROWS)
    lines = [("query", "entity", "classes", "because of")]
    lines += [
        (row["query"], row["entity"], _ranked(row), " ".join(row["context_words"]))
        for row in chosen.to_dict("records")
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, [*widths, 0], strict=True))
        for line in lines
    )


def _ranked(row: Mapping[Hashable, Any]) -> str:
    pairs = list(zip(row["classes"], row["probabilities"], strict=True))[:SHARES]
    return ", ".join(f"{name} {share:.2f}" for name, share in pairs)


if __name__ == "__main__":
    sys.exit(main())
