"""Lines of SVM-Light-TK and KeLP -> target, texts of trees, vector. No Spark.

A line is only divided here; `tree_formats.parse_texts` reads the trees of many lines at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.corpora.tree_formats import MalformedTree

NOT_ENDED = "mark without its end"
BAD_MARK = "misplaced mark"
BAD_VECTOR = "bad vector"
BETWEEN = "something between two representations"
NAME_TWICE = "two representations of one name"
EXAMPLE_PAIR = "pair of examples"
MAX_ID = 2**31 - 1

_MARK = re.compile(r"\|(BT|ET|BV|EV)\|")
_TOKEN = re.compile(r"[^ \t\r]+")
_FEATURE = re.compile(r"([0-9]{1,10}):([^:]+)")
_HEADER = re.compile(r"\|B([A-Z]+)(?::([^|]*))?\|")
_UNTYPED = "^NOTYPE##"


class Line(NamedTuple):
    """An example as its line has it.

    Attributes
    ----------
    target : str or None
    texts : list of str
        The trees in brackets, in order.
    begins : list of int
        Where in the line each text begins, from 0.
    ids : list of int
    values : list of float
        The feature vector.
    """

    target: str | None
    texts: list[str]
    begins: list[int]
    ids: list[int]
    values: list[float]


class _Part(NamedTuple):
    """What stands after a mark (none: at the beginning of the line)."""

    mark: str
    begin: int
    end: int


def missing_tree(name: int | str, line: str) -> MalformedTree:
    """Make the fault of a line without a tree that is wanted."""
    return MalformedTree(f"no tree {name}", len(line) + 1)


def split_svmlight(line: str, trees: Sequence[int] | None = None, vector: int = 0) -> Line:
    """Divide a line of SVM-Light-TK.

    ``target |BT| tree |BT| tree |ET| id:value ... |BV| id:value ... |EV|``. Trees or vectors may be
    missing; without any mark it is a line of SVM-Light. ``qid:`` and ``cost:`` after the target
    are passed over, as is a comment, ``#``, in or after the vectors.

    Parameters
    ----------
    line
        Without line feed.
    trees
        The numbers of the wanted trees, from 0; all of them without it.
    vector
        The number of the wanted vector; a line with fewer has none.

    Raises
    ------
    MalformedTree
        Marks in another order, a wanted tree that is not there, or a vector whose ids are not
        whole numbers from 1 that rise or whose values are not finite.

    Notes
    -----
    A target ``+1`` is ``1``.
    """
    parts = list(_parts(line))
    _check_order(parts, line)
    target, rest = _target(line, parts[0])
    found = [part for part in parts if part.mark == "BT"]
    wanted = range(len(found)) if trees is None else trees
    for number in wanted:
        if number >= len(found):
            raise missing_tree(number, line)
    vectors = [part for part in parts if part.mark in ("ET", "BV")]
    if len(vectors) > 1 and vectors[0].mark == "ET" and not _text(line, vectors[0]).strip():
        del vectors[0]  # |ET| |BV| id:value: the mark begins the first vector
    if len(parts) == 1:
        vectors = [rest]
    ids, values = _features(line, vectors[vector]) if vector < len(vectors) else ([], [])
    return Line(
        target,
        [_text(line, found[number]) for number in wanted],
        [found[number].begin for number in wanted],
        ids,
        values,
    )


def _parts(line: str) -> Iterator[_Part]:
    mark, begin = "", 0
    for found in _MARK.finditer(line):
        yield _Part(mark, begin, found.start())
        mark, begin = found[1], found.end()
    yield _Part(mark, begin, len(line))


def _text(line: str, part: _Part) -> str:
    return line[part.begin : part.end]


_FOLLOWING = {
    "": ("BT", "BV"),
    "BT": ("BT", "ET"),
    "ET": ("BV", "EV"),
    "BV": ("BV", "EV"),
    "EV": (),
}


def _check_order(parts: list[_Part], line: str) -> None:
    for before, part in pairwise(parts):
        if part.mark not in _FOLLOWING[before.mark]:
            raise MalformedTree(BAD_MARK, part.begin - 3)
    last = parts[-1]
    if last.mark == "BT":
        raise MalformedTree(NOT_ENDED, last.begin - 3)
    after = _text(line, last).split("#")[0]
    if last.mark == "EV" and after.strip():
        raise MalformedTree(BETWEEN, last.begin + len(after) - len(after.lstrip()) + 1)


def _target(line: str, head: _Part) -> tuple[str | None, _Part]:
    """Return the target and what follows it."""
    found = _TOKEN.match(line, head.end - len(_text(line, head).lstrip(" \t")), head.end)
    if found is None:
        return None, head
    target = re.sub(r"^\+(?=[0-9.])", "", found[0])
    return target, _Part("", found.end(), head.end)


def _features(line: str, part: _Part) -> tuple[list[int], list[float]]:
    comment = line.find("#", part.begin, part.end)
    end = part.end if comment < 0 else comment
    ids: list[int] = []
    values: list[float] = []
    for token in _TOKEN.finditer(line, part.begin, end):
        if not part.mark and token[0].startswith(("qid:", "cost:")):
            continue
        pair = _FEATURE.fullmatch(token[0])
        value = _number(pair[2]) if pair else math.nan
        number = int(pair[1]) if pair else 0
        if not math.isfinite(value) or not (ids[-1] if ids else 0) < number <= MAX_ID:
            raise MalformedTree(BAD_VECTOR, token.start() + 1)
        ids.append(number)
        values.append(value)
    return ids, values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def split_kelp(line: str, trees: Sequence[str] | None = None) -> Line:
    """Divide a line of KeLP.

    ``target |BT:name| (A(B)(C)) |ET| |BV:name| feature:value ... |EV| |BS:name| text |ES|``: any
    number of representations, of which the trees are read. KeLP's vectors have names where ours
    have numbers, and are passed over.

    Parameters
    ----------
    line
        Without line feed.
    trees
        The names of the wanted trees; all of them without it. A representation without a name is
        called by its number among all, from 0.

    Raises
    ------
    MalformedTree
        A mark without its end, text between two representations, a name that stands twice, a
        wanted tree that is not there, or a pair of examples.

    Notes
    -----
    Several labels of an example stay one target. A node's label has its type, ``LEX##dog::n``;
    `untyped` takes off the one that is none.
    """
    first = line.find("|")
    head = line if first < 0 else line[:first]
    named: dict[str, _Part] = {}
    at, count = len(head), 0
    while (at := _skip_blanks(line, at)) < len(line):
        header = _HEADER.match(line, at)
        if header is None:
            raise MalformedTree(EXAMPLE_PAIR if line[at : at + 2] == "|<" else BETWEEN, at + 1)
        kind, name = header[1], header[2] or str(count)
        end = line.find("|E", header.end())
        if end < 0 or not line.startswith(f"|E{kind}|", end):
            raise MalformedTree(NOT_ENDED, at + 1)
        if name in named:
            raise MalformedTree(NAME_TWICE, at + 1)
        named[name] = _Part(kind, header.end(), end)
        at, count = end + len(kind) + 3, count + 1
    found = {name: part for name, part in named.items() if part.mark == "T"}
    for name in trees or ():
        if name not in found:
            raise missing_tree(name, line)
    parts = list(found.values()) if trees is None else [found[name] for name in trees]
    return Line(
        head.strip() or None,
        [_text(line, part) for part in parts],
        [part.begin for part in parts],
        [],
        [],
    )


def untyped(labels: pa.Array) -> pa.Array:
    """Take ``NOTYPE##`` off KeLP's labels, where it says the same as no type at all."""
    return pc.replace_substring_regex(labels, _UNTYPED, "")


def _skip_blanks(line: str, at: int) -> int:
    while at < len(line) and line[at] in " \t\r":
        at += 1
    return at
