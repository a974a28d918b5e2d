"""Parsed sentences with propositions -> examples for semantic role labelling. No Spark.

An example is a pair of a predicate and a candidate node of the sentence's tree, and its one tree
is the pair's structure (`corpusmill.fragments.srl_kernels`), in which the predicate's node is
marked ``-P`` and the candidate ``-B``: ``(S (NP-B DT NN) (VP VBD-P))``.

Boundary classification asks whether the candidate covers an argument exactly: targets ``+1`` and
``-1``. Role classification asks of those that do which of the roles A0 to A5 it has.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusmill.fragments.srl_kernels import (
    NO_ARGUMENT,
    Annotation,
    Pairs,
    find_pairs,
    lay_out,
    span_pairs,
)
from corpusmill.frames import list_offsets
from corpusmill.types import AnyArray, Forest, Offsets

ROLES = ("A0", "A1", "A2", "A3", "A4", "A5")
"""The roles that are told apart; a piece C-A1 of an argument has its role, R-A1 has none."""
PAIRS = "pairs"
"""The column for how many pairs of a sentence are wanted."""

_OTHER_ARGUMENT = len(ROLES)
_PREDICATES = ("V", "C-V")
_CORE = r"^(?:C-)?(A[0-5])$"


def count_pairs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Append the column ``pairs``, int32: how many pairs each sentence has.

    Parameters
    ----------
    batch
        The columns of `corpusmill.corpora.schemas.PROPOSITIONS`.
    """
    sentences = _Sentences(batch)
    counts = np.bincount(sentences.row_of_pair, minlength=batch.num_rows)
    return batch.append_column(PAIRS, pa.array(counts.astype(np.int32)))


def boundary_examples(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make the examples of boundary classification.

    Parameters
    ----------
    batch
        The columns of `corpusmill.corpora.schemas.PROPOSITIONS`; with a column ``pairs``, only so
        many of each sentence, from its first predicate's first candidate on.

    Returns
    -------
    pa.RecordBatch
        The columns of `corpusmill.corpora.schemas.TREES`. An example is called by its document,
        sentence, predicate's token and candidate's number in preorder.

    Notes
    -----
    O(nodes of the examples); of the rows of PropBank's size about 110 examples of 12 nodes each.
    """
    sentences = _Sentences(batch)
    chosen = np.arange(len(sentences.row_of_pair))
    if PAIRS in batch.schema.names:
        first = np.searchsorted(sentences.row_of_pair, sentences.row_of_pair)
        wanted = batch[PAIRS].to_numpy(zero_copy_only=False)[sentences.row_of_pair]
        chosen = chosen[chosen - first < wanted]
    positive = sentences.pairs.roles[chosen] != NO_ARGUMENT
    targets = pa.array(["-1", "+1"]).take(pa.array(positive.astype(np.int32)))
    return sentences.examples(chosen, targets)


def role_examples(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Make the examples of role classification, of all candidates that have one of `ROLES`.

    Parameters and result are those of `boundary_examples`, without the column ``pairs``.
    """
    sentences = _Sentences(batch)
    roles = sentences.pairs.roles
    chosen = np.flatnonzero((roles >= 0) & (roles < len(ROLES)))
    return sentences.examples(chosen, pa.array(ROLES).take(pa.array(roles[chosen])))


class _Sentences:
    """The sentences of a batch as arrays, with all their pairs."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        offsets, labels = _ragged(batch["node_labels"])
        encoded = labels.dictionary_encode()
        self.labels = encoded.dictionary
        arities = _ragged(batch["node_arities"])[1].to_numpy()
        self.forest = Forest(offsets, encoded.indices.to_numpy(), arities)
        self.layout = lay_out(self.forest)
        self.annotation = _annotation(batch)
        words = batch["has_words"].to_numpy(zero_copy_only=False).astype(np.bool_)
        self.pairs = find_pairs(self.forest, self.layout, self.annotation, words)
        owners = np.repeat(np.arange(batch.num_rows), np.diff(self.annotation.offsets))
        self.row_of_pair: AnyArray = owners[self.pairs.predicates]

    def examples(self, chosen: AnyArray, targets: pa.Array) -> pa.RecordBatch:
        """Make rows of the chosen pairs."""
        pairs = Pairs(*(values[chosen] for values in self.pairs))
        trees = span_pairs(self.forest, self.layout, pairs, len(self.labels))
        count = len(chosen)
        names = pa.concat_arrays([self.labels, *(_marked(self.labels, mark) for mark in "PB")])
        bounds = np.stack([np.zeros(count, np.int64), np.diff(trees.offsets)], axis=1).ravel()
        empty = np.zeros(count + 1, np.int64)
        columns = {
            "example_id": self._names(chosen, pairs),
            "target": targets,
            "node_labels": _lists(names.take(pa.array(trees.labels)), trees.offsets),
            "node_arities": _lists(pa.array(trees.arities), trees.offsets),
            "tree_offsets": _lists(pa.array(bounds.astype(np.int32)), 2 * np.arange(count + 1)),
            "vector_ids": _lists(pa.array([], pa.int32()), empty),
            "vector_values": _lists(pa.array([], pa.float64()), empty),
        }
        return pa.RecordBatch.from_pydict(columns)

    def _names(self, chosen: AnyArray, pairs: Pairs) -> pa.Array:
        row = self.row_of_pair[chosen]
        rows = pa.array(row)
        parts = [
            self.batch["document_id"].take(rows),
            self.batch["sentence"].take(rows),
            pa.array(self.annotation.tokens[pairs.predicates]),
            pa.array(pairs.candidates - self.forest.offsets[row]),
        ]
        return pc.binary_join_element_wise(*(part.cast(pa.string()) for part in parts), ":")


def _annotation(batch: pa.RecordBatch) -> Annotation:
    offsets, tokens = _ragged(batch["predicates"])
    starts, _ = _ragged(batch["argument_labels"])
    own_offsets, own = _ragged(batch["argument_offsets"])
    # Each sentence's offsets begin at 0 and are one more than its predicates.
    begin = np.repeat(starts[:-1], np.diff(own_offsets))
    ends = np.delete(own.to_numpy() + begin, own_offsets[:-1])
    return Annotation(
        offsets,
        tokens.to_numpy(),
        np.concatenate([[0], ends]).astype(np.int64),
        _ragged(batch["argument_firsts"])[1].to_numpy(),
        _ragged(batch["argument_lasts"])[1].to_numpy(),
        _roles(_ragged(batch["argument_labels"])[1]),
    )


def _roles(labels: pa.Array) -> AnyArray:
    """Give each argument the number of its role: all others alike, `NO_ARGUMENT` for the verb."""
    encoded = labels.dictionary_encode()
    core = pc.replace_substring_regex(encoded.dictionary, _CORE, r"\1")
    role = pc.fill_null(pc.index_in(core, pa.array(ROLES)), _OTHER_ARGUMENT)
    verb = pc.is_in(encoded.dictionary, pa.array(_PREDICATES))
    known = pc.if_else(verb, NO_ARGUMENT, role).to_numpy(zero_copy_only=False).astype(np.int32)
    roles: AnyArray = known[encoded.indices.to_numpy()]
    return roles


def _marked(labels: pa.Array, mark: str) -> pa.Array:
    return pc.binary_join_element_wise(labels, mark, "-")


def _ragged(lists: pa.Array) -> tuple[Offsets, pa.Array]:
    return list_offsets(lists), lists.flatten()


def _lists(values: pa.Array, offsets: AnyArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), values)
