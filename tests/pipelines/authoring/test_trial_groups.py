"""Windows that hold too many events, tried on some groups of events that share no row with others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.support.own_source import output_of, start
from trendlake.cep_core import AnyPlan
from trendlake.pipelines.authoring.trial import Sample, sample
from trendlake.pipelines.authoring.trial_file import FileOfRows, TrialFile
from trendlake.pipelines.authoring.validate import compiled_quietly
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.errors import SampleTooLargeError
from trendlake.pipelines.project.paths import find_project

FORMS = {
    "trends": """\
pattern: Trade E+
where: ["[company]", "E.price > NEXT(E).price"]
return: {n: COUNT(*)}
group_by: [company]
within: 1 day
""",
    "endless": """\
kind: matches
pattern: SEQ(Trade a, Trade b)
where: ["[company]", "a.price < b.price"]
return: {company: a.company}
output: non_overlap
within: 1 hour
""",
    "automaton": """\
kind: automaton
register: {n: {type: int, init: 0}}
start: p
final: [q]
arcs: [{from: p, to: q, when: "e.price > 2", set: {n: "n + 1"}}]
partition_by: [company]
within: 1 hour
""",
    "family": """\
pattern: Trade E+
where: ["[company]", "E.price > $least", "E.price > NEXT(E).price"]
for_each: {least: [0, 2]}
return: {n: COUNT(*)}
group_by: [company]
within: 1 day
""",
    "rows": """\
kind: match_recognize
pattern: |
  SELECT * FROM trades MATCH_RECOGNIZE (
    PARTITION BY company ORDER BY at
    MEASURES COUNT(*) AS n
    PATTERN (A B+) DEFINE B AS price > PREV(price)
  )
""",
}
ALL = 1_000
ALONE = FORMS["trends"].replace('"[company]", ', "").replace("group_by: [company]\n", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("groups")
    start(
        folder, folder / "trades.csv", "id,at,company,price\n1,2026-01-05T09:00:00Z,A,1.5\n2,2026-01-05T10:00:00Z,B,2\n"
    )
    for name, text in (*FORMS.items(), ("alone", ALONE)):
        (folder / "conf" / "patterns" / f"{name}.yaml").write_text(f"name: {name}\nsource: trades\n{text}")
    return folder


def planned(folder: Path, name: str) -> tuple[AnyPlan, Contract]:
    project = find_project(folder)
    _, plan = compiled_quietly(project, project.pattern_path(name))
    return plan, load_contract(project.contract_path("trades"))


def tried(plan: AnyPlan, contract: Contract, events: pa.Table, most: int, asked: tuple[int, int] | None) -> Sample:
    return sample(plan, TrialFile(plan, FileOfRows([Path("trades.csv")], contract, 0, table=events)), most, asked)


def trades(rows: list[tuple[str | None, int, int]]) -> pa.Table:
    """Of (company, minute of one day, price)."""
    columns: Mapping[str, Any] = {
        "id": [str(number) for number in range(len(rows))],
        "at": [1_767_600_000_000_000 + minute * 60_000_000 for _, minute, _ in rows],
        "company": [company for company, _, _ in rows],
        "price": [float(price) for *_, price in rows],
    }
    types = (pa.string(), pa.timestamp("us", "UTC"), pa.string(), pa.float64())
    return pa.table([pa.array(values, kind) for values, kind in zip(columns.values(), types, strict=True)], [*columns])


ROWS = st.lists(
    st.tuples(st.sampled_from(["A", "B", "C", "D", None]), st.integers(0, 600), st.integers(0, 5)),
    min_size=4,
    max_size=30,
)


@given(rows=ROWS, most=st.integers(1, 12), name=st.sampled_from([*FORMS]), interval=st.booleans())
@examples(100)
def test_rows_of_some_groups_are_those_of_all(
    folder: Path, rows: list[tuple[str | None, int, int]], most: int, name: str, interval: bool
) -> None:
    """Of each group that is taken all rows, of others none; groups are left out only where they do not fit."""
    plan, contract = planned(folder, name)
    assert plan.unit_key == ("company",)
    events = trades(rows)
    counts = {item["values"]: item["counts"] for item in events["company"].value_counts().to_pylist()}
    asked = (1_767_571_200_000_000, 1_767_571_200_000_000 + 2 * 86_400_000_000) if interval else None
    whole = tried(plan, contract, events, ALL, asked)
    assert whole.groups is None
    try:
        some = tried(plan, contract, events, most, asked)
    except SampleTooLargeError:
        assert min(counts.values()) > most or whole.good < len(rows)
        return
    assert some.good <= most
    if some.groups is None:
        return
    assert (some.groups.columns, some.groups.events) == (("company",), sum(counts.values()))
    assert 0 < some.groups.taken < some.groups.there == len(counts)
    shown = set(some.rows["company"].to_pylist())
    of_them = whole.rows.filter(pc.is_in(whole.rows["company"], pa.array([*shown], pa.string()), skip_nulls=False))
    if some.windows == whole.windows:
        assert sorted(some.rows.to_pylist(), key=repr) == sorted(of_them.to_pylist(), key=repr)


def test_a_stream_without_groups(folder: Path) -> None:
    """The events of a window may all meet: none can be left out."""
    plan, contract = planned(folder, "alone")
    with pytest.raises(SampleTooLargeError, match="the newest window alone holds 9 events, more than 4"):
        tried(plan, contract, trades([("A", n, n) for n in range(9)]), 4, None)


def test_the_command_says_it(folder: Path) -> None:
    """In words and as JSON. Two files are one table."""
    files = [folder / "first.csv", folder / "second.csv"]
    for number, file in enumerate(files):
        lines = [f"{number}{n},2026-01-05T09:{n:02d}:00Z,{'ABC'[n % 3]}{number},{20 - n}" for n in range(12)]
        file.write_text("\n".join(["id,at,company,price", *lines, ""]))
    events = [word for file in files for word in ("--events", str(file))]
    output = output_of("try", "trends", *events, "--max-events", "9", "--project-dir", folder)
    assert "2 of 6 groups of company, each with all its events: 8 of 24 events; --max-events takes more" in output
    document = json.loads(output_of("try", "trends", *events, "--max-events", "9", "--json", "--project-dir", folder))
    assert document["groups"] == {"columns": ["company"], "taken": 2, "there": 6, "events": 24}
    assert len(document["rows"]) == 2
    assert document["source"] == ", ".join(map(str, files))
    whole = json.loads(output_of("try", "trends", *events, "--json", "--project-dir", folder))
    assert whole["groups"] is None
    assert [row for row in whole["rows"] if row in document["rows"]] == document["rows"]
    again = output_of("try", "trends", *events, *events[:2], "--project-dir", folder, code=1)
    assert "the file is given twice" in again
