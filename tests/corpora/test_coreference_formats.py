"""Documents with coreference as files, there and back, and against slow references."""

from __future__ import annotations

import gzip
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusmill.corpora import annotated_rows as rows
from corpusmill.corpora import coreference_conll2012 as conll2012
from corpusmill.corpora.annotated_rows import AnnotatedDocument, MalformedDocument, Mention
from corpusmill.corpora.coreference_formats import (
    DUPLICATE,
    FORMATS,
    FormatName,
    parse_file,
    parse_pieces,
)
from corpusmill.errors import DataError
from tests.corpora.coreference_documents import FISHERS, begin, mentions, parse

# Files.


def test_a_file_without_spark(tmp_path: Path):
    path = tmp_path / "tales.v1.gz"
    path.write_bytes(gzip.compress((FISHERS + begin("(0)")).encode()))
    found = parse_file(path)
    assert found[0] == parse(FISHERS)._asdict()
    assert [row["document_id"] for row in found] == ["tale/fishers", "d"]
    path.write_text(FISHERS + begin("(0)") + begin("-"), encoding="utf-8")
    with pytest.raises(DataError, match=f"line 17: {DUPLICATE}"):
        parse_file(path)


# There and back.

WORDS = st.text("ab-_(1É\xa0", min_size=1, max_size=3).filter(str.strip)
LABELS = st.sampled_from(["NP", "S", "WHADJP", "X-1"])


@st.composite
def trees(draw: st.DrawFn, size: int, first: int) -> list[tuple[str, int, int]]:
    """Draw constituents that nest and cover; sorted by start and end they are in preorder."""
    cuts = draw(st.lists(st.tuples(st.integers(0, size), st.integers(0, size)), max_size=6))
    spans = [(0, size)]
    for start, end in ((min(cut), max(cut)) for cut in cuts):
        crossing = any(a < start < b < end or start < a < end < b for a, b in spans)
        if start < end and not crossing:
            spans.append((start, end))
    spans.sort(key=lambda span: (span[0], -span[1]))
    return [(draw(LABELS), first + start, first + end) for start, end in spans]


def parents(spans: list[tuple[str, int, int]]) -> list[int]:
    """Find of each constituent the last one before it that holds it, sentence by sentence."""
    found = []
    for number, (_, start, end) in enumerate(spans):
        around = [i for i, (_, a, b) in enumerate(spans[:number]) if a <= start and end <= b]
        found.append(around[-1] if around else -1)
    return found


@st.composite
def documents(draw: st.DrawFn, format: FormatName) -> AnnotatedDocument:
    lengths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + length)
    size = offsets[-1]

    def layer(texts: st.SearchStrategy[str]) -> list[str]:
        return draw(st.lists(texts, min_size=size, max_size=size))

    constituents: list[tuple[str, int, int]] = []
    entities: list[tuple[str, int, int]] = []
    heads: list[int] = []
    if format == "conll2012":
        for start, end in pairwise(offsets):
            constituents += draw(st.one_of(st.just([]), trees(end - start, start)))
    if format != "conllu":
        for start, end in pairwise(offsets):
            entities += draw(trees(end - start, start))[1:]
    if format != "conll2012" and draw(st.booleans()):
        for start, end in pairwise(offsets):
            heads += [
                draw(st.integers(start - 1, max(start - 1, t - 1))) for t in range(start, end)
            ]
            heads[start:] = [head if head >= start else -1 for head in heads[start:]]
    tags = st.sampled_from(["", "NN", "IN(", "a_b"])
    by_sentence = [draw(tags) for _ in lengths]
    speakers = [name for name, n in zip(by_sentence, lengths, strict=True) for _ in range(n)]
    name = draw(st.sampled_from(["d", "nw/d", "a/(b)"]))
    document = AnnotatedDocument(
        name,
        draw(st.integers(0, 1200)),
        rows.genre_of(name),
        layer(WORDS),
        layer(tags),
        layer(tags),
        speakers if format == "conllu" else layer(tags),
        offsets,
        [label for label, _, _ in constituents],
        [start for _, start, _ in constituents],
        [end for _, _, end in constituents],
        parents(constituents),
        heads,
        layer(tags) if heads else [],
        [start for _, start, _ in entities],
        [end for _, _, end in entities],
        [label for label, _, _ in entities],
        None,
        None,
        None,
    )
    return rows.with_mentions(document, draw(st.none() | spans_in(offsets)))


@st.composite
def spans_in(draw: st.DrawFn, offsets: list[int]) -> list[Mention]:
    """Draw mentions, repeated and crossing ones too."""
    found = []
    for _ in range(draw(st.integers(0, 8))):
        number = draw(st.integers(0, len(offsets) - 2))
        start = draw(st.integers(offsets[number], offsets[number + 1] - 1))
        end = draw(st.integers(start + 1, offsets[number + 1]))
        found.append(Mention(start, end, draw(st.integers(0, 3))))
    return found


def normal(document: AnnotatedDocument, format: FormatName) -> AnnotatedDocument:
    """Leave of a document what can be read."""
    found = rows.mentions_of(document)
    if found is None:
        return document
    if format == "json":
        found = rows.unique_mentions(found)
        numbers = sorted({mention.cluster for mention in found})
        found = [each._replace(cluster=numbers.index(each.cluster)) for each in found]
    else:
        found = rows.writable_mentions(document)
    return rows.with_mentions(document, found)


