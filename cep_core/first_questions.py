"""The questions by which the kernels that first patterns need are compiled before anybody waits for them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from trendlake.cep_core.frames.evaluate import evaluate

EVENTS = 8
"""Of each type: enough for every kernel to have something to do."""
MEASURES = {
    "trends": "COUNT(*)",
    "least": "MIN(A.price)",
    "most": "MAX(A.price)",
    "total": "SUM(A.price)",
    "mean": "AVG(A.price)",
}
QUESTIONS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "trends": (
        {"pattern": "A+", "return": {"trends": "COUNT(*)"}},
        {"pattern": "A+", "where": ["[place]", "A.price > NEXT(A).price"], "return": {"trends": "COUNT(*)"}},
        {"pattern": "SEQ(A+, NOT C, B)", "where": ["[place]", "A.price < NEXT(A).price"], "return": MEASURES},
        {"pattern": "A+", "where": ["A.price > NEXT(A).price"], "return": MEASURES, "slide": "10 seconds"},
        {"pattern": "A+", "select": "contiguous", "return": {**MEASURES, "length": "MAX(LENGTH(*))"}},
    ),
    "matches": (
        {"pattern": "SEQ(A a+, B b)", "where": ["[place]", "a[i].price > a[i-1].price"], "return": {"n": "COUNT(a)"}},
        {"pattern": "SEQ(A a, NOT(C c), B b)", "select": "skip_till_any_match", "return": {"d": "b.price - a.price"}},
        {"pattern": "SEQ(A a+, B b)", "output": "non_overlap", "return": {"mean": "avg(a.price)"}},
    ),
    "automaton": (
        {
            "start": "low",
            "final": ["high"],
            "register": {"top": {"type": "double", "init": 0}},
            "arcs": [
                {"from": "low", "to": "low", "when": "e.price < 3"},
                {"from": "low", "to": "high", "when": "e.price > 3", "set": {"top": "e.price"}},
            ],
        },
    ),
    "algebra": (
        {"pattern": "FROM FILTER{price > 1}(A) NEXT{$2.price > $1.price} B", "partition_by": ["place"]},
        {"pattern": "FROM A FOLD{, $2.price < $.price, } A"},
    ),
    "xml_join": (
        {
            "left": {"post": "//post", "author": "$post/author"},
            "right": {"reply": "//post", "who": "$reply/author"},
            "operator": "followed_by",
            "where": ["$author = $who"],
        },
    ),
    "match_recognize": (
        {
            "pattern": "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY place ORDER BY event_time "
            "MEASURES FIRST(event_time) AS begins, COUNT(*) AS n PATTERN (S D+ U+) "
            "DEFINE D AS price < PREV(price), U AS price > PREV(price))"
        },
        {
            "pattern": "SELECT * FROM events MATCH_RECOGNIZE (PARTITION BY place ORDER BY event_time "
            "MEASURES SUM(A.price) AS total, LAST(B.price) AS last ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW "
            "PATTERN (A+ B) DEFINE A AS SUM(A.price) < 9, B AS price > AVG(A.price))"
        },
    ),
}


def compile_first_kernels(kinds: Collection[str] = tuple(QUESTIONS)) -> Iterator[str]:
    """Asks the questions of one kind after another, and names the kind once it is done."""
    for kind in kinds:
        table = _documents() if kind == "xml_join" else _events()
        for query in QUESTIONS[kind]:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is rarely meant
                evaluate({"kind": kind, "within": "1 minute", **query}, table)
        yield kind


def _documents() -> pa.Table:
    texts = [f"<post><author>a{k % 3}</author><title>t{k % 2}</title></post>" for k in range(EVENTS)]
    times = pa.array([k * 1_000_000 for k in range(EVENTS)], pa.timestamp("us", tz="UTC"))
    return pa.table({"event_id": [f"d{k}" for k in range(EVENTS)], "event_time": times, "document": texts})


def _events() -> pa.Table:
    rows = range(4 * EVENTS)
    return pa.table(
        {
            "event_id": [f"e{k}" for k in rows],
            "event_time": pa.array([k * 1_000_000 for k in rows], pa.timestamp("us", tz="UTC")),
            "event_type": [("A", "A", "B", "C")[k % 4] for k in rows],
            "place": ["xy"[k % 2] for k in rows],
            "price": [float(k * 7 % 5) for k in rows],
        }
    )
