"""DBA as a pyspark.ml estimator, and training over the partitions of a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import keyword_only
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasSeed
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from corpusmill import splits
from corpusmill.alignment import cutoffs, learning, readout
from corpusmill.alignment.batches import matrix_column, read_patterns
from corpusmill.alignment.instances import Gaussian, Sums
from corpusmill.alignment.learning import OnIteration
from corpusmill.alignment.model import AlignmentModel, Resume, train
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.corpora.schemas import DOUBLES, PATTERNS, STRINGS
from corpusmill.errors import DataError, UsageError
from corpusmill.ml import (
    Saved,
    checked_columns,
    settings_defaults,
    settings_of,
    with_params_of,
    with_settings,
)
from corpusmill.types import Flags, Floats, Patterns

MAX_CLASSES = 10_000
METRICS = ("microF1", "hammingAccuracy")

OUTPUTS = T.StructType(
    [
        T.StructField("prediction", STRINGS),
        T.StructField("probability", DOUBLES),
        T.StructField("gamma", DOUBLES),
        T.StructField("instance_probability", DOUBLES),
        T.StructField("instances", T.DoubleType()),
    ]
)
"""The columns of `AlignmentModel.predict_batch`."""


def _column(name: str, doc: str) -> Param[str]:
    return Param(Params._dummy(), name, doc, TypeConverters.toString)


@with_settings(LearnerSettings)
class AlignmentParams(HasSeed):
    """Params of the estimator and its model; the learner's are those of `LearnerSettings`."""

    patternIdCol = _column("patternIdCol", "the pattern's name, for messages and folds")
    labelsCol = _column("labelsCol", "its classes: array<string>, null where not known")
    instanceOffsetsCol = _column("instanceOffsetsCol", "where each instance begins and ends")
    instanceWeightsCol = _column("instanceWeightsCol", "how often each instance occurs")
    featureIdsCol = _column("featureIdsCol", "the instances' features")
    featureCountsCol = _column("featureCountsCol", "how often each feature occurs")
    predictionCol = _column("predictionCol", "output: the predicted classes")
    probabilityCol = _column("probabilityCol", "output: p(y_c = 1 | X), a number a class")
    gammaCol = _column("gammaCol", "output: gamma, a number a class")
    instanceProbabilityCol = _column(
        "instanceProbabilityCol", "output: phi, a number an instance and class"
    )
    instancesCol = _column("instancesCol", "output: the number of instances")
    errorCol = _column("errorCol", "output: why a row could not be predicted, else null")
    useLabels: Param[bool] = Param(
        Params._dummy(),
        "useLabels",
        "whether a prediction believes labelsCol (disambiguation with known labels)",
        TypeConverters.toBoolean,
    )

    def _set_all_defaults(self) -> None:
        names = {
            f"{camel}Col": name
            for camel, name in [
                ("patternId", "pattern_id"),
                ("labels", "labels"),
                ("instanceOffsets", "instance_offsets"),
                ("instanceWeights", "instance_weights"),
                ("featureIds", "feature_ids"),
                ("featureCounts", "feature_counts"),
                ("prediction", "prediction"),
                ("probability", "probability"),
                ("gamma", "gamma"),
                ("instanceProbability", "instance_probability"),
                ("instances", "instances"),
                ("error", "alignment_error"),
            ]
        }
        self._setDefault(seed=13, useLabels=False, **names, **settings_defaults(LearnerSettings))

    def settings(self) -> LearnerSettings:
        """Return the learner's settings."""
        return settings_of(self, LearnerSettings)

    def _inputs(self, df: DataFrame) -> list[Column]:
        columns = {
            "pattern_id": self.getOrDefault(self.patternIdCol),
            "labels": self.getOrDefault(self.labelsCol),
            "instance_offsets": self.getOrDefault(self.instanceOffsetsCol),
            "instance_weights": self.getOrDefault(self.instanceWeightsCol),
            "feature_ids": self.getOrDefault(self.featureIdsCol),
            "feature_counts": self.getOrDefault(self.featureCountsCol),
        }
        return checked_columns(df, columns, PATTERNS, frozenset({"labels"}))


