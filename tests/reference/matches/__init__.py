"""The slow, obvious version of kind matches: every run is built, event by event. It shares only the parser."""

from tests.reference.matches.runs import TooManyRunsError, reference

__all__ = ["TooManyRunsError", "reference"]
