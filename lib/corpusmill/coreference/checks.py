"""What must hold of documents before kernels index by them. No Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from corpusmill.frames import (
    any_in_row,
    flat_integers,
    list_offsets,
    refuse_null_items,
    refuse_rows,
)
from corpusmill.types import AnyArray, Flags, Offsets

_ID, _KIND = "document_id", "document"
_MENTIONS = ("mention_starts", "mention_ends", "mention_clusters")
_LONG = ("pos", "lemmas", "speakers")
_ALIKE = {
    "constituent_starts": ("constituent_labels", "constituent_ends", "constituent_parents"),
    "entity_starts": ("entity_labels", "entity_ends"),
    "mention_starts": ("mention_ends", "mention_clusters"),
}


def refuse_broken_documents(batch: pa.RecordBatch) -> None:
    """Name the first document that is not as `ANNOTATED_DOCUMENTS` says, if there is one.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns of `corpusmill.coreference.model.DOCUMENT_ROWS`; those of mentions may be
        missing, or null.

    Raises
    ------
    DataError
        DATA01: a null, lists of different lengths, sentences that do not rise from 0 to the number
        of words, a span beyond the words or without one, a mention twice, a cluster below 0, a
        head that is no token, or a parent that does not stand before and around its constituent.

    Notes
    -----
    O(tokens + constituents + mentions log mentions).
    """
    lists = [field.name for field in batch.schema if pa.types.is_list(field.type)]
    for name in {_ID, *lists} - set(_MENTIONS):
        null = batch.column(name).is_null().to_numpy(zero_copy_only=False)
        refuse_rows(batch, null, f"{name} must not be null", _ID, _KIND)
    refuse_null_items(batch, lists, _ID, _KIND)
    for bad, rule in _faults(batch, {name: list_offsets(batch.column(name)) for name in lists}):
        refuse_rows(batch, bad, rule, _ID, _KIND)


def _faults(batch: pa.RecordBatch, offsets: dict[str, Offsets]) -> Iterator[tuple[Flags, str]]:
    """Give flags of documents, and the rule that these break; later rules need earlier ones."""
    sizes = {name: np.diff(each) for name, each in offsets.items()}
    words = sizes["words"]
    for name in _LONG:
        yield sizes[name] != words, f"{name} must be as long as words"
    for name in ("heads", "relations"):
        yield (
            (sizes[name] > 0) & (sizes[name] != words),
            f"{name} must be as long as words or empty",
        )
    for first, others in _ALIKE.items():
        for name in others if first in sizes else ():
            yield sizes[name] != sizes[first], f"{name} must be as long as {first}"
    yield _bad_sentences(batch, offsets["sentence_offsets"], words), _SENTENCES
    heads = flat_integers(batch, "heads")
    bad = (heads < -1) | (heads >= np.repeat(words, sizes["heads"]))
    yield any_in_row(bad, offsets["heads"]), "heads must be tokens of the document, or -1"
    for kind in ("constituent", "entity", "mention"):
        rows = offsets.get(f"{kind}_starts")
        if rows is not None:
            starts, ends = (
                flat_integers(batch, f"{kind}_starts"),
                flat_integers(batch, f"{kind}_ends"),
            )
            bad = (starts < 0) | (ends <= starts) | (ends > np.repeat(words, np.diff(rows)))
            yield any_in_row(bad, rows), f"{kind} spans must hold words of the document"
    yield _bad_parents(batch, offsets["constituent_parents"]), _PARENTS
    if "mention_starts" in sizes:
        rows = offsets["mention_starts"]
        yield any_in_row(flat_integers(batch, "mention_clusters") < 0, rows), _CLUSTERS
        yield _repeated(batch, rows), "no mention must stand twice"


_SENTENCES = "sentence_offsets must rise from 0 to the number of words"
_PARENTS = "constituent_parents must be -1 or a constituent before and around"
_CLUSTERS = "mention_clusters must not be below 0"


def _bad_sentences(batch: pa.RecordBatch, rows: Offsets, words: AnyArray) -> Flags:
    values, filled = flat_integers(batch, "sentence_offsets"), np.diff(rows) > 0
    falls = np.zeros(len(values), np.bool_)
    falls[1:] = np.diff(values) <= 0
    falls[rows[:-1][filled]] = False
    bad = ~filled | any_in_row(falls, rows)
    bad[filled] |= values[rows[:-1][filled]] != 0
    bad[filled] |= values[rows[1:][filled] - 1] != words[filled]
    return bad


def _bad_parents(batch: pa.RecordBatch, rows: Offsets) -> Flags:
    parents = flat_integers(batch, "constituent_parents")
    first = np.repeat(rows[:-1], np.diff(rows))
    bad = (parents < -1) | (parents >= np.arange(len(parents)) - first)
    inner = np.flatnonzero(~bad & (parents >= 0))
    above = parents[inner] + first[inner]
    starts, ends = (
        flat_integers(batch, "constituent_starts"),
        flat_integers(batch, "constituent_ends"),
    )
    bad[inner] = (starts[inner] < starts[above]) | (ends[inner] > ends[above])
    return any_in_row(bad, rows)


def _repeated(batch: pa.RecordBatch, rows: Offsets) -> Flags:
    owners = np.repeat(np.arange(len(rows) - 1), np.diff(rows))
    keys = np.stack(
        [owners, flat_integers(batch, "mention_starts"), flat_integers(batch, "mention_ends")]
    )
    order = np.lexsort(keys[::-1])
    same = np.zeros(len(order), np.bool_)
    same[1:] = (keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)
    bad = np.zeros(len(rows) - 1, np.bool_)
    bad[owners[order[same]]] = True
    return bad
