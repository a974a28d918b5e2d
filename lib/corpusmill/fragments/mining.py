r"""Mining the fragments of the SST kernel that weigh most in a kernel machine.

A machine over support vectors T_i has in the space of fragments the weight vector

    w_j = sum_i beta_i t_ij lambda^l(j) / ||T_i||          (equation 3 of the paper)

where t_ij is how often fragment j occurs in T_i. `mine` finds the L fragments of largest |w_j|
greedily, from small to large (algorithm 3.1).

The index of the algorithm is the trie of `corpusmill.fragments.trie`.

Occurrences of the same subtree, in one tree or many, are mined once with the sum of their weights.

Source: Pighin and Moschitti, Efficient Linearization of Tree Kernel Functions, CoNLL 2009,
section 3 and algorithm 3.1.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Subtrees
from corpusmill.fragments.trie import Fragments, Trie, insert, slot, spell, with_room
from corpusmill.types import AnyArray, Flags, Floats, Offsets, TokenIds

Relevance = Literal["depth", "productions"]
"""The value of a fragment that occurs once: lambda^depth, as the paper writes it, or
lambda^(productions / 2), the SST kernel's own."""

MAX_SUBSETS = 10_000
"""Ways to expand one occurrence at most; above it fewer than ``maxexp`` nodes at once."""
INDEX_BYTES = 96
"""Of the index for a fragment at most, while it doubles: 3 (8 + 16) and 8 + 16 for slots."""
_kernel = njit(cache=True, nogil=True, error_model="numpy")


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
    max_bytes: int = 1 << 30,
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
    max_bytes : int
        Of the index. A round that could generate more expands fewer nodes at once, everywhere
        alike, and mining ends where not even one at once would fit.

    Returns
    -------
    Mined
        With ``limit`` and ``maxexp`` large enough, all fragments with their exact weights.

    Notes
    -----
    Memory: `INDEX_BYTES` for each fragment generated, and the occurrences of the best L of a round.
    An occurrence that could be expanded in more than `MAX_SUBSETS` ways expands fewer
    nodes at once, and one whose weight is below all floating-point numbers does not grow.
    """
    maxexp = min(maxexp, MAX_SUBSETS.bit_length())  # more would be too many ways anyway
    per_level, per_node = (decay, 1.0) if relevance == "depth" else (1.0, np.sqrt(decay))
    trie, values, states = _base(subtrees, weights, per_level * per_node)
    best = largest(values, limit)
    bottom, rounds = bottom_of(values, best, limit), 1
    while (kept := best[states.nodes] & (states.weights != 0.0)).any():
        ways = _count_ways(states, kept, subtrees, maxexp)
        fits = len(values) + ways <= max_bytes / INDEX_BYTES
        most = int(np.flatnonzero(fits)[-1]) if fits.any() else 0
        if most == 0:
            break
        trie, values = _grow(trie, values, states, kept, subtrees, most, per_level, per_node)
        best = largest(values, limit)
        rounds += 1
        now = bottom_of(values, best, limit)
        if now is not None and now == bottom:
            break
        bottom = now
        states = _follow(trie, best, states, kept, subtrees, most, per_level, per_node)
    return Mined(ranked(trie.parents, trie.moves, values, best), len(values) - 1, rounds)


def subtree_weights(
    offsets: Offsets, nodes: TokenIds, beta: Floats, norms: Floats, size: int
) -> Floats:
    """Give sum_i beta_i c_i(u) / ||T_i|| for each subtree u; norms of 0 are empty trees."""
    shares = np.divide(beta, norms, out=np.zeros(len(beta)), where=norms > 0)
    return np.bincount(nodes, np.repeat(shares, np.diff(offsets)), size).astype(np.float64)


def largest(values: Floats, limit: int) -> Flags:
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


def bottom_of(values: Floats, best: Flags, limit: int) -> tuple[int, float] | None:
    """Give the last of the best and its relevance; None while there are fewer than L."""
    chosen = np.flatnonzero(best)
    if len(chosen) < limit:
        return None
    last = chosen[np.lexsort((-chosen, np.abs(values[chosen])))[0]]
    return int(last), float(abs(values[last]))


def ranked(parents: AnyArray, moves: AnyArray, values: Floats, chosen: Flags) -> Fragments:
    """Spell the chosen fragments of a trie, the largest |value| first, the older of equals."""
    nodes = np.flatnonzero(chosen)
    nodes = nodes[np.lexsort((nodes, -np.abs(values[nodes])))]
    return Fragments(*spell(parents, moves, nodes), values[nodes])


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
        slots, parents, moves, values = with_room(slots, parents, moves, values, count)
        move = np.int64(subtrees.productions[u])
        node, count = insert(slots, parents, moves, count, np.int64(1), move)
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
def _next_subset(choice, depth, size, most):  # type: ignore[no-untyped-def]
    """Go from a subset, or from none (-1), to the next one, smaller before larger of it.

    ``choice[:depth + 1]`` are ascending places below ``size``, at most so many of them; gives
    the new depth, -1 behind the last.
    """
    if depth + 1 < most:
        first = 0 if depth < 0 else choice[depth] + 1
        if first < size:
            choice[depth + 1] = first
            return depth + 1
    while depth >= 0:
        choice[depth] += 1
        if choice[depth] < size:
            return depth
        depth -= 1
    return -1


@_kernel
def _count_ways(states, kept, subtrees, maxexp):  # type: ignore[no-untyped-def]
    """Give in how many ways all occurrences expand, by the nodes expanded at once at most."""
    ways = np.zeros(maxexp + 1)
    places = np.empty(_widest(states.offsets), np.int64)
    for s in np.flatnonzero(kept):
        frontier = states.frontier[states.offsets[s] : states.offsets[s + 1]]
        size = _open_places(subtrees, frontier, places)
        subsets, chosen = 1.0, _choices(size, maxexp)
        for k in range(chosen):
            subsets *= (size - k) / (k + 1)
            ways[k + 1 :] += subsets
    return ways


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
        depth = _next_subset(choice, -1, size, most)
        while depth >= 0:
            place = places[choice[depth]]
            slots, parents, moves, values = with_room(slots, parents, moves, values, count)
            parent = 2 * np.int64(states.nodes[s]) + 1 if depth == 0 else 2 * path[depth - 1]
            move = (place << 32) + subtrees.productions[frontier[place]]
            path[depth], count = insert(slots, parents, moves, count, parent, move)
            values[path[depth]] += states.weights[s] * per_level * per_node ** (depth + 1)
            depth = _next_subset(choice, depth, size, most)
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
        depth = _next_subset(choice, -1, open_places, most)
        while depth >= 0:
            place = places[choice[depth]]
            parent = 2 * np.int64(states.nodes[s]) + 1 if depth == 0 else 2 * path[depth - 1]
            move = (place << 32) + subtrees.productions[frontier[place]]
            path[depth] = trie.slots[slot(trie.slots, trie.parents, trie.moves, parent, move)]
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
            depth = _next_subset(choice, depth, open_places, most)
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
