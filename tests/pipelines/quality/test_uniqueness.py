"""Which row counts where several share a key: by Spark, in this process, and one after the other in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.quality import quarantine as q
from trendlake.pipelines.quality.uniqueness import BROKEN, counted_broken
from trendlake.pipelines.rules.great_expectations import judge
from trendlake.pipelines.rules.split import split
from trendlake.pipelines.rules.unique import EQUAL, OLDER
from trendlake.pipelines.spark.frames import frame_of

pytestmark = pytest.mark.spark

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: ticks
version: 1.0.0
status: active
schema:
  - name: ticks
    customProperties: [{property: eventType, value: Tick}]
    properties:
      - {name: id, logicalType: string, required: true, customProperties: [{property: eventRole, value: event_id}]}
      - {name: part, logicalType: integer, physicalType: int}
      - {name: at, logicalType: timestamp, required: true,
         customProperties: [{property: eventRole, value: event_time}]}
      - {name: v, logicalType: number, logicalTypeOptions: {minimum: 0}}
      - {name: seq, logicalType: number, SEQUENCE}
"""
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("v", pa.float64()),
        ("seq", pa.float64()),
        ("extra", pa.string()),
    ]
)
CASES = 400


def contract_of(folder: Path, sequence: bool, key: tuple[str, ...]) -> Contract:
    path = folder / "ticks.yaml"
    role = "customProperties: [{property: eventRole, value: sequence}]" if sequence else "description: x"
    path.write_text(CONTRACT.replace("SEQUENCE", role))
    contract = load_contract(path)
    compared = tuple(item.name for item in contract.columns)
    unique = Rule("key", "unique", key, compared=compared, sequence="seq" if sequence else None)
    return replace(contract, rules=(*contract.rules, unique))


def rows_of(rng: random.Random) -> list[dict[str, Any]]:
    """Few keys with several rows each, of few values: NULL, NaN and both zeros, broken rows, columns of others."""
    return [
        {
            "id": rng.choice([None, f"k{case}", f"k{case}"]),
            "part": rng.choice([None, 1]),
            "at": case,
            "v": rng.choice([None, 0.0, -0.0, float("nan"), 1.0, -1.0]),
            "seq": rng.choice([None, 1.0, 2.0, float("nan")]),
            "extra": rng.choice("xyz"),
        }
        for case in range(CASES)
        for _ in range(rng.randrange(1, 5))
    ]


def content(row: dict[str, Any]) -> tuple[str, ...]:
    """What the contract sees of a row: NaN is NaN, -0.0 is 0.0; the columns of others are not compared."""
    values = {name: value + 0.0 if isinstance(value, float) else value for name, value in row.items()}
    return tuple(str(values[name]) for name in SCHEMA.names if name != "extra")


def with_reason(row: dict[str, Any]) -> tuple[tuple[str, ...], str, str]:
    return content({name: row[name] for name in SCHEMA.names}), row["rule"], row["reason"]


def expected(rows: list[dict[str, Any]], key: tuple[str, ...], sequence: bool) -> Counter[tuple[str, ...]]:
    """The rows that count, by what the contract sees of them."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    counted: list[dict[str, Any]] = []
    for row in rows:
        broken = row["id"] is None or (row["v"] is not None and row["v"] < 0)
        if not broken:
            groups.setdefault(tuple(row[name] for name in key), []).append(row)
    for group in groups.values():
        ranks = [-1.0 if row["seq"] is None or row["seq"] != row["seq"] else row["seq"] for row in group]
        top = [row for row, rank in zip(group, ranks, strict=True) if not sequence or rank == max(ranks)]
        if len({content(row) for row in top}) == 1:
            counted.append(top[0])
    return Counter(map(content, counted))


@pytest.mark.long
@pytest.mark.parametrize("key", [("id",), ("id", "part")])
@pytest.mark.parametrize("sequence", [False, True])
def test_all_agree(spark: SparkSession, tmp_path: Path, key: tuple[str, ...], sequence: bool) -> None:
    rng = random.Random(f"{key} {sequence}")
    contract, rows = contract_of(tmp_path, sequence, key), rows_of(rng)
    rng.shuffle(rows)
    table = pa.Table.from_pylist(rows, SCHEMA)
    rows = table.to_pylist()
    wanted = expected(rows, key, sequence)
    local = split(table, contract)
    assert Counter(content(row) for row, broken in zip(rows, local.broken, strict=True) if broken < 0) == wanted
    frame = frame_of(spark, table).repartition(3)
    annotated = q.annotate(frame, contract.rules)
    annotated_rows = annotated.withColumn("good", sf.size(BROKEN) == 0).drop(BROKEN).toArrow().to_pylist()
    assert Counter(content(row) for row in annotated_rows if row["good"]) == wanted
    assert len(annotated_rows) == len(rows)
    bad = np.flatnonzero(local.broken >= 0)
    mine = local.with_reasons(contract, bad, table.take(bad)).to_pylist()
    theirs = q.bad_rows(annotated, "r", 1).toArrow().to_pylist()
    assert Counter(map(with_reason, mine)) == Counter(map(with_reason, theirs))
    tolerated = annotated.where(sf.size(BROKEN) > 0).where(~counted_broken()).count()
    assert np.isin(local.repeats, (EQUAL, OLDER)).sum() == tolerated > 0
    verdict = judge(table, contract.rules, "ticks")[-1]
    assert not verdict.success


def test_what_a_row_holds_never_decides(spark: SparkSession, tmp_path: Path) -> None:
    """The friction that a new user met: of an old and a corrected row the lower value stayed."""
    contract = contract_of(tmp_path, False, ("id",))
    for first, second in ((5.0, 7.0), (7.0, 5.0)):
        rows = [{"id": "a", "at": 0, "v": value, "seq": None, "extra": "x"} for value in (first, second)]
        bad = q.bad_rows(q.annotate(frame_of(spark, pa.Table.from_pylist(rows, SCHEMA)), contract.rules), "r", 1)
        assert [row["rule"] for row in bad.collect()] == ["key", "key"]
