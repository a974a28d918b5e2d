"""What an action of the alignment job reads, and so when a finished run is still good."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpusmill import settings, storage
from corpusmill.alignment.pipeline import inputs
from corpusmill.alignment.tasks.settings import AlignmentSettings
from corpusmill.errors import StorageError

CONF = str(Path(__file__).resolve().parents[2] / "conf" / "alignment" / "demo.yaml")
MODEL = "the output's model"


def conf(output: Path, *overrides: str) -> AlignmentSettings:
    return settings.load(CONF, [f"output={output}", *overrides], AlignmentSettings)


def train(output: Path, fingerprint: str) -> None:
    run = storage.Run.open(str(output), "train", "auto", fingerprint)
    (storage.Place.of(run.path("model")) / "manifest.json").write_json({"of": fingerprint})
    run.commit()
    run.close()


@pytest.mark.parametrize("action", ["predict", "evaluate"])
def test_a_new_model_is_a_new_input(action: str, tmp_path: Path) -> None:
    found = []
    for fingerprint in ("a" * 64, "b" * 64, "a" * 64):
        train(tmp_path, fingerprint)
        found.append(storage.fingerprint(inputs(action, conf(tmp_path))[MODEL]))
    assert found[0] != found[1]
    assert found[0] == found[2]


def test_without_a_model_predict_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"STORE02: .* has no model yet; run train first"):
        inputs("predict", conf(tmp_path))
    assert MODEL not in inputs("train", conf(tmp_path))


def test_an_output_that_cannot_be_reached_is_left_to_the_run(tmp_path: Path) -> None:
    assert MODEL not in inputs("predict", conf(tmp_path, "output=nowhere://host/out"))


def test_the_older_model_is_an_input(tmp_path: Path) -> None:
    train(tmp_path / "yesterday", "a" * 64)
    given = conf(tmp_path, f"warm_start={tmp_path}/yesterday")
    assert inputs("train", given)["warm_start"] == storage.resolve(
        str(tmp_path / "yesterday"), "model"
    )
    assert inputs("train", conf(tmp_path, f"warm_start={tmp_path}"))["warm_start"] == str(tmp_path)
