"""Write the embedded samples: an invented query log, its entities and the true classes.

    python scripts/make_samples.py

Names and contexts are inventions or everyday words; nothing is taken from a real log.
A query's class is drawn first, then words that this class brings to a query, then, now
and then, a word that any class has: so the class can be learnt, but not from every query.
The log ends with a few bad lines, which a reader puts into quarantine.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path

SAMPLES = Path(__file__).resolve().parents[1] / "lib" / "corpusmill" / "corpora" / "samples"
SEED = 20
WITH_ENTITY = 2700
WITHOUT_ENTITY = 300
START = datetime.datetime(2024, 3, 4, tzinfo=datetime.UTC)

ENTITIES = {
    "animal car company": "Jaguar, Cobra, Puma, Mustang, Falcon",
    "animal film game": "The Raven, Black Swan, Wolf, Hornet, White Heron",
    "animal company": "Red Panda, Blue Heron, Penguin, Salmon Run",
    "book film": "The Long Orchard, A Winter's Ferry, The Glass Harbour, Nine Lanterns, "
    "Amélie's Garden",
    "book film game": "Dune Riders, The Last Beacon, Iron Valley, Ashfall, The Clockmaker",
    "book person": "Emma, Rebecca, Dorian, Ivan O'Brien",
    "city film": "Casablanca, Port Sorrow, Chicago, Saint Elmo",
    "city person": "Florence, Victoria, Sydney, Austin, Madison, Lincoln, Charlotte",
    "city company food": "Hamburg, Frankfurt, Vienna, Bologna",
    "city food": "Turkey Creek, Java, Champagne, Dijon",
    "company food": "Apple, Blackberry, Orange, Café Luna, Mango",
    "company film game": "Titan, Atlas, Oracle, Phoenix, Avalanche, Silver Harbor",
    "food person": "Olive, Ginger, Basil, Rosemary, Clementine",
    "car company film": "Mercury, Comet, Saturn",
    "car city": "Monza, Seville, Cordoba",
}
# Folded alike with names above, so that names are merged.
OTHER_SPELLINGS = [("cafe luna", "company"), ("JAGUAR", "animal")]

CONTEXTS = {
    "animal": "habitat, diet, facts for kids, endangered, in the wild, lifespan, what do {} eat, "
    "baby, predators of, sounds, zoo, migration, nesting, how big is a, wildlife photos, species",
    "book": "author, summary by chapter, quotes, paperback, audiobook, characters in, ebook, "
    "book review, hardcover first edition, reading group questions, who wrote, novel, sequel novel",
    "car": "top speed, used for sale, engine, mpg, horsepower, convertible, brake pads, dealer, "
    "lease deals, spare parts, tire size, vintage, transmission problems, insurance cost",
    "city": "weather, hotels in, map of, things to do in, flights to, population, airport, "
    "where to stay in, city council, street parking, train station, restaurants downtown",
    "company": "stock, customer service, jobs at, headquarters, share price, ceo, login, "
    "annual report, careers, store hours, investor relations, phone support number, merger news",
    "film": "cast, trailer, full movie, showtimes, box office, soundtrack, director, watch online, "
    "ending explained, movie review, oscar nominations, dvd, film location",
    "food": "recipe, calories in, how to cook, nutrition, salad, baked, sauce, vegan, "
    "how to store, marinade, pie filling, gluten free, side dish, for dinner",
    "game": "walkthrough, cheats, multiplayer, download, system requirements, console release, "
    "boss fight, speedrun, mods, save file, controller support, level 12",
    "person": "biography, born, net worth, married, interview, age, wife of, birthday, childhood, "
    "quotes by, death of, who is, family tree",
}
ANYTHING = (
    "best, 2023, new, free, price, top 10, near me, pictures, history, the, online, cheap, big"
)

PLAIN = {
    "how to": "tie a tie, remove wine stains, unclog a drain, write a cover letter, boil eggs",
    "cheap": "running shoes, laptops, car hire, garden chairs, winter coats",
    "symptoms of": "flu, anemia, a cold, hay fever, dehydration",
    "translate": "good morning, thank you, library, umbrella, tomorrow",
    "lyrics": "happy birthday, lullaby, wedding march, sea shanty, national anthem",
    "used": "bicycles, textbooks, furniture, pianos, tractors",
}
PLAIN_ENDS = (
    ", near me, online, 2023, step by step, for beginners, free, today, at home, in winter, "
    "for students, with pictures"
)

BAD_LINES = [
    b"caf\xe9 with a byte that is not UTF-8\t3\t2024-03-09T10:00:00Z",
    b"a line of one column",
    b"one column too many\t2\t2024-03-09T10:05:00Z\tsurplus",
    b"a count that is no number\tmany\t2024-03-09T10:10:00Z",
    b"no hour has 99 minutes\t1\t2024-03-09T10:99:00Z",
    b"\t4\t2024-03-09T10:20:00Z",
]


def words(text: str) -> list[str]:
    """Split a list written with commas."""
    return [word.strip() for word in text.split(",")]


def entity_classes() -> dict[str, list[str]]:
    """Return each entity's classes."""
    return {name: classes.split() for classes, names in ENTITIES.items() for name in words(names)}


