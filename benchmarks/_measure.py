"""How the benchmarks measure: medians of interleaved runs, and memory seen from outside."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import psutil  # type: ignore[import-untyped]


def seconds(work: Callable[[], Any]) -> float:
    """Return the wall time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of one call, all threads together: a busy machine adds little."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def all_cpu_seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of one call in this process and in all that descend from it.

    What a process spent that ends meanwhile is lost unless its parent waits for it; Spark's daemon
    does not wait for its Python workers, but keeps them for the next task. A `PeakMemory` that
    watches this process counts too.
    """
    root = psutil.Process()
    before = _spent_below(root)
    work()
    return _spent_below(root) - before


def _spent_below(root: psutil.Process) -> float:
    spent = 0.0
    for process in [root, *root.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent += times.user + times.system + times.children_user + times.children_system
    return spent


def medians(works: Mapping[str, Callable[[], float]], repeats: int) -> dict[str, float]:
    """Run the contestants in turn, so that load falls on all alike, and take their medians.

    Parameters
    ----------
    works : mapping of str to callable
        Each returns its own seconds; one call of each comes first and does not count.
    repeats : int
        Calls that count.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(repeats + 1):
        for name, work in works.items():
            spent = work()
            if turn > 0:
                times[name].append(spent)
    return {name: statistics.median(values) for name, values in times.items()}


def per_iteration(fit: Callable[[int], Any], few: int, many: int) -> float:
    """Return the seconds of one iteration: the difference of two fits, so set-up is not in it.

    A fit goes before both, because whoever comes after another contestant pays for its garbage.
    """
    fit(few)
    short = seconds(lambda: fit(few))
    return (seconds(lambda: fit(many)) - short) / (many - few)


class PeakMemory:
    """The peak resident memory of a driver's Python process, of its JVM, and of all below.

    Parameters
    ----------
    pid : int
        The process to watch, as a context manager.
    interval : float
        Seconds between looks.

    Attributes
    ----------
    peaks : dict of str to int
        Bytes: ``driver`` is the process itself, ``jvm`` the Java process that it started, and
        ``others`` all further descendants together: Python workers, and executors of their own.
    """

    def __init__(self, pid: int, interval: float = 0.2) -> None:
        self.peaks: dict[str, int] = {}
        self._pid, self._interval = pid, interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        try:
            root = psutil.Process(self._pid)
            while not self._ended.wait(self._interval):
                self._look(root)
        except psutil.NoSuchProcess:
            return

    def _look(self, root: psutil.Process) -> None:
        sums = {"driver": root.memory_info().rss, "jvm": 0, "others": 0}
        for child in root.children(recursive=True):
            try:
                own = child.ppid() == root.pid and child.name() == "java"
                sums["jvm" if own else "others"] += child.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        for kind, rss in sums.items():
            self.peaks[kind] = max(self.peaks.get(kind, 0), rss)
