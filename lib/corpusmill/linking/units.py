"""Units: the tokens of a batch of texts, names divided into words, ready to be looked up. No Spark.

A unit is a token, or a word inside of a hashtag or user name where case shows words. An n-gram is a
run of units of one *segment*: a user name is a segment of its own, neighbouring hashtags are one,
and so is the text between; URLs, addresses and pictures are in none and part what stands around.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.linking import kernels, tokens
from corpusmill.linking.folding import STOP, Characters, characters
from corpusmill.linking.lexicon import KeyTable
from corpusmill.types import AnyArray, Flags, Offsets

LONGEST = 6
"""The most units of an n-gram."""
_APART = [tokens.URL, tokens.EMAIL, tokens.REFERENCE, tokens.EMOTICON, tokens.EMOJI]


class Units(NamedTuple):
    """The units of a batch of texts.

    Attributes
    ----------
    characters : Characters
        Of the texts.
    offsets : Offsets, shape (texts + 1,)
        Text n has the units ``offsets[n]:offsets[n + 1]``.
    begins, ends : int64, shape (units,)
        Unit u is the characters ``begins[u]:ends[u]`` of the batch.
    kinds : int8, shape (units,)
        `tokens.KINDS` of its token.
    tokens : int64, shape (units,)
        The number of its token.
    segments : int64, shape (units,)
        Its segment, -1 for none.
    inner : bool, shape (units,)
        A possessive's "s": no n-gram begins or ends there.
    initial : bool, shape (units,)
        Whether it may begin a sentence: the first of a text, or after a full stop and the like.
    keys : uint64, shape (units,)
    """

    characters: Characters
    offsets: Offsets
    begins: AnyArray
    ends: AnyArray
    kinds: AnyArray
    tokens: AnyArray
    segments: AnyArray
    inner: Flags
    initial: Flags
    keys: AnyArray

    def text_of(self) -> AnyArray:
        """Give the text of each unit."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def units_of(texts: pa.Array) -> Units:
    """Divide texts into units.

    Parameters
    ----------
    texts
        Strings; null is an empty text.

    Returns
    -------
    Units

    Notes
    -----
    O(characters).
    """
    found = characters(texts)
    batch = tokens.tokenize_all(texts)
    size = np.maximum(np.diff(batch.part_offsets), 1)
    firsts = np.concatenate(([0], np.cumsum(size)))
    token = np.repeat(np.arange(len(size)), size)
    whole = np.diff(batch.part_offsets)[token] == 0
    part = batch.part_offsets[token] + np.arange(firsts[-1]) - firsts[token]
    begins, ends = batch.starts[token].astype(np.int64), batch.ends[token].astype(np.int64)
    begins[~whole], ends[~whole] = batch.part_starts[part[~whole]], batch.part_ends[part[~whole]]
    offsets = firsts[batch.offsets]
    shift = np.repeat(found.texts[:-1], np.diff(offsets))
    begins, ends = begins + shift, ends + shift
    kinds = batch.kinds[token]
    new_text = np.zeros(len(token), np.bool_)
    new_text[offsets[:-1][offsets[:-1] < len(token)]] = True
    folds = found.folds
    return Units(
        found,
        offsets,
        begins,
        ends,
        kinds,
        token,
        _segments(kinds, token, new_text),
        kinds == tokens.CLITIC,
        _initial(found, begins, ends, new_text),
        kernels.hash_ranges(found.folded, folds[begins], folds[ends]),
    )


def _segments(kinds: AnyArray, token: AnyArray, new_text: Flags) -> AnyArray:
    apart = np.isin(kinds, _APART)
    sort = np.where(kinds == tokens.USER, 2, np.where(kinds == tokens.HASHTAG, 1, 0))
    begins = new_text.copy()
    begins[1:] |= (sort[1:] != sort[:-1]) | apart[1:] | apart[:-1]
    begins[1:] |= (sort[1:] == 2) & (token[1:] != token[:-1])
    return np.where(apart, -1, np.cumsum(begins))


def _initial(found: Characters, begins: AnyArray, ends: AnyArray, new_text: Flags) -> Flags:
    stops = found.before(STOP)
    initial = new_text.copy()
    initial[1:] |= stops[begins[1:]] > stops[ends[:-1]]
    return initial


def sought_keys(units: Units) -> tuple[AnyArray, AnyArray]:
    """List what a linker looks up: the keys of units and n-grams, also without a last "s".

    Returns
    -------
    keys : uint64
        None is 0.
    texts : int64, as many
        The text of each; a key may stand several times.
    """
    folds = units.characters.folds
    spans, whole, shorter = kernels.list_ngrams(
        folds[units.begins], folds[units.ends], units.segments, units.inner,
        units.characters.folded, LONGEST,
    )  # fmt: skip
    of_unit = units.text_of()
    of_ngram = of_unit[spans[:, 0]]
    keys = np.concatenate([units.keys, whole, shorter])
    texts = np.concatenate([of_unit, of_ngram, of_ngram])
    return keys[keys != 0], texts[keys != 0]


def find_ngrams(units: Units, keys: KeyTable) -> AnyArray:
    """Find the n-grams of at most `LONGEST` units with a known key (`kernels.find_ngrams`).

    Returns
    -------
    int32, shape (n-grams, 4)
        First unit, last unit, number of the key, whether a last "s" was taken off.
    """
    folds = units.characters.folds
    return kernels.find_ngrams(
        folds[units.begins], folds[units.ends], units.segments, units.inner,
        units.characters.folded, keys.hashes, keys.slots, LONGEST,
    )  # fmt: skip
