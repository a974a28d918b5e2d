"""Other methods beside the linker, each trained and measured in one task."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.boosting.baselines import BASELINES, Tuning
from corpusmill.boosting.batches import read_examples
from corpusmill.errors import UsageError
from corpusmill.linking.counting import count_all, link_values
from corpusmill.linking.factors import candidates_of, factors_of
from corpusmill.linking.features import FEATURE_NAMES
from corpusmill.linking.fitting import (
    BIASES,
    TEXT_COLUMNS,
    best_bias,
    count_at,
    curve,
    with_mentions,
)
from corpusmill.linking.gold import linked
from corpusmill.linking.model import LinkingModel, Scored
from corpusmill.linking.placement import map_copies
from corpusmill.linking.settings import LearnerSettings
from corpusmill.linking.tasks.settings import LinkingSettings
from corpusmill.linking.tasks.texts import query_entities, read_texts

if TYPE_CHECKING:
    from corpusmill.runner import Context

EPOCHS = (5, 10, 20)
COSTS = (0.5, 1.0, 5.0, 10.0)
"""What is tried for the perceptron and, as in section 4.2 of the paper, for the SVMs."""
_MEASURED = T.StructType(
    [T.StructField("method", T.StringType()), T.StructField("metrics", T.StringType())]
)


def measure_baselines(
    context: Context, model: LinkingModel, tests: Mapping[str, DataFrame]
) -> dict[str, dict[str, dict[str, float]]]:
    """Train and measure the methods of the conf.

    Returns
    -------
    dict
        Method -> test set -> metric -> value.

    Raises
    ------
    UsageError
        CONF05: there are no development texts.
    """
    conf: LinkingSettings = context.settings
    if not conf.input.develop:
        problem = "the baselines' bias is tuned on development texts"
        raise UsageError("CONF05", key="input.develop", problem=problem)
    parts = {
        "train": read_texts(context, conf.input.training()).rows,
        "develop": read_texts(context, conf.input.development()).rows,
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
    """Train a baseline, tune its bias and count its links; the kernel of `measure_baselines`."""
    method = methods[number]
    begin = time.perf_counter()
    train = with_mentions(part_of(table, "train"), model)
    factors = factors_of(train, model.knowledge, model.settings.candidates)
    examples = read_examples(factors, "spans", len(FEATURE_NAMES))
    develop = with_mentions(part_of(table, "develop"), model)
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
    """Give the best F1 on development texts and the bias that has it.

    The scale of a method's scores is its own, so that `BIASES` are tried as they are and times the
    standard deviation of F(entity) - F(Nil).
    """
    scored = _scored(batch, model, scorer)
    nil = scored.structure.bases[scored.found.mentions.owners]
    spread = float(np.std(scored.scores - scored.scores[nil])) if len(nil) else 1.0
    biases = np.unique(np.concatenate([BIASES, spread * BIASES]))
    counts = count_at(batch, scored, model, biases)
    return float(curve(counts)[2].max()), best_bias(counts, biases)
