"""Documents in JSON lines, read and written. No Spark.

An object a line: ``document_id`` and ``sentences``, lists of words; all else may be missing:
``part``, ``genre``, ``pos``, ``lemmas``, ``speakers`` and ``relations`` (texts in the shape of
``sentences``), ``heads`` (numbers in that shape), ``entities`` (``[start, end, label]``) and
``clusters`` (lists of ``[start, end]``). Numbers are tokens of the document from 0, ends exclusive,
-1 is the head of a root.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

from corpusmill.corpora.annotated_rows import (
    BAD_HEAD,
    BAD_SPAN,
    EMPTY_WORD,
    MAX_NUMBER,
    NO_ID,
    NO_TOKENS,
    AnnotatedDocument,
    MalformedDocument,
    Mention,
    Piece,
    check_heads,
    genre_of,
    is_inside,
    mentions_of,
    unique_mentions,
    with_mentions,
)

BAD_JSON = "bad JSON"
EMPTY_LINE = "empty line"
NO_OBJECT = "no object with document_id, a text, and sentences, lists of words"
BAD_PART = "part is not a number from 0"
BAD_SHAPE = "pos, lemmas, speakers, relations or heads: a value a word is allowed, like sentences"
BAD_LABEL = (
    "entities: [start, end, label] is allowed, with a label without space, brackets, * and |"
)
BAD_CLUSTERS = "clusters: lists of [start, end] are allowed"
BAD_TEXT = "a text with control characters or half a character"

_UNWRITABLE = re.compile(r"[\x00-\x1f\ud800-\udfff]")
_LABEL = re.compile(r"[^\s()*|]+")


def read_json(text: str, head: bool, name: str) -> list[Piece]:
    """Read a line: a document or its fault.

    Parameters
    ----------
    text
        The line.
    head, name
        Not used: every document has a name.
    """
    if not text.strip():
        return [Piece(0, None, EMPTY_LINE)]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return [Piece(0, None, BAD_JSON)]
    try:
        return [Piece(0, _parse(value))]
    except MalformedDocument as fault:
        return [Piece(0, None, fault.reason, fault.token)]


def _parse(value: Any) -> AnnotatedDocument:
    if not isinstance(value, dict):
        raise MalformedDocument(NO_OBJECT)
    name, genre, part = value.get("document_id"), value.get("genre"), value.get("part") or 0
    sentences: Any = value.get("sentences")
    if not isinstance(name, str) or not _is_texts(sentences):
        raise MalformedDocument(NO_OBJECT)
    if not name.strip():
        raise MalformedDocument(NO_ID)
    if not _is_number(part) or not 0 <= part < MAX_NUMBER:
        raise MalformedDocument(BAD_PART)
    genre = genre_of(name) if genre is None else str(genre)
    words = _words(sentences)
    lengths = [len(sentence) for sentence in sentences]
    offsets = [0, *accumulate(length for length in lengths if length)]
    heads, relations = _dependencies(value, lengths, offsets)
    entities = _entities(value.get("entities"), offsets)
    document = AnnotatedDocument(
        name,
        part,
        genre,
        words,
        _layer(value, "pos", lengths),
        _layer(value, "lemmas", lengths),
        _layer(value, "speakers", lengths),
        offsets,
        *([], [], [], []),
        heads,
        relations,
        *entities,
        *(None, None, None),
    )
    _check_texts(document)
    return with_mentions(document, _clusters(value.get("clusters"), offsets))


def _words(sentences: Sequence[Sequence[str]]) -> list[str]:
    words = list(chain.from_iterable(sentences))
    if not words:
        raise MalformedDocument(NO_TOKENS)
    for token, word in enumerate(words):
        if not word.strip():
            raise MalformedDocument(EMPTY_WORD, token)
    return words


def _check_texts(document: AnnotatedDocument) -> None:
    if _UNWRITABLE.search(document.document_id + document.genre):
        raise MalformedDocument(BAD_TEXT)
    for layer in (document.words, document.pos, document.lemmas, document.speakers):
        if _UNWRITABLE.search("".join(layer)):
            raise MalformedDocument(BAD_TEXT, next(i for i, x in enumerate(layer) if _bad(x)))
    if _UNWRITABLE.search("".join([*document.relations, *document.entity_labels])):
        raise MalformedDocument(BAD_TEXT)


def _bad(text: str) -> bool:
    return _UNWRITABLE.search(text) is not None


def _shaped(value: dict[str, Any], key: str, lengths: Sequence[int]) -> list[Any] | None:
    """Return the values of a layer one after another, None if it is missing."""
    layer = value.get(key)
    if layer is None:
        return None
    if not isinstance(layer, list) or not all(isinstance(each, list) for each in layer):
        raise MalformedDocument(BAD_SHAPE)
    if [len(each) for each in layer] != lengths:
        raise MalformedDocument(BAD_SHAPE)
    return list(chain.from_iterable(layer))


def _layer(value: dict[str, Any], key: str, lengths: Sequence[int]) -> list[str]:
    """Return the texts of a layer, "" where it is missing or null."""
    values = _shaped(value, key, lengths) or [None] * sum(lengths)
    texts = ["" if each is None else each for each in values]
    if not all(isinstance(each, str) for each in texts):
        raise MalformedDocument(BAD_SHAPE)
    return texts


def _dependencies(
    value: dict[str, Any], lengths: Sequence[int], offsets: Sequence[int]
) -> tuple[list[int], list[str]]:
    heads = _shaped(value, "heads", lengths)
    if heads is None:
        return [], []
    for token, head in enumerate(heads):
        if not _is_number(head) or not -1 <= head < len(heads):
            raise MalformedDocument(BAD_HEAD, token)
    check_heads(heads, offsets)
    return heads, _layer(value, "relations", lengths)


def _entities(value: Any, offsets: Sequence[int]) -> tuple[list[int], list[int], list[str]]:
    found = []
    for span in _list(value or [], BAD_LABEL):
        if not isinstance(span, list) or len(span) != 3:
            raise MalformedDocument(BAD_LABEL)
        start, end, label = span
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            raise MalformedDocument(BAD_LABEL)
        _check_span(start, end, offsets)
        found.append((start, end, label))
    found.sort(key=lambda span: (span[0], -span[1]))
    return (
        [start for start, _, _ in found],
        [end for _, end, _ in found],
        [label for _, _, label in found],
    )


def _clusters(value: Any, offsets: Sequence[int]) -> list[Mention] | None:
    """Return mentions; clusters of which one is left are numbered in order."""
    if value is None:
        return None
    mentions = []
    for number, cluster in enumerate(_list(value, BAD_CLUSTERS)):
        for span in _list(cluster, BAD_CLUSTERS):
            if not isinstance(span, list) or len(span) != 2:
                raise MalformedDocument(BAD_CLUSTERS)
            _check_span(span[0], span[1], offsets)
            mentions.append(Mention(span[0], span[1], number))
    kept = unique_mentions(mentions)
    used = sorted({mention.cluster for mention in kept})
    numbers = dict(zip(used, range(len(used)), strict=True))
    return [mention._replace(cluster=numbers[mention.cluster]) for mention in kept]


def _list(value: Any, reason: str) -> list[Any]:
    if not isinstance(value, list):
        raise MalformedDocument(reason)
    return value


def _check_span(start: Any, end: Any, offsets: Sequence[int]) -> None:
    if not _is_number(start) or not _is_number(end) or not is_inside(start, end, offsets):
        raise MalformedDocument(BAD_SPAN, start if _is_number(start) and start >= 0 else None)


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, list) and all(isinstance(word, str) for word in each) for each in value
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def write_json(document: AnnotatedDocument) -> str:
    """Write a document as a line of JSON: the keys that hold something, and its line feed.

    Clusters are in the order of their numbers. Constituents have no place in this format.
    """
    value: dict[str, Any] = {"document_id": document.document_id, "part": document.part}
    if document.genre != genre_of(document.document_id):
        value["genre"] = document.genre
    layers: dict[str, Sequence[Any]] = {
        "sentences": document.words,
        "pos": document.pos,
        "lemmas": document.lemmas,
        "speakers": document.speakers,
        "heads": document.heads,
        "relations": document.relations,
    }
    for key, layer in layers.items():
        if any(each != "" for each in layer):
            bounds = pairwise(document.sentence_offsets)
            value[key] = [layer[start:end] for start, end in bounds]
    if document.entity_starts:
        spans = (document.entity_starts, document.entity_ends, document.entity_labels)
        value["entities"] = [list(span) for span in zip(*spans, strict=True)]
    mentions = mentions_of(document)
    if mentions is not None:
        clusters: dict[int, list[list[int]]] = {}
        for mention in unique_mentions(mentions):
            clusters.setdefault(mention.cluster, []).append([mention.start, mention.end])
        value["clusters"] = [clusters[number] for number in sorted(clusters)]
    return json.dumps(value, ensure_ascii=False) + "\n"
