"""Gender and number of noun phrases from counts of pronouns. No Spark.

Source: Bergsma & Lin (2006), Bootstrapping Path-Based Pronoun Resolution; the list of phrases that
the shared tasks CoNLL-2011 and 2012 allowed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.hashing import FACTOR, span_hashes
from corpusmill.coreference.languages import FEMININE, MASCULINE, NEUTER, PLURAL, SINGULAR
from corpusmill.coreference.lists import read_text
from corpusmill.errors import DataError
from corpusmill.types import AnyArray

_LEAST = 10
_DIGIT = re.compile(r"\d")
_COUNT = re.compile("[0-9]{1,18}")


class GenderTable(NamedTuple):
    """What pronouns stand for phrases.

    Attributes
    ----------
    keys : uint64, shape (phrases,)
        Sorted `hashing.span_hashes` of their words.
    genders, numbers : int8, shape (phrases,)
        `languages.MASCULINE` ..., `languages.SINGULAR` ...
    """

    keys: AnyArray
    genders: AnyArray
    numbers: AnyArray


def no_genders() -> GenderTable:
    """Give the table that knows no phrase."""
    none = np.zeros(0, np.int8)
    return GenderTable(np.zeros(0, np.uint64), none, none)


def normalised(word: str) -> str:
    """Write a word as the list does: lower-cased, digits as #."""
    return _DIGIT.sub("#", word.lower())


def read_genders(path: str) -> GenderTable:
    """Read a list of phrases with their counts of masculine, feminine, neuter and plural pronouns.

    Parameters
    ----------
    path : str
        A path or URI, which may end with ``.gz``. A line is a phrase, a tab and four counts with
        blanks between. Phrases are lower-cased with digits as #; ``! word`` is any phrase that
        ends with it, ``word !`` any that begins with it.

    Returns
    -------
    GenderTable
        Phrases whose largest count is below 10 are left out. The gender is that of the largest
        of the first three counts; the number is plural if the fourth is larger than their sum.

    Raises
    ------
    UsageError
        CONF04: it cannot be read.
    DataError
        DATA01: a line has another form.
    """
    text = read_text(path, "genders")
    phrases: list[str] = []
    counts: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        phrase, _, rest = line.partition("\t")
        parts = rest.split()
        if len(parts) != 4 or not all(map(_COUNT.fullmatch, parts)):
            problem = "a line must be a phrase, a tab and four counts"
            raise DataError("DATA01", source=f"{path}, line {number}", problem=problem)
        phrases.append(phrase)
        counts.append([int(part) for part in parts])
    return gender_table(phrases, np.array(counts, np.int64).reshape(-1, 4))


def gender_table(phrases: list[str], counts: AnyArray) -> GenderTable:
    """Make a table of phrases; ``counts`` is int64, shape (phrases, 4)."""
    keep = counts.max(axis=1, initial=0) >= _LEAST
    words = [phrase.split() for phrase in phrases]
    lengths = np.array([len(each) for each in words], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    hashed = hash_strings([word for each in words for word in each])
    keys = span_hashes(offsets[:-1], offsets[1:], hashed)[keep]
    genders = np.array([MASCULINE, FEMININE, NEUTER], np.int8)[counts[:, :3].argmax(axis=1)]
    numbers = np.where(counts[:, 3] > counts[:, :3].sum(axis=1), PLURAL, SINGULAR).astype(np.int8)
    keys, first = np.unique(keys, return_index=True)
    return GenderTable(keys, genders[keep][first], numbers[keep][first])


@njit(cache=True, nogil=True)
def find_genders(
    starts: AnyArray,
    heads: AnyArray,
    words: AnyArray,
    any_words: int,
    table: GenderTable,
) -> AnyArray:
    """Look noun phrases up, from the most to the least specific.

    Parameters
    ----------
    starts, heads : int64, shape (mentions,)
        Where a phrase begins, without its determiner, and its head token.
    words : uint64, shape (tokens,)
        Hashes of normalised words.
    any_words : uint64
        The hash of ``!``.
    table : GenderTable

    Returns
    -------
    int64, shape (mentions,)
        A row of the table, -1 for none: that of the words from the start to the head, else of
        any phrase that begins with the first word, else of any that ends with the head, else of
        the head.

    Notes
    -----
    O(words in phrases + mentions log phrases).
    """
    found = np.full(len(starts), -1, np.int64)
    factor = np.uint64(FACTOR)
    for mention in range(len(starts)):
        whole = np.uint64(0)
        for token in range(starts[mention], heads[mention] + 1):
            whole = whole * factor + words[token]
        first, head = words[starts[mention]], words[heads[mention]]
        begins = first * factor + np.uint64(any_words)
        ends = np.uint64(any_words) * factor + head
        for key in (whole, begins, ends, head):
            row = np.searchsorted(table.keys, key)
            if row < len(table.keys) and table.keys[row] == key:
                found[mention] = row
                break
    return found
