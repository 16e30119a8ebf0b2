"""A mistake in a data contract is told with file, line, what was expected and a way out; all of a file at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.errors import ContractErrors
from trendlake.pipelines.project.paths import find_project

HEAD = """\
apiVersion: v3.1.0
kind: DataContract
id: trips
version: 1.0.0
status: active
schema:
  - name: trips
    properties:
"""
EVENTS = """\
      - {name: id, logicalType: string, required: true, customProperties: [{property: eventRole, value: event_id}]}
      - {name: at, logicalType: timestamp, required: true, customProperties: [{property: eventRole, value: event_time}]}
      - {name: kind, logicalType: string, required: true, customProperties: [{property: eventRole, value: event_type}]}
"""


def errors_of(folder: Path, text: str) -> list[str]:
    """What a contract file with this text says about itself."""
    path = folder / "trips.yaml"
    path.write_text(text)
    with pytest.raises(ContractErrors) as caught:
        load_contract(path)
    return [str(error) for error in caught.value.errors]


def test_the_contracts_of_the_project_are_in_order() -> None:
    """Flights: keys, roles, types, tolerance and lateness are read from the file."""
    contract = load_contract(find_project(ROOT).contract_path("flights"))
    assert contract.key == ("event_id",)
    assert contract.event_time == "event_time"
    assert contract.types == ("Flight", "Cancellation")
    assert contract.tolerance == 0.05
    assert contract.lateness_us == 14 * 86_400 * 10**6
    schema = contract.event_schema()
    assert dict(schema.columns)["dep_delay"] == "double"
    assert dict(schema.columns)["event_time"] == "timestamp"


def test_unknown_keys_are_pointed_at(tmp_path: Path) -> None:
    """Line, column and caret, and the key that was meant."""
    (error,) = errors_of(tmp_path, HEAD + EVENTS + "      - {name: fare, logicalTyp: number}\n")
    assert "trips.yaml:12:22: [UNKNOWN_KEY]" in error
    assert "did you mean 'logicalType'?" in error
    assert "\n" + " " * (4 + 21) + "^" * len("logicalTyp") in error


def test_all_mistakes_come_at_once(tmp_path: Path) -> None:
    """Three mistakes, three errors, each at its own line."""
    text = (
        HEAD
        + EVENTS.replace("event_id}", "event_idd}")
        + (
            "      - {name: fare, logicalType: number, logicalTypeOptions: {minimun: 0}}\n"
            "      - {name: seats, logicalType: integer, physicalType: strng}\n"
        )
    )
    errors = errors_of(tmp_path, text)
    assert ["unknown event role 'event_idd'" in error for error in errors].count(True) == 1
    assert ["no option 'minimun'" in error for error in errors].count(True) == 1
    assert ["'strng' is no Spark type" in error for error in errors].count(True) == 1
    assert any("did you mean 'minimum'?" in error for error in errors)
    assert any("no column has the role event_id" in error for error in errors)


def test_a_repeated_key_is_refused(tmp_path: Path) -> None:
    """YAML would keep the last one in silence."""
    (error,) = errors_of(tmp_path, HEAD + EVENTS + "status: draft\n")
    assert "trips.yaml:12:1: [YAML_SYNTAX]" in error
    assert "status" in error


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("{metric: nullValues}", "exactly one operator"),
        ("{metric: nullValue, mustBe: 0}", "Input should be 'nullValues'"),
        ("{type: sql, query: SELECT 1, mustBe: 0}", "judges a table, not a row"),
        ("{type: custom, engine: soda, implementation: x}", "rules of engine 'soda' are not run"),
        ("{type: custom, engine: trendlake, implementation: fare > 0}", "has a name"),
        ("{metric: invalidValues, mustBe: 0}", "validValues or pattern"),
    ],
)
def test_rules_that_cannot_be_run(tmp_path: Path, rule: str, message: str) -> None:
    """A rule is run or refused, never passed over."""
    errors = errors_of(tmp_path, HEAD + EVENTS + f"      - {{name: fare, logicalType: number, quality: [{rule}]}}\n")
    assert any(message in error for error in errors), errors


def test_roles_have_their_types(tmp_path: Path) -> None:
    """The event's time is a timestamp that is always there."""
    text = HEAD + EVENTS.replace("logicalType: timestamp, required: true", "logicalType: string")
    errors = errors_of(tmp_path, text)
    assert any("event_time has type timestamp; column 'at' has type string" in error for error in errors)
    assert any("must say required: true" in error for error in errors)


def test_the_schema_bears_the_name_of_the_file(tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, (HEAD + EVENTS).replace("name: trips", "name: rides"))
    assert "expected 'trips'" in error


