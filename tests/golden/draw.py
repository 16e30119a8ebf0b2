"""Draws the golden corpus: `python -m tests.golden.draw trends`. Needed once: the files are checked in.

The questions come from the generators of the property tests. A second part draws keys of the types that those
generators leave out: doubles with NaN and -0.0, floats, decimals, dates, times and booleans.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from hypothesis import given, seed, settings

from tests.golden.corpus import FOLDER, KINDS, TYPES, Entry, answer, in_microseconds
from tests.random import algebra, automata, matches, row_patterns
from tests.random.automata import EPOCH
from tests.random.profile import OPEN_ENDED
from tests.random.strategies import COLUMNS, long_questions, questions

CASES = 300
"""Drawn queries of a kind that give rows, beside `KEYS` of each key type."""
KEYS = 12

KEY_CELLS: Mapping[str, tuple[Any, ...]] = {
    "double": (0.0, -0.0, float("nan"), 1.5, None),
    "float": (0.0, -0.0, float("nan"), 0.10000000149011612, None),
    "decimal(20,0)": ("9007199254740992", "9007199254740993", "-1", None),
    "decimal(10,2)": ("0.10", "0.30", "-0.10", None),
    "date": ("1969-12-31", "2024-02-29", "1500-01-01", None),
    "timestamp": (0, -1, 1_700_000_000_000_000, None),
    "boolean": (True, False, None),
    "string": ("", "NA", "null", "straße", "STRASSE", None),
    "int": (2**53, 2**53 + 1, -1, None),
}

_ANY, _NEXT = {"select": "skip_till_any_match"}, {"select": "skip_till_next_match"}
_GROUPED = {"group_by": ["key"]}

KEYED: Mapping[str, tuple[dict[str, Any], ...]] = {
    "trends": (
        {"pattern": "A+", "return": {"n": "COUNT(*)", "s": "SUM(A.y)", "m": "AVG(A.y)"}, **_GROUPED},
        {"pattern": "SEQ(A, B+)", "where": ["[key]"], "return": {"n": "COUNT(*)", "s": "SUM(B.y)"}},
        {"pattern": "SEQ(A+, B)", "where": ["[key]"], "return": {"n": "COUNT(*)"}, **_GROUPED},
        {"pattern": "SEQ(A, B+)", "where": ["[A.key, B.key]"], "return": {"n": "COUNT(*)"}},
    ),
    "matches": (
        {"pattern": "SEQ(A a+, B b)", "where": ["[key]"], "return": {"s": "SUM(a.y)"}, **_ANY},
        {"pattern": "SEQ(A a, B b+)", "where": ["[a.key, b.key]"], "return": {"n": "COUNT(b)"}, **_NEXT},
        {"pattern": "SEQ(A a, B b)", "where": ["a.key = b.key"], "return": {}, **_ANY},
    ),
    "automaton": (
        {
            "start": "q0",
            "final": ["q2"],
            "partition_by": ["key"],
            "within": "20 seconds",
            "register": {"n": {"type": "int", "init": 0}},
            "arcs": [
                {"from": "q0", "to": "q1", "set": {"n": "1"}},
                {"from": "q1", "to": "q1", "set": {"n": "n + 1"}},
                {"from": "q1", "to": "q2", "when": "e.y > 0"},
            ],
        },
    ),
    "match_recognize": (
        {
            "pattern": "MATCH_RECOGNIZE (PARTITION BY key MEASURES SUM(y) AS s, AVG(B.y) AS m, LAST(key) AS k "
            "PATTERN (A+ B?) DEFINE A AS y > 0)"
        },
        {
            "pattern": "MATCH_RECOGNIZE (MEASURES ARRAY_AGG(key) AS keys, MAX_BY(key, y) AS top, "
            "COUNT(DISTINCT key) AS n ALL ROWS PER MATCH PATTERN (A+) "
            "DEFINE A AS key = FIRST(key) OR PREV(key) IS NULL)"
        },
        {
            "pattern": "SELECT *, key IS NULL AS none FROM t MATCH_RECOGNIZE (ORDER BY event_time DESC, key MEASURES "
            "FIRST(key) AS key PATTERN (A{1,3}))"
        },
    ),
    "algebra": (
        {"pattern": "SELECT event_id_1 AS a, event_id AS b FROM A NEXT{$2.y > $1.y} EVENTS", "partition_by": ["key"]},
        {"pattern": "SELECT event_id_1 AS a, event_id AS b, key FROM A NEXT{$1.key = $2.key} EVENTS"},
        {
            "pattern": "SELECT event_id, n, s FROM (SELECT *, 1 AS n, y AS s FROM A) "
            "FOLD{$2.key = $.key, $.n < 4, $.n + 1 AS n, coalesce($.s, 0.0) + coalesce($2.y, 0.0) AS s} A"
        },
        {
            "pattern": "SELECT COUNT(*) AS n, SUM(y) AS s, AVG(y) AS m, MAX_BY(event_id, y) AS who FROM EVENTS",
            "partition_by": ["key"],
        },
    ),
}
"""Queries over a column `key` of any type and a double `y`."""


def _drawn(kind: str) -> Iterator[Entry]:
    """Distinct questions of the generators, from fixed seeds, without end."""
    strategies: Mapping[str, tuple[Any, ...]] = {
        "trends": (questions(), questions(), long_questions()),
        "matches": (matches.matches_questions(),),
        "automaton": (automata.cases(),),
        "algebra": (algebra.cases(),),
        "match_recognize": (row_patterns.cases(),),
    }
    seen: set[str] = set()
    for number in range(1_000):
        batch: list[Any] = []
        _collect(strategies[kind][number % len(strategies[kind])], number, batch.append)
        for question in batch:
            if isinstance(question, automata.Case):
                sequence = "sequence" if question.rows and "sequence" in question.rows[0] else None
                columns = {name: type_ for name, type_ in automata.COLUMNS.items() if name != "sequence" or sequence}
                rows = [question.rows[i] for i in question.order]
                entry = Entry("", question.query, rows, columns, question.watermark, sequence)
            elif isinstance(question, algebra.Case):
                rows = in_microseconds([question.rows[i] for i in question.order])
                entry = Entry("", question.query, rows, algebra.COLUMNS)
            elif isinstance(question, row_patterns.Case):
                entry = Entry("", question.query, question.rows, row_patterns.TYPES)
            else:
                entry = Entry("", question[0], question[1], COLUMNS)
            text = json.dumps(_record(entry), sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield entry


def _collect(strategy: Any, number: int, collect: Callable[[Any], object]) -> None:
    @seed(number)
    @settings(OPEN_ENDED, max_examples=60)
    @given(strategy)
    def gather(question: Any) -> None:
        collect(question)

    gather()


def _keyed(kind: str) -> Iterator[Entry]:
    """Queries that group by, or ask to agree on, a column of each type."""
    chance = random.Random(18)
    for type_name, cells in KEY_CELLS.items():
        for number in range(KEYS):
            rows = [
                {
                    "id": f"e{place}",
                    "type": chance.choice("AAB"),
                    "time": place // 2,
                    "key": chance.choice(cells),
                    "y": chance.choice((0.1, 0.2, 0.3, 1e17, -1e17, None)),
                }
                for place in range(chance.randint(4, 14))
            ]
            chance.shuffle(rows)
            query = {"kind": kind, **KEYED[kind][number % len(KEYED[kind])]}
            if kind != "automaton":
                query["within"] = "60 seconds" if number % 2 else "8 seconds"
            if kind == "trends" and number % 3 == 0:
                query["slide"] = "4 seconds"
            yield Entry(f"key {type_name} {number}", query, rows, {"key": TYPES[type_name], "y": TYPES["double"]})


QUANTIFIED = (
    "SEQ(C c, A a{2}, B b)",
    "SEQ(A{1,3}, B)",
    "A{2,}",
    "SEQ(A a, B b){2}",
    "(A OR B){2,3}",
    "SEQ(A{2}, C?, B)",
)


def _quantified() -> Iterator[Entry]:
    """`P{n,m}` under every selection: the generators of the property tests seldom draw both."""
    chance = random.Random(19)
    for number in range(60):
        selections = ("skip_till_next_match", "skip_till_next_match", "contiguous", "partition_contiguous")
        query = {
            "kind": "trends",
            "pattern": QUANTIFIED[number % len(QUANTIFIED)],
            "select": selections[number // len(QUANTIFIED) % len(selections)],
            "return": {"n": "COUNT(*)", "events": "COUNT(A)" if "a{" not in QUANTIFIED[number % 6] else "COUNT(a)"},
            "within": "60 seconds",
        }
        if query["pattern"] == "SEQ(A a, B b){2}":
            query["return"] = {"n": "COUNT(*)", "events": "COUNT(a)"}
        if number % 4 == 1:
            query["where"] = ["[x]"]
        kinds = "CAAABB" if "C" in str(query["pattern"]) else "AAB"
        rows = [
            {"id": f"e{place}", "type": chance.choice(kinds), "time": place, "x": chance.choice((1, 1, 1, 2))}
            for place in range(chance.randint(5, 12))
        ]
        yield Entry(f"quantified {number}", query, rows, {"x": TYPES["int"]})


def _record(entry: Entry) -> dict[str, Any]:
    names = {type_: name for name, type_ in TYPES.items()}
    columns = {name: names[type_] for name, type_ in (entry.columns or {}).items()}
    return {
        "name": entry.name,
        "query": entry.query,
        "columns": columns,
        "watermark": entry.watermark,
        "sequence": entry.sequence,
        "rows": [[_plain(row.get(name)) for name in ("id", "type", "time", *columns)] for row in entry.rows],
    }


def _plain(cell: Any) -> Any:
    return round((cell - EPOCH).total_seconds() * 1_000_000) if isinstance(cell, datetime) else cell


def main() -> None:
    """Write `{kind}.jsonl`, unless it is there: what is drawn anew is another corpus."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("kind", choices=KINDS)
    kind = arguments.parse_args().kind
    path = FOLDER / f"{kind}.jsonl"
    if path.exists():
        raise SystemExit(f"{path} is there: delete it first, or append new cases by hand")
    chosen: list[Entry] = []
    for entry in _drawn(kind):
        text = answer(entry)
        if "\n" not in text and (text.startswith("refused") or len(chosen) % 10):
            continue  # one in ten may give no rows
        chosen.append(
            Entry(f"drawn {len(chosen)}", entry.query, entry.rows, entry.columns, entry.watermark, entry.sequence)
        )
        if len(chosen) == CASES:
            break
    lines = [json.dumps(_record(entry), separators=(",", ":"), ensure_ascii=False) for entry in chosen]
    lines += [json.dumps(_record(entry), separators=(",", ":"), ensure_ascii=False) for entry in _keyed(kind)]
    if kind == "trends":
        lines += [json.dumps(_record(entry), separators=(",", ":"), ensure_ascii=False) for entry in _quantified()]
    path.write_text("\n".join(lines) + "\n")
    print(f"{path}: {len(lines)} cases")


if __name__ == "__main__":
    main()
