"""All benchmarks in one table: `make bench`. One file alone: `python -m bench.automata`."""

from __future__ import annotations

from bench.automata import automata
from bench.engine import engine
from bench.measured import show

if __name__ == "__main__":
    show([*engine(), *automata()])
