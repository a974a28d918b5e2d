"""Texts with the entities that they mention, one record at a time -> `LinkedText`. No Spark.

Gold sets differ in their keys, in how they name entities, and in whether they say where a mention
is or only what it is. What they say is checked here, spans against the text above all.
"""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from corpusmill.corpora.quarantine import BAD_JSON, CONTROL_CHARACTERS
from corpusmill.corpora.titles import wikipedia_title

NO_OBJECT = "no JSON object"
NO_TEXT = "no text"
EMPTY_TEXT = "empty text"
BAD_ID = "bad id"
NO_MENTIONS = "no mentions"
BAD_MENTION = "bad mention"
BAD_OFFSETS = "bad offsets"
OUTSIDE = "mention outside of the text"
EMPTY_MENTION = "empty mention"
OTHER_SURFACE = "mention that is not in the text"
HALF_CHARACTER = "half a character"

HALF = re.compile(r"[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
_WORD = re.compile(r"[^\W_]+")
_NO_ENTITY = frozenset({"", "-", "<NIL>", "<NO_MAPPING>"})


class MalformedText(Exception):  # noqa: N818
    """A record that cannot be used.

    Attributes
    ----------
    reason : str
        For the quarantine.
    mention : int
        The number of the mention that is to blame, from 1; 0 for none.
    """

    def __init__(self, reason: str, mention: int = 0) -> None:
        super().__init__(f"{reason} at mention {mention}" if mention else reason)
        self.reason = reason
        self.mention = mention


class Mention(NamedTuple):
    """A part of a text, ``text[start:end]``; without an entity it is NIL."""

    start: int
    end: int
    entity: str | None = None
    type: str | None = None


class LinkedText(NamedTuple):
    """A text and what it mentions.

    Attributes
    ----------
    text_id, split : str or None
        None where the record does not say.
    text : str
    mentions : list of Mention
        From left to right; none overlap.
    dropped : int
        Mentions that were dropped because they overlap one of those.
    entities : list of str
        All entities of the text, each once: those of mentions, dropped ones too, and those that
        have no place.
    """

    text_id: str | None
    split: str | None
    text: str
    mentions: list[Mention]
    dropped: int
    entities: list[str]


def parse_record(line: str, gold: bool = True) -> LinkedText:
    """Read an object of JSON.

    ``text`` or ``query``; optional ``id`` and ``split``; ``mentions``, a list of objects, with
    ``start`` and ``end``, or ``tok_start`` and ``tok_end`` in words between white space, and
    optional ``surface``, ``type``, and ``entity`` or ``entities`` (objects with ``entity`` and
    ``score``, of which the best is that of the mention); or ``concepts``, objects with ``entity``.
    Unless ``gold``, it may have none of them.

    Raises
    ------
    MalformedText
        The record lacks something or contradicts itself.
    """
    record, text = _load(line)
    mentions: list[Mention] = []
    others: list[str | None] = []
    if gold and "mentions" not in record and "concepts" not in record:
        raise MalformedText(NO_MENTIONS)
    words = [found.span() for found in re.finditer(r"\S+", text)] if "tok_start" in line else []
    for number, each in enumerate(_objects(record, "mentions"), 1):
        start, end = _span(each, text, words, number)
        named = [_entity(each.get("entity"), number)]
        if "entities" in each:
            ranked = sorted(
                _objects(each, "entities", number), key=lambda e: _weight(e, "score"), reverse=True
            )
            named = [_entity(entity.get("entity"), number) for entity in ranked] or [None]
        mentions.append(Mention(start, end, named[0], _type(each)))
        others += named[1:]
    others += [_entity(each.get("entity")) for each in _objects(record, "concepts")]
    return _linked(record, text, mentions, others)


def parse_elevant(line: str, gold: bool = True) -> LinkedText:
    """Read an object of the ELEVANT benchmarks: ``labels`` with ``span`` and ``entity_id``.

    Entities of Wikidata keep their ids, ``Q90``: to compare them, map them to titles. Unless
    ``gold``, it may have no ``labels``.

    Raises
    ------
    MalformedText
        The record lacks something or contradicts itself.
    """
    record, text = _load(line)
    mentions = []
    if gold and "labels" not in record:
        raise MalformedText(NO_MENTIONS)
    for number, each in enumerate(_objects(record, "labels"), 1):
        span = each.get("span")
        if not isinstance(span, list) or len(span) != 2:
            raise MalformedText(BAD_OFFSETS, number)
        start, end = _span({"start": span[0], "end": span[1]}, text, (), number)
        entity = _entity(each.get("entity_id"), number)
        mentions.append(Mention(start, end, entity, _type(each)))
    return _linked(record, text, mentions, [])


def parse_webis(line: str, gold: bool = True) -> LinkedText:
    """Read an object of Webis-QInc: explicit entities by their mentions, implicit ones without.

    A mention with several entities has the one of the highest ``relevance``, of equals the first.
    Unless ``gold``, it may have none.

    Raises
    ------
    MalformedText
        The record lacks something, or a mention is not in the query.
    """
    record, text = _load(line)
    if gold and "explicit_entities" not in record:
        raise MalformedText(NO_MENTIONS)
    numbered = enumerate(_objects(record, "explicit_entities"), 1)
    ranked = sorted(numbered, key=lambda item: _weight(item[1], "relevance"), reverse=True)
    mentions: list[Mention] = []
    others: list[str] = []
    for number, each in ranked:
        surface = each.get("mention")
        if not isinstance(surface, str):
            raise MalformedText(BAD_MENTION, number)
        start, end = locate(text, surface, number)
        titles = _names(each, number)
        mentions.append(Mention(start, end, titles[0] if titles else None))
        others += titles[1:]
    for each in _objects(record, "implicit_entities"):
        others += _names(each)
    return _linked(record, text, mentions, others)


def annotate(
    text_id: str, text: str, surfaces: Sequence[str], entities: Sequence[str | None]
) -> LinkedText:
    """Find mentions that are known by their words; one without words is an entity of the text.

    Raises
    ------
    MalformedText
        The text is empty, or a mention is not in it.
    """
    _check(text)
    mentions: list[Mention] = []
    others: list[str | None] = []
    for number, (surface, entity) in enumerate(zip(surfaces, entities, strict=True), 1):
        named = _entity(entity, number)
        if surface.strip():
            mentions.append(Mention(*locate(text, surface, number), named))
        else:
            others.append(named)
    return _linked({"id": text_id}, text, mentions, others)


def locate(text: str, surface: str, number: int = 0) -> tuple[int, int]:
    """Find a mention by its words: the first place where they follow one another.

    A place where they are whole words comes before one where they are parts of words. Case does
    not matter, nor what stands between the words: ``n . ireland`` is in ``N. Ireland``.

    Parameters
    ----------
    text, surface
        The text, the mention.
    number
        The mention's, for the error.

    Returns
    -------
    start, end : int

    Raises
    ------
    MalformedText
        It is not there.
    """
    words = [re.escape(word) for word in _WORD.findall(surface)]
    pattern = r"[\W_]*+".join(words) or re.escape(surface.strip())
    found = None
    if pattern:
        whole = re.search(rf"(?<!\w){pattern}(?!\w)", text, re.IGNORECASE) if words else None
        found = whole or re.search(pattern, text, re.IGNORECASE)
    if found is None:
        raise MalformedText(OTHER_SURFACE, number)
    return found.span()


def drop_overlapping(mentions: Iterable[Mention]) -> list[Mention]:
    """Keep mentions that do not overlap: linked before NIL, longer before shorter, then the first.

    Returns
    -------
    list of Mention
        From left to right.

    Notes
    -----
    O(n log n) comparisons.
    """
    ranked = sorted(mentions, key=lambda m: (m.entity is None, m.start - m.end))
    kept: list[Mention] = []
    starts: list[int] = []
    for mention in ranked:
        place = bisect(starts, mention.start)
        before_is_free = place == 0 or kept[place - 1].end <= mention.start
        if before_is_free and (place == len(kept) or mention.end <= starts[place]):
            kept.insert(place, mention)
            starts.insert(place, mention.start)
    return kept


def _load(line: str) -> tuple[dict[str, Any], str]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        raise MalformedText(BAD_JSON) from None
    if not isinstance(record, dict):
        raise MalformedText(NO_OBJECT)
    text = record.get("text", record.get("query"))
    if not isinstance(text, str):
        raise MalformedText(NO_TEXT)
    _check(text)
    return record, text


def _check(text: str) -> None:
    if not text.strip():
        raise MalformedText(EMPTY_TEXT)
    if _CONTROL.search(text):
        raise MalformedText(CONTROL_CHARACTERS)
    if HALF.search(text):
        raise MalformedText(HALF_CHARACTER)


def _objects(record: dict[str, Any], key: str, number: int = 0) -> list[dict[str, Any]]:
    """Return a list of objects, an empty one where there is none."""
    found = record.get(key, [])
    if not isinstance(found, list):
        raise MalformedText(BAD_MENTION, number)
    for place, each in enumerate(found, 1):
        if not isinstance(each, dict):
            raise MalformedText(BAD_MENTION, number or place)
    return found


def _type(mention: dict[str, Any]) -> str | None:
    kind = mention.get("type")
    return kind if isinstance(kind, str) else None


def _span(
    mention: dict[str, Any], text: str, words: Sequence[tuple[int, int]], number: int
) -> tuple[int, int]:
    """Return the offsets of a mention, less the white space at its ends."""
    if "tok_start" in mention:
        first, last = _range(mention.get("tok_start"), mention.get("tok_end"), len(words), number)
        start, end = words[first][0], words[last - 1][1]
    else:
        start, end = _range(mention.get("start"), mention.get("end"), len(text), number)
    surface = text[start:end]
    if mention.get("surface", surface) != surface:
        raise MalformedText(OTHER_SURFACE, number)
    if not surface.strip():
        raise MalformedText(EMPTY_MENTION, number)
    start += len(surface) - len(surface.lstrip())
    return start, start + len(surface.strip())


def _range(start: object, end: object, size: int, number: int) -> tuple[int, int]:
    if not isinstance(start, int) or not isinstance(end, int) or isinstance(start, bool):
        raise MalformedText(BAD_OFFSETS, number)
    if not (0 <= start <= size and 0 <= end <= size):
        raise MalformedText(OUTSIDE, number)
    if start >= end:
        raise MalformedText(EMPTY_MENTION, number)
    return start, end


def _entity(name: object, number: int = 0) -> str | None:
    if name is None or (isinstance(name, str) and name in _NO_ENTITY):
        return None
    if not isinstance(name, str):
        raise MalformedText(BAD_MENTION, number)
    return wikipedia_title(name)


def _names(record: dict[str, Any], number: int = 0) -> list[str]:
    names = record.get("entity")
    if not isinstance(names, list):
        raise MalformedText(BAD_MENTION, number)
    titles = (_entity(name, number) for name in names)
    return [title for title in titles if title is not None]


def _weight(record: dict[str, Any], key: str) -> float:
    value = record.get(key)
    # Not as a float: whole numbers of JSON have no limit.
    return value if isinstance(value, int | float) else 0.0


def _linked(
    record: dict[str, Any],
    text: str,
    mentions: Sequence[Mention],
    others: Iterable[str | None],
) -> LinkedText:
    text_id, split = record.get("id"), record.get("split")
    if not isinstance(text_id, str | int | None):
        raise MalformedText(BAD_ID)
    kept = drop_overlapping(mentions)
    named = [mention.entity for mention in mentions] + list(others)
    entities = list(dict.fromkeys(entity for entity in named if entity is not None))
    linked = LinkedText(
        None if text_id is None else str(text_id),
        split if isinstance(split, str) else None,
        text,
        kept,
        len(mentions) - len(kept),
        entities,
    )
    types = [mention.type or "" for mention in kept]
    if HALF.search("\n".join([linked.text_id or "", linked.split or "", *entities, *types])):
        raise MalformedText(HALF_CHARACTER)
    return linked
