"""Values of atoms as people read them. No Spark.

A value is a hash, or a small number: words, tags and labels come back from the strings of the batch
(`names_of`), phrases and paths from the mention that has them, numbers from a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.coreference.attribute_kernels import NESTED, OBJECT, OBLIQUE, OTHER_ROLE, SUBJECT
from corpusmill.coreference.attributes import ATOMS, COMMON, LEXICAL, NAME, PRONOUN, spread
from corpusmill.coreference.beam import SIZES
from corpusmill.coreference.clusters import clusters_of_tree
from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.languages import (
    DEFINITE,
    DEMONSTRATIVE,
    FEMININE,
    INDEFINITE,
    MASCULINE,
    NEUTER,
    OWNED,
    PERSON,
    PLURAL,
    SINGULAR,
)
from corpusmill.coreference.pairs import PAIR_ATOMS
from corpusmill.coreference.preparation import Prepared
from corpusmill.coreference.templates import (
    ANAPHOR,
    ANTECEDENT,
    CLUSTER,
    CLUSTER_ATOMS,
    PAIR,
    Template,
    atom_name,
)
from corpusmill.types import AnyArray

Names = dict[int, str]
ABSENT, RARE = "-", "(rare)"
TYPES = {NAME: "name", COMMON: "common", PRONOUN: "pronoun"}
GENDERS = {MASCULINE: "masculine", FEMININE: "feminine", NEUTER: "neuter", PERSON: "person"}
NUMBERS = {SINGULAR: "singular", PLURAL: "plural"}
DETERMINED = {
    DEFINITE: "definite",
    INDEFINITE: "indefinite",
    DEMONSTRATIVE: "demonstrative",
    OWNED: "owned",
}
ROLES = {
    SUBJECT: "subject",
    OBJECT: "object",
    OBLIQUE: "oblique",
    NESTED: "nested",
    OTHER_ROLE: "other",
}
_BINS = ("0", "1", "2", "3", "4", "5", "6-7", "8-10", "11-15", "16-25", "26-40", "41+")
_NO_YES = (ABSENT, "no", "yes")
PAIR_VALUES = {
    "sentences": (ABSENT, *_BINS),
    "mentions": _BINS,
    "match": (ABSENT, "none", "head", "head, no new word", "core", "exact"),
    "exact": _NO_YES,
    "core": _NO_YES,
    "head": _NO_YES,
    "inside": (ABSENT, "no", "anaphor's head", "antecedent's head", "both heads"),
    "extra": (ABSENT, "0", "1", "2+"),
    "substring": (ABSENT, "no", "anaphor", "antecedent", "both"),
    "alias": _NO_YES,
    "nested": _NO_YES,
    "speaker": (ABSENT, "unknown", "same", "different"),
    "edit": (ABSENT, "equal", "to 1/4", "to 1/2", "more"),
    "clause": (ABSENT, "different", "same"),
    "apposition": _NO_YES,
    "agree": (ABSENT, "yes", "not gender", "not number", "neither"),
    "entity": (ABSENT, "different", "same"),
}
"""What the values of `pairs.compare` say, by atom; a path is spelled by its labels."""


def names_of(batch: pa.RecordBatch) -> Names:
    """Give the strings of a batch by their hashes: of all that an atom may be the hash of.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Of `corpusmill.corpora.schemas.ANNOTATED_DOCUMENTS`.

    Notes
    -----
    O(tokens + constituents), and Python's time for each distinct string.
    """
    found: set[str] = set()
    for name in ("words", "lemmas"):
        found |= {each.lower() for each in _distinct(batch.column(name).flatten())}
    for name in ("pos", "relations", "constituent_labels", "entity_labels"):
        found |= _distinct(batch.column(name).flatten())
    strings = sorted(found | _distinct(batch.column("genre")))
    return dict(zip(hash_strings(strings).tolist(), strings, strict=True))


def _distinct(strings: pa.Array) -> set[str]:
    return {each for each in pc.unique(strings).to_pylist() if each}


def _compound(value: int) -> str:
    """Spell what `attributes.describe_mentions` calls fine."""
    if value < 20:
        person = value - 10
        return f"pronoun {person}" if person else "pronoun"
    kind, determiner = divmod(value, 20)
    return " ".join(filter(None, [DETERMINED.get(determiner), TYPES[kind]]))


def _agreement(value: int) -> str:
    person, rest = divmod(value, 16)
    gender, number = divmod(rest, 3)
    said = [str(person) if person else "", GENDERS.get(gender, ""), NUMBERS.get(number, "")]
    return " ".join(filter(None, said))


def _table(said: dict[int, str]) -> Names:
    return dict(zip(spread(np.array(list(said))).tolist(), said.values(), strict=True))


_YES = _table({1: "yes"})
_NUMBERED = {
    "type": _table(TYPES),
    "fine": _table({n: _compound(n) for n in (*range(10, 15), *range(20, 25), *range(40, 45))}),
    "gender": _table(GENDERS),
    "number": _table(NUMBERS),
    "agreement": _table({n: _agreement(n) for n in range(1, 80)}),
    "quoted": _YES,
    "spoken": _YES,
    "length": _table({n: "8+" if n == 8 else str(n) for n in range(1, 9)}),
    "role": ROLES,
}


def _looked_up(value: int, names: Names) -> str:
    return names.get(value) or f"#{value:016x}"


class Arc(NamedTuple):
    """An arc of a tree, with what stands around it.

    Attributes
    ----------
    begin : int
        The document's first mention in the batch.
    tree : int64, shape (mentions before the anaphor,)
        Antecedents of the document's mentions, -1 for the root.
    around : int64, shape (MENTION_SLOTS,)
        The mention of the document in each slot, -1 for none.
    values : uint64, shape (PAIR_ATOMS,)
    """

    begin: int
    tree: AnyArray
    around: AnyArray
    values: AnyArray


def spell_feature(
    prepared: Prepared, names: Names, atoms: AnyArray, template: Template, arc: Arc
) -> str:
    """Spell a feature: ``ana.head=miller, pair.match=exact``.

    Parameters
    ----------
    prepared : Prepared
    names : dict of int to str
        `names_of` the batch.
    atoms : uint64, shape (mentions of the batch, ATOMS)
        As templates see them, rare values cut off.
    template : Template
    arc : Arc

    Notes
    -----
    O(mentions before the anaphor) for one that asks of the cluster, else O(words and constituents).
    """
    said = []
    for slot, atom in template.atoms:
        antecedent = int(arc.around[ANTECEDENT])
        if slot == PAIR:
            anaphor = arc.begin + int(arc.around[ANAPHOR])
            value = int(arc.values[atom])
            text = spell_pair(prepared, arc.begin + antecedent, anaphor, atom, value)
        elif slot == CLUSTER:
            clusters = clusters_of_tree(arc.tree)
            members = np.flatnonzero(clusters == clusters[antecedent])
            types = prepared.arcs.types[arc.begin + members].tolist()
            text = spell_cluster(types, int(members[0]), atom)
        else:
            mention = int(arc.around[slot])
            mention = arc.begin + mention if mention >= 0 else -1
            value = int(atoms[mention, atom]) if mention >= 0 else 0
            text = spell_mention(prepared, names, mention, atom, value)
        said.append(f"{atom_name((slot, atom))}={text}")
    return ", ".join(said)


def spell_mention(prepared: Prepared, names: Names, mention: int, atom: int, value: int) -> str:
    """Spell an attribute.

    Parameters
    ----------
    prepared : Prepared
    names : dict of int to str
        `names_of` the batch.
    mention : int
        The mention of the batch that has it, -1 for none.
    atom, value : int
        Which of `attributes.ATOMS`, and its value as templates see it.
    """
    if mention < 0 or value == 0:
        return ABSENT
    name, table = ATOMS[atom], prepared.table
    if value == 1 and name in LEXICAL:
        return RARE
    if name in ("string", "core"):
        begin = table.starts if name == "string" else table.cores
        return _phrase(prepared, int(begin[mention]), int(table.ends[mention]))
    node = int(table.nodes[mention])
    if name == "path" and node >= 0:
        return " ".join(_climb(prepared, node, int(table.clauses[mention])))
    return _NUMBERED.get(name, {}).get(value) or _looked_up(value, names)


def _phrase(prepared: Prepared, begin: int, end: int) -> str:
    words = prepared.documents.words
    return " ".join(words.values[code] for code in words.codes[begin:end].tolist()).lower()


def _label(prepared: Prepared, node: int) -> str:
    labels = prepared.documents.labels
    return labels.values[labels.codes[node]]


def _climb(prepared: Prepared, node: int, last: int) -> list[str]:
    """Give the labels from a constituent up to another one, or to the top for -1."""
    labels = [_label(prepared, node)]
    while node != last and prepared.table.parents[node] >= 0:
        node = int(prepared.table.parents[node])
        labels.append(_label(prepared, node))
    return labels


def spell_pair(prepared: Prepared, antecedent: int, anaphor: int, atom: int, value: int) -> str:
    """Spell what two mentions of the batch have in common.

    Parameters
    ----------
    prepared : Prepared
    antecedent, anaphor : int
    atom, value : int
        Which of `pairs.PAIR_ATOMS`, and its value.
    """
    name = PAIR_ATOMS[atom]
    if name != "path":
        return PAIR_VALUES[name][value]
    if value == 0:
        return ABSENT
    nodes, parents = prepared.table.nodes, prepared.table.parents
    first, second = int(nodes[antecedent]), int(nodes[anaphor])
    up, down = [_label(prepared, first)], [_label(prepared, second)]
    while first != second:
        # In preorder a constituent's number is above those of all around it.
        if first > second:
            first = int(parents[first])
            up.append(_label(prepared, first))
        else:
            second = int(parents[second])
            down.append(_label(prepared, second))
    return " ".join([*up, *(f"/{label}" for label in reversed(down[:-1]))])


def spell_cluster(types: Iterable[int], first: int, atom: int) -> str:
    """Spell a property of a cluster.

    Parameters
    ----------
    types : iterable of int
        Types of its mentions from left to right.
    first : int
        Its first mention in the document.
    atom : int
        Which of `templates.CLUSTER_ATOMS`.
    """
    letters = [TYPES[kind][0].upper() for kind in types]
    name = CLUSTER_ATOMS[atom]
    if name == "shape":
        return "".join(letters)
    if name == "size":
        return str(len(letters)) if len(letters) < SIZES else f"{SIZES}+"
    # The power of two that the place reaches, as in `beam.nonlocal_hashes`.
    low = 1 << (first.bit_length() - 1) if first else 0
    high = (1 << first.bit_length()) - 1
    return str(low) if low == high else f"{low}-{high}"
