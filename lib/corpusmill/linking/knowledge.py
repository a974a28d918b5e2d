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
from corpusmill.linking.rows import numbers_of
from corpusmill.linking.words import Words
from corpusmill.types import AnyArray

KIND = "knowledge"
VERSION = 1


_COUNTED = "entity_links"


class Rows(NamedTuple):
    """Knowledge as tables.

    Attributes
    ----------
    surfaces : pa.Table
        `Lexicon.rows`.
    entities : pa.Table
        `Entities.rows`, and the lexicon's ``entity_links``.
    words : pa.Table
        `Words.rows`.
    """

    surfaces: pa.Table
    entities: pa.Table
    words: pa.Table


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

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        values = [value for part in self for value in part]
        tables = [value for value in values if isinstance(value, KeyTable)]
        others = [value for value in values if not isinstance(value, KeyTable)]
        return sum(
            value.nbytes for value in [*others, *(each for table in tables for each in table)]
        )

    def rows(self) -> Rows:
        """Give all as rows, to be chosen from; O(keys)."""
        entities = self.entities.rows()
        counted = pa.array(self.lexicon.entity_links)
        return Rows(
            self.lexicon.rows(), entities.append_column(_COUNTED, counted), self.words.rows()
        )

    @classmethod
    def of_rows(cls, rows: Rows) -> Knowledge:
        """Make the knowledge of some rows.

        Parameters
        ----------
        rows
            Of `rows`, each at most once and in any order. Texts are linked by them exactly as by
            all if they hold the surface forms and words with a key of `units.sought_keys` of the
            texts, the candidates of these surface forms, and the entities of the titles that the
            texts' true mentions name.

        Notes
        -----
        O(n log n) in the rows.
        """
        entities = rows.entities.sort_by("number")
        numbers = numbers_of(entities, "number", np.int64)
        counted = numbers_of(entities, _COUNTED, np.float32)
        return cls(
            Lexicon.of_rows(rows.surfaces, numbers, counted),
            Entities.of_rows(entities),
            Words.of_rows(rows.words),
        )

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
