from pathlib import Path

import pyarrow as pa
import pytest
import yaml

from benchmarks._linking import (
    NAMED_SHARE,
    PlainLexicon,
    blown_up,
    folded_ngrams,
    folded_words,
    made_up_names,
    write_conf,
    write_forms,
)
from corpusmill.linking.units import find_ngrams, units_of
from tests.linking.invented import COMMON, NEWS, TEXTS, TWEETS, knowledge

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_distinct_and_always_the_same():
    names = made_up_names(5000, seed=1)
    assert len(set(names)) == len(names) == 5000
    assert names == made_up_names(5000, seed=1)
    assert max(name.count(" ") for name in names) == 2


def test_forms_have_one_entity_or_two(tmp_path):
    names = made_up_names(1000)
    write_forms(names, tmp_path / "forms.tsv")
    lines = (tmp_path / "forms.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["surface", "entity", "count"]
    rows = [line.split("\t") for line in lines[1:]]
    assert {surface for surface, _, _ in rows} == set(names)
    assert len(rows) == 1150
    assert {entity.replace("_", " ") for _, entity, _ in rows} <= set(names)
    assert all(int(count) >= 1 for _, _, count in rows)


def test_the_conf_has_one_source_more(tmp_path):
    base = tmp_path / "base.yaml"
    base.write_text("knowledge: {lexicon: [{path: a}]}\nbaselines: {methods: [mart]}\n")
    write_conf(base, tmp_path / "forms.tsv", tmp_path / "conf.yaml")
    conf = yaml.safe_load((tmp_path / "conf.yaml").read_text())
    assert [source["path"] for source in conf["knowledge"]["lexicon"]] == [
        "a",
        str(tmp_path / "forms.tsv"),
    ]
    assert conf["baselines"] == {"methods": []}


def test_the_conf_of_a_benchmark_finds_what_it_extends(tmp_path):
    base, path = ROOT / "conf" / "linking" / "tweets.yaml", tmp_path / "conf.yaml"
    write_conf(base, tmp_path / "forms.tsv", path)
    extended = yaml.safe_load(path.read_text())["extends"]
    assert Path(extended) == base.parent / "knowledge.yaml"
    assert Path(extended).is_file()


def test_blown_up_texts_have_their_number_and_are_nearly_all_distinct():
    texts = [f"tweet number{i} says word{i % 7}" for i in range(500)]
    names = made_up_names(500)
    parts = list(blown_up(texts, names, 10_001))
    rows = [row for part in parts for row in part.to_pylist()]
    assert len(rows) == 10_001
    assert len(parts) >= 8
    assert len(set(rows)) > 0.9 * len(rows)
    named = sum(len(row.split()) > 6 for row in rows)
    assert named == pytest.approx(NAMED_SHARE * len(rows), rel=0.15)


def test_plain_look_up_finds_what_the_kernel_finds_and_would_tell_if_not():
    texts = pa.array([*TEXTS, *TWEETS, *NEWS, *COMMON])
    units = units_of(texts)
    words, segments, inner = folded_words(units), units.segments.tolist(), units.inner.tolist()
    expected = find_ngrams(units, knowledge().lexicon.surfaces).tolist()
    assert len(expected) > 10
    surfaces = sorted(folded_ngrams(words, segments))
    plain = PlainLexicon.build(knowledge(), surfaces)
    assert plain.find(words, segments, inner) == expected
    assert PlainLexicon.build(knowledge(), surfaces[::2]).find(words, segments, inner) != expected
