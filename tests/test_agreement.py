"""One model, four ways to ask it: arrays, `transform`, the pyfunc, and the pyfunc in Spark."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest

from corpusmill.alignment.model import PATTERN_ROWS, AlignmentModel
from corpusmill.settings import TrackingSettings
from corpusmill.tracking import Tracker
from tests.estimators import alignment_rows, quick_alignment

pytestmark = [
    pytest.mark.spark,
    # mlflow itself uses what pandas, pydantic and SQLAlchemy have deprecated.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow"),
    pytest.mark.filterwarnings("ignore::FutureWarning:mlflow"),
]


def agree(found, expected):
    """Equal names, numbers to 1e-9, pattern by pattern."""
    assert list(found) == list(expected)
    for name, row in expected.items():
        for column, value in row.items():
            if column == "prediction":
                assert list(found[name][column]) == list(value)
            else:
                np.testing.assert_allclose(found[name][column], value, rtol=0.0, atol=1e-9)


def by_name(names, rows):
    return dict(sorted(zip(names, rows, strict=True)))


def test_all_ways_to_predict_agree(spark, tmp_path):
    rows = alignment_rows(spark).repartition(3)
    fitted = quick_alignment(cutoffFolds=2).fit(rows)
    folder = str(tmp_path / "model")
    fitted.model.save(folder)
    frame = rows.select(*PATTERN_ROWS.names).toPandas()
    names = frame["pattern_id"]
    arrays = AlignmentModel.load(folder).predict_frame(frame)
    expected = by_name(names, arrays.to_dict("records"))
    assert len(expected) == 12

    answers = fitted.transform(rows).select("pattern_id", *arrays.columns).collect()
    agree(by_name([r.pattern_id for r in answers], [r.asDict() for r in answers]), expected)

    settings = TrackingSettings(uri=f"sqlite:///{tmp_path}/mlflow.db")
    with Tracker(settings, "agreement") as tracker:
        uri = str(tracker.log_model(folder, "alignment", frame.head(2)))
    served = mlflow.pyfunc.load_model(uri).predict(frame)
    agree(by_name(names, served.to_dict("records")), expected)

    udf = mlflow.pyfunc.spark_udf(spark, uri, env_manager="local")
    answers = rows.select("pattern_id", udf(*frame.columns).alias("out")).collect()
    agree(by_name([r.pattern_id for r in answers], [r.out.asDict() for r in answers]), expected)
