"""Boosting over the partitions of a DataFrame: ranks of one barrier stage a block of rounds."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from lightgbm.basic import LightGBMError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.boosting.batches import Examples, read_examples, width_of
from corpusmill.boosting.model import BoostingModel, feature_names
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.training import Boosted, Network, boost
from corpusmill.corpora.schemas import DOUBLES, FACTORS
from corpusmill.errors import CorpusmillError, DataError
from corpusmill.types import Floats

RANK_ROWS = T.StructType(
    [
        T.StructField("rank", T.IntegerType()),
        T.StructField("trees", T.StringType()),
        T.StructField("losses", DOUBLES),
        T.StructField("error", T.StringType()),
    ]
)
"""What a rank ends with: the first one's trees, its losses, or why nobody could begin."""
CONNECT_SECONDS = 30
"""How long a rank tries to reach another before training."""


class Progress(NamedTuple):
    """What is known after a block of rounds.

    Attributes
    ----------
    trees : str
        All trees so far, in LightGBM's text format.
    losses : Floats, shape (rounds so far,)
        Mean loss an example before each round.
    """

    trees: str
    losses: Floats


class Survey(NamedTuple):
    """What every rank has to know of the whole.

    Attributes
    ----------
    width : int
        Features a row.
    examples, rows : int
        Those with known outputs.
    sample : Floats, shape (rows of the sample, width)
        Of which the bins are made.
    """

    width: int
    examples: int
    rows: int
    sample: Floats


NOTHING = Progress("", np.zeros(0))
OnBlock = Callable[[Progress], None]


def survey(rows: DataFrame, settings: LearnerSettings, seed: int) -> Survey:
    """Count the rows and draw the sample for the bins: examples by the hash of seed and name.

    Raises
    ------
    DataError
        DATA03: no example has a row and a known output; DATA01: a row of the sample is broken.
    """
    size = F.greatest(F.try_element_at("row_offsets", F.lit(-1)), F.lit(0))
    count = rows.agg(F.count("*").alias("examples"), F.sum(size).alias("rows")).collect()[0]
    if not count["rows"]:
        hint = "there must be an example with a row and a known output"
        raise DataError("DATA03", source="column 'gold'", hint=hint)
    first = _batch(rows.where(size > 0).orderBy("example_id").limit(1))
    width = width_of(first)
    share = min(1.0, settings.bin_rows / count["rows"])
    draw = F.pmod(F.xxhash64(F.lit(seed), "example_id"), F.lit(1 << 30)) < share * (1 << 30)
    drawn = _batch(rows.where(draw).orderBy("example_id"))
    # Of few and large examples perhaps none is drawn.
    drawn = drawn if drawn.num_rows else first
    sample = read_examples(drawn, settings.structure, width).features
    return Survey(width, int(count["examples"]), int(count["rows"]), sample)


def fit_factors(
    rows: DataFrame,
    settings: LearnerSettings,
    seed: int = 13,
    names: Sequence[str] = (),
    block: int = 0,
    on_block: OnBlock = lambda _: None,
    start: Progress = NOTHING,
) -> BoostingModel:
    """Boost trees over structured examples, on as many ranks as the rows have partitions.

    Parameters
    ----------
    rows : DataFrame
        Of `corpusmill.corpora.schemas.FACTORS`; cached by the caller. Examples whose output is not
        known are left out.
    settings : LearnerSettings
    seed : int
        Of the sample for the bins and of ``feature_fraction``.
    names : sequence of str
        Of the features, with any characters; by default f0, f1, ...
    block : int
        Rounds a barrier stage; 0: all in one. Between two stages training can go on elsewhere.
    on_block : callable
        Told what is known after each stage: progress, checkpoints, tracking.
    start : Progress
        Where a checkpoint is resumed.

    Returns
    -------
    BoostingModel
        The same for any number of partitions, up to the rounding of sums; with Newton's steps
        for any number above one (`corpusmill.boosting.training`).

    Raises
    ------
    DataError
        DATA01: a broken row, by name; DATA03: nothing to learn from; BOOST01: not as many names
        as features.
    UsageError
        SPARK04: a cluster without a slot.
    """
    known = rows.where(F.col("gold").isNotNull())
    found = survey(known, settings, seed)
    if names and len(names) != found.width:
        raise DataError("BOOST01", names=len(names), width=found.width)
    tasks = _tasks(rows)
    done = start
    while len(done.losses) < settings.trees:
        left = settings.trees - len(done.losses)
        rounds = min(block or left, left)
        kernel = partial(
            train_rank, found=found, settings=settings, seed=seed, rounds=rounds, start=done.trees
        )
        ended = splits.barrier_map(known, "example_id", kernel, RANK_ROWS, tasks).toArrow()
        done = _joined(done, ended, found.examples)
        on_block(done)
    return BoostingModel(settings, done.trees, feature_names(names, found.width))


