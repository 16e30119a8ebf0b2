"""Random histories of three tables that patterns read together: rows come and are deleted, tables are compacted, lose
their change feed or are made anew, a contract is edited, and runs that read unlike versions meet."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.conftest import CHAOS
from tests.pipelines.revision.test_several_tables import (
    STEPS,
    TRENDS,
    all_steps,
    in_order,
    published,
    rows_of,
    shown,
    version,
)
from tests.support.tables_lake import HERE, PATTERN, SOURCES, SeveralTables, several_tables
from trendlake.cep_core import run_plan
from trendlake.pipelines.errors import StaleRunError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.steps.check_source import check_source
from trendlake.pipelines.steps.publish import publish
from trendlake.pipelines.steps.revise import revise

NAMES = ("orders", "payments", "support")
KEYS = {"orders": "number", "payments": "ref", "support": "id"}
SORTS = ("deliver", "deliver", "delete", "delete", "optimize", "feed off", "anew", "contract", "crosswise", "meeting")
HISTORIES = 3 if CHAOS else 1
LENGTH = 12 if CHAOS else 5


class History:
    """The tables, and what has happened to them. `most`: the greatest amount that the contract of orders allows."""

    def __init__(self, spark: SparkSession, root: Path, seed: int, keys: Mapping[str, Any]) -> None:
        lake = Lake.of(spark, Warehouse(HERE.warehouse_of(Project(root, root / "state"))))
        self.rng, self.most, self.number = random.Random(seed), 99, 0
        sources = dict(sorted(SOURCES.items(), reverse=bool(seed % 2)))
        self.tables: SeveralTables = several_tables(root, lake, **{**keys, "sources": sources})
        self.happened: list[str] = []

    def name(self) -> str:
        """Of another run."""
        self.number += 1
        return f"run {self.number}"

    def happens(self, what: str) -> None:
        """One change of a table, of a contract, or of the results."""
        name = self.rng.choice(NAMES)
        path = self.tables.lake.warehouse.source(name)
        self.happened.append(f"{what} {name}")
        if what == "deliver":
            self.tables.deliver(name, rows_of(self.rng, name, self.rng.randrange(1, 4)))
        elif what == "delete":
            self.delete(path, name)
        elif what == "optimize":
            DeltaTable(path).optimize.compact()
        elif what == "feed off":
            DeltaTable(path).alter.set_table_properties({"delta.enableChangeDataFeed": "false"})
            self.tables.deliver(name, rows_of(self.rng, name, 2))
        elif what == "anew":
            self.tables.drop(name)
            self.tables.make(name)
            for _ in range(self.rng.randrange(4)):
                self.tables.deliver(name, rows_of(self.rng, name, 5))
        elif what == "contract":
            self.edit()
        elif what == "crosswise":
            self.crosswise(name)
        else:
            self.meeting(name)

    def delete(self, path: str, name: str) -> None:
        rows = DeltaTable(path).to_pyarrow_table()[KEYS[name]].to_pylist()
        ids = self.rng.sample(sorted(rows), min(len(rows), 3))
        if ids:
            DeltaTable(path).delete(f"{KEYS[name]} IN ({', '.join(map(repr, ids))})")

    def edit(self) -> None:
        """Orders that were bad are good from now on, or the other way round."""
        file = self.tables.project.contract_path("orders")
        most = 9999 if self.most == 99 else 99
        file.write_text(file.read_text().replace(f"maximum: {self.most}}}", f"maximum: {most}}}"))
        self.most = most

    def crosswise(self, name: str) -> None:
        """Of two runs the first reads older rows of one table: refused if its windows show newer ones by then."""
        one, other = (self.tables.run(0, 2, self.name()) for _ in range(2))
        check_source(one)
        self.tables.deliver(name, rows_of(self.rng, name, 1))
        all_steps(other)
        for step in STEPS[1:3]:
            step(one)
        with pytest.raises(StaleRunError, match=f"of '{name}'"):
            publish(one)

    def meeting(self, name: str) -> None:
        """A run of some days ends after a revision to newer rows."""
        late = self.tables.run(1, 2, self.name())
        for step in STEPS[:3]:
            step(late)
        self.tables.deliver(name, rows_of(self.rng, name, 1))
        revise(self.tables.run(0, 2, self.name()))
        with pytest.raises(StaleRunError, match=f"of '{name}'"):
            publish(late)

    def expected(self) -> list[dict[str, Any]]:
        """What the engine says of the rows that keep their contracts, picked by hand."""
        events = {}
        for name in NAMES:
            rows = DeltaTable(self.tables.lake.warehouse.source(name)).to_pyarrow_table()
            amounts = [row.get("amount", row.get("paid_amount")) for row in rows.to_pylist()]
            most = self.most if name == "orders" else float("inf")
            good = [amount is None or 0 <= amount <= most for amount in amounts]
            events[name] = rows.take([place for place, one in enumerate(good) if one])
        run = self.tables.run(0, 2, "again")
        return in_order(run_plan(run.plan, events, run.windows).cast(run.plan.result_schema))

    def revised(self) -> None:
        """After a revision, rows and coverage are those of the newest versions, and nothing is left to do."""
        revise(self.tables.run(0, 2, self.name()))
        assert published(self.tables) == self.expected(), self.happened
        vector = " ".join(f"{name}@{version(self.tables, name)}" for name in NAMES)
        assert shown(self.tables) == {vector}, self.happened
        again = revise(self.tables.run(0, 2, self.name()))
        assert again.checks[-1].observed == f"nothing new since {vector}", self.happened


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.random
@pytest.mark.more_in_chaos
@pytest.mark.parametrize("seed", range(HISTORIES))
@pytest.mark.parametrize("keys", [pytest.param(PATTERN, marks=pytest.mark.repeats), TRENDS], ids=["matches", "trends"])
def test_histories(spark: SparkSession, tmp_path: Path, seed: int, keys: Mapping[str, Any]) -> None:
    """Each revision follows several changes of any sort, and at least one history has all sorts."""
    history = History(spark, tmp_path, seed, keys)
    for name in NAMES:
        history.tables.deliver(name, rows_of(history.rng, name, 12))
    all_steps(history.tables.run(0, 2, history.name()))
    assert published(history.tables) == history.expected()
    sorts = history.rng.sample(SORTS, len(SORTS))
    for number in range(LENGTH):
        for what in sorts[number * 2 % len(sorts) :][:2]:
            history.happens(what)
        history.revised()
