"""`timeFormat` and `timeZone` of a contract's columns: what is read, and mistakes with their hints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.event_files import contract_of
from trendlake.cep_core.events.zones import zone_fault
from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.time_formats import DIRECTIVES, TimeFormat, format_fault
from trendlake.pipelines.errors import ContractErrors


def declared(folder: Path, kind: str, **values: Any) -> Contract:
    """A contract with a column `v` of type `kind` that has these custom properties."""
    custom = [{"property": name, "value": value} for name, value in values.items()]
    return contract_of(folder, {"v": kind}, {"v": {"customProperties": custom}})


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        ("timestamp", {"timeFormat": "%m/%d/%Y %H:%M"}, TimeFormat("%m/%d/%Y %H:%M")),
        ("timestamp", {"timeZone": "Europe/Berlin"}, TimeFormat(zone="Europe/Berlin")),
        ("timestamp", {"timeFormat": "iso8601", "timeZone": "UTC"}, TimeFormat()),
        ("timestamp", {"timeFormat": "unix_millis"}, TimeFormat("unix_millis")),
        ("date", {"timeFormat": "%d.%m.%y"}, TimeFormat("%d.%m.%y")),
    ],
)
def test_declared(tmp_path: Path, kind: str, values: dict[str, str], expected: TimeFormat) -> None:
    """They say how files are read, not which rows keep the contract: the fingerprint stays."""
    contract = declared(tmp_path, kind, **values)
    assert contract.time_formats == {"v": expected}
    assert contract.fingerprint == declared(tmp_path, kind).fingerprint
    assert declared(tmp_path, kind).time_formats == {}


@pytest.mark.parametrize(
    ("kind", "values", "said"),
    [
        ("timestamp", {"timeFormat": 5}, "timeFormat is a text, not 5"),
        ("timestamp", {"timeFormat": None}, "timeFormat is a text, not None"),
        ("timestamp", {"timeZone": ["UTC"]}, "timeZone is a text"),
        ("timestamp", {"timeFormat": "%q/%d/%Y"}, "unknown directive '%q'"),
        ("timestamp", {"timeZone": "Europe/Berlim"}, "did you mean 'Europe/Berlin'?"),
        ("string", {"timeFormat": "%m/%d/%Y"}, "timeFormat is for columns of type timestamp or date; 'v' has string"),
        ("date", {"timeZone": "UTC"}, "timeZone is for columns of type timestamp; 'v' has date"),
        ("date", {"timeFormat": "%m/%d/%Y %H:%M"}, "has a time of day, but the column is a date"),
        ("date", {"timeFormat": "unix_seconds"}, "'unix_seconds' gives a time, but the column is a date"),
        ("timestamp", {"timeFormat": "unix_seconds", "timeZone": "Asia/Tokyo"}, "timeZone has no effect"),
        ("timestamp", {"timeFormat": "%m/%d/%Y %H:%M %z", "timeZone": "Asia/Tokyo"}, "timeZone has no effect"),
        ("timestamp", {"timeFormt": "%m/%d/%Y"}, "did you mean 'timeFormat'?"),
        ("timestamp", {"timezone": "UTC"}, "did you mean 'timeZone'?"),
    ],
)
def test_mistakes(tmp_path: Path, kind: str, values: dict[str, Any], said: str) -> None:
    """One error each, with its line."""
    with pytest.raises(ContractErrors) as raised:
        declared(tmp_path, kind, **values)
    [error] = raised.value.errors
    assert said in f"{error.message} {error.hint}"
    assert error.place is not None


@pytest.mark.parametrize("name", ["timeFormat", "timeZone"])
def test_they_belong_to_columns(tmp_path: Path, name: str) -> None:
    with pytest.raises(ContractErrors, match="a column's customProperties"):
        contract_of(tmp_path, {"v": "timestamp"}, **{name: "UTC"})


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("%-d/%m/%Y", "unknown directive '%-d'", "write %d: it reads numbers with and without a zero in front"),
        ("%e %b %Y", "unknown directive '%e'", "did you mean '%d'?"),
        ("%D", "unknown directive '%D'", "did you mean '%m/%d/%y'?"),
        ("%F %T", "unknown directive '%F'", "did you mean '%Y-%m-%d'?"),
        ("%Y-%m-%d %Z", "unknown directive '%Z'", "did you mean '%z'?"),
        ("%Y-%m-%d %", "unknown directive '%'", "the directives are %Y"),
        ("iso", "unknown timeFormat 'iso'", "did you mean 'iso8601'?"),
        ("unix", "unknown timeFormat 'unix'", "unix_seconds"),
        ("MM/DD/YYYY HH:mm", "unknown timeFormat", 'directives that begin with %, such as "%m/%d/%Y %H:%M"'),
        ("", "unknown timeFormat ''", "iso8601"),
        ("%H:%M", "has no year (%Y, %y)", "such as"),
        ("%Y-%d", "has no month (%m, %b, %B)", "such as"),
        ("%Y-%m", "has no day (%d)", "such as"),
        ("%Y %y %m %d", "has more than one year", "such as"),
        ("%m %b %d %Y", "has more than one month", "such as"),
        ("%Y-%m-%d %M", "has %M without %H or %I", "such as"),
        ("%Y-%m-%d %H %S", "has %S without %M", "such as"),
        ("%Y-%m-%d %H:%M.%f", "has %f without %S", "such as"),
        ("%Y-%m-%d %I:%M", "has %I without %p", "such as"),
        ("%Y-%m-%d %H:%M %p", "has %p without %I", "such as"),
        ("%Y-%m-%d %H %I %p", "has the hour more than once", "such as"),
        ("%Y-%m-%d %H:%H", "has %H more than once", "such as"),
        ("%Y-%m-%d %z", "has %z without %H or %I", "such as"),
    ],
)
def test_formats_that_are_refused(text: str, message: str, hint: str) -> None:
    fault = format_fault(text)
    assert fault is not None
    assert message in fault[0]
    assert hint in fault[1]


@pytest.mark.parametrize(
    "text", ["%Y%m%d", "%d %B %Y", "%b %d, %y", "%Y-%m-%dT%H:%M:%S.%f%z", "%I %p %d/%m/%Y", "%%%Y%m%d"]
)
def test_formats_that_are_taken(text: str) -> None:
    assert format_fault(text) is None


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("New York", "did you mean 'America/New_York'?"),
        ("berlin", "did you mean 'Europe/Berlin'?"),
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("America/NewYork", "did you mean 'America/New_York'?"),
        ("utc", "did you mean 'UTC'?"),
        ("+01:00", "an IANA name"),
        ("localtime", "an IANA name"),
        ("../UTC", "UTC"),
        ("", "an IANA name"),
    ],
)
def test_zones_that_are_refused(text: str, hint: str) -> None:
    fault = zone_fault(text)
    assert fault is not None
    assert hint in str(fault[1])


def test_each_directive_is_documented() -> None:
    """In the how-to, in the words of the code."""
    from tests.conftest import ROOT

    page = (ROOT / "docs" / "how-to" / "new-source.md").read_text(encoding="utf-8")
    assert [directive for directive in DIRECTIVES if f"`{directive}`" not in page] == []
