"""The trained DBA model: parameters, inference on arrays, save and load. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import expit

from corpusmill import storage
from corpusmill.alignment import instances, learning
from corpusmill.alignment.batches import (
    ID_COLUMN,
    list_column,
    matrix_column,
    posterior_columns,
    read_patterns,
)
from corpusmill.alignment.cutoffs import default_cutoffs
from corpusmill.alignment.instances import Smoothing
from corpusmill.alignment.kernels import Posterior, infer
from corpusmill.alignment.learning import Iteration, OnIteration, Parameters
from corpusmill.alignment.readout import ReadOut
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.errors import UsageError
from corpusmill.frames import record_batch
from corpusmill.types import AnyArray, Flags, Floats, Patterns, Probabilities

VERSION = 1


@dataclass(frozen=True)
class AlignmentModel:
    """A trained DBA model.

    Parameters
    ----------
    classes
        Names of the classes, in the order of every array's class axis.
    features
        Names of the features (the vocabulary), or empty where they have none.
    parameters
        a, lambda and the instance model.
    settings
        How it was trained, and how it infers.
    cutoffs : Floats, shape (C,)
        A pattern has class c where p(y_c | X) >= cutoffs[c].
    history
        The EM iterations.
    readout
        Fitted weights of the label probabilities, or None for the paper's form.
    """

    KIND: ClassVar[str] = "alignment"

    classes: tuple[str, ...]
    features: tuple[str, ...]
    parameters: Parameters
    settings: LearnerSettings
    cutoffs: Floats
    history: tuple[Iteration, ...] = field(default=())
    readout: ReadOut | None = None

    @property
    def size(self) -> int:
        """D, the number of features."""
        return len(next(iter(self.parameters.instances.arrays().values())))

    def infer(self, patterns: Patterns) -> Posterior:
        """Infer the latent variables of each pattern (section 5.3, the first task).

        Where a pattern is ``labelled`` its labels take part (instance disambiguation with
        known labels, the third task); otherwise the label term is left out.
        """
        a, lam, model = self.parameters
        loglik = model.log_likelihoods(patterns.bags)
        return infer(patterns, loglik, a, lam, learning.inference(self.settings))

    def label_probabilities(self, posterior: Posterior) -> Probabilities:
        """Give p(y_c = 1 | X) = sigmoid(lambda_c phibar_c), the second task of section 5.3.

        With a read-out it is sigmoid(w_c . phibar + b_c).

        Parameters
        ----------
        posterior : Posterior
            Inferred without labels.

        Returns
        -------
        Probabilities, shape (patterns, C)
            Each in (0, 1); a row need not sum to one.
        """
        if self.readout is not None:
            return self.readout.probabilities(posterior.mean)
        probabilities: Probabilities = expit(self.parameters.lam * posterior.mean)
        return probabilities

    def classify(self, posterior: Posterior) -> Flags:
        """Give the label sets: where `label_probabilities` reaches the cut-offs."""
        return self.label_probabilities(posterior) >= self.cutoffs

    def with_cutoffs(self, cutoffs: Floats, readout: ReadOut | None = None) -> AlignmentModel:
        """Give the same model with other cut-offs, and a read-out if there is one."""
        return replace(self, cutoffs=cutoffs, readout=readout)

    def predict_batch(self, batch: pa.RecordBatch, use_labels: bool = False) -> pa.RecordBatch:
        """Predict Arrow rows of `corpusmill.corpora.schemas.PATTERNS`.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
        use_labels : bool
            Whether the column ``labels`` is believed.

        Returns
        -------
        pyarrow.RecordBatch
            A row a pattern: ``prediction`` (names of its classes), ``probability`` (C),
            ``gamma`` (C), ``instance_probability`` (M * C, instance by instance) and
            ``instances`` (their number, with weights).

        Raises
        ------
        DataError
            A broken row, by name.
        """
        signed = self.parameters.instances.kind == instances.Gaussian.kind
        patterns = read_patterns(batch, self.classes, self.size, use_labels, signed)
        posterior = self.infer(patterns)
        chosen = self.classify(posterior)
        names = np.array(self.classes, dtype=object)[np.nonzero(chosen)[1]]
        columns = {
            "prediction": list_column(
                pa.array(names, type=pa.string()), np.concatenate([[0], chosen.sum(1).cumsum()])
            ),
            "probability": matrix_column(self.label_probabilities(posterior)),
            **posterior_columns(patterns, posterior),
        }
        return pa.RecordBatch.from_pydict(columns, schema=PREDICTIONS)

    def predict_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict pandas rows of patterns; the columns as `predict_batch`.

        Where there is a column ``labels`` that is not null, it is believed.

        Raises
        ------
        SchemaError
            DATA04: a column is missing.
        DataError
            DATA01: a column holds something else, or a row is broken.
        """
        schema = pa.schema([*PATTERN_ROWS, LABELS])
        batch = record_batch(frame, schema, optional=(ID_COLUMN, LABELS.name))
        return self.predict_batch(batch, use_labels=True).to_pandas()

    def save(self, folder: str) -> None:
        """Write the model as npz (without pickle) and JSON under a manifest."""
        smoothing = self.parameters.instances.smoothing
        arrays = {
            "alpha": self.parameters.alpha,
            "lambda": self.parameters.lam,
            "cutoffs": self.cutoffs,
            "smoothing_base": smoothing.base,
            **{
                f"instances.{key}": value
                for key, value in self.parameters.instances.arrays().items()
            },
        }
        if self.readout is not None:
            arrays["readout"] = self.readout.weights
        info = {
            "classes": list(self.classes),
            "features": list(self.features),
            "settings": self.settings.model_dump(mode="json"),
            "smoothing_mass": smoothing.mass,
            "history": [list(item) for item in self.history],
        }
        storage.save_model(folder, self.KIND, VERSION, arrays, info)

    @classmethod
    def load(cls, folder: str) -> AlignmentModel:
        """Read what `save` wrote, after its manifest has been checked.

        Raises
        ------
        ModelError
            Missing, altered, truncated, or of another kind.
        """
        return storage.restore_model(folder, cls.KIND, VERSION, cls._restored)

    @classmethod
    def _restored(cls, saved: storage.SavedModel) -> AlignmentModel:
        arrays, info = saved.arrays, saved.info
        prefix = "instances."
        own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        settings = LearnerSettings.model_validate(info["settings"])
        smoothing = Smoothing(info["smoothing_mass"], arrays["smoothing_base"])
        model = instances.restore(settings.instance_model, own, smoothing)
        return cls(
            classes=tuple(info["classes"]),
            features=tuple(info["features"]),
            parameters=Parameters(arrays["alpha"], arrays["lambda"], model),
            settings=settings,
            cutoffs=arrays["cutoffs"],
            history=tuple(Iteration(*item) for item in info["history"]),
            readout=ReadOut(arrays["readout"]) if "readout" in arrays else None,
        )


