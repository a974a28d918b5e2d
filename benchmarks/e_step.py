"""Speed of the E-step, and of an EM iteration, beside plain Python, tomotopy and Spark MLlib.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.e_step [--documents N] [--repeats N]

Corpus: the training documents of Reuters-21578 (ModApte) with one of the ten largest topics,
all words, title and paragraphs as instances; a generated corpus of that size without the data.
Everyone has ten topics and the same tokens. Ours runs with its defaults, and once more with
classes outside a document's labels forbidden, which is what Labeled LDA does.

* plain Python: the same updates in loops, on the first documents; it has to agree with ours.
* tomotopy: ``LLDAModel`` with the documents' labels, one worker; a Gibbs iteration against
  one of our EM iterations (E-step and M-step) in one process.
* Spark MLlib: ``LDA`` with both optimizers on cached vectors of whole documents; the faster one
  against our ``fit_patterns`` on cached rows, both at local[2] with as many partitions. An
  iteration is the difference of two fits with few and many iterations over their number, so
  that neither's set-up counts.

The first two are measured in processor time of the one process, the last in wall time.
"""

from __future__ import annotations

import argparse
import importlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.ml.clustering import LDA
from pyspark.ml.linalg import Vectors
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from scipy.special import psi

from benchmarks._corpus import DOCUMENTS, Corpus, first, load, pattern_table
from benchmarks._measure import cpu_seconds, medians, per_iteration
from corpusmill import session
from corpusmill.alignment.estimator import fit_patterns
from corpusmill.alignment.kernels import Inference, infer
from corpusmill.alignment.learning import (
    Parameters,
    blank_instances,
    e_step_sums,
    expectation_maximisation,
    inference,
    m_step,
    start_parameters,
    start_sums,
    sum_over,
)
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.settings import SparkSettings
from corpusmill.types import Patterns

SOFT = LearnerSettings(tol=0.0)
FORBIDDEN = LearnerSettings(tol=0.0, label_sparsity=math.inf)
WARM_UP = 5
GIBBS = 20
FEW, MANY = 3, 13
PARTITIONS = 2

Phi = list[list[float]]


def reference(
    patterns: Patterns, parameters: Parameters, how: Inference
) -> tuple[list[Phi], list[list[float]]]:
    """Run the E-step of the quadratic bound in plain Python: phi and gamma of each pattern.

    Instances of weight one, labelled patterns, no label sparsity.
    """
    log_b, alpha, lam = (
        table.tolist() for table in (parameters.instances.arrays()["log_b"], *parameters[:2])
    )
    offsets, labels = patterns.offsets.tolist(), patterns.labels.tolist()
    bounds, ids, counts = (part.tolist() for part in patterns.bags)
    all_phi, all_gamma = [], []
    for n, y in enumerate(labels):
        loglik = []
        for m in range(offsets[n], offsets[n + 1]):
            row = [0.0] * len(alpha)
            for j in range(bounds[m], bounds[m + 1]):
                for c, value in enumerate(log_b[ids[j]]):
                    row[c] += counts[j] * value
            loglik.append(row)
        phi, gamma = reference_pattern(loglik, y, alpha, lam, how)
        all_phi.append(phi)
        all_gamma.append(gamma)
    return all_phi, all_gamma


def reference_pattern(
    loglik: Phi, y: list[bool], alpha: list[float], lam: list[float], how: Inference
) -> tuple[Phi, list[float]]:
    """Update xi, each phi_m in turn, and gamma, until gamma rests."""
    classes, size = range(len(alpha)), len(loglik)
    phi = [[1.0 / len(alpha) for _ in classes] for _ in loglik]
    total = [sum(row[c] for row in phi) for c in classes]
    gamma = [alpha[c] + total[c] for c in classes]
    for _ in range(how.max_iter):
        slope, curve = [0.0 for _ in classes], [0.0 for _ in classes]
        for c in classes:
            spread = sum(row[c] * (1.0 - row[c]) for row in phi)
            xi = abs(lam[c]) * math.sqrt(total[c] ** 2 + spread) / size
            varsigma = 0.125 if xi < 1e-6 else math.tanh(xi / 2.0) / (4.0 * xi)
            slope[c] = float(psi(gamma[c])) + (y[c] - 0.5) * lam[c] / size
            curve[c] = varsigma * (lam[c] / size) ** 2
        for row, likely in zip(phi, loglik, strict=True):
            scores = [
                slope[c] + likely[c] - curve[c] * (2.0 * (total[c] - row[c]) + 1.0) for c in classes
            ]
            top = max(scores)
            shares = [math.exp(score - top) for score in scores]
            norm = sum(shares)
            for c in classes:
                total[c] += shares[c] / norm - row[c]
                row[c] = shares[c] / norm
        before, gamma = gamma, [alpha[c] + total[c] for c in classes]
        if sum(abs(gamma[c] - before[c]) for c in classes) < how.tol * size:
            break
    return phi, gamma


