"""The heaviest features of a model on some documents of a test set, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from corpusmill.coreference.explaining import collisions, count_features, feature_table
from corpusmill.coreference.model import CoreferenceModel
from corpusmill.coreference.tasks.documents import inputs_of

if TYPE_CHECKING:
    from corpusmill.runner import Context

DOCUMENTS = 20
"""Documents whose features are looked at, at most."""
FEATURES = 200
"""Features of each ranking that are logged, at most."""


def log_features(context: Context, rows: DataFrame, model: CoreferenceModel) -> None:
    """Log the heaviest features on some documents.

    Parameters
    ----------
    context
        ``tables/features.json`` is logged, the metric ``features.collisions`` written.
    rows
        Documents of a test set; `DOCUMENTS` of them, by chance, come to the driver.
    model
        The model.
    """
    # By chance, but whatever the partitions.
    chance = F.xxhash64(F.lit(context.settings.seed), F.col("document_id"), F.col("part"))
    chosen = inputs_of(rows.orderBy(chance, "document_id", "part").limit(DOCUMENTS))
    with context.progress.stage("look at the features"):
        batch = chosen.toArrow().combine_chunks().to_batches()[0]
        features = count_features(model, batch)
        table = feature_table(model, batch, features, FEATURES)
    context.run.write_metrics({"features": {"collisions": collisions(features)}})
    context.tracker.log_table(table, "tables/features.json")