class DirichletBernoulliAlignment(
    Estimator["DirichletBernoulliAlignmentModel"], AlignmentParams, Saved
):
    """Dirichlet-Bernoulli Alignment for patterns of instances with several labels.

    The input columns are those of `corpusmill.corpora.schemas.PATTERNS`, under any names.
    ``fit`` runs variational EM (`corpusmill.alignment.kernels` has the formulas); the result
    depends on the partitioning only by the rounding of sums.

    Parameters
    ----------
    classes : list of str
        Classes in order; by default those found in ``labelsCol``, sorted.
    vocabulary : list of str
        Names of the features; by default they have none, and D is the largest id plus one.
    warmStart : AlignmentModel
        An older model to begin with.
    **kwargs
        Any Param.

    Examples
    --------
    >>> dba = DirichletBernoulliAlignment(labelSparsity=5.0, maxIter=30)
    >>> dba.getOrDefault("maxIter")
    30
    """

    classes: Param[list[str]] = Param(
        Params._dummy(), "classes", "the classes in order", TypeConverters.toListString
    )
    vocabulary: Param[list[str]] = Param(
        Params._dummy(), "vocabulary", "names of the features", TypeConverters.toListString
    )
    warmStartPath: Param[str] = Param(
        Params._dummy(), "warmStartPath", "a model folder to begin with", TypeConverters.toString
    )

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._set_all_defaults()
        self._setDefault(classes=[], vocabulary=[], warmStartPath="")
        self._set(**kwargs)

    def _fit(self, dataset: DataFrame) -> DirichletBernoulliAlignmentModel:
        rows = dataset.select(*self._inputs(dataset)).persist()
        try:
            path = self.getOrDefault(self.warmStartPath)
            model = fit_patterns(
                rows,
                self.settings(),
                classes=list(self.getOrDefault("classes")),
                names=list(self.getOrDefault("vocabulary")),
                seed=self.getOrDefault(self.seed),
                warm_start=AlignmentModel.load(path) if path else None,
            )
        finally:
            rows.unpersist()
        return with_params_of(self, DirichletBernoulliAlignmentModel(model), AlignmentParams)


class DirichletBernoulliAlignmentModel(Model, AlignmentParams, Saved):
    """A trained DBA; ``transform`` keeps all columns and appends the outputs.

    Parameters
    ----------
    model : AlignmentModel
        The model on arrays.
    """

    array_model = AlignmentModel

    def __init__(self, model: AlignmentModel) -> None:
        super().__init__()
        self._set_all_defaults()
        self.model = model

    def _transform(self, dataset: DataFrame) -> DataFrame:
        kernel = partial(
            predict_rows, model=self.model, use_labels=self.getOrDefault(self.useLabels)
        )
        names = {
            "prediction": self.getOrDefault(self.predictionCol),
            "probability": self.getOrDefault(self.probabilityCol),
            "gamma": self.getOrDefault(self.gammaCol),
            "instance_probability": self.getOrDefault(self.instanceProbabilityCol),
            "instances": self.getOrDefault(self.instancesCol),
            splits.ERROR: self.getOrDefault(self.errorCol),
        }
        return splits.append_columns(dataset, self._inputs(dataset), kernel, OUTPUTS, names)


def predict_rows(batch: pa.RecordBatch, model: AlignmentModel, use_labels: bool) -> pa.RecordBatch:
    """Predict a batch; the kernel of ``transform``."""
    return model.predict_batch(batch, use_labels)


