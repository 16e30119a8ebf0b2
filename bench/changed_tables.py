"""Revisions of patterns that look columns up or read several tables: `python -m bench.changed_tables`.

A project of its own: orders over ten years in daily windows, with the segment of their customers. One row of a customer
whose orders are in five windows changes; then the table of a million customers is written again, with ten real changes.
And three tables beside one table of the same events: a whole run, a hundred changed events, and nothing new.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import yaml
from deltalake import write_deltalake

from bench.measured import Measured, show
from bench.trades import SETTINGS, session, timed
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.road import road_of
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.runs.record import create_runs, newest_records
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.runs.stage import Record
from trendlake.pipelines.steps.revise import revise
from trendlake.pipelines.steps.sequence import STEPS

DAY = 86_400_000_000
START = 1_483_228_800_000_000
"""2017-01-01."""
WINDOWS, USES = 3_650, 5
EVENTS, CUSTOMERS = 1_000_000, 1_000_000
FEW = 30_000
"""Events of the three tables together: their revision is done in this process."""
ROUNDS = 3
"""Of whole runs; the quickest counts."""
TIME = pa.timestamp("us", "UTC")
_EVENT = (("number", "integer", "event_id"), ("at", "timestamp", "event_time"))
_ORDERS = (*_EVENT, ("customer_id", "integer", ""), ("amount", "number", ""))
_CUSTOMERS = (
    ("customer_id", "integer", "event_id"),
    ("since", "timestamp", "event_time"),
    ("segment", "string", ""),
    ("note", "string", ""),
)
_TREND: Mapping[str, Any] = {"kind": "trends", "return": {"n": "COUNT(*)"}, "within": "1 day"}


@dataclass(frozen=True)
class Bench:
    """A project in `root` with tables of its own."""

    root: Path
    lake: Lake

    @classmethod
    def of(cls, root: Path) -> Bench:
        shutil.rmtree(root, ignore_errors=True)
        for folder in ("data_contracts", "conf/patterns"):
            (root / folder).mkdir(parents=True)
        for file in (find_project().root / "data_contracts").glob("results_*.yaml"):
            shutil.copyfile(file, root / "data_contracts" / file.name)
        profile = Profile()
        lake = Lake.of(session(), Warehouse(profile.warehouse_of(Project(root, root / "state"))))
        create_runs(lake)
        return cls(root, lake)

    @property
    def project(self) -> Project:
        return Project(self.root, self.root / "state")

    def table(self, name: str, columns: tuple[tuple[str, str, str], ...], rows: pa.Table, kind: str = "") -> None:
        """A table of these columns: name, logical type, role of events. `kind`: the type of all its events."""
        properties = []
        for column, logical, role in columns:
            one: dict[str, Any] = {"name": column, "logicalType": logical}
            one |= {"physicalType": "bigint"} if logical == "integer" else {}
            one |= {"physicalType": "double"} if logical == "number" else {}
            if role:
                one |= {"required": True, "customProperties": [{"property": "eventRole", "value": role}]}
            properties.append(one)
        schema: dict[str, Any] = {"name": name, "properties": properties}
        if kind:
            schema["customProperties"] = [{"property": "eventType", "value": kind}]
        head = {"apiVersion": "v3.1.0", "kind": "DataContract", "id": f"bench-{name}", "version": "1.0.0"}
        contract = head | {"name": name, "status": "active", "schema": [schema]}
        if kind:
            contract["slaProperties"] = [{"property": "latency", "value": 2, "unit": "h"}]
        file = self.root / "data_contracts" / f"{name}.yaml"
        file.write_text(yaml.safe_dump(contract, sort_keys=False))
        path = self.lake.warehouse.source(name)
        create_source(self.lake, path, load_contract(file))
        self.write(name, rows)

    def write(self, name: str, rows: pa.Table, mode: Any = "append") -> None:
        path = self.lake.warehouse.source(name)
        write_deltalake(path, rows, mode=mode)
        read_log_anew(self.lake, path)

    def run(self, name: str, keys: Mapping[str, Any], run_id: str) -> Run:
        """All windows of a pattern."""
        file = self.root / "conf" / "patterns" / f"{name}.yaml"
        file.write_text(yaml.safe_dump({"name": name, **_TREND, **keys}, sort_keys=False))
        last = START + WINDOWS * DAY
        return prepare(self.lake, self.project, Profile(spark=SETTINGS), name, run_id, START, last)


def all_steps(run: Run) -> None:
    for step in STEPS.values():
        step(run)


def orders(events: int, customers: int, seed: int = 1, first: int = 0) -> pa.Table:
    """In order of time. The customer 0 has one order in each of `USES` windows, and no others."""
    random = np.random.default_rng(seed)
    times = START + np.sort(random.integers(0, WINDOWS * DAY, events))
    of = random.integers(1, customers, events)
    of[(np.arange(USES) + 1) * (events // (USES + 1))] = 0
    columns = {"number": np.arange(first, first + events), "at": pa.array(times, TIME), "customer_id": of}
    return pa.table({**columns, "amount": random.random(events)})


def customers_of(count: int, changed: tuple[int, ...] = (), to: str = "changed") -> pa.Table:
    """A row for each customer; those `changed` have another segment."""
    segments = np.arange(count) % 20
    texts = pa.array([*(f"segment {n}" for n in range(20)), to]).take(
        pa.array(np.where(np.isin(np.arange(count), changed), 20, segments))
    )
    notes = pa.array([f"customer {n}" for n in range(1_000)]).take(pa.array(np.arange(count) % 1_000))
    since = pa.array(np.full(count, START), TIME)
    return pa.table({"customer_id": np.arange(count), "since": since, "segment": texts, "note": notes})


def _revised(run: Run) -> tuple[float, Record]:
    records: list[Record] = []
    return timed(lambda: records.append(revise(run))), records[0]


def by_reference_rows(bench: Bench, events: int, customers: int) -> list[Measured]:
    """Wall-clock seconds."""
    bench.table("orders", _ORDERS, orders(events, customers), "Order")
    bench.table("customers", _CUSTOMERS, customers_of(customers), "Customer")
    lookup = {"customer": {"table": "customers", "key": "customer_id", "columns": ["segment"]}}
    keys = {"source": "orders", "pattern": "Order o", "lookup": lookup, "group_by": ["segment"]}
    all_steps(bench.run("segments", keys, "first"))
    rows = []
    for number, to in enumerate(("warm", "other")):
        one = customers_of(1, (0,), to)
        path = bench.lake.warehouse.source("customers")
        write_deltalake(path, one, mode="overwrite", predicate="customer_id = 0")
        read_log_anew(bench.lake, path)
        took, record = _revised(bench.run("segments", keys, f"row {number}"))
    if record.windows != USES:
        raise SystemExit(f"a row that {USES} windows use touched {record.windows}")
    whole = timed(lambda: all_steps(bench.run("segments", keys, "again")))
    note = f"{events:,} events, {customers:,} rows: {took:.2f} s against {whole:.1f} s, {record.road}; wall clock"
    name = f"one changed row used in {USES} of {WINDOWS:,} windows, of all computed"
    rows.append(Measured(name, took / whole, "x", 0.10, f"{note}; goal 0.03", at_most=True))
    bench.write("customers", customers_of(customers, tuple(range(10)), "ten"), "overwrite")
    took, record = _revised(bench.run("segments", keys, "ten"))
    note = f"{events:,} events, {record.windows} windows, {record.road}; wall clock; goal 3"
    rows.append(Measured(f"{customers:,} rows overwritten, 10 real changes", took, "s", 10.0, note, at_most=True))
    return rows


def _three_and_one(bench: Bench, events: int, customers: int, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a pattern over three new tables, and over one new table of the same events."""
    kinds = {"Order": f"{prefix}_orders", "Payment": f"{prefix}_payments", "Ticket": f"{prefix}_tickets"}
    parts = [orders(events // 3, customers, seed, seed * events) for seed in range(3)]
    for (kind, name), part in zip(kinds.items(), parts, strict=True):
        bench.table(name, _ORDERS, part, kind)
    typed = [
        part.append_column("kind", pa.array([kind] * part.num_rows)) for kind, part in zip(kinds, parts, strict=True)
    ]
    every = f"{prefix}_events"
    bench.table(every, (*_ORDERS, ("kind", "string", "event_type")), pa.concat_tables(typed))
    pattern = {"pattern": "SEQ(Order o, Payment p, Ticket t)", "where": ["[customer_id]"], "group_by": ["customer_id"]}
    return pattern | {"sources": kinds}, pattern | {"source": every}


def three_of_one(bench: Bench, events: int) -> list[Measured]:
    """Wall-clock seconds of all steps of a run over three tables, of those over one table of the same events."""
    keys = _three_and_one(bench, events, events // 10_000, "all")
    took = [float("inf")] * 2
    for number in range(ROUNDS):
        for place, (name, one) in enumerate(zip(("all_of_three", "all_of_one"), keys, strict=True)):
            took[place] = min(took[place], timed(partial(all_steps, bench.run(name, one, f"round {number}"))))
    records = newest_records(bench.lake, "all_of_three", len(STEPS)) or []
    where = sorted({road_of(record) for record in records})
    note = f"{events:,} events: {took[0]:.1f} s against {took[1]:.1f} s, {', '.join(where)}; wall clock; goal 1.05"
    name = "a run over three tables, of one over one table"
    return [Measured(name, took[0] / took[1], "x", 1.20, note, at_most=True)]


def of_three_tables(bench: Bench, events: int) -> list[Measured]:
    """Wall-clock seconds: a hundred changed events in one of three tables beside one table of all events."""
    customers = 1_000
    several, one = _three_and_one(bench, events, customers, "three")
    for name in ("regions", "ranks"):
        bench.table(name, _CUSTOMERS, customers_of(customers), "Customer")
    looked_up = {
        name: {"table": name, "key": "customer_id", "columns": [{name[:-1]: "segment"}]}
        for name in ("regions", "ranks")
    }
    with_lookups = several | {"lookup": looked_up, "group_by": ["customer_id", "region", "rank"]}
    for name, keys in (("of_three", several), ("of_one", one), ("with_lookups", with_lookups)):
        all_steps(bench.run(name, keys, "first"))
    took: dict[str, float] = {}
    for number in range(4):
        more = orders(100, customers, 10 + number, (10 + number) * events)
        bench.write("three_orders", more)
        bench.write("three_events", more.append_column("kind", pa.array(["Order"] * 100)))
        for name, keys in (("of_three", several), ("of_one", one)):
            seconds, record = _revised(bench.run(name, keys, f"revision {number}"))
            took[name] = min(seconds, took.get(name, seconds)) if number else seconds * 100
    note = f"{events:,} events, 100 came, {record.windows} windows: "
    note += f"{took['of_three']:.2f} s against {took['of_one']:.2f} s"
    rows = [
        Measured(
            "revise 100 changes in one of three tables, of one table",
            took["of_three"] / took["of_one"],
            "x",
            1.5,
            f"{note}, {record.road}; wall clock; goal 1.15",
            at_most=True,
        )
    ]
    revise(bench.run("with_lookups", with_lookups, "newest"))
    quiet = min(_revised(bench.run("with_lookups", with_lookups, f"quiet {number}"))[0] for number in range(3))
    note = "wall clock, in a process that has done it once; goal 0.5"
    return [*rows, Measured("nothing new, 3 tables and 2 lookups", quiet, "s", 1.5, note, at_most=True)]


def changed_tables(folder: Path, events: int = EVENTS, customers: int = CUSTOMERS, few: int = FEW) -> list[Measured]:
    """All measures of revisions of several tables and of reference tables."""
    bench = Bench.of(folder)
    try:
        rows = [*of_three_tables(bench, few), *three_of_one(bench, events)]
        return [*rows, *by_reference_rows(bench, events, customers)]
    finally:
        bench.lake.spark.stop()


if __name__ == "__main__":
    state = Path(os.environ.get("TRENDLAKE_STATE", ".trendlake")).resolve()
    show(changed_tables(state / "bench" / "changed_tables"), "changed_tables")