PATTERN_ROWS = pa.schema(
    [
        ("pattern_id", pa.string()),
        ("instance_offsets", pa.list_(pa.int32())),
        ("instance_weights", pa.list_(pa.float64())),
        ("feature_ids", pa.list_(pa.int32())),
        ("feature_counts", pa.list_(pa.float64())),
    ]
)

LABELS = pa.field("labels", pa.list_(pa.string()))

PREDICTIONS = pa.schema(
    [
        ("prediction", pa.list_(pa.string())),
        ("probability", pa.list_(pa.float64())),
        ("gamma", pa.list_(pa.float64())),
        ("instance_probability", pa.list_(pa.float64())),
        ("instances", pa.float64()),
    ]
)


class Resume(NamedTuple):
    """A checkpoint: the iterations that are done and the parameters behind them."""

    history: Sequence[Iteration]
    parameters: Parameters


def train(
    sum_partitions: learning.SumOverPartitions,
    classes: Sequence[str],
    features: int,
    settings: LearnerSettings,
    names: Sequence[str] = (),
    warm_start: AlignmentModel | None = None,
    on_iteration: OnIteration = lambda *_: None,
    resume: Resume | None = None,
) -> AlignmentModel:
    """Train DBA by variational EM.

    Parameters
    ----------
    sum_partitions : callable
        Sums a kernel over the partitions: `learning.sum_over` in memory, or Spark's.
    classes : sequence of str
        In the order of the labels' columns.
    features : int
        D.
    settings : LearnerSettings
    names : sequence of str
        The features' names, or none.
    warm_start : AlignmentModel
        Yesterday's model: where to begin, and what the smoothing leans on.
    on_iteration : callable
        Told each `Iteration` and its parameters.
    resume : Resume
        Iterations and parameters of a checkpoint.

    Returns
    -------
    AlignmentModel
        With `default_cutoffs` until they are chosen.

    Raises
    ------
    UsageError
        The warm start's model has another kind of instances or other nameless features.
    """
    if resume is None:
        blank = learning.blank_instances(settings, len(classes), features)
        kernel = partial(learning.start_sums, classes=len(classes), model=blank)
        start = learning.start_parameters(sum_partitions(kernel), settings)
        if warm_start is not None:
            start = _warm(warm_start, start, classes, names, settings)
        resume = Resume((), start)
    parameters, history = learning.expectation_maximisation(
        sum_partitions, resume.parameters, settings, on_iteration, resume.history
    )
    return AlignmentModel(
        tuple(classes),
        tuple(names),
        parameters,
        settings,
        default_cutoffs(parameters.lam),
        tuple(history),
    )


def _warm(
    old: AlignmentModel,
    start: Parameters,
    classes: Sequence[str],
    names: Sequence[str],
    settings: LearnerSettings,
) -> Parameters:
    kind = old.parameters.instances.kind
    if kind != settings.instance_model:
        raise UsageError("ALIGN01", old=kind, new=settings.instance_model)
    if names and old.features:
        rows = _positions(old.features, names)
    elif old.size == len(start.instances.means()):
        rows = np.arange(old.size)
    else:
        raise UsageError("ALIGN02", old=old.size, new=len(start.instances.means()))
    columns = _positions(old.classes, classes)
    return learning.warm_parameters(old.parameters, rows, columns, start, settings.warm_start_mass)


def _positions(old: Sequence[str], new: Sequence[str]) -> AnyArray:
    found = pc.index_in(pa.array(new, pa.string()), value_set=pa.array(old, pa.string()))
    return pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64)
