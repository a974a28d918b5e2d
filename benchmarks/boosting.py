"""Structured boosting beside plain LightGBM, its inference beside plain Python, and two ranks.

    python -m benchmarks.boosting [--texts N] [--rounds N] [--trees N] [--repeats N]

Made-up texts with some ten candidate spans of two to six rows and 40 features each, the same for
everybody.

* A round of S-MART with gradient steps (inference, gradients, a tree) against a round of LightGBM
  with its built-in objective ``binary`` on the same rows, labels and bins, one thread each, in
  processor time; the difference of two trainings with few and many rounds, so set-up is not in it.
* Log Z, marginals and best outputs of lattices against plain Python that does the same sums with
  lists of floats, but no marginals; they have to agree.
* Prediction by ``--trees`` trees of 31 leaves against LightGBM's own, batches of 4,096 rows, one
  thread each, in processor time; they have to agree to the last bit.
* The same training as one and as two ranks of a barrier stage on ``local[2]``, in wall time, again
  as a difference.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from benchmarks._measure import cpu_seconds, medians, per_iteration
from corpusmill import session
from corpusmill.boosting.batches import FACTOR_ROWS, Examples, read_examples
from corpusmill.boosting.fitting import fit_factors
from corpusmill.boosting.kernels import best
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.structures import Factors
from corpusmill.boosting.training import boost, parameters
from corpusmill.boosting.trees import read_trees, scores_of
from corpusmill.corpora.schemas import FACTORS
from corpusmill.settings import SparkSettings
from corpusmill.types import Floats

WIDTH = 40
SETTINGS = LearnerSettings(structure="spans")
FEW = 10
ROWS = 4096


def make_texts(texts: int, seed: int) -> pa.RecordBatch:
    """Draw texts with nested and crossing candidates, and gold spans by a rule with noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(texts):
        tokens = int(rng.integers(5, 25))
        starts = np.sort(rng.integers(0, tokens, int(rng.integers(5, 16))))
        ends = np.minimum(starts + rng.integers(1, 4, len(starts)), tokens)
        sizes = rng.integers(2, 7, len(starts))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        x = rng.normal(0.0, 1.0, (offsets[-1], WIDTH))
        x[offsets[:-1], 1:] = 0.0
        worth = x[:, 1] * np.sign(x[:, 2]) + 0.5 * x[:, 3] - 1.0 + rng.normal(0.0, 0.3, len(x))
        gold, covered = [], np.zeros(tokens, bool)
        factor = np.repeat(np.arange(len(starts)), sizes)
        for row in np.setdiff1d(np.argsort(-worth), offsets[:-1], assume_unique=True):
            span = slice(starts[factor[row]], ends[factor[row]])
            if worth[row] > 0.0 and not covered[span].any():
                covered[span] = True
                gold.append(int(row))
        rows.append(
            {
                "example_id": f"t{number:07d}",
                "row_offsets": offsets,
                "starts": starts,
                "ends": ends,
                "features": x.reshape(-1),
                "gold": sorted(gold),
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=FACTOR_ROWS)


def built_in(examples: Examples, rounds: int) -> None:
    """Train LightGBM's own binary objective on the same rows."""
    common = parameters(SETTINGS, 13, examples.features)
    data = lgb.Dataset(examples.features, examples.gold.astype(float), params=common)
    lgb.train(common | {"objective": "binary"}, data, rounds)


def per_round(fit: Callable[[int], Any], rounds: int) -> float:
    """Return the processor time of a round."""
    fit(2)
    short = cpu_seconds(lambda: fit(FEW))
    return (cpu_seconds(lambda: fit(FEW + rounds)) - short) / rounds


def reference_spans(factors: Factors, scores: list[float], n: int) -> tuple[float, float]:
    """Compute log Z and the best sum of a text in plain Python, relative to Nil everywhere."""
    first, last = factors.factors[n : n + 2].tolist()
    starts, ends = factors.starts.tolist(), factors.ends.tolist()
    offsets = factors.rows.tolist()
    by_end: dict[int, list[int]] = {}
    for k in range(first, last):
        by_end.setdefault(ends[k], []).append(k)
    size = max(ends[first:last], default=0)
    total, best = [0.0], [0.0]
    for t in range(1, size + 1):
        sums, top = [total[t - 1]], best[t - 1]
        for k in by_end.get(t, []):
            for row in range(offsets[k] + 1, offsets[k + 1]):
                score = scores[row] - scores[offsets[k]]
                sums.append(total[starts[k]] + score)
                top = max(top, best[starts[k]] + score)
        high = max(sums)
        total.append(high + math.log(sum(math.exp(value - high) for value in sums)))
        best.append(top)
    return total[-1], best[-1]


def run_inference(examples: Examples, repeats: int, sample: int) -> None:
    """Print lattices a second."""
    structure, factors = examples.structure, examples.factors
    scores = np.random.default_rng(5).normal(0.0, 1.0, len(examples.gold))
    texts = len(factors.factors) - 1
    plain = scores.tolist()

    def reference() -> list[tuple[float, float]]:
        return [reference_spans(factors, plain, n) for n in range(min(sample, texts))]

    _, log_z = structure.marginals(scores)
    base = np.array([plain[row] for row in factors.rows[:-1]])
    nil = np.bincount(factors.example_of_factor(), base, minlength=texts)
    expected = np.array(reference())
    if not np.allclose(expected[:, 0], (log_z - nil)[: len(expected)], atol=1e-9):
        raise SystemExit("plain Python and the kernel disagree about log Z")
    found = best(structure.lattices, scores, structure.bases)[1]
    if not np.allclose(expected[:, 1], found[: len(expected)], atol=1e-9):
        raise SystemExit("plain Python and the kernel disagree about the best output")

    def ours() -> None:
        structure.marginals(scores)
        structure.best(scores)

    works = {
        "plain Python, no marginals": lambda: cpu_seconds(reference) / len(expected),
        "corpusmill, with marginals": lambda: cpu_seconds(ours) / texts,
    }
    times = medians(works, repeats)
    print(f"\n{'log Z and best output':<38}{'lattices/s':>14}{'ratio':>9}")
    for name, value in times.items():
        ratio = times["plain Python, no marginals"] / value
        print(f"{name:<38}{1.0 / value:>14,.0f}{ratio:>8.1f}x")


def run_rounds(examples: Examples, rounds: int, repeats: int) -> None:
    """Print the time of a round."""

    def smart(count: int) -> None:
        boost(examples, examples.features, SETTINGS, 13, count)

    times = medians(
        {
            "LightGBM, built-in objective": lambda: per_round(
                lambda n: built_in(examples, n), rounds
            ),
            "corpusmill, spans, logistic": lambda: per_round(smart, rounds),
        },
        repeats,
    )
    print(f"\n{'a round, one thread':<38}{'ms':>14}{'ratio':>9}")
    for name, value in times.items():
        ratio = value / times["LightGBM, built-in objective"]
        print(f"{name:<38}{1e3 * value:>14,.1f}{ratio:>8.2f}x")


def run_prediction(text: str, features: Floats, repeats: int) -> None:
    """Print the time of a row, and of reading the trees."""
    batches = [features[begin : begin + ROWS] for begin in range(0, len(features), ROWS)]
    booster = lgb.Booster(model_str=text)

    def plain() -> list[Any]:
        return [booster.predict(batch, raw_score=True, num_threads=1) for batch in batches]

    def ours() -> list[Floats]:
        return [scores_of(text, batch) for batch in batches]

    for expected, found in zip(plain(), ours(), strict=True):
        if not np.array_equal(expected, found):
            raise SystemExit("LightGBM and corpusmill disagree about scores")
    works = {
        "LightGBM": lambda: cpu_seconds(plain) / len(features),
        "corpusmill": lambda: cpu_seconds(ours) / len(features),
        "corpusmill, reading the trees": lambda: cpu_seconds(lambda: read_trees.__wrapped__(text)),
    }
    times = medians(works, repeats)
    reading = times.pop("corpusmill, reading the trees")
    print(
        f"\nprediction, {len(features):,} rows of {features.shape[1]} features, "
        f"{booster.num_trees()} trees (read in {1e3 * reading:,.0f} ms)"
    )
    print(f"{'one thread':<38}{'us a row':>14}{'ratio':>9}")
    for name, value in times.items():
        print(f"{name:<38}{1e6 * value:>14,.2f}{times['LightGBM'] / value:>8.2f}x")


def run_ranks(batch: pa.RecordBatch, rounds: int, repeats: int) -> None:
    """Print the time of a round on one rank and on two."""
    spark = session.start("boosting", SparkSettings(master="local[2]", shuffle_partitions=2))
    rows = spark.createDataFrame(pa.Table.from_batches([batch]).cast(_spark_schema(batch)))

    def fit(part: DataFrame) -> Callable[[int], Any]:
        return lambda count: fit_factors(part, SETTINGS.model_copy(update={"trees": count}))

    parts = {f"{ranks} rank(s)": _cached(rows, ranks) for ranks in (1, 2)}

    def timed(part: DataFrame) -> Callable[[], float]:
        return lambda: per_iteration(fit(part), FEW, FEW + rounds)

    times = medians({name: timed(part) for name, part in parts.items()}, repeats)
    print(f"\n{'a round on local[2]':<38}{'ms':>14}{'speed-up':>10}")
    for name, value in times.items():
        print(f"{name:<38}{1e3 * value:>14,.1f}{times['1 rank(s)'] / value:>9.2f}x")
    spark.stop()


def _spark_schema(batch: pa.RecordBatch) -> pa.Schema:
    kept = {field.name for field in FACTORS}
    return pa.schema([field for field in batch.schema if field.name in kept])


def _cached(rows: DataFrame, partitions: int) -> DataFrame:
    part = rows.repartition(partitions, "example_id").cache()
    part.count()
    return part


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=100, help="that are timed")
    parser.add_argument("--trees", type=int, default=300, help="that predict")
    parser.add_argument("--repeats", type=int, default=3, help="medians are printed")
    parser.add_argument("--sample", type=int, default=500, help="texts for plain Python")
    arguments = parser.parse_args()
    batch = make_texts(arguments.texts, 1)
    examples = read_examples(batch, SETTINGS.structure, WIDTH)
    shape: Floats = examples.features
    print(f"{arguments.texts:,} texts, {len(shape):,} rows of {WIDTH} features")
    run_inference(examples, arguments.repeats, arguments.sample)
    trees = boost(examples, examples.features, SETTINGS, 13, arguments.trees).text
    run_prediction(trees, examples.features[: 10 * ROWS], arguments.repeats)
    run_rounds(examples, arguments.rounds, arguments.repeats)
    run_ranks(batch, arguments.rounds, arguments.repeats)


if __name__ == "__main__":
    main()
