"""Evaluate: the linker beside other methods on the same candidates and features."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits, storage
from corpusmill.boosting.baselines import BASELINES, Tuning
from corpusmill.boosting.batches import read_examples
from corpusmill.corpora.schemas import QUARANTINE
from corpusmill.errors import UsageError
from corpusmill.evaluation.linking import (
    LinkCounts,
    Links,
    count_links,
    count_presence,
    covered,
    link_metrics,
)
from corpusmill.linking.factors import candidates_of, factors_of
from corpusmill.linking.features import FEATURE_NAMES
from corpusmill.linking.fitting import BIASES, TEXT_COLUMNS, best_bias, curve
from corpusmill.linking.gold import gold_links, linked, list_offsets, numbered
from corpusmill.linking.model import LinkingModel, Scored
from corpusmill.linking.placement import Given, map_copies, sum_texts
from corpusmill.linking.settings import LearnerSettings
from corpusmill.linking.tasks.knowledge import placed
from corpusmill.linking.tasks.settings import LinkingSettings
from corpusmill.linking.tasks.texts import read_texts
from corpusmill.types import AnyArray, Floats

if TYPE_CHECKING:
    from corpusmill.runner import Context

LONGEST = 4
"""Mentions of so many words and more are one group."""
TYPES = ("person", "location", "organization", "product", "event", "character", "thing")
LENGTHS = (*(f"length_{n}" for n in range(1, LONGEST)), f"length_{LONGEST}_and_more")
EPOCHS = (5, 10, 20)
COSTS = (0.5, 1.0, 5.0, 10.0)
"""What is tried for the perceptron and, as in section 4.2 of the paper, for the SVMs."""
_MEASURED = T.StructType(
    [T.StructField("method", T.StringType()), T.StructField("metrics", T.StringType())]
)
Count = Callable[[pa.RecordBatch], dict[str, Floats]]


def evaluate(context: Context) -> None:
    """Measure the model on every test set, and train and measure the baselines beside it.

    All methods have the same candidates, features, decoding and range of the Nil bias, which is
    tuned on the development texts; the model's own was so in training.
    """
    conf: LinkingSettings = context.settings
    if not conf.input.test:
        problem = "this action reads test texts: names with their sources"
        raise UsageError("CONF05", key="input.test", problem=problem)
    model = LinkingModel.load(storage.resolve(conf.output, "model"))
    read = {
        name: read_texts(context, source, f"input.test.{name}")
        for name, source in conf.input.test.items()
    }
    tests = {name: texts.rows for name, texts in read.items()}
    bad = reduce(DataFrame.unionByName, (texts.bad for texts in read.values()))
    context.run.write_parquet("quarantine", bad, schema=QUARANTINE)
    found: dict[str, dict[str, float]] = {}
    with context.progress.stage("link"):
        for name, rows in tests.items():
            found[name] = _measured(context, rows, model)
    if conf.baselines.methods:
        with context.progress.stage("train the baselines"):
            for method, measured in _baselines(context, model, tests).items():
                for name, values in measured.items():
                    found[name] |= {f"{method}.{key}": value for key, value in values.items()}
    metrics = dict(found[next(iter(tests))])
    for name, values in found.items():
        metrics |= {f"{name}.{key}": value for key, value in values.items()}
    context.run.write_metrics(metrics)
    context.tracker.log_table(comparison_table(found), "tables/comparison.json")


def _measured(context: Context, rows: DataFrame, model: LinkingModel) -> dict[str, float]:
    """Count the model's links, of one stage and of both, and the ceiling of any linker."""
    texts = rows.select(*TEXT_COLUMNS, "text_entities")
    queries = query_entities(texts)
    given = placed(context, texts, model.knowledge)
    stages = {"smart": model.first_stage()}
    if len(model.trees) > 1:
        stages["smart_entity"] = model
    metrics: dict[str, float] = {}
    for name, stage in stages.items():
        sums = sum_texts(given, partial(count_partition, queries=queries), stage)
        metrics |= {f"{name}.{key}": value for key, value in link_values(sums).items()}
    gold = sums["gold"].tolist()
    metrics |= {
        "gold_mentions": gold[0],
        "candidate_recall": gold[1] / gold[0] if gold[0] else 0.0,
        "candidate_recall_exact": gold[2] / gold[0] if gold[0] else 0.0,
    }
    return metrics


def query_entities(texts: DataFrame) -> tuple[str, ...]:
    """Give the query entities of the IR-driven evaluation: all that the texts' gold names."""
    names = texts.select(F.explode("text_entities").alias("entity")).distinct()
    return tuple(names.orderBy("entity").toArrow()["entity"].to_pylist())


