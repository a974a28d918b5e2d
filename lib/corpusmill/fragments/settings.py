"""The settings of the fragment learner: one definition for conf files, estimator and arrays."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from corpusmill.settings import Settings


class LearnerSettings(Settings):
    """How fragments are mined from kernel machines, and how the linear model is trained."""

    kernel: Literal["sst", "ptk"] = Field(
        "sst",
        description="subset trees, whose nodes have all their children or none, or partial trees, "
        "whose nodes have any of them",
    )
    decay: float = Field(
        0.4,
        gt=0.0,
        le=1.0,
        description="lambda; ptk: for a leaf of a fragment, and for a child that it skips",
    )
    mu: float = Field(0.4, gt=0.0, le=1.0, description="ptk: a fragment of m nodes counts mu^(m/2)")
    cost: float = Field(10.0, gt=0.0, description="C of the kernel machines")
    class_weight: Literal["none", "balanced"] = Field(
        "none", description="balanced: C times examples / (2 examples of the sign), here and below"
    )
    tolerance: float = Field(1e-3, gt=0.0, description="of the kernel machines' optimality")
    cache_mb: int = Field(512, ge=1, description="rows of the kernel that a task keeps, in MiB")
    splits: int = Field(
        1, ge=1, le=10_000, description="S; each is a task with machines of its own"
    )
    split_by: Literal["class", "random"] = Field(
        "class", description="whether each split gets its share of every class"
    )
    merge: Literal["union", "cascade"] = Field(
        "union",
        description="mine every split and unite the fragments, or merge the support vectors of "
        "pairs of splits until one machine is left, and mine that",
    )
    feedback_rounds: int = Field(
        0, ge=0, le=10, description="cascade: times its support vectors go back into every split"
    )
    miner: Literal["kernel", "chi2", "l1"] = Field(
        "kernel",
        description="rank fragments by their weight in the kernel machine, or those so found by "
        "chi-squared or by an L1 linear model",
    )
    limit: int = Field(50_000, ge=1, description="L, fragments a class and split")
    mining_mb: int = Field(
        1024,
        ge=1,
        description="index that a task keeps while it mines, in MiB; ptk: with occurrences",
    )
    maxexp: int = Field(
        4, ge=1, description="sst: nodes of a level that a fragment expands at most"
    )
    relevance: Literal["depth", "productions"] = Field(
        "depth",
        description="sst: value of a fragment, lambda^depth (the paper) or "
        "lambda^(productions/2); ptk: always the kernel's own",
    )
    normalise: Literal["kernel", "fragments"] = Field(
        "fragments",
        description="a tree's vector is divided by the tree's kernel norm (the paper) or its own",
    )
    vector_weight: float = Field(
        0.0,
        ge=0.0,
        description="what the feature vectors count beside the trees; 0 leaves them out",
    )
    linear_cost: float = Field(4.0, gt=0.0, description="C of the linear model")
    linear_tolerance: float = Field(
        0.1, gt=0.0, description="of liblinear's optimality; its own default"
    )
    linear_solver: Literal["liblinear", "mllib"] = Field(
        "liblinear", description="in one task, or Spark's LinearSVC over all of them"
    )
    linear_max_iter: int = Field(5000, ge=1, description="iterations of the linear solver")
    calibration_folds: int = Field(
        0, ge=0, le=100, description="folds that fit probabilities; below 2 there are none"
    )

    @model_validator(mode="after")
    def _go_together(self) -> Self:
        if self.feedback_rounds and self.merge != "cascade":
            raise ValueError("feedback_rounds needs merge = cascade")
        if self.merge == "cascade" and self.miner != "kernel":
            raise ValueError("merge = cascade needs miner = kernel: it merges support vectors")
        if self.kernel == "ptk" and self.relevance != "depth":
            raise ValueError("relevance = productions needs kernel = sst: ptk counts nodes")
        if self.calibration_folds > 1 and self.linear_solver != "liblinear":
            raise ValueError("calibration_folds needs linear_solver = liblinear")
        return self
