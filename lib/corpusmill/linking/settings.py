"""The settings of the linker: one definition for conf files, estimator and arrays."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpusmill.boosting.settings import LearnerSettings as BoostingSettings


class LearnerSettings(BoostingSettings):
    """How candidates are found, and how their scores are boosted."""

    structure: Literal["spans"] = Field("spans", description="mentions do not overlap")
    learning_rate: float = Field(0.05, gt=0.0, le=1.0, description="what a tree is scaled by")
    step: Literal["gradient", "newton"] = Field(
        "newton", description="leaves are the mean negative gradient (the paper), or Newton's"
    )
    feature_fraction: float = Field(0.3, gt=0.0, le=1.0, description="features a tree may use")
    candidates: int = Field(10, ge=1, le=1000, description="T, entities of a mention at most")
    stages: int = Field(
        1,
        ge=1,
        le=2,
        description="2: trained once more with features of how an entity goes with those that "
        "the first stage found",
    )
