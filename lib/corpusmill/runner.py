"""What every job does alike: arguments, conf, run, tracking, Spark, errors and exit status."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from corpusmill import __version__, settings, storage
from corpusmill.errors import CorpusmillError, UsageError
from corpusmill.interrupts import Interrupts
from corpusmill.progress import Progress
from corpusmill.settings import JobSettings
from corpusmill.tracking import Tracker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

JOBS = {
    "alignment": "corpusmill.alignment.pipeline:JOB",
    "boosting": "corpusmill.boosting.pipeline:JOB",
    "coreference": "corpusmill.coreference.pipeline:JOB",
    "fragments": "corpusmill.fragments.pipeline:JOB",
    "ingest": "corpusmill.corpora.pipeline:JOB",
    "linking": "corpusmill.linking.pipeline:JOB",
}


@dataclass
class Context:
    """What an action is given.

    Attributes
    ----------
    spark
        The session.
    settings
        The job's validated conf.
    run
        Where to write; committed by the runner when the action returns.
    tracker
        The MLflow run; parameters, conf and the run's metrics are logged by the runner.
    progress
        For stages.
    """

    spark: SparkSession
    settings: Any
    run: storage.Run
    tracker: Tracker
    progress: Progress
    _kept: list[DataFrame] = field(default_factory=list)

    def cached(self, df: DataFrame) -> DataFrame:
        """Cache a DataFrame until the action ends.

        Spark knows what it cached by its plan, which names a file but not its content: in a
        session that outlives the job the next one would be given what a file held before.
        """
        self._kept.append(df.persist())
        return df

    def release(self) -> None:
        """Drop all that was cached."""
        while self._kept:
            self._kept.pop().unpersist()


def no_inputs(action: str, conf: Any) -> dict[str, str]:
    """Name the inputs of a job that reads none."""
    return {}


@dataclass(frozen=True)
class Job:
    """A capability's job.

    Attributes
    ----------
    name
        The capability.
    settings
        Its conf.
    actions
        What can be done, by name.
    inputs
        Given action and conf, the paths that the action reads, by the key of the conf that
        names them. They decide, with the conf, whether a finished run is still good; one
        that is missing ends the job before Spark starts.
    """

    name: str
    settings: type[JobSettings]
    actions: Mapping[str, Callable[[Context], None]]
    inputs: Callable[[str, Any], Mapping[str, str]] = no_inputs


def run_job(job: Job, argv: list[str], spark: SparkSession | None = None) -> int:
    """Run one action of a job.

    Parameters
    ----------
    job
        What there is to do.
    argv
        ``[action, "--conf", file, "key=value", ...]``.
    spark
        A session to use, and to leave running; by default one is started when arguments,
        conf, inputs, output and tracking are known to be good.

    Returns
    -------
    int
        The exit status: 0 done, 2 bad usage or conf, 1 anything else.
    """
    interrupts = Interrupts()
    try:
        with interrupts:
            _run(job, argv, spark, interrupts)
    except SystemExit as error:  # --help and --version
        return int(error.code or 0)
    except UsageError as error:
        return _fail(error)
    except BaseException as error:
        if interrupts.stopped or isinstance(error, KeyboardInterrupt):
            Progress().say("stopped; the output holds the last run that was committed")
            return 1
        return _fail(error)
    return 0


def console(argv: list[str] | None = None) -> int:
    """Run ``corpusmill <capability> <action> --conf FILE [key=value ...]``."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] in (["--version"], ["-V"]):
        print(f"corpusmill {__version__}")  # noqa: T201
        return 0
    known = ", ".join(sorted(JOBS))
    if words[:1] in (["--help"], ["-h"]):
        print(  # noqa: T201
            f"usage: corpusmill CAPABILITY ACTION --conf FILE [key=value ...]\n"
            f"capabilities: {known}; corpusmill CAPABILITY --help lists its actions"
        )
        return 0
    if not words or words[0] not in JOBS:
        problem = f"unknown capability {words[0]!r}" if words else "no capability given"
        usage = f"corpusmill CAPABILITY ACTION --conf FILE; capabilities: {known}"
        return _fail(UsageError("CONF10", problem=problem, usage=usage))
    module, _, name = JOBS[words[0]].partition(":")
    return run_job(getattr(import_module(module), name), words[1:])


