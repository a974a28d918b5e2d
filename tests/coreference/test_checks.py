"""Documents that are not as they must be are refused by name before a kernel sees them."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

from corpusmill.coreference.checks import refuse_broken_documents
from corpusmill.coreference.documents import read_batch
from corpusmill.coreference.model import DOCUMENT_ROWS
from corpusmill.errors import DataError
from tests.coreference.samples import Row, batch_of, document, random_batch, random_row

LISTS = [name for name in DOCUMENT_ROWS.names if name not in ("document_id", "part", "genre")]
KNOWN = [name for name in LISTS if not name.startswith("mention")]


def sound(name: str = "bad") -> Row:
    """Two sentences with all that a document may have."""
    return document(
        name,
        ["(S (NP (NNP Ada)) (VP (VBD left)))", "(S (NP (PRP She)) (VP (VBD ran)))"],
        clusters=[(0, 1, 0), (2, 3, 0)],
        entities=[(0, 1, "PERSON")],
        heads=[1, -1, 3, -1],
    )


def changed(**columns: Any) -> Row:
    return sound() | columns


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"speakers": ["x"]}, "speakers must be as long as words"),
        ({"words": []}, "pos must be as long as words"),
        ({"heads": [1]}, "heads must be as long as words or empty"),
        ({"relations": ["x"] * 5}, "relations must be as long as words or empty"),
        ({"constituent_ends": [1]}, "constituent_ends must be as long as constituent_starts"),
        ({"entity_labels": []}, "entity_labels must be as long as entity_starts"),
        ({"mention_clusters": [0]}, "mention_clusters must be as long as mention_starts"),
        ({"sentence_offsets": []}, "sentence_offsets must rise"),
        ({"sentence_offsets": [1, 4]}, "sentence_offsets must rise"),
        ({"sentence_offsets": [0, 3]}, "sentence_offsets must rise"),
        ({"sentence_offsets": [0, 3, 2, 4]}, "sentence_offsets must rise"),
        ({"sentence_offsets": [0, 2, 2, 4]}, "sentence_offsets must rise"),
        ({"sentence_offsets": [0, 4, 9]}, "sentence_offsets must rise"),
        ({"heads": [1, -1, 4, -1]}, "heads must be tokens"),
        ({"heads": [1, -2, 3, -1]}, "heads must be tokens"),
        ({"constituent_starts": [0, 0, 1, 2, 2, -3]}, "constituent spans must hold words"),
        ({"entity_ends": [5]}, "entity spans must hold words"),
        ({"entity_ends": [0]}, "entity spans must hold words"),
        ({"mention_ends": [1, 2]}, "mention spans must hold words"),
        ({"constituent_parents": [0, 0, 0, -1, 3, 3]}, "constituent_parents must be"),
        ({"constituent_parents": [-2, 0, 0, -1, 3, 3]}, "constituent_parents must be"),
        ({"constituent_parents": [-1, 0, 4, -1, 3, 3]}, "constituent_parents must be"),
        ({"constituent_parents": [-1, 0, 0, -1, 3, 1]}, "constituent_parents must be"),
        ({"mention_clusters": [0, -1]}, "mention_clusters must not be below 0"),
        ({"mention_starts": [2, 2], "mention_ends": [3, 3]}, "no mention must stand twice"),
    ],
)
def test_a_broken_document_is_named_with_its_rule(columns: Row, rule: str) -> None:
    rows = [sound("first"), changed(**columns), sound("last")]
    with pytest.raises(DataError, match=rf"DATA01: document 'bad'.*{rule}"):
        read_batch(batch_of(*rows), "english")


@pytest.mark.parametrize("name", LISTS)
def test_a_null_in_a_list_is_refused(name: str) -> None:
    row = changed(**{name: [None, *sound()[name][1:]]})
    with pytest.raises(DataError, match=f"document 'bad'.*{name} must not hold a null"):
        refuse_broken_documents(batch_of(sound("first"), row))


@pytest.mark.parametrize("name", KNOWN)
def test_a_null_list_is_refused(name: str) -> None:
    with pytest.raises(DataError, match=f"document 'bad'.*{name} must not be null"):
        refuse_broken_documents(batch_of(sound("first"), changed(**{name: None})))


def test_a_document_without_a_name_is_refused() -> None:
    with pytest.raises(DataError, match="document_id must not be null"):
        refuse_broken_documents(batch_of(changed(document_id=None)))


def test_sound_documents_pass_wherever_they_stand() -> None:
    empty: Row = {name: [] for name in LISTS} | {"sentence_offsets": [0]}
    one = document("one", ["(S (NN x))"])
    unknown = dict.fromkeys(("mention_starts", "mention_ends", "mention_clusters"))
    rows = [changed(**empty), sound(), one, changed(**unknown), sound()]
    refuse_broken_documents(batch_of(*rows))
    refuse_broken_documents(batch_of(*rows[::-1]).slice(1, 3))
    refuse_broken_documents(batch_of(*rows).slice(0, 0))
    for seed in range(20):
        refuse_broken_documents(random_batch(seed))


def test_random_damage_is_refused_or_harmless() -> None:
    """Whatever number is changed: refused by name, or all arrays stay in their bounds."""
    rng = np.random.default_rng(4)
    numbers = [name for name in LISTS if name.endswith(("s", "offsets")) and name != "lemmas"]
    numbers = [name for name in numbers if isinstance((sound()[name] or [""])[0], int)]
    refused = 0
    for _ in range(300):
        row = random_row(rng, "bad", 2, parsed=bool(rng.random() < 0.7))
        name = str(rng.choice(numbers))
        values = list(row[name])
        if values:
            values[int(rng.integers(len(values)))] = int(rng.integers(-3, len(row["words"]) + 3))
        batch = batch_of(row | {name: values})
        with contextlib.suppress(DataError):
            found = read_batch(batch, "english")
            nodes, governors = found.constituents, found.tokens.governors
            assert ((nodes.heads >= nodes.starts) & (nodes.heads < nodes.ends)).all()
            assert ((governors >= -1) & (governors < len(row["words"]))).all()
            continue
        refused += 1
        with pytest.raises(DataError, match="document 'bad'"):
            refuse_broken_documents(batch)
    assert 50 < refused < 300
