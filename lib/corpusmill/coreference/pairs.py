"""What a mention and its possible antecedent have in common. Kernels on flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.coreference.attributes import PRONOUN, MentionTable
from corpusmill.coreference.languages import ADJECTIVE, COMMON_NOUN, NUMBER, PROPER_NOUN
from corpusmill.types import AnyArray

PAIR_ATOMS = (
    "sentences",
    "mentions",
    "match",
    "exact",
    "core",
    "head",
    "inside",
    "extra",
    "alias",
    "nested",
    "speaker",
    "edit",
    "path",
    "clause",
    "apposition",
    "agree",
    "entity",
)
"""Names of the values of `pair_values`, as templates write them."""
_WORDS = 12
_PRIME = 0x9E3779B97F4A7C15


@njit(cache=True, nogil=True, inline="always")
def _distance_bin(distance: int) -> int:
    """0 to 5 as they are, then 6-7, 8-10, 11-15, 16-25, 26-40, 41 and more."""
    if distance <= 5:
        return distance
    if distance <= 7:
        return 6
    if distance <= 10:
        return 7
    if distance <= 15:
        return 8
    if distance <= 25:
        return 9
    return 10 if distance <= 40 else 11


@njit(cache=True, nogil=True)
def _has_word(attributes: MentionTable, word: int, mention: int) -> bool:
    bit = np.uint64(1) << (word >> np.uint64(58))
    if not attributes.masks[mention] & bit:
        return False
    start = attributes.starts[mention]
    for token in range(start, min(attributes.ends[mention], start + _WORDS)):
        if attributes.words[token] == word:
            return True
    return bool(attributes.words[attributes.heads[mention]] == word)


@njit(cache=True, nogil=True)
def _extra_words(attributes: MentionTable, antecedent: int, anaphor: int) -> int:
    """Count content words of the anaphor that the antecedent lacks: 0, 1, 2 or more."""
    count = 0
    start = attributes.cores[anaphor]
    for token in range(start, min(attributes.ends[anaphor], start + _WORDS)):
        kind = attributes.classes[token]
        content = COMMON_NOUN <= kind <= PROPER_NOUN or NUMBER <= kind <= ADJECTIVE
        if content and not _has_word(attributes, attributes.words[token], antecedent):
            count += 1
            if count == 2:
                break
    return count


@njit(cache=True, nogil=True)
def edit_distance(first: AnyArray, second: AnyArray, row: AnyArray) -> int:
    """Count the insertions, deletions and substitutions from one string to the other.

    Parameters
    ----------
    first, second : uint32
        Letters.
    row : int64, longer than ``second``
        Scratch.

    Returns
    -------
    int

    Notes
    -----
    O(letters of the first times letters of the second); Levenshtein (1966).
    """
    for column in range(len(second) + 1):
        row[column] = column
    for letter in range(len(first)):
        corner, row[0] = row[0], letter + 1
        for column in range(1, len(second) + 1):
            cost = 0 if first[letter] == second[column - 1] else 1
            best = min(corner + cost, row[column] + 1, row[column - 1] + 1)
            corner, row[column] = row[column], best
    return int(row[len(second)])


@njit(cache=True, nogil=True)
def _edit_bin(attributes: MentionTable, antecedent: int, anaphor: int, row: AnyArray) -> int:
    """Distance of the heads by the longer's length: 1 equal, 2 to 1/4, 3 to 1/2, 4 more."""
    first = attributes.codes[attributes.heads[antecedent]]
    second = attributes.codes[attributes.heads[anaphor]]
    offsets = attributes.letter_offsets
    one = attributes.letters[offsets[first] : offsets[first + 1]]
    two = attributes.letters[offsets[second] : offsets[second + 1]]
    longer, shorter = max(len(one), len(two)), min(len(one), len(two))
    if (
        attributes.words[attributes.heads[antecedent]]
        == attributes.words[attributes.heads[anaphor]]
    ):
        return 1
    if 2 * (longer - shorter) > longer or longer >= len(row):
        return 4
    if (one[0] != two[0]) and (one[-1] != two[-1]):
        return 4
    distance = edit_distance(one, two, row)
    if 4 * distance <= longer:
        return 2
    return 3 if 2 * distance <= longer else 4


