"""A warehouse with a source of XML documents, and patterns of kind xml_join over it, for tests on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support import plain_writer
from tests.support.empty_tables import empty_tables
from tests.support.xml_documents import documents_table
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.ingest.deliver import create_source, ingest
from trendlake.pipelines.lake.lake import Lake, exists
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.runs.run import Run, prepare

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: source-documents
version: 1.0.0
name: {name}
status: active
schema:
  - name: {name}
    physicalType: table
    customProperties:
      - {{property: corrections, value: replace}}
      - {{property: quarantineTolerance, value: 1}}
    properties:
      - name: event_id
        logicalType: string
        required: true
        primaryKey: true
        unique: true
        customProperties: [{{property: eventRole, value: event_id}}]
      - name: event_time
        logicalType: timestamp
        required: true
        customProperties: [{{property: eventRole, value: event_time}}]
      - name: document
        logicalType: string
        required: true
        customProperties: [{{property: eventRole, value: document}}]
slaProperties:
  - {{property: latency, value: 1, unit: d}}
"""
PROFILE = Profile(master="local[2]")


@dataclass(frozen=True)
class DocumentLake:
    """A warehouse; sources by name. Documents are `{id, time, xml}`, times in microseconds."""

    spark: SparkSession
    project: Project

    @classmethod
    def of(cls, spark: SparkSession, folder: Path) -> DocumentLake:
        """A fresh one in `folder`."""
        contracts = folder / "data_contracts"
        contracts.mkdir(parents=True)
        (folder / "conf" / "patterns").mkdir(parents=True)
        for file in (ROOT / "data_contracts").glob("results_*.yaml"):
            (contracts / file.name).write_text(file.read_text())
        return cls(spark, Project(folder, folder / "state"))

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(PROFILE.warehouse_of(self.project))

    @property
    def lake(self) -> Lake:
        return Lake.of(self.spark, self.warehouse)

    def contract(self, name: str) -> Contract:
        """Of the source, which is made where it is not there."""
        path = self.project.contracts / f"{name}.yaml"
        if not path.exists():
            path.write_text(CONTRACT.format(name=name))
        contract = load_contract(path)
        empty_tables(self.spark, self.warehouse, contract)
        if not exists(self.lake, self.warehouse.source(name)):
            create_source(self.lake, self.warehouse.source(name), contract)
        return contract

    def append(self, name: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """As other programs write them: nothing is judged."""
        self.contract(name)
        plain_writer.append(self.spark, self.warehouse.source(name), documents_table(list(documents)))

    def replace(self, name: str, documents: Iterable[Mapping[str, Any]]) -> None:
        """The same, but a known id replaces the document, in one commit."""
        self.contract(name)
        path, rows = self.warehouse.source(name), documents_table(list(documents)).to_pylist()
        new = {row["event_id"]: row for row in rows}
        there = set(DeltaTable(path).to_pyarrow_table(columns=["event_id"])["event_id"].to_pylist())
        more = [row for row in rows if row["event_id"] not in there]
        plain_writer.change(self.spark, path, lambda row: new.get(row["event_id"], row), more)

    def deliver(self, name: str, documents: Iterable[Mapping[str, Any]], feed: str) -> None:
        """By ingestion: a known id replaces the document."""
        table: pa.Table = documents_table(list(documents))
        ingest(self.lake, self.contract(name), [table], feed=feed, run_id=f"ingest {feed}")

    def delete(self, name: str, ids: Iterable[str]) -> None:
        gone = set(ids)
        plain_writer.change(
            self.spark, self.warehouse.source(name), lambda row: None if row["event_id"] in gone else row
        )

    def pattern(self, name: str, source: str, query: Mapping[str, Any]) -> Path:
        """The file of a pattern."""
        path = self.project.patterns / f"{name}.yaml"
        path.write_text(json.dumps({**query, "name": name, "source": source}))
        return path

    def run(self, pattern: str, start_us: int, end_us: int, run_id: str) -> Run:
        return prepare(
            Lake.of(self.spark, Warehouse.of(PROFILE, self.project)),
            self.project,
            PROFILE,
            pattern,
            run_id,
            start_us,
            end_us,
        )

    def rows(self, run: Run) -> list[dict[str, Any]]:
        """The published rows with their `plan_hash`."""
        table = DeltaTable(self.warehouse.results(run.name))
        rows: list[dict[str, Any]] = table.to_pyarrow_table(
            columns=[*run.plan.result_schema.names, "plan_hash"]
        ).to_pylist()
        return rows
