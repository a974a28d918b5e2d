"""Run time and memory of the query-log job as the log grows, on one core and on two.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.scaling                  # 1x, 2x, 4x, 8x
    CORPUSMILL_DATA=FOLDER python -m benchmarks.scaling \
        --rows 10000000 --times 1 --masters "local[2]"                   # ten million rows
    CORPUSMILL_DATA=FOLDER python -m benchmarks.scaling \
        --masters "local-cluster[2,1,1024]"                              # the driver's memory

Each line of the table is ``train`` and then ``predict`` of ``jobs/alignment.py`` with
``conf/alignment/query_log.yaml``, in processes of their own, start of Spark included; EM does not
stop early, so that every size takes the same number of iterations. The log: four fifths are
queries of the four real logs, repeated in Zipf proportion; one fifth are queries with two words
of other queries appended, nearly all distinct. Without the data both the queries and
the entities are made up. Everything lies in a temporary folder that is removed at the end.

Memory is looked at from outside, five times a second. In ``local`` the JVM holds driver and
executors, so only the driver's Python can be told apart; in ``local-cluster`` executors are
processes of their own, and the driver's JVM is measured too: its resident memory, and its heap
after a garbage collection, the largest that its log of collections shows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyspark

from benchmarks._measure import PeakMemory
from benchmarks.entity_matcher import LOGS, read_column

ROOT = Path(__file__).parents[1]
CONF = ROOT / "conf" / "alignment" / "query_log.yaml"
PART_ROWS = 250_000
NEW_SHARE = 0.2
DRIVER_MEMORY = "2g"
ITERATIONS = 30


class Source(NamedTuple):
    """Queries to draw from, and the settings that name the entities if they are not real."""

    name: str
    queries: list[str]
    overrides: list[str]


class Result(NamedTuple):
    """What a run of the job took: seconds, and peak bytes by process."""

    seconds: float
    memory: dict[str, int]
    heap: int | None


def real_source(data: Path) -> Source:
    """Give the queries of the four largest logs."""
    queries = [
        query
        for name, column in LOGS.items()
        for query in read_column(data / "query_log" / f"{name}.tsv.gz", column)
    ]
    return Source("real log", queries, [])


def made_source(folder: Path, queries: int = 100_000, entities: int = 3_000) -> Source:
    """Make up entities with two to four classes each, and queries that hold them."""
    rng = np.random.default_rng(13)
    names = [f"name{i} of{i % 97}" for i in range(entities)]
    lines = ["entity\tclass"]
    for name in names:
        own = rng.choice(15, rng.integers(2, 5), replace=False)
        lines += [f"{name}\tclass{c}" for c in own]
    listed = folder / "entities.tsv"
    listed.write_text("\n".join(lines) + "\n", encoding="utf-8")
    entity = rng.zipf(1.3, queries) % entities
    words = rng.zipf(1.2, (queries, 3)) % 20_000
    made = [
        f"{names[e]} word{a} word{b} word{c}" for e, (a, b, c) in zip(entity, words, strict=True)
    ]
    return Source(
        "made-up log", made, [f"input.entities={{path: {json.dumps(str(listed))}, header: true}}"]
    )


def blown_up(queries: list[str], rows: int, seed: int = 13) -> Iterator[pa.Array]:
    """Yield the lines of a log of ``rows`` rows, part by part.

    Parameters
    ----------
    queries : list of str
    rows : int
    seed : int

    Yields
    ------
    pa.Array
        At most `PART_ROWS` strings.
    """
    rng = np.random.default_rng(seed)
    distinct = np.unique(np.array(queries, dtype=object))
    rng.shuffle(distinct)
    log = pa.array(distinct, pa.string())
    words = pc.split_pattern_regex(log, r"\s+").flatten()
    shares = 1.0 / np.arange(1, len(distinct) + 1)
    ends = np.cumsum(shares / shares.sum())
    for begin in range(0, rows, PART_ROWS):
        size = min(PART_ROWS, rows - begin)
        new = int(size * NEW_SHARE)
        repeats = np.searchsorted(ends, rng.random(size - new)).clip(max=len(distinct) - 1)
        yield log.take(pa.array(repeats))
        parts = [log.take(pa.array(rng.integers(0, len(log), new)))]
        parts += [words.take(pa.array(rng.integers(0, len(words), new))) for _ in range(2)]
        yield pc.binary_join_element_wise(*parts, " ")


def write_log(source: Source, rows: int, folder: Path) -> None:
    """Write the log as compressed TSV files with a header, one a part."""
    folder.mkdir()
    for number, part in enumerate(blown_up(source.queries, rows)):
        with gzip.open(folder / f"part-{number:05}.tsv.gz", "wb", compresslevel=1) as file:
            file.write("\n".join(["query", *part.to_pylist(), ""]).encode())


def run_job(action: str, log: Path, output: Path, master: str, overrides: list[str]) -> Result:
    """Run the job in a process of its own and watch its memory."""
    gc_log = output.parent / f"{output.name}-{action}-gc.log"
    properties = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.extraJavaOptions": f"-Xlog:gc:file={gc_log}",
    }
    command = [
        sys.executable, str(ROOT / "jobs" / "alignment.py"), action, "--conf", str(CONF),
        f"input.sources=[{{path: {json.dumps(str(log))}, header: true}}]",
        f"output={json.dumps(str(output))}",
        f"spark.master={json.dumps(master)}",
        f"spark.conf={json.dumps(properties)}",
        "tracking.enabled=false", "model.tol=0.0", f"model.max_iter={ITERATIONS}",
        *overrides,
    ]  # fmt: skip
    words = output.parent / f"{output.name}-{action}.log"
    begin = time.perf_counter()
    with words.open("wb") as sink:
        job = subprocess.Popen(
            command, cwd=output.parent, env=_environment(), stdout=sink, stderr=sink
        )
        with PeakMemory(job.pid) as memory:
            status = job.wait()
    spent = time.perf_counter() - begin
    if status:
        raise SystemExit(f"{action} failed:\n{words.read_text(errors='replace')[-2000:]}")
    return Result(spent, memory.peaks, _largest_heap(gc_log))


def _environment() -> dict[str, str]:
    paths = [str(ROOT / "lib"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        # What a local cluster of executor processes wants of a Spark that pip installed.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_SCALA_VERSION": "2.13",
    }


def _largest_heap(gc_log: Path) -> int | None:
    """Return the largest heap, in bytes, that a collection left over."""
    if not gc_log.is_file():
        return None
    left = [int(found) for found in re.findall(r"->(\d+)M\(", gc_log.read_text())]
    return max(left, default=0) << 20


def distinct_queries(output: Path) -> int:
    """Return how many distinct queries the job counted."""
    metrics = json.loads(next(output.rglob("metrics.json")).read_text())
    return int(metrics["input.queries"])


def report(rows: int, output: Path, master: str, results: dict[str, Result]) -> None:
    """Print one line of the table."""
    train, predict = results["train"], results["predict"]
    peaks = {
        kind: max(result.memory.get(kind, 0) for result in results.values())
        for kind in ("driver", "jvm")
    }
    heap = max(result.heap or 0 for result in results.values())
    both = train.seconds + predict.seconds
    print(
        f"{master:<24}{rows:>12,}{distinct_queries(output):>12,}{train.seconds:>9.1f}"
        f"{predict.seconds:>10.1f}{both / rows * 1e6:>10.1f}"
        f"{peaks['driver'] >> 20:>10,}{peaks['jvm'] >> 20:>8,}{heap >> 20:>8,}",
        flush=True,
    )


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--rows", type=int, default=250_000, help="of the log at 1x")
    parser.add_argument("--times", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="corpusmill-scaling-") as name:
        folder = Path(name)
        real = arguments.data is not None and (arguments.data / "query_log").is_dir()
        source = real_source(arguments.data.resolve()) if real else made_source(folder)
        if real:
            os.environ["CORPUSMILL_DATA"] = str(arguments.data.resolve())
        print(
            f"{source.name}, {ITERATIONS} EM iterations; memory: driver's Python, JVM, heap in MiB"
        )
        print(
            f"{'master':<24}{'rows':>12}{'distinct':>12}{'train s':>9}{'predict s':>10}"
            f"{'us/row':>10}{'Python':>10}{'JVM':>8}{'heap':>8}"
        )
        for times in arguments.times:
            rows = arguments.rows * times
            log = folder / f"log-{rows}"
            write_log(source, rows, log)
            for number, master in enumerate(arguments.masters):
                output = folder / f"output-{rows}-{number}"
                results = {
                    action: run_job(action, log, output, master, source.overrides)
                    for action in ("train", "predict")
                }
                report(rows, output, master, results)


if __name__ == "__main__":
    main()
