"""Kind xml_join over feed items (Hong 2009, 6.6.3): many queries beside one, beside each by itself, beside lxml alone
and beside DuckDB; a part of `make bench`.

`discounted`: less the time to write the same rows, which is that of as many rows of one query under many names.
"""

from __future__ import annotations

import csv
import gc
import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from lxml import etree

from bench.duckdb_joins import duckdb_joins
from bench.measured import Measured
from trendlake.cep_core import AnyPlan, compile_query, run_plan
from trendlake.cep_core.documents.document import HARDENED
from trendlake.cep_core.events.schema import EventSchema, schema_of
from trendlake.cep_core.xml_join.compile.plan import XmlJoinPlan
from trendlake.cep_core.xml_join.run.relations import relations
from trendlake.cep_core.xml_join.run.run import Answers
from trendlake.cep_core.xml_join.run.witnesses import witnesses
from trendlake.cep_core.yaml.scalars import yaml_text
from trendlake.pipelines.generate.feeds import feeds
from trendlake.pipelines.generate.xml_queries import (
    DocumentSchema,
    alike_documents,
    feed_pattern,
    feed_queries,
    join_pattern,
    join_queries,
    three_levels,
    two_levels,
)

ITEMS = 20_000
"""Feed items, of one week."""
WEEK = 7 * 86_400
MANY, MOST, SAMPLE = 10_000, 100_000, 100
"""Queries; the most of a file; those that are measured each by itself."""


def items() -> pa.Table:
    """`ITEMS` feed items of a week, some 830 bytes each."""
    return feeds(ITEMS, ITEMS / WEEK, 1, 0)


def schema(documents: pa.Table) -> EventSchema:
    return schema_of(documents, roles=("event_time", "document"))


def plan_for(rows: Sequence[dict[str, str]], within: str, documents: pa.Table) -> AnyPlan:
    return compile_query({**feed_pattern(within), "each": list(rows)}, schema(documents))


def least(work: Callable[[], Any], rounds: int = 3) -> float:
    """Least processor seconds, after one round to warm up. No result outlives its round: memory is used again."""
    seconds = math.inf
    for number in range(rounds + 1):
        gc.collect()
        start = time.process_time()
        result = work()
        took = time.process_time() - start
        del result
        seconds = min(seconds, took) if number else math.inf
    return seconds


def writing(documents: pa.Table, within: str, count: int) -> float:
    """Seconds to write `count` rows: those of one query, under as many names as give so many, less that query's."""
    row = {"number": "0"} | {f"{side}_{place}": "channel_url" for side in ("left", "right") for place in range(5)}
    one = plan_for([row], within, documents)
    rows = run_plan(one, documents).num_rows
    names = max(1, round(count / rows))
    many = plan_for([{**row, "number": str(number)} for number in range(names)], within, documents)
    assert run_plan(many, documents).num_rows == names * rows
    return (least(lambda: run_plan(many, documents)) - least(lambda: run_plan(one, documents))) * count / (names * rows)


def with_system_memory(work: Callable[[], Measured]) -> Measured:
    """Arrow's tables in the memory that this process has already: its own pool gives gigabytes back and asks anew."""
    own = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        return work()
    finally:
        pa.set_memory_pool(own)


def many_of_one(documents: pa.Table) -> Measured:
    """10,000 queries beside one: the mean of ten, as one may have no rows and another the most of all."""
    queries = feed_queries(MANY, 2)
    plan = plan_for(queries, "1 hour", documents)
    rows = run_plan(plan, documents).num_rows
    ones, ones_rows = [], 0
    for query in queries[:10]:
        one = plan_for([query], "1 hour", documents)
        ones.append(least(lambda one=one: run_plan(one, documents)))  # type: ignore[misc]
        ones_rows += run_plan(one, documents).num_rows
    total, written = least(lambda: run_plan(plan, documents)), writing(documents, "1 hour", rows)
    alone = sum(ones) / len(ones) - written * ones_rows / len(ones) / rows
    note = (
        f"{ITEMS:,} items, within 1 hour; {total:.2f} s less {written:.2f} s for {rows:,} rows, against {alone:.3f} s; "
        f"{len(plan.joins):,} different queries"
    )
    return Measured(
        f"{MANY:,} queries against one, discounted", (total - written) / alone, "times", 5, note, at_most=True
    )


def each_by_itself(documents: pa.Table) -> Measured:
    """A sample of queries, each over relations of its own; parsing is not counted, on either side."""
    queries = feed_queries(MANY, 2)
    whole = plan_for(queries, "1 hour", documents)
    rows = run_plan(whole, documents).num_rows
    parsing = least(lambda: parsed(documents))
    together = least(lambda: run_plan(whole, documents), 1) - parsing
    alone = 0.0
    for query in queries[:SAMPLE]:
        plan = plan_for([query], "1 hour", documents)
        alone += max(least(lambda plan=plan: run_plan(plan, documents), 1) - parsing, 0.0)  # type: ignore[misc]
    alone *= MANY / SAMPLE
    note = (
        f"{alone:.0f} s ({SAMPLE} measured) against {together:.2f} s with {rows:,} rows; "
        f"parsing, {parsing:.2f} s, not counted"
    )
    return Measured(f"{MANY:,} queries together, each by itself", alone / together, "times", 100, note)


def parsed(documents: pa.Table) -> list[Any]:
    """All documents, as lxml reads them."""
    parser = etree.XMLParser(**HARDENED)
    return [etree.fromstring(text.encode(), parser) for text in documents["document"].to_pylist()]


