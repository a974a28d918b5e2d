"""Coreference by regime: CoNLL average on development documents over iterations, and mixing.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.coreference_regimes
    CORPUSMILL_DATA=FOLDER python -m benchmarks.coreference_regimes --only gum-auto --iterations 15
    python -m benchmarks.coreference_regimes --report-only        # table and figure of what ran

Each run is a training on arrays, one process a run, in the order of ``RUNS``; what it measured goes
to ``--results`` as it comes, a JSON object a line, and a run that is there is not made again. The
table is of the last iteration of each; the figure is that of the paper (figures 3 and 4). Peers:
HOTCoref's own figures on the same files, trained and scored by its authors' programs.

``mixing`` runs cut the documents into partitions and average the weights after each iteration, as
training on Spark does, here one partition after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from benchmarks._coreference import measure, read_corpus
from corpusmill.coreference.learned import prepare_batch
from corpusmill.coreference.learning import Progress, learn_partition, mixed, sparse, start
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.preparation import Preparation, folds_of
from corpusmill.coreference.settings import LearnerSettings

SEED = 13
_DELAYED = {"templates": "nonlocal", "regime": "delayed"}
RUNS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "gold, baseline (greedy local)": ("gum-gold", 1, {}),
    "gold, delayed LaSO non-local, k=20": ("gum-gold", 1, _DELAYED),
    "auto, baseline (greedy local)": ("gum-auto", 1, {}),
    "auto, delayed LaSO non-local, k=20": ("gum-auto", 1, _DELAYED),
    "litbank, baseline (greedy local)": ("litbank-auto", 1, {}),
    "litbank, delayed LaSO non-local, k=20": ("litbank-auto", 1, _DELAYED),
    "gold, early local, k=20": ("gum-gold", 1, {"regime": "early"}),
    "gold, early non-local, k=20": ("gum-gold", 1, {**_DELAYED, "regime": "early"}),
    "gold, LaSO local, k=20": ("gum-gold", 1, {"regime": "laso"}),
    "gold, LaSO non-local, k=20": ("gum-gold", 1, {**_DELAYED, "regime": "laso"}),
    "gold, max-violation non-local, k=20": ("gum-gold", 1, {**_DELAYED, "regime": "max_violation"}),
    "gold, mixing of 2": ("gum-gold", 2, {}),
    "gold, mixing of 4": ("gum-gold", 4, {}),
    "gold, mixing of 8": ("gum-gold", 8, {}),
    "gold, early local, k=100": ("gum-gold", 1, {"regime": "early", "beam": 100}),
    "gold, early non-local, k=100": (
        "gum-gold", 1, {**_DELAYED, "regime": "early", "beam": 100},
    ),
}  # fmt: skip
PEERS = {
    "HOTCoref, gold, greedy, 25 iterations": 56.68,
    "HOTCoref, gold, delayed LaSO non-local, k=10, 15 iterations": 57.62,
    "HOTCoref, auto, greedy": 54.69,
    "HOTCoref, LitBank, greedy": 53.05,
    "xrenner (rules), gold": 55.17,
}
"""CoNLL average of other systems on the same development files."""
_COLUMNS = ("muc", "b3", "ceafm", "ceafe", "blanc", "lea", "mentions")


def train_run(name: str, data: Path, iterations: int, every: int) -> dict[str, Any]:
    """Train as a run says and measure on development documents every so many iterations."""
    corpus, partitions, changes = RUNS[name]
    train, develop = read_corpus(data, corpus)
    genders = str(data / "coref_gender" / "bergsma_lin_min10.tsv.gz")
    settings = LearnerSettings(iterations=iterations, genders=genders, **changes)
    curve: dict[int, dict[str, float]] = {}
    seconds: list[float] = []

    def on_pass(progress: Progress, preparation: Preparation) -> None:
        number = len(progress.losses)
        if number == 1 or number % every == 0 or number == iterations:
            model = CoreferenceModel(preparation, progress.average())
            curve[number] = measure(model, develop)

    begin = time.process_time()
    learn(train, settings, partitions, on_pass, seconds)
    return {
        "run": name,
        "iterations": iterations,
        "cpu_seconds": time.process_time() - begin,
        "iteration_cpu_seconds": float(np.median(seconds)),
        "curve": curve,
    }


def learn(
    batch: pa.RecordBatch,
    settings: LearnerSettings,
    partitions: int,
    on_pass: Callable[[Progress, Preparation], None],
    seconds: list[float],
) -> None:
    """Train as `CoreferenceModel.fit`, with mixing of partitions; times go to `seconds`."""
    preparation = prepare_batch(batch, settings)
    # Any cut that does not depend on the documents' order.
    part = (np.argsort(np.argsort(folds_of(batch), kind="stable"))) % partitions
    parts = [batch.filter(pa.array(part == number)) for number in range(partitions)]
    progress = start(settings)
    for iteration in range(settings.iterations):
        begin = time.process_time()
        weights = sparse(progress.weights)
        sums = [
            learn_partition(iter([piece]), preparation, weights, SEED, iteration) for piece in parts
        ]
        total = {key: np.sum([each[key] for each in sums], axis=0) for key in sums[0]}
        progress = mixed(progress, total)
        seconds.append(time.process_time() - begin)
        on_pass(progress, preparation)


def report(results: Path, figure: Path | None) -> None:
    """Print the table of what ran, and draw the figure."""
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    print(f"{'':46}" + "".join(f"{name:>9}" for name in (*_COLUMNS, "CoNLL")) + "  iterations")
    for row in rows:
        last = row["curve"][max(row["curve"], key=int)]
        values = [last[f"{name}.f1"] for name in _COLUMNS] + [last["conll_avg"]]
        cells = "".join(f"{100.0 * value:9.2f}" for value in values)
        print(f"{row['run']:46}{cells}  {row['iterations']}")
    for name, value in PEERS.items():
        print(f"{name:60}{'':49}{value:9.2f}")
    if figure is not None:
        draw([row for row in rows if row["run"].startswith("gold")], figure)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the CoNLL average over iterations, mixing apart from regimes."""
    picture = Figure(figsize=(11, 5), layout="constrained")
    for axes, mixing in zip(picture.subplots(1, 2, sharey=True), (False, True), strict=True):
        for row in rows:
            is_mixing = "mixing" in row["run"]
            if is_mixing == mixing or (mixing and "baseline" in row["run"]):
                points = sorted((int(n), 100.0 * v["conll_avg"]) for n, v in row["curve"].items())
                style = "--" if "non-local" in row["run"] else "-"
                label = row["run"].removeprefix("gold, ")
                axes.plot(*zip(*points, strict=True), style, marker=".", label=label)
        axes.set(xlabel="iterations", title="parameter mixing" if mixing else "regimes")
        axes.legend(fontsize="small")
    picture.axes[0].set_ylabel("CoNLL average on OntoGUM dev, gold columns, percent")
    picture.savefig(path, dpi=120)


def main() -> None:
    """Run what is not there yet, and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--results", type=Path, default=Path("coreference_regimes.jsonl"))
    parser.add_argument("--figure", type=Path, help="where the figure goes")
    parser.add_argument("--iterations", type=int, default=25)
    parser.add_argument("--every", type=int, default=5, help="iterations between measures")
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--report-only", action="store_true")
    given = parser.parse_args()
    given.results.parent.mkdir(parents=True, exist_ok=True)
    given.results.touch()
    if not given.report_only:
        there = {json.loads(line)["run"] for line in given.results.read_text("utf-8").splitlines()}
        names = [name for name in RUNS if given.only in name and name not in there]
        if given.data is None:
            raise SystemExit("CORPUSMILL_DATA or --data must name the corpora")
        work = partial(train_run, data=given.data, iterations=given.iterations, every=given.every)
        with ProcessPoolExecutor(given.processes) as pool, given.results.open("a") as lines:
            for row in pool.map(work, names):
                print(json.dumps(row), file=lines, flush=True)
    report(given.results, given.figure)


if __name__ == "__main__":
    main()
