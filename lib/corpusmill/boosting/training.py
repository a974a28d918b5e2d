"""Boosting by LightGBM with a structured objective: one rank, or one of several. No Spark.

Every rank holds whole examples, computes their gradients by exact inference and lets LightGBM's
network add up the histograms; all ranks end with the same trees. The bounds of the bins come from
one sample that all ranks are given: LightGBM would otherwise take each feature's from one rank's
rows alone. Derivatives are rounded to a grain whose sums are exact, of equal gains that of the
first feature counts most, and none is exactly 0: so nothing that the partitioning changes chooses
splits.
With gradient steps one rank and several then give the same trees; with Newton's, any number of
ranks above one does (`parameters` says why).
"""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import numpy as np

from corpusmill.boosting.batches import Examples
from corpusmill.boosting.losses import LOSSES
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.types import Floats

# Threads that wait by spinning cost a busy machine many times their work; read when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
import lightgbm as lgb

CONNECT_MINUTES = 2
GRAIN = 2.0**-24
"""Derivatives are multiples of it, at most 1, which float32 holds exactly; float64 then holds the
sums over half a billion rows exactly, whatever their order."""
JITTER = 2.0**-16
"""Added to gradients at most, by the row's features. A feature that gains exactly nothing in a node
is left out below it by one rank, and not by several: options of a factor have gradients so alike
that this happens to features which decide between them only together with another one."""
TIE = 1e-9
"""What a feature's gain counts less than that of the feature before it, relatively: far more than
the rounding that would else decide between features that split the rows alike."""


class Network(NamedTuple):
    """The ranks of a distributed training.

    Attributes
    ----------
    machines : tuple of str
        ``ip:port`` of every rank, the same everywhere.
    port : int
        This rank's.
    """

    machines: tuple[str, ...]
    port: int


class Boosted(NamedTuple):
    """What a rank ends with.

    Attributes
    ----------
    text : str
        The trees in LightGBM's text format, the same on every rank.
    losses : Floats, shape (rounds,)
        The rank's sum of losses before each of the rounds.
    """

    text: str
    losses: Floats


def parameters(settings: LearnerSettings, seed: int, sample: Floats) -> dict[str, Any]:
    """Give LightGBM's parameters, without the network's, for rows like those of the sample.

    Where rows have second derivatives of their own, LightGBM guesses how many rows lie on a side
    of a split from their share of these, bin by bin, and begins with the true number on one rank
    but with a guess on several. So there a leaf's least size is in second derivatives; what is left
    of the guess is that a side of no row is not tried, which can differ between one and several.
    """
    newton = has_hessian(settings)
    return {
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.num_leaves,
        "min_data_in_leaf": 1 if newton else settings.min_data_in_leaf,
        "min_sum_hessian_in_leaf": settings.min_hessian_in_leaf if newton else 0.0,
        # With a penalty one rank would leave out features that several ranks try.
        "lambda_l2": 0.0,
        "feature_fraction": settings.feature_fraction,
        "max_bin": settings.max_bin,
        "bin_construct_sample_cnt": max(len(sample), 1),
        "feature_contri": [1.0 - TIE * number for number in range(sample.shape[1])],
        "feature_pre_filter": False,
        "pre_partition": True,
        "boost_from_average": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": seed % (1 << 31),
        "verbosity": -1,
    }


def has_hessian(settings: LearnerSettings) -> bool:
    """Tell whether rows have second derivatives of their own."""
    return settings.step == "newton" and settings.loss == "logistic"


def boost(
    examples: Examples,
    sample: Floats,
    settings: LearnerSettings,
    seed: int,
    rounds: int,
    start: str = "",
    network: Network | None = None,
) -> Boosted:
    """Boost trees over the factors of examples (algorithm 1).

    Each round fits one tree to -g_r over all rows r, where g is the gradient of the loss by exact
    inference, and adds it, times the learning rate, to F. F begins at 0.

    Parameters
    ----------
    examples : Examples
        This rank's; at least one row, all with known outputs.
    sample : Floats, shape (rows, width)
        From which the bins are made; the same on every rank.
    settings : LearnerSettings
    seed : int
    rounds : int
        Trees to add.
    start : str
        Trees to go on from.
    network : Network, optional
        The other ranks.

    Raises
    ------
    lightgbm.basic.LightGBMError
        A peer has died, or cannot be reached within `CONNECT_MINUTES`.

    Notes
    -----
    A round is O(rows * width) for the histograms and O(edges) for the inference.
    """
    common = parameters(settings, seed, sample)
    reference = lgb.Dataset(sample, np.zeros(len(sample)), params=common).construct()
    labels = np.zeros(len(examples.features))
    # Made before the network is: its bins are then the reference's, whatever the ranks hold.
    data = lgb.Dataset(
        examples.features, labels, reference=reference, params=common, free_raw_data=False
    ).construct()
    losses: list[float] = []
    loss = LOSSES[settings.loss]
    newton = has_hessian(settings)
    jitter = JITTER * noise_of(examples.features)

    def objective(scores: Floats, _: lgb.Dataset) -> tuple[Floats, Floats]:
        found = loss(examples.structure, scores, examples.gold)
        losses.append(float(found.loss.sum()))
        hessian = grained(found.hessian) if newton else np.ones(len(scores))
        return grained(found.gradient + jitter), np.maximum(hessian, GRAIN)

    more: dict[str, Any] = {"objective": objective}
    if network is not None:
        more |= {
            "tree_learner": "data",
            "machines": ",".join(network.machines),
            "num_machines": len(network.machines),
            "local_listen_port": network.port,
            "time_out": CONNECT_MINUTES,
        }
    before = lgb.Booster(model_str=start) if start else None
    # Where training goes on, LightGBM would draw the features of the first trees once more.
    done = before.num_trees() if before else 0
    more["feature_fraction_seed"] = (seed + done) % (1 << 31)
    booster = lgb.train(common | more, data, rounds, init_model=before)
    booster.free_network()
    return Boosted(without_parameters(booster.model_to_string()), np.array(losses))


def grained(values: Floats) -> Floats:
    """Round to multiples of `GRAIN`."""
    return np.rint(values / GRAIN) * GRAIN


def noise_of(features: Floats) -> Floats:
    """Give a number in [-1, 1) a row that looks random and depends on its features alone."""
    bits = np.ascontiguousarray(features).view(np.uint64)
    mixed = np.zeros(len(features), np.uint64)
    for column in bits.T:
        mixed = (mixed ^ column) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def without_parameters(text: str) -> str:
    """Leave out of a model what it was trained with: machines and ports have no place in it."""
    return re.sub(r"\nparameters:.*?\nend of parameters\n", "\n", text, flags=re.DOTALL)
