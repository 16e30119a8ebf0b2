"""A family is its members: their rows, with the values of their parameters before them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given

from tests.random.batches import shown
from tests.random.families import Family, as_family, families, one_by_one
from tests.random.profile import examples
from trendlake.cep_core import PatternErrors, compile_query, evaluate, explain, load_pattern, run_plan, run_plans
from trendlake.cep_core.errors import TooManyMatchesError
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import schema_of
from trendlake.cep_core.patterns.expansion import expanded
from trendlake.cep_core.patterns.model import FamilyPattern
from trendlake.cep_core.sharing import batches as batches_of_forms
from trendlake.cep_core.sharing import families as folding
from trendlake.cep_core.sharing import interest
from trendlake.cep_core.sharing.changes import bindable
from trendlake.cep_core.sharing.family import FamilyPlan


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever can be shared is, however little it saves."""
    for name, value in {"FEW": 1, "FEW_SORTED": 1, "MOST": 9.0}.items():
        monkeypatch.setattr(interest, name, value)
    monkeypatch.setattr(batches_of_forms, "FULL", 40)
    monkeypatch.setattr(folding, "JOINED", 2)


@pytest.mark.random
@pytest.mark.usefixtures("eager")
@examples(100)
@given(families())
def test_a_family_is_its_members(family: Family) -> None:
    """Bound plans against members that are written out, compiled and run one by one."""
    expected = one_by_one(family)
    assert expected is None or as_family(family) == expected


def table(**columns: Any) -> pa.Table:
    n = len(next(iter(columns.values())))
    time = pa.array([i * 1_000_000 for i in range(n)], pa.timestamp("us", tz="UTC"))
    return pa.table({"event_id": [f"e{i}" for i in range(n)], "event_type": ["A"] * n, "event_time": time, **columns})


EVENTS = table(x=[1, 2, 3, 1, 2, 5], name=["a", "b", "a", "c", "a", "b"], price=[1.0, -2.0, 3.5, 0.0, 4.0, 2.0])
QUERY = {
    "kind": "matches",
    "pattern": "SEQ(A a, A b)",
    "where": ["a.x = $first", "b.x >= $least"],
    "within": "1 minute",
}


def mistakes(query: dict[str, Any] | Path) -> str:
    with pytest.raises(PatternErrors) as failure:
        compile_query(query, schema_of(EVENTS))
    return str(failure.value)


def test_columns_and_key_begin_with_the_parameters() -> None:
    plan = compile_query({**QUERY, "for_each": {"first": [1, 2], "least": [2.5]}}, schema_of(EVENTS))
    rows = run_plan(plan, EVENTS)
    assert rows.schema == plan.result_schema
    assert rows.schema.names[:3] == ["first", "least", "match_id"]
    assert [str(field.type) for field in rows.schema][:2] == ["int64", "double"]
    assert plan.key == ("first", "least", "match_id")
    assert (
        sorted(zip(rows["first"].to_pylist(), rows["least"].to_pylist(), strict=True))
        == [(1, 2.5)] * 2 + [(2, 2.5)] * 2
    )


