from itertools import pairwise

import numpy as np
import pyarrow.compute as pc

from benchmarks._corpus import bags, first, generate, pattern_table
from benchmarks.scaling import NEW_SHARE, blown_up
from corpusmill.alignment.batches import read_patterns
from corpusmill.types import Bags


def test_bags_count_the_tokens_between_the_bounds():
    found = bags(np.array([0, 3, 3, 5]), np.array([4, 1, 4, 0, 0]), features=5)
    assert found.offsets.tolist() == [0, 2, 2, 3]
    assert found.ids.tolist() == [1, 4, 0]
    assert found.counts.tolist() == [1.0, 2.0, 2.0]


def test_documents_are_the_sums_of_their_instances():
    corpus = generate(20, words=50)
    instances, documents = corpus.patterns.bags, corpus.documents
    for n, (begin, end) in enumerate(pairwise(corpus.patterns.offsets)):
        part = slice(instances.offsets[begin], instances.offsets[end])
        expected = np.bincount(instances.ids[part], instances.counts[part], minlength=50)
        own = slice(documents.offsets[n], documents.offsets[n + 1])
        assert np.array_equal(
            np.bincount(documents.ids[own], documents.counts[own], minlength=50), expected
        )


def test_pattern_table_reads_back_as_the_same_arrays():
    corpus = generate(30, words=50)
    batch = pattern_table(corpus).combine_chunks().to_batches()[0]
    found = read_patterns(batch, corpus.classes, 50)
    expected = corpus.patterns
    assert np.array_equal(found.offsets, expected.offsets)
    for name in Bags._fields:
        assert np.array_equal(getattr(found.bags, name), getattr(expected.bags, name))
    assert np.array_equal(found.labels, expected.labels)
    head = first(expected, 7)
    assert np.array_equal(head.labels, expected.labels[:7])
    assert head.bags.offsets[-1] == len(head.bags.ids) == len(head.bags.counts)
    assert len(head.weights) == head.offsets[-1] == len(head.bags.offsets) - 1


def test_blown_up_log_has_its_rows_and_its_share_of_new_queries():
    queries = [f"query number{i}" for i in range(1000)]
    parts = list(blown_up(queries, 10_000))
    rows = [row for part in parts for row in part.to_pylist()]
    assert len(rows) == 10_000
    new = sum(row not in set(queries) for row in set(rows))
    assert new > 0.9 * NEW_SHARE * len(rows)
    repeats = pc.value_counts(parts[0]).field("counts").to_pylist()
    assert max(repeats) > 10 * min(repeats)
