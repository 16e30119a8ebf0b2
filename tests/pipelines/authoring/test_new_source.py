"""A source and a pattern of one's own, from nothing: init, new source, ingest of files, new pattern, a run."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipelines.contracts.contract import Contract, load_contract
from pipelines.errors import ContractErrors, SourceFileError
from pipelines.ingest.deliver import ingest
from pipelines.ingest.readers.files import feed_of, read_file
from pipelines.project.paths import find_project
from pipelines.project.profile import Profile
from tests.support.flights import Lake, all_steps, answers
from tests.support.own_source import FALLING, start, told

ROWS = """\
id,at,company,price
t1,2026-01-05T09:00:00,A,10
t2,2026-01-05T09:00:01Z,A,9
t3,2026-01-05 09:00:02,A,8.5
t4,2026-01-05T10:00:03+01:00,B,7
t5,2026-01-05T09:00:04,A,NA
"""


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A project with one source, `trades`, whose events are all of the type Trade; its file beside it."""
    folder = tmp_path / "mine"
    start(folder, tmp_path / "trades.csv", ROWS)
    return folder


def trades(folder: Path) -> Contract:
    return load_contract(find_project(folder).contract_path("trades"))


def test_what_is_written_is_valid(started: Path) -> None:
    told("new", "pattern", "falling", "--source", "trades", "--project-dir", started)
    assert told("validate", "--project-dir", started).count("ok    ") >= 3
    assert told("init", started).startswith("next:")
    again = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    out = told("new", "source", "trades", "--from", started.parent / "trades.csv", *again, code=1)
    assert "exists already" in out
    assert "to start over" in out


def test_times_with_and_without_a_zone(started: Path) -> None:
    """Those that say none are UTC; a column that is not the contract's is kept."""
    table = read_file(started.parent / "trades.csv", trades(started))
    assert [moment.second for moment in table["at"].to_pylist()] == [0, 1, 2, 3, 4]
    assert table["price"].to_pylist() == [10.0, 9.0, 8.5, 7.0, None]


@pytest.mark.parametrize(
    ("ident", "time", "said"),
    [
        ("id,at", "at", "--event-id takes one column; make one of id and at in the file"),
        ("company", "at", "column 'company' cannot be the id: 5 rows have 2 distinct values"),
        ("id", "price", "column 'price' cannot be the event time: it holds '10'"),
        ("id", "us", "column 'us' cannot be the event time: it holds '01/02/2026 09:00'"),
    ],
)
def test_columns_that_cannot_have_their_role(started: Path, ident: str, time: str, said: str) -> None:
    """Nothing is written: such a contract would lose rows, or refuse each file."""
    lines = (started.parent / "trades.csv").read_text().splitlines()
    file = started.parent / "others.csv"
    file.write_text("\n".join([f"{lines[0]},us", *(f"{line},01/02/2026 09:00" for line in lines[1:])]))
    roles = ["--event-id", ident, "--event-time", time, "--type", "Trade", "--project-dir", started]
    assert said in " ".join(told("new", "source", "others", "--from", file, *roles, code=1).split())
    assert not (started / "data_contracts" / "others.yaml").exists()


def test_times_as_text_in_a_parquet_file(started: Path) -> None:
    """Ingestion reads them, so they may be the event time; a file without rows says nothing against its columns."""
    rows = [{"id": "t1", "at": "2026-01-05T09:00:00Z", "n": 1}, {"id": "t2", "at": None, "n": 2}]
    table = pa.Table.from_pylist(rows, pa.schema({"id": pa.string(), "at": pa.string(), "n": pa.int64()}))
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    for name, content in (("texts", table), ("none", table.slice(0, 0))):
        pq.write_table(content, started / f"{name}.parquet")
        told("new", "source", name, "--from", started / f"{name}.parquet", *roles)
    (started / "header.csv").write_text("id,at\n")
    told("new", "source", "header", "--from", started / "header.csv", *roles)


def test_an_id_that_is_repeated_is_told(started: Path) -> None:
    file = started.parent / "again.csv"
    file.write_text((started.parent / "trades.csv").read_text() + "t1,2026-01-05T09:00:09Z,A,11\n")
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    assert "1 of 6 rows repeat an id" in told("new", "source", "again", "--from", file, *roles)


def test_a_value_of_another_type_refuses_the_file(started: Path) -> None:
    """Nothing of it is taken; the column is named."""
    file = started.parent / "bad.csv"
    file.write_text(ROWS.replace("09:00:00", "yesterday"))
    with pytest.raises(SourceFileError, match="column at"):
        read_file(file, trades(started))
    file.write_text(ROWS.replace("price", "prize"))
    with pytest.raises(SourceFileError, match="has no column price"):
        read_file(file, trades(started))
    with pytest.raises(SourceFileError, match="no form that is read"):
        read_file(started / "conf" / "profiles" / "local.yaml", trades(started))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("value: Trade", "value: 1 Trade"), "eventType is a name that patterns can use"),
        (("name: company", "name: event_type"), "the table has a column 'event_type'"),
        (("eventType", "eventKind"), "no column has the role event_type"),
    ],
)
def test_a_constant_type_that_cannot_be(started: Path, change: tuple[str, str], message: str) -> None:
    file = find_project(started).contract_path("trades")
    file.write_text(file.read_text().replace(*change))
    with pytest.raises(ContractErrors, match=message):
        load_contract(file)


@pytest.mark.spark
def test_a_run_over_files(spark: SparkSession, started: Path) -> None:
    """CSV, then Parquet with one more trade; a file that is there already is passed over."""
    lake = Lake(spark, find_project(started), Profile(master="local[2]"))
    contract = trades(started)
    (started / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    first = started.parent / "trades.csv"
    more = started.parent / "more.parquet"
    one = {"id": ["t6"], "at": ["2026-01-05T09:00:05Z"], "company": ["B"], "price": [6.0]}
    pyarrow.parquet.write_table(pa.table(one), more)
    for file, new in ((first, 5), (more, 1), (first, 0)):
        record = ingest(
            spark, lake.warehouse, contract, [read_file(file, contract)], feed=feed_of(file), run_id=f"ingest {file}"
        )
        assert (record.rows_inserted or 0) == new
    run = lake.run("falling", "2026-01-05", "2026-01-06", "r1")
    assert all_steps(run).rows_inserted == 2
    rows = [(row["company"], int(row["trends"]), row["lowest"]) for row in answers(lake.results(run), run)]
    # falling sequences of A: 10, 9, 8.5 in any choice of them, and the trade without a price by itself
    assert rows == [("A", 8, 8.5), ("B", 3, 6.0)]
