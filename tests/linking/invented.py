"""A small invented knowledge, and the same as plain dictionaries for slow versions."""

from __future__ import annotations

from functools import cache

import pyarrow as pa

from corpusmill.linking.entities import Entities
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.lexicon import Lexicon
from corpusmill.linking.units import units_of
from corpusmill.linking.words import Words, count_words

PAIRS = [
    ("Rome", "Rome", "text", 9),
    ("rome", "Rome", "short", 2),
    ("ROME", "Rome_(band)", "text", 1),
    ("Rome", "A.S._Roma", "text", 3),
    ("roma", "A.S._Roma", "alias", 1),
    ("New York", "New_York_City", "text", 5),
    ("NYC", "New_York_City", "alias", 1),
    ("Big_Apple", "New_York_City", "redirect", 1),
    ("The Big Town", "Big_Apple", "short", 4),
    ("US", "United_States", "text", 7),
    ("us", "United_States", "query", 2),
    ("york", "York,_Maine", "comma", 1),
    ("obama", "Barack_Obama", "hashtag", 1),
    ("giant", "Giant", "candidate", 1),
    ("New York Giants", "New_York_Giants", "text", 2),
    ("4U2", "4U2_(film)", "text", 1),
    ("---", "Nothing", "text", 1),
    ("dot", "...", "text", 1),
]
VALUES = [
    ("Rome", "in_links", 100.0),
    ("Rome", "in_links", 40.0),
    ("Rome", "out_links", 10.0),
    ("Rome", "type:location", 1.0),
    ("rome (band)", "type:organization", 1.0),
    ("Barack_Obama", "fame", 31.0),
    ("Barack_Obama", "views", 1000.0),
    ("Barack_Obama", "type:person", 1.0),
    ("Michelle_Obama", "type:person", 1.0),
    ("Madonna", "type:person", 1.0),
    ("New_York_City", "popular", 1.0),
    ("New_York_City", "popularity", 2.5),
    ("York,_Maine", "unheard_of", 3.0),
    ("Giant", "in_links", float("nan")),
]
LINKS = [
    ("Rome", "A.S._Roma"),
    ("New_York_City", "A.S._Roma"),
    ("Rome", "New_York_City"),
    ("Big_Apple", "Rome"),
    ("United_States", "Rome"),
    ("United_States", "Barack_Obama"),
    ("Rome", "Rome"),
    ("Rome", "A.S._Roma"),
]
TWEETS = [
    "I love Rome and the US",
    "rome rome ROME. New York is big, the giants of New York Giants",
    "@BarackObama in #NewYorkGiants http://t.co/rome US's best",
    "let us go",
]
NEWS = ["The town of York. In New York, Rome fell; rome is a word."]
COMMON = ["us", "giant", "love", "big town"]
TEXTS = [
    "Rome",
    "RT @BarackObama: I met the New York Giants in the U.S. #NewYork http://t.co/x",
    "",
    "Obamas' friends, Obama's NYC and the big town! Rome isn't ROMA. Romes",
    "#BigApple #Rome us US Us",
    "no entity here",
    "Mr Obama by York River, 24 romes \U0001f600 Röme",
    "in New York City, to Rome: 4U2",
    "Sen. Obama via NYC via @NYC_Obama2012 the Giant",
]


def table(columns: list[str], rows: list[tuple]) -> pa.Table:
    return pa.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))


def lexicon_rows() -> pa.Table:
    rows = [(surface, entity, "made_up", kind, count) for surface, entity, kind, count in PAIRS]
    return table(["surface", "entity", "source", "kind", "count"], rows)


@cache
def knowledge() -> Knowledge:
    rows = lexicon_rows()
    values = table(["entity", "attribute", "value"], VALUES)
    entities = Entities.build(rows, values, table(["source", "target"], LINKS))
    lexicon = Lexicon.build(rows, entities)
    counted = {
        name: pa.Table.from_batches([count_words(units_of(pa.array(texts)), lexicon)])
        for name, texts in (("texts", TWEETS), ("edited", NEWS))
    }
    return Knowledge(lexicon, entities, Words.build(counted, pa.array(COMMON), entities))
