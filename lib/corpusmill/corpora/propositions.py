"""Parsed sentences with predicates and arguments -> PROPOSITIONS.

Two kinds of corpora: the stand-off layers of CoNLL-2005, which have no words, and bracketed gold
trees with PropBank's propositions on their tokens.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.corpora.proposition_layers import Layer, list_column, offsets_column, parse_layers
from corpusmill.corpora.quarantine import Read, separate
from corpusmill.corpora.schemas import PROPOSITIONS
from corpusmill.corpora.sources import FileSettings, read_table, read_whole
from corpusmill.corpora.tree_formats import Kept, parse_texts
from corpusmill.errors import DataError, UsageError
from corpusmill.settings import QuarantineSettings, Settings
from corpusmill.types import Offsets

BAD_NUMBER = "bad sentence number"
BAD_PROPOSITION = "bad proposition"
NO_TREE = "no tree of this sentence"
OUTSIDE = "token outside of the sentence"

_PROPS = "props"


class ConllSettings(Settings):
    """Stand-off files of CoNLL-2005: a folder a layer, files named by document and layer."""

    kind: Literal["conll2005"]
    path: str = Field(min_length=1, description="the folder of the layers' folders")
    parses: str = Field("synt.cha", pattern=r"^[\w.-]+$", description="the layer of the parses")
    documents: list[str] | None = Field(
        None, min_length=1, description="such as train.02 of train.02.props.gz; default all"
    )


class PropbankSettings(Settings):
    """Bracketed trees by document and sentence, and PropBank's propositions on their tokens."""

    kind: Literal["propbank"]
    trees: FileSettings = Field(description="columns document, sentence, tree")
    propositions: FileSettings = Field(description="doc, sent, pred, lemma, pos, roleset, args")
    documents: list[str] | None = Field(
        None, min_length=1, description="beginnings of names, such as wsj_00; default all"
    )
    leave_out: list[str] = Field(
        default_factory=list, description="rolesets to pass over, such as those of auxiliaries"
    )


PropositionSettings = ConllSettings | PropbankSettings


def read_propositions(
    spark: SparkSession,
    source: PropositionSettings,
    quarantine: QuarantineSettings,
    key: str = "propositions",
) -> Read:
    """Read parsed sentences with their propositions.

    Parameters
    ----------
    spark
        The session.
    source
        Files of either kind.
    quarantine
        How long a sentence may be.
    key
        The conf key of `source`, for messages.

    Returns
    -------
    Read
        PROPOSITIONS and QUARANTINE; a row a sentence, in no particular order. `ConllSettings`
        gives all sentences and trees without words; `PropbankSettings` gives sentences that have
        a proposition, their trees without traces and function tags.

    Raises
    ------
    UsageError
        A path with nothing to read, a column that is not there; of CoNLL-2005 a document that is
        not there.
    DataError
        A layer without the files of the other; a damaged file, when the result is computed.
    """
    if isinstance(source, ConllSettings):
        return _read_conll(spark, source, quarantine, key)
    return _read_propbank(spark, source, quarantine, key)


# The layers of CoNLL-2005.


def _read_conll(
    spark: SparkSession, source: ConllSettings, quarantine: QuarantineSettings, key: str
) -> Read:
    names, layers = [], []
    for layer in (_PROPS, source.parses):
        chosen = "*" if source.documents is None else "{" + ",".join(source.documents) + "}"
        path = f"{source.path.rstrip('/')}/{layer}/{chosen}.{layer}*"
        files = read_whole(spark, path, key)
        names.append([_document(file, layer) for file in files.inputFiles()])
        document = F.regexp_extract("source", rf"([^/]+)\.{re.escape(layer)}[^/]*$", 1)
        layers.append(files.select(document.alias("document"), F.lit(layer).alias("layer"), "*"))
    _compare(names[0], names[1], source, key)
    documents = sorted(names[0])
    kernel = partial(
        _parse_document,
        documents=documents,
        parses=source.parses,
        limit=quarantine.max_record_chars,
    )
    number = F.array_position(F.lit(documents), F.col("document")) - 1
    both = layers[0].unionByName(layers[1]).withColumn("number", number.cast("int"))
    parsed = splits.map_groups(both, "number", kernel, _CHECKED, len(documents))
    return separate(parsed, PROPOSITIONS)


def _document(file: str, layer: str) -> str:
    found = re.search(rf"([^/]+)\.{re.escape(layer)}[^/]*$", file)
    return found[1] if found else file