def check_reference(patterns: Patterns, parameters: Parameters, how: Inference) -> None:
    """End the benchmark unless the reference agrees with the kernel."""
    loglik = parameters.instances.log_likelihoods(patterns.bags)
    found = infer(patterns, loglik, *parameters[:2], how)
    phi, gamma = reference(patterns, parameters, how)
    flat = [row for pattern in phi for row in pattern]
    if not np.allclose(found.phi, flat, rtol=0, atol=1e-8):
        raise SystemExit("plain Python and the kernel disagree about phi")
    if not np.allclose(found.gamma, gamma, rtol=1e-8, atol=0):
        raise SystemExit("plain Python and the kernel disagree about gamma")


def warm_parameters(corpus: Corpus, settings: LearnerSettings) -> Parameters:
    """Give the parameters after some iterations, as an E-step in mid-training meets them."""
    blank = blank_instances(settings, len(corpus.classes), len(corpus.words))
    start = start_parameters(start_sums(corpus.patterns, len(corpus.classes), blank), settings)
    few = settings.model_copy(update={"max_iter": WARM_UP})
    return expectation_maximisation(sum_over([corpus.patterns]), start, few)[0]


def iteration(
    patterns: Patterns, parameters: Parameters, settings: LearnerSettings
) -> Callable[[], float]:
    """Return the timed EM iteration: E-step and M-step from the same parameters each time."""

    def work() -> None:
        m_step(e_step_sums(patterns, parameters, inference(settings)), parameters, settings)

    return lambda: cpu_seconds(work)


def tomotopy_iteration(corpus: Corpus) -> Callable[[], float]:
    """Return the timed Gibbs iteration of Labeled LDA after a warm-up."""
    tomotopy = importlib.import_module("tomotopy")
    model = tomotopy.LLDAModel(k=len(corpus.classes), seed=13)
    words = np.array(corpus.words, dtype=object)
    bags = corpus.documents
    for n, flags in enumerate(corpus.patterns.labels):
        part = slice(bags.offsets[n], bags.offsets[n + 1])
        tokens = np.repeat(words[bags.ids[part]], bags.counts[part].astype(int))
        model.add_doc(tokens.tolist(), labels=[corpus.classes[c] for c in np.flatnonzero(flags)])

    def work() -> None:
        model.train(GIBBS, workers=1, parallel=tomotopy.ParallelScheme.NONE)

    work()
    if model.k != len(corpus.classes):
        raise SystemExit(f"tomotopy has {model.k} topics, not {len(corpus.classes)}")
    return lambda: cpu_seconds(work) / GIBBS


def document_vectors(spark: SparkSession, corpus: Corpus) -> DataFrame:
    """Give MLlib's view of the documents: one sparse vector each."""
    bags, size = corpus.documents, len(corpus.words)
    rows = [
        (Vectors.sparse(size, bags.ids[a:b].tolist(), bags.counts[a:b].tolist()),)
        for a, b in zip(bags.offsets[:-1], bags.offsets[1:], strict=True)
    ]
    return spark.createDataFrame(rows, ["features"])


def cached(rows: DataFrame) -> DataFrame:
    """Spread over the partitions, cache and read once."""
    rows = rows.repartition(PARTITIONS).cache()
    rows.count()
    return rows


def copied(rows: DataFrame, copies: int) -> DataFrame:
    """Give every row so many times."""
    return rows.withColumn("copy", F.explode(F.sequence(F.lit(1), F.lit(copies)))).drop("copy")


