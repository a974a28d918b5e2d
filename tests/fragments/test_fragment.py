"""Fragments in brackets: the paper's form, and back."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora.tree_formats import parse_bracketed
from corpusmill.fragments.fragment import fragment_text


def test_every_node_has_its_brackets() -> None:
    labels = ["SBARQ", "WHADVP", "WRB", "How", "SQ", "."]
    text = fragment_text(labels, [3, 1, 1, 0, 0, 0])
    assert text == "(SBARQ (WHADVP (WRB (How))) (SQ) (.))"


def test_one_node() -> None:
    assert fragment_text(["NN"], [0]) == "(NN)"


def test_a_deep_fragment_needs_no_recursion() -> None:
    text = fragment_text(["x"] * 100_000, [1] * 99_999 + [0])
    assert text.count("(") == text.count(")") == 100_000


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.text("ab() \\x20\t∅", max_size=4), st.integers(0, 3)), max_size=12))
def test_labels_are_escaped_so_that_it_is_read_back(nodes: list[tuple[str, int]]) -> None:
    labels, arities, missing = ["top"], [0], 0
    for label, wanted in nodes:
        if not missing:  # one more child of the root
            arities[0] += 1
            missing = 1
        labels.append(label)
        arities.append(wanted)
        missing += wanted - 1
    labels += ["end"] * missing
    arities += [0] * missing
    tree = parse_bracketed(fragment_text(labels, arities))
    assert (list(tree.labels), list(tree.arities)) == (labels, arities)
