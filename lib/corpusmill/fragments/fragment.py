"""A fragment of a tree, as people read it. No Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from corpusmill.corpora.tree_formats import escape_label


class Fragment(NamedTuple):
    """A part of a tree, in preorder.

    Attributes
    ----------
    labels : sequence of str
    arities : sequence of int
        Numbers of children within the fragment.
    expanded : sequence of bool
        False for a node that has children in the trees, but none in the fragment.
    """

    labels: Sequence[str]
    arities: Sequence[int]
    expanded: Sequence[bool]


def fragment_text(labels: Sequence[str], arities: Sequence[int]) -> str:
    r"""Write a fragment in brackets, as the paper does: ``(WHADVP (WRB (How)))``.

    Parameters
    ----------
    labels, arities
        Of the nodes in preorder. What is not expanded looks like what has no children: the SST
        kernel does not tell them apart either.

    Returns
    -------
    str
        Labels are escaped as in `corpora.tree_formats`, whose `parse_bracketed` reads it.

    Examples
    --------
    >>> fragment_text(["SBARQ", "WHADVP", "WRB", "How", "SQ", "."], [3, 1, 1, 0, 0, 0])
    '(SBARQ (WHADVP (WRB (How))) (SQ) (.))'
    """
    parts = []
    waiting: list[int] = []  # children that the open nodes still lack
    for label, arity in zip(labels, arities, strict=True):
        parts.append(f" ({escape_label(label)}")
        waiting.append(arity)
        while waiting and not waiting[-1]:
            waiting.pop()
            parts.append(")")
            if waiting:
                waiting[-1] -= 1
    return "".join(parts)[1:]
