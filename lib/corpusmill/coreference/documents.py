"""A batch of documents as flat arrays. No Spark.

Strings become 64-bit hashes: what is asked of a string itself (its case, its letters, its part of
speech) is asked once for each distinct one. 0 stands for what is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill.coreference.checks import refuse_broken_documents
from corpusmill.coreference.languages import QUOTES, TAG_CLASSES, head_rules
from corpusmill.coreference.syntax import find_heads, quoted_tokens
from corpusmill.frames import flat_integers, list_offsets
from corpusmill.types import AnyArray, Flags, Offsets


class Distinct(NamedTuple):
    """Strings by code.

    Attributes
    ----------
    codes : int32, shape (strings,)
        Which of the distinct strings stands there.
    values : list of str
        The distinct strings.
    """

    codes: AnyArray
    values: list[str]

    def each(self, of: Callable[[str], int], dtype: type = np.int8) -> AnyArray:
        """Ask each distinct string once; give the answers in the order of `codes`."""
        return np.array([of(value) for value in self.values], dtype)[self.codes]

    def hashes(self, of: Callable[[str], str] = str) -> AnyArray:
        """Hash what `of` makes of each string; uint64, 0 for an empty string."""
        return hash_strings([of(value) for value in self.values])[self.codes]


class Spans(NamedTuple):
    """Spans of tokens in each document.

    Attributes
    ----------
    offsets : Offsets, shape (documents + 1,)
    starts, ends : int64, shape (spans,)
        Tokens of the batch; ends are exclusive.
    labels : uint64 or int64, shape (spans,)
        Hashes of entity types, or numbers of clusters.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    labels: AnyArray


