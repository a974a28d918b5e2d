"""Folding and tokenising against a plain loop over characters."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora import text

# Characters that this Python's Unicode tables know; later ones may have other properties.
KNOWN = st.characters(exclude_categories=("Cs", "Cn", "Co"))
LATIN = st.characters(max_codepoint=0x24F)
TEXTS = st.text(st.one_of(LATIN, KNOWN, st.sampled_from("'’ʼ ßœæøłıΣςİǅﬁ½한각カ\u0301\u093e")))


def fold_reference(string):
    kept = (c for c in unicodedata.normalize("NFKD", string) if unicodedata.category(c) != "Mn")
    lowered = "".join(c.lower() for c in kept)
    return "".join(text.SPELLED.get(c, c) for c in lowered)


def tokenize_reference(string):
    tokens = [""]
    for c in fold_reference(string):
        if c in text.APOSTROPHES:
            continue
        category = unicodedata.category(c)
        if category[0] in "LN" or category == "Mc":
            tokens[-1] += c
        else:
            tokens.append("")
    return [token for token in tokens if token]


@settings(max_examples=300, deadline=None)
@given(st.lists(TEXTS, max_size=6))
def test_fold_and_tokenize_agree_with_the_reference(strings):
    array = pa.array(strings, pa.string())
    assert text.fold(array).to_pylist() == [fold_reference(s) for s in strings]
    assert text.tokenize(array).to_pylist() == [tokenize_reference(s) for s in strings]


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, max_size=6))
def test_folding_twice_changes_nothing(strings):
    once = text.fold(pa.array(strings, pa.string()))
    assert text.fold(once).to_pylist() == once.to_pylist()


@pytest.mark.parametrize(
    ("raw", "tokens"),
    [
        ("O'Hara's  café-bar", ["oharas", "cafe", "bar"]),
        ("rock ’n’ roll", ["rock", "n", "roll"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("Ærøskøbing, Łódź; İzmir", ["aeroskobing", "lodz", "izmir"]),
        ("x² + ½", ["x2", "1", "2"]),
        ("C++ / a_b", ["c", "a", "b"]),
        ("\t \u00a0\n", []),
        ("", []),
        ("한국 가", [unicodedata.normalize("NFKD", "한국"), unicodedata.normalize("NFKD", "가")]),
        (None, []),
    ],
)
def test_examples(raw, tokens):
    assert text.tokenize(pa.array([raw], pa.string())).to_pylist() == [tokens]


def test_slices_chunks_and_nulls():
    strings = pa.chunked_array([["Zoë", None, ""], ["Á"]])
    assert text.fold(strings).to_pylist() == ["zoe", None, "", "a"]
    assert text.tokenize(strings).to_pylist() == [["zoe"], [], [], ["a"]]
    sliced = pa.array(["no", "Üb er", "no"])[1:2]
    assert text.tokenize(sliced).to_pylist() == [["ub", "er"]]
    assert text.tokenize(pa.array([], pa.string())).to_pylist() == []


def test_not_utf8_is_refused():
    data = pa.array([b"ok", b"\xff\xfe"]).view(pa.string())
    with pytest.raises(pa.ArrowInvalid, match="UTF-8"):
        text.tokenize(data)
