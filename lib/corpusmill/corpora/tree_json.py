"""Nested JSON -> trees, for trees that are no sentences. No Spark, and no recursion.

A node is an array, ``["label", child, ...]``, or an object, ``{"label": ..., "children": [...]}``,
whose other keys are passed over; a string, a number, true, false or null is a node without
children. The forms mix. ``[]`` is the empty tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from corpusmill.corpora.tree_formats import HALF_CHARACTER, NO_LABEL, MalformedTree, Tree
from corpusmill.corpora.tree_lines import missing_tree

BAD_JSON = "bad JSON"
NO_OBJECT = "no JSON object"
KEY_TWICE = "label or children twice"
NO_CHILDREN = "children that are no array"
NO_TEXT = "neither text nor a number"

_TOKEN = re.compile(
    r'[ \t\n\r]*([{}\[\],:]|"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)"
)
_BLANK = re.compile(r"[ \t\n\r]*")
_OPENING = ("[", "{")
# What a token may begin with, by what came before it.
_VALUE = '[{"-0123456789tfn'
_VALUE_OR_END = _VALUE + "]"
_KEY = '"'
_KEY_OR_END = _KEY + "}"
_COLON = ":"
_AFTER = {"[": ",]", "{": ",}"}
_NOTHING = ""


class Record(NamedTuple):
    """The wanted fields of an object.

    Attributes
    ----------
    texts : list of (str or None)
        Values that are a string, a number, true or false, as text.
    trees : list of Tree
    """

    texts: list[str | None]
    trees: list[Tree]


class _Tokens(NamedTuple):
    """A JSON text in parts: brackets, and strings and other scalars as they are written.

    ``ends[k]`` is one behind the last token of the value that begins at k.
    """

    tokens: list[str]
    places: list[int]
    ends: list[int]


def parse_json(text: str) -> Tree:
    """Read a tree in JSON.

    Raises
    ------
    MalformedTree
        No JSON, something after it, a node without a label, or half a surrogate pair.

    Notes
    -----
    O(characters) time and memory; the depth is bounded by memory alone.
    """
    return _build(_tokenize(text), 0)


def parse_json_record(text: str, texts: Sequence[str | None], trees: Sequence[str]) -> Record:
    """Read the wanted fields of an object.

    Parameters
    ----------
    text
        A JSON object.
    texts
        Keys of fields to return as text; where a key is None or not there, so is the text.
    trees
        Keys of trees.

    Raises
    ------
    MalformedTree
        As `parse_json`; also when the text is no object, when a tree is not there, or when a
        value that should be text is an array or an object.
    """
    tokens = _tokenize(text)
    if tokens.tokens[0] != "{":
        raise MalformedTree(NO_OBJECT, tokens.places[0] + 1)
    fields = dict(_fields(tokens, 0))
    for name in trees:
        if name not in fields:
            raise missing_tree(name, text)
    return Record(
        [_text(tokens, fields.get(name)) if name is not None else None for name in texts],
        [_build(tokens, fields[name]) for name in trees],
    )


def _text(tokens: _Tokens, at: int | None) -> str | None:
    if at is None or tokens.tokens[at] == "null":
        return None
    if tokens.tokens[at] in _OPENING:
        raise MalformedTree(NO_TEXT, tokens.places[at] + 1)
    return _label(tokens, at)


def _label(tokens: _Tokens, at: int) -> str:
    token = tokens.tokens[at]
    if token[0] != '"':
        return token
    label: str = json.loads(token) if "\\" in token else token[1:-1]
    if not label.isascii() and re.search("[\ud800-\udfff]", label):
        raise MalformedTree(HALF_CHARACTER, tokens.places[at] + 1)
    return label


def _tokenize(text: str) -> _Tokens:
    """Check that the text is one value of JSON, and divide it."""
    found = _Tokens([], [], [])
    tokens, places, ends = found
    opened: list[int] = []
    at, allowed = 0, _VALUE
    while allowed:
        match = _TOKEN.match(text, at)
        if match is None or match[1][0] not in allowed:
            raise MalformedTree(BAD_JSON, _skip_blanks(text, at) + 1)
        token, at = match[1], match.end()
        first = token[0]
        if first == ",":
            allowed = _VALUE if tokens[opened[-1]] == "[" else _KEY
            continue
        if first == ":":
            allowed = _VALUE
            continue
        tokens.append(token)
        places.append(match.start(1))
        ends.append(len(tokens))
        if first in _OPENING:
            opened.append(len(tokens) - 1)
            allowed = _VALUE_OR_END if first == "[" else _KEY_OR_END
        elif allowed in (_KEY, _KEY_OR_END) and first == '"':
            allowed = _COLON
        else:
            if first in ("]", "}"):
                ends[opened.pop()] = len(tokens)
            allowed = _AFTER[tokens[opened[-1]]] if opened else _NOTHING
    at = _skip_blanks(text, at)
    if at < len(text):
        raise MalformedTree(BAD_JSON, at + 1)
    return found


def _skip_blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _build(tokens: _Tokens, begin: int) -> Tree:
    """Read the value that begins at a token as a tree."""
    tree = Tree([], [])
    empty = tokens.tokens[begin] == "[" and tokens.ends[begin] == begin + 2
    waiting = [] if empty else [begin]
    while waiting:
        label, children = _node(tokens, waiting.pop())
        tree.labels.append(label)
        tree.arities.append(len(children))
        waiting.extend(reversed(children))
    return tree


def _node(tokens: _Tokens, at: int) -> tuple[str, list[int]]:
    """Return a node's label and where its children begin."""
    kind = tokens.tokens[at]
    if kind not in _OPENING:
        return _label(tokens, at), []
    if kind == "[":
        items = _items(tokens, at)
        labels, children = items[:1], items[1:]
    else:
        fields = _fields(tokens, at)
        labels = [value for key, value in fields if key == "label"]
        lists = [value for key, value in fields if key == "children"]
        if len(labels) > 1 or len(lists) > 1:
            raise MalformedTree(KEY_TWICE, tokens.places[max(labels[-1:] + lists[-1:])] + 1)
        children = _children(tokens, lists[0]) if lists else []
    if not labels or tokens.tokens[labels[0]] in _OPENING:
        raise MalformedTree(NO_LABEL, tokens.places[at] + 1)
    return _label(tokens, labels[0]), children


def _children(tokens: _Tokens, at: int) -> list[int]:
    kind = tokens.tokens[at]
    if kind == "null":
        return []
    if kind != "[":
        raise MalformedTree(NO_CHILDREN, tokens.places[at] + 1)
    return _items(tokens, at)


def _items(tokens: _Tokens, at: int) -> list[int]:
    """Return where the values of an array begin."""
    found = []
    item = at + 1
    while item < tokens.ends[at] - 1:
        found.append(item)
        item = tokens.ends[item]
    return found


def _fields(tokens: _Tokens, at: int) -> list[tuple[str, int]]:
    """Return the keys of an object and where their values begin."""
    parts = _items(tokens, at)
    return [
        (_label(tokens, key), value) for key, value in zip(parts[::2], parts[1::2], strict=True)
    ]
