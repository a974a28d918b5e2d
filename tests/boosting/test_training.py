"""Boosting on one rank and on several, which are threads here: LightGBM's network is a thread's."""

from __future__ import annotations

import socket
import threading
from typing import Any

import lightgbm as lgb
import numpy as np
import pyarrow as pa
import pytest

from corpusmill.boosting.batches import FACTOR_ROWS, read_examples
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.structures import STRUCTURES
from corpusmill.boosting.training import Boosted, Network, boost, grained, noise_of
from corpusmill.boosting.trees import scores_of
from tests.boosting.examples import WIDTH, make_batch, make_examples

STEPS = pytest.mark.parametrize("step", ["gradient", "newton"])


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def boost_on(ranks: int, batch: pa.RecordBatch, settings: LearnerSettings, start: str = ""):
    """Deal the examples out and train a rank a thread."""
    sample = read_examples(batch, settings.structure, WIDTH).features
    ports = free_ports(ranks)
    machines = tuple(f"127.0.0.1:{port}" for port in ports)
    ended: dict[int, Boosted] = {}

    def run(rank: int) -> None:
        mine = batch.take(pa.array(np.arange(rank, batch.num_rows, ranks)))
        examples = read_examples(mine, settings.structure, WIDTH)
        network = Network(machines, ports[rank]) if ranks > 1 else None
        ended[rank] = boost(examples, sample, settings, 13, settings.trees, start, network)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [ended[rank] for rank in range(ranks)]


@pytest.mark.parametrize("structure", sorted(STRUCTURES))
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_rule_is_learned(structure, loss):
    settings = LearnerSettings(
        structure=structure, loss=loss, trees=60, min_data_in_leaf=5, learning_rate=0.3
    )
    train, test = make_examples(structure, 300, 1), make_examples(structure, 100, 2)
    boosted = boost(train, train.features, settings, 13, 60)
    assert len(boosted.losses) == 60
    assert boosted.losses[-1] < 0.5 * boosted.losses[0]
    scores = scores_of(boosted.text, test.features)
    right = test.structure.best(scores)[test.gold].mean()
    guessed = test.structure.best(np.random.default_rng(0).normal(size=len(scores)))
    assert right > 0.5
    assert right > guessed[test.gold].mean() + 0.15


@STEPS
@pytest.mark.parametrize("structure", ["spans", "chain"])
def test_the_first_tree_is_the_mean_negative_gradient_of_its_leaves(structure, step):
    settings = LearnerSettings(structure=structure, step=step, trees=1, learning_rate=1.0)
    examples = make_examples(structure, 200, 1)
    text = boost(examples, examples.features, settings, 13, 1).text
    leaves: Any = lgb.Booster(model_str=text).predict(examples.features, pred_leaf=True)
    leaf = leaves.reshape(-1)
    chance, _ = examples.structure.marginals(np.zeros(len(leaf)))
    gradient, hessian = chance - examples.gold, chance * (1.0 - chance)
    scores = scores_of(text, examples.features)
    assert len(set(leaf)) > 3
    for number in set(leaf):
        mine = leaf == number
        below = hessian[mine].sum() if step == "newton" else mine.sum()
        assert scores[mine] == pytest.approx(-gradient[mine].sum() / below, rel=1e-3, abs=1e-4)
        least = settings.min_hessian_in_leaf if step == "newton" else settings.min_data_in_leaf
        assert below >= least * (1 - 1e-6)


@pytest.mark.parametrize("structure", sorted(STRUCTURES))
def test_ranks_do_not_matter(structure):
    """The derivatives' sums are exact; what is left is LightGBM's own epsilon in a leaf's value."""
    settings = LearnerSettings(structure=structure, trees=40, min_data_in_leaf=5)
    batch, test = make_batch(structure, 200, 1), make_examples(structure, 50, 2)
    (one,) = boost_on(1, batch, settings)
    expected = scores_of(one.text, test.features)
    for ranks in (2, 4):
        ended = boost_on(ranks, batch, settings)
        assert len({boosted.text for boosted in ended}) == 1
        found = scores_of(ended[0].text, test.features)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
        losses = np.sum([boosted.losses for boosted in ended], axis=0)
        np.testing.assert_allclose(losses, one.losses, rtol=1e-12)


