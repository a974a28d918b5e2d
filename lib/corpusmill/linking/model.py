"""The linker on arrays: knowledge, boosted scores in one or two stages, decoding. No Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill import storage
from corpusmill.boosting.structures import Factors, Spans
from corpusmill.boosting.trees import read_trees, scores_of
from corpusmill.evaluation.linking import NIL
from corpusmill.frames import record_batch, refuse_rows, text_pieces
from corpusmill.linking.coherence import FEATURE_NAMES as COHERENCE_NAMES
from corpusmill.linking.coherence import coherence
from corpusmill.linking.factors import Found, candidates_of
from corpusmill.linking.features import FEATURE_NAMES
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.settings import LearnerSettings
from corpusmill.types import AnyArray, Flags, Floats, Offsets

VERSION = 1
STAGES = ("first.txt", "second.txt")
TEXT_ROWS = pa.schema([("text", pa.string())])
_INTS, _DOUBLES, _STRINGS = (pa.list_(kind) for kind in (pa.int32(), pa.float64(), pa.string()))
PREDICTIONS = pa.schema(
    [
        ("mention_starts", _INTS),
        ("mention_ends", _INTS),
        ("mention_entities", _STRINGS),
        ("mention_scores", _DOUBLES),
        ("mention_probabilities", _DOUBLES),
        ("runner_up_entities", _STRINGS),
        ("runner_up_probabilities", _DOUBLES),
    ]
)


PIECE_CHARACTERS = 50_000
"""Texts are linked so many characters at a time: features take about a kilobyte a character."""
_NOTHING = pa.RecordBatch.from_pylist([], schema=PREDICTIONS)


class Scored(NamedTuple):
    """Texts with their candidates and scores.

    Attributes
    ----------
    found : Found
        Candidates and features of the first stage.
    structure : Spans
        Over the candidates of all texts.
    scores : Floats, shape (rows,)
        F of the last stage, without bias.
    """

    found: Found
    structure: Spans
    scores: Floats


class Decoded(NamedTuple):
    """The mentions of a batch of texts.

    Attributes
    ----------
    offsets : Offsets, shape (texts + 1,)
        Text n has the mentions ``offsets[n]:offsets[n + 1]``, from left to right.
    rows : int64, shape (mentions,)
        The row of each.
    """

    offsets: Offsets
    rows: AnyArray


def spans_of(found: Found) -> Spans:
    """Give the structure over the mention candidates of texts."""
    mentions = found.mentions
    nothing = np.zeros(len(mentions.candidates), np.int64)
    starts, ends = found.places()
    return Spans(Factors(mentions.texts, mentions.rows, starts, ends, nothing - 1, nothing))


@dataclass(frozen=True)
class LinkingModel:
    """A trained linker.

    Parameters
    ----------
    settings : LearnerSettings
    knowledge : Knowledge
    trees : tuple of str
        F of each stage in LightGBM's text format, one or two.
    biases : tuple of float
        What is added to the score of Nil, a number a stage (b of the paper).
    """

    KIND: ClassVar[str] = "linking"

    settings: LearnerSettings
    knowledge: Knowledge
    trees: tuple[str, ...]
    biases: tuple[float, ...]

    def first_stage(self) -> LinkingModel:
        """Give the model without its second stage."""
        return LinkingModel(self.settings, self.knowledge, self.trees[:1], self.biases[:1])

    def score(self, texts: pa.Array) -> Scored:
        """Find the candidates of texts, strings or null, and compute F of their rows."""
        found = candidates_of(texts, self.knowledge, self.settings.candidates)
        first = self.scored_by(found, scores_of(self.trees[0], found.features))
        if len(self.trees) == 1:
            return first
        further = coherence(found.mentions, chosen(first, self.biases[0]), self.knowledge)
        return first._replace(scores=scores_of(self.trees[1], np.hstack([found.features, further])))

    def scored_by(self, found: Found, scores: Floats) -> Scored:
        """Give candidates with scores of any kind, to be decoded."""
        return Scored(found, spans_of(found), scores)

    def decode(self, scored: Scored, bias: float | None = None) -> Decoded:
        """Find the best mentions; ``bias`` is by default that of the last stage."""
        rows = np.flatnonzero(chosen(scored, self.biases[-1] if bias is None else bias))
        offsets = np.searchsorted(rows, scored.structure.factors.example_rows())
        # Candidates stand by place, and the output has no two that overlap.
        return Decoded(offsets, rows)

    def probability(self, scored: Scored) -> Floats:
        """Give P(row is in the output) of all candidates, with the bias of the last stage."""
        structure = scored.structure
        return structure.marginals(_biased(structure, scored.scores, self.biases[-1]))[0]

    def predict_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Link the texts of the column ``text``.

        Returns
        -------
        pa.RecordBatch
            `PREDICTIONS`: for each text its mentions from left to right, in characters of the
            text, with the entity's title, F(entity) - F(Nil) with the bias, the probability, and
            what else the mention most probably is: another entity, or null for none.

        Raises
        ------
        DataError
            DATA01: a text is null.
        """
        refuse_null(batch)
        pieces = text_pieces(batch.select(["text"]), "text", PIECE_CHARACTERS)
        found = pa.Table.from_batches([self._predicted(piece["text"]) for piece in pieces])
        return found.combine_chunks().to_batches()[0] if len(found) else _NOTHING

    def _predicted(self, texts: pa.Array) -> pa.RecordBatch:
        scored = self.score(texts)
        decoded, probability = self.decode(scored), self.probability(scored)
        mentions, rows = scored.found.mentions, decoded.rows
        owner = mentions.owners[rows]
        nil = mentions.rows[owner]
        begins, ends = scored.found.spans(rows)
        entities = mentions.entities(self.knowledge.lexicon)
        second = runner_up(mentions.rows, probability, rows, owner)
        scores = scored.scores[rows] - scored.scores[nil] - self.biases[-1]
        names = self.knowledge.entities.names
        columns = [
            begins.astype(np.int32),
            ends.astype(np.int32),
            names.take(pa.array(entities[rows])),
            scores,
            probability[rows],
            names.take(pa.array(entities[second], mask=entities[second] == NIL)),
            probability[second],
        ]
        bounds = pa.array(decoded.offsets.astype(np.int32))
        arrays = [
            pa.ListArray.from_arrays(bounds, pa.array(column)).cast(field.type)
            for column, field in zip(columns, PREDICTIONS, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=PREDICTIONS)

    def predict_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Link pandas rows with a column ``text``; the columns as `predict_batch`.

        Raises
        ------
        SchemaError
            DATA04: the column is missing.
        DataError
            DATA01: it holds something else than texts.
        """
        return self.predict_batch(record_batch(frame, TEXT_ROWS)).to_pandas()

    def save(self, folder: str) -> None:
        """Write knowledge as npz, trees as LightGBM's text and settings as JSON, with manifest."""
        info = {
            "settings": self.settings.model_dump(mode="json"), "biases": list(self.biases)
        }  # fmt: skip
        texts = dict(zip(STAGES, self.trees, strict=False))
        storage.save_model(folder, self.KIND, VERSION, self.knowledge.arrays(), info, texts)

    @classmethod
    def load(cls, folder: str) -> LinkingModel:
        """Read what `save` wrote, after its manifest has been checked.

        Raises
        ------
        ModelError
            Missing, altered, truncated, or of another kind.
        """
        return storage.restore_model(folder, cls.KIND, VERSION, cls._restored)

    @classmethod
    def _restored(cls, saved: storage.SavedModel) -> LinkingModel:
        settings = LearnerSettings.model_validate(saved.info["settings"])
        biases = tuple(float(bias) for bias in saved.info["biases"])
        trees = tuple(saved.texts[name] for name in STAGES[: len(biases)])
        widths = [len(FEATURE_NAMES), len(FEATURE_NAMES) + len(COHERENCE_NAMES)][: len(trees)]
        if not biases or [read_trees(text).width for text in trees] != widths:
            raise ValueError("the trees of a stage are not of its features, or there are none")
        return cls(settings, Knowledge.of_arrays(saved.arrays), trees, biases)


def chosen(scored: Scored, bias: float) -> Flags:
    """Give the rows of the best output, Nil left out, if ``bias`` is added to the score of Nil."""
    found = scored.structure.best(_biased(scored.structure, scored.scores, bias))
    found[scored.structure.bases] = False
    return found


def _biased(structure: Spans, scores: Floats, bias: float) -> Floats:
    biased = scores.copy()
    biased[structure.bases] += bias
    return biased


def refuse_null(batch: pa.RecordBatch) -> None:
    """Name the first text that is null, if there is one.

    Raises
    ------
    DataError
        DATA01.
    """
    null = batch.column("text").is_null().to_numpy(zero_copy_only=False)
    refuse_rows(batch, null, "the text must not be null", "text_id", "text")


def runner_up(bounds: Offsets, probability: Floats, rows: AnyArray, owner: AnyArray) -> AnyArray:
    """Give for each chosen row the likeliest other row of its mention; O(rows of all)."""
    others = probability.copy()
    others[rows] = -1.0
    factor = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    order = np.lexsort((-others, factor))
    return order[bounds[:-1]][owner]