def train_rank(
    peers: splits.Peers,
    batches: Iterator[pa.RecordBatch],
    found: Survey,
    settings: LearnerSettings,
    seed: int,
    rounds: int,
    start: str,
) -> Iterator[pa.RecordBatch]:
    """Train as one rank; the kernel of `fit_factors`.

    Ranks that have no rows stand aside. A broken row or a rank that others do not reach, which no
    repetition mends, is told to all and ends the stage without an exception, so that Spark does
    not run it again.
    """
    problem, examples = "", None
    try:
        examples = _examples(batches, settings.structure, found.width)
    except CorpusmillError as error:
        problem = json.dumps([error.code, error.details], default=str)
    rows = len(examples.features) if examples is not None else 0
    met = _meet(peers, rows, problem)
    if met.problem:
        yield _rank_row(peers.rank, None, error=met.problem if peers.rank == 0 else None)
        return
    if examples is None or not rows:
        return
    machines = met.machines
    network = Network(machines, met.port) if len(machines) > 1 else None
    try:
        with quiet():
            boosted = boost(examples, found.sample, settings, seed, rounds, start, network)
    except LightGBMError as error:
        at = f"{met.at} of {', '.join(machines)}"
        raise DataError("BOOST02", rank=at, problem=str(error)) from error
    yield _rank_row(peers.rank, boosted, trees=met.at == machines[0])


class _Met(NamedTuple):
    """What a rank knows after it has met the others.

    Attributes
    ----------
    at : str
        Its address.
    port : int
    machines : tuple of str
        Addresses of the ranks that have rows, by rank.
    problem : str
        Why no one trains, a code and details as JSON; or nothing.
    """

    at: str
    port: int
    machines: tuple[str, ...]
    problem: str


def _meet(peers: splits.Peers, rows: int, problem: str) -> _Met:
    """Tell all ranks where this one is, hear where they are, and see that they can be reached.

    LightGBM would try for minutes and then end the process instead of raising.
    """
    with closing(free_port()) as listener:
        # The others are told the port when it answers, so that no one has to try twice.
        listener.listen(len(peers.addresses))
        port = listener.getsockname()[1]
        at = f"{address_of(peers)}:{port}"
        mine = {"at": at, "rows": rows, "problem": problem}
        told = [json.loads(message) for message in peers.all_gather(json.dumps(mine))]
        problems = [other["problem"] for other in told if other["problem"]]
        machines = tuple(other["at"] for other in told if other["rows"])
        if not problems:
            tried = [other for other in machines if rows and other != at]
            reports = peers.all_gather(json.dumps([_unreached(other, at) for other in tried]))
            problems = [each for report in reports for each in json.loads(report) if each]
    # A listener that is still open takes LightGBM's connections of another rank and drops them.
    peers.barrier()
    return _Met(at, port, machines, problems[0] if problems else "")


def _unreached(other: str, at: str) -> str:
    """Tell why there is no connection to another rank, as in `_Met`; or nothing."""
    host, _, port = other.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        return json.dumps(
            ["BOOST02", {"rank": at, "problem": f"no connection to {other}: {error}"}]
        )
    return ""


@contextmanager
def quiet() -> Iterator[None]:
    """Keep LightGBM's threads from printing; what goes wrong is raised."""
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def free_port() -> socket.socket:
    """Bind a free port, which is held until the socket is closed."""
    listener = socket.socket()
    listener.bind(("", 0))
    return listener


def address_of(peers: splits.Peers) -> str:
    """Give this task's IPv4 address, which is all that LightGBM understands."""
    return socket.gethostbyname(peers.addresses[peers.rank].rsplit(":", 1)[0])


def _examples(batches: Iterator[pa.RecordBatch], structure: str, width: int) -> Examples | None:
    """Read a rank's rows, in the order of their names: that in which they arrive is chance."""
    parts = list(batches)
    if not parts:
        return None
    table = pa.Table.from_batches(parts).sort_by("example_id").combine_chunks()
    return read_examples(table.to_batches()[0], structure, width) if table.num_rows else None


def _rank_row(
    rank: int, boosted: Boosted | None, trees: bool = False, error: str | None = None
) -> pa.RecordBatch:
    row = {
        "rank": rank,
        "trees": boosted.text if boosted and trees else None,
        "losses": boosted.losses if boosted else None,
        "error": error,
    }
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(RANK_ROWS))


def _joined(before: Progress, ended: pa.Table, examples: int) -> Progress:
    """Put together what the ranks ended with."""
    found = ended.to_pylist()
    for row in found:
        if row["error"]:
            code, details = json.loads(row["error"])
            raise DataError(code, **details)
    sums = np.sum([row["losses"] for row in found], axis=0)
    trees = next(row["trees"] for row in found if row["trees"])
    return Progress(trees, np.concatenate([before.losses, sums / examples]))


def _tasks(rows: DataFrame) -> int:
    """Give a rank a partition, as far as there are slots."""
    slots, _ = splits.slots_of(rows.sparkSession)
    partitions = splits.count_partitions(rows)
    return max(1, min(partitions, slots or partitions))


def _batch(rows: DataFrame) -> pa.RecordBatch:
    table = rows.select(*FACTORS.names).toArrow().combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