def count_partition(given: Given, queries: Sequence[str]) -> dict[str, Floats]:
    """Count a partition's links; the kernel of `_measured`."""
    total = {
        "overlapping": np.zeros((4, len(TYPES) + len(LENGTHS))),
        "exact": np.zeros((4, 1)),
        "presence": np.zeros((4, 1)),
        "gold": np.zeros(3),
    }
    for batch, model in given:
        scored = model.score(batch.column("text"))
        found = linked(scored, model.decode(scored), model.knowledge)
        for name, value in count_all(batch, scored, found, model, queries).items():
            total[name] += value
    return total


def count_all(
    batch: pa.RecordBatch,
    scored: Scored,
    found: Links,
    model: LinkingModel,
    queries: Sequence[str],
) -> dict[str, Floats]:
    """Count the links found in a batch of texts against the gold ones."""
    entities = model.knowledge.entities
    gold = gold_links(batch, entities)
    kinds = len(TYPES)
    by_type = count_links(
        gold, found, False, types_of(gold.entities, model), types_of(found.entities, model), kinds
    )
    texts = batch.column("text")
    by_length = count_links(
        gold, found, False, lengths_of(gold, texts), lengths_of(found, texts), len(LENGTHS)
    )
    asked = np.unique(numbered(pa.array(queries, pa.string()), entities))
    named = batch.column("text_entities")
    presence = count_presence(
        list_offsets(named),
        numbered(named.flatten(), entities),
        found.offsets,
        found.entities,
        asked[asked < entities.size],
    )
    # An entity that the knowledge has not is mentioned by texts all the same.
    missing = np.count_nonzero(numbered(named.flatten(), entities) >= entities.size)
    candidates = candidate_links(scored, model)
    return {
        "overlapping": np.hstack([np.stack(by_type), np.stack(by_length)]),
        "exact": np.stack(count_links(gold, found, True)),
        "presence": np.stack(presence).sum(axis=1, keepdims=True)
        + np.array([[0.0], [0.0], [0.0], [missing]]),
        "gold": np.array(
            [
                np.count_nonzero(gold.entities >= 0),
                np.count_nonzero(covered(gold, candidates)),
                np.count_nonzero(covered(gold, candidates, True)),
            ],
            np.float64,
        ),
    }


def candidate_links(scored: Scored, model: LinkingModel) -> Links:
    """Give all that a linker chooses from."""
    mentions = scored.found.mentions
    rows = np.flatnonzero(mentions.candidates >= 0)
    owner = mentions.owners[rows]
    text = np.searchsorted(mentions.texts, owner, side="right") - 1
    shift = scored.found.units.characters.texts[text]
    return Links(
        np.searchsorted(rows, mentions.rows[mentions.texts]),
        mentions.begins[owner] - shift,
        mentions.ends[owner] - shift,
        mentions.entities(model.knowledge.lexicon)[rows],
    )


def types_of(entities: AnyArray, model: LinkingModel) -> AnyArray:
    """Give the first of `TYPES` that each entity has; the last stands for none."""
    known = model.knowledge.entities
    groups = np.full(len(entities), len(TYPES) - 1, np.int64)
    inside = (entities >= 0) & (entities < known.size)
    for number, name in reversed(list(enumerate(TYPES[:-1]))):
        has = np.zeros(len(entities), np.bool_)
        has[inside] = known.is_type(name)[entities[inside]]
        groups[has] = number
    return groups


def lengths_of(links: Links, texts: pa.Array) -> AnyArray:
    """Give the number of words of each mention, less 1, at most `LONGEST` - 1."""
    strings = texts.to_pylist()
    owner = np.repeat(np.arange(len(links.offsets) - 1), np.diff(links.offsets))
    words = [
        len((strings[n] or "")[a:b].split())
        for n, a, b in zip(owner, links.starts, links.ends, strict=True)
    ]
    return np.clip(np.array(words, np.int64), 1, LONGEST) - 1


def link_values(sums: Mapping[str, Floats]) -> dict[str, float]:
    """Give the metrics of summed `count_all`."""
    kinds = len(TYPES)
    by_type = LinkCounts(*sums["overlapping"][:, :kinds])
    by_length = LinkCounts(*sums["overlapping"][:, kinds:])
    lengths = link_metrics(by_length, LENGTHS)
    found = link_metrics(by_type, TYPES)
    found |= {key: value for key, value in lengths.items() if key.startswith("length_")}
    for name, part in (("exact", "exact"), ("ir", "presence")):
        values = link_metrics(LinkCounts(*sums[part]))
        found |= {f"{name}.{key}": value for key, value in values.items()}
    return found


# Baselines: each trained in one task, on all training texts.


