"""Evaluate: predicted rows beside the gold ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from corpusmill import splits, storage
from corpusmill.boosting.batches import read_examples
from corpusmill.boosting.losses import logistic
from corpusmill.boosting.model import BoostingModel
from corpusmill.boosting.structures import sums_by_example
from corpusmill.boosting.tasks.examples import read_factors_of
from corpusmill.boosting.tasks.settings import BoostingSettings
from corpusmill.errors import DataError
from corpusmill.types import Floats

if TYPE_CHECKING:
    from corpusmill.runner import Context


def evaluate(context: Context) -> None:
    """Count right, wrong and missing rows over the test examples whose output is known."""
    conf: BoostingSettings = context.settings
    model = BoostingModel.load(storage.resolve(conf.output, "model"))
    rows = read_factors_of(context, "test", len(model.names)).where(F.col("gold").isNotNull())
    with context.progress.stage("score"):
        sums = splits.sum_arrays(rows, partial(count_partition, model=model))
    right, predicted, gold, whole, examples, loss = sums["counts"].tolist()
    if not examples:
        raise DataError("DATA03", source="input.test", hint="no example has a known output")
    metrics = {
        "precision": right / predicted if predicted else 0.0,
        "recall": right / gold if gold else 0.0,
        "f1": 2.0 * right / (predicted + gold) if predicted + gold else 1.0,
        "whole_outputs": whole / examples,
        "log_loss": loss / examples,
        "examples": examples,
    }
    context.run.write_metrics({"boosting": metrics})
    told = (f"{name} {value:.4g}" for name, value in metrics.items())
    context.progress.say(", ".join(told))


def count_partition(batches: Iterator[pa.RecordBatch], model: BoostingModel) -> dict[str, Floats]:
    """Count a partition; the kernel of `evaluate`.

    Returns
    -------
    dict of str to Floats
        ``counts``: rows that are right, predicted, gold (of spans without Nil), examples whose
        whole output is right, examples, and the sum of -log P(gold output) in nats.
    """
    counts = np.zeros(6)
    for batch in batches:
        examples = read_examples(batch, model.settings.structure, len(model.names))
        structure = examples.structure
        scores = model.scores(examples.features)
        chosen, _ = model.decode(examples, scores)
        scores[structure.bases] += model.settings.nil_bias
        differ = sums_by_example(structure.factors, (chosen != examples.gold).astype(np.float64))
        counted = np.ones(len(chosen), np.bool_)
        counted[structure.bases] = False
        counts += [
            np.count_nonzero(chosen & examples.gold & counted),
            np.count_nonzero(chosen & counted),
            np.count_nonzero(examples.gold & counted),
            np.count_nonzero(differ == 0),
            len(differ),
            logistic(structure, scores, examples.gold).loss.sum(),
        ]
    return {"counts": counts}
