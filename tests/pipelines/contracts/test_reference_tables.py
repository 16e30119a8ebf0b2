"""Contracts of reference tables: those in which no column has an event's role."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tables_lake import CUSTOMERS, PLAIN_CUSTOMERS, contract_text, role, several_tables
from trendlake.cep_core import PatternErrors
from trendlake.jobs.actions.new import FirstPattern, write_pattern
from trendlake.pipelines.authoring.validate import check_files, compiled
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import ContractErrors, ProjectError
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project

SEQUENCE = "{name: version, logicalType: integer, customProperties: [{property: eventRole, value: sequence}]}"


def contract(folder: Path, *columns: str, latency: int | None = None, table: str = "") -> Contract:
    """`table`: further custom properties of the table."""
    text = contract_text("customers", columns, latency).replace("customProperties: [", f"customProperties: [{table}", 1)
    (folder / "customers.yaml").write_text(text)
    return load_contract(folder / "customers.yaml")


def project_of(folder: Path, **keys: object) -> Project:
    """With the pattern `unpaid` over three tables of events, and the contract of a reference table."""
    lake = Lake(Warehouse(str(folder / "warehouse")), without_spark, plain_paths=True)
    project = several_tables(folder, lake, plain=True, **keys).project
    (project.contracts / "customers.yaml").write_text(contract_text("customers", PLAIN_CUSTOMERS, None))
    return project


def without_spark() -> None:
    raise AssertionError("no Spark is needed")


def test_it_has_no_time(tmp_path: Path) -> None:
    """Nor lateness; its rules and key are as those of any contract."""
    of_rows = contract(tmp_path, *PLAIN_CUSTOMERS)
    assert of_rows.is_reference
    assert (of_rows.event_time, of_rows.named_by, of_rows.lateness_us, of_rows.types) == ("", "row", None, None)
    assert {rule.kind for rule in of_rows.rules} == {"not_null", "unique", "length"}
    events = [{"property": "eventType", "value": "Customer"}]
    assert not contract(tmp_path, *CUSTOMERS, table=f"{events[0]}, ".replace("'", "")).is_reference


def test_a_sequence_says_which_row_of_a_key_counts(tmp_path: Path) -> None:
    """It is no role of events alone."""
    of_rows = contract(tmp_path, *PLAIN_CUSTOMERS, SEQUENCE)
    assert of_rows.is_reference
    (unique,) = [rule for rule in of_rows.rules if rule.kind == "unique"]
    assert unique.sequence == "version"


@pytest.mark.parametrize("of", ["event_id", "event_time", "event_type", "document"])
def test_some_roles_of_events(tmp_path: Path, of: str) -> None:
    """Are those of a table of events, which lacks the others."""
    kind = "timestamp" if of == "event_time" else "string"
    with pytest.raises(ContractErrors, match="no column has the role") as error:
        contract(tmp_path, role("since", kind, of), *PLAIN_CUSTOMERS[2:])
    assert ("a reference table has no event role" in str(error.value)) == (of != "event_time")


def test_a_type_without_roles(tmp_path: Path) -> None:
    """Is meant for events."""
    with pytest.raises(ContractErrors, match="no column has the role event_time"):
        contract(tmp_path, *PLAIN_CUSTOMERS, table="{property: eventType, value: Customer}, ")


def test_lateness_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractErrors, match="'latency' is not read: no row of a reference table is too late"):
        contract(tmp_path, *PLAIN_CUSTOMERS, latency=2)


@pytest.mark.parametrize("key", ["source", "sources"])
def test_it_is_no_source(tmp_path: Path, key: str) -> None:
    """The error says where it can be named."""
    project = project_of(tmp_path, **{"source": None, "sources": None} | {key: SOURCES[key]})
    file = project.patterns / "unpaid.yaml"
    with pytest.raises(PatternErrors) as errors:
        compiled(project, file)
    said = str(errors.value)
    assert f"{file}:{LINES[key]}: [PROJECT] 'customers' is a reference table: it has no event_time" in said
    assert "name it under lookup" in said
    with pytest.raises(ProjectError, match="is a reference table"):
        write_pattern(FirstPattern("other", "customers"), tmp_path)


SOURCES = {"source": "customers", "sources": {"Order": "orders", "Payment": "payments", "Ticket": "customers"}}
LINES = {"source": "9:9", "sources": "4:3"}


def test_it_is_looked_up(tmp_path: Path) -> None:
    """Also with a column that its contract derives."""
    lookup = {"customer": {"table": "customers", "key": "customer_id", "columns": ["big"], "of": ["Order"]}}
    project = project_of(tmp_path, lookup=lookup, where=["[customer_id]", "o.big = 'B2B'"])
    file = project.contracts / "customers.yaml"
    derive = "customProperties: [{property: derive, value: {big: upper(segment)}}, "
    file.write_text(file.read_text().replace("customProperties: [", derive, 1))
    checked = {path.stem: error for path, error, _ in check_files(project, [])}
    assert {"customers", "unpaid"} <= checked.keys()
    assert set(checked.values()) == {None}
