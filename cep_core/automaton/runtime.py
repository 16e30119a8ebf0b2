"""The functions that run plans of kind automaton (see `cep_core.kind.Kind`)."""

from __future__ import annotations

from trendlake.cep_core.automaton.run.run import run_automaton as run

__all__ = ["run"]
