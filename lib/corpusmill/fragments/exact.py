"""The exact kernel machines as a model: trained on one machine, scored by their subtrees.

What `corpusmill.fragments.model` approximates by fragments, and is compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corpusmill.fragments.examples import self_norms
from corpusmill.fragments.forests import Productions, Subtrees, intern, keep_subtrees
from corpusmill.fragments.kernels import Index
from corpusmill.fragments.learning import Machines
from corpusmill.fragments.mining import subtree_weights
from corpusmill.fragments.scoring import SubtreeWeights, score
from corpusmill.storage.arrays import pack, unpack
from corpusmill.types import AnyArray, Floats, Forest


@dataclass(frozen=True)
class KernelMachines:
    """Trained SST machines, one a class, over the same support vectors.

    Parameters
    ----------
    slots : tuple of SubtreeWeights
        By tree slot.
    bias : Floats, shape (machines,)
    decay : float
        lambda.
    """

    slots: tuple[SubtreeWeights, ...]
    bias: Floats
    decay: float

    @classmethod
    def of(cls, machines: Machines, decay: float) -> KernelMachines:
        """Take trained machines apart."""
        slots = []
        for interned, norms in zip(machines.kernel.interned, machines.kernel.norms, strict=True):
            size = len(interned.subtrees.labels)
            columns = [
                subtree_weights(interned.offsets, interned.nodes, beta, norms, size)
                for beta in machines.beta.T
            ]
            weights = np.column_stack(columns)
            # Examples that are no support vectors would only lengthen the walk.
            subtrees, kept = keep_subtrees(interned.subtrees, np.any(weights != 0.0, axis=1))
            slots.append(SubtreeWeights(subtrees, interned.productions, weights[kept]))
        return cls(tuple(slots), machines.bias, decay)

    @cached_property
    def _indices(self) -> tuple[Index, ...]:
        return tuple(slot.indexed() for slot in self.slots)

    def scores(self, forests: tuple[Forest, ...]) -> Floats:
        """Give f of trees over the same labels, one forest a slot, shape (examples, machines)."""
        found = np.zeros((len(forests[0].offsets) - 1, len(self.bias))) + self.bias
        for forest, slot, index in zip(forests, self.slots, self._indices, strict=True):
            interned = intern(forest, slot.subtrees, slot.productions)
            found += score(slot, index, interned, self_norms(interned, self.decay), self.decay)
        return found

    def pack(self) -> bytes:
        """Write the machines as npz, without pickle."""
        arrays: dict[str, AnyArray] = {"bias": self.bias, "decay": np.array(self.decay)}
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
        return cls(tuple(slots), arrays["bias"], float(arrays["decay"]))
