"""Features and scores of arcs against an exact map of features."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.arcs import (
    local_features,
    most_features,
    place,
    score_antecedents,
    score_mentions,
)
from corpusmill.coreference.pairs import PAIR_ATOMS
from tests.coreference import slow
from tests.coreference.samples import FAR, LOCAL, prepare, random_batch

BITS = 16
SHIFT = 64 - BITS


@pytest.mark.parametrize("seed", range(3))
def test_places_of_local_features_are_those_of_the_definition(seed):
    prepared = prepare(random_batch(seed), LOCAL + FAR)
    places = np.empty(most_features(prepared.arcs), np.int64)
    far = {template.name for template in prepared.templates if not template.local}
    for number in range(3):
        document = slow.Document(prepared, number)
        for anaphor in range(document.count):
            for antecedent in document.choices(anaphor):
                keys = document.features((-1,) * anaphor, antecedent)
                wanted = [slow.place_of(key, SHIFT) for key in keys if key[1] not in far]
                at = document.begin + antecedent if antecedent >= 0 else -1
                count = local_features(prepared.arcs, at, document.begin + anaphor, SHIFT, places)
                assert sorted(places[:count].tolist()) == sorted(wanted)


@pytest.mark.parametrize("window", [3, 1000])
def test_scores_of_arcs_are_sums_of_the_weights_of_their_features(window):
    prepared = prepare(random_batch(7), LOCAL)
    weights = slow.whole_weights(1, BITS)
    table = slow.Hashed(weights, SHIFT)
    for number in range(3):
        document = slow.Document(prepared, number, window)
        begin, count = document.begin, document.count
        unary = score_mentions(prepared.arcs, begin, begin + count, weights, SHIFT)
        values, out = np.empty((count, len(PAIR_ATOMS)), np.uint64), np.empty(count)
        for anaphor in range(count):
            tree = (-1,) * anaphor
            assert unary.root[anaphor] == document.score(table, tree, -1)
            low = max(0, anaphor - window)
            score_antecedents(
                prepared.arcs, begin, anaphor, low, unary, weights, SHIFT, values, out
            )
            for antecedent in range(low, anaphor):
                wanted = document.score(table, tree, antecedent)
                assert out[antecedent - low] == wanted


def test_an_arc_from_the_root_says_of_the_anaphor_what_the_templates_say_each_once():
    lines = "ana.head\nana.head + ant.head\npair.match\nana.head + ana.type + pair.match"
    prepared = prepare(random_batch(3), lines)
    assert prepared.arcs.root.shape[1] == 3  # the root itself, head, head with type


def test_places_stand_in_the_table_and_use_all_of_it():
    hashes = np.random.default_rng(0).integers(0, 1 << 64, 20_000, np.uint64, endpoint=False)
    found = np.array([place(each, 56) for each in hashes])
    assert (found.min(), found.max()) == (0, 255)
    assert np.bincount(found).min() > 40