def test_a_file_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "pairs.yaml"
    lines = ["name: pairs", "kind: matches", "source: events", "pattern: SEQ(A a, A b)", "within: 1 minute"]
    path.write_text("\n".join([*lines, "where: [a.name = $name_of_a, b.x > $least]", "for_each: {file: pairs.csv}"]))
    (tmp_path / "pairs.csv").write_text('\ufeffname_of_a,least\na,1\n"b",2\n,3\n', encoding="utf-8")
    plan = compile_query(path, schema_of(EVENTS))
    assert isinstance(plan, FamilyPlan)
    assert plan.parameters.rows == (("a", 1), ("b", 2), (None, 3))
    assert set(evaluate(path, EVENTS)["name_of_a"].to_pylist()) == {"a", "b"}

    def message_of(text: str, **more: str) -> str:
        (tmp_path / "pairs.csv").write_text(text)
        return mistakes(path)

    assert "[UNKNOWN_PARAMETER] for_each has no parameter 'least'" in message_of("name_of_a,minimum\na,1\n")
    assert "pairs.csv:3:1: [BAD_VALUE] this row is in the file already, on line 2" in message_of(
        "name_of_a,least\na,1\na,1\n"
    )
    assert "pairs.csv:2:1: [BAD_VALUE] 1 values, expected 2" in message_of("name_of_a,least\na\n")
    assert "pairs.csv:2:1: [BAD_VALUE] name_of_a: '=1+1' is a formula" in message_of("name_of_a,least\n=1+1,1\n")
    assert "has no rows" in message_of("name_of_a,least\n")
    assert "the file is empty" in message_of("")
    assert "$least is text, as pairs.csv has 'x' on line 3" in message_of("name_of_a,least\na,1\nb,x\n")
    assert "does not fit 64 bits" in message_of(f"name_of_a,least\na,{2**63}\n")
    assert "names a parameter twice" in message_of("least,LEAST\n1,1\n")
    assert "pairs.csv:3:1: [BAD_VALUE] the header names a parameter twice" in message_of("\n \nleast,LEAST\n1,1\n")
    assert "pairs.csv:2:1: [BAD_VALUE] 2 values, expected 3" in message_of("name_of_a,least,x\n,\n")
    assert "pairs.csv:1:1: [BAD_VALUE] '' is no name of a parameter" in message_of(",\nname_of_a,least\na,1\n")
    assert "pairs.csv:5:1: [BAD_VALUE] this row is in the file already, on line 2" in message_of(
        'name_of_a,least\n"a\nb",1\n \n"a\nb",1\n'
    )
    long = "a" * 200_000
    (tmp_path / "pairs.csv").write_text(f"\n\nname_of_a,least\n\n{long},1\n")
    plan = compile_query(path, schema_of(EVENTS))
    assert isinstance(plan, FamilyPlan)
    assert plan.parameters.rows == ((long, 1),)
    (tmp_path / "pairs.csv").unlink()
    assert "[FILE_UNREADABLE]" in mistakes(path)
    path.write_text(path.read_text().replace("pairs.csv", "../pairs.csv"))
    assert "in the pattern's own folder" in mistakes(path)


def test_types_of_columns(tmp_path: Path) -> None:
    """Codes that look like numbers are text where the pattern says so, or where one begins with a zero."""
    text = "name: zips\nsource: events\npattern: A+\nwithin: 1 minute\nreturn: {n: COUNT(*)}\nwhere: [A.name = $zip]\n"
    path = tmp_path / "zips.yaml"
    (tmp_path / "zips.csv").write_text("zip\n00501\n10001\n")
    path.write_text(text + "for_each: {file: zips.csv}\n")
    plan: Any = compile_query(path, schema_of(EVENTS))
    assert plan.parameters.rows == (("00501",), ("10001",))
    (tmp_path / "zips.csv").write_text("zip\n10001\n")
    assert "cannot compare a string with an integer" in mistakes(path)
    path.write_text(text + "for_each: {file: zips.csv, types: {zip: string}}\n")
    plan = compile_query(path, schema_of(EVENTS))
    assert plan.parameters.rows == (("10001",),)
    path.write_text(text + "for_each: {file: zips.csv, types: {zap: string}}\n")
    assert "did you mean 'zip'?" in mistakes(path)


