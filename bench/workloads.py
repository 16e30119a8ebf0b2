"""Many patterns over RUMOR's stream: templates whose constants and windows are drawn by a seed (Hong 2009, 5.5).

Constants are of 0 to 999, windows of 1 to 1,000 seconds, evenly or by Zipf's law with the exponent 1.5; of windows the
long ones are the likelier (table 5.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from trendlake.pipelines.generate.rumor import VALUES, rumor

Law = Literal["zipf", "uniform"]
EXPONENT = 1.5
DAY = {"within": "1 day", "return": {"n": "COUNT(*)"}}

TEMPLATES: Mapping[str, Mapping[str, Any]] = {
    "W1": {
        "kind": "matches",
        "pattern": "SEQ(S s, T t)",
        "where": ["s.a0 = {c}", "t.a0 = {d}"],
        "within": "{w} seconds",
    },
    "W2": {"kind": "matches", "pattern": "SEQ(S s, T t)", "where": ["[a0]"], "within": "{w} seconds"},
    "W3": {
        "pattern": "SEQ(S s, T t+)",
        "where": ["[a0]", "s.a1 < NEXT(t).a1", "t.a1 < NEXT(t).a1", "s.a2 < {c}"],
        **DAY,
    },
    "W4": {
        "pattern": "S s+",
        "where": ["s.a0 = {c}", "s.a1 > NEXT(s).a1"],
        "within": "1 day",
        "return": {"n": "COUNT(*)", "highest": "MAX(s.a2)", "mean": "AVG(s.a3)"},
    },
    "W5": {"pattern": "S s+", "where": ["[a9]", "s.a1 > NEXT(s).a1", "s.a0 > {c}"], **DAY},
    "W6": {"pattern": "S s+", "where": ["[a9]", "s.{a} {op} NEXT(s).{b}"], **DAY},
}
"""The templates of sharing many patterns: selective ones (W1, W4), one form over all events (W2, W3), slices that hold
one another (W5), and conditions between events that differ (W6)."""


def stream(events: int = 1_000_000, seed: int = 1) -> pa.Table:
    """RUMOR's stream, an event a second."""
    return rumor(events, 1.0, seed, 0)


def drawn(count: int, law: Law, chance: np.random.Generator) -> list[int]:
    """`count` numbers of 1 to 1,000; by Zipf the small ones are the likelier."""
    numbers = np.arange(1, VALUES + 1)
    weights = numbers**-EXPONENT if law == "zipf" else np.ones(VALUES)
    return [int(number) for number in chance.choice(numbers, count, p=weights / weights.sum())]


def workload(template: str, count: int, law: Law = "uniform", seed: int = 1) -> list[dict[str, Any]]:
    """`count` patterns of a template; those of W6 all differ."""
    chance = np.random.default_rng(seed)
    values = zip(*(drawn(count, law, chance) for _ in range(3)), strict=True)
    neighbours = [(f"a{i}", op, f"a{j}") for op in ("<", "<=", ">", ">=") for i in range(10) for j in range(10)]
    order = chance.permutation(len(neighbours))
    queries = []
    for number, (c, d, w) in enumerate(values):
        a, op, b = neighbours[order[number % len(neighbours)]]
        words = {"c": c - 1, "d": d - 1, "w": VALUES + 1 - w, "a": a, "op": op, "b": b}
        query = dict(TEMPLATES[template])
        query["where"] = [text.format(**words) for text in query["where"]]
        query["within"] = query["within"].format(**words)
        queries.append(query)
    return queries
