"""Times of files, by the format and the zone that a contract declares: the slow reference is Python's `datetime` and
`zoneinfo`."""

from __future__ import annotations

import csv
import json
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.support.event_files import contract_of
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.time_formats import TimeFormat, format_fault
from trendlake.pipelines.errors import SourceFileError
from trendlake.pipelines.ingest.readers import bad_values
from trendlake.pipelines.ingest.readers.cells import Cells, values_of
from trendlake.pipelines.ingest.readers.common_formats import COMMON, common_formats
from trendlake.pipelines.ingest.readers.csv_texts import write_csv
from trendlake.pipelines.ingest.readers.files import read_file
from trendlake.pipelines.ingest.readers.refusals import BadCellsError, Refusals
from trendlake.pipelines.ingest.readers.times import MOMENT, in_zone

AT = "2026-01-05T00:00:00Z"
US, NEW_YORK = "%m/%d/%Y %H:%M", "America/New_York"


def read(text: str, text_format: str, zone: str = "UTC") -> datetime | str:
    """A text as a moment."""
    try:
        [moment] = values_of(Cells(pa.array([text])), MOMENT, (), TimeFormat(text_format, zone)).to_pylist()
    except BadCellsError:
        return "refused"
    assert isinstance(moment, datetime)
    return moment


def slow(text: str, text_format: str, zone: str = "UTC") -> datetime | str:
    """As `read`, by the standard library."""
    try:
        moment = datetime.strptime(text, text_format)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC)
        local = moment.replace(tzinfo=zone_of(zone))
        instant = local.astimezone(UTC)
        there = instant.astimezone(zone_of(zone)).replace(tzinfo=None) == moment
    except (ValueError, OverflowError):
        return "refused"
    return instant if there else "refused"


DAYS = st.sampled_from([("%Y", "%m", "%d"), ("%y", "%m", "%d"), ("%Y", "%b", "%d"), ("%Y", "%B", "%d")]).flatmap(
    st.permutations
)
CLOCKS = st.sampled_from(
    [
        [],
        ["%H"],
        ["%H", "%M"],
        ["%H", "%M", "%S"],
        ["%H", "%M", "%S", "%f"],
        ["%I", "%M", "%p"],
        ["%I", "%M", "%S", "%f", "%p"],
        ["%I", "%p"],
    ]
)
MARKS = st.sampled_from(["/", ".", "-", " ", ":", "T", ", ", "%%", " (", "+", ""])


@st.composite
def formats(draw: st.DrawFn) -> str:
    clock = draw(CLOCKS)
    zone = ["%z"] if clock and draw(st.booleans()) else []
    text = ""
    for part in [*draw(DAYS), *clock, *zone]:
        text += (draw(MARKS) if text else "") + part
    assume(format_fault(text) is None)
    return text


MOMENTS = st.datetimes(datetime(1969, 1, 1), datetime(2068, 12, 31))
OFFSETS = st.sampled_from([UTC, timezone(timedelta(hours=1)), timezone(-timedelta(hours=5, minutes=30))])


@examples(400)
@given(text_format=formats(), moment=MOMENTS, offset=OFFSETS)
def test_texts_of_a_format(text_format: str, moment: datetime, offset: timezone) -> None:
    """What `strftime` writes is read as `strptime` reads it."""
    text = moment.replace(tzinfo=offset if "%z" in text_format else None).strftime(text_format)
    expected = slow(text, text_format)
    assume(expected != "refused")  # 5:30 PM without its zero beside a word: strptime guesses
    assert read(text, text_format) == expected


@examples(600)
@given(
    text_format=formats(),
    moment=MOMENTS,
    offset=OFFSETS,
    at=st.integers(0, 30),
    length=st.integers(0, 2),
    new=st.sampled_from(["", "0", "1", "3", "9", " ", "/", ":", "-", "x", "\u0661", "\u017f", "PM", "jan", "Z"]),
)
def test_texts_of_almost_a_format(
    text_format: str, moment: datetime, offset: timezone, at: int, length: int, new: str
) -> None:
    """A text that is read is read as `strptime` reads it; it may take more, such as digits of other alphabets."""
    text = moment.replace(tzinfo=offset if "%z" in text_format else None).strftime(text_format)
    text = (text[:at] + new + text[at + length :]).strip()
    result = read(text, text_format)
    assert result in ("refused", slow(text, text_format))


