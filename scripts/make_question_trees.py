"""Write the embedded sample of questions: invented, with their constituency trees and classes.

    python scripts/make_question_trees.py

A question is a template of its class, filled from small lists of words. What it is about is drawn
alike for all classes, and speaks of persons, places, times and amounts too: *Which captain opened
the tower where the queen lost the price of the lantern?* asks for a person. So a bag of words is
misled where the tree is not: it shows which noun stands beside *which*. The last fifth of these
nouns is asked for in the test file alone; there only the rest of the tree tells, and at times
nothing does.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "lib" / "corpusmill" / "corpora" / "samples"
SEED = 7
TRAIN, TEST = 450, 150

NAMES = "Alma Reyes, Jonas Falk, Mira Okoro, Tomas Lind, Edith Vane, Hugo Marsh"
TOWNS = "Port Sorrow, Velden, Ashford Bay, Karsk, Lower Milling, Santa Brisa"
YEARS = "1871, 1904, 1938, 1956, 1969, 1987, 2003"
THINGS = (
    "old bridge, stone tower, night train, river ferry, glass harbour, paper mill, long orchard, "
    "winter market, blue lantern, sea wall, iron clock, salt road, grain store, summer palace"
)
DEEDS = "built, painted, found, opened, designed, lost, bought, repaired, closed, sold"
BARE_DEEDS = "build, paint, find, open, design, lose, buy, repair, close, sell"
# The last fifth of each list is asked for in the test file alone.
KINDS = {
    "PERSON": "architect, captain, mayor, engineer, poet, queen, singer, inventor, admiral, "
    "painter, doctor, judge, actress, miller, governor",
    "PLACE": "city, country, island, river, village, valley, harbor, state, street, province, "
    "castle, desert, forest, county, lake",
    "TIME": "year, month, day, century, decade, season, week, hour, date, spring, evening, "
    "winter, morning, summer, night",
    "NUMBER": "height, price, weight, length, population, speed, depth, width, distance, age, "
    "temperature, cost, size, rate, budget",
}
COUNTED = "bridges, ships, people, windows, steps, coins, songs, books, horses, trees, lamps, ropes"
MEASURED = "far, tall, deep, wide, old, fast, heavy, long"

# What stands in (SBARQ ... (. ?)), or after the verb of (S (VP (VB Name) ...) (. .)). A line that
# is indented further goes on with the one before.
# Of all classes: only the noun tells.
COMMON = """
    (WHNP (WP What)) (SQ (VBZ is) (NP {asked} (PP (IN of) {thing})))
    {which} (SQ (VBD did) {name} (VP (VB forget) {where}))
    Name (NP {asked} (PP (IN of) {thing}))
"""
TEMPLATES = {
    "PERSON": """
    (WHNP (WP Who)) (SQ (VP (VBD {deed}) {thing} {when}))
    (WHNP (WP Who)) (SQ (VBD was) (NP {asked} (PP (IN of) {town})))
    {which} (SQ (VP (VBD {deed}) {thing} {where}))
    {which} (SQ (VP (VBD {deed}) {thing} {when}))
    (WHNP (WP What)) (SQ (VBZ is) (NP (NP (DT the) (NN name)) (PP (IN of)
      (NP {asked} (SBAR (WHNP (WP who)) (S (VP (VBD {deed}) {thing})))))))
    Name (NP {asked} (SBAR (WHNP (WP who)) (S (VP (VBD {deed}) {thing} {where}))))
    (PP (IN By) (WHNP (WP whom))) (SQ (VBD was) {thing} (VP (VBN {deed}) {when}))
    (PP (TO To) {of_which}) (SQ (VBD did) {name} (VP (VB sell) {thing}))
""",
    "PLACE": """
    (WHADVP (WRB Where)) (SQ (VBD did) {name} (VP (VB {bare}) {thing} {when}))
    (WHADVP (WRB Where)) (SQ (VBZ is) {thing})
    (WHPP (IN In) {of_which}) (SQ (VBD did) {name} (VP (VB {bare}) {thing}))
    {which} (SQ (VBZ is) (NP (NP (DT the) (NN home)) (PP (IN of) {thing})))
    {which} (SQ (VBD did) {name} (VP (VB leave) {when}))
    (WHNP (WP What)) (SQ (VBZ is) (NP (NP (DT the) (NN name)) (PP (IN of)
      (NP {asked} (SBAR (WHADVP (WRB where)) (S {name} (VP (VBD {deed}) {thing})))))))
    Name (NP {asked} (SBAR (WHADVP (WRB where)) (S {name} (VP (VBD {deed}) {thing}))))
    (WHPP (IN From) {of_which}) (SQ (VBZ does) {thing} (VP (VB come)))
""",
    "TIME": """
    (WHADVP (WRB When)) (SQ (VBD did) {name} (VP (VB {bare}) {thing} {where}))
    (WHADVP (WRB When)) (SQ (VBD was) {thing} (VP (VBN {deed})))
    {which} (SQ (VBD did) {name} (VP (VB {bare}) {thing} {where}))
    {which} (SQ (VBD was) {thing} (VP (VBN {deed})))
    (WHPP (IN In) {of_which}) (SQ (VBD was) {thing} (VP (VBN {deed})))
    (WHPP (IN On) {of_which}) (SQ (VBD did) {thing} (VP (VB close)))
    (WHNP (WP What)) (SQ (VBD was) (NP {asked} (SBAR (WHADVP (WRB when)) (S {name}
      (VP (VBD {deed}) {thing})))))
    Name (NP {asked} (SBAR (WHADVP (WRB when)) (S {thing} (VP (VBD was) (VP
      (VBN {deed}))))))
