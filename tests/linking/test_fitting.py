"""Two stages over partitions: resumed anywhere they end alike; biases and runners-up."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame

from corpusmill.boosting.fitting import Progress
from corpusmill.evaluation.linking import LinkCounts
from corpusmill.linking.fitting import BIASES, Fitted, best_bias, curve, fit_links, with_bias
from corpusmill.linking.knowledge import load_knowledge
from corpusmill.linking.model import runner_up
from corpusmill.linking.placement import whole as whole_of
from corpusmill.linking.settings import LearnerSettings
from tests.estimators import linked_rows, linking_knowledge

SETTINGS = LearnerSettings(
    trees=6, step="gradient", min_data_in_leaf=3, stages=2, feature_fraction=1.0
)
BLOCK = 2


class StoppedError(Exception):
    """Stands for whatever ends a job."""


@pytest.fixture(scope="module")
def rows(spark: Any) -> DataFrame:
    return linked_rows(spark).where("mention_starts is not null").repartition(2).persist()


def fit(rows: DataFrame, last: tuple[int, int] | None = None, starts: Any = ()) -> Any:
    """Train; ``last`` is the stage and the number of trees after which everything ends."""
    blocks: dict[int, list[Progress]] = {0: [], 1: []}

    def on_block(stage: int, done: Progress) -> None:
        blocks[stage].append(done)
        if (stage, len(done.losses)) == last:
            raise StoppedError

    try:
        knowledge = load_knowledge(linking_knowledge())
        texts = whole_of(rows)
        found = fit_links(texts, knowledge, SETTINGS, 3, texts, BLOCK, on_block, starts)
    except StoppedError:
        found = None
    return found, blocks


@pytest.fixture(scope="module")
def whole(rows: DataFrame) -> Fitted:
    found, blocks = fit(rows)
    assert [len(each) for each in blocks.values()] == [3, 3]
    assert all(blocks[stage][-1].trees == found.model.trees[stage] for stage in (0, 1))
    return found


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("last", [(0, 4), (0, 6), (1, 2)])
def test_training_goes_on_within_and_between_stages(
    rows: DataFrame, whole: Fitted, last: tuple[int, int]
) -> None:
    stopped, blocks = fit(rows, last)
    assert stopped is None
    starts = [done[-1] for done in blocks.values() if done]
    found, further = fit(rows, starts=starts)
    assert sum(len(each) for each in further.values()) == 6 - sum(map(len, blocks.values()))
    assert found.model.biases == whole.model.biases
    assert found.model.trees == whole.model.trees


@pytest.mark.slow
@pytest.mark.spark
def test_curves_count_what_the_model_finds(rows: DataFrame, whole: Fitted) -> None:
    batch = rows.toArrow().combine_chunks().to_batches()[0]
    model = whole.model
    for number in (0, 12, 24):
        found = with_bias(model, float(BIASES[number])).predict_batch(batch.select(["text"]))
        right = predicted = gold = 0
        for given, said in zip(batch.to_pylist(), found.to_pylist(), strict=True):
            names = ("mention_starts", "mention_ends", "mention_entities")
            truth = list(zip(*(given[name] for name in names), strict=True))
            links = list(zip(*(said[name] for name in names), strict=True))
            right += sum(any(a < d and c < b and e == f for c, d, f in truth) for a, b, e in links)
            predicted += len(links)
            gold += sum(entity is not None for _, _, entity in truth)
        counts = whole.curves[-1]
        assert counts.right[number] == right
        assert counts.predicted[number] == predicted
        assert counts.gold[number] == gold


def test_of_equally_good_biases_the_one_nearest_to_zero_is_taken() -> None:
    right = np.array([1.0, 4.0, 4.0, 4.0, 2.0])
    counts = LinkCounts(right, np.full(5, 5.0), right, np.full(5, 5.0))
    assert best_bias(counts, np.array([-2.0, -1.5, 0.5, 1.0, 3.0])) == 0.5
    assert curve(counts).T.tolist() == [pytest.approx([n / 5] * 3) for n in right]


def test_a_curve_of_nothing_is_zero() -> None:
    assert (curve(LinkCounts(*np.zeros((4, 3)))) == 0.0).all()
    assert best_bias(LinkCounts(*np.zeros((4, len(BIASES))))) == 0.0


@pytest.mark.parametrize("seed", range(10))
def test_the_runner_up_is_the_likeliest_other_row(seed: int) -> None:
    chance = np.random.default_rng(seed)
    sizes = chance.integers(2, 6, 8)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    probability = chance.random(bounds[-1])
    owner = np.flatnonzero(chance.random(8) < 0.6)
    rows = np.array([chance.integers(bounds[m] + 1, bounds[m + 1]) for m in owner], np.int64)
    found = runner_up(bounds, probability, rows, owner)
    for row, mention, other in zip(rows, owner, found, strict=True):
        others = [n for n in range(bounds[mention], bounds[mention + 1]) if n != row]
        assert other == max(others, key=lambda n: probability[n])
