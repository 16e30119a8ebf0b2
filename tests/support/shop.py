"""A shop with a source `trades` and a pattern over it, whose windows are days: commands are typed, rows are counted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.support.one_session import Desk, share_session
from tests.support.own_source import FALLING, start
from trendlake.cep_core import evaluate

NAME = "falling"
FILE = f"conf/patterns/{NAME}.yaml"
CONTRACT = "data_contracts/trades.yaml"
DAILY = FALLING.replace("1 minute", "1 day")
FIRST, LAST = 5, 8
"""Days of January 2026: the first that has events, and the last complete one; the day after has begun."""
HEAD = "id,at,company,price"


def trades(day: int, prices: str = "9741") -> list[str]:
    """A line for each price, at 9 o'clock and the minutes after."""
    return [f"{day}-{n},2026-01-{day:02d}T09:{n:02d}:00Z,A,{price}" for n, price in enumerate(prices)]


EVENTS = [line for day in range(FIRST, LAST + 1) for line in trades(day)] + trades(LAST + 1, "5")


@dataclass(frozen=True)
class Shop(Desk):
    """The project in `folder`, with the pattern `falling`."""

    def deliver(self, *lines: str) -> str:
        file = self.folder / "delivery.csv"
        file.write_text("\n".join([HEAD, *lines, ""]))
        return self.type("ingest", "trades", file)

    def write(self, text: str, file: str = FILE) -> None:
        (self.folder / file).write_text(text)

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.folder / file).read_text()
        assert old in text
        self.write(text.replace(old, new, 1), file)

    def publish(self, first: int, last: int, name: str = NAME) -> None:
        """The days `first` to `last` (included)."""
        self.type("run", name, "--from", f"2026-01-{first:02d}", "--to", f"2026-01-{last + 1:02d}")

    def states(self, name: str = NAME) -> list[str]:
        """What is to be repaired, as `show` says."""
        return [str(state["state"]) for state in self.document("show", name)["states"]]

    def table(self, *parts: str) -> DeltaTable:
        return DeltaTable(str(self.folder.joinpath(".trendlake", "warehouse", *parts)))

    def rows(self, table: str = NAME) -> dict[int, int]:
        """How many trends are published, by day."""
        published = self.table("results", table).to_pyarrow_table()
        days = [time.astimezone(UTC).day for time in published["window_start"].to_pylist()]
        assert len(set(days)) == len(days)
        return dict(zip(days, map(int, published["trends"].to_pylist()), strict=True))

    def expected(self, first: int, last: int, file: str = FILE) -> dict[int, int]:
        """What the engine says of the rows of the source."""
        events = self.table("sources", "trades").to_pyarrow_table()
        events = events.append_column("event_type", [["Trade"] * events.num_rows])
        rows = evaluate(self.folder / file, events.rename_columns({"id": "event_id", "at": "event_time"})).to_pylist()
        counts = {row["window_start"].astimezone(UTC).day: int(row["trends"]) for row in rows}
        return {day: count for day, count in counts.items() if first <= day <= last}

    def copied(self, folder: Path) -> Shop:
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder, given=given(folder))


def given(folder: Path) -> tuple[str, ...]:
    """The options of every command about the shop in `folder`."""
    return "--project-dir", str(folder), "--profile", "other"


@contextmanager
def opened_shop(spark: SparkSession, parent: Path) -> Iterator[Shop]:
    """A shop with `EVENTS`, of which nothing is published. A command without its profile finds no table."""
    folder, file = parent / "a shop", parent / "trades.csv"
    with pytest.MonkeyPatch.context() as patch:
        share_session(patch, spark)
        patch.chdir(parent)
        start(folder, file, "\n".join([HEAD, *EVENTS, ""]))
        profiles = folder / "conf" / "profiles"
        shutil.copy(profiles / "local.yaml", profiles / "other.yaml")
        (profiles / "local.yaml").write_text("warehouse: nowhere\n")
        shop = Shop(folder, given(folder))
        shop.write(DAILY)
        shop.type("ingest", "trades", file)
        yield shop
