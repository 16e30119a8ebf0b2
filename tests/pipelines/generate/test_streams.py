"""The generated streams: the same by their seed, as the paper's section 10.1 says, and as their contracts promise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tests.conftest import ROOT
from trendlake.cep_core.events.schema import family
from trendlake.jobs.actions.generate import stream_of
from trendlake.jobs.main import app
from trendlake.pipelines.authoring.validate import check_pattern
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import BadNumberError, BadTimeError, ProjectError
from trendlake.pipelines.generate import START_US, STREAMS, Stream
from trendlake.pipelines.generate.load import deliveries
from trendlake.pipelines.project.paths import find_project

runner = CliRunner()
each = pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
OF_EVENTS = {name: stream for name, stream in STREAMS.items() if name != "shop_customers"}
each_of_events = pytest.mark.parametrize("stream", OF_EVENTS.values(), ids=OF_EVENTS)


def seconds(table: pa.Table) -> np.ndarray:
    return (table["event_time"].cast(pa.int64()).to_numpy() - START_US) // 1_000_000


@each
def test_equal_seeds_give_equal_streams(stream: Stream) -> None:
    """And other seeds, other streams."""
    one, again, other = (stream.build(2_000, 50.0, seed, START_US) for seed in (5, 5, 6))
    assert one.equals(again)
    assert not one.equals(other)


@each_of_events
@pytest.mark.parametrize("rate", [0.05, 30.0, 5_000.0])
@pytest.mark.parametrize("events", [1, 2, 3, 50, 2_000])
def test_as_many_as_asked_for_in_order(stream: Stream, events: int, rate: float) -> None:
    """Whatever the size: ids all different, and ascending with time, from the start on."""
    table = stream.build(events, rate, 3, START_US)
    assert table.num_rows == events
    ids = table["event_id"].to_pylist()
    assert ids == sorted(set(ids))
    passed = seconds(table)
    assert (np.diff(passed) >= 0).all()
    assert 0 <= passed[0] <= passed[-1] <= events / rate * (2 if stream.ramps else 1) * 1.5 + 1 + stream.tail


@each
def test_columns_are_the_contract_s(stream: Stream) -> None:
    """Names and kinds of type; types of events; nothing missing that is required."""
    contract = load_contract(find_project(ROOT).contract_path(stream.name))
    table = stream.build(5_000, stream.rate, 1, START_US)
    assert table.column_names == [column.name for column in contract.columns]
    for column in contract.columns:
        kind = table.schema.field(column.name).type
        actual = "timestamp" if pa.types.is_timestamp(kind) else "int" if pa.types.is_integer(kind) else str(kind)
        assert family(actual) == family(column.type), column.name
        assert not (column.required and table[column.name].null_count), column.name
    if "document" not in contract.roles and not contract.is_reference:
        assert set(table["event_type"].unique().to_pylist()) <= set(contract.types or ())


@each
def test_values_are_the_contract_s(stream: Stream) -> None:
    """Every rule on the values of one column holds; Spark is stream_of about the others, in tests/pipelines."""
    contract = load_contract(find_project(ROOT).contract_path(stream.name))
    table = stream.build(20_000, stream.rate, 1, START_US)
    asked_of = 0
    for rule in contract.rules:
        values = table[rule.columns[0]].drop_null() if rule.columns else pa.array([])
        if rule.kind == "in_set":
            assert set(values.unique().to_pylist()) <= set(rule.values), rule.name
        elif rule.kind == "pattern":
            assert pc.all(pc.match_substring_regex(values, rule.text)).as_py(), rule.name
        elif rule.kind == "range":
            low, high = pc.min_max(values).as_py().values()
            assert rule.low is None or low > rule.low or (low == rule.low and not rule.low_strict), rule.name
            assert rule.high is None or high < rule.high or (high == rule.high and not rule.high_strict), rule.name
        elif rule.kind == "multiple":
            assert not (values.to_numpy() % rule.high).any(), rule.name
        else:
            continue
        asked_of += 1
    least = 2 if contract.is_reference else 0 if "document" in contract.roles else 4
    assert asked_of >= least  # of XML the content is asked for, not a column


def test_stock_is_as_the_paper_has_it() -> None:
    """10 companies, evenly; buy and sell; prices that rise and fall by small steps, in cents."""
    table = STREAMS["stock"].build(100_000, 100.0, 1, START_US)
    assert sorted(table["company"].unique().to_pylist()) == [f"C{n}" for n in range(10)]
    pairs = table.group_by(["company", "sector"]).aggregate([("event_id", "count")])
    assert pairs.num_rows == 10
    counts = pairs["event_id_count"].to_numpy()
    assert (abs(counts - 10_000) < 500).all()
    for company in ("C0", "C9"):
        prices = table.filter(pc.equal(table["company"], company))["price"].to_numpy()
        changes = np.diff(np.log(prices))
        assert 0.0004 < changes.std() < 0.0007
        assert 0.4 < (changes < 0).mean() < 0.6
        assert np.allclose(prices * 100, np.round(prices * 100))
    assert np.bincount(seconds(table)).mean() == pytest.approx(100, rel=0.01)


def test_rumor_is_as_the_thesis_has_it() -> None:
    """S and T in turn, a second apart; ten attributes, each even from 0 to 999 and independent of the others."""
    table = STREAMS["rumor"].build(100_000, 1.0, 1, START_US)
    assert seconds(table).tolist() == list(range(100_000))
    assert table["event_type"].to_pylist()[:4] == ["S", "T", "S", "T"]
    values = np.stack([table[f"a{n}"].to_numpy() for n in range(10)])
    assert (values.min(), values.max()) == (0, 999)
    assert (abs(values.mean(axis=1) - 499.5) < 5).all()
    assert (abs(np.corrcoef(values) - np.eye(10)) < 0.02).all()


def test_cluster_is_as_table_2_has_it() -> None:
    """Uniform 0-10 and 0-1000, Poisson of 100; 3,000 a second."""
    table = STREAMS["cluster"].build(200_000, 3_000.0, 1, START_US)
    for name in ("mapper", "job"):
        counts = np.bincount(table[name].to_numpy())
        assert len(counts) == 11
        assert (abs(counts - 200_000 / 11) < 600).all()
    measured = table.filter(pc.equal(table["event_type"], "Measurement"))
    for name in ("cpu", "memory"):
        values = measured[name].to_numpy()
        assert (values.min(), values.max()) == (0, 1_000)
        assert values.mean() == pytest.approx(500, abs=3)
        assert values.std() == pytest.approx(1_001 / 12**0.5, rel=0.01)
    load = measured["load"].to_numpy()
    assert load.mean() == pytest.approx(100, abs=0.2)
    assert load.var() == pytest.approx(100, rel=0.02)
    assert np.bincount(seconds(table))[:-1].mean() == pytest.approx(3_000, rel=0.01)


def test_a_job_on_a_mapper_starts_before_it_ends() -> None:
    """Each pair's events: Start, measurements, End, Start ... of runs of 20 seconds on average."""
    table = STREAMS["cluster"].build(200_000, 1_000.0, 2, START_US)
    pair = table["mapper"].to_numpy() * 11 + table["job"].to_numpy()
    kinds = np.array(table["event_type"].to_pylist())
    runs = 0
    for one in range(121):
        mine = kinds[pair == one]
        borders = mine[mine != "Measurement"]
        assert (borders[::2] == "Start").all()  # the last may have no End: the stream is over
        assert (borders[1::2] == "End").all()
        runs += len(borders) / 2
    assert 200 * 121 / runs == pytest.approx(20, rel=0.15)


