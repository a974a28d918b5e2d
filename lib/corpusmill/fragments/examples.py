r"""The kernel of whole examples: one or more trees each, and perhaps a feature vector.

    K(x, x') = tree_weight sum over slots s of K_s(x_s, x'_s) + vector_weight <v, v'>,

where each tree kernel may be normalised, K(T, T') / sqrt(K(T, T) K(T', T')), and the inner product
likewise. What is divided by 0, an empty tree or vector, is 0. So is what is divided by infinity:
K(T, T) of a tree with very many children at a node exceeds the floating-point numbers, and its
normalised kernel with all trees but itself vanishes; it is taken for an empty one.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from corpusmill.errors import DataError
from corpusmill.fragments import kernels, partial
from corpusmill.fragments.forests import NO_PRODUCTIONS, Interned, Productions, intern
from corpusmill.fragments.kernels import Index
from corpusmill.fragments.partial import LabelIndex
from corpusmill.fragments.self_kernels import self_kernel
from corpusmill.types import AnyArray, Floats, Forest, TokenIds

KernelName = Literal["sst", "st", "sst_bow", "ptk"]


class KernelSettings(NamedTuple):
    """What the kernel is made of.

    Attributes
    ----------
    kernel : {"sst", "st", "sst_bow", "ptk"}
        See `corpusmill.fragments.kernels` and, for the last, `corpusmill.fragments.partial`.
    decay : float
        lambda.
    mu : float
        Of ``ptk`` only.
    normalise, normalise_vectors : bool
    tree_weight, vector_weight : float
        Of 0 leaves the part out.
    """

    kernel: KernelName = "sst"
    decay: float = 0.4
    mu: float = 0.4
    normalise: bool = True
    normalise_vectors: bool = False
    tree_weight: float = 1.0
    vector_weight: float = 1.0


class Examples(NamedTuple):
    """Examples of trees and feature vectors.

    Attributes
    ----------
    trees : tuple of Forest
        One a tree slot, all with a tree, perhaps an empty one, for every example.
    productions : Productions
        Known ones, which keep their numbers.
    vectors : csr_array or None, shape (examples, features)
    """

    trees: tuple[Forest, ...]
    productions: Productions = NO_PRODUCTIONS
    vectors: csr_array | None = None

    def interned(self) -> tuple[Interned, ...]:
        """Find the distinct subtrees and productions, by slot."""
        return tuple(intern(forest, productions=self.productions) for forest in self.trees)

    def roots(self) -> tuple[TokenIds, ...]:
        """Give each tree's number among the distinct subtrees, -1 for an empty one, by slot."""
        return tuple(_roots(interned) for interned in self.interned())


def _roots(interned: Interned) -> TokenIds:
    roots = np.full(len(interned.offsets) - 1, -1, np.int32)
    there = np.diff(interned.offsets) > 0
    roots[there] = interned.nodes[interned.offsets[:-1][there]]
    return roots


def take(examples: Examples, rows: AnyArray) -> Examples:
    """Take examples by their places, in that order."""
    trees = tuple(_take_trees(forest, rows) for forest in examples.trees)
    vectors = None if examples.vectors is None else csr_array(examples.vectors[rows])
    return examples._replace(trees=trees, vectors=vectors)


def _take_trees(forest: Forest, rows: AnyArray) -> Forest:
    sizes = np.diff(forest.offsets)[rows]
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    nodes = np.arange(offsets[-1]) + np.repeat(forest.offsets[rows] - offsets[:-1], sizes)
    return Forest(offsets, forest.labels[nodes], forest.arities[nodes])


def self_norms(
    interned: Interned, decay: float, kernel: KernelName = "sst", mu: float = 0.4
) -> Floats:
    """Give sqrt(K(T, T)); 0 for an empty tree, and for one beyond all numbers."""
    return _norms(_squares(interned, KernelSettings(kernel, decay, mu)))


def _squares(interned: Interned, settings: KernelSettings) -> Floats:
    if settings.kernel == "ptk":
        return partial.partial_self_kernel(interned, settings.decay, settings.mu)
    return self_kernel(settings.kernel, interned, settings.decay)


def _norms(squares: Floats) -> Floats:
    return np.sqrt(np.where(np.isfinite(squares), squares, 0.0))


def _inverse(norms: Floats) -> Floats:
    return np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0.0)


