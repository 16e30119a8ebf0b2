"""The table of functions: a row means the same in every evaluator, and is all that a new function needs."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.support.engines import to_table
from trendlake.cep_core import PatternErrors, evaluate
from trendlake.cep_core.errors import BadEventsError, TextError
from trendlake.cep_core.events.normalise import normalise
from trendlake.cep_core.expressions import columnar, opcodes, scalar
from trendlake.cep_core.expressions.bytecode import Instructions
from trendlake.cep_core.expressions.functions import FUNCTIONS, Function
from trendlake.cep_core.expressions.operands import Words
from trendlake.cep_core.kernels import vm
from trendlake.cep_core.language import syntax as s
from trendlake.pipelines.contracts import row_conditions

WHOLE = st.one_of(st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), -(2**63) + 1]), st.integers(-(2**63), 2**63 - 1))
EXACT = st.integers(-(2**53) + 1, 2**53 - 1)
REAL = st.one_of(st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf, 1e308, 5e-324]), st.floats())
TEXT = st.one_of(st.sampled_from(["", "İ", "straße", "ǅ", "\U00010428", "Σ"]), st.text(max_size=4))
LATIN = st.text(st.characters(max_codepoint=0x24F, exclude_characters="İßŉ"), max_size=4)
"""Letters that are the same in Arrow's version of Unicode and in Python's."""
TIME = st.integers(-(2**55), 2**55)
VALUES: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "int": (WHOLE, pa.int64()),
    "duration": (WHOLE, pa.int64()),
    "double": (REAL, pa.float64()),
    "string": (TEXT, pa.string()),
    "timestamp": (TIME, pa.int64()),
    "date": (TIME, pa.int64()),
    "boolean": (st.booleans(), pa.bool_()),
}
MIXED = "int and double"
CASES = [(name, family) for name, row in FUNCTIONS.items() for family in row.takes or (*VALUES, MIXED)]
OVERFLOW = "overflow"

Row = list[tuple[str, Any]]
"""The arguments of one call: their families and normalised values. Argument k is the attribute `c<k>`."""


@st.composite
def rows(draw: st.DrawFn, name: str, family: str) -> Row:
    """Arguments of `name`; of mixed families only whole numbers that are exact as doubles."""
    row: Row = []
    for _ in range(FUNCTIONS[name].arguments if FUNCTIONS[name].takes else draw(st.integers(1, 3))):
        own = draw(st.sampled_from(["int", "double"])) if family == MIXED else family
        values, kind = VALUES[own]
        if family == MIXED and own == "int":
            values = EXACT
        if name in ("lower", "upper"):
            values = LATIN
        row.append((own, normalise(pa.array([draw(st.none() | values)], kind))[0].as_py()))
    return row


def column(family: str, value: Any) -> Any:
    return pa.array([value], VALUES[family][1])


def of_columns(name: str, row: Row) -> Any:
    arrays = {f"c{k}": column(*argument) for k, argument in enumerate(row)}
    try:
        return columnar.evaluate(call(name, row), lambda read: arrays[read.name], 1)[0].as_py()
    except BadEventsError:
        return OVERFLOW


def of_single_values(name: str, row: Row) -> Any:
    values = {f"c{k}": value for k, (_, value) in enumerate(row)}
    try:
        return scalar.compiled(call(name, row), lambda read: lambda *_: values[read.name])(None, 0, None)
    except BadEventsError:
        return OVERFLOW


class Registers(Instructions):
    """Code that reads each argument from a field of the register."""

    def __init__(self, row: Row) -> None:
        super().__init__(len(row))
        self.families = {f"c{k}": family for k, (family, _) in enumerate(row)}

    def of_register(self, read: s.Attribute) -> bool:
        return True

    def load(self, read: s.Attribute) -> int:
        return list(self.families).index(read.name)

    def attribute_family(self, read: s.Attribute) -> str:
        return self.families[read.name]


def of_the_machine(name: str, row: Row) -> Any:
    registers, node = Registers(row), call(name, row)
    slot, family = registers.emit(node), registers.family(node)
    words = Words(registers, lambda leaf: pytest.fail(str(leaf)), 0, [v for f, v in row if f == "string"])
    values, reals, null, cases = words.machine
    for k, (argument_family, value) in enumerate(row):
        values[k], null[k] = words.word(value, argument_family), value is None
    code = np.array(registers.code, np.int64).reshape(-1, 4)
    if not vm.execute(code, 0, len(code), values, reals, null, cases):
        return OVERFLOW
    if null[slot]:
        return None
    value = reals[slot] if family == "double" else values[slot]
    return words.strings[value] if family == "string" else value


def call(name: str, row: Row) -> s.Call:
    return s.Call(name, tuple(s.Attribute("", f"c{k}") for k in range(len(row))))


@pytest.mark.random
@pytest.mark.parametrize(("name", "family"), CASES, ids=str)
@examples(60)
@given(data=st.data())
def test_all_evaluators_agree(name: str, family: str, data: st.DataObject) -> None:
    """Of every family that the function takes: NULL, NaN, -0.0, infinities, the ends of 64 bits, letters of several
    cases."""
    row = data.draw(rows(name, family))
    expected = of_columns(name, row)
    assert of_single_values(name, row) == expected
    assert of_the_machine(name, row) == expected


QUERIES = {
    "a condition on one event": ("trends", {"pattern": "A a+", "where": ["ABS(a.x) > 2"]}),
    "a condition on two events": ("trends", {"pattern": "A a+", "where": ["ABS(a.x - NEXT(a).x) > 2"]}),
    "a condition on a match": ("matches", {"pattern": "SEQ(A a, A b)", "where": ["ABS(a.x - b.x) > 2"]}),
}
EVENTS: list[dict[str, Any]] = [
    {"id": f"e{at}", "time": at, "type": "A", "x": x} for at, x in enumerate((3, -5, 1, None, 9, -9, 2))
]
AUTOMATON = {
    "kind": "automaton",
    "source": "any",
    "register": {"n": {"type": "int", "init": 0}},
    "start": "p",
    "final": ["q"],
    "arcs": [
        {"from": "p", "to": "q", "set": {"n": "e.x"}},
        {"from": "q", "to": "q", "when": "ABS(n) > 2", "set": {"n": "ABS(n - e.x)"}},
    ],
    "within": "1 hour",
}


def queries(function: str) -> list[dict[str, Any]]:
    """A query for each evaluator, with `function` in the place of ABS."""
    texts = []
    for kind, body in QUERIES.values():
        result = {"return": {"n": "COUNT(*)"}} if kind == "trends" else {}
        texts.append({"kind": kind, "source": "any", "within": "1 hour", **body, **result})
    return [_renamed(query, function) for query in (*texts, AUTOMATON)]


def _renamed(value: Any, function: str) -> Any:
    if isinstance(value, dict):
        return {name: _renamed(item, function) for name, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, function) for item in value]
    return value.replace("ABS(", f"{function}(") if isinstance(value, str) else value


NEGATED = Function(
    "the number with the other sign",
    pc.negate_checked,
    operator.neg,
    opcodes.NEGATE,
    takes=("int", "double", "duration"),
    real_operation=opcodes.NEGATE_F,
)


def test_a_new_function_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Types, columns, single values, the machine and pairs of events: all know the function by its row alone."""
    events = to_table(EVENTS)
    with pytest.raises(PatternErrors, match="there is no function 'negated'"):
        evaluate(queries("NEGATED")[0], events)
    monkeypatch.setitem(FUNCTIONS, "negated", NEGATED)
    for operators, new in zip(queries("-"), queries("NEGATED"), strict=True):
        expected = evaluate(operators, events)
        assert expected.num_rows
        assert evaluate(new, events) == expected
    for family, value, negated in (("int", -3, 3), ("double", 2.5, -2.5), ("int", -(2**63), OVERFLOW)):
        row = [(family, value)]
        for computed in (of_columns, of_single_values, of_the_machine):
            assert computed("negated", row) == negated
    with pytest.raises(TextError, match="there is no function 'negated'"):
        row_conditions.parse_row_condition("negated(x) > 2")


def test_pairs_take_every_function() -> None:
    """Also those of texts: the ids of a and of NEXT(a), put together so that both events are read."""
    query = {"kind": "trends", "source": "any", "within": "1 hour", "pattern": "A a+", "return": {"n": "COUNT(*)"}}
    plain = evaluate(query, to_table(EVENTS))
    where = "LOWER(COALESCE(a.event_id, NEXT(a).event_id))"
    assert evaluate(query | {"where": [f"{where} > ''"]}, to_table(EVENTS)) == plain
    none = evaluate(query | {"where": [f"{where} < ''"]}, to_table(EVENTS))
    assert none["n"].to_pylist() != plain["n"].to_pylist()


def test_conditions_of_contracts_know_every_function() -> None:
    """And one that patterns do not have."""
    assert {*FUNCTIONS, "log10"} == row_conditions.FUNCTIONS
