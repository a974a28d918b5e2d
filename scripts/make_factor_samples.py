"""Make the embedded sample of the boosting job: texts with candidate spans, all invented.

    python scripts/make_factor_samples.py lib/corpusmill/corpora/samples

A text has up to seven candidate spans, each with up to three things that it may be. Whether it is
one depends on a prior that counts more where the span is capitalised, which no linear score of the
features can say; spans that are right do not overlap.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("is_nil", "prior", "similarity", "length", "capitalised")


def make_example(number: int, rng: np.random.Generator) -> dict[str, Any]:
    """Draw a text's candidates, and choose disjoint ones from the highest worth down."""
    tokens = int(rng.integers(3, 12))
    spans = [(a, b) for a in range(tokens) for b in range(a + 1, min(a + 3, tokens) + 1)]
    picked = sorted(rng.choice(len(spans), min(len(spans), int(rng.integers(2, 8))), False))
    offsets, features, worth = [0], [], []
    for start, end in (spans[n] for n in picked):
        capitalised = float(rng.random() < 0.4)
        features.append([1.0, 0.0, 0.0, float(end - start), capitalised])
        worth.append(0.0)
        for _ in range(int(rng.integers(1, 4))):
            prior, alike = rng.random(2)
            features.append([0.0, prior, alike, float(end - start), capitalised])
            noise = rng.normal(0.0, 0.1)
            worth.append(prior * (1.2 if capitalised else 0.5) + 0.3 * alike - 0.75 + noise)
        offsets.append(len(worth))
    gold, covered = [], np.zeros(tokens, bool)
    factor = np.repeat(np.arange(len(picked)), np.diff(offsets))
    for row in np.argsort(-np.array(worth), kind="stable"):
        start, end = spans[picked[factor[row]]]
        if worth[row] > 0.0 and not covered[start:end].any():
            covered[start:end] = True
            gold.append(int(row))
    return {
        "example_id": f"text-{number:03d}",
        "row_offsets": offsets,
        "starts": [spans[n][0] for n in picked],
        "ends": [spans[n][1] for n in picked],
        "features": [round(float(x), 4) for row in features for x in row],
        "gold": sorted(gold),
    }


def main() -> int:
    """Write the training and the test sample."""
    folder = Path(sys.argv[1])
    rng = np.random.default_rng(7)
    examples = [make_example(number, rng) for number in range(240)]
    for name, part in (("train", examples[:160]), ("test", examples[160:])):
        lines = [json.dumps(example, separators=(",", ":")) for example in part]
        (folder / f"factors_{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