class Constituents(NamedTuple):
    """Constituents in preorder, without preterminals.

    Attributes
    ----------
    offsets : Offsets, shape (documents + 1,)
    starts, ends : int64, shape (constituents,)
        Tokens of the batch; ends are exclusive.
    parents : int64, shape (constituents,)
        Constituents of the batch, -1 at the top of a sentence.
    heads : int64, shape (constituents,)
        Head tokens.
    labels : uint64, shape (constituents,)
        Hashes.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    parents: AnyArray
    heads: AnyArray
    labels: AnyArray


class Tokens(NamedTuple):
    """The tokens of a batch.

    Attributes
    ----------
    offsets : Offsets, shape (documents + 1,)
    sentences : int64, shape (tokens,)
        The sentence of each, counted over the batch.
    sentence_offsets : Offsets, shape (sentences + 1,)
    forms, lowers, tags, lemmas, speakers, relations : uint64, shape (tokens,)
        Hashes.
    classes : int8, shape (tokens,)
        `languages.TAG_CLASSES`.
    governors : int64, shape (tokens,)
        Tokens of the batch: heads of dependencies, -1 for a root or where there are none.
    quoted : Flags, shape (tokens,)
        Whether it stands between quotation marks.
    """

    offsets: Offsets
    sentences: AnyArray
    sentence_offsets: Offsets
    forms: AnyArray
    lowers: AnyArray
    tags: AnyArray
    lemmas: AnyArray
    speakers: AnyArray
    relations: AnyArray
    classes: AnyArray
    governors: AnyArray
    quoted: Flags


class Documents(NamedTuple):
    """A batch of documents.

    Attributes
    ----------
    tokens : Tokens
    constituents : Constituents
    entities : Spans
    gold : Spans
        True mentions; of a document whose coreference is not known, none.
    known : Flags, shape (documents,)
        Whether coreference is known.
    genres : uint64, shape (documents,)
        Hashes.
    words, labels : Distinct
        Words of tokens and labels of constituents as strings.
    """

    tokens: Tokens
    constituents: Constituents
    entities: Spans
    gold: Spans
    known: Flags
    genres: AnyArray
    words: Distinct
    labels: Distinct

    @property
    def size(self) -> int:
        """The number of documents."""
        return len(self.known)


def hash_strings(strings: list[str]) -> AnyArray:
    """Hash strings to 64 bits, the same on every machine; an empty string to 0."""
    hashed = pd.util.hash_array(np.array(strings, dtype=object), categorize=False)
    return np.where([bool(each) for each in strings], hashed, np.uint64(0)).astype(np.uint64)


def read_batch(batch: pa.RecordBatch, language: str) -> Documents:
    """Lay out a batch of documents.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        The columns of `corpusmill.corpora.schemas.ANNOTATED_DOCUMENTS`; those of the mentions may
        be missing.
    language : str
        Whose head rules hold, one of `languages.LANGUAGES`.

    Returns
    -------
    Documents

    Raises
    ------
    DataError
        DATA01: a document is not as it must be; see `checks.refuse_broken_documents`.

    Notes
    -----
    O(tokens + constituents + mentions log mentions).
    """
    refuse_broken_documents(batch)
    offsets = list_offsets(batch.column("words"))
    words, tags = _distinct(batch, "words"), _distinct(batch, "pos")
    sentences = flat_integers(batch, "sentence_offsets")
    bounds = list_offsets(batch.column("sentence_offsets"))
    starts = sentences + np.repeat(offsets[:-1], np.diff(bounds))
    keep = np.ones(len(starts), np.bool_)
    keep[bounds[1:-1]] = False  # where a document begins, the one before it has ended
    sentence_offsets = starts[keep] if len(starts) else np.zeros(1, np.int64)
    labels = _distinct(batch, "constituent_labels")
    classes = tags.each(lambda tag: TAG_CLASSES.get(tag, 0))
    tokens = Tokens(
        offsets,
        np.repeat(np.arange(len(sentence_offsets) - 1), np.diff(sentence_offsets)),
        sentence_offsets,
        words.hashes(),
        words.hashes(str.lower),
        tags.hashes(),
        _distinct(batch, "lemmas").hashes(str.lower),
        _distinct(batch, "speakers").hashes(),
        _padded(batch, "relations", offsets),
        classes,
        _governors(batch, offsets),
        quoted_tokens(offsets, words.each(lambda word: QUOTES.get(word, 2))),
    )
    return Documents(
        tokens,
        _constituents(batch, labels, tags, tokens, language),
        _spans(batch, "entity", _distinct(batch, "entity_labels").hashes(), offsets),
        _gold(batch, offsets),
        _known(batch),
        _genres(batch),
        words,
        labels,
    )


def _encode(strings: pa.Array) -> Distinct:
    encoded = strings.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return Distinct(codes, encoded.dictionary.to_pylist())


def _distinct(batch: pa.RecordBatch, name: str) -> Distinct:
    return _encode(batch.column(name).flatten())


def _genres(batch: pa.RecordBatch) -> AnyArray:
    return _encode(batch.column("genre").fill_null("")).hashes()


def _padded(batch: pa.RecordBatch, name: str, offsets: Offsets) -> AnyArray:
    """Hash the strings of those documents that have them, a token each; 0 elsewhere."""
    has = np.repeat(np.diff(list_offsets(batch.column(name))) > 0, np.diff(offsets))
    result = np.zeros(offsets[-1], np.uint64)
    result[has] = _distinct(batch, name).hashes()
    return result


def _governors(batch: pa.RecordBatch, offsets: Offsets) -> AnyArray:
    has = np.repeat(np.diff(list_offsets(batch.column("heads"))) > 0, np.diff(offsets))
    result = np.full(offsets[-1], -1, np.int64)
    heads = flat_integers(batch, "heads")
    result[has] = np.where(heads < 0, -1, heads + np.repeat(offsets[:-1], np.diff(offsets))[has])
    return result


def _constituents(
    batch: pa.RecordBatch, labels: Distinct, tags: Distinct, tokens: Tokens, language: str
) -> Constituents:
    offsets = list_offsets(batch.column("constituent_labels"))
    counts = np.diff(offsets)
    shift = np.repeat(tokens.offsets[:-1], counts)
    starts = flat_integers(batch, "constituent_starts") + shift
    ends = flat_integers(batch, "constituent_ends") + shift
    parents = flat_integers(batch, "constituent_parents")
    parents = np.where(parents < 0, -1, parents + np.repeat(offsets[:-1], counts))
    heads = find_heads(
        starts,
        ends,
        parents,
        labels.codes,
        tags.codes,
        tokens.classes,
        head_rules(language, labels.values, tags.values),
    )
    return Constituents(offsets, starts, ends, parents, heads, labels.hashes())


def _spans(batch: pa.RecordBatch, kind: str, labels: AnyArray, tokens: Offsets) -> Spans:
    offsets = list_offsets(batch.column(f"{kind}_starts"))
    shift = np.repeat(tokens[:-1], np.diff(offsets))
    starts, ends = flat_integers(batch, f"{kind}_starts"), flat_integers(batch, f"{kind}_ends")
    return Spans(offsets, starts + shift, ends + shift, labels)


def _known(batch: pa.RecordBatch) -> Flags:
    if "mention_clusters" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.bool_)
    return np.asarray(batch.column("mention_clusters").is_valid())


def _gold(batch: pa.RecordBatch, tokens: Offsets) -> Spans:
    if "mention_clusters" not in batch.schema.names:
        none = np.zeros(0, np.int64)
        return Spans(np.zeros(batch.num_rows + 1, np.int64), none, none, none)
    return _spans(batch, "mention", flat_integers(batch, "mention_clusters"), tokens)
