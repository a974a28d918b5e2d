"""What every estimator keeps to, run over `tests.estimators.SPECS`."""

from __future__ import annotations

import gc
import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.tuning import CrossValidator, ParamGridBuilder
from pyspark.sql import functions as F

from corpusmill.errors import CorpusmillError, DataError, ModelError, SchemaError, UsageError
from corpusmill.ml import param_name
from corpusmill.storage.arrays import unpack
from tests.estimators import SPECS, Spec

pytestmark = [
    pytest.mark.spark,
    pytest.mark.parametrize("spec", SPECS, ids=[spec.name for spec in SPECS]),
]


@cache
def rows_of(spark, spec: Spec):
    return spec.dataset(spark).coalesce(1).cache()


@cache
def fitted(spark, spec: Spec):
    return spec.estimator().fit(rows_of(spark, spec))


@cache
def answers_of(spark, spec: Spec):
    """What the fitted model says of all rows."""
    return plain(fitted(spark, spec).transform(rows_of(spark, spec)))


@pytest.fixture(scope="module")
def saved(spark, tmp_path_factory):
    """Give the folder of the fitted model, saved once; to be read or copied."""
    folder = tmp_path_factory.mktemp("saved")

    def of(spec: Spec) -> Path:
        if not (folder / spec.name).exists():
            fitted(spark, spec).save(str(folder / spec.name))
        return folder / spec.name

    return of


def files_of(model, folder: Path) -> dict[str, bytes]:
    """The array model's files; Spark's metadata beside them holds the time."""
    model.model.save(str(folder))
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def arrays_of(model, folder: Path):
    """The array model's numbers; of trees in LightGBM's text what predictions depend on."""
    files = files_of(model, folder)
    texts = [files[name].decode() for name in sorted(files) if name.endswith(".txt")]
    trees = "\n".join(texts).splitlines()
    parts = [line.split("=") for line in trees if "=" in line]
    wanted = ("split_feature", "threshold", "leaf_value", "left_child", "right_child")
    return unpack(files["arrays.npz"]) | {
        f"{number}.{name}": np.array(value.split(), np.float64)
        for number, (name, value) in enumerate(parts)
        if name in wanted
    }


def plain(df):
    """Rows as JSON texts, sorted: equal whatever the order and the types of lists."""
    return sorted(row.j for row in df.select(F.to_json(F.struct("*")).alias("j")).collect())


def jobs_of(spark, action):
    """The number of jobs that an action starts."""
    context = spark.sparkContext
    context.setJobGroup("contract", "contract")
    try:
        before = len(context.statusTracker().getJobIdsForGroup("contract"))
        action()
        return len(context.statusTracker().getJobIdsForGroup("contract")) - before
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)


# Params


def test_defaults_are_those_of_the_settings(spark, spec):
    estimator = spec.defaults()
    for field, value in dict(spec.settings()).items():
        assert estimator.getOrDefault(param_name(field)) == value
    assert estimator.settings() == spec.settings()


def test_params_are_documented(spark, spec):
    estimator = spec.defaults()
    told = estimator.explainParams()
    for param in estimator.params:
        assert len(param.doc) > 3
        assert f"{param.name}: {param.doc}" in told
    for field, info in spec.settings.model_fields.items():
        assert estimator.getParam(param_name(field)).doc == info.description


def test_bad_params_are_refused_by_name(spark, spec):
    field = next(iter(spec.settings.model_fields))
    with pytest.raises(UsageError, match=f"CONF04: {param_name(field)} = ") as caught:
        spec.defaults().__class__(**{param_name(field): object()})
    assert "\n" not in str(caught.value)
    with pytest.raises(AttributeError, match="unheardOf"):
        spec.estimator(unheardOf=1)


def test_copies_are_independent(spark, spec):
    name, (one, other) = spec.grid
    estimator = spec.estimator(**{name: one})
    changed = estimator.copy({estimator.getParam(name): other})
    assert estimator.getOrDefault(name) == one
    assert changed.getOrDefault(name) == other
    assert changed.uid == estimator.uid
    model = fitted(spark, spec)
    again = model.copy()
    assert again is not model
    assert again.model is model.model
    rows = rows_of(spark, spec)
    assert plain(again.transform(rows)) == answers_of(spark, spec)


