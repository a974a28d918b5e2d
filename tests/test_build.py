"""The build: pins, the Java wrapper and its choices, the package zip."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pandas as pd
import pytest

from scripts.build_dist import build_zip
from scripts.demo import table
from tests.conftest import ROOT

LISTS = sorted((ROOT / "requirements").glob("*.txt"))
PIN = re.compile(r"[A-Za-z0-9._-]+==[A-Za-z0-9._]+")


def pins(path: Path) -> list[str]:
    """Return the lines of a list of requirements, comments aside."""
    return [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_requirement_is_an_exact_version(path: Path) -> None:
    lines = pins(path)
    assert lines
    assert [line for line in lines if not PIN.fullmatch(line)] == []


def test_no_package_is_pinned_twice() -> None:
    names = [line.partition("==")[0].lower() for path in LISTS for line in pins(path)]
    assert len(names) == len(set(names))


def test_the_project_names_the_versions_that_are_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    missing = set(project["dependencies"]) - set(pins(ROOT / "requirements" / "base.txt"))
    assert missing == set()


def test_the_changelog_and_the_package_know_the_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    code = (ROOT / "lib" / "corpusmill" / "__init__.py").read_text("utf-8")
    assert f'__version__ = "{project["version"]}"' in code


def fake_java(home: Path, version: str, modules: str) -> None:
    """Make ``home`` a JAVA_HOME whose java says what it is told to."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        f"""case $1 in -version) echo 'openjdk version "{version}" 2025-01-01' >&2 ;;\n"""
        f"--list-modules) echo '{modules}' ;; esac\n"
    )
    java.chmod(0o755)


def choose_java(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run scripts/java.sh in ``folder`` with a search path that has no other Java."""
    (folder / "venv" / "bin").mkdir(parents=True)
    tools = folder / "tools"
    tools.mkdir()
    for tool in ("dirname", "grep", "head", "id", "ln", "mkdir", "readlink", "rm", "sed", "sh"):
        (tools / tool).symlink_to(f"/bin/{tool}" if Path(f"/bin/{tool}").exists() else tool)
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "java.sh"), "venv"],
        cwd=folder,
        env={"PATH": str(tools), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_java_home_is_taken_when_new_enough(tmp_path: Path) -> None:
    fake_java(tmp_path / "jdk", "21.0.4", "jdk.incubator.vector@21.0.4")
    done = choose_java(tmp_path, JAVA_HOME=str(tmp_path / "jdk"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".java" / "bin" / "java").resolve() == tmp_path / "jdk" / "bin" / "java"
    assert (tmp_path / "venv" / "bin" / "java").resolve() == tmp_path / "jdk" / "bin" / "java"


@pytest.mark.parametrize(
    ("version", "modules"),
    [
        ("1.8.0_402", "jdk.incubator.vector"),
        ("11.0.2", "jdk.incubator.vector"),
        ("17", "java.base"),
    ],
)
def test_java_that_spark_cannot_use_is_not_taken(
    tmp_path: Path, version: str, modules: str
) -> None:
    fake_java(tmp_path / "jdk", version, modules)
    choose_java(tmp_path, JAVA_HOME=str(tmp_path / "jdk"), JAVA_SETUP="system")
    chosen = (tmp_path / ".java" / "bin" / "java").resolve()
    assert chosen != tmp_path / "jdk" / "bin" / "java"


def test_an_unknown_way_to_set_up_java_names_the_allowed_ones(tmp_path: Path) -> None:
    done = choose_java(tmp_path, JAVA_SETUP="magic")
    assert done.returncode == 2
    assert done.stderr == "error: JAVA_SETUP=magic; allowed: auto, system, apt, wheel\n"


def test_the_wrapper_drops_one_argument_and_keeps_the_rest(tmp_path: Path) -> None:
    """Arguments with blanks and empty ones arrive as they were."""
    runtime = tmp_path / "runtime"
    (runtime / "bin").mkdir(parents=True)
    java = runtime / "bin" / "java"
    java.write_text('#!/bin/sh\nfor word in "$@"; do echo "[$word]"; done\n')
    java.chmod(0o755)
    wrapper = tmp_path / "java"
    command = [ROOT / "scripts" / "java_wrapper.sh", runtime, wrapper]
    subprocess.run(["/bin/sh", *map(str, command)], check=True)
    words = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "Main"]
    done = subprocess.run([str(wrapper), *words], capture_output=True, text=True, check=True)
    kept = [f"[{word}]" for word in words if word != "--add-modules=jdk.incubator.vector"]
    assert done.stdout.splitlines() == kept


@pytest.mark.long
def test_a_failed_installation_shows_its_reason_and_leaves_no_stamp(tmp_path: Path) -> None:
    wanted = tmp_path / "none.txt"
    wanted.write_text("corpusmill-no-such-package==1\n")
    done = subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "venv.sh"), "venv", str(wanted)],
        cwd=tmp_path,
        env={**os.environ, "PYTHON": sys.executable, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2
    assert "No matching distribution found for corpusmill-no-such-package==1" in done.stderr
    assert "could not be installed; the whole log: venv/install.log" in done.stderr


def test_the_zip_is_the_same_whenever_it_is_built(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    (package / "inner" / "module.py").write_text("x = 1\n")
    (package / "inner" / "__pycache__" / "module.pyc").write_bytes(b"compiled")
    build_zip(package, tmp_path / "first.zip")
    os.utime(package / "inner" / "module.py", (1, 1))
    build_zip(package, tmp_path / "second.zip")
    assert (tmp_path / "first.zip").read_bytes() == (tmp_path / "second.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "first.zip") as archive:
        assert archive.namelist() == ["package/inner/module.py"]


def test_the_demo_table_shows_entities_of_several_meanings_first() -> None:
    rows = [
        ("buy a boat", "boat", ["vehicle"], [1.0], ["buy"], 9),
        ("jaguar habitat", "jaguar", ["animal", "car"], [0.9, 0.1], ["habitat"], 1),
        ("jaguar price", "jaguar", ["car", "animal"], [0.8, 0.2], ["price"], 1),
    ]
    columns = ["query", "entity", "classes", "probabilities", "context_words", "count"]
    lines = table(pd.DataFrame(rows, columns=columns)).splitlines()
    assert lines[1].split("  ")[0] == "jaguar habitat"
    assert "animal 0.90, car 0.10" in lines[1]
    assert lines[2].startswith("jaguar price")
    assert lines[3].startswith("buy a boat")
