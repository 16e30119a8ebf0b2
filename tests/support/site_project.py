"""A project whose site has sources, a reference table, a chain, a batch, a lookup, several tables and mistakes: made by
the command's words, without Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from tests.support.own_source import FALLING, output_of
from trendlake.cep_core.yaml.source import plain, read_yaml, yaml_text

PATTERNS = {
    "falling": "description: Falling prices\nowner: desk\n" + FALLING.removeprefix("name: falling\n"),
    "rising": "batch: nightly\n" + FALLING.removeprefix("name: falling\n").replace("> NEXT", "< NEXT"),
    "steep": "batch: nightly\n" + FALLING.removeprefix("name: falling\n").replace("> NEXT", "> 2 * NEXT"),
    "often": "source: results/falling\npattern: falling F+\nreturn: {times: COUNT(*)}\n"
    "group_by: [company]\nwithin: 1 hour\n",
    "oftener": "source: results/often\npattern: often F+\nreturn: {again: COUNT(*)}\nwithin: 1 day\n",
    "by_sector": "source: trades\nlookup: {c: {table: companies, key: company, columns: [sector]}}\n"
    'pattern: Trade E+\nwhere: ["[sector]", "E.price > NEXT(E).price"]\nreturn: {trends: COUNT(*)}\n'
    "group_by: [sector]\nwithin: 1 hour\n",
    "both": "sources: {Trade: trades, Quote: {source: quotes}}\npattern: SEQ(Trade T, Quote Q)\n"
    'where: ["[company]"]\nreturn: {n: COUNT(*)}\nwithin: 1 minute\n',
    "wrong": "source: nowhere\npattern: Trade E+\nreturn: {n: COUNT(*)}\nwithin: 1 minute\n",
}
EVENTS = ("--event-id", "id", "--event-time", "at", "--type")
FIRST = [
    ("t0", "2026-01-05T08:00:00", "B", float("nan"), 3, None, None, None),
    ("t1", "2026-01-05T09:00:00", "A", 10.0, 5, "2026-01-02", True, "x"),
    ("t2", "2026-01-05T09:00:10", "A", 9.5, None, None, True, None),
    ("t3", "2026-01-05T09:00:20", "A", -0.0, -7, "1969-12-31", None, "y" * 100),
    ("t4", "2026-01-05T09:01:00.5", "B", 7.0, 10**12, "2030-06-30", False, "ö" * 60),
    ("t5", "2026-01-05T09:01:10", "B", None, 4, None, None, "z" * 5000),
]
SECOND = [
    ("t4", "2026-01-05T09:01:00.5", "B", 7.5, 10**12, "2030-06-30", False, None),
    ("t6", "2026-01-05T10:00:00", "A", -3.0, 2, None, None, "low"),
    ("t7", "2026-01-05T10:00:10.123456", "C", 6.0, 1, None, None, None),
    ("t8", "2026-01-05T10:00:20", "C", 5.0, 1, None, None, None),
]
"""A correction, a row that breaks a rule, and new ones."""
KINDS = pa.schema(
    [
        ("id", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("company", pa.string()),
        ("price", pa.float64()),
        ("shares", pa.int64()),
        ("day", pa.date32()),
        ("open", pa.bool_()),
        ("note", pa.string()),
    ]
)


def make(folder: Path) -> None:
    """The project in `folder`, with two deliveries and a deletion, and runs of three patterns."""
    at = ("--project-dir", folder)
    output_of("init", folder)
    _write(folder / "first.parquet", FIRST)
    _write(folder / "second.parquet", SECOND)
    (folder / "companies.csv").write_text("company,sector\nA,tech\nB,\nC,food\n")
    (folder / "quotes.csv").write_text("id,at,company,bid\nq1,2026-01-05T09:00:05,A,8.5\n")
    output_of("new", "source", "trades", "--from", folder / "first.parquet", *EVENTS, "Trade", *at)
    output_of("new", "source", "quotes", "--from", folder / "quotes.csv", *EVENTS, "Quote", *at)
    output_of("new", "source", "companies", "--from", folder / "companies.csv", "--reference", *at)
    _ask_for_prices(folder / "data_contracts" / "trades.yaml")
    for name, text in PATTERNS.items():
        (folder / "conf" / "patterns" / f"{name}.yaml").write_text(f"name: {name}\n{text}")
    output_of("ingest", "trades", folder / "first.parquet", *at)
    output_of("ingest", "companies", folder / "companies.csv", *at)
    hour = ("--from", "2026-01-05T09:00", "--to", "2026-01-05T10:00", *at)
    output_of("run", "falling", "--run-id", "first", *hour)
    output_of("ingest", "trades", folder / "second.parquet", *at)
    output_of("source", "delete", "trades", "--where", "id = 't1'", "--yes", *at)
    output_of("run", "often", *hour)
    output_of("run", "by_sector", "--run-id", "sectors", *hour)


def _write(file: Path, rows: list[tuple[object, ...]]) -> None:
    columns = [pa.array(values) for values in zip(*rows, strict=True)]
    table = pa.table(dict(zip(KINDS.names, columns, strict=True)))
    table = table.set_column(1, "at", table["at"].cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")))
    pyarrow.parquet.write_table(table.cast(KINDS), file)


def _ask_for_prices(file: Path) -> None:
    """Prices are 0 or more, half of the rows of a run may break that, and they have a unit in words."""
    contract = plain(read_yaml(file).data)
    table = contract["schema"][0]
    table["description"] = "Trades of three companies"
    price = next(column for column in table["properties"] if column["name"] == "price")
    price |= {"logicalTypeOptions": {"minimum": 0}, "description": "What one share costs, in EUR"}
    for item in table["customProperties"]:
        if item["property"] == "quarantineTolerance":
            item["value"] = 0.5
    file.write_text(yaml_text(contract))
