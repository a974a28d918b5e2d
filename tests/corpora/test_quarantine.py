"""Bad records: what is kept of them, and when there are too many."""

from __future__ import annotations

import pytest

from corpusmill.corpora.quarantine import KEPT_CHARS, check_share, readable
from corpusmill.errors import DataError
from corpusmill.settings import QuarantineSettings


def test_readable_escapes_what_is_no_text():
    assert readable(b"caf\xc3\xa9 \xff\xfe\x00\t!") == "café \\xff\\xfe\\x00\\x09!"


@pytest.mark.parametrize("unit", [b"a", "é".encode(), "語".encode(), "😀".encode(), b"\xff"])
def test_readable_keeps_the_beginning_of_a_long_record(unit: bytes):
    text = readable(unit * 100_000)
    assert len(text) == KEPT_CHARS
    assert (readable(unit) * KEPT_CHARS).startswith(text)


def test_share_at_the_limit_is_accepted():
    check_share("log", 95, {"bad JSON": 5}, QuarantineSettings(max_share=0.05))
    check_share("log", 0, {}, QuarantineSettings(max_share=0.0))


def test_share_above_the_limit_names_the_commonest_reasons_first():
    limits = QuarantineSettings(max_share=0.05)
    with pytest.raises(DataError, match=r"DATA02: 6 of 100 .*6\.0%.*too long 4, bad count 2"):
        check_share("log", 94, {"bad count": 2, "too long": 4}, limits)
