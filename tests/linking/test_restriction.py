"""Knowledge of some surface forms and entities, against the whole."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from corpusmill.linking.coherence import coherence
from corpusmill.linking.factors import candidates_of, factors_of
from corpusmill.linking.knowledge import Knowledge, Rows
from corpusmill.linking.placement import keys_sought
from corpusmill.linking.units import find_ngrams, sought_keys, units_of
from corpusmill.linking.words import count_words
from tests.linking.invented import TEXTS, knowledge

WORDS = sorted({word for text in TEXTS for word in text.split()} | {"romes", "yorks", "asrs"})
TITLES = ["Rome", "Big Apple", "Barack_Obama", "Michelle_Obama", "Nowhere", "4U2 (film)"]


def random_texts(seed: int, size: int = 6) -> pa.RecordBatch:
    """Texts of random words with mentions of their likeliest entity, or of any title."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, rng.integers(0, 9))) for _ in range(size)]
    found = candidates_of(pa.array(texts), knowledge(), 20)
    mentions, firsts = found.mentions, found.units.characters.texts
    chosen = rng.permutation(len(mentions.firsts))[:size]
    text = np.searchsorted(mentions.texts, chosen, side="right") - 1
    lists: dict[str, list] = {"mention_starts": [], "mention_ends": [], "mention_entities": []}
    for n in range(size):
        mine = chosen[text == n]
        lists["mention_starts"].append((mentions.begins[mine] - firsts[n]).tolist())
        lists["mention_ends"].append((mentions.ends[mine] - firsts[n]).tolist())
        likeliest = mentions.entities(knowledge().lexicon)[mentions.rows[mine] + 1]
        named = [[*TITLES, None][k] for k in rng.integers(0, len(TITLES) + 1, len(mine))]
        usual = titles_of(likeliest, knowledge())
        pairs = zip(rng.random(len(mine)) < 0.7, usual, named, strict=True)
        lists["mention_entities"].append([a if likely else b for likely, a, b in pairs])
    ids = [f"t{n}" for n in range(size)]
    strings = pa.array(lists.pop("mention_entities"), pa.list_(pa.string()))
    columns = {name: pa.array(each, pa.list_(pa.int32())) for name, each in lists.items()}
    return pa.record_batch({"text_id": ids, "text": texts, **columns, "mention_entities": strings})


def restricted(batch: pa.RecordBatch) -> Knowledge:
    """The knowledge of a batch, chosen slowly."""
    part = pa.array(np.zeros(len(batch), np.int32))
    keys = keys_sought(batch.append_column("__part", part))["key"]
    rows = knowledge().rows()
    surfaces, words = (
        table.filter(pc.is_in(table["key"], keys)) for table in (rows.surfaces, rows.words)
    )
    wanted = set(keys.to_pylist())
    candidates = {number for each in surfaces["entities"].to_pylist() for number in each}
    entities = [
        row["number"] in candidates or bool(wanted & set(row["keys"]))
        for row in rows.entities.to_pylist()
    ]
    # Rows come in any order.
    order = np.random.default_rng(1).permutation(sum(entities))
    chosen = rows.entities.filter(pa.array(entities, pa.bool_())).take(pa.array(order))
    return Knowledge.of_rows(Rows(surfaces, chosen, words))


def titles_of(numbers: np.ndarray, known: Knowledge) -> list[str | None]:
    names = known.entities.names.to_pylist()
    return [None if number < 0 else names[number] for number in numbers]


@pytest.mark.parametrize("seed", range(30))
def test_texts_have_the_same_candidates_features_and_gold(seed: int) -> None:
    batch = random_texts(seed)
    part, whole = restricted(batch), knowledge()
    assert part.entities.size < whole.entities.size
    texts = batch["text"]
    own, other = (candidates_of(texts, known, 20) for known in (part, whole))
    assert np.array_equal(own.features, other.features)
    chosen = np.random.default_rng(seed).random(len(own.features)) < 0.3
    both = [(own.mentions, part), (other.mentions, whole)]
    of_part, of_whole = (coherence(mentions, chosen, known) for mentions, known in both)
    assert np.array_equal(of_part, of_whole)
    entities = [titles_of(mentions.entities(known.lexicon), known) for mentions, known in both]
    assert entities[0] == entities[1]
    factors = [factors_of(batch, known, 3) for known in (part, whole)]
    assert factors[0].equals(factors[1])
    counts = [count_words(units_of(texts), known.lexicon) for known in (part, whole)]
    assert counts[0].equals(counts[1])


def test_all_rows_are_the_whole() -> None:
    whole = knowledge()
    again = Knowledge.of_rows(whole.rows()).arrays()
    for name, array in whole.arrays().items():
        assert array.dtype == again[name].dtype
        assert np.array_equal(array, again[name], equal_nan=array.dtype.kind == "f"), name
    saved = sum(array.nbytes for array in whole.arrays().values())
    assert saved < whole.nbytes < 1.5 * saved


def test_no_rows_know_nothing() -> None:
    nothing = Knowledge.of_rows(Rows(*(table.slice(0, 0) for table in knowledge().rows())))
    assert nothing.entities.size == 0
    assert len(candidates_of(pa.array(TEXTS), nothing, 20).features) == 0


def test_the_keys_sought_are_all_that_can_be_found() -> None:
    units = units_of(pa.array(TEXTS))
    keys, texts = sought_keys(units)
    hashes = knowledge().lexicon.surfaces.hashes
    grams = find_ngrams(units, knowledge().lexicon.surfaces)
    found = {*zip(units.text_of()[grams[:, 0]], hashes[grams[:, 2]], strict=True)}
    sought = {*zip(texts, keys, strict=True)}
    assert found <= sought
    assert {*zip(units.text_of(), units.keys, strict=True)} - sought <= {
        (text, 0) for text in range(len(TEXTS))
    }
