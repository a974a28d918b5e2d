r"""Mining the fragments of the SST kernel that weigh most in a kernel machine.

A machine over support vectors T_i has in the space of fragments the weight vector

    w_j = sum_i beta_i t_ij lambda^l(j) / ||T_i||          (equation 3 of the paper)

where t_ij is how often fragment j occurs in T_i. `mine` finds the L fragments of largest |w_j|
greedily, from small to large (algorithm 3.1).

A fragment is grown level by level: its root's production first, then the productions of some of
the nodes one level below, and so on. Written as *moves* (is it the first of a new level, the
position among the nodes of that level, the production) every fragment has one spelling, and all
fragments together are a trie, whose prefixes are smaller fragments. The trie is the index of the
algorithm: keys are compared in full, so that no two fragments are ever taken for one.

Occurrences of the same subtree, in one tree or many, are mined once with the sum of their weights.

Source: Pighin and Moschitti, Efficient Linearization of Tree Kernel Functions, CoNLL 2009,
section 3 and algorithm 3.1.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Subtrees
from corpusmill.types import AnyArray, Flags, Floats, Offsets, TokenIds

Relevance = Literal["depth", "productions"]
"""The value of a fragment that occurs once: lambda^depth, as the paper writes it, or
lambda^(productions / 2), the SST kernel's own."""

MAX_SUBSETS = 10_000
"""Ways to expand one occurrence at most; above it fewer than ``maxexp`` nodes at once."""
_kernel = njit(cache=True, nogil=True, error_model="numpy")


class Trie(NamedTuple):
    """Fragments by their moves; node 0 is the empty fragment.

    Attributes
    ----------
    slots : int32
        Open addressing: nodes by the hash of their key, -1 for none. A power of two.
    parents : int64, shape (nodes,)
        The fragment that a move was added to, times two, plus one if it begins a new level.
    moves : int64, shape (nodes,)
        The position among the nodes of the level, times 2^32, plus the production.
    """

    slots: TokenIds
    parents: AnyArray
    moves: AnyArray


class Fragments(NamedTuple):
    """Fragments by their moves, and their weights.

    Attributes
    ----------
    offsets : Offsets, shape (fragments + 1,)
    moves : int32, shape (3 offsets[-1],)
        Three numbers a move: 1 for the first of a level, the position, the production.
    weights : Floats, shape (fragments,)
    """

    offsets: Offsets
    moves: TokenIds
    weights: Floats


class _States(NamedTuple):
    """Occurrences that can grow: a fragment, its weight there, and the subtrees below it."""

    nodes: TokenIds
    weights: Floats
    offsets: Offsets
    frontier: TokenIds


class Mined(NamedTuple):
    """What `mine` found, and what it cost.

    Attributes
    ----------
    fragments : Fragments
        Those of the largest |weight|, largest first.
    generated : int
        Fragments in the index.
    rounds : int
        Levels that were grown.
    """

    fragments: Fragments
    generated: int
    rounds: int


def mine(
    subtrees: Subtrees,
    weights: Floats,
    decay: float,
    limit: int,
    maxexp: int,
    relevance: Relevance = "depth",
) -> Mined:
    """Mine the most relevant fragments of a machine (algorithm 3.1).

    Parameters
    ----------
    subtrees : Subtrees
        The distinct subtrees of the support vectors.
    weights : Floats, shape (subtrees,)
        sum_i beta_i c_i(u) / ||T_i||, where subtree u occurs c_i(u) times in T_i.
    decay : float
        lambda.
    limit : int
        L, how many fragments; only the best L of a round grow in the next.
    maxexp : int
        How many nodes of a level are expanded at most.
    relevance : {"depth", "productions"}

    Returns
    -------
    Mined
        With ``limit`` and ``maxexp`` large enough, all fragments with their exact weights.

    Notes
    -----
    Time and memory grow with the distinct (fragment, subtree) pairs among the best L of each
    round. An occurrence that could be expanded in more than `MAX_SUBSETS` ways expands fewer
    nodes at once, and one whose weight is below all floating-point numbers does not grow.
    """
    maxexp = min(maxexp, MAX_SUBSETS.bit_length())  # more would be too many ways anyway
    per_level, per_node = (decay, 1.0) if relevance == "depth" else (1.0, np.sqrt(decay))
    trie, values, states = _base(subtrees, weights, per_level * per_node)
    best = _best(values, limit)
    bottom, rounds = _bottom(values, best, limit), 1
    while (kept := best[states.nodes] & (states.weights != 0.0)).any():
        trie, values = _grow(trie, values, states, kept, subtrees, maxexp, per_level, per_node)
        best = _best(values, limit)
        rounds += 1
        now = _bottom(values, best, limit)
        if now is not None and now == bottom:
            break
        bottom = now
        states = _follow(trie, best, states, kept, subtrees, maxexp, per_level, per_node)
    chosen = np.flatnonzero(best)
    chosen = chosen[np.lexsort((chosen, -np.abs(values[chosen])))]
    offsets, moves = spell(trie.parents, trie.moves, chosen)
    return Mined(Fragments(offsets, moves, values[chosen]), len(values) - 1, rounds)


