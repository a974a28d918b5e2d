from __future__ import annotations

import math

import numpy as np
import pytest

from corpusmill.alignment.comparison import (
    METHODS,
    METRICS,
    ComparisonSettings,
    Corpus,
    average,
    choose_features,
    measure,
    random_splits,
    restrict,
    score,
    take,
)
from corpusmill.alignment.settings import LearnerSettings
from tests.alignment.test_baselines import corpus

LEARNER = LearnerSettings(
    max_iter=10, label_sparsity=math.inf, smoothing=10.0, alpha=1.0, learn_alpha=False
)


def test_splits_cover_all_patterns_without_overlap() -> None:
    splits = random_splits(41, 5, 0.25, seed=3)
    assert len(splits) == 5
    for train, test in splits:
        assert len(test) == 11
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(41))
    again = random_splits(41, 5, 0.25, seed=3)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(splits, again, strict=True))
    assert not np.array_equal(splits[0].test, splits[1].test)


def test_a_split_of_two_patterns_has_one_on_each_side() -> None:
    for train, test in random_splits(2, 4, 0.9, seed=0):
        assert len(train) == len(test) == 1


def test_take_is_a_selection_of_rows() -> None:
    patterns, _ = corpus(0, patterns=9)
    rows = np.array([7, 2, 3])
    taken, instances = take(patterns, rows)
    at = 0
    for n, row in enumerate(rows):
        np.testing.assert_array_equal(taken.labels[n], patterns.labels[row])
        for m in range(patterns.offsets[row], patterns.offsets[row + 1]):
            assert instances[at] == m
            old = slice(patterns.bags.offsets[m], patterns.bags.offsets[m + 1])
            new = slice(taken.bags.offsets[at], taken.bags.offsets[at + 1])
            np.testing.assert_array_equal(taken.bags.ids[new], patterns.bags.ids[old])
            np.testing.assert_array_equal(taken.bags.counts[new], patterns.bags.counts[old])
            at += 1
        assert taken.offsets[n + 1] == at
    nobody, none = take(patterns, np.zeros(0, np.int64))
    assert len(none) == 0
    assert nobody.offsets.tolist() == [0]


def test_restrict_keeps_the_chosen_features() -> None:
    patterns, _ = corpus(0, patterns=9)
    chosen = choose_features(patterns, 40, min_count=5)
    assert 0 < len(chosen) < 40
    kept = restrict(patterns, 40, chosen)
    for m in range(len(patterns.bags.offsets) - 1):
        old = slice(patterns.bags.offsets[m], patterns.bags.offsets[m + 1])
        new = slice(kept.bags.offsets[m], kept.bags.offsets[m + 1])
        held = np.isin(patterns.bags.ids[old], chosen)
        np.testing.assert_array_equal(chosen[kept.bags.ids[new]], patterns.bags.ids[old][held])
        np.testing.assert_array_equal(kept.bags.counts[new], patterns.bags.counts[old][held])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_from_labels_of_patterns_alone(method: str) -> None:
    patterns, gold = corpus(0, patterns=120)
    whole = Corpus(patterns, gold, 40)
    split = random_splits(120, 1, 0.25, seed=1)[0]
    settings = ComparisonSettings()
    found = measure(method, score(whole, split, method, settings, LEARNER, seed=0))
    names = {f"{method}.{name}" for name in METRICS}
    assert set(found) == names | {f"known_labels.{name}" for name in names}
    assert found[f"{method}.accuracy_at_1"] > 0.85
    assert found[f"known_labels.{method}.accuracy_at_1"] > 0.9
    for name in names:
        assert found[f"known_labels.{name}"] >= found[name] - 0.02
    # The class of a training instance is not looked at.
    _, instances = take(patterns, split.train)
    spoiled = gold.copy()
    spoiled[instances] = 0
    again = score(whole._replace(gold=spoiled), split, method, settings, LEARNER, seed=0)
    assert measure(method, again) == found


def test_unknown_method_is_refused() -> None:
    patterns, gold = corpus(0, patterns=9)
    split = random_splits(9, 1, 0.25, seed=1)[0]
    with pytest.raises(ValueError, match="known: dba, mnb_tf"):
        score(Corpus(patterns, gold, 40), split, "lda", ComparisonSettings(), LEARNER, 0)


def test_average_is_over_the_splits() -> None:
    assert average([{"a": 1.0, "b": 2.0}, {"a": 3.0}]) == {"a": 2.0, "b": 2.0}
