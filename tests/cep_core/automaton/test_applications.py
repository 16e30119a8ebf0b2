"""The paper's applications as shipped pattern files, on generated streams whose truth is told by other means."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.conftest import ROOT
from tests.reference.automaton import reference
from tests.support.engines import to_table
from trendlake.cep_core import compile_query, evaluate, explain
from trendlake.cep_core.yaml.source import read_yaml
from trendlake.pipelines.contracts.contract import load_contract

FOLDER = ROOT / "examples" / "automata"
PATTERNS = sorted(FOLDER.glob("*.yaml"))

Rows: TypeAlias = list[dict[str, Any]]
Answer: TypeAlias = set[tuple[Any, ...]]


def answer(name: str, rows: Rows, *columns: str) -> Answer:
    """The rows of the shipped pattern over a stream."""
    actual = evaluate(FOLDER / f"{name}.yaml", to_table(rows)).to_pylist()
    remaining = {tuple(row[column] for column in columns) for row in actual}
    assert len(remaining) == len(actual)
    return remaining


def ticks(changes: list[float], symbol: str = "ACME", start: float = 100.0, name: str = "e") -> Rows:
    """Ticks a second apart whose prices follow `changes`."""
    rows, price = [], start
    for i, change in enumerate(changes):
        price += change
        rows.append(
            {"id": f"{name}{i:05}", "type": "Tick", "time": i, "symbol": symbol, "price": price, "change": change}
        )
    return rows


def walk(seed: int, count: int, step: float = 0.7, low: float = 60.0) -> Rows:
    """A random walk in cents, of upticks and downticks of equal chance, that stays above `low`."""
    rng, price, changes = random.Random(seed), 100.0, []
    for _ in range(count):
        change = round(max(0.01, abs(rng.gauss(step, 0.3))), 2) * rng.choice([1, -1])
        changes.append(abs(change) if price < low else change)
        price += changes[-1]
    return ticks(changes)


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_shipped_patterns_compile(path: Path) -> None:
    """Against their own contracts, without a warning; and they can be told in words."""
    source = re.search(r"^source: (\w+)$", path.read_text(), re.M)
    assert source
    plan = compile_query(path, load_contract(FOLDER.parents[1] / "data_contracts" / f"{source[1]}.yaml").event_schema())
    assert explain(plan).startswith(f"plan {plan.hash}, automaton")


def test_equal_vees() -> None:
    """Q1: the string of ticks after a drop is two V shapes, with as many U as D."""
    rows = walk(1, 1500)
    signs = "".join("U" if row["change"] > 0 else "D" for row in rows)
    truth: Answer = set()
    for i, row in enumerate(rows):
        if row["change"] < -0.25:
            for end in range(i + 2, min(i + 60, len(rows)) + 1):
                string = signs[i + 1 : end]
                if re.fullmatch("(D+U+){2}", string) and string.count("U") == string.count("D"):
                    truth.add((row["id"], rows[end - 1]["id"], 0, 2))
    assert len(truth) > 50
    assert answer("equal_vees", rows, "first", "last", "balance", "vees") == truth


def test_vees_until_back() -> None:
    """Q2: walk on until the price is back, and count the turns upwards on the way."""
    rows = walk(2, 1500)
    truth: Answer = set()
    for i, row in enumerate(rows):
        if row["change"] < -0.25:
            original = row["price"] - row["change"]
            back = next((j for j in range(i + 1, len(rows)) if rows[j]["price"] >= original), None)
            if back is not None and rows[back]["time"] - row["time"] < 3600:
                turns = sum(a["change"] < 0 < b["change"] for a, b in pairwise(rows[i : back + 1]))
                truth.add((row["id"], rows[back]["id"], original, turns))
    assert len(truth) > 200
    assert max(turns for *_, turns in truth) > 20
    assert answer("vees_until_back", rows, "first", "last", "original", "vees") == truth


def legs(rows: Rows, i: int) -> Iterator[list[dict[str, Any]]]:
    """The maximal runs of ticks of one direction after tick i."""
    leg: Rows = []
    for row in rows[i + 1 :]:
        if leg and (leg[-1]["change"] > 0) != (row["change"] > 0):
            yield leg
            leg = []
        leg.append(row)
    if leg:
        yield leg


def test_head_and_shoulders() -> None:
    """Figure 14, told by the six legs after a tick: planted once in a rising stream, and wherever chance puts it."""
    planted = ticks([1, 1, 2, 3, -2, -1, 4, 3, -3, -2, 2, 1, -1, -4, -3, 1, 1])
    (actual,) = {
        row for row in answer("head_and_shoulders", planted, "first", "last", "p1", "p2", "p4") if row[2] == 102
    }
    assert actual == ("e00001", "e00014", 102.0, 107.0, 111.0)
    rows = walk(3, 3000)
    truth: Answer = set()
    for i, row in enumerate(rows):
        p1, parts = row["price"], []
        for leg in legs(rows, i):
            parts.append(leg)
            if len(parts) == 6:
                break
        if len(parts) < 6 or parts[0][0]["change"] < 0:
            continue
        p2, p3, p4, p5, p6 = (leg[-1]["price"] for leg in parts[:5])
        last = next((tick for tick in parts[5] if tick["price"] < p1), None)
        if last and p3 > p1 and p4 > p2 and p5 > p1 and p6 < p4:
            truth.add((row["id"], last["id"], p1, p2, p4))
    assert len(truth) > 15
    assert answer("head_and_shoulders", rows, "first", "last", "p1", "p2", "p4") == truth


def test_double_top() -> None:
    """Cayuga's: five extrema in a row, the last shown to be one by the tick after it."""
    rows = walk(4, 20_000, step=6.0, low=40.0)
    turns = [i for i in range(len(rows) - 1) if (rows[i]["change"] > 0) != (rows[i + 1]["change"] > 0)]
    truth: Answer = set()
    for five in zip(*(turns[k:] for k in range(5)), strict=False):
        a, b, c, d, e = (rows[i]["price"] for i in five)
        shape = rows[five[0]]["change"] < 0 and b >= 1.2 * a and 0.9 * a <= c <= 1.1 * a
        if shape and 0.9 * b <= d <= 1.1 * b and e < a:
            truth.add((rows[five[0]]["id"], rows[five[4] + 1]["id"], a, b, c, d, e))
    assert len(truth) > 10
    assert answer("double_top", rows, "first", "last", "a", "b", "c", "d", "bottom") == truth


