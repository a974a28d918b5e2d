"""Linear-chain S-MART beside the CRF of python-crfsuite: chunks of CoNLL-2000.

    CORPUSMILL_DATA=FOLDER python -m benchmarks.chunking
    CORPUSMILL_DATA=FOLDER python -m benchmarks.chunking --held-out --c2 0.1 1  # to choose

Both are trained on the 8,936 sentences as published and label the 2,012 of the test set; precision,
recall and F1 of chunks are those of ``conlleval``. With ``--held-out`` the last tenth of the
training sentences takes the place of the test set: settings were chosen there.

* python-crfsuite: words and tags in a window of two and their n-grams (CRFsuite's tutorial on
  chunking), L-BFGS until it converges, L2 penalty c2.
* S-MART: structure ``chain``, logistic loss; a row is a pair of labels. The same contexts, and some
  of words with tags, as probabilities of labels (`benchmarks._chunk_features`).

All times are processor time of one process with one thread. Training begins with words and tags
in memory and includes the features; so does labelling.
"""

from __future__ import annotations

import argparse
import importlib
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from benchmarks._chunk_features import Encoder, attributes
from benchmarks._chunks import Sentences, read_conll, scores_of
from corpusmill.boosting import training, trees
from corpusmill.boosting.settings import LearnerSettings
from corpusmill.types import AnyArray

Tag = Callable[[Sentences], AnyArray]
T = TypeVar("T", bound=Tag)


def read(data: Path, held_out: bool) -> tuple[Sentences, Sentences]:
    """Read the sentences to train on and those to label."""
    train = read_conll(data / "conll2000" / "train.txt.gz")
    if not held_out:
        return train, read_conll(data / "conll2000" / "test.txt.gz")
    size = len(train.offsets) - 1
    return train.part(0, size * 9 // 10), train.part(size * 9 // 10, size)


def fit_crf(train: Sentences, c2: float, folder: Path) -> Tag:
    """Train the CRF."""
    crf: Any = importlib.import_module("pycrfsuite")
    trainer = crf.Trainer(algorithm="lbfgs", verbose=False)
    trainer.set_params({"c2": c2})
    bounds = train.offsets[1:-1]
    for row, labels in zip(attributes(train), np.split(train.labels, bounds), strict=True):
        trainer.append(row, labels.tolist())
    model = str(folder / "crf.model")
    trainer.train(model)
    tagger = crf.Tagger()
    tagger.open(model)

    def tag(sentences: Sentences) -> AnyArray:
        return np.array([label for row in attributes(sentences) for label in tagger.tag(row)])

    return tag


@dataclass(frozen=True)
class Smart:
    """A trained model.

    Parameters
    ----------
    encoder : Encoder
    trees : str
        In LightGBM's text format.
    """

    encoder: Encoder
    trees: str

    def __call__(self, sentences: Sentences) -> AnyArray:
        """Label the tokens."""
        found = self.encoder.examples(sentences)
        return self.encoder.decoded(found, trees.scores_of(self.trees, found.features))


def fit_smart(train: Sentences, settings: LearnerSettings, threshold: float, seed: int) -> Smart:
    """Train S-MART; the bins are made of rows of chance."""
    encoder = Encoder(train, threshold)
    examples = encoder.training_examples(train)
    rows = examples.features
    sample = rows[np.random.default_rng(seed).random(len(rows)) < settings.bin_rows / len(rows)]
    boosted = training.boost(examples, sample, settings, seed, settings.trees)
    return Smart(encoder, boosted.text)


def report(name: str, fit: Callable[[], T], test: Sentences, repeats: int) -> T:
    """Train, label, print a line of the table, and give the labeller back."""
    begin = time.process_time()
    tag = fit()
    spent = time.process_time() - begin
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        found = tag(test)
        times.append(time.process_time() - begin)
    scores = scores_of(found, test)
    rate = len(test.words) / float(np.median(times))
    print(
        f"{name:<22}{scores.precision:>10.2f}{scores.recall:>8.2f}{scores.f1:>8.2f}"
        f"{scores.accuracy:>10.2f}{spent:>12.1f}{rate:>12,.0f}",
        flush=True,
    )
    return tag


def main() -> None:
    """Run both and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=os.environ.get("CORPUSMILL_DATA"))
    parser.add_argument("--held-out", action="store_true", help="label a tenth of training")
    parser.add_argument("--methods", nargs="+", default=["crf", "smart"])
    parser.add_argument("--c2", type=float, nargs="+", default=[0.1])
    parser.add_argument("--trees", type=int, default=400)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--feature-fraction", type=float, default=0.3)
    parser.add_argument("--threshold", type=float, default=0.01, help="of a candidate label")
    parser.add_argument("--repeats", type=int, default=5, help="of labelling; the median counts")
    arguments = parser.parse_args()
    if arguments.data is None:
        raise SystemExit("CORPUSMILL_DATA or --data must name the corpora")
    train, test = read(arguments.data.resolve(), arguments.held_out)
    print(
        f"{len(train.offsets) - 1:,} sentences to train, {len(test.offsets) - 1:,} to label\n"
        f"{'':<22}{'precision':>10}{'recall':>8}{'F1':>8}{'accuracy':>10}{'training s':>12}"
        f"{'tokens/s':>12}",
        flush=True,
    )
    settings = LearnerSettings(
        structure="chain",
        step="newton",
        trees=arguments.trees,
        learning_rate=arguments.learning_rate,
        num_leaves=arguments.leaves,
        feature_fraction=arguments.feature_fraction,
    )
    with tempfile.TemporaryDirectory(prefix="corpusmill-chunking-") as name:
        for c2 in arguments.c2 if "crf" in arguments.methods else []:
            fit = lambda c2=c2: fit_crf(train, c2, Path(name))  # noqa: E731
            report(f"CRF, c2 = {c2:g}", fit, test, arguments.repeats)
    if "smart" in arguments.methods:
        smart = lambda: fit_smart(train, settings, arguments.threshold, 13)  # noqa: E731
        fitted = report("S-MART, chain", smart, test, arguments.repeats)
        examples = fitted.encoder.examples(test)
        print(
            f"S-MART: {examples.features.shape[1]} features, {len(examples.gold):,} rows of "
            f"{len(test.words):,} tokens; {fitted.encoder.missing(examples, test):,} tokens have "
            "no row of their true label"
        )


if __name__ == "__main__":
    main()
