"""Model folders: ``arrays.npz``, ``model.json``, and a manifest that is checked before all."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from corpusmill.errors import ModelError, StorageError
from corpusmill.storage.arrays import pack, unpack
from corpusmill.storage.places import Place, one_line
from corpusmill.types import AnyArray

MANIFEST = "manifest.json"
ARRAYS = "arrays.npz"
ABOUT = "model.json"
Restored = TypeVar("Restored")


class SavedModel(NamedTuple):
    """What a model folder holds.

    Attributes
    ----------
    arrays : dict of arrays
        The parameters.
    info : dict
        What else the model was saved with, as JSON holds it.
    texts : dict of str
        The contents of the files that other programs read too, by name.
    """

    arrays: dict[str, AnyArray]
    info: dict[str, Any]
    texts: dict[str, str]


def save_model(
    folder: str,
    kind: str,
    version: int,
    arrays: Mapping[str, AnyArray],
    info: Mapping[str, Any],
    texts: Mapping[str, str] | None = None,
) -> None:
    """Save a model; the manifest comes last, so that a folder without it is not whole.

    The same model gives the same bytes.

    Parameters
    ----------
    folder
        A path or URI; files of the same names are replaced.
    kind, version
        What `load_model` must be asked for.
    arrays
        Any arrays without Python objects.
    info
        What JSON can hold, without NaN.
    texts
        Further files by name, such as trees in a library's own format.

    Raises
    ------
    StorageError
        STORE01: the folder cannot be written.
    """
    place = Place.of(folder)
    shapes = {
        name: {"shape": list(array.shape), "dtype": array.dtype.str}
        for name, array in sorted(arrays.items())
    }
    about = {"kind": kind, "version": version, "arrays": shapes, "info": dict(info)}
    text = json.dumps(about, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    contents = {ARRAYS: pack(arrays), ABOUT: text.encode()}
    contents |= {name: content.encode() for name, content in (texts or {}).items()}
    (place / MANIFEST).remove()
    for name, content in contents.items():
        (place / name).write(content)
    sums = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in contents.items()
    }
    (place / MANIFEST).write_json({"kind": kind, "version": version, "files": sums})


def load_model(folder: str, kind: str, version: int = 1) -> SavedModel:
    """Load what `save_model` saved, after every check.

    Manifest, kind, version and checksums are checked before a file is parsed, shapes and
    types of the arrays before they are returned. Nothing of the folder is executed.

    Parameters
    ----------
    folder
        A path or URI.
    kind, version
        What the folder must hold.

    Raises
    ------
    ModelError
        MODEL01: no such model, or of another kind or version; MODEL02: altered or cut off.
    """
    place = Place.of(folder)
    manifest = _manifest(place, kind)
    for key, wanted in (("kind", kind), ("version", version)):
        if manifest[key] != wanted:
            problem = f"its {key} is {manifest[key]!r}, expected {wanted!r}"
            raise ModelError("MODEL01", path=place, kind=kind, problem=problem)
    names = [ABOUT, ARRAYS, *sorted(manifest["files"].keys() - {ABOUT, ARRAYS})]
    contents = [_checked(place, name, manifest, kind) for name in names]
    try:
        about, arrays = json.loads(contents[0]), unpack(contents[1])
        texts = {name: item.decode() for name, item in zip(names[2:], contents[2:], strict=True)}
        stated = {name: (entry["shape"], entry["dtype"]) for name, entry in about["arrays"].items()}
        info, of = about["info"], (about["kind"], about["version"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        problem = f"its files are not what a model holds ({one_line(error)})"
        raise ModelError("MODEL01", path=place, kind=kind, problem=problem) from error
    found = {name: (list(array.shape), array.dtype.str) for name, array in arrays.items()}
    if found != stated or of != (kind, version):
        problem = f"{ABOUT} and {ARRAYS} do not fit together"
        raise ModelError("MODEL01", path=place, kind=kind, problem=problem)
    return SavedModel(arrays, info, texts)


def restore_model(
    folder: str,
    kind: str,
    version: int,
    restored: Callable[[SavedModel], Restored],
) -> Restored:
    """Load a model folder and make of what it holds what it was saved from.

    Raises
    ------
    ModelError
        As `load_model`; MODEL01 too where they are not what ``restored`` needs, which tells so by
        a KeyError, TypeError or ValueError.
    """
    saved = load_model(folder, kind, version)
    try:
        return restored(saved)
    except (KeyError, TypeError, ValueError) as error:
        problem = f"its files are not what this model holds ({one_line(error)})"
        raise ModelError("MODEL01", path=folder, kind=kind, problem=problem) from error


def _manifest(place: Place, kind: str) -> dict[str, Any]:
    try:
        if not (place / MANIFEST).exists():
            problem = f"it has no {MANIFEST}" if place.exists() else "no such folder"
            raise ModelError("MODEL01", path=place, kind=kind, problem=problem)
        manifest = (place / MANIFEST).read_json()
    except (StorageError, ValueError) as error:
        problem = f"its {MANIFEST} cannot be read"
        raise ModelError("MODEL01", path=place, kind=kind, problem=problem) from error
    whole = isinstance(manifest, dict) and {"kind", "version", "files"} <= manifest.keys()
    if not whole or not isinstance(manifest["files"], dict) or not _plain(manifest["files"]):
        problem = f"its {MANIFEST} is not one of a model"
        raise ModelError("MODEL01", path=place, kind=kind, problem=problem)
    return manifest


def _plain(names: Mapping[str, Any]) -> bool:
    """Tell whether all are names of files in the folder itself."""
    return all(re.fullmatch(r"\w[\w.-]*", name, re.ASCII) for name in names)


def _checked(place: Place, name: str, manifest: dict[str, Any], kind: str) -> bytes:
    # The bytes that are checked are the bytes that are parsed: the file is read once.
    if not (place / name).exists():
        raise ModelError("MODEL01", path=place, kind=kind, problem=f"it has no {name}")
    content = (place / name).read()
    entry = manifest["files"].get(name)
    stated = entry.get("sha256") if isinstance(entry, dict) else None
    if hashlib.sha256(content).hexdigest() != stated:
        raise ModelError("MODEL02", path=place, file=name)
    return content