def test_no_rival_trade() -> None:
    """Trailing absence: no BOLT in the 300 s after an ACME, said only where the data has come so far."""
    rng = random.Random(5)
    times = sorted(rng.sample(range(40_000), 400))
    rows = [
        {
            "id": f"e{i:05}",
            "type": "Trade",
            "time": t,
            "symbol": rng.choice(["ACME", "BOLT", "CORE", "DUNE"]),
            "account": "x",
        }
        for i, t in enumerate(times)
    ]
    truth: Answer = set()
    for row in rows:
        after = [other for other in rows if row["time"] <= other["time"] < row["time"] + 300]
        rivals = [other for other in after if other["symbol"] == "BOLT"]
        if row["symbol"] == "ACME" and not rivals and times[-1] >= row["time"] + 300:
            truth.add((row["id"], after[-1]["id"], "quiet"))
    assert len(truth) > 20
    assert answer("no_rival_trade", rows, "first", "last", "state") == truth


def test_likely_passage() -> None:
    """Uncertain readings: for each choice of an entry, a belt and an exit, the chance that they are real and all
    between them spurious."""
    rng = random.Random(6)
    rows: Rows = []
    for tag in "PQRSTUVW":
        for i in range(60):
            kind = rng.choice(["Entry", "Belt", "Exit"])
            prob = rng.choice([0.1, 0.3, 0.5, 0.8, 0.9, 1.0])
            rows.append({"id": f"{tag}{i:03}", "type": kind, "time": i, "tag": tag, "prob": prob})
    truth: Answer = set()
    for tag in "PQRSTUVW":
        mine = [row for row in rows if row["tag"] == tag]
        for a in range(len(mine)):
            for b in range(a + 1, len(mine)):
                for c in range(b + 1, len(mine)):
                    if [mine[i]["type"] for i in (a, b, c)] == ["Entry", "Belt", "Exit"]:
                        chance = 1.0
                        for i in range(a, c + 1):
                            chance *= mine[i]["prob"] if i in (a, b, c) else 1 - mine[i]["prob"]
                        if chance >= 0.1:
                            truth.add((tag, mine[a]["id"], mine[c]["id"], mine[b]["id"], chance))
    assert len(truth) > 10
    assert answer("likely_passage", rows, "tag", "first", "last", "belt", "chance") == truth


def test_missing_step() -> None:
    """Cleaning: exactly the readings that were dropped come back, half way between their neighbours."""
    rng = random.Random(7)
    rows: Rows = []
    truth: Answer = set()
    for book in range(200):
        seconds = sorted(rng.sample(range(1000), 4))
        lost = rng.choice([None, 1, 2])
        if lost is not None:
            middle = (seconds[lost - 1] + seconds[lost + 1]) / 2
            truth.add((f"b{book:03}", ("shelf", "desk", "gate")[lost], middle))
        for step, reader in enumerate(("shelf", "desk", "gate", "trolley")):
            if step != lost:
                rows.append(
                    {
                        "id": f"r{book:03}{step}",
                        "type": "Reading",
                        "time": seconds[step],
                        "tag": f"b{book:03}",
                        "reader": reader,
                        "second": seconds[step],
                    }
                )
    rng.shuffle(rows)
    assert len(truth) > 100
    assert answer("missing_step", rows, "tag", "missing", "imputed_second") == truth


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("equal_vees", lambda: walk(8, 120)),
        ("vees_until_back", lambda: walk(9, 60)),
        ("double_top", lambda: walk(10, 60, 9)),
    ],
)
def test_shipped_patterns_as_enumerated(name: str, make: Callable[[], Rows]) -> None:
    """On short streams the enumeration of runs gives the same rows."""
    rows = make()
    query = read_yaml(FOLDER / f"{name}.yaml").data
    columns = ["first", "last", "state", *query["register"]]
    assert answer(name, rows, *columns) == {tuple(row[c] for c in columns) for row in reference(query, rows)}
