"""The conf of the linking job: what is known, the texts, the learner."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from corpusmill.corpora.knowledge import EntitySettings, LexiconSettings, LinkSettings, Pattern
from corpusmill.corpora.linked_texts import LinkedTextsSettings, SystemLinksSettings
from corpusmill.corpora.sources import SourceSettings
from corpusmill.linking.settings import LearnerSettings
from corpusmill.settings import JobSettings, Settings


def _has_group(pattern: str) -> str:
    if not re.compile(pattern).groups:
        raise ValueError("there must be a group (...) in it, the part that is wanted")
    return pattern


class LinesSettings(Settings):
    """Plain lines, of which a part is wanted."""

    path: str = Field(min_length=1)
    pattern: Annotated[Pattern, AfterValidator(_has_group)] = Field(
        "(.*)", description="its first group is the part; a line without it is passed over"
    )


class KnowledgeSettings(Settings):
    """Of what the lexicon, the entities and the words are made."""

    lexicon: list[LexiconSettings] = Field(min_length=1)
    entities: list[EntitySettings] = Field(default_factory=list)
    links: list[LinkSettings] = Field(default_factory=list)
    edited: list[LinesSettings] = Field(
        default_factory=list, description="edited texts, where capitals mean something"
    )
    common: list[LinesSettings] = Field(
        default_factory=list, description="words of a dictionary, one a line, with _ or blanks"
    )


class TextsSettings(LinkedTextsSettings):
    """Texts with their entities, all or those of some splits."""

    splits: list[str] = Field(default_factory=list, description="by default all")
    share: tuple[float, float] = Field(
        (0.0, 1.0),
        description="by a hash of ids to [0, 1): texts from the first to below the second",
    )

    @model_validator(mode="after")
    def _check_share(self) -> TextsSettings:
        if not 0.0 <= self.share[0] < self.share[1] <= 1.0:
            raise ValueError("share must be two numbers with 0 <= first < second <= 1")
        return self


class LinkingInput(Settings):
    """The texts."""

    train: list[TextsSettings] = Field(min_length=1)
    develop: list[TextsSettings] = Field(
        default_factory=list, description="on which the Nil bias is tuned"
    )
    test: dict[str, TextsSettings] = Field(
        default_factory=dict, description="for evaluate; the first is the one to report"
    )
    systems: dict[str, SystemLinksSettings] = Field(
        default_factory=dict, description="for evaluate: what another system says, by test set"
    )
    texts: TextsSettings | None = Field(None, description="for predict")
    queries: list[SourceSettings] = Field(
        default_factory=list, description="for predict: query logs; equal queries are linked once"
    )

    @model_validator(mode="after")
    def _check_sets(self) -> LinkingInput:
        unknown = sorted(set(self.systems) - set(self.test))
        if unknown:
            raise ValueError(f"systems has {unknown[0]!r}, which is no key of test")
        if self.texts is not None and self.queries:
            raise ValueError("predict reads texts or queries, not both; input.texts=null")
        return self

    def training(self) -> dict[str, TextsSettings]:
        """Give the texts to train on by their keys in the conf."""
        return {f"input.train.{number}": source for number, source in enumerate(self.train)}

    def development(self) -> dict[str, TextsSettings]:
        """Give the texts to tune on by their keys in the conf."""
        return {f"input.develop.{number}": source for number, source in enumerate(self.develop)}


Method = Literal["perceptron", "linear_ssvm", "poly_ssvm", "mart", "lambdarank"]


class BaselineSettings(Settings):
    """The other methods that evaluate trains beside."""

    methods: list[Method] = Field(default_factory=list, description="each in a task")


class LinkingSettings(JobSettings):
    """The conf of ``jobs/linking.py``."""

    knowledge: KnowledgeSettings
    input: LinkingInput
    model: LearnerSettings = LearnerSettings()
    baselines: BaselineSettings = BaselineSettings()
    broadcast_mb: float = Field(
        1000.0,
        ge=0.0,
        description="knowledge up to this size goes whole to every worker, larger one in parts",
    )
    partitions: int = Field(2, ge=1, le=100_000, description="parts of the texts")
    checkpoint_trees: int = Field(100, ge=1, description="trees a barrier stage")
