r"""Losses over structured outputs and their point-wise functional gradients. No Spark.

With S(y) the sum of F over the rows of an output y, y* the gold output and 1[r in y] whether row
r is in y:

``logistic``
    L = log Z - S(y*);  g_r = P(r) - 1[r in y*];  diagonal second derivative P(r) (1 - P(r)).
``hinge``
    L = max_y (S(y) + loss(y)) - S(y*), where loss(y) counts the rows of y that are not in y*;
    g_r = 1[r in y^] - 1[r in y*] with y^ the maximiser. 1 stands for its second derivative, 0.

Source: Yang and Chang 2015, equation (3) and section 3.1 (logistic).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from corpusmill.boosting.structures import LatticeStructure, sums_by_example
from corpusmill.types import Flags, Floats


class Derivatives(NamedTuple):
    """A loss and its derivatives with respect to the score of each row.

    Attributes
    ----------
    gradient, hessian : Floats, shape (rows,)
    loss : Floats, shape (examples,)
        In nats (logistic) or units of the score (hinge).
    """

    gradient: Floats
    hessian: Floats
    loss: Floats


def logistic(structure: LatticeStructure, scores: Floats, gold: Flags) -> Derivatives:
    """Compute the negative log-likelihood of the gold output; O(edges of the lattices)."""
    chance, log_z = structure.marginals(scores)
    loss = log_z - sums_by_example(structure.factors, scores * gold)
    return Derivatives(chance - gold, chance * (1.0 - chance), loss)


def hinge(structure: LatticeStructure, scores: Floats, gold: Flags) -> Derivatives:
    """Compute the structured hinge loss with margin rescaling; O(edges of the lattices)."""
    worst = structure.best_augmented(scores, gold)
    gradient = worst.astype(np.float64) - gold
    loss = sums_by_example(structure.factors, scores * gradient + (worst & ~gold))
    return Derivatives(gradient, np.ones(len(scores)), loss)


Loss = Callable[[LatticeStructure, Floats, Flags], Derivatives]
LOSSES: dict[str, Loss] = {"logistic": logistic, "hinge": hinge}
