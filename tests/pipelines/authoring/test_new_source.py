"""A source and a pattern of one's own, from nothing: init, new source, ingest of files, new pattern, a run."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.support.flights import Flights, all_steps, answers
from tests.support.own_source import FALLING, output_of, start
from trendlake.jobs.actions.show import Shown, print_results
from trendlake.jobs.terminal.workspace import Place
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.contracts.time_formats import TimeFormat
from trendlake.pipelines.errors import ContractErrors, SourceFileError
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.ingest.readers.files import feed_of, read_file
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.profile import Profile

ROWS = """\
id,at,company,price
t1,2026-01-05T09:00:00,A,10
t2,2026-01-05T09:00:01Z,A,9
t3,2026-01-05 09:00:02,A,8.5
t4,2026-01-05T10:00:03+01:00,B,7
t5,2026-01-05T09:00:04,A,NA
"""

PAIRS = """\
name: pairs
kind: matches
source: trades
pattern: SEQ(Trade a, Trade b)
select: skip_till_any_match
where: [a.price > b.price]
return: {last: b.price}
within: 1 minute
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
    output_of("new", "pattern", "falling", "--kind", "trends", "--project-dir", started)
    assert output_of("validate", "--project-dir", started).count("ok    ") >= 3
    assert output_of("init", started).startswith("next:")
    again = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    out = output_of("new", "source", "trades", "--from", started.parent / "trades.csv", *again, code=1)
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
        (
            "company",
            "at",
            "column 'company' cannot be the id: 5 rows have 2 distinct values these identify each row: --event-id id",
        ),
        ("company,n", "at", "columns company, n cannot be the id: 5 rows have 2 distinct values these identify"),
        ("id,idd", "at", "there is no column 'idd' to be the event_id did you mean 'id'?"),
        ("id,id", "at", "--event-id names a column twice"),
        ("id,price", "at", "column 'price' is a number: an id is made of columns of type string, integer"),
        ("company,at,us", "us", "day and month cannot be told apart"),
        ("id", "price", "column 'price' cannot be the event time: it holds '10' columns of times: at, us, day"),
        ("id", "n", "column 'n' cannot be the event time: it holds '7' columns of times: at, us, day"),
        ("id", "company", "column 'company' cannot be the event time: it holds 'A' columns of times: at, us, day"),
        ("id", "unix", 'holds numbers such as 1357030800 if they are times: --time-format "unix_seconds"'),
        (
            "id",
            "us",
            "day and month cannot be told apart in any value, such as '01/02/2026 09:00' state the format: "
            '--time-format "%m/%d/%Y %H:%M" or --time-format "%d/%m/%Y %H:%M"',
        ),
    ],
)
def test_columns_that_cannot_have_their_role(started: Path, ident: str, time: str, said: str) -> None:
    """Nothing is written: such a contract would lose rows, or refuse each file."""
    lines = (started.parent / "trades.csv").read_text().splitlines()
    file = started.parent / "others.csv"
    more = "01/02/2026 09:00,7,31.01.2026,1357030800"
    file.write_text("\n".join([f"{lines[0]},us,n,day,unix", *(f"{line},{more}" for line in lines[1:])]))
    roles = ["--event-id", ident, "--event-time", time, "--type", "Trade", "--project-dir", started]
    assert said in " ".join(output_of("new", "source", "others", "--from", file, *roles, code=1).split())
    assert not (started / "data_contracts" / "others.yaml").exists()


def test_times_as_text_in_a_parquet_file(started: Path) -> None:
    """Ingestion reads them, so they may be the event time; a file without rows says nothing against its columns."""
    rows = [{"id": "t1", "at": "2026-01-05T09:00:00Z", "n": 1}, {"id": "t2", "at": None, "n": 2}]
    table = pa.Table.from_pylist(rows, pa.schema({"id": pa.string(), "at": pa.string(), "n": pa.int64()}))
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    for name, content in (("texts", table), ("none", table.slice(0, 0))):
        pq.write_table(content, started / f"{name}.parquet")
        output_of("new", "source", name, "--from", started / f"{name}.parquet", *roles)
    (started / "header.csv").write_text("id,at\n")
    output_of("new", "source", "header", "--from", started / "header.csv", *roles)


DAY = pa.array([datetime(2026, 1, 5, tzinfo=UTC)])


