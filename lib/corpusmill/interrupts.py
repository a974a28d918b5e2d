"""Ctrl-C and SIGTERM: a job ends in order, with one line, also in the middle of a Spark call."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SECONDS_TO_STOP = 30.0


class Stopped(BaseException):
    """A signal asked the job to end."""


class Interrupts:
    """Turns the first signal into `Stopped`, and ignores those that follow.

    A main thread that waits for a Spark call shares its connection with every later call, so
    that even stopping the session from it would wait for the job to end. Therefore Spark is
    told from a thread of its own.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._before: dict[signal.Signals, Any] = {}
        self._end_spark: Callable[[], object] | None = None
        self._ending: threading.Thread | None = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {each: signal.signal(each, self._stop) for each in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._ending is not None:
            self._ending.join(SECONDS_TO_STOP)
        for each, handler in self._before.items():
            signal.signal(each, handler)

    def watch(self, spark: SparkSession, owned: bool) -> None:
        """End this session's work at a signal; stop the session itself if it is ours."""
        self._end_spark = lambda: _end(spark, owned)
        # pyspark has put a handler of its own in the place of ours.
        if self._before:
            signal.signal(signal.SIGINT, self._stop)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopped = True
        for each in SIGNALS:
            signal.signal(each, signal.SIG_IGN)
        if self._end_spark is not None:
            self._ending = threading.Thread(target=self._end_spark, daemon=True)
            self._ending.start()
        raise Stopped


def _end(spark: SparkSession, owned: bool) -> None:
    # Whatever fails from here on fails because of the signal, which has been told.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    with suppress(Exception):
        if owned:
            spark.sparkContext.setLogLevel("OFF")
    with suppress(Exception):
        if owned:
            spark.stop()
        else:
            spark.interruptAll()
