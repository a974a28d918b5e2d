"""The settings of the boosting learner: one definition for conf files, estimator and arrays."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpusmill.settings import Settings


class LearnerSettings(Settings):
    """How trees are boosted over the factors of structured examples."""

    structure: Literal["independent", "spans", "chain", "segments"] = Field(
        "independent",
        description="the outputs: a choice a factor, non-overlapping spans, a linear chain of "
        "labels, or a semi-Markov chain of labelled segments",
    )
    loss: Literal["logistic", "hinge"] = Field(
        "logistic", description="negative log-likelihood, or structured hinge"
    )
    step: Literal["gradient", "newton"] = Field(
        "gradient",
        description="leaves are the mean negative gradient (the paper), or that divided by the "
        "mean second derivative, which the hinge has not: there both are the same. Newton's trees "
        "are not quite the same on one rank as on several",
    )
    trees: int = Field(300, ge=1, le=100_000, description="boosting rounds")
    learning_rate: float = Field(0.1, gt=0.0, le=1.0, description="what a tree is scaled by")
    num_leaves: int = Field(31, ge=2, le=131_072, description="leaves of a tree at most")
    min_data_in_leaf: int = Field(30, ge=1, description="gradient steps: rows of a leaf at least")
    min_hessian_in_leaf: float = Field(
        1.0, ge=0.25, description="newton steps: sum of second derivatives of a leaf at least"
    )
    feature_fraction: float = Field(1.0, gt=0.0, le=1.0, description="features a tree may use")
    max_bin: int = Field(255, ge=2, le=65_535, description="bins of a feature at most")
    bin_rows: int = Field(
        50_000, ge=100, description="rows, about, that are looked at for the bounds of the bins"
    )
    nil_bias: float = Field(
        0.0, description="spans: added to the score of every Nil when predicting (b of the paper)"
    )
