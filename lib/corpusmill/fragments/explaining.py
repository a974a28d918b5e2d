"""Fragments as people read them, and what decided a prediction. No Spark.

Python loops run over the fragments and examples that are shown, or that decided a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.sparse import csr_array

from corpusmill.fragments.fragment import Fragment, fragment_text
from corpusmill.fragments.model import FragmentsModel, Space, machine_vectors
from corpusmill.fragments.pages import Contribution, Explanation
from corpusmill.fragments.tables import best_fragments
from corpusmill.types import AnyArray, Floats


def fragment_of(space: Space, column: int) -> Fragment:
    """Spell the fragment of a column of the explicit space; a feature of a vector has one node."""
    for fragments in space.fragments:
        size = len(fragments.offsets) - 1
        if column < size:
            begin, end = 3 * fragments.offsets[column : column + 2]
            moves = fragments.moves[begin:end].reshape(-1, 3)
            if space.settings.kernel == "ptk":
                return spell_partial(moves, space)
            return spell(moves, space)
        column -= size
    return Fragment([f"feature {column}"], [0], [True])


def spell(moves: AnyArray, space: Space) -> Fragment:
    """Turn the moves of `corpusmill.fragments.mining` into nodes in preorder."""
    labels: list[str] = [""]
    children: list[list[int]] = [[]]
    level, below = [0], [0]
    for fresh, place, production in moves.tolist():
        if fresh:
            level, below = below, []
        node = level[place]
        labels[node], *names = space.vocabulary.text(production)
        children[node] = list(range(len(labels), len(labels) + len(names)))
        labels += names
        children += [[] for _ in names]
        below += children[node]
    order, waiting = [], [0]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += reversed(children[node])
    # What is not expanded is drawn as open where the label ever stands above others.
    inner = space.vocabulary.inner_labels
    return Fragment(
        [labels[node] for node in order],
        [len(children[node]) for node in order],
        [bool(children[node]) or labels[node] not in inner for node in order],
    )


def spell_partial(moves: AnyArray, space: Space) -> Fragment:
    """Turn the moves of `corpusmill.fragments.partial_fragments` into nodes in preorder."""
    labels: list[str] = []
    arities: list[int] = []
    path: list[int] = []
    for _, depth_of_parent, label in moves.tolist():
        if labels:
            del path[depth_of_parent + 1 :]
            arities[path[-1]] += 1
        path.append(len(labels))
        labels.append(space.vocabulary.labels[label])
        arities.append(0)
    # Any children may be missing anywhere, which is not drawn.
    return Fragment(labels, arities, [True] * len(labels))


def best_of_classes(model: FragmentsModel, most: int) -> pd.DataFrame:
    """Give each machine's fragments of largest |weight|, as `tables.best_fragments`."""
    tables = []
    for number in range(len(model.bias)):
        own, weights = model.machine(number)
        tables.append(
            best_fragments(
                [model.classes[number]],
                weights[None, :],
                model.document_frequency[own],
                lambda place, own=own: fragment_of(model.space, int(own[place])),  # type: ignore[misc]
                most,
            )
        )
    return pd.concat(tables, ignore_index=True)


def deciding_fragments(
    model: FragmentsModel, vectors: csr_array, chosen: AnyArray, most: int
) -> tuple[pa.Array, pa.Array]:
    """Give for each row the fragments that spoke most for its class, and their contributions.

    Parameters
    ----------
    model : FragmentsModel
    vectors : csr_array
        As from ``model.space.vectors``.
    chosen : int64, shape (rows,)
        The class of each row.
    most : int
        How many a row at most.

    Returns
    -------
    tuple of pyarrow.ListArray
        Texts and w_j x_j, largest first, only those above 0.
    """
    rows, columns, parts = contributions(model, vectors, chosen)
    order = np.lexsort((-parts, rows))
    order = order[parts[order] > 0.0]
    sizes = np.bincount(rows[order], minlength=len(chosen))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    kept = order[rank < most]
    offsets = np.zeros(len(chosen) + 1, np.int32)
    np.cumsum(np.minimum(sizes, most), out=offsets[1:])
    distinct, places = np.unique(columns[kept], return_inverse=True)
    found = [fragment_of(model.space, int(column)) for column in distinct]
    texts = pa.array([fragment_text(item.labels, item.arities) for item in found], pa.string())
    return (
        pa.ListArray.from_arrays(pa.array(offsets), texts.take(pa.array(places))),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(parts[kept])),
    )


def contributions(
    model: FragmentsModel, vectors: csr_array, classes: AnyArray
) -> tuple[AnyArray, AnyArray, Floats]:
    """Give what each fragment adds to the score of a class a row: rows, columns and w_j x_j."""
    rows, columns, parts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for number in np.unique(classes):
        chosen = np.flatnonzero(classes == number)
        terms = _terms(model, csr_array(vectors[chosen]), int(number))
        rows.append(np.repeat(chosen, np.diff(terms.values.indptr)))
        columns.append(terms.own[terms.values.indices])
        parts.append(terms.weights[terms.values.indices] * terms.values.data)
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(parts)


class _Terms(NamedTuple):
    """A class's own columns, their weights for it, and the vectors over these columns."""

    own: AnyArray
    weights: Floats
    values: csr_array


