"""The coreference benchmarks: the long document is a sound one, and mixing is that of Spark."""

from __future__ import annotations

import numpy as np

from benchmarks.coreference import long_document
from benchmarks.coreference_regimes import SEED, learn
from corpusmill.coreference.documents import read_batch
from corpusmill.coreference.learning import Progress
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.preparation import Preparation
from corpusmill.coreference.settings import LearnerSettings
from tests.coreference.samples import random_batch


def test_the_long_document_has_the_tokens_and_clusters_of_its_parts():
    batch = random_batch(3, documents=4)
    tokens = len(batch.column("words").flatten())
    long = long_document(batch, 2 * tokens)
    row = long.to_pylist()[0]
    assert row["words"] == 2 * batch.column("words").flatten().to_pylist()
    read = read_batch(long, "english")
    apart = read_batch(batch, "english")
    assert len(read.gold.starts) == 2 * len(apart.gold.starts)
    heads = np.concatenate([apart.constituents.heads, apart.constituents.heads + tokens])
    np.testing.assert_array_equal(read.constituents.heads, heads)
    clusters = len(set(zip(np.repeat([0, 1, 2, 3], np.diff(apart.gold.offsets)),
                           apart.gold.labels, strict=True)))  # fmt: skip
    assert len(set(read.gold.labels.tolist())) == 2 * clusters


def test_one_partition_is_training_on_arrays():
    batch = random_batch(5, documents=6)
    settings = LearnerSettings(bits=12, iterations=2)
    found: list[Progress] = []

    def on_pass(progress: Progress, preparation: Preparation) -> None:
        found.append(progress)

    seconds: list[float] = []
    learn(batch, settings, 1, on_pass, seconds)
    model = CoreferenceModel.fit(batch, settings, SEED)
    np.testing.assert_array_equal(found[-1].average(), model.weights)
    assert len(seconds) == 2
