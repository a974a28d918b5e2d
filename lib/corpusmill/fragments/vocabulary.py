"""Labels and productions as numbers that mean the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.fragments.forests import Productions, intern
from corpusmill.types import Forest, TokenIds

PRODUCTIONS = pa.schema([("production", pa.list_(pa.string()))])


class Vocabulary:
    """The labels and productions of a corpus, each with its number.

    Parameters
    ----------
    labels : sequence of str
        In the order of their numbers.
    productions : Productions
        Over these labels.
    """

    def __init__(self, labels: Sequence[str], productions: Productions) -> None:
        self.labels = tuple(labels)
        self.productions = productions

    @classmethod
    def of(cls, found: pa.Array) -> Vocabulary:
        """Give numbers to what `distinct_productions` found, in the order of their spelling.

        Parameters
        ----------
        found : pyarrow.ListArray of strings
            Distinct, in any order; a list of one is the label of a tree of one node.
        """
        labels = sorted(pc.unique(found.flatten()).to_pylist())
        coded = pc.index_in(found.flatten(), value_set=pa.array(labels, pa.string()))
        ids = coded.to_numpy(zero_copy_only=False).astype(np.int32)
        lengths = pc.list_value_length(found).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        rows = [ids[end - n : end].tolist() for end, n in zip(ends, lengths, strict=True) if n > 1]
        rows.sort()
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        values = np.array([label for row in rows for label in row], np.int32)
        return cls(labels, Productions(offsets, values))

    @cached_property
    def _label_set(self) -> pa.Array:
        return pa.array(self.labels, pa.string())

    @cached_property
    def inner_labels(self) -> frozenset[str]:
        """Give the labels that ever stand above others."""
        rules = self.productions
        left = np.unique(rules.labels[rules.offsets[:-1]])
        return frozenset(self.labels[label] for label in left)

    def encode(self, labels: pa.Array) -> TokenIds:
        """Give the labels' numbers; each that is not known gets one of its own, for this call."""
        coded = pc.index_in(labels, value_set=self._label_set)
        if coded.null_count:
            fresh = labels.filter(coded.is_null()).dictionary_encode().indices
            codes = coded.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
            codes[codes < 0] = fresh.to_numpy(zero_copy_only=False) + len(self.labels)
            return codes
        return coded.to_numpy(zero_copy_only=False).astype(np.int32)

    def text(self, production: int) -> list[str]:
        """Spell a production: its left-hand side and its right-hand side."""
        begin, end = self.productions.offsets[production : production + 2]
        return [self.labels[label] for label in self.productions.labels[begin:end]]


def distinct_productions(labels: pa.Array, forest: Forest) -> pa.Array:
    """List the distinct productions of a batch, as lists of labels.

    Parameters
    ----------
    labels : pyarrow.Array
        The labels that the forest's numbers are places of.
    forest : Forest
    """
    found = intern(forest).productions
    single = np.unique(forest.labels[forest.offsets[:-1][np.diff(forest.offsets) == 1]])
    offsets = np.concatenate([found.offsets, found.offsets[-1] + 1 + np.arange(len(single))])
    values = labels.take(pa.array(np.concatenate([found.labels, single])))
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
