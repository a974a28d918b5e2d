"""The trees that the benchmarks of `fragments` share: questions, and pairs of semantic roles."""

from __future__ import annotations

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
from corpusmill.fragments.srl import boundary_examples
from corpusmill.fragments.tasks.examples import first_pairs
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.settings import QuarantineSettings
from corpusmill.types import AnyArray

TRAIN_DOCUMENTS = [f"train.{section:02}" for section in range(2, 7)]


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


def boundaries(spark: SparkSession, data: Path, pairs: int) -> DataFrame:
    """Read the first so many pairs of sections 02 to 06 of CoNLL-2005."""
    source = ConllSettings(
        kind="conll2005", path=str(data / "conll2005" / "train"), documents=TRAIN_DOCUMENTS
    )
    sentences = read_propositions(spark, source, QuarantineSettings()).records
    return first_pairs(sentences, pairs)


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
