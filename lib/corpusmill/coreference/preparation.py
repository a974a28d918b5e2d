"""From documents to what search and learning need: mentions and the features of arcs. No Spark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from corpusmill.coreference.arcs import Arcs, build_arcs
from corpusmill.coreference.attributes import ATOMS, LEXICAL, MentionTable, describe_mentions
from corpusmill.coreference.documents import Documents, hash_strings, read_batch
from corpusmill.coreference.extraction import Mentions, extract_mentions, given_mentions
from corpusmill.coreference.gender import GenderTable
from corpusmill.coreference.lists import read_text
from corpusmill.coreference.nonreferential import (
    FOLDS,
    NOTHING_REMOVED,
    Nonreferential,
    probabilities,
    pronoun_features,
)
from corpusmill.coreference.settings import LearnerSettings
from corpusmill.coreference.templates import Templates, compile_templates, parse_templates
from corpusmill.errors import UsageError
from corpusmill.frames import list_offsets
from corpusmill.types import AnyArray, Offsets

BUILT_IN = ("local", "nonlocal")
PIECE_TOKENS = 20_000
"""Documents are prepared so many tokens at a time, or one by one where they are longer."""


class Vocabulary(NamedTuple):
    """Frequent values of lexical attributes; all others are one.

    Attributes
    ----------
    offsets : Offsets, shape (LEXICAL + 1,)
    values : uint64, shape (values,)
        Sorted for each attribute.
    """

    offsets: Offsets
    values: AnyArray


class Prepared(NamedTuple):
    """Documents with their mentions.

    Attributes
    ----------
    documents : Documents
    mentions : Mentions
    table : MentionTable
    arcs : Arcs
    """

    documents: Documents
    mentions: Mentions
    table: MentionTable
    arcs: Arcs


def read_templates(name: str, key: str = "templates") -> tuple[str, ...]:
    """Read the lines of a file of templates, or of one of `BUILT_IN`; `key` is for messages.

    Parameters
    ----------
    name : str
        One of `BUILT_IN`, a path or a URI.
    key : str

    Raises
    ------
    UsageError
        CONF04: it cannot be read, or has a bad template or none.
    """
    if name in BUILT_IN:
        text = (files("corpusmill.coreference") / "features" / f"{name}.txt").read_text("utf-8")
    else:
        text = read_text(name, key)
    lines = tuple(text.splitlines())
    if not parse_templates(list(lines), name):
        raise UsageError("CONF04", key=key, value=repr(name), problem="it has no template")
    return lines


@dataclass(frozen=True)
class Preparation:
    """How documents become mentions and arcs.

    Parameters
    ----------
    settings : LearnerSettings
    templates : tuple of str
        Lines of feature templates.
    genders : GenderTable
    nonreferential : Nonreferential
        With no row: all pronouns are mentions.
    vocabulary : Vocabulary or None
        None: no value is too rare.
    """

    settings: LearnerSettings
    templates: tuple[str, ...]
    genders: GenderTable
    nonreferential: Nonreferential = NOTHING_REMOVED
    vocabulary: Vocabulary | None = None

    def compiled(self) -> Templates:
        """Give the templates as arrays."""
        return compile_templates(parse_templates(list(self.templates), "the templates"))

    def describe(
        self, batch: pa.RecordBatch, training: bool = False
    ) -> tuple[Documents, Mentions, MentionTable]:
        """Find the mentions of a batch and what is known of each.

        Parameters
        ----------
        batch : pyarrow.RecordBatch
            Of `corpusmill.corpora.schemas.ANNOTATED_DOCUMENTS`.
        training : bool
            Whether pronouns are judged by what was learned on other folds. The documents' own
            mentions are added to those found in training with ``gold_mentions``, else with
            ``start_clusters``; no such one is judged.
        """
        settings = self.settings
        documents = read_batch(batch, settings.language)
        if not training and settings.mentions == "given":
            mentions = given_mentions(documents)
        else:
            mentions = extract_mentions(documents, settings, self._adds_gold(training))
        table = describe_mentions(documents, mentions, self.genders)
        keep = self._referential(batch, mentions, table, training)
        if keep.all():
            return documents, mentions, table
        return documents, mentions.take(keep), table.take(keep)

    def prepare(self, batch: pa.RecordBatch, training: bool = False) -> Iterator[Prepared]:
        """Prepare the documents of a batch, some at a time; as `describe`.

        Notes
        -----
        O(tokens + constituents + mentions times templates) time; memory for `PIECE_TOKENS`
        tokens or one document, some 10 KB a mention.
        """
        templates = self.compiled()
        for piece in token_pieces(batch):
            documents, mentions, table = self.describe(piece, training)
            atoms = self.frequent(table.atoms)
            arcs = build_arcs(mentions.offsets, table, atoms, templates)
            yield Prepared(documents, mentions, table, arcs)

    def _referential(
        self, batch: pa.RecordBatch, mentions: Mentions, table: MentionTable, training: bool
    ) -> AnyArray:
        keep = np.ones(len(mentions.starts), np.bool_)
        given = not training and self.settings.mentions == "given"
        if given or not len(self.nonreferential.coefficients) or not self.settings.nonreferential:
            return keep
        rows, features = pronoun_features(table.atoms, self.settings.nonreferential)
        folds = folds_of(batch)[np.searchsorted(mentions.offsets, rows, side="right") - 1]
        if not training:
            folds = np.full(len(rows), FOLDS)
        found = probabilities(self.nonreferential, features, folds)
        keep[rows] = found < self.settings.nonreferential_probability
        if self._adds_gold(training):
            keep |= mentions.clusters >= 0
        return keep

    def _adds_gold(self, training: bool) -> bool:
        """Tell whether the documents' own mentions are added to those found, and always kept."""
        return self.settings.gold_mentions if training else self.settings.start_clusters

    def frequent(self, atoms: AnyArray) -> AnyArray:
        """Replace rare values of lexical attributes by 1."""
        if self.vocabulary is None:
            return atoms
        result = atoms.copy()
        for number, name in enumerate(LEXICAL):
            begin, end = self.vocabulary.offsets[number : number + 2]
            known = self.vocabulary.values[begin:end]
            column = result[:, ATOMS.index(name)]
            column[(column != 0) & ~np.isin(column, known)] = 1
        return result


def folds_of(batch: pa.RecordBatch) -> AnyArray:
    """Give the fold of each document, by a hash of its id; int64."""
    hashed = hash_strings(batch.column("document_id").to_pylist())
    return (hashed % np.uint64(FOLDS)).astype(np.int64)


def parts_of(batch: pa.RecordBatch) -> AnyArray:
    """Give the part of each document, 0 where it is not known; int32."""
    if "part" not in batch.schema.names:
        return np.zeros(batch.num_rows, np.int32)
    return batch.column("part").fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)


def token_pieces(batch: pa.RecordBatch, most: int = PIECE_TOKENS) -> Iterator[pa.RecordBatch]:
    """Cut a batch so that each piece has at most ``most`` tokens, or one document."""
    ends = list_offsets(batch.column("words"))
    begin = 0
    while begin < batch.num_rows:
        fits = int(np.searchsorted(ends, ends[begin] + most, side="right")) - 1
        end = max(fits, begin + 1)
        yield batch.slice(begin, end - begin)
        begin = end
