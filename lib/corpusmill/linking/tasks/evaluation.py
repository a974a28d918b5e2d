"""Evaluate: the linker beside other methods on the same candidates and features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from corpusmill import storage
from corpusmill.corpora.schemas import QUARANTINE
from corpusmill.errors import DataError, UsageError
from corpusmill.linking.counting import SYSTEM, count_all, link_values, no_counts
from corpusmill.linking.fitting import TEXT_COLUMNS
from corpusmill.linking.gold import linked
from corpusmill.linking.model import LinkingModel
from corpusmill.linking.placement import Given, sum_texts
from corpusmill.linking.tasks.baselines import measure_baselines
from corpusmill.linking.tasks.errors import log_errors
from corpusmill.linking.tasks.knowledge import placed
from corpusmill.linking.tasks.settings import LinkingSettings
from corpusmill.linking.tasks.texts import query_entities, read_system, read_texts
from corpusmill.progress import Progress
from corpusmill.types import Floats

if TYPE_CHECKING:
    from corpusmill.runner import Context


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
        name: read_texts(context, {f"input.test.{name}": source})
        for name, source in conf.input.test.items()
    }
    tests = {
        name: texts.rows.select(*TEXT_COLUMNS, "text_entities") for name, texts in read.items()
    }
    bad = [texts.bad for texts in read.values()]
    for name, system in conf.input.systems.items():
        key = f"input.systems.{name}"
        links = read_system(context, system, key)
        bad.append(links.bad)
        tests[name] = beside(context.progress, tests[name], links.rows, key)
    context.run.write_parquet("quarantine", reduce(DataFrame.unionByName, bad), schema=QUARANTINE)
    found: dict[str, dict[str, float]] = {}
    with context.progress.stage("link"):
        for name, rows in tests.items():
            found[name] = _measured(context, rows, model)
    log_errors(context, *next(iter(tests.items())), model)
    if conf.baselines.methods:
        with context.progress.stage("train the baselines"):
            for method, measured in measure_baselines(context, model, tests).items():
                for name, values in measured.items():
                    found[name] |= {f"{method}.{key}": value for key, value in values.items()}
    metrics = dict(found[next(iter(tests))])
    for name, values in found.items():
        metrics |= {f"{name}.{key}": value for key, value in values.items()}
    context.run.write_metrics(metrics)
    table = comparison_table(found)
    context.tracker.log_table(table, "tables/comparison.json")
    context.progress.say(f"percent of links:\n{table.to_string(index=False)}")


def beside(progress: Progress, texts: DataFrame, said: DataFrame, key: str) -> DataFrame:
    """Put beside each text what another system says of it, and tell of how many it says nothing.

    Raises
    ------
    DataError
        DATA03: of all.
    """
    joined = texts.join(said, "text_id", "left")
    total, known = joined.agg(F.count("*"), F.count(SYSTEM)).collect()[0]
    if not known:
        hint = "none of its ids is that of a text; look at those of input.test"
        raise DataError("DATA03", source=key, hint=hint)
    if known < total:
        share = f"{known:,} of {total:,} texts ({known / total:.1%})"
        progress.say(f"{key} says something of {share} and counts as wrong on the others")
    return joined


def _measured(context: Context, rows: DataFrame, model: LinkingModel) -> dict[str, float]:
    """Count the model's links, of one stage and of both, and the ceiling of any linker."""
    queries = query_entities(rows)
    given = placed(context, rows, model.knowledge)
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
    asked, _, right = sums["first"].tolist()
    if asked:
        metrics["asked_texts"] = asked
    if asked and SYSTEM in rows.columns:
        metrics["system.recall_at_1"] = right / asked
    return metrics


def count_partition(given: Given, queries: Sequence[str]) -> dict[str, Floats]:
    """Count a partition's links; the kernel of `_measured`."""
    total = no_counts()
    for batch, model in given:
        scored = model.score(batch.column("text"))
        found = linked(scored, model.decode(scored), model.knowledge)
        for name, value in count_all(batch, scored, found, model, queries).items():
            total[name] += value
    return total


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
