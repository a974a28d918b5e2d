"""One spelling of an entity's name, whichever source it comes from. No Spark."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from urllib.parse import unquote

_PAGE = re.compile(r"(?:https?:)?//(?:\w+\.)*(?:wikipedia|dbpedia)\.org/(?:wiki|resource)/([^?#]*)")
_OTHER_ADDRESS = re.compile(r"\w+://|//|www\.")
_BLANKS = re.compile(r"[\s_]+")
_NOT_IN_KEY = re.compile(r"[^a-z0-9_-]+")


def wikipedia_title(name: str) -> str | None:
    """Return the title of a page of Wikipedia, as its address has it.

    Parameters
    ----------
    name
        A title with spaces or underscores, perhaps with ``%20``; the address of a page of
        Wikipedia or a resource of DBpedia; or ``<dbpedia:Title>``.

    Returns
    -------
    str or None
        Composed (NFC), with underscores, the first letter upper case: ``IPhone_(1st_generation)``.
        None where nothing is left and for any other address.
    """
    name = name.strip()
    if name.startswith("<dbpedia:") and name.endswith(">"):
        name = name[len("<dbpedia:") : -1]
    page = _PAGE.match(name)
    if page is not None:
        name = page[1]
    elif _OTHER_ADDRESS.match(name):
        return None
    with suppress(UnicodeDecodeError):
        name = unquote(name, errors="strict")
    name = unicodedata.normalize("NFC", _BLANKS.sub("_", name).strip("_"))
    if not name:
        return None
    first = name[0].upper()
    # A letter whose upper case is two, like ß, keeps its place.
    return first + name[1:] if len(first) == 1 else name


def freebase_key(title: str) -> str:
    """Return the key that Freebase made of an English title: ``james_k_polk``.

    Small ASCII letters, digits, underscores and hyphens; accents are folded, all else is dropped.
    To compare titles with keys, fold the titles: there is no way back.
    """
    decomposed = unicodedata.normalize("NFKD", title).lower()
    return _BLANKS.sub("_", _NOT_IN_KEY.sub("", _BLANKS.sub("_", decomposed))).strip("_")
