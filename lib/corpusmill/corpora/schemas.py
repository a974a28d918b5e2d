"""The documented schema of each kind of record, in one place.

A row carries ragged data as flat list columns with offsets, as Arrow lays them
out, so that a partition reaches a kernel without a copy a row.
"""

from __future__ import annotations

from pyspark.sql import types as T

DOUBLES = T.ArrayType(T.DoubleType(), containsNull=False)
INTS = T.ArrayType(T.IntegerType(), containsNull=False)
STRINGS = T.ArrayType(T.StringType(), containsNull=False)
SOME_STRINGS = T.ArrayType(T.StringType(), containsNull=True)

QUERIES = T.StructType(
    [
        T.StructField("query", T.StringType(), nullable=False),
        T.StructField("count", T.LongType(), nullable=False),
        T.StructField("timestamp", T.TimestampType(), nullable=True),
        T.StructField("source", T.StringType(), nullable=False),
    ]
)
"""A line of a query log: the query as it stands there, how often, when, from which file."""

ENTITY_CLASSES = T.StructType(
    [
        T.StructField("entity", T.StringType(), nullable=False),
        T.StructField("class", T.StringType(), nullable=False),
    ]
)
"""An entity and one of its possible classes; an entity may stand in several rows."""

DOCUMENTS = T.StructType(
    [
        T.StructField("document_id", T.StringType(), nullable=False),
        T.StructField("split", T.StringType(), nullable=False),
        T.StructField("labels", STRINGS, nullable=False),
        T.StructField("title", T.StringType(), nullable=False),
        T.StructField("paragraphs", STRINGS, nullable=False),
    ]
)
"""A labelled document: ``split`` is train, test or unused."""

QUESTIONS = T.StructType(
    [
        T.StructField("question_id", T.LongType(), nullable=False),
        T.StructField("category", T.StringType(), nullable=False),
        T.StructField("question", T.StringType(), nullable=False),
        T.StructField("answer", T.StringType(), nullable=True),
    ]
)
"""A question with its category."""

QUARANTINE = T.StructType(
    [
        T.StructField("source", T.StringType(), nullable=False),
        T.StructField("position", T.StringType(), nullable=False),
        T.StructField("reason", T.StringType(), nullable=False),
        T.StructField("record", T.StringType(), nullable=False),
    ]
)
"""A bad record: its file, its place there, why, and its beginning (no UTF-8: escaped)."""

PATTERNS = T.StructType(
    [
        T.StructField("pattern_id", T.StringType(), nullable=False),
        T.StructField("labels", STRINGS, nullable=True),
        T.StructField("instance_offsets", INTS, nullable=False),
        T.StructField("instance_weights", DOUBLES, nullable=False),
        T.StructField("feature_ids", INTS, nullable=False),
        T.StructField("feature_counts", DOUBLES, nullable=False),
    ]
)
"""A pattern for `alignment`: instance m of the row holds the features
``feature_ids[instance_offsets[m]:instance_offsets[m + 1]]``, each ``feature_counts`` times, and
occurs ``instance_weights[m]`` times. ``labels`` is null where they are not known."""

TREES = T.StructType(
    [
        T.StructField("example_id", T.StringType(), nullable=False),
        T.StructField("target", T.StringType(), nullable=True),
        T.StructField("node_labels", STRINGS, nullable=False),
        T.StructField("node_arities", INTS, nullable=False),
        T.StructField("tree_offsets", INTS, nullable=False),
        T.StructField("vector_ids", INTS, nullable=False),
        T.StructField("vector_values", DOUBLES, nullable=False),
    ]
)
"""An example of trees for `fragments`: tree k of the row has, in preorder, the nodes
``tree_offsets[k]:tree_offsets[k + 1]``, each with a label and a number of children. Beside the
trees there may be a feature vector. ``target`` is the class, null where it is not known."""

PROPOSITIONS = T.StructType(
    [
        T.StructField("document_id", T.StringType(), nullable=False),
        T.StructField("sentence", T.IntegerType(), nullable=False),
        T.StructField("has_words", T.BooleanType(), nullable=False),
        T.StructField("node_labels", STRINGS, nullable=False),
        T.StructField("node_arities", INTS, nullable=False),
        T.StructField("predicates", INTS, nullable=False),
        T.StructField("lemmas", STRINGS, nullable=False),
        T.StructField("argument_offsets", INTS, nullable=False),
        T.StructField("argument_labels", STRINGS, nullable=False),
        T.StructField("argument_firsts", INTS, nullable=False),
        T.StructField("argument_lasts", INTS, nullable=False),
    ]
)
"""A parsed sentence and its propositions. The tree is in preorder; its leaves are the tokens,
numbered from 0: words below their parts of speech or, without words, the parts of speech.
Predicate p is the token ``predicates[p]`` and has the arguments
``argument_offsets[p]:argument_offsets[p + 1]``; argument a is the tokens
``argument_firsts[a]:argument_lasts[a]``. Labels are those of CoNLL-2005: V, A0, AM-TMP, C-A1."""

FACTORS = T.StructType(
    [
        T.StructField("example_id", T.StringType(), nullable=False),
        T.StructField("row_offsets", INTS, nullable=False),
        T.StructField("starts", INTS, nullable=True),
        T.StructField("ends", INTS, nullable=True),
        T.StructField("previous", INTS, nullable=True),
        T.StructField("labels", INTS, nullable=True),
        T.StructField("features", DOUBLES, nullable=False),
        T.StructField("gold", INTS, nullable=True),
    ]
)
"""A structured example for `boosting`: factor k of the row may be any of the rows
``row_offsets[k]:row_offsets[k + 1]``, and row r has the features
``features[r * width:(r + 1) * width]``. Spans and segments have ``starts`` and ``ends``, a number a
factor; chains and segments have ``previous`` (-1: any label before) and ``labels``, a number a row;
of spans the first row of each factor is Nil. ``gold`` holds the rows of the true output (of spans
those that are not Nil), null where it is not known."""

