"""The corpus that the benchmarks share: Reuters documents with a top-ten label, on arrays."""

from __future__ import annotations

import gzip
import itertools
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.alignment.batches import list_column
from corpusmill.corpora.reuters import Document, parse_sgml
from corpusmill.corpora.schemas import PATTERNS
from corpusmill.corpora.text import tokenize
from corpusmill.splits import schema_of
from corpusmill.types import AnyArray, Bags, Offsets, Patterns

CLASSES = 10
DOCUMENTS = 6_490
"""ModApte's training documents with a top-ten label."""


class Corpus(NamedTuple):
    """Documents as patterns, and once more as whole bags.

    Attributes
    ----------
    name : str
    patterns : Patterns
        An instance is a title or a paragraph; identical ones are not collapsed.
    documents : Bags
        A row a document: the sum of its instances.
    words, classes : list of str
        Names of the features and of the classes.
    """

    name: str
    patterns: Patterns
    documents: Bags
    words: list[str]
    classes: list[str]

    @property
    def sizes(self) -> str:
        """What the corpus holds, in words."""
        documents, instances = len(self.patterns.labels), len(self.patterns.weights)
        tokens = int(self.documents.counts.sum())
        return (
            f"{self.name}: {documents:,} documents, {instances:,} instances, {tokens:,} tokens, "
            f"{len(self.words):,} words, {len(self.classes)} classes"
        )


def load(data: Path | None, documents: int = DOCUMENTS) -> Corpus:
    """Read Reuters-21578 from a folder of corpora, or generate a corpus of its size.

    Parameters
    ----------
    data : Path or None
        The folder that holds ``reuters21578``; without it the corpus is drawn at random.
    documents : int
        How many documents to keep at the most.
    """
    if data is None or not (data / "reuters21578").is_dir():
        return generate(documents)
    files = sorted((data / "reuters21578").glob("*.sgm*"))
    parsed = [parse_sgml(_contents(file)).documents for file in files]
    train = [item for part in parsed for item in part if item.split == "train"]
    counts = Counter(label for document in train for label in document.labels)
    classes = sorted(label for label, _ in counts.most_common(CLASSES))
    chosen = [item for item in train if not set(classes).isdisjoint(item.labels)][:documents]
    return _encode("Reuters-21578", chosen, classes)


def _contents(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


def _encode(name: str, documents: list[Document], classes: list[str]) -> Corpus:
    texts = [[document.title, *document.paragraphs] for document in documents]
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    tokens = tokenize(pa.array(itertools.chain.from_iterable(texts), pa.string()))
    words = tokens.flatten().dictionary_encode()
    ids = words.indices.to_numpy()
    labels = np.array([[label in item.labels for label in classes] for item in documents])
    return _corpus(
        name, offsets, tokens.offsets.to_numpy(), ids, labels, words.dictionary.to_pylist(), classes
    )


def generate(documents: int = DOCUMENTS, words: int = 25_000, seed: int = 13) -> Corpus:
    """Draw a corpus of the size of Reuters: Zipf words that lean to a class, few labels."""
    rng = np.random.default_rng(seed)
    labels = rng.random((documents, CLASSES)) < 0.02
    labels[np.arange(documents), rng.choice(CLASSES, documents, p=_zipf(CLASSES))] = True
    sizes = rng.geometric(1 / 8, documents)
    share = labels / labels.sum(axis=1, keepdims=True)
    owner = np.repeat(np.arange(documents), sizes)
    drawn = (share[owner].cumsum(axis=1) > rng.random((len(owner), 1))).argmax(axis=1)
    lengths = rng.geometric(1 / 16, len(owner))
    ids = rng.choice(words, lengths.sum(), p=_zipf(words))
    own = rng.random(len(ids)) < 0.3
    ids[own] = (ids[own] // CLASSES * CLASSES + np.repeat(drawn, lengths)[own]) % words
    bounds = np.concatenate([[0], lengths.cumsum()])
    names = [f"w{i}" for i in range(words)]
    classes = [f"c{i}" for i in range(CLASSES)]
    offsets = np.concatenate([[0], sizes.cumsum()])
    return _corpus("generated", offsets, bounds, ids, labels, names, classes)


def _zipf(size: int) -> AnyArray:
    weights = 1.0 / np.arange(1, size + 1)
    return weights / weights.sum()


def _corpus(
    name: str,
    offsets: Offsets,
    bounds: Offsets,
    ids: AnyArray,
    labels: AnyArray,
    words: list[str],
    classes: list[str],
) -> Corpus:
    patterns = Patterns(
        offsets.astype(np.int64),
        bags(bounds, ids, len(words)),
        np.ones(len(bounds) - 1),
        labels,
        np.ones(len(labels), dtype=bool),
    )
    return Corpus(name, patterns, bags(bounds[offsets], ids, len(words)), words, classes)


def bags(bounds: Offsets, ids: AnyArray, features: int) -> Bags:
    """Count the tokens between the bounds: ids rise within a bag.

    Parameters
    ----------
    bounds : Offsets, shape (bags + 1,)
        Where each bag's tokens begin and end.
    ids : TokenIds, shape (tokens,)
    features : int
        D.
    """
    rows = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    keys, counts = np.unique(rows * features + ids, return_counts=True)
    offsets = np.concatenate(
        [[0], np.bincount(keys // features, minlength=len(bounds) - 1).cumsum()]
    )
    return Bags(
        offsets.astype(np.int64), (keys % features).astype(np.int32), counts.astype(np.float64)
    )


def first(patterns: Patterns, count: int) -> Patterns:
    """Give the first patterns."""
    instances = patterns.offsets[count]
    end = patterns.bags.offsets[instances]
    return Patterns(
        patterns.offsets[: count + 1],
        Bags(
            patterns.bags.offsets[: instances + 1],
            patterns.bags.ids[:end],
            patterns.bags.counts[:end],
        ),
        patterns.weights[:instances],
        patterns.labels[:count],
        patterns.labelled[:count],
    )


def pattern_table(corpus: Corpus) -> pa.Table:
    """Give the patterns as rows of `corpusmill.corpora.schemas.PATTERNS`."""
    patterns = corpus.patterns
    count = len(patterns.labels)
    ends = patterns.bags.offsets[patterns.offsets]
    row = np.repeat(np.arange(count), np.diff(patterns.offsets) + 1)
    place = np.arange(len(row)) - row
    inner = patterns.bags.offsets[place] - ends[row]
    names = np.array(corpus.classes, dtype=object)[np.nonzero(patterns.labels)[1]]
    label_ends = np.concatenate([[0], patterns.labels.sum(axis=1).cumsum()])
    columns = [
        pa.array([str(i) for i in range(count)]),
        list_column(pa.array(names, pa.string()), label_ends),
        list_column(inner.astype(np.int32), patterns.offsets + np.arange(count + 1)),
        list_column(patterns.weights, patterns.offsets),
        list_column(patterns.bags.ids, ends),
        list_column(patterns.bags.counts, ends),
    ]
    fields = schema_of(PATTERNS)
    arrays = [column.cast(field.type) for column, field in zip(columns, fields, strict=True)]
    return pa.Table.from_arrays(arrays, schema=fields)
