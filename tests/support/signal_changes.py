"""Random changes of the source of `tests/support/signals.py`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.conftest import CHAOS
from tests.support import plain_writer
from tests.support.signal_documents import document_text
from tests.support.signals import Signals, batch, tidy_batch

RECREATED = 0.05 if CHAOS else 0.0
"""The share of changes that drop the source and make it again: `make chaos` only."""


@dataclass(frozen=True)
class Setting:
    """The new value of a column: as Spark's SQL has it, and what it is to Python, of the old one."""

    column: str
    sql: str
    value: Callable[[Any], Any]


def change(rng: random.Random, lake: Signals, *, tidy: bool = False, by_spark: bool = CHAOS) -> str:
    """One change of the source, of any sort; its words. A `tidy` one breaks nothing, but an id may come again.
    `by_spark`: by Spark's INSERT, DELETE and UPDATE, or by another writer that does the same."""
    ids = [f"e{rng.randrange(60)}" for _ in range(3)]
    sorts = ["late", "delete", "reprice", "move", "retime", "remark", "regroup"]
    if lake.of_documents:
        sorts += ["rewrite", "rewrite", "rewrite"]
    if not tidy:
        sorts += ["break", "repair"]
    what = "recreate" if rng.random() < RECREATED else rng.choice(sorts)
    if what == "recreate":  # with fewer versions, as many or more
        make = tidy_batch if tidy else batch
        lake.recreate([make(rng, rng.randrange(1, 20)) for _ in range(rng.randrange(1, lake.version() + 3))])
        return what
    if what == "late":
        insert = lake.insert_by_spark if by_spark else lake.insert
        insert((tidy_batch if tidy else batch)(rng, rng.randrange(1, 3 if tidy else 6)))
        return what
    settings = drawn(rng)
    if what == "rewrite":
        settings[what] = constant("document", document_text(rng, tidy=tidy))
    if by_spark:
        where = "price > 9" if what == "repair" else f"event_id IN ({', '.join(map(repr, ids))})"
        if what == "delete":
            lake.sql(f"DELETE FROM signals WHERE {where}")
        else:
            lake.sql(f"UPDATE signals SET {settings[what].column} = {settings[what].sql} WHERE {where}")
        return what

    def new(row: plain_writer.Row) -> plain_writer.Row | None:
        if not ((row["price"] or 0) > 9 if what == "repair" else row["event_id"] in ids):
            return row
        if what == "delete":
            return None
        setting = settings[what]
        return row | {setting.column: setting.value(row[setting.column])}

    plain_writer.change(lake.spark, lake.source, new)
    return what


def drawn(rng: random.Random) -> dict[str, Setting]:
    """What each sort of change sets, drawn anew."""
    price, place, hours = rng.randrange(9), rng.choice("ns"), rng.choice([-8, -1, 1, 8])

    def moved(time: datetime | None) -> datetime | None:
        return None if time is None else time + timedelta(hours=hours)

    return {
        "reprice": constant("price", price),
        "move": constant("place", place),
        "retime": Setting("event_time", f"event_time + INTERVAL {hours} HOURS", moved),
        "remark": Setting("remark", "concat(remark, 'y')", lambda text: None if text is None else f"{text}y"),
        "regroup": rng.choice(
            [
                real("level", "double", rng.choice(["NaN", "-0.0", "0.0", "1.5"])),
                real("rate", "float", rng.choice(["NaN", "-0.0", "0.0"])),
                constant("account", Decimal(rng.choice([2**53, 2**53 + 1]))),
                constant("day", rng.choice([None, date(1500, 1, 1)])),
            ]
        ),
        "break": constant("price", rng.choice([-1, 10])),
        "repair": constant("price", 5),
    }


def constant(column: str, value: str | int | Decimal | date | None) -> Setting:
    sql = "NULL" if value is None else f"DATE '{value}'" if isinstance(value, date) else str(value)
    return Setting(column, f"'{value}'" if isinstance(value, str) else sql, lambda _: value)


def real(column: str, kind: str, text: str) -> Setting:
    return Setting(column, f"{kind}('{text}')", lambda _: float(text))