@pytest.mark.slow
def test_the_model_keeps_params_uid_and_parent(spark, spec):
    estimator = spec.estimator(**{spec.grid[0]: spec.grid[1][0]})
    model = estimator.fit(rows_of(spark, spec))
    assert isinstance(model, spec.model)
    assert model.uid == estimator.uid
    assert model.getOrDefault(spec.grid[0]) == spec.grid[1][0]


# Saving


def test_a_saved_estimator_comes_back(spark, spec, tmp_path):
    name, (one, _) = spec.grid
    estimator = spec.estimator(**{name: one})
    estimator.save(str(tmp_path / "e"))
    again = type(estimator).load(str(tmp_path / "e"))
    assert again.uid == estimator.uid
    for param in estimator.params:
        assert again.isSet(param.name) == estimator.isSet(param.name)
        if estimator.isDefined(param):
            assert again.getOrDefault(param.name) == estimator.getOrDefault(param.name)


def test_a_saved_model_comes_back(spark, spec, tmp_path, saved):
    model, rows = fitted(spark, spec), rows_of(spark, spec)
    again = spec.model.load(str(saved(spec)))
    assert again.uid == model.uid
    assert files_of(again, tmp_path / "a") == files_of(model, tmp_path / "b")
    assert plain(again.transform(rows)) == answers_of(spark, spec)


def test_overwriting_has_to_be_asked_for(spark, spec, tmp_path, saved):
    model, path = fitted(spark, spec), str(tmp_path / "m")
    shutil.copytree(saved(spec), path)
    before = {file: file.read_bytes() for file in (tmp_path / "m" / "model").iterdir()}
    with pytest.raises(CorpusmillError, match=r"STORE01: .*overwrite"):
        model.save(path)
    assert before == {file: file.read_bytes() for file in (tmp_path / "m" / "model").iterdir()}
    model.write().overwrite().save(path)
    assert spec.model.load(path).uid == model.uid


