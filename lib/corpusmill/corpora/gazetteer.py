"""Entities in queries: the longest run of tokens that is the name of an entity.

Names and queries are folded and tokenised alike (`corpora.text`). Two names with the
same tokens are one entity: the first of them is its canonical name, and the classes
of both are its classes. A name without a letter or digit cannot be found and is
refused: `canonical_entities` tells both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora import gazetteer_kernels as kernels
from corpusmill.corpora.schemas import STRINGS
from corpusmill.corpora.text import join_tokens, tokenize
from corpusmill.errors import SchemaError
from corpusmill.types import AnyArray, Offsets, TokenIds

# A trie of 2 million tokens is some 50 MB in each worker; above it a shuffle is cheaper.
BROADCAST_TOKENS = 2_000_000

FOUND = T.StructType(
    [
        T.StructField("entity", T.StringType()),
        T.StructField("context", STRINGS, nullable=False),
        T.StructField("start", T.IntegerType()),
        T.StructField("end", T.IntegerType()),
    ]
)


class Gazetteer(NamedTuple):
    """Names of entities as a trie of tokens in flat arrays.

    Attributes
    ----------
    names : pa.Array of strings, shape (entities,)
        The canonical names.
    canonical : TokenIds, shape (given names,)
        The entity of each name given to `build`, or -1 for a refused one.
    words, bounds, slots : AnyArray
        The vocabulary: bytes, offsets, and the hash table of its strings.
    keys, children, phrase_at : AnyArray
        The trie (`gazetteer_kernels.build_trie`).
    """

    names: pa.Array
    canonical: TokenIds
    words: AnyArray
    bounds: Offsets
    slots: TokenIds
    keys: AnyArray
    children: TokenIds
    phrase_at: TokenIds

    @classmethod
    def build(cls, entities: Iterable[str]) -> Gazetteer:
        """Build the trie. O(bytes of all names).

        Parameters
        ----------
        entities
            Names in order; of several with the same tokens the first stands.
        """
        given = pa.array(entities, pa.string())
        keys = join_tokens(tokenize(given)).dictionary_encode()
        usable = pc.not_equal(keys.dictionary, "").to_numpy(zero_copy_only=False)
        entity_of = np.where(usable, np.cumsum(usable) - 1, kernels.NONE).astype(np.int32)
        canonical = entity_of[keys.indices.to_numpy()]
        _, first = np.unique(keys.indices.to_numpy(), return_index=True)
        names = given.take(pa.array(first[usable]))

        lists = tokenize(names)
        offsets = lists.offsets.to_numpy().astype(np.int64)
        encoded = lists.values.dictionary_encode()
        bounds, words = string_buffers(encoded.dictionary)
        slots = np.full(kernels.capacity(bounds.size), kernels.NONE, np.int32)
        kernels.index_strings(kernels.hash_bytes(words, bounds), slots)
        edges = np.full(kernels.capacity(len(encoded)), kernels.EMPTY, np.int64)
        children = np.zeros(edges.size, np.int32)
        tokens = np.array(encoded.indices, np.int32)
        phrase_at = kernels.build_trie(offsets, tokens, bounds.size - 1, edges, children)
        return cls(names, canonical, words, bounds, slots, edges, children, phrase_at)

    def token_ids(self, tokens: pa.Array) -> TokenIds:
        """Return the vocabulary's number of each token, -1 for one in no name. O(bytes)."""
        bounds, data = string_buffers(tokens)
        hashes = kernels.hash_bytes(data, bounds)
        return kernels.look_up(data, bounds, hashes, self.words, self.bounds, self.slots)

    def find(self, offsets: Offsets, tokens: TokenIds) -> tuple[TokenIds, TokenIds, TokenIds]:
        """Find the longest name in each text, the leftmost of equally long ones.

        Parameters
        ----------
        offsets, tokens
            Text i is ``tokens[offsets[i]:offsets[i + 1]]``, numbers of `token_ids`.

        Returns
        -------
        entities, starts, ends : TokenIds, shape (texts,)
            The entity and its tokens' place (end exclusive); -1, 0, 0 where there is none.

        Notes
        -----
        O(tokens * tokens of the longest name).
        """
        return kernels.find_longest(
            offsets, tokens, self.bounds.size - 1, self.keys, self.children, self.phrase_at
        )

    def annotate(self, queries: pa.Array) -> pa.RecordBatch:
        """Return the columns `FOUND` for an array of queries."""
        lists = tokenize(queries)
        offsets = lists.offsets.to_numpy().astype(np.int64)
        entities, starts, ends = self.find(offsets, self.token_ids(lists.values))
        none = pa.array(entities == kernels.NONE)
        numbers = pa.array(entities, mask=none.to_numpy(zero_copy_only=False))
        return pa.record_batch(
            {
                "entity": self.names.take(numbers),
                "context": _without(lists, offsets, starts, ends),
                "start": pc.if_else(none, None, pa.array(starts)),
                "end": pc.if_else(none, None, pa.array(ends)),
            }
        )


