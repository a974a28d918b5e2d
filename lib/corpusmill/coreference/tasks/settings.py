"""The conf of the coreference job: documents and learner."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpusmill.coreference.settings import LearnerSettings
from corpusmill.corpora.annotated_documents import DocumentsSettings
from corpusmill.settings import JobSettings, QuarantineSettings, Settings


class CoreferenceInput(Settings):
    """The documents."""

    train: DocumentsSettings
    develop: DocumentsSettings | None = Field(
        None, description="on which train measures the model every so many passes"
    )
    test: dict[str, DocumentsSettings] = Field(
        default_factory=dict, description="for evaluate; the first is the one to report"
    )
    documents: DocumentsSettings | None = Field(None, description="for predict")


class SelectionSettings(Settings):
    """How select finds templates; the set to begin with is ``model.templates``."""

    candidates: str | None = Field(
        None, min_length=1, description="local, nonlocal or a file: templates that may be added"
    )
    rounds: int = Field(20, ge=1, le=10_000, description="templates added or removed at most")
    iterations: int = Field(5, ge=1, le=1000, description="passes of each training")
    documents: int = Field(200, ge=4, description="training documents that are looked at, at most")


class DocumentsQuarantine(QuarantineSettings):
    """How many bad documents a job accepts; a record is a whole document."""

    max_record_chars: int = Field(50_000_000, ge=1)


class CoreferenceSettings(JobSettings):
    """The conf of ``jobs/coreference.py``."""

    input: CoreferenceInput
    model: LearnerSettings = LearnerSettings()
    selection: SelectionSettings = SelectionSettings()
    quarantine: QuarantineSettings = DocumentsQuarantine()
    partitions: int = Field(
        8, ge=1, le=100_000, description="parts of the documents, for predict and evaluate"
    )
    develop_every: int = Field(5, ge=1, description="passes between measures on input.develop")
    checkpoint_passes: int = Field(5, ge=1, description="passes between checkpoints")
    write: Literal["none", "conll2012", "conllu", "json"] = Field(
        "none", description="for predict: documents with predictions, beside the Parquet"
    )
    compare: str | None = Field(
        None, min_length=1, description="for evaluate: the output of another run, to be compared"
    )
