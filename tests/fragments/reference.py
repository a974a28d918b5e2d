"""Tree kernels the slow way: all fragments of a tree, one by one.

A tree is ``(label, children)``, an empty one None. A fragment is a tree too; what it leaves out
below a node is not told apart from what is not there, as in the kernels.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from corpusmill.fragments.forests import Interned, Productions, Subtrees
from corpusmill.types import Floats, Forest

Tree = Any
"""(label, tuple of trees), or None: recursive, which NamedTuples and mypy make clumsy."""
Vector = dict[Any, float]


def trees(labels: int = 3, most_leaves: int = 6, most_children: int = 3) -> st.SearchStrategy[Tree]:
    """Draw small trees over few labels, which leaves and inner nodes share; sometimes none."""
    label = st.integers(0, labels - 1)
    leaf = st.tuples(label, st.just(()))
    whole = st.recursive(
        leaf,
        lambda below: st.tuples(
            label, st.lists(below, min_size=1, max_size=most_children).map(tuple)
        ),
        max_leaves=most_leaves,
    )
    return st.one_of(whole, whole, whole, st.none())


def forests(most: int = 5, **how: int) -> st.SearchStrategy[list[Tree]]:
    """Draw lists of trees."""
    return st.lists(trees(**how), min_size=1, max_size=most)


def random_tree(rng: np.random.Generator, nodes: int, labels: int, most_children: int = 3) -> Tree:
    """Draw a tree of about so many nodes."""
    if nodes <= 1:
        return int(rng.integers(labels)), ()
    arity = int(rng.integers(1, min(most_children, nodes - 1) + 1))
    shares = rng.multinomial(nodes - 1 - arity, np.full(arity, 1 / arity)) + 1
    children = tuple(random_tree(rng, int(share), labels, most_children) for share in shares)
    return int(rng.integers(labels)), children


def forest_of(forest: Iterable[Tree]) -> Forest:
    """Write trees as flat arrays."""
    offsets, labels, arities = [0], [], []
    for tree in forest:
        for label, children in nodes_of(tree):
            labels.append(label)
            arities.append(len(children))
        offsets.append(len(labels))
    return Forest(np.array(offsets), np.array(labels, np.int32), np.array(arities, np.int32))


def nodes_of(tree: Tree) -> Iterator[Tree]:
    """List the subtrees of a tree in preorder."""
    if tree is not None:
        yield tree
        for child in tree[1]:
            yield from nodes_of(child)


def is_leaf(tree: Tree) -> bool:
    return not tree[1]


# Fragments


def sst_fragments(node: Tree) -> Counter[Tree]:
    """Count the fragments of the SST kernel that begin at a node: all its children, or none."""
    if is_leaf(node):
        return Counter()
    choices = []
    for child in node[1]:
        below = sst_fragments(child)
        below[(child[0], ())] += 1
        choices.append(list(below.items()))
    found: Counter[Tree] = Counter()
    for chosen in product(*choices):
        count = int(np.prod([times for _, times in chosen]))
        found[(node[0], tuple(fragment for fragment, _ in chosen))] += count
    return found


def productions_in(fragment: Tree) -> int:
    return sum(not is_leaf(node) for node in nodes_of(fragment))


def depth(fragment: Tree) -> int:
    """Give the number of levels below the root."""
    return 1 + max(map(depth, fragment[1])) if fragment[1] else 0


def sst_counts(tree: Tree) -> Counter[Tree]:
    """Count all SST fragments of a tree."""
    found: Counter[Tree] = Counter()
    for node in nodes_of(tree):
        found += sst_fragments(node)
    return found


def sst_vector(tree: Tree, decay: float) -> Vector:
    return {f: t * decay ** (productions_in(f) / 2) for f, t in sst_counts(tree).items()}


def st_vector(tree: Tree, decay: float) -> Vector:
    counts = Counter(node for node in nodes_of(tree) if not is_leaf(node))
    return {f: t * decay ** (productions_in(f) / 2) for f, t in counts.items()}


def sst_bow_vector(tree: Tree, decay: float) -> Vector:
    leaves = Counter(("leaf", node[0]) for node in nodes_of(tree) if is_leaf(node))
    return sst_vector(tree, decay) | {f: t * decay**0.5 for f, t in leaves.items()}


def partial_fragments(node: Tree, decay: float, mu: float) -> list[tuple[Tree, float]]:
    """List the fragments of the PTK that begin at a node, and their values, place by place.

    A node costs sqrt(mu), one without children in the fragment lambda, and so does every child
    that is skipped between two that are not.
    """
    found: list[tuple[Tree, float]] = [((node[0], ()), mu**0.5 * decay)]
    below = [partial_fragments(child, decay, mu) for child in node[1]]
    for size in range(1, len(below) + 1):
        for places in combinations(range(len(below)), size):
            gaps = sum(b - a - 1 for a, b in pairwise(places))
            for chosen in product(*(below[place] for place in places)):
                value = mu**0.5 * decay**gaps * float(np.prod([v for _, v in chosen]))
                found.append(((node[0], tuple(f for f, _ in chosen)), value))
    return found


def ptk_vector(tree: Tree, decay: float, mu: float) -> Vector:
    found: Vector = defaultdict(float)
    for node in nodes_of(tree):
        for fragment, value in partial_fragments(node, decay, mu):
            found[fragment] += value
    return found


def vector(kernel: str, tree: Tree, decay: float, mu: float = 1.0) -> Vector:
    """Give a tree's vector of fragments."""
    if kernel == "ptk":
        return ptk_vector(tree, decay, mu)
    return {"sst": sst_vector, "st": st_vector, "sst_bow": sst_bow_vector}[kernel](tree, decay)


