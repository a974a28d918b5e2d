"""What the weights say: features of arcs in words, shared weights, scores in parts. No Spark.

The table of weights has no names. Here the features that occur on the arcs of some documents, those
of the trees that are predicted and of the best correct ones, are told apart by their 64-bit hashes:
an exact map, but that of n features two share a hash with a probability of n^2 / 2^65. Python loops
run over documents, and over the features that are spelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill.coreference.arcs import places
from corpusmill.coreference.beam import beam_search
from corpusmill.coreference.greedy import best_first
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.preparation import Prepared
from corpusmill.coreference.spelling import Arc, Names, names_of, spell_feature
from corpusmill.coreference.templates import Template, parse_templates, sort_templates
from corpusmill.coreference.walking import Walked, arc_features, walk_tree
from corpusmill.types import AnyArray

_SIDES = ("predicted", "latent")
COLUMNS = (
    "template",
    "values",
    "weight",
    "predicted",
    "latent",
    "mass",
    "shared",
    "place",
    "hash",
)
"""Of `feature_table`."""


def templates_of(model: CoreferenceModel) -> list[Template]:
    """Give the templates that the model's search uses, of arcs from the root and then of others.

    The names of the former say so: ``root`` and ``root: ana.head``.
    """
    parsed = parse_templates(list(model.preparation.templates), "the templates")
    root, anaphor, antecedent, pair, far = sort_templates(parsed)
    named = [
        Template(f"root: {name}" if name else "root", tuple(sorted(atoms))) for name, atoms in root
    ]
    return [*named, *anaphor, *antecedent, *pair, *(far if _is_far(model) else [])]


def _is_far(model: CoreferenceModel) -> bool:
    """Tell whether the search looks at non-local features."""
    return model.settings.regime != "greedy"


def latent_tree(model: CoreferenceModel, prepared: Prepared, document: int) -> AnyArray:
    """Find the best correct tree by the weights; int64, mentions of the document, -1 for the root.

    Correct are antecedents in the same true cluster and the window, or the root where there is
    none. Costs a search.
    """
    settings, arcs, known = model.settings, prepared.arcs, prepared.mentions.clusters
    begin = arcs.offsets[document]
    shift, window = 64 - settings.bits, settings.window
    if settings.regime == "greedy":
        tree = best_first(arcs, document, model.weights, shift, window, known)[2]
    else:
        # Of one cluster each, so that the root alone is correct.
        alone = known.max(initial=-1) + 1 + np.arange(len(known))
        given = np.where(known < 0, alone, known)
        beam = settings.beam
        tree, _ = beam_search(arcs, document, model.weights, shift, window, beam, given)
    return np.where(tree < 0, -1, tree - begin)


def _trees(model: CoreferenceModel, prepared: Prepared, document: int) -> list[AnyArray]:
    """Give the predicted tree, and the latent one where clusters are known."""
    trees = [model.resolve(prepared, document)[0]]
    if prepared.documents.known[document]:
        trees.append(latent_tree(model, prepared, document))
    return trees


def count_features(model: CoreferenceModel, batch: pa.RecordBatch) -> pd.DataFrame:
    """Count all features of the trees of some documents.

    Parameters
    ----------
    model : CoreferenceModel
    batch : pyarrow.RecordBatch
        `corpusmill.coreference.model.DOCUMENT_ROWS`, a document at least.

    Returns
    -------
    DataFrame
        A row a feature: ``hash`` and ``column``, its template of `templates_of`; ``predicted`` and
        ``latent``, on how many arcs of either trees it is; ``place`` and ``weight``; ``shared``,
        how many other features of these documents have that place; and of an arc that has it
        ``piece`` and ``document``, ``side`` (0 predicted, 1 latent) and ``mention``, the anaphor.

    Notes
    -----
    Two searches a document, and O(mentions times templates) memory for one document; of every
    document its different features are held, some 80 bytes each.
    """
    parts = []
    for number, prepared in enumerate(model.preparation.prepare(batch)):
        for document in range(prepared.documents.size):
            for side, tree in enumerate(_trees(model, prepared, document)):
                found = _counted(model, prepared, document, tree)
                where = {"piece": number, "document": document, "side": side}
                counts = {name: found["count"] * (side == n) for n, name in enumerate(_SIDES)}
                parts.append(found.assign(**where, **counts))
    table = pd.concat(parts, ignore_index=True)
    first = {name: (name, "first") for name in ("column", "piece", "document", "side", "mention")}
    sums = {name: (name, "sum") for name in _SIDES}
    table = table.groupby("hash", sort=True).agg(**first, **sums).reset_index()
    hashes = table["hash"].to_numpy(np.uint64)
    table["place"] = places(hashes[:, None], 64 - model.settings.bits)[:, 0]
    table["weight"] = model.weights[table["place"]]
    table["shared"] = table.groupby("place")["hash"].transform("size") - 1
    return table


def _counted(
    model: CoreferenceModel, prepared: Prepared, document: int, tree: AnyArray
) -> pd.DataFrame:
    begin = int(prepared.arcs.offsets[document])
    walked = walk_tree(prepared.arcs, begin, tree)
    found = arc_features(prepared.arcs, begin, tree, walked, _is_far(model))
    hashes, first, counts = np.unique(found.hashes, return_index=True, return_counts=True)
    columns = {"column": found.columns[first], "mention": found.mentions[first]}
    return pd.DataFrame({"hash": hashes, **columns, "count": counts})


def collisions(features: pd.DataFrame) -> float:
    """Give the share of places with a weight that two features or more have.

    Parameters
    ----------
    features : DataFrame
        `count_features`; places are those that these features have, and whose weight is not 0.
    """
    shared = features[features["weight"] != 0].drop_duplicates("place")["shared"]
    return float((shared > 0).mean()) if len(shared) else 0.0


def feature_table(
    model: CoreferenceModel, batch: pa.RecordBatch, features: pd.DataFrame, most: int = 200
) -> pd.DataFrame:
    """Spell the heaviest features of some documents.

    Parameters
    ----------
    model : CoreferenceModel
    batch : pyarrow.RecordBatch
        As of `count_features`.
    features : DataFrame
        `count_features` of the two, or some of its rows.
    most : int
        How many of the largest absolute weights, and of the largest masses: absolute weight times
        arcs.

    Returns
    -------
    DataFrame
        The largest weights first: ``template``, ``values`` (``ana.head=miller, pair.match=exact``;
        ``-`` for what is not there), ``weight``, ``predicted``, ``latent``, ``mass``, ``shared``,
        ``place``, and ``hash`` in hexadecimal digits. Features without a weight are left out.

    Notes
    -----
    The documents are prepared again, and those that are needed searched again: nothing of them is
    held in between.
    """
    size = features["weight"].abs()
    found = features.assign(size=size, mass=size * (features["predicted"] + features["latent"]))
    found = found[found["weight"] != 0]
    heavy = [found.sort_values([by, "hash"], ascending=False).head(most) for by in ("size", "mass")]
    chosen = pd.concat(heavy).drop_duplicates("hash")
    templates = templates_of(model)
    chosen = chosen.assign(
        template=[templates[column].name for column in chosen["column"]],
        values=_spelled(model, batch, chosen),
        hash=[f"{each:016x}" for each in chosen["hash"]],
    )
    ordered = chosen.sort_values(["size", "mass", "hash"], ascending=False, ignore_index=True)
    return ordered[list(COLUMNS)]


def _spelled(model: CoreferenceModel, batch: pa.RecordBatch, chosen: pd.DataFrame) -> list[str]:
    """Spell features, in the order of the rows."""
    names, templates = names_of(batch), templates_of(model)
    keys = chosen[["piece", "document", "side", "mention", "column"]].to_numpy()
    said = [""] * len(keys)
    for number, prepared in enumerate(model.preparation.prepare(batch)):
        atoms = model.preparation.frequent(prepared.table.atoms)
        for document in np.unique(keys[keys[:, 0] == number, 1]).tolist():
            begin = int(prepared.arcs.offsets[document])
            trees = _trees(model, prepared, document)
            walked = [walk_tree(prepared.arcs, begin, tree) for tree in trees]
            here = (keys[:, 0] == number) & (keys[:, 1] == document)
            for row in np.flatnonzero(here).tolist():
                side, mention, column = keys[row, 2:].tolist()
                arc = _arc(begin, trees[side], walked[side], mention)
                said[row] = spell_feature(prepared, names, atoms, templates[column], arc)
    return said


def _arc(begin: int, tree: AnyArray, walked: Walked, mention: int) -> Arc:
    return Arc(begin, tree[:mention], walked.around[mention], walked.values[mention])


class Explanation(NamedTuple):
    """Scores in parts: a row a feature, ``template``, ``values`` and ``weight``, largest first.

    Attributes
    ----------
    arc : DataFrame
        Of the arc from the antecedent; the sum of the weights is its score in a search.
    root : DataFrame
        Of the arc from the root to the same anaphor.
    """

    arc: pd.DataFrame
    root: pd.DataFrame


def explain_arc(
    model: CoreferenceModel,
    prepared: Prepared,
    names: Names,
    document: int,
    antecedent: int,
    anaphor: int,
    tree: AnyArray,
) -> Explanation:
    """Tell what an arc's score is made of, and that of the arc from the root.

    Parameters
    ----------
    model : CoreferenceModel
    prepared : Prepared
        Of `model.preparation`.
    names : dict of int to str
        `spelling.names_of` the batch.
    document : int
    antecedent, anaphor : int
        Mentions of the document, whether or not the tree has this arc; -1 is the root.
    tree : int64, shape (mentions,)
        The tree to whose mentions before the anaphor the arc is added, as `model.resolve` gives it.

    Returns
    -------
    Explanation

    Notes
    -----
    O(mentions times templates): it goes over the tree up to the anaphor.
    """
    atoms = model.preparation.frequent(prepared.table.atoms)
    parts = []
    for above in (antecedent, -1):
        extended = np.append(tree[:anaphor], above)
        parts.append(_contributions(model, prepared, names, atoms, document, extended))
    return Explanation(*parts)


def _contributions(
    model: CoreferenceModel,
    prepared: Prepared,
    names: Names,
    atoms: AnyArray,
    document: int,
    tree: AnyArray,
) -> pd.DataFrame:
    """Spell the features of the last arc of a tree, with their weights."""
    begin, last = int(prepared.arcs.offsets[document]), len(tree) - 1
    walked, templates = walk_tree(prepared.arcs, begin, tree), templates_of(model)
    found = arc_features(prepared.arcs, begin, tree, walked, _is_far(model))
    keep = found.mentions == last
    columns, hashes = found.columns[keep], found.hashes[keep]
    arc = _arc(begin, tree, walked, last)
    frame = pd.DataFrame(
        {
            "template": [templates[n].name for n in columns],
            "values": [spell_feature(prepared, names, atoms, templates[n], arc) for n in columns],
            "weight": model.weights[places(hashes[:, None], 64 - model.settings.bits)[:, 0]],
        }
    )
    return frame.sort_values(
        "weight", key=np.abs, ascending=False, kind="stable", ignore_index=True
    )