def _baselines(
    context: Context, model: LinkingModel, tests: Mapping[str, DataFrame]
) -> dict[str, dict[str, dict[str, float]]]:
    conf: LinkingSettings = context.settings
    if conf.input.develop is None:
        problem = "the baselines' bias is tuned on development texts"
        raise UsageError("CONF05", key="input.develop", problem=problem)
    parts = {
        "train": read_texts(context, conf.input.train, "input.train").rows,
        "develop": read_texts(context, conf.input.develop, "input.develop").rows,
        **{f"test {name}": rows for name, rows in tests.items()},
    }
    columns = [*TEXT_COLUMNS, "text_entities"]
    rows = reduce(
        DataFrame.unionByName,
        (part.select(F.lit(name).alias("part"), *columns) for name, part in parts.items()),
    )
    methods = conf.baselines.methods
    queries = {name: query_entities(part) for name, part in tests.items()}
    kernel = partial(measure_method, methods=tuple(methods), queries=queries, seed=conf.seed)
    measured = map_copies(
        rows, kernel, model, _MEASURED, len(methods), conf.broadcast_mb, context.cached
    )
    return {row["method"]: json.loads(row["metrics"]) for row in measured.collect()}


def measure_method(
    number: int,
    table: pa.Table,
    methods: Sequence[str],
    model: LinkingModel,
    queries: Mapping[str, Sequence[str]],
    seed: int,
) -> pa.RecordBatch:
    """Train a baseline, tune its bias and count its links; the kernel of `_baselines`."""
    method = methods[number]
    begin = time.perf_counter()
    train = part_of(table, "train")
    factors = factors_of(train, model.knowledge, model.settings.candidates)
    examples = read_examples(factors, "spans", len(FEATURE_NAMES))
    develop = part_of(table, "develop")
    tried = []
    for name, tuning in tunings(method, model.settings).items():
        scorer = BASELINES[method](examples, tuning, seed)
        tried.append((*tuned_bias(develop, model, scorer), scorer, name))
    f1, bias, scorer, told = max(tried, key=lambda each: each[0])
    tuned = {"develop_f1": f1, "nil_bias": bias}
    if told:
        key, _, value = told.partition("=")
        tuned[key] = float(value)
    seconds = time.perf_counter() - begin
    found: dict[str, dict[str, float]] = {}
    for name in queries:
        batch = part_of(table, f"test {name}")
        scored = _scored(batch, model, scorer)
        links = linked(scored, model.decode(scored, bias), model.knowledge)
        sums = count_all(batch, scored, links, model, queries[name])
        found[name] = link_values(sums) | tuned | {"train_seconds": seconds}
    row = {"method": method, "metrics": json.dumps(found)}
    return pa.RecordBatch.from_pylist([row], schema=splits.schema_of(_MEASURED))


def tunings(method: str, settings: LearnerSettings) -> dict[str, Tuning]:
    """Give what is tried for a method, by name; trees are as the model's own."""
    if method == "perceptron":
        return {f"epochs={epochs}": Tuning(epochs, COSTS[0], settings) for epochs in EPOCHS}
    if method in ("linear_ssvm", "poly_ssvm"):
        return {f"cost={cost}": Tuning(EPOCHS[0], cost, settings) for cost in COSTS}
    return {"": Tuning(EPOCHS[0], COSTS[0], settings)}


def part_of(table: pa.Table, name: str) -> pa.RecordBatch:
    """Give the rows of a part, in the order of their names."""
    chosen = table.filter(pc.equal(table["part"], name)).sort_by("text_id")
    batches = chosen.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _scored(batch: pa.RecordBatch, model: LinkingModel, scorer: Any) -> Scored:
    found = candidates_of(batch.column("text"), model.knowledge, model.settings.candidates)
    return model.scored_by(found, scorer.scores(found.features))


def tuned_bias(batch: pa.RecordBatch, model: LinkingModel, scorer: Any) -> tuple[float, float]:
    """Give the best F1 on development texts and the bias that has it."""
    scored = _scored(batch, model, scorer)
    gold = gold_links(batch, model.knowledge.entities)
    total = np.zeros((4, len(BIASES)))
    for number, bias in enumerate(BIASES):
        found = linked(scored, model.decode(scored, bias), model.knowledge)
        total[:, number] = np.concatenate(count_links(gold, found))
    counts = LinkCounts(*total)
    return float(curve(counts)[2].max()), best_bias(counts)


def comparison_table(found: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """Give precision, recall and F1 of every method and test set, in percent."""
    rows = []
    for name, metrics in found.items():
        for key in metrics:
            method, _, rest = key.partition(".")
            if rest == "f1":
                row: dict[str, Any] = {"test": name, "method": method}
                for part in ("precision", "recall", "f1", "exact.f1", "ir.f1"):
                    row[part] = round(100.0 * metrics[f"{method}.{part}"], 2)
                rows.append(row)
    return pd.DataFrame(rows)