def _terms(model: FragmentsModel, vectors: csr_array, number: int) -> _Terms:
    machine, sign = (number, 1.0) if number < len(model.bias) else (0, -1.0)
    own, weights = model.machine(machine)
    values = machine_vectors(vectors, own, model.space.sizes, model.settings)
    return _Terms(own, sign * weights, values)


def explain(model: FragmentsModel, batch: pa.RecordBatch, most: int = 10) -> list[Explanation]:
    """Tell what decided each prediction of a few tree rows.

    Parameters
    ----------
    model : FragmentsModel
    batch : pyarrow.RecordBatch
        Of `corpusmill.corpora.schemas.TREES`.
    most : int
        Fragments a class, by |contribution|; of the predicted class, and of the true one where
        the two differ.
    """
    vectors = model.space.vectors(batch)
    scores = model.scores(vectors)
    return [
        _explanation(model, row, csr_array(vectors[[i]]), scores[i], most)
        for i, row in enumerate(batch.to_pylist())
    ]


def _explanation(
    model: FragmentsModel, row: dict[str, Any], vector: csr_array, scores: Floats, most: int
) -> Explanation:
    predicted = int(scores.argmax())
    shown = [model.classes[predicted]]
    if row["target"] in model.classes and row["target"] not in shown:
        shown.append(str(row["target"]))
    signs = [1.0 if c < len(model.bias) else -1.0 for c in range(len(model.classes))]
    bias = [sign * model.bias[min(c, len(model.bias) - 1)] for c, sign in enumerate(signs)]
    found = {}
    for name in shown:
        found[name] = _strongest(
            model.space, row, _terms(model, vector, model.classes.index(name)), most
        )
    return Explanation(
        str(row["example_id"]), model.classes[predicted],
        None if row["target"] is None else str(row["target"]),
        row["node_labels"], row["node_arities"], row["tree_offsets"],
        dict(zip(model.classes, scores.tolist(), strict=True)),
        {name: float(b) for name, b in zip(model.classes, bias, strict=True)},
        found,
    )  # fmt: skip


def _strongest(
    space: Space, row: dict[str, Any], terms: _Terms, most: int
) -> Sequence[Contribution]:
    weights = terms.weights[terms.values.indices]
    parts = terms.values.data * weights
    order = np.argsort(-np.abs(parts), kind="stable")[:most]
    found = []
    for place in order[parts[order] != 0]:
        fragment = fragment_of(space, int(terms.own[terms.values.indices[place]]))
        find = partial_occurrences if space.settings.kernel == "ptk" else occurrences
        where = find(fragment, row["node_labels"], row["node_arities"])
        weight, value = float(weights[place]), float(terms.values.data[place])
        found.append(Contribution(fragment, weight, value, where))
    return found


def occurrences(
    fragment: Fragment, labels: Sequence[str], arities: Sequence[int]
) -> list[list[int]]:
    """Find where a fragment occurs in trees: for each place the nodes, in preorder."""
    children = _children(arities)
    found = []
    for root in range(len(labels)):
        nodes: list[int] = []
        waiting, fits = [root], True
        for label, arity in zip(fragment.labels, fragment.arities, strict=True):
            node = waiting.pop()
            fits = labels[node] == label and arity in (0, len(children[node]))
            if not fits:
                break
            nodes.append(node)
            if arity:
                waiting += reversed(children[node])
        if fits:
            found.append(nodes)
    return found


def partial_occurrences(
    fragment: Fragment, labels: Sequence[str], arities: Sequence[int]
) -> list[list[int]]:
    """Find where a fragment of the PTK occurs: for each root the leftmost nodes, in preorder.

    O(nodes of the fragment times nodes of the trees and their children).
    """
    own, children = _children(fragment.arities), _children(arities)
    fits: list[set[int]] = [set() for _ in own]
    for part in range(len(own) - 1, -1, -1):
        for node in range(len(labels)):
            if labels[node] == fragment.labels[part]:
                taken = _leftmost(own[part], children[node], fits)
                if len(taken) == len(own[part]):
                    fits[part].add(node)
    found = []
    for root in sorted(fits[0]):
        nodes, waiting = [], [(0, root)]
        while waiting:
            part, node = waiting.pop()
            nodes.append(node)
            taken = _leftmost(own[part], children[node], fits)
            waiting += zip(reversed(own[part]), reversed(taken), strict=True)
        found.append(nodes)
    return found


def _leftmost(parts: Sequence[int], nodes: Sequence[int], fits: Sequence[set[int]]) -> list[int]:
    """Give to each part, in order, the first of the nodes that is left for it."""
    taken: list[int] = []
    for node in nodes:
        if len(taken) < len(parts) and node in fits[parts[len(taken)]]:
            taken.append(node)
    return taken


def _children(arities: Sequence[int]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in arities]
    open_nodes: list[int] = []
    for node, arity in enumerate(arities):
        if open_nodes:
            children[open_nodes[-1]].append(node)
        if arity:
            open_nodes.append(node)
        while open_nodes and len(children[open_nodes[-1]]) == arities[open_nodes[-1]]:
            open_nodes.pop()
    return children