@pytest.mark.parametrize(
    ("ident", "time", "other", "said"),
    [
        (["t1"], pa.array([1], pa.timestamp("ns")), [1], "row 1, column at: 1970-01-01 00:00:00.000000001 is no time"),
        ([0.5], DAY, [1], "row 1, column id: 0.5 is no text"),
        (pa.array([b"\xff"]), DAY, [1], "row 1, column id: b'\\xff' is no text"),
        (["t1"], DAY, pa.array([2**62], pa.timestamp("us")), "row 1, column more: 4611686018427387904 (timestamp[us]"),
        (["t1"], pa.array([[10**15]], pa.list_(pa.timestamp("s"))), [1], "it holds a value of list<"),
        ('{"id": NaN, "at": "2026-01-05"}', None, None, "row 1, column id: 'NaN' is no text"),
        ('{"id": true, "at": "2026-01-05"}', None, None, "row 1, column id: true is no text"),
        ('{"id": 1, "at": "9999-12-31T23:00:00-14:00"}', None, None, "it holds '9999-12-31T23:00:00-14:00'"),
        ('{"id": 1, "at": ' + 5000 * "9" + "}", None, None, "column 'at' cannot be the event time"),
    ],
)
def test_values_that_ingestion_would_refuse(started: Path, ident: Any, time: Any, other: Any, said: str) -> None:
    """Whatever type a file states: the value is named, and no contract is written."""
    file = started / ("e.json" if isinstance(ident, str) else "e.parquet")
    if isinstance(ident, str):
        file.write_text(ident)
    else:
        pq.write_table(pa.table({"id": ident, "at": time, "more": other}), file)
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    assert said in " ".join(output_of("new", "source", "others", "--from", file, *roles, code=1).split())
    assert not (started / "data_contracts" / "others.yaml").exists()


def test_a_type_that_patterns_cannot_name(started: Path) -> None:
    roles = ["--event-id", "id", "--event-time", "at", "--type", "1 Trade", "--project-dir", started]
    out = output_of("new", "source", "others", "--from", started.parent / "trades.csv", *roles, code=1)
    assert "--type: patterns cannot name '1 Trade'" in out
    assert not (started / "data_contracts" / "others.yaml").exists()


def test_a_time_zone_that_nobody_knows(started: Path) -> None:
    """It says nothing of the moment; the file is taken on, and its rows are as they were."""
    at = pa.array([0, 1], pa.timestamp("us", "Mars/Olympus"))
    pq.write_table(pa.table({"id": ["t1", "t2"], "at": at}), started / "e.parquet")
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    output_of("new", "source", "others", "--from", started / "e.parquet", *roles)
    contract = load_contract(started / "data_contracts" / "others.yaml")
    assert read_file(started / "e.parquet", contract)["at"].cast(pa.int64()).to_pylist() == [0, 1]


def test_repeated_ids(started: Path) -> None:
    """Equal rows count once; rows that share an id and differ would be refused by `ingest`: no contract is written."""
    file = started.parent / "again.csv"
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", started]
    file.write_text(f"{ROWS}t1,2026-01-05T09:00:09Z,A,11\n")
    text = " ".join(output_of("new", "source", "again", "--from", file, *roles, code=1).split())
    assert "column 'id' cannot be the id: 6 rows have 5 distinct values these identify each row: --event-id at" in text
    assert not (started / "data_contracts" / "again.yaml").exists()
    file.write_text(f"{ROWS}{ROWS.splitlines()[1]}\n,2026-01-05T09:00:09Z,A,11\n,2026-01-05T09:00:09Z,A,12\n")
    assert "1 of 6 rows repeats another row" in output_of("new", "source", "again", "--from", file, *roles)


US = """\
id,at,day,ship,either,text,price
t1,1/31/2013 9:05,31.01.2013,01/02/2013,01/02/2013,20130105,10
t2,11/3/2013 1:30,30.01.2013,01/25/2013,02/01/2013,20130106,9
"""


def source(folder: Path, text: str, *options: str, name: str = "us", code: int = 0) -> str:
    """What `new source` says of a file with this text."""
    file = folder.parent / f"{name}.csv"
    file.write_text(text)
    roles = ["--event-id", "id", "--event-time", "at", "--type", "Trade", "--project-dir", folder]
    return " ".join(output_of("new", "source", name, "--from", file, *roles, *options, code=code).split())


