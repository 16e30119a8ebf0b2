"""An open-ended search for a batch of plans that gives together what a plan of it does not give alone."""

from __future__ import annotations

import random
import time
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cep_core.sharing import batches as batches_of_forms
from cep_core.sharing import interest, lanes
from tests.random.batches import Batch, alone, batches, together

CHUNK = 50
"""Batches that are drawn from one seed."""
ORDERS = 5
"""Of each batch so many choices of its plans, in an order of their own."""


def search(seconds: float, first: int) -> int:
    """Batches from the seed `first` on, until the time is over or one differs; the exit status. Small tables are
    indexed and batched as large ones are."""
    interest.FEW = interest.FEW_SORTED = 1
    interest.MOST = 9.0
    batches_of_forms.FULL, lanes.LEAST = 40, 2
    until, number, compared = time.monotonic() + seconds, first, [0, 0]

    while time.monotonic() < until:
        number += 1
        try:
            _chunk(number, compared, until)
        except AssertionError as error:
            print(f"# seed {number}\n{error}")
            return 1
    print(f"# {compared[0]:,} batches, {compared[1]:,} plans, from seed {first + 1} to {number}: together as alone")
    return 0


def _chunk(number: int, compared: list[int], until: float) -> None:
    @seed(number)
    @settings(max_examples=CHUNK, phases=[Phase.generate], database=None, deadline=None,
              suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(batches(), st.integers(0, 2**32 - 1))
    def compare(batch: Batch, order: int) -> None:
        if time.monotonic() < until and batch.plans:
            compared[0] += 1
            compared[1] += len(batch.plans)
            differing = _differing(batch, random.Random(order))
            assert differing is None, differing

    compare()


def _differing(batch: Batch, order: random.Random) -> Any:
    """The plans, in the order in which they were asked, that gave other rows; None if none has."""
    expected = [alone(batch, number) for number in range(len(batch.plans))]
    for _ in range(ORDERS):
        numbers = order.choices(range(len(batch.plans)), k=order.randint(1, 8))
        batches_of_forms.FEW_ROWS = order.choice((2, 20_000))  # plans of one form as lanes, or as members
        if together(batch, numbers) != [expected[number] for number in numbers]:
            return numbers, [batch.plans[number] for number in numbers], batch.table.to_pylist(), batch.windows
    return None
