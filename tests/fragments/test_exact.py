"""Kernel machines scored by their subtrees equal the sum over their support vectors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from corpusmill.fragments.exact import KernelMachines, exact_scores
from corpusmill.fragments.examples import ExampleKernel, Examples
from corpusmill.fragments.forests import intern, keep_subtrees
from corpusmill.fragments.learning import kernel_settings, train_machines
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.types import Forest


def random_forest(rng: np.random.Generator, trees: int) -> Forest:
    """Trees over three inner labels and four words, an empty one among them."""
    labels: list[int] = []
    arities: list[int] = []
    offsets = [0]
    for tree in range(trees):
        waiting = 0 if tree == 3 else 1
        depth = 0
        while waiting:
            waiting -= 1
            arity = int(rng.integers(1, 4)) if depth < 6 and rng.random() < 0.5 else 0
            labels.append(int(rng.integers(0, 3)) if arity else int(rng.integers(3, 7)))
            arities.append(arity)
            waiting += arity
            depth += 1
        offsets.append(len(labels))
    return Forest(np.array(offsets), np.array(labels, np.int32), np.array(arities, np.int32))


@pytest.mark.parametrize("vector_weight", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("of", [{}, {"kernel": "ptk", "mu": 0.7}])
def test_scores_are_those_of_the_support_vectors(
    of: dict[str, object], seed: int, vector_weight: float
) -> None:
    rng = np.random.default_rng(seed)
    settings = LearnerSettings.model_validate(
        {"cost": 1.0, "tolerance": 1e-6, "vector_weight": vector_weight, **of}
    )

    forests = (random_forest(rng, 40), random_forest(rng, 40))
    # Numbers of productions that mean the same in all slots and parts, as a vocabulary gives them.
    known = intern(forests[0], productions=intern(forests[1]).productions).productions

    def with_vectors(forests: tuple[Forest, ...]) -> Examples:
        count = len(forests[0].offsets) - 1
        vectors = csr_array(rng.normal(size=(count, 4))) if vector_weight else None
        return Examples(forests, known, vectors)

    examples = with_vectors(forests)
    test = with_vectors((random_forest(rng, 25), random_forest(rng, 25)))
    codes = rng.integers(0, 3, 40)
    trained = train_machines(examples, codes, np.ones(40), range(3), settings)
    machines = KernelMachines.of(trained, examples, settings)
    kernel = ExampleKernel(examples, kernel_settings(settings))
    beta = np.zeros((40, 3))
    beta[trained.rows] = trained.beta
    expected = kernel.rows(test) @ beta + trained.bias
    assert np.abs(expected - trained.bias).max() > 0.1
    np.testing.assert_allclose(exact_scores([machines], test), expected, atol=1e-9)
    again = KernelMachines.unpack(machines.pack())
    twice = exact_scores([again, again], test)
    np.testing.assert_array_equal(twice[:, :3], twice[:, 3:])
    np.testing.assert_allclose(twice[:, :3], expected, atol=1e-9)


def test_what_is_kept_of_subtrees_is_whole() -> None:
    rng = np.random.default_rng(1)
    (interned,) = Examples((random_forest(rng, 30),)).interned()
    subtrees = interned.subtrees
    wanted = rng.random(len(subtrees.labels)) < 0.2
    found, kept = keep_subtrees(subtrees, wanted)

    def spelt(of, u):
        begin, end = of.child_offsets[u : u + 2]
        return (int(of.labels[u]), *[spelt(of, c) for c in of.children[begin:end]])

    assert set(np.flatnonzero(wanted)) <= set(kept)
    assert [spelt(found, u) for u in range(len(kept))] == [spelt(subtrees, u) for u in kept]
