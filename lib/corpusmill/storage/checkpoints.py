"""State of an iterative learner, saved every k iterations and found again after a crash."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from corpusmill.errors import StorageError
from corpusmill.storage.arrays import pack, unpack
from corpusmill.storage.places import Place
from corpusmill.types import AnyArray

KEPT = 2


class Checkpoints:
    """Checkpoints ``NNNNNNNN.npz`` with ``NNNNNNNN.json`` beside them, in one folder.

    The JSON is written last and holds the checksum of the arrays, so that a checkpoint
    without it, or with another checksum, is one that was not written whole.

    Parameters
    ----------
    folder
        Where they are kept.
    every
        Iterations between two of them, at least 1.
    """

    def __init__(self, folder: str | Place, every: int) -> None:
        self.folder = folder if isinstance(folder, Place) else Place.of(folder)
        self.every = every

    def save(self, iteration: int, arrays: Mapping[str, AnyArray], info: Mapping[str, Any]) -> bool:
        """Save the state after ``iteration`` if it is due, and drop all but the newest two.

        Parameters
        ----------
        iteration
            Iterations done so far, from 1; due when a multiple of ``every``.
        arrays
            Any arrays without Python objects.
        info
            What JSON can hold.

        Returns
        -------
        bool
            Whether it was due.
        """
        if iteration % self.every:
            return False
        name = f"{iteration:08d}"
        content = pack(arrays)
        (self.folder / f"{name}.npz").write(content)
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / f"{name}.json").write_json({"sha256": digest, "info": dict(info)})
        for old in self._names()[:-KEPT]:
            (self.folder / f"{old}.json").remove()
            (self.folder / f"{old}.npz").remove()
        return True

    def latest(self) -> tuple[int, dict[str, AnyArray], dict[str, Any]] | None:
        """Return iteration, arrays and info of the newest whole checkpoint, or None."""
        for name in reversed(self._names()):
            try:
                about = (self.folder / f"{name}.json").read_json()
                content = (self.folder / f"{name}.npz").read()
                if hashlib.sha256(content).hexdigest() == about["sha256"]:
                    return int(name), unpack(content), about["info"]
            except (StorageError, ValueError, KeyError, TypeError):
                continue  # damaged: the one before it will do
        return None

    def remove(self) -> None:
        """Remove all checkpoints."""
        self.folder.remove()

    def _names(self) -> list[str]:
        found = (re.fullmatch(r"(\d{8,})\.json", name) for name, _ in self.folder.files())
        return sorted((match.group(1) for match in found if match), key=int)
