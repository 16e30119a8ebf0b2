"""A source that tests may change at will: small alphabets, so that keys, times and ids meet often; every row may break
its contract, and no share of broken rows is too large."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support import plain_writer
from tests.support.empty_tables import empty_tables
from tests.support.signal_documents import DOCUMENT, contract_of_documents, document_text
from tests.support.signal_patterns import HEAD
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.ingest.deliver import create_source
from trendlake.pipelines.lake.commits import read_log_anew
from trendlake.pipelines.lake.lake import Lake, latest_version
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Limits, Profile
from trendlake.pipelines.runs.run import Run, prepare

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: test-signals
version: 1.0.0
name: signals
status: active
schema:
  - name: signals
    customProperties: [{property: quarantineTolerance, value: 1}]
    properties:
      - {name: event_id, logicalType: string, required: true, unique: true,
         customProperties: [{property: eventRole, value: event_id}]}
      - {name: event_time, logicalType: timestamp, required: true,
         customProperties: [{property: eventRole, value: event_time}]}
      - name: event_type
        logicalType: string
        required: true
        customProperties: [{property: eventRole, value: event_type}]
        quality: [{metric: invalidValues, arguments: {validValues: [A, B, C]}, mustBe: 0}]
      - {name: place, logicalType: string}
      - {name: price, logicalType: integer, physicalType: bigint, logicalTypeOptions: {minimum: 0, maximum: 9}}
      - {name: remark, logicalType: string}
      - {name: level, logicalType: number, physicalType: double}
      - {name: rate, logicalType: number, physicalType: float}
      - {name: account, logicalType: number, physicalType: "decimal(20,0)"}
      - {name: day, logicalType: date}
slaProperties: [{property: latency, value: 6, unit: h}]
"""
IN_DRIVER = Profile(master="local[2]")
"""The driver computes the windows of a run, as of so few events for users."""
IN_WORKERS = Profile(master="local[2]", limits=Limits(driver_rows=1))
"""Workers compute as soon as there are two events: for tests of what workers do, and of what may happen to them."""
DAY_US = 86_400_000_000
START_US = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""
SCHEMA = pa.schema(
    [
        ("event_id", "string"),
        ("event_time", pa.timestamp("us", "UTC")),
        ("event_type", "string"),
        ("place", "string"),
        ("price", "int64"),
        ("remark", "string"),
        ("level", "float64"),
        ("rate", "float32"),
        ("account", pa.decimal128(20, 0)),
        ("day", "date32"),
    ]
)


LEVELS = (0.0, -0.0, float("nan"), None, 1.5, 1.5)
RATES = (0.0, -0.0, float("nan"), None, 0.1, 0.1)
ACCOUNTS = (Decimal(2**53), Decimal(2**53 + 1), Decimal(-1), None)
DAYS = (date(1969, 12, 31), date(1500, 1, 1), date(2026, 1, 1), None)
REMARKS = ("", "x", "x ", "straße", None)
"""Values of the columns that patterns group by: those that are one in some systems and two in others."""


