"""Features in words, counted and weighed, against an exact map; scores in parts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.coreference.arcs import places
from corpusmill.coreference.attributes import ATOMS
from corpusmill.coreference.explaining import (
    collisions,
    count_features,
    explain_arc,
    feature_table,
    latent_tree,
)
from corpusmill.coreference.gender import no_genders
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.pairs import PAIR_ATOMS
from corpusmill.coreference.preparation import Preparation, Prepared
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.coreference.spelling import names_of
from corpusmill.coreference.templates import CLUSTER_ATOMS, parse_templates
from tests.coreference import samples, slow
from tests.coreference.samples import FAR, LOCAL, batch_of, document, random_batch

TEMPLATES = tuple((LOCAL + FAR).split("\n"))


def model_of(regime: str, bits: int = 16, templates: tuple[str, ...] = TEMPLATES) -> Any:
    settings = LearnerSettings(regime=regime, bits=bits, beam=4, window=30)  # type: ignore[arg-type]
    return CoreferenceModel(
        Preparation(settings, templates, no_genders()), slow.whole_weights(3, bits)
    )


def slowly(model: CoreferenceModel, prepared: Prepared, number: int) -> slow.Document:
    parsed = parse_templates(list(model.preparation.templates), "templates")
    if model.settings.regime == "greedy":
        parsed = [each for each in parsed if each.local]
    found = samples.Prepared(
        prepared.documents, prepared.mentions, prepared.table, parsed, prepared.arcs
    )
    return slow.Document(found, number, model.settings.window)


def best_correct(text: slow.Document, weights: slow.Hashed, model: CoreferenceModel) -> slow.Tree:
    if model.settings.regime == "greedy":
        return slow.greedy(text, weights)[1]
    agenda: list[slow.Item] = [(0, ())]
    for _ in range(text.count):
        agenda = slow.expand(text, weights, agenda, model.settings.beam, True)
    return agenda[0][1]


@pytest.mark.parametrize("regime", ["greedy", "delayed"])
@pytest.mark.parametrize("seed", range(3))
def test_features_are_those_of_the_exact_map(regime, seed):
    model, batch = model_of(regime), random_batch(seed)
    weights = slow.Hashed(model.weights, 64 - model.settings.bits)
    predicted, latent = Counter[slow.Key](), Counter[slow.Key]()
    for prepared in model.preparation.prepare(batch):
        for number in range(prepared.documents.size):
            text = slowly(model, prepared, number)
            tree = tuple(model.resolve(prepared, number)[0].tolist())
            correct = tuple(latent_tree(model, prepared, number).tolist())
            assert correct == best_correct(text, weights, model)
            predicted += text.tree_features(tree)
            latent += text.tree_features(correct)
    wanted = {
        slow.place_of(key, 0): (predicted[key], latent[key], weights[key])
        for key in predicted | latent
    }
    assert len(wanted) == len(predicted | latent) > 100
    found = count_features(model, batch)
    # With all its bits a place is as good as a hash.
    keys = places(found["hash"].to_numpy()[:, None], 0)[:, 0].astype(np.uint64).tolist()
    rows = found[["predicted", "latent", "weight"]].itertuples(index=False, name=None)
    assert dict(zip(keys, rows, strict=True)) == wanted


@pytest.mark.parametrize("regime", ["greedy", "delayed"])
def test_parts_of_a_score_add_up(regime):
    model, batch = model_of(regime), random_batch(5)
    (prepared,) = model.preparation.prepare(batch)
    names, arcs = names_of(batch), 0
    for number in range(3):
        text = slowly(model, prepared, number)
        weights = slow.Hashed(model.weights, 64 - model.settings.bits)
        tree, scores = model.resolve(prepared, number)
        for anaphor, antecedent in enumerate(tree.tolist()):
            told = explain_arc(model, prepared, names, number, antecedent, anaphor, tree)
            assert told.arc["weight"].sum() == scores[anaphor]
            before = tuple(tree[:anaphor].tolist())
            assert told.root["weight"].sum() == text.score(weights, before, -1)
            assert told.arc["weight"].abs().is_monotonic_decreasing
            if antecedent < 0:
                assert told.arc.equals(told.root)
            arcs += antecedent >= 0
            for other in range(anaphor):  # arcs that the tree does not have
                told = explain_arc(model, prepared, names, number, other, anaphor, tree)
                assert told.arc["weight"].sum() == text.score(weights, before, other)
    assert arcs > 10


def everything(model: CoreferenceModel, batch: pa.RecordBatch) -> Any:
    features = count_features(model, batch)
    return feature_table(model, batch, features, len(features))


@pytest.mark.parametrize("seed", range(3))
def test_two_features_are_never_spelled_alike(seed):
    model, batch = model_of("delayed", templates=all_templates()), random_batch(seed)
    model.weights[:] = 1.0
    table = everything(model, batch)
    assert len(table) == len(count_features(model, batch)) > 1000
    assert not table.duplicated(["template", "values"]).any()
    assert not table["values"].str.contains("#").any()


def all_templates() -> tuple[str, ...]:
    """A template for each atom there is."""
    slots = ("ana", "ant", "grand", "sibling", "first", "last")
    lines = [f"{slot}.{atom}" for slot in slots for atom in ATOMS]
    lines += [f"pair.{atom}" for atom in PAIR_ATOMS]
    return (*lines, *(f"cluster.{atom}" for atom in CLUSTER_ATOMS))


def test_values_are_spelled():
    row = document(
        "d",
        [
            "(S (NP (DT The) (NN miller)) (VP (VBD saw) (NP (NNP Mira))))",
            "(S (NP (DT The) (NN miller)) (VP (VBD said) "
            "(SBAR (S (NP (PRP she)) (VP (VBD slept))))))",
        ],
        genre="tale",
        speakers=["", "Ann"],
        entities=[(3, 4, "PERSON")],
        clusters=[(0, 2, 0), (4, 6, 0), (3, 4, 1), (7, 8, 1)],
    )
    model, batch = model_of("delayed", templates=all_templates()), batch_of(row)
    (prepared,) = model.preparation.prepare(batch)
    assert prepared.mentions.starts.tolist() == [0, 3, 4, 7]
    tree, names = np.array([-1, -1, 0, 1]), names_of(batch)

    def said(antecedent: int, anaphor: int) -> dict[str, str]:
        told = explain_arc(model, prepared, names, 0, antecedent, anaphor, tree)
        return dict(text.split("=") for text in told.arc["values"])

    nouns = said(0, 2)
    assert nouns == nouns | {
        "ana.type": "common", "ana.fine": "definite common", "ana.string": "the miller",
        "ana.core": "miller", "ana.head_tag": "NN", "ana.before": "-", "ana.after": "said",
        "ana.role": "subject", "ana.path": "NP S", "ana.governor": "said", "ana.spoken": "yes",
        "ana.length": "2", "ana.genre": "tale", "ana.number": "singular", "ana.gender": "-",
        "ana.entity": "-", "ana.pronoun": "-", "ant.spoken": "-", "ant.after": "saw",
        "pair.match": "exact", "pair.exact": "yes", "pair.sentences": "1", "pair.mentions": "2",
        "pair.path": "-", "pair.edit": "equal", "pair.speaker": "different", "pair.agree": "yes",
        "cluster.size": "1", "cluster.shape": "C", "cluster.start": "0", "grand.head": "-",
        "sibling.head": "-", "first.head": "miller", "last.head": "miller",
    }  # fmt: skip
    pronoun = said(2, 3)
    assert pronoun == pronoun | {
        "ana.fine": "pronoun 3", "ana.agreement": "3 feminine singular", "ana.pronoun": "she",
        "pair.path": "NP S /VP /SBAR /S /NP", "pair.clause": "different", "pair.speaker": "same",
        "pair.edit": "-", "cluster.size": "2", "cluster.shape": "CC", "grand.string": "the miller",
        "last.before": "-",
    }  # fmt: skip
    name = said(1, 3)
    assert name == name | {"ant.fine": "name", "ant.entity": "PERSON", "ant.role": "object",
                           "cluster.start": "1", "cluster.shape": "N"}  # fmt: skip


def test_the_root_is_told_apart_and_the_heaviest_come_first():
    model, batch = model_of("delayed"), random_batch(2)
    features = count_features(model, batch)
    table = feature_table(model, batch, features, 20)
    assert 20 <= len(table) <= 40
    weights = features["weight"].abs()
    assert table["weight"].abs().head(20).tolist() == sorted(weights, reverse=True)[:20]
    mass = weights * (features["predicted"] + features["latent"])
    assert sorted(table["mass"], reverse=True)[:20] == sorted(mass, reverse=True)[:20]
    whole = everything(model, batch)
    root = whole[whole["template"] == "root"]
    assert root["values"].tolist() == [""]
    assert root["latent"].item() > 0
    assert (whole["template"] == "root: ana.head").any()


def test_features_that_share_a_place_are_counted():
    batch = random_batch(1)
    for bits in (8, 12, 22):
        model = model_of("delayed", bits)
        model.weights[:] = 1.0
        model.weights[::2] = 0.0
        features = count_features(model, batch)
        counts = Counter(features["place"].tolist())
        assert [counts[place] - 1 for place in features["place"]] == features["shared"].tolist()
        used = [count for place, count in counts.items() if place % 2]
        assert collisions(features) == pytest.approx(np.mean(np.array(used) > 1))
        if bits == 8:  # as many features as places
            assert collisions(features) > 0.3
    assert collisions(features) == 0.0


def test_without_known_clusters_there_is_no_latent_tree():
    model, batch = model_of("greedy"), random_batch(4)
    features = count_features(model, batch.drop_columns(list(batch.schema.names[-3:])))
    assert features["latent"].sum() == 0
    assert features["predicted"].sum() > 0


def test_rare_words_are_one_feature_and_documents_may_have_no_mention():
    settings = LearnerSettings(templates="nonlocal", cutoff=4, bits=14, iterations=2)
    settings = settings.model_copy(update={"regime": "delayed", "beam": 3})
    model = CoreferenceModel.fit(random_batch(6), settings)
    empty = document("none", ["(S (VP (VBD slept)))"], clusters=[])
    batch = batch_of(*random_batch(6).to_pylist(), empty)
    table = everything(model, batch)
    assert table["values"].str.contains(r"ana.head=\(rare\)").any()
    nothing = batch_of(empty)
    features = count_features(model, nothing)
    assert len(features) == len(feature_table(model, nothing, features)) == 0
    assert collisions(features) == 0.0
