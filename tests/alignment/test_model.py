"""The trained model on arrays: files, predictions, warm start, resume."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from corpusmill import models, storage
from corpusmill.alignment import learning
from corpusmill.alignment.batches import list_column, read_patterns
from corpusmill.alignment.kernels import Inference
from corpusmill.alignment.model import AlignmentModel, Resume, train
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.errors import DataError, ModelError, UsageError
from tests.alignment.generate import Drawn, draw, split

CLASSES = ("art", "music", "sport")
FEATURES = 12
WORDS = tuple(f"w{d:02d}" for d in range(FEATURES))
KINDS = ["multinomial", "poisson", "gaussian"]
ALPHA, LAM = np.array([0.3, 0.8, 0.5]), np.array([6.0, 4.0, 8.0])


@cache
def drawn(kind: str = "multinomial", seed: int = 1, patterns: int = 40) -> Drawn:
    rng = np.random.default_rng(seed)
    if kind == "multinomial":
        table = rng.dirichlet(np.full(FEATURES, 0.3), 3).T
    else:
        table = rng.gamma(1.0, size=(FEATURES, 3))
    return draw(rng, ALPHA, LAM, kind, table, patterns, 3, length=8)


def fit(patterns, conf=None, classes=CLASSES, names=WORDS, **options):
    conf = conf or LearnerSettings(max_iter=5, tol=0.0)
    return train(learning.sum_over([patterns]), classes, FEATURES, conf, names, **options)


@cache
def trained(kind: str = "multinomial") -> AlignmentModel:
    conf = LearnerSettings(instance_model=kind, max_iter=5, label_sparsity=float("inf"))  # type: ignore[arg-type]
    return fit(drawn(kind).patterns, conf)


def batch_of(patterns, labels=True):
    """Write patterns as Arrow rows."""
    ends = patterns.offsets[1:] + np.arange(1, len(patterns.labels) + 1)
    lengths = np.diff(patterns.offsets)
    first = patterns.bags.offsets[patterns.offsets[:-1]]
    starts = np.repeat(first, lengths + 1)
    place = np.arange(len(starts)) - np.repeat(np.arange(len(lengths)), lengths + 1)
    features = patterns.bags.offsets[patterns.offsets]
    names = [[c for c, has in zip(CLASSES, row, strict=True) if has] for row in patterns.labels]
    return pa.RecordBatch.from_pydict(
        {
            "pattern_id": [f"p{n}" for n in range(len(lengths))],
            "instance_offsets": list_column(
                (patterns.bags.offsets[place] - starts).astype(np.int32),
                np.concatenate([[0], ends]),
            ),
            "instance_weights": list_column(patterns.weights, patterns.offsets),
            "feature_ids": list_column(patterns.bags.ids, features),
            "feature_counts": list_column(patterns.bags.counts, features),
            **({"labels": pa.array(names, pa.list_(pa.string()))} if labels else {}),
        }
    )


def parameters_equal(one, two):
    np.testing.assert_array_equal(one.alpha, two.alpha)
    np.testing.assert_array_equal(one.lam, two.lam)
    for name, value in one.instances.arrays().items():
        np.testing.assert_array_equal(two.instances.arrays()[name], value)


# Files


@pytest.mark.parametrize("kind", KINDS)
def test_saved_and_loaded_is_the_same(tmp_path, kind):
    model = trained(kind).with_cutoffs(np.array([0.3, 0.6, 1.0]))
    model.save(str(tmp_path / "m"))
    again = AlignmentModel.load(str(tmp_path / "m"))
    parameters_equal(model.parameters, again.parameters)
    assert (again.classes, again.features) == (CLASSES, WORDS)
    assert again.settings == model.settings
    assert again.settings.label_sparsity == float("inf")
    assert again.history == model.history
    np.testing.assert_array_equal(again.cutoffs, model.cutoffs)
    smoothing, before = again.parameters.instances.smoothing, model.parameters.instances.smoothing
    assert smoothing.mass == before.mass
    np.testing.assert_array_equal(smoothing.base, before.base)
    rows = batch_of(drawn(kind).patterns)
    assert again.predict_batch(rows).equals(model.predict_batch(rows))


def test_files_are_the_same_bytes_every_time(tmp_path):
    trained().save(str(tmp_path / "a"))
    AlignmentModel.load(str(tmp_path / "a")).save(str(tmp_path / "b"))
    fit(drawn().patterns, trained().settings).save(str(tmp_path / "c"))
    contents = [
        {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} for name in "abc"
    ]
    assert contents[0] == contents[1] == contents[2]
    assert set(contents[0]) == {"arrays.npz", "model.json", "manifest.json"}


@pytest.mark.parametrize("name", ["arrays.npz", "model.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed", "empty"])
def test_a_damaged_model_is_refused(tmp_path, name, damage):
    trained().save(str(tmp_path))
    file = tmp_path / name
    content = bytearray(file.read_bytes())
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        at = content.index(b"sha256") + 12 if name == "manifest.json" else len(content) // 2
        content[at] = ord("0") if content[at] != ord("0") else ord("1")
        file.write_bytes(content)
    with pytest.raises(ModelError, match=r"MODEL0[12]: "):
        AlignmentModel.load(str(tmp_path))


def rewritten(folder: Path, change) -> None:
    """Change model.json and make the manifest agree, as a careless hand would."""
    about = json.loads((folder / "model.json").read_text())
    change(about["info"])
    text = json.dumps(about).encode()
    (folder / "model.json").write_bytes(text)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["model.json"]["sha256"] = hashlib.sha256(text).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "change",
    [
        lambda info: info.pop("classes"),
        lambda info: info["settings"].update(unheard_of=1),
        lambda info: info["settings"].update(instance_model="poisson"),
        lambda info: info.update(history=[[1]]),
    ],
)
def test_a_model_that_does_not_fit_together_is_refused(tmp_path, change):
    trained().save(str(tmp_path))
    rewritten(tmp_path, change)
    with pytest.raises(ModelError, match=r"MODEL01: .* is no alignment model"):
        AlignmentModel.load(str(tmp_path))


def test_another_kind_another_version_and_no_folder_are_refused(tmp_path):
    arrays = {"x": np.zeros(1)}
    storage.save_model(str(tmp_path / "kind"), "other", 1, arrays, {})
    storage.save_model(str(tmp_path / "version"), "alignment", 99, arrays, {})
    with pytest.raises(ModelError, match="kind is 'other'"):
        AlignmentModel.load(str(tmp_path / "kind"))
    with pytest.raises(ModelError, match="version is 99"):
        AlignmentModel.load(str(tmp_path / "version"))
    with pytest.raises(ModelError, match="no such folder"):
        AlignmentModel.load(str(tmp_path / "nothing"))


def test_it_is_among_the_kinds_that_may_be_loaded(tmp_path):
    trained().save(str(tmp_path))
    assert isinstance(models.load("alignment", str(tmp_path)), AlignmentModel)


@pytest.mark.parametrize("value", [0.0, 2.5, float("inf")])
def test_settings_survive_json(value):
    conf = LearnerSettings(label_sparsity=value, bound="tangent", max_iter=3)
    text = json.dumps(conf.model_dump(mode="json"), allow_nan=False)
    assert LearnerSettings.model_validate(json.loads(text)) == conf


# Predictions


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_the_arrays(kind):
    model, patterns = trained(kind), drawn(kind).patterns
    hidden = patterns._replace(labelled=np.zeros(len(patterns.labels), bool))
    posterior = model.infer(hidden)
    probability = model.label_probabilities(posterior)
    lam = model.parameters.lam
    np.testing.assert_allclose(probability, 1 / (1 + np.exp(-lam * posterior.mean)), rtol=1e-12)
    rows = model.predict_batch(batch_of(patterns)).to_pylist()
    for n, row in enumerate(rows):
        part = slice(patterns.offsets[n], patterns.offsets[n + 1])
        assert row["probability"] == probability[n].tolist()
        assert row["gamma"] == posterior.gamma[n].tolist()
        assert row["instance_probability"] == posterior.phi[part].reshape(-1).tolist()
        assert row["instances"] == part.stop - part.start
        expected = [
            c for c, p, t in zip(CLASSES, probability[n], model.cutoffs, strict=True) if p >= t
        ]
        assert row["prediction"] == expected


def test_known_labels_take_part_when_they_are_believed():
    model, patterns = trained(), drawn().patterns
    rows = batch_of(patterns)
    believed = model.predict_batch(rows, use_labels=True)
    gamma = np.array(believed["gamma"].to_pylist())
    np.testing.assert_array_equal(gamma, model.infer(patterns).gamma)
    assert not believed.equals(model.predict_batch(rows))


def test_frame_is_batch():
    rows = batch_of(drawn().patterns)
    frame = rows.to_pandas().assign(other=object())
    unknown = trained().predict_batch(rows).to_pandas()
    for given in (frame.drop(columns=["labels", "pattern_id"]), frame.assign(labels=None)):
        pd.testing.assert_frame_equal(trained().predict_frame(given), unknown)
    known = trained().predict_batch(rows, use_labels=True).to_pandas()
    pd.testing.assert_frame_equal(trained().predict_frame(frame), known)
    assert not known["gamma"].map(tuple).equals(unknown["gamma"].map(tuple))


def test_lists_of_python_numbers_are_predicted_too():
    rows = batch_of(drawn().patterns)
    frame = pd.DataFrame(rows.to_pylist())
    expected = trained().predict_batch(rows, use_labels=True).to_pandas()
    pd.testing.assert_frame_equal(trained().predict_frame(frame), expected)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("feature_ids", None, "DATA04: column 'feature_ids' is missing; expected list"),
        ("feature_ids", "x", "DATA01: the frame: Conversion failed for column feature_ids"),
        ("feature_ids", [2**40], "DATA01: the frame: Conversion failed for column feature_ids"),
    ],
)
def test_a_frame_of_something_else_is_told(column, value, message):
    frame = batch_of(drawn().patterns).to_pandas()
    others = frame.drop(columns=[column])
    given = others if value is None else others.assign(**{column: [value] * len(frame)})
    with pytest.raises(DataError, match=message):
        trained().predict_frame(given)


def test_no_rows_and_patterns_without_instances():
    model = trained()
    rows = batch_of(drawn().patterns)
    assert model.predict_batch(rows.slice(0, 0)).num_rows == 0
    nothing: dict[str, object] = {name: [] for name in rows.schema.names}
    empty = nothing | {"pattern_id": "e", "instance_offsets": [0]}
    one = pa.RecordBatch.from_pylist([empty], schema=rows.schema)
    (row,) = model.predict_batch(one).to_pylist()
    assert row["instances"] == 0.0
    assert row["instance_probability"] == []
    assert row["gamma"] == model.parameters.alpha.tolist()
    assert row["probability"] == [0.5, 0.5, 0.5]


def test_a_broken_row_is_refused_by_name():
    model = trained()
    rows = batch_of(drawn().patterns).to_pylist()
    rows[3]["feature_ids"] = [FEATURES] * len(rows[3]["feature_ids"])
    batch = pa.RecordBatch.from_pylist(rows, schema=batch_of(drawn().patterns).schema)
    with pytest.raises(DataError, match="'p3'"):
        model.predict_batch(batch)


def test_extreme_utilities_do_not_overflow():
    model = trained()
    a, _, inner = model.parameters
    lam = np.array([-5000.0, 5000.0, 0.0])
    steep = AlignmentModel(
        CLASSES, WORDS, learning.Parameters(a, lam, inner), model.settings, model.cutoffs
    )
    posterior = steep.infer(drawn().patterns)
    assert np.isfinite(posterior.bound).all()
    found = steep.label_probabilities(posterior)
    assert ((found >= 0.0) & (found <= 1.0)).all()


# Partitions, warm start, resume


@pytest.mark.parametrize("parts", [3, 7, 50])
def test_partitions_do_not_matter(parts):
    conf = LearnerSettings(max_iter=6, tol=0.0)
    pieces = learning.sum_over(split(drawn().patterns, parts))
    many = train(pieces, CLASSES, FEATURES, conf)
    one = fit(drawn().patterns, conf)
    np.testing.assert_allclose(many.parameters.alpha, one.parameters.alpha, rtol=1e-10)
    np.testing.assert_allclose(many.parameters.lam, one.parameters.lam, rtol=1e-10)
    np.testing.assert_allclose(
        many.parameters.instances.arrays()["log_b"],
        one.parameters.instances.arrays()["log_b"],
        rtol=1e-10,
    )


def test_warm_start_finds_classes_and_features_by_name():
    """The old model, its names permuted and some new ones beside them, begins the new one."""
    old = trained()
    classes = ("sport", "cooking", "art")
    names = ("new", *WORDS[:5:-1], *WORDS[4::-1])
    assert len(names) == FEATURES
    labels = np.array([[row[2], False, row[0]] for row in drawn().patterns.labels])
    patterns = drawn().patterns._replace(labels=labels)
    conf = LearnerSettings(max_iter=0, alpha=0.9, lambda_mean=3.0)
    new = fit(patterns, conf, classes, names, warm_start=old)
    cold = fit(patterns, conf, classes, names)
    np.testing.assert_array_equal(
        new.parameters.alpha, [old.parameters.alpha[2], 0.9, old.parameters.alpha[0]]
    )
    np.testing.assert_array_equal(
        new.parameters.lam, [old.parameters.lam[2], 3.0, old.parameters.lam[0]]
    )
    log_b, before = (m.parameters.instances.arrays()["log_b"] for m in (new, old))
    wanted = cold.parameters.instances.arrays()["log_b"].copy()
    for d, name in enumerate(names):
        for c, title in enumerate(classes):
            if name in WORDS and title in CLASSES:
                wanted[d, c] = before[WORDS.index(name), CLASSES.index(title)]
    # Words of two distributions side by side are made one.
    np.testing.assert_allclose(log_b, wanted - np.log(np.exp(wanted).sum(axis=0)), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_goes_on_from_where_the_old_model_ended(kind):
    patterns = drawn(kind).patterns
    conf = LearnerSettings(instance_model=kind, max_iter=40, tol=1e-7)
    old = fit(patterns, conf)
    new = fit(patterns, conf, warm_start=old)
    assert len(new.history) < len(old.history) / 2
    assert new.history[0].bound == pytest.approx(old.history[-1].bound, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_mass_pulls_to_the_old_model(kind):
    old = fit(drawn(kind, 1).patterns, LearnerSettings(instance_model=kind, max_iter=5))
    away = drawn(kind, 2).patterns
    distances = []
    for mass in (0.0, 100.0, 1e4, 1e6):
        conf = LearnerSettings(instance_model=kind, max_iter=5, tol=0.0, warm_start_mass=mass)
        new = fit(away, conf, warm_start=old)
        means = (m.parameters.instances.means() for m in (new, old))
        distances.append(np.abs(np.subtract(*means)).max())
    assert (np.diff(distances) < 0.0).all()
    assert distances[-1] < 0.01 * distances[0]


def test_warm_start_without_names_needs_equally_many_features():
    nameless = fit(drawn().patterns, names=())
    again = fit(drawn().patterns, names=(), warm_start=nameless)
    assert again.size == FEATURES
    pieces, conf = learning.sum_over([drawn().patterns]), LearnerSettings(max_iter=1)
    with pytest.raises(UsageError, match=r"ALIGN02: .* 12 features without names, the data 13"):
        train(pieces, CLASSES, 13, conf, warm_start=nameless)


def test_warm_start_of_another_kind_is_refused():
    conf = LearnerSettings(instance_model="poisson", max_iter=1)
    with pytest.raises(UsageError, match="ALIGN01: a multinomial model cannot start a poisson one"):
        fit(drawn().patterns, conf, warm_start=trained())


def test_resumed_training_gives_the_same_files(tmp_path):
    saved = []
    conf = LearnerSettings(max_iter=7, tol=0.0)
    whole = fit(drawn().patterns, conf, on_iteration=lambda i, p: saved.append((i, p)))
    resume = Resume([iteration for iteration, _ in saved[:3]], saved[2][1])
    again = fit(drawn().patterns, conf, resume=resume)
    whole.save(str(tmp_path / "whole"))
    again.save(str(tmp_path / "again"))
    for file in (tmp_path / "whole").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()


def test_the_settings_reach_the_e_step():
    conf = LearnerSettings(bound="tangent", label_sparsity=3.0, inner_max_iter=7, inner_tol=0.1)
    assert learning.inference(conf) == Inference(False, 3.0, 7, 0.1)


def test_rows_written_here_are_read_back():
    found = read_patterns(batch_of(drawn().patterns), CLASSES, FEATURES)
    np.testing.assert_array_equal(found.bags.offsets, drawn().patterns.bags.offsets)
    np.testing.assert_array_equal(found.labels, drawn().patterns.labels)
