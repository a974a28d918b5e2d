"""Every conf that comes with the project is one that its job accepts."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpusmill.alignment.pipeline import JOB as ALIGNMENT
from corpusmill.boosting.pipeline import JOB as BOOSTING
from corpusmill.coreference.pipeline import JOB as COREFERENCE
from corpusmill.corpora.pipeline import JOB as INGEST
from corpusmill.fragments.pipeline import JOB as FRAGMENTS
from corpusmill.linking.pipeline import JOB as LINKING
from corpusmill.runner import Job
from corpusmill.settings import load

CONFS = Path(__file__).resolve().parents[1] / "conf"
JOBS: dict[str, Job] = {
    job.name: job for job in (ALIGNMENT, BOOSTING, COREFERENCE, FRAGMENTS, INGEST, LINKING)
}
PARTS = {"linking/knowledge.yaml"}
"""What confs extend."""
NAMES = sorted({str(path.relative_to(CONFS)) for path in CONFS.rglob("*.yaml")} - PARTS)
ON_CORPORA = [name for name in NAMES if "${CORPUSMILL_DATA}" in (CONFS / name).read_text()]


def read(name: str) -> Any:
    """Load a conf into the settings of its job."""
    return load(str(CONFS / name), [], JOBS[name.partition("/")[0]].settings)


def paths(part: Any) -> Iterator[str]:
    """Yield whatever a conf calls a path."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part):
        if key == "path":
            yield value
        elif isinstance(value, dict | list):
            yield from paths(value)


def test_every_corpus_has_its_conf() -> None:
    texts = ("query_log", "questions", "reuters")
    trees = ("trec_qc", "srl_boundary", "srl_boundary_words", "srl_roles")
    corpora = {
        "alignment": texts,
        "coreference": ("gum", "litbank"),
        "fragments": trees,
        "ingest": (*texts, "tweets", "webquestions"),
        "linking": ("queries", "tweets", "webquestions"),
    }
    expected = {f"{job}/{corpus}.yaml" for job, names in corpora.items() for corpus in names}
    assert set(ON_CORPORA) == expected
    assert set(NAMES) - expected == {f"{job}/demo.yaml" for job in JOBS if job != "ingest"}


@pytest.mark.parametrize("name", NAMES)
def test_the_job_accepts_the_conf(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSMILL_DATA", "/corpora")
    conf = read(name)
    assert conf.name == Path(name).stem
    named = list(paths(conf.model_dump()))
    assert named
    assert all(path.startswith("/corpora/") for path in named) == (name in ON_CORPORA)


def test_no_two_confs_write_to_one_output() -> None:
    outputs = [read(name).output for name in NAMES]
    assert len(set(outputs)) == len(outputs)


@pytest.mark.parametrize("job", ["alignment", "boosting", "coreference", "fragments", "linking"])
def test_the_demo_needs_nothing_but_the_package(job: str) -> None:
    named = list(paths(read(f"{job}/demo.yaml").model_dump()))
    assert len(named) >= 2
    assert [path for path in named if not Path(path).is_file()] == []


@pytest.mark.corpus
@pytest.mark.parametrize("name", ON_CORPORA)
def test_the_corpora_have_the_files(
    name: str, corpora: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUSMILL_DATA", str(corpora))
    named = list(paths(read(name).model_dump()))
    assert [path for path in named if not glob.glob(path)] == []
