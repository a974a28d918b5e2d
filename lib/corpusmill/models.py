"""The kinds of models that may be loaded: a saved model names a kind, never a class."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol, Self

from corpusmill.errors import ModelError

if TYPE_CHECKING:
    import pandas as pd


class FrameModel(Protocol):
    """What a model must offer to be served: loading, and predicting on a pandas frame."""

    @classmethod
    def load(cls, folder: str) -> Self:
        """Load a checked model folder."""
        ...

    def predict_frame(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Predict a row for each row."""
        ...


MODEL_KINDS = {
    "alignment": "corpusmill.alignment.model:AlignmentModel",
    "boosting": "corpusmill.boosting.model:BoostingModel",
    "coreference": "corpusmill.coreference.model:CoreferenceModel",
    "fragments": "corpusmill.fragments.model:FragmentsModel",
    "linking": "corpusmill.linking.model:LinkingModel",
}


def load(kind: str, folder: str) -> FrameModel:
    """Load a model of a known kind.

    Parameters
    ----------
    kind
        A key of `MODEL_KINDS`; nothing else is ever imported.
    folder
        A path or URI.

    Raises
    ------
    ModelError
        MODEL03: the kind is unknown; MODEL01 and MODEL02 from the model's own loading.
    """
    if kind not in MODEL_KINDS:
        raise ModelError("MODEL03", kind=kind, allowed=", ".join(sorted(MODEL_KINDS)))
    module, _, name = MODEL_KINDS[kind].partition(":")
    model: type[FrameModel] = getattr(import_module(module), name)
    return model.load(folder)
