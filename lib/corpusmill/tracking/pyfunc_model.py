"""The model that MLflow serves, loaded from this code and a checked folder of weights."""

from __future__ import annotations

from typing import Any

import mlflow
import pandas as pd
from mlflow.pyfunc.model import PythonModel, PythonModelContext

from corpusmill import models


class ServedModel(PythonModel):
    """A model of an allowed kind; the kind stands in the logged model's configuration."""

    def load_context(self, context: PythonModelContext) -> None:
        """Load the weights once, after every check of `corpusmill.storage.load_model`."""
        self.model = models.load(context.model_config["kind"], context.artifacts["model"])

    def predict(
        self,
        context: PythonModelContext,
        model_input: pd.DataFrame,
        params: dict[str, Any] | None = None,
    ) -> pd.DataFrame:
        """Predict a row for each row."""
        return self.model.predict_frame(model_input)


mlflow.models.set_model(ServedModel())
