"""Reading knowledge: sources that say the same, bad lines, and words counted in parts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from corpusmill.errors import DataError
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.tasks.knowledge import read_knowledge
from corpusmill.linking.tasks.settings import LinesSettings, LinkingSettings
from corpusmill.progress import Progress

pytestmark = pytest.mark.spark

LEXICON = "surface\tentity\tcount\nRome\tRome\t3\nRoma\tRome\t1\nthe Big Town\tNew_York\t2\n"
LINKS = "source\ttarget\nRome\tNew_York\n"
EDITED = b"The town of Rome.\n\nWe saw the Big Town, the big town\nbad \xff line\n"
COMMON = b"town\nbig_town\n\x01\n\n"


@pytest.fixture
def context(spark: Any) -> Iterator[Any]:
    kept: list[Any] = []

    def cached(df: Any) -> Any:
        kept.append(df.persist())
        return kept[-1]

    metrics: dict[str, Any] = {}
    run = SimpleNamespace(write_metrics=metrics.update)
    yield SimpleNamespace(spark=spark, progress=Progress(), metrics=metrics, run=run, cached=cached)
    for df in kept:
        df.unpersist()


def conf(place: Path, lexicons: int = 1, **more: Any) -> LinkingSettings:
    files = {"lexicon.tsv": LEXICON.encode(), "links.tsv": LINKS.encode()}
    files |= {"edited.txt": EDITED, "common.txt": COMMON}
    for name, content in files.items():
        (place / name).write_bytes(content)
    table = {"path": str(place / "lexicon.tsv"), "header": True, "count": "count"}
    links = {"path": str(place / "links.tsv"), "header": True}
    settings = {
        "name": "reading",
        "output": str(place / "out"),
        "knowledge": {
            "lexicon": [table] * lexicons,
            "links": [links] * lexicons,
            "edited": [{"path": str(place / "edited.txt")}],
            "common": [{"path": str(place / "common.txt")}],
        },
        "input": {"train": [{"path": "unread"}]},
        "quarantine": {"max_share": 0.5},
    }
    return LinkingSettings.model_validate(settings | more)


def read(context: Any, settings: LinkingSettings) -> tuple[Knowledge, list[Any]]:
    context.settings = settings
    texts = context.spark.createDataFrame([("I saw the Big Town",), (None,)], "text string")
    knowledge, bad = read_knowledge(context, texts)
    return knowledge, bad.orderBy("source", "position").collect()


def same(one: Knowledge, other: Knowledge) -> bool:
    return all(np.array_equal(array, other.arrays()[name]) for name, array in one.arrays().items())


@pytest.mark.slow
def test_counts_of_several_sources_are_summed(context: Any, tmp_path: Path) -> None:
    once, _ = read(context, conf(tmp_path))
    twice, _ = read(context, conf(tmp_path, lexicons=2))
    assert np.array_equal(once.lexicon.surfaces.hashes, twice.lexicon.surfaces.hashes)
    assert np.array_equal(2 * once.lexicon.counts, twice.lexicon.counts)
    assert np.array_equal(2 * once.lexicon.written, twice.lexicon.written)
    assert np.array_equal(once.entities.links, twice.entities.links)


def test_bad_lines_are_kept_and_counted_and_empty_ones_passed_over(
    context: Any, tmp_path: Path
) -> None:
    knowledge, bad = read(context, conf(tmp_path))
    found = {(Path(row["source"]).name, row["position"], row["reason"]) for row in bad}
    assert found == {
        ("edited.txt", "line 4", "not UTF-8"),
        ("common.txt", "line 3", "control characters"),
    }
    assert context.metrics["knowledge"]["quarantined"] == 2
    assert context.metrics["knowledge"]["megabytes"] == knowledge.nbytes / 1e6


@pytest.mark.slow
def test_too_many_bad_lines_end_the_job(context: Any, tmp_path: Path) -> None:
    settings = conf(tmp_path, quarantine={"max_share": 0.3})
    with pytest.raises(DataError, match=r"DATA02: 1 of 3 .* knowledge.edited.0 .* not UTF-8 1"):
        read(context, settings)


@pytest.mark.slow
def test_words_are_counted_alike_in_parts(context: Any, tmp_path: Path) -> None:
    whole, _ = read(context, conf(tmp_path))
    parted, _ = read(context, conf(tmp_path, broadcast_mb=0.0))
    assert same(whole, parted)
    assert whole.words.counts.sum() > 5


def test_a_pattern_without_a_group_is_refused() -> None:
    with pytest.raises(ValidationError, match="there must be a group"):
        LinesSettings(path="x", pattern="abc")
