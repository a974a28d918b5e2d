"""Corpora of the coreference benchmarks, as batches, and their measures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusmill.coreference.measures import metrics_of, predicted_counts
from corpusmill.coreference.model import DOCUMENT_ROWS, CoreferenceModel
from corpusmill.corpora.annotated_rows import AnnotatedDocument, blank_speakers, drop_singletons
from corpusmill.corpora.coreference_formats import parse_file

CORPORA = {
    "gum-gold": ("coref_gum/ontogum", "gold"),
    "gum-auto": ("coref_gum/ontogum", "auto"),
    "litbank-auto": ("coref_litbank/litbank", "auto"),
}


def read_corpus(data: Path, name: str) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Read the training and development documents of a corpus, LitBank as its conf does."""
    folder, kind = CORPORA[name]
    train, develop = (
        batch_of(parse_file(data / folder / f"{part}.v4_{kind}_conll.gz"), "litbank" in name)
        for part in ("train", "dev")
    )
    return train, develop


def batch_of(rows: list[dict[str, Any]], bare: bool = False) -> pa.RecordBatch:
    """Give documents as models read them; `bare` without singletons and speakers."""
    if bare:
        rows = [bare_row(row) for row in rows]
    return pa.RecordBatch.from_pylist(rows, schema=DOCUMENT_ROWS)


def bare_row(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out the singletons and the speakers of a document."""
    return blank_speakers(drop_singletons(AnnotatedDocument(**row)))._asdict()


def measure(model: CoreferenceModel, batch: pa.RecordBatch) -> dict[str, float]:
    """Resolve documents and measure what is found."""
    return metrics_of(predicted_counts(batch, model.predict_batch(batch)))