""",
    "NUMBER": """
    (WHNP (WHADJP (WRB How) (JJ many)) (NNS {counted})) (SQ (VBD did) {name} (VP
      (VB {bare}) {where}))
    (WHADJP (WRB How) (JJ {measured})) (SQ (VBZ is) {thing})
    (WHNP (WP What)) (SQ (VBD was) (NP {asked} (PP (IN of) {town}) {when}))
    (WHNP (WHADJP (WRB How) (JJ much))) (SQ (VBD did) {name} (VP (VB pay) (PP
      (IN for) {thing})))
    (WHPP (IN For) {of_which}) (SQ (VBD did) {name} (VP (VB {bare}) {thing}))
    (WHNP (WP What)) (SQ (VBZ is) (NP (NP (DT the) (NN number)) (PP (IN of) (NP
      (NNS {counted}) {where}))))
""",
}


def words(text: str) -> list[str]:
    """Split a list written with commas."""
    return [word.strip() for word in text.split(",")]


def templates(target: str) -> list[str]:
    """Return the whole templates of a class."""
    lines = re.sub(r"\n {6}", " ", TEMPLATES[target].rstrip() + COMMON.rstrip()).split("\n")
    return [
        f"(S (VP (VB Name) {line.split('Name ')[1]}) (. .))"
        if "Name " in line
        else f"(SBARQ {line.strip()} (. ?))"
        for line in lines
        if line
    ]


def proper(name: str) -> str:
    """Write a name as a noun phrase."""
    return f"(NP {' '.join(f'(NNP {part})' for part in name.split())})"


def kind(rng: random.Random) -> str:
    """Write a person, place, time or amount that is not asked for."""
    return f"(NP (DT the) (NN {rng.choice(words(KINDS[rng.choice(list(KINDS))]))}))"


def subject(rng: random.Random) -> str:
    """Write who does something."""
    chance = rng.random()
    if chance < 0.5:
        return proper(rng.choice(words(NAMES)))
    person = f"(NP (DT the) (NN {rng.choice(words(KINDS['PERSON']))}))"
    if chance < 0.8:
        return person
    deed = rng.choice(words(DEEDS))
    return f"(NP {person} (SBAR (WHNP (WP who)) (S (VP (VBD {deed}) {kind(rng)}))))"


def thing(rng: random.Random) -> str:
    """Write what a question is about."""
    adjective, noun = rng.choice(words(THINGS)).split()
    described = f"(NP (DT the) (JJ {adjective}) (NN {noun}))"
    chance = rng.random()
    if chance < 0.15:
        return described
    if chance < 0.7:
        return f"(NP {described} (PP (IN of) {kind(rng)}))"
    adverb, deed = rng.choice(["where", "when"]), rng.choice(words(DEEDS))
    clause = f"(S {subject(rng)} (VP (VBD {deed}) {kind(rng)}))"
    return f"(NP {described} (SBAR (WHADVP (WRB {adverb})) {clause}))"


def adjunct(rng: random.Random, choices: str) -> str:
    """Write a place or a year after *in*, or nothing."""
    if rng.random() < 0.5:
        return ""
    chosen = rng.choice(words(choices))
    return f"(PP (IN in) {f'(NP (CD {chosen}))' if chosen.isdigit() else proper(chosen)})"


def question(target: str, test: bool, rng: random.Random) -> str:
    """Write the tree of a question of a class."""
    kinds = words(KINDS[target])
    known = len(kinds) * 4 // 5
    which = rng.choice(["Which", "What"])
    template = rng.choice(templates(target))
    asked = rng.choice(kinds if test else kinds[:known])
    filled = template.format(
        which=f"(WHNP (WDT {which}) (NN {asked}))",
        of_which=f"(WHNP (WDT {which.lower()}) (NN {asked}))",
        asked=f"(NP (DT the) (NN {asked}))",
        thing=thing(rng),
        name=subject(rng),
        town=proper(rng.choice(words(TOWNS))),
        deed=rng.choice(words(DEEDS)),
        bare=rng.choice(words(BARE_DEEDS)),
        counted=rng.choice(words(COUNTED)),
        measured=rng.choice(words(MEASURED)),
        when=adjunct(rng, YEARS),
        where=adjunct(rng, TOWNS),
    )
    return re.sub(r" +(?=\))", "", re.sub(" +", " ", filled))


def samples() -> dict[str, list[bytes]]:
    """Return the lines of both files; the same ones every time, no question twice."""
    rng = random.Random(SEED)  # noqa: S311 - a sample, no secret
    seen: set[str] = set()
    files = {}
    for name, size in (("train", TRAIN), ("test", TEST)):
        lines = [b"target\ttree"]
        while len(lines) <= size:
            target = rng.choice(list(TEMPLATES))
            tree = question(target, name == "test", rng)
            if tree not in seen:
                seen.add(tree)
                lines.append(f"{target}\t{tree}".encode())
        files[f"questions_trees_{name}.tsv"] = lines
    return files


def main() -> None:
    """Write the files."""
    SAMPLES.mkdir(exist_ok=True)
    for name, lines in samples().items():
        (SAMPLES / name).write_bytes(b"\n".join(lines) + b"\n")
        print(f"{name}: {len(lines)} lines")


if __name__ == "__main__":
    main()
