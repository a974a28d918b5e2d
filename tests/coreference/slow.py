"""Features, search and learning the slow way: an exact map, trees as tuples, all from scratch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Protocol

import numpy as np

from corpusmill.coreference.attributes import ATOMS
from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.pairs import PAIR_ATOMS, compare
from corpusmill.coreference.templates import (
    ANAPHOR,
    ANTECEDENT,
    CLUSTER,
    FIRST,
    GRAND,
    LAST,
    PAIR,
    SIBLING,
    Template,
    parse_templates,
)
from tests.coreference.samples import Prepared

Tree = tuple[int, ...]
Key = tuple[str, str, tuple[Any, ...]]
Item = tuple[float, Tree]
ROOT_LOSS = 1.5


class Document:
    """A document's mentions, numbered from 0, and the features of its arcs."""

    def __init__(self, prepared: Prepared, number: int, window: int = 1000):
        offsets = prepared.mentions.offsets
        self.begin, end = int(offsets[number]), int(offsets[number + 1])
        self.count = end - self.begin
        self.table = prepared.table
        self.templates = prepared.templates
        self.clusters = prepared.mentions.clusters[self.begin : end].tolist()
        self.window = window
        self._pairs: dict[tuple[int, int], list[int]] = {}

    def atom(self, mention: int, atom: int) -> int:
        return int(self.table.atoms[self.begin + mention, atom]) if mention >= 0 else 0

    def pair(self, antecedent: int, anaphor: int) -> list[int]:
        if (antecedent, anaphor) not in self._pairs:
            values = np.zeros((1, len(PAIR_ATOMS)), np.uint64)
            one, two = self.begin + antecedent, self.begin + anaphor
            compare(self.table, two, one, one + 1, values)
            self._pairs[antecedent, anaphor] = [int(value) for value in values[0]]
        return self._pairs[antecedent, anaphor]

    def features(self, tree: Tree, antecedent: int) -> list[Key]:
        """The features of the arc that comes next after those of a partial tree."""
        anaphor = len(tree)
        if antecedent < 0:
            rests = {frozenset(a for s, a in t.atoms if s == ANAPHOR) for t in self.local}
            return [self._root(anaphor, sorted(rest)) for rest in rests | {frozenset[int]()}]
        cluster = members(tree, antecedent)
        siblings = [each for each in range(anaphor) if tree[each] == antecedent]
        whose = {
            ANAPHOR: anaphor,
            ANTECEDENT: antecedent,
            GRAND: tree[antecedent],
            SIBLING: siblings[-1] if siblings else -1,
            FIRST: cluster[0],
            LAST: cluster[-1],
        }
        shape = tuple(int(self.table.types[self.begin + each]) for each in cluster)
        about = [min(len(cluster), 6), shape, 1 + cluster[0].bit_length()]

        def value(slot: int, atom: int) -> Any:
            if slot == PAIR:
                return self.pair(antecedent, anaphor)[atom]
            return about[atom] if slot == CLUSTER else self.atom(whose[slot], atom)

        return [("arc", t.name, tuple(value(*atom) for atom in t.atoms)) for t in self.templates]

    @property
    def local(self) -> list[Template]:
        local = {ANAPHOR, ANTECEDENT, PAIR}
        return [t for t in self.templates if {slot for slot, _ in t.atoms} <= local]

    def _root(self, anaphor: int, atoms: list[int]) -> Key:
        name = " + ".join(f"ana.{ATOMS[atom]}" for atom in atoms)
        return "root", name, tuple(self.atom(anaphor, atom) for atom in atoms)

    def tree_features(self, tree: Tree) -> Counter[Key]:
        total: Counter[Key] = Counter()
        for anaphor, antecedent in enumerate(tree):
            total.update(self.features(tree[:anaphor], antecedent))
        return total

    def score(self, weights: Lookup, tree: Tree, antecedent: int) -> float:
        return sum(weights[key] for key in self.features(tree, antecedent))

    def choices(self, anaphor: int) -> list[int]:
        """The root, then all antecedents in the window, the nearest first."""
        return [-1, *range(anaphor - 1, max(0, anaphor - self.window) - 1, -1)]

    def correct(self, anaphor: int) -> list[int]:
        cluster = self.clusters[anaphor]
        same = [
            m for m in self.choices(anaphor)[1:] if cluster >= 0 and self.clusters[m] == cluster
        ]
        return same or [-1]

    def loss(self, tree: Tree) -> float:
        wrong = [a for m, a in enumerate(tree) if a not in self.correct(m)]
        return sum(ROOT_LOSS if antecedent < 0 else 1.0 for antecedent in wrong)

    def is_correct(self, tree: Tree) -> bool:
        return self.loss(tree) == 0

    def trees(self, so_far: Tree = ()) -> Iterator[Tree]:
        """All trees."""
        if len(so_far) == self.count:
            yield so_far
            return
        for antecedent in self.choices(len(so_far)):
            yield from self.trees((*so_far, antecedent))


