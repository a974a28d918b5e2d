"""Entities in queries against a dictionary of all n-grams."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora import gazetteer
from corpusmill.corpora.gazetteer import Gazetteer
from corpusmill.corpora.text import tokenize
from corpusmill.errors import SchemaError

WORDS = st.sampled_from(["a", "B", "é", "e", "new", "york", "zzz", "!", "o'x"])
PHRASES = st.lists(WORDS, max_size=5).map(" ".join)


def tokens_of(strings):
    return tokenize(pa.array(strings, pa.string())).to_pylist()


def find_reference(entities, queries):
    """Return (name, context, start, end) a query by looking every n-gram up in a dictionary."""
    names: dict[tuple[str, ...], str] = {}
    for entity, tokens in zip(entities, tokens_of(entities), strict=True):
        names.setdefault(tuple(tokens), entity)
    names.pop((), None)
    return [look_up(names, tokens) for tokens in tokens_of(queries)]


def look_up(names, tokens):
    for length in range(len(tokens), 0, -1):
        for start in range(len(tokens) - length + 1):
            end = start + length
            found = names.get(tuple(tokens[start:end]))
            if found is not None:
                return found, tokens[:start] + tokens[end:], start, end
    return None, tokens, None, None


def annotate(entities, queries):
    batch = Gazetteer.build(entities).annotate(pa.array(queries, pa.string()))
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


@settings(max_examples=200, deadline=None)
@given(st.lists(PHRASES, max_size=8), st.lists(PHRASES, max_size=5))
def test_the_longest_leftmost_name_is_found(entities, queries):
    assert annotate(entities, queries) == find_reference(entities, queries)


def test_many_entities_agree_with_the_dictionary():
    entities = [f"w{i % 97} x{i % 89} y{i}" for i in range(3000)] + [f"w{i}" for i in range(97)]
    queries = [f"q w{i % 97} x{i % 89} y{i + i % 3} tail" for i in range(2000)]
    assert annotate(entities, queries) == find_reference(entities, queries)


def test_same_tokens_are_one_entity_and_empty_names_are_refused():
    built = Gazetteer.build(["Café", "!!!", "cafe", "CAFÉ  ", "Bar"])
    assert built.names.to_pylist() == ["Café", "Bar"]
    assert built.canonical.tolist() == [0, -1, 0, 0, 1]


@pytest.mark.parametrize("entities", [[], ["?"]])
def test_no_usable_entity_finds_nothing(entities):
    assert annotate(entities, ["a b", ""]) == [
        (None, ["a", "b"], None, None),
        (None, [], None, None),
    ]


def test_no_query():
    assert Gazetteer.build(["a"]).annotate(pa.array([], pa.string())).num_rows == 0


ENTITIES = [
    ("Jaguar", "animal"),
    ("jaguar", "car"),
    ("New York", "city"),
    ("New York Times", "paper"),
    ("!!!", "band"),
    ("Zoë", "person"),
]
QUERIES = [
    ("JAGUAR speed", 3),
    ("the new york times price", 1),
    ("new york zoe", 2),
    ("zoe jaguar", 1),
    ("zoe jaguar", 7),
    ("nothing here", 1),
    ("", 1),
    ("jaguar", 4),
]


@pytest.fixture(scope="module")
def frames(spark):
    queries = spark.createDataFrame(QUERIES, "query string, count long").repartition(3)
    entities = spark.createDataFrame(ENTITIES, "entity string, class string")
    return queries, entities


@pytest.mark.spark
@pytest.mark.parametrize("limit", [gazetteer.BROADCAST_TOKENS, 0], ids=["trie", "join"])
def test_spark_agrees_with_the_dictionary_by_trie_and_by_join(frames, limit):
    queries, entities = frames
    found = gazetteer.find_entities(queries, entities, broadcast_tokens=limit)
    assert found.columns == ["query", "count", "entity", "context", "start", "end"]
    names = sorted(name for name, _ in ENTITIES)
    found_by_hand = find_reference(names, [query for query, _ in QUERIES])
    expected = [(*row, *hit) for row, hit in zip(QUERIES, found_by_hand, strict=True)]
    rows = [tuple(row) for row in found.collect()]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


@pytest.mark.spark
def test_the_join_is_an_equi_join(frames, capsys):
    queries, entities = frames
    gazetteer.find_entities(queries, entities, broadcast_tokens=0).explain()
    plan = capsys.readouterr().out
    assert "HashJoin" in plan or "SortMergeJoin" in plan
    assert "CartesianProduct" not in plan
    assert "NestedLoop" not in plan


@pytest.mark.spark
def test_canonical_names_merge_classes_and_tell_the_refused(frames):
    rows = gazetteer.canonical_entities(frames[1]).collect()
    found = {(row.entity, row["class"]): (row.key, row.canonical) for row in rows}
    assert found["Jaguar", "animal"] == ("jaguar", "Jaguar")
    assert found["jaguar", "car"] == ("jaguar", "Jaguar")
    assert found["Zoë", "person"] == ("zoe", "Zoë")
    assert found["!!!", "band"] == ("", None)
    assert len(rows) == len(ENTITIES)


@pytest.mark.spark
@pytest.mark.parametrize("limit", [gazetteer.BROADCAST_TOKENS, 0], ids=["trie", "join"])
def test_bytes_that_are_no_utf8_lose_no_query(spark, limit):
    queries = spark.sql("select cast(x'6a6167756172ff20' as string) as query")
    entities = spark.createDataFrame(ENTITIES, "entity string, class string")
    rows = gazetteer.find_entities(queries, entities, broadcast_tokens=limit).collect()
    assert [tuple(row) for row in rows] == [("jaguar\ufffd ", "Jaguar", [], 0, 1)]


@pytest.mark.spark
def test_wrong_columns_are_named(frames):
    queries, entities = frames
    with pytest.raises(SchemaError, match="column 'query' is missing; expected string"):
        gazetteer.find_entities(queries.drop("query"), entities)
    with pytest.raises(SchemaError, match="column 'query' is bigint"):
        gazetteer.find_entities(queries.selectExpr("count as query"), entities)
    with pytest.raises(SchemaError, match="column 'start' is already there"):
        gazetteer.find_entities(queries.selectExpr("query", "count as start"), entities)
