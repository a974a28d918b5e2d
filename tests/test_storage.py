"""Outputs are whole or not there, models are checked, checkpoints survive damage."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from pyarrow import fs

from corpusmill import storage
from corpusmill.errors import ModelError, SchemaError, StorageError, UsageError
from corpusmill.storage import Checkpoints, Place, Run, load_model, resolve, save_model
from corpusmill.storage import arrays as npz

ROOT = Path(__file__).resolve().parents[1]


class FakeFrame:
    """Writes Parquet as Spark's DataFrame does, without Spark."""

    def __init__(self, values: list[int], lost: int = 0) -> None:
        self.values = values
        self.lost = lost

    @property
    def write(self) -> FakeFrame:
        return self

    def mode(self, mode: str) -> FakeFrame:
        assert mode == "overwrite"
        return self

    def parquet(self, uri: str) -> None:
        place = Place.of(uri)
        place.make_folder()
        kept = self.values[: len(self.values) - self.lost]
        for number, part in enumerate((kept[:1], kept[1:])):
            table = pa.table({"n": pa.array(part, pa.int64())})
            name = f"{place.path}/part-{number:05d}.parquet"
            with place.filesystem.open_output_stream(name) as stream:
                pq.write_table(table, stream)


def frame(values: list[int], lost: int = 0) -> Any:
    return FakeFrame(values, lost)


def opened(output: object, action: str = "train", conf: str = "a", **more: Any) -> Run:
    fingerprint = storage.run_fingerprint(action, {"conf": conf}, {})
    return Run.open(str(output), action, more.pop("run_id", "auto"), fingerprint, **more)


def write_run(output: object, values: list[int], action: str = "train", **more: Any) -> Run:
    run = opened(output, action, conf=str(values), **more)
    try:
        if not run.committed:
            run.write_parquet("predictions", frame(values), expected_rows=len(values))
            save_model(run.path("model"), "tiny", 1, {"w": np.array(values)}, {})
            run.write_metrics({action: {"rows": len(values)}})
            run.commit()
    finally:
        run.close()
    return run


def current(output: object) -> list[int]:
    """What a reader finds: rows and weights of the current run, which must agree."""
    place = Place.of(resolve(str(output), "predictions"))
    rows: list[int] = []
    for name, _ in place.files():
        with place.filesystem.open_input_file(f"{place.path}/{name}") as stream:
            rows += pq.read_table(stream)["n"].to_pylist()
    weights = load_model(resolve(str(output), "model"), "tiny").arrays["w"]
    assert weights.tolist() == rows
    return rows


class Killed(BaseException):
    """The process is dead from here on."""


class Clock:
    """Counts changes to a file system, and kills at one of them."""

    def __init__(self) -> None:
        self.changes = 0
        self.fatal = 0

    def tick(self) -> None:
        self.changes += 1
        if self.fatal and self.changes >= self.fatal:
            raise Killed


CLOCK = Clock()


class Mortal:
    """Mixed into a pyarrow file system: each change may be the last, and is then half done."""

    def create_dir(self, *arguments: Any, **more: Any) -> None:
        CLOCK.tick()
        super().create_dir(*arguments, **more)  # type: ignore[misc]

    def delete_dir(self, path: str) -> None:
        CLOCK.tick()
        super().delete_dir(path)  # type: ignore[misc]

    def delete_file(self, path: str) -> None:
        CLOCK.tick()
        super().delete_file(path)  # type: ignore[misc]

    def move(self, source: str, target: str) -> None:
        CLOCK.tick()
        super().move(source, target)  # type: ignore[misc]

    def open_output_stream(self, path: str) -> Any:
        try:
            CLOCK.tick()
        except Killed:
            with super().open_output_stream(path) as stream:  # type: ignore[misc]
                stream.write(b'{"half": ')
            raise
        return super().open_output_stream(path)  # type: ignore[misc]


class MortalLocal(Mortal, fs.LocalFileSystem):
    """A local file system."""


