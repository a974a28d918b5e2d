"""Make the embedded sample of the coreference job: short invented stories, talks and notes.

    python scripts/make_coreference_sample.py lib/corpusmill/corpora/samples

Sentences are trees with places for those whom a story is about. Somebody is named in full at first,
later by a pronoun, a short name or what he or she is; who is mentioned once only is in no cluster.
Some "it", "you" and "we" mean nobody, and notes are about something else in each sentence.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

WOMEN, MEN = "Ada Celia Ines Mora Tilda".split(), "Bruno Dov Emil Oskar Piet".split()
SURNAMES = "Varn Oldric Temsy Quell Brask Lunden Fairow Hallum".split()
TRADES = "baker pilot teacher painter gardener doctor".split()
TOWNS = "Mirel Dorsk Petrin Soolbridge Kestering".split()
THINGS = {"boat": "old", "clock": "broken", "letter": "long", "kite": "red", "lamp": "heavy"}
GROUPS = "sisters neighbours children sailors".split()
STORY = [
    "(S {a} (VP (VBD lived) (PP (IN in) {p})) (. .))",
    "(S {a} (VP (VBD found) {t} (PP (IN near) {p})) (. .))",
    "(S {a} (VP (VBD met) {b} (PP (IN at) (NP (DT the) (NN station)))) (. .))",
    "(S {b} (VP (VBD was) (NP (DT a) (NN friend) (PP (IN of) {a}))) (. .))",
    "(S {b} (VP (VBD asked) {a} (PP (IN about) {t})) (. .))",
    "(S {a} (VP (VBD showed) {t} (PP (TO to) {b})) (. .))",
    "(S {b} (VP (VBD liked) {t} (ADVP (RB very) (RB much))) (. .))",
    "(S {g} (VP (VBD came) (PP (IN to) {p})) (. .))",
    "(S {g} (VP (VBD saw) {a} (CC and) {b}) (. .))",
    "(S {b} (VP (VBD told) {g} (NP (DT the) (NN news))) (. .))",
    "(S (PP (IN In) (NP (DT the) (NN evening))) {a} (VP (VBD took) {t} (ADVP (RB home))) (. .))",
    "(S {a} (VP (VBD thanked) {g}) (. .))",
    "(S {b} (VP (VBD left) {p} (PP (IN with) {g})) (. .))",
    "(S (NP {b_of} (NN brother)) (VP (VBD wanted) (S (VP (TO to) (VP (VB buy) {t})))) (. .))",
    "(S {t} (VP (VBD stood) (PP (IN in) (NP {a_of} (NN kitchen)))) (. .))",
    "(S (NP (PRP It)) (VP (VBD rained) (PP (IN in) {p})) (. .))",
    "(S (NP (PRP It)) (VP (VBD was) (ADJP (JJ late)) (SBAR (WHADVP (WRB when)) "
    "(S {a} (VP (VBD slept))))) (. .))",
    "(S (NP (PRP It)) (VP (VBD seemed) (SBAR (IN that) (S {b} (VP (VBD knew) {p})))) (. .))",
]
TALK = [
    "(S {i} (VP (VBD met) {b} (PP (IN in) {p})) (. .))",
    "(SQ (VBD Did) {you} (VP (VB see) {b}) (. ?))",
    "(S (INTJ (UH Yes)) (, ,) {b} (VP (VBD brought) {t}) (. .))",
    "(S {i} (VP (VBP like) {t}) (. .))",
    "(S {b} (VP (VBD gave) {t} (PP (TO to) {i_o})) (. .))",
    "(S {you} (VP (MD should) (VP (VB keep) {t})) (. .))",
    "(SQ (VBZ Is) {t} (PP (IN in) (NP {you_of} (NN house))) (. ?))",
    "(S (INTJ (UH No)) (, ,) {i} (VP (VBD sold) {t}) (. .))",
    "(S {g} (VP (VBD asked) {i_o} (PP (IN about) {b})) (. .))",
    "(S {b} (VP (VBZ knows) {g}) (. .))",
    "(S (NP {i_of} (NN sister)) (VP (VBZ works) (PP (IN for) {b})) (. .))",
    "(S {i} (VP (MD will) (VP (VB visit) {p} (PP (IN with) {g}))) (. .))",
    "(S (NP (PRP You)) (VP (VBP know)) (, ,) (S (NP (PRP it)) (VP (VBZ is) (ADJP (JJ cold)))) "
    "(. .))",
    "(S (NP (PRP It)) (VP (VBZ rains) (PP (IN in) {p})) (. .))",
    "(S (NP (PRP It)) (VP (VBZ is) (NP (NN time) (S (VP (TO to) (VP (VB call) {b}))))) (. .))",
]
NOTES = [
    "(S (NP (DT The) (NN {n})) (VP (VBD was) (ADJP (JJ {j}))) (. .))",
    "(S (NP (PRP It)) (VP (VBD rained)) (. .))",
    "(S (NP (DT A) (JJ {j}) (NN {n})) (VP (VBD stood) (PP (IN by) (NP (DT a) (NN {m})))) (. .))",
    "(S (NP (NNS {n}s) (CC and) (NNS {m}s)) (VP (VBD were) (ADJP (JJ {j}))) (. .))",
]
NOUNS = "road river garden market bridge roof tower field orchard wall".split()
QUALITIES = "quiet wet empty green dusty narrow".split()
CASES = {
    "f": ("she", "her", "her"),
    "m": ("he", "him", "his"),
    "n": ("it", "it", "its"),
    "p": ("they", "them", "their"),
    "i": ("I", "me", "my"),
    "you": ("you", "you", "your"),
}
SUBJECT, OBJECT, OWNER = range(3)


class Entity(NamedTuple):
    """Somebody or something: number, its pronouns ("" for none), long, short and common name."""

    number: int
    gender: str
    long: str
    short: str
    common: str


class Token(NamedTuple):
    """A token with its columns."""

    word: str
    tag: str
    parse: str
    name: str
    clusters: str


class Teller:
    """Fills the places of a sentence; `str.format_map` asks for them from left to right."""

    def __init__(self, cast: dict[str, Entity], rng: np.random.Generator) -> None:
        self.cast = cast
        self.rng = rng
        self.said: set[int] = set()
        self.recent: set[int] = set()
        self.now: set[int] = set()
        self.pairs: tuple[Entity, Entity] | None = None

    def sentence(self, template: str, speakers: tuple[Entity, Entity] | None = None) -> str:
        """Write a sentence, said by the first of the speakers to the second."""
        self.pairs, self.now = speakers, set()
        self.text = template
        written = template.format_map(self)
        self.recent = self.now or self.recent
        return written

    def __getitem__(self, place: str) -> str:
        """Write a noun phrase for a place such as ``a``, ``b_of`` or ``i_o``."""
        who, _, kind = place.partition("_")
        if self.pairs is not None and who in ("i", "you"):
            case = {"": SUBJECT, "o": OBJECT, "of": OWNER}[kind]
            return pronoun(self.pairs[who == "you"], who, case)
        before = self.text.partition("{" + place + "}")[0]
        verb = any(f"({tag} " in before for tag in ("VBD", "VBZ", "VBP", "VB", "MD"))
        inverted = before.startswith("(SQ") and "(VP" not in before
        case = OWNER if kind == "of" else OBJECT if verb and not inverted else SUBJECT
        if "(SBAR" in before and before.endswith("(S "):
            case = SUBJECT
        return self.phrase(self.cast[who], case)

    def phrase(self, entity: Entity, case: int) -> str:
        """Choose how an entity is called here."""
        known, near = entity.number in self.said, entity.number in self.recent | self.now
        rivals = [
            each
            for each in self.cast.values()
            if each.gender == entity.gender and each.number in (self.recent | self.now)
        ]
        self.said.add(entity.number)
        self.now.add(entity.number)
        if known and near and len(rivals) == 1 and entity.gender and self.rng.random() < 0.75:
            return pronoun(entity, entity.gender, case)
        if not known:
            name = entity.long
        else:
            name = entity.common if self.rng.random() < 0.4 else entity.short
        return noun_phrase(entity, name, case)


def pronoun(entity: Entity, gender: str, case: int) -> str:
    """Write a pronoun."""
    word = CASES[gender][case]
    if case == OWNER:
        return f"(PRP$#{entity.number} {word})"
    return f"(NP#{entity.number} (PRP {word}))"


def noun_phrase(entity: Entity, name: str, case: int) -> str:
    """Write a name, or a common noun with what stands before it."""
    words = name.split()
    plural = "S" if entity.gender == "p" else ""
    if words[0][0].isupper():
        kind = "PERSON" if entity.gender else "GPE"
        label, tags = f"NP#{entity.number}!{kind}", ["NNP"] * len(words)
    else:
        label, tags = f"NP#{entity.number}", ["DT", *["JJ"] * (len(words) - 2), "NN" + plural]
    leaves = [f"({tag} {word})" for tag, word in zip(tags, words, strict=True)]
    if case == OWNER:
        leaves.append("(POS 's)")
    return f"({label} {' '.join(leaves)})"


def make_cast(rng: np.random.Generator) -> dict[str, Entity]:
    """Draw two persons, a place, a thing and some people."""
    surnames, trades = rng.choice(SURNAMES, 2, False), rng.choice(TRADES, 2, False)
    cast = {}
    for number, role in enumerate("ab"):
        gender = str(rng.choice(["f", "m"]))
        first = str(rng.choice((WOMEN if gender == "f" else MEN)[number::2]))
        short = first if rng.random() < 0.7 else str(surnames[number])
        long = f"{first} {surnames[number]}"
        cast[role] = Entity(number, gender, long, short, f"the {trades[number]}")
    town, thing = str(rng.choice(TOWNS)), str(rng.choice(sorted(THINGS)))
    article = "an" if THINGS[thing][0] in "aeiou" else "a"
    cast["p"] = Entity(2, "", town, town, "the town")
    cast["t"] = Entity(3, "n", f"{article} {THINGS[thing]} {thing}", f"the {thing}", f"the {thing}")
    group = str(rng.choice(GROUPS))
    cast["g"] = Entity(4, "p", f"the {group}", f"the {group}", f"the {group}")
    return cast


def sentences(genre: str, rng: np.random.Generator) -> Iterator[tuple[str, str]]:
    """Draw the speaker ("-" for none) and the tree of each sentence of a document."""
    if genre == "notes":
        for template in rng.permutation(NOTES):
            n, m = rng.choice(NOUNS, 2, False)
            yield "-", str(template).format(n=n, m=m, j=rng.choice(QUALITIES))
        return
    teller = Teller(make_cast(rng), rng)
    templates = STORY if genre == "story" else TALK
    chosen = sorted(rng.choice(len(templates), int(rng.integers(6, 11)), False).tolist())
    one = Entity(5, "i", "", "", "")
    other = Entity(6, "i", "", "", "")
    names = [str(name) for name in rng.choice(SURNAMES, 2, False)]
    for turn, number in enumerate(chosen):
        if genre == "story":
            yield "-", teller.sentence(templates[number])
        else:
            pair = (one, other) if turn % 2 == 0 else (other, one)
            yield names[turn % 2], teller.sentence(templates[number], pair)


def tokens_of(tree: str, kept: set[str]) -> list[Token]:
    """Read a bracketed tree; brackets with ``#N`` open a mention, with ``!KIND`` a name."""
    found: list[Token] = []
    opened: list[tuple[str, str]] = []
    parse = name = clusters = ""
    pieces = f"(TOP {tree})".replace("(", " ( ").replace(")", " ) ").split()
    place = 0
    while place < len(pieces):
        if pieces[place] == ")":
            _close(found, *opened.pop())
            place += 1
            continue
        label, _, kind = pieces[place + 1].partition("!")
        label, _, number = label.partition("#")
        mark = number if number in kept else ""
        leaf = pieces[place + 2] not in "()"
        if not leaf:
            opened.append((mark, kind))
            parse += f"({label}"
            name += f"({kind}" if kind else ""
            clusters += f"|({mark}" if mark else ""
            place += 2
            continue
        single = f"|({mark})" if mark else ""
        found.append(Token(pieces[place + 2], label, f"{parse}*", f"{name}*", clusters + single))
        parse = name = clusters = ""
        place += 4
    first = found[0]
    found[0] = first._replace(word=first.word[0].upper() + first.word[1:])
    return found


