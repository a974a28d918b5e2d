"""Made-up examples with a rule to learn, as Arrow rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from corpusmill.boosting.batches import FACTOR_ROWS, Examples, read_examples
from corpusmill.boosting.structures import STRUCTURES, Factors

WIDTH = 6


def make_row(number: int, structure: str, rng: np.random.Generator) -> dict[str, Any]:
    """An example whose best output under a score that no line separates is the gold one."""
    tokens = int(rng.integers(2, 8))
    spans = [(t, t + 1) for t in range(tokens)]
    if structure == "spans":
        every = [(a, b) for a in range(tokens) for b in range(a + 1, min(a + 3, tokens) + 1)]
        spans = [every[n] for n in sorted(rng.choice(len(every), min(len(every), 5), False))]
    elif structure == "segments":
        spans += [(t, t + 2) for t in range(tokens - 1)]
    offsets, previous, labels = [0], [], []
    for start, _ in spans:
        pairs = [(-1, 0), (-1, 1)] if start == 0 else [(p, q) for p in (0, 1) for q in (0, 1)]
        if structure in ("independent", "spans"):
            pairs = [(-1, 0)] * int(rng.integers(2, 5))
        previous += [p for p, _ in pairs]
        labels += [q for _, q in pairs]
        offsets.append(len(labels))
    rows = offsets[-1]
    x = rng.normal(0.0, 1.0, (rows, WIDTH))
    x[:, 4] = labels
    x[:, 5] = previous
    if structure == "spans":
        x[offsets[:-1]] = 0.0
    score = 2.0 * x[:, 0] * np.sign(x[:, 1]) + x[:, 2] - 0.5 * (x[:, 4] == x[:, 5])
    score += rng.gumbel(0.0, 0.2, rows)
    arrays = [
        np.array(values, np.int64)
        for values in (
            [0, len(spans)],
            offsets,
            [a for a, _ in spans],
            [b for _, b in spans],
            previous,
            labels,
        )
    ]
    prepared = STRUCTURES[structure](Factors(*arrays))
    chosen = prepared.best(score)
    chosen[prepared.bases] = False
    return {
        "example_id": f"e{number:05d}",
        "row_offsets": offsets,
        "starts": [a for a, _ in spans],
        "ends": [b for _, b in spans],
        "previous": previous,
        "labels": labels,
        "features": x.reshape(-1).tolist(),
        "gold": np.flatnonzero(chosen).tolist(),
    }


def make_batch(structure: str, examples: int, seed: int) -> pa.RecordBatch:
    rng = np.random.default_rng(seed)
    rows = [make_row(number, structure, rng) for number in range(examples)]
    return pa.RecordBatch.from_pylist(rows, schema=FACTOR_ROWS)


def make_examples(structure: str, examples: int, seed: int) -> Examples:
    return read_examples(make_batch(structure, examples, seed), structure, WIDTH)
