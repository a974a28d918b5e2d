"""Knowledge in parts, beside the texts that need it, against the whole in every worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora.schemas import FACTORS, INTS, SOME_STRINGS
from corpusmill.linking.estimator import OUTPUTS, predict_rows
from corpusmill.linking.fitting import bias_curve, factor_rows, fit_links
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.placement import Placed, append_to_texts, cut, map_texts, place, whole
from corpusmill.linking.settings import LearnerSettings
from corpusmill.storage.arrays import unpack
from tests.linking.invented import TEXTS, knowledge
from tests.linking.test_restriction import random_texts

pytestmark = pytest.mark.spark

COLUMNS = T.StructType(
    [
        T.StructField("text_id", T.StringType()),
        T.StructField("text", T.StringType()),
        T.StructField("mention_starts", INTS),
        T.StructField("mention_ends", INTS),
        T.StructField("mention_entities", SOME_STRINGS),
    ]
)
SETTINGS = LearnerSettings(stages=2, trees=5, min_hessian_in_leaf=0.25, candidates=5)


def in_parts(texts: Any, parts: int) -> Placed:
    return Placed(cut(texts, knowledge(), parts, DataFrame.persist), texts.schema, True)


@pytest.fixture(scope="module")
def texts(spark: Any) -> Any:
    rows = random_texts(0, 60).to_pylist()
    for number, row in enumerate(rows):
        row["text_id"] = f"t{number}"
    extra: dict[str, list[Any]] = {"mention_starts": [], "mention_ends": [], "mention_entities": []}
    others = [*TEXTS, "nothing here that anybody knows"]
    rows += [{"text_id": f"x{n}", "text": text, **extra} for n, text in enumerate(others)]
    return spark.createDataFrame(rows, COLUMNS).repartition(2, "text_id").persist()


@pytest.fixture(scope="module")
def model(texts: Any) -> LinkingModel:
    return fit_links(whole(texts), knowledge(), SETTINGS, develop=whole(texts)).model


def sorted_rows(df: Any, key: str) -> list[Any]:
    return [row.asDict(recursive=True) for row in df.orderBy(key).collect()]


@pytest.mark.parametrize("parts", [1, 3])
def test_predictions_are_the_same_in_any_number_of_parts(
    texts: Any, model: LinkingModel, parts: int
) -> None:
    check_predictions(texts.select("text_id", "text"), model, parts, 20)


@pytest.mark.slow
def test_parts_may_be_empty(texts: Any, model: LinkingModel) -> None:
    rows = texts.select("text_id", "text")
    found = append_to_texts(whole(rows), predict_rows, model, OUTPUTS)
    some = found.where("size(mention_starts) > 0").orderBy("text_id").limit(3).collect()
    few = rows.where(F.col("text_id").isin([row["text_id"] for row in some]))
    check_predictions(few, model, 8, 3)


def check_predictions(rows: Any, model: LinkingModel, parts: int, least: int) -> None:
    wanted = append_to_texts(whole(rows), predict_rows, model, OUTPUTS)
    found = append_to_texts(in_parts(rows, parts), predict_rows, model, OUTPUTS)
    assert found.columns == wanted.columns
    links = sorted_rows(found, "text_id")
    assert links == sorted_rows(wanted, "text_id")
    assert sum(len(row["mention_starts"]) for row in links) >= least


def test_a_null_text_is_marked_in_parts_too(texts: Any, model: LinkingModel) -> None:
    rows = texts.select("text_id", "text").limit(5)
    rows = rows.union(rows.sparkSession.createDataFrame([("none", None)], rows.schema))
    found = sorted_rows(append_to_texts(in_parts(rows, 1), predict_rows, model, OUTPUTS), "text_id")
    errors = {row["text_id"]: row[splits.ERROR] for row in found}
    assert len(errors) == 6
    assert "the text must not be null" in errors.pop("none")
    assert set(errors.values()) == {None}


@pytest.mark.slow
def test_no_texts_at_all(texts: Any, model: LinkingModel) -> None:
    none = texts.where("text_id = 'unheard of'")
    assert in_parts(none, 3).rows.count() == 0
    counts = bias_curve(in_parts(none, 3), model)
    assert not np.concatenate(counts).any()


@pytest.mark.slow
def test_training_in_parts_gives_the_same_model(texts: Any, model: LinkingModel) -> None:
    parted = place(texts, knowledge(), 0.0, DataFrame.persist)
    again = fit_links(parted, knowledge(), SETTINGS, develop=parted).model
    assert again.trees == model.trees
    assert again.biases == model.biases
    for name, array in bias_curve(whole(texts), model)._asdict().items():
        assert np.array_equal(array, getattr(bias_curve(parted, model), name))


@pytest.mark.slow
def test_factors_are_the_same_in_parts_of_several_batches(
    spark: Any, texts: Any, model: LinkingModel
) -> None:
    wanted = sorted_rows(map_texts(whole(texts), factor_rows, model, FACTORS), "example_id")
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(key)
    spark.conf.set(key, "7")
    try:
        parted = in_parts(texts, 2)
        found = sorted_rows(map_texts(parted, factor_rows, model, FACTORS), "example_id")
    finally:
        spark.conf.set(key, before)
    assert found == wanted


def test_size_decides(texts: Any) -> None:
    megabytes = knowledge().nbytes / 1e6
    assert not place(texts, knowledge(), megabytes, DataFrame.persist).parted
    parted = place(texts, knowledge(), megabytes * 0.99, DataFrame.persist)
    assert parted.parted
    assert parted.rows.count() == splits.count_partitions(texts)


@pytest.mark.slow
def test_a_part_holds_what_its_texts_need(texts: Any) -> None:
    few = texts.where(F.col("text") == "nothing here that anybody knows").select("text")
    row = cut(few, knowledge(), 1, DataFrame.persist).collect()[0]
    held = Knowledge.of_arrays(unpack(row["knowledge"]))
    assert held.entities.names.to_pylist() == ["Nothing"]
    assert len(held.lexicon.surfaces.hashes) == 1
