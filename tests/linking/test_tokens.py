"""Tokens of tweets and queries: kinds by example, offsets by property, time by hostile texts."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpusmill.linking.tokens import (
    CLITIC,
    EMAIL,
    EMOJI,
    EMOTICON,
    HASHTAG,
    KINDS,
    NUMBER,
    REFERENCE,
    URL,
    USER,
    WORD,
    tokenize,
    tokenize_all,
)
from tests.linking.slow import inner_words

PIECES = [
    *"aZ9é日ß'’ʼ#@&;:.,-_/\\()<>=^*+$€%!?…\n\t \u3000",
    "\u0301",  # a mark
    "\u0947",
    "\u200d",
    "\ufe0f",
    "\u20e3",
    "😀",
    "👍🏽",
    "🇩",
    "𝒜",
    "𐐀",
    "'s",
    "U.S.",
    "http://",
    "www.",
    "a.com",
    "/x",
    "&amp;",
    "O_o",
    "<3",
    ":-)",
]
TEXTS = st.one_of(st.text(max_size=30), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


def tokens_of(text: str, kind: int | None = None) -> list[str]:
    found = zip(*tokenize(text), strict=True)
    return [text[start:end] for start, end, k in found if kind is None or k == kind]


@settings(deadline=None, max_examples=300)
@given(TEXTS)
@example("Zoë’s #日本 @é_9 e\u0301\u0301 👩\u200d🚒 1\ufe0f\u20e3 http://a.b/c…")
def test_tokens_are_apart_and_hold_every_letter_and_no_white_space(text: str):
    starts, ends, kinds = tokenize(text)
    assert [str(array.dtype) for array in (starts, ends, kinds)] == ["int32", "int32", "int8"]
    assert (starts < ends).all()
    assert (ends[:-1] <= starts[1:]).all()
    covered: set[int] = set()
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        assert not any(c.isspace() for c in text[start:end])
        covered.update(range(start, end))
    assert all(i in covered for i, c in enumerate(text) if c.isalnum())


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), TEXTS), max_size=6))
@example(["#NewYork is 9", None, "", "@a_B2 x\ny #nope"])
def test_a_batch_is_its_texts_one_by_one(texts: list[str | None]):
    batch = tokenize_all(pa.array(texts, pa.string()))
    assert len(batch.offsets) == len(texts) + 1
    assert len(batch.part_offsets) == len(batch.starts) + 1
    for n, text in enumerate(texts):
        own = slice(batch.offsets[n], batch.offsets[n + 1])
        expected = tokenize(text or "")
        np.testing.assert_array_equal(batch.starts[own], expected.starts)
        np.testing.assert_array_equal(batch.ends[own], expected.ends)
        np.testing.assert_array_equal(batch.kinds[own], expected.kinds)
        for t in range(own.start, own.stop):
            parts = slice(batch.part_offsets[t], batch.part_offsets[t + 1])
            start, end, kind = batch.starts[t], batch.ends[t], batch.kinds[t]
            words = inner_words((text or "")[start:end]) if kind in (HASHTAG, USER) else []
            found = zip(batch.part_starts[parts], batch.part_ends[parts], strict=True)
            assert [(a - start, b - start) for a, b in found] == (words if words[1:] else [])


def test_a_slice_of_an_array_is_read_as_such():
    batch = tokenize_all(pa.array(["x y", "a #NewYork", "z"]).slice(1))
    assert batch.offsets.tolist() == [0, 2, 3]
    assert batch.part_offsets.tolist() == [0, 0, 2, 2]
    assert batch.part_starts.tolist() == [3, 6]


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (WORD, "Paris, Texas. It's don't O'Neill rock'n'roll", "Paris Texas It don't O'Neill"),
        (WORD, "the U.S. and L.A., J.R.R. Tolkien. A. B", "the U.S. and L.A. J.R.R. Tolkien A B"),
        (WORD, "Spider-Man AT&T snake_case and/or amazon.com", "Spider Man AT T snake case and or"),
        (WORD, "2nd 4S cafe\u0301s हिन्दी Zürich 東京", "2nd 4S cafe\u0301s हिन्दी Zürich 東京"),
        (WORD, "می\u200cخواهم", "می\u200cخواهم"),
        (CLITIC, "Obama's Zoe’s OBAMA'S 's it'sy Giants'", "'s ’s 'S"),
        (NUMBER, "7 1,000.50 10:30 3-1 $5 5% 1,2nd", "7 1,000.50 10:30 3 1 5 5 1"),
        (HASHTAG, "#NewYork ##b (#c) #1 #4S x#no #日本 ＃d #e's", "NewYork b c 4S 日本 d e"),
        (USER, "@ann_b .@Bob: x@no @1st ＠eve RT@c", "ann_b Bob 1st eve"),
        (URL, "http://t.co/a… (https://b.org/x_(y)). WWW.c.de! d.ly/e e.f 1.5/2", None),
        (EMAIL, "me@x.com. a.b+c@d-e.co.uk, @x.com a@b", "me@x.com a.b+c@d-e.co.uk"),
        (EMOTICON, ":-) =( ;P :D <3 ^_^ -_- o_O 10:3 re:Do :/ :'(", None),
        (EMOJI, "👩\u200d🚒👍🏽🇩🇪🇫🇷1\ufe0f\u20e3❤\ufe0f☃", None),
        (REFERENCE, "a &amp; b &lt;3 &#39; &amp c&d;", "&amp; &lt; &#39;"),
    ],
)
def test_kinds(kind: int, text: str, expected: str | None):
    listed = {
        URL: ["http://t.co/a", "https://b.org/x_(y", "WWW.c.de", "d.ly/e"],
        EMOTICON: [":-)", "=(", ";P", ":D", "<3", "^_^", "-_-", "o_O", ":/", ":'("],
        EMOJI: ["👩\u200d🚒", "👍🏽", "🇩🇪", "🇫🇷", "1\ufe0f\u20e3", "❤\ufe0f", "☃"],
    }
    found = tokens_of(text, kind)
    assert found[: len((expected or "").split()) or None] == (
        listed[kind] if expected is None else expected.split()
    ), KINDS[kind]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("MichelleObama", "Michelle Obama"),
        ("NYTimes2012", "NY Times 2012"),
        ("iPhone5S", "i Phone 5 S"),
        ("new_york__city", "new york city"),
        ("justinbieber", "justinbieber"),
        ("NASA", "NASA"),
        ("ÉcoleE\u0301tE\u0301", "École E\u0301t E\u0301"),
        ("日本Tokyo", "日本 Tokyo"),
        ("ΑθήναЯрославль", "Αθήνα Ярославль"),
        ("", ""),
    ],
)
def test_case_digits_and_underscores_show_the_words_of_a_name(name: str, words: str):
    batch = tokenize_all(pa.array([f"@{name}"]))
    parts = zip(batch.part_starts - 1, batch.part_ends - 1, strict=True)
    found = [name[start:end] for start, end in parts]
    assert (found or [name] * bool(name)) == words.split()
    assert [name[start:end] for start, end in inner_words(name)] == words.split()


@pytest.mark.long
@pytest.mark.parametrize(
    "piece",
    "a a. a- a' 's 1, 1: 1a @a #a a+ a@ a@b. http://. www. b.c/. T_ o_ -_ ^_ _ : ( <> & &#1 aB AB "
    "e\u0301 a\u200d 👩\u200d 🇩 \u0301 ' . @ #".split(),
)
def test_hostile_texts_take_linear_time(piece: str):
    texts = [prefix + piece * (100_000 // len(piece)) + "9" for prefix in ("", "#", "x@")]
    started = time.process_time()
    tokenize_all(pa.array(texts))
    # Some 0.1 s a text; a pattern that goes back and forth takes minutes.
    assert time.process_time() - started < 10
