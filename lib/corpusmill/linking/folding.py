"""Texts as code points, folded one by one: compared without case, accents and spaces. No Spark.

The *key* of a surface form is what is left of it when each character is folded as `corpora.text`
folds and all but letters and digits are dropped: "U.S.", "US" and "#us" have one key, and so have
"New York", "NewYork" and "@newyork". A span of a text is a range of its folded characters, whatever
stands between them, so that no string is cut out of a text to be looked up.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.corpora.text import SPELLED
from corpusmill.linking import kernels
from corpusmill.types import AnyArray, Offsets

UPPER, LOWER, LETTER, DIGIT, STOP = (1 << bit for bit in range(5))
"""What a character is: bits of `Characters.classes`."""
_PIECE = 100_000
_STOPS = frozenset('.!?:;|"“”–—…')


class Characters(NamedTuple):
    """The characters of a batch of texts, one text after the other.

    Attributes
    ----------
    texts : Offsets, shape (texts + 1,)
        Text n has the characters ``texts[n]:texts[n + 1]``.
    classes : uint8, shape (characters,)
        Bits of `UPPER`, `LOWER`, `LETTER`, `DIGIT` and `STOP` (what may end a sentence).
    folds : Offsets, shape (characters + 1,)
        Character c becomes ``folded[folds[c]:folds[c + 1]]``: nothing unless a letter or digit.
    folded : uint32, shape (folded characters,)
        Code points.
    """

    texts: Offsets
    classes: AnyArray
    folds: Offsets
    folded: AnyArray

    def before(self, bits: int) -> Offsets:
        """Count the characters of a class that stand before each place; shape (characters + 1,)."""
        counts = np.zeros(len(self.classes) + 1, np.int64)
        np.cumsum((self.classes & bits) != 0, out=counts[1:])
        return counts


def characters(texts: pa.Array) -> Characters:
    """Fold texts character by character.

    Parameters
    ----------
    texts
        Strings; null is an empty text.

    Returns
    -------
    Characters

    Notes
    -----
    O(characters), and one look into Unicode's tables a distinct character.
    """
    strings = [text or "" for text in texts.to_pylist()]
    bounds = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=bounds[1:])
    # Surrogates cannot come from Arrow; from Python they pass as they are.
    data = "".join(strings).encode("utf-32-le", "surrogatepass")
    points = np.frombuffer(data, np.uint32)
    # A table by code point: sorting all characters would cost ten times as much.
    seen = np.zeros(int(points.max(initial=0)) + 1, np.bool_)
    seen[points] = True
    distinct = np.flatnonzero(seen)
    codes = (np.cumsum(seen, dtype=np.int32) - 1)[points]
    letters = [_fold(chr(code)) for code in distinct.tolist()]
    classes = np.array([_classes(chr(code)) for code in distinct.tolist()], np.uint8)
    lengths = np.array([len(letter) for letter in letters], np.int64)
    table = np.frombuffer("".join(letters).encode("utf-32-le"), np.uint32)
    firsts = np.concatenate(([0], np.cumsum(lengths)))
    folds = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths[codes], out=folds[1:])
    places = np.arange(folds[-1]) + np.repeat(firsts[codes] - folds[:-1], lengths[codes])
    return Characters(bounds, classes[codes], folds, table[places])


def keys_of(strings: pa.Array | pa.ChunkedArray) -> AnyArray:
    """Hash the key of each string; uint64, 0 where it has no letter or digit. O(characters)."""
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
    encoded = pc.fill_null(strings.cast(pa.string()), "").dictionary_encode()
    distinct = encoded.dictionary
    # By pieces, because what `characters` gives is some forty times as large as the strings.
    pieces = (distinct.slice(at, _PIECE) for at in range(0, len(distinct), _PIECE))
    keys = np.concatenate([np.zeros(0, np.uint64), *(_hash(piece) for piece in pieces)])
    return keys[encoded.indices.to_numpy()]


def _hash(strings: pa.Array) -> AnyArray:
    found = characters(strings)
    bounds = found.folds[found.texts]
    return kernels.hash_ranges(found.folded, bounds[:-1], bounds[1:])


@cache
def _fold(character: str) -> str:
    plain = (c for c in unicodedata.normalize("NFKD", character) if unicodedata.category(c) != "Mn")
    spelled = (SPELLED.get(c, c) for c in "".join(plain).lower())
    return "".join(c for c in "".join(spelled) if c.isalnum())


@cache
def _classes(character: str) -> int:
    tests = (
        character.isupper(),
        character.islower(),
        character.isalpha(),
        character.isdigit(),
        character in _STOPS,
    )
    return sum(1 << bit for bit, test in enumerate(tests) if test)
