"""Entity linking with a million surface forms: texts a second, its stages, and growth in Spark.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.linking
    CORPUSMILL_DATA=FOLDER python -m benchmarks.linking --model FOLDER     # keeps it, or uses it
    CORPUSMILL_DATA=FOLDER python -m benchmarks.linking \
        --rows 100000 1000000 10000000 --masters "local[2]"                # ten million texts

The model is that of ``conf/linking/tweets.yaml``, trained by the job, with made-up surface forms
beside the real ones: names of syllables, most of them titles of made-up entities, some shared by
two. Texts are its tweets, each with two words of others and every fourth with a made-up name behind
it, so that nearly all are distinct. Without the data tweets, real forms and entities are those of
the embedded sample (``conf/linking/demo.yaml``).

* ``LinkingModel.predict_batch`` on batches of 4,096 texts, as Spark hands them over, in processor
  time of one process with one thread, and the time of its stages one after the other.
* The trees of the first stage on the rows of 512 texts beside LightGBM's own prediction.
* The look-up of n-grams beside a dictionary of strings in plain Python, which has to find the
  same. Tokens and folded characters are given to both for nothing.
* The same model in Spark, Parquet to Parquet, in wall time and in processor time of all processes
  (``us/text``), without the start of Spark; the number of texts grows. ``powers`` are the exponents
  that wall time and processor time grow with from the smallest number on. ``workers`` are the
  Python workers together, at their peak of resident memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from benchmarks._linking import (
    PlainLexicon,
    blown_up,
    folded_ngrams,
    folded_words,
    made_up_names,
    write_conf,
    write_forms,
    write_texts,
)
from benchmarks._measure import PeakMemory, all_cpu_seconds, cpu_seconds, medians, seconds
from benchmarks.boosting import run_prediction
from corpusmill import session, splits, storage
from corpusmill.boosting.trees import scores_of
from corpusmill.frames import text_pieces
from corpusmill.linking.candidates import find_mentions
from corpusmill.linking.coherence import coherence
from corpusmill.linking.estimator import OUTPUTS, predict_rows
from corpusmill.linking.factors import Found, candidates_of
from corpusmill.linking.features import feature_matrix
from corpusmill.linking.model import PIECE_CHARACTERS, LinkingModel, spans_of
from corpusmill.linking.placement import append_to_texts, whole
from corpusmill.linking.units import find_ngrams, units_of
from corpusmill.settings import SparkSettings

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "lib" / "corpusmill" / "corpora" / "samples" / "linking_texts.jsonl"
BATCH = 4096
Stages = dict[str, float]


def read_tweets(path: Path) -> list[str]:
    """Read the distinct texts of tweets, JSON with one object a line."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        return sorted({json.loads(line)["text"] for line in lines})


def train_model(data: Path | None, names: list[str], folder: Path, output: Path) -> None:
    """Train by the job, with names as further surface forms."""
    forms, conf = folder / "forms.tsv", folder / "linking.yaml"
    write_forms(names, forms)
    base = ROOT / "conf" / "linking" / ("tweets.yaml" if data else "demo.yaml")
    write_conf(base, forms, conf)
    command = [
        sys.executable, str(ROOT / "jobs" / "linking.py"), "train", "--conf", str(conf),
        f"output={json.dumps(str(output))}", "tracking.enabled=false",
        "spark.conf={spark.driver.memory: 2g}",
    ]  # fmt: skip
    paths = [str(ROOT / "lib"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path)}
    if data:
        environment["CORPUSMILL_DATA"] = str(data)
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"training failed:\n{(done.stdout + done.stderr)[-2000:]}")


def batches_of(texts: pa.Array) -> list[pa.RecordBatch]:
    """Cut texts as Spark does."""
    return pa.table({"text": texts}).to_batches(max_chunksize=BATCH)


