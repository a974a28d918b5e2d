"""Trees found in bytes: brackets and parse columns to nodes in preorder, without recursion.

A scanner copies no text. A node is the range of bytes of its label and its number of children;
the trees of all texts stand one after the other, and a malformed text has no nodes but the code
of a reason and the byte where it was found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from corpusmill.types import AnyArray, Offsets

UNBALANCED, OUTSIDE, TRAILING, NO_LABEL, CONTROL, COLUMNS, NO_STAR = range(1, 8)

_OPEN, _CLOSE, _STAR, _DASH, _EQUALS = (np.uint8(ord(c)) for c in "()*-=")
_SPACE, _TAB, _FEED, _RETURN = (np.uint8(ord(c)) for c in " \t\n\r")
_TRACE, _BEGIN, _END = (
    np.frombuffer(word, np.uint8) for word in (b"-NONE-", b"#begin document", b"#end document")
)
_NO_NODE = -1
_kernel = njit(cache=True, nogil=True)


class Nodes(NamedTuple):
    """Nodes in preorder, the trees of all texts one after the other.

    Attributes
    ----------
    offsets : Offsets, shape (texts + 1,)
        The tree of text t has the nodes ``offsets[t]:offsets[t + 1]``.
    begins : int64, shape (nodes,)
        Where the label begins in the data.
    lengths : int32, shape (nodes,)
        Bytes of the label.
    arities : int32, shape (nodes,)
        Numbers of children.
    """

    offsets: Offsets
    begins: AnyArray
    lengths: AnyArray
    arities: AnyArray


class Faults(NamedTuple):
    """What is wrong with each text.

    Attributes
    ----------
    codes : int32, shape (texts,)
        0 for a good one, else one of the module's codes.
    places : int64, shape (texts,)
        The byte of the data where it was found.
    """

    codes: AnyArray
    places: AnyArray


class _Build(NamedTuple):
    """Trees being built: the nodes, the open brackets and where things stand.

    The stack holds, for each open bracket, its node (-1 for a root without label) and place; the
    state is indexed by the constants below.
    """

    nodes: Nodes
    stack: AnyArray
    state: AnyArray


_USED, _FIRST, _DEPTH, _CLOSED, _PLACE = range(5)


@_kernel
def _is_space(byte: Any) -> bool:
    return byte in (_SPACE, _TAB, _FEED, _RETURN)


@_kernel
def _is_label(byte: Any) -> bool:
    return byte > _SPACE and byte not in (_OPEN, _CLOSE)


@_kernel
def _starts(data: AnyArray, begin: int, end: int, word: AnyArray) -> bool:
    """Tell whether the bytes begin with a word."""
    if end - begin < word.size:
        return False
    return bool(np.all(data[begin : begin + word.size] == word))


@_kernel
def _skip_spaces(data: AnyArray, i: int, end: int) -> int:
    while i < end and _is_space(data[i]):
        i += 1
    return i


@_kernel
def _label_end(data: AnyArray, i: int, end: int) -> int:
    while i < end and _is_label(data[i]):
        i += 1
    return i


@_kernel
def _line_end(data: AnyArray, i: int, end: int) -> int:
    while i < end and data[i] != _FEED:
        i += 1
    return i


@_kernel
def _start(data: AnyArray, begins: AnyArray, ends: AnyArray, columns: bool) -> _Build:
    """Make room: a node has a run of label bytes of its own or, in columns, a bracket."""
    size, deepest = 0, 0
    for t in range(begins.size):
        inside, depth = False, 0
        for i in range(begins[t], ends[t]):
            now = _is_label(data[i])
            size += now and not inside
            inside = now
            if data[i] in (_OPEN, _CLOSE):
                size += columns
                depth += data[i] == _OPEN
        deepest = max(deepest, depth)
    return _Build(
        Nodes(
            np.zeros(begins.size + 1, np.int64),
            np.empty(size, np.int64),
            np.empty(size, np.int32),
            np.zeros(size, np.int32),
        ),
        np.empty((deepest + 1, 2), np.int64),
        np.zeros(5, np.int64),
    )


@_kernel
def _add(build: _Build, begin: int, end: int, opens: bool) -> int:
    """Add a child where the last open bracket is; return what is wrong with it."""
    nodes, stack, state = build
    node, depth = state[_USED], state[_DEPTH]
    if state[_CLOSED]:
        return TRAILING
    if depth == 0 and not opens:
        return OUTSIDE
    parent = stack[depth - 1, 0] if depth > 0 else _NO_NODE
    if depth > 0 and end == begin:
        return NO_LABEL
    if depth > 0 and parent < 0 and (not opens or node > state[_FIRST]):
        state[_PLACE] = stack[0, 1]
        return NO_LABEL
    if opens:
        stack[depth, 0] = node if end > begin else _NO_NODE
        stack[depth, 1] = state[_PLACE]
        state[_DEPTH] += 1
    if end > begin:
        nodes.begins[node] = begin
        nodes.lengths[node] = end - begin
        if parent >= 0:
            nodes.arities[parent] += 1
        state[_USED] += 1
    return 0


@_kernel
def _close(build: _Build) -> int:
    state = build.state
    if state[_DEPTH] == 0:
        return UNBALANCED
    state[_DEPTH] -= 1
    state[_CLOSED] = state[_DEPTH] == 0
    return 0


@_kernel
def _finish(build: _Build, faults: Faults, text: int, code: int) -> None:
    """End a text; a malformed one leaves no node."""
    nodes, stack, state = build
    if code == 0 and state[_DEPTH] > 0:
        code, state[_PLACE] = UNBALANCED, stack[state[_DEPTH] - 1, 1]
    if code > 0:
        faults.codes[text] = code
        faults.places[text] = state[_PLACE]
        nodes.arities[state[_FIRST] : state[_USED]] = 0
        state[_USED] = state[_FIRST]
    nodes.offsets[text + 1] = state[_FIRST] = state[_USED]
    state[_DEPTH] = state[_CLOSED] = 0


@_kernel
def _first(build: _Build) -> Nodes:
    nodes, used = build.nodes, build.state[_USED]
    return Nodes(nodes.offsets, nodes.begins[:used], nodes.lengths[:used], nodes.arities[:used])


@_kernel
def scan_brackets(data: AnyArray, begins: AnyArray, ends: AnyArray) -> tuple[Nodes, Faults]:
    """Find the nodes of bracketed trees, one tree a text.

    ``text = [tree]``, ``tree = "(" label child* ")"``, ``child = tree | label``. A label is a run
    of bytes other than brackets and white space. A root without a label and with one child in
    brackets stands for that child, ``()`` for the empty tree, as does an empty text.

    Parameters
    ----------
    data : uint8
    begins, ends : int64, shape (texts,)
        Text t has the bytes ``begins[t]:ends[t]``.

    Returns
    -------
    Nodes, Faults
        UNBALANCED at a closing bracket too many or, at the end, at the innermost one left open;
        OUTSIDE where a text begins otherwise than with a bracket; TRAILING at what follows the
        tree; NO_LABEL at a bracket without one; CONTROL at a control character.

    Notes
    -----
    O(bytes) time; memory of the nodes and of the depth.
    """
    build = _start(data, begins, ends, False)
    faults = Faults(np.zeros(begins.size, np.int32), np.zeros(begins.size, np.int64))
    state = build.state
    for t in range(begins.size):
        code, i, end = 0, begins[t], ends[t]
        while i < end and code == 0:
            byte = data[i]
            state[_PLACE] = i
            if _is_space(byte):
                i += 1
            elif byte == _CLOSE:
                code = _close(build)
                i += 1
            elif byte < _SPACE:
                code = CONTROL
            else:
                opens = byte == _OPEN
                label = _skip_spaces(data, i + opens, end)
                i = _label_end(data, label, end)
                code = _add(build, label, i, opens)
        _finish(build, faults, t, code)
    return _first(build), faults


@_kernel
def split_trees(data: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Cut a file of bracketed trees, over several lines each, into its trees.

    A tree ends with its last bracket; one that lacks it, before the next line that begins with a
    bracket, so that it costs no other tree. Anything between two trees is, to the end of its
    line, a text of its own, which `scan_brackets` finds malformed.

    Parameters
    ----------
    data : uint8
        The file.

    Returns
    -------
    begins, ends : int64, shape (texts,)

    Notes
    -----
    O(bytes).
    """
    begins = np.empty(64, np.int64)
    ends = np.empty(64, np.int64)
    count, depth, start, junk = 0, 0, -1, False
    for i in range(data.size + 1):
        done = i == data.size
        byte = _SPACE if done else data[i]
        at_line = not done and byte == _OPEN and i > 0 and data[i - 1] == _FEED
        if start >= 0 and (done or at_line or (junk and byte == _FEED)):
            ends[count] = i
            count, start, depth = count + 1, -1, 0
        if start < 0 and not _is_space(byte):
            if count == begins.size:
                begins = np.concatenate((begins, begins))
                ends = np.concatenate((ends, ends))
            begins[count] = start = i
            junk = byte != _OPEN
        if byte == _OPEN:
            depth += 1
        elif byte == _CLOSE and not junk and start >= 0:
            depth -= 1
            if depth == 0:
                ends[count] = i + 1
                count, start = count + 1, -1
    return begins[:count].copy(), ends[:count].copy()


