"""What a mention and its possible antecedent have in common. Kernels on flat arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from corpusmill.coreference.attributes import ATOMS, PRONOUN, MentionTable
from corpusmill.coreference.hashing import FACTOR
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
    "substring",
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
"""Names of the values of `compare`, as templates write them."""
(
    SENTENCES,
    MENTIONS,
    MATCH,
    EXACT,
    CORE,
    HEAD,
    INSIDE,
    EXTRA,
    SUBSTRING,
    ALIAS,
    NESTED,
    SPEAKER,
    EDIT,
    PATH,
    CLAUSE,
    APPOSITION,
    AGREE,
    ENTITY,
) = range(len(PAIR_ATOMS))
"""Their places."""
_CORE, _STRING, _ENTITY = (ATOMS.index(name) for name in ("core", "string", "entity"))
_WORDS = 12
_LETTERS = 64


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
def _has_word(words: AnyArray, start: int, end: int, head: int, mask: int, word: int) -> bool:
    """Tell whether a mention has a word among its first `_WORDS` or as its head."""
    if not mask & (np.uint64(1) << (word >> np.uint64(58))):
        return False
    for token in range(start, min(end, start + _WORDS)):
        if words[token] == word:
            return True
    return bool(words[head] == word)


@njit(cache=True, nogil=True)
def _has_phrase(words: AnyArray, start: int, end: int, first: int, last: int) -> bool:
    """Tell whether the words ``first:last`` stand side by side in the first `_WORDS` of others."""
    length = last - first
    for begin in range(start, min(end, start + _WORDS) - length + 1):
        same = 0
        while same < length and words[begin + same] == words[first + same]:
            same += 1
        if same == length:
            return True
    return False


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
def _edit_bin(
    letters: AnyArray, begin: int, end: int, other_begin: int, other_end: int, row: AnyArray
) -> int:
    """Distance of two different words by the longer's length: 2 to 1/4, 3 to 1/2, 4 more."""
    longer = max(end - begin, other_end - other_begin)
    shorter = min(end - begin, other_end - other_begin)
    if 2 * (longer - shorter) > longer or longer >= len(row):
        return 4
    first, last = letters[begin], letters[end - 1]
    if first != letters[other_begin] and last != letters[other_end - 1]:
        return 4
    distance = edit_distance(letters[begin:end], letters[other_begin:other_end], row)
    if 4 * distance <= longer:
        return 2
    return 3 if 2 * distance <= longer else 4


@njit(cache=True, nogil=True)
def _path(first: int, second: int, parents: AnyArray, labels: AnyArray) -> np.uint64:
    """Hash the labels from one constituent up to the lowest common one and down to the other."""
    up, down = np.uint64(1), np.uint64(2)
    # In preorder a constituent's number is above those of all around it.
    while first != second:
        if first > second:
            up = up * np.uint64(FACTOR) + labels[first]
            first = parents[first]
        else:
            down = down * np.uint64(FACTOR) + labels[second]
            second = parents[second]
        if first < 0 or second < 0:
            return np.uint64(0)
    if first < 0:
        return np.uint64(0)
    return up ^ (down * np.uint64(FACTOR)) ^ labels[first]


@njit(cache=True, nogil=True)
def _agreement(gender: int, other: int, number: int, other_number: int) -> int:
    """1 if gender and number are not at odds, 2 gender is, 3 number is, 4 both are."""
    odd = gender * other != 0 and gender != other
    # Genders 1 and 2 are both persons, 4.
    if odd and (gender == 4 or other == 4):
        odd = gender == 3 or other == 3
    numbers = number * other_number != 0 and number != other_number
    return 1 + int(odd) + 2 * int(numbers)


@njit(cache=True, nogil=True)
def compare(table: MentionTable, anaphor: int, low: int, high: int, values: AnyArray) -> None:
    """Compare an anaphor with mentions before it.

    Parameters
    ----------
    table : MentionTable
    anaphor, low, high : int
        The anaphor, and the antecedents ``low:high`` that it is compared with.
    values : uint64, at least shape (high - low, PAIR_ATOMS)
        Written: in the order of `PAIR_ATOMS` distances in sentences and in mentions, binned;
        5 equal strings, 4 equal but for determiners, 3 equal heads and no new content word, 2
        equal heads, 1 none; the same each as 1 (no) or 2 (yes); whether a head is among the
        other's words; new content words of the anaphor; whether all words but a determiner are a
        part of the other's, side by side; abbreviation; whether one is inside the other; the same
        speaker; distance of heads in letters; within a sentence the path, the same clause,
        apposition; agreement; equal types of entities.

    Notes
    -----
    O(words of the mentions, `_WORDS` at most, and constituents between them) a pair.
    """
    _compare_words(table, anaphor, low, high, values)
    _compare_places(table, anaphor, low, high, values)


@njit(cache=True, nogil=True)
def _content_words(table: MentionTable, mention: int) -> AnyArray:
    """Give the nouns, adjectives and numbers of a mention, `_WORDS` at most; uint64."""
    content, count = np.empty(_WORDS, np.uint64), 0
    start = table.cores[mention]
    for token in range(start, min(table.ends[mention], start + _WORDS)):
        kind = table.classes[token]
        if COMMON_NOUN <= kind <= PROPER_NOUN or NUMBER <= kind <= ADJECTIVE:
            content[count] = table.words[token]
            count += 1
    return content[:count]