def run_stages(model: LinkingModel, batch: pa.RecordBatch) -> Stages:
    """Link a piece of a batch stage by stage; the processor time of each."""
    spent: Stages = {}

    def timed(name: str, work: Callable[..., Any], *inputs: Any) -> Any:
        kept: list[Any] = []
        used = cpu_seconds(lambda: kept.append(work(*inputs)))
        spent[name] = spent.get(name, 0.0) + used
        return kept[0]

    knowledge, most = model.knowledge, model.settings.candidates
    units = timed("tokens", units_of, batch.column("text"))
    mentions = timed("look-up", find_mentions, units, knowledge.lexicon, most)
    features = timed("features", feature_matrix, units, mentions, knowledge)
    scores = timed("trees", scores_of, model.trees[0], features)
    structure = timed("decoding", spans_of, Found(units, mentions, features))
    for trees, bias in zip(model.trees[1:], model.biases, strict=False):
        scores[structure.bases] += bias
        chosen = timed("decoding", structure.best, scores)
        further = timed("coherence", coherence, mentions, chosen, knowledge)
        scores = timed("trees", scores_of, trees, np.hstack([features, further]))
    scores[structure.bases] += model.biases[-1]
    timed("decoding", structure.best, scores)
    timed("decoding", structure.marginals, scores)
    return spent


def run_one_core(model: LinkingModel, texts: pa.Array, repeats: int) -> None:
    """Print texts a second of one core and the shares of the stages."""
    batches = batches_of(texts)
    found = [model.predict_batch(batch) for batch in batches]
    mentions = sum(len(part.column("mention_starts").flatten()) for part in found)
    print(f"{len(texts):,} texts, {mentions / len(texts):.2f} mentions found a text")

    def all_stages() -> float:
        return cpu_seconds(lambda: [model.predict_batch(batch) for batch in batches])

    total = medians({"all": all_stages}, repeats)["all"]
    print(f"one core: {len(texts) / total:,.0f} texts/s, {1e6 * total / len(texts):.0f} us a text")
    pieces = [text_pieces(batch, "text", PIECE_CHARACTERS) for batch in batches]
    stages = [run_stages(model, piece) for piece in chain.from_iterable(pieces)]
    sums = {name: sum(stage[name] for stage in stages) for name in stages[0]}
    sums["all else"] = total - sum(sums.values())
    print(f"{'stage':<14}{'us/text':>10}{'share':>8}")
    for name, spent in sums.items():
        print(f"{name:<14}{1e6 * spent / len(texts):>10.1f}{spent / total:>8.1%}")


def run_look_up(model: LinkingModel, texts: pa.Array, names: list[str], repeats: int) -> None:
    """Print texts a second of the look-up beside plain Python's."""
    units = units_of(texts)
    words, segments, inner = folded_words(units), units.segments.tolist(), units.inner.tolist()
    surfaces = folded_ngrams(words, segments) | {name.replace(" ", "").lower() for name in names}
    plain = PlainLexicon.build(model.knowledge, sorted(surfaces))
    table = model.knowledge.lexicon.surfaces
    if find_ngrams(units, table).tolist() != plain.find(words, segments, inner):
        raise SystemExit("plain Python and the kernel disagree about the n-grams")
    times = medians(
        {
            "plain Python": lambda: cpu_seconds(lambda: plain.find(words, segments, inner)),
            "corpusmill": lambda: cpu_seconds(lambda: find_ngrams(units, table)),
        },
        repeats,
    )
    print(f"\n{'look-up of n-grams':<24}{'texts/s':>14}{'ratio':>9}")
    for name, spent in times.items():
        ratio = times["plain Python"] / spent
        print(f"{name:<24}{len(texts) / spent:>14,.0f}{ratio:>8.1f}x")


def link(spark: SparkSession, model: LinkingModel, texts: Path, output: Path) -> None:
    """Link the texts of a folder as the job does, and write all as Parquet."""
    rows = whole(spark.read.parquet(str(texts)))
    append_to_texts(rows, predict_rows, model, OUTPUTS).write.parquet(str(output))


def check_output(spark: SparkSession, output: Path, rows: int) -> float:
    """Count the mentions a text, and see that all texts are there and were linked."""
    found = spark.read.parquet(str(output))
    sums = found.agg(F.count("*"), F.count(splits.ERROR), F.sum(F.size("mention_starts")))
    written, broken, mentions = sums.collect()[0]
    if written != rows or broken:
        raise SystemExit(f"{written:,} of {rows:,} texts were written, {broken:,} not linked")
    return float(mentions / rows)


