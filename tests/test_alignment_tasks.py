"""The two experiments as jobs, on questions and documents made up here.

Both corpora come from the model's own assumption: a class has its words, an entity or a document
has a few classes, and each of its questions or paragraphs is about one of them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import mlflow
import numpy as np
import pandas as pd
import pytest

from corpusmill.alignment.pipeline import JOB
from corpusmill.runner import run_job

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

WORDS = {
    "bakery": "dough oven crust yeast loaf flour glaze".split(),
    "harbour": "anchor mast pier sail tide keel crew".split(),
    "orchard": "apple graft blossom harvest cider pear root".split(),
    "quarry": "granite drill blast slate crane gravel dust".split(),
    "theatre": "stage curtain script rehearsal costume encore role".split(),
}
FILLERS = "with many people around old small before long".split()


def words_of(rng: np.random.Generator, kind: str, size: int, noise: float) -> list[str]:
    """Draw words of a class, a share of them of any class, and fillers between."""
    anyone = sorted(word for words in WORDS.values() for word in words)
    return [
        str(rng.choice(anyone if rng.random() < noise else source))
        for _ in range(size)
        for source in (WORDS[kind], FILLERS)
    ]


def run_all(place: Path, store: str, conf: dict[str, Any], spark: Any) -> Path:
    """Train, predict and evaluate, the last with MLflow; return the output."""
    tracking = {"uri": store, "enabled": False}
    conf = {"output": str(place / "out"), "tracking": tracking, **conf}
    (place / "conf.yaml").write_text(json.dumps(conf))
    for action in ("train", "predict"):
        assert run_job(JOB, [action, "--conf", f"{place}/conf.yaml"], spark) == 0
    assert evaluate(place, spark, "tracking.enabled=true") == 0
    return place / "out"


def evaluate(place: Path, spark: Any, *words: str) -> int:
    return run_job(JOB, ["evaluate", "--conf", f"{place}/conf.yaml", *words], spark)


def metrics(output: Path) -> dict[str, float]:
    found: dict[str, float] = json.loads((output / "metrics.json").read_text())
    return found


def tracked_runs(store: str) -> pd.DataFrame:
    mlflow.set_tracking_uri(store)
    runs: pd.DataFrame = mlflow.search_runs(experiment_names=["corpusmill"])
    return runs


def artifacts(run: str) -> set[str]:
    client = mlflow.MlflowClient()
    return {
        item.path for folder in ("plots", "tables") for item in client.list_artifacts(run, folder)
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where MLflow keeps both experiments."""
    yield f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"
    mlflow.set_tracking_uri("")


# Questions.


class Question(NamedTuple):
    """A question about an entity."""

    category: str
    entity: str
    text: str


class Experiment(NamedTuple):
    """A task that has run, and what it was given."""

    place: Path
    output: Path
    given: list[Any]


NAMES = "Varlo Brimsel Ostrand Quenby Tirrik Dalmor Ysolde Fennick Grusha Halvard Lumeth Pirrow"
METHODS = ("dba", "mnb_tf", "mnb_tfidf", "svm_tf", "svm_tfidf")
SCORES = ("accuracy_at_1", "accuracy_at_2", "accuracy_at_3", "f1_micro", "f1_macro")
QUESTIONS_CONF: dict[str, Any] = {
    "name": "questions",
    "input": {
        "kind": "questions",
        "min_questions": 3,
        "comparison": {"splits": 2},
    },
    "model": {"label_sparsity": "inf", "alpha": 4.0, "smoothing": 20.0, "max_iter": 5},
    "partitions": 2,
}


def questions(seed: int) -> list[Question]:
    """Make six questions a name: three in each of two categories."""
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in product(WORDS, WORDS) if pair[0] < pair[1]]
    return [
        question(rng, category, f"{name} Hollin", number)
        for place, name in enumerate(NAMES.split())
        for number, category in enumerate(3 * pairs[place % len(pairs)])
    ]


def question(rng: np.random.Generator, category: str, entity: str, number: int) -> Question:
    first, second = (" ".join(words_of(rng, category, 3, 0.4)) for _ in range(2))
    return Question(category, entity, f"Which {first} of {entity} had {second} number {number}?")


