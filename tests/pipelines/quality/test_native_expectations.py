"""Great Expectations judges a rule on the column itself only where it finds what the quarantine finds: odd values of
every type, on Spark and brought here."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from pipelines.contracts.rules import Rule
from pipelines.quality.great_expectations import HERE, ON_SPARK, WHOLE, judge, judge_here, native
from pipelines.quality.quarantine import is_good
from tests.pipelines.quality.test_random_rules import COLUMNS, table

pytestmark = pytest.mark.spark

TYPES = {name: kind for name, (kind, _, _) in COLUMNS.items()}
VALUES: dict[str, list[list[Any]]] = {
    "string": [["a"], ["", "straße", "x\x00y"]],
    "double": [[0.0, 1.5]],
    **{kind: [[0], [1, 2, 100]] for kind in WHOLE},
}
BOUNDS: list[tuple[Any, Any]] = [(0, None), (None, 3), (-1, 100)]


def rules() -> list[Rule]:
    """Rules of every sort that may be judged on a column."""
    every = []
    for name, kind in TYPES.items():
        every.append(Rule("", "not_null", (name,)))
        every += [Rule("", "in_set", (name,), values=tuple(values)) for values in VALUES.get(kind, [])]
        if kind in WHOLE or kind == "double":
            for low, high in [*BOUNDS, *([(0.1, 1.5)] if kind == "double" else [])]:
                every.append(Rule("", "range", (name,), low=low, high=high))
                every.append(Rule("", "range", (name,), low=low, high=high, low_strict=True, high_strict=True))
        if kind == "string":
            every += [Rule("", "length", (name,), low=low, high=high) for low, high in ((1, None), (None, 2), (1, 1))]
            every += [
                Rule("", "pattern", (name,), text=text) for text in ("^a$", r"\w", r"\s$", "(?i)A", r"\p{L}", ".")
            ]
    return [replace(rule, name=f"rule {at}") for at, rule in enumerate(every)]


PATTERNS = ("^a$", r"\w", r"\s$", "(?i)A", r"\p{L}", ".")

LATIN_1 = [text.encode("latin-1") for text in ("é", "è", "été", "ètè", "naïve", "naive")] + [b"a", "é".encode()]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(table(random.Random("native"))).coalesce(1).persist()


def test_as_many_rows_break_a_rule(frame: DataFrame) -> None:
    every = rules()
    counts = frame.agg(*[sf.count_if(~is_good(rule)).alias(rule.name) for rule in every]).collect()[0]
    verdicts_by_place = {"here": judge_here(frame, every, "odd")[0], "on Spark": judge(frame, every, "odd")}
    for where, verdicts in verdicts_by_place.items():
        for rule, item in zip(every, verdicts, strict=True):
            assert item.data["broken"] == counts[rule.name], (where, rule)


@pytest.mark.parametrize(("texts", "repeated"), [(LATIN_1, 0), ([*LATIN_1, LATIN_1[0]], 2)], ids=["no key", "a key"])
def test_texts_that_are_no_utf_8_are_judged_by_their_bytes(
    spark: SparkSession, texts: list[bytes], repeated: int
) -> None:
    """Two texts that read the same with U+FFFD for what is no UTF-8 are not one key, and have Spark's length."""
    rows = pa.table({"raw": pa.array(texts, pa.binary()), "n": list(range(len(texts)))})
    frame = spark.createDataFrame(rows).select(sf.col("raw").cast("string").alias("x"), "n").persist()
    every = [Rule("key", "unique", ("x",)), Rule("both", "unique", ("x", "n")), Rule("there", "not_null", ("x",)),
             Rule("set", "in_set", ("x",), values=("\ufffd", "a"))]  # fmt: skip
    every += [Rule(f"{n} at least", "length", ("x",), low=n) for n in (2, 3, 4)]
    lengths = [row[0] for row in frame.select(sf.length("x")).collect()]
    broken = [repeated, 0, 0, len(texts) - 1, *(sum(length < n for length in lengths) for n in (2, 3, 4))]
    for verdicts in (judge_here(frame, every, "bytes")[0], judge(frame, every, "bytes")):
        assert [item.data["broken"] for item in verdicts] == broken
    assert [rule.kind for rule in every if not native(rule, {"x": "string"}, HERE)] == []


@pytest.mark.parametrize(("where", "kinds"), [(HERE, HERE), (ON_SPARK, ON_SPARK)], ids=["here", "on Spark"])
def test_the_column_itself_is_judged(where: Any, kinds: Any) -> None:
    """Not null of every type; sets, bounds and lengths of whole numbers and texts."""
    judged = [rule for rule in rules() if native(rule, TYPES, where)]
    assert {rule.kind for rule in judged} == set(kinds) - {"unique"}
    assert {TYPES[rule.columns[0]] for rule in judged if rule.kind == "not_null"} == set(TYPES.values())
    assert {TYPES[rule.columns[0]] for rule in judged if rule.kind == "in_set"} == {"string", *WHOLE}
    assert not native(Rule("", "in_set", ("x",), values=(0.0,)), TYPES, where)
    assert not native(Rule("", "range", ("n",), low=0.5), TYPES, where)
