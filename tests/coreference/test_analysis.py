"""Errors by types of mentions: counts add up over batches, examples are few and by chance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpusmill.coreference.analysis import (
    AROUND,
    CHANCE,
    COUNTS,
    LONGEST,
    choose_examples,
    count_errors,
    error_table,
)
from corpusmill.coreference.errors import COMMON, NAME, PRONOUN, TYPES
from corpusmill.coreference.model import PREDICTIONS
from tests.coreference.samples import Row, batch_of, document, random_row

Spans = list[tuple[int, int, int]]


def answered(rows: list[Row], found: list[Spans], antecedents: list[list[int]]) -> pa.RecordBatch:
    """A batch with predictions and a chance that is the row's number."""
    batch = batch_of(*rows)
    fields = list(PREDICTIONS)[:4]
    columns = [[[span[part] for span in spans] for spans in found] for part in range(3)]
    added = [
        pa.array(values, field.type)
        for values, field in zip([*columns, antecedents], fields, strict=True)
    ]
    arrays = [*batch.columns, *added, pa.array(range(len(rows)), pa.int64())]
    names = [*batch.schema.names, *(field.name for field in fields), CHANCE]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def told(name: str = "d", part: int = 0) -> Row:
    """Ada, the baker and she are one; he is nobody. Tokens 0, 2-3, 5 and 7."""
    row = document(
        name,
        [
            "(S (NP (NNP Ada)) (VP (VBD met) (NP (DT the) (NN baker))))",
            "(S (ADVP (RB Then)) (NP (PRP she)) (VP (VBD saw) (NP (PRP he))))",
        ],
        clusters=[(0, 1, 5), (2, 4, 5), (5, 6, 5)],
        entities=[(0, 1, "PERSON")],
    )
    return row | {"part": part}


def test_errors_stand_under_the_types_of_their_mentions() -> None:
    """She and he are linked, Ada and the baker are not."""
    batch = answered([told()], [[(5, 6, 0), (7, 8, 0)]], [[-1, 0]])
    sums = count_errors(iter([batch]), "english")
    recall = np.zeros((3, 3))
    recall[COMMON, NAME] = recall[PRONOUN, COMMON] = 1
    precision = np.zeros((3, 3))
    precision[PRONOUN, PRONOUN] = 1
    for part in ("links", "errors"):
        np.testing.assert_array_equal(sums[f"recall_{part}"], recall)
        np.testing.assert_array_equal(sums[f"precision_{part}"], precision)
    table = error_table(sums).set_index(["of", "anaphor", "antecedent"])
    assert table.loc[("recall", "pronoun", "common"), "errors"] == 1
    assert table.loc[("recall", "pronoun", "common"), "percent"] == 100.0
    assert table["links"].sum() == 3


def test_what_both_sides_have_is_no_error() -> None:
    batch = answered([told()], [[(0, 1, 0), (2, 4, 0), (5, 6, 0)]], [[-1, 0, 0]])
    sums = count_errors(iter([batch]), "english")
    assert sums["recall_errors"].sum() == sums["precision_errors"].sum() == 0
    assert sums["recall_links"].sum() == sums["precision_links"].sum() == 2
    assert choose_examples(batch, "english", 5) == []


def random_answers(seed: int, documents: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    rows: list[Row] = [random_row(rng, f"d{n}", 3, parsed=n != 1) for n in range(documents)]
    found: list[Spans] = []
    antecedents: list[list[int]] = []
    for row in rows:
        spans = zip(row["mention_starts"], row["mention_ends"], strict=True)
        kept = [span for span in spans if rng.random() < 0.8]
        before = [int(rng.integers(-1, n)) if n else -1 for n in range(len(kept))]
        clusters: list[int] = []
        for n, antecedent in enumerate(before):
            clusters.append(n if antecedent < 0 else clusters[antecedent])
        found.append([(*span, clusters[n]) for n, span in enumerate(kept)])
        antecedents.append(before)
    return answered(rows, found, antecedents)


@pytest.mark.parametrize("seed", range(5))
def test_counts_of_parts_add_up(seed: int) -> None:
    batch = random_answers(seed, 6)
    whole = count_errors(iter([batch]), "english")
    parts = count_errors((batch.slice(n, 2) for n in (0, 2, 4)), "english")
    assert whole.keys() == parts.keys() == count_errors(iter([]), "english").keys() == set(COUNTS)
    for name, value in whole.items():
        np.testing.assert_array_equal(parts[name], value)
    assert (whole["recall_errors"] <= whole["recall_links"]).all()
    assert whole["recall_errors"].sum() > 0
    clusters = [set(row) for row in batch.column("mention_clusters").to_pylist()]
    mentions = sum(map(len, batch.column("mention_clusters").to_pylist()))
    assert whole["recall_links"].sum() == mentions - sum(map(len, clusters))


def test_examples_are_errors_one_a_document_the_least_chances_first() -> None:
    documents, most = 12, 3
    batch = random_answers(7, documents)
    alone = [
        found
        for n in range(documents)
        for found in choose_examples(batch.slice(n, 1), "english", 1)
    ]
    chosen = choose_examples(batch, "english", most)
    for of in ("recall", "precision"):
        for types in np.ndindex(len(TYPES), len(TYPES)):
            expected, found = (
                sorted(each for each in examples if (each[1].of, each[1].types) == (of, types))
                for examples in (alone, chosen)
            )
            assert found == expected[:most]
            errors = [
                count_errors(iter([batch.slice(n, 1)]), "english")[f"{of}_errors"][types]
                for n in range(documents)
            ]
            assert len(expected) == np.count_nonzero(errors)
    assert len({example.document for _, example in chosen}) > most


def test_an_example_is_cut_around_the_anaphor() -> None:
    long = " ".join(f"(JJ j{n})" for n in range(LONGEST + 10))
    filler = " ".join(f"(RB r{n})" for n in range(AROUND + 5))
    trees = [f"(S (NP {long} (NN owl)) (ADVP {filler}))", "(S (NP (PRP it)) (VP (VBD slept)))"]
    end = LONGEST + 11
    at = end + AROUND + 5
    row = document("d", trees, clusters=[(0, end, 0), (at, at + 1, 0)]) | {"part": 2}
    ((_, example),) = choose_examples(answered([row], [[]], [[]]), "english", 1)
    assert example.of == "recall"
    assert example.types == (PRONOUN, COMMON)
    assert example.document == "d, part 2"
    assert example.antecedent.endswith(f"j{LONGEST - 1} …")
    assert example.before.split() == ["…", *(f"r{n}" for n in range(5, AROUND + 5))]
    assert (example.anaphor, example.after) == ("it", "slept")
