"""Entity lists from any two columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from corpusmill.corpora.entity_classes import EntityListSettings, read_entity_classes
from corpusmill.corpora.quarantine import count_reasons
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()
LIST = b"""aspirin\troot.medicine.drugs
aspirin\troot.medicine.pain
aspirin\troot.medicine.drugs
Paris\troot.places
Paris \troot
\troot.places
Rome\t
Oslo
!!!	root.places
\xff\troot.places
"""


def read(spark: SparkSession, path: Path, **options) -> tuple[set[tuple[str, str]], dict[str, int]]:
    source = EntityListSettings(path=str(path), entity=0, entity_class=1, **options)
    found = read_entity_classes(spark, source, LIMITS)
    rows = [(row["entity"], row["class"]) for row in found.records.collect()]
    assert len(rows) == len(set(rows))
    return set(rows), count_reasons(found.quarantine)


@pytest.mark.spark
def test_duplicates_collapse_and_bad_lines_are_kept(spark: SparkSession, tmp_path: Path):
    (tmp_path / "list.tsv").write_bytes(LIST)
    rows, reasons = read(spark, tmp_path)
    assert rows == {
        ("aspirin", "root.medicine.drugs"),
        ("aspirin", "root.medicine.pain"),
        ("Paris", "root.places"),
        ("Paris", "root"),
    }
    assert reasons == {
        "empty class": 1,
        "empty entity": 1,
        "no letter or digit": 1,
        "not UTF-8": 1,
        "wrong number of columns": 1,
    }


@pytest.mark.spark
@pytest.mark.parametrize(
    ("level", "rows"),
    [
        (1, {("aspirin", "root"), ("Paris", "root")}),
        (2, {("aspirin", "medicine"), ("Paris", "places"), ("Paris", "root")}),
        (9, {("aspirin", "drugs"), ("aspirin", "pain"), ("Paris", "places"), ("Paris", "root")}),
    ],
)
def test_class_is_cut_to_a_level(spark: SparkSession, tmp_path: Path, level: int, rows):
    (tmp_path / "list.tsv").write_bytes(LIST)
    assert read(spark, tmp_path, class_level=level)[0] == rows


@pytest.mark.spark
def test_separator_is_no_pattern(spark: SparkSession, tmp_path: Path):
    (tmp_path / "list.tsv").write_text("a\tx|y.z\n")
    rows, _ = read(spark, tmp_path, class_level=2, class_separator="|")
    assert rows == {("a", "y.z")}


@pytest.mark.spark
@pytest.mark.corpus
def test_wikispeedia(spark: SparkSession, corpora: Path):
    source = EntityListSettings(
        path=str(corpora / "wiki_links" / "wikispeedia_categories.tsv.gz"),
        header=True,
        entity="title",
        entity_class="category",
        class_level=2,
    )
    found = read_entity_classes(spark, source, LIMITS)
    rows = found.records.collect()
    # Six of the 4,604 articles have no category.
    assert len({row["entity"] for row in rows}) == 4_598
    assert len({row["class"] for row in rows}) == 15
    assert count_reasons(found.quarantine) == {}