def subtree_weights(
    offsets: Offsets, nodes: TokenIds, beta: Floats, norms: Floats, size: int
) -> Floats:
    """Give sum_i beta_i c_i(u) / ||T_i|| for each subtree u; norms of 0 are empty trees."""
    shares = np.divide(beta, norms, out=np.zeros(len(beta)), where=norms > 0)
    return np.bincount(nodes, np.repeat(shares, np.diff(offsets)), size).astype(np.float64)


def _best(values: Floats, limit: int) -> Flags:
    """Mark the fragments of largest |value|, the older of equals first; never the empty one."""
    sizes = np.abs(values)
    best = np.zeros(len(values), np.bool_)
    if len(values) - 1 <= limit:
        best[1:] = True
        return best
    sizes[0] = -1.0
    threshold = np.partition(sizes, len(sizes) - limit)[len(sizes) - limit]
    best[sizes > threshold] = True
    ties = np.flatnonzero(sizes == threshold)
    best[ties[: limit - np.count_nonzero(best)]] = True
    return best


def _bottom(values: Floats, best: Flags, limit: int) -> tuple[int, float] | None:
    """Give the last of the best and its relevance; None while there are fewer than L."""
    chosen = np.flatnonzero(best)
    if len(chosen) < limit:
        return None
    last = chosen[np.lexsort((-chosen, np.abs(values[chosen])))[0]]
    return int(last), float(abs(values[last]))


@_kernel
def _slot(slots, parents, moves, parent, move):  # type: ignore[no-untyped-def]
    """Find the slot of a key: its node's, or the free one where it belongs."""
    h = np.uint64(parent) * np.uint64(0x9E3779B97F4A7C15)
    h ^= h >> np.uint64(32)
    h = (h ^ np.uint64(move)) * np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    mask = np.uint64(len(slots) - 1)
    at = h & mask
    while slots[at] >= 0 and (parents[slots[at]] != parent or moves[slots[at]] != move):
        at = (at + np.uint64(1)) & mask
    return at


@_kernel
def _rehash(slots, parents, moves, count):  # type: ignore[no-untyped-def]
    slots[:] = -1
    for node in range(1, count):
        slots[_slot(slots, parents, moves, parents[node], moves[node])] = node


@_kernel
def _larger(array):  # type: ignore[no-untyped-def]
    more = np.zeros(2 * len(array), array.dtype)
    more[: len(array)] = array
    return more


@_kernel
def _with_room(slots, parents, moves, values, count):  # type: ignore[no-untyped-def]
    """Give arrays that hold one more node."""
    if count == len(parents):
        parents, moves, values = _larger(parents), _larger(moves), _larger(values)
    if 2 * count >= len(slots):
        slots = np.empty(2 * len(slots), np.int32)
        _rehash(slots, parents, moves, count)
    return slots, parents, moves, values


@_kernel
def _insert(slots, parents, moves, count, parent, move):  # type: ignore[no-untyped-def]
    """Find a node or add it; there must be room."""
    at = _slot(slots, parents, moves, parent, move)
    if slots[at] < 0:
        slots[at] = count
        parents[count], moves[count] = parent, move
        count += 1
    return slots[at], count


@_kernel
def _can_grow(subtrees, begin, end):  # type: ignore[no-untyped-def]
    for k in range(begin, end):
        if subtrees.productions[subtrees.children[k]] >= 0:
            break
    else:
        return False
    return True


