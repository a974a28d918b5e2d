"""Bad logs, lists and models, skew, crashes: one clear line or quarantine, and nothing is lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from corpusmill import storage
from corpusmill.alignment.pipeline import JOB
from corpusmill.errors import DataError
from corpusmill.runner import run_job
from corpusmill.session import TOLD_BY_THE_JOB
from corpusmill.storage import Checkpoints

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CUES = {"animal": ["zoo", "fur"], "car": ["engine", "tyre"], "film": ["trailer", "cast"]}
ENTITIES = {"Jaguar": ["animal", "car"], "Fox": ["animal", "film"], "Falcon": ["car", "film"]}
CONF = """
name: bad
output: {place}/out
input:
  kind: query_log
  sources: [{{path: "{place}/log.tsv", header: true, count: count}}]
  entities: {{path: "{place}/entities.tsv", header: true}}
model: {{label_sparsity: inf, alpha: 4.0, smoothing: 5.0, max_iter: 2, tol: 0.0}}
vocabulary: {{min_count: 1}}
partitions: 2
tracking: {{enabled: false}}
"""
Run = Callable[..., tuple[int, str]]


def log_lines() -> list[str]:
    return [
        f"{more}{name.lower()} {cue}\t{1 + len(cue)}\n"
        for name, classes in ENTITIES.items()
        for kind, more in product(classes, ("", "new ", "best "))
        for cue in CUES[kind]
    ]


LOG = "query\tcount\n" + "".join(log_lines())
LIST = "entity\tclass\n" + "".join(f"{e}\t{c}\n" for e, cs in ENTITIES.items() for c in cs)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good log, a good list and a conf."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "log.tsv").write_text(LOG)
    (folder / "entities.tsv").write_text(LIST)
    (folder / "conf.yaml").write_text(CONF.format(place=folder))
    return folder


@pytest.fixture
def run(spark: Any, place: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Run the job; return its exit status and its last line, after a look at the others."""

    def job(action: str, *words: str) -> tuple[int, str]:
        capfd.readouterr()
        status = run_job(JOB, [action, "--conf", str(place / "conf.yaml"), *words], spark)
        said = capfd.readouterr().err
        assert "Traceback" not in said
        return status, said.strip().splitlines()[-1]

    return job


@pytest.fixture(scope="module")
def trained(spark: Any, place: Path) -> Path:
    """An output with a model."""
    assert run_job(JOB, ["train", "--conf", str(place / "conf.yaml")], spark) == 0
    return place / "out"


def metrics(output: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((output / "metrics.json").read_text())
    return found


def source(place: Path, content: bytes, name: str = "bad.tsv", **layout: Any) -> str:
    """Write a log of this test and give the word that names it."""
    (place / name).write_bytes(content)
    given = {"path": str(place / name), "header": True, "count": "count", **layout}
    return f"input.sources={json.dumps([given])}"


def entity_list(place: Path, content: str, name: str = "bad-list.tsv") -> str:
    (place / name).write_text(content)
    return f"input.entities.path={place / name}"


JUNK = np.random.default_rng(5).bytes(60_000)
NO_RECORD = "DATA03: the query log has no usable record; none of its queries holds an entity"
BAD_LOGS: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "junk": (JUNK, {"header": False, "query": 0, "count": None}, "more than quarantine.max_share"),
    "junk under a header": (LOG.encode() + JUNK, {}, "of the query log went to quarantine"),
    "empty": (b"", {}, NO_RECORD),
    "header alone": (b"query\tcount\n", {}, NO_RECORD),
    "nothing but entities": (b"query\tcount\nfox\t3\n", {}, "no token occurs in 1 instances"),
    "counts below one": (b"query\tcount\nfox fur\t-1\nfox zoo\t0\n", {}, "reasons: bad count 2"),
    "counts beyond 64 bits": (
        b"query\tcount\nfox fur\t9223372036854775807\nfox zoo\t9223372036854775807\n",
        {},
        "DATA01: the counts: they add up to more than 64 bits hold",
    ),
}


@pytest.mark.parametrize("name", BAD_LOGS)
def test_bad_log_is_one_line_and_the_output_stays(
    name: str, place: Path, trained: Path, run: Run
) -> None:
    content, layout, message = BAD_LOGS[name]
    before = (trained / "current.json").read_bytes()
    status, line = run("train", source(place, content, **layout))
    assert (status, message in line) == (1, True), line
    assert (trained / "current.json").read_bytes() == before


