"""Progress of a job: a line that moves on a terminal, one line a stage elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

BAR = 24
LEAST_SECONDS_BETWEEN = 0.1


class Progress:
    """Writes to standard error, so that a job's result on standard output stays clean.

    Parameters
    ----------
    stream
        Where to write; standard error by default.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._moves = self._stream.isatty()

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Name what is going on until the block ends; a failed stage is called so."""
        stage = Stage(name, self._stream, self._moves)
        try:
            yield stage
        except BaseException:
            stage.close("failed")
            raise
        stage.close("done")

    def say(self, text: str) -> None:
        """Write one line."""
        print(text, file=self._stream, flush=True)


class Stage:
    """One stage of a job; made by `Progress.stage`."""

    def __init__(self, name: str, stream: TextIO, moves: bool) -> None:
        self._name = name
        self._stream = stream
        self._moves = moves
        self._started = time.monotonic()
        self._shown = -LEAST_SECONDS_BETWEEN
        self._note = ""
        self._width = 0
        if moves:
            self._draw(f"{name} ...")

    def update(self, done: int, total: int | None = None, note: str = "") -> None:
        """Say how far the stage is.

        Parameters
        ----------
        done, total
            Steps; without a total no bar is drawn.
        note
            A few words, for instance the bound; the last one stays in the closing line.
        """
        self._note = note or self._note
        now = time.monotonic()
        if not self._moves or (now - self._shown < LEAST_SECONDS_BETWEEN and done != total):
            return
        self._shown = now
        share = min(done / total, 1.0) if total else 0.0
        bar = f"[{'#' * round(share * BAR):<{BAR}}] " if total else ""
        count = f"{done}/{total}" if total else f"{done}"
        self._draw(f"{self._name} {bar}{count} {self._elapsed()} {self._note}".rstrip())

    def close(self, how: str) -> None:
        """Write the closing line."""
        note = f", {self._note}" if self._note else ""
        self._draw(f"{self._name}: {how} in {self._elapsed()}{note}")
        self._stream.write("\n")
        self._stream.flush()

    def _elapsed(self) -> str:
        seconds = time.monotonic() - self._started
        if seconds < 60:
            return f"{seconds:.1f} s"
        return f"{int(seconds // 60)}:{int(seconds % 60):02d} min"

    def _draw(self, text: str) -> None:
        if not self._moves:
            self._stream.write(text)
            return
        # Blanks wipe what a longer line left behind.
        self._stream.write(f"\r{text:<{self._width}}")
        self._stream.flush()
        self._width = len(text)
