"""Names for arrays by meaning, rank and dtype; small tuples of arrays. No Spark.

Ragged data is one flat array with offsets, exactly Arrow's list layout: part
``i`` of ``values`` is ``values[offsets[i]:offsets[i + 1]]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Offsets: TypeAlias = NDArray[np.int64]
"""Rank 1, one longer than the parts, first 0, never falling."""

TokenIds: TypeAlias = NDArray[np.int32]
"""Rank 1, ids into a vocabulary."""

Counts: TypeAlias = NDArray[np.float64]
"""Rank 1, occurrences; fractional where they are weighted."""

Floats: TypeAlias = NDArray[np.float64]
"""Any rank, parameters and sums."""

Probabilities: TypeAlias = NDArray[np.float64]
"""Last axis sums to one."""

LogProbs: TypeAlias = NDArray[np.float64]
"""Natural logarithms."""

Flags: TypeAlias = NDArray[np.bool_]
"""Yes or no."""

AnyArray: TypeAlias = NDArray[Any]


class Bags(NamedTuple):
    """Bags of features in compressed sparse rows: row i is a feature vector.

    Attributes
    ----------
    offsets : Offsets, shape (rows + 1,)
    ids : TokenIds, shape (nonzeros,)
    counts : Counts, shape (nonzeros,)
    """

    offsets: Offsets
    ids: TokenIds
    counts: Counts


class Patterns(NamedTuple):
    """Patterns of instances, each instance a bag of features.

    Attributes
    ----------
    offsets : Offsets, shape (patterns + 1,)
        Pattern n holds the instances ``offsets[n]:offsets[n + 1]`` of ``bags``.
    bags : Bags
        All instances.
    weights : Counts, shape (instances,)
        How often the instance occurs in its pattern (identical ones are collapsed).
    labels : Flags, shape (patterns, classes)
        y; rows without known labels are not read.
    labelled : Flags, shape (patterns,)
        Whether the labels of the pattern are known.
    """

    offsets: Offsets
    bags: Bags
    weights: Counts
    labels: Flags
    labelled: Flags


class Forest(NamedTuple):
    """Ordered trees in preorder; a node's label and number of children say all.

    Attributes
    ----------
    offsets : Offsets, shape (trees + 1,)
        Tree t has the nodes ``offsets[t]:offsets[t + 1]``; an empty tree has none.
    labels : TokenIds, shape (nodes,)
        Ids into a vocabulary of labels.
    arities : int32, shape (nodes,)
        Numbers of children.
    """

    offsets: Offsets
    labels: TokenIds
    arities: AnyArray
