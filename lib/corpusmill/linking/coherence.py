"""Features of the second stage: how an entity goes with the others found in its text. No Spark.

With G(e) the pages that link to e and G(t - e) the pages that link to any entity found in text t
in the first stage, but e,

    jaccard(e, t) = |G(e) & G(t - e)| / |G(e) | G(t - e)|,    0 where both are empty

and ``most_related`` is 1 for the entity of a mention with the largest jaccard(e, t), if above 0.

Source: Yang and Chang 2015, section 3.3, who take it from Guo et al. 2013 and call it a distance.
"""

from __future__ import annotations

import numpy as np

from corpusmill.evaluation.linking import NIL
from corpusmill.linking import kernels
from corpusmill.linking.candidates import Mentions
from corpusmill.linking.knowledge import Knowledge
from corpusmill.types import AnyArray, Flags, Floats

FEATURE_NAMES = ("jaccard", "most_related")
"""The columns of `coherence`."""


def coherence(mentions: Mentions, chosen: Flags, knowledge: Knowledge) -> Floats:
    """Compute both features of all rows.

    Parameters
    ----------
    mentions
        The mention candidates of a batch of texts.
    chosen : Flags, shape (rows,)
        The rows of the first stage's output; those of Nil are passed over.
    knowledge
        The same as `mentions` was made with.

    Returns
    -------
    Floats, shape (rows, 2)
        0 for Nil. Several rows of a mention may be the most related ones, all with the same value.

    Notes
    -----
    O(in-links of the entities found in the text) a row, and their sorting a text.
    """
    entity = mentions.entities(knowledge.lexicon)
    text_rows = mentions.rows[mentions.texts]
    jaccard = np.zeros(len(entity))
    kernels.jaccard(
        text_rows, entity, chosen & (entity != NIL),
        knowledge.entities.links, knowledge.entities.link_bounds, jaccard,
    )  # fmt: skip
    return np.column_stack([jaccard, _is_best(jaccard, mentions.rows[:-1], mentions.owners)])


def _is_best(jaccard: Floats, firsts: AnyArray, owners: AnyArray) -> Flags:
    if not len(jaccard):
        return np.zeros(0, np.bool_)
    best = np.maximum.reduceat(jaccard, firsts)
    return (jaccard > 0.0) & (jaccard == best[owners])
