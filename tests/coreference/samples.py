"""Small invented documents with coreference: from brackets, and random ones from a grammar."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from corpusmill.coreference.arcs import Arcs, build_arcs
from corpusmill.coreference.attributes import MentionTable, describe_mentions
from corpusmill.coreference.documents import Documents, read_batch
from corpusmill.coreference.extraction import Mentions, extract_mentions
from corpusmill.coreference.gender import GenderTable, no_genders
from corpusmill.coreference.settings import MentionSettings
from corpusmill.coreference.templates import Template, compile_templates, parse_templates
from corpusmill.corpora.schemas import ANNOTATED_DOCUMENTS

SCHEMA = to_arrow_schema(ANNOTATED_DOCUMENTS)
Row = dict[str, Any]

LOCAL = """
ana.fine
ana.head
ana.before + ana.type
ant.fine
ant.head + ant.role
ant.fine + ana.fine + pair.mentions
ant.head + ana.head
ant.agreement + ana.agreement + pair.sentences
pair.match + ana.type
pair.path + pair.clause
pair.speaker + pair.nested
pair.edit
pair.entity + ana.entity
"""
FAR = """
cluster.size + ana.type
cluster.shape
cluster.start + pair.mentions
grand.type + ant.type + ana.type
sibling.head + ana.head
first.string + pair.match
last.path + ana.path
"""


def document(
    name: str,
    trees: Sequence[str],
    *,
    genre: str = "",
    speakers: Sequence[str] = (),
    entities: Sequence[tuple[int, int, str]] = (),
    clusters: Sequence[tuple[int, int, int]] | None = None,
    heads: Sequence[int] = (),
    relations: Sequence[str] = (),
    lemmas: Sequence[str] = (),
    parsed: bool = True,
) -> Row:
    """A row from a tree in brackets for each sentence, a speaker for each, and spans."""
    words: list[str] = []
    pos: list[str] = []
    nodes: list[list[Any]] = []  # label, start, end, parent
    offsets, voices = [0], []
    for number, tree in enumerate(trees):
        _read(tree, words, pos, nodes)
        offsets.append(len(words))
        voices += [speakers[number] if speakers else ""] * (offsets[-1] - offsets[-2])
    labels, starts, ends, parents = zip(*nodes, strict=True) if nodes and parsed else ((),) * 4
    entities = sorted(entities, key=lambda span: (span[0], -span[1]))
    found = None if clusters is None else sorted(clusters, key=lambda span: (span[0], -span[1]))
    return {
        "document_id": name,
        "part": 0,
        "genre": genre,
        "words": words,
        "pos": pos,
        "lemmas": list(lemmas) or [""] * len(words),
        "speakers": voices,
        "sentence_offsets": offsets,
        "constituent_labels": labels,
        "constituent_starts": starts,
        "constituent_ends": ends,
        "constituent_parents": parents,
        "heads": list(heads),
        "relations": list(relations) or [""] * len(heads),
        "entity_starts": [start for start, _, _ in entities],
        "entity_ends": [end for _, end, _ in entities],
        "entity_labels": [label for _, _, label in entities],
        "mention_starts": None if found is None else [start for start, _, _ in found],
        "mention_ends": None if found is None else [end for _, end, _ in found],
        "mention_clusters": None if found is None else [cluster for _, _, cluster in found],
    }


def _read(tree: str, words: list[str], pos: list[str], nodes: list[list[Any]]) -> None:
    """Add a tree; a label right before a word is its part of speech."""
    parts = tree.replace("(", " ( ").replace(")", " ) ").split()
    open_: list[int] = []
    for at, part in enumerate(parts):
        if part == "(" and parts[at + 2] == "(":
            nodes.append([parts[at + 1], len(words), -1, open_[-1] if open_ else -1])
            open_.append(len(nodes) - 1)
        elif part == "(":
            pos.append(parts[at + 1])
            words.append(parts[at + 2])
        elif part == ")" and parts[at - 3] != "(":
            nodes[open_.pop()][2] = len(words)


def batch_of(*rows: Row) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


class Prepared(NamedTuple):
    """A batch with its mentions and arcs."""

    documents: Documents
    mentions: Mentions
    table: MentionTable
    templates: list[Template]
    arcs: Arcs


def prepare(
    batch: pa.RecordBatch,
    templates: str = LOCAL + FAR,
    genders: GenderTable | None = None,
    **settings: Any,
) -> Prepared:
    documents = read_batch(batch, settings.get("language", "english"))
    mentions = extract_mentions(documents, MentionSettings(**settings), inject_gold=True)
    table = describe_mentions(documents, mentions, genders or no_genders())
    parsed = parse_templates(templates.splitlines(), "templates")
    arcs = build_arcs(mentions.offsets, table, table.atoms, compile_templates(parsed))
    return Prepared(documents, mentions, table, parsed, arcs)


# ---- random documents ----

_WORDS = {
    "NNP": "Mira Tobel Orlan Quist MQ Vey".split(),
    "NN": "miller river barge kettle owl lantern".split(),
    "NNS": "millers barges owls".split(),
    "JJ": "old green Dutch".split(),
    "DT": "the a this every".split(),
    "PRP": "she he it they I you".split(),
    "PRP$": "her his its my".split(),
    "VBD": "saw mended sold said".split(),
    "IN": "of near with".split(),
    "CC": ["and"],
}
_RULES = {
    "S": ["NP VP"],
    "NP": ["PRP", "PRP", "NNP", "NNP NNP", "DT NN", "DT NN", "DT JJ NN", "PRP$ NN", "DT NNS"],
    "NP+": ["NP PP", "NP CC NP"],
    "VP": ["VBD NP", "VBD NP PP", "VBD SBAR", "VBD"],
    "PP": ["IN NP"],
    "SBAR": ["S"],
}


def random_tree(rng: np.random.Generator, label: str = "S", depth: int = 0) -> str:
    if label in _WORDS:
        return f"({label} {rng.choice(_WORDS[label])})"
    longer = label == "NP" and depth < 4 and rng.random() < 0.25
    choices = _RULES["NP+" if longer else label]
    if depth > 4 and label == "VP":
        choices = ["VBD"]
    inside = (random_tree(rng, part, depth + 1) for part in str(rng.choice(choices)).split())
    return f"({label} {' '.join(inside)})"


def random_row(
    rng: np.random.Generator, name: str, sentences: int, parsed: bool = True, known: bool = True
) -> Row:
    """Random sentences; without a parse, random dependencies. Half of the mentions corefer."""
    row = document(
        name,
        [random_tree(rng) for _ in range(sentences)],
        genre=str(rng.choice(["", "tale", "talk"])),
        speakers=[str(each) for each in rng.choice(["", "Ann", "Bo"], sentences)],
    )
    spans = list(zip(row["constituent_starts"], row["constituent_ends"], strict=True))
    phrases = {
        span for span, label in zip(spans, row["constituent_labels"], strict=True) if label == "NP"
    } | {(at, at + 1) for at, tag in enumerate(row["pos"]) if tag == "PRP$"}
    ordered = sorted(phrases, key=lambda span: (span[0], -span[1]))
    names = [span for span in ordered if all(t == "NNP" for t in row["pos"][slice(*span)])]
    kinds = ["PERSON", "ORG", "CARDINAL"]
    row["entity_starts"] = [start for start, _ in names]
    row["entity_ends"] = [end for _, end in names]
    row["entity_labels"] = [str(rng.choice(kinds)) for _ in names]
    if known:
        gold = [span for span in ordered if rng.random() < 0.6]
        row["mention_starts"] = [start for start, _ in gold]
        row["mention_ends"] = [end for _, end in gold]
        row["mention_clusters"] = rng.integers(0, 4, len(gold)).tolist()
    if not parsed:
        _drop_parse(rng, row)
    return row


def _drop_parse(rng: np.random.Generator, row: Row) -> None:
    for part in ("labels", "starts", "ends", "parents"):
        row[f"constituent_{part}"] = []
    heads = []
    for begin, end in pairwise(row["sentence_offsets"]):
        order = rng.permutation(end - begin)  # a token's head has a lower rank
        rank = np.argsort(order)
        for at in range(end - begin):
            above = order[rng.integers(rank[at])] + begin if rank[at] else -1
            heads.append(int(above))
    row["heads"] = heads
    row["relations"] = [str(each) for each in rng.choice(["nsubj", "obj", "nmod"], len(heads))]


def random_batch(seed: int, documents: int = 3, sentences: int = 3) -> pa.RecordBatch:
    """Random documents; the last has no parse."""
    rng = np.random.default_rng(seed)
    return batch_of(
        *(
            random_row(rng, f"d{n}", sentences, parsed=n < documents - 1 or n == 0)
            for n in range(documents)
        )
    )