def test_some_columns_of_a_file(tmp_path: Path) -> None:
    """The others may be anything; rows that are equal in those that are read are still a mistake."""
    path = tmp_path / "priced.yaml"
    text = "kind: matches\nname: priced\nsource: events\npattern: A a\nwithin: 1 minute\nwhere: [a.x = $least]\n"

    def message(columns: str) -> str:
        path.write_text(f"{text}for_each: {{file: pairs.csv{columns}}}\n")
        with pytest.raises(PatternErrors) as failure:
            evaluate(path, EVENTS)
        return str(failure.value)

    (tmp_path / "pairs.csv").write_text("a note,least,who\nfirst,1,x\nsecond,2,y\n")
    assert "'a note' is no name of a parameter" in message("")
    assert "name the others: columns: [least]" in message(", columns: [least, who]")
    assert "the file has no column 'leest'" in message(", columns: [leest]")
    assert "'least' is written twice" in message(", columns: [least, least]")
    assert "expected names of columns" in message(", columns: least")
    path.write_text(f"{text}for_each: {{file: pairs.csv, columns: [least]}}\n")
    rows = evaluate(path, EVENTS)
    assert rows.column_names[0] == "least"
    assert "who" not in rows.column_names
    assert rows["least"].to_pylist() == [1, 2, 1, 2]  # by time, then by key
    (tmp_path / "pairs.csv").write_text("a note,least,who\nfirst,1,x\nsecond,1,y\n")
    assert "this row is in the file already, on line 2" in message(", columns: [least]")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"for_each": {"first": [1], "lest": [1]}}, "did you mean 'lest'?"),
        ({"for_each": {"first": [1], "least": [1], "extra": [1]}}, "no condition reads 'extra'"),
        ({"for_each": {"first": [1], "least": []}}, "the list is empty"),
        ({"for_each": {"first": [1, 1], "least": [1]}}, "in the list already"),
        ({"for_each": {"first": [1, 1.0], "least": [1]}}, "in the list already, as number 1"),
        ({"for_each": {"first": [2**53, 2**53 + 1, 0.5], "least": [1]}}, "in the list already, as number 1"),
        ({"for_each": {"first": [0, -0.0], "least": [1]}}, "in the list already, as number 1"),
        ({"for_each": {"first": ["a"], "least": [1]}}, "cannot compare an integer with a string"),
        ({"for_each": {"first": [1, "a"], "least": [1]}}, "expected values of one type"),
        ({"for_each": {"match_id": [1]}, "where": ["b.x = $match_id"]}, "is a column of the results"),
        ({"for_each": {"B": [1]}, "where": ["b.x = $B"]}, "is a column of the results"),
        ({"for_each": {"first": list(range(400)), "least": list(range(400))}}, "more than 100,000 combinations"),
        ({"for_each": {"first": [1], "least": [float("nan")]}}, "expected a finite number"),
        ({"for_each": {"first": [1], "least": [2**63]}}, "does not fit 64 bits"),
        ({"for_each": {"first": [1], "FIRST": [1]}}, "is a parameter already"),
        (
            {"for_each": {"first": [1], "least": [1]}, "where": ["a.x > $first AND $least = 1"]},
            "parameters and no event",
        ),
        ({"for_each": {"first": [1], "least": [1]}, "return": {"m": "$least"}}, "'$least' has no value here"),
        ({}, "the pattern has no for_each"),
        ({"pattern": "SEQ(A $first, A b)"}, "'$first' is not expected here"),
        ({"within": "$first minutes"}, "'$first' is not expected here"),
    ],
)
def test_mistakes(change: dict[str, Any], expected: str) -> None:
    assert expected in mistakes({**QUERY, **change})


def test_kind_without_families() -> None:
    message = mistakes({"kind": "xml_join", "for_each": {"x": [1]}, "within": "1 day"})
    assert "[UNKNOWN_KEY] 'for_each' is a key of kind trends and matches and automaton and algebra" in message


ALGEBRA = {
    "kind": "algebra",
    "within": "1 minute",
    "pattern": "FROM FILTER{x = $first}(A) NEXT{$2.price > $1.price + $least} A",
}


def test_parameters_beside_decorators() -> None:
    """`$first` and `$1.price` in one text (ADR 33)."""
    rows = evaluate({**ALGEBRA, "for_each": {"first": [1, 2], "least": [0.5, 5]}}, EVENTS)
    pairs = [(row["first"], row["least"], row["price_1"], row["price"]) for row in rows.to_pylist()]
    assert sorted(pairs) == [(1, 0.5, 0.0, 4.0), (1, 0.5, 1.0, 3.5), (2, 0.5, -2.0, 3.5), (2, 5.0, -2.0, 3.5)]


def test_parameters_in_select() -> None:
    text = "SELECT $word AS label, '$word' AS other FROM FILTER{x = 5}(A)"
    query = {"kind": "algebra", "pattern": text, "within": "1 minute", "for_each": {"word": ["it's", "$1.x", "' OR 1"]}}
    rows = [(row["word"], row["label"], row["other"]) for row in evaluate(query, EVENTS).to_pylist()]
    assert sorted(rows) == [("$1.x", "$1.x", "$word"), ("' OR 1", "' OR 1", "$word"), ("it's", "it's", "$word")]