@_kernel
def scan_columns(
    data: AnyArray, begins: AnyArray, ends: AnyArray, pos: int, parse: int, word: int
) -> tuple[Nodes, Faults]:
    """Find the nodes of CoNLL's parse columns, one token a line.

    ``(S(NP*`` opens two brackets before the token's part of speech, ``*))`` closes two after it.

    Parameters
    ----------
    data : uint8
    begins, ends : int64, shape (sentences,)
        Sentence s has the bytes ``begins[s]:ends[s]``, whole lines.
    pos, parse, word
        Numbers of the columns, from 0; word -1 leaves the parts of speech without children.

    Returns
    -------
    Nodes, Faults
        As of `scan_brackets`; also COLUMNS at a line with too few columns, and NO_STAR at a bit
        of parse that has not one asterisk.

    Notes
    -----
    O(bytes). Labels are taken as they stand: a bracket in a word is one.
    """
    build = _start(data, begins, ends, True)
    faults = Faults(np.zeros(begins.size, np.int32), np.zeros(begins.size, np.int64))
    state = build.state
    wanted = np.array([pos, parse, word])
    for t in range(begins.size):
        code, i = 0, begins[t]
        while i < ends[t] and code == 0:
            state[_PLACE] = i
            stop = _line_end(data, i, ends[t])
            cells, code = _cells(data, i, stop, wanted)
            if code == 0:
                code = _scan_token(data, cells, build)
            i = stop + 1
        _finish(build, faults, t, code)
    return _first(build), faults


