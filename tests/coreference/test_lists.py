"""Text files that a conf names."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from corpusmill.coreference.gender import read_genders
from corpusmill.coreference.lists import read_text
from corpusmill.coreference.preparation import read_templates
from corpusmill.errors import UsageError


def test_a_path_or_a_uri_plain_or_compressed_is_read(tmp_path: Path):
    (tmp_path / "plain.txt").write_text("ana.head\n")
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(b"ana.head\n"))
    for name in ("plain.txt", "packed.txt.gz"):
        for place in (str(tmp_path / name), (tmp_path / name).as_uri()):
            assert read_text(place, "templates") == "ana.head\n"
            assert read_templates(place) == ("ana.head",)


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_what_cannot_be_read_is_told_in_a_line(tmp_path: Path, content: bytes | None):
    path = tmp_path / "list.txt"
    if content is not None:
        path.write_bytes(content)
    for read, key in ((read_genders, "genders"), (read_templates, "templates")):
        with pytest.raises(UsageError, match=rf"CONF04: {key} = .*list\.txt.*: it cannot be read"):
            read(str(path))
