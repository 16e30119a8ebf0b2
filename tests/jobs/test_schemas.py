"""The JSON Schemas in docs/schemas: in step with the models, true to what the command accepts and refuses."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.conftest import ROOT
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.jobs.actions.schema import CUSTOM_VALUES, SCHEMAS, schema_text
from trendlake.pipelines.contracts.properties import PROPERTIES

FOLDER = ROOT / "docs" / "schemas"
PATTERNS = sorted(
    [*ROOT.glob("conf/patterns/*.yaml"), *ROOT.glob("examples/*/*.yaml"), *ROOT.glob("examples/*/conf/*/*.yaml")]
)
CONTRACTS = sorted([*ROOT.glob("data_contracts/*.yaml"), *ROOT.glob("examples/*/data_contracts/*.yaml")])
TESTS = sorted(ROOT.glob("conf/patterns/tests/*.yaml"))


@cache
def validator(name: str) -> Draft202012Validator:
    schema = json.loads((FOLDER / f"{name}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def mistakes(name: str, data: Any) -> list[str]:
    return [error.message for error in validator(name).iter_errors(data)]


def as_json(path: Path) -> Any:
    """A YAML file as an editor's language server sees it: times are strings."""
    return json.loads(json.dumps(plain(read_yaml(path).data), default=str))


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_files_are_in_step(name: str) -> None:
    """Else: `trendlake schema NAME > docs/schemas/NAME.json`."""
    assert (FOLDER / f"{name}.json").read_text() == schema_text(name)


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_every_pattern_file_is_of_the_schema(path: Path) -> None:
    assert mistakes("pattern", as_json(path)) == []


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_every_contract_is_of_the_schema(path: Path) -> None:
    assert mistakes("contract", as_json(path)) == []


@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)
def test_every_file_of_tests_is_of_the_schema(path: Path) -> None:
    assert mistakes("tests", as_json(path)) == []


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"patern": "A+"}, "'patern' was unexpected"),
        ({"select": "any"}, "'any' is not one of"),
        ({"kind": "trend"}, "'trend' is not one of"),
        ({"kind": "matches"}, "'empty_windows' was unexpected"),
        ({"within": 5}, "5 is not of type 'string'"),
        ({"expect": [{"measure": "n", "between": [1, 2]}]}, "'of_last' is a required property"),
        ({"expect": [{"measure": "n", "between": [1], "of_last": "1 window"}]}, "[1] is too short"),
    ],
)
def test_a_mistake_is_seen(change: dict[str, Any], expected: str) -> None:
    good = {
        "name": "a",
        "source": "b",
        "pattern": "A+",
        "return": {"n": "COUNT(*)"},
        "within": "1 day",
        "empty_windows": True,
        "expect": [{"measure": "n", "between": [0.5, None], "of_last": "7 windows"}],
    }
    assert mistakes("pattern", good) == []
    assert expected in " | ".join(mistakes("pattern", good | change))


@pytest.mark.parametrize(
    ("change", "right"),
    [
        ({}, True),
        ({"ties": ["payments", "orders"]}, True),
        ({"ties": "sequence"}, True),
        ({"ties": "orders"}, False),
        ({"source": "orders"}, False),
        ({"sources": {}}, False),
        ({"sources": {"1": "orders"}}, False),
        ({"sources": {"Order": {"columns": {"a": "b"}}}}, False),
        ({"sources": {"Order": {"source": "orders", "colums": {}}}}, False),
    ],
    ids=str,
)
def test_patterns_of_several_tables(change: dict[str, Any], right: bool) -> None:
    entry = {"source": "payments", "type": "paid", "columns": {"customer": "cust", "note": None}, "idle": "1 day"}
    good = {
        "name": "a",
        "kind": "matches",
        "sources": {"Order": "orders", "Payment": entry},
        "pattern": "SEQ(Order o, Payment p)",
        "within": "1 day",
    }
    assert (mistakes("pattern", good | change) == []) is right


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("nullWords", ["NA", "-"], "NA"),
        ("nullWords", [], [None]),
        ("idColumns", ["carrier", "flight"], []),
        ("timeFormat", "%m/%d/%Y", 5),
        ("timeZone", "Europe/Berlin", ["UTC"]),
        ("eventType", "Trade", "1 Trade"),
        ("eventRole", "sequence", "event"),
        ("quarantineTolerance", 0.02, 2),
        ("corrections", "replace", "append"),
        ("ofOurOwn", "x", None),
    ],
)
def test_values_of_custom_properties(name: str, good: Any, bad: Any) -> None:
    """An editor marks what a property does not take; properties of others may hold anything."""
    contract = as_json(ROOT / "data_contracts" / "trades.yaml")
    for value, right in ((good, True), (bad, name not in CUSTOM_VALUES)):
        contract["schema"][0]["customProperties"] = [{"property": name, "value": value}]
        assert (mistakes("contract", contract) == []) is right


def test_every_property_that_is_read_is_in_the_schema() -> None:
    read = {*PROPERTIES["table"], *PROPERTIES["column"]} - {"appliesTo"}
    assert read == set(CUSTOM_VALUES)


def test_a_schema_there_is_not_is_told() -> None:
    from typer.testing import CliRunner

    from trendlake.jobs.main import app

    result = CliRunner().invoke(app, ["schema", "patern"])
    assert result.exit_code == 1
    assert "did you mean 'pattern'?" in result.output
