"""The coreference job on the embedded sample."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from corpusmill import storage
from corpusmill.coreference.errors import TYPES
from corpusmill.coreference.fitting import fit_resolver
from corpusmill.coreference.learning import Progress
from corpusmill.coreference.model import PREDICTIONS, CoreferenceModel
from corpusmill.coreference.pipeline import JOB
from corpusmill.coreference.preparation import Preparation
from corpusmill.coreference.tasks import training
from corpusmill.corpora.coreference_formats import parse_file
from corpusmill.evaluation.coreference import Mentions, coreference_metrics, count_coreference
from corpusmill.frames import list_offsets
from corpusmill.runner import run_job
from tests.jobs import ROOT, demo_arguments, metrics_of, model_files, run_all

SAMPLES = ROOT / "lib" / "corpusmill" / "corpora" / "samples"
TEST = SAMPLES / "coreference_test.conll"
METRICS = ("muc", "b3", "ceafm", "ceafe", "blanc", "lea", "mentions")
PARTS = ("recall", "precision", "f1")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("coreference")


@pytest.fixture(scope="module")
def arguments(place: Path) -> list[str]:
    return demo_arguments("coreference/demo.yaml", place)


@pytest.fixture(scope="module")
def demo(spark: Any, place: Path, arguments: list[str]) -> Iterator[Path]:
    yield from run_all(JOB, arguments, place, spark)


Rows = dict[tuple[str, int], dict[str, Any]]


def documents_of(*files: Path) -> Rows:
    rows = [row for file in files for row in parse_file(file)]
    return {(row["document_id"], row["part"]): row for row in rows}


def written(output: Path) -> Rows:
    """The documents that predict wrote, which a reader of the format takes without a fault."""
    return documents_of(*sorted(Path(storage.resolve(str(output), "documents")).glob("part-*")))


def mentions_of(rows: Rows) -> Mentions:
    found = [rows[key] for key in sorted(rows)]
    columns = [
        pa.array([row[f"mention_{name}"] for row in found], pa.list_(pa.int64()))
        for name in ("starts", "ends", "clusters")
    ]
    return Mentions(list_offsets(columns[0]), *(np.asarray(each.flatten()) for each in columns))


def test_the_sample_is_that_of_the_script() -> None:
    made = runpy.run_path(str(ROOT / "scripts" / "make_coreference_sample.py"))["samples"]()
    for name, lines in made.items():
        assert (SAMPLES / name).read_text("utf-8") == "\n".join(lines) + "\n"


def test_metrics_are_those_of_the_written_documents(demo: Path) -> None:
    gold, predicted = documents_of(TEST), written(demo)
    assert gold.keys() == predicted.keys()
    for key, row in gold.items():
        assert row["words"] == predicted[key]["words"]
    expected = coreference_metrics(count_coreference(mentions_of(gold), mentions_of(predicted)))
    found = metrics_of(demo)
    assert found["conll_avg"] == pytest.approx(expected["conll_avg"])
    for metric in METRICS:
        for part in PARTS:
            assert found[f"{metric}.{part}"] == pytest.approx(expected[f"{metric}.{part}"])
            assert found[f"sample.{metric}.{part}"] == found[f"{metric}.{part}"]
    assert found["conll_avg"] > 0.8
    assert found["predict.mentions"] == len(mentions_of(predicted).starts)


def test_antecedents_make_the_clusters(demo: Path) -> None:
    predictions = pd.read_parquet(demo / "predictions")
    assert predictions["error"].isna().all()
    for _, row in predictions.iterrows():
        clusters = list[int]()
        for number, antecedent in enumerate(row["predicted_antecedents"]):
            assert antecedent < number
            new = max(clusters, default=-1) + 1
            clusters.append(clusters[antecedent] if antecedent >= 0 else new)
        assert clusters == list(row["predicted_clusters"])
        assert len(clusters) == len(row["predicted_scores"])


def test_errors_are_counted_by_types_and_shown(demo: Path, place: Path) -> None:
    found, gold = metrics_of(demo), mentions_of(documents_of(TEST))
    clusters = {
        (document, cluster)
        for document, (begin, end) in enumerate(zip(gold.offsets, gold.offsets[1:], strict=False))
        for cluster in gold.clusters[begin:end].tolist()
    }
    assert found["links.recall.all"] == len(gold.starts) - len(clusters)
    for side in ("recall", "precision"):
        for part in ("errors", "links"):
            cells = [found[f"{part}.{side}.{a}.{b}"] for a in TYPES for b in TYPES]
            assert sum(cells) == found[f"{part}.{side}.all"]
        assert 0 < found[f"errors.{side}.all"] < found[f"links.{side}.all"]
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    evaluated: Any = next(run for run in runs if run.info.run_name == "demo evaluate")
    page = mlflow.artifacts.load_text(f"{evaluated.info.artifact_uri}/pages/errors.html")
    assert "<h1>Coreference: sample</h1>" in page
    assert page.count("<article>") == 3
    assert page.count('<table class="examples">') == sum(
        found[f"errors.{side}.{a}.{b}"] > 0
        for side in ("recall", "precision")
        for a in TYPES
        for b in TYPES
    )


def test_the_heaviest_features_are_logged_in_words(demo: Path, place: Path) -> None:
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    evaluated: Any = next(run for run in runs if run.info.run_name == "demo evaluate")
    logged = mlflow.artifacts.load_dict(f"{evaluated.info.artifact_uri}/tables/features.json")
    table = pd.DataFrame(logged["data"], columns=logged["columns"])
    assert 200 <= len(table) <= 400
    assert table["weight"].abs().is_monotonic_decreasing
    assert table["values"].str.startswith(("ana.", "ant.", "pair.", "cluster.")).any()
    assert not table["values"].str.contains("#").any()
    share = metrics_of(demo)["features.collisions"]
    assert 0.0 <= share < 0.1


def test_a_saved_model_and_its_pyfunc_resolve_alike(demo: Path, place: Path) -> None:
    model = CoreferenceModel.load(storage.resolve(str(demo), "model"))
    frame = pd.DataFrame(parse_file(TEST)).sort_values("document_id", ignore_index=True)
    alone = model.predict_frame(frame)
    stored = pd.read_parquet(demo / "predictions").sort_values("document_id", ignore_index=True)
    mlflow.set_tracking_uri(f"sqlite:///{place}/mlflow.db")
    runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
    trained: Any = next(run for run in runs if run.info.run_name == "demo train")
    logged = mlflow.search_logged_models([trained.info.experiment_id], output_format="list")
    served = mlflow.pyfunc.load_model(logged[0].model_uri).predict(frame.head(3))
    for name in PREDICTIONS.names:
        for number, value in enumerate(alone[name]):
            assert list(value) == list(stored[name][number])
            if number < len(served):
                assert list(value) == list(served[name][number])


def test_a_finished_run_is_not_computed_again(
    demo: Path, arguments: list[str], spark: Any, capfd: Any
) -> None:
    before = model_files(str(demo))
    assert run_job(JOB, ["train", *arguments], spark) == 0
    assert "already finished" in capfd.readouterr().err
    assert model_files(str(demo)) == before


@pytest.mark.slow
def test_a_killed_training_is_resumed(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch, demo: Path
) -> None:
    arguments = ["train", *demo_arguments("coreference/demo.yaml", tmp_path)]
    arguments += ["develop_every=8", "tracking.enabled=false"]
    begun = []

    def killed(rows: Any, settings: Any, seed: int, on_pass: Any, begin: Any) -> Any:
        begun.append(0 if begin is None else len(begin.losses))

        def stop(progress: Progress, preparation: Preparation) -> None:
            on_pass(progress, preparation)
            if len(progress.losses) == 5:
                raise KeyboardInterrupt

        return fit_resolver(rows, settings, seed, stop, begin)

    monkeypatch.setattr(training, "fit_resolver", killed)
    assert run_job(JOB, arguments, spark) == 1
    assert not (tmp_path / "out" / "current.json").exists()
    assert run_job(JOB, arguments, spark) == 1
    assert begun == [0, 4]
    monkeypatch.undo()
    assert run_job(JOB, arguments, spark) == 0
    assert model_files(str(tmp_path / "out")) == model_files(str(demo))


@pytest.mark.slow
def test_one_partition_learns_about_the_same(tmp_path: Path, spark: Any, demo: Path) -> None:
    arguments = demo_arguments("coreference/demo.yaml", tmp_path)
    words = ["train", *arguments, "model.partitions=1", "develop_every=8", "tracking.enabled=false"]
    assert run_job(JOB, words, spark) == 0
    one = metrics_of(tmp_path / "out")["develop.conll_avg.8"]
    assert one == pytest.approx(metrics_of(demo)["develop.conll_avg.8"], abs=0.08)


def line(number: int, word: str, tag: str, parse: str, cell: str, speaker: str = "-") -> str:
    return f"x/1\t0\t{number}\t{word}\t{tag}\t{parse}\t-\t-\t-\t{speaker}\t*\t{cell}"


def record(name: str, *lines: str) -> str:
    return "\n".join([f"#begin document ({name}); part 000", *lines, "", "#end document", ""])


GOOD = (
    line(0, "Ada", "NNP", "(S(NP*)", "(1)", "Varn"),
    line(1, "met", "VBD", "(VP*", "-", "Varn"),
    line(2, "her", "PRP$", "(NP*", "(1)", "Varn"),
    line(3, "aunt", "NN", "*)))", "-", "Varn"),
)
BAD = {
    "columns": (*GOOD[:2], "x/1\t0\t2\ther"),
    "unclosed": (GOOD[0].replace("(1)", "(1"), *GOOD[1:]),
    "parse": (*GOOD[:3], line(3, "aunt", "NN", "*)))))", "-")),
}
HANDLED = {
    "no_mentions": tuple(each.replace("(1)", "-") for each in GOOD),
    "no_coreference": tuple(each.rsplit("\t", 1)[0] for each in GOOD),
    "one_token": (line(0, "Yes", "UH", "(INTJ*)", "-"),),
    "one_mention": (line(0, "She", "PRP", "(NP*)", "(0)"),),
    "no_speaker": tuple(each.replace("Varn", "-") for each in GOOD),
    "no_parse": tuple(each.replace(each.split("\t")[5], "*", 1) for each in GOOD),
    "crossing": (
        line(0, "Ada", "NNP", "(S(NP*", "(1"),
        line(1, "Varn", "NNP", "*)", "(2"),
        line(2, "and", "CC", "*", "1)"),
        line(3, "her", "PRP", "(NP*))", "2)"),
    ),
}


@pytest.mark.slow
def test_bad_documents_do_not_stop_the_others(
    demo: Path, place: Path, arguments: list[str], spark: Any
) -> None:
    folder = place / "bad"
    folder.mkdir()
    for name, lines in (BAD | HANDLED).items():
        (folder / f"{name}.conll").write_text(record(name, *lines))
    (folder / "sample.conll").write_text(TEST.read_text())
    (folder / "twice.conll").write_text(record("no_mentions", *GOOD) + record("cut", *GOOD)[:-15])
    changed = [*arguments, f"input.documents.path={folder}", "quarantine.max_share=1"]
    assert run_job(JOB, ["predict", *changed], spark) == 0
    good = {(name, 0) for name in HANDLED}
    assert set(written(demo)) == good | set(documents_of(TEST))
    reasons = pd.read_parquet(demo / "quarantine")
    assert len(reasons) == len(BAD) + 2
    assert {Path(each).stem for each in reasons["source"]} == {*BAD, "twice"}
    predictions = pd.read_parquet(demo / "predictions")
    assert predictions["error"].isna().all()
    # The scorer's reader wants each mention once.
    for row in written(demo).values():
        spans = list(zip(row["mention_starts"], row["mention_ends"], strict=True))
        assert len(set(spans)) == len(spans)


def test_given_mentions_and_singletons_are_kept(
    demo: Path, arguments: list[str], spark: Any
) -> None:
    changed = [*arguments, "model.mentions=given", "model.singletons=true"]
    assert run_job(JOB, ["predict", *changed], spark) == 0
    gold, predicted = documents_of(TEST), written(demo)
    for key, row in gold.items():
        for name in ("mention_starts", "mention_ends"):
            assert row[name] == predicted[key][name]


@pytest.mark.slow
def test_a_run_is_compared_with_another(
    demo: Path, arguments: list[str], tmp_path: Path, spark: Any
) -> None:
    changed = [*arguments, f"compare={demo}", "model.beam=1", "tracking.enabled=false"]
    assert run_job(JOB, ["evaluate", *changed], spark) == 0
    found = metrics_of(demo)
    assert 0.0 < found["compare.conll_avg.p_value"] <= 1.0
    assert 0.8 < found["compare.conll_avg.other"] <= 1.0


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (["model.templates=/nowhere"], 2, "model.templates"),
        (["model.regime=lazy"], 2, "CONF04: model.regime"),
        (["model.genders=/nowhere"], 2, "model.genders"),
        ([f"model.genders={TEST}"], 1, "DATA01"),
        ([f"model.templates={TEST}"], 2, "CONF04"),
        (["input.train.format=xml"], 2, "CONF04: input.train.format"),
    ],
)
def test_a_user_s_mistake_is_one_line(
    tmp_path: Path, spark: Any, capfd: Any, change: list[str], status: int, message: str
) -> None:
    arguments = [*demo_arguments("coreference/demo.yaml", tmp_path), *change]
    assert run_job(JOB, ["train", *arguments], spark) == status
    told = capfd.readouterr().err
    assert message in told
    assert "Traceback" not in told


def test_templates_are_selected(tmp_path: Path, spark: Any) -> None:
    first, more = tmp_path / "first.txt", tmp_path / "more.txt"
    first.write_text("ana.type\n", "utf-8")
    more.write_text("pair.match + ana.type\nana.genre  # of no use\n", "utf-8")
    arguments = [
        "model.regime=greedy", f"model.templates={first}", f"selection.candidates={more}",
        "selection.rounds=1", "selection.iterations=2", "selection.documents=30",
    ]  # fmt: skip
    assert (
        run_job(
            JOB, ["select", *demo_arguments("coreference/demo.yaml", tmp_path), *arguments], spark
        )
        == 0
    )
    output = str(tmp_path / "out")
    lines = storage.Place.of(storage.resolve(output, "templates.txt", "select")).read().decode()
    assert lines == "ana.type\npair.match + ana.type\n"
    found = metrics_of(Path(output))
    assert found["select.templates"] == 2.0
    assert found["select.last"] > found["select.first"]
