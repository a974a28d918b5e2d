"""What is particular to DBA's estimator; the rest is the contract's."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import functions as F

from corpusmill.alignment.estimator import PatternEvaluator
from corpusmill.alignment.model import AlignmentModel
from corpusmill.errors import DataError, UsageError
from tests.estimators import alignment_rows, quick_alignment

pytestmark = pytest.mark.spark

SETS = [
    (["a", "b"], ["a"]),
    (["a"], ["a", "c"]),
    ([], ["b"]),
    (["c"], None),
    (None, ["a"]),
    (["b"], ["b"]),
]


def evaluated(spark, sets, **params):
    df = spark.createDataFrame(sets, "labels array<string>, prediction array<string>")
    return PatternEvaluator(**params).evaluate(df)


def test_evaluator_is_the_plain_sums(spark):
    """Unlabelled rows are left out; a row without a prediction has no classes."""
    known = [(set(y), set(p or [])) for y, p in SETS if y is not None]
    f1 = 2 * sum(len(y & p) for y, p in known) / sum(len(y) + len(p) for y, p in known)
    wrong = sum(len(y ^ p) for y, p in known)
    assert evaluated(spark, SETS) == pytest.approx(f1)
    hamming = evaluated(spark, SETS, metricName="hammingAccuracy", numClasses=3)
    assert hamming == pytest.approx(1 - wrong / (3 * len(known)))


def test_evaluator_refuses_what_it_cannot_do(spark):
    with pytest.raises(UsageError, match="CONF04: metricName = accuracy: allowed: microF1"):
        PatternEvaluator(metricName="accuracy")
    with pytest.raises(UsageError, match=r"CONF05: .*numClasses"):
        evaluated(spark, SETS, metricName="hammingAccuracy")
    with pytest.raises(DataError, match="DATA03"):
        evaluated(spark, [(None, ["a"])])


def test_columns_may_have_any_names(spark):
    rows = alignment_rows(spark)
    names = {"feature_ids": "ids", "labels": "with space", "pattern_id": "pattern"}
    renamed = rows.withColumnsRenamed(names)
    columns = {"featureIdsCol": "ids", "labelsCol": "with space", "patternIdCol": "pattern"}
    model = quick_alignment(**columns, predictionCol="found").fit(renamed)
    plain = quick_alignment().fit(rows)
    np.testing.assert_allclose(model.model.parameters.lam, plain.model.parameters.lam)
    found = model.transform(renamed).select("found").collect()
    assert found == plain.transform(rows).select(F.col("prediction").alias("found")).collect()


def test_known_labels_are_believed_on_demand(spark):
    rows = alignment_rows(spark)
    model = quick_alignment().fit(rows)
    model.set(model.useLabels, True)
    got = model.transform(rows).orderBy("pattern_id").select("gamma").toArrow()["gamma"]
    expected = model.model.predict_batch(
        rows.coalesce(1).orderBy("pattern_id").toArrow().combine_chunks().to_batches()[0], True
    )["gamma"]
    np.testing.assert_allclose(
        np.array(got.to_pylist()), np.array(expected.to_pylist()), rtol=0, atol=1e-9
    )


def test_classes_vocabulary_and_warm_start(spark, tmp_path):
    rows = alignment_rows(spark)
    old = quick_alignment(vocabulary=list("wxyz")).fit(rows)
    assert old.model.classes == ("art", "sport")
    assert old.model.features == tuple("wxyz")
    path = str(tmp_path / "old")
    old.model.save(path)
    new = quick_alignment(
        classes=["sport", "cooking", "art"],
        vocabulary=list("wxyzn"),
        warmStartPath=path,
        maxIter=0,
    ).fit(rows)
    assert isinstance(new.model, AlignmentModel)
    assert new.model.size == 5
    np.testing.assert_array_equal(new.model.parameters.lam[[2, 0]], old.model.parameters.lam)


def test_a_class_that_is_not_allowed_is_named(spark):
    with pytest.raises(Exception, match="DATA05: class 'sport'"):
        quick_alignment(classes=["art"]).fit(alignment_rows(spark))