@pytest.mark.parametrize(
    ("text", "text_format", "expected"),
    [
        ("1/2/2013 9:05", US, datetime(2013, 1, 2, 9, 5)),
        ("12/31/2013 23:59", US, datetime(2013, 12, 31, 23, 59)),
        ("02/30/2013 09:00", US, None),
        ("02/29/2012 09:00", US, datetime(2012, 2, 29, 9)),
        ("02/29/1900 09:00", US, None),
        ("01/02/13 09:00", US, None),
        ("01/02/2013 24:00", US, None),
        ("01/02/2013 09:60", US, None),
        ("01/02/2013 09:00 x", US, None),
        ("01/02/2013   09:00", US, datetime(2013, 1, 2, 9)),
        ("01/02/2013 09:00:60", f"{US}:%S", None),
        ("01/02/2013 09:00:00.1", f"{US}:%S.%f", datetime(2013, 1, 2, 9, 0, 0, 100_000)),
        ("01/02/2013 09:00:00.123456", f"{US}:%S.%f", datetime(2013, 1, 2, 9, 0, 0, 123_456)),
        ("01/02/2013 09:00:00.1234567", f"{US}:%S.%f", None),
        ("01/02/2013 12:05 AM", "%m/%d/%Y %I:%M %p", datetime(2013, 1, 2, 0, 5)),
        ("01/02/2013 12:05 pm", "%m/%d/%Y %I:%M %p", datetime(2013, 1, 2, 12, 5)),
        ("01/02/2013 13:05 PM", "%m/%d/%Y %I:%M %p", None),
        ("01/02/2013 0:05 AM", "%m/%d/%Y %I:%M %p", None),
        ("05-JAN-13", "%d-%b-%y", datetime(2013, 1, 5)),
        ("05 sept 2013", "%d %b %Y", None),
        ("05 september 2013", "%d %B %Y", datetime(2013, 9, 5)),
        ("2013\u30001.5", "%Y\u3000%m.%d", datetime(2013, 1, 5)),
        ("2013[1*5", "%Y[%m*%d", datetime(2013, 1, 5)),
        ("2013111", "%Y%m%d", None),
        ("20130111", "%Y%m%d", datetime(2013, 1, 11)),
        ("68-01-01", "%y-%m-%d", datetime(2068, 1, 1)),
        ("69-01-01", "%y-%m-%d", datetime(1969, 1, 1)),
        ("2013-01-05 09:00 +0130", "%Y-%m-%d %H:%M %z", datetime(2013, 1, 5, 7, 30)),
        ("2013-01-05 09:00z", "%Y-%m-%d %H:%M%z", datetime(2013, 1, 5, 9)),
        ("0001-01-01 00:00 +0100", "%Y-%m-%d %H:%M %z", None),
        ("0000-01-01", "%Y-%m-%d", None),
        ("1357030800", "unix_seconds", datetime(2013, 1, 1, 9)),
        ("1357030800.25", "unix_seconds", datetime(2013, 1, 1, 9, 0, 0, 250_000)),
        ("1357030800.1234567", "unix_seconds", None),
        ("-1", "unix_seconds", datetime(1969, 12, 31, 23, 59, 59)),
        ("1357030800250", "unix_millis", datetime(2013, 1, 1, 9, 0, 0, 250_000)),
        ("1357030800250.5", "unix_millis", datetime(2013, 1, 1, 9, 0, 0, 250_500)),
        ("9" * 17, "unix_seconds", None),
        ("9" * 30, "unix_seconds", None),
        ("9" * 18, "unix_millis", None),
        ("2013-01-01", "unix_seconds", None),
        ("nan", "unix_seconds", None),
    ],
)
def test_single_texts(tmp_path: Path, text: str, text_format: str, expected: datetime | None) -> None:
    """The same in a file; None: refused, with the value."""
    contract = declared(tmp_path, timeFormat=text_format)
    path = write(tmp_path / "e.csv", [text])
    if expected is not None:
        assert read_file(path, contract)["v"].to_pylist() == [expected.replace(tzinfo=UTC)]
        return
    with pytest.raises(SourceFileError, match=r"e\.csv, line 2, column v: ") as raised:
        read_file(path, contract)
    assert f"'{text}' is no " in raised.value.message


def declared(folder: Path, kind: str = "timestamp", **values: Any) -> Contract:
    """A contract with a column `v` of times that has these custom properties."""
    custom = [{"property": name, "value": value} for name, value in values.items()]
    return contract_of(folder, {"v": kind}, {"v": {"customProperties": custom}})


