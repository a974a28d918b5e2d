r"""Mining the fragments of the Partial Tree Kernel that weigh most in a kernel machine.

As `corpusmill.fragments.mining` for the SST kernel: over support vectors T_i a machine has the
weight w_j = sum_i beta_i x_ij / ||T_i|| for fragment j, where x_ij is the sum over its occurrences
in T_i of mu^(m/2) lambda^(m - i + g). Fragments grow by a node a round, as
`corpusmill.fragments.partial_fragments` spells them, and only the best L grow (algorithm 3.1).

The weight of a fragment is known as soon as the round that generates it is over. So one that is not
among the best then never will be, and is not kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from corpusmill.fragments.forests import Subtrees
from corpusmill.fragments.mining import INDEX_BYTES, Mined, bottom_of, largest, ranked
from corpusmill.fragments.partial_fragments import (
    NOWHERE,
    Factors,
    extend,
    forget,
    group_end,
    lay_out,
    make_room,
    move_of,
    reach,
)
from corpusmill.fragments.trie import insert, larger, slot, with_room
from corpusmill.types import AnyArray, Floats, TokenIds

STATE_BYTES = 108
"""Of a state at most: 3 (3 4 + 8) while it doubles, 8 + 20 to sort, and 20 of the round before."""
_kernel = njit(cache=True, nogil=True, error_model="numpy")


class _States(NamedTuple):
    """Occurrences of fragments, by their roots and last nodes, with their weights."""

    nodes: TokenIds
    roots: TokenIds
    places: TokenIds
    weights: Floats


class _Index(NamedTuple):
    """The fragments that a round generated, as a trie above those known before; 0 is none."""

    slots: TokenIds
    parents: AnyArray
    moves: AnyArray
    values: Floats


class _Known(NamedTuple):
    """The fragments that were ever among the best, as a trie without slots; 0 is the empty one."""

    parents: AnyArray
    moves: AnyArray
    values: Floats


def mine_partial(
    subtrees: Subtrees,
    weights: Floats,
    decay: float,
    mu: float,
    limit: int,
    max_bytes: int = 1 << 30,
) -> Mined:
    """Mine the most relevant fragments of a machine of the partial tree kernel.

    Parameters
    ----------
    subtrees : Subtrees
        The distinct subtrees of the support vectors.
    weights : Floats, shape (subtrees,)
        sum_i beta_i c_i(u) / ||T_i||, where subtree u occurs c_i(u) times in T_i.
    decay, mu : float
        lambda and mu.
    limit : int
        L, how many fragments; only the best L of a round grow in the next.
    max_bytes : int
        Of a round's index and states, half of it each. Where they do not fit, the best fragments
        grow first and the last ones do not.

    Returns
    -------
    Mined
        With ``limit`` and ``max_bytes`` large enough, all fragments with their exact weights, but
        for those that skip more children at a time than `partial_fragments.reach` allows.

    Notes
    -----
    A round takes O(states times the nodes that each can grow by), twice; a fragment has at most
    one state for each node. Memory: `INDEX_BYTES` for each fragment that a round generates,
    `STATE_BYTES` for each state, and 24 bytes for each fragment that was ever among the best.
    The limits are looked at before a fragment grows. A weight below all floating-point numbers
    does not grow.
    """
    layout = lay_out(subtrees)
    growth = make_room(layout)
    step = float(np.sqrt(mu))
    factors = Factors(step * decay, step, step * decay, decay, reach(decay))
    most = max_bytes // 2 // INDEX_BYTES, max_bytes // 2 // STATE_BYTES
    known = _Known(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1))
    best = largest(known.values, limit)
    bottom, rounds, generated = None, 0, 0
    states = _first_states(weights)
    while len(states.nodes):
        *found, used = _grow(layout, states, factors, most[0], growth)
        index = _Index(*found)
        known, numbers = _keep(known, index, limit)
        generated += len(index.values) - 1
        rounds += 1
        best = largest(known.values, limit)
        now = bottom_of(known.values, best, limit)
        if now is not None and now == bottom:
            break
        bottom = now
        states = _sorted(
            _States(*_follow(layout, states, used, factors, index, numbers, most[1], growth))
        )
    return Mined(ranked(known.parents, known.moves, known.values, best), generated, rounds)


def _first_states(weights: Floats) -> _States:
    """Put the empty fragment at every root."""
    roots = np.flatnonzero(weights).astype(np.int32)
    nothing = np.zeros(len(roots), np.int32)
    return _States(nothing, roots, nothing + np.int32(NOWHERE), weights[roots])


def _keep(known: _Known, index: _Index, limit: int) -> tuple[_Known, TokenIds]:
    """Add the best of a round, in the order of their |values|; give their numbers, -1 for others.

    Of equals the older is the better one.
    """
    best = largest(np.concatenate([known.values, index.values[1:]]), limit)
    fresh = 1 + np.flatnonzero(best[len(known.values) :])
    fresh = fresh[np.lexsort((fresh, -np.abs(index.values[fresh])))]
    numbers = np.full(len(index.values), -1, np.int32)
    numbers[fresh] = len(known.values) + np.arange(len(fresh), dtype=np.int32)
    parts = zip(known, (index.parents, index.moves, index.values), strict=True)
    return _Known(*(np.concatenate([old, new[fresh]]) for old, new in parts)), numbers


def _sorted(states: _States) -> _States:
    """Put the states of a fragment together, the best fragment first, roots in ascending order."""
    order = np.argsort(states.nodes, kind="stable")
    nodes, roots, places, weights = states
    return _States(nodes[order], roots[order], places[order], weights[order])


@_kernel
def _grow(layout, states, factors, most, growth):  # type: ignore[no-untyped-def]
    """Generate the fragments that states grow into, and how many of the states grew."""
    slots = np.full(1024, -1, np.int32)
    parents, moves, values = np.zeros(512, np.int64), np.zeros(512, np.int64), np.zeros(512)
    first, size, count = 0, len(states.nodes), 1
    while first < size:
        node, root = states.nodes[first], states.roots[first]
        if count > most and node != states.nodes[first - 1]:
            break
        last = group_end(states.nodes, states.roots, first, size)
        found = extend(layout, root, states.places, states.weights, first, last, factors, growth)
        for k in range(found):
            slots, parents, moves, values = with_room(slots, parents, moves, values, count)
            parent, move = move_of(node, layout, growth, growth.places[k])
            child, count = insert(slots, parents, moves, count, parent, move)
            values[child] += growth.values[growth.places[k]]
        forget(growth, found)
        first = last
    return slots, parents[:count].copy(), moves[:count].copy(), values[:count].copy(), first


@_kernel
def _follow(layout, states, used, factors, index, numbers, most, growth):  # type: ignore[no-untyped-def]
    """Let states grow once more, and keep those of the best fragments that can grow again."""
    nodes, roots = np.empty(512, np.int32), np.empty(512, np.int32)
    places, weights = np.empty(512, np.int32), np.empty(512, np.float64)
    first = count = 0
    while first < used:
        node, root = states.nodes[first], states.roots[first]
        if count > most and node != states.nodes[first - 1]:
            break
        last = group_end(states.nodes, states.roots, first, used)
        found = extend(layout, root, states.places, states.weights, first, last, factors, growth)
        for k in range(found):
            place = growth.places[k]
            value = growth.values[place]
            # The node behind the last one can always be added.
            if place + 1 == layout.sizes[root] or value == 0.0:
                continue
            parent, move = move_of(node, layout, growth, place)
            child = index.slots[slot(index.slots, index.parents, index.moves, parent, move)]
            if numbers[child] < 0:
                continue
            if count == len(nodes):
                nodes, roots = larger(nodes), larger(roots)
                places, weights = larger(places), larger(weights)
            nodes[count], roots[count] = numbers[child], root
            places[count], weights[count] = place, value
            count += 1
        forget(growth, found)
        first = last
    return nodes[:count].copy(), roots[:count].copy(), places[:count].copy(), weights[:count].copy()