def test_parameters_in_fold() -> None:
    """The attribute that a FOLD counts in begins with the member's value."""
    text = "FROM (SELECT x, $begin AS total FROM FILTER{x = 3}(A)) FOLD{,, $.total + $2.x AS total} (SELECT x FROM A)"
    query = {"kind": "algebra", "pattern": text, "within": "1 minute", "for_each": {"begin": [0, 10]}}
    rows = [(row["begin"], row["total"]) for row in evaluate(query, EVENTS).to_pylist()]
    assert sorted(rows) == [(0, 1), (0, 3), (0, 8), (10, 11), (10, 13), (10, 18)]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"for_each": {"first": [1], "lest": [1]}}, "did you mean 'lest'?"),
        ({}, "'$first' has no values: the pattern has no for_each"),
        ({"for_each": {"first": [1], "least": [1], "extra": [1]}}, "no condition reads 'extra'"),
        ({"for_each": {"first": [1], "least": ["a"]}}, "+ does not take a double and a string"),
        (
            {
                "for_each": {"first": [1], "price_1": [1]},
                "pattern": "FROM FILTER{x = $first}(A) NEXT{$2.x > $price_1} A",
            },
            "'price_1' is a column of the results already",
        ),
        ({"for_each": {"first": [1]}, "pattern": "FROM FILTER{x = 1 AND $first > 0}(A)"}, "parameters and no event"),
        ({"for_each": {"first": [1]}, "pattern": "FROM FILTER{x = $first.x}(A)"}, "there is no stream '$first'"),
        ({"for_each": {"first": [1]}, "pattern": "SELECT x AS $first FROM A"}, "'$first' is not expected here"),
        ({"for_each": {"first": [1]}, "pattern": "FROM $first"}, "'$first' is not expected here"),
        (
            {"for_each": {"first": [1, 2**62]}, "pattern": "FROM FILTER{x = $first * 2}(A)"},
            "overflow (where first = 4611686018427387904)",
        ),
        ({"for_each": {"first": []}}, "the list is empty"),
    ],
)
def test_mistakes_in_cel(change: dict[str, Any], expected: str) -> None:
    assert expected in mistakes({**ALGEBRA, **change})


def test_the_hash_is_of_the_rows_in_any_order() -> None:
    def plan(*rows: int) -> Any:
        return compile_query({**QUERY, "for_each": {"first": list(rows), "least": [1]}}, schema_of(EVENTS))

    assert plan(1, 2).hash == plan(2, 1).hash != plan(1, 3).hash
    assert plan(1, 2).form == plan(1, 3).form
    assert pickle.loads(pickle.dumps(plan(1, 2))) == plan(1, 2)
    assert "2 members" in explain(plan(1, 2))


def test_an_error_names_the_parameters() -> None:
    query = {**QUERY, "for_each": {"first": [5, 1], "least": [1]}, "limit_per_partition": 2}
    with pytest.raises(TooManyMatchesError, match=r"\(where first = 1, least = 1\)"):
        evaluate(query, EVENTS)


def test_beside_other_plans() -> None:
    """A family, a member of it written out, and another family: each has its own rows."""
    family = compile_query({**QUERY, "for_each": {"first": [1, 2], "least": [1]}}, schema_of(EVENTS))
    one = compile_query({**QUERY, "where": ["a.x = 1", "b.x >= 1"]}, schema_of(EVENTS))
    other = compile_query({**QUERY, "for_each": {"first": [1], "least": [1, 5]}}, schema_of(EVENTS))
    answers = dict(run_plans([family, one, other], EVENTS))
    for number, plan in enumerate((family, one, other)):
        assert shown(answers[number]) == shown(run_plan(plan, EVENTS))
    assert answers[1].num_rows == 2


def test_events_that_some_member_may_bind() -> None:
    family = compile_query({**QUERY, "for_each": {"first": [5], "least": [3, 5]}}, schema_of(EVENTS))
    assert [rows.tolist() for rows in bindable([family], Columns(EVENTS), unique_ids=True)] == [[2, 5]]


def test_members_are_written_out() -> None:
    query = {**QUERY, "name": "pairs", "where": ["a.x = $first", "b.name = $n", "a.name != '$n'"]}
    pattern = load_pattern({**query, "for_each": {"first": [-1, 2], "n": ["it's", None]}})
    assert isinstance(pattern, FamilyPattern)
    members = list(expanded(pattern))
    assert [member["name"] for member in members] == [
        "pairs_minus_1_it_s",
        "pairs_minus_1_null",
        "pairs_2_it_s",
        "pairs_2_null",
    ]
    assert members[0]["where"] == ["a.x = -1", "b.name = 'it''s'", "a.name != '$n'"]
    assert {member["batch"] for member in members} == {"pairs"}
    assert "for_each" not in members[0]