def write(path: Path, values: list[Any]) -> Path:
    """A file of events whose column `v` has the values."""
    rows = [{"id": f"e{number}", "at": AT, "v": value} for number, value in enumerate(values)]
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([["id", "at", "v"], *(row.values() for row in rows)])
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("values", "how", "expected"),
    [
        (["01/05/2013 09:00", None], {"timeFormat": US}, ["2013-01-05T09:00Z", None]),
        (["01/05/2013 09:00"], {"timeFormat": US, "timeZone": NEW_YORK}, ["2013-01-05T14:00Z"]),
        (["07/05/2013 09:00"], {"timeFormat": US, "timeZone": NEW_YORK}, ["2013-07-05T13:00Z"]),
        (
            ["2013-01-05T09:00:00.5", "2013-01-05T09:00:00+01:00", "2013-01-05"],
            {"timeZone": "Asia/Kolkata"},
            ["2013-01-05T03:30:00.5Z", "2013-01-05T08:00Z", "2013-01-04T18:30Z"],
        ),
        (["01/05/2013 09:00 +0100"], {"timeFormat": f"{US} %z"}, ["2013-01-05T08:00Z"]),
        (["11/03/2013 01:30"], {"timeFormat": US, "timeZone": NEW_YORK}, ["2013-11-03T05:30Z"]),
        (["07/05/2050 09:00"], {"timeFormat": US, "timeZone": NEW_YORK}, ["2050-07-05T13:00Z"]),
        (["1357030800"], {"timeFormat": "unix_seconds"}, ["2013-01-01T09:00Z"]),
    ],
)
def test_each_reader_reads_the_same(
    tmp_path: Path, values: list[Any], how: dict[str, str], expected: list[str | None]
) -> None:
    contract = declared(tmp_path, **how)
    wanted = [None if text is None else datetime.fromisoformat(text) for text in expected]
    tables = [read_file(write(tmp_path / f"e.{form}", values), contract) for form in ("csv", "json", "parquet")]
    assert [table["v"].to_pylist() for table in tables] == [wanted] * 3
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


@pytest.mark.parametrize(
    ("value", "how", "expected"),
    [
        (1357030800, {"timeFormat": "unix_seconds"}, "2013-01-01T09:00Z"),
        (20130105, {"timeFormat": "%Y%m%d"}, "2013-01-05T00:00Z"),
        (20130105, {}, None),
        (True, {"timeFormat": "unix_seconds"}, None),
    ],
)
@pytest.mark.parametrize("form", ["json", "parquet"])
def test_numbers_that_are_times(
    tmp_path: Path, form: str, value: Any, how: dict[str, str], expected: str | None
) -> None:
    """A number has its digits, if the contract says what they mean."""
    contract, path = declared(tmp_path, **how), write(tmp_path / f"e.{form}", [value])
    if expected is not None:
        assert read_file(path, contract)["v"].to_pylist() == [datetime.fromisoformat(expected)]
        return
    with pytest.raises(SourceFileError, match=r"column v: .* is no "):
        read_file(path, contract)


def test_times_of_parquet_without_an_offset(tmp_path: Path) -> None:
    """A timestamp that is not adjusted to UTC is local, as a text is; one with a zone is itself."""
    contract = declared(tmp_path, timeZone=NEW_YORK)
    for value, hour in ((datetime(2013, 1, 5, 9), 14), (date(2013, 1, 5), 5), (datetime(2013, 1, 5, 9, tzinfo=UTC), 9)):
        path = write(tmp_path / "e.parquet", [value])
        assert read_file(path, contract)["v"].to_pylist() == [datetime(2013, 1, 5, hour, tzinfo=UTC)]


def test_days(tmp_path: Path) -> None:
    contract = declared(tmp_path, "date", timeFormat="%d.%m.%Y")
    assert read_file(write(tmp_path / "e.csv", ["31.1.2013", "NA"]), contract)["v"].to_pylist() == [
        date(2013, 1, 31),
        None,
    ]
    with pytest.raises(SourceFileError, match=r"'30.02.2013' is no date of the format %d.%m.%Y, such as 31.01.2026"):
        read_file(write(tmp_path / "e.csv", ["30.02.2013"]), contract)


ZONES = sorted(available_timezones() - {"localtime", "Factory"})
HOUR = timedelta(hours=1)


