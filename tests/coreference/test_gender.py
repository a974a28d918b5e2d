"""Gender and number from counts of pronouns."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.gender import (
    GenderTable,
    find_genders,
    gender_table,
    no_genders,
    normalised,
    read_genders,
)
from corpusmill.coreference.hashing import span_hashes
from corpusmill.coreference.languages import FEMININE, MASCULINE, NEUTER, PLURAL, SINGULAR
from corpusmill.errors import DataError

LINES = {
    "mira tobel": (0, 40, 1, 0),
    "mira !": (9, 30, 2, 1),
    "! tobel": (50, 3, 1, 9),
    "tobel": (5, 3, 30, 3),
    "owl": (1, 2, 60, 9),
    "owls": (1, 2, 6, 60),
    "quist": (9, 0, 0, 0),
    "route ##": (0, 0, 11, 3),
}


def table() -> GenderTable:
    return gender_table(list(LINES), np.array(list(LINES.values())))


def lookup(text: str, found: GenderTable) -> tuple[int, int] | None:
    """Of a phrase whose last word is its head: gender and number."""
    words = hash_strings([normalised(word) for word in text.split()])
    rows = find_genders(
        np.array([0]), np.array([len(words) - 1]), words, hash_strings(["!"])[0], found
    )
    return (found.genders[rows[0]], found.numbers[rows[0]]) if rows[0] >= 0 else None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Mira Tobel", (FEMININE, SINGULAR)),
        ("Mira Vey", (FEMININE, SINGULAR)),  # begins with Mira
        ("Mira Jo Tobel", (FEMININE, SINGULAR)),  # what it begins with goes before how it ends
        ("Jo Tobel", (MASCULINE, SINGULAR)),  # ends with Tobel
        ("Tobel", (NEUTER, SINGULAR)),  # the whole, which goes before how it ends
        ("old owl", (NEUTER, SINGULAR)),  # its head
        ("old OWLS", (NEUTER, PLURAL)),
        ("Quist", None),  # too rare
        ("Route 66", (NEUTER, SINGULAR)),
        ("Route 6", None),
        ("kettle", None),
    ],
)
def test_phrases_are_found_from_the_most_specific_on(text, wanted):
    assert lookup(text, table()) == wanted
    assert lookup(text, no_genders()) is None


@pytest.mark.parametrize("name", ["genders.txt", "genders.gz"])
def test_a_list_is_read_plain_or_compressed(tmp_path, name):
    text = "".join(f"{phrase}\t{' '.join(map(str, n))}\n" for phrase, n in LINES.items())
    data = text.encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    for one, two in zip(read_genders(path), table(), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "line",
    [
        "owl 1 2 3 4", "owl\t1 2 3", "owl\t1 2 3 x", "owl\t1 2 -3 4", "owl\t1 2 3 ²",
        f"owl\t1 2 3 {10**30}", "",
    ],
)  # fmt: skip
def test_a_line_of_another_form_is_told(tmp_path, line):
    path = tmp_path / "genders.txt"
    path.write_text(f"owl\t1 2 3 4\n{line}\n")
    with pytest.raises(DataError, match=r"DATA01: .*line 2.* a phrase, a tab and four counts"):
        read_genders(path)


def test_an_empty_list_knows_nothing(tmp_path):
    path = tmp_path / "genders.txt"
    path.write_text("")
    assert len(read_genders(path).keys) == 0


def test_keys_are_sorted_and_each_stands_once():
    found = gender_table(["owl", "old owl", "owl"], np.array([[0, 0, 20, 0]] * 3))
    assert len(found.keys) == 2
    assert found.keys[0] < found.keys[1]


def test_hashes_of_phrases_depend_on_the_order_of_words():
    words = hash_strings(["a", "b", "b", "a", "a"])
    one, two, three, none = span_hashes(np.array([0, 2, 4, 5]), np.array([2, 4, 5, 5]), words)
    assert len({int(each) for each in (one, two, three, none)}) == 4
    assert (three, none) == (words[0], 0)