@pytest.mark.parametrize("format", list(FORMATS))
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_back(format: FormatName, data: st.DataObject):
    document = data.draw(documents(format))
    other = data.draw(documents(format))._replace(document_id="other")
    write = FORMATS[format].write
    pieces = list(parse_pieces((write(document) + write(other)).encode(), format))
    assert [piece.reason for piece in pieces] == [None, None]
    assert pieces[0].document == normal(document, format)
    again = write(normal(document, format))
    assert [piece.document for piece in parse_pieces(again.encode(), format)] == [
        normal(document, format)
    ]


def scored_mentions(text: str) -> list[tuple[int, int, int]]:
    """Read a coreference column as the reference scorer does: its errors are errors here."""
    found, token = [], 0
    opened: dict[str, list[int]] = defaultdict(list)
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        cell = re.split(r"\s+", line)[-1]
        for name in re.findall(r"\((\d+)\)", cell):
            found.append((token, token + 1, int(name)))
        cell = re.sub(r"\((\d+)\)", "", cell)
        for name in re.findall(r"\((\d+)", cell):
            opened[name].append(token)
        for name in re.findall(r"(\d+)\)", cell):
            found.append((opened[name].pop(), token + 1, int(name)))
        token += 1
    assert not any(opened.values())
    return found


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_the_reference_scorer_reads_every_mention_once(data: st.DataObject):
    document = data.draw(documents("conll2012"))
    found = data.draw(spans_in(document.sentence_offsets))
    written = conll2012.write_conll2012(rows.with_mentions(document, found))
    scored = scored_mentions(written)
    kept = [
        tuple(mention)
        for mention in rows.writable_mentions(rows.with_mentions(document, found)) or []
    ]
    assert sorted(scored) == sorted(kept)
    assert len({span[:2] for span in scored}) == len(scored)
    crossing = [
        (a, b)
        for a in rows.unique_mentions(found)
        for b in rows.unique_mentions(found)
        if a.cluster == b.cluster and a.start < b.start < a.end < b.end
    ]
    if not crossing:
        assert len(kept) == len({(mention.start, mention.end) for mention in found})


def test_fields_with_spaces_stay_one_field():
    spaced = parse(FISHERS)._replace(document_id="# two words", speakers=["A da"] * 9)
    found = parse(conll2012.write_conll2012(spaced))
    assert (found.document_id, found.speakers[0]) == ("_#_two_words", "A_da")


@pytest.mark.parametrize("mention", [Mention(6, 8, 0), Mention(0, 10, 0), Mention(0, 1, -1)])
@pytest.mark.parametrize("format", ["conll2012", "conllu"])
def test_mentions_that_no_bracket_can_hold_are_errors(mention: Mention, format: FormatName):
    document = rows.with_mentions(parse(FISHERS), [mention])
    with pytest.raises(ValueError, match="tale/fishers: Mention"):
        FORMATS[format].write(document)


def test_singletons_and_speakers():
    document = parse(begin("(0)", "(1)", "(0)"))
    assert mentions(rows.drop_singletons(document)) == [(0, 1, 0), (2, 3, 0)]
    assert rows.drop_singletons(parse(begin(""))) == parse(begin(""))
    assert set(rows.blank_speakers(parse(FISHERS)).speakers) == {""}


# Against slow references.


def is_fine(heads: list[int], offsets: list[int]) -> bool:
    for start, end in pairwise(offsets):
        for token in range(start, end):
            at = token
            for _ in range(end - start + 1):
                if at == -1:
                    break
                if not start <= heads[at] < end and heads[at] != -1:
                    return False
                at = heads[at]
            if at != -1:
                return False
    return True


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_heads_against_following_each(lengths: list[int], data: st.DataObject):
    offsets = [sum(lengths[:number]) for number in range(len(lengths) + 1)]
    heads = []
    for start, end in pairwise(offsets):
        heads += [data.draw(st.integers(max(start - 1, -1), end - 1)) for _ in range(start, end)]
    if is_fine(heads, offsets):
        rows.check_heads(heads, offsets)
    else:
        with pytest.raises(MalformedDocument):
            rows.check_heads(heads, offsets)


def nested(bits: list[str]) -> list[tuple[str, int, int]]:
    """Read a tree by counting brackets from each opening one on."""
    text, found = [], []
    for token, bit in enumerate(bits):
        text += [(token, piece) for piece in re.findall(r"\([^(*]+|\*|\)", bit)]
    for number, (token, piece) in enumerate(text):
        if piece.startswith("("):
            depth = 0
            for last, other in text[number:]:
                depth += other.startswith("(") - (other == ")")
                if depth == 0:
                    found.append((piece[1:], token, last + 1))
                    break
    return found


@given(document=documents("conll2012"))
@settings(max_examples=40, deadline=None)
def test_parses_against_counting_brackets(document: AnnotatedDocument):
    lines = [x.split("\t") for x in conll2012.write_conll2012(document).split("\n") if "\t" in x]
    bits = [line[5] for line in lines]
    trees = rows.parse_bits(bits, document.sentence_offsets)
    assert list(zip(trees.labels, trees.starts, trees.ends, strict=True)) == nested(bits)
    assert trees.parents == document.constituent_parents
