"""Examples of semantic role labelling, against the definition of their structures."""

from __future__ import annotations

import random
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from corpusmill import splits
from corpusmill.corpora.schemas import PROPOSITIONS, TREES
from corpusmill.corpora.tree_formats import parse_bracketed, write_bracketed
from corpusmill.fragments.srl import PAIRS, boundary_examples, count_pairs, role_examples

SCHEMA = splits.schema_of(PROPOSITIONS)


class Argument(NamedTuple):
    """A labelled span."""

    label: str
    first: int
    last: int


class Sentence(NamedTuple):
    """A tree in brackets, whether its leaves are words, and arguments by predicate."""

    tree: str
    has_words: bool
    propositions: list[tuple[int, list[Argument]]]


def batch_of(sentences: list[Sentence]) -> pa.RecordBatch:
    rows = []
    for number, (tree, has_words, propositions) in enumerate(sentences):
        labels, arities = parse_bracketed(tree)
        spans = [argument for _, arguments in propositions for argument in arguments]
        sizes = [len(arguments) for _, arguments in propositions]
        rows.append(
            {
                "document_id": "d",
                "sentence": number,
                "has_words": has_words,
                "node_labels": labels,
                "node_arities": arities,
                "predicates": [token for token, _ in propositions],
                "lemmas": ["do"] * len(propositions),
                "argument_offsets": [sum(sizes[:k]) for k in range(len(sizes) + 1)],
                "argument_labels": [argument.label for argument in spans],
                "argument_firsts": [argument.first for argument in spans],
                "argument_lasts": [argument.last for argument in spans],
            }
        )
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def examples_of(batch: pa.RecordBatch) -> list[tuple[str, str, str]]:
    """Return name, target and tree of each example."""
    rows = batch.to_pylist()
    assert all(row["tree_offsets"] == [0, len(row["node_labels"])] for row in rows)
    assert all(row["vector_ids"] == row["vector_values"] == [] for row in rows)
    return [
        (
            row["example_id"],
            row["target"],
            write_bracketed(row["node_labels"], row["node_arities"]),
        )
        for row in rows
    ]


class Node:
    """A node of the reference: children as objects, leaves with numbers."""

    def __init__(self, label: str, number: int) -> None:
        self.label = label
        self.number = number
        self.children: list[Node] = []
        self.tokens: set[int] = set()

    def all(self) -> list[Node]:
        return [self] + [node for child in self.children for node in child.all()]


def build(tree: str) -> Node:
    labels, arities = parse_bracketed(tree)
    position, leaves = 0, 0

    def read() -> Node:
        nonlocal position, leaves
        node = Node(labels[position], position)
        arity = arities[position]
        position += 1
        node.children = [read() for _ in range(arity)]
        if arity:
            node.tokens = set().union(*(child.tokens for child in node.children))
        else:
            node.tokens = {leaves}
            leaves += 1
        return node

    return read()


def bracket(node: Node, words: set[int], marks: dict[int, str], root: bool = True) -> str:
    """Write what covers some of the words, which is the definition of AST_m."""
    kept = [child for child in node.children if child.tokens & words]
    label = node.label + marks.get(node.number, "")
    parts = [label, *(bracket(child, words, marks, root=False) for child in kept)]
    return f"({' '.join(parts)})" if kept or root else label


def reference(sentence: Sentence, number: int) -> list[tuple[str, str, str, str]]:
    """Return name, boundary target, role or nothing, and tree of each pair."""
    root = build(sentence.tree)
    nodes = root.all()
    found = []
    for token, arguments in sentence.propositions:
        leaf = next(n for n in nodes if not n.children and n.tokens == {token})
        predicate = leaf
        if sentence.has_words:
            predicate = next((n for n in nodes if leaf in n.children), leaf)
        for node in nodes:
            related = node in predicate.all() or predicate in node.all()
            if related or (sentence.has_words and not node.children):
                continue
            words = predicate.tokens | node.tokens
            covering = [n for n in nodes if words <= n.tokens]
            top = covering[-1]  # in preorder the lowest comes last
            marks = {predicate.number: "-P", node.number: "-B"}
            tree = bracket(top, words, marks)
            label = exact_label(node, nodes, sentence.has_words, arguments)
            role = label.removeprefix("C-") if label else ""
            is_argument = label is not None and label not in ("V", "C-V")
            core = role if role in ("A0", "A1", "A2", "A3", "A4", "A5") else ""
            name = f"d:{number}:{token}:{node.number}"
            found.append((name, "+1" if is_argument else "-1", core, tree))
    return found


