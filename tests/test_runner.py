"""A job's arguments, exit status, messages and what is left behind."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpusmill import runner, storage
from corpusmill.errors import DataError
from corpusmill.progress import Progress
from corpusmill.runner import Context, Job, run_job
from corpusmill.settings import JobSettings

ROOT = Path(__file__).resolve().parents[1]
CAPABILITIES = "alignment, boosting, coreference, fragments, ingest, linking"


class ProbeSettings(JobSettings):
    """The conf of the job under test."""

    corpus: str | None = None


def work(context: Context) -> None:
    with context.progress.stage("write") as stage:
        stage.update(1, 2, "half")
        context.run.write_json("note.json", {"seed": context.settings.seed})
    context.run.write_metrics({"probe": {"seed": context.settings.seed}})


def data_error(context: Context) -> None:
    work(context)
    raise DataError("DATA01", source="log.tsv", problem="not good\nat all")


def fault(context: Context) -> None:
    work(context)
    raise ZeroDivisionError("secret of the code")


def lost_file(context: Context) -> None:
    context.spark.read.parquet("/nothing/here.parquet")


def interrupted(context: Context) -> None:
    work(context)
    os.kill(os.getpid(), signal.SIGTERM)


def inputs(action: str, conf: Any) -> dict[str, str]:
    return {"corpus": conf.corpus} if conf.corpus else {}


ACTIONS: dict[str, Callable[[Context], None]] = {
    "train": work,
    "data_error": data_error,
    "fault": fault,
    "lost_file": lost_file,
    "interrupted": interrupted,
}
PROBE = Job("probe", ProbeSettings, ACTIONS, inputs)
# Where a job must end before it needs one.
NO_SPARK: Any = object()


@pytest.fixture
def conf(tmp_path: Path) -> str:
    path = tmp_path / "probe.yaml"
    output = json.dumps(str(tmp_path / "out"))
    path.write_text(f"name: probe\noutput: {output}\ntracking: {{enabled: false}}\n")
    return str(path)


def stderr_lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    out, err = capsys.readouterr()
    assert out == ""
    return err.splitlines()


def test_done(conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_job(PROBE, ["train", "--conf", conf, "seed=7"], NO_SPARK) == 0
    lines = stderr_lines(capsys)
    assert re.fullmatch(r"write: done in \d+\.\d s, half", lines[0])
    assert re.fullmatch(r"probe train: run train-[0-9a-f]{12} under .*/out is finished", lines[1])
    assert json.loads((tmp_path / "out" / "note.json").read_text()) == {"seed": 7}
    assert json.loads((tmp_path / "out" / "metrics.json").read_text()) == {"probe.seed": 7}


def test_rerun_does_nothing_and_says_so(conf: str, capsys: pytest.CaptureFixture[str]):
    run_job(PROBE, ["train", "--conf", conf], NO_SPARK)
    capsys.readouterr()
    assert run_job(PROBE, ["train", "seed=13", "--conf", conf], NO_SPARK) == 0
    (line,) = stderr_lines(capsys)
    assert line.endswith("is already finished; restart=true computes it again")
    assert run_job(PROBE, ["train", "--conf", conf, "restart=true"], NO_SPARK) == 0
    assert stderr_lines(capsys)[-1].endswith("is finished")


def test_changed_input_is_another_run(
    conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    log = tmp_path / "log.tsv"
    argv = ["train", "--conf", conf, f"corpus={log}"]
    log.write_text("a")
    assert run_job(PROBE, argv, NO_SPARK) == 0
    first = storage.resolve(str(tmp_path / "out"), "note.json")
    log.write_text("ab")
    assert run_job(PROBE, argv, NO_SPARK) == 0
    assert storage.resolve(str(tmp_path / "out"), "note.json") != first


USAGE = "usage: probe train|data_error|fault|lost_file|interrupted --conf FILE [key=value ...]"
MISTAKES = {
    "no action": (
        ["--conf", "{conf}"],
        f"CONF10: the following arguments are required: action; {USAGE}",
    ),
    "no conf": (["train"], f"CONF10: the following arguments are required: --conf; {USAGE}"),
    "option": (["train", "--conf", "{conf}", "--fast"], "CONF10: unrecognized arguments: --fast; "),
    "action": (["fit", "--conf", "{conf}"], "CONF09: unknown action 'fit'; allowed: train, "),
    "no file": (["train", "--conf", "no.yaml"], "CONF01: no such conf file: no.yaml"),
    "key": (["train", "--conf", "{conf}", "sed=1"], "CONF03: unknown key 'sed'; allowed here: "),
    "type": (["train", "--conf", "{conf}", "seed=x"], "CONF04: seed = 'x': "),
    "word": (["train", "--conf", "{conf}", "seed"], "CONF07: 'seed' is no setting; "),
    "input": (
        ["train", "--conf", "{conf}", "corpus=/no/such.tsv"],
        "CONF06: cannot read corpus = '/no/such.tsv': no such file",
    ),
    "output": (
        ["train", "--conf", "{conf}", "output={conf}/x"],
        "CONF04: output = '{conf}/x': cannot write there: ",
    ),
    "tracking": (
        ["train", "--conf", "{conf}", "tracking.enabled=true", "tracking.uri=nosuch:x"],
        "CONF06: cannot read tracking.uri = 'nosuch:x': ",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_one_line_and_status_2(name: str, conf: str, capsys: pytest.CaptureFixture[str]):
    argv, message = MISTAKES[name]
    assert run_job(PROBE, [word.format(conf=conf) for word in argv], NO_SPARK) == 2
    (line,) = stderr_lines(capsys)
    assert line.startswith(f"error: {message.format(conf=conf)}")


def test_known_error_is_one_line_and_status_1(
    conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run_job(PROBE, ["data_error", "--conf", conf], NO_SPARK) == 1
    assert stderr_lines(capsys)[-1] == "error: DATA01: log.tsv: not good at all"
    assert not (tmp_path / "out" / "current.json").exists()


def test_unknown_error_shows_its_traceback(conf: str, capsys: pytest.CaptureFixture[str]):
    assert run_job(PROBE, ["fault", "--conf", conf], NO_SPARK) == 1
    lines = stderr_lines(capsys)
    assert "ZeroDivisionError: secret of the code" in lines
    assert lines[-1].startswith("error: unexpected ZeroDivisionError; this is a fault of ")


@pytest.mark.spark
def test_spark_failure_is_explained(spark, conf: str, capsys: pytest.CaptureFixture[str]):
    assert run_job(PROBE, ["lost_file", "--conf", conf], spark) in (1, 2)
    (line,) = stderr_lines(capsys)
    assert "/nothing/here.parquet" in line
    assert spark.range(3).count() == 3


def test_failure_keeps_the_last_good_output(
    conf: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run_job(PROBE, ["train", "--conf", conf], NO_SPARK)
    before = (tmp_path / "out" / "current.json").read_text()
    for action, status in (("fault", 1), ("data_error", 1), ("interrupted", 1)):
        assert run_job(PROBE, [action, "--conf", conf, "seed=2"], NO_SPARK) == status
        assert (tmp_path / "out" / "current.json").read_text() == before
    assert run_job(PROBE, ["train", "--conf", conf, "seed=2"], NO_SPARK) == 0
    assert json.loads((tmp_path / "out" / "note.json").read_text()) == {"seed": 2}


def test_signal_is_one_line_and_handlers_come_back(conf: str, capsys: pytest.CaptureFixture[str]):
    before = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    assert run_job(PROBE, ["interrupted", "--conf", conf], NO_SPARK) == 1
    assert stderr_lines(capsys)[-1] == "stopped; the output holds the last run that was committed"
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == before


def test_help_and_version(capsys: pytest.CaptureFixture[str]):
    assert run_job(PROBE, ["--help"]) == 0
    assert "Exit status: 0 done, 2 bad usage or conf" in capsys.readouterr().out
    assert runner.console(["--version"]) == 0
    assert runner.console(["--help"]) == 0
    assert f"capabilities: {CAPABILITIES}" in capsys.readouterr().out


@pytest.mark.parametrize("argv", [[], ["nosuch", "train"]])
def test_console_names_the_capabilities(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert runner.console(argv) == 2
    (line,) = stderr_lines(capsys)
    assert f"capabilities: {CAPABILITIES}" in line


def test_console_hands_over(
    script: str,
    conf: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.syspath_prepend(str(Path(script).parent))
    monkeypatch.setitem(runner.JOBS, "script", "script:JOB")
    assert runner.console(["script", "fit", "--conf", conf]) == 2
    assert "unknown action 'fit'; allowed: slow, wrong" in capsys.readouterr().err


SCRIPT = """
import sys
from corpusmill.runner import Job, run_job
from corpusmill.settings import JobSettings