def test_linear_road_is_a_road() -> None:
    """The rate grows to what was stream_of; a vehicle reports each 30 seconds, goes as far as its speed says."""
    table = STREAMS["linear_road"].build(300_000, 1_000.0, 1, START_US)
    passed = seconds(table)
    assert passed[-1] == pytest.approx(600, rel=0.01)
    minutes = np.bincount(passed // 60)[:10] / 60
    assert minutes == pytest.approx((np.arange(10) + 0.5) * 100, rel=0.05)
    frame = table.to_pandas().sort_values(["vehicle", "event_time"], kind="stable")
    cars = frame[frame.event_type == "Position"]
    same = cars.vehicle.values[1:] == cars.vehicle.values[:-1]
    gaps = np.diff(cars.event_time.astype("int64").to_numpy() // 10**6)[same]
    assert set(gaps) <= {29, 30, 31}
    ahead = np.diff(cars.position.to_numpy())[same]
    reported = cars.speed.to_numpy()[:-1][same] * 44
    assert (ahead >= 0).all()
    assert (abs(ahead - reported) <= 23).all()  # half a mile an hour, of rounding, in 30 seconds
    assert (frame.segment == frame.position // 5_280).all()
    crashes = frame[frame.event_type == "Accident"]
    assert 5 < len(crashes) < 100
    assert crashes.vehicle.isna().all()


def test_traffic_crawls_after_an_accident() -> None:
    """In the segment and the minutes after it reports are slower than elsewhere."""
    frame = STREAMS["linear_road"].build(300_000, 1_000.0, 1, START_US).to_pandas()
    crash = frame[(frame.event_type == "Accident") & (frame.event_time < frame.event_time.max())].iloc[2]
    after = (frame.event_time - crash.event_time).dt.total_seconds().between(60, 120)
    there = frame[after & (frame.segment == crash.segment)].speed
    assert there.mean() < frame[after].speed.mean() - 15


@each
def test_deliveries_are_the_stream_again(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    table = stream.build(1_001, 20.0, 1, START_US)
    monkeypatch.setattr("trendlake.pipelines.generate.load.DELIVERY", 300)
    parts = list(deliveries(table))
    assert [part.num_rows for part in parts] == [300, 300, 300, 101]
    assert pa.concat_tables(parts).equals(table)


def test_a_file(tmp_path: Path) -> None:
    """`--out` writes the stream as Parquet, and starts no Spark."""
    out = tmp_path / "deep" / "road.parquet"
    result = runner.invoke(
        app,
        [
            "generate",
            "linear_road",
            "--seconds",
            "120",
            "--rate",
            "10",
            "--seed",
            "4",
            "--start",
            "2026-03-01",
            "--out",
            str(out),
        ],
    )
    assert result.exit_code == 0, result.output
    start = 1_772_323_200_000_000
    assert pq.read_table(out).equals(STREAMS["linear_road"].build(600, 10.0, 4, start))
    assert [path.name for path in out.parent.iterdir()] == ["road.parquet"]


def test_what_is_asked_for() -> None:
    """Ten minutes at the paper's rate, unless told; half of it where the rate grows from nothing."""
    events = [stream_of(name, None, None, None, 1, None).events for name in STREAMS]
    assert events == [60_000, 1, 1_800_000, 1_200_000, 600, 60, 6_000, 6_000, 600, 60, 60, 60, 6]
    assert stream_of("stock", None, 60, 2.5, 1, None).events == 150
    assert stream_of("stock", 7, None, None, 1, None).feed != stream_of("stock", 7, None, None, 2, None).feed


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        (("stok", None, None, None, 1, None), ProjectError, "did you mean 'stock'"),
        (("stock", 0, None, None, 1, None), BadNumberError, "0 events"),
        (("stock", 5, 5.0, None, 1, None), BadNumberError, "both give the length"),
        (("stock", None, -1.0, None, 1, None), BadNumberError, "--seconds"),
        (("stock", None, float("nan"), None, 1, None), BadNumberError, "--seconds"),
        (("stock", None, None, 0.0, 1, None), BadNumberError, "--rate"),
        (("stock", 10**9, None, None, 1, None), BadNumberError, "in memory"),
        (("stock", 10**6, None, 1e-6, 1, None), BadNumberError, "30 years"),
        (("stock", None, None, None, 1, "soon"), BadTimeError, "--start"),
    ],
)
def test_what_cannot_be(options: tuple, error: type[Exception], says: str) -> None:
    """Told before anything is made."""
    with pytest.raises(error) as caught:
        stream_of(*options)
    assert says in str(caught.value)


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "greta").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_compile(path: Path) -> None:
    """Each over the source that a stream is loaded into."""
    assert check_pattern(find_project(ROOT), path).source in STREAMS


def test_quotes_swing_between_their_bounds() -> None:
    """Prices in odd and even cents by turns, each the one before and the change; up as often as down."""
    table = STREAMS["quotes"].build(50_000, 10.0, 1, START_US)
    for symbol in ("S0", "S9"):
        mine = table.filter(pc.equal(table["symbol"], symbol))
        price, change = (np.round(mine[name].to_numpy() * 100).astype(int) for name in ("price", "change"))
        assert (np.diff(price) == change[1:]).all()
        assert (change % 2 == 1).all()
        assert (price.min() < 5_000, price.max() > 15_000) == (True, True)
        assert 0.45 < (change > 0).mean() < 0.55


def test_most_items_pass_a_register_on_their_way_out() -> None:
    """Shelf, register, exit, in this order; some have no register in between."""
    table = STREAMS["retail"].build(60_000, 10.0, 1, START_US)
    ways: dict[str, list[str]] = {}
    for tag, place in zip(table["tag_id"].to_pylist(), table["event_type"].to_pylist(), strict=True):
        ways.setdefault(tag, []).append(place)
    out = [way for way in ways.values() if way[-1] == "Exit"]
    assert {tuple(way) for way in out} == {("Shelf", "Register", "Exit"), ("Shelf", "Exit")}
    assert sum(len(way) == 2 for way in out) / len(out) == pytest.approx(0.02, abs=0.005)


def test_shipments_go_from_level_to_level() -> None:
    """From a farm to a plant to a depot to a shop; an alert names a site and what was found."""
    table = STREAMS["shipments"].build(20_000, 0.1, 1, START_US)
    ways = set()
    for row in table.to_pylist():
        if row["event_type"] == "Shipment":
            ways.add((row["src"].split("-")[0], row["dst"].split("-")[0]))
            assert (row["kind"], row["site"]) == (None, None)
        else:
            assert row["kind"] in ("ok", "contaminated")
            assert (row["src"], row["dst"]) == (None, None)
    assert ways == {("farm", "plant"), ("plant", "depot"), ("depot", "shop")}


def test_payments_are_of_orders_and_customers_change_to_another_segment() -> None:
    """Each order has one payment, after it; each customer a first segment, and then others."""
    orders, payments, changes = (
        STREAMS[f"shop_{name}"].build(3_000, 0.1, 4, START_US) for name in ("orders", "payments", "customers")
    )
    by_id = {row["event_id"]: row for row in orders.to_pylist()}
    assert sorted(payments["order_id"].to_pylist()) == list(by_id)
    for row in payments.to_pylist():
        order = by_id[row["order_id"]]
        assert row["payer"] == order["customer_id"]
        assert 0 < row["paid"] <= order["amount"]
        assert 60 <= (row["event_time"] - order["event_time"]).total_seconds() <= 3 * 3_600
    segments: dict[str, str] = {}
    for number, row in enumerate(changes.to_pylist()):
        assert (row["since"] is None) == (number < 200) == (row["customer_id"] not in segments)
        assert segments.get(row["customer_id"]) != row["segment"]
        segments[row["customer_id"]] = row["segment"]
    assert changes["since"].drop_null().to_pylist() == sorted(set(changes["since"].drop_null().to_pylist()))