def inner(left: Mapping[Any, float], right: Mapping[Any, float]) -> float:
    return sum(value * right[f] for f, value in left.items() if f in right)


def gram(kernel: str, left: Sequence[Tree], right: Sequence[Tree], *how: float) -> Floats:
    """Give the kernel of all pairs, as inner products of vectors of fragments."""
    vectors = [vector(kernel, tree, *how) for tree in right]
    rows = [[inner(vector(kernel, tree, *how), other) for other in vectors] for tree in left]
    return np.array(rows, float).reshape(len(left), len(right))


# Numbers of subtrees and productions


class Numbers(NamedTuple):
    """What `corpusmill.fragments.forests.intern` gives, as lists."""

    subtrees: list[Tree]
    productions: list[tuple[int, ...]]
    nodes: list[int]


def number(
    forest: Sequence[Tree], known: Sequence[Tree] = (), rules: Sequence[Any] = ()
) -> Numbers:
    """Number distinct subtrees and productions with dicts, backwards through each tree."""
    subtrees = {tree: k for k, tree in enumerate(known)}
    productions = {rule: k for k, rule in enumerate(rules)}
    nodes = []
    for tree in forest:
        numbers = []
        for node in reversed(list(nodes_of(tree))):
            numbers.append(subtrees.setdefault(node, len(subtrees)))
            if not is_leaf(node):
                productions.setdefault(rule_of(node), len(productions))
        nodes += numbers[::-1]
    return Numbers(list(subtrees), list(productions), nodes)


def rule_of(node: Tree) -> tuple[int, ...]:
    return (node[0], *(child[0] for child in node[1]))


def spelled(subtrees: Subtrees) -> list[Tree]:
    """Write numbered subtrees as trees."""
    found: list[Tree] = []
    for u, label in enumerate(subtrees.labels.tolist()):
        begin, end = subtrees.child_offsets[u : u + 2]
        found.append((label, tuple(found[child] for child in subtrees.children[begin:end])))
    return found


def rules(productions: Productions) -> list[tuple[int, ...]]:
    return [
        tuple(productions.labels[begin:end].tolist())
        for begin, end in pairwise(productions.offsets)
    ]


def grown(moves: Sequence[int], productions: Productions) -> Tree:
    """Build the fragment that moves spell: level by level, by positions on the level."""
    known = rules(productions)
    root: Any = None
    level: list[Any] = []
    below: list[Any] = []
    for k in range(0, len(moves), 3):
        fresh, place, rule = moves[k : k + 3]
        label, *children = known[rule]
        if root is None:
            node = root = [label, []]
        else:
            if fresh:
                level, below = below, []
            node = level[place]
            assert node[0] == label
            assert not node[1]
        node[1].extend([child, []] for child in children)
        below.extend(node[1])
    return frozen(root)