def spell(name: str, rng: random.Random) -> str:
    """Write a name as users do."""
    chance = rng.random()
    if chance < 0.8:
        return name.lower()
    return name if chance < 0.95 else name.upper()


def entity_query(name: str, kind: str, rng: random.Random) -> str:
    """Write a query about an entity of a class."""
    context = rng.choice(words(CONTEXTS[kind]))
    shown = spell(name, rng)
    leads = ("who ", "how ", "what ", "in ", "predators", "map of", "things", "flights", "jobs")
    if "{}" in context:
        query = context.format(shown)
    elif context.startswith(leads) or context.endswith((" in", " of", " by", " at", " a", " to")):
        query = f"{context} {shown}"
    else:
        query = f"{shown} {context}"
    more = rng.choice(words(CONTEXTS[kind]))
    if rng.random() < 0.35 and "{}" not in more and more != context:
        query += f" {more}"
    if rng.random() < 0.4:
        query += f" {rng.choice(words(ANYTHING))}"
    return " ".join(query.split())


def plain_query(rng: random.Random) -> str:
    """Write a query without an entity."""
    start = rng.choice(list(PLAIN))
    return " ".join(
        f"{start} {rng.choice(words(PLAIN[start]))} {rng.choice(words(PLAIN_ENDS))}".split()
    )


def queries(rng: random.Random) -> dict[str, str | None]:
    """Return distinct queries with their true classes, None where there is no entity."""
    known = entity_classes()
    found: dict[str, str | None] = {}
    while len(found) < WITH_ENTITY:
        name = rng.choice(list(known))
        # The first class of an entity is the most wanted one.
        kind = rng.choices(known[name], weights=[4, 3, 2][: len(known[name])])[0]
        query = entity_query(name, kind, rng)
        if found.setdefault(query, kind) != kind:
            del found[query]
    while len(found) < WITH_ENTITY + WITHOUT_ENTITY:
        found[plain_query(rng)] = None
    return found


def log_line(query: str, rng: random.Random) -> bytes:
    """Return a line of the log: few queries are asked often."""
    count = min(500, int(rng.paretovariate(1.1)))
    time = START + datetime.timedelta(seconds=rng.randrange(7 * 24 * 3600))
    return f"{query}\t{count}\t{time:%Y-%m-%dT%H:%M:%SZ}".encode()


def samples() -> dict[str, list[bytes]]:
    """Return the lines of the three files; the same ones every time."""
    rng = random.Random(SEED)  # noqa: S311 - a sample, no secret
    rows = [(name, kind) for name, kinds in entity_classes().items() for kind in kinds]
    entities = [f"{name}\t{kind}".encode() for name, kind in rows + OTHER_SPELLINGS]
    truth = queries(rng)
    order = sorted(truth)
    rng.shuffle(order)
    log = [log_line(query, rng) for query in order]
    gold = [f"{query}\t{truth[query]}".encode() for query in order if truth[query]]
    return {
        "entities.tsv": [b"entity\tclass", *entities],
        "query_log.tsv": [b"query\tcount\ttimestamp", *log, *BAD_LINES],
        "gold.tsv": [b"query\tclass", *gold],
    }


def main() -> None:
    """Write the files."""
    SAMPLES.mkdir(exist_ok=True)
    for name, lines in samples().items():
        (SAMPLES / name).write_bytes(b"\n".join(lines) + b"\n")
        print(f"{name}: {len(lines)} lines")


if __name__ == "__main__":
    main()
