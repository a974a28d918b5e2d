"""What is known of single mentions, on sentences of our own."""

from __future__ import annotations

import numpy as np
import pytest

from corpusmill.coreference.attributes import ATOMS, COMMON, LEXICAL, NAME, PRONOUN
from corpusmill.coreference.documents import hash_strings
from corpusmill.coreference.gender import gender_table
from corpusmill.coreference.languages import FEMININE, MASCULINE, NEUTER, PERSON, PLURAL, SINGULAR
from tests.coreference.samples import Prepared, Row, batch_of, document, prepare, random_batch

TREE = (
    "(S (NP (DT The) (JJ old) (NN miller)) (VP (VBD sold) (NP (NNP Orlan) (NNP Vey))"
    " (NP (PRP$ her) (NNS barges)) (PP (IN near) (NP (PRP him)))))"
)
# 0 The old miller, 1 Orlan Vey, 2 her barges, 3 her, 4 him
GENDERS = gender_table(
    ["orlan !", "miller", "barges"], np.array([[90, 1, 1, 1], [3, 70, 1, 9], [0, 0, 9, 99]])
)


def hashed(*words: str) -> list[int]:
    return [int(each) for each in hash_strings(list(words))]


def atom(prepared: Prepared, name: str) -> list[int]:
    return [int(each) for each in prepared.table.atoms[:, ATOMS.index(name)]]


def described(row: Row, **more) -> Prepared:
    return prepare(batch_of(row), **more)


@pytest.fixture(scope="module")
def sample() -> Prepared:
    row = document("a", [TREE], genre="tale", speakers=["Ann"], entities=[(4, 6, "PERSON")])
    return prepare(batch_of(row), genders=GENDERS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("head", "miller vey barges her him"),
        ("first", "the orlan her her him"),
        ("last", "miller vey barges her him"),
        ("pronoun", "- - - her him"),
        ("before", "- sold vey vey near"),
        ("after", "sold her near barges -"),
        ("second_before", "- miller orlan orlan barges"),
        ("second_after", "orlan barges him near -"),
        ("before_head", "old orlan her - -"),
        ("governor", "sold sold sold sold sold"),
        ("head_tag", "NN NNP NNS PRP$ PRP"),
        ("first_tag", "DT NNP PRP$ PRP$ PRP"),
        ("last_tag", "NN NNP NNS PRP$ PRP"),
        ("before_tag", "- VBD NNP NNP IN"),
        ("after_tag", "VBD PRP$ IN NNS -"),
        ("entity", "- PERSON - - -"),
        ("category", "NP NP NP NP NP"),
        ("above", "S VP VP VP PP"),
        ("genre", "tale tale tale tale tale"),
    ],
)
def test_words_tags_and_labels(sample, name, words):
    assert atom(sample, name) == hashed(*("" if each == "-" else each for each in words.split()))


def test_types_persons_genders_and_numbers(sample):
    table = sample.table
    assert table.types.tolist() == [COMMON, NAME, COMMON, PRONOUN, PRONOUN]
    assert table.persons.tolist() == [0, 0, 0, 3, 3]
    assert table.genders.tolist() == [FEMININE, MASCULINE, NEUTER, FEMININE, MASCULINE]
    assert table.numbers.tolist() == [SINGULAR, SINGULAR, PLURAL, SINGULAR, SINGULAR]


def test_roles_and_paths(sample):
    # Below the clause, the verb phrase (twice; her inside of her barges), a prepositional phrase.
    assert atom(sample, "role") == [1, 2, 2, 2, 3]
    paths = atom(sample, "path")
    assert paths[1] == paths[2] == paths[3]
    assert len(set(paths)) == 3
    assert sample.table.clauses.tolist() == [0] * 5


def test_a_phrase_inside_of_a_like_one_has_a_role_of_its_own():
    tree = "(S (NP (NP (NN owl)) (CC and) (NP (NN kettle))) (VP (VBD fell)))"
    assert atom(described(document("a", [tree])), "role") == [1, 4, 4]


def test_without_constituents_relations_and_governors_stand_in():
    row = document(
        "a",
        ["(S (PRP she) (VBD mended) (NNS kettles))"],
        parsed=False,
        heads=[1, -1, 1],
        relations=["nsubj", "root", "obj"],
        lemmas=["she", "mend", "kettle"],
    )
    found = described(row)
    assert atom(found, "path") == atom(found, "role") == hashed("nsubj", "obj")
    assert atom(found, "governor") == hashed("mend", "mend")
    assert atom(found, "category") == atom(found, "above") == [0, 0]
    assert found.table.clauses.tolist() == [-1, -1]


def test_nothing_is_seen_beyond_the_sentence_or_the_document():
    one, two = "(S (NP (NNP Mira)) (VP (VBD slept)))", "(S (VP (VBD saw) (NP (NNP Vey))))"
    found = prepare(batch_of(document("a", [one, two]), document("b", [one])))
    assert atom(found, "before") == hashed("", "saw", "")
    assert atom(found, "after") == hashed("slept", "", "slept")
    assert atom(found, "second_before") == atom(found, "second_after") == [0, 0, 0]


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        ("(DT the) (NN owl)", "(DT a) (NN owl)", False),
        ("(DT the) (NN owl)", "(DT the) (NN kettle)", True),
        ("(DT this) (NN owl)", "(DT those) (NNS owls)", True),
        ("(PRP$ his) (NN owl)", "(PRP$ their) (NNS owls)", True),
        ("(PRP$ his) (NN owl)", "(DT the) (NN owl)", False),
        ("(NN owl)", "(NNS kettles)", True),
        ("(NNP Vey)", "(NN owl)", False),
        ("(PRP he)", "(PRP it)", True),
        ("(PRP he)", "(PRP I)", False),
    ],
)
def test_finer_types_know_determiners_and_persons(one, two, equal):
    row = document("a", [f"(S (NP {each}) (VP (VBD slept)))" for each in (one, two)])
    found = described(row, tags=[])
    fine = atom(found, "fine")
    assert len(fine) == 2
    assert (fine[0] == fine[1]) == equal