LINKED_TEXTS = T.StructType(
    [
        T.StructField("text_id", T.StringType(), nullable=False),
        T.StructField("split", T.StringType(), nullable=False),
        T.StructField("text", T.StringType(), nullable=False),
        T.StructField("mention_starts", INTS, nullable=False),
        T.StructField("mention_ends", INTS, nullable=False),
        T.StructField("mention_entities", SOME_STRINGS, nullable=False),
        T.StructField("mention_types", SOME_STRINGS, nullable=False),
        T.StructField("text_entities", STRINGS, nullable=False),
        T.StructField("dropped_mentions", T.IntegerType(), nullable=False),
    ]
)
"""A text for `linking` with its gold: mention m is the characters
``mention_starts[m]:mention_ends[m]``, from left to right, none overlap; its entity is null for NIL,
its type where it is not known. ``text_entities`` are all entities of the text, each once: those of
mentions, also of the ``dropped_mentions`` that overlapped a better one, and those without a place.
Entities are titles of Wikipedia with underscores (`corpusmill.corpora.titles`), but ids of Wikidata
in the format elevant and keys of Freebase in the format webquestions."""

SYSTEM_LINKS = T.StructType(
    [
        T.StructField("text_id", T.StringType(), nullable=False),
        T.StructField("text", T.StringType(), nullable=False),
        T.StructField("mention_starts", INTS, nullable=False),
        T.StructField("mention_ends", INTS, nullable=False),
        T.StructField("mention_entities", STRINGS, nullable=False),
        T.StructField("mention_scores", DOUBLES, nullable=False),
    ]
)
"""What another system says of a text, the highest score first; its mentions may overlap."""

LEXICON = T.StructType(
    [
        T.StructField("surface", T.StringType(), nullable=False),
        T.StructField("entity", T.StringType(), nullable=False),
        T.StructField("source", T.StringType(), nullable=False),
        T.StructField("kind", T.StringType(), nullable=False),
        T.StructField("count", T.LongType(), nullable=False),
    ]
)
"""A surface form of an entity: how often ``source`` links it so, or that it is called so. ``kind``
is one of `corpusmill.corpora.knowledge_names`; in a row of kind redirect the surface is a title
that stands for the entity."""

ENTITIES = T.StructType(
    [
        T.StructField("entity", T.StringType(), nullable=False),
        T.StructField("attribute", T.StringType(), nullable=False),
        T.StructField("value", T.DoubleType(), nullable=False),
    ]
)
"""A value of an attribute of an entity (`corpusmill.corpora.knowledge_names`); an entity may stand
in several rows."""

LINKS = T.StructType(
    [
        T.StructField("source", T.StringType(), nullable=False),
        T.StructField("target", T.StringType(), nullable=False),
    ]
)
"""The page ``source`` links to the page ``target``; both are titles."""

WORD_COUNTS = T.StructType(
    [
        T.StructField("key", T.LongType(), nullable=False),
        T.StructField("count", T.LongType(), nullable=False),
        T.StructField("capitals", T.LongType(), nullable=False),
    ]
)
"""How often texts have a word or n-gram, by the bits of its key, and with a capital first."""

ANNOTATED_DOCUMENTS = T.StructType(
    [
        T.StructField("document_id", T.StringType(), nullable=False),
        T.StructField("part", T.IntegerType(), nullable=False),
        T.StructField("genre", T.StringType(), nullable=False),
        T.StructField("words", STRINGS, nullable=False),
        T.StructField("pos", STRINGS, nullable=False),
        T.StructField("lemmas", STRINGS, nullable=False),
        T.StructField("speakers", STRINGS, nullable=False),
        T.StructField("sentence_offsets", INTS, nullable=False),
        T.StructField("constituent_labels", STRINGS, nullable=False),
        T.StructField("constituent_starts", INTS, nullable=False),
        T.StructField("constituent_ends", INTS, nullable=False),
        T.StructField("constituent_parents", INTS, nullable=False),
        T.StructField("heads", INTS, nullable=False),
        T.StructField("relations", STRINGS, nullable=False),
        T.StructField("entity_starts", INTS, nullable=False),
        T.StructField("entity_ends", INTS, nullable=False),
        T.StructField("entity_labels", STRINGS, nullable=False),
        T.StructField("mention_starts", INTS, nullable=True),
        T.StructField("mention_ends", INTS, nullable=True),
        T.StructField("mention_clusters", INTS, nullable=True),
    ]
)
"""A part of a document for `coreference`. ``words``, ``pos``, ``lemmas`` and ``speakers`` are as
long as the document, "" where not known; sentence s is the tokens
``sentence_offsets[s]:sentence_offsets[s + 1]``. Spans count tokens in the document, ends exclusive.
Constituents are those of all sentences in preorder, without parts of speech; the parent is an index
into these lists, -1 at the top of a sentence. ``heads`` are tokens of the document, -1 for a root;
without dependencies ``heads`` and ``relations`` are empty. Mentions are sorted by start, the longer
first, no span stands twice; they are null where coreference is not known."""
