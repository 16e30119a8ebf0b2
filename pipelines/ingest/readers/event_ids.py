"""The id of an event that its time or several columns identify: texts, joined so that different values give different
ids.

The texts are joined by `|`. In a text `\\` becomes `\\\\` and `|` becomes `\\|`; NULL is `\\N`. So the id can be split
into the values again:

    ("UA", 1545, 2013-01-01 10:00 UTC)    ->    UA|1545|2013-01-01 10:00:00.000000Z
    ("a|b", NULL)                         ->    a\\|b|\\N
    (2013-01-01 10:00 UTC)                ->    2013-01-01 10:00:00.000000Z

Tables store these ids: the form never changes. It is of the typed values, whatever way a file writes a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

NOTHING = r"\N"


def event_ids(columns: Sequence[pa.Array]) -> pa.Array:
    """The id of each row. `columns`: texts, integers, booleans, dates or timestamps (microseconds, UTC)."""
    texts = [column.cast(pa.string()) for column in columns]
    escaped = [pc.replace_substring(pc.replace_substring(text, "\\", r"\\"), "|", r"\|") for text in texts]
    return pc.binary_join_element_wise(*escaped, "|", null_handling="replace", null_replacement=NOTHING)
