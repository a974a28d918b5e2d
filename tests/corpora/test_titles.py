"""Names of entities become one spelling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusmill.corpora.titles import freebase_key, wikipedia_title


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("barack obama", "Barack_obama"),
        (" New  York__City_ ", "New_York_City"),
        ("iPhone", "IPhone"),
        ("Caf%C3%A9", "Café"),
        ("Cafe\u0301", "Café"),
        ("Star_Wars%3a_Episode_I", "Star_Wars:_Episode_I"),
        ("100%_Wolf", "100%_Wolf"),
        ("%ff", "%ff"),
        ("ßx", "ßx"),
        ("<dbpedia:The_Music_Man>", "The_Music_Man"),
        ("https://en.wikipedia.org/wiki/Glock_Ges.m.b.H.", "Glock_Ges.m.b.H."),
        ("http://en.m.wikipedia.org/wiki/eBay?a=b#History", "EBay"),
        ("http://dbpedia.org/resource/2011", "2011"),
        ("https://example.org/wiki/Glock", None),
        ("www.example.org", None),
        ("AC/DC", "AC/DC"),
        ("", None),
        (" _ ", None),
    ],
)
def test_titles(name: str, title: str | None):
    assert wikipedia_title(name) == title


@given(st.text(max_size=12).filter(lambda text: "%" not in text))
def test_a_title_stays_as_it_is(name: str):
    title = wikipedia_title(name)
    assert title is None or wikipedia_title(title) == title


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("James_K._Polk", "james_k_polk"),
        ("Oregon_Ducks_men's_basketball", "oregon_ducks_mens_basketball"),
        ("Jay-Z", "jay-z"),
        ("José Martí", "jose_marti"),
        ("Obi-Wan__Kenobi ", "obi-wan_kenobi"),
        ("日本", ""),
    ],
)
def test_keys_of_freebase(title: str, key: str):
    assert freebase_key(title) == key
