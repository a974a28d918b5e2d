"""The lexicon: surface forms and their candidate entities, in flat arrays. No Spark.

An entity is known by the key of its title (`folding`): "Star_Wars" and "star wars" are one, and so
are titles that differ in punctuation alone. Redirects are followed before anything is counted.
Titles are surface forms of their own: whole, without "(...)" at the end, before a comma, without a
leading "The" or a trailing "F.C.", "Inc." and the like; people also by their last name.

The candidates of a surface form stand in falling order of

    prior(m, e) = 4 log(1 + text + 3 short + query) + 0.5 popularity(e)
                + 2 [title] + 1.5 [alias] + 1.5 [redirect or hashtag] + 0.7 [candidate]
                - [last name only] - 0.5 [before a comma only]

so that the first T are what a linker looks at. Counts are by `knowledge_names.LINK_KINDS`, names
by `NAME_KINDS` there; popularity(e) is `Entities.popularity`. The weights were set by hand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.corpora import gazetteer_kernels as tables
from corpusmill.corpora.knowledge_names import LINK_KINDS, NAME_KINDS
from corpusmill.linking import kernels
from corpusmill.linking.entities import Entities
from corpusmill.linking.folding import LOWER, UPPER, characters, keys_of
from corpusmill.linking.rows import lists_of, matrix_of, numbers_of, rows_of
from corpusmill.types import AnyArray, Flags, Floats, Offsets

PATTERNS = 3
"""All capitals, a capital first, anything else: how a surface form is written."""


class KeyTable(NamedTuple):
    """A hash table of distinct keys.

    Attributes
    ----------
    hashes : uint64, shape (keys,)
    slots : int32, a power of two at least twice as long
    """

    hashes: AnyArray
    slots: AnyArray

    @classmethod
    def build(cls, hashes: AnyArray) -> KeyTable:
        """Index distinct keys other than 0; O(keys)."""
        slots = np.full(tables.capacity(len(hashes)), kernels.NONE, np.int32)
        tables.index_strings(hashes, slots)
        return cls(hashes, slots)

    def find(self, keys: AnyArray) -> AnyArray:
        """Find the number of each key, -1 for an unknown one; int32."""
        return kernels.find_keys(keys, *self)


class Lexicon(NamedTuple):
    """Surface forms with their candidates.

    1.05 million forms with 1.14 million candidates of 0.95 million entities are 78 MB.

    Attributes
    ----------
    surfaces : KeyTable
        The keys of the surface forms.
    offsets : Offsets, shape (surfaces + 1,)
        Surface s has the candidates ``offsets[s]:offsets[s + 1]``, the likeliest first.
    written : float32, shape (surfaces, PATTERNS)
        How often the surface form is written so where its links were counted.
    links : float32, shape (surfaces, LINK_KINDS)
        How often the surface form is a link, whatever to.
    entities : int32, shape (candidates,)
        Numbers of `entities.Entities`.
    counts : float32, shape (candidates, LINK_KINDS)
        How often the surface form is linked to the entity.
    names : uint8, shape (candidates,)
        A bit for each of `NAME_KINDS`.
    prior : float32, shape (candidates,)
    entity_links : float32, shape (entities,)
        ``text + 3 short`` of each entity, whatever the surface form.
    """

    surfaces: KeyTable
    offsets: Offsets
    written: AnyArray
    links: AnyArray
    entities: AnyArray
    counts: AnyArray
    names: AnyArray
    prior: AnyArray
    entity_links: AnyArray

    @classmethod
    def build(cls, rows: pa.Table, entities: Entities) -> Lexicon:
        """Collect candidates from rows of any mix of sources.

        Parameters
        ----------
        rows
            `schemas.LEXICON`, but for ``source``, which is not read; rows whose surface or entity
            has no letter or digit are passed over, as are entities that ``entities`` does not know.
        entities
            Made from the same rows (`Entities.build`).

        Returns
        -------
        Lexicon

        Raises
        ------
        ValueError
            A kind that is neither in `LINK_KINDS` nor in `NAME_KINDS`.

        Notes
        -----
        O(n log n) in the rows and titles.
        """
        listed = _with_titles(rows, entities)
        keys = keys_of(listed["surface"])
        numbers = listed["number"].to_numpy()
        kept = np.flatnonzero((keys != 0) & (numbers >= 0))
        keys, numbers = keys[kept], numbers[kept]
        kinds = _kind_numbers(listed["kind"])[kept]
        counts = listed["count"].to_numpy().astype(np.float64)[kept]

        hashes, surface = np.unique(keys, return_inverse=True)
        pairs, pair = np.unique(surface * entities.size + numbers, return_inverse=True)
        linked = np.zeros((len(pairs), len(LINK_KINDS)))
        counted = kinds < len(LINK_KINDS)
        np.add.at(linked, (pair[counted], kinds[counted]), counts[counted])
        names = np.zeros(len(pairs), np.uint8)
        bits = (1 << (kinds[~counted] - len(LINK_KINDS))).astype(np.uint8)
        np.bitwise_or.at(names, pair[~counted], bits)
        written = np.zeros((len(hashes), PATTERNS), np.float32)
        patterns = _patterns(listed["surface"].take(pa.array(kept[counted])))
        np.add.at(written, (surface[counted], patterns), counts[counted])

        owner, entity = np.divmod(pairs, max(entities.size, 1))
        links = np.zeros((len(hashes), len(LINK_KINDS)))
        np.add.at(links, owner, linked)
        per_pair = linked @ np.array([1.0, 3.0, 0.0])
        prior = _prior(linked, names, entities.popularity()[entity])
        order = np.lexsort((entity, -prior, owner))
        return cls(
            KeyTable.build(hashes),
            np.searchsorted(owner, np.arange(len(hashes) + 1)),
            written,
            links.astype(np.float32),
            entity[order].astype(np.int32),
            linked[order].astype(np.float32),
            names[order],
            prior[order].astype(np.float32),
            np.bincount(entity, per_pair, minlength=entities.size).astype(np.float32),
        )

    def rows(self) -> pa.Table:
        """Give a row a surface form, all but ``entity_links``; its key is in ``key``, as int64."""
        return rows_of(
            {
                "key": self.surfaces.hashes,
                "written": self.written,
                "links": self.links,
                "entities": (self.offsets, self.entities),
                "counts": (self.offsets * len(LINK_KINDS), self.counts.ravel()),
                "names": (self.offsets, self.names),
                "prior": (self.offsets, self.prior),
            }
        )

    @classmethod
    def of_rows(cls, rows: pa.Table, entities: AnyArray, entity_links: AnyArray) -> Lexicon:
        """Put some of the rows together again.

        Parameters
        ----------
        rows
            Of `rows`, in any order.
        entities : int64, shape (entities,)
            Ascending: numbers that all candidates of the rows are among. The candidates get the
            places there as their numbers.
        entity_links : float32, shape (entities,)

        Notes
        -----
        O(n log n). The candidates of a surface form keep their order.
        """
        keys = numbers_of(rows, "key", np.uint64)
        order = np.argsort(keys)
        rows = rows.take(pa.array(order))
        offsets, numbers = lists_of(rows, "entities", np.int32)
        return cls(
            KeyTable.build(keys[order]),
            offsets,
            matrix_of(rows, "written", np.float32, PATTERNS),
            matrix_of(rows, "links", np.float32, len(LINK_KINDS)),
            np.searchsorted(entities, numbers).astype(np.int32),
            matrix_of(rows, "counts", np.float32, len(LINK_KINDS)),
            lists_of(rows, "names", np.uint8)[1],
            lists_of(rows, "prior", np.float32)[1],
            entity_links,
        )


def _with_titles(rows: pa.Table, entities: Entities) -> pa.Table:
    """Give surface, number of the entity, kind and count of the rows and of all titles."""
    given = pa.table(
        {
            "surface": rows["surface"],
            "number": pa.array(entities.numbers(rows["entity"])),
            "kind": rows["kind"].cast(pa.string()),
            "count": rows["count"].cast(pa.int64()),
        }
    )
    titles = pc.replace_substring(entities.names, "_", " ")
    base = pc.replace_substring_regex(titles, r"\s*\([^()]*\)$", "")
    plain = pc.replace_substring_regex(base, r"^[Tt]he |,? (A?\.?F\.?C\.?|Inc\.?|Ltd\.?)$", "")
    longer = r"^(.*?) (Corporation|Company|Group)$"
    plain = pc.replace_substring_regex(plain, longer, r"\1")
    short = pc.replace_substring_regex(base, ", .*$", "")
    everyone = np.arange(entities.size, dtype=np.int32)
    blocks = [given, _block(titles, everyone, "title")]
    # A form that is the same as the one before would only say the same once more.
    for kind, form, other in (
        ("title", base, titles),
        ("title", plain, base),
        ("comma", short, base),
    ):
        new = pc.not_equal(form, other)
        blocks.append(_block(form.filter(new), everyone[_flags(new)], kind))
    people = pc.and_(pa.array(entities.is_type("person")), pc.match_substring(base, " "))
    last = pc.replace_substring_regex(base.filter(people), r"^.*\s", "")
    blocks.append(_block(last, everyone[_flags(people)], "last_name"))
    return pa.concat_tables(blocks).combine_chunks()


def _flags(values: pa.Array) -> Flags:
    return values.to_numpy(zero_copy_only=False)


def _block(surfaces: pa.Array, numbers: AnyArray, kind: str) -> pa.Table:
    return pa.table(
        {
            "surface": surfaces,
            "number": pa.array(numbers),
            "kind": pa.repeat(kind, len(numbers)),
            "count": pa.repeat(pa.scalar(1, pa.int64()), len(numbers)),
        }
    )


def _kind_numbers(kinds: pa.ChunkedArray) -> AnyArray:
    known = pa.array([*LINK_KINDS, *NAME_KINDS])
    numbers = pc.index_in(kinds, known)
    if numbers.null_count:
        odd = kinds.filter(pc.is_null(numbers))[0].as_py()
        raise ValueError(f"{odd!r} is no kind of a lexicon's row")
    return numbers.to_numpy()


def _patterns(surfaces: pa.ChunkedArray) -> AnyArray:
    found = characters(surfaces.combine_chunks())
    bounds = found.texts
    return written_as(found.before(UPPER), found.before(LOWER), bounds[:-1], bounds[1:])


def written_as(upper: Offsets, lower: Offsets, starts: AnyArray, ends: AnyArray) -> AnyArray:
    """Tell how ranges of characters are written: 0 all capitals, 1 a capital first, 2 otherwise.

    Parameters
    ----------
    upper, lower : Offsets, shape (characters + 1,)
        How many capitals and small letters stand before each place.
    starts, ends
        The ranges.
    """
    capitals, small = upper[ends] - upper[starts], lower[ends] - lower[starts]
    first = upper[np.minimum(starts + 1, ends)] > upper[starts]
    return np.where((capitals > 0) & (small == 0), 0, np.where(first, 1, 2))


def has_name(names: AnyArray, kind: str) -> AnyArray:
    """Tell which candidates have the bit of a kind of `NAME_KINDS`."""
    return (names >> NAME_KINDS.index(kind)) & 1 != 0


def _prior(counts: Floats, names: AnyArray, popularity: Floats) -> Floats:
    prior = 4.0 * np.log1p(counts @ np.array([1.0, 3.0, 1.0])) + 0.5 * popularity
    for kind, weight in {"title": 2.0, "alias": 1.5, "candidate": 0.7}.items():
        prior += weight * has_name(names, kind)
    prior += 1.5 * (has_name(names, "redirect") | has_name(names, "hashtag"))
    only = np.where(counts.any(axis=1), 0, names)
    prior -= 1.0 * (only == 1 << NAME_KINDS.index("last_name"))
    return prior - 0.5 * (only == 1 << NAME_KINDS.index("comma"))
