"""Coreference: tokens a second, seconds an iteration, one long document, and growth in Spark.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.coreference
    CORPUSMILL_DATA=FOLDER python -m benchmarks.coreference \
        --copies 33 333 --masters "local[1]" "local[2]"               # 1,000 and 10,000 documents

Models are trained for two iterations on OntoGUM's training documents with gold columns; speed does
not depend on how good the weights are. The peer is HOTCoref (Java, one thread), whose figures on
the same files and this class of machine are given: it is no package that could be run beside.

* Decoding the development documents, from Arrow columns to predictions (mentions, attributes,
  features, search), in processor time of one process with one thread: best-first, and beams with
  non-local features.
* An iteration over the 177 training documents, best-first, in processor time.
* One document of 100,000 tokens, development documents behind one another, window 500: processor
  time and the peak of resident memory, in a process of its own.
* The same model in Spark, Parquet to Parquet, in wall time, without the start of Spark; development
  documents are copied under other names. ``workers`` are the Python workers together, at their peak
  of resident memory.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import resource
import shutil
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks._coreference import batch_of, read_corpus
from benchmarks._measure import PeakMemory, cpu_seconds, seconds
from corpusmill import session, splits
from corpusmill.coreference.estimator import OUTPUTS, predict_rows
from corpusmill.coreference.learning import Progress
from corpusmill.coreference.model import DOCUMENT_ROWS, GOLD, CoreferenceModel
from corpusmill.coreference.preparation import Preparation
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.settings import SparkSettings

HOTCOREF_TOKENS, HOTCOREF_ITERATION = 12_000, 12.0
"""HOTCoref, greedy, first-order: tokens a second, and seconds an iteration over 177 documents."""
LONG_TOKENS, LONG_WINDOW = 100_000, 500
BEAMS = (1, 10, 20)
_TOKEN_LISTS = ("words", "pos", "lemmas", "speakers")
_PLACES = tuple(
    f"{kind}_{end}" for kind in ("constituent", "entity", "mention") for end in ("starts", "ends")
)


def trained(train: pa.RecordBatch, settings: LearnerSettings) -> tuple[CoreferenceModel, float]:
    """Train for two iterations; give the model and the seconds of the second."""
    marks: list[float] = []

    def on_pass(progress: Progress, preparation: Preparation) -> None:
        marks.append(time.process_time())

    model = CoreferenceModel.fit(train, settings.model_copy(update={"iterations": 2}), 13, on_pass)
    return model, marks[1] - marks[0]


def with_settings(model: CoreferenceModel, **changes: Any) -> CoreferenceModel:
    """Give a model with other settings for prediction."""
    parts = model.preparation
    changed = parts.settings.model_copy(update=changes)
    return replace(model, preparation=replace(parts, settings=changed))


def run_decoding(local: CoreferenceModel, far: CoreferenceModel, batch: pa.RecordBatch) -> None:
    """Print tokens a second of each search, the best of three in turn."""
    tokens = len(batch.column("words").flatten())
    works = {"best-first, local": local}
    works |= {f"beam {beam}, non-local": with_settings(far, beam=beam) for beam in BEAMS}
    best = dict.fromkeys(works, math.inf)
    for turn in range(4):
        for name, model in works.items():
            spent = cpu_seconds(partial(model.predict_batch, batch))
            if turn:
                best[name] = min(best[name], spent)
    print(f"\nDecoding {batch.num_rows} documents, {tokens:,} tokens, one core")
    print(f"{'':26}{'seconds':>9}{'tokens/s':>10}{'of best-first':>15}{'of HOTCoref':>13}")
    for name, spent in best.items():
        speed, share = tokens / spent, spent / best["best-first, local"]
        peer = speed / HOTCOREF_TOKENS
        print(f"{name:26}{spent:9.2f}{speed:10,.0f}{share:14.1f}x{peer:12.1f}x")


def long_document(batch: pa.RecordBatch, tokens: int) -> pa.RecordBatch:
    """Put documents behind one another until there are so many tokens; without dependencies."""
    rows = batch.to_pylist()
    lists = [item.name for item in DOCUMENT_ROWS if pa.types.is_list(item.type)]
    whole: dict[str, Any] = {name: [] for name in lists}
    whole |= {"document_id": "long", "part": 0, "genre": ""}
    whole["sentence_offsets"] = [0]
    clusters, number = 0, 0
    while len(whole["words"]) < tokens:
        row = rows[number % len(rows)]
        number += 1
        begin, nodes = len(whole["words"]), len(whole["constituent_labels"])
        whole["constituent_parents"] += [
            parent if parent < 0 else parent + nodes for parent in row["constituent_parents"]
        ]
        for name in _PLACES:
            whole[name] += [place + begin for place in row[name]]
        whole["sentence_offsets"] += [place + begin for place in row["sentence_offsets"][1:]]
        whole["mention_clusters"] += [cluster + clusters for cluster in row["mention_clusters"]]
        clusters += 1 + max(row["mention_clusters"], default=0)
        for name in (*_TOKEN_LISTS, "constituent_labels", "entity_labels"):
            whole[name] += row[name]
    return batch_of([whole])


def resolve_long(folder: str, model: CoreferenceModel, tokens: int) -> tuple[float, float, float]:
    """Give the processor seconds and the peak memory in MiB, before and after."""
    batch = pq.read_table(folder).combine_chunks().to_batches()[0]
    # Compiled kernels and their compiler are there before.
    model.predict_batch(batch.slice(0, 2))
    long = long_document(batch, tokens)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    spent = cpu_seconds(partial(model.predict_batch, long))
    return spent, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_long(models: dict[str, CoreferenceModel], batch: pa.RecordBatch, folder: Path) -> None:
    """Print time and memory of a long document, each in a process of its own."""
    path = str(folder / "develop.parquet")
    pq.write_table(pa.Table.from_batches([batch]), path)
    print(f"\nOne document of {LONG_TOKENS:,} tokens, window {LONG_WINDOW}")
    print(f"{'':26}{'seconds':>9}{'MiB before':>12}{'MiB peak':>10}")
    for name, model in models.items():
        limited = with_settings(model, window=LONG_WINDOW)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            spent, before, peak = pool.apply(resolve_long, (path, limited, LONG_TOKENS))
        print(f"{name:26}{spent:9.1f}{before:12,.0f}{peak:10,.0f}", flush=True)


def write_copies(spark: SparkSession, path: str, copies: int, output: str) -> None:
    """Write the documents so many times, each copy under another name, in even files."""
    rows = spark.read.parquet(path).drop(*GOLD)
    number = spark.range(copies).withColumnRenamed("id", "copy")
    named = F.concat("document_id", F.lit("-"), "copy")
    copied = rows.crossJoin(number).withColumn("document_id", named).drop("copy")
    copied.repartition(16, "document_id").write.parquet(output)


def resolve(spark: SparkSession, model: CoreferenceModel, source: str, output: str) -> None:
    """Resolve documents, Parquet to Parquet."""
    rows = spark.read.parquet(source)
    columns = [rows[name] for name in rows.columns]
    kernel = partial(predict_rows, model=model)
    found = splits.append_columns(rows, columns, kernel, OUTPUTS)
    found.select("document_id", *OUTPUTS.names, splits.ERROR).write.parquet(output)


def run_spark(
    model: CoreferenceModel, batch: pa.RecordBatch, copies: list[int], master: str, folder: Path
) -> None:
    """Print a line a size; the smallest is resolved once before, so that workers are warm."""
    settings = SparkSettings(
        master=master, shuffle_partitions=2, conf={"spark.sql.files.maxPartitionBytes": "16m"}
    )
    spark = session.start("coreference", settings)
    path = str(folder / "develop.parquet")
    for turn, count in enumerate([copies[0], *copies]):
        source, output = str(folder / f"copies-{count}"), str(folder / "resolved")
        if not Path(source).exists():
            write_copies(spark, path, count, source)
        with PeakMemory(os.getpid()) as memory:
            spent = seconds(partial(resolve, spark, model, source, output))
        shutil.rmtree(output)
        if turn:
            tokens = count * len(batch.column("words").flatten())
            peaks = "".join(
                f"{memory.peaks[kind] >> 20:>9,}" for kind in ("others", "driver", "jvm")
            )
            print(
                f"{master:<12}{count * batch.num_rows:>10,}{tokens:>12,}{spent:>9.1f}"
                f"{tokens / spent:>10,.0f}{peaks}",
                flush=True,
            )
    spark.stop()


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--copies", type=int, nargs="*", default=[10, 40])
    parser.add_argument("--masters", nargs="*", default=["local[1]", "local[2]"])
    given = parser.parse_args()
    if given.data is None:
        raise SystemExit("CORPUSMILL_DATA or --data must name the corpora")
    data: Path = given.data
    genders = str(data / "coref_gender" / "bergsma_lin_min10.tsv.gz")
    train, develop = read_corpus(data, "gum-gold")
    local, spent = trained(train, LearnerSettings(genders=genders))
    print(
        f"An iteration over {train.num_rows} documents: {spent:.1f} s, HOTCoref "
        f"{HOTCOREF_ITERATION:.0f} s, {HOTCOREF_ITERATION / spent:.1f}x"
    )
    far_settings = LearnerSettings(genders=genders, templates="nonlocal", regime="delayed")
    far, spent = trained(train, far_settings)
    print(f"An iteration of delayed LaSO, beam 20, non-local: {spent:.1f} s")
    run_decoding(local, far, develop)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run_long({"best-first, local": local, "beam 20, non-local": far}, develop, folder)
        if given.copies:
            print(f"\n{'':12}{'documents':>10}{'tokens':>12}{'seconds':>9}{'tokens/s':>10}", end="")
            print(f"{'workers':>9}{'driver':>9}{'JVM':>9}  (MiB)")
        for master in given.masters if given.copies else []:
            run_spark(local, develop, sorted(given.copies), master, folder)


if __name__ == "__main__":
    main()
