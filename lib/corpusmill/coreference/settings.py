"""The settings of the resolver: one definition for conf files, estimator and arrays."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from corpusmill.settings import Settings


class MentionSettings(Settings):
    """Which spans are candidate mentions."""

    language: Literal["english", "chinese", "arabic"] = Field(
        "english", description="whose head rules hold"
    )
    constituents: list[str] = Field(["NP"], description="labels of constituents")
    tags: list[str] = Field(["PRP", "PRP$"], description="parts of speech of single tokens")
    entities: bool = Field(True, description="named entities")
    not_entities: list[str] = Field(
        ["CARDINAL", "ORDINAL", "PERCENT", "QUANTITY"], description="types of entities left out"
    )
    subtrees: bool = Field(True, description="nouns with what depends on them, if without a parse")
    one_per_head: bool = Field(True, description="of mentions of one head only the longest")