def fit_patterns(
    rows: DataFrame,
    settings: LearnerSettings,
    classes: Sequence[str] = (),
    names: Sequence[str] = (),
    seed: int = 13,
    warm_start: AlignmentModel | None = None,
    on_iteration: OnIteration = lambda *_: None,
    resume: Resume | None = None,
) -> AlignmentModel:
    """Train DBA on the rows of a DataFrame, whose partitions are the splits.

    Parameters
    ----------
    rows : DataFrame
        Of `corpusmill.corpora.schemas.PATTERNS`; cached by the caller.
    settings : LearnerSettings
        With ``cutoff_folds`` > 1, that many further models choose the cut-offs.
    classes, names : sequence of str
        Classes and vocabulary; by default what the rows hold.
    seed : int
        Of the folds.
    warm_start, on_iteration, resume
        As `corpusmill.alignment.model.train`.

    Returns
    -------
    AlignmentModel
        The same for any number of partitions, up to the rounding of sums.

    Raises
    ------
    DataError
        No labelled pattern, or a broken row.
    """
    classes = list(classes) or classes_of(rows)
    features = len(names) or _features_of(rows)
    fit = partial(train, classes=classes, features=features, settings=settings, names=names)
    signed = settings.instance_model == Gaussian.kind
    read = partial(read_patterns, classes=classes, features=features, signed=signed)
    count = splits.count_partitions(rows)
    model = fit(
        _summing(rows, read, count),
        warm_start=warm_start,
        on_iteration=on_iteration,
        resume=resume,
    )
    if settings.cutoff_folds < 2:
        return model
    again = partial(fit, warm_start=warm_start)
    held_out = [_held_out(rows, again, read, model, fold, seed, count) for fold in _folds(model)]
    scored = reduce(DataFrame.union, held_out).persist()
    try:
        return _with_decisions(model, scored)
    finally:
        scored.unpersist()


_HELD_OUT = T.StructType(
    [
        T.StructField("mean", DOUBLES),
        T.StructField("labels", T.ArrayType(T.BooleanType(), containsNull=False)),
    ]
)


def _folds(model: AlignmentModel) -> range:
    return range(model.settings.cutoff_folds)


def _held_out(
    rows: DataFrame,
    fit: Callable[[learning.SumOverPartitions], AlignmentModel],
    read: Callable[[pa.RecordBatch], Patterns],
    model: AlignmentModel,
    fold: int,
    seed: int,
    count: int,
) -> DataFrame:
    """Train on all folds but one and infer that one's phibar as if its labels were not known."""
    # The parts of a pattern that was cut, e#0 and e#1, belong to one fold.
    name = F.regexp_replace("pattern_id", "#[0-9]+$", "")
    key = F.pmod(F.xxhash64(F.lit(seed), name), F.lit(len(_folds(model))))
    trained = fit(_summing(rows.where(key != fold), read, count))

    def infer(batch: pa.RecordBatch) -> pa.RecordBatch:
        patterns = read(batch)
        known = patterns.labelled
        hidden = patterns._replace(labelled=np.zeros_like(known))
        mean = trained.infer(hidden).mean[known]
        return pa.RecordBatch.from_pydict(
            {"mean": matrix_column(mean), "labels": matrix_column(patterns.labels[known])}
        )

    return splits.map_partitions(rows.where(key == fold), infer, _HELD_OUT)


def _with_decisions(model: AlignmentModel, scored: DataFrame) -> AlignmentModel:
    """Choose the cut-offs, and fit the read-out if there is to be one, on held-out rows."""
    classes, settings = len(model.classes), model.settings
    count = splits.count_partitions(scored)

    def run(kernel: Callable[[Floats, Flags], Sums]) -> Sums:
        def partition(batches: Iterator[pa.RecordBatch]) -> Sums:
            table = pa.Table.from_batches(batches, splits.schema_of(_HELD_OUT))
            mean, labels = (
                np.asarray(table[name].combine_chunks().flatten()).reshape(-1, classes)
                for name in ("mean", "labels")
            )
            return kernel(mean, labels)

        return splits.sum_arrays(scored, partition, count)

    if settings.read_out == "diagonal":
        sums, lam = run(cutoffs.histogram), model.parameters.lam
        return model.with_cutoffs(cutoffs.choose_cutoffs(sums, lam, settings.cutoff_criterion))
    fitted = readout.fit(
        lambda at: run(partial(readout.step_sums, readout=at)),
        classes,
        settings.read_out_precision,
    )
    sums = run(lambda mean, labels: cutoffs.histogram(fitted.probabilities(mean), labels))
    return model.with_cutoffs(cutoffs.choose_edges(sums, settings.cutoff_criterion), fitted)