@cache
def zone_of(name: str) -> ZoneInfo:
    """From the package tzdata, as the engine reads it: the system's files may be others."""
    with resources.files("tzdata.zoneinfo").joinpath(*name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def transitions(zone: ZoneInfo, year: int) -> list[datetime]:
    """Local times around the changes of a zone's offset in a year, found hour by hour of its days that differ."""
    days = [datetime(year, 1, 1) + timedelta(days=day) for day in range(366)]
    drawn = []
    for day in days:
        if day.replace(tzinfo=zone).utcoffset() != (day + timedelta(days=1)).replace(tzinfo=zone).utcoffset():
            drawn += [day + timedelta(minutes=15 * quarter, microseconds=us) for quarter in range(97) for us in (0, 1)]
    return drawn


@pytest.mark.long
@pytest.mark.parametrize("year", [1900, 1945, 1996, 2013, 2037, 2050, 2100])
def test_changes_of_clocks(year: int) -> None:
    """Each zone of the world around each of its changes: skipped times are refused, of two moments the first counts."""
    for name in ZONES if year == 2013 else ZONES[::12]:
        zone = zone_of(name)
        local = [*transitions(zone, year), datetime(year, 6, 1, 12, 34, 56, 789)]
        texts = pa.array(local, pa.timestamp("us"))
        refusals = Refusals(texts)
        expected = [slow(one.isoformat(), "%Y-%m-%dT%H:%M:%S" + ".%f" * bool(one.microsecond), name) for one in local]
        moments = in_zone(texts, name, refusals).to_pylist()
        assert [one if one is not None else "refused" for one in moments] == expected, name
        assert refusals.count == expected.count("refused")


@examples(300)
@given(local=st.datetimes(), name=st.sampled_from(ZONES))
@example(datetime.max, "America/New_York")
@example(datetime.min, "Asia/Tokyo")
@example(datetime(2013, 3, 10, 2, 30), "America/New_York")
@example(datetime(2013, 11, 3, 1, 30), "America/New_York")
def test_any_time_of_any_zone(local: datetime, name: str) -> None:
    expected = slow(f"{local.year:04}{local.strftime('-%m-%dT%H:%M:%S.%f')}", "%Y-%m-%dT%H:%M:%S.%f", name)
    text = local.isoformat()
    assert read(text, "iso8601", name) == expected


def lines_of(error: pytest.ExceptionInfo[SourceFileError]) -> list[str]:
    return error.value.message.splitlines()


def test_a_time_of_another_format(tmp_path: Path) -> None:
    """The error of the first tries: file, line, column, value, what is expected, and the line that mends it."""
    path = write(tmp_path / "e.csv", ["01/31/2013 09:00"])
    with pytest.raises(SourceFileError) as raised:
        read_file(path, declared(tmp_path))
    assert raised.value.message == (
        f"{path}, line 2, column v: '01/31/2013 09:00' is no time such as 2026-01-31T09:00:00.123456Z"
    )
    assert raised.value.hint == (
        f"declare the format under column v in {tmp_path / 'ev.yaml'}: "
        'customProperties: [{property: timeFormat, value: "%m/%d/%Y %H:%M"}]'
    )


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        (["01/02/2013 09:00"], '"%m/%d/%Y %H:%M" or "%d/%m/%Y %H:%M"'),
        (["01/02/2013 09:00", "01/31/2013 09:00"], 'value: "%m/%d/%Y %H:%M"}]'),
        (["31.01.2013"], '"%d.%m.%Y"'),
        (["5-JAN-2013 9:05:01 PM"], '"%d-%b-%Y %I:%M:%S %p"'),
        (["05/Jan/2013:09:05:01 +0000"], '"%d/%b/%Y:%H:%M:%S %z"'),
        (["Jan 5, 2013 09:00"], '"%b %d, %Y %H:%M"'),
        (["01/31/2013 09:00:00.5"], '"%m/%d/%Y %H:%M:%S.%f"'),
        (["1357030800"], '"unix_seconds"'),
        (["1357030800123"], '"unix_millis"'),
        (["20130131"], '"%Y%m%d"'),
        (["01/31/2013 09:00", "yesterday"], "correct the file, or declare the format"),
        (["2013-01-31T09:00:00", "2013-02-30T09:00:00"], "correct the file, or declare the format"),
    ],
)
def test_the_format_that_fits(tmp_path: Path, values: list[str], hint: str) -> None:
    """All values that the error names have it; where day and month could be either, both are said."""
    with pytest.raises(SourceFileError) as raised:
        read_file(write(tmp_path / "e.csv", values), declared(tmp_path))
    assert hint in str(raised.value.hint)


def test_another_format_than_the_declared_one(tmp_path: Path) -> None:
    with pytest.raises(SourceFileError) as raised:
        read_file(write(tmp_path / "e.csv", ["31/01/2013 09:00"]), declared(tmp_path, timeFormat=US))
    assert "is no time of the format %m/%d/%Y %H:%M, such as 01/31/2026 09:00" in raised.value.message
    assert '"%d/%m/%Y %H:%M"' in str(raised.value.hint)


