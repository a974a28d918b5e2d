"""Keys: what is left of a text without case, accents, spaces and punctuation."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora.text import fold
from corpusmill.linking.folding import DIGIT, LETTER, LOWER, STOP, UPPER, characters, keys_of

TEXTS = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5)


def key(text: str) -> str:
    return "".join(c for c in fold(pa.array([text]))[0].as_py() if c.isalnum())


@settings(deadline=None)
@given(TEXTS)
def test_characters_fold_as_whole_texts_do(texts: list[str]):
    found = characters(pa.array(texts, pa.string()))
    bounds = found.folds[found.texts]
    points = found.folded.astype("<u4").tobytes().decode("utf-32-le")
    assert [points[a:b] for a, b in pairwise(bounds)] == [key(text) for text in texts]
    assert np.diff(found.texts).tolist() == [len(text) for text in texts]


@settings(deadline=None)
@given(TEXTS)
def test_classes_are_those_of_python(texts: list[str]):
    found = characters(pa.array(texts, pa.string()))
    tests = {UPPER: str.isupper, LOWER: str.islower, LETTER: str.isalpha, DIGIT: str.isdigit}
    for bit, test in tests.items():
        expected = [test(c) for text in texts for c in text]
        assert ((found.classes & bit) != 0).tolist() == expected
        assert found.before(bit).tolist() == np.cumsum([0, *expected]).tolist()


@pytest.mark.parametrize(
    ("one", "other"),
    [("U.S.", "us"), ("New York", "#NewYork"), ("Beyoncé", "BEYONCE"), ("ﬁsh", "Fish")],
)
def test_variants_have_one_key(one: str, other: str):
    first, second = keys_of(pa.array([one, other]))
    assert first == second != 0


def test_nothing_has_key_zero():
    assert keys_of(pa.array(["", "...", None, "a"])).astype(bool).tolist() == [False] * 3 + [True]
    assert len(keys_of(pa.array([], pa.string()))) == 0


def test_full_stops_are_told():
    assert ((characters(pa.array(["a. b"])).classes & STOP) != 0).tolist() == [0, 1, 0, 0]
