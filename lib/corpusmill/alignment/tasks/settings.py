"""The conf of the alignment job: one of three tasks, and the learner."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from corpusmill.alignment.classification import ClassificationSettings
from corpusmill.alignment.comparison import ComparisonSettings
from corpusmill.alignment.patterns import VocabularySettings
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.corpora.entity_classes import EntityListSettings
from corpusmill.corpora.questions import QuestionSettings
from corpusmill.corpora.reuters import ReutersSettings
from corpusmill.corpora.sources import SourceSettings
from corpusmill.settings import JobSettings, Settings


class QueryLogInput(Settings):
    """A raw query log and a list of entities with their possible classes."""

    kind: Literal["query_log"]
    sources: list[SourceSettings] = Field(min_length=1)
    entities: EntityListSettings
    gold: EntityListSettings | None = Field(
        None, description="for evaluate: queries, which stand as entities, and their classes"
    )


class QuestionsInput(Settings):
    """Labelled questions, in which entities are found by their capitals (experiment 2)."""

    kind: Literal["questions"]
    questions: QuestionSettings
    min_questions: int = Field(5, ge=1, description="an entity's questions at least")
    min_classes: int = Field(2, ge=1, description="an entity's categories at least")
    comparison: ComparisonSettings = ComparisonSettings()


class ReutersInput(Settings):
    """Reuters-21578 documents with their paragraphs (experiment 1)."""

    kind: Literal["reuters"]
    reuters: ReutersSettings
    classes: int = Field(10, ge=1, description="so many of the largest topics")
    title_weight: float = Field(2.0, gt=0.0, description="what a title counts, in paragraphs")
    comparison: ClassificationSettings = ClassificationSettings()
    paper: LearnerSettings = Field(
        LearnerSettings(), description="DBA in the paper's setting of evaluate"
    )
    paragraphs: LearnerSettings = Field(
        LearnerSettings(), description="DBA on the paragraphs of joined documents in evaluate"
    )


class AlignmentSettings(JobSettings):
    """The conf of ``jobs/alignment.py``."""

    input: Annotated[QueryLogInput | QuestionsInput | ReutersInput, Field(discriminator="kind")]
    model: LearnerSettings = LearnerSettings()
    vocabulary: VocabularySettings = VocabularySettings()
    partitions: int = Field(4, ge=1, le=100_000, description="splits of the patterns")
    max_instances: int = Field(
        50_000, ge=1, description="a pattern of more is cut into rows of about so many"
    )
    known_labels: bool = Field(
        True, description="whether predict believes the classes of the entity list"
    )
    ranked_classes: int = Field(5, ge=1, description="classes of a query in the output at most")
    context_words: int = Field(5, ge=1, description="deciding words of a query at most")
    checkpoint_every: int = Field(5, ge=1, description="EM iterations between checkpoints")
    warm_start: str | None = Field(
        None, description="output or model folder of an older run to start from"
    )

    @model_validator(mode="after")
    def _words_are_multinomial(self) -> Self:
        if self.input.kind != "reuters" and self.model.instance_model != "multinomial":
            raise ValueError(
                f"model.instance_model must be multinomial for input.kind {self.input.kind}"
            )
        return self
