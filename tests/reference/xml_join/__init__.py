"""Kind xml_join by plain enumeration: every document, every assignment of variables, every pair."""

from tests.reference.xml_join.answers import TooManyError, answers
from tests.reference.xml_join.documents import Element, broken_rule, parse

__all__ = ["Element", "TooManyError", "answers", "broken_rule", "parse"]