def _summing(
    rows: DataFrame, read: Callable[[pa.RecordBatch], Patterns], count: int
) -> learning.SumOverPartitions:
    """Return the function that sums a kernel on `Patterns` over the partitions of `rows`."""
    schema = splits.arrow_schema(rows)

    def run(kernel: Callable[[Patterns], Sums]) -> Sums:
        def partition(batches: Iterator[pa.RecordBatch]) -> Sums:
            table = pa.Table.from_batches(batches, schema).combine_chunks()
            parts = table.to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
            return learning.sum_over([read(part) for part in parts])(kernel)

        return splits.sum_arrays(rows, partition, count)

    return run


def classes_of(rows: DataFrame) -> list[str]:
    """Collect the classes in ``labels``, sorted.

    Raises
    ------
    DataError
        DATA03: no pattern has a label; ALIGN03: more than `MAX_CLASSES`.
    """
    found = rows.select(F.explode("labels").alias("label")).distinct().limit(MAX_CLASSES + 1)
    classes = sorted(row["label"] for row in found.collect())
    if not classes:
        raise DataError("DATA03", source="column 'labels'", hint="a pattern needs a known label")
    if len(classes) > MAX_CLASSES:
        raise DataError("ALIGN03", limit=MAX_CLASSES)
    return classes


def _features_of(rows: DataFrame) -> int:
    top = rows.select(F.max(F.array_max("feature_ids")).alias("top")).first()
    return 0 if top is None or top["top"] is None else int(top["top"]) + 1


def _metric_name(value: str) -> str:
    if value not in METRICS:
        problem = f"allowed: {', '.join(METRICS)}"
        raise UsageError("CONF04", key="metricName", value=value, problem=problem)
    return value


class PatternEvaluator(Evaluator):
    """Agreement of predicted and true label sets, for `pyspark.ml.tuning.CrossValidator`.

    Parameters
    ----------
    metricName : {"microF1", "hammingAccuracy"}
        2 sum |Y & P| / sum (|Y| + |P|), or 1 - sum |Y xor P| / (N C), over the rows with
        known labels; a row without a prediction counts as one without classes.
    numClasses : int
        C, for the Hamming accuracy.
    labelsCol, predictionCol : str
    """

    labelsCol = _column("labelsCol", "the true classes")
    predictionCol = _column("predictionCol", "the predicted classes")
    metricName: Param[str] = Param(
        Params._dummy(), "metricName", "microF1 or hammingAccuracy", _metric_name
    )
    numClasses: Param[int] = Param(Params._dummy(), "numClasses", "C", TypeConverters.toInt)

    @keyword_only
    def __init__(self, **kwargs: Any) -> None:
        super().__init__()
        self._setDefault(labelsCol="labels", predictionCol="prediction", metricName="microF1")
        self._set(**kwargs)

    def _evaluate(self, dataset: DataFrame) -> float:
        labels = F.col(f"`{self.getOrDefault(self.labelsCol)}`")
        predicted = F.col(f"`{self.getOrDefault(self.predictionCol)}`")
        predicted = F.coalesce(predicted, F.array().cast(STRINGS))
        sums = (
            dataset.where(labels.isNotNull())
            .select(
                F.sum(F.size(F.array_intersect(labels, predicted))).alias("both"),
                F.sum(F.size(labels) + F.size(predicted)).alias("sizes"),
                F.count(labels).alias("rows"),
            )
            .first()
        )
        if sums is None or not sums["rows"]:
            raise DataError("DATA03", source="the evaluated rows", hint="there is none")
        if self.getOrDefault(self.metricName) == "microF1":
            return 2.0 * sums["both"] / max(sums["sizes"], 1)
        if not self.isDefined(self.numClasses):
            raise UsageError("CONF05", key="numClasses", problem="hammingAccuracy needs it")
        wrong = sums["sizes"] - 2 * sums["both"]
        return 1.0 - wrong / (sums["rows"] * self.getOrDefault(self.numClasses))
