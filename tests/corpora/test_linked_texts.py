"""Texts with their entities: every format, quarantine, and the counts of the real sets."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from corpusmill.corpora.linked_texts import (
    LinkedTextsSettings,
    SystemLinksSettings,
    read_linked_texts,
    read_system_links,
)
from corpusmill.corpora.quarantine import Read, count_reasons
from corpusmill.corpora.schemas import LINKED_TEXTS, SYSTEM_LINKS
from corpusmill.errors import UsageError
from corpusmill.settings import QuarantineSettings

LIMITS = QuarantineSettings()


def read(spark: SparkSession, path: Path, **options: Any) -> Read:
    return read_linked_texts(spark, LinkedTextsSettings(path=str(path), **options), LIMITS)


def by_id(found: Read) -> dict[str, tuple[Any, ...]]:
    return {row["text_id"]: tuple(row)[1:] for row in found.records.collect()}


def bad(found: Read) -> list[tuple[str, str]]:
    return sorted((row["position"], row["reason"]) for row in found.quarantine.collect())


@pytest.mark.spark
def test_tweets(spark: SparkSession, tmp_path: Path):
    mention = {"start": 3, "end": 6, "surface": "Zor", "entity": "zor Bay", "type": "Place"}
    lines = [
        {"id": "1", "text": "in Zor", "mentions": [mention], "split": "mine"},
        {"text": "𝒜 Zor", "mentions": [mention | {"start": 2, "end": 5}]},
        {"id": "3", "text": "Zor", "mentions": [mention]},
        {
            "id": "4",
            "text": "in Zor",
            "mentions": [mention, mention | {"start": 0, "surface": "in Zor"}],
        },
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode() + b"\xff\n\nnothing\n"
    (tmp_path / "set_a.v1.jsonl.gz").write_bytes(gzip.compress(data))
    found = read(spark, tmp_path)
    assert [field.name for field in found.records.schema] == LINKED_TEXTS.names
    records = by_id(found)
    assert records["1"] == ("mine", "in Zor", [3], [6], ["Zor_Bay"], ["Place"], ["Zor_Bay"], 0)
    assert records["4"][-1] == 1
    (hashed,) = set(records) - {"1", "4"}
    assert records[hashed][:4] == ("set_a", "𝒜 Zor", [2], [5])
    assert by_id(read(spark, tmp_path)) == records
    assert bad(found) == [
        ("line 3, mention 1", "mention outside of the text"),
        ("line 5", "not UTF-8"),
        ("line 6", "empty line"),
        ("line 7", "bad JSON"),
    ]


@pytest.mark.spark
def test_rows_of_y_erd(spark: SparkSession, tmp_path: Path):
    rows = ["difficulty\tqid\tquery\tmention\tentity\tset_id\tfreebase_id"]
    rows += [f"e\tq{number}\tno mention\t\t\t\t" for number in range(12)]
    rows += [
        "e\tq20\tbay of zor\tzor\t<dbpedia:Zor>\t0\t/m/1",
        "e\tq20\tbay of zor\tbay of zor\t<dbpedia:zor_Bay>\t0\t/m/2",
        "e\tq21\tother\tzor\t<dbpedia:Zor>\t0\t/m/1",
        "e\tq22\tone\t\t\t\t",
        "e\tq22\ttwo\t\t\t\t",
        "e\t\tno id\t\t\t\t",
        "short\tline",
    ]
    (tmp_path / "rows.tsv").write_text("\n".join(rows))
    found = read(spark, tmp_path / "rows.tsv", format="yerd")
    records = by_id(found)
    assert set(records) == {f"q{number}" for number in [*range(12), 20]}
    expected = ("rows", "bay of zor", [0], [10], ["Zor_Bay"], [None], ["Zor", "Zor_Bay"], 1)
    assert records["q20"] == expected
    assert records["q7"] == ("rows", "no mention", [], [], [], [], [], 0)
    assert bad(found) == [
        ("line 16, mention 1", "mention that is not in the text"),
        ("line 17", "two texts of one id"),
        ("line 19", "bad id"),
        ("line 20", "wrong number of columns"),
    ]


@pytest.mark.spark
def test_queries_and_annotations_in_two_files(spark: SparkSession, tmp_path: Path):
    (tmp_path / "q.txt").write_bytes(b"\r\nT-1\tcold zor\r\nT-2\tnothing\r\n")
    said = b"T-1\t0\tzor\tZOR\t1\r\nT-1\t1\tCold\tcold\t1\r\nT-9\t0\tZor\tzor\t1\r\n"
    (tmp_path / "a.txt").write_bytes(said)
    paths = {"format": "erd", "annotations": str(tmp_path / "a.txt")}
    found = read(spark, tmp_path / "q.txt", **paths)
    assert by_id(found) == {
        "T-1": ("q", "cold zor", [0, 5], [4, 8], ["Cold", "Zor"], [None] * 2, ["Zor", "Cold"], 0),
        "T-2": ("q", "nothing", [], [], [], [], [], 0),
    }
    assert bad(found) == [("line 1", "empty line"), ("line 3", "annotation of an unknown text")]


@pytest.mark.spark
def test_questions_and_what_another_system_said(spark: SparkSession, tmp_path: Path):
    (tmp_path / "q.tsv").write_text(
        "qid\tquestion\tnormalized\nW-0\twho is n. zor?\twho is n. zor\nW-1\twhy?\twhy\n"
    )
    items = [
        {"utterance": "who is n. zor?", "url": "http://f.example/view/en/n_zor"},
        {"utterance": "what?", "url": "http://f.example/view/en/what"},
        {"utterance": "why?"},
        7,
    ]
    (tmp_path / "gold.json").write_text(json.dumps(items, indent=1))
    paths = {"format": "webquestions", "annotations": str(tmp_path / "gold.json")}
    found = read(spark, tmp_path / "q.tsv", **paths)
    assert by_id(found) == {
        "W-0": ("q", "who is n. zor?", [], [], [], [], ["n_zor"], 0),
        "W-1": ("q", "why?", [], [], [], [], [], 0),
    }
    assert bad(found) == [
        ("item 2", "annotation of an unknown text"),
        ("item 3", "no question with an address"),
        ("item 4", "no question with an address"),
    ]
    (tmp_path / "gold.json").write_text('[{"utterance": ')
    assert bad(read(spark, tmp_path / "q.tsv", **paths)) == [("byte 0", "bad JSON")]

    (tmp_path / "links.tsv").write_text(
        "qid\tmention\tstart\tlength\tfreebase_mid\tentity_name\tscore\n"
        "W-0\tzor\t11\t3\t/m/1\tZor_%28bay%29\t1.5\n"
        "W-0\tn . zor\t7\t7\t/m/2\tN._Zor\t20.5\n"
        "W-0\tzor\t11\t3\t/m/1\tZor\tnan\n"
        "W-1\tzor\t0\t3\t/m/1\tZor\t1\n"
    )
    system = SystemLinksSettings(
        path=str(tmp_path / "links.tsv"), questions=str(tmp_path / "q.tsv")
    )
    links = read_system_links(spark, system, LIMITS)
    assert [field.name for field in links.records.schema] == SYSTEM_LINKS.names
    assert by_id(links) == {
        "W-0": ("who is n. zor?", [7, 10], [13, 13], ["N._Zor", "Zor_(bay)"], [20.5, 1.5])
    }
    assert bad(links) == [
        ("line 3, mention 1", "mention that is not in the text"),
        ("line 4", "bad score"),
    ]


@pytest.mark.spark
def test_nothing_to_read_is_one_line(spark: SparkSession, tmp_path: Path):
    with pytest.raises(UsageError, match=re.escape("CONF06: cannot read texts.path = ")):
        read(spark, tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "erd"}, "format erd needs the key annotations"),
        ({"annotations": "x"}, "format json has no key annotations"),
        ({"format": "conll"}, "Input should be 'json', 'elevant'"),
    ],
)
def test_settings_that_do_not_fit(options: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        LinkedTextsSettings(path="x", **options)


def counts(found: Read) -> tuple[int, int, int, int, int]:
    """Count texts, those with a mention, mentions, linked ones, dropped ones."""
    linked = F.filter("mention_entities", lambda entity: entity.isNotNull())
    row = found.records.agg(
        F.count("*"),
        F.count_if(F.size("mention_starts") > 0),
        F.sum(F.size("mention_starts")),
        F.sum(F.size(linked)),
        F.sum("dropped_mentions"),
    ).collect()[0]
    return tuple(row)


# Numbers of the sets' descriptions, less mentions that overlap a better one (the last number). Two
# entities of neel2014_train are garbled addresses and NIL here; two texts of meij2012 are empty.
@pytest.mark.spark
@pytest.mark.corpus
@pytest.mark.parametrize(
    ("path", "options", "expected", "quarantined"),
    [
        ("tweet_el/neel2016_train.jsonl.gz", {}, (4864, 3508, 7618, 5487, 26), {}),
        ("tweet_el/neel2016_dev.jsonl.gz", {}, (100, 100, 338, 253, 0), {}),
        ("tweet_el/neel2014_train.jsonl.gz", {}, (2339, 1586, 3819, 3817, 0), {}),
        ("tweet_el/twitterneed_brian.jsonl.gz", {}, (1603, 927, 1585, 1232, 0), {}),
        ("tweet_el/twitterneed_mena.jsonl.gz", {}, (162, 162, 510, 482, 0), {}),
        ("tweet_el/meij2012.jsonl.gz", {}, (500, 0, 0, 0, 0), {"empty text": 2}),
        ("tweet_el/d*.gz", {"format": "elevant"}, (183, 156, 292, 210, 0), {}),
        (
            "query_el/webis_*_train.jsonl.gz",
            {"format": "webis"},
            (1426, 1067, 1358, 1340, 1180),
            {},
        ),
        ("query_el/webis_*_test.jsonl.gz", {"format": "webis"}, (384, 286, 366, 359, 526), {}),
        ("query_el/gerdaq_*.jsonl.gz", {}, (992, 887, 1703, 1703, 0), {}),
        ("query_el/kdd_*.jsonl.gz", {}, (1596, 706, 890, 675, 0), {}),
        ("query_el/y_erd_trec_sessions.tsv.gz", {"format": "yerd"}, (1255, 489, 557, 557, 8), {}),
        (
            "query_el/erd2014_Trec_beta.query.txt.gz",
            {"format": "erd", "annotations": "query_el/erd2014_Trec_beta.annotation.txt.gz"},
            (91, 44, 51, 51, 5),
            {"empty line": 1},
        ),
        (
            "smart_webquestions/test_questions.tsv.gz",
            {
                "format": "webquestions",
                "annotations": "smart_webquestions/webquestions.examples.test.json.gz",
            },
            (2032, 0, 0, 0, 0),
            {},
        ),
    ],
)
def test_real_sets(
    spark: SparkSession,
    corpora: Path,
    path: str,
    options: dict[str, str],
    expected: tuple[int, ...],
    quarantined: dict[str, int],
):
    if "annotations" in options:
        options = options | {"annotations": str(corpora / options["annotations"])}
    found = read(spark, corpora / path, **options)
    assert counts(found) == expected
    assert count_reasons(found.quarantine) == quarantined


@pytest.mark.spark
@pytest.mark.corpus
def test_links_of_the_original_system(spark: SparkSession, corpora: Path):
    folder = corpora / "smart_webquestions"
    source = SystemLinksSettings(
        path=str(folder / "test_smart_links.tsv.gz"),
        questions=str(folder / "test_questions.tsv.gz"),
    )
    found = read_system_links(spark, source, LIMITS)
    sizes = found.records.select(F.size("mention_starts").alias("n"))
    assert sizes.agg(F.count("*"), F.count_if(F.col("n") > 0), F.sum("n")).collect()[0] == (
        2032,
        2028,
        4801,
    )
    assert count_reasons(found.quarantine) == {}
