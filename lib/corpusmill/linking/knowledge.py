"""What a linker knows beside its learned scores: lexicon, entities and words. No Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill import storage
from corpusmill.linking.entities import Entities
from corpusmill.linking.lexicon import KeyTable, Lexicon
from corpusmill.linking.words import Words
from corpusmill.types import AnyArray

KIND = "knowledge"
VERSION = 1


class Knowledge(NamedTuple):
    """Lexicon, entities and words that were made for each other.

    Attributes
    ----------
    lexicon : Lexicon
    entities : Entities
    words : Words
    """

    lexicon: Lexicon
    entities: Entities
    words: Words

    def arrays(self) -> dict[str, AnyArray]:
        """Give all as arrays without Python objects, by name, for `storage.save_model`."""
        names = self.entities.names
        found = {
            "entities.name_bytes": np.frombuffer("".join(names.to_pylist()).encode(), np.uint8),
            "entities.name_sizes": pc.binary_length(names).to_numpy(),
        }
        rooms: dict[str, Any] = self._asdict()
        for room, part in rooms.items():
            for name, value in part._asdict().items():
                if isinstance(value, KeyTable):
                    found[f"{room}.{name}"] = value.hashes
                elif isinstance(value, np.ndarray):
                    found[f"{room}.{name}"] = value
        return found

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, AnyArray]) -> Knowledge:
        """Make it of what `arrays` gave; KeyError where an array is missing. O(keys)."""
        bounds = np.concatenate(([0], np.cumsum(arrays["entities.name_sizes"], dtype=np.int64)))
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(arrays["entities.name_bytes"])]
        names = pa.Array.from_buffers(pa.large_string(), len(bounds) - 1, buffers)
        names.validate(full=True)

        def part(room: str, kind: type[Any], **made: object) -> Any:
            others = (name for name in kind._fields if name not in made)
            return kind(**made, **{name: arrays[f"{room}.{name}"] for name in others})

        return cls(
            part("lexicon", Lexicon, surfaces=KeyTable.build(arrays["lexicon.surfaces"])),
            part("entities", Entities, names=names.cast(pa.string())),
            part("words", Words, keys=KeyTable.build(arrays["words.keys"])),
        )


def save_knowledge(folder: str, knowledge: Knowledge) -> None:
    """Write it as npz without pickle, under a manifest."""
    storage.save_model(folder, KIND, VERSION, knowledge.arrays(), {})


def load_knowledge(folder: str) -> Knowledge:
    """Read what `save_knowledge` wrote, after its manifest has been checked.

    Raises
    ------
    ModelError
        Missing, altered, truncated, or of another kind.
    """
    return storage.restore_model(
        folder, KIND, VERSION, lambda saved: Knowledge.of_arrays(saved.arrays)
    )