def test_times_of_the_united_states(started: Path) -> None:
    """The first tries of a new user: the contract states how the file writes its times, and reads it."""
    said = source(started, US)
    assert "note: at has times without an offset, which are read as UTC" in said
    assert "column either is a text: its dates could be %m/%d/%Y or %d/%m/%Y" in said
    path = started / "data_contracts" / "us.yaml"
    assert "value: UTC  # of times that state no offset" in path.read_text()
    contract = load_contract(path)
    assert contract.time_formats == {
        "at": TimeFormat("%m/%d/%Y %H:%M"),
        "day": TimeFormat("%d.%m.%Y"),
        "ship": TimeFormat("%m/%d/%Y"),
    }
    table = read_file(started.parent / "us.csv", contract)
    assert table["at"].to_pylist() == [
        datetime(2013, 1, 31, 9, 5, tzinfo=UTC),
        datetime(2013, 11, 3, 1, 30, tzinfo=UTC),
    ]
    assert table["day"].to_pylist() == [date(2013, 1, 31), date(2013, 1, 30)]
    assert table["either"].to_pylist() == ["01/02/2013", "02/01/2013"]


def test_a_stated_format_and_zone(started: Path) -> None:
    """The format decides for all columns that it reads; others keep their own. The zone is that of local times."""
    text = US.replace("1/31/2013", "1/3/2013")
    assert "state the format" in source(started, text, code=1)
    said = source(started, text, "--time-format", "%d/%m/%Y %H:%M", "--time-zone", "America/New_York")
    assert "note: at has" not in said
    contract = load_contract(started / "data_contracts" / "us.yaml")
    assert contract.time_formats["at"] == TimeFormat("%d/%m/%Y %H:%M", "America/New_York")
    assert contract.time_formats["ship"] == TimeFormat("%m/%d/%Y")
    first = read_file(started.parent / "us.csv", contract)["at"].to_pylist()[0]
    assert first == datetime(2013, 3, 1, 14, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["--time-format", "%d/%m/%Y %H:%M"],
            "column 'at' is not in the format %d/%m/%Y %H:%M: it holds "
            "'1/31/2013 9:05' --time-format \"%m/%d/%Y %H:%M\"",
        ),
        (["--time-format", "MM/DD/YYYY"], "--time-format: unknown timeFormat 'MM/DD/YYYY'"),
        (["--time-zone", "Berlin"], "--time-zone: unknown time zone 'Berlin' did you mean 'Europe/Berlin'?"),
    ],
)
def test_options_that_are_refused(started: Path, options: list[str], said: str) -> None:
    assert said in source(started, US, *options, code=1)
    assert not (started / "data_contracts" / "us.yaml").exists()


def test_numbers_and_offsets(started: Path) -> None:
    """Seconds since 1970 have to be stated; they, and times with offsets, need no zone."""
    text = "id,at,v\na,1357030800,2013-01-01T09:00:00+01:00\nb,1357030801,2013-01-01T09:00:00Z\n"
    source(started, text, "--time-format", "unix_seconds")
    contract = load_contract(started / "data_contracts" / "us.yaml")
    assert contract.time_formats == {"at": TimeFormat("unix_seconds")}
    assert read_file(started.parent / "us.csv", contract)["at"].to_pylist()[0] == datetime(2013, 1, 1, 9, tzinfo=UTC)
    said = source(
        started,
        text.replace("1357030800", "2013-01-01T09:00Z").replace("1357030801", "2013-01-01T09:00Z"),
        "--time-zone",
        "Asia/Tokyo",
        name="zoned",
    )
    assert "--time-zone Asia/Tokyo has no effect" in said
    assert load_contract(started / "data_contracts" / "zoned.yaml").time_formats == {}


