"""The check of many rows against a contract, by one scan: Spark's workers read the columns that rules speak of, ask
`pipelines.rules.keep` for each batch, and send counts and the hashes of keys. No row travels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from trendlake.cep_core.events.array_types import AnyArray, Bools, Int64s, UInt64s
from trendlake.cep_core.events.arrays import arrow, numbers, valid
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.quality.uniqueness import has_key as key_given
from trendlake.pipelines.rules.great_expectations import judge_counts
from trendlake.pipelines.rules.keep import columns_of, keep
from trendlake.pipelines.rules.unique import has_key
from trendlake.pipelines.spark.columns import column

Batches = Iterator[pa.RecordBatch]

TIME = "__trendlake_time"
COUNTS = -1
"""The `kind` of a line that counts rows; of others it is the number of the rule whose keys have the hashes."""
SCHEMA = pa.schema(
    {"part": pa.int32(), "kind": pa.int32(), "inside": pa.bool_(), "data": pa.binary(), "rows": pa.int64()}
)
PARTS_PER_CORE = 3
BLOCK = 1 << 20
SMALL = 8 << 20
"""Bytes, as Spark reckons them from the files' size before it looks, below which all hashes come to this process, 8
bytes each. Files are compressed, so they may be several times as many bytes here."""


@dataclass(frozen=True)
class Scan:
    """`counts`: of each stretch between two `edges` (-1: of rows without a time) how many rows keep which of the
    `rules` of single rows. `repeated`: the rules of uniqueness whose key, or a hash of it, two good rows share, one of
    them in the ranges that were asked for."""

    rules: tuple[Rule, ...]
    edges: tuple[int, ...]
    counts: Counter[tuple[int, bytes]]
    repeated: frozenset[str]

    def within(self, span: tuple[int, int] | None = None) -> list[tuple[Bools, int]]:
        """The rows of a range between two edges (else all), and those without a time: which of the rules so many rows
        keep."""
        first, last = (
            (0, len(self.edges)) if span is None else (self.edges.index(span[0]) + 1, self.edges.index(span[1]))
        )
        masks: Counter[bytes] = Counter()
        for (stretch, mask), rows in self.counts.items():
            if stretch == -1 or first <= stretch <= last:
                masks[mask] += rows
        return [(_mask(bits, len(self.rules)), rows) for bits, rows in sorted(masks.items())]

    def bad(self, span: tuple[int, int]) -> int:
        """The rows of a range that break a rule which quarantines rows."""
        apart = np.array([rule.quarantines for rule in self.rules], np.bool_)
        return sum(rows for keeps, rows in self.within(span) if (apart & ~keeps).any())

    def checks(
        self, masks: Sequence[tuple[Bools, int]], sharing: Mapping[str, int], rules: Sequence[Rule], suite_name: str
    ) -> list[Check]:
        """Great Expectations' verdicts on `masks` of `within`; `sharing`: the rows that break a rule of uniqueness."""
        return judge_counts(masks, [rule.name for rule in self.rules], sharing, rules, suite_name)


def scan(
    frame: DataFrame, rules: Sequence[Rule], keyed: Sequence[Rule], time: Column, spans: Sequence[tuple[int, int]]
) -> Scan:
    """All rows of `frame` are read; `spans`: the ranges of `time`, a whole number, that are asked for, half-open.
    `keyed`: rules of uniqueness, whose keys good rows may not share."""
    names = tuple(dict.fromkeys((*columns_of(_single(rules)), *columns_of(keyed))))
    # plain names: PySpark looks for each column by its name as it is
    columns = [column(name).alias(f"c{at}") for at, name in enumerate(names)]
    chosen = frame.select(*columns, time.cast("bigint").alias("time"))
    reader = _Reader.of(frame.sparkSession.sparkContext.defaultParallelism, rules, keyed, (*names, TIME), TIME, spans)
    return _scanned(reader, chosen.mapInArrow(reader.read, from_arrow_schema(SCHEMA)), few=_size(chosen) < SMALL)


