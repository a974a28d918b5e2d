"""Words and n-grams: how often texts have them, how they are written, their lists. No Spark.

Counts come from any two sets of texts without labels: ``texts`` like those to be linked, and
``edited`` ones, where capitals mean something. What begins a sentence is not counted, as it says
nothing about capitals. Lists are of three sorts: those of `LISTS`, first and last names of the
people among the entities, and ``common``, the words of a dictionary, if one is given.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.linking.entities import Entities
from corpusmill.linking.folding import UPPER, keys_of
from corpusmill.linking.lexicon import KeyTable, Lexicon
from corpusmill.linking.rows import matrix_of, numbers_of, rows_of
from corpusmill.linking.units import Units, find_ngrams
from corpusmill.types import AnyArray, Floats

BACKGROUNDS = ("texts", "edited")
LISTS = {
    "date": "january february march april may june july august september october november december"
    " jan feb mar apr jun jul aug sep sept oct nov dec monday tuesday wednesday thursday friday"
    " saturday sunday mon tue wed thu fri sat sun today tomorrow tonight yesterday",
    "organization": "inc corp company university college fc afc united party bank group council"
    " association police department club school union ministry commission committee news radio tv"
    " times post",
    "location": "city county street river lake park island islands valley mountain mountains bay"
    " beach road avenue airport bridge square north south east west",
    "event": "war festival championship cup olympics games awards award day election attack"
    " attacks riots tour league open prix",
    "product": "movie film album song show book app iphone ipad windows game magazine",
    "rank": "mr mrs president sen senator minister dr judge king queen prince rep gov coach pm",
    "place_preposition": "in at from near",
    "other_preposition": "to of on",
    "agent_preposition": "by via with and",
    "determiner": "the a an my your",
    "retweet": "rt",
}
"""Words that tell what stands beside them."""
FLAGS = (*LISTS, "first_name", "last_name", "common")


class Words(NamedTuple):
    """Words and n-grams by key.

    Attributes
    ----------
    keys : KeyTable
    counts, capitals : float32, shape (keys + 1, BACKGROUNDS)
        How often texts have it, and with a capital first; the last row, of what is not in the
        table, is 0.
    flags : uint16, shape (keys + 1,)
        A bit for each of `FLAGS`; 0 in the last row.
    """

    keys: KeyTable
    counts: AnyArray
    capitals: AnyArray
    flags: AnyArray

    @classmethod
    def build(
        cls, counted: dict[str, pa.Table], common: pa.Array | None, entities: Entities
    ) -> Words:
        """Put counts and lists into one table.

        Parameters
        ----------
        counted
            By name of `BACKGROUNDS`: the sums over batches of `count_words`, columns ``key``
            (int64), ``count`` and ``capitals``; one that is missing is empty.
        common
            Words and phrases of a dictionary.
        entities
            Its people give the names.

        Notes
        -----
        O(n log n).
        """
        lists = {name: keys_of(pa.array(words.split())) for name, words in LISTS.items()}
        base = pc.replace_substring_regex(entities.names, r"_*\([^()]*\)$", "")
        people = base.filter(pa.array(entities.is_type("person")))
        people = people.filter(pc.match_substring(people, "_"))
        lists["first_name"] = keys_of(pc.replace_substring_regex(people, "_.*$", ""))
        lists["last_name"] = keys_of(pc.replace_substring_regex(people, "^.*_", ""))
        lists["common"] = keys_of(common if common is not None else pa.array([], pa.string()))
        backgrounds = {name: _keys(table) for name, table in counted.items()}
        every = np.unique(np.concatenate([*lists.values(), *backgrounds.values()]))
        every = every[every != 0]
        table = KeyTable.build(every)
        counts = np.zeros((len(every) + 1, len(BACKGROUNDS)), np.float32)
        capitals = np.zeros_like(counts)
        for name, keys in backgrounds.items():
            at = (table.find(keys), BACKGROUNDS.index(name))
            counts[at] = counted[name]["count"].to_numpy()
            capitals[at] = counted[name]["capitals"].to_numpy()
        flags = np.zeros(len(every) + 1, np.uint16)
        for bit, name in enumerate(FLAGS):
            # Key 0, a word without letters, is -1 and sets the last row: taken back below.
            flags[table.find(lists[name])] |= np.uint16(1 << bit)
        flags[-1] = 0
        return cls(table, counts, capitals, flags)

    def rows(self) -> pa.Table:
        """Give a row a word or n-gram; its key is in ``key``, as int64."""
        return rows_of(
            {
                "key": self.keys.hashes,
                "counts": self.counts[:-1],
                "capitals": self.capitals[:-1],
                "flags": self.flags[:-1],
            }
        )

    @classmethod
    def of_rows(cls, rows: pa.Table) -> Words:
        """Put some of the rows of `rows` together again, in any order."""
        width, last = len(BACKGROUNDS), ((0, 1), (0, 0))
        return cls(
            KeyTable.build(numbers_of(rows, "key", np.uint64)),
            np.pad(matrix_of(rows, "counts", np.float32, width), last),
            np.pad(matrix_of(rows, "capitals", np.float32, width), last),
            np.pad(numbers_of(rows, "flags", np.uint16), (0, 1)),
        )

    def find(self, keys: AnyArray) -> AnyArray:
        """Find the row of each key; that of an unknown one is the last. int64."""
        rows = self.keys.find(keys).astype(np.int64)
        return np.where(rows < 0, len(self.flags) - 1, rows)

    def has(self, rows: AnyArray, flag: str) -> AnyArray:
        """Tell which rows have a flag of `FLAGS`."""
        return (self.flags[rows] >> FLAGS.index(flag)) & 1 != 0

    def capital_rate(self, rows: AnyArray, background: str) -> Floats:
        """Give ``(capitals + 0.5) / (count + 1)`` of rows, the rate of a capital first."""
        place = BACKGROUNDS.index(background)
        count, capitals = self.counts[rows, place], self.capitals[rows, place]
        return (capitals.astype(np.float64) + 0.5) / (count.astype(np.float64) + 1.0)

    def seen(self, rows: AnyArray, background: str) -> Floats:
        """Give how often the texts have each; float64."""
        return self.counts[rows, BACKGROUNDS.index(background)].astype(np.float64)


def count_words(units: Units, lexicon: Lexicon) -> pa.RecordBatch:
    """Count the words of texts, and the n-grams that the lexicon knows, by key.

    Parameters
    ----------
    units
        Of a batch of texts (`units.units_of`).
    lexicon
        Whose n-grams of two units and more count beside the single units.

    Returns
    -------
    pa.RecordBatch
        ``key`` (int64, the bits of the key), ``count`` and ``capitals`` (int64), distinct keys;
        batches are merged by summing over keys.

    Notes
    -----
    O(n log n) in the units.
    """
    single = np.flatnonzero((units.segments >= 0) & ~units.inner)
    grams = find_ngrams(units, lexicon.surfaces)
    longer = grams[grams[:, 1] > grams[:, 0]]
    keys = np.concatenate([units.keys[single], lexicon.surfaces.hashes[longer[:, 2]]])
    firsts = np.concatenate([single, longer[:, 0]])
    kept = (keys != 0) & ~units.initial[firsts]
    upper = (units.characters.classes[units.begins[firsts[kept]]] & UPPER) != 0
    distinct, number = np.unique(keys[kept], return_inverse=True)
    count = np.bincount(number, minlength=len(distinct))
    capitals = np.bincount(number[upper], minlength=len(distinct))
    return pa.record_batch({"key": distinct.view(np.int64), "count": count, "capitals": capitals})


def _keys(table: pa.Table) -> AnyArray:
    return table["key"].to_numpy().astype(np.int64).view(np.uint64)