class MortalStore(Mortal, fs.SubTreeFileSystem):
    """A file system that is not local, whose rename does not replace (as HDFS)."""

    def move(self, source: str, target: str) -> None:
        if self.get_file_info(target).type != fs.FileType.NotFound:
            raise OSError(f"{target} exists")
        super().move(source, target)


@pytest.fixture(params=["local", "hdfs"])
def output(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """An output on either kind of file system, whose changes `CLOCK` counts."""
    CLOCK.fatal = CLOCK.changes = 0
    if request.param == "local":
        monkeypatch.setattr("corpusmill.storage.places.fs.LocalFileSystem", MortalLocal)
        yield str(tmp_path / "out")
        return
    store = MortalStore(str(tmp_path), fs.LocalFileSystem())
    monkeypatch.setattr(
        "corpusmill.storage.places._connect", lambda uri: (store, uri.removeprefix("hdfs://test"))
    )
    yield "hdfs://test/out"


def test_run_is_committed_whole(output: str):
    run = write_run(output, [1, 2, 3])
    assert current(output) == [1, 2, 3]
    manifest = (Place.of(output) / f"runs/{run.run_id}/manifest.json").read_json()
    assert manifest["counts"] == {"predictions": 3}
    assert manifest["run"] == run.run_id
    for name, entry in manifest["files"].items():
        assert (Place.of(output) / f"runs/{run.run_id}/{name}").sha256() == entry["sha256"]


def test_nothing_is_current_before_the_commit(output: str):
    run = opened(output)
    run.write_parquet("predictions", frame([1]))
    run.close()
    with pytest.raises(StorageError, match=r"STORE02: .* has no predictions yet; run train first"):
        resolve(output, "predictions")


def test_killed_at_any_change_leaves_the_old_output_or_the_new(output: str):
    write_run(output, [1, 2, 3])
    outcomes: list[list[int]] = []
    while True:
        CLOCK.changes, CLOCK.fatal = 0, len(outcomes) + 1
        values = [len(outcomes), 4]
        try:
            write_run(output, values)
            break
        except Killed:
            pass
        finally:
            CLOCK.fatal = 0
        before = outcomes[-1] if outcomes else [1, 2, 3]
        assert current(output) in (before, values)
        json.loads(Place.of(resolve(output, "metrics.json")).read())
        write_run(output, values)
        assert current(output) == values
        outcomes.append(values)
    assert len(outcomes) > 20


def test_killed_restart_keeps_the_finished_run(output: str):
    first = write_run(output, [1, 2, 3])
    CLOCK.changes, CLOCK.fatal = 0, 12
    with pytest.raises(Killed):
        write_run(output, [1, 2, 3], restart=True)
    CLOCK.fatal = 0
    assert current(output) == [1, 2, 3]
    assert f"runs/{first.run_id}/" in resolve(output, "model")
    again = write_run(output, [1, 2, 3], restart=True)
    assert again.run_id == f"{first.run_id}.try2"
    assert f"runs/{again.run_id}/" in resolve(output, "model")


def test_failing_rerun_keeps_the_last_good_output(output: str):
    write_run(output, [1, 2, 3])
    run = opened(output, conf="b")
    with pytest.raises(StorageError, match=r"STORE03: .* counted as 1 rows where 2 were written"):
        run.write_parquet("predictions", frame([7, 8], lost=1), expected_rows=2)
    run.close()
    assert current(output) == [1, 2, 3]


def test_finished_run_has_nothing_to_do(output: str):
    first = write_run(output, [1, 2, 3])
    again = opened(output, conf="[1, 2, 3]")
    again.close()
    assert again.committed
    assert again.run_id == first.run_id


def test_finished_run_becomes_current_again(output: str):
    write_run(output, [1])
    write_run(output, [2])
    assert current(output) == [2]
    assert write_run(output, [1]).committed
    assert current(output) == [1]


def test_incomplete_finished_run_is_computed_again(output: str):
    first = write_run(output, [1, 2])
    (Place.of(output) / f"runs/{first.run_id}/predictions").remove()
    again = write_run(output, [1, 2])
    assert again.run_id == f"{first.run_id}.try2"
    assert current(output) == [1, 2]


def test_actions_take_over_each_others_parts(output: str):
    write_run(output, [1, 2, 3])
    model = resolve(output, "model")
    run = opened(output, action="evaluate")
    run.write_json("metrics.json", {"dba": {"accuracy_at_1": np.float64(0.5)}, "bad": float("nan")})
    run.commit()
    run.close()
    assert resolve(output, "model") == model
    metrics = Place.of(resolve(output, "metrics.json")).read_json()
    assert metrics == {"bad": None, "dba.accuracy_at_1": 0.5, "train.rows": 3}
    assert list(metrics) == sorted(metrics)


def test_named_run_of_another_conf_is_refused(output: str):
    write_run(output, [1], run_id="nightly")
    with pytest.raises(UsageError, match=r"STORE05: run_id 'nightly' .* restart=true"):
        opened(output, conf="other", run_id="nightly")
    assert write_run(output, [2], run_id="nightly", restart=True).run_id == "nightly.try2"
    assert current(output) == [2]


def test_checkpoints_stay_for_the_same_conf_only(output: str):
    run = opened(output, conf="a", run_id="nightly")
    run.checkpoints(1).save(1, {"w": np.ones(2)}, {})
    run.write_parquet("predictions", frame([1]))
    run.close()
    resumed = opened(output, conf="a", run_id="nightly")
    assert resumed.checkpoints(1).latest() is not None
    assert not Place.of(resumed.path("predictions")).exists()
    resumed.close()
    other = opened(output, conf="b", run_id="nightly")
    assert other.checkpoints(1).latest() is None
    other.checkpoints(1).save(1, {"w": np.ones(2)}, {})
    other.checkpoints(1, "second").save(1, {"w": np.ones(2)}, {})
    other.write_json("note.json", {})
    other.commit()
    other.close()
    assert not (other.folder / "checkpoints").exists()


def test_links_show_the_current_parts(tmp_path: Path):
    write_run(tmp_path, [1])
    write_run(tmp_path, [2, 3])
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"train.rows": 2}
    assert (tmp_path / "model").is_symlink()
    assert pq.read_table(tmp_path / "predictions")["n"].to_pylist() == [2, 3]


