"""Tokens of tweets and queries, with offsets into the original text. No Spark.

| kind | token |
| --- | --- |
| ``URL``, ``EMAIL`` | as a whole; a bare ``amazon.com`` is two words, for it may be a mention |
| ``REFERENCE`` | a reference to a character, ``&amp;``, as tweets are often delivered |
| ``HASHTAG``, ``USER`` | the name behind ``#`` or ``@``, without that sign |
| ``EMOTICON``, ``EMOJI`` | ``:-)``, ``<3``; a whole sequence: flag, family, keycap |
| ``NUMBER`` | ``7``, ``1,000.50``, ``10:30`` |
| ``CLITIC`` | the ``'s`` of ``Obama's`` |
| ``WORD`` | letters, digits, marks: ``Obama``, ``don't``, ``O'Neill``, ``2nd``, ``U.S.`` |

Hyphens, slashes and underscores divide words, for ``Obama-Romney`` holds two mentions; the span
from the first to the last token of ``Spider-Man`` holds the hyphen. All other characters are in no
token. Offsets are those of Python strings: characters, not bytes; ends are exclusive.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.types import AnyArray, Offsets

KINDS = tuple("word url email reference hashtag user emoticon emoji number clitic".split())
"""Names of the kinds; the number of a kind is its place here."""
WORD, URL, EMAIL, REFERENCE, HASHTAG, USER, EMOTICON, EMOJI, NUMBER, CLITIC = range(len(KINDS))

_APOSTROPHE = "['’ʼ]"
_SURE = r"""[^\s<>"“”]"""
_LAST = r"""[^\s<>"“”.,!?;:'’)\]}…]"""
_DOMAIN = r"(?:[A-Za-z0-9-]++\.)+[A-Za-z]{2,}+"
_PICTURE = (
    "[\u203c\u2049\u2194-\u21aa\u231a-\u23ff\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff][\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff"
    "\U000e0020-\U000e007f]*+"
)
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"


class Tokens(NamedTuple):
    """The tokens of a text, from left to right; none overlap.

    Attributes
    ----------
    starts, ends : int32, shape (tokens,)
        Token t is ``text[starts[t]:ends[t]]``.
    kinds : int8, shape (tokens,)
        Numbers of `KINDS`.
    """

    starts: AnyArray
    ends: AnyArray
    kinds: AnyArray


class TokenBatch(NamedTuple):
    """The tokens of many texts, and the words inside of their hashtags and user names.

    Attributes
    ----------
    offsets : Offsets, shape (texts + 1,)
        Text n has the tokens ``offsets[n]:offsets[n + 1]``.
    starts, ends, kinds
        As of `Tokens`; the characters are counted within each text.
    part_offsets : Offsets, shape (tokens + 1,)
        Token t is also the words ``part_offsets[t]:part_offsets[t + 1]``: two or more, or none.
    part_starts, part_ends : int32, shape (parts,)
        Their places in the text.
    """

    offsets: Offsets
    starts: AnyArray
    ends: AnyArray
    kinds: AnyArray
    part_offsets: Offsets
    part_starts: AnyArray
    part_ends: AnyArray


def tokenize(text: str) -> Tokens:
    """Divide a text into tokens.

    Parameters
    ----------
    text
        Anything.

    Returns
    -------
    Tokens
        Every letter and digit is in a token, no white space is.

    Notes
    -----
    O(characters), whatever the text is.
    """
    _, starts, ends, groups = _scan(_token_pattern(), [text])
    return Tokens(starts, ends, _kinds(groups))


def tokenize_all(texts: pa.Array) -> TokenBatch:
    """Divide each of many texts into tokens, and names like ``#MichelleObama`` into words.

    Parameters
    ----------
    texts
        Strings; null is a text without tokens.

    Returns
    -------
    TokenBatch

    Notes
    -----
    O(characters), in one pass of a regular expression over all of them.
    """
    strings = [text or "" for text in texts.to_pylist()]
    offsets, starts, ends, groups = _scan(_token_pattern(), strings)
    kinds = _kinds(groups)
    names = np.flatnonzero((kinds == HASHTAG) | (kinds == USER))
    owners = np.searchsorted(offsets, names, "right") - 1
    places = zip(owners.tolist(), starts[names].tolist(), ends[names].tolist(), strict=True)
    inner = _scan(_part_pattern(), [strings[text][start:end] for text, start, end in places])
    counts = np.diff(inner[0])
    several = counts > 1
    kept = np.repeat(several, counts)
    shifts = np.repeat(starts[names], counts)[kept]
    part_counts = np.zeros(len(starts), np.int64)
    part_counts[names] = np.where(several, counts, 0)
    return TokenBatch(
        offsets,
        starts,
        ends,
        kinds,
        np.concatenate(([0], np.cumsum(part_counts))),
        inner[1][kept] + shifts,
        inner[2][kept] + shifts,
    )


def _scan(
    pattern: re.Pattern[str], strings: Sequence[str]
) -> tuple[Offsets, AnyArray, AnyArray, AnyArray]:
    """Find all matches: offsets by string, starts and ends of the matched group, its number.

    No pattern here matches white space, so that one pass goes over all strings at once.
    """
    found = pattern.finditer("\n".join(strings))
    flat = chain.from_iterable(((g := m.lastindex or 0), *m.span(g)) for m in found)
    groups, starts, ends = np.fromiter(flat, np.int64).reshape(-1, 3).T
    begins = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) + 1 for string in strings], out=begins[1:])
    offsets = np.searchsorted(starts, begins)
    before = np.repeat(begins[:-1], np.diff(offsets))
    return offsets, (starts - before).astype(np.int32), (ends - before).astype(np.int32), groups


