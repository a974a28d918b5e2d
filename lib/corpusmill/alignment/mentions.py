"""Named entities in questions, by capitals: where they stand, and what is left as context.

The rule. A *word* is a maximal run of letters and digits, joined by apostrophes, hyphens or
ampersands; a possessive ``'s`` is cut off. Words belong to one *span* as long as only blanks
stand between them, or a full stop after an initial (``J. R. R. Tolkien``) or a short title
(``St. Louis``). A *mention* is a maximal run of capitalised words in a span, in which small words
(`INNER`: of, the, and, de ...) may stand between capitalised ones. Then

1. at the beginning of a sentence (of the text, or after ``. ? ! : ;`` or a quotation mark) words
   of `COMMON` are cut off the front, since every word is capitalised there;
2. articles are cut off the front everywhere: *The Beatles* and *Beatles* are one entity;
3. a lone word of `COMMON` or of `CALENDAR`, or a lone letter, is no mention.

An entity is a mention folded: lower case, without accents, words joined by one blank. Every
expression below is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

WORD = re.compile(r"[^\W_]+(?:['’&-][^\W_]+)*")
POSSESSIVE = re.compile(r"['’][sS]?$")
BLANKS = re.compile(r"\s*\Z")
STOPPED = re.compile(r"\.\s*\Z")
SENTENCE_END = re.compile(r"[.?!:;\"“”]")

ARTICLES = frozenset(("a", "an", "the"))
INNER = frozenset(("of", "the", "de", "and", "la", "le", "du", "del", "der", "van", "von", "to"))
TITLES = frozenset(("mr", "mrs", "ms", "dr", "st", "jr", "sr", "mt", "ft", "vs"))
CALENDAR = frozenset(
    "january february march april may june july august september october november december "
    "monday tuesday wednesday thursday friday saturday sunday".split()
)
COMMON = frozenset(
    "a about according after ah all along although among an and another any approximately are "
    "around as at based be because before being besides between both but by can cant complete "
    "could despite did do does dont during each even every fictional fill find finish first "
    "for former from get give given go guess had has have he her here hey his how however i "
    "if ill im in into is isnt it its ive just know let lets like located many match most my "
    "name no not now of oh ok on once one only or other our out over select she shes since so "
    "some sometimes such take tell than that thats the their them then there theres these "
    "they this those though three through to true tv two under until up upon was we well were "
    "what whats when where which while who whom whose why will with within without would yes "
    "you your youre".split()
)


class Mention(NamedTuple):
    """An entity in a text.

    Attributes
    ----------
    entity : str
        Its name, folded.
    begin, end : int
        The words it covers, ``words[begin:end]`` of the text.
    """

    entity: str
    begin: int
    end: int


def fold(word: str) -> str:
    """Return the word in lower case, without accents and without a possessive ending."""
    word = POSSESSIVE.sub("", word).casefold()
    if word.isascii():
        return word
    parts = unicodedata.normalize("NFKD", word)
    return "".join(part for part in parts if not unicodedata.combining(part))


def mentions(text: str) -> tuple[list[str], list[Mention]]:
    """Find the words of a text and its mentions of named entities.

    Parameters
    ----------
    text
        A question.

    Returns
    -------
    words : list of str
        All words, folded.
    found : list of Mention
        In the order of the text; they do not overlap.

    Notes
    -----
    O(length of the text).
    """
    matches = list(WORD.finditer(text))
    words = [fold(match.group()) for match in matches]
    capital = [match.group()[0].isupper() for match in matches]
    found: list[Mention] = []
    position = 0
    while position < len(words):
        if not capital[position]:
            position += 1
            continue
        end = _end_of_run(text, matches, words, capital, position)
        mention = _trim(words, position, end, _starts_sentence(text, matches, position))
        if mention is not None:
            found.append(mention)
        position = end
    return words, found


def contexts(text: str) -> list[tuple[str, list[str]]]:
    """Return every entity of a text with its context: the words outside its mentions.

    Parameters
    ----------
    text
        A question.

    Returns
    -------
    list of (str, list of str)
        One pair an entity, in the order of first mention; words are folded.
    """
    words, found = mentions(text)
    inside: dict[str, set[int]] = {}
    for mention in found:
        inside.setdefault(mention.entity, set()).update(range(mention.begin, mention.end))
    return [
        (entity, [word for place, word in enumerate(words) if place not in covered])
        for entity, covered in inside.items()
    ]


def _end_of_run(
    text: str, matches: list[re.Match[str]], words: list[str], capital: list[bool], begin: int
) -> int:
    """Return the end of the run of capitalised words that begins here."""
    end = begin + 1
    place = end
    while place < len(words) and _adjacent(text, matches, words, place):
        if capital[place]:
            end = place + 1
        elif words[place] not in INNER:
            break
        place += 1
    return end


def _adjacent(text: str, matches: list[re.Match[str]], words: list[str], place: int) -> bool:
    """Say whether the word stands in one span with the word before."""
    before = matches[place - 1]
    gap = text[before.end() : matches[place].start()]
    if BLANKS.match(gap):
        # A possessive ends a name: "Spain's Juan Carlos" holds two.
        return not POSSESSIVE.search(before.group())
    short = len(before.group()) == 1 or words[place - 1] in TITLES
    return short and STOPPED.match(gap) is not None


def _starts_sentence(text: str, matches: list[re.Match[str]], place: int) -> bool:
    if place == 0:
        return True
    gap = text[matches[place - 1].end() : matches[place].start()]
    return SENTENCE_END.search(gap) is not None


def _trim(words: list[str], begin: int, end: int, initial: bool) -> Mention | None:
    """Cut common words off the front of a run; None if no name is left."""
    first = begin
    while begin < end and (words[begin] in ARTICLES or (initial and words[begin] in COMMON)):
        begin += 1
    if begin == end:
        return None
    word = words[begin]
    if end - begin == 1 and (
        (initial and begin == first) or len(word) == 1 or word in COMMON or word in CALENDAR
    ):
        return None
    return Mention(" ".join(words[begin:end]), begin, end)
