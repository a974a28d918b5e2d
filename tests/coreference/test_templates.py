"""Templates: what may stand in a file, and what becomes of it."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.templates import (
    ANAPHOR,
    ANTECEDENT,
    CLUSTER,
    PAIR,
    compile_templates,
    parse_templates,
)
from corpusmill.errors import UsageError


def test_a_template_a_line_with_comments_and_blanks():
    found = parse_templates(
        [
            "",
            "# all of it",
            "ana.head+ant.head  # both",
            "  pair.match ",
            "cluster.size + ana.type",
        ],
        "f",
    )
    assert [each.name for each in found] == [
        "ana.head + ant.head", "pair.match", "cluster.size + ana.type",
    ]  # fmt: skip
    assert [each.local for each in found] == [True, True, False]
    assert [each.slots for each in found] == [
        {ANAPHOR, ANTECEDENT}, {PAIR}, {CLUSTER, ANAPHOR},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("anna.head", r"'anna\.head': an atom begins with one of ana\., ant\., .*cluster\."),
        ("head", r"'head': an atom begins with one of"),
        ("ana.head +", r"'': an atom begins with one of"),
        ("ana.head ant.head", r"'ana\.head ant\.head': ana\. is followed by one of type, "),
        ("ana.heads", r"'ana\.heads': ana\. is followed by one of type, .* spoken"),
        ("ana.", r"'ana\.': ana\. is followed by one of"),
        ("pair.size", r"'pair\.size': pair\. is followed by one of sentences, mentions"),
        ("cluster.head", r"'cluster\.head': cluster\. is followed by one of size, shape, start"),
        ("ana.type + ant.type", "it is there twice"),
        ("ant.type+ana.type", "it is there twice"),
        ("ana.head + ana.head", "it is there twice"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(line, problem):
    with pytest.raises(UsageError, match=rf"CONF04: my\.txt, line 3 = .*{problem}") as caught:
        parse_templates(["ana.type + ant.type", "", line], "my.txt")
    assert "\n" not in str(caught.value)


def test_templates_are_sorted_by_what_they_need():
    lines = """
        ana.head
        ant.head + ant.type
        ana.head + ant.head
        pair.match
        ana.type + ana.head + pair.match
        ana.head + last.head
        cluster.size
    """
    found = compile_templates(parse_templates(lines.splitlines(), "f"))
    assert [len(group.seeds) for group in found] == [3, 1, 1, 3, 2]
    # The root: of no atom, of the head, of head and type.
    assert np.diff(found.root.offsets).tolist() == [0, 1, 2]
    for group in found:
        assert group.offsets[-1] == len(group.slots) == len(group.atoms) == len(group.salts)
        assert (group.salts % 2 == 1).all()
        assert len(np.unique(group.salts)) == len(group.salts)
    seeds = np.concatenate([group.seeds for group in found])
    assert len(np.unique(seeds)) == len(seeds)


def test_no_templates_leave_the_root():
    found = compile_templates([])
    assert [len(group.seeds) for group in found] == [1, 0, 0, 0, 0]


def test_a_template_has_the_same_hash_whatever_stands_beside_it():
    one = compile_templates(parse_templates(["ana.head + ant.head"], "f")).pair
    two = compile_templates(parse_templates(["pair.match", "ana.head + ant.head"], "f")).pair
    at = two.seeds.tolist().index(one.seeds[0])
    np.testing.assert_array_equal(one.salts, two.salts[slice(*two.offsets[at : at + 2])])