def _kinds(groups: AnyArray) -> AnyArray:
    # The first and the last group of the pattern are words.
    return ((groups - 1) % len(KINDS)).astype(np.int8)


@cache
def _marks() -> str:
    r"""Return the combining marks, which ``\w`` leaves out, as ranges of a character class."""
    points = (p for p in range(0x300, 0x1F000) if unicodedata.category(chr(p)).startswith("M"))
    runs = [list(run) for _, run in groupby(enumerate(points), lambda pair: pair[1] - pair[0])]
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)


def _run(letter: str) -> str:
    """Return a pattern of letters with their marks; between two, a joiner, as Persian has it."""
    return rf"{letter}++(?:(?:[{_marks()}]|[\u200c\u200d](?={letter}))++{letter}*+)*+"


@cache
def _token_pattern() -> re.Pattern[str]:
    """Return the pattern of a token: a group a kind in the order of `KINDS`, then words again.

    The first group takes most tokens, letters between white space, before the others are tried;
    the space before it is matched with it, which spares an attempt at the space itself.

    That it takes linear time rests on two things: what is repeated is repeated possessively or
    ends after few steps back, and what may fail after a long way begins only where a look behind
    finds no part of the same.
    """
    word = _run(r"[^\W_]")
    name = _run(r"\w")
    end = rf"(?![\w{_marks()}])"
    clitic = rf"{_APOSTROPHE}[sS]{end}"
    groups = (
        r"((?<!\S)[^\W\d_]++(?!\S))",
        rf"((?:(?i:https?://|www\.)|(?<![\w.@-]){_DOMAIN}/)(?=\w){_SURE}*{_LAST})",
        rf"((?<![\w.+-])[\w.+-]++@{_DOMAIN})",
        r"(&(?:amp|lt|gt|quot|apos|nbsp|\#[0-9]{1,7});)",
        rf"(?<![\w&])[#＃](?=\d*+[^\W\d])({name})",
        rf"(?<!\w)[@＠]({name})",
        rf"([<>]?[:;=]['’]?[-^*]?(?:[()\[\]{{}}|/\\*]++|[DPpOo]{end}(?!['’]))"
        rf"|<3++{end}|\^_*+\^|(?<!\w)(?:-_++-|[oO]_++[oO]{end}|T_++T{end}))",
        rf"({_FLAG}|[0-9#*]\ufe0f?\u20e3|{_PICTURE}(?:\u200d{_PICTURE})*+)",
        rf"(\d++(?:[.,:]\d++)*{end})",
        rf"(?<=[\w{_marks()}])({clitic})",
        rf"((?<![\w.])(?:[^\W\d_]\.){{2,}}+(?:[^\W\d_]{end})?+"
        rf"|{word}(?:(?!{clitic}){_APOSTROPHE}{word})*+)",
    )
    return re.compile(f" ?(?:{'|'.join(groups)})")


@cache
def _part_pattern() -> re.Pattern[str]:
    """Return the pattern of a word inside of a name: capitals, a capital and others, or digits."""
    capitals = "".join(c for c in map(chr, range(0x2000)) if c.isupper())
    capital = rf"[{capitals}][{_marks()}]*+"
    other = rf"[^\W\d_{capitals}]"
    return re.compile(
        rf"((?:{capital})+(?!{other})|(?:{capital})?{other}[{_marks()}]*+"
        rf"(?:{other}|[{_marks()}])*+|\d++)"
    )
