"""What a linker found, counted."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.linking.counting import count_first

KNOWN = 4


@pytest.mark.parametrize("seed", range(20))
def test_first_answers_are_counted_where_an_entity_is_known(seed: int):
    chance = np.random.default_rng(seed)
    named = [chance.integers(0, 6, chance.integers(0, 3)).tolist() for _ in range(12)]
    answers = [chance.integers(-1, 6, 12) for _ in range(2)]
    asked = [text for text in range(12) if any(name < KNOWN for name in named[text])]
    right = [
        sum(answer[text] < KNOWN and answer[text] in named[text] for text in asked)
        for answer in answers
    ]
    offsets = np.cumsum([0, *map(len, named)])
    flat = np.array([name for names in named for name in names], np.int64)
    assert count_first(offsets, flat, KNOWN, answers).tolist() == [len(asked), *right]
