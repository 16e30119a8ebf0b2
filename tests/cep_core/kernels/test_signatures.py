"""The kernels that take longest to compile are compiled once, whatever memory the events lie in.

numba compiles a function for each combination of types that it is called with, and an array that may not be written is
of another type than one that may: Arrow's memory may not, what numpy has sorted may.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.engines import to_table
from trendlake.cep_core import evaluate
from trendlake.cep_core.automaton.kernels import active_runs
from trendlake.cep_core.match_recognize.kernels import forest, local, search
from trendlake.cep_core.matches.kernels import step

ROWS = [{"id": f"e{n}", "type": "AB"[n % 2], "time": n, "n": n, "g": "u"} for n in range(6)]
"""In order of time."""
WITHIN = {"within": "10 seconds"}
AUTOMATON = {
    "kind": "automaton",
    "start": "q0",
    "final": ["q1"],
    "arcs": [{"from": "q0", "to": "q1", "when": "e.n >= 0"}],
    **WITHIN,
}


def row_pattern(rest: str) -> Mapping[str, Any]:
    text = f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY event_time MEASURES SUM(A.n) AS total {rest})"
    return {"kind": "match_recognize", "pattern": text}


MATCHES = {"kind": "matches", "pattern": "SEQ(A a, B b)", "where": ["a.n < b.n"], **WITHIN}
KERNELS = {
    "automaton": (active_runs.advance, AUTOMATON),
    "matches": (step.advance, MATCHES),
    "row patterns": (local.matches_of, row_pattern("PATTERN (A+) DEFINE A AS n > 0")),
    "row patterns, sums": (search.matches_of, row_pattern("PATTERN (A+) DEFINE A AS SUM(n) > 0")),
    "row patterns, forest": (
        forest.matches_from_all_rows,
        row_pattern("AFTER MATCH SKIP TO NEXT ROW PATTERN (A+) DEFINE A AS n > 0"),
    ),
}


@pytest.mark.parametrize(("kernel", "query"), KERNELS.values(), ids=KERNELS)
def test_events_in_order_and_not_in_order_use_one_compilation(kernel: Any, query: Mapping[str, Any]) -> None:
    in_order = evaluate(query, to_table(ROWS))
    compiled = list(kernel.signatures)  # other tests of this process may have called it otherwise
    assert in_order.num_rows > 0
    assert evaluate(query, to_table(ROWS[::-1])).equals(in_order)
    assert kernel.signatures == compiled