def test_own_file_in_the_place_of_a_link_is_left_alone(tmp_path: Path):
    (tmp_path / "model").mkdir()
    write_run(tmp_path, [1])
    assert not (tmp_path / "model").is_symlink()
    assert current(tmp_path) == [1]


def test_second_job_on_the_same_output_is_refused(tmp_path: Path):
    run = opened(tmp_path)
    with pytest.raises(StorageError, match="STORE04: another job is writing under"):
        opened(tmp_path, conf="b")
    run.close()
    opened(tmp_path, conf="b").close()


@pytest.mark.parametrize("bad", ["file.txt/out", "nosuch://host/out"])
def test_unwritable_output_is_one_line(bad: str, tmp_path: Path):
    (tmp_path / "file.txt").write_text("")
    path = bad if "://" in bad else str(tmp_path / bad)
    with pytest.raises(UsageError, match=r"^CONF04: output = .*cannot write there: .*$") as caught:
        opened(path)
    assert "\n" not in str(caught.value)


def test_damaged_pointer_is_told(tmp_path: Path):
    write_run(tmp_path, [1])
    (tmp_path / "current.json").write_text("{")
    with pytest.raises(StorageError, match=r"STORE06: .*current.json is damaged"):
        resolve(str(tmp_path), "model")


@pytest.mark.parametrize("part", ["", "../x", "a/b", "manifest.json", "checkpoints", ".hidden"])
def test_part_names_stay_inside_the_run(part: str, tmp_path: Path):
    run = opened(tmp_path)
    with pytest.raises(ValueError, match="cannot be the name of a part"):
        run.path(part)
    run.close()


