"""Two layers of the CoNLL-2005 shared task, a file each -> parsed sentences with propositions.

The layers are parallel line by line. No Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.corpora import proposition_kernels as kernels
from corpusmill.corpora import tree_kernels
from corpusmill.corpora.tree_formats import FileTrees, parse_conll
from corpusmill.types import AnyArray, Offsets

DIFFERENT_LENGTH = "layers of different length"
WRONG_COLUMNS = "wrong number of columns"
WRONG_PREDICATES = "not a column a predicate"
BAD_SPANS = "unbalanced spans"
NOT_UTF8 = "not UTF-8"
TOO_LONG = "too long"

_REASONS = {
    kernels.COLUMNS: WRONG_COLUMNS,
    kernels.PREDICATES: WRONG_PREDICATES,
    kernels.SPANS: BAD_SPANS,
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_KEPT_BYTES = 2000


class Layer(NamedTuple):
    """A file: its name, for the quarantine, and its bytes."""

    source: str
    data: bytes


class _Fault(NamedTuple):
    reason: str
    source: str
    line: int
    record: bytes


class _Props(NamedTuple):
    """The layer of propositions: the sentences' bytes and what they say."""

    begins: Offsets
    ends: Offsets
    found: kernels.Propositions
    lemmas: pa.Array
    labels: pa.Array
    faults: dict[int, _Fault]


def parse_layers(
    document_id: str, props: Layer, parses: Layer, max_chars: int = 65_536
) -> pa.RecordBatch:
    """Read the sentences of a document.

    Parameters
    ----------
    document_id
        The document's name.
    props
        A lemma or ``-``, then a column of spans a predicate.
    parses
        A part of speech and a bit of the parse.
    max_chars
        A longer sentence, in bytes of either layer, is bad.

    Returns
    -------
    pa.RecordBatch
        ``source``, ``position``, ``reason`` (null for a good sentence), ``record`` and the columns
        of `corpusmill.corpora.schemas.PROPOSITIONS`; a row a sentence, as many as the longer layer
        has. What the row of a bad sentence says of it is void.

    Notes
    -----
    When the layers differ in the number of sentences, one has lost its place: then all is bad
    from the first sentence of different length on. O(bytes).
    """
    props, parses = (
        layer._replace(data=layer.data.removeprefix(_BYTE_ORDER_MARK)) for layer in (props, parses)
    )
    spans = _parse_props(props, max_chars)
    file = parse_conll(parses.data, max_chars=max_chars)
    faults = dict(_differences(spans, file, props, parses))
    for number in file.trees.faults:
        faults[number] = _parse_fault(file, number, parses)
    faults.update(spans.faults)
    count = max(len(spans.begins), len(file.begins))
    columns = {**_told(count, faults, props.source), **_sentences(document_id, count, spans, file)}
    return pa.RecordBatch.from_pydict(columns)


def _parse_props(layer: Layer, max_chars: int) -> _Props:
    data = layer.data
    array = np.frombuffer(data, np.uint8)
    begins, ends = tree_kernels.split_sentences(array)
    reasons = dict(_unusable(data, begins, ends, max_chars))
    usable = ends.copy()
    usable[list(reasons)] = begins[list(reasons)]
    found, wrong = kernels.scan_propositions(array, begins, usable)
    for number in np.flatnonzero(wrong.codes).tolist():
        reasons[number] = (_REASONS[int(wrong.codes[number])], int(wrong.places[number]))
    faults = {
        number: _Fault(reason, layer.source, _line(data, place), _head(data, begins, ends, number))
        for number, (reason, place) in reasons.items()
    }
    lemmas = _strings(array, found.lemma_begins, found.lemma_lengths)
    labels = _strings(array, found.label_begins, found.label_lengths)
    return _Props(begins, ends, found, lemmas, labels, faults)


