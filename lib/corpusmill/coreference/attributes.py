"""What is known of each mention before any is compared with another. No Spark.

Each attribute is a 64-bit value, 0 for none, so that a feature of an arc is a sum of multiples of
values (`coreference.templates`).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from corpusmill.coreference.attribute_kernels import (
    acronyms,
    clause_paths,
    entity_labels,
    word_masks,
)
from corpusmill.coreference.documents import Documents, hash_strings
from corpusmill.coreference.extraction import Mentions, coordinated
from corpusmill.coreference.gender import GenderTable, find_genders, normalised
from corpusmill.coreference.hashing import FACTOR, span_hashes
from corpusmill.coreference.languages import (
    CLAUSES,
    COMMON_NOUN,
    DETERMINERS,
    OWNED,
    PERSONAL,
    PLURAL,
    POSSESSIVE,
    PRONOUNS,
    PROPER_NOUN,
    SINGULAR,
    UNKNOWN,
)
from corpusmill.types import AnyArray, Flags

NAME, COMMON, PRONOUN = 1, 2, 3
"""Types of mentions."""

ATOMS = (
    "type",
    "fine",
    "pronoun",
    "head",
    "head_tag",
    "string",
    "core",
    "first",
    "first_tag",
    "last",
    "last_tag",
    "before",
    "before_tag",
    "after",
    "after_tag",
    "second_before",
    "second_after",
    "before_head",
    "entity",
    "gender",
    "number",
    "agreement",
    "category",
    "above",
    "path",
    "role",
    "governor",
    "quoted",
    "length",
    "genre",
    "spoken",
)
"""Names of the attributes of a mention, as templates write them."""
LEXICAL = (
    "head",
    "string",
    "core",
    "first",
    "last",
    "before",
    "after",
    "second_before",
    "second_after",
    "before_head",
    "governor",
)
"""Attributes whose rare values may be cut off."""


class MentionTable(NamedTuple):
    """What kernels that compare mentions need to know of each.

    Attributes
    ----------
    atoms : uint64, shape (mentions, ATOMS)
    types, genders, numbers, persons : int8, shape (mentions,)
    starts, ends, heads, cores, nodes, sentences, clauses : int64, shape (mentions,)
        ``cores`` is where the mention begins without a determiner; ``clauses`` the constituent
        of the clause around it, -1 for none.
    masks : uint64, shape (mentions,)
        A bit for each word of it.
    acronyms, initials : uint64, shape (mentions,)
        Hashes of its letters if it is one word in capitals, and of the capitals that its words
        begin with; 0 for none.
    words, speakers : uint64, shape (tokens,)
        Hashes of lower-cased words, and of who speaks.
    classes : int8, shape (tokens,)
    letters : uint32, shape (letters,)
    letter_offsets : int64, shape (distinct words + 1,)
    codes : int32, shape (tokens,)
        The word of each token among the distinct ones.
    parents, node_labels : int64 and uint64, shape (constituents,)
    """

    atoms: AnyArray
    types: AnyArray
    genders: AnyArray
    numbers: AnyArray
    persons: AnyArray
    starts: AnyArray
    ends: AnyArray
    heads: AnyArray
    cores: AnyArray
    nodes: AnyArray
    sentences: AnyArray
    clauses: AnyArray
    masks: AnyArray
    acronyms: AnyArray
    initials: AnyArray
    words: AnyArray
    speakers: AnyArray
    classes: AnyArray
    letters: AnyArray
    letter_offsets: AnyArray
    codes: AnyArray
    parents: AnyArray
    node_labels: AnyArray

    def take(self, keep: Flags) -> MentionTable:
        """Keep some of the mentions."""
        last = self._fields.index("initials")
        return MentionTable(*(column[keep] for column in self[: last + 1]), *self[last + 1 :])


def mention_types(mentions: Mentions, documents: Documents, entities: AnyArray) -> AnyArray:
    """Tell names, common nouns and pronouns apart; int8, shape (mentions,).

    Parameters
    ----------
    mentions : Mentions
    documents : Documents
    entities : uint64, shape (mentions,)
        The type of the named entity that has the mention's head, 0 for none.
    """
    kinds = documents.tokens.classes[mentions.heads]
    single = mentions.ends - mentions.starts == 1
    word = documents.words.each(lambda word: word.lower() in PRONOUNS)[mentions.heads] > 0
    pronoun = (kinds == PERSONAL) | (kinds == POSSESSIVE) | (word & single)
    name = (kinds == PROPER_NOUN) | ((entities != 0) & (kinds != COMMON_NOUN))
    return np.where(pronoun, PRONOUN, np.where(name, NAME, COMMON)).astype(np.int8)


def describe_mentions(
    documents: Documents, mentions: Mentions, genders: GenderTable
) -> MentionTable:
    """Find all attributes of all mentions of a batch.

    Parameters
    ----------
    documents : Documents
    mentions : Mentions
    genders : GenderTable

    Returns
    -------
    MentionTable

    Notes
    -----
    O(tokens + words in mentions + constituents above mentions).
    """
    tokens, nodes = documents.tokens, documents.constituents
    starts, ends, heads = mentions.starts, mentions.ends, mentions.heads
    entities = entity_labels(heads, documents.entities)
    types = mention_types(mentions, documents, entities)
    determiners = documents.words.each(lambda word: DETERMINERS.get(word.lower(), 0))[starts]
    cores = np.where((determiners > 0) & (ends - starts > 1), starts + 1, starts)
    persons, gender, number = _agreement(documents, mentions, types, cores, genders)
    clauses, paths, roles, governors = clause_paths(
        mentions.nodes, heads, nodes, hash_strings(sorted(CLAUSES)), hash_strings(["VP"])[0], tokens
    )
    columns = _word_atoms(documents, mentions, cores) | {
        "type": spread(types),
        "fine": spread(_fine_types(documents, mentions, types, determiners, persons)),
        "pronoun": np.where(types == PRONOUN, tokens.lowers[heads], 0),
        "entity": entities,
        "gender": spread(gender),
        "number": spread(number),
        "agreement": spread(persons * 16 + gender * 3 + number),
        "path": paths,
        "role": roles,
        "governor": governors,
    }
    letters, letter_offsets = _letters(documents)
    short, initials = acronyms(
        starts,
        ends,
        documents.words.each(_capital, np.uint32),
        documents.words.each(_acronym, np.uint64),
    )
    return MentionTable(
        np.stack([columns[name].astype(np.uint64) for name in ATOMS], axis=1),
        types,
        gender,
        number,
        persons,
        starts,
        ends,
        heads,
        cores,
        mentions.nodes,
        tokens.sentences[heads],
        clauses,
        word_masks(starts, ends, tokens.lowers),
        short,
        initials,
        tokens.lowers,
        tokens.speakers,
        tokens.classes,
        letters,
        letter_offsets,
        documents.words.codes,
        nodes.parents,
        nodes.labels,
    )


def _word_atoms(documents: Documents, mentions: Mentions, cores: AnyArray) -> dict[str, AnyArray]:
    """Give the atoms that stand in tokens, in and beside a mention, and in its constituent."""
    tokens, nodes = documents.tokens, documents.constituents
    starts, ends, heads = mentions.starts, mentions.ends, mentions.heads
    lowers, tags = tokens.lowers, tokens.tags
    beside = partial(_beside, documents, mentions)
    # A mention without a constituent has -1: the last of these.
    labels = np.append(nodes.labels, np.uint64(0))
    parents = np.append(nodes.parents, -1)
    return {
        "head": lowers[heads],
        "head_tag": tags[heads],
        "string": span_hashes(starts, ends, lowers),
        "core": span_hashes(cores, ends, lowers),
        "first": lowers[starts],
        "first_tag": tags[starts],
        "last": lowers[ends - 1],
        "last_tag": tags[ends - 1],
        "before": beside(lowers, starts - 1),
        "before_tag": beside(tags, starts - 1),
        "after": beside(lowers, ends),
        "after_tag": beside(tags, ends),
        "second_before": beside(lowers, starts - 2),
        "second_after": beside(lowers, ends + 1),
        "before_head": np.where(heads > starts, lowers[heads - 1], 0),
        "category": labels[mentions.nodes],
        "above": labels[parents[mentions.nodes]],
        "quoted": spread(tokens.quoted[heads].astype(np.int64)),
        "length": spread(np.minimum(ends - starts, 8)),
        "genre": np.repeat(documents.genres, np.diff(mentions.offsets)),
        "spoken": spread((tokens.speakers[heads] != 0).astype(np.int64)),
    }


def _fine_types(
    documents: Documents,
    mentions: Mentions,
    types: AnyArray,
    determiners: AnyArray,
    persons: AnyArray,
) -> AnyArray:
    """Give 10 and the person of pronouns, 20 times the type and the determiner of all others."""
    several = mentions.ends - mentions.starts > 1
    owned = several & (documents.tokens.classes[mentions.starts] == POSSESSIVE)
    noun = types * 20 + np.where(owned, OWNED, np.where(several, determiners, 0))
    return np.where(types == PRONOUN, 10 + persons, noun)


def _letters(documents: Documents) -> tuple[AnyArray, AnyArray]:
    """Give the letters of all different words, uint32, and where each word's begin."""
    letters = [word.lower().encode("utf-32-le") for word in documents.words.values]
    sizes = np.array([len(each) // 4 for each in letters], np.int64)
    return np.frombuffer(b"".join(letters), np.uint32), np.concatenate([[0], np.cumsum(sizes)])


def _agreement(
    documents: Documents,
    mentions: Mentions,
    types: AnyArray,
    cores: AnyArray,
    table: GenderTable,
) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Give person, gender and number of each mention; int8."""
    words, heads = documents.words, mentions.heads
    known = [
        words.each(lambda word, part=part: PRONOUNS.get(word.lower(), (0, 0, 0))[part])[heads]  # type: ignore[misc]
        for part in range(3)
    ]
    rows = find_genders(
        np.minimum(cores, heads), heads, words.hashes(normalised), hash_strings(["!"])[0], table
    )
    gender = np.append(table.genders, np.int8(UNKNOWN))[rows]
    number = np.append(table.numbers, np.int8(0))[rows]
    # The tag of a noun knows its number better than the counts do.
    tags = documents.tokens.tags[heads]
    plural = np.isin(tags, hash_strings(["NNS", "NNPS", "DT+NNS", "DT+NNPS"]))
    single = np.isin(tags, hash_strings(["NN", "NNP", "DT+NN", "DT+NNP"]))
    number = np.where(plural | coordinated(mentions, documents.tokens), PLURAL, number)
    number = np.where(single, SINGULAR, number)
    pronoun = types == PRONOUN
    found = zip(known, (np.zeros_like(gender), gender, number), strict=True)
    persons, gender, number = (
        np.where(pronoun, word, noun).astype(np.int8) for word, noun in found
    )
    return persons, gender, number


def _beside(documents: Documents, mentions: Mentions, values: AnyArray, at: AnyArray) -> AnyArray:
    """Take values of tokens beside mentions; 0 beyond the sentence."""
    sentences = documents.tokens.sentences
    inside = np.clip(at, 0, max(len(values) - 1, 0))
    same = (inside == at) & (sentences[inside] == sentences[mentions.heads])
    return np.where(same, values[inside], 0)


def spread(numbers: AnyArray) -> AnyArray:
    """Spread small numbers over 64 bits; 0 stays 0."""
    values = numbers.astype(np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
    return values ^ (values >> np.uint64(29))


def _capital(word: str) -> int:
    return ord(word[0]) if word[:1].isupper() else 0


def _acronym(word: str) -> int:
    letters = word.replace(".", "")
    if not (1 < len(letters) < 10 and letters.isupper() and letters.isalpha()):
        return 0
    total = 0
    for letter in letters:
        total = (total * FACTOR + ord(letter)) % (1 << 64)
    return total