CHILD = """
import sys, time
import numpy as np
from corpusmill.storage import Place, Run, save_model
run = Run.open(sys.argv[1], "train", "auto", "f" * 64)
for step in range(10**9):
    save_model(run.path("model"), "tiny", 1, {"w": np.arange(100_000)}, {})
    run.checkpoints(1).save(step + 1, {"w": np.full(100_000, step)}, {"step": step})
    if step == 1:
        print("going", flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.05])
def test_sigkill_while_writing(delay: float, tmp_path: Path):
    write_run(tmp_path, [1, 2, 3])
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib")}
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"going\n"
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert current(tmp_path) == [1, 2, 3]
    run = Run.open(str(tmp_path), "train", "auto", "f" * 64)
    resumed = run.checkpoints(1).latest()
    assert resumed is not None
    iteration, arrays, info = resumed
    assert (arrays["w"] == info["step"]).all()
    assert info["step"] == iteration - 1
    run.write_parquet("predictions", frame([5]))
    save_model(run.path("model"), "tiny", 1, {"w": np.array([5])}, {})
    run.commit()
    run.close()
    assert current(tmp_path) == [5]


@pytest.mark.spark
def test_spark_writes_and_is_counted(spark, tmp_path: Path):
    from pyspark.sql import types as T

    df = spark.range(10, numPartitions=3)
    right = T.StructType([T.StructField("id", T.LongType(), nullable=True)])
    wrong = T.StructType([T.StructField("id", T.StringType())])
    more = T.StructType([*right, T.StructField("b", T.StringType())])
    run = opened(tmp_path / "with space")
    assert run.write_parquet("all", df, expected_rows=10, schema=right) == 10
    assert run.write_parquet("none", df.where("id < 0"), expected_rows=0) == 0
    with pytest.raises(StorageError, match="STORE03"):
        run.write_parquet("some", df, expected_rows=11)
    with pytest.raises(SchemaError, match="DATA04: column 'id' is bigint; expected string"):
        run.write_parquet("wrong", df, schema=wrong)
    with pytest.raises(SchemaError, match="DATA04: column 'b' is missing"):
        run.write_parquet("wrong", df, schema=more)
    with pytest.raises(SchemaError, match="DATA04: column 'id' is not known"):
        run.write_parquet("wrong", df, schema=T.StructType([]))
    run.commit()
    run.close()
    assert spark.read.parquet(str(tmp_path / "with space" / "none")).count() == 0
    uri = Place.of(resolve(str(tmp_path / "with space"), "all")).uri
    assert spark.read.parquet(uri).count() == 10


ARRAYS: dict[str, Any] = {
    "B": np.arange(6.0).reshape(2, 3),
    "empty": np.zeros((0, 4), np.int32),
    "words": np.array(["hügel", "b"]),
    "scalar": np.float64(3.5),
}


def tiny(folder: Path) -> Path:
    texts = {"trees.txt": "tree\nø=1\n"}
    save_model(str(folder), "tiny", 1, ARRAYS, {"classes": ["ä", "b"]}, texts)
    return folder


def test_model_comes_back(tmp_path: Path):
    arrays, info, texts = load_model(str(tiny(tmp_path / "m")), "tiny")
    assert info == {"classes": ["ä", "b"]}
    assert texts == {"trees.txt": "tree\nø=1\n"}
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)


def test_model_is_written_byte_for_byte_the_same(tmp_path: Path):
    tiny(tmp_path / "a")
    time.sleep(2.1)  # the resolution of a zip's times
    tiny(tmp_path / "b")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_model_is_plain_npz(tmp_path: Path):
    tiny(tmp_path)
    with np.load(tmp_path / "arrays.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(archive["B"], ARRAYS["B"])


def test_objects_are_no_arrays(tmp_path: Path):
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        save_model(str(tmp_path), "tiny", 1, {"o": np.array([{}], object)}, {})


def edit_json(name: str, change: Callable[[Any], object]) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return spoil


def cut(name: str, keep: int) -> Callable[[Path], None]:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:keep])

    return spoil


def flip(folder: Path) -> None:
    content = bytearray((folder / "arrays.npz").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "arrays.npz").write_bytes(content)


SPOILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "MODEL01.*no such folder"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "MODEL01.*has no manifest"),
    "no arrays": (lambda folder: (folder / "arrays.npz").unlink(), "MODEL01.*has no arrays.npz"),
    "cut manifest": (cut("manifest.json", 20), "MODEL01.*manifest.json cannot be read"),
    "strange manifest": (lambda folder: (folder / "manifest.json").write_text("[]"), "MODEL01"),
    "binary manifest": (
        lambda folder: (folder / "manifest.json").write_bytes(b"\xff\xfe"),
        "MODEL01",
    ),
    "bare manifest": (edit_json("manifest.json", lambda c: c.pop("files")), "MODEL01"),
    "a file elsewhere": (
        edit_json("manifest.json", lambda c: c["files"].update({"../m/x.txt": {}})),
        "MODEL01.*manifest.json is not one of a model",
    ),
    "no text": (lambda folder: (folder / "trees.txt").unlink(), "MODEL01.*has no trees.txt"),
    "edited text": (cut("trees.txt", 6), "MODEL02: .*trees.txt"),
    "no sum": (edit_json("manifest.json", lambda c: c["files"].pop("model.json")), "MODEL02"),
    "cut arrays": (cut("arrays.npz", 300), "MODEL02: .*arrays.npz does not match its checksum"),
    "empty arrays": (cut("arrays.npz", 0), "MODEL02"),
    "flipped bit": (flip, "MODEL02: .*arrays.npz"),
    "edited json": (edit_json("model.json", lambda c: c["info"].clear()), "MODEL02: .*model.json"),
    "kind": (edit_json("manifest.json", lambda c: c.update(kind="x")), "MODEL01.*kind is 'x'"),
    "version": (edit_json("manifest.json", lambda c: c.update(version=9)), "MODEL01.*version is 9"),
}


@pytest.mark.parametrize("how", SPOILED)
def test_spoiled_model_is_refused(how: str, tmp_path: Path):
    spoil, message = SPOILED[how]
    spoil(tiny(tmp_path / "m"))
    with pytest.raises(ModelError, match=message):
        load_model(str(tmp_path / "m"), "tiny")


@pytest.mark.parametrize("bad", ["B", "words"])
def test_arrays_of_another_shape_are_refused_even_with_right_sums(bad: str, tmp_path: Path):
    folder = tiny(tmp_path / "m")
    about = json.loads((folder / "model.json").read_text())
    about["arrays"][bad]["shape"] = [7]
    (folder / "model.json").write_text(json.dumps(about))
    digest = Place.of(folder / "model.json").sha256()
    edit_json("manifest.json", lambda c: c["files"]["model.json"].update(sha256=digest))(folder)
    with pytest.raises(ModelError, match=r"MODEL01.*do not fit together"):
        load_model(str(folder), "tiny")


def test_pickle_in_a_model_is_never_run(tmp_path: Path):
    folder = tiny(tmp_path / "m")
    np.savez(folder / "arrays.npz", B=np.array([Killed], object), allow_pickle=True)
    digest = Place.of(folder / "arrays.npz").sha256()
    edit_json("manifest.json", lambda c: c["files"]["arrays.npz"].update(sha256=digest))(folder)
    with pytest.raises(ModelError, match="MODEL01"):
        load_model(str(folder), "tiny")


def test_checkpoints_keep_the_newest_two(tmp_path: Path):
    kept = Checkpoints(str(tmp_path), every=2)
    saved = [kept.save(n, {"w": np.full(3, n)}, {"bound": n / 2}) for n in range(1, 8)]
    assert saved == [False, True, False, True, False, True, False]
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "00000004.json",
        "00000004.npz",
        "00000006.json",
        "00000006.npz",
    ]
    latest = kept.latest()
    assert latest is not None
    assert (latest[0], latest[1]["w"].tolist(), latest[2]) == (6, [6, 6, 6], {"bound": 3.0})


SPOILED_CHECKPOINTS: dict[str, Callable[[Path], object]] = {
    "cut arrays": cut("00000002.npz", 50),
    "no arrays": lambda folder: (folder / "00000002.npz").unlink(),
    "cut json": cut("00000002.json", 9),
    "no json": lambda folder: (folder / "00000002.json").unlink(),
    "other json": lambda folder: (folder / "00000002.json").write_text("[1]"),
}


@pytest.mark.parametrize("how", SPOILED_CHECKPOINTS)
def test_damaged_checkpoint_is_skipped(how: str, tmp_path: Path):
    kept = Checkpoints(str(tmp_path), every=1)
    for n in (1, 2):
        kept.save(n, {"w": np.full(3, n)}, {})
    SPOILED_CHECKPOINTS[how](tmp_path)
    latest = kept.latest()
    assert latest is not None
    assert latest[0] == 1


def test_no_checkpoint_yet(tmp_path: Path):
    assert Checkpoints(str(tmp_path / "none"), every=1).latest() is None


@given(
    st.dictionaries(
        st.text("abcλ._ ", min_size=1, max_size=6),
        arrays_of.arrays(
            st.sampled_from([np.float64, np.int32, np.bool_]),
            arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
        ),
        max_size=3,
    )
)
def test_any_arrays_come_back(arrays: dict[str, Any]):
    content = npz.pack(arrays)
    assert content == npz.pack(dict(reversed(arrays.items())))
    back = npz.unpack(content)
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array, strict=True)


def test_zip_times_are_fixed(tmp_path: Path):
    tiny(tmp_path)
    with zipfile.ZipFile(tmp_path / "arrays.npz") as archive:
        assert {item.date_time[0] for item in archive.infolist()} == {1980}


def test_fingerprint_follows_the_input(tmp_path: Path):
    log = tmp_path / "log.tsv"
    log.write_text("a\t1\n")
    first = {storage.fingerprint(str(path)) for path in (log, tmp_path, f"{tmp_path}/*.tsv")}
    assert len(first) == 3
    log.write_text("b\t22\n")
    after = {storage.fingerprint(str(path)) for path in (log, tmp_path, f"{tmp_path}/*.tsv")}
    assert not first & after


@pytest.mark.parametrize("name", ["nothing.tsv", "*.nothing"])
def test_fingerprint_of_nothing(name: str, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        storage.fingerprint(str(tmp_path / name))


def test_run_fingerprint_leaves_out_what_does_not_change_the_result():
    base = storage.run_fingerprint("train", {"seed": 1}, {"corpus": "x"})
    extra = {"seed": 1, "restart": True, "run_id": "a", "tracking": {}, "spark": {}}
    assert storage.run_fingerprint("train", extra, {"corpus": "x"}) == base
    assert storage.run_fingerprint("train", {"seed": 2}, {"corpus": "x"}) != base
    assert storage.run_fingerprint("train", {"seed": 1}, {"corpus": "y"}) != base
    assert storage.run_fingerprint("predict", {"seed": 1}, {"corpus": "x"}) != base


@pytest.mark.parametrize("text", ["/a/b", "file:/a/b", "file:///a/b", "file:///a/b/", "/a/./b"])
def test_local_places(text: str):
    place = Place.of(text)
    assert (str(place), place.uri, place.is_local) == ("/a/b", "file:///a/b", True)


def test_relative_places_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    assert Place.of("out").uri == f"file://{tmp_path}/out"
