"""The slow, obvious version of kind trends: every trend is built. It shares only the parser."""

from tests.reference.trends.query import OutsideLanguageError
from tests.reference.trends.trends import TooManyTrendsError, reference

__all__ = ["OutsideLanguageError", "TooManyTrendsError", "reference"]
