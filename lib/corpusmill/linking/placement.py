"""Where the knowledge is when texts are linked: whole in every worker, or cut up with the texts.

Knowledge up to a size goes into the closure of a kernel, which Spark broadcasts. What is larger is
cut: the texts are divided into parts, the keys that a part's texts look up are joined with
the rows of the knowledge, and a *part* becomes one row of `PARTS`, its texts beside all that
is known of them. A kernel links by either in the same way and finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.frames import list_offsets, text_pieces
from corpusmill.linking.folding import keys_of
from corpusmill.linking.knowledge import Knowledge, Rows
from corpusmill.linking.model import PIECE_CHARACTERS, LinkingModel
from corpusmill.linking.units import sought_keys, units_of
from corpusmill.storage.arrays import pack, unpack
from corpusmill.types import AnyArray, Floats

PART_CHARACTERS = 4_000_000
"""Characters of a part's texts: some forty thousand tweets."""
PARTS = T.StructType(
    [
        T.StructField("texts", T.BinaryType(), nullable=False),
        T.StructField("knowledge", T.BinaryType(), nullable=False),
    ]
)
"""A part: its texts as a stream of Arrow, and `Knowledge.arrays` as npz."""
_TITLES = ("mention_entities", "text_entities")
_PART = "__part"
_SOUGHT = T.StructType([T.StructField(_PART, T.IntegerType()), T.StructField("key", T.LongType())])

MapKernel = Callable[..., pa.RecordBatch]
Given = Iterator[tuple[pa.RecordBatch, LinkingModel]]
SumKernel = Callable[[Given], Mapping[str, AnyArray]]
CopyKernel = Callable[..., pa.RecordBatch]
Learned = Callable[..., LinkingModel]
Keep = Callable[[DataFrame], DataFrame]
Giver = Callable[[Iterable[pa.RecordBatch]], Given]


class Placed(NamedTuple):
    """Texts, and where the knowledge is.

    Attributes
    ----------
    rows : DataFrame
        The texts, or `PARTS`.
    texts : StructType
        The columns of the texts.
    parted : bool
        Whether ``rows`` are parts.
    """

    rows: DataFrame
    texts: T.StructType
    parted: bool


def whole(texts: DataFrame) -> Placed:
    """Leave texts as they are: every worker holds all of the knowledge."""
    return Placed(texts, texts.schema, False)


def place(texts: DataFrame, knowledge: Knowledge, broadcast_mb: float, keep: Keep) -> Placed:
    """Choose by size where the knowledge is.

    Parameters
    ----------
    texts : DataFrame
        With the column ``text``; cached by the caller.
    knowledge : Knowledge
        That of the model by which they will be linked.
    broadcast_mb : float
        The most megabytes that every worker may hold.
    keep : callable
        Caches parts, and what they are made of, until the caller is done: `Context.cached`.
    """
    if knowledge.nbytes <= broadcast_mb * 1e6:
        return whole(texts)
    characters = texts.agg(F.sum(F.length("text"))).collect()[0][0] or 0
    parts = max(splits.count_partitions(texts), -(-characters // PART_CHARACTERS))
    return Placed(keep(cut(texts, knowledge, parts, keep)), texts.schema, True)


def cut(texts: DataFrame, knowledge: Knowledge, parts: int, keep: Keep) -> DataFrame:
    """Divide texts into parts, each with the knowledge of its own.

    Parameters
    ----------
    texts : DataFrame
        The column ``text``, and others that the kernels read.
    knowledge : Knowledge
        Its rows are handed over by the driver, which holds it.
    parts : int
        By a hash of all columns. A part has to fit into a worker, and into 2 GB.
    keep : callable
        As of `place`.

    Returns
    -------
    DataFrame
        `PARTS`, a partition a part; a part without a text has no row.

    Notes
    -----
    Two shuffles of the texts, one of the distinct keys that each part's texts look up, and one of
    the rows that are found.
    """
    rows = knowledge.rows()
    spark = texts.sparkSession
    known = Rows(*(spark.createDataFrame(table) for table in rows))
    number = F.pmod(F.xxhash64(*texts.columns), F.lit(parts)).cast("int")
    numbered = texts.withColumn(_PART, number).repartitionById(parts, F.col(_PART))
    read = [name for name in ("text", *_TITLES) if name in texts.columns]
    # Both are read several times, and Spark does not see that it is the same.
    sought = keep(
        splits.expand_partitions(numbered.select(_PART, *read), _sought, _SOUGHT).distinct()
    )
    surfaces = keep(sought.join(known.surfaces, "key"))
    titles = known.entities.select("number", F.explode("keys").alias("key"))
    numbers = (
        surfaces.select(_PART, F.explode("entities").alias("number"))
        .union(sought.join(titles, "key").select(_PART, "number"))
        .distinct()
    )
    found = Rows(surfaces, numbers.join(known.entities, "number"), sought.join(known.words, "key"))
    tables = {"texts": numbered, **found._asdict()}
    rooms = [
        table.select(
            _PART, F.struct(*(name for name in table.columns if name != _PART)).alias(room)
        )
        for room, table in tables.items()
    ]
    together = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), rooms)
    size = int(spark.conf.get("spark.sql.execution.arrow.maxRecordsPerBatch") or 0)
    return splits.map_groups(together, _PART, partial(pack_part, size=size), PARTS, parts)