def test_a_time_that_does_not_exist(tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", ["03/10/2013 01:59", "03/10/2013 02:30"])
    with pytest.raises(
        SourceFileError, match=r"e\.csv, line 3, column v: '03/10/2013 02:30' does not exist in"
    ) as raised:
        read_file(path, declared(tmp_path, timeFormat=US, timeZone=NEW_YORK))
    assert raised.value.hint == f"correct the value, or timeZone under column v in {tmp_path / 'ev.yaml'}"
    path = write(tmp_path / "e.csv", ["2013-03-10T02:30:00"])
    with pytest.raises(SourceFileError, match="does not exist in America/New_York") as raised:
        read_file(path, declared(tmp_path, timeZone=NEW_YORK))
    assert "a time with its offset, such as -05:00" in str(raised.value.hint)


def test_a_file_of_repaired_rows(tmp_path: Path) -> None:
    """It is written in ISO 8601 and read so, whatever the format and zone of other files."""
    contract = declared(tmp_path, timeFormat="%Y-%d-%m %H:%M", timeZone=NEW_YORK)
    table = read_file(write(tmp_path / "e.csv", ["2013-31-01 09:00", "2013-02-01 01:30"]), contract)
    for form in ("csv", "parquet"):
        path = tmp_path / f"broken.{form}"
        if form == "csv":
            write_csv(table, path)
        else:
            pyarrow.parquet.write_table(table, path)
        assert read_file(path, contract, repaired=True).equals(table)
    path = write(tmp_path / "broken.csv", ["2013-31-01 09:00"])
    with pytest.raises(SourceFileError, match=r"'2013-31-01 09:00' is no time such as 2026-01-31T09:00:00") as raised:
        read_file(path, contract, repaired=True)
    assert "as `quarantine show` does" in str(raised.value.hint)


def test_many_bad_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first five of all columns, in the file's order, and the number of all."""
    contract = contract_of(tmp_path, {"n": "int", "v": "timestamp"})
    path = tmp_path / "e.csv"
    good, bad = f'"a\nb",{AT},1,{AT}\n', f'"a\nb",{AT},x,01/31/2013\n'
    path.write_text("id,at,n,v\n" + good + bad + good + bad + bad + bad)
    with pytest.raises(SourceFileError) as raised:
        read_file(path, contract)
    first, *lines = lines_of(raised)
    assert first == f"{path}: 8 values cannot be read; the first 5 are"
    places = [line.split(":")[0].strip() for line in lines]
    assert places == [f"line {n}, column {c}" for n, c in ((4, "n"), (4, "v"), (8, "n"), (8, "v"), (10, "n"))]
    path.write_text("id,at,n,v\n" + good + bad)
    with pytest.raises(SourceFileError, match="2 values cannot be read\n"):
        read_file(path, contract)
    monkeypatch.setattr("trendlake.pipelines.ingest.readers.csv_file.BLOCK", 10_000)
    path.write_text("id,at,n,v\n" + good * 1000 + bad * 1000)
    with pytest.raises(SourceFileError, match="2,000 values cannot be read; the first 5 are\n  line 2002, column n"):
        read_file(path, contract)
    monkeypatch.setattr("trendlake.pipelines.ingest.readers.files.COUNTED", 100)
    monkeypatch.setattr(bad_values, "COUNTED", 100)
    with pytest.raises(SourceFileError, match="more than 100 values cannot be read"):
        read_file(path, contract)


def test_many_bad_values_of_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are those of the file, in whichever block."""
    monkeypatch.setattr("trendlake.pipelines.ingest.readers.json_lines.ROWS", 2)
    path = tmp_path / "e.jsonl"
    row = {"id": "e", "at": AT}
    path.write_text("\n\n".join(json.dumps(row | {"v": v}) for v in (AT, "x", AT, AT, "y", 5)) + "\n")
    with pytest.raises(SourceFileError) as raised:
        read_file(path, declared(tmp_path))
    assert [line.split(" is ")[0] for line in lines_of(raised)[1:]] == [
        "  line 3, column v: 'x'",
        "  line 9, column v: 'y'",
        "  line 11, column v: '5'",
    ]


def test_common_formats() -> None:
    """Each is a format that contracts take, and finds itself (or one that reads alike) in what it writes."""
    moments = [datetime(2013, 12, 31, 21, 5, 7, 120_000, UTC), datetime(2013, 12, 30, 9, 5, 7, 0, UTC)]
    assert [one for one in COMMON if format_fault(one) is not None] == []
    for one in COMMON[::37]:
        texts = [moment.strftime(one) for moment in moments]
        assert slow(texts[0], one) in [slow(texts[0], other) for other in common_formats(texts)], one
    assert common_formats([]) == []
    assert common_formats(["2013-01-05"]) == ["iso8601"]
    assert common_formats(["yesterday"]) == common_formats([""]) == []
