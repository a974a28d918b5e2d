"""The settings of the DBA learner: one definition for conf files, estimator and arrays."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import AllowInfNan, BeforeValidator, Field, PlainSerializer

from corpusmill.settings import Settings


def _from_word(value: Any) -> Any:
    return math.inf if value == "inf" else value


def _to_word(value: float) -> float | str:
    return "inf" if math.isinf(value) else value


Unbounded = Annotated[
    float,
    AllowInfNan(True),
    BeforeValidator(_from_word),
    PlainSerializer(_to_word, when_used="json"),
]
"""A float that may be infinite, which JSON writes as the word inf."""


class LearnerSettings(Settings):
    """How DBA is trained and how it infers."""

    instance_model: Literal["multinomial", "poisson", "gaussian"] = Field(
        "multinomial", description="p(x | z)"
    )
    bound: Literal["quadratic", "tangent"] = Field(
        "quadratic",
        description="the label term: the Jaakkola-Jordan lower bound or the paper's approximation",
    )
    max_iter: int = Field(50, ge=0, description="EM iterations at the most")
    tol: float = Field(1e-5, ge=0.0, description="stop when the bound's relative gain falls below")
    inner_max_iter: int = Field(50, ge=1, description="rounds of an E-step at the most")
    inner_tol: float = Field(
        1e-4, ge=0.0, description="a pattern is done when gamma moves less than this an instance"
    )
    label_sparsity: Unbounded = Field(
        0.0,
        ge=0.0,
        description="nats an instance pays for a class outside its pattern's labels; inf forbids",
    )
    smoothing: float = Field(
        10.0, gt=0.0, description="pseudo-occurrences (or pseudo-instances) a class"
    )
    smoothing_evenness: float = Field(
        0.5,
        ge=0.0,
        le=1.0,
        description="the share spread evenly over the features; the rest as in the corpus",
    )
    alpha: float = Field(0.1, gt=0.0, description="a_c at the start")
    learn_alpha: bool = Field(True, description="whether a is learned; otherwise it stays alpha")
    lambda_mean: float = Field(10.0, description="mean of lambda's normal prior, and its start")
    lambda_precision: float = Field(1.0, ge=0.0, description="precision of that prior")
    warm_start_mass: float = Field(
        0.0,
        ge=0.0,
        description="pseudo-occurrences a class that a warm start's old model is worth",
    )
    cutoff_folds: int = Field(
        0, ge=0, description="folds that choose the cut-offs, and the read-out; below 2 none does"
    )
    read_out: Literal["diagonal", "matrix"] = Field(
        "diagonal",
        description="p(y_c | X) from the class's own share of the instances, as the paper, or from "
        "all classes' shares with weights fitted on the folds",
    )
    read_out_precision: float = Field(
        0.1, gt=0.0, description="precision of the normal prior of the read-out's weights"
    )
    cutoff_criterion: Literal["accuracy", "f1"] = Field(
        "accuracy", description="what the cut-offs maximise, class by class"
    )
