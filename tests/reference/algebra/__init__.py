"""Kind algebra by its definition: streams as sets of events, each operator written down as the page has it."""

from tests.reference.algebra.evaluate import TooManyEventsError, reference
from tests.reference.algebra.read import CelReader
from tests.reference.automaton import OverflowedError

__all__ = ["CelReader", "OverflowedError", "TooManyEventsError", "reference"]