def _compare(props: list[str], parses: list[str], source: ConllSettings, key: str) -> None:
    """Refuse documents that are asked for and not there, or not a file in each layer."""
    for name in source.documents or ():
        if name not in props:
            problem = f"no such file in layer {_PROPS}"
            raise UsageError("CONF04", key=f"{key}.documents", value=repr(name), problem=problem)
    for name in sorted({*props, *parses}):
        for layer, found in ((_PROPS, props), (source.parses, parses)):
            if found.count(name) != 1:
                problem = f"layer {layer} has {found.count(name)} files of document {name}, not one"
                raise DataError("DATA01", source=source.path, problem=problem)


def _parse_document(
    number: int, files: pa.Table, documents: Sequence[str], parses: str, limit: int
) -> pa.RecordBatch:
    layers = {row["layer"]: Layer(row["source"], row["value"]) for row in files.to_pylist()}
    document = documents[number]
    # A file of zero bytes has no row.
    props, trees = (layers.get(name, Layer(document, b"")) for name in (_PROPS, parses))
    return parse_layers(document, props, trees, limit)


# Trees with PropBank's propositions.


def _read_propbank(
    spark: SparkSession, source: PropbankSettings, quarantine: QuarantineSettings, key: str
) -> Read:
    columns = {"document": "document", "sentence": "sentence", "tree": "tree"}
    trees = read_table(spark, source.trees, columns, quarantine, f"{key}.trees")
    number = F.expr("try_cast(sentence AS int)")
    trees = trees.where(_chosen("document", source)).withColumns(
        {
            "sentence": number,
            "reason": F.coalesce("reason", F.when(number.isNull(), BAD_NUMBER)),
        }
    )
    propositions = _propositions(spark, source, quarantine, key)
    place = ["document", "sentence"]
    good = trees.where("reason IS NULL")
    homeless = propositions.where("reason IS NULL").join(good, place, "left_anti")
    items = (
        propositions.where("reason IS NULL")
        .groupBy(*place)
        .agg(F.sort_array(F.collect_list(F.struct("token", "lemma", "arguments"))).alias("items"))
    )
    checked = splits.map_partitions(good.join(items, place), _parse_sentences, _CHECKED)
    bad = [
        trees.where("reason IS NOT NULL"),
        propositions.where("reason IS NOT NULL"),
        homeless.withColumn("reason", F.lit(NO_TREE)),
    ]
    for rows in bad:
        told = rows.select("source", "position", "reason", "record")
        checked = checked.unionByName(told, allowMissingColumns=True)
    return separate(checked, PROPOSITIONS)


def _chosen(document: str, source: PropbankSettings) -> Column:
    """Tell whether a row is of a document that is wanted, or of none."""
    name, begins = F.col(document), F.lit(source.documents or [""])
    return F.coalesce(F.exists(begins, name.startswith), F.lit(True))


def _propositions(
    spark: SparkSession, source: PropbankSettings, quarantine: QuarantineSettings, key: str
) -> DataFrame:
    """Read the propositions of verbs; what is only part of a token is left out."""
    fields = ["doc", "sent", "pred", "lemma", "pos", "roleset", "args", "pred_partial"]
    table = read_table(
        spark, source.propositions, {name: name for name in fields}, quarantine,
        f"{key}.propositions",
    )  # fmt: skip
    spans = F.from_json("args", "array<array<string>>")
    bad = (
        F.col("doc").isNull()
        | F.expr("try_cast(sent AS int)").isNull()
        | F.expr("try_cast(pred AS int)").isNull()
        | F.coalesce(F.exists(spans, _is_bad_span), F.lit(True))
    )
    wanted = (
        F.coalesce(F.col("pos").startswith("V"), F.lit(False))
        & F.col("pred_partial").isNull()
        & ~F.coalesce(F.col("roleset").isin(source.leave_out), F.lit(False))
    )
    table = table.where(_chosen("doc", source))
    checked = table.withColumn("reason", F.coalesce("reason", F.when(bad, BAD_PROPOSITION)))
    return checked.where(F.col("reason").isNotNull() | wanted).select(
        "source", "position", "reason", "record",
        F.col("doc").alias("document"),
        F.expr("try_cast(sent AS int)").alias("sentence"),
        F.expr("try_cast(pred AS int)").alias("token"),
        F.coalesce("lemma", F.lit("")).alias("lemma"),
        F.transform(F.filter(spans, lambda span: F.size(span) == 3), _argument).alias("arguments"),
    )  # fmt: skip


def _is_bad_span(span: Column) -> Column:
    numbers = F.get(span, 1).try_cast("int").isNull() | F.get(span, 2).try_cast("int").isNull()
    return (F.size(span) < 3) | F.get(span, 0).isNull() | numbers