BROKEN_FILES: dict[str, tuple[str, bytes, dict[str, Any], str]] = {
    "gzip cut short": (
        "cut.tsv.gz",
        gzip.compress(LOG.encode() + JUNK)[:20_000],
        {},
        "damaged or cut short",
    ),
    "no gzip at all": ("no.tsv.gz", LOG.encode(), {}, "damaged or cut short"),
    "Parquet of zero bytes": ("z.parquet", b"", {"format": "parquet"}, "zero bytes"),
}


@pytest.mark.parametrize("name", BROKEN_FILES)
def test_broken_file_is_named(name: str, place: Path, trained: Path, run: Run) -> None:
    file, content, layout, message = BROKEN_FILES[name]
    before = (trained / "current.json").read_bytes()
    status, line = run("predict", source(place, content, file, **layout))
    assert status in (1, 2)
    assert file in line
    assert message in line
    assert (trained / "current.json").read_bytes() == before


def test_a_file_that_changes_between_two_jobs_of_a_session(place: Path, run: Run) -> None:
    """Nothing that the first job cached is taken for what the second one reads."""
    for lines in (b"fox fur\t1\n", b"fox fur\t1\nfox cast\t5\nhello\t1\n"):
        words = [source(place, b"query\tcount\n" + lines), f"output={place}/twice"]
        assert run("train", *words, "model.max_iter=0")[0] == 0
        assert metrics(place / "twice")["input.lines"] == lines.count(b"\n")


def test_a_failed_task_is_told_by_the_job_alone(spark: Any) -> None:
    log4j = spark._jvm.org.apache.logging.log4j
    assert {log4j.LogManager.getLogger(each).getLevel().name() for each in TOLD_BY_THE_JOB} == {
        "OFF"
    }


BAD_LISTS = {
    "empty": ("", NO_RECORD),
    "punctuation alone": ("entity\tclass\n!!!\tcar\n--\tcar\n", "reasons: no letter or digit 2"),
}


@pytest.mark.parametrize("name", BAD_LISTS)
def test_list_without_entities(name: str, place: Path, run: Run) -> None:
    content, message = BAD_LISTS[name]
    status, line = run("train", entity_list(place, content), f"output={place}/none")
    assert status == 1
    assert message in line


def test_good_and_bad_lines_add_up(place: Path, run: Run) -> None:
    """Junk of all kinds under the limit, among entities in several spellings."""
    bad = [b"fox \xff fur\t2\n", b"fox zoo\t-3\n", b"\n", b"fox\n", b"fox \x01 fur\t1\n"]
    long = b"fox " + b"fur " * 50_000 + b"\t1\n"
    also = ["FOX\tfilm\n", "fox\tboat\n", "Fóx\tanimal\n", "!!\tcar\n", "Never seen\tmoon\n"]
    output = place / "sum"
    words = [source(place, LOG.encode() + b"".join(bad) + long), "quarantine.max_share=0.5"]
    words += [entity_list(place, LIST + "".join(also)), f"output={output}"]
    for action in ("train", "predict"):
        assert run(action, *words)[0] == 0
    found, predictions = metrics(output), pd.read_parquet(output / "predictions")
    quarantine = pd.read_parquet(output / "quarantine")
    of_the_log = quarantine["source"].str.endswith("bad.tsv")
    assert found["input.lines"] + of_the_log.sum() == len(log_lines()) + len(bad) + 1
    assert quarantine[~of_the_log]["reason"].to_list() == ["no letter or digit"]
    assert found["input.quarantined"] == len(quarantine) == 7
    assert set(predictions["entity"]) == {"FOX", "Falcon", "Jaguar"}
    foxes = predictions[predictions["entity"] == "FOX"]
    assert set(foxes["classes"].explode()) <= {"animal", "boat", "film"}


def test_skew_and_names_that_look_like_parts(place: Path, run: Run) -> None:
    """Half of all contexts belong to one entity, which is cut; others are called as its parts."""
    contexts = [f"fox w{n}\t1\n" for n in range(1500)]
    others = [f"fox {n % 3} w{n}\t1\n" for n in range(1500)]
    parts = "".join(f"Fox#{n}\tcar\nFox#{n}\tfilm\n" for n in range(3))
    output = place / "skew"
    words = [source(place, ("query\tcount\n" + "".join(contexts + others)).encode())]
    words += [entity_list(place, LIST + parts), f"output={output}", "max_instances=100"]
    for action in ("train", "predict"):
        assert run(action, *words, "model.max_iter=1")[0] == 0
    predictions = pd.read_parquet(output / "predictions")
    assert len(predictions) == predictions["query"].nunique() == 3000
    assert predictions.groupby("entity").size().to_dict() == {
        "Fox": 1500,
        **{f"Fox#{n}": 500 for n in range(3)},
    }
    assert predictions["classes"].notna().all()