def _close(found: list[Token], number: str, kind: str) -> None:
    """Close a constituent after the last token."""
    last = found[-1]
    clusters = last.clusters
    if number and f"({number}" in clusters.split("|"):
        clusters = clusters.replace(f"({number}", f"({number})")
    elif number:
        clusters += f"|{number})"
    name = last.name + ")" if kind else last.name
    found[-1] = last._replace(parse=last.parse + ")", name=name, clusters=clusters)


def document(genre: str, number: int, rng: np.random.Generator) -> list[str]:
    """Write a document in CoNLL-2012 columns."""
    name = f"{genre}/{number:02d}"
    drawn = list(sentences(genre, rng))
    counts = Counter(
        part.split("!")[0].split()[0] for _, tree in drawn for part in tree.split("#")[1:]
    )
    kept = {each for each, count in counts.items() if count > 1}
    lines = [f"#begin document ({name}); part 000"]
    for speaker, tree in drawn:
        for place, token in enumerate(tokens_of(tree, kept)):
            entity = token.name.replace("*)", ")") if "(" in token.name else token.name
            clusters = token.clusters.strip("|") or "-"
            columns = [name, 0, place, token.word, token.tag, token.parse]
            lines.append("\t".join(map(str, [*columns, "-", "-", "-", speaker, entity, clusters])))
        lines.append("")
    return [*lines, "#end document"]


