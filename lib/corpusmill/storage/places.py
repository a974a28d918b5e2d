"""Files and folders on any file system that pyarrow knows, under one small interface."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import pyarrow as pa
from pyarrow import fs

from corpusmill.errors import StorageError

CHUNK = 1 << 20
PROBLEMS = (OSError, pa.ArrowException, NotImplementedError)
# Hadoop's names for what pyarrow calls s3.
HADOOP_SCHEMES = re.compile(r"^s3[an]://")


@dataclass(frozen=True)
class Place:
    """A file or folder, there or not.

    Attributes
    ----------
    filesystem
        The pyarrow file system that holds it.
    path
        Its path there.
    uri
        What Spark is given; a local path becomes ``file:///...``, so that a cluster whose
        default file system is another one does not look for it there.
    """

    filesystem: fs.FileSystem
    path: str
    uri: str

    @classmethod
    def of(cls, text: str | os.PathLike[str]) -> Place:
        """Read a local path, a ``file:`` URI or any URI that pyarrow knows.

        Raises
        ------
        StorageError
            STORE01: the scheme is unknown, or its file system cannot be reached.
        """
        text = os.fspath(text)
        scheme = re.match(r"^([A-Za-z][A-Za-z0-9+.-]*):", text)
        if scheme is None or scheme.group(1) == "file":
            # Hadoop does not decode %20 in a path, so neither is it done here.
            local = re.sub(r"^file:(//[^/]*(?=/))?", "", text)
            path = os.path.abspath(local)
            return cls(fs.LocalFileSystem(), path, f"file://{path}")
        with explained(text):
            filesystem, path = _connect(HADOOP_SCHEMES.sub("s3://", text))
        return cls(filesystem, path.rstrip("/"), text.rstrip("/"))

    def __truediv__(self, name: str) -> Place:
        return Place(self.filesystem, f"{self.path}/{name}", f"{self.uri}/{name}")

    def __str__(self) -> str:
        return self.path if self.is_local else self.uri

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]

    @property
    def is_local(self) -> bool:
        """Whether plain file operations work on `path`."""
        return isinstance(self.filesystem, fs.LocalFileSystem)

    def info(self) -> fs.FileInfo:
        """Type, size and time; of type NotFound where nothing is there."""
        with explained(self):
            return self.filesystem.get_file_info(self.path)

    def exists(self) -> bool:
        """Whether a file or folder is there."""
        return self.info().type != fs.FileType.NotFound

    def files(self) -> Iterator[tuple[str, fs.FileInfo]]:
        """Yield relative name and info of each file below, in the order of their names."""
        selector = fs.FileSelector(self.path, recursive=True, allow_not_found=True)
        with explained(self):
            found = self.filesystem.get_file_info(selector)
        # Some file systems report paths without the leading slash that the folder was asked with.
        skip = len(self.path.lstrip("/")) + 1
        named = [(info.path.lstrip("/")[skip:], info) for info in found if info.is_file]
        yield from sorted(named, key=lambda pair: pair[0])

    def folders(self) -> list[str]:
        """Names of the folders directly below."""
        selector = fs.FileSelector(self.path, allow_not_found=True)
        with explained(self):
            found = self.filesystem.get_file_info(selector)
        return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)

    def make_folder(self) -> None:
        """Make the folder and its parents."""
        with explained(self):
            self.filesystem.create_dir(self.path, recursive=True)

    def remove(self) -> None:
        """Remove the file, or the folder with all it holds; nothing there is fine."""
        kind = self.info().type
        with explained(self):
            if kind == fs.FileType.Directory:
                self.filesystem.delete_dir(self.path)
            elif kind != fs.FileType.NotFound:
                self.filesystem.delete_file(self.path)

    def read(self) -> bytes:
        """Return the whole file."""
        with explained(self), self.filesystem.open_input_stream(self.path) as stream:
            return cast(bytes, stream.read())

    def read_json(self) -> Any:
        """Return what the JSON file holds; ValueError where it is damaged."""
        return json.loads(self.read().decode("utf-8"))

    def write(self, content: bytes) -> None:
        """Write the file so that a reader finds the old content or the new, never a part.

        Where a rename cannot replace a file (HDFS), the old one is removed first; for that
        moment `read_replaced` finds the new one under its temporary name.
        """
        parent = self.path.rsplit("/", 1)[0]
        with explained(self):
            self.filesystem.create_dir(parent, recursive=True)
            with self.filesystem.open_output_stream(self._waiting.path) as stream:
                stream.write(content)
            if not self.is_local:
                self.remove()
            self.filesystem.move(self._waiting.path, self.path)

    def write_json(self, content: Any) -> None:
        """Write JSON with sorted keys, as `write` does."""
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
        self.write(f"{text}\n".encode())

    def read_replaced(self) -> Any:
        """Return the JSON that `write_json` put here last, None where it never did."""
        for place in (self, self._waiting):
            if place.exists():
                return place.read_json()
        return None

    def sha256(self) -> str:
        """Hexadecimal digest of the file, read in chunks."""
        digest = hashlib.sha256()
        with explained(self), self.filesystem.open_input_stream(self.path) as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
        return digest.hexdigest()

    @property
    def _waiting(self) -> Place:
        # A leading dot or underscore hides the name from Spark's readers.
        folder, _, name = self.path.rpartition("/")
        uri_folder = self.uri.rpartition("/")[0]
        return Place(self.filesystem, f"{folder}/.{name}.new", f"{uri_folder}/.{name}.new")


def _connect(uri: str) -> tuple[fs.FileSystem, str]:
    return cast(tuple[fs.FileSystem, str], fs.FileSystem.from_uri(uri))


@contextmanager
def explained(place: object) -> Iterator[None]:
    """Turn a file system's error into one line (STORE01)."""
    try:
        yield
    except PROBLEMS as error:
        raise StorageError("STORE01", path=str(place), problem=one_line(error)) from error


def one_line(error: BaseException) -> str:
    """Return the first line of an error's text."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).strip().splitlines()[0][:300]


def fingerprint(path: str) -> str:
    """Digest of an input's names, sizes and times, without reading it.

    A folder with a manifest (a model, a committed run) is known by its manifest instead.

    Parameters
    ----------
    path
        A file, a folder, a glob, or a URI. What only Spark can reach is known by its name.

    Returns
    -------
    str
        64 hexadecimal digits.

    Raises
    ------
    FileNotFoundError
        Nothing is there, or no file matches.
    """
    digest = hashlib.sha256(path.encode())
    for place in _expand(path):
        if (place / "manifest.json").exists():
            digest.update((place / "manifest.json").read())
            continue
        info = place.info()
        below = [("", info)] if info.is_file else list(place.files())
        for name, file in below:
            digest.update(f"{place.name}/{name} {file.size} {file.mtime_ns}\n".encode())
    return digest.hexdigest()


def _expand(path: str) -> list[Place]:
    has_pattern = re.search(r"[*?\[{]", path) is not None
    try:
        place = Place.of(path)
        found = place.exists()
    except StorageError:
        return []
    if found:
        return [place]
    if not has_pattern:
        raise FileNotFoundError(path)
    if not place.is_local or "{" in path:
        return []
    matches = sorted(glob.glob(place.path))
    if not matches:
        raise FileNotFoundError(path)
    return [Place.of(match) for match in matches]
