"""Checks in the run record: what is stored, and what earlier versions have stored."""

from __future__ import annotations

import json

from trendlake.pipelines.check import Check, checks_of
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.quality.quarantine_counts import Broken
from trendlake.pipelines.rules.great_expectations import rule_check


def test_a_check_is_read_as_it_was_written() -> None:
    checks = [
        Check("revision", True, "7 rows changed", "change feed", data={"rows": 7, "windows": [3, 9], "reason": None}),
        Check("share_of_last_3", None, "not judged", "2 to 4 times the median", "share"),
        rule_check(Rule("price_range", "range", ("price",), low=0), 10, 3),
        Broken().check(),
    ]
    stored = json.dumps([check.as_json() for check in checks])
    assert checks_of(stored) == checks


def test_records_without_values() -> None:
    """Versions before 2.0 stored sentences only, the first ones numbers and lists in their place."""
    stored = [
        {"check": "a", "column": None, "success": True, "observed": "5 rows", "expected": "none"},
        {"check": "b", "column": ["x", "y"], "success": None, "observed": 3, "expected": None},
        {"check": "c", "column": "x", "observed": "1", "expected": "0", "a key of later versions": 1},
    ]
    assert checks_of(json.dumps(stored)) == [
        Check("a", True, "5 rows", "none"),
        Check("b", None, "3", "", '["x", "y"]'),
        Check("c", False, "1", "0", "x"),
    ]
    assert checks_of(None) == []


def test_values_are_json_types() -> None:
    """So that `trendlake_runs` holds them without conversion."""
    check = rule_check(Rule("price_range", "range", ("price",), low=0), 10, 3)
    assert check.data == {"rows": 10, "broken": 3}
    assert check.failed
    assert check.as_json()["data"] == json.loads(json.dumps(check.as_json()))["data"]
