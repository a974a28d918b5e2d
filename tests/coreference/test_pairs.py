"""What two mentions have in common, on sentences of our own."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from corpusmill.coreference.pairs import PAIR_ATOMS, compare, edit_distance
from tests.coreference import slow
from tests.coreference.samples import Prepared, Row, batch_of, document, prepare, random_batch


def np_(*words: str) -> str:
    """A noun phrase; words are tagged by their form."""
    return f"(NP {' '.join(f'({tag_of(word)} {word})' for word in words)})"


def tag_of(word: str) -> str:
    tags = {"the": "DT", "a": "DT", "The": "DT", "old": "JJ", "green": "JJ", "two": "CD"}
    if word.lower() in {"he", "she", "it", "they", "him", "i", "you"}:
        return "PRP"
    return tags.get(word, "NNP" if word[0].isupper() else "NN")


def sentences(*phrases: str) -> list[str]:
    return [f"(S {np_(*phrase.split())} (VP (VBD slept)))" for phrase in phrases]


def values_of(row: Row, antecedent: int, anaphor: int) -> dict[str, int]:
    prepared = prepare(batch_of(document("first", sentences("Vey")), row))
    values = slow.Document(prepared, 1).pair(antecedent, anaphor)
    return dict(zip(PAIR_ATOMS, values, strict=True))


def between(one: str, two: str, **more) -> dict[str, int]:
    """The values of two phrases in neighbouring sentences."""
    return values_of(document("a", sentences(one, two), **more), 0, 1)


@pytest.mark.parametrize(
    ("one", "two", "match"),
    [
        ("the old miller", "The old miller", 5),
        ("the old miller", "a old miller", 4),
        ("Mira", "Mira", 5),
        ("the old miller", "the miller", 3),  # no new content word
        ("the miller", "the old miller", 2),
        ("the old miller", "the green miller", 2),
        ("the miller", "the owl", 1),
        ("she", "She", 5),
        ("she", "him", 1),
    ],
)
def test_matches_of_strings(one, two, match):
    found = between(one, two)
    assert found["match"] == match
    assert found["exact"] == 1 + (match == 5)
    assert found["core"] == 1 + (match >= 4)
    assert found["head"] == 1 + (match >= 2)


@pytest.mark.parametrize(
    ("one", "two", "inside"),
    [
        ("Tobel Quist", "Tobel", 2),  # the anaphor's head among the antecedent's words
        ("Tobel", "Tobel Quist", 3),  # the other way round
        ("Quist Tobel", "Tobel Quist", 4),
        ("Quist", "Tobel", 1),
        ("Tobel", "Tobel", 1),  # equal heads
        ("it", "Tobel", 1),
    ],
)
def test_a_head_may_be_among_the_words_of_the_other(one, two, inside):
    assert between(one, two)["inside"] == inside


@pytest.mark.parametrize(
    ("one", "two", "extra"),
    [
        ("the miller", "the miller", 1),
        ("the miller", "the old miller", 2),
        ("the miller", "two old miller", 3),
        ("the miller", "two old green miller", 3),  # two or more
        ("the old green miller", "the green old miller", 1),
        ("it", "the old miller", 1),  # not asked of pronouns
    ],
)
def test_new_content_words_of_the_anaphor_are_counted(one, two, extra):
    assert between(one, two)["extra"] == extra


@pytest.mark.parametrize(
    ("one", "two", "substring"),
    [
        ("Mira Tobel Quist", "Mira Tobel", 2),  # the anaphor is a part of the antecedent
        ("Mira Tobel Quist", "the Tobel Quist", 2),
        ("Tobel Quist", "Mira Tobel Quist", 3),  # the other way round
        ("the old miller", "a old miller", 4),
        ("Mira Tobel Quist", "Mira Quist", 1),  # not side by side
        ("the miller", "the owl", 1),
        ("it", "it", 0),  # not asked of pronouns
        ("Vey " * 11 + "Mira", "Mira", 2),
        ("Vey " * 12 + "Mira", "Mira", 1),  # beyond the first twelve words
        ("Vey " * 13, "Vey " * 13, 1),
    ],
)
def test_a_phrase_may_be_a_part_of_the_other(one, two, substring):
    assert between(one, two)["substring"] == substring


@pytest.mark.parametrize(
    ("one", "two", "alias"),
    [
        ("Mira Quist", "MQ", 2),
        ("MQ", "Mira Quist", 2),
        ("M.Q.", "Mira the Quist", 2),
        ("Mira Vey", "MQ", 1),
        ("QM", "Mira Quist", 1),
        ("Mira", "M", 1),
        ("mira quist", "MQ", 1),
        ("owl", "miller", 1),
    ],
)
def test_abbreviations(one, two, alias):
    assert between(one, two)["alias"] == alias


@pytest.mark.parametrize(
    ("speakers", "speaker"), [(["", ""], 1), (["Bo", "Bo"], 2), (["Bo", "Ann"], 3), (["Bo", ""], 3)]
)
def test_speakers(speakers, speaker):
    assert between("I", "you", speakers=speakers)["speaker"] == speaker


@pytest.mark.parametrize(
    ("one", "two", "edit"),
    [
        ("the miller", "a miller", 1),
        ("miller", "millers", 2),
        ("lantern", "lanterns", 2),
        ("owl", "owls", 2),
        ("Mira", "Mina", 2),
        ("river", "rivet", 2),
        ("barge", "bargee", 2),
        ("tern", "tarp", 3),  # 2 of 4
        ("owl", "miller", 4),
        ("it", "miller", 0),  # not asked of pronouns
        ("x" * 70, "x" * 69, 4),  # too long to be compared
    ],
)
def test_heads_are_compared_by_letters(one, two, edit):
    assert between(one, two)["edit"] == edit


@pytest.mark.parametrize(
    ("distance", "binned"),
    [
        (1, 1), (2, 2), (5, 5), (6, 6), (7, 6), (8, 7), (10, 7), (11, 8), (15, 8),
        (16, 9), (25, 9), (26, 10), (40, 10), (41, 11), (49, 11),
    ],
)  # fmt: skip
def test_distances_are_binned(distance, binned):
    found = distances()[distance]
    assert found["mentions"] == binned
    assert found["sentences"] == 1 + binned


@cache
def distances() -> dict[int, dict[str, int]]:
    row = document("a", sentences(*(["Mira"] * 50)))
    text = slow.Document(prepare(batch_of(row)), 0)
    return {d: dict(zip(PAIR_ATOMS, text.pair(0, d), strict=True)) for d in range(1, 50)}


@pytest.mark.parametrize(
    ("one", "two", "agree"),
    [
        ("he", "him", 1),
        ("she", "he", 2),
        ("he", "they", 3),
        ("it", "they", 3),
        ("she", "I", 1),  # a person may be she
        ("it", "I", 2),
        ("he", "you", 1),
        ("the owl", "it", 1),  # of unknown gender
        ("the owl", "they", 3),
    ],
)
def test_gender_and_number_may_be_at_odds(one, two, agree):
    assert between(one, two)["agree"] == agree


def test_both_gender_and_number_may_be_at_odds():
    row = document("a", ["(S (NP (NP (PRP it)) (CC and) (NP (PRP it))))", "(S (NP (PRP we)))"])
    # A coordination is a plural of unknown gender; we is a plural of persons.
    assert values_of(row, 0, 3)["agree"] == 1
    assert values_of(row, 1, 3)["agree"] == 4


@pytest.mark.parametrize(
    ("labels", "entity"), [(("ORG", "ORG"), 2), (("ORG", "GPE"), 1), (("ORG",), 0), ((), 0)]
)
def test_types_of_entities(labels, entity):
    spans = [(2 * at, 2 * at + 1, label) for at, label in enumerate(labels)]
    assert between("Quist", "Tobel", entities=spans)["entity"] == entity


NESTED = (
    "(S (NP (NP (DT the) (NN miller)) (PP (IN of) (NP (NNP Vey)))) (VP (VBD said)"
    " (SBAR (S (NP (PRP he)) (VP (VBD mended) (NP (NP (PRP$ his) (NN barge)) (, ,)"
    " (NP (DT the) (NNP Quist))))))))"
)
# 0 the miller of Vey, 1 Vey, 2 he, 3 his barge, the Quist, 4 his, 5 the Quist


def test_one_mention_may_be_inside_of_the_other():
    row = document("a", [NESTED])
    wanted = {(0, 1): 2, (0, 2): 1, (1, 2): 1, (3, 4): 2, (3, 5): 2, (4, 5): 1}
    found = {pair: values_of(row, *pair)["nested"] for pair in wanted}
    assert found == wanted


def test_clauses_and_paths_are_asked_within_a_sentence_only():
    row = document("a", [NESTED, *sentences("it")])
    assert [values_of(row, 0, m)["clause"] for m in range(1, 7)] == [2, 1, 1, 1, 1, 0]
    assert [values_of(row, 2, m)["clause"] for m in (3, 4, 5)] == [2, 2, 2]
    assert values_of(row, 0, 6)["path"] == values_of(row, 0, 6)["apposition"] == 0
    paths = [values_of(row, a, m)["path"] for m in range(6) for a in range(m)]
    assert all(paths)
    assert len(set(paths)) >= 10


def test_equal_ways_have_equal_paths():
    rows = [
        document("a", [f"(S {np_(one)} (VP (VBD saw) {np_(two)}))"])
        for one, two in (("Mira", "it"), ("he", "him"))
    ]
    one, two = (values_of(row, 0, 1)["path"] for row in rows)
    other = values_of(document("a", [f"(S {np_('Mira')} {np_('it')})"]), 0, 1)["path"]
    assert one == two != other


@pytest.mark.parametrize(
    ("tree", "apposition"),
    [
        ("(S (NP (NP (NNP Vey)) (, ,) (NP (DT the) (NN owl))))", 2),
        ("(S (NP (NP (NNP Vey)) (PP (IN near) (NP (DT the) (NN owl)))))", 1),
        ("(S (NP (NNP Vey)) (VP (VBD saw) (NP (DT the) (NN owl))))", 1),
    ],
)
def test_an_apposition_stands_beside_with_a_token_between(tree, apposition):
    row = document("a", [tree], clusters=[(0, 1, 0)])
    prepared = prepare(batch_of(row))
    text = slow.Document(prepared, 0)
    starts = prepared.mentions.starts.tolist()
    ends = prepared.mentions.ends.tolist()
    spans = list(zip(starts, ends, strict=True))
    pair = text.pair(spans.index((0, 1)), spans.index((2, 4)))
    assert pair[PAIR_ATOMS.index("apposition")] == apposition


def slow_distance(one: str, two: str) -> int:
    if not one or not two:
        return len(one) + len(two)
    return min(
        slow_distance(one[1:], two[1:]) + (one[0] != two[0]),
        slow_distance(one[1:], two) + 1,
        slow_distance(one, two[1:]) + 1,
    )


@pytest.mark.parametrize("seed", range(40))
def test_edit_distances_are_those_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    one, two = ("".join(rng.choice(list("abc"), rng.integers(0, 6))) for _ in range(2))
    letters = [np.array([ord(each) for each in word], np.uint32) for word in (one, two)]
    assert edit_distance(letters[0], letters[1], np.empty(8, np.int64)) == slow_distance(one, two)


def test_all_values_of_random_pairs_are_in_their_ranges():
    prepared: Prepared = prepare(random_batch(4, documents=4))
    most = dict.fromkeys(PAIR_ATOMS, 2) | {
        "sentences": 12, "mentions": 11, "match": 5, "inside": 4, "extra": 3, "speaker": 3,
        "edit": 4, "agree": 4, "substring": 4,
    }  # fmt: skip
    least = dict.fromkeys(PAIR_ATOMS, 1) | dict.fromkeys(
        ["edit", "clause", "apposition", "entity", "substring"], 0
    )
    for number in range(4):
        text = slow.Document(prepared, number)
        for anaphor in range(text.count):
            for antecedent in range(anaphor):
                for name, value in zip(PAIR_ATOMS, text.pair(antecedent, anaphor), strict=True):
                    assert name == "path" or least[name] <= value <= most[name], name


def test_many_antecedents_are_compared_as_each_alone():
    prepared = prepare(random_batch(5, documents=4))
    for number in range(4):
        text = slow.Document(prepared, number)
        for anaphor in range(1, text.count):
            values = np.empty((anaphor, len(PAIR_ATOMS)), np.uint64)
            at = text.begin + anaphor
            compare(prepared.table, at, text.begin, at, values)
            assert values.tolist() == [text.pair(each, anaphor) for each in range(anaphor)]


def test_without_a_clause_there_is_no_same_one():
    row = document("d", ["(S (NP (NNP Ada)) (VP (VBD saw) (NP (NNP Bob))))"], parsed=False)
    prepared = prepare(batch_of(row), tags=["NNP"])
    values = np.empty((1, len(PAIR_ATOMS)), np.uint64)
    compare(prepared.table, 1, 0, 1, values)
    assert values[0, PAIR_ATOMS.index("clause")] == 0