def grown_partial(moves: Sequence[int]) -> Tree:
    """Build the fragment of the PTK that moves spell: in preorder, by the depths of parents."""
    fragment: Tree = None
    for k in range(0, len(moves), 3):
        fresh, depth_of_parent, label = moves[k : k + 3]
        assert fresh == (k == 0)
        fragment = appended(fragment, depth_of_parent, label)
    return fragment


def appended(fragment: Tree, depth_of_parent: int, label: int) -> Tree:
    """Add a node to the right of all others."""
    if fragment is None:
        return label, ()
    root, children = fragment
    if depth_of_parent == 0:
        return root, (*children, (label, ()))
    return root, (*children[:-1], appended(children[-1], depth_of_parent - 1, label))


def frozen(node: Any) -> Tree:
    return node[0], tuple(map(frozen, node[1]))


# Sums over pairs of nodes, by the recursions of the papers: for larger trees


def sst_by_pairs(interned: Interned, decay: float) -> Floats:
    """Give the SST kernel of all pairs of trees from Delta of all pairs of distinct subtrees."""
    found = spelled(interned.subtrees)
    delta: dict[tuple[Tree, Tree], float] = {}
    for a in found:
        for b in found:
            delta[a, b] = 0.0
            if a[1] and b[1] and rule_of(a) == rule_of(b):
                below = (1.0 + delta[c, d] for c, d in zip(a[1], b[1], strict=True))
                delta[a, b] = decay * float(np.prod(list(below)))
    return _summed(interned, found, delta)


def ptk_by_pairs(interned: Interned, decay: float, mu: float) -> Floats:
    """Give the PTK of all pairs of trees, with the paper's sums over lengths of subsequences."""
    found = spelled(interned.subtrees)
    delta: dict[tuple[Tree, Tree], float] = {}
    for a in found:
        for b in found:
            delta[a, b] = 0.0
            if a[0] == b[0]:
                pairs = np.array([[delta[c, d] for d in b[1]] for c in a[1]])
                below = sum(part.sum() for part in _delta_p(pairs, decay))
                delta[a, b] = mu * (decay**2 + below)
    return _summed(interned, found, delta)


def _delta_p(pairs: Floats, decay: float) -> Iterator[Floats]:
    """Sum over subsequences of length 1, 2, ... that end in each pair of children."""
    ended = pairs
    while ended.any():
        yield ended
        shorter, ended = ended, np.zeros_like(pairs)
        for i, j in np.ndindex(*pairs.shape):
            gaps = decay ** (np.arange(i)[::-1, None] + np.arange(j)[None, ::-1])
            ended[i, j] = pairs[i, j] * (gaps * shorter[:i, :j]).sum()


def _summed(interned: Interned, found: list[Tree], delta: Mapping[Any, float]) -> Floats:
    table = np.array([[delta[a, b] for b in found] for a in found]).reshape(len(found), -1)
    counts = np.zeros((len(interned.offsets) - 1, len(found)))
    owners = np.repeat(np.arange(len(counts)), np.diff(interned.offsets))
    np.add.at(counts, (owners, interned.nodes), 1.0)
    return np.asarray(counts @ table @ counts.T)


# Mining (algorithm 3.1), level by level, on trees themselves


class Mined(NamedTuple):
    """Fragments with their weights, the best first, and what it cost to find them."""

    best: list[tuple[Tree, float]]
    generated: int
    rounds: int


class _Occurrence(NamedTuple):
    """A fragment at the root of a tree: the paths to its expanded nodes and to those below."""

    tree: Tree
    expanded: frozenset[tuple[int, ...]]
    below: list[tuple[int, ...]]
    value: float

    @property
    def fragment(self) -> Tree:
        return _cut(self.tree, self.expanded, ())

    def can_grow(self) -> bool:
        return any(_at(self.tree, path)[1] for path in self.below)

    def expand(self, chosen: Sequence[tuple[int, ...]], factor: float) -> _Occurrence:
        below = [(*p, k) for p in chosen for k in range(len(_at(self.tree, p)[1]))]
        return _Occurrence(self.tree, self.expanded | set(chosen), below, self.value * factor)


def _at(tree: Tree, path: tuple[int, ...]) -> Tree:
    for k in path:
        tree = tree[1][k]
    return tree