def power_of(times: dict[int, float], smallest: int, rows: int) -> float:
    """Give the power of the number of texts that times grow with from the smallest on."""
    if rows == smallest:
        return math.nan
    return math.log(times[rows] / times[smallest]) / math.log(rows / smallest)


def run_spark(model: LinkingModel, sizes: dict[int, Path], master: str, folder: Path) -> None:
    """Print a line a size; the smallest is linked once before, so that workers are warm."""
    spark = session.start("linking", SparkSettings(master=master, shuffle_partitions=2))
    smallest = min(sizes)
    walls: dict[int, float] = {}
    used: dict[int, float] = {}
    for turn, rows in enumerate([smallest, *sizes]):
        output = folder / "linked"
        work = partial(link, spark, model, sizes[rows], output)
        with PeakMemory(os.getpid()) as memory:
            begin = time.perf_counter()
            used[rows] = all_cpu_seconds(work)
            walls[rows] = spent = time.perf_counter() - begin
        mentions = check_output(spark, output, rows)
        shutil.rmtree(output)
        if turn == 0:
            continue
        powers = "".join(f"{power_of(times, smallest, rows):>7.2f}" for times in (walls, used))
        peaks = "".join(f"{memory.peaks[kind] >> 20:>9,}" for kind in ("others", "driver", "jvm"))
        print(
            f"{master:<12}{rows:>12,}{spent:>10.1f}{rows / spent:>10,.0f}"
            f"{1e6 * used[rows] / rows:>9,.0f}{powers}{mentions:>10.2f}{peaks}",
            flush=True,
        )
    spark.stop()


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--forms", type=int, default=800_000, help="made-up surface forms")
    parser.add_argument("--model", type=Path, help="output of training, used if it is there")
    parser.add_argument("--texts", type=int, default=2 * BATCH, help="for one core")
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 40_000])
    parser.add_argument("--masters", nargs="+", default=["local[1]", "local[2]"])
    parser.add_argument("--repeats", type=int, default=3, help="medians are printed")
    arguments = parser.parse_args()
    real = arguments.data is not None and (arguments.data / "tweet_el").is_dir()
    data = arguments.data.resolve() if real else None
    tweets = read_tweets(data / "tweet_el" / "neel2016_train.jsonl.gz" if data else SAMPLE)
    names = made_up_names(arguments.forms)
    with tempfile.TemporaryDirectory(prefix="corpusmill-linking-") as name:
        folder = Path(name)
        trained = (arguments.model or folder / "model").resolve()
        if not (trained / "current.json").is_file():
            spent = seconds(lambda: train_model(data, names, folder, trained))
            print(f"the model was trained by the job in {spent:,.0f} s", flush=True)
        model = LinkingModel.load(storage.resolve(str(trained), "model"))
        lexicon = model.knowledge.lexicon
        print(
            f"{len(lexicon.surfaces.hashes):,} surface forms, {len(lexicon.entities):,} "
            f"candidates, {model.knowledge.entities.size:,} entities, "
            f"{model.knowledge.nbytes >> 20:,} MiB; {len(tweets):,} tweets",
            flush=True,
        )
        texts = pa.concat_arrays(blown_up(tweets, names, arguments.texts))
        run_one_core(model, texts, arguments.repeats)
        rows = candidates_of(texts[:512], model.knowledge, model.settings.candidates).features
        run_prediction(model.trees[0], rows, arguments.repeats)
        run_look_up(model, texts[:BATCH], names, arguments.repeats)
        sizes = {rows: folder / f"texts-{rows}" for rows in sorted(arguments.rows)}
        for rows, path in sizes.items():
            write_texts(tweets, names, rows, path)
        print(
            f"\n{'master':<12}{'texts':>12}{'s':>10}{'texts/s':>10}{'us/text':>9}{'powers':>14}"
            f"{'mentions':>10}"
            f"{'workers':>9}{'driver':>9}{'jvm':>9}  (MiB)"
        )
        for master in arguments.masters if sizes else []:
            run_spark(model, sizes, master, folder)


if __name__ == "__main__":
    main()