class _Trees(NamedTuple):
    """The trees of one slot, and what is computed of them once.

    ``values`` are `kernels.same_values`, ``scales`` 1 / ``norms``, or 0, and ``squares`` the
    kernel of each tree with itself, normalised as it is to be.
    """

    interned: Interned
    values: Floats | None
    norms: Floats
    scales: Floats
    squares: Floats

    @classmethod
    def of(cls, interned: Interned, settings: KernelSettings) -> _Trees:
        squares, values = _squares(interned, settings), None
        if settings.kernel != "ptk":
            values = kernels.same_values(settings.kernel, interned.subtrees, settings.decay)
        if not settings.normalise:
            _refuse_infinite(squares)
            ones = np.ones(len(squares))
            return cls(interned, values, ones, ones, squares)
        norms = _norms(squares)
        return cls(interned, values, norms, _inverse(norms), (norms > 0.0).astype(np.float64))

    def indexed(self, settings: KernelSettings) -> Index | LabelIndex:
        if settings.kernel == "ptk":
            return partial.build_label_index(self.interned)
        return kernels.build_index(self.interned)

    def rows(
        self, index: Index | LabelIndex, first: int, last: int, settings: KernelSettings
    ) -> Floats:
        """Give the kernel of some trees with all of an index, as it is before normalisation."""
        rows = np.zeros((last - first, index.trees))
        subtrees, nodes = self.interned.subtrees, self.interned.nodes
        offsets = self.interned.offsets[first : last + 1]
        if isinstance(index, LabelIndex):
            partial.add_partial_rows(
                index, subtrees, offsets, nodes, settings.decay, settings.mu, rows
            )
        elif settings.kernel != "ptk":
            kernels.add_rows(
                settings.kernel, index, subtrees, self.values, offsets, nodes, settings.decay, rows
            )
        return rows


class ExampleKernel:
    """The kernel of training examples with each other, and of other examples with them.

    Parameters
    ----------
    examples : Examples
        The training examples.
    settings : KernelSettings

    Attributes
    ----------
    interned : tuple of Interned
        The trees by slot.
    norms : tuple of Floats, shape (examples,)
        What the kernel of a tree is divided by, by slot; 0 for a tree that counts as empty.
    diagonal : Floats, shape (examples,)
        K(x, x).

    Raises
    ------
    DataError
        DATA01 if a tree's K(T, T), which is not to be normalised, is no finite number.

    Notes
    -----
    Memory O(nodes + nonzeros); no row is kept.
    """

    def __init__(self, examples: Examples, settings: KernelSettings) -> None:
        self._settings = settings
        self._slots = tuple(_Trees.of(trees, settings) for trees in examples.interned())
        self._indices = tuple(slot.indexed(settings) for slot in self._slots)
        self._vectors = _weighted(examples.vectors, settings)
        self._columns = None if self._vectors is None else csr_array(self._vectors.T)
        self.interned = tuple(slot.interned for slot in self._slots)
        self.norms = tuple(slot.norms for slot in self._slots)
        self.diagonal = np.zeros(len(examples.trees[0].offsets) - 1)
        for slot in self._slots:
            self.diagonal += settings.tree_weight * slot.squares
        if self._vectors is not None:
            self.diagonal += self._vectors.power(2).sum(axis=1)

    def row(self, i: int) -> Floats:
        """Give K(i, .) of all training examples; for the cost see `kernels.sst_row`."""
        return self._rows(self._slots, self._vectors, i, i + 1)[0]

    def rows(self, others: Examples) -> Floats:
        """Give the kernel of other examples with the training examples.

        Parameters
        ----------
        others : Examples
            Over the same labels and features, with as many slots.

        Returns
        -------
        Floats, shape (others, examples)

        Notes
        -----
        Beside the rows O(nodes of the training examples), so best called for many at once.
        """
        slots = []
        for forest, known in zip(others.trees, self.interned, strict=True):
            interned = intern(forest, known.subtrees, known.productions)
            slots.append(_Trees.of(interned, self._settings))
        count = len(others.trees[0].offsets) - 1
        return self._rows(tuple(slots), _weighted(others.vectors, self._settings), 0, count)

    def _rows(
        self, slots: tuple[_Trees, ...], vectors: csr_array | None, first: int, last: int
    ) -> Floats:
        found = np.zeros((last - first, len(self.diagonal)))
        for slot, own, index in zip(slots, self._slots, self._indices, strict=True):
            part = slot.rows(index, first, last, self._settings)
            scales = self._settings.tree_weight * slot.scales[first:last]
            kernels.add_scaled(part, scales, own.scales, found)
        if vectors is not None and self._columns is not None:
            kernels.vector_rows(
                vectors.indptr[first : last + 1], vectors.indices, vectors.data,
                self._columns.indptr, self._columns.indices, self._columns.data, found,
            )  # fmt: skip
        return found


def _weighted(vectors: csr_array | None, settings: KernelSettings) -> csr_array | None:
    """Scale vectors so that their inner product is their part of the kernel."""
    if vectors is None or settings.vector_weight == 0.0:
        return None
    scales = np.full(vectors.shape[0], np.sqrt(settings.vector_weight))
    if settings.normalise_vectors:
        scales *= _inverse(np.sqrt(vectors.power(2).sum(axis=1)))
    values = vectors.data * np.repeat(scales, np.diff(vectors.indptr))
    return csr_array((values, vectors.indices, vectors.indptr), shape=vectors.shape)


def _refuse_infinite(squares: Floats) -> None:
    if not np.all(np.isfinite(squares)):
        example = int(np.flatnonzero(~np.isfinite(squares))[0])
        problem = "its kernel with itself exceeds all numbers; normalise it or lower the decay"
        raise DataError("DATA01", source=f"the tree of example {example}", problem=problem)
