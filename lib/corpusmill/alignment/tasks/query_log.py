"""The main job: a raw query log in, disambiguated queries out.

Queries are collapsed to distinct ones with counts; entities are found in them; a pattern is an
entity, its instances are the contexts it occurs in, and its labels are the classes that the
entity list allows.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.alignment import plots
from corpusmill.alignment.disambiguation import disambiguate
from corpusmill.alignment.model import AlignmentModel
from corpusmill.alignment.pages import errors_page
from corpusmill.alignment.patterns import assemble, build_vocabulary, known_to, label_sets
from corpusmill.alignment.tasks.settings import AlignmentSettings, QueryLogInput
from corpusmill.alignment.tasks.training import extended, train_and_save, warm_start
from corpusmill.corpora import quarantine
from corpusmill.corpora.entity_classes import read_entity_classes
from corpusmill.corpora.gazetteer import canonical_entities, find_entities
from corpusmill.corpora.quarantine import Read
from corpusmill.corpora.query_logs import read_query_logs
from corpusmill.corpora.schemas import DOUBLES, QUARANTINE, STRINGS
from corpusmill.errors import DataError, UsageError
from corpusmill.evaluation.ranking import f1_of_confusion

if TYPE_CHECKING:
    from corpusmill.runner import Context

SHOWN_ERRORS = 300

PREDICTIONS = T.StructType(
    [
        T.StructField("query", T.StringType()),
        T.StructField("count", T.LongType()),
        T.StructField("entity", T.StringType()),
        T.StructField("classes", STRINGS),
        T.StructField("probabilities", DOUBLES),
        T.StructField("context_words", STRINGS),
        T.StructField("evidence", DOUBLES),
    ]
)
"""A distinct query: its entity (null if it has none), the classes best first, and the context
words that spoke for the best class against the second, with their weight in nats."""

_DISAMBIGUATED = T.StructType(
    [
        T.StructField("name", T.StringType()),
        T.StructField("tokens", STRINGS),
        *PREDICTIONS.fields[3:],
    ]
)


class Mined(NamedTuple):
    """A query log with its entities found.

    Attributes
    ----------
    queries : DataFrame
        Distinct queries with ``count``, ``entity`` and ``context``; cached.
    contexts : DataFrame
        Instance rows: entity, distinct context, summed count.
    labels : DataFrame
        ``name`` and its ``labels``.
    """

    queries: DataFrame
    contexts: DataFrame
    labels: DataFrame


def train(context: Context) -> None:
    """Mine contexts, train DBA and save the model."""
    conf: AlignmentSettings = context.settings
    mined = mine(context)
    # A query that is nothing but its entity says nothing of the class.
    contexts = mined.contexts.where(F.size("tokens") > 0)
    start = warm_start(conf)
    with context.progress.stage("vocabulary"):
        vocabulary = extended(start, build_vocabulary(contexts, conf.vocabulary))
    rows = assemble(contexts, vocabulary, conf.partitions, conf.max_instances, mined.labels)
    train_and_save(context, context.cached(rows), vocabulary, start=start)


def predict(context: Context) -> None:
    """Disambiguate every query of the log."""
    mined = mine(context)
    with context.progress.stage("disambiguate"):
        predictions = _disambiguated(context, mined)
        written = context.run.write_parquet(
            "predictions",
            predictions,
            expected_rows=mined.queries.count(),
            schema=PREDICTIONS,
        )
    context.run.write_metrics({"predict": {"queries": written}})


def evaluate(context: Context) -> None:
    """Measure the model on queries of the log whose class is known."""
    conf: AlignmentSettings = context.settings
    task = cast(QueryLogInput, conf.input)
    if task.gold is None:
        problem = "evaluate needs a file of queries and their classes"
        raise UsageError("CONF05", key="input.gold", problem=problem)
    gold = read_entity_classes(context.spark, task.gold, conf.quarantine, "input.gold")
    predictions = _disambiguated(context, mine(context, gold)).where("entity is not null")
    with context.progress.stage("evaluate"):
        # The class of a query that has several cannot be told right or wrong.
        several = gold.records.groupBy("entity").agg(F.collect_set("class").alias("several"))
        single = several.where(F.size("several") == 1)
        classes_of = single.select("entity", F.col("several")[0].alias("class"))
        joined = predictions.join(classes_of, F.trim("query") == classes_of["entity"]).drop(
            classes_of["entity"]
        )
        place = F.array_position("classes", F.col("class"))
        judged = context.cached(joined)
        pairs = judged.groupBy("class", F.col("classes")[0].alias("predicted")).count().toPandas()
        if pairs.empty:
            hint = "none of its queries is in the log with an entity"
            raise DataError("DATA03", source=task.gold.path, hint=hint)
        hits = [F.avg(((place > 0) & (place <= n)).cast("double")) for n in (1, 2, 3)]
        accuracies = judged.agg(*hits).collect()[0]
        wrong = judged.where("classes[0] <> class").orderBy(F.desc("count"), "query")
        errors = wrong.limit(SHOWN_ERRORS).toPandas()
    classes = sorted({*pairs["class"], *pairs["predicted"]})
    counts = np.zeros((len(classes), len(classes)))
    rows, columns = (pd.Categorical(pairs[c], classes).codes for c in ("class", "predicted"))
    counts[rows, columns] = pairs["count"]
    micro, macro = f1_of_confusion(counts)
    metrics = {f"accuracy_at_{n}": accuracies[n - 1] for n in (1, 2, 3)}
    context.run.write_metrics({"dba": {**metrics, "f1_micro": micro, "f1_macro": macro}})
    ambiguous = several.where(F.size("several") > 1).count()
    evaluated = {"queries": int(counts.sum()), "left_out_for_several_classes": ambiguous}
    context.run.write_metrics({"evaluate": evaluated})
    figure = plots.confusion_figure(counts, classes)
    context.tracker.log_figure(figure, "plots/confusion.png")
    context.tracker.log_table(plots.confusion_table(counts, classes), "tables/confusion.json")
    total = int(counts.sum())
    page = errors_page(errors, total, total - int(np.trace(counts)))
    context.tracker.log_html(page, "pages/errors.html")


def _disambiguated(context: Context, mined: Mined) -> DataFrame:
    conf: AlignmentSettings = context.settings
    model = AlignmentModel.load(storage.resolve(conf.output, "model"))
    labels = known_to(model, mined.labels)
    rows = assemble(
        mined.contexts, model.features, conf.partitions, conf.max_instances, labels, ["tokens"]
    )
    kernel = partial(
        disambiguate,
        model=model,
        classes=conf.ranked_classes,
        words=conf.context_words,
        use_labels=conf.known_labels,
        carried=["tokens"],
    )
    found = splits.map_partitions(rows, kernel, _DISAMBIGUATED)
    queries = mined.queries
    same = (queries["entity"] == found["name"]) & (queries["context"] == found["tokens"])
    return queries.join(found, same, "left").select(PREDICTIONS.names)


def mine(context: Context, *others: Read) -> Mined:
    """Read the log and the entity list, find the entities, and collapse contexts to counts.

    What went to quarantine while ``others`` were read is written with the rest.
    """
    conf: AlignmentSettings = context.settings
    task = cast(QueryLogInput, conf.input)
    log = read_query_logs(context.spark, task.sources, conf.quarantine, "input.sources")
    listed = read_entity_classes(context.spark, task.entities, conf.quarantine, "input.entities")
    with context.progress.stage("read"):
        # Cached one by one: writing them all and counting each would read the log several times.
        bad = [context.cached(read.quarantine) for read in (log, listed, *others)]
        everything = reduce(DataFrame.unionByName, bad)
        context.run.write_parquet("quarantine", everything, schema=QUARANTINE)
        bad_lines, bad_entities, *bad_others = [quarantine.count_reasons(each) for each in bad]
        for read, reasons in zip(others, bad_others, strict=True):
            quarantine.check_share("input.gold", read.records.count(), reasons, conf.quarantine)
        named = canonical_entities(listed.records).where("canonical is not null")
        entities = context.cached(named)
        where = task.entities.path
        quarantine.check_share(where, entities.count(), bad_entities, conf.quarantine)
    with context.progress.stage("find entities"):
        lines, counted = F.count("*").alias("lines"), F.sum("count").alias("count")
        queries = log.records.groupBy("query").agg(lines, counted)
        found = context.cached(find_entities(queries, listed.records))
        sums = found.agg(
            F.count("*").alias("queries"),
            F.coalesce(F.sum("lines"), F.lit(0)).alias("lines"),
            F.coalesce(F.sum("count"), F.lit(0)).alias("occurrences"),
            F.count("entity").alias("matched"),
            F.countDistinct("entity").alias("entities"),
        )
        totals = sums.collect()[0].asDict()
    quarantine.check_share("the query log", totals["lines"], bad_lines, conf.quarantine)
    if not totals["matched"]:
        hint = "none of its queries holds an entity of the list"
        raise DataError("DATA03", source="the query log", hint=hint)
    refused = sum(sum(each.values()) for each in (bad_lines, bad_entities, *bad_others))
    context.run.write_metrics({"input": {**totals, "quarantined": refused}})
    contexts = (
        found.where("entity is not null")
        .groupBy(F.col("entity").alias("pattern_id"), F.col("context").alias("tokens"))
        .agg(F.sum("count").cast("double").alias("weight"))
    )
    labels = label_sets(entities, F.col("canonical"), F.col("class"))
    return Mined(found, context.cached(contexts), labels)
