"""Texts that show what kinds of errors look like, cut to what stands around a mention. No Spark."""

from __future__ import annotations

import json
import unicodedata
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.evaluation.linking import NIL, Links
from corpusmill.linking.errors import Judged, judge
from corpusmill.linking.model import LinkingModel, runner_up
from corpusmill.types import AnyArray

AROUND = 120
"""Characters of a text that are shown on either side of a mention."""
LONGEST = 300
"""Characters of the mention itself that are shown."""
_SLACK = 30
CHANCE = "chance"
"""The column of integers by which texts are chosen, the least first."""


class Side(NamedTuple):
    """A gold or a predicted mention.

    Attributes
    ----------
    start, end : int
        Characters of the shown text.
    entity : str or None
        Title; None for a gold mention without an entity.
    score : float or None
        F(entity) - F(Nil), with the bias; of a gold mention where its entity was a candidate,
        the likeliest of those that overlap it.
    probability : float or None
        Of the same row.
    second : str or None
        What a predicted mention is with the next highest probability; None for Nil.
    second_probability : float or None
    """

    start: int
    end: int
    entity: str | None
    score: float | None
    probability: float | None
    second: str | None = None
    second_probability: float | None = None


class Pair(NamedTuple):
    """What gold and the linker say of one place; the kind is `NIL` for a gold mention of none."""

    kind: int
    gold: Side | None
    predicted: Side | None


class Example(NamedTuple):
    """A text, or what stands around the mention that it is an example for.

    Attributes
    ----------
    kind : int
        Of the mention.
    chance : int
        Of the text.
    text_id, text : str
    before, after : bool
        Whether the text goes on.
    pairs : list of Pair
        All mentions of the shown text, from left to right.
    focus : int
        Which of them the example is for.
    """

    kind: int
    chance: int
    text_id: str
    text: str
    before: bool
    after: bool
    pairs: list[Pair]
    focus: int

    def to_json(self) -> str:
        """Write it as JSON."""
        return json.dumps(self)

    @classmethod
    def from_json(cls, written: str) -> Example:
        """Read what `to_json` wrote."""
        example = cls(*json.loads(written))
        pairs = [
            Pair(kind, *(Side(*side) if side else None for side in both))
            for kind, *both in example.pairs
        ]
        return example._replace(pairs=pairs)


def choose_examples(batch: pa.RecordBatch, model: LinkingModel, most: int) -> list[Example]:
    """Choose texts of a batch for each kind: those of least `CHANCE`, one mention of each.

    Parameters
    ----------
    batch
        As of `judge`, with ``text_id`` and `CHANCE`.
    model
    most
        Texts a kind.

    Returns
    -------
    list of Example
        By kind, then by chance. At most ``most`` of each, none longer than
        ``LONGEST + 2 * AROUND`` characters, however many and however long the texts are.
    """
    judged = judge(batch, model)
    chance = batch.column(CHANCE).to_numpy(zero_copy_only=False)
    chosen = pick(judged, chance, most)
    if not len(chosen):
        return []
    shown = _Shown(batch, judged, model)
    return [
        shown.example(int(chance[text]), kind, text, *span) for kind, text, *span in chosen.tolist()
    ]


def pick(judged: Judged, chance: AnyArray, most: int) -> AnyArray:
    """Pick the first mention of a kind in each of the ``most`` texts of least chance.

    Returns
    -------
    int64, shape (chosen, 4)
        Kind, text, start and end, by kind and then by chance.
    """
    gold, predicted, verdicts = judged.gold, judged.predicted, judged.verdicts
    spurious = np.where(verdicts.partners < 0, verdicts.predicted, NIL)
    both = [(gold, verdicts.gold), (predicted, spurious)]
    texts = np.concatenate([_texts_of(links) for links, _ in both])
    kinds = np.concatenate([kinds for _, kinds in both])
    starts, ends = (np.concatenate([links[at] for links, _ in both]) for at in (1, 2))
    order = np.lexsort((starts, texts, chance[texts], kinds))
    order = order[kinds[order] != NIL]
    first = np.ones(len(order), np.bool_)
    first[1:] = np.diff(kinds[order]).astype(np.bool_) | np.diff(texts[order]).astype(np.bool_)
    order = order[first]
    rank = np.arange(len(order)) - np.searchsorted(kinds[order], kinds[order])
    return np.column_stack([kinds, texts, starts, ends])[order[rank < most]]


def _texts_of(links: Links) -> AnyArray:
    return np.repeat(np.arange(len(links.offsets) - 1), np.diff(links.offsets))


