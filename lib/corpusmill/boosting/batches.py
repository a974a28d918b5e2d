"""Arrow rows of factors to flat arrays, and broken rows by name. No Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.boosting.structures import ANY, STRUCTURES, Factors, LatticeStructure
from corpusmill.errors import DataError
from corpusmill.frames import any_in_row, list_offsets, refuse_null_items, refuse_rows
from corpusmill.types import AnyArray, Flags, Floats, Offsets

FACTOR_ROWS = pa.schema(
    [
        ("example_id", pa.string()),
        ("row_offsets", pa.list_(pa.int32())),
        ("starts", pa.list_(pa.int32())),
        ("ends", pa.list_(pa.int32())),
        ("previous", pa.list_(pa.int32())),
        ("labels", pa.list_(pa.int32())),
        ("features", pa.list_(pa.float64())),
        ("gold", pa.list_(pa.int32())),
    ]
)
SPANNED = ("spans", "segments")
LABELLED = ("chain", "segments")
MAX_POSITION = 1 << 24
MAX_LABEL = (1 << 16) - 1
"""Example, position and label together have to fit into 64 bits."""


class Examples(NamedTuple):
    """A batch of structured examples.

    Attributes
    ----------
    structure : LatticeStructure
        Over the factors of all of them.
    features : Floats, shape (rows, width)
    gold : Flags, shape (rows,)
        The true outputs; of an example without one, nothing is set.
    known : Flags, shape (examples,)
        Whether the true output is known.
    """

    structure: LatticeStructure
    features: Floats
    gold: Flags
    known: Flags

    @property
    def factors(self) -> Factors:
        """Return the factors."""
        return self.structure.factors


def ragged(batch: pa.RecordBatch, name: str) -> tuple[Offsets, AnyArray]:
    """Give a list column as offsets and values; a null or a missing column has empty lists."""
    if name not in batch.schema.names:
        return np.zeros(batch.num_rows + 1, np.int64), np.zeros(0, np.int64)
    column = batch.column(name)
    return list_offsets(column), column.flatten().to_numpy(zero_copy_only=False)


def read_factors(batch: pa.RecordBatch) -> tuple[Factors, Offsets]:
    """Read the factors of a batch, and check that the lists of each row fit together.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns of `FACTOR_ROWS`; ``features`` and ``gold`` are not looked at.

    Returns
    -------
    factors : Factors
        Missing ``starts``, ``ends``, ``previous`` and ``labels`` are 0, 0, any and 0.
    example_rows : Offsets, shape (examples + 1,)

    Raises
    ------
    DataError
        DATA01: a broken row, by name.
    """

    def refuse(bad: Flags, rule: str) -> None:
        refuse_rows(batch, bad, rule, "example_id", "example")

    refuse_null_items(batch, FACTOR_ROWS.names[1:], "example_id", "example")
    bounds, places = ragged(batch, "row_offsets")
    refuse(np.diff(bounds) == 0, "row_offsets must begin with 0")
    firsts, lasts = bounds[:-1], bounds[1:] - 1
    refuse(places[firsts] != 0, "row_offsets must begin with 0")
    if "features" in batch.schema.names:
        # Before anything becomes as large as a broken record says.
        behind = places[lasts] > np.diff(ragged(batch, "features")[0])
        refuse(behind, "features must hold numbers for all rows of row_offsets")
    sizes = np.diff(places)
    within = np.ones(len(sizes), np.bool_)
    within[firsts[1:] - 1] = False
    factors = np.concatenate([[0], np.cumsum(np.diff(bounds) - 1)])
    counts = sizes[within]
    refuse(any_in_row(counts < 1, factors), "row_offsets must rise: every factor has a row")
    rows = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    example_rows = np.concatenate([[0], np.cumsum(places[lasts], dtype=np.int64)])

    def column(name: str, wanted: Offsets, otherwise: int, what: str) -> AnyArray:
        offsets, values = ragged(batch, name)
        lengths = np.diff(offsets)
        refuse((lengths != 0) & (lengths != np.diff(wanted)), f"{name} must hold a number a {what}")
        full = np.full(wanted[-1], otherwise, np.int64)
        given = np.repeat(lengths > 0, np.diff(wanted))
        full[given] = values
        return full

    return Factors(
        factors,
        rows,
        column("starts", factors, 0, "factor"),
        column("ends", factors, 0, "factor"),
        column("previous", example_rows, ANY, "row"),
        column("labels", example_rows, 0, "row"),
    ), example_rows


def check_factors(batch: pa.RecordBatch, factors: Factors, structure: str) -> None:
    """Check what a structure asks of its factors.

    Raises
    ------
    DataError
        DATA01: a row that cannot be, by name.
    """

    def refuse(bad_factor: Flags, rule: str) -> None:
        bad = any_in_row(bad_factor, factors.factors)
        refuse_rows(batch, bad, rule, "example_id", "example")

    needed = ("starts", "ends") * (structure in SPANNED) + ("labels",) * (structure in LABELLED)
    for name in needed:
        lacks = (np.diff(ragged(batch, name)[0]) == 0) & (np.diff(factors.factors) > 0)
        rule = f"structure {structure!r} needs {name}"
        refuse_rows(batch, lacks, rule, "example_id", "example")
    first = np.zeros(len(factors.rows) - 1, np.bool_)
    if structure in SPANNED:
        wrong = (factors.starts < 0) | (factors.ends <= factors.starts)
        refuse(wrong | (factors.ends > MAX_POSITION), "0 <= start < end must hold for every factor")
        first = factors.starts == 0
    elif structure == "chain":
        first[factors.factors[:-1][np.diff(factors.factors) > 0]] = True
    if structure in LABELLED:
        broken = (factors.labels < 0) | (factors.previous < ANY)
        refuse(any_in_row(broken, factors.rows), "labels must be 0 or more, previous -1 or more")
        large = np.maximum(factors.labels, factors.previous) > MAX_LABEL
        refuse(any_in_row(large, factors.rows), f"labels must be at most {MAX_LABEL}")
        asks = any_in_row(factors.previous != ANY, factors.rows)
        refuse(first & asks, "at the first position previous must be -1: no label is before it")


def read_examples(batch: pa.RecordBatch, structure: str, width: int) -> Examples:
    """Read a batch of structured examples.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns of `FACTOR_ROWS`; those that the structure does not read, and ``gold``, may be
        missing.
    structure : str
        A key of `corpusmill.boosting.structures.STRUCTURES`.
    width : int
        Features a row.

    Raises
    ------
    DataError
        DATA01: a broken row, by name.
    """
    factors, example_rows = read_factors(batch)
    check_factors(batch, factors, structure)

    def refuse(bad: Flags, rule: str) -> None:
        refuse_rows(batch, bad, rule, "example_id", "example")

    offsets, values = ragged(batch, "features")
    rule = f"features must hold {width} numbers a row"
    refuse(np.diff(offsets) != np.diff(example_rows) * width, rule)
    prepared = STRUCTURES[structure](factors)
    bounds, chosen = ragged(batch, "gold")
    counts = np.diff(bounds)
    known = np.zeros(batch.num_rows, np.bool_)
    if "gold" in batch.schema.names:
        known = batch.column("gold").is_valid().to_numpy(zero_copy_only=False)
    outside = (chosen < 0) | (chosen >= np.repeat(np.diff(example_rows), counts))
    refuse(any_in_row(outside, bounds), "gold must hold numbers of the example's rows")
    gold = np.zeros(example_rows[-1], np.bool_)
    gold[chosen + np.repeat(example_rows[:-1], counts)] = True
    if len(prepared.bases):
        taken = any_in_row(gold, factors.rows)
        gold[prepared.bases] |= ~taken & known[factors.example_of_factor()]
    rule = f"gold must be an output of structure {structure!r}: all of it, and nothing else"
    chosen_rows = np.concatenate([[0], np.cumsum(gold)])[factors.rows]
    refuse(any_in_row(np.diff(chosen_rows) > 1, factors.factors), rule)
    refuse(known & ~prepared.is_output(gold), rule)
    return Examples(prepared, values.astype(np.float64).reshape(-1, width), gold, known)


def width_of(batch: pa.RecordBatch) -> int:
    """Give the number of features a row, from the first example that has rows.

    Raises
    ------
    DataError
        DATA01: its features are no whole number a row.
    """
    _, example_rows = read_factors(batch)
    offsets, _ = ragged(batch, "features")
    rows, values = np.diff(example_rows), np.diff(offsets)
    n = int(np.flatnonzero(rows > 0)[0]) if (rows > 0).any() else -1
    if n < 0:
        return 0
    if values[n] % rows[n]:
        name = batch.column("example_id")[n].as_py()
        problem = f"{values[n]} features are no whole number for each of {rows[n]} rows"
        raise DataError("DATA01", source=f"example {name!r}", problem=problem)
    return int(values[n] // rows[n])