@_kernel
def _cells(data: AnyArray, begin: int, end: int, wanted: AnyArray) -> tuple[AnyArray, int]:
    """Return begin and end of the wanted columns of a line, and what is wrong with it."""
    cells = np.full((wanted.size, 2), -1, np.int64)
    column, i, controls = 0, _skip_spaces(data, begin, end), False
    while i < end:
        start = i
        while i < end and not _is_space(data[i]):
            controls |= data[i] < _SPACE
            i += 1
        for k in range(wanted.size):
            if wanted[k] == column:
                cells[k, 0], cells[k, 1] = start, i
        column += 1
        i = _skip_spaces(data, i, end)
    if controls:
        return cells, CONTROL
    return cells, COLUMNS if np.any(wanted >= column) else 0


@_kernel
def _scan_token(data: AnyArray, cells: AnyArray, build: _Build) -> int:
    """Read a token's bit of parse; return what is wrong with it."""
    i, end, stars, code = cells[1, 0], cells[1, 1], 0, 0
    while i < end and code == 0:
        build.state[_PLACE] = i
        if data[i] == _OPEN:
            label = i + 1
            i = label
            while i < end and _is_label(data[i]) and data[i] != _STAR:
                i += 1
            code = _add(build, label, i, True)
        elif data[i] == _CLOSE:
            code = _close(build)
            i += 1
        elif data[i] == _STAR and stars == 0:
            code = _add_terminal(build, cells)
            stars, i = 1, i + 1
        else:
            code = NO_STAR
    return NO_STAR if code == 0 and stars == 0 else code


@_kernel
def _add_terminal(build: _Build, cells: AnyArray) -> int:
    """Add a part of speech and, where there is one, its word."""
    with_word = cells[2, 0] >= 0 and build.state[_DEPTH] > 0
    code = _add(build, cells[0, 0], cells[0, 1], with_word)
    if with_word and code == 0:
        _add(build, cells[2, 0], cells[2, 1], False)
        _close(build)
    return code


