"""The exact kernel machines as a model: trained on one machine, scored by their subtrees.

What `corpusmill.fragments.model` approximates by fragments, and is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from corpusmill.fragments.examples import Examples, self_norms
from corpusmill.fragments.forests import Interned, Productions, Subtrees, keep_subtrees
from corpusmill.fragments.kernels import Index
from corpusmill.fragments.learning import Machines, weights_of_subtrees
from corpusmill.fragments.partial import LabelIndex
from corpusmill.fragments.scoring import SubtreeWeights, score, score_partial
from corpusmill.fragments.settings import LearnerSettings
from corpusmill.storage.arrays import pack, unpack
from corpusmill.types import AnyArray, Floats


@dataclass(frozen=True)
class KernelMachines:
    """Trained machines, one a class, over the same support vectors.

    Parameters
    ----------
    slots : tuple of SubtreeWeights
        By tree slot.
    features : Floats, shape (features, machines)
        sum_i beta_i v_i times the weight of the feature vectors; no row without them.
    bias : Floats, shape (machines,)
    kernel : {"sst", "ptk"}
    decay, mu : float
        lambda and, of the PTK, mu.
    """

    slots: tuple[SubtreeWeights, ...]
    features: Floats
    bias: Floats
    kernel: Literal["sst", "ptk"]
    decay: float
    mu: float

    @classmethod
    def of(
        cls, machines: Machines, examples: Examples, settings: LearnerSettings
    ) -> KernelMachines:
        """Take machines apart that were trained on examples."""
        slots = []
        weighted = weights_of_subtrees(machines)
        for interned, weights in zip(machines.kernel.interned, weighted, strict=True):
            # Examples that are no support vectors would only lengthen the walk.
            subtrees, kept = keep_subtrees(interned.subtrees, np.any(weights != 0.0, axis=0))
            slots.append(SubtreeWeights(subtrees, interned.productions, weights.T[kept]))
        features = np.zeros((0, len(machines.bias)))
        if examples.vectors is not None:
            summed = examples.vectors[machines.rows].T @ machines.beta
            features = settings.vector_weight * np.asarray(summed)
        how = settings.kernel, settings.decay, settings.mu
        return cls(tuple(slots), features, machines.bias, *how)

    @cached_property
    def _indices(self) -> tuple[Index | LabelIndex, ...]:
        return tuple(
            slot.labelled() if self.kernel == "ptk" else slot.indexed() for slot in self.slots
        )

    def norms(self, interned: Interned) -> Floats:
        """Give what the scores of trees are divided by."""
        return self_norms(interned, self.decay, self.kernel, self.mu)

    def scores(
        self, examples: Examples, interned: Sequence[Interned], norms: Sequence[Floats]
    ) -> Floats:
        """Score examples, whose trees are given with their norms by slot: (examples, machines)."""
        found = np.zeros((len(norms[0]), len(self.bias))) + self.bias
        for slot, index, trees, sizes in zip(
            self.slots, self._indices, interned, norms, strict=True
        ):
            if isinstance(index, LabelIndex):
                found += score_partial(slot, index, trees, sizes, self.decay, self.mu)
            else:
                found += score(slot, index, trees, sizes, self.decay)
        if examples.vectors is not None:
            found += examples.vectors @ self.features
        return found

    def pack(self) -> bytes:
        """Write the machines as npz, without pickle."""
        arrays: dict[str, AnyArray] = {
            "features": self.features,
            "bias": self.bias,
            "kernel": np.array(self.kernel),
            "decay": np.array(self.decay),
            "mu": np.array(self.mu),
        }
        for number, slot in enumerate(self.slots):
            parts = {**slot.subtrees._asdict(), "weights": slot.weights}
            parts |= {f"production_{k}": v for k, v in slot.productions._asdict().items()}
            arrays |= {f"{number}.{name}": array for name, array in parts.items()}
        return pack(arrays)

    @classmethod
    def unpack(cls, content: bytes) -> KernelMachines:
        """Read what `pack` wrote."""
        arrays = unpack(content)
        slots: list[SubtreeWeights] = []
        while f"{len(slots)}.weights" in arrays:
            own = f"{len(slots)}."
            part = {k.removeprefix(own): v for k, v in arrays.items() if k.startswith(own)}
            slots.append(
                SubtreeWeights(
                    Subtrees(*(part[name] for name in Subtrees._fields)),
                    Productions(part["production_offsets"], part["production_labels"]),
                    part["weights"],
                )
            )
        kernel: Literal["sst", "ptk"] = "ptk" if str(arrays["kernel"]) == "ptk" else "sst"
        how = kernel, float(arrays["decay"]), float(arrays["mu"])
        return cls(tuple(slots), arrays["features"], arrays["bias"], *how)


def exact_scores(machines: Sequence[KernelMachines], examples: Examples) -> Floats:
    """Score examples by machines of one kernel, shape (examples, all machines).

    Parameters
    ----------
    machines : sequence of KernelMachines
    examples : Examples
        Over the labels, productions and features of the training examples.
    """
    interned = examples.interned()
    norms = [machines[0].norms(trees) for trees in interned]
    return np.hstack([each.scores(examples, interned, norms) for each in machines])
