"""Reuters-21578: the lenient parser, and the collection's published counts."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from corpusmill.corpora.quarantine import count_reasons
from corpusmill.corpora.reuters import (
    NO_ID,
    NO_TEXT,
    NOT_CLOSED,
    OUTSIDE,
    Document,
    ReutersSettings,
    parse_sgml,
    read_reuters,
)
from corpusmill.settings import QuarantineSettings

SAMPLE = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="9" NEWID="1">
<DATE>26-FEB-1987</DATE>
<TOPICS><D>tea</D><D>trade</D><D>tea</D></TOPICS>
<UNKNOWN>&#5;&#5;</UNKNOWN>
<TEXT>&#2;
<TITLE>TEA &lt;TEA> PRICES  UP</TITLE>
<DATELINE>    SOMEWHERE, Feb 26 - </DATELINE><BODY>Tea was dear
on Monday.
    Caf\xe9 owners of A&amp;B paid 3&#127; more, Reuter
said.
        Nobody else did.
 Reuter...
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="NO" LEWISSPLIT="TEST" NEWID="2">
<TOPICS></TOPICS>
<TEXT TYPE="UNPROC">&#2;
MEETINGS
    Tea Board
 REUTER
&#3;</TEXT>
</REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="TEST" NEWID="3">
<TOPICS><D>tea</D></TOPICS>
<TEXT TYPE="BRIEF">&#2;
<TITLE>TEA FALLS</TITLE>
</TEXT>
</REUTERS>
<REUTERS TOPICS="YES" LEWISSPLIT="NOT-USED" NEWID="4"><TEXT></TEXT></REUTERS>
""".encode("latin-1")


def test_documents_of_each_type():
    documents, bad = parse_sgml(SAMPLE)
    assert bad == []
    assert documents == [
        Document(
            "1",
            "train",
            ["tea", "trade"],
            "TEA <TEA> PRICES UP",
            [
                "Tea was dear on Monday.",
                "Café owners of A&B paid 3 more, Reuter said.",
                "Nobody else did.",
            ],
        ),
        Document("2", "unused", [], "", ["MEETINGS", "Tea Board"]),
        Document("3", "test", ["tea"], "TEA FALLS", []),
        Document("4", "unused", [], "", []),
    ]


def test_bad_pieces_are_told_apart_and_cost_no_other_document():
    data = (
        b"junk \xff\n"
        b'<REUTERS TOPICS="YES" NEWID="1"><TEXT>\n'
        b"<REUTERS TOPICS='YES'><TEXT></TEXT></REUTERS>"
        b'<REUTERS NEWID="5"></REUTERS> more junk ' + SAMPLE
    )
    documents, bad = parse_sgml(data)
    assert [document.document_id for document in documents] == ["1", "2", "3", "4"]
    assert [piece.reason for piece in bad] == [OUTSIDE, NOT_CLOSED, NO_ID, NO_TEXT, OUTSIDE]
    assert all(data[piece.offset :].lstrip().startswith(piece.piece) for piece in bad)


def test_long_document_is_bad():
    documents, bad = parse_sgml(SAMPLE, max_chars=400)
    assert [document.document_id for document in documents] == ["2", "3", "4"]
    assert [piece.reason for piece in bad] == ["too long"]


@given(st.binary(max_size=200), st.integers(0, len(SAMPLE)), st.integers(0, len(SAMPLE)))
def test_every_byte_is_in_a_document_or_a_bad_piece(noise: bytes, start: int, end: int):
    data = noise + SAMPLE[start:end]
    documents, bad = parse_sgml(data)
    if not documents:
        kept = b"".join(piece.piece for piece in bad)
        without = re.sub(rb"<!DOCTYPE[^<>]*>", b"", data)
        assert b"".join(kept.split()) == b"".join(without.split())
    starts = data.count(b'<REUTERS TOPICS="')
    assert len(documents) + len(bad) >= starts - (data.endswith(b'<REUTERS TOPICS="'))


def test_starts_without_ends_take_linear_time():
    started = time.perf_counter()
    documents, bad = parse_sgml(b'<REUTERS NEWID="1">' * 100_000)
    assert (documents, len(bad)) == ([], 100_000)
    assert time.perf_counter() - started < 20


@pytest.mark.spark
def test_bad_pieces_go_to_quarantine(spark: SparkSession, tmp_path: Path):
    (tmp_path / "a.sgm").write_bytes(SAMPLE + b"\xffrest")
    (tmp_path / "b.sgm").write_bytes(b"\x00\x01\x02 nothing of the kind")
    (tmp_path / "c.sgm").write_bytes(b"")
    found = read_reuters(spark, ReutersSettings(path=str(tmp_path)), QuarantineSettings())
    assert found.records.count() == 4
    rows = sorted(found.quarantine.collect(), key=lambda row: row["source"])
    assert [(row["reason"], row["position"], row["record"]) for row in rows] == [
        (OUTSIDE, f"byte {len(SAMPLE) - 1}", "ÿrest"),
        (OUTSIDE, "byte 0", "\\x00\\x01\\x02 nothing of the kind"),
    ]


@pytest.mark.spark
@pytest.mark.corpus
def test_published_counts(spark: SparkSession, corpora: Path):
    source = ReutersSettings(path=str(corpora / "reuters21578" / "*.sgm.gz"))
    found = read_reuters(spark, source, QuarantineSettings())
    records = found.records.persist()
    splits = {row["split"]: row["count"] for row in records.groupBy("split").count().collect()}
    assert splits == {"train": 9_603, "test": 3_299, "unused": 8_676}
    assert records.select("document_id").distinct().count() == 21_578
    labels = records.select("split", F.explode("labels").alias("label"))
    sizes = {
        (row["label"], row["split"]): row["count"]
        for row in labels.groupBy("label", "split").count().collect()
    }
    published = {
        "earn": (2877, 1087),
        "acq": (1650, 719),
        "money-fx": (538, 179),
        "grain": (433, 149),
        "crude": (389, 189),
        "trade": (369, 117),
        "interest": (347, 131),
        "ship": (197, 89),
        "wheat": (212, 71),
        "corn": (181, 56),
    }
    for label, (train, test) in published.items():
        assert (sizes[label, "train"], sizes[label, "test"]) == (train, test)
    assert records.where("size(paragraphs) = 0").count() >= 1_798
    marks = F.exists("paragraphs", lambda text: text.rlike(r"(?i)^\s*reuters?\.{0,3}$"))
    assert records.where(marks).count() == 0
    assert count_reasons(found.quarantine) == {}
    records.unpersist()