def members(tree: Tree, mention: int) -> list[int]:
    """The mentions of a cluster, from left to right."""

    def top(at: int) -> int:
        return at if tree[at] < 0 else top(tree[at])

    return [each for each in range(len(tree)) if top(each) == top(mention)]


# ---- the hash kernel in Python's integers ----

_SPAN = 1 << 64


@cache
def _salt(text: str) -> int:
    return int(hash_strings([text])[0])


@cache
def _atoms(name: str) -> list[tuple[int, int]]:
    return list(parse_templates([name], "a key")[0].atoms) if name else []


def place_of(key: Key, shift: int) -> int:
    """The place of a feature, from the definition."""
    kind, name, values = key
    total = _salt(f"{kind}: {name}")
    for (slot, atom), value in zip(_atoms(name), values, strict=True):
        number = value
        if isinstance(value, tuple):  # a shape
            number = 0
            for each in value:
                number = (number * 0x9E3779B97F4A7C15 + each) % _SPAN
        total += number * (_salt(f"{kind}: {name}: {slot}.{atom}") | 1)
    total %= _SPAN
    mixed = ((total ^ (total >> 32)) * 0xD6E8FEB86659FD93) % _SPAN
    return mixed >> shift


class Lookup(Protocol):
    """What gives the weight of a feature."""

    def __getitem__(self, key: Key, /) -> float: ...


class Hashed:
    """A table of weights, looked up by keys."""

    def __init__(self, weights: np.ndarray, shift: int):
        self.weights, self.shift = weights, shift

    def __getitem__(self, key: Key) -> float:
        return float(self.weights[place_of(key, self.shift)])


def whole_weights(seed: int, bits: int) -> np.ndarray:
    """Random weights whose sums are exact: ties are ties in whatever order they are added."""
    return np.random.default_rng(seed).integers(-1000, 1000, 1 << bits).astype(np.float64)


# ---- search ----


def greedy(document: Document, weights: Lookup) -> tuple[Tree, Tree]:
    """The best tree and the best correct tree, with local features."""
    found, latent = [], []
    for mention in range(document.count):
        empty = (-1,) * mention
        scores = {a: document.score(weights, empty, a) for a in document.choices(mention)}
        found.append(max(document.choices(mention), key=scores.__getitem__))
        latent.append(max(document.correct(mention), key=scores.__getitem__))
    return tuple(found), tuple(latent)


def expand(
    document: Document, weights: Lookup, agenda: list[Item], beam: int, only: bool
) -> list[Item]:
    mention = len(agenda[0][1])
    allowed = document.correct(mention) if only else document.choices(mention)
    new = [
        (score + document.score(weights, tree, antecedent), (*tree, antecedent))
        for antecedent in allowed
        for score, tree in agenda
    ]
    return sorted(new, key=lambda item: -item[0])[:beam]


