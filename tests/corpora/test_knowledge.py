"""Tables of surface forms, entities and links."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession

from corpusmill.corpora import knowledge, knowledge_names
from corpusmill.corpora.knowledge import (
    EntitySettings,
    LexiconSettings,
    LinkSettings,
    NamesSettings,
    TypeRule,
    read_entities,
    read_lexicon,
    read_links,
)
from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.schemas import ENTITIES, LEXICON, LINKS
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()


def test_settings_know_the_names():
    assert get_args(knowledge.Kind) == knowledge_names.LINK_KINDS + knowledge_names.NAME_KINDS
    assert get_args(knowledge.Attribute) == knowledge_names.ATTRIBUTES
    assert get_args(knowledge.Type) == knowledge_names.TYPES


def test_patterns_are_checked():
    with pytest.raises(ValidationError, match="no regular expression"):
        LexiconSettings(path="x", kinds={"text": "("})


@pytest.mark.spark
def test_counts_are_summed_by_kind_and_sources_left_out(spark: SparkSession, tmp_path: Path):
    (tmp_path / "counts.tsv").write_bytes(
        b"source\tsurface\tentity\tcount\n"
        b"news_a\tRome\tRome\t3\n"
        b"news_a\tRome\tRome\t4\n"
        b"tweets\tRome\tRome\t1\n"
        b"held_out\tRome\tA.S._Roma\t9\n"
        b"other\tRome\tRome\t1\n"
        b"tweets\t \tRome\t1\n"
        b"tweets\tRome\t\t1\n"
        b"tweets\tRome\tRome\tmany\n"
        b"tweets\tRome\tRome\t0\n"
        b"tweets\tR\xffme\tRome\t1\n"
    )
    source = LexiconSettings(
        path=str(tmp_path),
        header=True,
        count="count",
        source="source",
        kinds={"short": "^tweets|^held", "text": "^news"},
        leave_out=["held_out"],
    )
    found = read_lexicon(spark, source, LIMITS)
    assert found.records.columns == LEXICON.names
    assert sorted(tuple(row) for row in found.records.collect()) == [
        ("Rome", "Rome", "news_a", "text", 7),
        ("Rome", "Rome", "tweets", "short", 1),
    ]
    assert count_reasons(found.quarantine) == {
        "bad count": 2,
        "empty entity": 1,
        "empty surface": 1,
        "not UTF-8": 1,
        "unknown kind": 1,
    }


@pytest.mark.spark
def test_surfaces_may_be_several_or_ids(spark: SparkSession, tmp_path: Path):
    (tmp_path / "aliases.tsv").write_text("New_York_City\tNYC | Big Apple | \nRome\tRoma\nOslo\t\n")
    source = LexiconSettings(
        path=str(tmp_path / "aliases.tsv"),
        surface=1,
        entity=0,
        separator=" | ",
        kinds={"alias": ""},
    )
    found = read_lexicon(spark, source, LIMITS)
    assert found.quarantine.count() == 0
    rows = found.records.collect()
    assert sorted((row["surface"], row["entity"], row["kind"]) for row in rows) == [
        ("Big Apple", "New_York_City", "alias"),
        ("NYC", "New_York_City", "alias"),
        ("Roma", "Rome", "alias"),
    ]
    assert {row["source"] for row in rows} == {"aliases.tsv"}

    (tmp_path / "pairs.tsv").write_text("1\t1\t7\n1\t2\t7\n1\t3\t7\n2\t1\t8\n")
    (tmp_path / "mentions.tsv").write_text("1\t1\tRome\n1\t2\tEternal City\n2\t1\tX\n")
    (tmp_path / "entities.tsv").write_text("7\tRome\n")
    source = LexiconSettings(
        path=str(tmp_path / "pairs.tsv"),
        surface=[0, 1],
        entity=2,
        kinds={"candidate": ""},
        surface_names=NamesSettings(path=str(tmp_path / "mentions.tsv"), id=[0, 1], name=2),
        entity_names=NamesSettings(path=str(tmp_path / "entities.tsv"), id=0, name=1),
    )
    found = read_lexicon(spark, source, LIMITS)
    assert sorted((row["surface"], row["entity"]) for row in found.records.collect()) == [
        ("Eternal City", "Rome"),
        ("Rome", "Rome"),
    ]
    assert count_reasons(found.quarantine) == {"unknown id": 2}


@pytest.mark.spark
def test_entities_with_values_flags_and_types(spark: SparkSession, tmp_path: Path):
    (tmp_path / "entities.tsv").write_text(
        "title\tlinks\tabout\n"
        "Rome\t10\tCity in Italy\n"
        "Rome\t12\tcity\n"
        "Ada\t\tEnglish writer of a city novel\n"
        "Nile\tlots\triver\n"
        "Oslo\tnan\tcity\n"
        "Bern\t1e39\tcity\n"
        "\t3\tcity\n"
        "Acme\t1\tbrand\n"
        "Nobody\t1\tnothing\n"
    )
    source = EntitySettings(
        path=str(tmp_path),
        header=True,
        entity="title",
        values={"in_links": "links"},
        flags=["popular"],
        type="about",
        types=[
            TypeRule(types=["person"], pattern=r"\bwriter\b"),
            TypeRule(types=["organization", "brand"], pattern="brand"),
            TypeRule(types=["location"], pattern="city|river"),
        ],
    )
    found = read_entities(spark, source, LIMITS)
    assert found.records.columns == ENTITIES.names
    rows = {(row["entity"], row["attribute"]): row["value"] for row in found.records.collect()}
    assert rows == {
        ("Rome", "known"): 1.0,
        ("Rome", "in_links"): 12.0,
        ("Rome", "popular"): 1.0,
        ("Rome", "type:location"): 1.0,
        ("Ada", "known"): 1.0,
        ("Ada", "popular"): 1.0,
        ("Ada", "type:person"): 1.0,
        ("Acme", "known"): 1.0,
        ("Acme", "in_links"): 1.0,
        ("Acme", "popular"): 1.0,
        ("Acme", "type:organization"): 1.0,
        ("Acme", "type:brand"): 1.0,
        ("Nobody", "known"): 1.0,
        ("Nobody", "in_links"): 1.0,
        ("Nobody", "popular"): 1.0,
    }
    assert count_reasons(found.quarantine) == {"bad number": 3, "empty entity": 1}


@pytest.mark.spark
def test_popularity_is_a_logarithm(spark: SparkSession, tmp_path: Path):
    (tmp_path / "popular.tsv").write_text("Rome\t600\nBern\t601\nOslo\t-1e9\nBath\t-7.5\n")
    source = EntitySettings(path=str(tmp_path), entity=0, values={"popularity": 1})
    found = read_entities(spark, source, LIMITS)
    said = found.records.where("attribute = 'popularity'").orderBy("entity").collect()
    assert [(row["entity"], row["value"]) for row in said] == [("Bath", -7.5), ("Rome", 600.0)]
    assert count_reasons(found.quarantine) == {"bad number": 2}


@pytest.mark.slow
@pytest.mark.spark
def test_links_by_title_or_id(spark: SparkSession, tmp_path: Path):
    (tmp_path / "links.tsv").write_text("a\tb\na\tb\nb\tc\na\tz\n\tb\n")
    (tmp_path / "names.tsv").write_text("a\tAda\nb\tBath\nc\tCork\n")
    source = LinkSettings(path=str(tmp_path / "links.tsv"), source=0, target=1)
    found = read_links(spark, source, LIMITS)
    assert found.records.columns == LINKS.names
    assert sorted(tuple(row) for row in found.records.collect()) == [
        ("a", "b"),
        ("a", "z"),
        ("b", "c"),
    ]
    assert count_reasons(found.quarantine) == {"empty entity": 1}
    names = NamesSettings(path=str(tmp_path / "names.tsv"), id=0, name=1)
    facts = source.model_copy(update={"names": names, "both_ways": True})
    found = read_links(spark, facts, LIMITS)
    assert sorted(tuple(row) for row in found.records.collect()) == [
        ("Ada", "Bath"),
        ("Bath", "Ada"),
        ("Bath", "Cork"),
        ("Cork", "Bath"),
    ]
    assert count_reasons(found.quarantine) == {"empty entity": 1, "unknown id": 1}


@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.long
def test_real_tables(spark: SparkSession, corpora: Path):
    counts = LexiconSettings(
        path=str(corpora / "el_lexicon" / "mention_entity_counts.tsv.gz"),
        header=True,
        count="count",
        source="source",
        kinds={"short": "^(twitterneed|neel)", "query": "^(gerdaq|kdd|webis)", "text": ""},
        leave_out=["neel2016_y2014"],
    )
    rows = read_lexicon(spark, counts, LIMITS).records.groupBy("source").sum("count").collect()
    sizes = dict(tuple(row) for row in rows)
    assert sizes["aida_train"] == 18_540
    assert sizes["neel2016_y2013"] == 1_202
    assert "neel2016_y2014" not in sizes

    folder = corpora / "aida_candidates"
    entities = NamesSettings(
        path=str(folder / "entities.tsv.gz"), header=True, id="entity_id", name="title"
    )
    links = LinkSettings(
        path=str(folder / "links.tsv.gz"),
        header=True,
        source="src_id",
        target="dst_id",
        names=entities,
    )
    read = read_links(spark, links, LIMITS)
    assert read.records.count() == 251_699
    assert read.quarantine.count() == 0
