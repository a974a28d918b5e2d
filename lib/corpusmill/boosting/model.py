"""The boosted model on arrays: trees over the features of factors, and a structure. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from corpusmill import storage
from corpusmill.boosting.batches import FACTOR_ROWS, Examples, read_examples
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.boosting.trees import read_trees, scores_of
from corpusmill.frames import record_batch
from corpusmill.types import AnyArray, Flags, Floats, Offsets

VERSION = 1
TREES = "trees.txt"
OPTIONAL = ("example_id", "starts", "ends", "previous", "labels", "gold")

PREDICTIONS = pa.schema(
    [
        ("prediction", pa.list_(pa.int32())),
        ("scores", pa.list_(pa.float64())),
        ("probability", pa.list_(pa.float64())),
    ]
)


@dataclass(frozen=True)
class BoostingModel:
    """A trained S-MART model.

    Parameters
    ----------
    settings : LearnerSettings
    trees : str
        F in LightGBM's text format.
    names : tuple of str
        Of the features; their number is the width of a row.
    """

    KIND: ClassVar[str] = "boosting"

    settings: LearnerSettings
    trees: str
    names: tuple[str, ...]

    def scores(self, features: Floats) -> Floats:
        """Compute F of each row.

        Parameters
        ----------
        features : Floats, shape (rows, len(names))

        Returns
        -------
        Floats, shape (rows,)
            Without ``nil_bias``.
        """
        return scores_of(self.trees, features)

    def decode(self, examples: Examples, scores: Floats) -> tuple[Flags, Floats]:
        """Find the best outputs and the probabilities of rows, with ``nil_bias``.

        Returns
        -------
        chosen : Flags, shape (rows,)
        probability : Floats, shape (rows,)
            P(row is in the output) under exp(sum of F) / Z; for a model of the hinge loss as if
            its scores were logarithms.
        """
        biased = scores.copy()
        biased[examples.structure.bases] += self.settings.nil_bias
        return examples.structure.best(biased), examples.structure.marginals(biased)[0]

    def predict_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Predict rows of `FACTOR_ROWS`: the best output, F and probabilities of its rows.

        ``prediction`` holds rows of the example as ``gold`` does: of spans, those that are not Nil.

        Raises
        ------
        DataError
            A broken row, by name.
        """
        given = batch.select([name for name in batch.schema.names if name != "gold"])
        examples = read_examples(given, self.settings.structure, len(self.names))
        scores = self.scores(examples.features)
        chosen, probability = self.decode(examples, scores)
        chosen[examples.structure.bases] = False
        bounds = examples.factors.example_rows()
        rows = np.flatnonzero(chosen)
        ends = np.searchsorted(rows, bounds)
        first = np.repeat(bounds[:-1], np.diff(ends))
        columns = [
            _lists(ends, (rows - first).astype(np.int32)),
            _lists(bounds, scores),
            _lists(bounds, probability),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=PREDICTIONS)

    def predict_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict pandas rows of factors; the columns as `predict_batch`.

        Raises
        ------
        SchemaError
            DATA04: a column is missing.
        DataError
            DATA01: a column holds something else, or a row is broken.
        """
        return self.predict_batch(record_batch(frame, FACTOR_ROWS, OPTIONAL)).to_pandas()

    def save(self, folder: str) -> None:
        """Write the trees in LightGBM's text format and the rest as JSON, under a manifest."""
        info = {"names": list(self.names), "settings": self.settings.model_dump(mode="json")}
        storage.save_model(folder, self.KIND, VERSION, {}, info, {TREES: self.trees})

    @classmethod
    def load(cls, folder: str) -> BoostingModel:
        """Read what `save` wrote, after its manifest has been checked.

        Raises
        ------
        ModelError
            Missing, altered, truncated, or of another kind.
        """
        return storage.restore_model(folder, cls.KIND, VERSION, cls._restored)

    @classmethod
    def _restored(cls, saved: storage.SavedModel) -> BoostingModel:
        settings = LearnerSettings.model_validate(saved.info["settings"])
        trees, names = saved.texts[TREES], tuple(saved.info["names"])
        if read_trees(trees).width != len(names):
            raise ValueError(f"the trees are not of {len(names)} features")
        return cls(settings, trees, names)


def feature_names(names: Sequence[str], width: int) -> tuple[str, ...]:
    """Give names to features that have none; any characters are allowed."""
    return tuple(names) or tuple(f"f{number}" for number in range(width))


def _lists(offsets: Offsets, values: AnyArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values))
