"""Folding and tokenising, the same for queries, entities and documents.

Everything runs in pyarrow.compute, a column at a time. A token is a maximal
run of letters and digits of the folded text; an apostrophe joins what it stands
between, because users leave it out: "O'Hara's" and "oharas" are one token.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Letters that Unicode does not decompose, as they are written without the letter at hand.
SPELLED = {
    "ß": "ss",
    "ς": "σ",
    "ı": "i",
    "ø": "o",
    "ł": "l",
    "đ": "d",
    "æ": "ae",
    "œ": "oe",
}
APOSTROPHES = "'’ʼ"
# Spacing marks (Mc) are vowels of Indic scripts and belong to their words.
_UNICODE_SEPARATORS = r"[^\p{L}\p{N}\p{Mc}']+"
# What becomes of each byte: ASCII other than letters and digits separates.
_SPACED = np.array([i if i >= 128 or chr(i).isalnum() else ord(" ") for i in range(256)], np.uint8)


def fold(strings: pa.Array | pa.ChunkedArray) -> pa.Array:
    r"""Fold case, accents and compatibility forms.

    ``spelled(lower(NFKD(s) without \p{Mn}))``, where ``spelled`` is `SPELLED`. The result stays
    decomposed (Hangul as letters): pyarrow 25 takes the forms NFC and NFKC, but composes nothing.

    Parameters
    ----------
    strings
        Valid UTF-8; nulls stay.

    Returns
    -------
    pa.Array
        As many strings. Folding twice changes nothing.

    Raises
    ------
    pa.ArrowInvalid
        A string is not UTF-8.

    Notes
    -----
    O(bytes). Plain ASCII takes a shorter way.
    """
    if isinstance(strings, pa.ChunkedArray):
        strings = strings.combine_chunks()
    folded = pc.ascii_lower(strings)
    other = pc.fill_null(pc.invert(pc.string_is_ascii(strings)), False)
    if not pc.any(other).as_py():
        return folded
    return pc.replace_with_mask(folded, other, _fold_unicode(strings.filter(other)))


def _fold_unicode(strings: pa.Array) -> pa.Array:
    strings = pc.utf8_normalize(strings, form="NFKD")
    strings = pc.utf8_lower(pc.replace_substring_regex(strings, r"\p{Mn}+", ""))
    for letter, spelled in SPELLED.items():
        strings = pc.replace_substring(strings, letter, spelled)
    return strings


def tokenize(strings: pa.Array | pa.ChunkedArray) -> pa.ListArray:
    """Fold and split into tokens.

    Parameters
    ----------
    strings
        Valid UTF-8.

    Returns
    -------
    pa.ListArray
        One list of strings for each string; null and text without a letter or digit give
        an empty list. The offsets start at zero.

    Raises
    ------
    pa.ArrowInvalid
        A string is not UTF-8.
    """
    folded = pc.fill_null(fold(strings), "")
    other = pc.invert(pc.string_is_ascii(folded))
    if pc.any(other).as_py():
        folded = pc.replace_with_mask(folded, other, _space_unicode(folded.filter(other)))
    lists = pc.split_pattern(_space_ascii(folded), " ")
    tokens = lists.flatten()
    keep = pc.not_equal(tokens, "")
    kept = np.zeros(len(tokens) + 1, np.int32)
    np.cumsum(keep.to_numpy(zero_copy_only=False), out=kept[1:])
    return pa.ListArray.from_arrays(pa.array(kept[lists.offsets.to_numpy()]), tokens.filter(keep))


def _space_unicode(folded: pa.Array) -> pa.Array:
    for apostrophe in APOSTROPHES:
        folded = pc.replace_substring(folded, apostrophe, "")
    return pc.replace_substring_regex(folded, _UNICODE_SEPARATORS, " ")


def _space_ascii(folded: pa.Array) -> pa.Array:
    """Put a space for every ASCII separator, by a table of bytes: faster than a regex."""
    folded = pc.replace_substring(folded, "'", "")
    valid, offsets, data = folded.buffers()
    if data is None:
        return folded
    spaced = pa.py_buffer(_SPACED[np.frombuffer(data, np.uint8)])
    return pa.Array.from_buffers(
        folded.type, len(folded), [valid, offsets, spaced], offset=folded.offset
    )


def join_tokens(tokens: pa.ListArray) -> pa.Array:
    """Return each list's tokens with one space between: the key of a folded phrase."""
    return pc.binary_join(tokens, " ")