@_kernel
def _base_fragments(subtrees, weights, factor):  # type: ignore[no-untyped-def]
    """Put the smallest fragment of every subtree into a new trie."""
    size = total = 0
    used = np.zeros(len(subtrees.productions), np.bool_)
    for k in range(len(subtrees.productions)):
        used[k] = subtrees.productions[k] >= 0 and weights[k] != 0.0
    for u in np.flatnonzero(used):
        if _can_grow(subtrees, subtrees.child_offsets[u], subtrees.child_offsets[u + 1]):
            size += 1
            total += int(subtrees.child_offsets[u + 1] - subtrees.child_offsets[u])
    slots = np.full(1024, -1, np.int32)
    parents, moves, values = np.zeros(512, np.int64), np.zeros(512, np.int64), np.zeros(512)
    nodes, shares = np.empty(size, np.int32), np.empty(size)
    offsets, frontier = np.zeros(size + 1, np.int64), np.empty(total, np.int32)
    count, size = 1, 0
    for u in np.flatnonzero(used):
        slots, parents, moves, values = _with_room(slots, parents, moves, values, count)
        move = np.int64(subtrees.productions[u])
        node, count = _insert(slots, parents, moves, count, np.int64(1), move)
        values[node] += weights[u] * factor
        begin, end = subtrees.child_offsets[u], subtrees.child_offsets[u + 1]
        if _can_grow(subtrees, begin, end):
            nodes[size], shares[size] = node, weights[u] * factor
            offsets[size + 1] = offsets[size] + end - begin
            frontier[offsets[size] : offsets[size + 1]] = subtrees.children[begin:end]
            size += 1
    return slots, parents[:count], moves[:count], values[:count], nodes, shares, offsets, frontier


def _base(subtrees: Subtrees, weights: Floats, factor: float) -> tuple[Trie, Floats, _States]:
    slots, parents, moves, values, *states = _base_fragments(subtrees, weights, factor)
    return Trie(slots, parents, moves), values, _States(*states)


@_kernel
def _choices(size, maxexp):  # type: ignore[no-untyped-def]
    """Give how many of so many nodes may be expanded at once, within `MAX_SUBSETS`."""
    ways, total, chosen = 1.0, 0.0, 0
    while chosen < min(size, maxexp):
        ways *= (size - chosen) / (chosen + 1)
        total += ways
        if chosen > 0 and total > MAX_SUBSETS:
            break
        chosen += 1
    return chosen


@_kernel
def _open_places(subtrees, frontier, places):  # type: ignore[no-untyped-def]
    """Write the places of the nodes that can be expanded; give their number."""
    count = 0
    for k in range(len(frontier)):
        if subtrees.productions[frontier[k]] >= 0:
            places[count] = k
            count += 1
    return count


@_kernel
def _grow_states(  # type: ignore[no-untyped-def]
    slots, parents, moves, values, states, kept, subtrees, maxexp, per_level, per_node
):  # fmt: skip
    """Add all expansions of the occurrences that are kept to the index."""
    count = len(parents)
    places = np.empty(_widest(states.offsets), np.int64)
    choice, path = np.empty(maxexp + 1, np.int64), np.empty(maxexp + 1, np.int64)
    for s in np.flatnonzero(kept):
        frontier = states.frontier[states.offsets[s] : states.offsets[s + 1]]
        size = _open_places(subtrees, frontier, places)
        most = _choices(size, maxexp)
        depth, choice[0] = 0, -1
        while depth >= 0:
            choice[depth] += 1
            if choice[depth] >= size:
                depth -= 1
                continue
            place = places[choice[depth]]
            slots, parents, moves, values = _with_room(slots, parents, moves, values, count)
            parent = 2 * np.int64(states.nodes[s]) + 1 if depth == 0 else 2 * path[depth - 1]
            move = (place << 32) + subtrees.productions[frontier[place]]
            path[depth], count = _insert(slots, parents, moves, count, parent, move)
            values[path[depth]] += states.weights[s] * per_level * per_node ** (depth + 1)
            if depth + 1 < most:
                depth += 1
                choice[depth] = choice[depth - 1]
    return slots, parents[:count].copy(), moves[:count].copy(), values[:count].copy()


@_kernel
def _widest(offsets):  # type: ignore[no-untyped-def]
    widest = 0
    for s in range(len(offsets) - 1):
        widest = max(widest, offsets[s + 1] - offsets[s])
    return widest


