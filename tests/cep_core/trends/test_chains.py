"""`S+` with ordered conditions has kernels of its own, in tiers F and E: against the kernel for all conditions."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.random.profile import examples
from tests.support.engines import differences, from_table
from trendlake.cep_core import evaluate
from trendlake.cep_core.trends.run import kernel_pass

pytestmark = pytest.mark.random

WHERE = (
    ["S.x > NEXT(S).x"],
    ["S.x <= NEXT(S).x"],
    ["S.x >= NEXT(S).y"],
    ["[g]", "S.x < NEXT(S).x"],
    ["S.g = NEXT(S).g", "S.x >= NEXT(S).x"],
    ["S.g = NEXT(S).g"],
)


@st.composite
def streams(draw: st.DrawFn) -> pa.Table:
    """Up to 3,000 events without ties, x with a few values or many, near its order or not: counts up to 2^3000."""
    n = draw(st.sampled_from([1, 2, 15, 16, 17, 255, 256, 257, 900, 3000]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.integers(0, draw(st.sampled_from([2, 16, 17, 300, 10**6])), n).astype(np.float64)
    if draw(st.booleans()):
        x = np.sort(x)[:: draw(st.sampled_from([1, -1]))].copy()
        out = rng.random(n) < draw(st.sampled_from([0.0, 0.1]))
        x[out] = rng.permutation(x[out])
    y = rng.permutation(x)
    y[rng.random(n) < 0.05] = np.inf
    x[rng.random(n) < draw(st.sampled_from([0.0, 0.1]))] = np.nan
    times = np.arange(n) * 1_000_000
    return pa.table(
        {
            "event_time": pa.array(times, pa.timestamp("us", "UTC")),
            "event_type": ["S"] * n,
            "x": x,
            "y": y,
            "g": rng.integers(0, 3, n),
        }
    )


@examples(120)
@given(streams(), st.sampled_from(WHERE), st.sampled_from(["1 day", "10 minutes"]))
def test_chains(events: pa.Table, where: list[str], within: str) -> None:
    query = {"pattern": "S+", "where": where, "return": {"n": "COUNT(*)"}, "within": within}
    ours = from_table(evaluate(query, events))
    with patch.object(kernel_pass, "applies", lambda *_: False):
        theirs = from_table(evaluate(query, events))
    assert differences(theirs, ours) == []
