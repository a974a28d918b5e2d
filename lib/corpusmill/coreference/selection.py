"""Which feature templates are worth their while: greedy forward and backward selection. No Spark.

Source: Björkelund & Kuhn (2014, section 6.1): on three quarters of the training documents a model
is trained, on the other quarter the mean of MUC, B3 and CEAFe is what a set of templates is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.learning import learn_batch
from corpusmill.coreference.measures import metrics_of, predicted_counts
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.preparation import Preparation

_QUARTERS = 4
Score = Callable[[Sequence[tuple[str, ...]]], list[float]]
"""What some sets of templates are worth."""


class Step(NamedTuple):
    """A step of the selection.

    Attributes
    ----------
    change : str
        ``+`` or ``-`` and the template; empty for the set to begin with.
    score : float
        What the set is worth after it.
    tried : int
        How many sets were tried for it.
    """

    change: str
    score: float
    tried: int


def quarters(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Cut documents into three quarters to train on and one to measure on, by a hash of ids."""
    hashed = hash_strings(batch.column("document_id").to_pylist())
    # The lowest bits are those of the folds.
    held = (hashed >> np.uint64(32)) % np.uint64(_QUARTERS) == 0
    return batch.filter(pa.array(~held)), batch.filter(pa.array(held))


def worth(
    batch: pa.RecordBatch, preparation: Preparation, lines: tuple[str, ...], seed: int
) -> float:
    """Train with some templates on three quarters and give the CoNLL average on the other.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        `model.DOCUMENT_ROWS` with known clusters.
    preparation : Preparation
        Its templates are not looked at.
    lines : tuple of str
        The templates.
    seed : int

    Returns
    -------
    float
        0 without a document to measure on.
    """
    train, held = quarters(batch)
    prepared = replace(preparation, templates=lines)
    progress = learn_batch(train, prepared, seed)
    model = CoreferenceModel(prepared, progress.average())
    counts = predicted_counts(held, model.predict_batch(held))
    return metrics_of(counts.sum(axis=0))["conll_avg"]


def select_templates(
    current: tuple[str, ...],
    candidates: tuple[str, ...],
    score: Score,
    rounds: int,
    on_step: Callable[[Step], None],
) -> tuple[str, ...]:
    """Add or remove the template that helps most, until none does.

    Parameters
    ----------
    current : tuple of str
        The templates to begin with.
    candidates : tuple of str
        Templates that may be added.
    score : callable
        What sets of templates are worth; called once a round with all that are tried.
    rounds : int
        Steps at most.
    on_step : callable
        Called with the set to begin with and after each step.

    Returns
    -------
    tuple of str
        The templates that are left, those added last.

    Notes
    -----
    A round costs a training for each template that is there and for each candidate that is not.
    """
    best = score([current])[0]
    on_step(Step("", best, 1))
    for _ in range(rounds):
        changes = [(f"+ {line}", (*current, line)) for line in candidates if line not in current]
        if len(current) > 1:
            changes += [
                (f"- {line}", tuple(each for each in current if each != line)) for line in current
            ]
        scores = score([lines for _, lines in changes]) if changes else []
        if not scores or max(scores) <= best:
            break
        number = int(np.argmax(scores))
        best, (change, current) = scores[number], changes[number]
        on_step(Step(change, best, len(changes)))
    return current
