"""Errors of a linker by kind, and examples of each. No Spark.

Every gold mention of an entity is right, wrong or missed, every predicted one right, wrong or
spurious:

    gold = right + wrong + missed        predicted = right + wrong + spurious

Right are the pairs of `evaluation.linking.match_links`. Of the mentions left over, as many as can
be paired with one that overlaps are wrong: there is a mention, but of another entity. What is left
then was missed, or is spurious. The reasons for a miss are tried in the order of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill.evaluation.linking import NIL, Links, covered, match_links
from corpusmill.linking.counting import candidate_links
from corpusmill.linking.gold import gold_links, linked
from corpusmill.linking.model import Decoded, LinkingModel, Scored
from corpusmill.types import AnyArray, Flags, Floats


class Kind(NamedTuple):
    """A kind of outcome.

    Attributes
    ----------
    name : str
        Begins with its group: right, wrong, missed or spurious.
    title, meaning : str
    """

    name: str
    title: str
    meaning: str

    @property
    def group(self) -> str:
        """What it is a kind of."""
        return self.name.partition("_")[0]


KINDS = (
    Kind("right_exact", "Right, same boundaries", "Entity and boundaries are those of gold."),
    Kind(
        "right_boundary",
        "Right, other boundaries",
        "The entity is that of gold; the mention overlaps the gold one, with other boundaries.",
    ),
    Kind(
        "wrong_candidate",
        "Wrong entity; the right one was a candidate",
        "Another entity was chosen, though the gold one was among the candidates.",
    ),
    Kind(
        "wrong_no_candidate",
        "Wrong entity; the right one was no candidate",
        "Another entity was chosen; the gold one was not among the candidates.",
    ),
    Kind(
        "missed_entity",
        "Missed: entity unknown",
        "No table of the knowledge names the entity.",
    ),
    Kind(
        "missed_surface",
        "Missed: surface form unknown",
        "The entity is known, but the lexicon has nothing with the gold mention's boundaries.",
    ),
    Kind(
        "missed_candidate",
        "Missed: no candidate of its surface form",
        "The surface form is known, but the entity is not among its first T candidates.",
    ),
    Kind(
        "missed_place",
        "Missed: place taken",
        "The entity was a candidate, but a prediction for another gold mention overlaps it.",
    ),
    Kind(
        "missed_nil",
        "Missed: Nil chosen",
        "The entity was a candidate, and nothing was chosen there.",
    ),
    Kind(
        "spurious_second",
        "Spurious: gold mention already taken",
        "It overlaps gold mentions that are all paired with other predictions.",
    ),
    Kind(
        "spurious_nil",
        "Spurious: gold mention without an entity",
        "Gold has a mention here, but of nothing that the knowledge base holds (NIL).",
    ),
    Kind("spurious_nothing", "Spurious: no gold mention", "Gold has no mention here."),
)
NAMES = tuple(kind.name for kind in KINDS)
(
    EXACT, BOUNDARY, WRONG_CANDIDATE, WRONG_NO_CANDIDATE,
    NO_ENTITY, NO_SURFACE, NO_CANDIDATE, PLACE_TAKEN, NIL_CHOSEN,
    SECOND, OVER_NIL, NOTHING,
) = range(len(KINDS))  # fmt: skip


class Verdicts(NamedTuple):
    """The kind of every mention.

    Attributes
    ----------
    gold : int64, shape (gold mentions,)
        Numbers of `KINDS`; `NIL` for a mention without an entity, which is none.
    predicted : int64, shape (predicted mentions,)
        Likewise.
    partners : int64, shape (predicted mentions,)
        The gold mention of each right or wrong one, -1 for a spurious one.
    """

    gold: AnyArray
    predicted: AnyArray
    partners: AnyArray


def classify(gold: Links, predicted: Links, candidates: Links, known: int) -> Verdicts:
    """Tell of every mention what became of it.

    Parameters
    ----------
    gold, predicted
        Mentions of the same texts.
    candidates
        All mentions and entities that the linker chooses from (`counting.candidate_links`).
    known
        How many entities the knowledge has; a gold one of this number or higher is unknown.

    Returns
    -------
    Verdicts

    Notes
    -----
    O(n log n) in all mentions and candidates where the mentions of a side do not overlap.
    """
    partners = match_links(gold, predicted)
    right = np.flatnonzero(partners >= 0)
    of_gold = np.full(len(gold.entities), NIL, np.int64)
    of_predicted = np.full(len(partners), NIL, np.int64)
    pair = partners[right]
    same = (gold.starts[pair] == predicted.starts[right]) & (
        gold.ends[pair] == predicted.ends[right]
    )
    of_predicted[right] = of_gold[pair] = np.where(same, EXACT, BOUNDARY)

    reachable = covered(gold, candidates)
    left_gold = (gold.entities != NIL) & (of_gold == NIL)
    left_predicted = (predicted.entities != NIL) & (of_predicted == NIL)
    others = match_links(_alike(gold, left_gold), _alike(predicted, left_predicted))
    wrong = np.flatnonzero(others >= 0)
    pair = partners[wrong] = others[wrong]
    of_predicted[wrong] = of_gold[pair] = np.where(
        reachable[pair], WRONG_CANDIDATE, WRONG_NO_CANDIDATE
    )

    missed, spurious = left_gold & (of_gold == NIL), left_predicted & (of_predicted == NIL)
    every_gold, every_predicted = _alike(gold), _alike(predicted)
    spelled = covered(every_gold, _alike(candidates), exact=True)
    taken = covered(every_gold, every_predicted)
    reasons = [gold.entities >= known, ~reachable & ~spelled, ~reachable, taken]
    why = np.select(reasons, [NO_ENTITY, NO_SURFACE, NO_CANDIDATE, PLACE_TAKEN], NIL_CHOSEN)
    of_gold[missed] = why[missed]
    second = covered(every_predicted, _alike(gold, gold.entities != NIL))
    over_nil = covered(every_predicted, _alike(gold, gold.entities == NIL))
    of_predicted[spurious] = np.select([second, over_nil], [SECOND, OVER_NIL], NOTHING)[spurious]
    return Verdicts(of_gold, of_predicted, partners)


def _alike(links: Links, some: Flags | None = None) -> Links:
    """Give mentions, or some of them, as if all were of one entity; the others are `NIL`."""
    chosen = np.ones(len(links.entities), np.bool_) if some is None else some
    return links._replace(entities=np.where(chosen, 0, NIL))


def count_kinds(verdicts: Verdicts) -> Floats:
    """Count the mentions of each kind, a pair once; shape (kinds,). Those of parts add up."""
    spurious = verdicts.predicted[verdicts.predicted >= SECOND]
    every = np.concatenate([verdicts.gold[verdicts.gold != NIL], spurious])
    return np.bincount(every, minlength=len(KINDS)).astype(np.float64)


def kinds_table(counts: Floats) -> pd.DataFrame:
    """Give counts by kind, and their shares of all gold and of all predicted mentions.

    Returns
    -------
    pandas.DataFrame
        ``kind``, ``title``, ``count``, ``of_gold``, ``of_predicted``: a share is NaN where the
        kind is none of that side, and 0 where that side has no mention.
    """
    numbers = np.arange(len(KINDS))
    in_gold = numbers < SECOND
    in_predicted = (numbers < NO_ENTITY) | ~in_gold
    return pd.DataFrame(
        {
            "kind": NAMES,
            "title": [kind.title for kind in KINDS],
            "count": counts.astype(np.int64),
            "of_gold": _shares(counts, in_gold),
            "of_predicted": _shares(counts, in_predicted),
        }
    )


def _shares(counts: Floats, mine: Flags) -> Floats:
    return np.where(mine, counts / max(counts[mine].sum(), 1.0), np.nan)


class Judged(NamedTuple):
    """A batch of texts, linked and compared with gold."""

    gold: Links
    predicted: Links
    candidates: Links
    verdicts: Verdicts
    scored: Scored
    decoded: Decoded


def judge(batch: pa.RecordBatch, model: LinkingModel) -> Judged:
    """Link the texts of a batch and tell what became of each mention.

    Parameters
    ----------
    batch
        ``text``, and the true mentions as of `gold.gold_links`.
    model
    """
    scored = model.score(batch.column("text"))
    decoded = model.decode(scored)
    gold = gold_links(batch, model.knowledge.entities)
    predicted = linked(scored, decoded, model.knowledge)
    candidates = candidate_links(scored, model)
    verdicts = classify(gold, predicted, candidates, model.knowledge.entities.size)
    return Judged(gold, predicted, candidates, verdicts, scored, decoded)


def count_partition(given: Iterable[tuple[pa.RecordBatch, LinkingModel]]) -> dict[str, Floats]:
    """Count a partition's mentions by kind, under the name ``kinds``."""
    total = np.zeros(len(KINDS))
    for batch, model in given:
        total += count_kinds(judge(batch, model).verdicts)
    return {"kinds": total}
