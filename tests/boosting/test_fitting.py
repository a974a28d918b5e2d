"""Ranks of a barrier stage: what goes wrong on clusters, and that nothing hangs."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as F

from corpusmill.boosting import fitting
from corpusmill.boosting.batches import read_examples
from corpusmill.boosting.fitting import Progress, fit_factors, train_rank
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.training import boost
from corpusmill.boosting.trees import scores_of
from corpusmill.corpora.schemas import FACTORS
from corpusmill.errors import DataError, UsageError
from corpusmill.failures import explain_spark_failure
from corpusmill.splits import Peers
from tests.boosting.examples import WIDTH, make_batch, make_examples

pytestmark = pytest.mark.spark
SETTINGS = LearnerSettings(structure="spans", trees=6, min_data_in_leaf=5)


@pytest.fixture(scope="module")
def rows(spark):
    frame = spark.createDataFrame(make_batch("spans", 60, 1).to_pandas(), FACTORS)
    return frame.repartition(2, "example_id").cache()


def scores(model):
    return model.scores(make_examples("spans", 20, 2).features)


def test_the_model_is_that_of_arrays(rows):
    blocks: list[Progress] = []
    names = ["a b", 'x"y', "[z]", "ä:{}", "1", "1"]
    model = fit_factors(rows, SETTINGS, names=names, block=4, on_block=blocks.append)
    examples = read_examples(make_batch("spans", 60, 1), "spans", WIDTH)
    alone = boost(examples, examples.features, SETTINGS, 13, 6)
    expected = scores_of(alone.text, make_examples("spans", 20, 2).features)
    np.testing.assert_allclose(scores(model), expected, atol=1e-13)
    assert model.names == tuple(names)
    assert [len(block.losses) for block in blocks] == [4, 6]
    np.testing.assert_allclose(blocks[-1].losses, alone.losses / 60, rtol=1e-12)
    resumed = fit_factors(rows, SETTINGS, start=blocks[0])
    np.testing.assert_allclose(scores(resumed), scores(model), atol=1e-13)


def test_fewer_examples_than_ranks_and_empty_partitions_train(spark, rows):
    few = rows.orderBy("example_id").limit(1).repartition(2)
    model = fit_factors(few, SETTINGS.model_copy(update={"min_data_in_leaf": 1}))
    assert np.isfinite(scores(model)).all()


def with_fault(name, fault):
    """A kernel that, inside the worker, trains with a function of `fitting` exchanged."""

    def kernel(*arguments, **named):
        from corpusmill.boosting import fitting as inside

        real = getattr(inside, name)
        setattr(inside, name, fault(real))
        try:
            yield from inside.train_rank(*arguments, **named)
        finally:
            setattr(inside, name, real)

    return kernel


@pytest.mark.slow
def test_a_port_that_is_taken_is_no_end(rows, tmp_path, monkeypatch):
    """The stage is run again, with other ports."""
    mark = str(tmp_path / "taken")

    def fault(real):
        def taken_once():
            if os.path.exists(mark):
                return real()
            with open(mark, "w"):
                other = socket.socket()
                other.bind(("", 0))
                other.listen()
                os.dup(other.fileno())  # held for good, and told as if it were free
                return other

        return taken_once

    monkeypatch.setattr(fitting, "train_rank", with_fault("free_port", fault))
    model = fit_factors(rows, SETTINGS)
    assert os.path.exists(mark)
    assert np.isfinite(scores(model)).all()


@pytest.mark.slow
def test_a_rank_that_dies_once_is_no_end(rows, tmp_path, monkeypatch):
    mark = str(tmp_path / "died")

    def fault(real):
        def dies_once(*arguments):
            if not os.path.exists(mark):
                with open(mark, "w"):
                    os._exit(1)
            return real(*arguments)

        return dies_once

    expected = scores(fit_factors(rows, SETTINGS))
    monkeypatch.setattr(fitting, "train_rank", with_fault("boost", fault))
    found = scores(fit_factors(rows, SETTINGS))
    assert os.path.exists(mark)
    np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.slow
def test_a_rank_that_dies_each_time_is_told(rows, monkeypatch):
    def fault(real):
        return lambda *_: os._exit(1)

    monkeypatch.setattr(fitting, "train_rank", with_fault("boost", fault))
    with pytest.raises(Exception, match="Python") as caught:
        fit_factors(rows, SETTINGS)
    assert "SPARK02" in str(explain_spark_failure(caught.value))


def test_a_broken_row_is_named(rows):
    broken = rows.withColumn(
        "ends",
        F.when(F.col("example_id") == "e00007", F.lit([0] * 5).cast("array<int>")).otherwise(
            F.col("ends")
        ),
    )
    settings = SETTINGS.model_copy(update={"bin_rows": 100})
    with pytest.raises(DataError, match=r"DATA01: example 'e00007': 0 <= start < end"):
        fit_factors(broken, settings)


def test_names_must_be_as_many_as_features(rows):
    with pytest.raises(DataError, match=r"BOOST01: 2 feature names for 6 features a row"):
        fit_factors(rows, SETTINGS, names=["a", "b"])


def test_too_few_slots_are_told_at_once(rows, monkeypatch):
    monkeypatch.setattr(fitting, "_tasks", lambda _: 3)
    with pytest.raises(UsageError, match=r"SPARK04: a barrier stage of 3 tasks"):
        fit_factors(rows, SETTINGS)


# One rank without Spark


def gathered(*others):
    """What the others tell of themselves, and then that they reach all."""
    told = iter([others, [[]] * len(others)])
    return lambda message: [message, *map(json.dumps, next(told))]


def found_of(batch):
    examples = read_examples(batch, "spans", WIDTH)
    return fitting.Survey(WIDTH, batch.num_rows, len(examples.features), examples.features)


def test_a_rank_without_rows_stands_aside():
    other = {"at": "127.0.0.1:1", "rows": 5, "problem": ""}
    peers = Peers(0, ["localhost:1", "localhost:2"], gathered(other), lambda: None)
    found = found_of(make_batch("spans", 10, 1))
    assert not list(train_rank(peers, iter([]), found, SETTINGS, 13, 2, ""))


def test_another_rank_s_broken_row_ends_this_one():
    other = {"at": "127.0.0.1:1", "rows": 0, "problem": '["DATA01", {"source": "s"}]'}
    peers = Peers(0, ["localhost:1", "localhost:2"], gathered(other), lambda: None)
    batch = make_batch("spans", 10, 1)
    (row,) = list(train_rank(peers, iter([batch]), found_of(batch), SETTINGS, 13, 2, ""))
    assert row["error"].to_pylist() == ['["DATA01", {"source": "s"}]']


def test_a_rank_that_cannot_be_reached_is_told_at_once():
    other = {"at": "127.0.0.1:1", "rows": 5, "problem": ""}
    peers = Peers(0, ["localhost:1", "localhost:2"], gathered(other), lambda: None)
    batch = make_batch("spans", 10, 1)
    (row,) = list(train_rank(peers, iter([batch]), found_of(batch), SETTINGS, 13, 2, ""))
    code, details = json.loads(row["error"].to_pylist()[0])
    assert code == "BOOST02"
    assert details["problem"].startswith("no connection to 127.0.0.1:1: ")


def test_no_rank_trains_before_all_have_let_go_of_their_ports():
    wait = Barrier(2, timeout=60)
    told = ["", ""]

    def meet(rank):
        def all_gather(message):
            told[rank] = message
            wait.wait()
            found = list(told)
            wait.wait()
            # The second rank is late with all it does after it has heard the others.
            time.sleep(0.3 * rank)
            return found

        def barrier():
            wait.wait()

        peers = Peers(rank, ["localhost:1", "localhost:2"], all_gather, barrier)
        met = fitting._meet(peers, 5, "")
        (other,) = (each for each in met.machines if each != met.at)
        host, _, port = other.rpartition(":")
        with socket.socket() as caller:
            return met.problem, caller.connect_ex((host, int(port))) == 0

    with ThreadPoolExecutor(2) as ranks:
        assert list(ranks.map(meet, range(2))) == [("", False), ("", False)]


def test_what_another_rank_does_not_reach_ends_this_one():
    other = {"at": "127.0.0.1:1", "rows": 0, "problem": ""}
    unreached = json.dumps(["BOOST02", {"rank": "r", "problem": "p"}])
    told: Iterator[list[Any]] = iter([[other], [[unreached]]])

    def gather(message):
        return [message, *map(json.dumps, next(told))]

    peers = Peers(0, ["localhost:1", "localhost:2"], gather, lambda: None)
    batch = make_batch("spans", 10, 1)
    (row,) = list(train_rank(peers, iter([batch]), found_of(batch), SETTINGS, 13, 2, ""))
    assert row["error"].to_pylist() == [unreached]
