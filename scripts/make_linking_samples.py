"""Make the embedded sample of the linking job: a small world and short texts about it, invented.

    python scripts/make_linking_samples.py lib/corpusmill/corpora/samples

Names are shared: a surname is a person, a town or a team, and what stands around it decides. A name
that is also a common word is linked only where it is written with a capital.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOTS = "Varn Oldric Temsy Quell Brask Lunden Fairow Mirel Dorsk Hallum Petrin Sool".split()
COMMON = "summer marble echo harbor".split()
FIRST = "Ada Bruno Celia Dov".split()
KINDS = {
    "person": [
        "{e} sings tonight",
        "just met {e} at the station",
        "{e} wrote a new book",
        "RT {e}",
    ],
    "town": ["flights to {e} are cheap", "it rains in {e} again", "moving to {e} soon"],
    "team": ["{e} won 3 to 1", "what a goal by {e}", "{e} lost the final"],
    "song": ["listening to {e} on repeat", "{e} is stuck in my head"],
}
FILLERS = ["good morning everyone", "i love the {w} of this year", "nothing but {w} here", "lol"]

Surface = tuple[str, str, int]


def make_world(rng: np.random.Generator) -> tuple[list[Surface], dict[str, str], list[list[str]]]:
    """Draw surface forms with counts, the kind of each entity, and links between entities."""
    surfaces, kinds = list[Surface](), dict[str, str]()
    for number, root in enumerate(ROOTS):
        first = FIRST[number % len(FIRST)]
        for kind, title in (("person", f"{first}_{root}"), ("town", root), ("team", f"{root}_FC")):
            if rng.random() < 0.8:
                kinds[title] = kind
                surfaces.append((root, title, int(rng.integers(2, 40))))
                surfaces.append((title.replace("_", " "), title, int(rng.integers(1, 9))))
    for word in COMMON:
        title = f"{word.title()}_(song)"
        kinds[title] = "song"
        surfaces.append((word, title, int(rng.integers(1, 4))))
    titles = sorted(kinds)
    links = []
    for title in titles:
        others = [
            t for t in titles if t != title and t.split("_")[-1][:3] == title.split("_")[-1][:3]
        ]
        drawn = [*others, *rng.choice(titles, 3, False).tolist()]
        links += [[other, title] for other in sorted(set(drawn)) if other != title]
    return surfaces, kinds, links


def make_text(
    number: int, split: str, kinds: dict[str, str], rng: np.random.Generator
) -> dict[str, object]:
    """Draw a text of one or two sentences, each about an entity or about none."""
    parts, mentions, size = list[str](), list[dict[str, object]](), 0
    titles = sorted(kinds)
    for _ in range(int(rng.integers(1, 3))):
        if rng.random() < 0.3:
            part = str(rng.choice(FILLERS)).format(w=rng.choice(COMMON))
        else:
            title = str(rng.choice(titles))
            name = title.split("_(", maxsplit=1)[0].removesuffix("_FC")
            whole = name.replace("_", " ")
            short = name.split("_")[-1]
            surface = whole if rng.random() < 0.5 else short
            surface = "#" + surface.replace(" ", "") if rng.random() < 0.15 else surface
            template = str(rng.choice(KINDS[kinds[title]]))
            part = template.format(e=surface)
            start = size + template.index("{e}") + surface.startswith("#")
            text = surface.removeprefix("#")
            mentions.append(
                {"start": start, "end": start + len(text), "surface": text, "entity": title}
            )
        parts.append(part)
        size += len(part) + 2
    text = ". ".join(parts)
    return {"id": f"{split}-{number:03d}", "split": split, "text": text, "mentions": mentions}


def write_table(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write tab-separated values."""
    lines = ["\t".join(header), *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> int:
    """Write the world and the texts."""
    folder = Path(sys.argv[1])
    rng = np.random.default_rng(11)
    surfaces, kinds, links = make_world(rng)
    write_table(folder / "linking_surfaces.tsv", ["surface", "entity", "count"], surfaces)
    types = {"person": "PER", "town": "GPE", "team": "ORG", "song": "WORK"}
    rows = [(title, types[kind], int(rng.integers(1, 90))) for title, kind in sorted(kinds.items())]
    write_table(folder / "linking_entities.tsv", ["entity", "type", "in_links"], rows)
    write_table(folder / "linking_links.tsv", ["source", "target"], links)
    texts = [
        json.dumps(make_text(number, split, kinds, rng))
        for split, size in (("train", 240), ("develop", 80), ("test", 80))
        for number in range(size)
    ]
    (folder / "linking_texts.jsonl").write_text("\n".join(texts) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
