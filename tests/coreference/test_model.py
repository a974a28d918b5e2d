"""The resolver on arrays: training, prediction and its options, saving, mixing of partitions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.coreference.attributes import LEXICAL
from corpusmill.coreference.learned import prepare_batch
from corpusmill.coreference.learning import learn_partition, mixed, sparse, start
from corpusmill.coreference.measures import metrics_of, predicted_counts
from corpusmill.coreference.model import GOLD, PREDICTIONS, CoreferenceModel
from corpusmill.coreference.nonreferential import BITS, FOLDS, Nonreferential
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.errors import ModelError, UsageError
from corpusmill.storage import load_model, save_model
from tests.coreference.samples import batch_of, document, random_batch

BATCH = random_batch(11, documents=12, sentences=4)
SETTINGS: dict[str, Any] = {"bits": 14, "iterations": 3, "beam": 3}
FAR: dict[str, Any] = {**SETTINGS, "templates": "nonlocal", "regime": "delayed"}


def fitted(**changes: Any) -> CoreferenceModel:
    return CoreferenceModel.fit(BATCH, LearnerSettings(**{**SETTINGS, **changes}))


def predicting(model: CoreferenceModel, **changes: Any) -> CoreferenceModel:
    parts = model.preparation
    return replace(
        model, preparation=replace(parts, settings=parts.settings.model_copy(update=changes))
    )


@pytest.fixture(scope="module")
def local() -> CoreferenceModel:
    return fitted()


@pytest.fixture(scope="module")
def far() -> CoreferenceModel:
    return fitted(**FAR)


@pytest.fixture(params=["local", "far"])
def model(request: pytest.FixtureRequest) -> CoreferenceModel:
    found: CoreferenceModel = request.getfixturevalue(request.param)
    return found


def test_the_same_seed_gives_the_same_model(far: CoreferenceModel):
    np.testing.assert_array_equal(fitted(**FAR).weights, far.weights)


def test_the_order_of_documents_is_that_of_the_seed_and_not_of_the_rows(far: CoreferenceModel):
    turned = BATCH.take(pa.array(np.arange(BATCH.num_rows)[::-1]))
    again = CoreferenceModel.fit(turned, LearnerSettings(**FAR))
    np.testing.assert_array_equal(again.weights, far.weights)
    other = CoreferenceModel.fit(BATCH, LearnerSettings(**FAR), seed=14)
    assert not np.array_equal(other.weights, far.weights)


def test_training_documents_are_learned():
    model = fitted(iterations=15)
    counts = predicted_counts(BATCH, model.predict_batch(BATCH))
    # Clusters of random mentions, some of which no extractor finds.
    assert metrics_of(counts.sum(axis=0))["conll_avg"] > 0.6


def test_predictions_are_trees_over_mentions_in_order_without_repeats(model: CoreferenceModel):
    for row in model.predict_batch(BATCH).to_pylist():
        starts, ends, clusters, antecedents, scores = (row[name] for name in PREDICTIONS.names)
        spans = list(zip(starts, ends, strict=True))
        assert spans == sorted(set(spans), key=lambda span: (span[0], -span[1]))
        assert len(scores) == len(spans)
        firsts: dict[int, int] = {}
        for mention, (cluster, antecedent) in enumerate(zip(clusters, antecedents, strict=True)):
            if antecedent < 0:
                assert firsts.setdefault(cluster, mention) == mention
            else:
                assert antecedent < mention
                assert clusters[antecedent] == cluster
        assert all(clusters.count(cluster) > 1 for cluster in clusters)
        assert set(clusters) == set(range(len(set(clusters))))


def test_singletons_are_predicted_on_demand(model: CoreferenceModel):
    with_them = predicting(model, singletons=True).predict_batch(BATCH).to_pylist()
    for row, bare in zip(with_them, model.predict_batch(BATCH).to_pylist(), strict=True):
        clusters = row["predicted_clusters"]
        kept = [k for k, cluster in enumerate(clusters) if clusters.count(cluster) > 1]
        assert [row["predicted_starts"][k] for k in kept] == bare["predicted_starts"]
        assert [row["predicted_scores"][k] for k in kept] == bare["predicted_scores"]
    assert sum(len(row["predicted_starts"]) for row in with_them) > 0


def test_given_mentions_are_all_that_there_are(model: CoreferenceModel):
    given = predicting(model, mentions="given", singletons=True)
    found = given.predict_batch(BATCH).to_pylist()
    for row, gold in zip(found, BATCH.to_pylist(), strict=True):
        spans = list(zip(row["predicted_starts"], row["predicted_ends"], strict=True))
        assert spans == list(zip(gold["mention_starts"], gold["mention_ends"], strict=True))


@pytest.mark.parametrize("window", [1, 3, 1000])
def test_clusters_to_start_with_are_kept_and_not_joined(model: CoreferenceModel, window: int):
    half = [{**row, **{name: row[name][::2] for name in GOLD}} for row in BATCH.to_pylist()]
    batch = pa.RecordBatch.from_pylist(half, schema=BATCH.schema)
    kept = predicting(model, start_clusters=True, singletons=True, window=window)
    joined = 0
    for row, gold in zip(kept.predict_batch(batch).to_pylist(), half, strict=True):
        spans = list(zip(row["predicted_starts"], row["predicted_ends"], strict=True))
        of_span = dict(zip(spans, row["predicted_clusters"], strict=True))
        given = zip(gold["mention_starts"], gold["mention_ends"], strict=True)
        found = [of_span[span] for span in given]
        pairs = set(zip(gold["mention_clusters"], found, strict=True))
        assert len(pairs) == len(set(gold["mention_clusters"])) == len(set(found))
        joined += len(spans) - len(set(row["predicted_clusters"]))
    assert joined > 0


def test_a_given_pronoun_is_kept_though_it_seems_to_refer_to_nothing(local: CoreferenceModel):
    trees = ["(S (NP (DT the) (NN dog)) (VP (VBD barked)))", "(S (NP (PRP it)) (VP (VBD ran)))"]
    batch = batch_of(document("a", trees, clusters=[(0, 2, 0), (3, 4, 0)]))
    sure = np.zeros((FOLDS + 1, (1 << BITS) + 1))
    sure[:, -1] = 50.0
    parts = replace(local.preparation, nonreferential=Nonreferential(sure))
    model = replace(local, preparation=parts)
    free, kept = (
        predicting(model, start_clusters=given, singletons=True).predict_batch(batch).to_pylist()[0]
        for given in (False, True)
    )
    assert free["predicted_starts"] == [0]
    assert kept["predicted_starts"] == [0, 3]
    assert kept["predicted_clusters"] == [0, 0]


def test_scores_of_given_arcs_are_their_own(local: CoreferenceModel):
    """Not those of the arcs that the search would have chosen."""
    kept = predicting(local, start_clusters=True, singletons=True)
    (prepared,) = kept.preparation.prepare(BATCH)
    changed = 0
    for number in range(prepared.documents.size):
        tree, scores = kept.resolve(prepared, number)
        free, best = predicting(local).resolve(prepared, number)
        same = tree == free
        np.testing.assert_allclose(scores[same], best[same], atol=1e-9)
        assert (scores[~same] <= best[~same] + 1e-9).all()
        changed += int((scores[~same] < best[~same] - 1e-9).sum())
    assert changed > 0


def test_documents_without_gold_are_resolved_the_same(model: CoreferenceModel):
    bare = BATCH.drop_columns(list(GOLD))
    assert model.predict_batch(bare).equals(model.predict_batch(BATCH))


def test_documents_are_resolved_one_by_one_as_together(model: CoreferenceModel):
    alone = [model.predict_batch(BATCH.slice(k, 1)) for k in range(BATCH.num_rows)]
    assert pa.concat_batches(alone).equals(model.predict_batch(BATCH))


def test_no_documents_have_no_predictions(model: CoreferenceModel):
    found = model.predict_batch(BATCH.slice(0, 0))
    assert found.num_rows == 0
    assert found.schema == PREDICTIONS


def test_a_saved_model_predicts_the_same(model: CoreferenceModel, tmp_path: Path):
    model.save(str(tmp_path))
    again = CoreferenceModel.load(str(tmp_path))
    assert again.settings == model.settings
    assert again.predict_batch(BATCH).equals(model.predict_batch(BATCH))


def test_rare_words_are_one(tmp_path: Path):
    model = fitted(cutoff=3)
    assert model.preparation.vocabulary is not None
    assert np.count_nonzero(model.weights) < np.count_nonzero(fitted().weights)
    model.save(str(tmp_path))
    again = CoreferenceModel.load(str(tmp_path))
    assert again.predict_batch(BATCH).equals(model.predict_batch(BATCH))


@pytest.mark.parametrize(
    ("array", "value", "reason"),
    [
        ("weight_places", np.array([1 << 14]), "beyond"),
        ("weight_places", np.array([-1]), "beyond"),
        ("weight_values", np.zeros(3), "go together"),
    ],
)
def test_weights_that_do_not_fit_are_refused(
    local: CoreferenceModel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, array: str,
    value: np.ndarray, reason: str,
):  # fmt: skip
    sound = {"weight_places": np.array([3]), "weight_values": np.ones(1)} | {array: value}
    places, values = sound["weight_places"], sound["weight_values"]
    monkeypatch.setattr("corpusmill.coreference.model.sparse", lambda weights: (places, values))
    local.save(str(tmp_path))
    with pytest.raises(ModelError, match=reason):
        CoreferenceModel.load(str(tmp_path))


@pytest.mark.parametrize(
    ("array", "value", "reason"),
    [
        ("weight_values", np.array([np.nan]), "finite"),
        ("weight_values", np.ones(1, np.complex128), "finite"),
        ("nonreferential", np.zeros((2, 3)), "shape"),
        ("nonreferential", np.zeros(5), "shape"),
        ("gender_genders", np.zeros(1, np.int8), "go together"),
        ("gender_keys", np.zeros(0), "go together"),
        ("frequent_offsets", np.array([0, 7]), "go together"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    local: CoreferenceModel, tmp_path: Path, array: str, value: np.ndarray, reason: str
):
    local.save(str(tmp_path / "sound"))
    saved = load_model(str(tmp_path / "sound"), "coreference", 1)
    sound = {"weight_places": np.array([3]), "weight_values": np.ones(1)}
    sound |= {"frequent_values": np.zeros(0, np.uint64)}
    sound |= {"frequent_offsets": np.zeros(len(LEXICAL) + 1, np.int64)}
    forged = {**saved.arrays, **sound, array: value}
    info = {"settings": saved.info["settings"]}
    save_model(str(tmp_path / "forged"), "coreference", 1, forged, info, saved.texts)
    with pytest.raises(ModelError, match=reason):
        CoreferenceModel.load(str(tmp_path / "forged"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [("cluster.size", "greedy"), ("", "no template"), ("ana.head + no.atom", "no.atom")],
)
def test_templates_that_do_not_fit_are_refused(
    local: CoreferenceModel, tmp_path: Path, text: str, reason: str
):
    forged = replace(local, preparation=replace(local.preparation, templates=(text,)))
    forged.save(str(tmp_path))
    with pytest.raises(ModelError, match=reason):
        CoreferenceModel.load(str(tmp_path))


@pytest.mark.parametrize("mixing", ["documents", "updates"])
def test_mixing_is_the_mean_of_the_partitions_weights(mixing: str):
    settings = LearnerSettings(**{**SETTINGS, "mixing": mixing})
    preparation, begin = prepare_batch(BATCH, settings), start(settings)
    parts = [BATCH.slice(0, 3), BATCH.slice(3, 9), BATCH.slice(12, 0)]
    sums = [
        learn_partition(iter([part]), preparation, sparse(begin.weights), 13, 0) for part in parts
    ]
    total = {key: np.sum([each[key] for each in sums], axis=0) for key in sums[0]}
    progress = mixed(begin, total)
    shares = [float(each["share"][0]) for each in sums]
    assert shares == [3.0, 9.0, 0.0] if mixing == "documents" else shares[2] == 0.0
    alone = [each["weights"] / share for each, share in zip(sums, shares, strict=True) if share]
    wanted = np.average(alone, axis=0, weights=shares[:2])
    np.testing.assert_allclose(progress.weights, wanted, atol=1e-12)
    assert progress.steps == 12.0
    np.testing.assert_allclose(
        progress.average(), np.sum([each["totals"] for each in sums], axis=0) / 12.0
    )


def test_non_local_templates_need_a_beam():
    with pytest.raises(UsageError, match="regime greedy needs local templates; nonlocal has"):
        fitted(templates="nonlocal")


def test_parts_of_one_document_are_in_the_order_of_their_numbers():
    rows = [{**row, "document_id": "one", "part": n} for n, row in enumerate(BATCH.to_pylist())]
    settings = LearnerSettings(**SETTINGS)
    found = [
        CoreferenceModel.fit(
            pa.RecordBatch.from_pylist(each, schema=BATCH.schema), settings
        ).weights
        for each in (rows, rows[::-1])
    ]
    np.testing.assert_array_equal(found[0], found[1])