def _single(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    return tuple(rule for rule in rules if rule.kind not in ("unique", "row_count"))


def _scanned(reader: _Reader, lines: DataFrame, *, few: bool) -> Scan:
    """`few`: hashes that are compared in this process."""
    if few:
        answers = pa.Table.from_batches(list(_joined(iter(lines.toArrow().to_batches()))), SCHEMA)
    else:
        spread = lines.repartitionById(reader.parts, "part")
        answers = spread.mapInArrow(_joined, from_arrow_schema(SCHEMA)).toArrow()
    counts: Counter[tuple[int, bytes]] = Counter()
    repeated = set()
    for line in answers.to_pylist():
        if line["kind"] == COUNTS:
            stretch = int.from_bytes(line["data"][:4], "little", signed=True)
            counts[stretch, line["data"][4:]] += line["rows"]
        else:
            repeated.add(reader.keyed[line["kind"]].name)
    return Scan(reader.rules, reader.edges, counts, frozenset(repeated))


def sharing(frame: DataFrame, rules: Sequence[Rule]) -> dict[str, int]:
    """How many rows share their key with another, by the name of each rule of uniqueness."""
    counts = {}
    for rule in rules:
        if rule.kind == "unique":
            keys = frame.where(key_given(rule)).groupBy(*map(column, rule.columns)).count()
            rows = keys.where(sf.col("count") > 1).agg(sf.sum("count")).collect()[0][0]
            counts[rule.name] = int(rows or 0)
    return counts


def _size(frame: DataFrame) -> int:
    java: Any = frame._jdf
    return int(java.queryExecution().optimizedPlan().stats().sizeInBytes())


def _mask(bits: bytes, count: int) -> Bools:
    mask: Bools = np.unpackbits(np.frombuffer(bits, np.uint8), count=count).astype(np.bool_)
    return mask


@dataclass(frozen=True)
class _Reader:
    """The work of the workers: `rules` of single rows and `keyed` ones, of batches with the columns `names`, `time`
    among them; `parts` compare the hashes."""

    rules: tuple[Rule, ...]
    keyed: tuple[Rule, ...]
    names: tuple[str, ...]
    time: str
    edges: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    parts: int

    @classmethod
    def of(
        cls,
        cores: int,
        rules: Sequence[Rule],
        keyed: Sequence[Rule],
        names: Sequence[str],
        time: str,
        spans: Sequence[tuple[int, int]],
    ) -> _Reader:
        edges = tuple(sorted({edge for span in spans for edge in span}))
        return cls(_single(rules), tuple(keyed), tuple(names), time, edges, tuple(spans), cores * PARTS_PER_CORE)

    def read(self, batches: Batches) -> Batches:
        """Lines of `SCHEMA`."""
        apart = np.array([rule.quarantines for rule in self.rules], np.bool_)
        counts: Counter[tuple[int, bytes]] = Counter()
        held: list[list[tuple[UInt64s, Bools]]] = [[] for _ in self.keyed]
        for unnamed in batches:
            batch = unnamed.rename_columns(list(self.names))
            keeps = np.ones((len(self.rules), batch.num_rows), np.bool_)
            for at, rule in enumerate(self.rules):
                keeps[at] = keep(rule, batch)
            time = batch.column(self.time)
            moments, timed = numbers(time, 0), valid(time)
            stretches = np.where(timed, np.searchsorted(np.array(self.edges, np.int64), moments, side="right"), -1)
            _count(counts, keeps, stretches)
            good = keeps[apart].all(axis=0)
            inside = _inside(moments, self.spans) | ~timed
            for kind, rule in enumerate(self.keyed):
                rows = np.flatnonzero(good & has_key(batch, rule))
                held[kind].append((_hashes(batch, rule)[rows], inside[rows]))
                if sum(len(hashes) for hashes, _ in held[kind]) >= BLOCK:
                    yield from _spread(kind, held[kind], self.parts)
                    held[kind].clear()
        for kind, blocks in enumerate(held):
            yield from _spread(kind, blocks, self.parts)
        yield from _counted(counts)


def _hashes(batch: pa.RecordBatch, rule: Rule) -> UInt64s:
    from trendlake.pipelines.execute.hashing import row_hashes  # compiled code

    return row_hashes([batch.column(name) for name in rule.columns], batch.num_rows)


def _inside(moments: Int64s, spans: Sequence[tuple[int, int]]) -> Bools:
    inside = np.zeros(len(moments), np.bool_)
    for start, end in spans:
        inside |= (moments >= start) & (moments < end)
    return inside


def _count(counts: Counter[tuple[int, bytes]], keeps: Bools, stretches: AnyArray) -> None:
    """Adds the rows of a batch by their stretch and the rules that they keep (rules x rows)."""
    if len(stretches) and keeps.all() and stretches.min() == stretches.max():
        counts[int(stretches[0]), np.packbits(np.ones(len(keeps), np.bool_)).tobytes()] += len(stretches)
        return
    bits = np.ascontiguousarray(np.packbits(keeps, axis=0).T)
    lines = np.concatenate([np.ascontiguousarray(stretches, np.int32).view(np.uint8).reshape(-1, 4), bits], axis=1)
    same = np.ascontiguousarray(lines).view(f"V{lines.shape[1]}").ravel()
    kinds, sizes = np.unique(same, return_counts=True)
    for kind, size in zip(kinds, sizes, strict=True):
        raw = kind.tobytes()
        counts[int.from_bytes(raw[:4], "little", signed=True), raw[4:]] += int(size)


def _counted(counts: Counter[tuple[int, bytes]]) -> Batches:
    lines = [
        {"part": 0, "kind": COUNTS, "inside": False, "data": _bytes(stretch) + mask, "rows": rows}
        for (stretch, mask), rows in counts.items()
    ]
    yield from pa.Table.from_pylist(lines, SCHEMA).to_batches()


def _bytes(stretch: int) -> bytes:
    return stretch.to_bytes(4, "little", signed=True)


def _spread(kind: int, blocks: Sequence[tuple[UInt64s, Bools]], parts: int) -> Batches:
    """A line for each part: the hashes that it compares, of rows inside and of others."""
    if not blocks:
        return
    every, inside = (np.concatenate([block[at] for block in blocks]) for at in (0, 1))
    part = (every % np.uint64(parts)).astype(np.int32) * 2 + inside
    order = np.argsort(part, kind="stable")
    ends = np.cumsum(np.bincount(part, minlength=2 * parts))
    lines = [
        {"part": number // 2, "kind": kind, "inside": bool(number % 2), "data": chosen.tobytes(), "rows": len(chosen)}
        for number, chosen in enumerate(np.split(every[order], ends[:-1]))
        if len(chosen)
    ]
    yield from pa.Table.from_pylist(lines, SCHEMA).to_batches()


def _joined(batches: Batches) -> Batches:
    """Counts as they are; a line for each rule that a row inside the range may break, because its hash occurs twice."""
    held: dict[tuple[int, int], list[tuple[UInt64s, bool]]] = {}
    for batch in batches:
        counted = numbers(batch.column("kind")) == COUNTS
        if counted.any():
            yield batch.filter(arrow(counted))
        for row in np.flatnonzero(~counted).tolist():
            key = batch.column("kind")[row].as_py(), batch.column("part")[row].as_py()
            hashes = np.frombuffer(batch.column("data")[row].as_buffer(), np.uint64)
            held.setdefault(key, []).append((hashes, batch.column("inside")[row].as_py()))
    kinds = {kind for (kind, _), blocks in held.items() if _any_repeated(blocks)}
    lines = [{"part": 0, "kind": kind, "inside": True, "data": b"", "rows": 0} for kind in sorted(kinds)]
    yield from pa.Table.from_pylist(lines, SCHEMA).to_batches()


def _any_repeated(blocks: Sequence[tuple[UInt64s, bool]]) -> bool:
    """Whether a hash of a row inside occurs twice."""
    inside = [hashes for hashes, within in blocks if within]
    if not inside:
        return False
    own = np.sort(np.concatenate(inside))
    if (own[1:] == own[:-1]).any():
        return True
    others = [hashes for hashes, within in blocks if not within]
    return bool(others) and bool(np.isin(np.concatenate(others), own).any())
