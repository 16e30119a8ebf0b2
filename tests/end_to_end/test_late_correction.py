"""docs/how-to/late-correction.md, walked with data of its own: every command of the page, and after each block the
published numbers beside an enumeration in plain Python."""

from __future__ import annotations

import re
import shlex
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import ROOT
from tests.support.one_session import share_session
from tests.support.own_source import FALLING, output_of

PAGE = ROOT / "docs" / "how-to" / "late-correction.md"
HEADER = "id,at,company,price"
Rows = dict[str, tuple[str, str, float]]
"""By id: time, company, price."""

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.chaos]


def trades() -> Rows:
    """Two companies, three minutes, seven trades a minute and company."""
    return {
        f"{company}{minute}{n}": (
            f"2026-01-05T09:0{minute}:{5 * n:02d}Z",
            company,
            float((7 * n + 3 * minute) % 11 + 1),
        )
        for company in "AB"
        for minute in range(3)
        for n in range(7)
    }


def enumerated(rows: Rows) -> dict[tuple[str, str], tuple[int, float]]:
    """Of each company and minute: how many falling sequences there are, in time, and their lowest price."""
    groups: dict[tuple[str, str], list[tuple[str, float]]] = {}
    for at, company, price in rows.values():
        groups.setdefault((company, at[:16]), []).append((at, price))
    counts = {}
    for key, events in groups.items():
        sequences = [
            [price for _, price in chosen]
            for size in range(1, len(events) + 1)
            for chosen in combinations(sorted(events), size)
            if all(a[0] < b[0] and a[1] > b[1] for a, b in pairwise(chosen))
        ]
        counts[key] = len(sequences), min(price for sequence in sequences for price in sequence)
    return counts


def published(spark: SparkSession, folder: Path) -> dict[tuple[str, str], tuple[int, float]]:
    table = spark.read.format("delta").load(str(folder / ".trendlake" / "warehouse" / "results" / "falling"))
    rows = table.selectExpr(
        "company", "date_format(window_start, \"yyyy-MM-dd'T'HH:mm\")", "trends", "lowest"
    ).collect()
    return {(row[0], row[1]): (int(row[2]), row[3]) for row in rows}


def write(file: Path, rows: Rows) -> None:
    file.write_text(
        "\n".join([HEADER, *(f"{name},{at},{company},{price}" for name, (at, company, price) in rows.items())])
    )


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the source `trades` and the published pattern `falling`; its commands share the tests' session."""
    share_session(monkeypatch, spark)
    output_of("init", tmp_path)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "trades.csv", trades())
    output_of(
        "new", "source", "trades", "--from", "trades.csv", "--event-id", "id", "--event-time", "at", "--type", "Trade"
    )
    output_of("ingest", "trades", "trades.csv")
    (tmp_path / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    output_of("run", "falling", "--from", "2026-01-05", "--to", "2026-01-06")
    return tmp_path


def blocks() -> dict[str, list[str]]:
    """The commands of each block of the page, by the heading they stand under."""
    counts: dict[str, list[str]] = {}
    for section in PAGE.read_text().split("\n## "):
        heading = section.splitlines()[0].removeprefix("# ")
        lines = [
            line for block in re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S) for line in block.splitlines()
        ]
        counts[heading] = lines
    return counts


def walked(commands: list[str]) -> list[str]:
    return [output_of(*shlex.split(command)[1:]) for command in commands]


def test_the_page(spark: SparkSession, folder: Path) -> None:
    rows, page = trades(), blocks()
    assert published(spark, folder) == enumerated(rows)

    corrections: Rows = {
        "A00": ("2026-01-05T09:00:00Z", "A", 11.5),
        "A03": ("2026-01-05T09:00:15Z", "A", 2.5),
        "B11": ("2026-01-05T09:01:05Z", "A", 4.5),
        "B26": ("2026-01-05T09:00:59Z", "B", 0.5),
        "A25": ("2026-01-05T09:02:25Z", "A", 100.0),
        "late": ("2026-01-05T09:01:59Z", "B", 0.25),
    }
    write(folder / "corrections.csv", corrections)
    said, revised = walked(page["Late events, corrections and deletions"])
    assert "6 rows: 1 new, 5 replaced" in said
    assert "quarantined" not in said + revised
    rows |= corrections
    assert published(spark, folder) == enumerated(rows)

    longer: Rows = rows | {f"C{n}": (f"2026-01-05T09:02:{40 + n}Z", "B", 95.0 - n) for n in range(5)}
    longer |= {"A00": ("2026-01-05T09:00:00Z", "A", 1.5)}
    write(folder / "export.csv", longer)
    said, again, _ = walked(page["A newer export of the same file"])
    assert "48 rows: 5 new, 1 replaced, 42 there already" in said
    assert "6 rows: 1 replaced, 5 there already" in again
    rows = longer | corrections
    assert published(spark, folder) == enumerated(rows)

    (folder / "withdrawn.csv").write_text("id\nA01\nB02\nnobody\n")
    counted, by_id, by_condition, _ = walked(page["Delete rows"])
    assert "not in the table: id nobody" in counted
    assert "2 rows would be deleted" in counted
    assert "2 rows deleted" in by_id
    assert "5 rows deleted" in by_condition
    rows = {
        name: row for name, row in rows.items() if name not in ("A01", "B02") and not (row[1] == "B" and row[2] > 90)
    }
    assert published(spark, folder) == enumerated(rows)

    changed, history = walked(page["See what changed"])
    assert "company" in changed
    assert "falling" in history or "trends" in history

    # what an older version of `ingest` did: both rows are in the table, and neither is chosen by what it holds
    source = str(folder / ".trendlake" / "warehouse" / "sources" / "trades")
    old: Any = spark.read.format("delta").load(source).where("id = 'A02'")
    old.withColumn("price", old["price"] + 1).write.format("delta").mode("append").save(source)
    yaml = folder / "data_contracts" / "trades.yaml"
    tolerance = "quarantineTolerance\n        value: 0"
    assert tolerance in yaml.read_text()
    yaml.write_text(yaml.read_text().replace(tolerance, f"{tolerance}.1"))
    (out,) = walked(["trendlake revise falling"])
    assert "2 quarantined (id_unique)" in out
    assert "2 quarantined (id_unique)" in (folder / ".trendlake" / "reports" / "index.html").read_text()
    assert "2 quarantined (id_unique)" in (folder / ".trendlake" / "reports" / "falling" / "index.html").read_text()
    assert published(spark, folder) == enumerated({name: row for name, row in rows.items() if name != "A02"})
    write(folder / "decided.csv", {"A02": ("2026-01-05T09:00:10Z", "A", 6.75)})
    walked(["trendlake ingest trades decided.csv", "trendlake revise falling"])
    assert published(spark, folder) == enumerated(rows | {"A02": ("2026-01-05T09:00:10Z", "A", 6.75)})
