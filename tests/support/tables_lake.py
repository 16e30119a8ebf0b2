"""Three tables of events with unlike columns and a pattern over them, in a warehouse that tests may change at will."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from tests.conftest import ROOT
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.ingest.deliver import create_source, ingest
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.record import create_runs
from trendlake.pipelines.runs.run import Run, prepare

Row = dict[str, Any]
HOUR = 3_600_000_000
START = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""
DAY = 24 * HOUR
HERE = Profile(master="local[2]")
ON_SPARK = Profile(master="local[2]", limits=Limits(driver_rows=0))


def contract_text(name: str, columns: Sequence[str], latency: int | None = 2, tolerance: float = 1.0) -> str:
    """`columns`: lines of YAML; `latency`: hours."""
    late = "" if latency is None else f"slaProperties: [{{property: latency, value: {latency}, unit: h}}]\n"
    lines = "\n".join(f"      - {column}" for column in columns)
    return f"""\
apiVersion: v3.1.0
kind: DataContract
id: test-{name}
version: 1.0.0
name: {name}
status: active
schema:
  - name: {name}
    customProperties: [{{property: quarantineTolerance, value: {tolerance}}}, {{property: corrections, value: replace}}]
    properties:
{lines}
{late}"""


def role(name: str, kind: str, of: str, more: str = "") -> str:
    rest = f"customProperties: [{{property: eventRole, value: {of}}}]{more}"
    return f"{{name: {name}, logicalType: {kind}, required: true, {rest}}}"


ORDERS = (
    role("number", "integer", "event_id", ", unique: true"),
    role("at", "timestamp", "event_time"),
    "{name: customer_id, logicalType: string}",
    "{name: amount, logicalType: integer, physicalType: bigint, logicalTypeOptions: {minimum: 0, maximum: 99}}",
)
PAYMENTS = (
    role("ref", "string", "event_id", ", unique: true"),
    role("paid", "timestamp", "event_time"),
    "{name: cust, logicalType: string}",
    "{name: paid_amount, logicalType: number, physicalType: double, logicalTypeOptions: {minimum: 0}}",
)
SUPPORT = (
    role("id", "string", "event_id", ", unique: true"),
    role("when", "timestamp", "event_time"),
    role("what", "string", "event_type"),
    "{name: customer_id, logicalType: string}",
)
CUSTOMERS = (
    role("row", "string", "event_id", ", unique: true"),
    role("since", "timestamp", "event_time"),
    "{name: until, logicalType: timestamp}",
    "{name: customer_id, logicalType: string}",
    "{name: segment, logicalType: string, logicalTypeOptions: {maxLength: 9}}",
    "{name: note, logicalType: string}",
)
TABLES = {"orders": (ORDERS, "Order"), "payments": (PAYMENTS, "Payment"), "support": (SUPPORT, None)}
REFERENCES = {"customers": (CUSTOMERS, "Customer")}
"""Tables that patterns look columns up in."""
PLAIN_CUSTOMERS = (
    "{name: row, logicalType: string, required: true, unique: true}",
    "{name: since, logicalType: timestamp}",
    *CUSTOMERS[2:],
)
"""As a table of no events."""
SCHEMAS = {
    "orders": pa.schema(
        {"number": pa.int64(), "at": pa.timestamp("us", "UTC"), "customer_id": "string", "amount": pa.int64()}
    ),
    "payments": pa.schema(
        {"ref": "string", "paid": pa.timestamp("us", "UTC"), "cust": "string", "paid_amount": "double"}
    ),
    "support": pa.schema(
        {"id": "string", "when": pa.timestamp("us", "UTC"), "what": "string", "customer_id": "string"}
    ),
    "customers": pa.schema(
        {"row": "string", "since": pa.timestamp("us", "UTC"), "until": pa.timestamp("us", "UTC")}
        | {"customer_id": "string", "segment": "string", "note": "string"}
    ),
}
SOURCES = {
    "Order": "orders",
    "Payment": {"source": "payments", "columns": {"customer_id": "cust", "amount": "paid_amount"}},
    "Ticket": {"source": "support", "type": "opened"},
}
PATTERN: Mapping[str, Any] = {
    "name": "unpaid",
    "kind": "matches",
    "sources": SOURCES,
    "pattern": "SEQ(Order o, Payment p, Ticket t)",
    "where": ["[customer_id]"],
    "return": {"total": "p.amount"},
    "within": "1 day",
}


@dataclass(frozen=True)
class SeveralTables:
    """A project in `root` with the tables, and one pattern over them. `plain`: whether contracts of reference tables
    name no event roles."""

    root: Path
    lake: Lake
    profile: Profile = HERE
    plain: bool = False

    @property
    def project(self) -> Project:
        return Project(self.root, self.root / "state")

    def contract(self, name: str) -> Contract:
        return load_contract(self.project.contract_path(name))

    def edit_contract(self, name: str, **values: Any) -> None:
        """The contract of a table from now on; `values`: as of `contract_text`."""
        columns, constant = (TABLES | REFERENCES)[name]
        if self.plain and name in REFERENCES:
            columns, constant, values["latency"] = PLAIN_CUSTOMERS, None, None
        text = contract_text(name, columns, **values)
        if constant is not None:
            text = text.replace(
                "customProperties: [", f"customProperties: [{{property: eventType, value: {constant}}}, ", 1
            )
        (self.root / "data_contracts" / f"{name}.yaml").write_text(text)

    def edit(self, **keys: Any) -> None:
        """The pattern from now on, with other keys."""
        whole = {**PATTERN, **keys}
        text = yaml.safe_dump({key: value for key, value in whole.items() if value is not None}, sort_keys=False)
        (self.root / "conf" / "patterns" / "unpaid.yaml").write_text(text)

    def deliver(self, name: str, rows: Sequence[Mapping[str, Any]], *, whole: bool = False) -> int | None:
        """One delivery to a table, `whole` in place of its rows; its version then."""
        table = pa.Table.from_pylist([dict(row) for row in rows], SCHEMAS[name])
        feed = f"{name} {len(list((self.root / 'feeds').glob('*')))}"
        (self.root / "feeds" / feed).touch()
        contract = self.contract(name)
        return ingest(self.lake, contract, [table], feed=feed, run_id=feed, whole=whole).source_version

    def make(self, name: str) -> None:
        create_source(self.lake, self.lake.warehouse.source(name), self.contract(name))

    def drop(self, name: str) -> None:
        path = self.lake.warehouse.source(name)
        shutil.rmtree(path)
        read_log_anew(self.lake, path)

    def run(self, first: float, last: float, run_id: str) -> Run:
        """Of the days `first` to `last`."""
        bounds = (round(START + day * DAY) for day in (first, last))
        return prepare(self.lake, self.project, self.profile, "unpaid", run_id, *bounds)


def several_tables(
    root: Path, lake: Lake, profile: Profile = HERE, *, plain: bool = False, **keys: Any
) -> SeveralTables:
    """A fresh project in `root` with empty tables. `lake`: of its warehouse; `plain`: as of `SeveralTables`; `keys`: of
    the pattern, None takes one away."""
    for folder in ("data_contracts", "conf/patterns", "feeds"):
        (root / folder).mkdir(parents=True)
    for file in (ROOT / "data_contracts").glob("results_*.yaml"):
        shutil.copyfile(file, root / "data_contracts" / file.name)
    tables = SeveralTables(root, lake, profile, plain)
    for name in (*TABLES, *(REFERENCES if keys.get("lookup") else ())):
        tables.edit_contract(name)
        tables.make(name)
    tables.edit(**keys)
    create_runs(lake)
    return tables


def order(number: int, hours: float, customer: str | None = "a", amount: int | None = 10) -> dict[str, Any]:
    return {"number": number, "at": START + round(hours * HOUR), "customer_id": customer, "amount": amount}


def payment(ref: str, hours: float, customer: str | None = "a", amount: float | None = 10.0) -> dict[str, Any]:
    return {"ref": ref, "paid": START + round(hours * HOUR), "cust": customer, "paid_amount": amount}


def customer(row: str, name: str | None, segment: str | None, since: float = -99, until: float | None = None) -> Row:
    """A row of the table of customers; `since`, `until`: hours."""
    end = None if until is None else START + round(until * HOUR)
    begin = START + round(since * HOUR)
    return {"row": row, "since": begin, "until": end, "customer_id": name, "segment": segment, "note": row}


def ticket(name: str, hours: float, customer: str | None = "a", what: str = "opened") -> dict[str, Any]:
    return {"id": name, "when": START + round(hours * HOUR), "what": what, "customer_id": customer}
