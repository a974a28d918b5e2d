"""The stages of training in Spark: splits, cascade, solvers, and corpora that give no model."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from corpusmill.corpora.schemas import TREES
from corpusmill.errors import CorpusmillError, DataError
from corpusmill.fragments import split_mining
from corpusmill.fragments.corpus import COPIES
from corpusmill.fragments.estimator import FragmentClassifier, FragmentClassifierModel
from corpusmill.fragments.fitting import distinct_examples, fit_trees, survey
from corpusmill.fragments.settings import LearnerSettings
from tests.estimators import tree_rows

pytestmark = pytest.mark.spark

SMALL = LearnerSettings(limit=50, maxexp=2, linear_cost=1.0)


def with_settings(**changes: object) -> LearnerSettings:
    return LearnerSettings.model_validate({**SMALL.model_dump(), **changes})


@cache
def rows_of(spark):
    return tree_rows(spark).coalesce(1).cache()


@cache
def distinct_of(spark):
    return distinct_examples(rows_of(spark)).coalesce(2).cache()


def scores_of(model, spark):
    batch = rows_of(spark).toArrow().sort_by("example_id").combine_chunks().to_batches()[0]
    return model.scores(model.space.vectors(batch))


def test_copies_are_collapsed_and_have_names_of_their_own(spark):
    rows = rows_of(spark).where("target is not null")
    twice = rows.unionByName(rows.withColumn("example_id", F.lit("same")))
    found = distinct_examples(twice).toPandas()
    assert found[COPIES].sum() == 2 * rows.count()
    assert found["example_id"].is_unique
    assert len(found) == len(distinct_of(spark).toPandas())


@pytest.mark.parametrize("split_by", ["class", "random"])
def test_splits_depend_on_ids_and_seed_alone(spark, split_by):
    settings = with_settings(splits=3, split_by=split_by)

    def splits_of(rows, seed=13):
        found = split_mining.assign_splits(rows, settings, seed)
        return {row["example_id"]: row["split"] for row in found.collect()}

    one = splits_of(distinct_of(spark))
    assert one == splits_of(distinct_of(spark).repartition(5))
    assert one != splits_of(distinct_of(spark), seed=14)
    assert set(one.values()) == {0, 1, 2}
    if split_by == "class":
        found = split_mining.assign_splits(distinct_of(spark), settings, 13)
        sizes = found.groupBy("target", "split").count().toPandas().groupby("target")["count"]
        assert ((sizes.max() - sizes.min()) <= 1).all()


@pytest.mark.slow
def test_feedback_does_not_multiply_copies(spark):
    """Every example is there at most once, with the copies that it had, in every machine."""
    seen: list[dict[str, float]] = []
    settings = with_settings(splits=4, merge="cascade", feedback_rounds=2)
    whole = {row["example_id"]: row[COPIES] for row in distinct_of(spark).collect()}
    corpus = survey(distinct_of(spark), settings)
    parts = split_mining.assign_splits(distinct_of(spark), settings, 13)
    kept: list[DataFrame] = []
    last = split_mining._cascade(parts, corpus, settings, kept)
    for group in last.toPandas().groupby("split"):
        table = pa.Table.from_pandas(group[1], preserve_index=False)
        batch, _, _, copies = split_mining.read_group(table, corpus)
        ids = batch["example_id"].to_pylist()
        assert len(ids) == len(set(ids))
        seen.append(dict(zip(ids, copies.tolist(), strict=True)))
    assert seen
    for each in seen:
        assert each == {name: whole[name] for name in each}


@pytest.mark.slow
def test_a_cascade_of_one_split_is_the_plain_machine(spark):
    plain = fit_trees(rows_of(spark), SMALL)
    cascade = fit_trees(rows_of(spark), with_settings(merge="cascade"))
    np.testing.assert_allclose(scores_of(plain, spark), scores_of(cascade, spark))


def test_a_split_of_one_class_keeps_its_examples(spark):
    corpus = survey(distinct_of(spark), SMALL)
    table = distinct_of(spark).where("target = 'ask'").withColumn("split", F.lit(0)).toArrow()
    found = split_mining._support_group(0, table, corpus, SMALL)
    assert found.num_rows == table.num_rows > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"splits": 3, "split_by": "random"},
        {"splits": 50},
        {"splits": 4, "merge": "cascade", "feedback_rounds": 1},
        {"miner": "chi2"},
        {"miner": "l1"},
        {"class_weight": "balanced"},
        {"normalise": "kernel", "relevance": "productions"},
    ],
)
def test_every_way_learns(spark, changes):
    model = fit_trees(rows_of(spark), with_settings(**changes))
    targets = rows_of(spark).toPandas().sort_values("example_id")["target"]
    predicted = np.array(model.classes)[scores_of(model, spark).argmax(axis=1)]
    known = targets.notna().to_numpy()
    assert (predicted[known] == targets[known]).mean() > 0.9


@pytest.mark.slow
def test_partial_trees_are_learned_and_saved(spark, tmp_path):
    """Also by the model that was loaded again."""
    classifier = FragmentClassifier(kernel="ptk", mu=0.5, limit=50, linearCost=1.0)
    fitted = classifier.fit(rows_of(spark))
    fitted.write().save(f"{tmp_path}/model")
    found = FragmentClassifierModel.load(f"{tmp_path}/model").transform(rows_of(spark)).toPandas()
    known = found["target"].notna()
    assert (found["prediction"] == found["target"])[known].all()
    assert fitted.model.settings.kernel == "ptk"
    expected = fitted.transform(rows_of(spark)).toPandas()
    np.testing.assert_array_equal(found["scores"].tolist(), expected["scores"].tolist())


@pytest.mark.slow
def test_mllib_agrees_with_liblinear(spark):
    settings = with_settings(linear_cost=0.5, limit=20, linear_max_iter=100)
    one = fit_trees(rows_of(spark), settings)
    scale = settings.model_copy(update={"linear_solver": "mllib"})
    other = fit_trees(rows_of(spark), scale)
    assert one.weights.shape == other.weights.shape
    scores = scores_of(one, spark), scores_of(other, spark)
    np.testing.assert_array_equal(scores[0].argmax(axis=1), scores[1].argmax(axis=1))
    assert np.corrcoef(scores[0].ravel(), scores[1].ravel())[0, 1] > 0.98


def test_calibrated_probabilities_are_those_of_the_scores(spark):
    model = fit_trees(rows_of(spark), with_settings(calibration_folds=3))
    batch = rows_of(spark).toArrow().combine_chunks().to_batches()[0]
    found = model.predict_batch(batch).to_pandas()
    chance, scores = np.array(found["probability"].tolist()), np.array(found["scores"].tolist())
    assert ((chance > 0) & (chance < 1)).all()
    for c in range(3):
        assert (np.diff(chance[np.argsort(scores[:, c]), c]) >= 0).all()


def test_feature_vectors_take_part(spark):
    rows = rows_of(spark)
    # The same tree for all: only the vector tells the classes apart.
    tree = rows.limit(1).select("node_labels", "node_arities", "tree_offsets")
    number = F.dense_rank().over(Window.orderBy("target")) - 1
    known = rows.where("target is not null").select("example_id", "target")
    same = known.crossJoin(F.broadcast(tree)).withColumns(
        {
            "vector_ids": F.array(number.cast("int")),
            "vector_values": F.array(F.lit(1.0)),
        }
    )
    given = same.select(TREES.names)
    model = fit_trees(given, with_settings(vector_weight=1.0))
    batch = given.toArrow().combine_chunks().to_batches()[0]
    predicted = model.predict_batch(batch)["prediction"].to_pylist()
    assert predicted == batch["target"].to_pylist()


def test_a_feature_of_too_large_a_number_is_one_line(spark):
    rows = rows_of(spark).withColumns(
        {"vector_ids": F.array(F.lit((1 << 31) - 2)), "vector_values": F.array(F.lit(1.0))}
    )
    with pytest.raises(DataError, match="FRAG03: feature 2147483646 of the vectors is too large"):
        fit_trees(rows, with_settings(vector_weight=1.0))


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (["ask", "move", "see", "sing"], "FRAG02: class 'sing'"),
        (["ask", "move", "move", "see"], "FRAG02: class 'move'"),
        (["ask", "move"], "DATA05: class 'see'"),
    ],
)
def test_classes_must_be_those_of_the_examples(spark, classes, message):
    with pytest.raises(Exception, match=message) as caught:
        fit_trees(rows_of(spark), SMALL, classes=classes)
    assert isinstance(caught.value, CorpusmillError) or "Python" in type(caught.value).__name__


def test_one_class_is_refused(spark):
    with pytest.raises(DataError, match="DATA03: column 'target'"):
        fit_trees(rows_of(spark).where("target = 'ask'"), SMALL)


@pytest.mark.slow
def test_trees_of_one_node_and_empty_trees_give_the_larger_class(spark):
    rows: list[tuple[object, ...]] = [
        (f"e{i}", "ab"[i % 3 == 0], ["N"] * (i % 2), [0] * (i % 2), [0, i % 2], [], [])
        for i in range(9)
    ]
    given = spark.createDataFrame(rows, TREES)
    model = fit_trees(given, SMALL)
    batch = given.toArrow().combine_chunks().to_batches()[0]
    assert set(model.predict_batch(batch)["prediction"].to_pylist()) == {"a"}


def test_the_same_tree_with_opposite_labels_is_no_obstacle(spark):
    rows = rows_of(spark).where("target is not null")
    turned = rows.withColumn("target", F.when(F.col("target") == "ask", "see").otherwise("ask"))
    model = fit_trees(rows.unionByName(turned), with_settings(splits=2))
    assert np.isfinite(scores_of(model, spark)).all()