def _sought(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    return map(keys_sought, text_pieces(batch, "text", PIECE_CHARACTERS))


def keys_sought(batch: pa.RecordBatch) -> pa.RecordBatch:
    """List the distinct keys that texts look up, and those of the titles beside them, by part."""
    part = batch.column(_PART).to_numpy()
    keys, text = sought_keys(units_of(batch.column("text")))
    found = [(part[text], keys)]
    for name in set(_TITLES) & set(batch.schema.names):
        lists = batch.column(name)
        found.append((np.repeat(part, np.diff(list_offsets(lists))), keys_of(lists.flatten())))
    parts, keys = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((keys, parts))
    parts, keys = parts[order], keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = (keys[1:] != keys[:-1]) | (parts[1:] != parts[:-1])
    return pa.record_batch({_PART: parts[new], "key": keys[new].view(np.int64)})


def pack_part(number: int, table: pa.Table, size: int) -> pa.RecordBatch:
    """Put a part's texts and knowledge into one row; the kernel of `cut`.

    Parameters
    ----------
    number
        Of the part.
    table
        A column ``texts``, and one for each of `Rows`; of each row all but one are null.
    size
        The most texts of a batch; 0: all in one.
    """

    def room(name: str) -> pa.Table:
        rows = table[name].combine_chunks()
        return pa.Table.from_struct_array(rows.filter(rows.is_valid()))

    knowledge = Knowledge.of_rows(Rows(*(room(name) for name in Rows._fields)))
    texts = room("texts").combine_chunks()
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, texts.schema) as writer:
        writer.write_table(texts, size or None)
    row = {"texts": [stream.getvalue().to_pybytes()], "knowledge": [pack(knowledge.arrays())]}
    return pa.record_batch(row)


def map_texts(
    placed: Placed, kernel: MapKernel, model: LinkingModel, schema: T.StructType
) -> DataFrame:
    """Run a kernel over every batch of texts, with a model that knows what is in them.

    Parameters
    ----------
    placed : Placed
        Made for the model's knowledge.
    kernel : callable
        ``kernel(batch, model=model)``, otherwise as of `splits.map_partitions`.
    model : LinkingModel
    schema : StructType
        Of the result.
    """
    run = partial(_map_batch, kernel=kernel, give=_giver(placed, model))
    return splits.expand_partitions(placed.rows, run, schema)


def append_to_texts(
    placed: Placed, kernel: MapKernel, model: LinkingModel, schema: T.StructType
) -> DataFrame:
    """Append columns to every text; one that breaks the kernel is marked and kept.

    Parameters
    ----------
    placed, model
        As of `map_texts`.
    kernel : callable
        Reads the column ``text`` alone; otherwise as of `splits.append_columns`.
    schema : StructType
        The new columns.

    Returns
    -------
    DataFrame
        The columns of the texts, the new ones and `splits.ERROR`.
    """
    if not placed.parted:
        kept = partial(kernel, model=model)
        return splits.append_columns(placed.rows, [F.col("text")], kept, schema)
    added = splits.marked_schema(schema)
    marked = partial(_append_to_batch, kernel=kernel, added=splits.schema_of(added))
    return map_texts(placed, marked, model, T.StructType([*placed.texts, *added]))