def test_not_a_mapping(tmp_path: Path) -> None:
    (error,) = errors_of(tmp_path, "- a\n- b\n")
    assert "a data contract is a mapping of keys" in error


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(ContractErrors, match="cannot read"):
        load_contract(tmp_path / "none.yaml")


NUMBER = "      - {name: fare, logicalType: number}\n"
TABLE = "schema:\n  - name: trips\n"


def of_table(text: str) -> str:
    """A contract whose table has the custom property `text`."""
    return HEAD.replace(TABLE, f"{TABLE}    customProperties: [{{{text}}}]\n") + EVENTS


def of_column(text: str) -> str:
    return HEAD + EVENTS + NUMBER.replace("number", f"number, customProperties: [{{{text}}}]")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            of_table("property: quarantineTolerence, value: 0.1"),
            "unknown property 'quarantineTolerence'",
            "did you mean 'quarantineTolerance'?",
        ),
        (
            of_table("property: quarantine_tolerance, value: 0.1"),
            "unknown property 'quarantine_tolerance'",
            "did you mean 'quarantineTolerance'?",
        ),
        (
            HEAD + EVENTS + "slaProperties: [{property: latncy, value: 1, unit: d}]\n",
            "unknown property 'latncy'",
            "did you mean 'latency'?",
        ),
        (of_column("property: eventrole, value: x"), "unknown property 'eventrole'", "did you mean 'eventRole'?"),
        (
            of_column("property: quarantineTolerance, value: 1"),
            "'quarantineTolerance' is not read here",
            "it belongs to the table's customProperties",
        ),
        (
            HEAD + EVENTS + "customProperties: [{property: correction, value: replace}]\n",
            "unknown property 'correction'",
            "did you mean 'corrections'? It belongs to the table's customProperties",
        ),
        (of_table("property: latency, value: 1"), "'latency' is not read here", "it belongs to slaProperties"),
        (
            of_table("property: corrections, value: append"),
            "corrections is 'replace', not 'append'",
            "ingest refuses a known key with other values",
        ),
    ],
)
def test_a_property_that_is_almost_one_that_is_read(tmp_path: Path, text: str, message: str, hint: str) -> None:
    """It would silently have no effect: the contract would promise something else than its author thinks."""
    (error,) = errors_of(tmp_path, text)
    assert message in error
    assert hint in error
    assert "trips.yaml:" in error


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (
            of_table("property: quarantineTolerance, value: 0}, {property: quarantineTolerance, value: 0.5"),
            "quarantineTolerance",
        ),
        (of_table("property: corrections, value: replace}, {property: corrections, value: replace"), "corrections"),
        (of_table("property: nullWords, value: [a]}, {property: nullWords, value: [b]"), "nullWords"),
        (of_column("property: nullWords, value: [a]}, {property: nullWords, value: [b]"), "nullWords"),
        (of_column("property: eventRole, value: sequence}, {property: eventRole, value: event_type"), "eventRole"),
        (HEAD + EVENTS + "slaProperties: [{property: latency, value: 1}, {property: Latency, value: 2}]\n", "latency"),
        (HEAD + EVENTS + "slaProperties: [{property: latency, value: 1}, {property: ly, value: 2}]\n", "latency"),
        (
            HEAD + EVENTS + "slaProperties: [{property: maxFuture, value: 1}, {property: maxFuture, value: 2}]\n",
            "maxFuture",
        ),
    ],
)
def test_a_property_that_is_stated_twice(tmp_path: Path, text: str, name: str) -> None:
    """The first counted, and the other one was ignored."""
    (error,) = [error for error in errors_of(tmp_path, text) if "twice" in error]
    assert f"'{name}' is stated twice" in error
    assert "leave one of them out" in error
    assert "trips.yaml:" in error


def test_words_of_a_column_beside_those_of_the_table(tmp_path: Path) -> None:
    """One place each: the column's count for it, the table's for the others."""
    path = tmp_path / "trips.yaml"
    path.write_text(
        of_table("property: nullWords, value: [a]") + of_column("property: nullWords, value: [b]")[len(HEAD + EVENTS) :]
    )
    assert load_contract(path).null_words["fare"] == ("b",)


def test_properties_of_others_are_allowed(tmp_path: Path) -> None:
    """The standard lets a contract carry properties for anybody, and has service levels that are not read here."""
    path = tmp_path / "trips.yaml"
    others = "    customProperties: [{property: costCentre, value: 7}, {property: corrections, value: replace}]\n"
    levels = "".join(
        f"  - {{property: {name}, value: 1, unit: d}}\n"
        for name in ("frequency", "retention", "Availability", "timeToDetect", "Latency")
    )
    path.write_text(HEAD.replace(TABLE, TABLE + others) + EVENTS + "slaProperties:\n" + levels)
    contract = load_contract(path)
    assert contract.replaces
    assert contract.lateness_us == 86_400 * 10**6