def rows(batches):
    import time
    print("going", file=sys.stderr, flush=True)
    time.sleep(600)
    yield from batches

def slow(context):
    df = context.spark.range(2).mapInArrow(rows, "id long")
    context.run.write_parquet("predictions", df)

def wrong(context):
    raise ValueError("x")

def full(context):
    held = context.spark._jvm.java.util.ArrayList()
    while True:
        held.add(context.spark._jvm.java.nio.ByteBuffer.allocate(200_000_000))

JOB = Job("script", JobSettings, {"slow": slow, "wrong": wrong, "full": full})
if __name__ == "__main__":
    sys.exit(run_job(JOB, sys.argv[1:]))
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def library_on_path() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT / "lib"), "PYSPARK_PYTHON": sys.executable}


@pytest.mark.spark
@pytest.mark.slow
def test_a_full_heap_ends_the_job(script: str, conf: str):
    """Java's threads would die one by one, and the job wait for them."""
    done = subprocess.run(
        [sys.executable, script, "full", "--conf", conf, "spark.master=local[1]"],
        env=library_on_path(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: SPARK07: Java")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("action", "override", "status", "said"),
    [
        ("wrong", "sed=1", 2, "error: CONF03: unknown key 'sed'; "),
        pytest.param("wrong", "seed=1", 1, "error: unexpected ValueError", marks=pytest.mark.slow),
    ],
)
def test_exit_status_of_spark_submit(
    action: str, override: str, status: int, said: str, script: str, conf: str
):
    submit = Path(sys.executable).with_name("spark-submit")
    done = subprocess.run(
        [str(submit), "--master", "local[1]", script, action, "--conf", conf, override],
        env=library_on_path(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == status
    # spark-submit hands on what the driver's Python writes, both streams, as its output.
    assert done.stdout.splitlines()[-1].startswith(said)


@pytest.mark.spark
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_signal_stops_spark(number: signal.Signals, script: str, conf: str, tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, script, "slow", "--conf", conf, "spark.master=local[1]"],
        env=library_on_path(),
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr is not None
        for line in child.stderr:
            if line == "going\n":
                break
        child.send_signal(number)
        said = child.stderr.read()
        assert child.wait(60) == 1
    assert said.splitlines()[-1] == "stopped; the output holds the last run that was committed"
    assert "Traceback" not in said
    assert not (tmp_path / "out" / "current.json").exists()


@pytest.mark.spark
def test_spark_that_does_not_start(script: str, conf: str):
    done = subprocess.run(
        [sys.executable, script, "slow", "--conf", conf, "spark.master=nonsense"],
        env=library_on_path(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert said.startswith("error: SPARK06: Spark did not start with spark.master = 'nonsense': ")
    assert "Traceback" not in done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_moves_on_a_terminal():
    screen = Terminal()
    with Progress(screen).stage("train") as stage:
        stage.update(10, 10, "bound -3.5")
    first, drawn, closing = screen.getvalue().split("\r")[1:]
    assert first == "train ..."
    assert re.fullmatch(r"train \[#{24}\] 10/10 0\.\d s bound -3\.5", drawn)
    assert re.fullmatch(r"train: done in 0\.\d s, bound -3\.5 *\n", closing)


def test_progress_is_a_line_a_stage_elsewhere():
    log = io.StringIO()
    with Progress(log).stage("train") as stage:
        for done in range(100):
            stage.update(done, 100)
    assert re.fullmatch(r"train: done in 0\.\d s\n", log.getvalue())


def test_failed_stage_is_called_so():
    log = io.StringIO()
    with pytest.raises(KeyError, match="x"), Progress(log).stage("train"):
        raise KeyError("x")
    assert log.getvalue().startswith("train: failed in 0.")
