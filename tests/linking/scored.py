"""A linker with made-up scores, and texts with gold mentions for it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from corpusmill.linking.factors import candidates_of
from corpusmill.linking.model import LinkingModel, Scored
from corpusmill.linking.settings import LearnerSettings
from tests.linking.invented import knowledge

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
GOLD = [
    ("Rome, New York Giants, U.S. and Obamas", ["Rome A.S._Roma", "New_York_Giants New_York_Giants",
     "and No_Such_Page", "Obamas Barack_Obama"]),
    ("", []),
    ("no entity here", []),
    (f"<b>Rome</b> & NYC {FAMILY} us", ["Rome Rome", "NYC New_York_City", "us"]),
    ("\u05e8\u05d5\u05de\u05d0 Rome \u05d5 <i>4U2</i> roma", ["Rome Rome_(band)"]),
]  # fmt: skip


class MadeUp(LinkingModel):
    """Scores that depend on a row's features and look like chance."""

    def score(self, texts: pa.Array) -> Scored:
        found = candidates_of(texts, self.knowledge, self.settings.candidates)
        scores = 2.0 * np.sin(100.0 * found.features.sum(axis=1))
        return self.scored_by(found, scores)


def made_up_model() -> LinkingModel:
    return MadeUp(LearnerSettings(candidates=2), knowledge(), ("",), (0.25,))


def gold_batch(texts: list[tuple[str, list[str]]] | None = None) -> pa.RecordBatch:
    """Texts with mentions written as "surface entity", or the surface alone for NIL."""
    rows = []
    for number, (text, named) in enumerate(GOLD if texts is None else texts):
        row: dict = {"text_id": f"t<{number}>", "text": text, "chance": (7 * number) % 5}
        found = []
        for mention in named:
            surface, _, entity = mention.partition(" ")
            start = text.index(surface.replace("_", " "))
            found.append((start, start + len(surface), entity or None))
        for at, name in enumerate(("mention_starts", "mention_ends", "mention_entities")):
            row[name] = [each[at] for each in found]
        rows.append(row)
    lists = {"mention_starts": pa.int32(), "mention_ends": pa.int32()}
    lists["mention_entities"] = pa.string()
    plain = [("text_id", pa.string()), ("text", pa.string()), ("chance", pa.int64())]
    schema = pa.schema([*plain, *((name, pa.list_(kind)) for name, kind in lists.items())])
    return pa.RecordBatch.from_pylist(rows, schema=schema)
