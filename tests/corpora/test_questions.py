"""Labelled questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.questions import QuestionSettings, read_questions
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()


@pytest.mark.spark
def test_questions(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.tsv").write_text(
        "category\tquestion\tanswer\n"
        "animals\tWhich one barks?\tthe dog\n"
        "animals\tWhich one barks?\tthe dog\n"
        "mixed\tAnything?\t\n"
        "\tWhere?\tthere\n"
        "animals\t \tnothing\n"
    )
    source = QuestionSettings(path=str(tmp_path), header=True, answer="answer")
    found = read_questions(spark, source, LIMITS)
    rows = found.records.collect()
    assert sorted((r["category"], r["question"], r["answer"]) for r in rows) == [
        ("animals", "Which one barks?", "the dog"),
        ("animals", "Which one barks?", "the dog"),
        ("mixed", "Anything?", ""),
    ]
    ids = {row["question_id"] for row in rows}
    assert len(ids) == 3
    assert ids == {
        row["question_id"] for row in read_questions(spark, source, LIMITS).records.collect()
    }
    assert count_reasons(found.quarantine) == {"empty category": 1, "empty question": 1}

    fewer = source.model_copy(update={"leave_out": ["mixed"], "answer": None})
    rows = read_questions(spark, fewer, LIMITS).records.collect()
    assert [(r["category"], r["answer"]) for r in rows] == [("animals", None)] * 2


@pytest.mark.spark
@pytest.mark.corpus
def test_opentriviaqa(spark: SparkSession, corpora: Path):
    source = QuestionSettings(
        path=str(corpora / "labelled_questions" / "opentriviaqa.tsv.gz"),
        header=True,
        answer="answer",
    )
    found = read_questions(spark, source, LIMITS)
    sizes = {
        row["category"]: row["count"] for row in found.records.groupBy("category").count().collect()
    }
    assert sum(sizes.values()) == 49_716
    assert len(sizes) == 22
    assert (sizes["music"], sizes["brain-teasers"]) == (5_579, 207)
    assert found.records.select("question_id").distinct().count() == 49_716
    assert count_reasons(found.quarantine) == {}

    mixed = ["general", "newest", "rated", "for-kids"]
    fewer = read_questions(spark, source.model_copy(update={"leave_out": mixed}), LIMITS)
    assert fewer.records.count() == 49_716 - sum(sizes[name] for name in mixed)
