"""Sentences of CoNLL-2000, their chunks, and scores as ``conlleval`` counts them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np

from corpusmill.types import AnyArray, Flags, Offsets

Chunk = tuple[int, int, str]
"""First token, the token behind the last, and the type."""


class Sentences(NamedTuple):
    """Sentences, one after the other.

    Attributes
    ----------
    offsets : Offsets, shape (sentences + 1,)
        Sentence n has the tokens ``offsets[n]:offsets[n + 1]``, at least one.
    words, tags, labels : arrays of strings, shape (tokens,)
        A label is O, or B or I, a hyphen and the type of the chunk.
    """

    offsets: Offsets
    words: AnyArray
    tags: AnyArray
    labels: AnyArray

    def part(self, first: int, last: int) -> Sentences:
        """Give the sentences ``first:last``."""
        begin, end = self.offsets[[first, last]]
        columns = (column[begin:end] for column in self[1:])
        return Sentences(self.offsets[first : last + 1] - begin, *columns)

    def firsts(self) -> Flags:
        """Tell which tokens begin a sentence, shape (tokens,)."""
        found = np.zeros(len(self.words), np.bool_)
        found[self.offsets[:-1]] = True
        return found


def read_conll(path: Path) -> Sentences:
    """Read word, tag and label a line, an empty line behind each sentence."""
    rows: list[list[str]] = []
    offsets = [0]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if fields := line.split():
                rows.append(fields)
            elif len(rows) > offsets[-1]:
                offsets.append(len(rows))
    if len(rows) > offsets[-1]:
        offsets.append(len(rows))
    words, tags, labels = np.array(rows).T
    return Sentences(np.array(offsets), words, tags, labels)


def chunks_of(labels: AnyArray, sentences: Sentences) -> set[Chunk]:
    """Collect the chunks: labels of one type side by side, in a sentence, up to the next B.

    An I behind nothing, or behind another type, begins a chunk too.
    """
    names, code = np.unique(labels, return_inverse=True)
    inside = np.array([name != "O" for name in names])[code]
    opens = np.array([name.startswith("B-") for name in names])[code]
    _, kinds = np.unique([name[2:] for name in names], return_inverse=True)
    first, kind = sentences.firsts(), kinds[code]
    opens[1:] |= ~inside[:-1] | (kind[1:] != kind[:-1])
    begins = np.flatnonzero(inside & (opens | first))
    stops = np.append(np.flatnonzero(opens | first | ~inside), len(labels))
    ends = stops[np.searchsorted(stops, begins, side="right")]
    types = [name[2:] for name in labels[begins]]
    return set(zip(begins.tolist(), ends.tolist(), types, strict=True))


class Scores(NamedTuple):
    """Scores of chunks in percent; ``accuracy`` is of labels.

    Attributes
    ----------
    precision, recall, f1, accuracy : float
    """

    precision: float
    recall: float
    f1: float
    accuracy: float


def scores_of(found: AnyArray, sentences: Sentences) -> Scores:
    """Compare labels with the true ones: a chunk is right if both its ends and its type are."""
    ours, gold = chunks_of(found, sentences), chunks_of(sentences.labels, sentences)
    right = len(ours & gold)
    precision, recall = right / max(len(ours), 1), right / max(len(gold), 1)
    f1 = 2 * right / max(len(ours) + len(gold), 1)
    accuracy = float(np.mean(found == sentences.labels))
    return Scores(100 * precision, 100 * recall, 100 * f1, 100 * accuracy)