def beside_lxml(documents: pa.Table) -> Measured:
    """Parsing and the witnesses of all queries, beside parsing."""
    plan = plan_for(feed_queries(MANY, 2), "1 hour", documents)
    assert isinstance(plan, XmlJoinPlan)
    texts, ids = (documents[name].combine_chunks() for name in ("document", "event_id"))
    times = documents["event_time"].cast(pa.int64()).to_numpy()
    both = least(lambda: witnesses(plan, relations(plan, texts, ids), times), 5)
    alone = least(lambda: parsed(documents), 5)
    size = len(witnesses(plan, relations(plan, texts, ids), times).time)
    note = f"{ITEMS:,} documents of 830 bytes, {both:.2f} s for {size:,} witnesses against {alone:.3f} s"
    return Measured(
        f"parsing and witnesses of {MANY:,} queries, of parsing", both / alone, "times", 5, note, at_most=True
    )


def file_of(folder: Path, count: int, within: str) -> Path:
    """A pattern file of `count` queries, and their CSV file beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = feed_queries(count, 2)
    with (folder / f"of_{count}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    path = folder / f"of_{count}.yaml"
    pattern = {"name": path.stem, "source": "feeds", **feed_pattern(within), "each": f"of_{count}.csv"}
    path.write_text(yaml_text(pattern), encoding="utf-8")
    return path


def most_of_many(folder: Path, documents: pa.Table) -> Measured:
    """100,000 queries in a file beside 10,000: from the file to the rows."""
    within = "1 minute"
    seconds, notes = {}, []
    for count in (MANY, MOST):
        path = file_of(folder, count, within)
        plan = compile_query(str(path), schema(documents))
        assert isinstance(plan, XmlJoinPlan)
        rows = run_plan(plan, documents).num_rows
        total = least(lambda path=path: run_plan(compile_query(str(path), schema(documents)), documents))  # type: ignore[misc]
        written = writing(documents, within, rows)
        seconds[count] = total - written
        notes.append(f"{total:.2f} s less {written:.2f} s for {rows:,} rows, {len(plan.joins):,} different")
    return Measured(
        f"{MOST:,} queries of {MANY:,}, with expansion and validation, discounted",
        seconds[MOST] / seconds[MANY],
        "times",
        1.5,
        f"{ITEMS:,} items, within {within}; {' against '.join(reversed(notes))}",
        at_most=True,
    )


def beside_duckdb(documents: pa.Table) -> Measured:
    """The rows of all queries from given relations, beside DuckDB's. Both may use two threads; wall-clock time."""
    plan = plan_for(feed_queries(MANY, 2), "1 hour", documents)
    assert isinstance(plan, XmlJoinPlan)
    texts, ids = (documents[name].combine_chunks() for name in ("document", "event_id"))
    times = documents["event_time"].cast(pa.int64()).to_numpy()
    given = relations(plan, texts, ids)
    other = duckdb_joins(plan, given, ids, times)
    mine, rows = wall(lambda: Answers(plan, given, ids, times).table())
    theirs, their_rows = wall(other)
    note = f"{mine:.2f} s against {theirs:.2f} s, {rows:,} rows, without ids of answers in DuckDB; wall clock"
    assert rows == their_rows
    return Measured(
        f"{MANY:,} queries, of DuckDB's query for each template", mine / theirs, "times", 2, note, at_most=True
    )


def workload(name: str, levels: DocumentSchema, count: int, most: int) -> Measured:
    """Queries over two documents that are alike (Hong 2009, 6.6.1), beside each by itself: a sample, measured with the
    parsing of the documents, as there are two."""
    documents, queries = alike_documents(levels, 2), join_queries(levels, count, most, 0.8, 1)

    def plan_of(rows: Sequence[dict[str, str]]) -> AnyPlan:
        return compile_query({**join_pattern(levels, most, "1 hour"), "each": list(rows)}, schema(documents))

    whole, ones = plan_of(queries), [plan_of([query]) for query in queries[:SAMPLE]]
    assert isinstance(whole, XmlJoinPlan)
    together = least(lambda: run_plan(whole, documents))
    alone = least(lambda: [run_plan(one, documents) for one in ones]) * count / SAMPLE
    rows = run_plan(whole, documents).num_rows
    note = (
        f"{alone:.2f} s ({SAMPLE} measured) against {1_000 * together:.1f} ms with {rows:,} rows; {len(whole.joins):,} "
        f"different queries of {len(whole.templates)} templates"
    )
    return Measured(f"{name}, {count:,} queries together, each by itself", alone / together, "times", 100, note)


def wall(work: Callable[[], pa.Table], rounds: int = 3) -> tuple[float, int]:
    """Least seconds by the clock after one round to warm up, and how many rows."""
    seconds, rows = math.inf, 0
    for number in range(rounds + 1):
        gc.collect()
        start = time.perf_counter()
        rows = work().num_rows
        seconds = min(seconds, time.perf_counter() - start) if number else math.inf
    return seconds, rows


def xml_join(folder: Path) -> list[Measured]:
    """All measures of kind xml_join. Tables of queries are written under `folder`."""
    documents = items()
    return [
        with_system_memory(lambda: many_of_one(documents)),
        with_system_memory(lambda: each_by_itself(documents)),
        with_system_memory(lambda: most_of_many(folder, documents)),
        beside_lxml(documents),
        with_system_memory(lambda: beside_duckdb(documents)),
        workload("two levels, 6 leaves", two_levels(6), 1_000, 6),
        workload("three levels, 4 of 4 leaves", three_levels(4, 4), MANY, 4),
    ]


if __name__ == "__main__":
    from bench.measured import show

    show(xml_join(Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve() / "bench" / "xml_join"), "xml_join")
