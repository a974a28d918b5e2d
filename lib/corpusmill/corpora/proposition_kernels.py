"""The layer of propositions of the CoNLL-2005 shared task, as bytes to flat arrays.

A token's line holds a lemma or ``-``, then one column a predicate of its sentence, in which
``(A0*`` opens a span before the token and ``*)`` closes one after it. No text is copied: a lemma
or a label is a range of bytes, as in `corpusmill.corpora.tree_kernels`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.corpora.tree_kernels import Faults
from corpusmill.types import AnyArray, Offsets

COLUMNS, PREDICATES, SPANS = range(101, 104)
"""Lines of a sentence differ in columns; more or fewer predicates than columns; bad spans."""

_OPEN, _CLOSE, _STAR, _DASH = (np.uint8(ord(c)) for c in "()*-")
_FEED, _RETURN, _SPACE, _TAB = (np.uint8(ord(c)) for c in "\n\r \t")
_kernel = njit(cache=True, nogil=True)


class Propositions(NamedTuple):
    """Predicates and their labelled spans; a bad sentence has none.

    Attributes
    ----------
    offsets : Offsets, shape (sentences + 1,)
        Sentence s has the predicates ``offsets[s]:offsets[s + 1]``.
    tokens : int32, shape (predicates,)
        The predicate's place in the sentence, from 0.
    lemma_begins, lemma_lengths : int64, shape (predicates,)
    spans : Offsets, shape (predicates + 1,)
        Predicate p has the spans ``spans[p]:spans[p + 1]``, by their begin, outer ones first.
    firsts, lasts : int32, shape (spans,)
        Span k is the tokens ``firsts[k]:lasts[k]``.
    label_begins, label_lengths : int64, shape (spans,)
    """

    offsets: Offsets
    tokens: AnyArray
    lemma_begins: Offsets
    lemma_lengths: Offsets
    spans: Offsets
    firsts: AnyArray
    lasts: AnyArray
    label_begins: Offsets
    label_lengths: Offsets


class _Fields(NamedTuple):
    """A sentence's fields: line l has those from ``lines[l]`` to ``lines[l + 1]``."""

    lines: Offsets
    begins: Offsets
    ends: Offsets


def scan_propositions(
    data: AnyArray, begins: Offsets, ends: Offsets
) -> tuple[Propositions, Faults]:
    """Find predicates and spans.

    Parameters
    ----------
    data : uint8
    begins, ends : int64, shape (sentences,)
        Sentence s has the bytes ``begins[s]:ends[s]``, whole lines.

    Returns
    -------
    Propositions
        The k-th column belongs to the k-th token with a lemma.
    Faults
        COLUMNS at the first line with another number of fields; PREDICATES at the sentence;
        SPANS at a field that is no bit of spans or closes too many, or at the end of what stays
        open.

    Notes
    -----
    O(bytes).
    """
    *found, codes, places = _scan(data, begins, ends)
    return Propositions(*found), Faults(codes, places)


@_kernel
def _scan(data, begins, ends):  # type: ignore[no-untyped-def]
    lines, brackets = 0, 0
    for s in range(begins.size):
        for at in range(begins[s], ends[s]):
            brackets += data[at] == _OPEN
            lines += data[at] == _FEED
        lines += 1
    offsets = np.zeros(begins.size + 1, np.int64)
    codes, places = np.zeros(begins.size, np.int32), np.zeros(begins.size, np.int64)
    tokens, spans = np.empty(lines, np.int32), np.zeros(lines + 1, np.int64)
    lemmas, labels = np.empty((2, lines), np.int64), np.empty((2, brackets), np.int64)
    bounds, stack = np.empty((2, brackets), np.int32), np.empty(brackets, np.int64)
    for s in range(begins.size):
        fields = _fields(data, begins[s], ends[s])
        code, place = _check(data, fields)
        predicate = offsets[s]
        for line in range(fields.lines.size - 1):
            field = fields.lines[line]
            if code > 0 or _is_dash(data, fields, field):
                continue
            tokens[predicate] = line
            lemmas[0, predicate] = fields.begins[field]
            lemmas[1, predicate] = fields.ends[field] - fields.begins[field]
            column, span = predicate - offsets[s] + 1, spans[predicate]
            span, place = _read_spans(data, fields, column, span, bounds, labels, stack)
            predicate += 1
            spans[predicate] = span
            code = SPANS if place >= 0 else 0
        codes[s] = code
        places[s] = place if code > 0 else 0
        offsets[s + 1] = offsets[s] if code > 0 else predicate
    count = offsets[-1]
    size = spans[count]
    return (
        offsets, tokens[:count], lemmas[0, :count], lemmas[1, :count], spans[: count + 1],
        bounds[0, :size], bounds[1, :size], labels[0, :size], labels[1, :size], codes, places,
    )  # fmt: skip


@_kernel
def _fields(data, begin, end):  # type: ignore[no-untyped-def]
    """Cut a sentence into lines and fields, which blanks, tabs and returns divide."""
    rows, count, inside = 1, 0, False
    for at in range(begin, end):
        blank = data[at] in (_SPACE, _TAB, _RETURN, _FEED)
        rows += data[at] == _FEED
        count += not blank and not inside
        inside = not blank
    lines = np.zeros(rows + 1, np.int64)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    field, line, inside = 0, 0, False
    for at in range(begin, end + 1):
        byte = data[at] if at < end else _FEED
        blank = byte in (_SPACE, _TAB, _RETURN, _FEED)
        if inside and blank:
            ends[field] = at
            field += 1
        elif not inside and not blank:
            begins[field] = at
        inside = not blank
        if byte == _FEED and field > lines[line]:
            line += 1
            lines[line] = field
    return _Fields(lines[: line + 1], begins, ends)


@_kernel
def _is_dash(data, fields, field):  # type: ignore[no-untyped-def]
    begin = fields.begins[field]
    return fields.ends[field] == begin + 1 and data[begin] == _DASH


@_kernel
def _check(data, fields):  # type: ignore[no-untyped-def]
    """Return code and place of lines that differ, or of columns that are not the predicates'."""
    lines = fields.lines
    if lines.size == 1:
        return 0, -1
    columns, predicates = lines[1], 0
    for line in range(lines.size - 1):
        if lines[line + 1] - lines[line] != columns:
            return COLUMNS, fields.begins[lines[line]]
        predicates += not _is_dash(data, fields, lines[line])
    return (0, -1) if predicates == columns - 1 else (PREDICATES, fields.begins[0])


@_kernel
def _read_spans(data, fields, column, span, bounds, labels, stack):  # type: ignore[no-untyped-def]
    """Write a column's spans from number ``span`` on; return the next, and the bad place or -1."""
    top, lines, end = 0, fields.lines, 0
    for line in range(lines.size - 1):
        at, end = fields.begins[lines[line] + column], fields.ends[lines[line] + column]
        star = at
        while star < end and data[star] != _STAR:
            star += 1
        if star == end:
            return span, at
        while at < star:
            label = at + 1
            if data[at] != _OPEN or label == star:
                return span, at
            at = label
            while at < star and data[at] != _OPEN and data[at] != _CLOSE:
                at += 1
            if at == label:
                return span, at
            bounds[0, span] = line
            labels[0, span], labels[1, span] = label, at - label
            stack[top] = span
            top += 1
            span += 1
        for close in range(star + 1, end):
            if data[close] != _CLOSE or top == 0:
                return span, close
            top -= 1
            bounds[1, stack[top]] = line + 1
    return span, end - 1 if top > 0 else -1