def string_buffers(strings: pa.Array) -> tuple[Offsets, AnyArray]:
    """Return offsets (int64) and bytes (uint8) of strings without nulls."""
    strings = strings.cast(pa.large_string())
    _, bounds, data = strings.buffers()
    if not len(strings):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    first = strings.offset
    offsets = np.frombuffer(bounds, np.int64)[first : first + len(strings) + 1]
    # Copies, because numba compiles a kernel once more for arrays that cannot be written.
    return offsets.copy(), np.frombuffer(data, np.uint8).copy()


def canonical_entities(entities: DataFrame) -> DataFrame:
    """Tell for each row of an entity list which entity it names.

    Parameters
    ----------
    entities
        `schemas.ENTITY_CLASSES`.

    Returns
    -------
    DataFrame
        The rows with two more columns: ``key``, the folded tokens with spaces between, and
        ``canonical``, the first (in byte order) of all names with that key. Where the name has no
        letter or digit, ``key`` is empty and ``canonical`` null: such a row is refused.
    """
    _require_string(entities, "entity")

    def fold(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.append_column("key", join_tokens(tokenize(batch["entity"])))

    key = T.StructField("key", T.StringType(), nullable=False)
    keyed = splits.map_partitions(
        entities.withColumn("entity", F.make_valid_utf8("entity")),
        fold,
        T.StructType([*entities.schema.fields, key]),
    )
    first = F.min("entity").over(Window.partitionBy("key"))
    return keyed.withColumn("canonical", F.when(F.col("key") != "", first))


def find_entities(
    queries: DataFrame, entities: DataFrame, broadcast_tokens: int = BROADCAST_TOKENS
) -> DataFrame:
    """Find one entity in each query: the longest name, the leftmost of equally long ones.

    Parameters
    ----------
    queries
        Any rows with a string column ``query``. Bytes that are no UTF-8 become U+FFFD.
    entities
        `schemas.ENTITY_CLASSES`; refused names are passed over.
    broadcast_tokens
        A gazetteer of at most so many tokens becomes a trie that every worker holds;
        a larger one is joined by hash on the queries' token n-grams.

    Returns
    -------
    DataFrame
        The rows of ``queries``, none lost and none doubled, with the canonical ``entity``, its
        ``start`` and ``end`` in the query's tokens (end exclusive; all null if there is none) and
        the ``context``: the query's other tokens.

    Raises
    ------
    SchemaError
        A column is missing, or one of the new ones is there.
    """
    _require_string(queries, "query")
    for name in FOUND.names:
        if name in queries.columns:
            raise SchemaError("DATA06", column=name)
    queries = queries.withColumn("query", F.make_valid_utf8("query"))
    named = canonical_entities(entities).filter("canonical is not null")
    named = named.select("canonical", "key").distinct()
    size = F.size(F.split("key", " "))
    tokens, longest = named.agg(F.sum(size), F.max(size)).collect()[0]
    if (tokens or 0) > broadcast_tokens:
        return _find_by_join(queries, named, longest)
    names = named.select("canonical").toArrow()["canonical"].combine_chunks()
    return _find_by_trie(queries, Gazetteer.build(names.sort().to_pylist()))


def _find_by_trie(queries: DataFrame, gazetteer: Gazetteer) -> DataFrame:
    def match(batch: pa.RecordBatch) -> pa.RecordBatch:
        found = gazetteer.annotate(batch["query"])
        return pa.RecordBatch.from_arrays(
            [*batch.columns, *found.columns], names=[*batch.schema.names, *found.schema.names]
        )

    schema = T.StructType([*queries.schema.fields, *FOUND.fields])
    return splits.map_partitions(queries, match, schema)


def _find_by_join(queries: DataFrame, named: DataFrame, longest: int) -> DataFrame:
    """Do the same in Spark SQL: n-grams of distinct token sequences, an equi-join, the best."""

    def split(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.append_column("tokens", tokenize(batch["query"]))

    columns = queries.columns
    schema = T.StructType([*queries.schema.fields, T.StructField("tokens", STRINGS)])
    queries = splits.map_partitions(queries, split, schema)
    texts = queries.select("tokens").distinct()
    grams = texts.select("tokens", F.explode(_ngrams(F.col("tokens"), longest)).alias("gram"))
    hits = grams.join(named, F.col("gram.key") == named["key"]).select(
        "tokens",
        F.struct(
            (F.col("gram.end") - F.col("gram.start")).alias("length"),
            (-F.col("gram.start")).alias("left"),
            F.col("canonical").alias("entity"),
            F.col("gram.start").alias("start"),
            F.col("gram.end").alias("end"),
        ).alias("hit"),
    )
    best = hits.groupBy("tokens").agg(F.max("hit").alias("hit"))
    rest = F.expr(
        "if(hit is null, tokens, concat(slice(tokens, 1, hit.start), "
        "slice(tokens, hit.end + 1, size(tokens))))"
    )
    return queries.join(best, "tokens", "left").select(
        *columns, "hit.entity", rest.alias("context"), "hit.start", "hit.end"
    )


def _ngrams(tokens: Column, longest: int) -> Column:
    """Return an array of (key, start, end) of all n-grams up to the longest name."""

    def gram(start: Column, length: Column) -> Column:
        key = F.array_join(F.slice(tokens, start + 1, length), " ")
        return F.struct(key.alias("key"), start.alias("start"), (start + length).alias("end"))

    def from_start(start: Column) -> Column:
        lengths = F.sequence(F.lit(1), F.least(F.lit(longest), F.size(tokens) - start))
        return F.transform(lengths, lambda length: gram(start, length))

    starts = F.sequence(F.lit(0), F.size(tokens) - 1)
    grams = F.flatten(F.transform(starts, from_start))
    return F.when(F.size(tokens) > 0, grams)


def _without(lists: pa.ListArray, offsets: Offsets, starts: TokenIds, ends: TokenIds) -> pa.Array:
    """Return lists less the tokens ``starts[i]:ends[i]`` of each."""
    lengths = np.diff(offsets)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    keep = (place < np.repeat(starts, lengths)) | (place >= np.repeat(ends, lengths))
    left = np.zeros(offsets.size, np.int32)
    np.cumsum(lengths - (ends - starts), out=left[1:])
    return pa.ListArray.from_arrays(pa.array(left), lists.values.filter(pa.array(keep)))


def _require_string(df: DataFrame, column: str) -> None:
    found = df.schema[column].dataType.simpleString() if column in df.columns else "missing"
    if found != "string":
        raise SchemaError("DATA04", column=column, found=found, expected="string")