def _run(job: Job, argv: list[str], spark: SparkSession | None, interrupts: Interrupts) -> None:
    action, conf = _read_arguments(job, argv)
    resolved = conf.model_dump(mode="json")
    paths = job.inputs(action, conf)
    inputs = _fingerprints(paths)
    progress = Progress()
    run = storage.Run.open(
        conf.output,
        action,
        conf.run_id,
        storage.run_fingerprint(action, resolved, inputs),
        restart=conf.restart,
        inputs=inputs,
    )
    where = f"{job.name} {action}: run {run.run_id} under {run.output}"
    try:
        if run.committed:
            progress.say(f"{where} is already finished; restart=true computes it again")
            return
        tags = {"corpusmill.output": str(run.output), "corpusmill.run_id": run.run_id}
        with Tracker(conf.tracking, f"{conf.name} {action}", tags) as tracker:
            tracker.log_params({"action": action, **resolved})
            tracker.log_conf(resolved)
            for key, digest in inputs.items():
                tracker.log_input(key, digest, paths[key])
            with _session(job, conf, spark, interrupts, progress) as session:
                context = Context(session, conf, run, tracker, progress)
                with _released(context, interrupts):
                    job.actions[action](context)
                tracker.log_metrics(run.metrics)
                run.commit()
        progress.say(f"{where} is finished")
    finally:
        run.close()


@contextmanager
def _released(context: Context, interrupts: Interrupts) -> Iterator[None]:
    try:
        yield
    finally:
        # The action's own error is the one to tell, and a session that is gone caches nothing.
        with suppress(Exception):
            if not interrupts.stopped:
                context.release()


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        usage = self.format_usage().removeprefix("usage: ")
        raise UsageError("CONF10", problem=message, usage=" ".join(usage.split()))


def _read_arguments(job: Job, argv: list[str]) -> tuple[str, JobSettings]:
    actions = "|".join(job.actions)
    parser = _Parser(
        prog=job.name,
        usage=f"{job.name} {actions} --conf FILE [key=value ...]",
        description=f"Exit status: 0 done, 2 bad usage or conf, 1 anything else. {__version__}",
        allow_abbrev=False,
    )
    parser.add_argument("action", help=f"one of: {', '.join(job.actions)}")
    parser.add_argument("--conf", required=True, metavar="FILE", help="the job's YAML")
    parser.add_argument("--version", action="version", version=f"corpusmill {__version__}")
    parser.add_argument(
        "overrides", nargs="*", default=[], metavar="key=value", help="settings that win"
    )
    arguments = parser.parse_intermixed_args(argv)
    if arguments.action not in job.actions:
        allowed = ", ".join(job.actions)
        raise UsageError("CONF09", action=arguments.action, allowed=allowed)
    return arguments.action, settings.load(arguments.conf, arguments.overrides, job.settings)


def _fingerprints(paths: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, path in paths.items():
        try:
            found[key] = storage.fingerprint(path)
        except FileNotFoundError:
            problem = "no such file or folder, and no file matches it"
            raise UsageError("CONF06", key=key, path=path, problem=problem) from None
    return found


@contextmanager
def _session(
    job: Job,
    conf: JobSettings,
    spark: SparkSession | None,
    interrupts: Interrupts,
    progress: Progress,
) -> Iterator[SparkSession]:
    if spark is not None:
        interrupts.watch(spark, owned=False)
        yield spark
        return
    # Not at the top: help, version and an unknown capability are told without waiting for pyspark.
    from corpusmill import session  # noqa: PLC0415

    with progress.stage("start Spark"):
        try:
            started = session.start(f"corpusmill {job.name}", conf.spark)
        except Exception as error:
            from corpusmill.failures import first_line  # noqa: PLC0415 - pyspark

            problem = first_line(error)
            raise UsageError("SPARK06", master=conf.spark.master, problem=problem) from error
    interrupts.watch(started, owned=True)
    try:
        yield started
    finally:
        if not interrupts.stopped:
            started.stop()


def _fail(error: BaseException) -> int:
    """Say what went wrong and return the exit status."""
    known = error if isinstance(error, CorpusmillError) else _explain(error)
    if known is not None:
        Progress().say(f"error: {known}")
        return known.exit_status
    traceback.print_exception(error)
    Progress().say(
        f"error: unexpected {type(error).__name__}; this is a fault of corpusmill or of its "
        "surroundings, not of the conf; the output holds the last run that was committed"
    )
    return 1


def _explain(error: BaseException) -> CorpusmillError | None:
    if not isinstance(error, Exception):
        return None
    from corpusmill.failures import explain_spark_failure  # noqa: PLC0415 - pyspark

    return explain_spark_failure(error)
