"""What the kernels must know of a corpus before they read its rows. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.errors import DataError
from corpusmill.fragments.batches import read_forests, read_sparse
from corpusmill.fragments.examples import Examples
from corpusmill.fragments.learning import count_machines
from corpusmill.fragments.vocabulary import Vocabulary
from corpusmill.types import AnyArray

COPIES = "copies"
"""The column for how often an example occurs."""


class Corpus(NamedTuple):
    """Classes, numbers and sizes that mean the same in all partitions.

    Attributes
    ----------
    classes : tuple of str
    vocabulary : Vocabulary
    slots : int
        Trees an example, at most.
    vector_size : int
        Columns of the feature vectors; 0 where they are not used.
    """

    classes: tuple[str, ...]
    vocabulary: Vocabulary
    slots: int
    vector_size: int

    @property
    def machines(self) -> int:
        """Give the number of machines: one a class, but one for two classes."""
        return count_machines(len(self.classes))

    def examples(self, batch: pa.RecordBatch) -> Examples:
        """Read tree rows."""
        forests = read_forests(batch, self.vocabulary, self.slots)
        vectors = None
        if self.vector_size:
            vectors = read_sparse(batch, self.vector_size, "vector_ids", "vector_values")
        return Examples(forests, self.vocabulary.productions, vectors)


def class_codes(targets: pa.Array, classes: Sequence[str]) -> AnyArray:
    """Give the numbers of classes.

    Raises
    ------
    DataError
        DATA05 names one that is not known.
    """
    found = pc.index_in(targets, value_set=pa.array(classes, pa.string()))
    if found.null_count:
        unknown = targets.filter(found.is_null())[0].as_py()
        allowed = ", ".join(classes[:20])
        raise DataError("DATA05", name=unknown, where="column 'target'", allowed=allowed)
    return found.to_numpy(zero_copy_only=False).astype("int64")
