"""Kind automaton by its definition: an enumeration that shares no code with the engine."""

from tests.reference.automaton.expression import OverflowedError
from tests.reference.automaton.runs import enumerate_runs, partial_runs, reference

__all__ = ["OverflowedError", "enumerate_runs", "partial_runs", "reference"]
