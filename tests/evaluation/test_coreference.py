"""Metrics of coreference: against slow versions, the reference scorer, and as sums over parts."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.evaluation import coreference
from corpusmill.evaluation.coreference import (
    CoreferenceCounts,
    Mentions,
    coreference_metrics,
    count_coreference,
    document_values,
    wilcoxon,
)

Mention = tuple[int, int, int]
"""Start, end and cluster."""


def mentions(documents: list[list[Mention]]) -> Mentions:
    flat = np.array([each for document in documents for each in document], np.int32).reshape(-1, 3)
    offsets = np.concatenate(([0], np.cumsum([len(document) for document in documents])))
    return Mentions(offsets.astype(np.int64), *flat.T)


def clusters_of(document: list[Mention]) -> list[set[tuple[int, int]]]:
    clusters: dict[int, set[tuple[int, int]]] = defaultdict(set)
    seen = set()
    for start, end, cluster in document:
        if (start, end) not in seen:
            clusters[cluster].add((start, end))
            seen.add((start, end))
    return list(clusters.values())


def slow_muc(keys, responses):
    total, missing = 0, 0
    for key in keys:
        parts = sum(1 for response in responses if key & response)
        parts += len(key - set().union(*responses))
        total += len(key) - 1
        missing += parts - 1
    return total - missing, total


def slow_b3(keys, responses):
    shares = [
        len(key & response) / len(key)
        for key in keys
        for mention in key
        for response in responses
        if mention in response
    ]
    return sum(shares), sum(map(len, keys))


def slow_ceaf(keys, responses, similarity):
    few, many = sorted((keys, responses), key=len)
    return max(
        sum(similarity(a, b) for a, b in zip(few, order, strict=True))
        for order in permutations(many, len(few))
    )


def slow_lea(keys, responses):
    def links(cluster):
        if len(cluster) == 1:
            return {(mention, mention) for mention in cluster}
        return set(combinations(sorted(cluster), 2))

    resolved = sum(
        len(key) * len(links(key) & links(response)) / len(links(key))
        for key in keys
        for response in responses
    )
    return resolved, sum(map(len, keys))


def slow_links(clusters):
    within = {pair for each in clusters for pair in combinations(sorted(each), 2)}
    return within, set(combinations(sorted(set().union(*clusters)), 2)) - within


def slow_counts(gold: list[Mention], system: list[Mention]) -> dict[str, tuple]:
    keys, responses = clusters_of(gold), clusters_of(system)
    key_mentions, response_mentions = set().union(*keys), set().union(*responses)
    found = len(key_mentions & response_mentions)
    same = slow_ceaf(keys, responses, lambda a, b: len(a & b))
    alike = slow_ceaf(keys, responses, lambda a, b: 2 * len(a & b) / (len(a) + len(b)))
    (within, between), (said_within, said_between) = slow_links(keys), slow_links(responses)
    right, apart = len(within & said_within), len(between & said_between)
    return {
        "mentions": (found, len(key_mentions), found, len(response_mentions)),
        "muc": slow_muc(keys, responses) + slow_muc(responses, keys),
        "b3": slow_b3(keys, responses) + slow_b3(responses, keys),
        "ceafm": (same, len(key_mentions), same, len(response_mentions)),
        "ceafe": (alike, len(keys), alike, len(responses)),
        "lea": slow_lea(keys, responses) + slow_lea(responses, keys),
        "coreferent": (right, len(within), right, len(said_within)),
        "separate": (apart, len(between), apart, len(said_between)),
    }


# Few spans, so that many are found, repeated or alone.
SPANS = [(0, 1), (0, 2), (1, 2), (2, 3), (2, 5), (4, 5), (5, 6), (6, 7)]
DOCUMENT = st.lists(
    st.tuples(st.sampled_from(SPANS), st.integers(0, 4)).map(lambda drawn: (*drawn[0], drawn[1])),
    max_size=9,
)
DOCUMENTS = st.lists(st.tuples(DOCUMENT, DOCUMENT), max_size=3)


def check(documents) -> None:
    gold, system = ([pair[side] for pair in documents] for side in (0, 1))
    counts = count_coreference(mentions(gold), mentions(system))
    for name, values in counts._asdict().items():
        expected = [slow_counts(*pair)[name] for pair in documents]
        np.testing.assert_allclose(values, np.reshape(expected, (-1, 4)), atol=1e-12, err_msg=name)


@settings(deadline=None, max_examples=150)
@given(DOCUMENTS)
def test_counts_are_those_of_sets_of_mentions(documents):
    check(documents)


@settings(deadline=None, max_examples=80)
@given(DOCUMENTS)
def test_alignment_as_a_sparse_graph_is_the_same(documents):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coreference, "_DENSE", 0)
        check(documents)


def test_by_hand():
    # Gold {a, b, c} {d, e}, predicted {a, b} {c, d, x}.
    gold = mentions([[(0, 1, 7), (1, 2, 7), (2, 3, 7), (3, 4, 9), (4, 5, 9)]])
    system = mentions([[(0, 1, -3), (1, 2, -3), (2, 3, 0), (3, 4, 0), (8, 9, 0)]])
    found = coreference_metrics(count_coreference(gold, system))
    expected = {
        "mentions": (4 / 5, 4 / 5),
        "muc": (1 / 3, 1 / 3),
        "b3": ((4 / 3 + 1 / 3 + 1 / 2) / 5, (2 + 1 / 3 + 1 / 3) / 5),
        "ceafm": (3 / 5, 3 / 5),
        "ceafe": ((4 / 5 + 2 / 5) / 2, (4 / 5 + 2 / 5) / 2),
        "lea": (1 / 5, 2 / 5),
        "blanc": ((1 / 4 + 2 / 6) / 2, (1 / 4 + 2 / 6) / 2),
    }
    for name, (recall, precision) in expected.items():
        assert found[f"{name}.recall"] == pytest.approx(recall), name
        assert found[f"{name}.precision"] == pytest.approx(precision), name
    assert found["conll_avg"] == pytest.approx(
        np.mean([found["muc.f1"], found["b3.f1"], found["ceafe.f1"]])
    )


def test_the_first_of_repeated_mentions_stays():
    once = mentions([[(0, 1, 1), (2, 3, 1), (4, 5, 2)]])
    again = mentions([[(0, 1, 1), (2, 3, 1), (4, 5, 2), (2, 3, 2), (0, 1, 1), (2, 3, 5)]])
    for one, other in zip(
        count_coreference(once, again), count_coreference(once, once), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_the_same_numbers_and_places_in_two_documents_are_not_the_same():
    gold = [[(0, 1, 0), (2, 3, 0)], [(0, 1, 0), (2, 3, 0)]]
    counts = count_coreference(mentions(gold), mentions([gold[0], []]))
    assert counts.coreferent.tolist() == [[1, 1, 1, 1], [0, 1, 0, 0]]
    assert counts.separate.sum() == 0


def test_nothing_to_divide_by_is_zero():
    nothing, one = mentions([[], []]), mentions([[(0, 1, 0)], []])
    for gold, system in ((nothing, nothing), (one, nothing), (nothing, one)):
        assert set(coreference_metrics(count_coreference(gold, system)).values()) == {0.0}
    empty = mentions([])
    assert set(coreference_metrics(count_coreference(empty, empty)).values()) == {0.0}


def test_other_documents_are_refused():
    with pytest.raises(ValueError, match="different documents"):
        count_coreference(mentions([[]]), mentions([[], []]))
    one, two = (count_coreference(mentions([[]] * n), mentions([[]] * n)) for n in (1, 2))
    with pytest.raises(ValueError, match="different documents"):
        wilcoxon(one, two, "muc.f1")


def drawn(documents: int, size: int, clusters: int, noise: float, seed: int):
    """Draw gold and system mentions at the same places, some of them in other clusters."""
    rng = np.random.default_rng(seed)
    offsets = np.arange(documents + 1) * size
    starts = np.tile(np.arange(size), documents)
    gold = rng.integers(0, clusters, len(starts))
    changed = np.where(rng.random(len(starts)) < noise, rng.integers(0, clusters, len(gold)), gold)
    return tuple(Mentions(offsets, starts, starts + 1, each) for each in (gold, changed))


def test_counts_of_parts_add_up():
    gold, system = drawn(30, 12, 4, 0.4, 1)
    whole = count_coreference(gold, system)

    def part(side: Mentions, a: int, b: int) -> Mentions:
        begin, end = side.offsets[a], side.offsets[b]
        return Mentions(side.offsets[a : b + 1] - begin, *(each[begin:end] for each in side[1:]))

    parts = [
        count_coreference(part(gold, a, b), part(system, a, b))
        for a, b in ((0, 9), (9, 9), (9, 30))
    ]
    summed = CoreferenceCounts(
        *(sum(p.sum(axis=0) for p in each) for each in zip(*parts, strict=True))
    )
    assert coreference_metrics(whole) == pytest.approx(coreference_metrics(summed))
    for total, *each in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(total, np.concatenate(each))


def test_values_by_document_are_those_of_each_alone():
    gold, system = drawn(4, 12, 4, 0.4, 2)
    counts = count_coreference(gold, system)
    for metric in ("conll_avg", "blanc.f1", "lea.recall"):
        alone = [
            coreference_metrics(CoreferenceCounts(*(each[n : n + 1] for each in counts)))[metric]
            for n in range(4)
        ]
        assert document_values(counts, metric).tolist() == pytest.approx(alone)


def test_a_long_document_needs_no_table_of_all_clusters():
    gold, system = drawn(1, 30_000, 12_000, 0.3, 3)
    count_coreference(*drawn(1, 100, 50, 0.3, 3))
    begin = time.perf_counter()
    counts = count_coreference(gold, system)
    # Some 0.8 s; the table of 11,000 by 11,000 clusters would be 1 GB.
    assert time.perf_counter() - begin < 20
    assert 0.5 < coreference_metrics(counts)["ceafe.f1"] < 1.0


def test_a_run_that_is_better_everywhere_differs():
    gold, good = drawn(20, 30, 6, 0.2, 4)
    bad = drawn(20, 30, 6, 0.6, 4)[1]
    a, b = count_coreference(gold, good), count_coreference(gold, bad)
    found = wilcoxon(a, b, "conll_avg")
    assert found.documents == 20
    assert found.p_value == pytest.approx(2.0**-19)
    assert found.p_value == wilcoxon(b, a, "conll_avg").p_value


def test_the_same_run_does_not_differ():
    gold, system = drawn(20, 30, 6, 0.2, 4)
    counts = count_coreference(gold, system)
    assert wilcoxon(counts, counts, "muc.f1") == (0.0, 1.0, 0)
    nothing = count_coreference(mentions([]), mentions([]))
    assert wilcoxon(nothing, nothing, "muc.f1").p_value == 1.0


@pytest.mark.parametrize("documents", [1, 5, 6])
def test_few_documents_prove_nothing(documents: int):
    gold, bad = drawn(documents, 30, 6, 0.6, 5)
    found = wilcoxon(count_coreference(gold, gold), count_coreference(gold, bad), "b3.f1")
    assert found.documents == documents
    assert found.p_value == pytest.approx(2.0 ** (1 - documents))


def read(path: Path) -> list[list[Mention]]:
    """Read the short CoNLL form: the last column has the brackets."""
    documents: list[list[Mention]] = []
    place = 0
    for line in path.read_text().splitlines():
        if line.startswith("#begin"):
            documents.append([])
            opened: dict[str, list[int]] = defaultdict(list)
            place = 0
        elif line.strip() and not line.startswith("#"):
            for opens, cluster, closes in re.findall(r"(\(?)(\d+)(\)?)", line.split()[-1]):
                if opens:
                    opened[cluster].append(len(documents[-1]))
                    documents[-1].append((place, place, int(cluster)))
                if closes:
                    mention = opened[cluster].pop()
                    documents[-1][mention] = (documents[-1][mention][0], place, int(cluster))
            place += 1
    return documents


NAMES = {"muc": "muc", "bcub": "b3", "ceafm": "ceafm", "ceafe": "ceafe", "lea": "lea"}


@pytest.mark.corpus
def test_the_cases_of_the_reference_scorer(corpora):
    folder = corpora / "coref_scorer_cases"
    lines = (folder / "expected.tsv").read_text().splitlines()[1:]
    assert len(lines) == 216
    for line in lines:
        case, key, response, metric, *values = line.split("\t")
        gold, system = (mentions(read(folder / "DataFiles" / name)) for name in (key, response))
        counts = count_coreference(gold, system)
        found = coreference_metrics(counts)
        name = NAMES.get(metric, metric)
        shares = [found[f"{name}.{each}"] for each in ("recall", "precision", "f1")]
        for published in (values[:3], values[3:6]):
            if published[0]:
                assert shares == pytest.approx([*map(float, published)], abs=1e-4), (case, metric)
        of = [counts.coreferent, counts.separate] if metric == "blanc" else [getattr(counts, name)]
        raw = np.concatenate([each.sum(axis=0) for each in of])
        assert raw.tolist() == pytest.approx([*map(float, values[6:])], rel=1e-4), (case, metric)
