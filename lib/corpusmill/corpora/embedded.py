"""The embedded samples, of our own invention: a query log and its entities, questions as trees.

| file | lines | columns |
| --- | --- | --- |
| ``query_log.tsv`` | a header, 3,000 distinct queries, 6 bad lines | query, count, timestamp |
| ``entities.tsv`` | a header, an entity and one of its classes a line | entity, class |
| ``gold.tsv`` | a header, the true class of every query with an entity | query, class |
| ``questions_trees_train.tsv`` | a header, 450 questions of four classes | target, tree |
| ``questions_trees_test.tsv`` | a header, 150 more | target, tree |

``scripts/make_samples.py`` writes the first three, ``scripts/make_question_trees.py`` the others.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

NAMES = (
    "query_log.tsv",
    "entities.tsv",
    "gold.tsv",
    "questions_trees_train.tsv",
    "questions_trees_test.tsv",
)


def sample_path(name: str) -> Path:
    """Return the path of a sample.

    Parameters
    ----------
    name
        One of `NAMES`.

    Raises
    ------
    ValueError
        There is no such sample.
    """
    if name not in NAMES:
        raise ValueError(f"no sample {name!r}; there are {', '.join(NAMES)}")
    return Path(str(resources.files("corpusmill.corpora") / "samples" / name))