def test_strings_and_those_without_determiners():
    phrases = ["(DT the) (NN owl)", "(DT The) (NN Owl)", "(DT an) (NN owl)", "(NN owl)", "(DT the)"]
    found = described(document("a", [f"(S (NP {each}))" for each in phrases]))
    strings, cores = atom(found, "string"), atom(found, "core")
    assert strings[0] == strings[1] != strings[2]
    assert len(set(cores[:4])) == 1
    assert cores[4] == strings[4] == hashed("the")[0]  # a determiner alone stays
    assert cores[3] == strings[3]


def test_a_coordination_is_a_plural():
    tree = "(S (NP (NP (NNP Mira)) (CC and) (NP (NNP Vey))) (VP (VBD slept)))"
    found = described(document("a", [tree]))
    assert found.table.numbers.tolist() == [PLURAL, SINGULAR, SINGULAR]


def test_pronouns_have_the_gender_of_their_word():
    words = {"I": PERSON, "it": NEUTER, "she": FEMININE, "himself": MASCULINE, "they": 0}
    found = described(document("a", [f"(S (NP (PRP {word})))" for word in words]))
    assert found.table.genders.tolist() == list(words.values())


def test_words_in_capitals_and_initials():
    words = ["MQ", "M.Q.", "Mq", "M", "M1"]
    phrases = [*(f"(NNP {word})" for word in words), "(NNP Mira) (IN of) (NNP Quist)"]
    found = described(document("a", [f"(S (NP {each}))" for each in phrases])).table
    assert found.acronyms[0] == found.acronyms[1] == found.initials[5] != 0
    assert not found.acronyms[2:].any()
    assert not found.initials[:5].any()


def test_quotations_and_speakers():
    tree = "(S (NP (NN owl)) (`` ``) (NP (NN miller)) ('' '') (NP (NN kettle)))"
    found = prepare(
        batch_of(document("a", [tree], speakers=["Bo"]), document("b", ["(NP (NN owl))"]))
    )
    quoted, spoken = atom(found, "quoted"), atom(found, "spoken")
    assert [bool(each) for each in quoted] == [False, True, False, False]
    assert [bool(each) for each in spoken] == [True, True, True, False]


def test_of_entities_that_follow_each_other_the_one_around_the_head_counts():
    row = document(
        "a",
        ["(S (NP (NNP Vey)) (NP (NNP Mira) (NNP Tobel)) (NP (NN owl)))"],
        entities=[(0, 1, "ORG"), (1, 3, "PERSON")],
    )
    assert atom(described(row), "entity") == hashed("ORG", "PERSON", "")


def test_entities_may_nest_and_the_innermost_around_the_head_counts():
    row = document(
        "a",
        ["(S (NP (NP (NNP Vey)) (NN council)) (NP (NP (NN owl)) (PP (IN of) (NP (NNP Tobel)))))"],
        entities=[(0, 2, "ORG"), (0, 1, "GPE"), (2, 5, "BIRD"), (4, 5, "PERSON")],
    )
    # Vey council, Vey, owl of Tobel, Tobel
    assert atom(described(row), "entity") == hashed("ORG", "GPE", "BIRD", "PERSON")


def test_chains_of_constituents_may_be_deep():
    deep = 5000
    row = document("a", [f"(NP {' '.join(f'(NN w{at})' for at in range(deep))})"])
    row["constituent_labels"] = ["NP"] * deep
    row["constituent_starts"], row["constituent_ends"] = list(range(deep)), [deep] * deep
    row["constituent_parents"] = list(range(-1, deep - 1))
    found = described(row)
    assert found.table.heads.tolist() == list(range(deep))
    assert atom(found, "role") == [5] + [4] * (deep - 1)


def test_lexical_attributes_are_attributes():
    assert set(LEXICAL) <= set(ATOMS)
    assert len(set(ATOMS)) == len(ATOMS)


@pytest.mark.parametrize("seed", range(3))
def test_documents_do_not_depend_on_their_neighbours(seed):
    batch = random_batch(seed)
    whole = prepare(batch)
    for number in range(3):
        alone = prepare(batch.slice(number, 1))
        begin, end = whole.mentions.offsets[number : number + 2]
        np.testing.assert_array_equal(whole.table.atoms[begin:end], alone.table.atoms)
        np.testing.assert_array_equal(whole.arcs.root[begin:end], alone.arcs.root)
        np.testing.assert_array_equal(whole.arcs.slots[:, begin:end], alone.arcs.slots[:, :-1])


@pytest.mark.parametrize(
    "batch",
    [
        random_batch(1).slice(0, 0),
        batch_of(document("a", ["(FRAG (UH oh))"])),
        batch_of(document("a", ["(FRAG (UH oh))"], parsed=False)),
        batch_of(document("a", [])),
    ],
    ids=["no documents", "no mentions", "no constituents", "no tokens"],
)
def test_where_there_is_nothing_there_are_no_attributes(batch):
    found = prepare(batch)
    assert found.table.atoms.shape == (0, len(ATOMS))
    assert found.arcs.slots.shape[1] == 1
