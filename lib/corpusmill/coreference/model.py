"""The resolver on arrays: mentions, features, weights, search. No Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill import storage
from corpusmill.coreference.attributes import LEXICAL
from corpusmill.coreference.beam import beam_search
from corpusmill.coreference.clusters import clusters_of_tree, join_given, kept_mentions
from corpusmill.coreference.gender import GenderTable
from corpusmill.coreference.greedy import best_first
from corpusmill.coreference.learned import prepare_batch
from corpusmill.coreference.learning import OnPass, dense, learn_batch, sparse
from corpusmill.coreference.nonreferential import BITS, FOLDS, NOTHING_REMOVED, Nonreferential
from corpusmill.coreference.preparation import Preparation, Prepared, Vocabulary
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.coreference.templates import parse_templates
from corpusmill.errors import DataError, UsageError
from corpusmill.frames import record_batch
from corpusmill.types import AnyArray, Floats

VERSION = 1
_INTS, _STRINGS = pa.list_(pa.int32()), pa.list_(pa.string())
DOCUMENT_ROWS = pa.schema(
    [
        ("document_id", pa.string()),
        ("part", pa.int32()),
        ("genre", pa.string()),
        *((name, _STRINGS) for name in ("words", "pos", "lemmas", "speakers")),
        ("sentence_offsets", _INTS),
        ("constituent_labels", _STRINGS),
        *((f"constituent_{name}", _INTS) for name in ("starts", "ends", "parents")),
        ("heads", _INTS),
        ("relations", _STRINGS),
        ("entity_starts", _INTS),
        ("entity_ends", _INTS),
        ("entity_labels", _STRINGS),
        *((f"mention_{name}", _INTS) for name in ("starts", "ends", "clusters")),
    ]
)
"""What of a document is read."""
GOLD = ("mention_starts", "mention_ends", "mention_clusters")
OPTIONAL = ("part", *GOLD)
"""Columns of `DOCUMENT_ROWS` that may be missing."""
PREDICTIONS = pa.schema(
    [
        ("predicted_starts", _INTS),
        ("predicted_ends", _INTS),
        ("predicted_clusters", _INTS),
        ("predicted_antecedents", _INTS),
        ("predicted_scores", pa.list_(pa.float64())),
    ]
)
"""The mentions of a document from left to right: tokens of the document (ends exclusive), clusters
numbered by their first mentions, the antecedent's number in this list, -1 for the first of a
cluster, and the score of the arc from it."""


@dataclass(frozen=True)
class CoreferenceModel:
    """A trained resolver.

    Parameters
    ----------
    preparation : Preparation
    weights : float64, shape (2^bits,)
        Averaged.
    """

    KIND: ClassVar[str] = "coreference"

    preparation: Preparation
    weights: Floats

    @property
    def settings(self) -> LearnerSettings:
        """The settings."""
        return self.preparation.settings

    @classmethod
    def fit(
        cls,
        batch: pa.RecordBatch,
        settings: LearnerSettings,
        seed: int = 13,
        on_pass: OnPass | None = None,
    ) -> CoreferenceModel:
        """Train on documents in memory, in one partition.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            `DOCUMENT_ROWS`; documents whose clusters are not known are passed over.
        settings : LearnerSettings
            ``partitions`` is not looked at.
        seed : int
            Of the order of documents.
        on_pass : callable, optional
            Called after each pass.

        Returns
        -------
        CoreferenceModel

        Raises
        ------
        DataError
            DATA03: of no document clusters are known; DATA01: a broken document.
        UsageError
            The settings' files cannot be read.
        """
        known = batch.filter(batch.column("mention_clusters").is_valid())
        if not known.num_rows:
            hint = "there must be a document whose coreference is known"
            raise DataError("DATA03", source="column 'mention_clusters'", hint=hint)
        preparation = prepare_batch(known, settings)
        return cls(preparation, learn_batch(known, preparation, seed, on_pass).average())

    def resolve(self, prepared: Prepared, document: int) -> tuple[AnyArray, Floats]:
        """Find the antecedents of a document's mentions.

        Parameters
        ----------
        prepared : Prepared
        document : int

        Returns
        -------
        antecedents : int64, shape (mentions of the document,)
            Mentions of the document, -1 for the root.
        scores : float64, shape (mentions of the document,)
        """
        settings, arcs = self.settings, prepared.arcs
        shift, window = 64 - settings.bits, settings.window
        begin, end = arcs.offsets[document : document + 2]
        known = prepared.mentions.clusters
        given = known if settings.start_clusters else np.full(len(known), -1)
        greedy = settings.regime == "greedy"
        if greedy and not settings.start_clusters:
            tree, scores, _ = best_first(arcs, document, self.weights, shift, window, given)
        else:
            # With local templates one partial tree is the greedy one.
            beam = 1 if greedy else settings.beam
            tree, scores = beam_search(arcs, document, self.weights, shift, window, beam, given)
        tree = np.where(tree < 0, -1, tree - begin)
        return join_given(tree, given[begin:end]), scores

    def predict_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Resolve documents.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            `DOCUMENT_ROWS`.

        Returns
        -------
        pa.RecordBatch
            `PREDICTIONS`.
        """
        rows = [
            self._row(piece, document)
            for piece in self.preparation.prepare(batch)
            for document in range(piece.documents.size)
        ]
        columns = [
            pa.array([row[number] for row in rows], field.type)
            for number, field in enumerate(PREDICTIONS)
        ]
        return pa.RecordBatch.from_arrays(columns, schema=PREDICTIONS)

    def _row(self, piece: Prepared, document: int) -> tuple[AnyArray, ...]:
        antecedents, scores = self.resolve(piece, document)
        begin, end = piece.mentions.offsets[document : document + 2]
        token = piece.documents.tokens.offsets[document]
        starts, ends = piece.mentions.starts[begin:end], piece.mentions.ends[begin:end]
        clusters = clusters_of_tree(antecedents)
        keep = kept_mentions(clusters) | self.settings.singletons
        if self.settings.start_clusters:
            keep |= piece.mentions.clusters[begin:end] >= 0
        places = np.append(np.cumsum(keep) - 1, -1)
        _, numbers = np.unique(clusters[keep], return_inverse=True)
        return (
            starts[keep] - token,
            ends[keep] - token,
            numbers,
            places[antecedents[keep]],
            scores[keep],
        )

    def predict_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Resolve pandas rows of `DOCUMENT_ROWS`; the columns as `predict_batch`.

        Raises
        ------
        SchemaError
            DATA04: a column is missing.
        DataError
            DATA01: a column holds something else.
        """
        return self.predict_batch(record_batch(frame, DOCUMENT_ROWS, OPTIONAL)).to_pandas()

    def save(self, folder: str) -> None:
        """Write arrays as npz, templates as text and settings as JSON, with a manifest."""
        parts = self.preparation
        places, values = sparse(self.weights)
        arrays = {"weight_places": places, "weight_values": values}
        arrays |= {f"gender_{name}": value for name, value in parts.genders._asdict().items()}
        arrays["nonreferential"] = parts.nonreferential.coefficients
        if parts.vocabulary is not None:
            arrays |= {f"frequent_{name}": v for name, v in parts.vocabulary._asdict().items()}
        info = {"settings": parts.settings.model_dump(mode="json")}
        texts = {"templates.txt": "\n".join(parts.templates)}
        storage.save_model(folder, self.KIND, VERSION, arrays, info, texts)

    @classmethod
    def load(cls, folder: str) -> CoreferenceModel:
        """Read what `save` wrote, after its manifest has been checked.

        Raises
        ------
        ModelError
            Missing, altered, truncated, or of another kind.
        """
        return storage.restore_model(folder, cls.KIND, VERSION, cls._restored)

    @classmethod
    def _restored(cls, saved: storage.SavedModel) -> CoreferenceModel:
        arrays = saved.arrays
        settings = LearnerSettings.model_validate(saved.info["settings"])
        lines = tuple(saved.texts["templates.txt"].split("\n"))
        _refuse_misfits(settings, lines, arrays)
        places, values = arrays["weight_places"], arrays["weight_values"]
        vocabulary = None
        if "frequent_values" in arrays:
            vocabulary = Vocabulary(*(arrays[f"frequent_{name}"] for name in Vocabulary._fields))
        preparation = Preparation(
            settings,
            lines,
            GenderTable(*(arrays[f"gender_{name}"] for name in GenderTable._fields)),
            Nonreferential(arrays["nonreferential"]),
            vocabulary,
        )
        return cls(preparation, dense(places, values.astype(np.float64), settings.bits))


def _refuse_misfits(
    settings: LearnerSettings, lines: tuple[str, ...], arrays: dict[str, AnyArray]
) -> None:
    """Refuse what search would index or add wrongly; ValueError, KeyError."""
    _refuse_templates(settings, lines)
    _refuse_weights(settings, arrays)
    keys, genders, numbers = (arrays[f"gender_{name}"] for name in GenderTable._fields)
    kinds = [each.dtype.str for each in (keys, genders, numbers)]
    shapes = {keys.shape, genders.shape, numbers.shape}
    if kinds != ["<u8", "|i1", "|i1"] or shapes != {(keys.size,)}:
        raise ValueError("phrases and their genders do not go together")
    if "frequent_values" in arrays:
        offsets, known = arrays["frequent_offsets"], arrays["frequent_values"]
        sound = known.dtype == np.uint64 and known.ndim == 1 and offsets.dtype.kind == "i"
        if not sound or offsets.shape != (len(LEXICAL) + 1,):
            raise ValueError("frequent words and their offsets do not go together")


def _refuse_templates(settings: LearnerSettings, lines: tuple[str, ...]) -> None:
    try:
        templates = parse_templates(list(lines), "templates.txt")
    except UsageError as error:
        raise ValueError(str(error)) from error
    if not templates:
        raise ValueError("templates.txt has no template")
    if settings.regime == "greedy" and not all(each.local for each in templates):
        raise ValueError("a non-local template, and regime greedy")


def _refuse_weights(settings: LearnerSettings, arrays: dict[str, AnyArray]) -> None:
    places, values = arrays["weight_places"], arrays["weight_values"]
    if places.dtype.kind != "i" or places.shape != values.shape or places.ndim != 1:
        raise ValueError("weights and their places do not go together")
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) < 1 << settings.bits:
        raise ValueError("a weight has a place beyond 2^bits")
    pronouns = arrays["nonreferential"]
    for name, numbers in (("weight_values", values), ("nonreferential", pronouns)):
        if numbers.dtype.kind != "f" or not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be finite numbers")
    if pronouns.shape not in (NOTHING_REMOVED.coefficients.shape, (FOLDS + 1, (1 << BITS) + 1)):
        raise ValueError("nonreferential has another shape")
