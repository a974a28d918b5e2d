"""Rows a second of the entity matcher, beside a dictionary of n-grams and flashtext.

    pip install flashtext   # optional peer
    CORPUSMILL_DATA=FOLDER python benchmarks/entity_matcher.py

Queries: the log's four largest files. Entities: the titles of the Wikispeedia articles.

The peers, each as it is meant to be used:

* dictionary: every n-gram, longest first, against a Python dict. It gets folded tokens for
  nothing (its clock starts after the folding), and gives the same spans: this is checked.
* flashtext: ``KeywordProcessor.extract_keywords(query, span_info=True)``, on queries and names
  that were folded for it beforehand. It reads characters, does not fold accents, gives all
  non-overlapping matches from the left, each the longest at its place, and so not always the
  longest of the query: the share of queries for which its longest match is ours is printed.

The matcher's own figures include folding and tokenising, and the context's tokens.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpusmill import session
from corpusmill.corpora.gazetteer import Gazetteer, find_entities
from corpusmill.corpora.text import join_tokens, tokenize
from corpusmill.settings import SparkSettings

LOGS = {
    "trec_web_log_queries": "query",
    "webis_qspell17_queries": "query",
    "msmarco_dev_eval_queries": "query",
    "nq_google_questions": "query",
}
BATCH = 4096


def read_column(path: Path, column: str) -> list[str]:
    """Read a column of a compressed TSV file with a header."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        reader = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row[column] for row in reader if row[column]]


def best_seconds(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """Return the least time of several runs, and the result."""
    best, result = float("inf"), None
    for _ in range(times):
        begin = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - begin)
    return best, result


def run_matcher(gazetteer: Gazetteer, queries: pa.Array) -> pa.Table:
    """Annotate batch by batch, as Spark hands them over."""
    return pa.Table.from_batches(
        [gazetteer.annotate(queries.slice(i, BATCH)) for i in range(0, len(queries), BATCH)]
    )


def spans_of(found: pa.Table) -> list[tuple[int, int] | None]:
    """Return the tokens' place of each entity."""
    spans = zip(found["start"].to_pylist(), found["end"].to_pylist(), strict=True)
    return [None if start is None else (start, end) for start, end in spans]


def run_dictionary(
    names: dict[str, str], longest: int, queries: list[list[str]]
) -> list[tuple[int, int] | None]:
    """Look every n-gram up, the longest first."""
    found: list[tuple[int, int] | None] = []
    for tokens in queries:
        span = None
        for length in range(min(longest, len(tokens)), 0, -1):
            for start in range(len(tokens) - length + 1):
                if " ".join(tokens[start : start + length]) in names:
                    span = (start, start + length)
                    break
            if span:
                break
        found.append(span)
    return found


def run_flashtext(names: dict[str, str], queries: list[str]) -> list[str | None] | None:
    """Extract keywords and keep the longest; None if flashtext is not installed."""
    try:
        flashtext = importlib.import_module("flashtext")
    except ImportError:
        return None
    processor = flashtext.KeywordProcessor(case_sensitive=True)
    for key in names:
        processor.add_keyword(key, key)
    return [_longest(processor.extract_keywords(query)) for query in queries]


def _longest(found: list[str]) -> str | None:
    return max(found, key=lambda key: key.count(" "), default=None)


def run_spark(queries: list[str], titles: list[str], copies: int) -> float:
    """Return rows a second of the whole transformation on two local cores."""
    settings = SparkSettings(master="local[2]", shuffle_partitions=4)
    spark = session.start("entity-matcher", settings)
    entities = spark.createDataFrame(
        pa.table({"entity": titles, "class": ["any"] * len(titles)})
    ).cache()
    log = spark.createDataFrame(pa.table({"query": queries}))
    log = log.repartition(8).selectExpr("query", f"explode(sequence(1, {copies}))")
    log = log.select("query").cache()
    rows = log.count()
    entities.count()

    def work() -> None:
        find_entities(log, entities).write.format("noop").mode("overwrite").save()

    work()
    seconds, _ = best_seconds(work)
    spark.stop()
    return rows / seconds


def report(name: str, rows: int, seconds: float, base: float) -> None:
    """Print one line of the table."""
    print(f"{name:<34}{rows / seconds:>12,.0f} rows/s{base / seconds:>9.2f} x dictionary")


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", default=os.environ.get("CORPUSMILL_DATA", "../shared/data"))
    parser.add_argument("--copies", type=int, default=10, help="of the log, for Spark")
    arguments = parser.parse_args()
    data = Path(arguments.data)
    queries = [
        query
        for name, column in LOGS.items()
        for query in read_column(data / "query_log" / f"{name}.tsv.gz", column)
    ]
    articles = read_column(data / "wiki_links" / "wikispeedia_articles.tsv.gz", "title")
    titles = [title.replace("_", " ") for title in articles]
    array = pa.array(queries)
    tokens = tokenize(array)
    folded, token_lists = join_tokens(tokens).to_pylist(), tokens.to_pylist()
    names = dict.fromkeys(join_tokens(tokenize(pa.array(titles))).to_pylist(), "")
    longest = max(key.count(" ") + 1 for key in names)
    print(f"{len(queries):,} queries, {len(names):,} entities of up to {longest} tokens")

    build, gazetteer = best_seconds(lambda: Gazetteer.build(titles), times=4)
    ours, found = best_seconds(lambda: run_matcher(gazetteer, array))
    spans = spans_of(found)
    base, expected = best_seconds(lambda: run_dictionary(names, longest, token_lists))
    if spans != expected:
        raise SystemExit("the matcher and the dictionary disagree")
    hits = sum(span is not None for span in spans)
    print(f"{hits:,} queries have an entity; building the trie took {build:.3f} s")
    report("dictionary, folding not counted", len(queries), base, base)
    flash, keys = best_seconds(lambda: run_flashtext(names, folded))
    if keys is None:
        print("flashtext is not installed: pip install flashtext")
    else:
        same = sum(
            key == (" ".join(words[slice(*span)]) if span else None)
            for key, span, words in zip(keys, spans, token_lists, strict=True)
        )
        report("flashtext, folding not counted", len(queries), flash, base)
        print(f"{'':<34}its longest match is ours for {same / len(queries):.2%} of the queries")
    report("corpusmill, one core", len(queries), ours, base)
    spark_rate = run_spark(queries, titles, arguments.copies)
    print(f"{'corpusmill, Spark local[2]':<34}{spark_rate:>12,.0f} rows/s, end to end")


if __name__ == "__main__":
    main()