@dataclass(frozen=True)
class Signals:
    """A warehouse with the source, and one pattern over it."""

    spark: SparkSession
    project: Project
    pattern: str
    profile: Profile = IN_DRIVER

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(IN_DRIVER.warehouse_of(self.project))

    @property
    def lake(self) -> Lake:
        return Lake.of(self.spark, self.warehouse)

    @property
    def source(self) -> str:
        return self.warehouse.source("signals")

    @property
    def contract(self) -> Contract:
        return load_contract(self.project.contract_path("signals"))

    @property
    def contract_columns(self) -> list[str]:
        return [item.name for item in self.contract.columns]

    @property
    def of_documents(self) -> bool:
        """Whether the source has documents, for kind xml_join."""
        return "document" in self.contract.roles

    def run(self, first_day: float, last_day: float, run_id: str) -> Run:
        bounds = (round(START_US + day * DAY_US) for day in (first_day, last_day))
        return prepare(
            Lake.of(self.spark, Warehouse.of(self.profile, self.project)),
            self.project,
            self.profile,
            self.pattern,
            run_id,
            *bounds,
        )

    def edit(self, text: str) -> None:
        """The pattern's file from now on."""
        Path(self.pattern).write_text(HEAD + text)

    def edit_contract(self, most: int) -> None:
        """Prices may be `most` at most from now on: by another contract other rows count."""
        path = self.project.contract_path("signals")
        path.write_text(re.sub(r"maximum: \d+", f"maximum: {most}", path.read_text()))

    def insert(self, rows: list[Mapping[str, Any]]) -> None:
        """Rows as another program than Spark adds them, in one commit."""
        plain_writer.append(self.spark, self.source, self._table(rows))

    def insert_by_spark(self, rows: list[Mapping[str, Any]]) -> None:
        """The same by Spark, for tables of any form."""
        frame = self.spark.createDataFrame(self._table(rows))
        frame.coalesce(1).write.format("delta").mode("append").save(self.source)

    def _table(self, rows: list[Mapping[str, Any]]) -> pa.Table:
        schema = SCHEMA.append(DOCUMENT) if self.of_documents else SCHEMA
        return pa.Table.from_pylist([dict(row) for row in rows], schema)

    def delete(self, **equal: Any) -> None:
        """The rows with these values go, as `plain_writer.change` writes it."""
        plain_writer.change(self.spark, self.source, lambda row: None if row.items() >= equal.items() else row)

    def update(self, where: Mapping[str, Any], **values: Any) -> None:
        """New values of the rows that have the values `where`: each is the value itself, or what makes it of the row's
        own."""

        def new(row: dict[str, Any]) -> dict[str, Any]:
            if not row.items() >= where.items():
                return row
            return row | {name: value(row[name]) if callable(value) else value for name, value in values.items()}

        plain_writer.change(self.spark, self.source, new)

    def copied(self, folder: Path) -> Signals:
        """The same project in another folder."""
        shutil.copytree(self.project.root, folder, copy_function=shutil.copyfile)
        return replace(self, project=Project(folder, folder / "state"), pattern=str(folder / Path(self.pattern).name))

    def recreate(self, deliveries: list[list[dict[str, Any]]]) -> None:
        """Drop the table of the source and make it again, with a version for each delivery."""
        shutil.rmtree(self.source)
        read_log_anew(self.lake, self.source)
        create_source(self.lake, self.source, self.contract)
        for rows in deliveries:
            self.insert(rows)

    def sql(self, statement: str) -> None:
        """A statement of Spark on the source, written as `signals`."""
        self.spark.sql(statement.replace("signals", f"delta.`{self.source}`", 1))

    def version(self) -> int:
        return latest_version(self.lake, self.source)


def signals(
    spark: SparkSession, folder: Path, text: str, contract: str = CONTRACT, profile: Profile = IN_DRIVER
) -> Signals:
    """A fresh warehouse in `folder`; of kind xml_join, its source has documents."""
    if "kind: xml_join" in text:
        contract = contract_of_documents(contract)
    contracts = folder / "data_contracts"
    contracts.mkdir(parents=True)
    (folder / "conf").mkdir()
    (contracts / "signals.yaml").write_text(contract)
    for file in (ROOT / "data_contracts").glob("results_*.yaml"):
        (contracts / file.name).write_text(file.read_text())
    path = folder / "watched.yaml"
    path.write_text(HEAD + text)
    lake = Signals(spark, Project(folder, folder / "state"), str(path), profile)
    empty_tables(spark, lake.warehouse, lake.contract)
    return lake


def tidy_batch(rng: random.Random, rows: int) -> list[dict[str, Any]]:
    """As `batch`, all good, no id twice."""
    rows_drawn = batch(rng, rows)
    for row, ident in zip(rows_drawn, rng.sample(range(60), rows), strict=True):
        row["event_id"] = f"e{ident}"
        row["event_time"] = row["event_time"] or START_US + rng.randrange(6) * DAY_US // 2
        row["event_type"] = rng.choice("AAAABBC")
        row["price"] = None if row["price"] is None else min(row["price"], 9)
        row["document"] = document_text(random.Random(str(row)), tidy=True)
    return rows_drawn


def batch(rng: random.Random, rows: int, since: float = 0.0, until: float = 3.0) -> list[dict[str, Any]]:
    """Events of the days `since` to `until`; some break the contract, some ids come twice. A row's document depends on
    the rest of it, not on `rng`: sources without documents get the same rows as ever."""
    rows_drawn = []
    for _ in range(rows):
        hour = rng.randrange(int(since * 24), int(until * 24))
        rows_drawn.append(
            {
                "event_id": None if rng.random() < 0.03 else f"e{rng.randrange(60)}",
                "event_time": None if rng.random() < 0.03 else START_US + (2 * hour + rng.randrange(2)) * DAY_US // 48,
                "event_type": rng.choice("AAAABBC") if rng.random() < 0.97 else "Z",
                "place": rng.choice(["n", "s", None]),
                "price": rng.randrange(12) if rng.random() < 0.9 else None,
                "remark": rng.choice(REMARKS),
                "level": rng.choice(LEVELS),
                "rate": rng.choice(RATES),
                "account": rng.choice(ACCOUNTS),
                "day": rng.choice(DAYS),
            }
        )
        rows_drawn[-1]["document"] = document_text(random.Random(str(rows_drawn[-1])))
    return rows_drawn