def test_more_partitions_than_queries(place: Path, run: Run) -> None:
    log = source(place, b"query\tcount\nfox fur\t1\njaguar tyre\t2\nfox cast\t1\n")
    words = [log, f"output={place}/few", "partitions=9"]
    for action in ("train", "predict"):
        assert run(action, *words, "model.max_iter=1")[0] == 0
    assert pd.read_parquet(place / "few" / "predictions")["classes"].notna().all()


def test_predict_before_train(place: Path, run: Run) -> None:
    status, line = run("predict", f"output={place}/untrained")
    assert status == 1
    assert line == f"error: STORE02: {place}/untrained has no model yet; run train first"


def test_classes_that_the_model_lacks(place: Path, trained: Path, run: Run) -> None:
    """They cannot be predicted; an entity with no other has all of the model's."""
    names = "entity\tclass\nFox\tmoon\nFox\tplanet\nFalcon\tcar\nFalcon\tmoon\n"
    assert run("predict", entity_list(place, names))[0] == 0
    found = pd.read_parquet(trained / "predictions").dropna(subset="entity")
    assert set(found["entity"]) == {"Fox", "Falcon"}
    assert set(found[found["entity"] == "Falcon"]["classes"].explode()) == {"car"}
    assert found[found["entity"] == "Fox"]["classes"].map(len).between(1, 3).all()
    assert found["probabilities"].map(sum).between(0.99, 1 + 1e-9).all()


def test_gold_with_unknown_classes_counts_as_wrong(place: Path, trained: Path, run: Run) -> None:
    gold = place / "gold.tsv"
    gold.write_text("query\tclass\nfox fur\tmoon\nfox cast\tfilm\nnot in the log\tfilm\n")
    settings = {"path": str(gold), "header": True, "entity": "query"}
    assert run("evaluate", f"input.gold={json.dumps(settings)}")[0] == 0
    assert metrics(trained)["evaluate.queries"] == 2
    assert metrics(trained)["dba.accuracy_at_3"] <= 0.5


@pytest.mark.parametrize("content", [b"", b"PK\3\4 and no more"])
def test_tampered_model(content: bytes, place: Path, trained: Path, run: Run) -> None:
    arrays = Path(storage.resolve(str(trained), "model")) / "arrays.npz"
    whole = arrays.read_bytes()
    arrays.write_bytes(content)
    try:
        for words in (["predict"], ["train", f"output={place}/warm", f"warm_start={trained}"]):
            status, line = run(*words, "known_labels=false")
            assert status == 1
            assert "MODEL02: " in line
            assert "arrays.npz does not match its checksum" in line
    finally:
        arrays.write_bytes(whole)


def test_output_in_use(trained: Path, run: Run) -> None:
    other = storage.Run.open(str(trained), "train", "other", "0" * 64)
    try:
        status, line = run("predict", "ranked_classes=2")
    finally:
        other.close()
    assert status == 1
    assert "STORE04: another job is writing under" in line


def test_a_killed_run_is_resumed_and_ends_with_the_same_bytes(
    place: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["model.max_iter=6", "checkpoint_every=2"]
    outputs = [place / "uninterrupted", place / "resumed"]
    assert run("train", *words, f"output={outputs[0]}")[0] == 0
    seen: list[int] = []
    save = Checkpoints.save

    def dies_at_5(self: Checkpoints, iteration: int, *state: Any) -> bool:
        seen.append(iteration)
        if seen == [1, 2, 3, 4, 5]:
            raise DataError("DATA01", source="the test", problem="the power fails")
        return save(self, iteration, *state)

    monkeypatch.setattr(Checkpoints, "save", dies_at_5)
    assert run("train", *words, f"output={outputs[1]}") == (
        1,
        "error: DATA01: the test: the power fails",
    )
    assert not (outputs[1] / "model").exists()
    assert run("train", *words, f"output={outputs[1]}")[0] == 0
    assert seen == [1, 2, 3, 4, 5, 5, 6]
    models = [Path(storage.resolve(str(output), "model")) for output in outputs]
    files = [{file.name: file.read_bytes() for file in model.iterdir()} for model in models]
    assert files[0] == files[1]
    assert not list(outputs[1].rglob("checkpoints"))
