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
    constituents: list[str] = Field(["NP"], description="labels of constituents that are mentions")
    tags: list[str] = Field(
        ["PRP", "PRP$"], description="parts of speech of single tokens that are mentions"
    )
    entities: bool = Field(True, description="whether named entities are mentions")
    not_entities: list[str] = Field(
        ["CARDINAL", "ORDINAL", "PERCENT", "QUANTITY"], description="types of entities that are not"
    )
    subtrees: bool = Field(
        True, description="without a parse: nouns and pronouns with what depends on them"
    )
    one_per_head: bool = Field(True, description="of mentions of one head only the longest")
    nonreferential: list[str] = Field(
        ["it", "you", "we"], description="pronouns that may be no mentions"
    )
    nonreferential_probability: float = Field(
        0.95, gt=0.5, le=1.0, description="from which probability on they are none"
    )
    gold_mentions: bool = Field(
        True, description="in training: whether true mentions that were not found are added"
    )


class LearnerSettings(MentionSettings):
    """How antecedents are learned and searched."""

    templates: str = Field(
        "local", min_length=1, description="local, nonlocal, or a file of feature templates"
    )
    genders: str = Field(
        "", description="a list of noun phrases with counts of pronouns (Bergsma & Lin); or none"
    )
    cutoff: int = Field(
        1, ge=1, description="rarer words and strings of the training documents are one in features"
    )
    regime: Literal["greedy", "early", "laso", "delayed", "max_violation"] = Field(
        "greedy",
        description="best-first, for local templates; or, with a beam: early update, LaSO, delayed "
        "LaSO, max-violation",
    )
    beam: int = Field(20, ge=1, le=10_000, description="partial trees that a search keeps")
    update: Literal["perceptron", "pa", "pa1", "pa2"] = Field(
        "pa", description="of weights: perceptron, passive-aggressive, PA-I, PA-II"
    )
    aggressiveness: float = Field(1.0, gt=0.0, description="C of PA-I and PA-II")
    iterations: int = Field(25, ge=1, le=10_000, description="passes over the documents")
    window: int = Field(
        1000, ge=1, le=1_000_000, description="mentions before it that may be an antecedent"
    )
    bits: int = Field(22, ge=8, le=30, description="there are 2^bits weights")
    partitions: int = Field(
        1, ge=1, le=100_000, description="parts of the training documents, each a task"
    )
    mixing: Literal["documents", "updates"] = Field(
        "documents", description="by what the weights of partitions are averaged"
    )
    singletons: bool = Field(False, description="whether clusters of one mention are predicted")
    mentions: Literal["extracted", "given"] = Field(
        "extracted", description="in prediction: found by the settings, or those of the documents"
    )
    start_clusters: bool = Field(
        False, description="in prediction: whether the documents' clusters are kept and extended"
    )
