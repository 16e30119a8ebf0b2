"""A fault in a module that works without Spark is seen: no error of ours, and no wrong count, ends as "Spark does it".

One scenario, small and without Java, uses each of these modules. It must fail for each fault that is put into one of
them: an error that only a mistake of ours raises is raised, and a wrong answer is a wrong row, or a start of Java.
"""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.conftest import ROOT
from tests.support.flights import all_steps
from tests.support.signal_patterns import HEAD
from tests.support.signals import CONTRACT, DAY_US, IN_DRIVER, SCHEMA, START_US
from trendlake.cep_core import run_plan
from trendlake.pipelines.contracts.contract import load_contract
from trendlake.pipelines.ingest.delete import Selection, delete_rows
from trendlake.pipelines.ingest.deliver import ingest
from trendlake.pipelines.lake import here as package
from trendlake.pipelines.lake import lake as lake_of_commands
from trendlake.pipelines.lake.here import column_statistics, form, log, parquet_scan, read, row_groups, write
from trendlake.pipelines.lake.here import maintain as maintenance
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.maintain import maintain
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.results.ledger import read_ledger
from trendlake.pipelines.results.read import Selection as Wanted
from trendlake.pipelines.results.read import read_rows
from trendlake.pipelines.revision.repairs import repairs
from trendlake.pipelines.runs.run import Run, prepare
from trendlake.pipelines.steps.revise import revise

PATTERN = f"""{HEAD}pattern: A+
where: ["[place]", "A.price < NEXT(A).price"]
return: {{trends: COUNT(*), low: MIN(A.price)}}
group_by: [place]
within: 1 day
"""
TOLERANT = "{property: quarantineTolerance, value: 1}"
REPLACED = CONTRACT.replace(TOLERANT, f"{TOLERANT}, {{property: corrections, value: replace}}")


class InjectedError(KeyError):
    """A mistake of ours: no library raises it."""


class MistypedError(TypeError):
    """Another."""


class JavaStartedError(AssertionError):
    """The scenario needs none."""


def event(number: int, day: float, price: int, place: str = "p") -> dict[str, Any]:
    time = round(START_US + day * DAY_US)
    return {"event_id": f"e{number}", "event_time": time, "event_type": "A", "place": place, "price": price}


FIRST = [event(n, 0.1 + n / 10, 1 + n % 4, "pq"[n % 2]) for n in range(12)]
LATER = [event(3, 0.4, 9, "q"), event(20, 0.45, 5)]
NOW = [*(row for row in FIRST if row["event_id"] not in ("e3", "e5")), *LATER]


def scenario(folder: Path) -> None:
    """Deliveries, a run, a correction, a deletion, a revision and maintenance; the rows are those that the engine
    computes, and the facts of a page are those of the source's rows."""
    project = Project(folder, folder / "state")
    for path, text in ((project.contracts / "signals.yaml", REPLACED), (project.patterns / "watched.yaml", PATTERN)):
        path.parent.mkdir(parents=True)
        path.write_text(text)
    shutil.copy(ROOT / "data_contracts" / "results_trends.yaml", project.contracts)
    contract, warehouse = load_contract(project.contract_path("signals")), Warehouse.of(IN_DRIVER, project)
    lake = Lake.on_demand(warehouse, project, IN_DRIVER, "a test", writes=True)

    def deliver(rows: list[dict[str, Any]], feed: str) -> None:
        table = pa.Table.from_pylist(rows, SCHEMA)
        ingest(lake, contract, [table], feed=feed, run_id=feed)

    def prepared(run_id: str) -> Run:
        return prepare(lake, project, IN_DRIVER, "watched", run_id, START_US, START_US + 2 * DAY_US)

    deliver(FIRST, "first")
    run = prepared("r")
    all_steps(run)
    deliver(LATER, "later")
    delete_rows(lake, contract, Selection(keys=pa.table({"event_id": ["e5"]})), "gone")
    revised = prepared("revision")
    revise(revised)
    results = warehouse.results("watched")
    (done,) = maintain(lake, {"results/watched": results})
    assert done.files_after == len(read.table_here(lake, results).files) == 1
    rows = read_rows(lake, results, run.plan, Wanted()).table
    expected = run_plan(run.plan, pa.Table.from_pylist(NOW, SCHEMA))
    assert Counter(map(str, rows.to_pylist())) == Counter(map(str, expected.to_pylist()))
    assert {record.road for record in (*run.records.values(), *revised.records.values())} <= {"here", None}
    source = read.table_here(lake, warehouse.source("signals"))
    facts, prices = column_statistics.statistics_of(source, ["price"])["price"], [row["price"] for row in NOW]
    assert (facts.nulls, facts.low, facts.high) == (0, min(prices), max(prices))
    states = repairs(run, read_ledger(lake, run.name, run.plan, "signals"), run.newest())
    assert not [repair for repair in states if repair.state != "windows_due"]


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any, **__: Any) -> Any:
        raise JavaStartedError

    monkeypatch.setattr(lake_of_commands, "start_session", start)


