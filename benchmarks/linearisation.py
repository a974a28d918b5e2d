"""Training by fragments beside training the exact kernel, on pairs of semantic roles.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.linearisation
    CORPUSMILL_DATA=FOLDER python -m benchmarks.linearisation --pairs 1000000
    CORPUSMILL_DATA=FOLDER python -m benchmarks.linearisation --pairs 50000 100000 200000  # growth

First the exact kernel on growing numbers of pairs, in processor time of one core, and the power of
the number that its time grows with; it says what the whole would take. Then the linearised
training (KSL, FMI, TFX, ESL) of all pairs in Spark, in wall time, in one task slot and in two,
start of Spark and reading left out; more pairs make more splits of about the same size. F1 is of
boundary classification on section 24. Of the peaks of resident memory ``driver`` holds the exact
kernel's rows too, ``others`` are all Python workers.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from benchmarks._measure import PeakMemory, cpu_seconds
from benchmarks._trees import (
    BOUNDARY,
    BOUNDARY_CLASSES,
    boundaries,
    boundaries_of_test,
    f1_of,
    fit_boundaries,
    on_arrays,
)
from corpusmill import session
from corpusmill.fragments.exact import KernelMachines, exact_scores
from corpusmill.fragments.examples import take
from corpusmill.fragments.learning import Machines, train_machines
from corpusmill.fragments.plots import growth_fits
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.settings import SparkSettings


def exact_times(
    spark: SparkSession, data: Path, sizes: list[int], settings: LearnerSettings
) -> pd.DataFrame:
    """Train the exact kernel on the first so many pairs of an order of chance."""
    trees = on_arrays("boundaries", boundaries(spark, data, 2 * sizes[-1]))
    test = on_arrays("test", boundaries_of_test(spark, data))
    machine = trees.classes.index(BOUNDARY_CLASSES[0])
    rows = []
    for size in [sizes[0], *sizes]:  # the first once more, to warm up
        part, codes = take(trees.examples, np.arange(size)), trees.codes[:size]
        kept: list[Machines] = []
        seconds = cpu_seconds(
            lambda part=part, codes=codes, kept=kept: kept.append(  # type: ignore[misc]
                train_machines(part, codes, np.ones(len(codes)), [machine], settings)
            )
        )
        exact = KernelMachines.of(kept[0], part, settings)
        others = trees.recoded(test)
        found = f1_of(
            exact_scores([exact], others)[:, 0] > 0,
            test.codes == test.classes.index(BOUNDARY_CLASSES[0]),
        )
        rows.append(("exact", size, seconds, found, int(np.count_nonzero(kept[0].beta))))
    frame = pd.DataFrame(rows[1:], columns=["method", "examples", "seconds", "f1", "vectors"])
    frame["f1"] *= 100
    print(frame.to_string(index=False), flush=True)
    return frame


def run_linearised(master: str, data: Path, pairs: int, split_size: int) -> float:
    """Train on all pairs in Spark, score section 24, print a line, and give the seconds."""
    settings = BOUNDARY.model_copy(update={"splits": max(1, pairs // split_size)})
    spark = session.start("benchmark", SparkSettings(master=master, shuffle_partitions=8))
    rows = boundaries(spark, data, pairs).repartition(8, "example_id").cache()
    count = rows.count()
    test = on_arrays("test", boundaries_of_test(spark, data))
    with PeakMemory(os.getpid()) as memory:
        fit = fit_boundaries(rows, test, settings)
    spark.stop()
    stages = ", ".join(f"{name} {seconds:.0f}" for name, seconds in fit.stages.items())
    print(
        f"{master}: {count:,} pairs, {settings.splits} splits: {fit.seconds:.0f} s ({stages}); "
        f"{fit.fragments:,} fragments, F1 {fit.f1:.2f}; peak MiB: "
        + ", ".join(f"{kind} {size >> 20:,}" for kind, size in memory.peaks.items()),
        flush=True,
    )
    return fit.seconds


def main() -> None:
    """Run all and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--pairs", type=int, nargs="+", default=[200_000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 300_000])
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--split-size", type=int, default=20_000)
    parser.add_argument("--exact-cache-mb", type=int, default=8_192)
    arguments = parser.parse_args()
    if arguments.data is None:
        raise SystemExit("CORPUSMILL_DATA or --data must name the corpora")
    data = arguments.data.resolve()
    # The exact kernel needs all trees in one process.
    roomy_driver = SparkSettings(master="local[2]", conf={"spark.driver.memory": "4g"})
    spark = session.start("benchmark", roomy_driver)
    # The peer gets the memory of the whole machine for its rows, not that of one of many tasks.
    roomy = BOUNDARY.model_copy(update={"cache_mb": arguments.exact_cache_mb})
    times = exact_times(spark, data, arguments.sizes, roomy)
    spark.stop()
    # The largest two sizes: below, all rows of the kernel are cached, and time grows more slowly.
    fit = growth_fits(times.nlargest(2, "examples")).iloc[0]
    pairs = sorted(arguments.pairs)
    whole = float(fit["factor"] * pairs[-1] ** fit["exponent"])
    print(
        f"exact: seconds = {fit['factor']:.3g} n^{fit['exponent']:.2f}; "
        f"{pairs[-1]:,} pairs would take {whole:,.0f} s"
    )
    spent = []
    for master in arguments.masters:
        seconds = [run_linearised(master, data, count, arguments.split_size) for count in pairs]
        spent.append(seconds[-1])
        print(f"{master}: {whole / seconds[-1]:.1f} times as fast as the exact kernel would be")
        if len(pairs) > 1:
            power = np.log(seconds[-1] / seconds[0]) / np.log(pairs[-1] / pairs[0])
            print(f"{master}: time grows with the number of pairs to the power of {power:.2f}")
    per_pair = spent[0] / pairs[-1]
    crossover = (per_pair / fit["factor"]) ** (1.0 / (fit["exponent"] - 1.0))
    print(f"at this rate linearising pays from {crossover:,.0f} pairs on")
    if len(spent) > 1:
        print(f"{arguments.masters[1]} beside {arguments.masters[0]}: {spent[0] / spent[1]:.2f}")


if __name__ == "__main__":
    main()