@_kernel
def split_sentences(data: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Cut a file of CoNLL's columns at blank lines and at ``#begin`` and ``#end`` of documents.

    Parameters
    ----------
    data : uint8
        The file.

    Returns
    -------
    begins, ends : int64, shape (sentences,)

    Notes
    -----
    O(bytes).
    """
    begins = np.empty(64, np.int64)
    ends = np.empty(64, np.int64)
    count, start, i = 0, -1, 0
    while i <= data.size:
        stop = _line_end(data, i, data.size)
        if _divides(data, i, stop):
            if start >= 0:
                ends[count] = i
                count, start = count + 1, -1
        elif start < 0:
            if count == begins.size:
                begins = np.concatenate((begins, begins))
                ends = np.concatenate((ends, ends))
            begins[count] = start = i
        i = stop + 1
    if start >= 0:
        ends[count] = data.size
        count += 1
    return begins[:count].copy(), ends[:count].copy()


@_kernel
def _divides(data: AnyArray, begin: int, end: int) -> bool:
    """Tell whether a line is blank or says where a document begins or ends."""
    return (
        _skip_spaces(data, begin, end) == end
        or _starts(data, begin, end, _BEGIN)
        or _starts(data, begin, end, _END)
    )


@_kernel
def cut_function_tags(data: AnyArray, nodes: Nodes) -> None:
    """Shorten the labels of inner nodes before the first ``-`` or ``=``, in place.

    ``NP-SBJ-1`` becomes ``NP``; what begins with a dash, as ``-LRB-``, stays. O(bytes of labels).
    """
    for node in range(nodes.begins.size):
        begin = nodes.begins[node]
        if nodes.arities[node] == 0 or data[begin] == _DASH:
            continue
        for k in range(1, nodes.lengths[node]):
            if data[begin + k] == _DASH or data[begin + k] == _EQUALS:
                nodes.lengths[node] = k
                break


@_kernel
def drop_traces(data: AnyArray, nodes: Nodes) -> Nodes:
    """Return the trees without ``-NONE-`` nodes and without what is empty then. O(nodes)."""
    total = nodes.begins.size
    sizes = np.ones(total, np.int64)
    arities = np.zeros(total, np.int32)
    keep = np.zeros(total, np.bool_)
    waiting = np.empty(total, np.int64)
    for t in range(nodes.offsets.size - 1):
        top = 0
        # Backwards, a node's children lie on top of the stack when it is reached.
        for node in range(nodes.offsets[t + 1] - 1, nodes.offsets[t] - 1, -1):
            for _ in range(nodes.arities[node]):
                top -= 1
                sizes[node] += sizes[waiting[top]]
                arities[node] += keep[waiting[top]]
            empty = nodes.arities[node] > 0 and arities[node] == 0
            begin, length = nodes.begins[node], nodes.lengths[node]
            trace = length == _TRACE.size and _starts(data, begin, begin + length, _TRACE)
            keep[node] = not empty and not trace
            waiting[top] = node
            top += 1
    offsets = np.zeros_like(nodes.offsets)
    kept = np.empty(total, np.int64)
    used = 0
    for t in range(nodes.offsets.size - 1):
        node = nodes.offsets[t]
        while node < nodes.offsets[t + 1]:
            if keep[node]:
                kept[used] = node
                used += 1
                node += 1
            else:
                node += sizes[node]
        offsets[t + 1] = used
    kept = kept[:used]
    return Nodes(offsets, nodes.begins[kept], nodes.lengths[kept], arities[kept])


@_kernel
def gather(data: AnyArray, begins: AnyArray, lengths: AnyArray) -> tuple[Offsets, AnyArray]:
    """Copy ranges of bytes one after the other: Arrow's layout of strings. O(bytes).

    Returns
    -------
    offsets : int64, shape (ranges + 1,)
    values : uint8, shape (offsets[-1],)
    """
    offsets = np.zeros(begins.size + 1, np.int64)
    for k in range(begins.size):
        offsets[k + 1] = offsets[k] + lengths[k]
    values = np.empty(offsets[-1], np.uint8)
    for k in range(begins.size):
        for j in range(lengths[k]):
            values[offsets[k] + j] = data[begins[k] + j]
    return offsets, values
