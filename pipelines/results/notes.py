"""The note of a publication, in the metadata of its commit and in the run record. The form is stored data: each version
reads what all earlier ones have written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from trendlake.cep_core.events.windows import CalendarWindows
from trendlake.pipelines.runs.source_versions import Versions

Slice = tuple[int, int]
"""A half-open part of the results' time column, microseconds."""


class Calendar(NamedTuple):
    """Windows of a calendar, as `CalendarWindows` has them."""

    within: int
    slide: int
    origin: int
    zone: str
    months: bool
    shift: int

    @classmethod
    def of(cls, windows: CalendarWindows) -> Calendar:
        return cls(*(getattr(windows, name) for name in cls._fields))

    @property
    def windows(self) -> CalendarWindows:
        return CalendarWindows(**self._asdict())


class Zone(NamedTuple):
    """The clock that results were made by: the `name` of a zone, the version of the `database`, and its `offsets` from
    UTC in the time range of the windows: (from, seconds) of each stretch, the first from the beginning of the range
    on."""

    name: str
    database: str
    offsets: tuple[tuple[int, int], ...]

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"offsets": _lists(self.offsets)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Zone:
        return cls(stored["name"], stored["database"], _slices(stored["offsets"]))


class Grid(NamedTuple):
    """The places of a plan's windows in the results' time `column`, microseconds: the slice of window j begins at
    `origin` + j * `slide`, where that of window j - 1 ends, and the window itself ends `lead` after that. `within`: no
    row lasts longer; None where it is not recorded. `calendar`: of windows of a calendar, whose `slide` and `lead`
    differ from window to window."""

    column: str
    origin: int
    slide: int
    lead: int
    within: int | None = None
    calendar: Calendar | None = None

    def as_json(self) -> dict[str, Any]:
        values = self._asdict()
        calendar = values.pop("calendar")
        return values if calendar is None else values | {"calendar": calendar._asdict()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Grid:
        calendar = {"calendar": Calendar(**stored["calendar"])} if "calendar" in stored else {}
        return cls(**{**stored, **calendar})


class Author(NamedTuple):
    """The author of a commit: a `stage` of a run; `number`: the commit's place among the publications of the table."""

    run_id: str
    stage: str
    number: int


@dataclass(frozen=True)
class Work:
    """`versions`: of the code that computed all rows of the slices `computed` and some of those of `computed_in_part`;
    None where they are not recorded."""

    versions: Mapping[str, int] | None = None
    computed: tuple[Slice, ...] = ()
    computed_in_part: tuple[Slice, ...] = ()


@dataclass(frozen=True)
class Members:
    """Of a family: its `form`, the pattern without its rows; `hashes`: of each row, None of too many."""

    form: str
    hashes: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Note:
    """The windows that the results answer for after a publication, or after a revision that found nothing to change
    (`quiet`).

    `plan_hash`: of the pattern's form; `sources`: the versions read; `owned`: slices that show them; `withheld`: slices
    that were asked for and held back, None of a revision, which holds none back; `unique`: whether no row of theirs
    repeats a key; `contract`: the fingerprint of the sources' contracts; `lateness`: allowed lateness, microseconds;
    `stretches`: first and last window and the hash of the plan there; `pattern`: its name, where that is not the
    table's; `by`: None in the run record of a run. None where an early version of Trendlake did not write it."""

    plan_hash: str
    sources: Versions | None
    owned: tuple[Slice, ...] | None
    withheld: tuple[Slice, ...] | None = None
    unique: bool = False
    results_table: str | None = None
    contract: str | None = None
    lateness: int | None = None
    grid: Grid | None = None
    stretches: tuple[tuple[int, int, str], ...] | None = None
    members: Members | None = None
    work: Work = Work()
    pattern: str | None = None
    by: Author | None = None
    quiet: bool = False
    names_source: bool = True
    names_results: bool = True
    """Whether the ids of the tables are noted at all, be it that there is none."""
    zone: Zone | None = None
    """The clock of a pattern with a time zone."""
    contracts: Mapping[str, str] | None = None
    """The fingerprint of the contract of each of a pattern's `sources`, by its name."""
    keys: Mapping[str, str] | None = None
    """A digest of each key of the pattern's file (`pipelines.results.pattern_keys`)."""

    @property
    def source_version(self) -> int | None:
        """The version of the one table; None where several are read."""
        return None if self.sources is None else self.sources.version

    @property
    def of_run(self) -> bool:
        """Whether a run's publication has made it; in the run record that does not name its stage."""
        return not self.quiet and (self.by is None or self.by.stage == "publish")

    @property
    def number(self) -> int:
        """The place of its commit among the publications of the table; 0 where no commit carries it."""
        return 0 if self.by is None else self.by.number

    def signed(self, run_id: str, stage: Literal["publish", "revise"], number: int) -> Note:
        """The same, as the commit of that stage carries it."""
        return replace(self, by=Author(run_id, stage, number))

    def as_json(self) -> dict[str, Any]:
        """The keys in the order in which they have always been written."""
        work, members, sources = self.work, self.members, self.sources
        values: dict[str, Any] = {} if self.by is None else self.by._asdict()
        values |= {"quiet": True} if self.quiet else {}
        values |= {"source_version": self.source_version, "plan_hash": self.plan_hash, "owned": _lists(self.owned)}
        values |= {} if self.withheld is None else {"withheld": _lists(self.withheld)}
        values |= {"unique": self.unique, "results_table": self.results_table}
        values |= {"contract": self.contract, "lateness": self.lateness}
        values |= {"source_table": None if sources is None else sources.table_id}
        values |= {} if sources is None or not sources.named else {"sources": sources.as_json()}
        values |= {} if self.contracts is None else {"contracts": dict(self.contracts)}
        values |= {} if self.grid is None else {"grid": self.grid.as_json()}
        values |= {} if self.zone is None else {"zone": self.zone.as_json()}
        values |= {"stretches": _lists(self.stretches)}
        values |= {} if members is None else {"form": members.form}
        values |= {} if members is None or members.hashes is None else {"members": list(members.hashes)}
        if work.versions is not None:
            values["versions"] = dict(work.versions)
            values |= {"computed": _lists(work.computed), "computed_in_part": _lists(work.computed_in_part)}
        values |= {} if self.pattern is None else {"pattern": self.pattern}
        return values if self.keys is None else values | {"keys": dict(self.keys)}

    @classmethod
    def of_commit(cls, stored: Mapping[str, Any]) -> Note | None:
        """The note of a commit to a results table; None where no publication of ours has made the commit."""
        return cls.from_json(stored) if "stage" in stored else None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Note:
        """Reads what any version of Trendlake has stored; keys that a later version added are ignored. Raises
        LookupError, TypeError, ValueError for what none has stored."""
        owned, withheld = (_slices(stored[name]) if name in stored else None for name in ("owned", "withheld"))
        for name in ("plan_hash", "source_version") if owned is not None else ():
            stored[name]  # every version has written them: LookupError
        plan_hash = stored.get("plan_hash")
        stretches = tuple((first, last, digest) for first, last, digest in stored.get("stretches", ()))
        versions = dict(stored["versions"]) if "versions" in stored else None
        computed, in_part = (_slices(stored.get(name, ())) for name in ("computed", "computed_in_part"))
        hashes = tuple(stored["members"]) if "members" in stored else None
        by = Author(stored.get("run_id", ""), stored["stage"], stored.get("number", 0)) if "stage" in stored else None
        return cls(
            plan_hash or "",
            Versions.stored(stored),
            owned,
            withheld,
            bool(stored.get("unique")),
            stored.get("results_table"),
            stored.get("contract"),
            stored.get("lateness"),
            Grid.from_json(stored["grid"]) if stored.get("grid") else None,
            stretches if "stretches" in stored else None,
            Members(stored["form"], hashes) if "form" in stored else None,
            Work(versions, computed, in_part),
            stored.get("pattern"),
            by,
            bool(stored.get("quiet")),
            "source_table" in stored or "sources" in stored,
            "results_table" in stored,
            Zone.from_json(stored["zone"]) if stored.get("zone") else None,
            dict(stored["contracts"]) if stored.get("contracts") else None,
            dict(stored["keys"]) if "keys" in stored else None,
        )


def _slices(stored: Any) -> tuple[Slice, ...]:
    return tuple((low, high) for low, high in stored)


def _lists(parts: tuple[tuple[Any, ...], ...] | None) -> list[list[Any]]:
    return [list(part) for part in parts or ()]
