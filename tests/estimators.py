"""Every estimator with a tiny dataset: what `test_estimator_contract` runs over.

A new estimator adds one `Spec` to `SPECS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.sql import DataFrame, SparkSession

from corpusmill.alignment.estimator import (
    OUTPUTS,
    DirichletBernoulliAlignment,
    DirichletBernoulliAlignmentModel,
    PatternEvaluator,
)
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.corpora.schemas import PATTERNS
from corpusmill.settings import Settings


@dataclass(frozen=True, eq=False)
class Spec:
    """What the contract has to know of an estimator.

    Attributes
    ----------
    name : str
        For the test's id.
    estimator : callable
        From Params to the estimator; without any, a quick one with fixed iterations.
    defaults : callable
        The estimator as a user makes it without Params.
    model : type
        The class of what ``fit`` returns.
    settings : type
        The settings class behind the Params.
    dataset : callable
        From a session to a small DataFrame that fits.
    outputs : tuple of str
        The columns that ``transform`` appends, the error column last.
    required : dict
        Input columns that must be there, each with SQL for a value of a wrong type.
    labels : str
        The input column without which nothing is learned.
    break_row : callable
        From rows to the same rows, all broken but not for the driver to see.
    seeded : dict
        Params under which the seed counts.
    grid : tuple
        A Param's name and two values.
    evaluator : callable
        An evaluator for the model's output.
    """

    name: str
    estimator: Callable[..., Estimator[Any]]
    defaults: Callable[[], Estimator[Any]]
    model: type[Model]
    settings: type[Settings]
    dataset: Callable[[SparkSession], DataFrame]
    outputs: tuple[str, ...]
    required: dict[str, str]
    labels: str
    break_row: Callable[[DataFrame], DataFrame]
    seeded: dict[str, Any]
    grid: tuple[str, list[Any]]
    evaluator: Callable[[], Evaluator]


def quick_alignment(**params: Any) -> DirichletBernoulliAlignment:
    return DirichletBernoulliAlignment(**{"maxIter": 2, "tol": 0.0, **params})


def alignment_rows(spark: SparkSession) -> DataFrame:
    """Twelve patterns of two classes; features 0 and 1 speak for art, 2 and 3 for sport."""
    rng = np.random.default_rng(1)
    rows = []
    for n in range(12):
        owners = rng.integers(0, 2, rng.integers(1, 4))
        rows.append(
            (
                f"p{n:02d}",
                sorted({("art", "sport")[z] for z in owners}) if n % 5 else None,
                list(range(0, 2 * len(owners) + 1, 2)),
                [float(w) for w in rng.integers(1, 4, len(owners))],
                [int(2 * z + bit) for z in owners for bit in (0, 1)],
                [float(c) for c in rng.integers(1, 3, 2 * len(owners))],
            )
        )
    return spark.createDataFrame(rows, PATTERNS)


def broken_patterns(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("* except (feature_ids)", "transform(feature_ids, i -> -1) feature_ids")


SPECS = [
    Spec(
        name="alignment",
        estimator=quick_alignment,
        defaults=DirichletBernoulliAlignment,
        model=DirichletBernoulliAlignmentModel,
        settings=LearnerSettings,
        dataset=alignment_rows,
        outputs=(*OUTPUTS.names, "alignment_error"),
        required={
            "pattern_id": "array('x')",
            "instance_offsets": "array('x')",
            "instance_weights": "1.0",
            "feature_ids": "'x'",
            "feature_counts": "map('a', 1.0)",
        },
        labels="labels",
        break_row=broken_patterns,
        seeded={"cutoffFolds": 2},
        grid=("smoothing", [0.1, 100.0]),
        evaluator=PatternEvaluator,
    )
]
