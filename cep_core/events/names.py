"""Names of columns: which of them Spark takes for one, and which no source and no pattern may give."""

from __future__ import annotations

from collections.abc import Iterable

FEED_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns of Delta's change feed, which no table that has one may have."""
MERGE_COLUMNS = (
    "_source_row_present_",
    "_target_row_present_",
    "_row_dropped_",
    "_row_id_",
    "_file_name_",
    "__delta_internal_is_row_deleted",
    "_tmp_metadata_row_index",
)
"""Columns that Delta adds to rows while it merges them into a table: it cannot merge into one that has them."""
OWN = "__trendlake_"
"""How the names of columns begin that the pipelines add to rows while they compute."""


def same_name(name: str) -> str:
    """A text that two names share if Spark takes one for the other: Spark compares letters in upper case, then in lower
    case."""
    return name.upper().lower().replace("\u0307", "")  # the dot that lower case leaves of a Turkish capital I


def reserved(name: str, *, merged: bool = True) -> str | None:
    """Whose name it is, if no column may have it; `merged`: of a table that is written here, not by other programs."""
    plain = same_name(name)
    if plain in FEED_COLUMNS:
        return "a column of Delta's change feed"
    if merged and plain in MERGE_COLUMNS:
        return "a column of Delta's own in MERGE"
    return f"reserved, as all names that begin with {OWN}" if plain.startswith(OWN) else None


class TakenNames:
    """The columns of one table by name, with what each is; at first `names`, which are all `what`."""

    def __init__(self, names: Iterable[str], what: str) -> None:
        self._taken = dict.fromkeys(map(same_name, names), what)

    def take(self, name: str, what: str) -> str | None:
        """The use that the name has already, or the owner that reserved it; from now on the name is taken by `what`."""
        plain = same_name(name)
        before = reserved(name) or self._taken.get(plain)
        self._taken[plain] = what
        return before
