"""Structures: which outputs an example can have, with exact inference over them. No Spark.

A structure is built for a batch of examples and then asked, with ever new scores, for
probabilities, the best output, and the best output with its loss. All are lattices and differ in
one function each. Another one is a subclass of `LatticeStructure` in `STRUCTURES`, its name in
`settings.LearnerSettings.structure`, and what it asks of its rows in `batches.check_factors`.

| name | a factor is | its rows are |
| --- | --- | --- |
| ``independent`` | a choice | its options |
| ``spans`` | a candidate span ``start:end`` | Nil first, then what the span may be; no overlaps |
| ``chain`` | a position | pairs of the label before (-1: any) and the label here |
| ``segments`` | a candidate segment ``start:end`` | the same pairs; segments cover all positions |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from corpusmill.boosting import kernels
from corpusmill.boosting.kernels import FREE, Lattices
from corpusmill.types import AnyArray, Flags, Floats, Offsets

ANY = -1
"""The label before that a row does not ask for."""


class Factors(NamedTuple):
    """The factors of examples and their rows, all flat.

    Attributes
    ----------
    factors : Offsets, shape (examples + 1,)
        Example n has the factors ``factors[n]:factors[n + 1]``.
    rows : Offsets, shape (factors + 1,)
        Factor k has the rows ``rows[k]:rows[k + 1]``.
    starts, ends : int64, shape (factors,)
        Spans and segments; not read by the other structures.
    previous, labels : int64, shape (rows,)
        Labels of chain and segments, from 0; not read by the other structures.
    """

    factors: Offsets
    rows: Offsets
    starts: AnyArray
    ends: AnyArray
    previous: AnyArray
    labels: AnyArray

    def factor_of_row(self) -> AnyArray:
        """Give the factor of each row."""
        return np.repeat(np.arange(len(self.rows) - 1), np.diff(self.rows))

    def example_of_factor(self) -> AnyArray:
        """Give the example of each factor."""
        return np.repeat(np.arange(len(self.factors) - 1), np.diff(self.factors))

    def example_rows(self) -> Offsets:
        """Give where the rows of each example begin and end, shape (examples + 1,)."""
        return self.rows[self.factors]


class LatticeStructure(ABC):
    """A structure whose outputs are the paths of lattices.

    Parameters
    ----------
    factors : Factors
    """

    def __init__(self, factors: Factors) -> None:
        self.factors = factors
        self.bases = self.base_rows(factors)
        self.lattices = self.lattice(factors)

    @staticmethod
    @abstractmethod
    def lattice(factors: Factors) -> Lattices:
        """Build the lattices."""

    @staticmethod
    def base_rows(factors: Factors) -> AnyArray:
        """Give the rows that are in the output unless another of their factor is."""
        return np.zeros(0, np.int64)

    def marginals(self, scores: Floats) -> tuple[Floats, Floats]:
        """Give P(row is in the output) and log Z in nats; see `kernels.marginals`."""
        found, log_z = kernels.marginals(self.lattices, scores, self.bases)
        return found, log_z + self._base_scores(scores)

    def best(self, scores: Floats) -> Flags:
        """Give the rows of the best output; see `kernels.best`."""
        return kernels.best(self.lattices, scores, self.bases)[0]

    def best_augmented(self, scores: Floats, gold: Flags) -> Flags:
        """Give the rows of the output with the largest sum of scores and loss."""
        return self.best(scores + ~gold)

    def is_output(self, chosen: Flags) -> Flags:
        """Tell for each example whether its chosen rows, without `bases`, are an output.

        Returns
        -------
        Flags, shape (examples,)
        """
        scores = np.where(chosen, 1.0, -1.0)
        scores[self.bases] = 0.0
        wanted = chosen.copy()
        wanted[self.bases] = False
        counts = sums_by_example(self.factors, wanted.astype(np.float64))
        return kernels.best(self.lattices, scores, self.bases)[1] == counts

    def _base_scores(self, scores: Floats) -> Floats:
        part = np.zeros(len(scores))
        part[self.bases] = scores[self.bases]
        return sums_by_example(self.factors, part)


class Independent(LatticeStructure):
    """Every factor chooses one of its rows, whatever the others choose."""

    name: ClassVar[str] = "independent"

    @staticmethod
    def lattice(factors: Factors) -> Lattices:
        """Chain the factors: node k lies before factor k, parallel edges are its options."""
        factor = factors.factor_of_row()
        tails = factor + factors.example_of_factor()[factor]
        nodes = factors.factors + np.arange(len(factors.factors))
        return _lattices(nodes, tails, tails + 1, np.arange(len(tails)), np.full(len(tails), FREE))


class Spans(LatticeStructure):
    """Non-overlapping spans (section 3.2): disjoint ones are something, all others are Nil."""

    name: ClassVar[str] = "spans"

    @staticmethod
    def base_rows(factors: Factors) -> AnyArray:
        """Give the Nil rows: the first of each factor."""
        return factors.rows[:-1]

    @staticmethod
    def lattice(factors: Factors) -> Lattices:
        """Make nodes of the boundaries that occur, and edges of candidates; O(K log K)."""
        examples = len(factors.factors) - 1
        example = factors.example_of_factor()
        size = int(factors.ends.max(initial=0)) + 1
        first = np.arange(examples) * size
        places = [first, example * size + factors.starts, example * size + factors.ends]
        keys = np.unique(np.concatenate(places))
        nodes = np.searchsorted(keys, np.arange(examples + 1) * size)
        inner = np.setdiff1d(np.arange(len(keys)), nodes[:-1])
        factor = factors.factor_of_row()
        candidates = np.setdiff1d(np.arange(len(factor)), factors.rows[:-1])
        of = factor[candidates]
        tails = np.searchsorted(keys, places[1])[of]
        heads = np.searchsorted(keys, places[2])[of]
        free = np.full(len(inner), FREE)
        return _lattices(
            nodes,
            np.concatenate([inner - 1, tails]),
            np.concatenate([inner, heads]),
            np.concatenate([free, candidates]),
            np.concatenate([free, factors.rows[of]]),
        )


class Segments(LatticeStructure):
    """A semi-Markov chain: labelled segments side by side (Sarawagi and Cohen 2004)."""

    name: ClassVar[str] = "segments"

    @staticmethod
    def lattice(factors: Factors) -> Lattices:
        """Make a node of each position and label; a last one of the position collects them."""
        examples = len(factors.factors) - 1
        factor = factors.factor_of_row()
        example = factors.example_of_factor()[factor]
        label_any = int(max(factors.labels.max(initial=0), factors.previous.max(initial=0))) + 1
        size = int(factors.ends.max(initial=0)) + 1

        def key(example: AnyArray, position: AnyArray, label: AnyArray) -> AnyArray:
            return (example * size + position) * (label_any + 1) + label

        before = np.where(factors.previous == ANY, label_any, factors.previous)
        tail = key(example, factors.starts[factor], before)
        head = key(example, factors.ends[factor], factors.labels)
        nowhere = np.zeros(examples, np.int64)
        source = key(np.arange(examples), nowhere, nowhere + label_any)
        labelled = np.unique(np.concatenate([tail, head]))
        collect = labelled - labelled % (label_any + 1) + label_any
        keys = np.unique(np.concatenate([labelled, collect, source]))
        nodes = np.searchsorted(keys, np.arange(examples + 1) * size * (label_any + 1))
        apart = labelled != collect
        into, out = np.searchsorted(keys, collect[apart]), np.searchsorted(keys, labelled[apart])
        free = np.full(len(into), FREE)
        return _lattices(
            nodes,
            np.concatenate([np.searchsorted(keys, tail), out]),
            np.concatenate([np.searchsorted(keys, head), into]),
            np.concatenate([np.arange(len(factor)), free]),
            np.full(len(factor) + len(free), FREE),
        )


class Chain(Segments):
    """A linear chain: factor t of an example is its position t."""

    name: ClassVar[str] = "chain"

    @staticmethod
    def lattice(factors: Factors) -> Lattices:
        """Make segments of one position each."""
        first = np.repeat(factors.factors[:-1], np.diff(factors.factors))
        starts = np.arange(len(first)) - first
        return Segments.lattice(factors._replace(starts=starts, ends=starts + 1))


STRUCTURES: dict[str, type[LatticeStructure]] = {
    kind.name: kind for kind in (Independent, Spans, Chain, Segments)
}


def sums_by_example(factors: Factors, values: Floats) -> Floats:
    """Sum the values of each example's rows, shape (examples,)."""
    bounds = factors.example_rows()
    example = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    return np.bincount(example, values, minlength=len(bounds) - 1).astype(np.float64)


def _lattices(
    nodes: Offsets, tails: AnyArray, heads: AnyArray, rows: AnyArray, bases: AnyArray
) -> Lattices:
    order = np.argsort(heads, kind="stable")
    edges = np.searchsorted(heads[order], np.arange(nodes[-1] + 1))
    return Lattices(
        nodes.astype(np.int64), edges, tails[order], rows[order], bases[order].astype(np.int64)
    )
