"""Feature templates: a conjunction of atoms a line, compiled to salted sums. No Spark.

A template such as ``ana.head + ant.head`` makes of an arc one feature: the hash of what its atoms
are there. The hash is a sum of the atoms' 64-bit values, each times an odd number of its own, so
that what depends on one mention is summed once for it and not once for each arc.

Atoms are ``ana.X`` and ``ant.X``, an attribute of the anaphor and of the antecedent
(`attributes.ATOMS`); ``pair.X`` (`pairs.PAIR_ATOMS`); and, non-local, ``cluster.size``,
``cluster.shape`` and ``cluster.start`` of the antecedent's cluster so far, and attributes of other
mentions in it: ``grand.X`` of the antecedent's antecedent, ``sibling.X`` of the last mention before
that has the same antecedent, ``first.X`` and ``last.X`` of the cluster's first and last mention.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusmill.coreference.attributes import ATOMS
from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.pairs import PAIR_ATOMS
from corpusmill.errors import UsageError
from corpusmill.types import AnyArray, Offsets

ANAPHOR, ANTECEDENT, GRAND, SIBLING, FIRST, LAST, PAIR, CLUSTER = range(8)
MENTION_SLOTS = LAST + 1
CLUSTER_ATOMS = ("size", "shape", "start")
_SLOTS = {
    "ana": (ANAPHOR, ATOMS),
    "ant": (ANTECEDENT, ATOMS),
    "grand": (GRAND, ATOMS),
    "sibling": (SIBLING, ATOMS),
    "first": (FIRST, ATOMS),
    "last": (LAST, ATOMS),
    "pair": (PAIR, PAIR_ATOMS),
    "cluster": (CLUSTER, CLUSTER_ATOMS),
}
Atom = tuple[int, int]


class Template(NamedTuple):
    """A template.

    Attributes
    ----------
    name : str
        As it is written, with single blanks.
    atoms : tuple of (slot, atom)
    """

    name: str
    atoms: tuple[Atom, ...]

    @property
    def slots(self) -> frozenset[int]:
        """The slots of its atoms."""
        return frozenset(slot for slot, _ in self.atoms)

    @property
    def local(self) -> bool:
        """Whether it needs the anaphor and the antecedent only."""
        return self.slots <= {ANAPHOR, ANTECEDENT, PAIR}


class Group(NamedTuple):
    """Templates as arrays.

    Attributes
    ----------
    seeds : uint64, shape (templates,)
    offsets : Offsets, shape (templates + 1,)
    slots, atoms : int64, shape (atoms,)
    salts : uint64, shape (atoms,)
        Odd.
    """

    seeds: AnyArray
    offsets: Offsets
    slots: AnyArray
    atoms: AnyArray
    salts: AnyArray


class Sorted(NamedTuple):
    """Templates as people read them, in the order of their columns in `Templates`."""

    root: list[Template]
    anaphor: list[Template]
    antecedent: list[Template]
    pair: list[Template]
    nonlocal_: list[Template]


class Templates(NamedTuple):
    """Templates by what they need.

    Attributes
    ----------
    root : Group
        Of arcs from the root: what templates say of the anaphor alone, each once.
    anaphor : Group
        Of all other arcs; templates with atoms of the anaphor only.
    antecedent : Group
        With atoms of the antecedent only.
    pair : Group
        The other local ones, those with fewest atoms of pairs first.
    nonlocal_ : Group
    """

    root: Group
    anaphor: Group
    antecedent: Group
    pair: Group
    nonlocal_: Group


def parse_templates(lines: list[str], source: str) -> list[Template]:
    """Read templates.

    Parameters
    ----------
    lines : list of str
        A template a line; empty lines and what follows a ``#`` are passed over.
    source : str
        For messages.

    Returns
    -------
    list of Template

    Raises
    ------
    UsageError
        CONF04: an atom that does not exist, or a template twice.
    """
    templates: dict[frozenset[Atom], Template] = {}
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        place = f"{source}, line {number}"
        names = [part.strip() for part in text.split("+")]
        atoms = tuple(_atom(name, place) for name in names)
        if frozenset(atoms) in templates or len(set(atoms)) < len(atoms):
            raise UsageError("CONF04", key=place, value=repr(text), problem="it is there twice")
        templates[frozenset(atoms)] = Template(" + ".join(names), atoms)
    return list(templates.values())


def _atom(name: str, place: str) -> Atom:
    slot, _, atom = name.partition(".")
    if slot not in _SLOTS:
        allowed = f"an atom begins with one of {', '.join(f'{each}.' for each in _SLOTS)}"
        raise UsageError("CONF04", key=place, value=repr(name), problem=allowed)
    number, atoms = _SLOTS[slot]
    if atom not in atoms:
        allowed = f"{slot}. is followed by one of {', '.join(atoms)}"
        raise UsageError("CONF04", key=place, value=repr(name), problem=allowed)
    return number, atoms.index(atom)


def atom_name(atom: Atom) -> str:
    """Write an atom as templates do."""
    name, (_, atoms) = list(_SLOTS.items())[atom[0]]
    return f"{name}.{atoms[atom[1]]}"


def sort_templates(templates: list[Template]) -> Sorted:
    """Sort templates by what they need; see `Templates`."""
    local = [each for each in templates if each.local]
    both = [each for each in local if each.slots not in ({ANAPHOR}, {ANTECEDENT})]
    return Sorted(
        _of_root(local),
        [each for each in local if each.slots == {ANAPHOR}],
        [each for each in local if each.slots == {ANTECEDENT}],
        sorted(both, key=_pair_atoms),
        [each for each in templates if not each.local],
    )


def compile_templates(templates: list[Template]) -> Templates:
    """Sort templates by what they need, and write them as arrays."""
    root, *others = sort_templates(templates)
    return Templates(_group(root, "root"), *map(_group, others))


def _pair_atoms(template: Template) -> int:
    return sum(slot == PAIR for slot, _ in template.atoms)


def _of_root(templates: list[Template]) -> list[Template]:
    """Keep what each says of the anaphor; a template for each different rest."""
    rests: dict[frozenset[Atom], Template] = {}
    for template in templates:
        atoms = tuple(atom for atom in template.atoms if atom[0] == ANAPHOR)
        name = " + ".join(f"ana.{ATOMS[atom]}" for _, atom in sorted(atoms))
        if atoms:
            rests.setdefault(frozenset(atoms), Template(name, atoms))
    return [Template("", ()), *rests.values()]


def _group(templates: list[Template], kind: str = "arc") -> Group:
    seeds = hash_strings([f"{kind}: {each.name}" for each in templates])
    names = [
        f"{kind}: {each.name}: {slot}.{atom}" for each in templates for slot, atom in each.atoms
    ]
    pairs = [atom for each in templates for atom in each.atoms]
    return Group(
        seeds,
        np.cumsum([0, *(len(each.atoms) for each in templates)]),
        np.array([slot for slot, _ in pairs], np.int64),
        np.array([atom for _, atom in pairs], np.int64),
        hash_strings(names) | np.uint64(1),
    )
