"""The conf of the fragments job: where its examples come from, and the learner."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from corpusmill.corpora.propositions import ConllSettings, PropbankSettings
from corpusmill.corpora.trees import TreesSettings
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.settings import JobSettings, Settings

Propositions = Annotated[ConllSettings | PropbankSettings, Field(discriminator="kind")]


class TreesInput(Settings):
    """Labelled trees."""

    kind: Literal["trees"]
    train: TreesSettings
    test: TreesSettings | None = Field(None, description="for predict and evaluate")


class PropositionsInput(Settings):
    """Parsed sentences with propositions, for semantic role labelling."""

    kind: Literal["propositions"]
    examples: Literal["boundary", "roles"] = Field(
        description="is the node an argument of the predicate, or which of A0 to A5 is it"
    )
    train: Propositions
    test: Propositions | None = Field(None, description="for predict and evaluate")
    train_pairs: int | None = Field(
        None, ge=1, description="boundary: train on the first so many pairs of node and predicate"
    )


class ExactSettings(Settings):
    """The exact kernel machine that evaluate trains beside the linearised one."""

    examples: int = Field(
        20_000,
        ge=0,
        description="training examples at most, chosen by the seed; 0 trains none. Its time "
        "grows nearly with their square",
    )


class FragmentsSettings(JobSettings):
    """The conf of ``jobs/fragments.py``."""

    input: Annotated[TreesInput | PropositionsInput, Field(discriminator="kind")]
    classes: list[str] = Field(
        default_factory=list,
        description="in order; by default those of the data, sorted; of two the first is positive",
    )
    model: LearnerSettings = LearnerSettings()
    exact: ExactSettings = ExactSettings()
    partitions: int = Field(4, ge=1, le=100_000, description="parts of the examples")
    best_fragments: int = Field(200, ge=1, description="fragments a class in the output's table")
    shown_fragments: int = Field(30, ge=1, description="fragments a class on the page")
    deciding_fragments: int = Field(
        5, ge=1, description="fragments that decided a prediction, in the output at most"
    )
    explained: int = Field(
        20,
        ge=0,
        description="predictions of evaluate that are explained, first up to half of wrong ones",
    )

    @model_validator(mode="after")
    def _pairs_belong_to_boundaries(self) -> Self:
        given = self.input
        if (
            isinstance(given, PropositionsInput)
            and given.train_pairs is not None
            and given.examples == "roles"
        ):
            raise ValueError("input.train_pairs is for input.examples = boundary")
        return self
