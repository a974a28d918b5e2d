"""The ingest job: raw files in, Parquet with a documented schema and a quarantine out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from corpusmill.corpora import schemas
from corpusmill.corpora.linked_texts import (
    LinkedTextsSettings,
    SystemLinksSettings,
    linked_texts_paths,
    read_linked_texts,
    read_system_links,
)
from corpusmill.corpora.quarantine import Read, check_share, count_reasons
from corpusmill.corpora.query_logs import read_query_logs
from corpusmill.corpora.questions import QuestionSettings, read_questions
from corpusmill.corpora.reuters import ReutersSettings, read_reuters
from corpusmill.corpora.sources import SourceSettings
from corpusmill.errors import DataError
from corpusmill.runner import Job
from corpusmill.settings import JobSettings, QuarantineSettings, Settings

if TYPE_CHECKING:
    from corpusmill.runner import Context


class QueryLogInput(Settings):
    """Query logs, each with its own layout."""

    kind: Literal["query_log"]
    sources: list[SourceSettings] = Field(min_length=1)


class QuestionsInput(Settings):
    """Labelled questions."""

    kind: Literal["questions"]
    questions: QuestionSettings


class ReutersInput(Settings):
    """Reuters-21578."""

    kind: Literal["reuters"]
    reuters: ReutersSettings


class LinkedTextsInput(Settings):
    """Texts with the entities that they mention."""

    kind: Literal["linked_texts"]
    texts: LinkedTextsSettings


class SystemLinksInput(Settings):
    """What another system said of questions."""

    kind: Literal["system_links"]
    system: SystemLinksSettings


class IngestSettings(JobSettings):
    """The conf of ``jobs/ingest.py``."""

    input: Annotated[
        QueryLogInput | QuestionsInput | ReutersInput | LinkedTextsInput | SystemLinksInput,
        Field(discriminator="kind"),
    ]


def read(spark: SparkSession, conf: IngestSettings) -> tuple[Read, StructType]:
    """Read what the conf names; the schema is that of the records."""
    given, limits = conf.input, conf.quarantine
    if isinstance(given, QueryLogInput):
        return read_query_logs(spark, given.sources, limits, "input.sources"), schemas.QUERIES
    if isinstance(given, QuestionsInput):
        return read_questions(spark, given.questions, limits, "input.questions"), schemas.QUESTIONS
    if isinstance(given, LinkedTextsInput):
        return read_linked_texts(spark, given.texts, limits, "input.texts"), schemas.LINKED_TEXTS
    if isinstance(given, SystemLinksInput):
        found = read_system_links(spark, given.system, limits, "input.system")
        return found, schemas.SYSTEM_LINKS
    return read_reuters(spark, given.reuters, limits, "input.reuters"), schemas.DOCUMENTS


def run(context: Context) -> None:
    """Write ``records/``, ``quarantine/`` and the counts.

    Raises
    ------
    DataError
        DATA02 when too much went to quarantine, DATA03 when there is no record.
    """
    conf: IngestSettings = context.settings
    with context.progress.stage("read"):
        found, schema = read(context.spark, conf)
    with context.progress.stage("write records"):
        rows = context.run.write_parquet("records", found.records, schema=schema)
    with context.progress.stage("write quarantine"):
        bad = context.run.write_parquet("quarantine", found.quarantine, schema=schemas.QUARANTINE)
    written = context.spark.read.parquet(context.run.path("quarantine"))
    reasons = count_reasons(written)
    context.run.write_metrics(
        {"rows": rows, "quarantined": bad, "reason": {_name(key): n for key, n in reasons.items()}}
    )
    _check(conf.input.kind, rows, reasons, conf.quarantine)


def _check(source: str, rows: int, reasons: dict[str, int], limits: QuarantineSettings) -> None:
    check_share(source, rows, reasons, limits)
    if not rows:
        hint = f"{sum(reasons.values())} records are in quarantine"
        raise DataError("DATA03", source=source, hint=hint)


def _name(reason: str) -> str:
    return reason.lower().replace(" ", "_").replace("-", "")


def inputs(action: str, conf: IngestSettings) -> dict[str, str]:
    """Name the paths that the job reads, by the key of the conf."""
    given = conf.input
    if isinstance(given, QueryLogInput):
        return {f"input.sources.{i}.path": each.path for i, each in enumerate(given.sources)}
    if isinstance(given, QuestionsInput):
        return {"input.questions.path": given.questions.path}
    if isinstance(given, LinkedTextsInput):
        return linked_texts_paths(given.texts, "input.texts")
    if isinstance(given, SystemLinksInput):
        paths = {"path": given.system.path, "questions": given.system.questions}
        return {f"input.system.{name}": path for name, path in paths.items()}
    return {"input.reuters.path": given.reuters.path}


ACTIONS: dict[str, Callable[[Context], None]] = {"run": run}
JOB = Job(name="ingest", settings=IngestSettings, actions=ACTIONS, inputs=inputs)