def test_the_scenario(tmp_path: Path) -> None:
    scenario(tmp_path)


def holders(function: Any) -> Iterator[tuple[Any, str]]:
    """The modules and classes that hold a function under some name."""
    for module in [module for name, module in sys.modules.items() if name.startswith("trendlake.")]:
        yield from ((module, name) for name, value in vars(module).items() if value is function)


MODULES = (column_statistics, form, log, maintenance, parquet_scan, read, row_groups, write)
FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (column_statistics, "statistics_of"),
    (form, "other_forms"),
    (form, "takes_writes"),
    (form, "arrow_schema"),
    (log, "opened"),
    (log, "newest_view"),
    (log, "checksum"),
    (log, "commit_info"),
    (log, "logged_versions"),
    (log, "commit_actions"),
    (maintenance, "maintain_here"),
    (parquet_scan, "plain_batches"),
    (read, "table_here"),
    (read, "inside"),
    (row_groups, "times"),
    (row_groups, "values"),
    (row_groups, "near"),
    (row_groups, "within"),
    (row_groups, "at_most"),
    (write, "append"),
    (write, "change"),
    (write, "append_any"),
    (write, "shaped"),
)
METHODS = ("rows", "rows_with", "every", "extent", "feed", "near", "near_time", "none")


def test_each_module_of_the_folder_is_here() -> None:
    there = {path.stem for path in Path(str(package.__file__)).parent.glob("*.py")} - {"__init__"}
    assert there == {module.__name__.rpartition(".")[2] for module in MODULES}
    assert {module for module, _ in FUNCTIONS} == set(MODULES)


@pytest.mark.parametrize(("module", "name"), FUNCTIONS, ids=[name for _, name in FUNCTIONS])
def test_a_mistake_in_a_function(tmp_path: Path, module: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in(module, name, raising(InjectedError), monkeypatch)
    with pytest.raises(InjectedError):
        scenario(tmp_path)


@pytest.mark.parametrize("name", METHODS)
def test_a_mistake_in_a_method(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read.TableHere, name, raising(InjectedError))
    with pytest.raises(InjectedError):
        scenario(tmp_path)


@pytest.mark.parametrize("module", MODULES)
def test_a_mistake_of_another_type(tmp_path: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = next(name for place, name in FUNCTIONS if place is module)
    put_in(module, name, raising(MistypedError), monkeypatch)
    with pytest.raises(MistypedError):
        scenario(tmp_path)


def put_in(module: Any, name: str, function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of a function, wherever it is imported."""
    original = getattr(module, name)
    assert isinstance(original, FunctionType)
    for holder, held in list(holders(original)):
        monkeypatch.setattr(holder, held, function)


def raising(mistake: type[Exception]) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise mistake("injected")

    return fail


def one_less(original: Any) -> Callable[..., Any]:
    """A table of rows without the last, where there are several."""

    def wrong(*given: Any, **named: Any) -> Any:
        rows = original(*given, **named)
        return rows.slice(0, rows.num_rows - 1) if rows.num_rows > 1 else rows

    return wrong


WRONG: dict[str, tuple[Any, str, Callable[[Any], Callable[..., Any]]]] = {
    "column_statistics": (
        column_statistics,
        "statistics_of",
        lambda _: lambda table, names: dict.fromkeys(names, column_statistics.ColumnStatistics()),
    ),
    "form": (form, "takes_writes", lambda _: lambda *__: False),
    "log": (log, "logged_versions", lambda original: lambda folder: original(folder)[1:] or original(folder)),
    "maintain": (maintenance, "maintain_here", lambda _: lambda *__: maintenance.Kept("results/watched", 9, 9, 9, 9)),
    "parquet_scan": (
        parquet_scan,
        "plain_batches",
        lambda original: (
            lambda *given, **named: (batch.slice(0, max(1, batch.num_rows - 1)) for batch in original(*given, **named))
        ),
    ),
    "read": (read, "inside", lambda original: lambda *given: pc.and_(original(*given), False)),
    "row_groups": (row_groups, "near", lambda _: lambda *__: lambda file: ()),
    "write": (write, "shaped", one_less),
}


@pytest.mark.parametrize("module", WRONG)
def test_a_wrong_count(tmp_path: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are lost, a file that is passed over, a commit that is not seen: a wrong result, an error, or Java."""
    place, name, wrong = WRONG[module]
    put_in(place, name, wrong(getattr(place, name)), monkeypatch)
    seen = None
    try:
        scenario(tmp_path)
    except Exception as error:
        seen = error
    assert seen is not None
    assert not isinstance(seen, TypeError | AttributeError), seen  # a fault of this test


def test_a_wrong_count_is_of_each_module() -> None:
    assert set(WRONG) == {module.__name__.rpartition(".")[2] for module in MODULES}
