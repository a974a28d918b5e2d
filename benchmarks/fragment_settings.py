"""What the settings of fragment mining do to accuracy and time, on boundary classification.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.fragment_settings
    CORPUSMILL_DATA=FOLDER python -m benchmarks.fragment_settings --figure FILE.png

One setting is varied at a time, on the first pairs of CoNLL-2005's sections 02 to 06; F1 is of
section 07, which no result is reported on. Seconds are the wall time of the linearised training.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame

from benchmarks._measure import seconds
from benchmarks._trees import (
    BOUNDARY,
    BOUNDARY_CLASSES,
    Trees,
    boundaries,
    f1_of,
    fit_boundaries,
    on_arrays,
)
from corpusmill import session
from corpusmill.fragments.exact import KernelMachines, exact_scores
from corpusmill.fragments.learning import Machines, train_machines
from corpusmill.fragments.plots import splits_figure
from corpusmill.settings import SparkSettings

BASE = BOUNDARY.model_copy(update={"splits": 10})
SWEEPS = {
    "splits": ("splits", (1, 5, 10, 50)),
    "L": ("limit", (500, 5_000, 50_000)),
    "maxexp": ("maxexp", (1, 2, 4)),
}
"""By the name on the plot, the setting and its values."""
ALTERNATIVES: tuple[tuple[str, dict[str, object]], ...] = (
    ("union", {}),
    ("cascade", {"merge": "cascade"}),
    ("cascade, one feedback round", {"merge": "cascade", "feedback_rounds": 1}),
    ("random splits", {"split_by": "random"}),
    ("lambda^(productions/2)", {"relevance": "productions"}),
    ("divided by the kernel's norm", {"normalise": "kernel"}),
    ("L 5,000", {"limit": 5_000}),
    ("L 5,000, chi-squared", {"limit": 5_000, "miner": "chi2"}),
    ("L 5,000, L1 weights", {"limit": 5_000, "miner": "l1"}),
    ("partial tree kernel", {"kernel": "ptk"}),
)


def exact_f1(train: Trees, test: Trees) -> tuple[float, float]:
    """Train the exact kernel on the same pairs; give F1 in percent and seconds."""
    kept: list[Machines] = []
    machine = [train.classes.index(BOUNDARY_CLASSES[0])]
    copies = np.ones(len(train.codes))
    spent = seconds(
        lambda: kept.append(train_machines(train.examples, train.codes, copies, machine, BASE))
    )
    exact = KernelMachines.of(kept[0], train.examples, BASE)
    decided = exact_scores([exact], train.recoded(test))[:, 0] > 0
    return 100 * f1_of(decided, test.codes == test.classes.index(BOUNDARY_CLASSES[0])), spent


def sweep(rows: DataFrame, test: Trees) -> pd.DataFrame:
    """Vary one setting at a time; a row a run, as `plots.splits_figure` takes them."""
    found = []
    for label, (name, values) in SWEEPS.items():
        for value in values:
            fit = fit_boundaries(rows, test, BASE.model_copy(update={name: value}))
            found.append((label, value, fit.f1, fit.seconds, fit.fragments))
            print(f"{label} {value:,}: F1 {fit.f1:.2f}, {fit.seconds:.0f} s", flush=True)
    return pd.DataFrame(found, columns=["setting", "value", "metric", "seconds", "fragments"])


def alternatives(rows: DataFrame, test: Trees) -> pd.DataFrame:
    """Train in each other way once."""
    found = []
    for label, changes in ALTERNATIVES:
        settings = type(BASE).model_validate(BASE.model_dump() | changes)
        fit = fit_boundaries(rows, test, settings)
        found.append((label, fit.f1, fit.seconds, fit.fragments))
        print(f"{label}: F1 {fit.f1:.2f}, {fit.seconds:.0f} s", flush=True)
    return pd.DataFrame(found, columns=["way", "f1", "seconds", "fragments"])


def main() -> None:
    """Run all, print the tables and draw the plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--held-out", type=int, default=100_000, help="pairs of section 07")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--figure", type=Path, help="where to draw the plot, a PNG")
    arguments = parser.parse_args()
    if arguments.data is None:
        raise SystemExit("CORPUSMILL_DATA or --data must name the corpora")
    data = arguments.data.resolve()
    spark = session.start("benchmark", SparkSettings(master=arguments.master, shuffle_partitions=8))
    rows = boundaries(spark, data, arguments.pairs).repartition(8, "example_id").cache()
    train = on_arrays("train", rows)
    test = on_arrays("held out", boundaries(spark, data, arguments.held_out, ["train.07"]))
    fit_boundaries(rows, test, BASE)  # compiles the kernels
    exact, spent = exact_f1(train, test)
    print(f"exact kernel on {arguments.pairs:,} pairs: F1 {exact:.2f}, {spent:.0f} s on one core")
    runs = sweep(rows, test)
    others = alternatives(rows, test)
    print(runs.to_string(index=False, float_format="%.2f"))
    print(others.to_string(index=False, float_format="%.2f"))
    if arguments.figure:
        arguments.figure.parent.mkdir(parents=True, exist_ok=True)
        splits_figure(runs, "F1", exact).savefig(arguments.figure, dpi=80)
    spark.stop()


if __name__ == "__main__":
    main()