def exact_label(node: Node, nodes: list[Node], has_words: bool, arguments: list[Argument]):
    is_tag = not node.children
    if has_words:
        is_tag = len(node.children) == 1 and not node.children[0].children
    parent = next((other for other in nodes if node in other.children), None)
    if is_tag and parent is not None and parent.tokens == node.tokens:
        return None
    for label, first, last in arguments:
        if node.tokens == set(range(first, last)):
            return label
    return None


LABELS = ["V", "C-V", "A0", "A1", "A5", "C-A1", "R-A0", "AM-TMP", "A6", "AA", "A1-DSP"]


def random_tree(rng: random.Random, has_words: bool, depth: int = 0) -> str:
    if depth and (depth > 4 or rng.random() < 0.3):
        tag = rng.choice(["DT", "NN", "VB"])
        return f"({tag} {rng.choice('abc')})" if has_words else tag
    arity = rng.choice([1, 1, 2, 3])
    children = [random_tree(rng, has_words, depth + 1) for _ in range(arity)]
    return f"({rng.choice(['S', 'NP', 'VP'])} {' '.join(children)})"


def random_sentence(seed: int) -> Sentence:
    rng = random.Random(seed)  # noqa: S311
    has_words = rng.random() < 0.5
    tree = random_tree(rng, has_words)
    size = len(build(tree).tokens)
    propositions = []
    for token in sorted(rng.sample(range(size), min(size, rng.randrange(3)))):
        arguments = []
        for _ in range(rng.randrange(4)):
            first = rng.randrange(size)
            arguments.append(
                Argument(rng.choice(LABELS), first, rng.randrange(first + 1, size + 1))
            )
        propositions.append((token, arguments))
    return Sentence(tree, has_words, propositions)


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=4))
def test_examples_agree_with_the_definition(seeds: list[int]):
    sentences = [random_sentence(seed) for seed in seeds]
    expected = [pair for k, sentence in enumerate(sentences) for pair in reference(sentence, k)]
    batch = batch_of(sentences)
    assert examples_of(boundary_examples(batch)) == [
        (name, target, tree) for name, target, _, tree in expected
    ]
    assert examples_of(role_examples(batch)) == [
        (name, role, tree) for name, _, role, tree in expected if role
    ]
    counted = count_pairs(batch)
    sizes = [len(reference(sentence, k)) for k, sentence in enumerate(sentences)]
    assert counted[PAIRS].to_pylist() == sizes
    assert counted.select(SCHEMA.names).equals(batch)


# "The old dog chased cats in gardens": predicate at token 3.
DOG = Sentence(
    "(S1 (S (NP DT JJ NN) (VP VBD (NP NNS) (PP IN (NP NNS)))))",
    False,
    [
        (
            3,
            [
                Argument("A0", 0, 3),
                Argument("V", 3, 4),
                Argument("A1", 4, 5),
                Argument("AM-LOC", 5, 7),
            ],
        )
    ],
)


def test_structures_of_a_sentence_without_words():
    assert examples_of(boundary_examples(batch_of([DOG]))) == [
        ("d:0:3:2", "+1", "(S (NP-B DT JJ NN) (VP VBD-P))"),
        ("d:0:3:3", "-1", "(S (NP DT-B) (VP VBD-P))"),
        ("d:0:3:4", "-1", "(S (NP JJ-B) (VP VBD-P))"),
        ("d:0:3:5", "-1", "(S (NP NN-B) (VP VBD-P))"),
        ("d:0:3:8", "+1", "(VP VBD-P (NP-B NNS))"),
        ("d:0:3:9", "-1", "(VP VBD-P (NP NNS-B))"),
        ("d:0:3:10", "+1", "(VP VBD-P (PP-B IN (NP NNS)))"),
        ("d:0:3:11", "-1", "(VP VBD-P (PP IN-B))"),
        ("d:0:3:12", "-1", "(VP VBD-P (PP (NP-B NNS)))"),
        ("d:0:3:13", "-1", "(VP VBD-P (PP (NP NNS-B)))"),
    ]
    assert examples_of(role_examples(batch_of([DOG]))) == [
        ("d:0:3:2", "A0", "(S (NP-B DT JJ NN) (VP VBD-P))"),
        ("d:0:3:8", "A1", "(VP VBD-P (NP-B NNS))"),
    ]


