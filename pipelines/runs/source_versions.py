"""The versions of the tables that results show: one for each table, whatever the table is read for.

Two of them are ordered in part: of one that is newer in one table and older in another neither is the newer. A number
means nothing without the id of the Delta table that it is a version of, so unknown or other ids are not comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trendlake.pipelines.contracts.sources import SOURCE


class TableAt(NamedTuple):
    """A version of the table `name`; `SOURCE` of a pattern that has `source`. `table_id`: as of
    `lake.versions.table_id`; None where it is not known, or where other programs may have changed the rows that show
    it."""

    name: str
    version: int
    table_id: str | None = None

    def same_table(self, other: TableAt) -> bool:
        """Whether both are known to be versions of one Delta table: then their numbers can be compared."""
        return self.table_id is not None and (self.name, self.table_id) == (other.name, other.table_id)


@dataclass(frozen=True)
class Versions:
    """`tables`: at least one, in the order of their names, each named once. `events`: the name of the one table of
    events, where the others are reference tables."""

    tables: tuple[TableAt, ...]
    events: str | None = field(default=None, compare=False)

    @classmethod
    def one(cls, version: int, table_id: str | None = None) -> Versions:
        """Of a pattern that has `source`."""
        return cls((TableAt(SOURCE, version, table_id),))

    @classmethod
    def of(cls, tables: Iterable[TableAt]) -> Versions:
        """Raises ValueError where there is none, or two are of one name."""
        ordered = tuple(sorted(tables, key=lambda table: table.name))
        if not ordered or len({table.name for table in ordered}) < len(ordered):
            raise ValueError("one version for each of some tables was expected")
        return cls(ordered)

    @property
    def named(self) -> bool:
        """Whether they are of a pattern that has `sources` or `lookup`."""
        return self.tables[0].name != SOURCE

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(table.name for table in self.tables)

    @property
    def only(self) -> TableAt:
        """That of the one table. Raises ValueError where there are several."""
        (table,) = self.tables
        return table

    def with_events(self, name: str) -> Versions:
        """The same, where the table `name` is the one of events."""
        return replace(self, events=name)

    @property
    def of_events(self) -> TableAt | None:
        """That of the one table of events; None where there are several."""
        if len(self.tables) == 1:
            return self.only
        return None if self.events is None else self.at(self.events)

    @property
    def version(self) -> int | None:
        """The version of the one table of events; None where there are several."""
        return None if self.of_events is None else self.of_events.version

    @property
    def table_id(self) -> str | None:
        """The id of the one table of events; None where there are several, too."""
        return None if self.of_events is None else self.of_events.table_id

    @property
    def identified(self) -> bool:
        """Whether the id of each table is known."""
        return all(table.table_id is not None for table in self.tables)

    def at(self, name: str) -> TableAt:
        """That of the table `name`. Raises LookupError."""
        for table in self.tables:
            if table.name == name:
                return table
        raise LookupError(name)

    def unidentified(self) -> Versions:
        """The same numbers, of tables that are not known: after other programs may have changed the rows."""
        return replace(self, tables=tuple(table._replace(table_id=None) for table in self.tables))

    def no_older(self, other: Versions) -> bool:
        """Whether each table is the same one in both, and of no older version here."""
        if len(self.tables) != len(other.tables):
            return False
        pairs = zip(self.tables, other.tables, strict=True)
        return all(mine.same_table(their) and mine.version >= their.version for mine, their in pairs)

    def newer(self, other: Versions) -> tuple[tuple[TableAt, TableAt], ...]:
        """The tables, the same in both, that are newer here, each with what `other` has of it."""
        theirs = {table.name: table for table in other.tables}
        pairs = [(mine, theirs[mine.name]) for mine in self.tables if mine.name in theirs]
        return tuple((mine, their) for mine, their in pairs if mine.same_table(their) and mine.version > their.version)

    def numbered_above(self, other: Versions) -> bool:
        """Whether some number is greater than that of the same name in `other`, be it of another table."""
        theirs = {table.name: table.version for table in other.tables}
        return any(table.version > theirs.get(table.name, table.version) for table in self.tables)

    def as_json(self) -> dict[str, list[Any]]:
        return {table.name: [table.version, table.table_id] for table in self.tables}

    @classmethod
    def from_json(cls, stored: Mapping[str, Sequence[Any]]) -> Versions:
        """As `as_json` has it. Raises ValueError, TypeError, AttributeError for what no version has stored."""
        tables = [TableAt(name, version, table_id) for name, (version, table_id) in stored.items()]
        if any(not isinstance(table.version, int) for table in tables):
            raise ValueError("the number of a version was expected")
        return cls.of(tables)

    @classmethod
    def stored(cls, stored: Mapping[str, Any]) -> Versions | None:
        """As notes and bases have them: `sources` decides, else `source_version` and `source_table`; None where there
        is neither."""
        version = stored.get("source_version")
        if stored.get("sources") is not None:
            read = cls.from_json(stored["sources"])
            mine = [
                one.name for one in read.tables if (one.version, one.table_id) == (version, stored.get("source_table"))
            ]
            return replace(read, events=mine[0]) if mine else read
        return None if version is None else cls.one(version, stored.get("source_table"))

    @property
    def words(self) -> str:
        """`version 12`, or `orders@12 payments@7`."""
        return str(self) if self.named else f"version {self}"

    def __str__(self) -> str:
        """`12` of a pattern that has `source`, else `orders@12 payments@7`."""
        if not self.named:
            return str(self.only.version)
        return " ".join(f"{table.name}@{table.version}" for table in self.tables)


def oldest(many: Sequence[Versions]) -> Versions:
    """The least version of each table, of at least one vector. All are of the same tables by name; where their ids
    differ, none is said."""
    return replace(many[0], tables=tuple(map(_least, zip(*(one.tables for one in many), strict=True))))


def _least(tables: Sequence[TableAt]) -> TableAt:
    least = min(tables, key=lambda table: table.version)
    return least if len({table.table_id for table in tables}) == 1 else least._replace(table_id=None)
