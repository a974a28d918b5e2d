"""Kernel machines on a split of the examples, and the fragments mined from them. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from corpusmill.fragments import by_kernel, mining, selection
from corpusmill.fragments.examples import ExampleKernel, Examples, KernelSettings, take
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.solver import solve
from corpusmill.fragments.trie import Fragments
from corpusmill.types import AnyArray, Flags, Floats


class Machines(NamedTuple):
    """Kernel machines, one a class, over the same examples.

    Attributes
    ----------
    kernel : ExampleKernel
        Of the distinct examples.
    rows : int64, shape (distinct,)
        The place of each among the examples that were given.
    copies : Floats, shape (distinct,)
        How often each occurs.
    beta : Floats, shape (distinct, machines)
        y_t alpha_t, summed over the copies of the example; 0 for no support vector.
    bias : Floats, shape (machines,)
    gaps : Floats, shape (machines,)
        Distances from optimality.
    """

    kernel: ExampleKernel
    rows: AnyArray
    copies: Floats
    beta: Floats
    bias: Floats
    gaps: Floats


def count_machines(classes: int) -> int:
    """Give the number of machines: one a class against the others, but one for two classes."""
    return 1 if classes == 2 else classes


def kernel_settings(settings: LearnerSettings) -> KernelSettings:
    """Give the kernel whose fragments are mined: SST or PTK, normalised."""
    return KernelSettings(
        settings.kernel, settings.decay, settings.mu, vector_weight=settings.vector_weight
    )


def train_machines(
    examples: Examples,
    codes: AnyArray,
    copies: Floats,
    machines: Sequence[int],
    settings: LearnerSettings,
) -> Machines:
    """Train a machine a class on one split (KSL of the paper).

    Parameters
    ----------
    examples : Examples
    codes : int64, shape (examples,)
        Their classes.
    copies : Floats, shape (examples,)
        How often each occurs.
    machines : sequence of int
        The classes that are told from all others.
    settings : LearnerSettings

    Returns
    -------
    Machines
        Copies of an example, of the same trees and class, are one example of larger C.

    Notes
    -----
    Memory: ``settings.cache_mb`` for rows of the kernel, and the split's own arrays.
    """
    rows, counts = _distinct(examples, codes, copies)
    kernel = ExampleKernel(take(examples, rows), kernel_settings(settings))
    count = len(machines)
    beta, bias, gaps = np.zeros((len(rows), count)), np.zeros(count), np.zeros(count)
    for machine, positive in enumerate(machines):
        signs = np.where(codes[rows] == positive, 1.0, -1.0)
        bounds = settings.cost * counts * class_weights(signs, counts, settings.class_weight)
        solution = solve(
            kernel.row, kernel.diagonal, signs, bounds, settings.tolerance,
            settings.cache_mb << 20,
        )  # fmt: skip
        beta[:, machine], bias[machine] = solution.beta, solution.bias
        gaps[machine] = solution.gap
    return Machines(kernel, rows, counts, beta, bias, gaps)


def class_weights(signs: Floats, counts: Floats, kind: str) -> Floats:
    """Give the factor of C for each example: 1, or total / (2 total of the sign)."""
    if kind == "none":
        return np.ones(len(signs))
    total = counts.sum()
    positive = counts[signs > 0].sum()
    sizes = np.where(signs > 0, positive, total - positive)
    return total / (2.0 * np.maximum(sizes, 1.0))


def _distinct(examples: Examples, codes: AnyArray, copies: Floats) -> tuple[AnyArray, Floats]:
    """Find the distinct examples with their classes: their first places and how often."""
    if examples.vectors is not None:
        return np.arange(len(codes)), copies
    keys = np.column_stack([*examples.roots(), codes])
    _, rows, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(inverse.reshape(-1), copies, len(rows))
    order = np.argsort(rows)
    return rows[order], counts[order].astype(np.float64)


def weights_of_subtrees(machines: Machines) -> list[Floats]:
    """Give `mining.subtree_weights` by slot, each of shape (machines, subtrees)."""
    return [
        np.array(
            [
                mining.subtree_weights(
                    interned.offsets, interned.nodes, beta, norms, len(interned.subtrees.labels)
                )
                for beta in machines.beta.T
            ]
        )
        for interned, norms in zip(machines.kernel.interned, machines.kernel.norms, strict=True)
    ]


def mine_machines(machines: Machines, settings: LearnerSettings) -> list[list[Fragments]]:
    """Mine the best fragments of each machine (FMI of the paper).

    Returns
    -------
    list of list of Fragments
        By machine and tree slot.
    """
    return [
        [
            by_kernel.mine_weighted(interned.subtrees, weights, settings)
            for interned, weights in zip(machines.kernel.interned, by_machine, strict=True)
        ]
        for by_machine in zip(*weights_of_subtrees(machines), strict=True)
    ]


def mine_split(
    examples: Examples,
    codes: AnyArray,
    copies: Floats,
    machines: Sequence[int],
    settings: LearnerSettings,
) -> list[list[Fragments]]:
    """Learn and mine one split: the kernel of a Spark task. By machine and tree slot."""
    if settings.miner == "kernel":
        return mine_machines(train_machines(examples, codes, copies, machines, settings), settings)
    return selection.select(examples, codes, copies, machines, settings)


def support_vectors(machines: Machines) -> Flags:
    """Tell which of the distinct examples are support vectors of any machine."""
    return np.asarray(np.any(machines.beta != 0.0, axis=1))
