"""Features of chunking: contexts as strings for a CRF, as probabilities of labels for trees.

A context is what stands at places around a token: the word before it, the tags of three tokens.
A CRF has an indicator for each one. Trees want few dense columns: for a row that stands for label l
(after label p) and its context c

    P(l | c) = (n(l, c) + a P(l | t)) / (n(c) + a),    P(l | t) = (n(l, t) + a P(l)) / (n(t) + a)
    P(l | p, c) likewise, on P(l | p, t), and that on P(l | t)

with t the token's tag and n the counts in training. A sentence in training is encoded by counts
of the other blocks of sentences alone: its own labels would give its answers away.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks._chunks import Sentences
from corpusmill.boosting.batches import Examples
from corpusmill.boosting.structures import ANY, STRUCTURES, Factors
from corpusmill.types import AnyArray, Flags, Floats

Context = tuple[tuple[str, int], ...]
"""Columns of a token, ``words`` or ``tags``, and places relative to it."""


def _run(column: str, *places: int) -> Context:
    return tuple((column, place) for place in places)


WINDOW: tuple[Context, ...] = (
    *(_run("words", place) for place in (-2, -1, 0, 1, 2)),
    _run("words", -1, 0),
    _run("words", 0, 1),
    *(_run("tags", place) for place in (-2, -1, 0, 1, 2)),
    *(_run("tags", place, place + 1) for place in (-2, -1, 0, 1)),
    *(_run("tags", place, place + 1, place + 2) for place in (-2, -1, 0)),
)
"""Those of CRFsuite's tutorial on chunking."""
MIXED: tuple[Context, ...] = tuple(
    (("words", word), ("tags", tag)) for word, tag in ((0, 0), (0, -1), (0, 1), (-1, 0), (1, 0))
)
CANDIDATES = (_run("words", 0), _run("words", -1, 0), _run("words", 0, 1), _run("tags", -1, 0, 1))
"""Contexts that choose the labels which a token may have."""
AFTER: tuple[Context, ...] = (
    _run("tags", 0),
    _run("tags", -1, 0),
    _run("tags", 0, 1),
    _run("tags", -1, 0, 1),
    _run("words", 0),
    _run("words", -1),
)
"""Contexts beside the label before."""
TAG = _run("tags", 0)
SUPPORT = (_run("words", 0), _run("words", -1, 0), _run("words", 0, 1), _run("tags", -1, 0, 1))
"""Contexts whose n(c) is a feature."""
BOUNDARY, UNKNOWN, FIRST = 0, 1, 2
"""Numbers of what lies outside the sentence, of what training has not, and of what it has first."""
REACH = 2
"""Tokens on either side that contexts look at."""
WEIGHT = 3.0
"""a: what the coarser estimate counts for."""
BLOCKS = 10


def attributes(sentences: Sentences) -> list[list[list[str]]]:
    """Give the attributes of each token of each sentence as CRFsuite takes them."""
    found = []
    bounds = sentences.offsets.tolist()
    words, tags = sentences.words.tolist(), sentences.tags.tolist()
    for begin, end in itertools.pairwise(bounds):
        columns = {"words": words[begin:end], "tags": tags[begin:end]}
        found.append([_attributes(columns, at, end - begin) for at in range(end - begin)])
    return found


def _attributes(columns: dict[str, list[str]], at: int, size: int) -> list[str]:
    found = []
    for context in WINDOW:
        if all(0 <= at + place < size for _, place in context):
            names = "|".join(f"{column[0]}[{place}]" for column, place in context)
            values = "|".join(columns[name][at + place] for name, place in context)
            found.append(f"{names}={values}")
    if at == 0:
        found.append("__BOS__")
    if at == size - 1:
        found.append("__EOS__")
    return found


class Labels(NamedTuple):
    """The labels and which may follow which.

    Attributes
    ----------
    names : array of strings, shape (labels,)
        Ascending.
    allowed : Flags, shape (labels + 1, labels)
        By label before, the last row being none, and label: an I only behind its own type.
    """

    names: AnyArray
    allowed: Flags

    @classmethod
    def of(cls, labels: AnyArray) -> Labels:
        """Collect them."""
        names = np.unique(labels)
        allowed = np.ones((len(names) + 1, len(names)), np.bool_)
        for number, name in enumerate(names):
            if name.startswith("I-"):
                allowed[:-1, number] = [other[1:] == name[1:] for other in names]
                allowed[-1, number] = False
        return cls(names, allowed)

    @property
    def free(self) -> Flags:
        """Which labels may stand anywhere."""
        free: Flags = np.logical_and.reduce(self.allowed, axis=0)
        return free


class Counts(NamedTuple):
    """How often contexts have labels.

    Attributes
    ----------
    keys : int64, shape (contexts,)
        Ascending; those that training has.
    table : float32, shape (contexts + 1, labels) or (contexts + 1, labels + 1, labels)
        The last row, of a context that training has not, is 0; the middle axis is the label
        before, its last place none.
    """

    keys: AnyArray
    table: AnyArray