def sum_texts(placed: Placed, kernel: SumKernel, model: LinkingModel) -> dict[str, Floats]:
    """Sum what a kernel counts over all texts.

    Parameters
    ----------
    placed, model
        As of `map_texts`.
    kernel : callable
        From pairs of a batch of texts and a model that knows what is in them to arrays by name,
        otherwise as of `splits.sum_arrays`.
    """
    run = partial(_sum_batches, kernel=kernel, give=_giver(placed, model))
    return splits.sum_arrays(placed.rows, run)


def map_copies(
    texts: DataFrame,
    kernel: CopyKernel,
    model: LinkingModel,
    schema: T.StructType,
    copies: int,
    broadcast_mb: float,
    keep: Keep,
) -> DataFrame:
    """Run a kernel on all texts at once, in ``copies`` tasks.

    Parameters
    ----------
    texts, broadcast_mb, keep
        As of `place`; the texts have to fit into a worker.
    kernel : callable
        ``kernel(copy, table, model=model)``, otherwise as of `splits.map_groups`.
    model : LinkingModel
    schema : StructType
        Of the result.
    copies : int
    """
    numbers = [(number,) for number in range(copies)]
    jobs = F.broadcast(texts.sparkSession.createDataFrame(numbers, f"{_PART} int"))
    if model.knowledge.nbytes <= broadcast_mb * 1e6:
        run: splits.GroupKernel = partial(_copy_whole, kernel=kernel, model=model)
        rows = texts
    else:
        run = partial(_copy_part, kernel=kernel, learned=_learned(model))
        rows = cut(texts, model.knowledge, 1, keep)
    return splits.map_groups(rows.crossJoin(jobs), _PART, run, schema, copies)


def _copy_whole(
    number: int, table: pa.Table, kernel: CopyKernel, model: LinkingModel
) -> pa.RecordBatch:
    return kernel(number, table.drop_columns([_PART]), model=model)


def _copy_part(
    number: int, table: pa.Table, kernel: CopyKernel, learned: Learned
) -> pa.RecordBatch:
    given = list(_give_parts(table.to_batches(), learned))
    texts = pa.Table.from_batches([batch for batch, _ in given])
    return kernel(number, texts, model=given[0][1])


# The one place where a kernel gets its model.


def _giver(placed: Placed, model: LinkingModel) -> Giver:
    if not placed.parted:
        return partial(_give_whole, model=model)
    return partial(_give_parts, learned=_learned(model))


def _learned(model: LinkingModel) -> Learned:
    """Give what makes the model of another knowledge, without its own."""
    return partial(LinkingModel, model.settings, trees=model.trees, biases=model.biases)


def _give_whole(batches: Iterable[pa.RecordBatch], model: LinkingModel) -> Given:
    for batch in batches:
        for piece in text_pieces(batch, "text", PIECE_CHARACTERS):
            yield piece, model


def _give_parts(batches: Iterable[pa.RecordBatch], learned: Learned) -> Given:
    for batch in batches:
        for texts, arrays in zip(*(batch.column(name) for name in PARTS.names), strict=True):
            known = Knowledge.of_arrays(unpack(arrays.as_py()))
            model = learned(knowledge=known)
            with pa.ipc.open_stream(texts.as_buffer()) as stream:
                for part in stream:
                    for piece in text_pieces(part, "text", PIECE_CHARACTERS):
                        yield piece, model


def _map_batch(batch: pa.RecordBatch, kernel: MapKernel, give: Giver) -> Iterator[pa.RecordBatch]:
    for texts, model in give([batch]):
        yield kernel(texts, model=model)


def _append_to_batch(
    batch: pa.RecordBatch, model: LinkingModel, kernel: MapKernel, added: pa.Schema
) -> pa.RecordBatch:
    new = splits.marked(partial(kernel, model=model), batch.select(["text"]), added)
    columns = zip([*batch.schema.names, *new.schema.names], [*batch, *new], strict=True)
    return pa.record_batch(dict(columns))


def _sum_batches(
    batches: Iterator[pa.RecordBatch], kernel: SumKernel, give: Giver
) -> Mapping[str, AnyArray]:
    return kernel(give(batches))
