"""Tree kernels on one core: rows on shared subtrees beside the pairwise loop of the C packages.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.tree_kernels

The pairwise loop is plainer than SVM-Light-TK (Moschitti 2006), which sorts nodes by production:
all nodes of both trees are paired, Delta of those of equal production from their children's in a
memo; here it is compiled by numba from the same arrays. SVM-Light-TK's own figures, in C and from
another machine, stand beside it.
An evaluation is one K(T, T') of normalised trees; processor time of one thread.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from numba import njit
from scipy.sparse import csr_array

from benchmarks._measure import cpu_seconds, medians
from benchmarks._trees import Trees, boundaries, on_arrays, questions
from corpusmill import session
from corpusmill.fragments.corpus import Corpus
from corpusmill.fragments.exact import KernelMachines, exact_scores
from corpusmill.fragments.examples import self_norms, take
from corpusmill.fragments.forests import Interned
from corpusmill.fragments.kernels import build_index, tree_rows
from corpusmill.fragments.learning import mine_machines, train_machines
from corpusmill.fragments.model import Calibration, FragmentsModel, Space
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.trie import Fragments
from corpusmill.settings import SparkSettings

DECAY = 0.4
BATCH = 4_096
C_FIGURES = {"questions": (1.3, 20.0), "boundaries": (3.1, 40.0)}
"""Millions of evaluations a second: SVM-Light-TK in C on another machine, and our target."""


@njit(cache=True, error_model="numpy")
def pairwise(productions, arities, offsets, decay, first, last, memo):  # type: ignore[no-untyped-def]
    """Sum K(T, T') over the trees ``first`` to ``last`` and all trees, pair by pair."""
    total = 0.0
    starts = _child_starts(arities, offsets)
    for s in range(first, last):
        for t in range(len(offsets) - 1):
            for n in range(offsets[s + 1] - 1, offsets[s] - 1, -1):
                for m in range(offsets[t + 1] - 1, offsets[t] - 1, -1):
                    delta = 0.0
                    if productions[n] == productions[m] and productions[n] >= 0:
                        delta = decay
                        for i in range(arities[n]):
                            a, b = starts[n, i] - offsets[s], starts[m, i] - offsets[t]
                            delta *= 1.0 + memo[a, b]
                        total += delta
                    memo[n - offsets[s], m - offsets[t]] = delta
    return total


@njit(cache=True, error_model="numpy")
def _child_starts(arities, offsets):  # type: ignore[no-untyped-def]
    """Give the place of each child of each node."""
    starts = np.zeros((len(arities), max(1, arities.max())), np.int64)
    stack = np.empty(len(arities) + 1, np.int64)
    for t in range(len(offsets) - 1):
        top = 0
        for n in range(offsets[t + 1] - 1, offsets[t] - 1, -1):
            for i in range(arities[n]):
                starts[n, i] = stack[top - 1 - i]
            top -= arities[n]
            stack[top] = n
            top += 1
    return starts


def evaluations(trees: Trees, count: int, some: int, repeats: int) -> dict[str, float]:
    """Give millions of evaluations a second of ours and of the pairwise loop."""
    examples = take(trees.examples, np.arange(count))
    interned = examples.interned()[0]
    forest = examples.trees[0]
    productions = interned.subtrees.productions[interned.nodes]
    widest = int(np.diff(forest.offsets).max())
    memo = np.zeros((widest, widest))
    index = build_index(interned)

    def ours() -> float:
        return cpu_seconds(lambda: _all_rows(index, interned))

    def theirs() -> float:
        return cpu_seconds(
            lambda: pairwise(productions, forest.arities, forest.offsets, DECAY, 0, some, memo)
        )

    spent = medians({"ours": ours, "pairwise": theirs}, repeats)
    rows = _all_rows(index, interned, some)
    total = pairwise(productions, forest.arities, forest.offsets, DECAY, 0, some, memo)
    np.testing.assert_allclose(rows, total, rtol=1e-9)
    return {
        "ours": count * count / spent["ours"] / 1e6,
        "pairwise": some * count / spent["pairwise"] / 1e6,
    }


def _all_rows(index: object, interned: Interned, some: int | None = None) -> float:
    """Compute rows of normalised kernels, a block at a time; give the sum of the plain ones."""
    norms = self_norms(interned, DECAY)
    total, block = 0.0, 500
    for first in range(0, some or len(norms), block):
        last = min(first + block, some or len(norms))
        offsets = interned.offsets[first : last + 1]
        rows = tree_rows("sst", index, interned._replace(offsets=offsets), DECAY)  # type: ignore[arg-type]
        total += float(rows.sum())
        rows /= norms[first:last, None]
        rows /= norms
    return total


def training_and_scoring(trees: Trees, count: int, scored: int, repeats: int) -> dict[str, float]:
    """Train on the first trees; score the last ones as a job does, from Arrow batches."""
    settings = LearnerSettings(decay=DECAY, cost=1.0, maxexp=1)
    machine = trees.classes.index("+1")
    part = take(trees.examples, np.arange(count))
    codes, ones = trees.codes[:count], np.ones(count)
    trained = train_machines(part, codes, ones, [machine], settings)
    exact = [KernelMachines.of(trained, part, settings)]
    fragments = mine_machines(trained, settings)[0][0]
    linear = linear_model(trees, fragments, settings)
    corpus = Corpus(tuple(trees.classes), trees.vocabulary, 1, 0)
    test = trees.batch.slice(trees.batch.num_rows - scored)
    batches = [test.slice(begin, BATCH) for begin in range(0, scored, BATCH)]

    def by_kernel() -> None:
        for batch in batches:
            exact_scores(exact, corpus.examples(batch))

    def by_fragments() -> None:
        for batch in batches:
            linear.scores(linear.space.vectors(batch))

    works = {
        "train": lambda: cpu_seconds(
            lambda: train_machines(part, codes, ones, [machine], settings)
        ),
        "exact": lambda: cpu_seconds(by_kernel),
        "linear": lambda: cpu_seconds(by_fragments),
    }
    spent = medians(works, repeats)
    return {
        "support_vectors": float(np.count_nonzero(trained.beta)),
        "distinct": float(len(trained.rows)),
        "fragments": float(len(fragments.weights)),
        "train": spent["train"],
        "exact": scored / spent["exact"],
        "linear": scored / spent["linear"],
    }


def linear_model(trees: Trees, fragments: Fragments, settings: LearnerSettings) -> FragmentsModel:
    """Give a model of one machine; its weights, by which speed does not change, are by chance."""
    size = len(fragments.weights)
    weights = np.random.default_rng(0).normal(size=size)
    nothing = np.full(1, np.nan)
    return FragmentsModel(
        tuple(trees.classes),
        Space(trees.vocabulary, (fragments,), 0, settings),
        csr_array((weights, np.arange(size), [0, size]), shape=(1, size)),
        np.zeros(1),
        Calibration(nothing, nothing),
        np.ones(size, np.int64),
        np.ones(1, np.bool_),
    )


def main() -> None:
    """Run all and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--trees", type=int, default=5_000, help="of the kernel's rows")
    parser.add_argument("--train", type=int, default=10_000, help="boundary trees to train on")
    parser.add_argument("--scored", type=int, default=50_000, help="boundary trees to score")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.data is None:
        raise SystemExit("CORPUSMILL_DATA or --data must name the corpora")
    data = arguments.data.resolve()
    spark = session.start("benchmark", SparkSettings(master="local[2]"))
    asked = arguments.train + arguments.scored
    corpora = [
        on_arrays("questions", questions(spark, data)),
        on_arrays("boundaries", boundaries(spark, data, asked)),
    ]
    spark.stop()
    print(
        f"{'trees':<12}{'nodes':>7}{'ours M/s':>10}{'pairwise':>10}{'ratio':>8}{'C M/s':>8}"
        f"{'target':>8}"
    )
    for trees in corpora:
        found = evaluations(trees, arguments.trees, 200, arguments.repeats)
        told, target = C_FIGURES[trees.name]
        ratio = found["ours"] / found["pairwise"]
        print(
            f"{trees.name:<12}{trees.nodes:>7.1f}{found['ours']:>10.1f}{found['pairwise']:>10.2f}"
            f"{ratio:>8.1f}{told:>8.1f}{target:>8.0f}"
        )
    found = training_and_scoring(corpora[1], arguments.train, arguments.scored, arguments.repeats)
    print(
        f"\n{arguments.train:,} boundary trees ({found['distinct']:,.0f} distinct): exact training "
        f"{found['train']:.2f} s, {found['support_vectors']:,.0f} support vectors\n"
        f"scoring: kernel by subtrees {found['exact']:,.0f} trees/s; "
        f"{found['fragments']:,.0f} fragments {found['linear']:,.0f} trees/s "
        f"({found['linear'] / found['exact']:.1f} times)"
    )


if __name__ == "__main__":
    main()
