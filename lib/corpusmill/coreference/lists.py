"""The text files that a conf names: feature templates, genders. No Spark."""

from __future__ import annotations

from corpusmill.errors import StorageError, UsageError
from corpusmill.storage import Place
from corpusmill.storage.places import one_line


def read_text(path: str, key: str) -> str:
    """Read a text file.

    Parameters
    ----------
    path : str
        A path or URI; what ends with ``.gz`` is decompressed.
    key : str
        The key of the conf, for messages.

    Raises
    ------
    UsageError
        CONF04: it cannot be read, or is no UTF-8.
    """
    try:
        return Place.of(path).read().decode("utf-8")
    except (StorageError, UnicodeDecodeError) as error:
        problem = f"it cannot be read: {one_line(error.__cause__ or error)}"
        raise UsageError("CONF04", key=key, value=repr(path), problem=problem) from None