def _argument(span: Column) -> Column:
    """Give an argument CoNLL's label, and its end the token behind it."""
    return F.struct(
        F.regexp_replace(F.get(span, 0), r"^((?:[CR]-)?A)RG", "$1").alias("label"),
        F.get(span, 1).try_cast("int").alias("first"),
        (F.get(span, 2).try_cast("int") + 1).alias("last"),
    )


def _parse_sentences(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Parse the trees, and see whether every span is inside its sentence."""
    trees = parse_texts(batch["tree"].cast(pa.large_string()), Kept(False, False))
    items = batch["items"].flatten()
    arguments = items.field("arguments").flatten()
    predicates = _offsets(batch["items"])
    spans = _offsets(items.field("arguments"))
    firsts, lasts = (arguments.field(name).to_numpy() for name in ("first", "last"))
    tokens = items.field("token").to_numpy()
    row_of_predicate = np.repeat(np.arange(batch.num_rows), np.diff(predicates))
    row_of_argument = np.repeat(row_of_predicate, np.diff(spans))
    leaves = np.diff(np.concatenate([[0], np.cumsum(trees.arities == 0)])[trees.offsets])
    away = (tokens < 0) | (tokens >= leaves[row_of_predicate])
    wrong = (firsts < 0) | (lasts <= firsts) | (lasts > leaves[row_of_argument])
    reasons: list[str | None] = [None] * batch.num_rows
    for number in [*row_of_predicate[away].tolist(), *row_of_argument[wrong].tolist()]:
        reasons[number] = OUTSIDE
    for number, fault in trees.faults.items():
        reasons[number] = fault.reason
    columns = {
        **{name: batch[name] for name in ("source", "position", "record")},
        "reason": pa.array(reasons, pa.string()),
        "document_id": batch["document"],
        "sentence": batch["sentence"],
        "has_words": pa.array(np.ones(batch.num_rows, np.bool_)),
        "node_labels": list_column(trees.labels.cast(pa.string()), trees.offsets),
        "node_arities": list_column(trees.arities, trees.offsets),
        "predicates": list_column(items.field("token"), predicates),
        "lemmas": list_column(items.field("lemma"), predicates),
        "argument_offsets": offsets_column(predicates, spans),
        "argument_labels": list_column(arguments.field("label"), spans[predicates]),
        "argument_firsts": list_column(arguments.field("first"), spans[predicates]),
        "argument_lasts": list_column(arguments.field("last"), spans[predicates]),
    }
    return pa.RecordBatch.from_pydict(columns)


def _offsets(lists: pa.Array) -> Offsets:
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


_CHECKED = T.StructType(
    [
        T.StructField("source", T.StringType()),
        T.StructField("position", T.StringType()),
        T.StructField("reason", T.StringType()),
        T.StructField("record", T.BinaryType()),
        *(T.StructField(field.name, field.dataType) for field in PROPOSITIONS),
    ]
)


# So many of what a corpus has, whatever its partitions.


def take_first(sentences: DataFrame, column: str, limit: int) -> DataFrame:
    """Lower the numbers in a column so that they add up to a limit, from the corpus's beginning.

    Parameters
    ----------
    sentences
        Sentences with what each of them has of something, a whole number from 0.
    column
        The number's column.
    limit
        How many are wanted of all. The first sentences, by ``document_id`` and ``sentence``,
        keep their number, one keeps a part; of those behind it none has anything left.

    Returns
    -------
    DataFrame
        The sentences that have something left.

    Notes
    -----
    Sums a document, and a window within each: no task sees more than a document's numbers and
    the list of the documents.
    """
    sums = sentences.groupBy("document_id").agg(F.sum(column).alias("of_document"))
    earlier = sums.select(F.col("document_id").alias("earlier"), F.col("of_document").alias("of"))
    before = (
        sums.join(earlier, F.col("earlier") < F.col("document_id"), "left")
        .groupBy("document_id")
        .agg(F.coalesce(F.sum("of"), F.lit(0)).alias("before"))
    )
    within = (
        Window.partitionBy("document_id")
        .orderBy("sentence")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    narrow = sentences.select("document_id", "sentence", F.col(column).alias("of_sentence"))
    passed = narrow.join(before, "document_id").withColumn(
        "passed", F.col("before") + F.coalesce(F.sum("of_sentence").over(within), F.lit(0))
    )
    left = F.least(F.col("of_sentence"), F.lit(limit) - F.col("passed")).cast("int")
    kept = passed.select("document_id", "sentence", left.alias(column)).where(F.col(column) > 0)
    return sentences.drop(column).join(kept, ["document_id", "sentence"])