def spark_iterations(corpus: Corpus, copies: int) -> dict[str, Callable[[], float]]:
    """Return the timed iterations of MLlib and of ours over so many copies of the corpus."""
    spark = session.start("e-step", SparkSettings(master="local[2]", shuffle_partitions=2))
    vectors = cached(copied(document_vectors(spark, corpus), copies))
    rows = cached(copied(spark.createDataFrame(pattern_table(corpus)), copies))

    def mllib(optimizer: str) -> Callable[[int], Any]:
        topics = LDA(k=len(corpus.classes), optimizer=optimizer, subsamplingRate=1.0, seed=13)
        return lambda count: topics.setMaxIter(count).fit(vectors)

    def ours(settings: LearnerSettings) -> Callable[[int], Any]:
        def fit(count: int) -> Any:
            more = settings.model_copy(update={"max_iter": count})
            return fit_patterns(rows, more, corpus.classes, corpus.words)

        return fit

    fits = {
        "MLlib LDA, online": mllib("online"),
        "MLlib LDA, EM": mllib("em"),
        "corpusmill": ours(SOFT),
        "corpusmill, other classes forbidden": ours(FORBIDDEN),
    }

    def timed(fit: Callable[[int], Any]) -> Callable[[], float]:
        return lambda: per_iteration(fit, FEW, MANY)

    return {name: timed(fit) for name, fit in fits.items()}


def report(title: str, times: dict[str, float], documents: int, base: str) -> None:
    """Print documents a second an iteration, and each as a multiple of ``base``."""
    print(f"\n{title}\n{'':<38}{'ms':>10}{'documents/s':>14}{'ratio':>9}")
    for name, value in times.items():
        rate, ratio = documents / value, times[base] / value
        print(f"{name:<38}{value * 1e3:>10,.1f}{rate:>14,.0f}{ratio:>8.2f}x")


def run_reference(corpus: Corpus, sample: int, repeats: int) -> None:
    """Compare with plain Python on the first documents."""
    parameters = warm_parameters(corpus, SOFT)
    part = first(corpus.patterns, min(sample, len(corpus.patterns.labels)))
    how = inference(SOFT)
    check_reference(part, parameters, how)

    def ours() -> None:
        loglik = parameters.instances.log_likelihoods(part.bags)
        infer(part, loglik, *parameters[:2], how)

    works = {
        "plain Python": lambda: cpu_seconds(lambda: reference(part, parameters, how)),
        "corpusmill": lambda: cpu_seconds(ours),
    }
    times = medians(works, repeats)
    patterns, instances = len(part.labels), len(part.weights)
    report(f"E-step of {patterns} patterns, one core", times, patterns, "plain Python")
    for name, value in times.items():
        print(f"{name:<38}{patterns / value:,.0f} patterns/s, {instances / value:,.0f} instances/s")


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help="at the most")
    parser.add_argument("--sample", type=int, default=200, help="documents for plain Python")
    parser.add_argument("--copies", type=int, default=1, help="of the documents, in Spark")
    parser.add_argument("--repeats", type=int, default=5, help="repetitions; medians are printed")
    arguments = parser.parse_args()
    corpus = load(arguments.data, arguments.documents)
    documents = len(corpus.patterns.labels)
    print(corpus.sizes)
    run_reference(corpus, arguments.sample, arguments.repeats)

    alone = {
        "tomotopy LabeledLDA": tomotopy_iteration(corpus),
        "corpusmill": iteration(corpus.patterns, warm_parameters(corpus, SOFT), SOFT),
        "corpusmill, other classes forbidden": iteration(
            corpus.patterns, warm_parameters(corpus, FORBIDDEN), FORBIDDEN
        ),
    }
    times = medians(alone, arguments.repeats)
    report("An iteration in one process, one core", times, documents, "tomotopy LabeledLDA")
    instances = len(corpus.patterns.weights)
    print(f"corpusmill: {instances / times['corpusmill']:,.0f} instances/s")

    times = medians(spark_iterations(corpus, arguments.copies), arguments.repeats)
    better = min((name for name in times if name.startswith("MLlib")), key=times.__getitem__)
    documents *= arguments.copies
    report(f"An iteration in Spark, local[2], {PARTITIONS} partitions", times, documents, better)


if __name__ == "__main__":
    main()
