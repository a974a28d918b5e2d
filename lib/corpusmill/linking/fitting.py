"""Training a linker over texts in Spark, and tuning its Nil bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.boosting.fitting import NOTHING, Progress, fit_factors
from corpusmill.corpora.schemas import FACTORS
from corpusmill.evaluation.linking import LinkCounts, count_links
from corpusmill.linking.coherence import FEATURE_NAMES as COHERENCE_NAMES
from corpusmill.linking.coherence import coherence
from corpusmill.linking.factors import factors_of
from corpusmill.linking.features import FEATURE_NAMES
from corpusmill.linking.gold import check_mentions, gold_links, linked
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.locating import locate_entities
from corpusmill.linking.model import LinkingModel, Scored, chosen, refuse_null
from corpusmill.linking.placement import Given, Placed, map_texts, sum_texts
from corpusmill.linking.settings import LearnerSettings
from corpusmill.types import Floats

TEXT_COLUMNS = ("text_id", "text", "mention_starts", "mention_ends", "mention_entities")
BIASES = np.linspace(-3.0, 3.0, 25)
"""Where b is looked for (section 4.2 of the paper)."""
OnStage = Callable[[int, Progress], None]


class Fitted(NamedTuple):
    """A trained linker and how its biases were chosen.

    Attributes
    ----------
    model : LinkingModel
    curves : tuple of LinkCounts
        By stage, on the development texts, a group for each of `BIASES`.
    """

    model: LinkingModel
    curves: tuple[LinkCounts, ...]


def fit_links(
    texts: Placed,
    knowledge: Knowledge,
    settings: LearnerSettings,
    seed: int = 13,
    develop: Placed | None = None,
    block: int = 0,
    on_block: OnStage = lambda *_: None,
    starts: Sequence[Progress] = (),
) -> Fitted:
    """Train a linker on texts with their true mentions.

    Parameters
    ----------
    texts : Placed
        The columns `TEXT_COLUMNS` of `corpusmill.corpora.schemas.LINKED_TEXTS`, placed for
        ``knowledge``; with ``text_entities``, a text without a mention has those located.
    knowledge : Knowledge
        Without counts of the texts' own mentions, which would give the answers away.
    settings : LearnerSettings
    seed, block
        As `corpusmill.boosting.fitting.fit_factors`.
    develop : Placed, optional
        Texts of the same columns, on which the bias of each stage is tuned; without them it is
        ``nil_bias`` of the settings.
    on_block : callable
        Told the stage, from 0, and what is known after each block of rounds.
    starts : sequence of Progress
        By stage, where a checkpoint is resumed.

    Returns
    -------
    Fitted
    """
    model = LinkingModel(settings, knowledge, (), ())
    names, curves = FEATURE_NAMES, []
    for stage in range(settings.stages):
        factors = map_texts(texts, factor_rows, model, FACTORS).persist()
        try:
            start = starts[stage] if stage < len(starts) else NOTHING
            fitted = fit_factors(
                factors, settings, seed, names, block, partial(on_block, stage), start
            )
        finally:
            factors.unpersist()
        trees, bias = (*model.trees, fitted.trees), settings.nil_bias
        model = LinkingModel(settings, knowledge, trees, (*model.biases, bias))
        if develop is not None:
            curves.append(bias_curve(develop, model))
            model = with_bias(model, best_bias(curves[-1]))
        names = (*FEATURE_NAMES, *COHERENCE_NAMES)
    return Fitted(model, tuple(curves))


def with_mentions(texts: pa.RecordBatch, model: LinkingModel) -> pa.RecordBatch:
    """Give mentions to texts that name entities only; see `locating.locate_entities`."""
    if "text_entities" not in texts.schema.names:
        return texts
    return locate_entities(texts, model.knowledge, model.settings.candidates)


def factor_rows(batch: pa.RecordBatch, model: LinkingModel) -> pa.RecordBatch:
    """Make the factors of texts; behind a stage, with the features of what it found.

    Raises
    ------
    DataError
        DATA01: a text is null, or its mentions cannot be, by name.
    """
    refuse_null(batch)
    check_mentions(batch)
    batch = with_mentions(batch, model)
    further = None
    if model.trees:
        scored = model.score(batch.column("text"))
        further = coherence(
            scored.found.mentions, chosen(scored, model.biases[-1]), model.knowledge
        )
    return factors_of(batch, model.knowledge, model.settings.candidates, further)


def bias_curve(texts: Placed, model: LinkingModel, biases: Floats = BIASES) -> LinkCounts:
    """Count right mentions of development texts at each bias, boundaries overlapping.

    Returns
    -------
    LinkCounts
        A group a bias.
    """
    return LinkCounts(**sum_texts(texts, partial(count_biases, biases=biases), model))


def count_biases(given: Given, biases: Floats) -> dict[str, Floats]:
    """Count a partition at each bias; the kernel of `bias_curve`."""
    total = np.zeros((4, len(biases)))
    for batch, model in given:
        texts = with_mentions(batch, model)
        total += count_at(texts, model.score(texts.column("text")), model, biases)
    return dict(zip(LinkCounts._fields, total, strict=True))


def count_at(
    batch: pa.RecordBatch, scored: Scored, model: LinkingModel, biases: Floats
) -> LinkCounts:
    """Count right mentions of texts with any scores at each bias."""
    gold = gold_links(batch, model.knowledge.entities)
    found = (linked(scored, model.decode(scored, bias), model.knowledge) for bias in biases)
    counts = [np.concatenate(count_links(gold, links)) for links in found]
    return LinkCounts(*np.stack(counts, axis=1))


def best_bias(counts: LinkCounts, biases: Floats = BIASES) -> float:
    """Give the bias with the best F1; of equals the one nearest to 0."""
    f1 = curve(counts)[2]
    best = np.flatnonzero(f1 >= f1.max() - 1e-12)
    return float(biases[best[np.argmin(np.abs(biases[best]))]])


def curve(counts: LinkCounts) -> Floats:
    """Give precision, recall and F1 by group, shape (3, groups); 0 where nothing is counted."""

    def share(part: Floats, whole: Floats) -> Floats:
        return np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)

    precision, recall = share(counts.right, counts.predicted), share(counts.found, counts.gold)
    return np.stack([precision, recall, share(2.0 * precision * recall, precision + recall)])


def with_bias(model: LinkingModel, bias: float) -> LinkingModel:
    """Give the model with another bias of its last stage."""
    biases = (*model.biases[:-1], bias)
    return LinkingModel(model.settings, model.knowledge, model.trees, biases)