@pytest.fixture(scope="module")
def asked(spark: Any, store: str, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    """Questions of which some lie outside the experiment, and one is broken."""
    place = tmp_path_factory.mktemp("questions")
    given, rng = questions(4), np.random.default_rng(5)
    passed_over = [
        *(question(rng, "bakery", "Onefold Marrin", n) for n in range(5)),  # one category
        *(
            question(rng, kind, "Seldom Marrin", 0) for kind in ("bakery", "quarry")
        ),  # two questions
        *(question(rng, "bakery", "Mixed Marrin", n)._replace(category="mixed") for n in range(3)),
        *(question(rng, "bakery", "Mixed Marrin", n) for n in range(3)),
    ]
    lines = [f"{each.category}\t{each.text}\tan answer" for each in [*given, *passed_over]]
    again = lines[0]  # the same question twice is one instance
    table = ["category\tquestion\tanswer", *lines, again, "\tWhich category has it?\tnone"]
    (place / "questions.tsv").write_text("\n".join(table) + "\n")
    source = {
        "path": str(place / "questions.tsv"),
        "header": True,
        "answer": "answer",
        "leave_out": ["mixed"],
    }
    conf = {**QUESTIONS_CONF, "input": {**QUESTIONS_CONF["input"], "questions": source}}
    return Experiment(place, run_all(place, store, conf, spark), given)


def test_questions_are_all_counted(asked: Experiment) -> None:
    found = metrics(asked.output)
    assert found["input.instances"] == found["predict.instances"] == len(asked.given) == 72
    assert found["input.entities"] == len(NAMES.split())
    assert found["input.questions"] == len(asked.given) + 5 + 2 + 3
    assert found["input.quarantined"] == len(pd.read_parquet(asked.output / "quarantine")) == 1


def test_every_instance_is_predicted_beside_its_category(asked: Experiment) -> None:
    predictions = pd.read_parquet(asked.output / "predictions")
    given = Counter((each.entity.lower(), each.category) for each in asked.given)
    assert Counter(zip(predictions["entity"], predictions["category"], strict=True)) == given
    rows: list[dict[str, Any]] = predictions.to_dict("records")  # type: ignore[assignment]
    for row in rows:
        labels = {category for entity, category in given if entity == row["entity"]}
        assert set(row["classes"]) <= labels
        assert (np.diff(row["probabilities"]) <= 0).all()
        assert sum(row["probabilities"]) == pytest.approx(1.0, abs=0.01)
        assert set(row["context_words"]) <= set(row["context"])
        assert not set(row["entity"].split()) & set(row["context"])


def test_categories_are_found_from_label_sets_alone(asked: Experiment) -> None:
    predictions = pd.read_parquet(asked.output / "predictions")
    assert (predictions["classes"].str[0] == predictions["category"]).mean() > 0.9


def test_every_method_is_measured_on_questions(asked: Experiment) -> None:
    found = metrics(asked.output)
    expected = {
        f"{known}{method}.{score}"
        for known, method, score in product(("", "known_labels."), METHODS, SCORES)
    }
    measured = {name for name in found if name.split(".")[-1] in SCORES}
    assert measured == expected
    assert all(0.0 <= found[name] <= 1.0 for name in expected)
    for prefix in (name.removesuffix(".f1_micro") for name in expected if "micro" in name):
        first, second, third = (found[f"{prefix}.accuracy_at_{n}"] for n in (1, 2, 3))
        assert first <= second <= third
        # One class for each instance: what is wrongly given to one is missed for another.
        assert found[f"{prefix}.f1_micro"] == pytest.approx(first)


def test_known_label_sets_help(asked: Experiment) -> None:
    found = metrics(asked.output)
    for method in METHODS:
        assert found[f"known_labels.{method}.accuracy_at_1"] >= found[f"{method}.accuracy_at_1"]
        assert found[f"known_labels.{method}.accuracy_at_2"] == 1.0
    assert found["dba.accuracy_at_1"] > 2.0 / len(WORDS)
    assert found["known_labels.dba.accuracy_at_1"] > found["dba.accuracy_at_1"]


def test_splits_of_questions_are_child_runs(asked: Experiment, store: str) -> None:
    runs = tracked_runs(store)
    parent = runs[runs["params.name"] == "questions"].iloc[0]
    children = runs[runs["tags.mlflow.parentRunId"] == parent["run_id"]]
    assert sorted(children["tags.mlflow.runName"]) == ["split 0", "split 1"]
    found = metrics(asked.output)
    for name in ("dba.f1_macro", "known_labels.svm_tf.accuracy_at_1"):
        values = children[f"metrics.{name}"]
        assert values.mean() == pytest.approx(found[name])
        assert parent[f"metrics.{name}"] == pytest.approx(found[name])
    assert artifacts(parent["run_id"]) >= {"plots/accuracy.png", "tables/comparison.json"}


def test_questions_measure_the_same_again(spark: Any, asked: Experiment) -> None:
    before, runs = metrics(asked.output), set((asked.output / "runs").iterdir())
    assert evaluate(asked.place, spark, "restart=true") == 0
    assert set((asked.output / "runs").iterdir()) > runs
    assert metrics(asked.output) == before


def test_one_entity_cannot_be_compared(
    spark: Any, asked: Experiment, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = (asked.place / "questions.tsv").read_text().splitlines(keepends=True)
    (asked.place / "few.tsv").write_text("".join(lines[:7]))
    words = [f"input.questions.path={asked.place}/few.tsv", "input.comparison.splits=1"]
    assert evaluate(asked.place, spark, *words, f"output={asked.place}/few") == 1
    last = capfd.readouterr().err.strip().splitlines()[-1]
    assert "the questions: one entity cannot be split" in last
    assert not (asked.place / "few" / "metrics.json").exists()


# Documents.


class Document(NamedTuple):
    """A document with the topic of its title and of each paragraph."""

    number: int
    split: str
    topics: list[str]
    texts: list[str]
    about: list[str]


TOPICS = ("bakery", "harbour", "orchard")
PAPER_METHODS = ("dba", "dba_diagonal", "mnb", "mimlsvm", "mimlboost")
PRACTITIONER_METHODS = ("dba", "dba_diagonal", "mnb", "svm")
PARAGRAPH_METHODS = ("dba", "mnb", "svm", "mnb_instances", "svm_instances")
SPLITS = {"train": ("YES", "TRAIN"), "test": ("YES", "TEST"), "unused": ("NO", "TRAIN")}
LEARNER = {"label_sparsity": "inf", "alpha": 0.5, "smoothing": 20.0, "max_iter": 3}
REUTERS_CONF: dict[str, Any] = {
    "name": "reuters",
    "input": {
        "kind": "reuters",
        "classes": 3,
        "comparison": {
            "runs": 1,
            "train_documents": 40,
            "folds": 2,
            "mimlboost_rounds": 5,
            "paper": {"features": 30, "min_tokens": 2},
        },
        "paper": LEARNER,
        "paragraphs": LEARNER,
    },
    "model": {**LEARNER, "cutoff_folds": 2, "cutoff_criterion": "f1", "read_out": "matrix"},
    "partitions": 2,
}


def documents(seed: int) -> list[Document]:
    """Make documents: a third with two of the large topics, some with a rare one alone."""
    rng = np.random.default_rng(seed)
    pairs = [[first, second] for first, second in product(TOPICS, TOPICS) if first < second]
    kinds = [[topic] for topic in TOPICS for _ in range(16)] + 8 * pairs + 4 * [["quarry"]]
    kinds += 2 * [["bakery", "quarry"]]
    splits = [*("train", "train", "test") * len(kinds)][: len(kinds)]
    made = [(kind, split) for kind, split in zip(kinds, splits, strict=True)]
    made += [(["harbour"], "unused"), (["orchard"], "unused"), ([], "train"), ([], "test")]
    return [document(rng, number, *each) for number, each in enumerate(made, start=1)]


def document(rng: np.random.Generator, number: int, topics: list[str], split: str) -> Document:
    # In turn, so that a document is about each of its topics; every ninth is nothing but a title.
    about = [(topics or list(TOPICS))[n % max(len(topics), 1)] for n in range(5)]
    about = about[: 1 if number % 9 == 0 else 1 + max(2, int(rng.integers(1, 5)))]
    texts = [" ".join(words_of(rng, topic, 5, 0.2)) for topic in about]
    return Document(number, split, topics, texts, about)


def sgml(document: Document) -> str:
    """Write a document as the collection does: indented paragraphs, an end mark."""
    topics, split = SPLITS[document.split]
    title, *paragraphs = document.texts
    body = "".join(f"    {text}\n" for text in paragraphs) + " Reuter\n&#3;"
    text = f"<TITLE>{title.upper()} &lt;HLLN></TITLE>" + (
        f"<BODY>{body}</BODY>" if paragraphs else ""
    )
    return (
        f'<REUTERS TOPICS="{topics}" LEWISSPLIT="{split}" NEWID="{document.number}">\n'
        f"<TOPICS>{''.join(f'<D>{name}</D>' for name in document.topics)}</TOPICS>\n"
        f"<TEXT>&#2;\n{text}</TEXT>\n</REUTERS>\n"
    )


@pytest.fixture(scope="module")
def wired(spark: Any, store: str, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    place = tmp_path_factory.mktemp("reuters")
    given = documents(5)
    for part in range(2):
        text = "".join(sgml(each) for each in given[part::2])
        (place / f"wire-{part}.sgm").write_text('<!DOCTYPE lewis SYSTEM "lewis.dtd">\n' + text)
    source = {"path": str(place / "*.sgm")}
    conf = {**REUTERS_CONF, "input": {**REUTERS_CONF["input"], "reuters": source}}
    return Experiment(place, run_all(place, store, conf, spark), given)


def used(documents: list[Document]) -> dict[str, Document]:
    """Give the documents of the experiment by their id."""
    return {
        str(each.number): each
        for each in documents
        if each.split != "unused" and set(each.topics) & set(TOPICS)
    }


def test_only_documents_with_a_class_are_predicted(wired: Experiment) -> None:
    predictions = pd.read_parquet(wired.output / "predictions").set_index("document_id")
    expected = used(wired.given)
    assert predictions.index.is_unique
    assert set(predictions.index) == set(expected)
    for number, document in expected.items():
        row = predictions.loc[number]
        assert row["split"] == document.split
        assert sorted(row["labels"]) == sorted(set(document.topics) & set(TOPICS))
        assert set(row["prediction"]) <= set(TOPICS)
        assert len(row["paragraph_classes"]) == len(document.texts)
        assert set(row["paragraph_classes"]) <= set(TOPICS)
        assert len(row["probability"]) == len(TOPICS)
        assert all(0.0 <= value <= 1.0 for value in row["probability"])
    found = metrics(wired.output)
    assert found["predict.documents"] == len(expected)
    for split in ("train", "test"):
        of_split = [each for each in expected.values() if each.split == split]
        assert found[f"input.{split}"] == len(of_split)


def test_topics_and_paragraphs_of_unseen_documents_are_found(wired: Experiment) -> None:
    predictions = pd.read_parquet(wired.output / "predictions").set_index("document_id")
    unseen = [each for each in used(wired.given).values() if each.split == "test"]
    right, topics, guesses = [], [], []
    for document in unseen:
        row = predictions.loc[str(document.number)]
        right += [(name in row["prediction"]) == (name in row["labels"]) for name in TOPICS]
        topics += document.about
        guesses += list(row["paragraph_classes"])
    # Two folds of 25 documents choose the cut-offs; saying no to everything is right in 0.56.
    assert np.mean(right) > 0.75
    same = [a == b for a, b in zip(topics, guesses, strict=True) if a in TOPICS]
    assert np.mean(same) > 0.9


def test_every_method_is_measured_on_documents(wired: Experiment) -> None:
    found = metrics(wired.output)
    f1 = ("f1_micro", "f1_macro")
    hamming = ("hamming_accuracy", *(f"hamming_accuracy.{topic}" for topic in TOPICS))
    settings = (
        ("", PAPER_METHODS, (*hamming, *f1)),
        ("practitioner.", PRACTITIONER_METHODS, f1),
        ("paragraphs.", PARAGRAPH_METHODS, ("accuracy", "f1_macro")),
        ("paragraphs.known_labels.", PARAGRAPH_METHODS, ("accuracy", "f1_macro")),
    )
    expected = {
        f"{prefix}{method}.{score}"
        for prefix, methods, scores in settings
        for method, score in product(methods, scores)
    }
    others = ("input.", "train.", "predict.")
    assert {name for name in found if not name.startswith(others)} == expected
    assert all(0.0 <= found[name] <= 1.0 for name in expected)
    for method in PAPER_METHODS:
        by_class = [found[f"{method}.hamming_accuracy.{topic}"] for topic in TOPICS]
        assert found[f"{method}.hamming_accuracy"] == pytest.approx(np.mean(by_class))
    for method in PARAGRAPH_METHODS:
        unknown = found[f"paragraphs.{method}.accuracy"]
        assert found[f"paragraphs.known_labels.{method}.accuracy"] >= unknown


def test_documents_are_learned(wired: Experiment) -> None:
    found = metrics(wired.output)
    for name in ("dba.f1_micro", "practitioner.dba.f1_micro", "paragraphs.dba.accuracy"):
        assert found[name] > 0.75, name


def test_documents_are_compared_in_mlflow(wired: Experiment, store: str) -> None:
    runs = tracked_runs(store)
    run = runs[runs["params.name"] == "reuters"].iloc[0]
    name = "paragraphs.known_labels.svm.accuracy"
    assert run[f"metrics.{name}"] == pytest.approx(metrics(wired.output)[name])
    expected = {"plots/hamming_accuracy.png", "tables/comparison.json"}
    assert artifacts(run["run_id"]) >= expected


def test_too_few_documents_are_one_line(
    spark: Any, wired: Experiment, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["input.comparison.train_documents=90", f"output={wired.place}/few"]
    assert evaluate(wired.place, spark, *words) == 1
    last = capfd.readouterr().err.strip().splitlines()[-1]
    assert "lower input.comparison.train_documents = 90" in last
    assert not (wired.place / "few" / "metrics.json").exists()
