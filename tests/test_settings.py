"""A mistake in a conf is one line that names the key and what is allowed."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, Self

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, model_validator

from corpusmill.errors import UsageError
from corpusmill.settings import DEFAULT_DATA, JobSettings, Settings, load


class Words(Settings):
    """One form of a union."""

    kind: Literal["words"] = "words"
    most: int = Field(500, ge=1)


class Queries(Settings):
    """Another form of a union."""

    kind: Literal["queries"]
    path: str
    header: bool = False


class Model(Settings):
    """A nested part."""

    max_iter: int = Field(10, ge=1)
    tolerance: float = 1e-6
    update: Literal["paper", "bound"] = "bound"


class Probe(JobSettings):
    """The conf under test."""

    model: Model = Model()
    optional: Model | None = None
    source: Annotated[Words | Queries, Field(discriminator="kind")] = Words()
    sources: list[Queries] = Field(default_factory=list)
    named: dict[str, Queries] = Field(default_factory=dict)
    either: Words | Model | None = None
    names: tuple[str, ...] = ()


BASE = "name: probe\noutput: out\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return tmp_path / "probe.yaml"


def read(conf: Path, text: str, *overrides: str) -> Probe:
    conf.write_text(BASE + text, encoding="utf-8")
    return load(str(conf), list(overrides), Probe)


def refused(conf: Path, text: str, *overrides: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(conf, text, *overrides)
    assert caught.value.exit_status == 2
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)


def test_defaults(conf: Path):
    found = read(conf, "")
    assert (found.name, found.seed, found.run_id) == ("probe", 13, "auto")
    assert found.tracking.uri == "sqlite:///mlflow.db"


def test_values_and_overrides(conf: Path):
    found = read(
        conf,
        "model: {max_iter: 3}\nsource: {kind: queries, path: a.tsv}\n",
        "model.max_iter=20",
        "model.update=paper",
        "optional.tolerance=0.5",
        "source.header=true",
        "names=[a, b=c]",
        "output=s3://bucket/a=b",
    )
    assert found.model == Model(max_iter=20, update="paper")
    assert found.optional == Model(tolerance=0.5)
    assert found.source == Queries(kind="queries", path="a.tsv", header=True)
    assert found.names == ("a", "b=c")
    assert found.output == "s3://bucket/a=b"


def test_empty_sections_keep_their_defaults(conf: Path):
    assert read(conf, "model:\ntracking:\n") == read(conf, "")


@pytest.mark.parametrize(
    ("number", "value"), [("1e-4", 1e-4), ("1e5", 1e5), ("5", 5.0), ("2.5", 2.5), ("-1E+3", -1e3)]
)
def test_numbers_as_people_write_them(number: str, value: float, conf: Path):
    assert read(conf, f"model: {{tolerance: {number}}}\n").model.tolerance == value
    assert read(conf, "", f"model.tolerance={number}").model.tolerance == value


def test_a_conf_stands_on_another(conf: Path):
    base = conf.with_name("base.yaml")
    base.write_text("model: {max_iter: 3, update: paper}\nnames: [a]\nextends: far.yaml\nseed: 5\n")
    conf.with_name("far.yaml").write_text("output: far\nnames: [z]\nseed: 4\n")
    probe = read(conf, "extends: base.yaml\nmodel: {max_iter: 7}\nnames: [b]\n")
    assert probe.model == Model(max_iter=7, update="paper")
    assert probe.names == ("z", "a", "b")
    assert (probe.seed, probe.output) == (5, "out")
    assert read(conf, "extends: base.yaml\n", "names=[c]").names == ("c",)


@pytest.mark.parametrize(
    ("base", "told"),
    [
        ("probe.yaml", "probe.yaml extends itself"),
        ("nosuch.yaml", "CONF01"),
        ("[1]", "CONF04: extends = [1]: must be a path"),
    ],
)
def test_a_conf_that_cannot_be_extended(base: str, told: str, conf: Path):
    with pytest.raises(UsageError, match=re.escape(told)):
        read(conf, f"extends: {base}\n")


def test_settings_do_not_change(conf: Path):
    with pytest.raises(ValueError, match="frozen"):
        read(conf, "").seed = 2  # type: ignore[misc]


MISTAKES = {
    "item that is no section": (
        "sources: [5]\n",
        "CONF04: sources.0 = 5: expected keys: header, kind, path",
    ),
    "named item that is no section": (
        "named: {mine: [5]}\n",
        "CONF04: named.mine = [5]: expected keys: header, kind, path",
    ),
    "no number": (
        "model: {tolerance: .nan}\n",
        "CONF04: model.tolerance = nan: Input should be a finite number",
    ),
    "infinity": (
        "model: {tolerance: 1e400}\n",
        "CONF04: model.tolerance = inf: Input should be a finite number",
    ),
    "huge number": (
        "model: {max_iter: 2147483648}\n",
        "CONF04: model.max_iter = 2147483648: Input should be at most 2147483647",
    ),
    "name that leaves the folder": ("run_id: ..\n", "CONF04: run_id = '..': "),
    "wrong key": ("sede: 1\n", "CONF03: unknown key 'sede'; allowed here: either, model, name, "),
    "nested key": (
        "model: {iterations: 3}\n",
        "CONF03: unknown key 'model.iterations'; allowed here: max_iter, tolerance, update",
    ),
    "key of an optional part": (
        "optional: {x: 1}\n",
        "CONF03: unknown key 'optional.x'; allowed here: max_iter, tolerance, update",
    ),
    "key of a form": (
        "source: {kind: queries, path: a, most: 3}\n",
        "CONF03: unknown key 'source.most'; allowed here: header, kind, path",
    ),
    "key in a list": (
        "sources: [{kind: queries, path: a}, {kind: queries, path: a, sep: x}]\n",
        "CONF03: unknown key 'sources.1.sep'; allowed here: header, kind, path",
    ),
    "missing key of a form": (
        "source: {kind: queries}\n",
        "CONF05: missing key 'source.path': allowed here: header, kind, path",
    ),
    "missing form": ("source: {most: 3}\n", "CONF05: missing key 'source.kind': "),
    "unknown form": (
        "source: {kind: tweets}\n",
        "CONF04: source.kind = 'tweets': allowed: 'words', 'queries'",
    ),
    "wrong type": ("seed: many\n", "CONF04: seed = 'many': Input should be a valid integer"),
    "text for a number": ("seed: '1'\n", "CONF04: seed = '1': Input should be a valid integer"),
    "number for a truth": ("restart: 1\n", "CONF04: restart = 1: Input should be a valid boolean"),
    "too small": ("model: {max_iter: 0}\n", "CONF04: model.max_iter = 0: Input should be greater"),
    "not in the list": (
        "model: {update: fast}\n",
        "CONF04: model.update = 'fast': Input should be 'paper' or 'bound'",
    ),
    "value for a part": ("model: 3\n", "CONF04: model = 3: expected keys: max_iter, tolerance, "),
    "run_id": ("run_id: ../x\n", "CONF04: run_id = '../x': "),
    "long value": (f"seed: {'x' * 9000}\n", "CONF04: seed = 'xxxx"),
    "twice": ("seed: 1\nseed: 2\n", "key 'seed' stands twice"),
    "twice below": ("model: {max_iter: 1, max_iter: 2}\n", "key 'max_iter' stands twice"),
    "twice by name": ("name: again\n", "key 'name' stands twice"),
    "no YAML": ("model: [1\n", "is not valid YAML: "),
    "tab": ("model:\n\tmax_iter: 1\n", "is not valid YAML: "),
    "two documents": ("---\nseed: 1\n", "is not valid YAML: "),
    "tag": ("seed: !!python/object/apply:os.getcwd []\n", "is not valid YAML: "),
    "list as a key": ("[1, 2]: 3\n", "is not valid YAML: "),
    "number as a key": ("1: 3\n", "CONF03: unknown key '1'"),
    "other variable": ("names: ['${HOME}']\n", "CONF08: "),
    "deep": ("names: " + "[" * 5000 + "\n", "is not valid YAML: "),
    "NUL": ("names: ['\0']\n", "is not valid YAML: "),
    "alias": ("model: &m {max_iter: 1}\noptional: *m\n", "aliases (&, *) are not allowed"),
    "merge": ("model: {<<: {max_iter: 1}}\n", "merges (<<) are not allowed"),
    "half a character": ('names: ["\\ud800"]\n', "holds half a character"),
    "union": ("either: {nothing: 1}\n", "CONF03: unknown key 'either.nothing'; "),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name: str, conf: Path):
    text, message = MISTAKES[name]
    assert message in refused(conf, text)


OVERRIDES = {
    "word": ("seed", "CONF07: 'seed' is no setting; write key=value"),
    "no key": ("=1", "CONF07: '=1' is no setting"),
    "empty part": ("model..max_iter=1", "CONF07: 'model..max_iter=1' is no setting"),
    "option": ("--seed=1", "CONF03: unknown key '--seed'"),
    "below a value": ("seed.x=1", "CONF04: seed.x = 1: seed has no parts"),
    "unknown": ("model.x=1", "CONF03: unknown key 'model.x'; allowed here: max_iter, "),
    "broken": ("names=[1", "CONF04: names = [1: "),
    "type": ("model.max_iter=a", "CONF04: model.max_iter = 'a': "),
}


@pytest.mark.parametrize("name", OVERRIDES)
def test_mistake_in_an_override(name: str, conf: Path):
    word, message = OVERRIDES[name]
    assert message in refused(conf, "seed: 1\n", word)


def test_billion_laughs(conf: Path):
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "aliases (&, *) are not allowed" in refused(conf, "\n".join(lines) + "\n")
    assert "CONF04: names = " in refused(conf, "", "names=[&a [x], *a]")


def test_a_mebibyte_is_the_limit(conf: Path):
    assert "larger than 1 MiB" in refused(conf, "#" * (1 << 20))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"name: \xe9\n", b"", b"- a\n", b"words"])
def test_junk_is_told(content: bytes, conf: Path):
    conf.write_bytes(content)
    with pytest.raises(UsageError, match=r"^CONF02: .*probe.yaml is not valid YAML: "):
        load(str(conf), [], Probe)


@pytest.mark.parametrize("path", ["nosuch.yaml", ".", "a\0b"])
def test_no_conf_file(path: str):
    with pytest.raises(UsageError, match=r"^CONF01: no such conf file: "):
        load(path, [], Probe)


@pytest.mark.parametrize("output", ["''", "' '"])
def test_blank_output_is_not_the_working_folder(output: str, conf: Path):
    assert refused(conf, "", f"output={output}").startswith("CONF04: output = ")


def test_settings_that_exclude_each_other(conf: Path):
    class Both(Settings):
        a: int = 0
        b: int = 0

        @model_validator(mode="after")
        def _one(self) -> Self:
            if self.a and self.b:
                raise ValueError("a or b, not both")
            return self

    conf.write_text("a: 1\nb: 1\n")
    with pytest.raises(UsageError, match=r"^CONF11: .*go together: a or b, not both$"):
        load(str(conf), [], Both)


def test_missing_key(conf: Path):
    conf.write_text("name: probe\n")
    with pytest.raises(UsageError, match=r"^CONF05: missing key 'output': allowed here: either, "):
        load(str(conf), [], Probe)


def test_corpora_folder(conf: Path, monkeypatch: pytest.MonkeyPatch):
    text = "names: ['${CORPUSMILL_DATA}/a', b]\n"
    monkeypatch.setenv("CORPUSMILL_DATA", "/corpora")
    assert read(conf, text).names == ("/corpora/a", "b")
    monkeypatch.delenv("CORPUSMILL_DATA")
    assert read(conf, text).names == (f"{DEFAULT_DATA}/a", "b")


@given(st.text(max_size=40), st.binary(max_size=60))
def test_junk_ends_in_one_line_or_in_settings(
    tmp_path_factory: pytest.TempPathFactory, word: str, content: bytes
):
    path = tmp_path_factory.mktemp("conf") / "probe.yaml"
    path.write_bytes(BASE.encode() + content)
    with suppress(UsageError):  # anything else is a fault
        load(str(path), [word], Probe)