def _grow(
    trie: Trie,
    values: Floats,
    states: _States,
    kept: Flags,
    subtrees: Subtrees,
    maxexp: int,
    per_level: float,
    per_node: float,
) -> tuple[Trie, Floats]:
    *grown, values = _grow_states(
        *trie, values, states, kept, subtrees, maxexp, per_level, per_node
    )
    return Trie(*grown), values


@_kernel
def _follow_states(  # type: ignore[no-untyped-def]
    trie, best, states, kept, subtrees, maxexp, per_level, per_node, out
):  # fmt: skip
    """Walk the same expansions once more and keep those among the best that can grow.

    Called twice: to count, with empty arrays in ``out``, and to fill.
    """
    size = total = 0
    places = np.empty(_widest(states.offsets), np.int64)
    choice, path = np.empty(maxexp + 1, np.int64), np.empty(maxexp + 1, np.int64)
    for s in np.flatnonzero(kept):
        frontier = states.frontier[states.offsets[s] : states.offsets[s + 1]]
        open_places = _open_places(subtrees, frontier, places)
        most = _choices(open_places, maxexp)
        depth, choice[0] = 0, -1
        while depth >= 0:
            choice[depth] += 1
            if choice[depth] >= open_places:
                depth -= 1
                continue
            place = places[choice[depth]]
            parent = 2 * np.int64(states.nodes[s]) + 1 if depth == 0 else 2 * path[depth - 1]
            move = (place << 32) + subtrees.productions[frontier[place]]
            path[depth] = trie.slots[_slot(trie.slots, trie.parents, trie.moves, parent, move)]
            if best[path[depth]]:
                wide, grows = 0, False
                for d in range(depth + 1):
                    u = frontier[places[choice[d]]]
                    begin, end = subtrees.child_offsets[u], subtrees.child_offsets[u + 1]
                    grows = grows or _can_grow(subtrees, begin, end)
                    if len(out.nodes):
                        out.frontier[total + wide : total + wide + end - begin] = subtrees.children[
                            begin:end
                        ]
                    wide += end - begin
                if grows:
                    if len(out.nodes):
                        out.nodes[size] = path[depth]
                        out.weights[size] = states.weights[s] * per_level * per_node ** (depth + 1)
                        out.offsets[size + 1] = total + wide
                    size += 1
                    total += wide
            if depth + 1 < most:
                depth += 1
                choice[depth] = choice[depth - 1]
    return size, total


def _room(size: int, total: int) -> _States:
    # The last, longer than any frontier, takes what turns out not to grow.
    return _States(
        np.empty(size, np.int32), np.empty(size), np.zeros(size + 1, np.int64),
        np.empty(total, np.int32),
    )  # fmt: skip


def _follow(
    trie: Trie,
    best: Flags,
    states: _States,
    kept: Flags,
    subtrees: Subtrees,
    maxexp: int,
    per_level: float,
    per_node: float,
) -> _States:
    walk = (trie, best, states, kept, subtrees, maxexp, per_level, per_node)
    size, total = _follow_states(*walk, _room(0, 0))
    if not size:
        return _room(0, 0)
    widest = int(np.diff(subtrees.child_offsets).max(initial=0)) * maxexp
    found = _room(size, total + widest)
    _follow_states(*walk, found)
    return found._replace(frontier=found.frontier[:total])


def spell(parents: AnyArray, moves: AnyArray, nodes: AnyArray) -> tuple[Offsets, TokenIds]:
    """Give the moves of fragments, from the root on: ``Fragments.offsets`` and ``.moves``."""
    return _spell(parents, moves, nodes.astype(np.int64))


@_kernel
def _spell(parents, moves, nodes):  # type: ignore[no-untyped-def]
    offsets = np.zeros(len(nodes) + 1, np.int64)
    for k in range(len(nodes)):
        node, length = nodes[k], 0
        while node > 0:
            node = parents[node] >> 1
            length += 1
        offsets[k + 1] = offsets[k] + length
    out = np.empty(3 * offsets[-1], np.int32)
    for k in range(len(nodes)):
        node, at = nodes[k], 3 * offsets[k + 1]
        while node > 0:
            at -= 3
            out[at] = parents[node] & 1
            out[at + 1] = moves[node] >> 32
            out[at + 2] = moves[node] & 0xFFFFFFFF
            node = parents[node] >> 1
    return offsets, out
