"""The questions that `trendlake setup` asks: of every kind, and after them a first pattern compiles nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from trendlake.cep_core.first_questions import QUESTIONS, compile_first_kernels
from trendlake.cep_core.kinds import KINDS

COUNTED = """
from numba.core import event

class Listener(event.Listener):
    compiled = 0
    def on_start(self, event): self.compiled += 1
    def on_end(self, event): pass

listener = Listener()
event.register("numba:compile", listener)
"""
FIRST = """
import pyarrow as pa
from trendlake.cep_core import evaluate
events = pa.table({
    "id": [f"e{n}" for n in range(50)],
    "at": pa.array([n * 1_000_000 for n in range(50)], pa.timestamp("us", "UTC")),
    "event_type": ["Trade"] * 50,
    "price": [n * 7919 % 31 / 7 for n in range(50)],
    "symbol": ["ab"[n % 2] for n in range(50)],
})
text = "FROM FILTER{price > 1}(Trade) NEXT{$2.price < $1.price} Trade"
query = {"kind": "algebra", "pattern": text, "partition_by": ["symbol"], "within": "1 hour"}
rows = evaluate(query, events, event_id="id", event_time="at")
assert rows.num_rows > 0
print(listener.compiled)
"""
ASK = """
from trendlake.cep_core.first_questions import compile_first_kernels
assert list(compile_first_kernels(["algebra"])) == ["algebra"]
print(listener.compiled)
"""


def compiled(code: str, cache: Path) -> int:
    """How many functions a process with this cache compiles."""
    environment = os.environ | {"TRENDLAKE_CACHE": str(cache)}
    command = [sys.executable, "-W", "ignore", "-c", COUNTED + code]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_every_kind_is_asked() -> None:
    assert set(QUESTIONS) == set(KINDS)


@pytest.mark.parametrize("kind", QUESTIONS)
def test_questions_have_answers(kind: str) -> None:
    """None of them is refused."""
    assert list(compile_first_kernels([kind])) == [kind]


@pytest.mark.long
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    """A new process with the same cache."""
    assert compiled(ASK, tmp_path) > 0
    assert compiled(FIRST, tmp_path) == 0