def test_an_id_of_several_columns(started: Path) -> None:
    """Where no single column identifies an event."""
    file = started.parent / "flights.csv"
    file.write_text("carrier,flight,at,delay\nUA,1,1/31/2013 9:05,5\nUA,2,1/31/2013 9:05,5\nAA,1,1/31/2013 9:05,5\n")
    common = ["--from", file, "--event-time", "at", "--type", "Flight", "--project-dir", started, "--event-id"]
    said = " ".join(output_of("new", "source", "flights", *common, "carrier", code=1).split())
    assert "3 rows have 2 distinct values these identify each row: --event-id carrier,flight" in said
    output_of("new", "source", "flights", *common, "carrier, flight,at")
    contract = load_contract(started / "data_contracts" / "flights.yaml")
    assert (contract.key, contract.id_columns) == (("event_id",), ("carrier", "flight", "at"))
    assert all(column.required for column in contract.columns if column.name != "delay")
    table = read_file(file, contract, others=False)
    assert table["event_id"].to_pylist()[0] == "UA|1|2013-01-31 09:05:00.000000Z"
    assert table.column_names == ["event_id", "carrier", "flight", "at", "delay"]
    file.write_text("event_id,x,at\na,1,2013-01-31\n")
    assert "which the file has already" in output_of("new", "source", "taken", *common, "x,at", code=1)


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


@pytest.mark.long
@pytest.mark.spark
def test_a_run_over_files(spark: SparkSession, started: Path) -> None:
    """CSV, then Parquet with one more trade; a file that is there already is passed over."""
    lake = Flights(spark, find_project(started), Profile(master="local[2]"))
    contract = trades(started)
    (started / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    first = started.parent / "trades.csv"
    more = started.parent / "more.parquet"
    one = {"id": ["t6"], "at": ["2026-01-05T09:00:05Z"], "company": ["B"], "price": [6.0]}
    pyarrow.parquet.write_table(pa.table(one), more)
    for file, new in ((first, 5), (more, 1), (first, 0)):
        record = ingest(lake.lake, contract, [read_file(file, contract)], feed=feed_of(file), run_id=f"ingest {file}")
        assert (record.rows_inserted or 0) == new
    run = lake.run("falling", "2026-01-05", "2026-01-06", "r1")
    assert all_steps(run).rows_inserted == 2
    rows = [(row["company"], int(row["trends"]), row["lowest"]) for row in answers(lake.results(run), run)]
    # falling sequences of A: 10, 9, 8.5 in any choice of them, and the trade without a price by itself
    assert rows == [("A", 8, 8.5), ("B", 3, 6.0)]


IDS = ("t1N\ufffd", "t2N\ufffd", "t3N\ufffd", "t4")


@pytest.mark.long
@pytest.mark.spark
def test_a_text_of_another_program_that_is_not_utf_8(
    spark: SparkSession, started: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the table, where no file is refused: rows are grouped by its bytes, and shown; ids in lists too."""
    lake = Flights(spark, find_project(started), Profile(master="local[2]"))
    contract, file = trades(started), started.parent / "trades.csv"
    (started / "conf" / "patterns" / "falling.yaml").write_text(FALLING)
    (started / "conf" / "patterns" / "pairs.yaml").write_text(PAIRS)
    ingest(lake.lake, contract, [read_file(file, contract)], feed=feed_of(file), run_id="ingest")
    latin = "CAST(X'4EE9' AS STRING)"
    changes = f"company = {latin}, id = concat(id, {latin})"
    spark.sql(f"UPDATE delta.`{lake.warehouse.source('trades')}` SET {changes} WHERE company = 'A'")
    for name, count in (("falling", 2), ("pairs", 6)):
        assert all_steps(lake.run(name, "2026-01-05", "2026-01-06", "r1")).rows_inserted == count
    place = Place(lake.project, lake.profile)
    shown = print_results(place, Lake.of(spark, place.warehouse), "falling", Shown(5), as_json=True)
    assert shown is not None
    assert [(row["company"], int(row["trends"])) for row in shown["rows"]] == [("N\ufffd", 8), ("B", 1)]
    print_results(place, Lake.of(spark, place.warehouse), "falling", Shown(5))
    assert "N\ufffd" in capsys.readouterr().out
    print_results(place, Lake.of(spark, place.warehouse), "pairs", Shown(5, out=started / "pairs.csv"))
    assert '["t1N\ufffd"]' in (started / "pairs.csv").read_text().replace('""', '"')
    pairs = print_results(place, Lake.of(spark, place.warehouse), "pairs", Shown(5), as_json=True)
    assert pairs is not None
    listed = {(*row["a"], *row["b"]) for row in pairs["rows"]}
    assert len(listed) == 5
    assert listed <= {(a, b) for a in IDS[:3] for b in IDS if a < b}
