"""Every estimator with a tiny dataset: what `test_estimator_contract` runs over.

A new estimator adds one `Spec` to `SPECS`.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from corpusmill.alignment.estimator import (
    OUTPUTS,
    DirichletBernoulliAlignment,
    DirichletBernoulliAlignmentModel,
    PatternEvaluator,
)
from corpusmill.alignment.settings import LearnerSettings
from corpusmill.boosting import estimator as boosting
from corpusmill.boosting.settings import LearnerSettings as BoostingSettings
from corpusmill.coreference import estimator as coreference
from corpusmill.coreference.model import DOCUMENT_ROWS
from corpusmill.coreference.settings import LearnerSettings as CoreferenceSettings
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS, FACTORS, LINKED_TEXTS, PATTERNS, TREES
from corpusmill.corpora.tree_formats import parse_bracketed
from corpusmill.fragments import estimator as fragments
from corpusmill.fragments.settings import LearnerSettings as FragmentsSettings
from corpusmill.linking import estimator as linking
from corpusmill.linking.entities import Entities
from corpusmill.linking.fitting import TEXT_COLUMNS
from corpusmill.linking.knowledge import Knowledge, save_knowledge
from corpusmill.linking.lexicon import Lexicon
from corpusmill.linking.settings import LearnerSettings as LinkingSettings
from corpusmill.linking.words import Words
from corpusmill.settings import Settings
from tests.coreference.samples import random_row


@dataclass(frozen=True, eq=False)
class Spec:
    """What the contract has to know of an estimator.

    Attributes
    ----------
    name : str
        For the test's id.
    estimator : callable
        From Params to the estimator; without any, a quick one with fixed iterations.
    defaults : callable
        The estimator as a user makes it without Params.
    model : type
        The class of what ``fit`` returns.
    settings : type
        The settings class behind the Params.
    dataset : callable
        From a session to a small DataFrame that fits.
    outputs : tuple of str
        The columns that ``transform`` appends, the error column last.
    required : dict
        Input columns that must be there, each with SQL for a value of a wrong type.
    labels : str
        The input column without which nothing is learned.
    break_row : callable
        From rows to the same rows, all broken but not for the driver to see.
    seeded : dict
        Params under which the seed counts.
    grid : tuple
        A Param's name and two values.
    evaluator : callable
        An evaluator for the model's output.
    """

    name: str
    estimator: Callable[..., Estimator[Any]]
    defaults: Callable[[], Estimator[Any]]
    model: type[Model]
    settings: type[Settings]
    dataset: Callable[[SparkSession], DataFrame]
    outputs: tuple[str, ...]
    required: dict[str, str]
    labels: str
    break_row: Callable[[DataFrame], DataFrame]
    seeded: dict[str, Any]
    grid: tuple[str, list[Any]]
    evaluator: Callable[[], Evaluator]


def quick_alignment(**params: Any) -> DirichletBernoulliAlignment:
    return DirichletBernoulliAlignment(**{"maxIter": 2, "tol": 0.0, **params})


def alignment_rows(spark: SparkSession) -> DataFrame:
    """Twelve patterns of two classes; features 0 and 1 speak for art, 2 and 3 for sport."""
    rng = np.random.default_rng(1)
    rows = []
    for n in range(12):
        owners = rng.integers(0, 2, rng.integers(1, 4))
        rows.append(
            (
                f"p{n:02d}",
                sorted({("art", "sport")[z] for z in owners}) if n % 5 else None,
                list(range(0, 2 * len(owners) + 1, 2)),
                [float(w) for w in rng.integers(1, 4, len(owners))],
                [int(2 * z + bit) for z in owners for bit in (0, 1)],
                [float(c) for c in rng.integers(1, 3, 2 * len(owners))],
            )
        )
    return spark.createDataFrame(rows, PATTERNS)


def broken_patterns(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("* except (feature_ids)", "transform(feature_ids, i -> -1) feature_ids")


def quick_fragments(**params: Any) -> fragments.FragmentClassifier:
    return fragments.FragmentClassifier(**{"limit": 100, "maxexp": 2, "linearCost": 1.0, **params})


def tree_rows(spark: SparkSession) -> DataFrame:
    """Two dozen trees of three classes that their verbs and shapes tell apart."""
    shapes = {
        "move": "(S (NP (NN {n})) (VP (VBD went) (PP (IN to) (NP (NN {m})))))",
        "see": "(S (NP (NN {n})) (VP (VBD saw) (NP (DT the) (NN {m}))))",
        "ask": "(SQ (VBD did) (NP (NN {n})) (VP (VB {m})))",
    }
    nouns = ("cat", "dog", "king", "hill")
    rows: list[tuple[Any, ...]] = []
    for i in range(24):
        target = sorted(shapes)[i % 3]
        text = shapes[target].format(n=nouns[i % 4], m=nouns[i // 6])
        tree = parse_bracketed(text)
        labels, arities = list(tree.labels), [int(a) for a in tree.arities]
        target_or_none = None if i == 23 else target
        rows.append((f"t{i:02d}", target_or_none, labels, arities, [0, len(labels)], [], []))
    return spark.createDataFrame(rows, TREES)


def broken_trees(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(
        "* except (node_arities)", "transform(node_arities, a -> a + 1) node_arities"
    )


def quick_boosting(**params: Any) -> boosting.StructuredBoosting:
    few = {"structure": "spans", "trees": 5, "minDataInLeaf": 3}
    return boosting.StructuredBoosting(**{**few, **params})


def factor_rows(spark: SparkSession) -> DataFrame:
    """Thirty texts of three candidate spans; the first feature tells Nil from the rest."""
    rng = np.random.default_rng(3)
    rows: list[tuple[Any, ...]] = []
    for n in range(30):
        starts, ends = [0, 1, 2], [2, 3, 4]
        features = rng.normal(0.0, 1.0, (7, 4))
        offsets = [0, 2, 5, 7]
        features[offsets[:-1]] = [0.0, 1.0, 0.0, np.nan]
        good = [row for row in (1, 3, 4, 6) if features[row, 0] > 0.2]
        factor = {1: 0, 3: 1, 4: 1, 6: 2}
        gold = good[:1] + [row for row in good[1:] if factor[row] == 2 and factor[good[0]] == 0]
        known = None if n == 29 else gold
        flat = [float(x) for x in features.reshape(-1)]
        rows.append((f"x{n:02d}", offsets, starts, ends, None, None, flat, known))
    return spark.createDataFrame(rows, FACTORS)


def broken_factors(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("* except (ends)", "transform(ends, e -> 0) ends")


@cache
def linking_knowledge() -> str:
    """The folder of what is known of two towns, a person and a team."""
    known = [
        ("Varn", "Varn", 5),
        ("Varn", "Ada_Varn", 9),
        ("Quell", "Quell", 3),
        ("FC Quell", "Quell", 1),
    ]
    rows = pa.table(
        {
            "surface": [surface for surface, _, _ in known],
            "entity": [entity for _, entity, _ in known],
            "source": ["s"] * len(known),
            "kind": ["text"] * len(known),
            "count": [count for _, _, count in known],
        }
    )
    values = pa.table({"entity": ["Varn"], "attribute": ["in_links"], "value": [7.0]})
    links = pa.table({"source": ["Quell", "Varn"], "target": ["Varn", "Quell"]})
    entities = Entities.build(rows, values, links)
    words = Words.build({}, None, entities)
    folder = tempfile.mkdtemp(prefix="knowledge")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    save_knowledge(folder, Knowledge(Lexicon.build(rows, entities), entities, words))
    return folder


def quick_linking(**params: Any) -> linking.EntityLinker:
    few = {"trees": 4, "step": "gradient", "minDataInLeaf": 3, "stages": 2, "featureFraction": 1.0}
    return linking.EntityLinker(**{**few, "knowledgePath": linking_knowledge(), **params})


def linked_rows(spark: SparkSession) -> DataFrame:
    """Sixty texts in which a word before tells the person from the town, mostly."""
    rng = np.random.default_rng(5)
    fillers = "so we all went home again after that long day".split()
    rows: list[tuple[Any, ...]] = []
    for n in range(60):
        words = list(rng.choice(fillers, int(rng.integers(1, 6))))
        found: list[str | None] = []
        for _ in range(int(rng.integers(0, 3))):
            person = rng.random() < 0.5
            before = ("met", "in") if person == (rng.random() < 0.9) else ("in", "met")
            words += [before[0], "Varn", *rng.choice(fillers, int(rng.integers(1, 4)))]
            found.append("Ada_Varn" if person else None if n == 7 else "Varn")
        text, starts, place = " ".join(words), [], 0
        for _ in found:
            place = text.index("Varn", place)
            starts.append(place)
            place += 4
        row = (starts, [start + 4 for start in starts], found) if n != 59 else (None, None, None)
        rows.append((f"t{n:02d}", text, *row))
    schema = T.StructType(
        [T.StructField(name, LINKED_TEXTS[name].dataType, True) for name in TEXT_COLUMNS]
    )
    return spark.createDataFrame(rows, schema)


def broken_texts(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("* except (text)", "cast(null as string) text")


def quick_coreference(**params: Any) -> coreference.CoreferenceResolver:
    few = {"regime": "delayed", "templates": "nonlocal", "beam": 3, "iterations": 2, "bits": 12}
    return coreference.CoreferenceResolver(**{**few, **params})


def document_rows(spark: SparkSession) -> DataFrame:
    """Eight random documents, one without parse, one whose coreference is not known."""
    rng = np.random.default_rng(2)
    rows = [random_row(rng, f"d{n}", 2, parsed=n != 3, known=n != 7) for n in range(8)]
    schema = T.StructType([ANNOTATED_DOCUMENTS[name] for name in DOCUMENT_ROWS.names])
    return spark.createDataFrame(
        [tuple(row[name] for name in schema.names) for row in rows], schema
    )


def broken_documents(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("* except (pos)", "slice(pos, 1, 1) pos")


SPECS = [
    Spec(
        name="alignment",
        estimator=quick_alignment,
        defaults=DirichletBernoulliAlignment,
        model=DirichletBernoulliAlignmentModel,
        settings=LearnerSettings,
        dataset=alignment_rows,
        outputs=(*OUTPUTS.names, "alignment_error"),
        required={
            "pattern_id": "array('x')",
            "instance_offsets": "array('x')",
            "instance_weights": "1.0",
            "feature_ids": "'x'",
            "feature_counts": "map('a', 1.0)",
        },
        labels="labels",
        break_row=broken_patterns,
        seeded={"cutoffFolds": 2},
        grid=("smoothing", [0.1, 100.0]),
        evaluator=PatternEvaluator,
    ),
    Spec(
        name="boosting",
        estimator=quick_boosting,
        defaults=boosting.StructuredBoosting,
        model=boosting.StructuredBoostingModel,
        settings=BoostingSettings,
        dataset=factor_rows,
        outputs=(*boosting.OUTPUTS.names, "boosting_error"),
        required={"row_offsets": "'x'", "features": "map('a', 1.0)"},
        labels="gold",
        break_row=broken_factors,
        seeded={"featureFraction": 0.5},
        grid=("learningRate", [0.01, 1.0]),
        evaluator=boosting.OutputEvaluator,
    ),
    Spec(
        name="coreference",
        estimator=quick_coreference,
        defaults=coreference.CoreferenceResolver,
        model=coreference.CoreferenceResolverModel,
        settings=CoreferenceSettings,
        dataset=document_rows,
        outputs=(*coreference.OUTPUTS.names, "coreference_error"),
        required={
            "words": "'x'",
            "sentence_offsets": "map('a', 1)",
            "constituent_parents": "1.0",
        },
        labels="mention_clusters",
        break_row=broken_documents,
        seeded={"partitions": 2},
        grid=("beam", [1, 4]),
        evaluator=coreference.CoreferenceEvaluator,
    ),
    Spec(
        name="fragments",
        estimator=quick_fragments,
        defaults=fragments.FragmentClassifier,
        model=fragments.FragmentClassifierModel,
        settings=FragmentsSettings,
        dataset=tree_rows,
        outputs=(*fragments.OUTPUTS.names, "fragments_error"),
        required={
            "node_labels": "'x'",
            "node_arities": "1",
            "tree_offsets": "map('a', 1)",
        },
        labels="target",
        break_row=broken_trees,
        seeded={"splits": 2, "splitBy": "random"},
        grid=("linearCost", [0.1, 10.0]),
        evaluator=fragments.TargetEvaluator,
    ),
    Spec(
        name="linking",
        estimator=quick_linking,
        defaults=linking.EntityLinker,
        model=linking.EntityLinkerModel,
        settings=LinkingSettings,
        dataset=linked_rows,
        outputs=(
            "linked_starts",
            "linked_ends",
            "linked_entities",
            "linked_scores",
            "linked_probabilities",
            "runner_up_entities",
            "runner_up_probabilities",
            "linking_error",
        ),
        required={"text": "array('x')"},
        labels="mention_starts",
        break_row=broken_texts,
        seeded={"featureFraction": 0.5},
        grid=("learningRate", [0.01, 1.0]),
        evaluator=linking.LinkEvaluator,
    ),
]