@njit(cache=True, nogil=True)
def _compare_words(
    table: MentionTable, anaphor: int, low: int, high: int, values: AnyArray
) -> None:
    # Bound once: to hand the table on costs more than a comparison.
    atoms, types, words, heads = table.atoms, table.types, table.words, table.heads
    starts, ends, masks, cores = table.starts, table.ends, table.masks, table.cores
    letters, offsets, codes = table.letters, table.letter_offsets, table.codes
    acronyms, initials = table.acronyms, table.initials
    row, content = np.empty(_LETTERS, np.int64), _content_words(table, anaphor)
    start, end, head, seen = starts[anaphor], ends[anaphor], heads[anaphor], masks[anaphor]
    word, string, bare = words[head], atoms[anaphor, _STRING], atoms[anaphor, _CORE]
    letter, letter_end = offsets[codes[head]], offsets[codes[head] + 1]
    for antecedent in range(low, high):
        at, other_head = antecedent - low, heads[antecedent]
        other = words[other_head]
        begin, stop, mask = starts[antecedent], ends[antecedent], masks[antecedent]
        extra, inside, edit, part = 0, 0, 0, 0
        if types[anaphor] != PRONOUN and types[antecedent] != PRONOUN:
            for each in content:
                extra += int(not _has_word(words, begin, stop, other_head, mask, each))
            edit = 1
            if other != word:
                inside = int(_has_word(words, begin, stop, other_head, mask, word))
                inside += 2 * int(_has_word(words, start, end, head, seen, other))
                first, last = offsets[codes[other_head]], offsets[codes[other_head] + 1]
                edit = _edit_bin(letters, first, last, letter, letter_end, row)
            # Without a common word there is no common phrase.
            part = 1
            if seen & mask:
                part += int(_has_phrase(words, begin, stop, cores[anaphor], end))
                part += 2 * int(_has_phrase(words, start, end, cores[antecedent], stop))
        core, exact = atoms[antecedent, _CORE] == bare, atoms[antecedent, _STRING] == string
        short = acronyms[antecedent] != 0 and acronyms[antecedent] == initials[anaphor]
        long = acronyms[anaphor] != 0 and acronyms[anaphor] == initials[antecedent]
        values[at, MATCH] = _match(exact, core, other == word, extra)
        values[at, EXACT] = 1 + int(exact)
        values[at, CORE] = 1 + int(core)
        values[at, HEAD] = 1 + int(other == word)
        values[at, INSIDE] = 1 + inside
        values[at, EXTRA] = 1 + min(extra, 2)
        values[at, SUBSTRING] = part
        values[at, ALIAS] = 1 + int(short or long)
        values[at, EDIT] = edit


@njit(cache=True, nogil=True)
def _match(exact: bool, core: bool, head: bool, extra: int) -> int:
    if exact:
        return 5
    if core:
        return 4
    if head:
        return 3 if extra == 0 else 2
    return 1


@njit(cache=True, nogil=True)
def _compare_places(
    table: MentionTable, anaphor: int, low: int, high: int, values: AnyArray
) -> None:
    atoms, heads, starts, ends = table.atoms, table.heads, table.starts, table.ends
    nodes, parents, labels, clauses = table.nodes, table.parents, table.node_labels, table.clauses
    sentences, speakers = table.sentences, table.speakers
    genders, numbers = table.genders, table.numbers
    sentence, speaker, node = sentences[anaphor], speakers[heads[anaphor]], nodes[anaphor]
    label = atoms[anaphor, _ENTITY]
    for antecedent in range(low, high):
        at, above = antecedent - low, nodes[antecedent]
        other, kind = speakers[heads[antecedent]], atoms[antecedent, _ENTITY]
        silent = speaker == 0 and other == 0
        values[at, SENTENCES] = 1 + _distance_bin(sentence - sentences[antecedent])
        values[at, MENTIONS] = _distance_bin(anaphor - antecedent)
        values[at, NESTED] = 1 + int(ends[anaphor] <= ends[antecedent])
        values[at, SPEAKER] = 1 if silent else 3 - int(speaker == other)
        values[at, PATH] = values[at, CLAUSE] = values[at, APPOSITION] = 0
        if sentences[antecedent] == sentence:
            sister = False
            if node >= 0 and above >= 0:
                values[at, PATH] = _path(above, node, parents, labels)
                sister = parents[above] == parents[node] and above != node
            if clauses[antecedent] >= 0 and clauses[anaphor] >= 0:
                values[at, CLAUSE] = 1 + int(clauses[antecedent] == clauses[anaphor])
            # Beside each other with one token, a comma, between them.
            values[at, APPOSITION] = 1 + int(sister and starts[anaphor] - ends[antecedent] == 1)
        values[at, AGREE] = _agreement(
            genders[antecedent], genders[anaphor], numbers[antecedent], numbers[anaphor]
        )
        values[at, ENTITY] = 0 if label == 0 or kind == 0 else 1 + int(label == kind)
