"""Kind match_recognize by definition: sequences in the order of preference, a condition asked when its row is mapped.

Patterns and expressions are tuples, not text (`write` writes them): nothing here parses, and no way is cut short.

    ("var", "A"), ("seq", p, q), ("alt", p, q), ("rep", p, low, high or None, greedy), ("permute", p, q, ...),
    ("out", p), ("empty",), ("first",), ("last",)

    ("lit", value), ("col", variable or "", name), ("op", sign, e, f), ("not", e), ("null?", e),
    ("nav", PREV|NEXT|FIRST|LAST, e, offset, final), ("near", PREV|NEXT, ("nav", FIRST|LAST, ...), shift),
    ("agg", function, e or None, variable or "", final), ("label", variable or ""), ("number",)
"""

from tests.reference.match_recognize.evaluate import Question, TooLong, reference
from tests.reference.match_recognize.write import text_of

__all__ = ["Question", "TooLong", "reference", "text_of"]
