"""What differs between languages: classes of tags, heads of constituents, pronouns. No Spark.

Head rules of English are those of Collins (1999, appendix A), where a noun phrase of coordinated
noun phrases has its conjunction as head, so that "Kim and Lee" and "Lee" are not one mention.
Those of Chinese and Arabic are short: noun phrases end (Chinese) or begin (Arabic) with the head.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from corpusmill.types import AnyArray, Flags

(
    OTHER,
    COMMON_NOUN,
    PROPER_NOUN,
    PERSONAL,
    POSSESSIVE,
    VERB,
    DETERMINER,
    CONJUNCTION,
    NUMBER,
    ADJECTIVE,
) = range(10)
"""Classes of parts of speech."""

_TAGS = {
    COMMON_NOUN: "NN NNS NX NOUN NT DT+NN DT+NNS",
    PROPER_NOUN: "NNP NNPS PROPN NR DT+NNP DT+NNPS",
    PERSONAL: "PRP PRON PN",
    POSSESSIVE: "PRP$",
    VERB: "VB VBD VBG VBN VBP VBZ MD VERB AUX VV VC VE VA VBD|VBP",
    DETERMINER: "DT DET PDT WDT",
    CONJUNCTION: "CC CCONJ",
    NUMBER: "CD NUM OD",
    ADJECTIVE: "JJ JJR JJS ADJ DT+JJ",
}
TAG_CLASSES = {tag: number for number, tags in _TAGS.items() for tag in tags.split()}
"""The class of each part of speech of the Penn treebanks and of Universal Dependencies."""

LEFT, RIGHT = 0, 1

_EACH = {
    "ADJP": (LEFT, "NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB"),
    "ADVP": (RIGHT, "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),
    "CONJP": (RIGHT, "CC RB IN"),
    "LST": (RIGHT, "LS :"),
    "NAC": (LEFT, "NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW"),
    "PP": (RIGHT, "IN TO VBG VBN RP FW"),
    "PRT": (RIGHT, "RP"),
    "QP": (LEFT, "$ IN NNS NN JJ RB DT CD QP JJR JJS"),
    "RRC": (RIGHT, "VP NP ADVP ADJP PP"),
    "S": (LEFT, "TO IN VP S SBAR ADJP UCP NP"),
    "SBAR": (LEFT, "WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG"),
    "SBARQ": (LEFT, "SQ S SINV SBARQ FRAG"),
    "SINV": (LEFT, "VBZ VBD VBP VB MD VP S SINV ADJP NP"),
    "SQ": (LEFT, "VBZ VBD VBP VB MD VP SQ"),
    "VP": (LEFT, "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP"),
    "WHADJP": (LEFT, "CC WRB JJ ADJP"),
    "WHADVP": (RIGHT, "CC WRB"),
    "WHNP": (LEFT, "WDT WP WP$ WHADJP WHPP WHNP"),
    "WHPP": (RIGHT, "IN TO FW"),
}
Steps = list[tuple[int, frozenset[str]]]
"""Directions to look from, and what to stop at; the first step that finds something wins."""


def _steps(*steps: tuple[int, str]) -> Steps:
    return [(direction, frozenset(names.split())) for direction, names in steps]


_ENGLISH: dict[str, Steps] = {
    label: [(direction, frozenset([name])) for name in names.split()]
    for label, (direction, names) in _EACH.items()
} | {
    "NP": _steps(
        (RIGHT, "NN NNP NNPS NNS NX POS JJR NOUN PROPN"),
        (LEFT, "NP"),
        (RIGHT, "$ ADJP PRN"),
        (RIGHT, "CD"),
        (RIGHT, "JJ JJS RB QP"),
    )
}
_CHINESE: dict[str, Steps] = {
    "NP": _steps((RIGHT, "NP NN NR NT QP"), (RIGHT, "PN")),
    "VP": _steps((LEFT, "VP VV VC VE VA VCD VSB VRD VCP")),
    "IP": _steps((RIGHT, "VP IP")),
    "PP": _steps((LEFT, "P")),
    "CP": _steps((RIGHT, "CP IP DEC")),
    "LCP": _steps((RIGHT, "LC LCP")),
    "DNP": _steps((RIGHT, "DEG")),
}
_ARABIC: dict[str, Steps] = {
    "NP": _steps(
        (LEFT, "NN NNS NNP NNPS DT+NN DT+NNS DT+NNP DT+NNPS"),
        (LEFT, "NP"),
        (LEFT, "PRP PRP$ CD JJ DT+JJ"),
    ),
    "VP": _steps((LEFT, "VBD VBP VBN VB VP")),
    "S": _steps((LEFT, "VP S NP")),
    "PP": _steps((LEFT, "IN")),
    "SBAR": _steps((LEFT, "IN WP S")),
}
_RULES = {"english": (_ENGLISH, LEFT), "chinese": (_CHINESE, RIGHT), "arabic": (_ARABIC, LEFT)}
LANGUAGES = tuple(_RULES)
NOUN_PHRASES = frozenset({"NP", "NX", "NAC", "WHNP"})
CLAUSES = frozenset({"S", "SBAR", "SBARQ", "SINV", "SQ", "IP", "CP", "ROOT", "TOP"})


class HeadRules(NamedTuple):
    """Head rules over the labels and tags of a batch.

    Attributes
    ----------
    step_offsets : Offsets, shape (labels + 1,)
        The steps of each label.
    directions : int8, shape (steps,)
    wanted : Flags, shape (steps, labels + tags)
        What a step stops at: labels of constituents, then tags of tokens.
    default : int
        The direction whose first child is the head if no step finds one: LEFT or RIGHT.
    noun_phrases : Flags, shape (labels,)
        Where a coordination has its conjunction as head.
    """

    step_offsets: AnyArray
    directions: AnyArray
    wanted: Flags
    default: int
    noun_phrases: Flags


def head_rules(language: str, labels: list[str], tags: list[str]) -> HeadRules:
    """Write the head rules of a language as arrays over these labels and tags.

    Parameters
    ----------
    language : str
        One of `LANGUAGES`.
    labels, tags : list of str
        The distinct labels of constituents and tags of tokens, by code.

    Returns
    -------
    HeadRules
    """
    rules, default = _RULES[language]
    steps = [rules.get(label, []) for label in labels]
    flat = [step for each in steps for step in each]
    names = [*labels, *tags]
    wanted = np.array([[name in names_of for name in names] for _, names_of in flat], np.bool_)
    return HeadRules(
        np.cumsum([0, *(len(each) for each in steps)]),
        np.array([direction for direction, _ in flat], np.int8),
        wanted.reshape(len(flat), len(names)),
        default,
        np.array([label in NOUN_PHRASES for label in labels], np.bool_),
    )


UNKNOWN, MASCULINE, FEMININE, NEUTER, PERSON = range(5)
"""Genders; PERSON is masculine or feminine."""
SINGULAR, PLURAL = 1, 2

_PRONOUNS = {
    (1, PERSON, SINGULAR): "i me my mine myself",
    (2, PERSON, UNKNOWN): "you your yours yourself yourselves ya",
    (3, MASCULINE, SINGULAR): "he him his himself",
    (3, FEMININE, SINGULAR): "she her hers herself",
    (3, NEUTER, SINGULAR): "it its itself",
    (1, PERSON, PLURAL): "we us our ours ourselves 's",
    (3, UNKNOWN, PLURAL): "they them their theirs themselves 'em themself",
    (3, PERSON, UNKNOWN): "one oneself who whom whose",
    (4, NEUTER, SINGULAR): "this that",
    (4, UNKNOWN, PLURAL): "these those",
}
PRONOUNS = {word: key for key, words in _PRONOUNS.items() for word in words.split()}
"""English pronouns, lower-cased: person (4: demonstrative), gender, number."""

DEFINITE, INDEFINITE, DEMONSTRATIVE, OWNED = 1, 2, 3, 4
_DETERMINERS = {
    DEFINITE: "the",
    INDEFINITE: "a an some any another every each no",
    DEMONSTRATIVE: "this that these those",
    OWNED: "my your his her its our their whose",
}
DETERMINERS = {word: key for key, words in _DETERMINERS.items() for word in words.split()}
"""What the first word of a noun phrase makes of it."""
QUOTES = {'"': 0, "“": 1, "”": -1, "``": 1, "''": -1, "«": 1, "»": -1}
"""Quotation marks: 1 opens, -1 closes, 0 either."""