def _cut(tree: Tree, expanded: frozenset[tuple[int, ...]], path: tuple[int, ...]) -> Tree:
    if path not in expanded:
        return tree[0], ()
    return tree[0], tuple(_cut(c, expanded, (*path, k)) for k, c in enumerate(tree[1]))


def mine(
    weighted: Sequence[tuple[Tree, float]], decay: float, limit: int, maxexp: int, relevance: str
) -> Mined:
    """Mine the fragments of trees at whose roots a machine has these weights."""
    level, node = (decay, 1.0) if relevance == "depth" else (1.0, decay**0.5)
    index: dict[Tree, float] = {}
    new = [_Occurrence(t, frozenset([()]), [], w * level * node) for t, w in weighted]
    new = [one._replace(below=[(k,) for k in range(len(one.tree[1]))]) for one in new]
    rounds, last = 1, None
    while True:
        for one in new:
            index[one.fragment] = index.get(one.fragment, 0.0) + one.value
        # Sorting is stable: of equals the older one comes first.
        best = sorted(index.items(), key=lambda item: -abs(item[1]))[:limit]
        bottom = (best[-1][0], abs(best[-1][1])) if len(best) == limit else None
        if bottom is not None and bottom == last:
            break
        last, kept = bottom, {fragment for fragment, _ in best}
        old = [one for one in new if one.fragment in kept and one.can_grow()]
        if not old:
            break
        rounds, new = rounds + 1, []
        for one in old:
            places = [path for path in one.below if _at(one.tree, path)[1]]
            sizes = range(1, min(maxexp, len(places)) + 1)
            ways = sorted(way for k in sizes for way in combinations(range(len(places)), k))
            for way in ways:
                chosen = [places[k] for k in way]
                new.append(one.expand(chosen, level * node ** len(chosen)))
    return Mined(best, len(index), rounds)


def mine_partial(
    weighted: Sequence[tuple[Tree, float]], decay: float, mu: float, limit: int
) -> Mined:
    """Mine the fragments of the PTK of trees at whose roots a machine has these weights.

    Occurrences with the same fragment, root and last node are summed up.
    """
    known: dict[Tree, float] = {}
    states = [(None, root, {None: w}) for root, (_, w) in enumerate(weighted)]
    rounds = generated = 0
    last = None
    while states:
        index: dict[Tree, float] = {}
        new: dict[Tree, dict[int, dict[Any, float]]] = {}
        for fragment, root, ends in states:
            tree = weighted[root][0]
            targets: dict[Any, float] = defaultdict(float)
            for path, value in ends.items():
                for target, factor in _growths(tree, path, decay, mu):
                    targets[target] += value * factor
            for target, value in targets.items():
                found = appended(fragment, len(target) - 1, _at(tree, target)[0])
                index[found] = index.get(found, 0.0) + value
                if any(_growths(tree, target, decay, mu)):
                    new.setdefault(found, {}).setdefault(root, {})[target] = value
        rounds, generated = rounds + 1, generated + len(index)
        ranked = sorted([*known.items(), *index.items()], key=lambda item: -abs(item[1]))[:limit]
        best = {fragment for fragment, _ in ranked}
        fresh = sorted(best & index.keys(), key=lambda f: (-abs(index[f]), list(index).index(f)))
        known |= {fragment: index[fragment] for fragment in fresh}
        bottom = ranked[-1] if len(ranked) == limit else None
        if bottom is not None and bottom == last:
            break
        last = bottom
        states = [(f, root, ends) for f in fresh for root, ends in sorted(new.get(f, {}).items())]
    return Mined(sorted(known.items(), key=lambda item: -abs(item[1]))[:limit], generated, rounds)


def _growths(
    tree: Tree, path: tuple[int, ...] | None, decay: float, mu: float
) -> Iterator[tuple[tuple[int, ...], float]]:
    """List the nodes that may follow the last one, and their factors."""
    if path is None:
        yield (), mu**0.5 * decay
        return
    for depth in range(len(path) + 1):
        taken = path[depth] if depth < len(path) else None
        for k in range(len(_at(tree, path[:depth])[1])):
            if taken is None:
                yield (*path, k), mu**0.5
            elif k > taken:
                yield (*path[:depth], k), mu**0.5 * decay ** (k - taken)
