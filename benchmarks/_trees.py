"""The trees that the benchmarks of `fragments` share: questions, and pairs of semantic roles."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from corpusmill import splits
from corpusmill.corpora.propositions import ConllSettings, read_propositions
from corpusmill.corpora.schemas import TREES
from corpusmill.corpora.trees import TreesSettings, read_trees
from corpusmill.fragments.batches import productions_of, read_forests
from corpusmill.fragments.examples import Examples
from corpusmill.fragments.fitting import fit_trees
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.srl import boundary_examples
from corpusmill.fragments.tasks.examples import first_pairs
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.settings import QuarantineSettings
from corpusmill.types import AnyArray

TRAIN_DOCUMENTS = [f"train.{section:02}" for section in range(2, 7)]
BOUNDARY_CLASSES = ["+1", "-1"]
BOUNDARY = LearnerSettings(cost=3.0, linear_cost=4.0, maxexp=1)
"""As in conf/fragments/srl_boundary.yaml, but for the splits."""


class Trees(NamedTuple):
    """Trees on arrays.

    Attributes
    ----------
    name : str
    batch : pa.RecordBatch
        Of TREES.
    examples : Examples
    codes : int64, shape (examples,)
        The classes, in the order of ``classes``.
    classes : list of str
    vocabulary : Vocabulary
    """

    name: str
    batch: pa.RecordBatch
    examples: Examples
    codes: AnyArray
    classes: list[str]
    vocabulary: Vocabulary

    def recoded(self, other: Trees) -> Examples:
        """Give the trees of others by the numbers of these labels and productions."""
        forests = read_forests(other.batch, self.vocabulary, len(self.examples.trees))
        return Examples(forests, self.vocabulary.productions)

    @property
    def nodes(self) -> float:
        """Nodes a tree, on average."""
        forest = self.examples.trees[0]
        return len(forest.labels) / (len(forest.offsets) - 1)


def questions(spark: SparkSession, data: Path, part: str = "train") -> DataFrame:
    """Read the questions of trec_qc_parsed with their Stanford trees."""
    source = TreesSettings(
        path=str(data / "trec_qc_parsed" / f"{part}.tsv.gz"),
        header=True,
        target="coarse",
        trees=["stanford_tree"],
        example_id="idx",
    )
    return read_trees(spark, source, QuarantineSettings()).records


def boundaries(
    spark: SparkSession, data: Path, pairs: int, documents: list[str] | None = None
) -> DataFrame:
    """Read the first so many pairs of documents of CoNLL-2005, by default sections 02 to 06."""
    source = ConllSettings(
        kind="conll2005",
        path=str(data / "conll2005" / "train"),
        documents=documents or TRAIN_DOCUMENTS,
    )
    sentences = read_propositions(spark, source, QuarantineSettings()).records
    return first_pairs(sentences, pairs)


class Fit(NamedTuple):
    """What a linearised training of boundaries took and gave.

    Attributes
    ----------
    stages : dict of str to float
        Seconds of wall time.
    fragments : int
    f1 : float
        In percent.
    """

    stages: dict[str, float]
    fragments: int
    f1: float

    @property
    def seconds(self) -> float:
        """Give the seconds of all stages."""
        return sum(self.stages.values())


def fit_boundaries(rows: DataFrame, test: Trees, settings: LearnerSettings) -> Fit:
    """Train on rows, which the caller has cached, and score the test's pairs."""
    marks: list[tuple[str, float]] = []
    model = fit_trees(
        rows, settings, classes=BOUNDARY_CLASSES,
        on_stage=lambda name: marks.append((name, time.perf_counter())),
    )  # fmt: skip
    marks.append(("end", time.perf_counter()))
    spent = {name: after - before for (name, before), (_, after) in itertools.pairwise(marks)}
    scores = model.scores(model.space.vectors(test.batch))
    gold = test.codes == test.classes.index(BOUNDARY_CLASSES[0])
    return Fit(spent, sum(model.space.sizes), 100 * f1_of(scores[:, 0] > 0, gold))


def on_arrays(name: str, rows: DataFrame, seed: int = 13) -> Trees:
    """Bring rows to this process, in an order of chance that is always the same."""
    table = rows.toArrow().sort_by("example_id")
    order = np.random.default_rng(seed).permutation(table.num_rows)
    (batch,) = table.take(pa.array(order)).combine_chunks().to_batches()
    found = productions_of(batch)["production"]
    vocabulary = Vocabulary.of(found)
    forests = read_forests(batch, vocabulary, 1)
    classes = sorted(set(batch["target"].to_pylist()))
    codes = np.array([classes.index(target) for target in batch["target"].to_pylist()])
    examples = Examples(forests, vocabulary.productions)
    return Trees(name, batch, examples, codes, classes, vocabulary)


def boundaries_of_test(spark: SparkSession, data: Path) -> DataFrame:
    """Read the pairs of section 24."""
    source = ConllSettings(kind="conll2005", path=str(data / "conll2005" / "devel"))
    sentences = read_propositions(spark, source, QuarantineSettings()).records
    return splits.map_partitions(sentences, boundary_examples, TREES)


def f1_of(decided: AnyArray, gold: AnyArray) -> float:
    """Give 2 |decided and gold| / (|decided| + |gold|)."""
    return float(2 * np.count_nonzero(decided & gold) / max(1, decided.sum() + gold.sum()))
