"""The linearised model: a dictionary of fragments and a linear machine a class. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array, hstack

from corpusmill import storage
from corpusmill.fragments.batches import read_forests, read_sparse, string_column
from corpusmill.fragments.by_kernel import norms_of, occurrence_values, sum_occurrences
from corpusmill.fragments.dictionary import Dictionary, build_dictionary
from corpusmill.fragments.forests import Productions, intern
from corpusmill.fragments.linear import probabilities
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.fragments.trie import Fragments
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.frames import record_batch
from corpusmill.types import AnyArray, Flags, Floats

VERSION = 1

TREE_ROWS = pa.schema(
    [
        ("node_labels", pa.list_(pa.string())),
        ("node_arities", pa.list_(pa.int32())),
        ("tree_offsets", pa.list_(pa.int32())),
        ("vector_ids", pa.list_(pa.int32())),
        ("vector_values", pa.list_(pa.float64())),
    ]
)
PREDICTIONS = pa.schema(
    [
        ("prediction", pa.string()),
        ("scores", pa.list_(pa.float64())),
        ("probability", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class Space:
    """The space of fragments: what a tree's explicit vector is made of.

    Parameters
    ----------
    vocabulary
        Labels and productions.
    fragments
        By tree slot; their weights are not used.
    vector_size
        Columns of the feature vectors behind those of the fragments.
    settings
        lambda, the values of fragments, and how a vector is normalised.
    """

    vocabulary: Vocabulary
    fragments: tuple[Fragments, ...]
    vector_size: int
    settings: LearnerSettings

    @cached_property
    def _values(self) -> tuple[Floats, ...]:
        return tuple(occurrence_values(fragments, self.settings) for fragments in self.fragments)

    @cached_property
    def _dictionaries(self) -> tuple[Dictionary, ...]:
        return tuple(build_dictionary(fragments) for fragments in self.fragments)

    @property
    def sizes(self) -> list[int]:
        """Give the number of fragments by slot."""
        return [len(fragments.offsets) - 1 for fragments in self.fragments]

    @property
    def size(self) -> int:
        """Give the number of columns of a vector."""
        return sum(self.sizes) + self.vector_size

    def vectors(self, batch: pa.RecordBatch) -> csr_array:
        """Write tree rows as vectors of fragments (TFX of the paper).

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            The columns of `TREE_ROWS`.

        Returns
        -------
        csr_array, shape (rows, size)
            For slot after slot t_ij lambda^l(j), or what the fragment is worth in the PTK, divided
            by ||T_i|| if vectors are normalised by the kernel; then the feature vector times the
            root of ``vector_weight``.

        Raises
        ------
        DataError
            A broken row, by name.
        """
        forests = read_forests(batch, self.vocabulary, len(self.fragments))
        blocks = []
        for forest, values, dictionary in zip(
            forests, self._values, self._dictionaries, strict=True
        ):
            interned = intern(forest, productions=self.vocabulary.productions)
            counts = sum_occurrences(dictionary, interned, len(values), self.settings)
            counts.data *= values[counts.indices]
            if self.settings.normalise == "kernel":
                scale_rows(counts, norms_of(interned, self.settings))
            blocks.append(counts)
        if self.vector_size:
            given = read_sparse(batch, self.vector_size, "vector_ids", "vector_values")
            blocks.append(given * np.sqrt(self.settings.vector_weight))
        return csr_array(hstack(blocks, format="csr")) if len(blocks) > 1 else blocks[0]


def machine_vectors(
    vectors: csr_array, own: AnyArray, sizes: Sequence[int], settings: LearnerSettings
) -> csr_array:
    """Keep a machine's own columns, and divide each slot's part by its norm if so set.

    Parameters
    ----------
    vectors : csr_array, shape (rows, size)
        As from `Space.vectors`.
    own : int, shape (columns,)
        The machine's fragments and features, ascending.
    sizes : sequence of int
        Fragments by slot.
    settings : LearnerSettings

    Returns
    -------
    csr_array, shape (rows, columns)
    """
    places = np.full(vectors.shape[1], -1, np.int32)
    places[own] = np.arange(len(own), dtype=np.int32)
    columns = places[vectors.indices]
    chosen = columns >= 0
    offsets = np.concatenate([[0], np.cumsum(chosen)])[vectors.indptr]
    found = csr_array(
        (vectors.data[chosen], columns[chosen], offsets), shape=(vectors.shape[0], len(own))
    )
    if settings.normalise == "fragments":
        rows = np.repeat(np.arange(found.shape[0]), np.diff(found.indptr))
        slots = np.searchsorted(np.cumsum(sizes), own[found.indices], side="right")
        keys = rows * (len(sizes) + 1) + slots
        norms = np.sqrt(np.bincount(keys, found.data**2))
        norms[len(sizes) :: len(sizes) + 1] = 1.0  # the feature vector is as it is
        found.data /= norms[keys]
    return found


def scale_rows(matrix: csr_array, norms: Floats) -> None:
    """Divide the rows by norms, in place; a norm of 0 gives 0."""
    scale = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
    matrix.data *= np.repeat(scale, np.diff(matrix.indptr))


class Calibration(NamedTuple):
    """p = sigmoid(slope f + offset) a machine; NaN where there is none."""

    slope: Floats
    offset: Floats


@dataclass(frozen=True)
class FragmentsModel:
    """A trained linearised model.

    Parameters
    ----------
    classes
        Names; with two there is one machine, whose positive class is the first.
    space : Space
    weights : csr_array, shape (machines, space.size)
        Stored for the machine's own fragments, be they 0.
    bias : Floats, shape (machines,)
    calibration : Calibration
    document_frequency : int64, shape (space.size,)
        Training examples that hold the fragment.
    converged : bool, shape (machines,)
        Whether each linear machine ended by its tolerance, not by its limit of iterations.
    """

    KIND: ClassVar[str] = "fragments"

    classes: tuple[str, ...]
    space: Space
    weights: csr_array
    bias: Floats
    calibration: Calibration
    document_frequency: AnyArray
    converged: Flags

    @property
    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return self.space.settings

    def machine(self, number: int) -> tuple[AnyArray, Floats]:
        """Give a machine's own columns and their weights."""
        begin, end = self.weights.indptr[number : number + 2]
        return self.weights.indices[begin:end], self.weights.data[begin:end]

    @cached_property
    def _blocks(self) -> list[tuple[int, int, csr_array, csr_array | None]]:
        """Give by slot its columns, their weights and, where vectors have norms, which are own."""
        blocks: list[tuple[int, int, csr_array, csr_array | None]] = []
        ends = np.cumsum([*self.space.sizes, self.space.vector_size])
        for number, end in enumerate(ends.tolist()):
            begin = end - [*self.space.sizes, self.space.vector_size][number]
            weights = csr_array(self.weights[:, begin:end].T)
            normed = self.settings.normalise == "fragments" and number < len(self.space.sizes)
            ones = csr_array(
                (np.ones(weights.nnz), weights.indices, weights.indptr), shape=weights.shape
            )
            blocks.append((begin, end, weights, ones if normed else None))
        return blocks

    def scores(self, vectors: csr_array) -> Floats:
        """Give f for every class, shape (rows, classes); of two classes the second is -f.

        Parameters
        ----------
        vectors : csr_array
            As from ``space.vectors``.

        Notes
        -----
        O(nonzeros times the machines that have the fragment).
        """
        total = np.zeros((vectors.shape[0], len(self.bias))) + self.bias
        for begin, end, weights, own in self._blocks:
            part = vectors if end - begin == vectors.shape[1] else vectors[:, begin:end]
            sums = (part @ weights).toarray()
            if own is not None:
                norms = np.sqrt((part.power(2) @ own).toarray())
                sums = np.divide(sums, norms, out=np.zeros(sums.shape), where=norms > 0)
            total += sums
        return np.column_stack([total, -total]) if len(self.bias) < len(self.classes) else total

    def predict_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Predict tree rows: class of the largest score, scores and probabilities by class.

        Probabilities are of each class against all others, null without calibration.

        Raises
        ------
        DataError
            A broken row, by name.
        """
        return self.predict_scores(self.scores(self.space.vectors(batch)))

    def predict_scores(self, scores: Floats) -> pa.RecordBatch:
        """Give the rows of `predict_batch` for scores that are known."""
        chance = self._probabilities(scores)
        columns = [
            string_column(np.array(self.classes, dtype=object), scores.argmax(axis=1)),
            _matrix(scores),
            pa.nulls(len(scores), PREDICTIONS.field("probability").type)
            if chance is None
            else _matrix(chance),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=PREDICTIONS)

    def _probabilities(self, scores: Floats) -> Floats | None:
        slope, offset = self.calibration
        if np.isnan(slope).any():
            return None
        if len(slope) == len(self.classes):
            return probabilities(scores, slope, offset)
        chance = probabilities(scores[:, :1], slope, offset)
        return np.column_stack([chance, 1.0 - chance])

    def predict_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict pandas rows of trees; the columns as `predict_batch`.

        Raises
        ------
        SchemaError
            DATA04: a column is missing.
        DataError
            DATA01: a column holds something else, or a row is broken.
        """
        return self.predict_batch(record_batch(frame, TREE_ROWS)).to_pandas()

    def save(self, folder: str) -> None:
        """Write the model as npz (without pickle) and JSON under a manifest."""
        arrays: dict[str, AnyArray] = {
            "production_offsets": self.space.vocabulary.productions.offsets,
            "production_labels": self.space.vocabulary.productions.labels,
            "weight_offsets": self.weights.indptr,
            "weight_columns": self.weights.indices,
            "weights": self.weights.data,
            "bias": self.bias,
            "slope": self.calibration.slope,
            "offset": self.calibration.offset,
            "document_frequency": self.document_frequency,
            "converged": self.converged,
        }
        for slot, fragments in enumerate(self.space.fragments):
            arrays[f"fragments.{slot}.offsets"] = fragments.offsets
            arrays[f"fragments.{slot}.moves"] = fragments.moves
        info = {
            "classes": list(self.classes),
            "labels": list(self.space.vocabulary.labels),
            "slots": len(self.space.fragments),
            "vector_size": self.space.vector_size,
            "settings": self.settings.model_dump(mode="json"),
        }
        storage.save_model(folder, self.KIND, VERSION, arrays, info)

    @classmethod
    def load(cls, folder: str) -> FragmentsModel:
        """Read what `save` wrote, after its manifest has been checked.

        Raises
        ------
        ModelError
            Missing, altered, truncated, or of another kind.
        """
        return storage.restore_model(folder, cls.KIND, VERSION, cls._restored)

    @classmethod
    def _restored(cls, saved: storage.SavedModel) -> FragmentsModel:
        arrays, info = saved.arrays, saved.info
        productions = Productions(arrays["production_offsets"], arrays["production_labels"])
        fragments = []
        for slot in range(info["slots"]):
            offsets, moves = (arrays[f"fragments.{slot}.{name}"] for name in ("offsets", "moves"))
            fragments.append(Fragments(offsets, moves, np.zeros(len(offsets) - 1)))
        space = Space(
            Vocabulary(info["labels"], productions),
            tuple(fragments),
            info["vector_size"],
            LearnerSettings.model_validate(info["settings"]),
        )
        weights = csr_array(
            (arrays["weights"], arrays["weight_columns"], arrays["weight_offsets"]),
            shape=(len(arrays["bias"]), space.size),
        )
        calibration = Calibration(arrays["slope"], arrays["offset"])
        return cls(
            tuple(info["classes"]), space, weights, arrays["bias"], calibration,
            arrays["document_frequency"], arrays["converged"],
        )  # fmt: skip


def _matrix(values: Floats) -> pa.ListArray:
    rows, width = values.shape
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * width)
    return pa.ListArray.from_arrays(offsets, pa.array(np.ascontiguousarray(values).reshape(-1)))
