r"""Bracketed trees, Penn Treebank files and CoNLL's parse columns -> labels and arities. No Spark.

A tree is its nodes in preorder: a label and a number of children for each. In brackets it is
``(S (NP (DT the) (NN dog)) (VP barks))``: a label, then the children, each in brackets or, when it
has none of its own, as a bare label. A root of one node is ``(S)``, the empty tree ``()`` or
nothing. An empty outer bracket, ``( (S ...))``, is dropped.

In a label, ``\x`` and two digits of lower-case hexadecimal below ``80`` stand for an ASCII
character: ``New\x20York``, ``\x28``. A label ``\x`` is the empty one. Any other backslash stands
for itself, as in the treebank's ``1\/2``, and ``-LRB-`` stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.corpora import tree_kernels as kernels
from corpusmill.types import AnyArray, Offsets

UNBALANCED = "unbalanced bracket"
OUTSIDE = "text outside of brackets"
TRAILING = "something after the tree"
NO_LABEL = "node without a label"
CONTROL_CHARACTERS = "control characters"
TOO_FEW_COLUMNS = "too few columns"
BAD_PARSE_BIT = "parse bit without one asterisk"
NOT_UTF8 = "not UTF-8"
TOO_LONG = "too long"
HALF_CHARACTER = "half a character"

_REASONS = {
    kernels.UNBALANCED: UNBALANCED,
    kernels.OUTSIDE: OUTSIDE,
    kernels.TRAILING: TRAILING,
    kernels.NO_LABEL: NO_LABEL,
    kernels.CONTROL: CONTROL_CHARACTERS,
    kernels.COLUMNS: TOO_FEW_COLUMNS,
    kernels.NO_STAR: BAD_PARSE_BIT,
}
_EMPTY_LABEL = r"\x"
_ESCAPED = re.compile(r"\\x([0-7][0-9a-f])")
_TO_ESCAPE = re.compile(r"[\x00-\x20()]|\\(?=x(?:[0-7][0-9a-f]|\Z))")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class MalformedTree(ValueError):  # noqa: N818 - what it is, not that it is an error
    """A record that is no tree.

    Parameters
    ----------
    reason
        One of the few sentences of this package's tree formats.
    position
        The character of the record where it was found, from 1.
    """

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at character {position}")
        self.reason = reason
        self.position = position


class Kept(NamedTuple):
    """What of the Penn Treebank's annotation stays.

    Attributes
    ----------
    traces : bool
        Nodes ``-NONE-``; without them what is empty then goes too.
    function_tags : bool
        ``NP-SBJ-1`` and ``NP=2``, otherwise ``NP``; labels like ``-LRB-`` stay anyhow.
    """

    traces: bool = True
    function_tags: bool = True


KEEP_ALL = Kept()


class Tree(NamedTuple):
    """A tree in preorder.

    Attributes
    ----------
    labels : list of str
    arities : list of int
        Numbers of children.
    """

    labels: list[str]
    arities: list[int]


class Trees(NamedTuple):
    """Trees of several texts; that of a malformed one has no nodes.

    Attributes
    ----------
    offsets : Offsets, shape (texts + 1,)
        The tree of text t has the nodes ``offsets[t]:offsets[t + 1]``.
    labels : pa.LargeStringArray
    arities : int32, shape (nodes,)
    faults : dict of int to MalformedTree
        By number of the text.
    """

    offsets: Offsets
    labels: pa.Array
    arities: AnyArray
    faults: dict[int, MalformedTree]

    def tree(self, number: int) -> Tree:
        """Return the tree of a text.

        Raises
        ------
        MalformedTree
            It has none.
        """
        if number in self.faults:
            raise self.faults[number]
        nodes = slice(self.offsets[number], self.offsets[number + 1])
        return Tree(self.labels[nodes].to_pylist(), self.arities[nodes].tolist())


class FileTrees(NamedTuple):
    """The trees of a file.

    Attributes
    ----------
    trees : Trees
        The character of a fault counts from the beginning of its line.
    lines : int64, shape (texts,)
        The line of the file, from 1, where the text begins or, if malformed, its fault is.
    begins, ends : int64, shape (texts,)
        The bytes of the file that each text is.
    """

    trees: Trees
    lines: AnyArray
    begins: AnyArray
    ends: AnyArray


def parse_bracketed(text: str, keep: Kept = KEEP_ALL) -> Tree:
    """Read a tree in brackets.

    Raises
    ------
    MalformedTree
        The text is none.
    """
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        raise MalformedTree(HALF_CHARACTER, surrogate.start() + 1)
    return parse_texts(pa.array([text], pa.large_string()), keep).tree(0)


def write_bracketed(labels: Sequence[str], arities: Sequence[int]) -> str:
    r"""Write a tree in brackets, the inverse of `parse_bracketed`.

    Parameters
    ----------
    labels, arities
        The nodes in preorder; without any it is the empty tree.

    Returns
    -------
    str
        Of one line. A label's brackets and ASCII characters up to the space are escaped.

    Raises
    ------
    ValueError
        The arities are not those of one tree.

    Notes
    -----
    O(characters), without recursion.
    """
    if not labels:
        return "()"
    parts: list[str] = []
    waiting: list[int] = []
    for node, (label, arity) in enumerate(zip(labels, arities, strict=True)):
        if node and not waiting:
            raise ValueError(f"node {node} comes after the end of the tree")
        parts.append(" (" if arity or not node else " ")
        parts.append(escape_label(label))
        if arity or not node:
            waiting.append(arity)
        else:
            waiting[-1] -= 1
        while waiting and waiting[-1] == 0:
            parts.append(")")
            waiting.pop()
            if waiting:
                waiting[-1] -= 1
    if waiting:
        raise ValueError(f"{sum(waiting)} children are missing at the end of the tree")
    return "".join(parts)[1:]


def escape_label(label: str) -> str:
    """Write a label so that it can stand between brackets."""
    if not label:
        return _EMPTY_LABEL
    return _TO_ESCAPE.sub(lambda found: f"\\x{ord(found[0]):02x}", label)


def parse_texts(texts: pa.Array, keep: Kept = KEEP_ALL) -> Trees:
    """Read trees in brackets, one a text.

    Parameters
    ----------
    texts : pa.LargeStringArray
        Valid UTF-8 without nulls.
    keep
        What stays.

    Notes
    -----
    O(bytes): one pass of a compiled scanner over the array's own buffer.
    """
    offsets, data = _buffers(texts)
    nodes, faults = kernels.scan_brackets(data, offsets[:-1], offsets[1:])
    found = {
        int(text): _fault(data, offsets[text], faults.places[text], faults.codes[text])
        for text in np.flatnonzero(faults.codes)
    }
    return _trees(data, nodes, keep, found)


def parse_mrg(data: bytes, keep: Kept = KEEP_ALL, max_chars: int = 65_536) -> FileTrees:
    """Read a Penn Treebank file: trees of several lines each, in brackets.

    Parameters
    ----------
    data
        The file.
    keep
        What stays.
    max_chars
        A longer tree is malformed.

    Notes
    -----
    A tree begins at the beginning of a line where the one before it is not closed. Anything
    between two trees is malformed to the end of its line. O(bytes).
    """
    return _parse_file(data, keep, max_chars, kernels.split_trees, kernels.scan_brackets)


def parse_conll(
    data: bytes,
    pos: int = 0,
    parse: int = 1,
    word: int | None = None,
    keep: Kept = KEEP_ALL,
    max_chars: int = 65_536,
) -> FileTrees:
    """Read CoNLL's parse columns: a token a line, a blank line between sentences.

    Parameters
    ----------
    data
        The file.
    pos, parse, word
        The columns' numbers, from 0; without words the parts of speech are the leaves.
    keep
        What stays.
    max_chars
        A longer sentence is malformed.

    Notes
    -----
    Columns stand between white space. Lines ``#begin document`` and ``#end document`` divide as
    blank ones do. Labels are taken as they stand, without escapes. O(bytes).
    """
    words = -1 if word is None else word

    def scan(
        found: AnyArray, begins: AnyArray, ends: AnyArray
    ) -> tuple[kernels.Nodes, kernels.Faults]:
        return kernels.scan_columns(found, begins, ends, pos, parse, words)

    return _parse_file(data, keep, max_chars, kernels.split_sentences, scan, escapes=False)


def _parse_file(
    data: bytes,
    keep: Kept,
    max_chars: int,
    split: Callable[[AnyArray], tuple[AnyArray, AnyArray]],
    scan: Callable[[AnyArray, AnyArray, AnyArray], tuple[kernels.Nodes, kernels.Faults]],
    escapes: bool = True,
) -> FileTrees:
    mark = len(_BYTE_ORDER_MARK) if data.startswith(_BYTE_ORDER_MARK) else 0
    data = data[mark:]
    array = np.frombuffer(data, np.uint8)
    begins, ends = split(array)
    places = begins.copy()
    reasons = dict(_unusable(data, begins, ends, places, max_chars))
    usable = ends.copy()
    usable[list(reasons)] = begins[list(reasons)]
    nodes, faults = scan(array, begins, usable)
    for text in np.flatnonzero(faults.codes):
        reasons[int(text)] = _REASONS[int(faults.codes[text])]
        places[text] = faults.places[text]
    feeds = np.flatnonzero(array == ord("\n"))
    lines = np.searchsorted(feeds, places) + 1
    starts = np.concatenate(([0], feeds + 1))[lines - 1]
    found = {}
    if reasons:
        # Characters before each byte: all but what continues one, in UTF-8.
        before = np.concatenate(([0], np.cumsum(array & 0xC0 != 0x80)))
        positions = before[places] - before[starts] + 1
        found = {
            text: MalformedTree(reasons[text], int(positions[text])) for text in sorted(reasons)
        }
    return FileTrees(_trees(array, nodes, keep, found, escapes), lines, begins + mark, ends + mark)


def _unusable(
    data: bytes, begins: AnyArray, ends: AnyArray, places: AnyArray, max_chars: int
) -> Iterable[tuple[int, str]]:
    """Yield the texts that no scanner should see; set their places."""
    for text in np.flatnonzero(ends - begins > max_chars).tolist():
        if _length(data[begins[text] : ends[text]]) > max_chars:
            yield text, TOO_LONG
    try:
        data.decode()
    except UnicodeDecodeError:
        for text in range(len(begins)):
            try:
                data[begins[text] : ends[text]].decode()
            except UnicodeDecodeError as error:
                places[text] = begins[text] + error.start
                yield text, NOT_UTF8


def _length(text: bytes) -> int:
    return len(text.decode(errors="replace"))


def _fault(data: AnyArray, begin: int, place: int, code: int) -> MalformedTree:
    return MalformedTree(_REASONS[int(code)], 1 + _length(data[begin:place].tobytes()))


def _buffers(texts: pa.Array) -> tuple[Offsets, AnyArray]:
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return np.zeros(len(texts) + 1, np.int64), np.frombuffer(b"", np.uint8)
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return bounds, np.frombuffer(data, np.uint8)


def _trees(
    data: AnyArray,
    nodes: kernels.Nodes,
    keep: Kept,
    faults: dict[int, MalformedTree],
    escapes: bool = True,
) -> Trees:
    if not keep.traces:
        nodes = kernels.drop_traces(data, nodes)
    if not keep.function_tags:
        kernels.cut_function_tags(data, nodes)
    offsets, values = kernels.gather(data, nodes.begins, nodes.lengths)
    labels = pa.Array.from_buffers(
        pa.large_string(), len(nodes.begins), [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    )
    if escapes and np.any(values == ord("\\")):
        labels = _unescape(labels)
    return Trees(nodes.offsets, labels, nodes.arities, faults)


def _unescape(labels: pa.Array) -> pa.Array:
    escaped = pc.match_substring(labels, _EMPTY_LABEL)
    changed = [
        "" if label == _EMPTY_LABEL else _ESCAPED.sub(lambda found: chr(int(found[1], 16)), label)
        for label in labels.filter(escaped).to_pylist()
    ]
    return pc.replace_with_mask(labels, escaped, pa.array(changed, pa.large_string()))