@njit(cache=True, nogil=True)
def _path(attributes: MentionTable, antecedent: int, anaphor: int) -> tuple[np.uint64, int]:
    """Hash the labels from one mention up to the lowest common constituent and down to the other.

    The second value is 1 if the anaphor stands directly below the antecedent's parent with one
    sibling at most between them, which is how an apposition looks.
    """
    first, second = attributes.nodes[antecedent], attributes.nodes[anaphor]
    up, down = np.uint64(1), np.uint64(2)
    if first < 0 or second < 0:
        return np.uint64(0), 0
    sister = attributes.parents[first] == attributes.parents[second] and first != second
    # In preorder a constituent's number is above those of all around it.
    while first != second:
        if first > second:
            up = up * np.uint64(_PRIME) + attributes.node_labels[first]
            first = attributes.parents[first]
        else:
            down = down * np.uint64(_PRIME) + attributes.node_labels[second]
            second = attributes.parents[second]
        if first < 0 or second < 0:
            return np.uint64(0), 0
    near = attributes.starts[anaphor] - attributes.ends[antecedent] == 1
    return up ^ (down * np.uint64(_PRIME)) ^ attributes.node_labels[first], int(sister and near)


@njit(cache=True, nogil=True)
def _agreement(attributes: MentionTable, antecedent: int, anaphor: int) -> int:
    """1 if gender and number are not at odds, 2 gender is, 3 number is, 4 both are."""
    one, two = attributes.genders[antecedent], attributes.genders[anaphor]
    # Genders 1 and 2 are both persons, 4.
    odd = one * two != 0 and one != two
    if odd and (one == 4 or two == 4):
        odd = one == 3 or two == 3
    first, second = attributes.numbers[antecedent], attributes.numbers[anaphor]
    number = first * second != 0 and first != second
    return 1 + int(odd) + 2 * int(number)


@njit(cache=True, nogil=True)
def pair_values(
    attributes: MentionTable,
    antecedent: int,
    anaphor: int,
    columns: AnyArray,
    row: AnyArray,
    values: AnyArray,
) -> None:
    """Compare an anaphor with a possible antecedent.

    Parameters
    ----------
    attributes : MentionTable
    antecedent, anaphor : int
        Mentions, the first before the second.
    columns : int64, shape (4,)
        Where the atoms core, string, entity and head stand in `attributes.ATOMS`.
    row : int64
        Scratch of `edit_distance`.
    values : uint64, shape (PAIR_ATOMS,)
        Written: in the order of `PAIR_ATOMS` distances in sentences and in mentions, binned;
        5 equal strings, 4 equal but for determiners, 3 equal heads and no new content word, 2
        equal heads, 1 none; the same each as 1 (no) or 2 (yes); whether a head is among the
        other's words; new content words of the anaphor; abbreviation; whether one is inside the
        other; the same speaker; distance of heads in letters; within a sentence the path, the
        same clause, apposition; agreement; equal types of entities.

    Notes
    -----
    O(words of the mentions, `_WORDS` at most, and constituents between them).
    """
    a = attributes
    values[0] = 1 + _distance_bin(a.sentences[anaphor] - a.sentences[antecedent])
    values[1] = _distance_bin(anaphor - antecedent)
    atoms = a.atoms
    core = atoms[antecedent, columns[0]] == atoms[anaphor, columns[0]]
    exact = atoms[antecedent, columns[1]] == atoms[anaphor, columns[1]]
    one, two = a.words[a.heads[antecedent]], a.words[a.heads[anaphor]]
    head = one == two
    pronouns = a.types[antecedent] == PRONOUN or a.types[anaphor] == PRONOUN
    extra = 0 if pronouns else _extra_words(a, antecedent, anaphor)
    match = 1
    if exact:
        match = 5
    elif core:
        match = 4
    elif head:
        match = 3 if extra == 0 else 2
    values[2] = match
    values[3] = 1 + int(exact)
    values[4] = 1 + int(core)
    values[5] = 1 + int(head)
    inside = 0
    if not pronouns and not head:
        inside = int(_has_word(a, two, antecedent)) + 2 * int(_has_word(a, one, anaphor))
    values[6] = 1 + inside
    values[7] = 1 + extra
    alias = (a.acronyms[antecedent] != 0 and a.acronyms[antecedent] == a.initials[anaphor]) or (
        a.acronyms[anaphor] != 0 and a.acronyms[anaphor] == a.initials[antecedent]
    )
    values[8] = 1 + int(alias)
    values[9] = 1 + int(a.ends[anaphor] <= a.ends[antecedent])
    first, second = a.speakers[a.heads[antecedent]], a.speakers[a.heads[anaphor]]
    values[10] = 1 if first == 0 and second == 0 else (2 if first == second else 3)
    values[11] = 0 if pronouns else _edit_bin(a, antecedent, anaphor, row)
    values[12] = values[13] = values[14] = 0
    if a.sentences[antecedent] == a.sentences[anaphor]:
        path, apposition = _path(a, antecedent, anaphor)
        values[12] = path
        values[13] = 1 + int(a.clauses[antecedent] == a.clauses[anaphor])
        values[14] = 1 + apposition
    values[15] = _agreement(a, antecedent, anaphor)
    label = atoms[anaphor, columns[2]]
    other = atoms[antecedent, columns[2]]
    values[16] = 0 if label == 0 or other == 0 else 1 + int(label == other)
