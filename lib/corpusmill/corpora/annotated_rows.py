"""A document for coreference as its parsers make it, and what all its formats share. No Spark."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

BAD_BRACKET = "bad coreference bracket: (3, 3) and (3) are allowed, joined by |"
NOT_OPENED = "coreference bracket closed that is not open in its sentence"
NOT_CLOSED = "coreference bracket not closed in its sentence"
BAD_PARSE = "bad parse: a token has (LABEL as often as needed, one * and ) as often as needed"
UNBALANCED = "parse does not balance: as many brackets close in a sentence as open"
NOT_COVERED = "parse does not cover the sentence: each token is inside of a constituent"
BAD_ENTITY = "bad named entity: (LABEL*, *) and (LABEL) are allowed, closed in their sentence"
BAD_HEAD = "bad head: each token of a document has one in its sentence, or the root, or none has"
CYCLE = "heads go round in a circle"
BAD_SPAN = "bad span: a start and a later end in tokens of the document, within a sentence"
NO_TOKENS = "document without tokens"
NO_ID = "document without a name"
EMPTY_WORD = "empty word"
MAX_NUMBER = 10**9

_NO_TREE = frozenset({"*", "-", "_"})
_SPACE = re.compile(r"\s", re.ASCII)


class AnnotatedDocument(NamedTuple):
    """A document as parsed: fields as in ANNOTATED_DOCUMENTS of `corpusmill.corpora.schemas`."""

    document_id: str
    part: int
    genre: str
    words: list[str]
    pos: list[str]
    lemmas: list[str]
    speakers: list[str]
    sentence_offsets: list[int]
    constituent_labels: list[str]
    constituent_starts: list[int]
    constituent_ends: list[int]
    constituent_parents: list[int]
    heads: list[int]
    relations: list[str]
    entity_starts: list[int]
    entity_ends: list[int]
    entity_labels: list[str]
    mention_starts: list[int] | None
    mention_ends: list[int] | None
    mention_clusters: list[int] | None


class MalformedDocument(Exception):  # noqa: N818
    """A document that cannot be used: why, and at which token or line, counted from 0."""

    def __init__(self, reason: str, token: int | None = None, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.token = token
        self.line = line


class Piece(NamedTuple):
    """A document of a record, or a reason why there is none; `line` counts from 0 in the record."""

    line: int
    document: AnnotatedDocument | None
    reason: str | None = None
    token: int | None = None


class Mention(NamedTuple):
    """Tokens ``start:end`` of a document that are in a cluster."""

    start: int
    end: int
    cluster: int


class Constituents(NamedTuple):
    """Constituents in preorder, as in ANNOTATED_DOCUMENTS."""

    labels: list[str]
    starts: list[int]
    ends: list[int]
    parents: list[int]


class Brackets:
    """Mentions from brackets that open and close; the most recent of a cluster closes first."""

    def __init__(self) -> None:
        self._open: dict[Hashable, list[int]] = {}
        self._ranks: dict[Hashable, int] = {}
        self._found: list[tuple[int, int, int, Hashable]] = []

    def open(self, cluster: Hashable, start: int) -> None:
        """Begin a mention."""
        self._ranks.setdefault(cluster, len(self._ranks))
        self._open.setdefault(cluster, []).append(start)

    def close(self, cluster: Hashable, end: int) -> None:
        """End the most recent mention of this cluster; one without a token is dropped."""
        starts = self._open.get(cluster)
        if not starts:
            raise MalformedDocument(NOT_OPENED, end - 1)
        self.add(cluster, starts.pop(), end)
        if not starts:
            del self._open[cluster]

    def add(self, cluster: Hashable, start: int, end: int) -> None:
        """Take a whole mention."""
        rank = self._ranks.setdefault(cluster, len(self._ranks))
        if end > start:
            self._found.append((start, -end, rank, cluster))

    def end_sentence(self) -> None:
        """See that nothing is open."""
        if self._open:
            raise MalformedDocument(NOT_CLOSED, min(starts[0] for starts in self._open.values()))

    def mentions(self) -> list[tuple[int, int, Hashable]]:
        """Return start, end and cluster, sorted by start, the longer first, no span twice.

        Of a span that stands twice the cluster stays that the document has first, as in the
        reference scorer.
        """
        result: list[tuple[int, int, Hashable]] = []
        for start, end, _, cluster in sorted(self._found, key=lambda found: found[:3]):
            if not result or result[-1][:2] != (start, -end):
                result.append((start, -end, cluster))
        return result


def parse_bits(bits: Sequence[str], offsets: Sequence[int]) -> Constituents:
    """Read the parse column of CoNLL-2012.

    Parameters
    ----------
    bits
        A part of a tree a token, such as ``(NP(NP*``, ``*`` and ``*))``. A sentence of ``*`` or
        ``-`` alone has no tree, nor one that begins with ``(NOPARSE*``.
    offsets
        Sentence s is the tokens ``offsets[s]:offsets[s + 1]``.

    Raises
    ------
    MalformedDocument
        Brackets that do not balance, or a token outside of all of them.

    Notes
    -----
    O(tokens and brackets).
    """
    found = Constituents([], [], [], [])
    for start, end in pairwise(offsets):
        sentence = bits[start:end]
        if "(NOPARSE*" in sentence[0] or _NO_TREE.issuperset(sentence):
            continue
        _parse_sentence(sentence, start, found)
    return found


def _parse_sentence(bits: Sequence[str], first: int, found: Constituents) -> None:
    labels, starts, ends, parents = found
    stack: list[int] = []
    for token, bit in enumerate(bits, first):
        if bit != "*":
            opening, star, closing = bit.partition("*")
            if not star or closing.strip(")"):
                raise MalformedDocument(BAD_PARSE, token)
            for label in _labels(opening, token):
                parents.append(stack[-1] if stack else -1)
                stack.append(len(labels))
                labels.append(label)
                starts.append(token)
                ends.append(0)
        if not stack:
            raise MalformedDocument(NOT_COVERED, token)
        if bit[-1] == ")":
            if len(closing) > len(stack):
                raise MalformedDocument(UNBALANCED, token)
            for _ in closing:
                ends[stack.pop()] = token + 1
    if stack:
        raise MalformedDocument(UNBALANCED, first + len(bits) - 1)


def _labels(opening: str, token: int) -> list[str]:
    if not opening:
        return []
    before, *labels = opening.split("(")
    if before or not all(labels) or ")" in opening:
        raise MalformedDocument(BAD_PARSE, token)
    return labels


def unique_mentions(spans: Sequence[Mention]) -> list[Mention]:
    """Sort mentions by start, the longer first; of a span that stands twice keep the first."""
    first: dict[tuple[int, int], Mention] = {}
    for span in spans:
        first.setdefault((span.start, span.end), span)
    return sorted(first.values(), key=lambda span: (span.start, -span.end))


def with_mentions(
    document: AnnotatedDocument, mentions: Sequence[Mention] | None
) -> AnnotatedDocument:
    """Put mentions into a document; None where coreference is not known."""
    if mentions is None:
        return document._replace(mention_starts=None, mention_ends=None, mention_clusters=None)
    return document._replace(
        mention_starts=[mention.start for mention in mentions],
        mention_ends=[mention.end for mention in mentions],
        mention_clusters=[mention.cluster for mention in mentions],
    )


def mentions_of(document: AnnotatedDocument) -> list[Mention] | None:
    """Return the mentions of a document, None where coreference is not known."""
    starts, ends, clusters = (
        document.mention_starts,
        document.mention_ends,
        document.mention_clusters,
    )
    if starts is None or ends is None or clusters is None:
        return None
    return [Mention(*each) for each in zip(starts, ends, clusters, strict=True)]


def drop_singletons(document: AnnotatedDocument) -> AnnotatedDocument:
    """Drop the clusters of one mention."""
    mentions = mentions_of(document)
    if mentions is None:
        return document
    sizes = Counter(mention.cluster for mention in mentions)
    return with_mentions(document, [each for each in mentions if sizes[each.cluster] > 1])


def blank_speakers(document: AnnotatedDocument) -> AnnotatedDocument:
    """Forget who speaks."""
    return document._replace(speakers=[""] * len(document.words))


def genre_of(document_id: str) -> str:
    """Return what is before the first slash of a name, as in OntoNotes, "" without a slash."""
    genre, slash, _ = document_id.partition("/")
    return genre if slash else ""


def check_heads(heads: Sequence[int], offsets: Sequence[int]) -> None:
    """See that each head is a token of the sentence or -1, and that following them ends.

    Notes
    -----
    Following all heads at once, by twice as many steps each time: O(tokens log tokens).
    """
    if not heads:
        return
    size = len(heads)
    values = np.asarray(heads, np.int64)
    bounds = np.asarray(offsets, np.int64)
    lengths = np.diff(bounds)
    starts, ends = np.repeat(bounds[:-1], lengths), np.repeat(bounds[1:], lengths)
    wrong = (values != -1) & ((values < starts) | (values >= ends))
    if wrong.any():
        raise MalformedDocument(BAD_HEAD, int(np.flatnonzero(wrong)[0]))
    jump = np.append(np.where(values == -1, size, values), size)
    for _ in range(int(lengths.max()).bit_length()):
        jump = jump[jump]
    if (jump != size).any():
        raise MalformedDocument(CYCLE, int(np.flatnonzero(jump != size)[0]))


def is_inside(start: int, end: int, offsets: Sequence[int]) -> bool:
    """Say whether the tokens ``start:end`` are some of one sentence."""
    if not 0 <= start < end <= offsets[-1]:
        return False
    return end <= offsets[bisect_right(offsets, start)]


def writable_mentions(document: AnnotatedDocument) -> list[Mention] | None:
    """Return the mentions that brackets can hold: unique, in a sentence, none crossing its like.

    Of two crossing mentions of one cluster the earlier is kept: brackets of one cluster are
    closed most recent first, so that both would be read back as other spans.

    Raises
    ------
    ValueError
        A mention outside of the document or across sentences, or a cluster that is negative or has
        more than nine digits.
    """
    mentions = mentions_of(document)
    if mentions is None:
        return None
    kept: list[Mention] = []
    open_ends: dict[int, list[int]] = {}
    for mention in unique_mentions(mentions):
        if not is_inside(mention.start, mention.end, document.sentence_offsets):
            raise ValueError(f"{document.document_id}: {mention} is not inside of a sentence")
        if not 0 <= mention.cluster < MAX_NUMBER:
            raise ValueError(f"{document.document_id}: {mention} has no number of a cluster")
        ends = open_ends.setdefault(mention.cluster, [])
        while ends and ends[-1] <= mention.start:
            ends.pop()
        if not ends or mention.end <= ends[-1]:
            ends.append(mention.end)
            kept.append(mention)
    return kept


def one_field(text: str) -> str:
    """Write white space of ASCII as _: tools divide lines at it."""
    return _SPACE.sub("_", text)
