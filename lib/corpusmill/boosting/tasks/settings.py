"""The conf of the boosting job: where its factors come from, and the learner."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpusmill.boosting.settings import LearnerSettings
from corpusmill.settings import JobSettings, Settings


class FactorsSource(Settings):
    """Rows of the schema FACTORS, under its own names."""

    path: str = Field(description="file, folder, glob or URI")
    format: Literal["parquet", "json"] = Field(
        "parquet", description="json: one object a line, with the columns as keys"
    )


class FactorsInput(Settings):
    """Examples to train on, and others."""

    train: FactorsSource
    test: FactorsSource | None = Field(None, description="for predict and evaluate")


class BoostingSettings(JobSettings):
    """The conf of ``jobs/boosting.py``."""

    input: FactorsInput
    feature_names: list[str] = Field(
        default_factory=list, description="in order, any characters; by default f0, f1, ..."
    )
    model: LearnerSettings = LearnerSettings()
    partitions: int = Field(
        2, ge=1, le=100_000, description="parts of the examples; as many ranks train, if there are"
        " slots",
    )  # fmt: skip
    checkpoint_trees: int = Field(
        100, ge=1, description="trees a barrier stage; after each, training can be resumed"
    )