class Encoder:
    """Contexts of training with their counts; turns sentences into structured examples.

    Parameters
    ----------
    sentences : Sentences
        Of training.
    threshold : float
        A token may have the labels whose mean P(l | c) over `CANDIDATES` is at least this.
    """

    def __init__(self, sentences: Sentences, threshold: float) -> None:
        self.labels = Labels.of(sentences.labels)
        self._threshold = threshold
        self._vocabularies = {
            name: pa.array(np.unique(getattr(sentences, name))) for name in ("words", "tags")
        }
        self._states: dict[Context, Counts] = {}
        self._steps: dict[Context, Counts] = {}
        size = len(self.labels.names)
        columns = self._columns(sentences)
        for context in (*WINDOW, *MIXED):
            keys = np.unique(self._keys(columns, context))
            self._states[context] = Counts(keys, np.zeros((len(keys) + 1, size), np.float32))
        for context in AFTER:
            keys = self._states[context].keys
            shape = (len(keys) + 1, size + 1, size)
            self._steps[context] = Counts(keys, np.zeros(shape, np.float32))
        self._add(sentences, 1.0)

    def training_examples(self, sentences: Sentences) -> Examples:
        """Encode the sentences that the encoder was made of, each by the counts of others."""
        size = len(sentences.offsets) - 1
        bounds = [size * block // BLOCKS for block in range(BLOCKS + 1)]
        parts = []
        for first, last in itertools.pairwise(bounds):
            part = sentences.part(first, last)
            self._add(part, -1.0)
            parts.append(self._rows(part, self._gold(part)))
            self._add(part, 1.0)
        return _examples(_joined(parts), sentences)

    def examples(self, sentences: Sentences) -> Examples:
        """Encode sentences whose labels are not looked at."""
        return _examples(self._rows(sentences), sentences)

    def missing(self, examples: Examples, sentences: Sentences) -> int:
        """Count the tokens that have no row of their true label."""
        token = examples.factors.factor_of_row()
        right = self.labels.names[examples.factors.labels] == sentences.labels[token]
        return len(sentences.labels) - len(np.unique(token[right]))

    def decoded(self, examples: Examples, scores: Floats) -> AnyArray:
        """Give the label of each token of the best outputs."""
        chosen = np.flatnonzero(examples.structure.best(scores))
        return self.labels.names[examples.factors.labels[chosen]]

    def _columns(self, sentences: Sentences) -> dict[tuple[str, int], AnyArray]:
        """Give the numbers of the words and tags at the places beside each token."""
        sentence = np.repeat(np.arange(len(sentences.offsets) - 1), np.diff(sentences.offsets))
        begins, ends = sentences.offsets[sentence], sentences.offsets[sentence + 1]
        found = {}
        for name, known in self._vocabularies.items():
            number = pc.index_in(pa.array(getattr(sentences, name)), known)
            number = pc.fill_null(number, UNKNOWN - FIRST).to_numpy().astype(np.int64) + FIRST
            for place in range(-REACH, REACH + 1):
                at = np.arange(len(number)) + place
                outside = (at < begins) | (at >= ends)
                found[name, place] = np.where(outside, BOUNDARY, number[np.where(outside, 0, at)])
        return found

    def _keys(self, columns: dict[tuple[str, int], AnyArray], context: Context) -> AnyArray:
        key = np.zeros(len(columns[context[0]]), np.int64)
        for name, place in context:
            key = key * (len(self._vocabularies[name]) + FIRST) + columns[name, place]
        return key

    def _places(self, sentences: Sentences) -> dict[Context, AnyArray]:
        """Give the row of each token in the table of each context."""
        columns = self._columns(sentences)
        found = {}
        for context, counts in self._states.items():
            keys = self._keys(columns, context)
            at = np.minimum(np.searchsorted(counts.keys, keys), len(counts.keys) - 1)
            found[context] = np.where(counts.keys[at] == keys, at, len(counts.keys))
        return found

    def _gold(self, sentences: Sentences) -> tuple[AnyArray, AnyArray]:
        """Give the numbers of the true labels, and of those before them."""
        label = np.searchsorted(self.labels.names, sentences.labels)
        before = np.where(sentences.firsts(), len(self.labels.names), np.roll(label, 1))
        return label, before

    def _add(self, sentences: Sentences, sign: float) -> None:
        """Count, or take back, the labels of sentences."""
        label, before = self._gold(sentences)
        places = self._places(sentences)
        for context, counts in self._states.items():
            np.add.at(counts.table, (places[context], label), np.float32(sign))
        for context, counts in self._steps.items():
            np.add.at(counts.table, (places[context], before, label), np.float32(sign))

    def _rows(self, sentences: Sentences, gold: tuple[AnyArray, AnyArray] | None = None) -> _Rows:
        """Make the rows of tokens, and with ``gold`` (of `_gold`) those of the true labels too."""
        places = self._places(sentences)
        base = self._base(places[TAG])
        possible = self._possible(places, base)
        if gold is not None:
            possible[np.arange(len(possible)), gold[0]] = True
        first = sentences.firsts()
        before = np.column_stack([np.roll(possible, 1, axis=0) & ~first[:, None], first])
        pairs = before[:, :, None] & possible[:, None, :] & self.labels.allowed
        token, previous, label = np.nonzero(pairs)
        true = np.zeros(len(token), np.bool_)
        if gold is not None:
            true = (label == gold[0][token]) & (previous == gold[1][token])
        return _Rows(
            np.bincount(token, minlength=len(first)),
            np.where(previous == len(self.labels.names), ANY, previous),
            label,
            self._features(sentences, places, base, (token, previous, label)),
            true,
        )

    def _base(self, tag: AnyArray) -> Floats:
        """Give P(l | t) of each token, shape (tokens, labels)."""
        table = self._states[TAG].table.astype(np.float64)
        every = table.sum(axis=0) / max(table.sum(), 1.0)
        return _smoothed(table, every)[tag]

    def _possible(self, places: dict[Context, AnyArray], base: Floats) -> Flags:
        """Tell which labels a token may have; at least one that may stand anywhere."""
        shares = [_smoothed(self._states[c].table[places[c]], base) for c in CANDIDATES]
        mean = np.mean(shares, axis=0)
        possible = mean >= self._threshold
        best = np.where(self.labels.free, mean, -1.0).argmax(axis=1)
        possible[np.arange(len(best)), best] = True
        return possible

    def _features(
        self,
        sentences: Sentences,
        places: dict[Context, AnyArray],
        base: Floats,
        rows: tuple[AnyArray, AnyArray, AnyArray],
    ) -> Floats:
        token, before, label = rows
        coarse = base[token, label]
        columns: list[AnyArray] = []
        for context, counts in self._states.items():
            place = places[context]
            total = counts.table.sum(axis=1)[place][token]
            columns.append(_share(counts.table[place[token], label], total, coarse))
        finer = coarse
        for context, counts in self._steps.items():
            place = places[context][token]
            total = counts.table.sum(axis=2)[place, before]
            columns.append(_share(counts.table[place, before, label], total, finer))
            finer = columns[-1] if context == TAG else finer
        for context in SUPPORT:
            total = self._states[context].table.sum(axis=1)
            columns.append(np.log1p(total)[places[context]][token])
        sort = np.array([name[0] for name in [*self.labels.names, "-"]])
        kind = np.unique([name[2:] for name in [*self.labels.names, ""]], return_inverse=True)[1]
        for number in (label, before):
            columns += [(sort[number] == letter) for letter in "BI"]
            columns.append(kind[number])
        columns += [places[_run("tags", place)][token] for place in (-1, 0, 1)]
        columns += [column[token] for column in _shapes(sentences)]
        return np.column_stack(columns).astype(np.float64, copy=False)


class _Rows(NamedTuple):
    """Rows of tokens: their number, labels before and here, features, whether they are true."""

    counts: AnyArray
    previous: AnyArray
    labels: AnyArray
    features: Floats
    gold: Flags


def _joined(parts: Sequence[_Rows]) -> _Rows:
    return _Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _examples(rows: _Rows, sentences: Sentences) -> Examples:
    nothing = np.zeros(len(rows.counts), np.int64)
    bounds = np.concatenate([[0], np.cumsum(rows.counts)])
    factors = Factors(sentences.offsets, bounds, nothing, nothing, rows.previous, rows.labels)
    known = np.full(len(sentences.offsets) - 1, rows.gold.any())
    return Examples(STRUCTURES["chain"](factors), rows.features, rows.gold, known)


def _smoothed(table: AnyArray, coarse: Floats) -> Floats:
    return _share(table.astype(np.float64), table.sum(axis=1, keepdims=True), coarse)


def _share(count: AnyArray, total: AnyArray, coarse: Floats) -> Floats:
    share: Floats = (count + WEIGHT * coarse) / (total + WEIGHT)
    return share


def _shapes(sentences: Sentences) -> list[AnyArray]:
    """Tell how each word is written, and where in its sentence it stands."""
    names, code = np.unique(sentences.words, return_inverse=True)
    flags = [
        [name[0].isupper() for name in names],
        [name.isupper() for name in names],
        [any(c.isdigit() for c in name) for name in names],
        ["-" in name for name in names],
    ]
    sizes = np.diff(sentences.offsets)
    position = np.arange(len(code)) - np.repeat(sentences.offsets[:-1], sizes)
    left = np.repeat(sizes, sizes) - position
    return [*(np.array(flag)[code] for flag in flags), position, left]
