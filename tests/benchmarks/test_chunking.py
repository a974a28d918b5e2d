import gzip

import numpy as np
import pytest

from benchmarks._chunk_features import BLOCKS, Encoder, attributes
from benchmarks._chunks import Sentences, chunks_of, read_conll, scores_of
from benchmarks.chunking import fit_smart
from corpusmill.boosting.settings import LearnerSettings

LABELS = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]
WORDS = {
    "B-NP": ["the", "a", "no"],
    "I-NP": ["cat", "bank", "run", "light"],
    "B-VP": ["sees", "run", "light"],
    "I-VP": ["gone", "seen"],
    "O": [".", "and"],
}


def sentences_of(rows: list[list[tuple[str, str, str]]]) -> Sentences:
    words, tags, labels = (
        np.array(part) for part in zip(*(t for r in rows for t in r), strict=True)
    )
    return Sentences(np.cumsum([0, *map(len, rows)]), words, tags, labels)


def made_up(count: int, seed: int) -> Sentences:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        labels = []
        for _ in range(rng.integers(1, 4)):
            labels += ["B-NP", *["I-NP"] * rng.integers(0, 3)]
            labels += ["B-VP", *["I-VP"] * rng.integers(0, 2)]
        rows.append([(str(rng.choice(WORDS[name])), name[-1], name) for name in [*labels, "O"]])
    return sentences_of(rows)


def conlleval(labels: list[str], bounds: list[int]) -> set[tuple[int, int, str]]:
    """The script's rules, a token after the other (endOfChunk, startOfChunk)."""
    found, begin, kind = set(), -1, ""
    for at in range(len(labels) + 1):
        sort, _, mine = labels[at].partition("-") if at < len(labels) else ("O", "", "")
        ends = at in bounds or sort in ("B", "O") or mine != kind
        if begin >= 0 and ends:
            found.add((begin, at, kind))
            begin = -1
        if sort != "O" and begin < 0:
            begin, kind = at, mine
    return found


def test_chunks_are_those_of_conlleval():
    rng = np.random.default_rng(0)
    for _ in range(300):
        sizes = rng.integers(1, 6, rng.integers(1, 5))
        bounds = np.cumsum([0, *sizes])
        labels = rng.choice(LABELS, bounds[-1])
        sentences = Sentences(bounds, labels, labels, labels)
        assert chunks_of(labels, sentences) == conlleval(labels.tolist(), bounds.tolist())


def test_scores_count_whole_chunks():
    gold = np.array(["B-NP", "I-NP", "B-VP", "O", "B-NP"])
    found = np.array(["B-NP", "I-NP", "B-NP", "O", "B-NP"])
    scores = scores_of(found, Sentences(np.array([0, 4, 5]), gold, gold, gold))
    assert scores == pytest.approx((200 / 3, 200 / 3, 200 / 3, 80.0))


def test_files_are_read_sentence_by_sentence(tmp_path):
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(b"The DT B-NP\ncat NN I-NP\n\nRun VB B-VP\n\n"))
    found = read_conll(path)
    assert found.offsets.tolist() == [0, 2, 3]
    assert found.words.tolist() == ["The", "cat", "Run"]
    assert found.part(1, 2).offsets.tolist() == [0, 1]
    assert found.part(1, 2).labels.tolist() == ["B-VP"]


def test_attributes_stay_in_the_sentence():
    rows = [[("The", "DT", "B-NP"), ("cat", "NN", "I-NP")], [("Run", "VB", "B-VP")]]
    (first, second) = attributes(sentences_of(rows))
    assert second == [["w[0]=Run", "t[0]=VB", "__BOS__", "__EOS__"]]
    assert "w[0]|w[1]=The|cat" in first[0]
    assert "t[-1]|t[0]=DT|NN" in first[1]


def test_every_training_sentence_has_its_labels_as_an_output():
    sentences = made_up(60, 1)
    examples = Encoder(sentences, 0.01).training_examples(sentences)
    assert examples.gold.sum() == len(sentences.words)
    assert examples.structure.is_output(examples.gold).all()
    assert examples.known.all()


def test_a_sentence_in_training_is_encoded_as_if_it_had_not_been_there():
    sentences = made_up(5 * BLOCKS, 2)
    encoder = Encoder(sentences, 0.0)
    ours = encoder.training_examples(sentences)
    rest = sentences.part(5, 5 * BLOCKS)
    other = Encoder(rest, 0.0)
    expected = other.examples(sentences.part(0, 5))
    count = len(expected.gold)
    # Numbers of tags are those of the vocabulary, which both have whole.
    np.testing.assert_allclose(ours.features[:count], expected.features, rtol=1e-6)


def test_contexts_that_training_has_not_can_be_labelled():
    sentences = made_up(60, 1)
    encoder = Encoder(sentences, 0.01)
    odd = sentences_of([[("xyz", "?", "O")], [("xyz", "P", "O"), ("abc", "P", "O")]])
    examples = encoder.examples(odd)
    found = encoder.decoded(examples, np.zeros(len(examples.gold)))
    assert len(found) == 3
    assert np.isfinite(examples.features).all()


def test_smart_learns_to_chunk():
    train, test = made_up(200, 1), made_up(50, 2)
    settings = LearnerSettings(structure="chain", step="newton", trees=30)
    tag = fit_smart(train, settings, 0.01, 13)
    assert scores_of(tag(test), test).f1 > 95