def search(document: Document, weights: Lookup, beam: int, given: bool = False) -> Item:
    """The best tree of a beam; if clusters are given, mentions in one stay there."""
    agenda: list[Item] = [(0, ())]
    for cluster in document.clusters:
        agenda = expand(document, weights, agenda, beam, given and cluster >= 0)
    return agenda[0]


# ---- learning ----


class Weights(Counter[Key]):
    """An exact map; a feature that was never updated has its weight in a table, or 0."""

    def __init__(self, first: Lookup | None = None):
        super().__init__()
        self.first = first

    def __missing__(self, key: Key) -> Any:
        return self.first[key] if self.first is not None else 0


class Learner:
    """Updates of an exact map."""

    def __init__(
        self,
        kind: str = "perceptron",
        limit: float = 1.0,
        first: Lookup | None = None,
    ):
        self.weights = Weights(first)
        self.kind, self.limit = kind, limit

    def update(self, delta: Counter[Key], loss: float) -> None:
        square = sum(move * move for move in delta.values())
        if square == 0:
            return
        violation = sum(move * self.weights[key] for key, move in delta.items()) + loss
        size: float = 1
        if self.kind != "perceptron":
            size = max(violation, 0.0) / square
            if self.kind == "pa1":
                size = min(size, self.limit)
            if self.kind == "pa2":
                size = max(violation, 0.0) / (square + 1 / (2 * self.limit))
        for key, move in delta.items():
            self.weights[key] -= size * move  # type: ignore[assignment]

    def nonzero(self) -> dict[Key, float]:
        return {key: weight for key, weight in self.weights.items() if weight}


def difference(document: Document, found: Tree, latent: Tree) -> Counter[Key]:
    delta = document.tree_features(found)
    delta.subtract(document.tree_features(latent))
    return Counter({key: move for key, move in delta.items() if move})


def length(tree: Tree) -> tuple[int, int]:
    arcs = [mention - antecedent for mention, antecedent in enumerate(tree) if antecedent >= 0]
    return sum(arcs), len(arcs)


def learn_greedy(document: Document, learner: Learner) -> tuple[float, int, int]:
    """Algorithm 1."""
    found, latent = greedy(document, learner.weights)
    loss = document.loss(found)
    if loss:
        learner.update(difference(document, found, latent), loss)
    return loss, *length(latent)


def learn_beam(
    document: Document, learner: Learner, beam: int, regime: str
) -> tuple[float, int, int]:
    """Algorithms 2 and 3, LaSO, max-violation."""
    any_: list[Item] = [(0, ())]
    correct: list[Item] = [(0, ())]
    total: Counter[Key] = Counter()
    loss = 0.0
    violations: list[tuple[float, Tree, Tree]] = []
    for mention in range(document.count):
        any_ = expand(document, learner.weights, any_, beam, False)
        correct = expand(document, learner.weights, correct, beam, True)
        best, latent = any_[0], correct[0]
        right = document.is_correct(best[1])
        if regime == "max_violation":
            if not right:
                violations.append((best[0] - latent[0], best[1], latent[1]))
            continue
        last = mention == document.count - 1 and not right
        if not last and any(document.is_correct(tree) for _, tree in any_):
            continue
        delta, wrong = difference(document, best[1], latent[1]), document.loss(best[1])
        loss += wrong
        if regime == "delayed":
            total.update(delta)
        else:
            learner.update(delta, wrong)
        if regime == "early":
            break
        if regime == "laso":
            correct = [(0, ())]
            for _ in range(mention + 1):
                correct = expand(document, learner.weights, correct, beam, True)
        any_ = correct
    if violations:
        _, found, true = max(violations, key=lambda each: each[0])
        loss = document.loss(found)
        total = difference(document, found, true)
    learner.update(total, loss)
    return loss, *length(correct[0][1] if document.count else ())