class _Shown:
    """What the examples of a batch are told from."""

    def __init__(self, batch: pa.RecordBatch, judged: Judged, model: LinkingModel) -> None:
        self.batch, self.judged = batch, judged
        scored = judged.scored
        mentions, rows = scored.found.mentions, judged.decoded.rows
        self.probability = model.probability(scored)
        against_nil = scored.scores - scored.scores[mentions.rows[mentions.owners]]
        self.scores = against_nil - model.biases[-1]
        self.seconds = runner_up(mentions.rows, self.probability, rows, mentions.owners[rows])
        self.entities = mentions.entities(model.knowledge.lexicon)
        self.names = model.knowledge.entities.names
        self.titles = batch.column("mention_entities").flatten()
        self.candidate_rows = np.flatnonzero(mentions.candidates != NIL)
        partners = judged.verdicts.partners
        self.answers = np.full(len(judged.gold.entities), NIL, np.int64)
        self.answers[partners[partners >= 0]] = np.flatnonzero(partners >= 0)

    def example(self, chance: int, kind: int, text: int, start: int, end: int) -> Example:
        string = self.batch.column("text")[text].as_py()
        left, right = window(string, start, end)
        pairs = self._pairs(text, left, right)
        focus = next(
            number
            for number, pair in enumerate(pairs)
            if pair.kind == kind
            and any(side and side[:2] == (start, end) for side in (pair.gold, pair.predicted))
        )
        text_id = self.batch.column("text_id")[text].as_py()
        cut = [
            Pair(kind, *(side and _moved(side, left, right) for side in both))
            for kind, *both in pairs
        ]
        shown = string[left:right]
        return Example(kind, chance, text_id, shown, left > 0, right < len(string), cut, focus)

    def _pairs(self, text: int, left: int, right: int) -> list[Pair]:
        judged, verdicts = self.judged, self.judged.verdicts
        golds = _inside(judged.gold, text, left, right).tolist()
        answers = {int(self.answers[n]) for n in golds} - {NIL}
        pairs = []
        for n in sorted(answers.union(_inside(judged.predicted, text, left, right).tolist())):
            partner = int(verdicts.partners[n])
            gold = self._gold(partner, text) if partner >= 0 else None
            pairs.append(Pair(int(verdicts.predicted[n]), gold, self._predicted(n)))
        for n in golds:
            if self.answers[n] == NIL:
                pairs.append(Pair(int(verdicts.gold[n]), self._gold(n, text), None))
        return sorted(pairs, key=lambda pair: min(side.start for side in pair[1:] if side))

    def _predicted(self, n: int) -> Side:
        links, row = self.judged.predicted, self.judged.decoded.rows[n]
        second = self.seconds[n]
        other = self.entities[second]
        return Side(
            int(links.starts[n]),
            int(links.ends[n]),
            self.names[links.entities[n]].as_py(),
            float(self.scores[row]),
            float(self.probability[row]),
            None if other == NIL else self.names[other].as_py(),
            float(self.probability[second]),
        )

    def _gold(self, n: int, text: int) -> Side:
        links, candidates = self.judged.gold, self.judged.candidates
        start, end = int(links.starts[n]), int(links.ends[n])
        near = _inside(candidates, text, start, end)
        rows = self.candidate_rows[near[candidates.entities[near] == links.entities[n]]]
        best = rows[np.argmax(self.probability[rows])] if len(rows) else None
        return Side(
            start,
            end,
            self.titles[n].as_py(),
            None if best is None else float(self.scores[best]),
            None if best is None else float(self.probability[best]),
        )


def _inside(links: Links, text: int, left: int, right: int) -> AnyArray:
    """Give the mentions of a text that overlap a range of it."""
    begin, end = links.offsets[text : text + 2]
    overlaps = (links.starts[begin:end] < right) & (links.ends[begin:end] > left)
    return begin + np.flatnonzero(overlaps)


def _moved(side: Side, left: int, right: int) -> Side:
    start, end = (min(max(place, left), right) - left for place in side[:2])
    return side._replace(start=start, end=end)


def window(text: str, start: int, end: int) -> tuple[int, int]:
    """Choose what is shown around a mention: at a blank if one is near, never inside a character.

    Returns
    -------
    begin, end : int
        A range of at most ``LONGEST + 2 * AROUND`` characters that holds the mention's first
        `LONGEST` ones.
    """
    left, right = max(start - AROUND, 0), min(end, start + LONGEST) + AROUND
    if left:
        blank = text.find(" ", left, left + _SLACK)
        left = blank + 1 if blank >= 0 else _whole(text, left)
    if right < len(text):
        blank = text.rfind(" ", right - _SLACK, right)
        right = blank if blank >= 0 else _whole(text, right - _SLACK)
    return left, min(right, len(text))


def _whole(text: str, place: int) -> int:
    """Give the next place that does not part a letter from its marks, or a joined emoji."""
    for at in range(place, place + _SLACK):
        joined = unicodedata.category(text[at]) in ("Mn", "Mc", "Me", "Sk", "Cf")
        if not joined and text[at - 1] != "\u200d":
            return at
    return place + _SLACK
