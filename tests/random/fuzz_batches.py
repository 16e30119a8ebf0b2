"""An open-ended search for a batch of plans, or a family, that gives together what a plan of it does not give alone."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.random.batches import Batch, alone, batches, together
from tests.random.families import Family, as_family, families, one_by_one
from trendlake.cep_core.sharing import batches as batches_of_forms
from trendlake.cep_core.sharing import families as families_module
from trendlake.cep_core.sharing import interest, lanes

Compare: TypeAlias = Callable[[Any, random.Random, Counter[str]], None]

CHUNK = 50
"""Batches that are drawn from one seed."""
ORDERS = 5
"""Of each batch so many choices of its plans, in an order of their own."""


def search(seconds: float, first: int) -> int:
    """Batches from the seed `first` on, until the time is over or one differs; the exit status."""
    return _search(seconds, first, "batches", batches(), _compare_batch)


def search_families(seconds: float, first: int) -> int:
    """Families, as `search`."""
    families_module.JOINED = 2
    return _search(seconds, first, "families", families(), _compare_family)


def _search(seconds: float, first: int, what: str, drawn: st.SearchStrategy[Any], compare: Compare) -> int:
    """Small tables are indexed and batched as large ones are."""
    interest.FEW = interest.FEW_SORTED = 1
    interest.MOST = 9.0
    batches_of_forms.FULL, lanes.LEAST = 40, 2
    until, number, compared = time.monotonic() + seconds, first, Counter[str]()

    while time.monotonic() < until:
        number += 1
        try:
            _chunk(number, drawn, compare, compared, until)
        except AssertionError as error:
            print(f"# seed {number}\n{error}")
            return 1
    counts = ", ".join(f"{name}: {count:,}" for name, count in sorted(compared.items()))
    print(f"# {what} from seed {first + 1} to {number}, together as alone; {counts}")
    return 0


def _chunk(number: int, drawn: st.SearchStrategy[Any], compare: Compare, compared: Counter[str], until: float) -> None:
    @seed(number)
    @settings(
        max_examples=CHUNK,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(drawn, st.integers(0, 2**32 - 1))
    def run(one: Any, order: int) -> None:
        if time.monotonic() < until:
            compare(one, random.Random(order), compared)

    run()


def _compare_batch(batch: Batch, order: random.Random, compared: Counter[str]) -> None:
    if batch.plans:
        compared["batches"] += 1
        compared["plans"] += len(batch.plans)
        differing = _differing(batch, order)
        assert differing is None, differing


def _compare_family(family: Family, order: random.Random, compared: Counter[str]) -> None:
    expected = one_by_one(family)
    if expected is not None:
        kind = family.query.get("kind", "trends")
        compared[kind] += 1
        compared[f"{kind} with rows"] += not isinstance(expected, str) and len(expected) > 1
        answer = as_family(family)
        assert answer == expected, (family.query, family.table.to_pylist(), answer, expected)


def _differing(batch: Batch, order: random.Random) -> Any:
    """The plans, in the order in which they were asked, that gave other rows; None if none has."""
    expected = [alone(batch, number) for number in range(len(batch.plans))]
    for _ in range(ORDERS):
        numbers = order.choices(range(len(batch.plans)), k=order.randint(1, 8))
        batches_of_forms.FEW_ROWS = order.choice((2, 20_000))  # plans of one form as lanes, or as members
        if together(batch, numbers) != [expected[number] for number in numbers]:
            return numbers, [batch.plans[number] for number in numbers], batch.table.to_pylist(), batch.windows
    return None