@pytest.mark.parametrize("structure", sorted(STRUCTURES))
def test_with_newton_steps_only_one_rank_is_apart(structure):
    settings = LearnerSettings(structure=structure, trees=40, step="newton")
    batch, test = make_batch(structure, 200, 1), make_examples(structure, 50, 2)
    one, two, four = (boost_on(ranks, batch, settings) for ranks in (1, 2, 4))
    assert len({boosted.text for boosted in (*two, *four)}) == 1
    ends = [sum(boosted.losses[-1] for boosted in ended) for ended in (one, two)]
    assert ends[0] == pytest.approx(ends[1], rel=0.1)
    scores = [scores_of(ended[0].text, test.features) for ended in (one, two)]
    assert np.corrcoef(scores[0], scores[1]).min() > 0.95


def test_training_goes_on_where_it_was_left():
    settings = LearnerSettings(structure="spans", trees=30)
    examples, test = make_examples("spans", 200, 1), make_examples("spans", 50, 2)
    whole = boost(examples, examples.features, settings, 13, 30)
    first = boost(examples, examples.features, settings, 13, 12)
    rest = boost(examples, examples.features, settings, 13, 18, first.text)
    np.testing.assert_allclose(
        scores_of(rest.text, test.features), scores_of(whole.text, test.features), atol=1e-13
    )
    np.testing.assert_allclose(
        np.concatenate([first.losses, rest.losses]), whole.losses, rtol=1e-12
    )


def test_constant_and_missing_features_do_no_harm():
    settings = LearnerSettings(structure="spans", trees=20)
    examples = make_examples("spans", 200, 1)
    rng = np.random.default_rng(3)
    features = np.column_stack([examples.features, np.ones(len(examples.features))])
    features[rng.random(features.shape) < 0.2] = np.nan
    features[:, 3] = np.nan
    odd = examples._replace(features=features)
    boosted = boost(odd, features, settings, 13, 20)
    assert boosted.losses[-1] < boosted.losses[0]
    assert np.isfinite(scores_of(boosted.text, features)).all()


def test_machines_and_ports_are_not_in_the_model():
    (one, _) = boost_on(2, make_batch("spans", 60, 1), LearnerSettings(structure="spans", trees=2))
    assert "127.0.0.1" not in one.text
    assert "_port" not in one.text
    assert lgb.Booster(model_str=one.text).num_trees() == 2


def test_grains_are_exact_in_float32_and_their_sums_in_float64():
    values = grained(np.random.default_rng(0).uniform(-1.0, 1.0, 100_000))
    np.testing.assert_array_equal(values, values.astype(np.float32).astype(np.float64))
    assert values.sum() == values[::-1].sum() == values.reshape(-1, 100).sum(axis=0).sum()


def test_noise_depends_on_the_row_alone_and_is_spread_evenly():
    features = np.random.default_rng(0).normal(size=(5000, 3))
    features[0] = np.nan
    noise = noise_of(features)
    np.testing.assert_array_equal(noise[::-1], noise_of(features[::-1]))
    assert (np.abs(noise) <= 1.0).all()
    assert abs(noise.mean()) < 0.05
    assert noise.std() == pytest.approx(3**-0.5, rel=0.05)
    assert abs(np.corrcoef(noise[1:], features[1:, 0])[0, 1]) < 0.05


def test_features_that_decide_only_together_are_found():
    """A feature of the mention and one of the entity: each by itself gains exactly nothing."""
    rows = []
    for number in range(40):
        spoken, options = number % 2, [0, 1]
        x = [[spoken, option, 0.0, 0.0, 0.0, 0.0] for option in options]
        rows.append(
            {
                "example_id": f"e{number:02d}",
                "row_offsets": [0, 2],
                "features": [value for row in x for value in row],
                "gold": [spoken],
            }
        )
    batch = pa.RecordBatch.from_pylist(rows, schema=FACTOR_ROWS)
    settings = LearnerSettings(trees=20, learning_rate=0.5, min_data_in_leaf=3)
    for ranks in (1, 2):
        text = boost_on(ranks, batch, settings)[0].text
        scores = scores_of(text, read_examples(batch, "independent", WIDTH).features)
        assert (scores.reshape(-1, 2).argmax(axis=1) == np.arange(40) % 2).all()
