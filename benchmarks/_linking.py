"""A large lexicon and many texts for the benchmark of `linking`: real ones, blown up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import yaml
from pyarrow import csv

from corpusmill.linking.folding import keys_of
from corpusmill.linking.knowledge import Knowledge
from corpusmill.linking.units import LONGEST, Units

PART_ROWS = 250_000
SYLLABLES = (
    "ba be bo da de do fa fi ga go ka ke ki la le lo ma me mo na ne no pa pe ra re ri ro sa se \
si so ta te to va ve vi wa za zu chi shu tra bri gro sten mond ville ford land".split()
)
OWN_SHARE = 0.85
"""Of made-up surface forms: titles of entities; the others are names that two entities share."""
NAMED_SHARE = 0.25
"""Of texts: those that a made-up name is put behind."""


def made_up_names(count: int, seed: int = 13) -> list[str]:
    """Make up so many distinct names of one to three words of two or three syllables."""
    rng = np.random.default_rng(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        drawn = rng.integers(0, len(SYLLABLES), (count, 9)).tolist()
        words = rng.choice(3, count, p=[0.1, 0.6, 0.3]).tolist()
        longer = (rng.random((count, 3)) < 0.5).tolist()
        for places, more, sizes in zip(drawn, words, longer, strict=True):
            parts = [
                "".join(SYLLABLES[at] for at in places[3 * n : 3 * n + 2 + sizes[n]]).capitalize()
                for n in range(more + 1)
            ]
            found[" ".join(parts)] = None
    return list(found)[:count]


def write_forms(names: list[str], path: Path, seed: int = 13) -> None:
    """Write a table of surface, entity and count: most names are titles, some are ambiguous."""
    rng = np.random.default_rng(seed)
    every = pa.array(names)
    titles = pc.replace_substring(every, " ", "_")
    own = int(len(names) * OWN_SHARE)
    shared = np.repeat(np.arange(own, len(names)), 2)
    surface = np.concatenate([np.arange(own), shared])
    entity = np.concatenate([np.arange(own), rng.integers(0, max(own, 1), len(shared))])
    table = pa.table(
        {
            "surface": every.take(pa.array(surface)),
            "entity": titles.take(pa.array(entity)),
            "count": rng.zipf(2.0, len(surface)).clip(max=10_000),
        }
    )
    options = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
    with path.open("wb") as file:
        file.write(b"surface\tentity\tcount\n")
        csv.write_csv(table, file, options)


def write_conf(base: Path, forms: Path, path: Path) -> None:
    """Write a conf of the linking job whose lexicon has one source more, and no baselines."""
    conf: dict[str, Any] = yaml.safe_load(base.read_text(encoding="utf-8"))
    conf["knowledge"]["lexicon"].append({"path": str(forms), "header": True, "count": "count"})
    conf["baselines"] = {"methods": []}
    if "extends" in conf:
        conf["extends"] = str(base.resolve().parent / conf["extends"])
    path.write_text(yaml.safe_dump(conf), encoding="utf-8")


def blown_up(texts: list[str], names: list[str], rows: int, seed: int = 13) -> Iterator[pa.Array]:
    """Yield ``rows`` texts, nearly all distinct, part by part.

    Each is one of ``texts`` with two words of others behind it, and some with a name.

    Yields
    ------
    pa.Array
        At most `PART_ROWS` strings; eight parts at least.
    """
    rng = np.random.default_rng(seed)
    every, spoken = pa.array(sorted(set(texts))), pa.array(names)
    words = pc.split_pattern_regex(every, r"\s+").flatten()
    size = min(PART_ROWS, max(1, -(-rows // 8)))
    for begin in range(0, rows, size):
        count = min(size, rows - begin)
        parts = [every.take(pa.array(rng.integers(0, len(every), count)))]
        parts += [words.take(pa.array(rng.integers(0, len(words), count))) for _ in range(2)]
        chosen = spoken.take(pa.array(rng.integers(0, len(spoken), count)))
        named = pa.array(rng.random(count) < NAMED_SHARE)
        parts.append(pc.if_else(named, chosen, ""))
        yield pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*parts, " "))


def write_texts(texts: list[str], names: list[str], rows: int, folder: Path) -> None:
    """Write them as Parquet, a file a part."""
    folder.mkdir()
    for number, part in enumerate(blown_up(texts, names, rows)):
        pq.write_table(pa.table({"text": part}), folder / f"part-{number:05}.parquet")


class PlainLexicon(NamedTuple):
    """Surface forms as a dictionary of strings: what look-up in plain Python would have.

    Attributes
    ----------
    numbers : dict of str to int
        Numbers of the lexicon's surface forms by their folded characters.
    """

    numbers: dict[str, int]

    @classmethod
    def build(cls, knowledge: Knowledge, surfaces: list[str]) -> PlainLexicon:
        """Take those of some strings that the lexicon knows; without blanks or punctuation."""
        found = knowledge.lexicon.surfaces.find(keys_of(pa.array(surfaces)))
        pairs = zip(surfaces, found.tolist(), strict=True)
        return cls({surface: number for surface, number in pairs if number >= 0})

    def find(self, words: list[str], segments: list[int], inner: list[bool]) -> list[list[int]]:
        """Find the n-grams that `corpusmill.linking.kernels.find_ngrams` finds."""
        found = []
        for first in range(len(words)):
            if segments[first] < 0 or inner[first]:
                continue
            text = ""
            for last in range(first, min(first + LONGEST, len(words))):
                if segments[last] != segments[first]:
                    break
                word = words[last]
                text += word
                if inner[last] or not word:
                    continue
                number, cut = self.numbers.get(text), 0
                if number is None and len(text) >= 4 and word[-1] == "s":
                    number, cut = self.numbers.get(text[:-1]), 1
                if number is not None:
                    found.append([first, last, number, cut])
        return found


def folded_words(units: Units) -> list[str]:
    """Give the folded characters of each unit as strings."""
    folds = units.characters.folds
    text = units.characters.folded.astype("<u4").tobytes().decode("utf-32-le")
    bounds = zip(folds[units.begins].tolist(), folds[units.ends].tolist(), strict=True)
    return [text[begin:end] for begin, end in bounds]


def folded_ngrams(words: list[str], segments: list[int]) -> set[str]:
    """Give all n-grams of units, and what is left of them without a last letter."""
    found = set()
    for first in range(len(words)):
        text = ""
        for last in range(first, min(first + LONGEST, len(words))):
            if segments[last] != segments[first]:
                break
            text += words[last]
            found |= {text, text[:-1]}
    return found - {""}