def _unusable(
    data: bytes, begins: Offsets, ends: Offsets, max_chars: int
) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yield the sentences that no scanner should see, each with reason and place."""
    for number in np.flatnonzero(ends - begins > max_chars).tolist():
        yield number, (TOO_LONG, int(begins[number]))
    if data.isascii():
        return
    for number, (begin, end) in enumerate(zip(begins.tolist(), ends.tolist(), strict=True)):
        try:
            data[begin:end].decode()
        except UnicodeDecodeError as error:
            yield number, (NOT_UTF8, begin + error.start)


def _differences(
    spans: _Props, file: FileTrees, props: Layer, parses: Layer
) -> Iterator[tuple[int, _Fault]]:
    """Yield the sentences whose layers do not go together."""
    ours = _line_counts(props.data, spans.begins, spans.ends)
    theirs = _line_counts(parses.data, file.begins, file.ends)
    both, longer = min(len(ours), len(theirs)), max(len(ours), len(theirs))
    differ = np.flatnonzero(ours[:both] != theirs[:both])
    if longer > both:
        differ = np.arange(differ[0] if len(differ) else both, longer)
    for number in differ.tolist():
        layer, begins, ends = props, spans.begins, spans.ends
        if number >= len(begins):
            layer, begins, ends = parses, file.begins, file.ends
        line, record = _line(layer.data, begins[number]), _head(layer.data, begins, ends, number)
        yield number, _Fault(DIFFERENT_LENGTH, layer.source, line, record)


def _line_counts(data: bytes, begins: Offsets, ends: Offsets) -> AnyArray:
    """Count the lines of each sentence; that at the file's end may lack its line feed."""
    feeds = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    counts = np.searchsorted(feeds, ends) - np.searchsorted(feeds, begins)
    if len(ends) and not data[: ends[-1]].endswith(b"\n"):
        counts[-1] += 1
    return counts


def _parse_fault(file: FileTrees, number: int, layer: Layer) -> _Fault:
    reason, line = file.trees.faults[number].reason, int(file.lines[number])
    return _Fault(reason, layer.source, line, _head(layer.data, file.begins, file.ends, number))


def _line(data: bytes, place: int) -> int:
    return 1 + data.count(b"\n", 0, place)


def _head(data: bytes, begins: Offsets, ends: Offsets, number: int) -> bytes:
    return data[begins[number] : min(ends[number], begins[number] + _KEPT_BYTES)]


def _told(count: int, faults: dict[int, _Fault], source: str) -> dict[str, pa.Array]:
    """Give the columns that tell good sentences from bad ones."""
    reasons: list[str | None] = [None] * count
    sources, positions, records = [source] * count, [""] * count, [b""] * count
    for number, fault in faults.items():
        reasons[number], sources[number] = fault.reason, fault.source
        positions[number] = f"sentence {number}, line {fault.line}"
        records[number] = fault.record
    return {
        "source": pa.array(sources, pa.string()),
        "position": pa.array(positions, pa.string()),
        "reason": pa.array(reasons, pa.string()),
        "record": pa.array(records, pa.binary()),
    }


def _sentences(document_id: str, count: int, props: _Props, file: FileTrees) -> dict[str, pa.Array]:
    """Give the columns of PROPOSITIONS; a sentence that a layer lacks is empty there."""
    found, trees = props.found, file.trees
    nodes, predicates = _padded(trees.offsets, count), _padded(found.offsets, count)
    arguments = found.spans[predicates]
    return {
        "document_id": pa.array([document_id] * count, pa.string()),
        "sentence": pa.array(np.arange(count, dtype=np.int32)),
        "has_words": pa.array(np.zeros(count, np.bool_)),
        "node_labels": list_column(trees.labels.cast(pa.string()), nodes),
        "node_arities": list_column(trees.arities, nodes),
        "predicates": list_column(found.tokens, predicates),
        "lemmas": list_column(props.lemmas, predicates),
        "argument_offsets": offsets_column(predicates, found.spans),
        "argument_labels": list_column(props.labels, arguments),
        "argument_firsts": list_column(found.firsts, arguments),
        "argument_lasts": list_column(found.lasts, arguments),
    }


def _padded(offsets: Offsets, count: int) -> Offsets:
    return np.pad(offsets, (0, count + 1 - len(offsets)), mode="edge")


def _strings(data: AnyArray, begins: Offsets, lengths: Offsets) -> pa.Array:
    offsets, values = tree_kernels.gather(data, begins, lengths)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.large_string(), len(begins), buffers).cast(pa.string())


def list_column(values: AnyArray | pa.Array, offsets: Offsets) -> pa.ListArray:
    """Wrap flat values and offsets as an Arrow list column."""
    flat = values if isinstance(values, pa.Array) else pa.array(values)
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), flat)


def offsets_column(outer: Offsets, inner: Offsets) -> pa.ListArray:
    """Give each row its own offsets, from 0.

    Parameters
    ----------
    outer : Offsets, shape (rows + 1,)
        Row r has the parts ``outer[r]:outer[r + 1]``.
    inner : Offsets, shape (parts + 1,)
        Part p has the values ``inner[p]:inner[p + 1]``.
    """
    rows = len(outer) - 1
    row = np.repeat(np.arange(rows), np.diff(outer) + 1)
    part = np.arange(len(row)) - row + outer[0]
    values = (inner[part] - inner[outer[row]]).astype(np.int32)
    return list_column(values, outer - outer[0] + np.arange(rows + 1))
