"""Questions with a category -> QUESTIONS."""

from __future__ import annotations

from pydantic import Field
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from corpusmill.corpora.quarantine import Read, separate
from corpusmill.corpora.schemas import QUESTIONS
from corpusmill.corpora.sources import ColumnName, FileSettings, read_table
from corpusmill.settings import QuarantineSettings


class QuestionSettings(FileSettings):
    """Labelled questions: their files, columns, and the categories that are no classes."""

    category: ColumnName = "category"
    question: ColumnName = "question"
    answer: ColumnName | None = None
    leave_out: list[str] = Field(default_factory=list, description="categories to pass over")


def read_questions(
    spark: SparkSession,
    source: QuestionSettings,
    quarantine: QuarantineSettings,
    key: str = "questions",
) -> Read:
    """Read labelled questions.

    Parameters
    ----------
    spark
        The session.
    source
        Files, columns and the categories to leave out.
    quarantine
        How long a record may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        QUESTIONS and QUARANTINE. ``question_id`` is a hash of the file's name, the place there
        and the text: the same in every run that splits the files alike, as it does for files
        smaller than spark.sql.files.maxPartitionBytes and for compressed ones.

    Raises
    ------
    UsageError
        A path with nothing to read, or a column that is not there.
    DataError
        A damaged file, or one whose header differs; some only when the result is computed.
    """
    fields = {"category": source.category, "question": source.question}
    if source.answer is not None:
        fields["answer"] = source.answer
    table = read_table(spark, source, fields, quarantine, key)
    if source.answer is None:
        table = table.withColumn("answer", F.lit(None).cast("string"))
    # The folder is not part of the id: a corpus that moves keeps its folds.
    file_name = F.substring_index("source", "/", -1)
    checked = table.withColumns(
        {
            "category": F.trim("category"),
            "question": F.trim("question"),
            "question_id": F.xxhash64(file_name, "position", "category", "question"),
        }
    ).withColumn(
        "reason",
        F.coalesce(
            "reason",
            F.when(F.coalesce("category", F.lit("")) == "", "empty category"),
            F.when(F.coalesce("question", F.lit("")) == "", "empty question"),
        ),
    )
    read = separate(checked, QUESTIONS)
    wanted = ~F.col("category").isin(source.leave_out)
    return read._replace(records=read.records.where(wanted)) if source.leave_out else read
