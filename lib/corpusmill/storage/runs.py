"""Outputs committed as whole runs.

::

    <output>/current.json              the pointer: which run each part is taken from
    <output>/runs/<run_id>/run.json    what the run is, written when it opens
    <output>/runs/<run_id>/<part>      model/, predictions/, quarantine/, metrics.json, ...
    <output>/runs/<run_id>/manifest.json   written last: the run is whole

A run writes into a folder of its own; ``current.json`` moves to it in one step when all is
written, counted and summed. Whatever stops a job, the pointer names whole parts only.
On a local file system ``<output>/<part>`` is a symbolic link to the current part, for
people's convenience; the pointer is what counts.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

import pyarrow.parquet as pq

from corpusmill import __version__
from corpusmill.errors import SchemaError, StorageError, UsageError
from corpusmill.storage.checkpoints import Checkpoints
from corpusmill.storage.places import PROBLEMS, Place, one_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

POINTER = "current.json"
RUNS = "runs"
STATE = "run.json"
MANIFEST = "manifest.json"
METRICS = "metrics.json"
CHECKPOINTS = "checkpoints"
LOCK = ".lock"
# Settings that change where and how a run is computed, not what.
NOT_IDENTITY = frozenset({"run_id", "restart", "tracking", "spark"})


def run_fingerprint(action: str, conf: Mapping[str, Any], inputs: Mapping[str, str]) -> str:
    """Digest of all that decides a run's result.

    Parameters
    ----------
    action
        What is done: train, predict, ...
    conf
        The resolved conf; run_id, restart, tracking and spark are left out.
    inputs
        Fingerprint of each input.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    identity = {key: value for key, value in conf.items() if key not in NOT_IDENTITY}
    text = json.dumps([__version__, action, identity, dict(inputs)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class Run:
    """One run of a job, written aside and committed whole.

    Attributes
    ----------
    run_id : str
        The folder's name under ``runs``.
    committed : bool
        Whether it is finished; a rerun finds it so and has nothing to do.
    metrics : dict of str to float or None
        This run's own metrics.
    """

    def __init__(self, output: Place, folder: Place, state: dict[str, Any]) -> None:
        self.output = output
        self.folder = folder
        self.run_id = folder.name
        self.committed = False
        self.metrics: dict[str, float | None] = {}
        self._state = state
        self._counts: dict[str, int] = {}
        self._lock: IO[bytes] | None = None

    @classmethod
    def open(
        cls,
        output: str,
        action: str,
        run_id: str,
        fingerprint: str,
        restart: bool = False,
        inputs: Mapping[str, str] | None = None,
    ) -> Run:
        """Open a run for writing, or find it finished.

        What an earlier, unfinished try left is removed, except the checkpoints, which stay if
        conf and inputs are still the same. A finished run is made current again if another
        has become so since. With ``restart`` a finished run stays as it is until the new
        one, in a folder of its own, takes its place.

        Parameters
        ----------
        output
            Folder or URI.
        action
            What the job does.
        run_id
            A name, or "auto" for one made of the action and the fingerprint.
        fingerprint
            From `run_fingerprint`.
        restart
            Compute again what is finished, from the start.
        inputs
            Fingerprint of each input, for the manifest.

        Raises
        ------
        UsageError
            CONF04: the output cannot be written; STORE05: the name belongs to a run with
            another conf or other inputs.
        StorageError
            STORE04: another job is writing there.
        """
        place = _writable(output)
        name = f"{action}-{fingerprint[:12]}" if run_id == "auto" else run_id
        state = {
            "action": action,
            "fingerprint": fingerprint,
            "inputs": dict(inputs or {}),
            "version": __version__,
        }
        lock = _lock(place)
        try:
            run = cls._find_or_prepare(place, name, state, restart)
        except BaseException:
            if lock is not None:
                lock.close()
            raise
        run._lock = lock
        return run

    @classmethod
    def _find_or_prepare(
        cls, output: Place, name: str, state: dict[str, Any], restart: bool
    ) -> Run:
        tries = _tries(output / RUNS, name)
        finished = [folder for folder in tries if _is_whole(folder)]
        if finished and not restart:
            return cls._finished(output, finished[-1], state["fingerprint"])
        run = cls(output, _next_folder(output / RUNS, name, tries), state)
        run._prepare(keep_checkpoints=not restart)
        return run

    @classmethod
    def _finished(cls, output: Place, folder: Place, fingerprint: str) -> Run:
        manifest = (folder / MANIFEST).read_json()
        if manifest["fingerprint"] != fingerprint:
            raise UsageError("STORE05", run=folder.name, path=output)
        run = cls(output, folder, manifest)
        run.committed = True
        run.metrics = manifest["metrics"]
        pointer = _pointer(output)
        current = pointer["parts"] if pointer else {}
        own = run._parts()
        data = {part: path for part, path in own.items() if part != METRICS} or own
        if any(current.get(part) != path for part, path in data.items()):
            run._point()
        return run

    def _prepare(self, keep_checkpoints: bool) -> None:
        state = self.folder / STATE
        try:
            same = state.exists() and state.read_json() == self._state
        except ValueError:
            same = False
        kept = {CHECKPOINTS} if keep_checkpoints and same else set()
        for name in {name.split("/")[0] for name, _ in self.folder.files()} - kept:
            (self.folder / name).remove()
        for name in set(self.folder.folders()) - kept:
            (self.folder / name).remove()
        state.write_json(self._state)

    def path(self, part: str) -> str:
        """Where this run keeps a part: a local path, or a URI."""
        return str(self.folder / _checked_part(part))

    def checkpoints(self, every: int, stage: str = "all") -> Checkpoints:
        """Return the checkpoints of a stage of the run; they are removed when it commits."""
        return Checkpoints(self.folder / CHECKPOINTS / stage, every)

    def write_parquet(
        self,
        part: str,
        df: DataFrame,
        expected_rows: int | None = None,
        schema: StructType | None = None,
    ) -> int:
        """Let Spark write a DataFrame, and count what came out of it.

        Parameters
        ----------
        part
            Name of the folder.
        df
            What to write.
        expected_rows
            How many rows there must be, where that is known.
        schema
            What the columns must be, in names, order and types.

        Returns
        -------
        int
            Rows, from the footers of the written files.

        Raises
        ------
        SchemaError
            DATA04: a column is not as the schema says; nothing is written.
        StorageError
            STORE03: another number of rows than expected.
        """
        if schema is not None:
            _check_schema(df.schema, schema)
        place = self.folder / _checked_part(part)
        df.write.mode("overwrite").parquet(place.uri)
        rows = _count_rows(place)
        if expected_rows is not None and rows != expected_rows:
            raise StorageError("STORE03", path=place, found=rows, expected=expected_rows)
        self._counts[part] = rows
        return rows

    def write_json(self, part: str, content: Any) -> None:
        """Write a JSON part; ``metrics.json`` goes to `write_metrics`."""
        if part == METRICS:
            self.write_metrics(content)
        else:
            (self.folder / _checked_part(part)).write_json(content)

    def write_metrics(self, metrics: Mapping[str, Any]) -> None:
        """Add to the run's metrics.

        Parameters
        ----------
        metrics
            Name to number, or to a mapping of the same kind; levels are joined by dots. A
            number that is not finite is written as null, which JSON has.
        """
        self.metrics.update(_flat(metrics))

    def commit(self) -> None:
        """Write the manifest, then move the pointer; from then on the run is the current one."""
        if self.committed:
            return
        (self.folder / CHECKPOINTS).remove()
        files = {
            name: {"sha256": (self.folder / name).sha256(), "bytes": info.size}
            for name, info in self.folder.files()
            # Hidden files (Hadoop's checksums) get lost in copies, and nobody reads them.
            if name not in (STATE, METRICS) and not name.rpartition("/")[2].startswith(".")
        }
        self._state = {
            **self._state,
            "run": self.run_id,
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "counts": self._counts,
            "metrics": self.metrics,
            "files": files,
        }
        (self.folder / MANIFEST).write_json(self._state)
        self._point()
        self.committed = True

    def close(self) -> None:
        """Let other jobs write under the output; an unfinished run stays unfinished."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _parts(self) -> dict[str, str]:
        names = {name.split("/")[0] for name in self._state["files"]}
        if self.metrics:
            names.add(METRICS)
        return {name: f"{RUNS}/{self.run_id}/{name}" for name in sorted(names)}

    def _point(self) -> None:
        if self.metrics:
            (self.folder / METRICS).write_json(_merged(self.output, self.metrics))
        before = _pointer(self.output)
        parts = {**(before["parts"] if before else {}), **self._parts()}
        (self.output / POINTER).write_json({"run": self.run_id, "parts": parts})
        _link(self.output, parts)


def resolve(output: str, part: str, hint: str = "train") -> str:
    """Return the path or URI of the current part of an output.

    Parameters
    ----------
    output
        Folder or URI.
    part
        For instance "model".
    hint
        The action that makes it, for the message.

    Raises
    ------
    StorageError
        STORE02: there is none yet.
    """
    place = Place.of(output)
    pointer = _pointer(place)
    if pointer is None or part not in pointer["parts"]:
        raise StorageError("STORE02", path=place, part=part, hint=hint)
    return str(place / pointer["parts"][part])


def model_input(output: str) -> dict[str, str]:
    """Name the model that an output holds, as one of a job's inputs.

    Nothing for an output that cannot be reached, which is told when the run opens there.

    Raises
    ------
    StorageError
        STORE02: there is no model yet.
    """
    try:
        return {"the output's model": resolve(output, "model")}
    except StorageError as error:
        if error.code == "STORE02":
            raise
        return {}


def _pointer(output: Place) -> dict[str, Any] | None:
    try:
        pointer = (output / POINTER).read_replaced()
    except ValueError as error:
        raise StorageError("STORE06", path=output / POINTER) from error
    if pointer is None:
        return None
    if not isinstance(pointer, dict) or not isinstance(pointer.get("parts"), dict):
        raise StorageError("STORE06", path=output / POINTER)
    return pointer


def _writable(output: str) -> Place:
    try:
        place = Place.of(output)
        (place / RUNS).make_folder()
        probe = place / RUNS / f".probe-{os.getpid()}"
        probe.write(b"")
        probe.remove()
    except StorageError as error:
        problem = f"cannot write there: {error.details['problem']}"
        raise UsageError("CONF04", key="output", value=repr(output), problem=problem) from error
    return place


def _lock(output: Place) -> IO[bytes] | None:
    # The kernel drops the lock with the process, however that ends. Other file systems have
    # nothing of the kind; there the scheduler must see to it.
    if not output.is_local:
        return None
    try:
        file = open(f"{output.path}/{LOCK}", "ab")  # noqa: SIM115 - held until the run closes
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise StorageError("STORE04", path=output) from None
    return file


def _tries(runs: Place, name: str) -> list[Place]:
    """Folders of the run and of its restarts, which carry a number, oldest first."""
    pattern = re.compile(re.escape(name) + r"(?:\.try(\d+))?")
    found = [(pattern.fullmatch(folder), folder) for folder in runs.folders()]
    numbered = sorted((int(match.group(1) or 1), folder) for match, folder in found if match)
    return [runs / folder for _, folder in numbered]


def _next_folder(runs: Place, name: str, tries: list[Place]) -> Place:
    """Return the last try's folder if it never finished, otherwise a new one."""
    if not tries:
        return runs / name
    if not (tries[-1] / MANIFEST).exists():
        return tries[-1]
    number = tries[-1].name.removeprefix(name).removeprefix(".try") or "1"
    return runs / f"{name}.try{int(number) + 1}"


def _is_whole(folder: Place) -> bool:
    """Whether the run has its manifest and every file that it names, in size."""
    if not (folder / MANIFEST).exists():
        return False
    try:
        stated = (folder / MANIFEST).read_json()["files"]
        sizes = {name: info.size for name, info in folder.files()}
        return all(sizes.get(name) == entry["bytes"] for name, entry in stated.items())
    except (ValueError, KeyError, TypeError):
        return False


def _checked_part(part: str) -> str:
    if part in (STATE, MANIFEST, CHECKPOINTS) or not re.fullmatch(r"\w[\w.-]*", part):
        raise ValueError(f"{part!r} cannot be the name of a part")
    return part


def _check_schema(found: StructType, expected: StructType) -> None:
    names = [field.name for field in found]
    for field in expected:
        if field.name not in names:
            there = f"missing (there are: {', '.join(names)})"
            wanted = field.dataType.simpleString()
            raise SchemaError("DATA04", column=field.name, found=there, expected=wanted)
        is_now, wanted = (
            found[field.name].dataType.simpleString(),
            field.dataType.simpleString(),
        )
        if is_now != wanted:
            raise SchemaError("DATA04", column=field.name, found=is_now, expected=wanted)
    for name in names:
        if name not in expected.fieldNames():
            raise SchemaError("DATA04", column=name, found="not known", expected="no such column")


def _count_rows(place: Place) -> int:
    rows = 0
    for name, _ in place.files():
        if not name.endswith(".parquet"):
            continue
        file = place / name
        try:
            with file.filesystem.open_input_file(file.path) as stream:
                rows += pq.read_metadata(stream).num_rows
        except PROBLEMS as error:
            raise StorageError("STORE01", path=file, problem=one_line(error)) from error
    return rows


def _flat(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, float | None]:
    flat: dict[str, float | None] = {}
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{name}."))
        elif value is None or not math.isfinite(value):
            flat[f"{prefix}{name}"] = None
        else:
            # numpy's numbers become Python's, which JSON knows.
            flat[f"{prefix}{name}"] = value.item() if hasattr(value, "item") else value
    return flat


def _merged(output: Place, own: Mapping[str, float | None]) -> dict[str, float | None]:
    pointer = _pointer(output)
    before = pointer["parts"].get(METRICS) if pointer else None
    if before is None or not (output / before).exists():
        return dict(own)
    return {**(output / before).read_json(), **own}


def _link(output: Place, parts: Mapping[str, str]) -> None:
    if not output.is_local:
        return
    for part, target in parts.items():
        link = f"{output.path}/{part}"
        if os.path.lexists(link) and not os.path.islink(link):
            continue  # a person's own file; the pointer does not need the link
        waiting = f"{output.path}/.{part}.link"
        if os.path.lexists(waiting):
            os.remove(waiting)
        os.symlink(target, waiting)
        os.replace(waiting, link)