def test_words_stand_below_their_tags_and_are_no_candidates():
    sentence = Sentence(
        "(S (NP (PRP They)) (VP (MD may) (VP (VB sleep))))",
        True,
        [(2, [Argument("A0", 0, 1), Argument("AM-MOD", 1, 2)])],
    )
    assert examples_of(boundary_examples(batch_of([sentence]))) == [
        ("d:0:2:1", "+1", "(S (NP-B (PRP They)) (VP (VP (VB-P sleep))))"),
        ("d:0:2:2", "-1", "(S (NP (PRP-B They)) (VP (VP (VB-P sleep))))"),
        ("d:0:2:5", "+1", "(VP (MD-B may) (VP (VB-P sleep)))"),
    ]


def test_pieces_have_the_role_and_references_have_none():
    arguments = [Argument("C-A1", 0, 3), Argument("R-A2", 4, 5)]
    batch = batch_of([DOG._replace(propositions=[(3, arguments)])])
    targets = {name: target for name, target, _ in examples_of(boundary_examples(batch))}
    assert [name for name, target in targets.items() if target == "+1"] == ["d:0:3:2", "d:0:3:8"]
    assert [(n, role) for n, role, _ in examples_of(role_examples(batch))] == [("d:0:3:2", "A1")]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 30)), max_size=4))
def test_only_the_first_pairs_of_a_sentence(wanted: list[tuple[int, int]]):
    batch = batch_of([random_sentence(seed) for seed, _ in wanted])
    limits = pa.array([limit for _, limit in wanted], pa.int32())
    every = examples_of(boundary_examples(batch))
    expected = []
    for row, (_, limit) in enumerate(wanted):
        expected += [example for example in every if example[0].startswith(f"d:{row}:")][:limit]
    limited = batch.append_column(PAIRS, limits)
    assert examples_of(boundary_examples(limited)) == expected


@pytest.mark.parametrize("part", [slice(0, 0), slice(1, 3), slice(2, 6)])
def test_a_part_of_a_batch_gives_its_part_of_the_examples(part: slice):
    batch = batch_of([random_sentence(seed) for seed in range(6)])
    chosen = [f"d:{number}:" for number in range(6)[part]]
    for kernel in (boundary_examples, role_examples):
        found = examples_of(kernel(batch[part]))
        assert found == [
            example
            for example in examples_of(kernel(batch))
            if example[0].startswith(tuple(chosen))
        ]


def test_sentences_without_pairs():
    sentences = [
        Sentence("()", False, []),
        Sentence("(NN)", False, [(0, [Argument("A0", 0, 1)])]),
        Sentence("(NN a)", True, [(0, [])]),
        Sentence("(S NN VB)", False, []),
    ]
    assert boundary_examples(batch_of(sentences)).num_rows == 0
    assert count_pairs(batch_of(sentences))[PAIRS].to_pylist() == [0] * 4


def test_deep_trees_need_no_recursion():
    depth = 100_000
    row = batch_of([DOG]).to_pylist()[0] | {
        "node_labels": ["X"] * depth + ["VB", "NN"],
        "node_arities": [1] * (depth - 1) + [2, 0, 0],
        "predicates": [0],
        "argument_offsets": [0, 1],
        "argument_labels": ["A0"],
        "argument_firsts": [1],
        "argument_lasts": [2],
    }
    batch = pa.RecordBatch.from_pylist([row], schema=SCHEMA)
    assert examples_of(role_examples(batch)) == [(f"d:0:0:{depth + 1}", "A0", "(X VB-P NN-B)")]


@pytest.mark.spark
def test_kernels_run_in_spark(spark: SparkSession):
    batch = batch_of([DOG, random_sentence(3), random_sentence(5)])
    rows = spark.createDataFrame(batch.to_pylist(), PROPOSITIONS).repartition(2)
    found = splits.map_partitions(rows, boundary_examples, TREES).toArrow()
    expected = pa.Table.from_batches([boundary_examples(batch)])
    assert sorted(found["example_id"].to_pylist()) == sorted(expected["example_id"].to_pylist())
