"""Named arrays as npz bytes: no pickle, and the same bytes for the same arrays."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

import numpy as np

from corpusmill.types import AnyArray

EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(arrays: Mapping[str, AnyArray]) -> bytes:
    """Write arrays as an npz, sorted by name, uncompressed and with a fixed time.

    `numpy.load` reads it. ValueError for arrays of Python objects.
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(arrays):
            member = zipfile.ZipInfo(f"{name}.npy", date_time=EPOCH)
            with archive.open(member, "w", force_zip64=True) as stream:
                array = np.asanyarray(arrays[name])
                np.lib.format.write_array(stream, array, allow_pickle=False)
    return buffer.getvalue()


def unpack(content: bytes) -> dict[str, AnyArray]:
    """Read the arrays of an npz; ValueError where it is damaged or holds Python objects."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ValueError(str(error)) from error