def test_damaged_models_are_refused(spec, tmp_path, saved):
    names = [file.name for file in (saved(spec) / "model").iterdir()]
    assert len(names) > 1
    for name in names:
        for damage in ("cut", "changed", "missing"):
            folder = tmp_path / f"{name}-{damage}"
            shutil.copytree(saved(spec), folder)
            file = folder / "model" / name
            content = bytearray(file.read_bytes())
            content[len(content) // 2] ^= 1
            file.write_bytes(content[: len(content) // 2] if damage == "cut" else content)
            if damage == "missing":
                file.unlink()
            with pytest.raises(ModelError, match=r"MODEL0[12]: "):
                spec.model.load(str(folder))


def damaged_metadata(folder: Path, change) -> None:
    (file,) = (folder / "metadata").glob("part-*")
    for checksum in (folder / "metadata").glob(".*.crc"):
        checksum.unlink()
    file.write_text(change(file.read_text()))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text[: len(text) // 2], "missing or damaged"),
        (lambda text: "", "missing or damaged"),
        (lambda text: "[1]", "missing or damaged"),
        (lambda text: json.dumps(json.loads(text) | {"class": "os.system"}), "names 'os.system'"),
        (lambda text: json.dumps(json.loads(text) | {"paramMap": {"odd": 1}}), "does not fit"),
        (lambda text: json.dumps(json.loads(text) | {"paramMap": {"seed": "x"}}), "does not fit"),
        (lambda text: json.dumps({"class": json.loads(text)["class"]}), "does not fit"),
    ],
)
def test_odd_metadata_is_refused(spec, tmp_path, saved, change, reason):
    shutil.copytree(saved(spec), tmp_path / "m")
    damaged_metadata(tmp_path / "m", change)
    with pytest.raises(ModelError, match=f"MODEL01: .*{reason}"):
        spec.model.load(str(tmp_path / "m"))


def test_estimator_and_model_are_not_confused(spec, tmp_path, saved):
    spec.estimator().save(str(tmp_path / "e"))
    with pytest.raises(ModelError, match=r"MODEL01: .*its metadata names"):
        spec.model.load(str(tmp_path / "e"))
    with pytest.raises(ModelError, match=r"MODEL01: .*its metadata names"):
        type(spec.estimator()).load(str(saved(spec)))
    with pytest.raises(ModelError, match="MODEL01: "):
        spec.model.load(str(tmp_path / "nothing"))


# Columns


def test_input_columns_are_kept_whatever_they_are(spark, spec):
    rows = rows_of(spark, spec)
    odd = rows.selectExpr(
        "*",
        "cast('12.50' as decimal(10, 2)) `a.b`",
        "timestamp'2026-01-02 03:04:05' `with space`",
        "date'2026-01-02' `d`",
        "map('k', array(1, null)) `map`",
        "named_struct('x', 1, 'y', 'z') `struct`",
        "X'00FF' `bytes`",
        "cast(null as void) `nothing`",
        "interval '1' day `interval`",
        "cast(X'FF41' as string) `not utf-8`",
    )
    found = fitted(spark, spec).transform(odd)
    assert found.columns == [*odd.columns, *spec.outputs]
    assert found.schema[: len(odd.columns)] == odd.schema[:]
    kept = found.select(*[F.col(f"`{name}`") for name in odd.columns])
    assert plain(kept) == plain(odd)
    assert found.where(F.col(spec.outputs[-1]).isNotNull()).count() == 0


def test_a_missing_or_wrong_column_is_named_before_any_job(spark, spec):
    rows, model = rows_of(spark, spec), fitted(spark, spec)
    rows.count()
    for name, wrong in spec.required.items():
        for given in (rows.drop(name), rows.withColumn(name, F.expr(wrong))):

            def refused(given=given, name=name):
                for action in (spec.estimator().fit, model.transform):
                    with pytest.raises(SchemaError, match=f"DATA04: column '{name}'"):
                        action(given)

            assert jobs_of(spark, refused) == 0


def test_an_output_column_that_is_there_is_named_before_any_job(spark, spec):
    rows, model = rows_of(spark, spec), fitted(spark, spec)
    for name in spec.outputs:

        def refused(name=name):
            with pytest.raises(SchemaError, match=f"DATA06: column '{name}'"):
                model.transform(rows.withColumn(name, F.lit(1)))

        assert jobs_of(spark, refused) == 0


def test_jobs_are_counted(spark, spec):
    """So that the two tests above can fail."""
    assert jobs_of(spark, lambda: rows_of(spark, spec).count()) > 0


def test_a_broken_row_is_marked_and_the_others_predicted(spark, spec):
    rows, model = rows_of(spark, spec), fitted(spark, spec)
    first = rows.limit(1)
    mixed = rows.unionByName(spec.break_row(first)).coalesce(1)
    found = model.transform(mixed)
    *outputs, error = spec.outputs
    assert found.count() == rows.count() + 1
    broken = found.where(F.col(error).isNotNull())
    (row,) = broken.collect()
    assert all(row[name] is None for name in outputs)
    assert len(row[error]) > 10
    assert plain(found.where(F.col(error).isNull())) == answers_of(spark, spec)


def test_a_broken_row_ends_a_fit_with_its_reason(spark, spec):
    rows = rows_of(spark, spec)
    mixed = rows.unionByName(spec.break_row(rows.limit(1)))
    with pytest.raises(Exception, match="DATA01: ") as caught:
        spec.estimator().fit(mixed)
    assert "Python" in type(caught.value).__name__ or isinstance(caught.value, DataError)


def test_without_any_label_a_fit_is_refused(spark, spec):
    rows = rows_of(spark, spec)
    kind = rows.schema[spec.labels].dataType
    for given in (
        rows.withColumn(spec.labels, F.lit(None).cast(kind)),
        rows.drop(spec.labels),
        rows.limit(0),
    ):
        with pytest.raises(DataError, match=f"DATA03: column '{spec.labels}'"):
            spec.estimator().fit(given)


@pytest.mark.slow
def test_rows_may_come_from_a_file(spark, spec, tmp_path):
    """Spark then takes every column and list for one that may hold nulls."""
    rows, model = rows_of(spark, spec), fitted(spark, spec)
    rows.write.parquet(str(tmp_path / "rows"))
    read = spark.read.parquet(str(tmp_path / "rows"))
    assert plain(model.transform(read)) == answers_of(spark, spec)
    one = arrays_of(model, tmp_path / "one")
    again = arrays_of(spec.estimator().fit(read), tmp_path / "again")
    for key, value in one.items():
        np.testing.assert_allclose(again[key], value, rtol=1e-9, atol=1e-12, err_msg=key)


# Partitions and seed


@pytest.mark.parametrize(
    ("rows", "partitions"),
    [
        (1000, 3),
        pytest.param(1000, 7, marks=pytest.mark.slow),
        pytest.param(5, 7, marks=pytest.mark.slow),
    ],
)
def test_partitions_do_not_matter(spark, spec, tmp_path, rows, partitions):
    """Also with more partitions than rows, some of them thereby empty."""
    whole = rows_of(spark, spec)
    few = rows < whole.count()
    given = whole.limit(rows) if few else whole
    model = spec.estimator().fit(given) if few else fitted(spark, spec)
    one = arrays_of(model, tmp_path / "one")
    spread = given.repartition(partitions)
    many = arrays_of(spec.estimator().fit(spread), tmp_path / "many")
    assert set(many) == set(one)
    for key, value in one.items():
        np.testing.assert_allclose(many[key], value, rtol=1e-9, atol=1e-12, err_msg=key)
    expected = plain(model.transform(given)) if few else answers_of(spark, spec)
    assert plain(model.transform(spread)) == expected


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes(spark, spec, tmp_path):
    rows = rows_of(spark, spec).repartition(3).cache()
    one, two = (spec.estimator(seed=7, **spec.seeded).fit(rows) for _ in range(2))
    assert files_of(one, tmp_path / "one") == files_of(two, tmp_path / "two")
    rows.unpersist()


def test_no_rows_are_transformed_to_no_rows(spark, spec):
    found = fitted(spark, spec).transform(rows_of(spark, spec).limit(0))
    assert found.count() == 0
    assert found.columns[-len(spec.outputs) :] == list(spec.outputs)


# In Spark's company


def test_self_is_never_pickled(spark, spec, monkeypatch):
    def refuse(*_):
        raise AssertionError("pickled")

    model = fitted(spark, spec)
    estimator = spec.estimator(**spec.seeded)
    for kind in (type(estimator), spec.model):
        monkeypatch.setattr(kind, "__reduce_ex__", refuse)
        monkeypatch.setattr(kind, "__getstate__", refuse)
    rows = rows_of(spark, spec)
    assert isinstance(estimator.fit(rows), spec.model)
    assert model.transform(rows).count() == rows.count()


@pytest.mark.slow
def test_works_in_a_pipeline_that_is_saved(spark, spec, tmp_path):
    rows = rows_of(spark, spec)
    pipeline = Pipeline(stages=[spec.estimator()])
    pipeline.save(str(tmp_path / "p"))
    model = Pipeline.load(str(tmp_path / "p")).fit(rows)
    model.save(str(tmp_path / "m"))
    again = PipelineModel.load(str(tmp_path / "m"))
    expected = answers_of(spark, spec)
    assert plain(again.transform(rows)) == plain(model.transform(rows)) == expected


@pytest.mark.slow
def test_works_with_param_maps(spark, spec):
    name, values = spec.grid
    estimator, rows = spec.estimator(), rows_of(spark, spec)
    maps = [{estimator.getParam(name): value} for value in values]
    models = estimator.fit(rows, maps)
    assert [model.getOrDefault(name) for model in models] == values
    assert plain(models[0].transform(rows)) != plain(models[1].transform(rows))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed running multiprocessing pool:ResourceWarning")
def test_works_in_a_cross_validator(spark, spec):
    name, values = spec.grid
    estimator = spec.estimator()
    grid = ParamGridBuilder().addGrid(estimator.getParam(name), values).build()
    search = CrossValidator(
        estimator=estimator,
        estimatorParamMaps=grid,
        evaluator=spec.evaluator(),
        numFolds=2,
        seed=1,
    )
    found = search.fit(rows_of(spark, spec).repartition(1))
    gc.collect()  # the search leaves its threads open, which is to be told here or nowhere
    assert isinstance(found.bestModel, spec.model)
    assert len(found.avgMetrics) == 2
    assert np.isfinite(found.avgMetrics).all()
    assert found.bestModel.getOrDefault(name) == values[int(np.argmax(found.avgMetrics))]
