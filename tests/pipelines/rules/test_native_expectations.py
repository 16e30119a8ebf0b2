"""Great Expectations judges a rule on the column itself only where it finds what the quarantine finds: odd values of
every type."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.pipelines.rules.test_random_rules import COLUMNS, table
from trendlake.pipelines.contracts.rules import Rule
from trendlake.pipelines.rules.great_expectations import NATIVE, WHOLE, judge, native
from trendlake.pipelines.rules.keep import keep

TYPES = {name: kind for name, (_, kind, _) in COLUMNS.items()}
VALUES: dict[str, list[list[Any]]] = {
    "string": [["a"], ["", "straße", "x\x00y"]],
    "double": [[0.0, 1.5]],
    **{str(kind): [[0], [1, 2, 100]] for kind in WHOLE},
}
BOUNDS: list[tuple[Any, Any]] = [(0, None), (None, 3), (-1, 100)]


def rules() -> list[Rule]:
    """Rules of every sort that may be judged on a column."""
    every = []
    for name, kind in TYPES.items():
        every.append(Rule("", "not_null", (name,)))
        every += [Rule("", "in_set", (name,), values=tuple(values)) for values in VALUES.get(str(kind), [])]
        if kind in WHOLE or kind == pa.float64():
            for low, high in [*BOUNDS, *([(0.1, 1.5)] if kind == pa.float64() else [])]:
                every.append(Rule("", "range", (name,), low=low, high=high))
                every.append(Rule("", "range", (name,), low=low, high=high, low_strict=True, high_strict=True))
        if kind == pa.string():
            every += [Rule("", "length", (name,), low=low, high=high) for low, high in ((1, None), (None, 2), (1, 1))]
            every += [Rule("", "pattern", (name,), text=text) for text in ("^a$", r"\w", r"\s$", ".")]
    return [replace(rule, name=f"rule {at}") for at, rule in enumerate(every)]


LATIN_1 = [text.encode("latin-1") for text in ("é", "è", "été", "ètè", "naïve", "naive")] + [b"a", "é".encode()]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return table(random.Random("native"))


def test_as_many_rows_break_a_rule(rows: pa.Table) -> None:
    every = rules()
    for rule, item in zip(every, judge(rows, every, "odd"), strict=True):
        assert item.data["broken"] == np.count_nonzero(~keep(rule, rows)), rule


@pytest.mark.parametrize(("texts", "repeated"), [(LATIN_1, 0), ([*LATIN_1, LATIN_1[0]], 2)], ids=["no key", "a key"])
def test_texts_that_are_no_utf_8_are_judged_by_their_bytes(texts: list[bytes], repeated: int) -> None:
    """Two texts that read the same with U+FFFD for what is no UTF-8 are not one key; such a part is a character."""
    raw = pa.array(texts, pa.binary())
    text = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    table_of_texts = pa.table({"x": text, "n": list(range(len(texts)))})
    every = [
        Rule("key", "unique", ("x",)),
        Rule("both", "unique", ("x", "n")),
        Rule("there", "not_null", ("x",)),
        Rule("set", "in_set", ("x",), values=("\ufffd", "a")),
    ]
    every += [Rule(f"{n} at least", "length", ("x",), low=n) for n in (2, 3, 4)]
    lengths = [len(one.decode("utf-8", "replace")) for one in texts]
    broken = [repeated, 0, 0, len(texts) - 1, *(sum(length < n for length in lengths) for n in (2, 3, 4))]
    assert [item.data["broken"] for item in judge(table_of_texts, every, "bytes")] == broken
    assert [rule.kind for rule in every if not native(rule, {"x": pa.string(), "n": pa.int64()}, NATIVE)] == []


def test_the_column_itself_is_judged() -> None:
    """Not null of every type; sets, bounds and lengths of whole numbers and texts."""
    judged = [rule for rule in rules() if native(rule, TYPES, NATIVE)]
    assert {rule.kind for rule in judged} == set(NATIVE) - {"unique"}
    assert {TYPES[rule.columns[0]] for rule in judged if rule.kind == "not_null"} == set(TYPES.values())
    assert {TYPES[rule.columns[0]] for rule in judged if rule.kind == "in_set"} == {pa.string(), *WHOLE}
    assert not native(Rule("", "in_set", ("x",), values=(0.0,)), TYPES, NATIVE)
    assert not native(Rule("", "range", ("n",), low=0.5), TYPES, NATIVE)
