"""What is known of entities: titles, popularity, types, in-links; flat arrays. No Spark."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.corpora.knowledge_names import ATTRIBUTES, TYPE_PREFIX, TYPES
from corpusmill.linking import kernels
from corpusmill.linking.folding import characters, keys_of
from corpusmill.linking.rows import lists_of, matrix_of, numbers_of, rows_of
from corpusmill.types import AnyArray, Flags, Floats, Offsets

LOGARITHMS = ("in_links", "out_links", "views")
"""The attributes that are counts: log(1 + value) is kept."""


class Entities(NamedTuple):
    """Entities by number.

    0.95 million of them, with titles of 23 characters on average, are 180 MB.

    Attributes
    ----------
    names : pa.Array of strings, shape (entities,)
        Titles with underscores; of several spellings the one with most capitals.
    keys : uint64, shape (keys,)
        Ascending: the keys of all titles and redirects.
    owners : int32, shape (keys,)
        The entity of each key.
    attributes : float32, shape (entities, ATTRIBUTES)
        0 where nothing is known.
    types : uint8, shape (entities,)
        A bit for each of `knowledge_names.TYPES`.
    titles, title_bounds
        Folded code points of the titles without "(...)": title e is
        ``titles[title_bounds[e]:title_bounds[e + 1]]``.
    title_keys, initials : uint64, shape (entities,)
        Keys of that title and of the first letters of its words.
    has_suffix : bool, shape (entities,)
        Whether the title ends in "(...)".
    links, link_bounds
        The pages that link to entity e are ``links[link_bounds[e]:link_bounds[e + 1]]``, numbers
        of entities, ascending; where only some entities are known (`of_rows`), numbers among all.
    """

    names: pa.Array
    keys: AnyArray
    owners: AnyArray
    attributes: AnyArray
    types: AnyArray
    titles: AnyArray
    title_bounds: Offsets
    title_keys: AnyArray
    initials: AnyArray
    has_suffix: Flags
    links: AnyArray
    link_bounds: Offsets

    @property
    def size(self) -> int:
        """The number of entities."""
        return len(self.types)

    @classmethod
    def build(cls, rows: pa.Table, values: pa.Table, links: pa.Table) -> Entities:
        """Give a number to each entity that occurs.

        Parameters
        ----------
        rows
            `schemas.LEXICON`, but for ``source``, which is not read. Those of kind "redirect" say
            that the surface, as a title, stands for the entity; chains are followed to their end,
            or 8 steps.
        values
            `schemas.ENTITIES`; attributes of other names are passed over.
        links
            `schemas.LINKS`; a page that links may be of any title.

        Returns
        -------
        Entities

        Notes
        -----
        O(n log n) in all rows.
        """
        blocks = (rows["entity"], values["entity"], links["source"], links["target"])
        titles = _joined([block.cast(pa.string()) for block in blocks])
        spellings, spelled = _spellings(titles, keys_of(titles))
        sources, targets = _redirects(rows)
        # The target of a redirect is the entity of its row, so every root is spelled.
        roots, owners = np.unique(_resolve(spelled, sources, targets), return_inverse=True)
        names = spellings.take(pa.array(np.searchsorted(spelled, roots)))
        further = np.setdiff1d(sources, spelled)
        ends, reached = _places_of(_resolve(further, sources, targets), roots)
        keys, ends = np.concatenate([spelled, further[reached]]), ends[reached]
        order = np.argsort(keys)
        keys, owner = keys[order], np.concatenate([owners, ends])[order].astype(np.int32)
        attributes, types = _values(values, _numbers(keys, owner, values["entity"]), len(roots))
        base = pc.replace_substring_regex(names, r"[_ ]*\([^()]*\)$", "")
        folded = characters(base)
        bounds = folded.folds[folded.texts]
        # A hyphen divides words here as a space does: "Asia-Pacific" has the initials AP.
        letters = pc.replace_substring_regex(base, r"([^\s_-])[^\s_-]*", r"\1")
        source, target = (_numbers(keys, owner, links[end]) for end in ("source", "target"))
        in_links, link_bounds = _in_links(source, target, len(roots))
        return cls(
            names, keys, owner, attributes, types,
            folded.folded, bounds,
            kernels.hash_ranges(folded.folded, bounds[:-1], bounds[1:]), keys_of(letters),
            pc.not_equal(base, names).to_numpy(zero_copy_only=False), in_links, link_bounds,
        )  # fmt: skip

    def rows(self) -> pa.Table:
        """Give a row an entity, with all of its keys; its number is in ``number``."""
        order = np.argsort(self.owners, kind="stable")
        bounds = np.searchsorted(self.owners[order], np.arange(self.size + 1))
        return rows_of(
            {
                "number": np.arange(self.size),
                "name": self.names,
                "keys": (bounds, self.keys[order]),
                "attributes": self.attributes,
                "types": self.types,
                "title": (self.title_bounds, self.titles),
                "title_key": self.title_keys,
                "initials": self.initials,
                "has_suffix": self.has_suffix,
                "links": (self.link_bounds, self.links),
            }
        )

    @classmethod
    def of_rows(cls, rows: pa.Table) -> Entities:
        """Put some of the rows of `rows`, their numbers ascending, together again; O(n log n).

        They are numbered anew, but the pages that link to them are not, which need not be among
        them.
        """
        bounds, keys = lists_of(rows, "keys", np.uint64)
        owners = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(bounds))
        order = np.argsort(keys)
        title_bounds, titles = lists_of(rows, "title", np.uint32)
        link_bounds, links = lists_of(rows, "links", np.int32)
        return cls(
            rows["name"].combine_chunks(),
            keys[order],
            owners[order],
            matrix_of(rows, "attributes", np.float32, len(ATTRIBUTES)),
            numbers_of(rows, "types", np.uint8),
            titles,
            title_bounds,
            numbers_of(rows, "title_key", np.uint64),
            numbers_of(rows, "initials", np.uint64),
            numbers_of(rows, "has_suffix", np.bool_),
            links,
            link_bounds,
        )

    def numbers(self, titles: pa.Array | pa.ChunkedArray) -> AnyArray:
        """Give the number of each title, redirects followed; -1 for an unknown one. int32."""
        return _numbers(self.keys, self.owners, titles)

    def is_type(self, name: str) -> Flags:
        """Tell which entities are of a type of `knowledge_names.TYPES`."""
        return (self.types >> TYPES.index(name)) & 1 != 0

    def attribute(self, name: str, entities: AnyArray) -> Floats:
        """Give an attribute of entities, log(1 + value) if it is one of `LOGARITHMS`."""
        return self.attributes[entities, ATTRIBUTES.index(name)].astype(np.float64)

    def in_degrees(self, entities: AnyArray) -> Floats:
        """Count the links to each of some entities: log(1 + in-links known)."""
        return np.log1p(self.link_bounds[entities + 1] - self.link_bounds[entities])

    def popularity(self) -> Floats:
        """Weigh what is known of all entities for the order of candidates.

        ``in_links + 3 popular + 4 [fame > 0] + log(1 + in-links known)``; float64.
        """
        every = np.arange(self.size)
        known = self.attribute("in_links", every) + 3.0 * self.attribute("popular", every)
        return known + 4.0 * (self.attribute("fame", every) > 0) + self.in_degrees(every)


def _joined(columns: list[pa.ChunkedArray]) -> pa.Array:
    chunks = [chunk for column in columns for chunk in column.chunks]
    joined = pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
    return pc.replace_substring(joined, " ", "_")


def _spellings(titles: pa.Array, keys: AnyArray) -> tuple[pa.Array, AnyArray]:
    """Choose a spelling for each key but 0: most capitals, then the first in byte order."""
    encoded = titles.dictionary_encode()
    distinct = encoded.dictionary
    first = np.full(len(distinct), -1, np.int64)
    indices = encoded.indices.to_numpy()
    first[indices] = np.arange(len(indices))
    key = keys[first] if len(first) else np.zeros(0, np.uint64)
    capitals = pc.count_substring_regex(distinct, r"\p{Lu}").to_numpy()
    rank = np.empty(len(distinct), np.int64)
    rank[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    order = np.lexsort((rank, -capitals, key))
    order = order[key[order] != 0]
    unique, at = np.unique(key[order], return_index=True)
    return distinct.take(pa.array(order[at])), unique


def _redirects(rows: pa.Table) -> tuple[AnyArray, AnyArray]:
    """Give the keys that are redirected, ascending and distinct, and where to."""
    chosen = rows.filter(pc.equal(rows["kind"], "redirect"))
    source, target = keys_of(_joined([chosen["surface"]])), keys_of(_joined([chosen["entity"]]))
    kept = (source != 0) & (target != 0) & (source != target)
    order = np.lexsort((target[kept], source[kept]))
    source, target = source[kept][order], target[kept][order]
    unique, first = np.unique(source, return_index=True)
    return unique, target[first]


def _places_of(keys: AnyArray, roots: AnyArray) -> tuple[AnyArray, Flags]:
    """Find keys among ascending roots; one that is none was left in the midst of its chain."""
    at = np.minimum(np.searchsorted(roots, keys), max(len(roots) - 1, 0))
    return at, (roots[at] == keys) if len(roots) else np.zeros(len(keys), np.bool_)


def _resolve(keys: AnyArray, sources: AnyArray, targets: AnyArray) -> AnyArray:
    ends = keys.copy()
    if not len(sources):
        return ends
    for _ in range(8):
        at = np.minimum(np.searchsorted(sources, ends), len(sources) - 1)
        ends = np.where(sources[at] == ends, targets[at], ends)
    return ends


def _numbers(keys: AnyArray, owners: AnyArray, titles: pa.Array | pa.ChunkedArray) -> AnyArray:
    sought = keys_of(titles)
    if not len(keys):
        return np.full(len(sought), kernels.NONE, np.int32)
    at = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
    return np.where(keys[at] == sought, owners[at], kernels.NONE).astype(np.int32)


def _values(values: pa.Table, numbers: AnyArray, size: int) -> tuple[AnyArray, AnyArray]:
    attributes = np.zeros((size, len(ATTRIBUTES)), np.float32)
    types = np.zeros(size, np.uint8)
    amounts = values["value"].to_numpy().astype(np.float64)
    kinds = values["attribute"]
    usable = (numbers >= 0) & np.isfinite(amounts)
    for place, name in enumerate(ATTRIBUTES):
        mine = usable & pc.equal(kinds, name).to_numpy()
        kept = np.log1p(np.maximum(amounts, 0.0)) if name in LOGARITHMS else amounts
        np.maximum.at(attributes, (numbers[mine], place), kept[mine])
    for bit, name in enumerate(TYPES):
        mine = usable & pc.equal(kinds, TYPE_PREFIX + name).to_numpy()
        np.bitwise_or.at(types, numbers[mine], np.uint8(1 << bit))
    return attributes, types


def _in_links(source: AnyArray, target: AnyArray, size: int) -> tuple[AnyArray, Offsets]:
    kept = (source >= 0) & (target >= 0) & (source != target)
    target, source = np.divmod(np.unique(target[kept].astype(np.int64) * size + source[kept]), size)
    bounds = np.searchsorted(target, np.arange(size + 1))
    return source.astype(np.int32), bounds