def genders(rng: np.random.Generator) -> list[str]:
    """Write a list of phrases with counts of masculine, feminine, neuter and plural pronouns."""
    kinds = [(WOMEN, 1), (MEN, 0), (TOWNS, 2), (list(THINGS), 2), (GROUPS, 3)]
    lines = []
    for words, column in kinds:
        for word in words:
            counts = rng.integers(0, 3, 4)
            counts[column] += rng.integers(20, 90)
            for phrase in (word.lower(), f"{word.lower()} !")[: 2 if column < 2 else 1]:
                lines.append(f"{phrase}\t{' '.join(map(str, counts))}")
    return sorted(lines)


def samples() -> dict[str, list[str]]:
    """Draw all files: their lines by their names."""
    rng = np.random.default_rng(17)
    made = {}
    for name, sizes in (("train", (24, 16, 4)), ("test", (8, 6, 2))):
        made[f"coreference_{name}.conll"] = [
            line
            for genre, size in zip(("story", "talk", "notes"), sizes, strict=True)
            for number in range(size)
            for line in document(genre, number + 50 * (name == "test"), rng)
        ]
    return made | {"coreference_genders.tsv": genders(rng)}


def main() -> int:
    """Write the files."""
    for name, lines in samples().items():
        (Path(sys.argv[1]) / name).write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
