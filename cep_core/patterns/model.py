"""The keys of a pattern file that all kinds share. `cep_core.load` reads a file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, WithJsonSchema

from trendlake.cep_core.errors import TextError, TrendlakeError
from trendlake.cep_core.events.zones import zone_fault
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import parse_duration
from trendlake.cep_core.language.tree_builder import timestamp_us
from trendlake.cep_core.patterns import lookups
from trendlake.cep_core.patterns.expectations import ExpectationModel, mistakes
from trendlake.cep_core.patterns.lookups import LookupModel
from trendlake.cep_core.patterns.parameter_file import read_file
from trendlake.cep_core.patterns.parameters import ForEachError, Parameters, read_lists, refuse_names
from trendlake.cep_core.patterns.schedule import check_schedule
from trendlake.cep_core.patterns.sources import Sources, Ties, source_mistakes
from trendlake.cep_core.yaml.source import Source

Selection = Literal["skip_till_any_match", "skip_till_next_match", "contiguous", "partition_contiguous"]
Consistency = Literal["strong", "middle", "weak"]

Identifier = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
SourceName = Annotated[str, Field(pattern=r"^(results/)?[a-z][a-z0-9_]{0,63}$")]
SnakeName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]

Tag = Annotated[str, Field(min_length=1, max_length=100)]
"""Airflow takes no longer ones, and would have no DAG of the pattern's batch."""

PROVENANCE_COLUMNS = frozenset({"plan_hash", "source_version", "source_versions", "run_id", "computed_at"})
"""Columns every results table has, whatever the kind."""
RESERVED_COLUMNS = PROVENANCE_COLUMNS | {"window_start", "window_end"}
"""Columns every results table of kind trends has: no measure or group may take their names."""


def _duration(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError("expected a duration such as 10 minutes")
    return parse_duration(value)


def moment_of(value: object) -> int:
    """A moment as a file has it, microseconds since the epoch; in UTC where it has no offset. Raises ValueError."""
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return timestamp_us(moment.isoformat())
    if isinstance(value, date):
        return timestamp_us(value.isoformat())
    if not isinstance(value, str):
        raise ValueError("expected a time such as 2013-01-31T09:00:00Z")
    return timestamp_us(value)


def _zone(name: str) -> str:
    if (fault := zone_fault(name)) is not None:
        raise TextError(f"'{name}' is no time zone", 0, max(1, len(name)), fault[1])
    return name


_DURATION = WithJsonSchema({"type": "string", "examples": ["10 minutes", "1 day"]})

Duration = Annotated[int, BeforeValidator(_duration), _DURATION]
"""Microseconds, written as `10 minutes`."""
MaybeDuration = Annotated[int | None, BeforeValidator(lambda v: None if v is None else _duration(v)), _DURATION]
Moment = Annotated[
    int, BeforeValidator(moment_of), WithJsonSchema({"type": "string", "examples": ["2013-01-31T09:00:00Z"]})
]
"""Microseconds since the epoch, written in ISO 8601."""

TimeZone = Annotated[
    str, AfterValidator(_zone), WithJsonSchema({"type": "string", "examples": ["America/New_York", "UTC"]})
]
"""The name of a zone of the IANA database."""
Schedule = Annotated[str, AfterValidator(check_schedule)]
"""A cron expression of five fields, or a name such as @daily."""


_FOR_EACH = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "file": {"type": "string"},
                "columns": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "types": {
                    "type": "object",
                    "additionalProperties": {"enum": ["bigint", "double", "string", "boolean", "timestamp"]},
                },
            },
            "required": ["file"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": {
                "type": "array",
                "minItems": 1,
                "items": {"type": ["string", "number", "boolean", "null"]},
            },
        },
    ],
    "examples": [{"symbol": ["AAPL", "MSFT"], "threshold": [100, 110.5]}, {"file": "price_alarm.csv"}],
}
ForEach = Annotated[dict[str, Any], Field(min_length=1), WithJsonSchema(_FOR_EACH)]
"""Lists of values by parameter, or the file that holds the rows."""


class Pattern(BaseModel):
    """The keys of a pattern of any kind. Durations and moments are microseconds (since the epoch)."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: SnakeName = "query"
    """Unique, and the name of its file."""
    kind: str
    renamed_from: SnakeName | None = None
    """The name of the pattern's results table, of before the pattern was renamed."""
    description: str = ""
    """A description of its results, for those who read them."""
    owner: str = ""
    """The team or person that answers for it."""
    source: SourceName | None = None
    """The table of events: data_contracts/<source>.yaml; or results/<pattern>, another pattern's results."""
    sources: Sources | None = None
    """In place of `source`: the tables of events by the pattern's types, {Order: orders, Payment: payments}; or a
    mapping of source, type, columns and idle for one."""
    ties: Ties = None
    """With `sources`: the tables in the order of their events at one time, else by name; or `sequence`, where one
    counter numbers the events of all."""
    time_zone: TimeZone | None = None
    """The IANA name of the zone whose clocks count: for days and longer windows of kind trends, hour(), dayofweek() and
    date(), origin, schedule, --from and --to."""
    within: Duration
    """The length of a window, such as 1 day."""
    schedule: Schedule | None = None
    """When Airflow runs it, in time_zone, else UTC: a cron expression of five fields, or @hourly, @daily ..."""
    deadline: MaybeDuration = None
    """How long a run in Airflow may take, from when it is queued, before an alert is sent."""
    batch: SnakeName | None = None
    """A name for patterns of one source and schedule that `trendlake run --batch` runs together."""
    tags: tuple[Tag, ...] = ()
    """Words to find its DAG by."""
    consistency: Consistency = "middle"
    """The results that are published before the allowed lateness has passed: none (strong), those known so far, which
    revisions correct (middle), those known so far, for good (weak)."""
    lookup: dict[Identifier, LookupModel] = Field(default_factory=dict)
    """Reference tables whose columns become attributes of the events: {customer: {table: customers, key: customer_id,
    columns: [segment]}}."""
    derive: dict[Identifier, str] = Field(default_factory=dict)
    """Columns of its own, computed of an event's columns: {local_hour: hour(at)}."""
    having: tuple[str, ...] = ()
    """Conditions on a result row: only rows for which all are true are results. They read its columns by name, such as
    trends >= 3."""
    expect: tuple[ExpectationModel, ...] = ()
    """Expectations of each window, compared with the windows before it: checked before results are published."""

    _source: Source = PrivateAttr()

    @property
    def document(self) -> Source:
        """The document the pattern came from, for places in errors."""
        return self._source

    @property
    def day_begins(self) -> int:
        """The time of day at which its days begin, microseconds after midnight."""
        return 0

    @property
    def parameters(self) -> Parameters | None:
        """The rows of a family of patterns; None for a pattern that is one."""
        return None

    @property
    def groups(self) -> tuple[str, ...]:
        """The result columns that tell groups apart."""
        return ()

    @property
    def measures(self) -> tuple[str, ...]:
        """The result columns with one value a group and window."""
        return ()

    def mistakes(self) -> list[TrendlakeError]:
        """The contradictions between keys that are each right by themselves, before any schema is known."""
        own = mistakes(self.expect, self.groups, self.measures, self.document)
        of_sources = source_mistakes(self.kind, self.source, self.sources, self.ties, self.document)
        return [*of_sources, *lookups.mistakes(self.lookup, self.document), *own]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose events it reads, by name."""
        if self.sources is None:
            return () if self.source is None else (self.source,)
        return tuple(sorted({entry.source for entry in self.sources.values()}))

    @property
    def tables_read(self) -> tuple[str, ...]:
        """All tables that it reads, by name: `tables`, and those of lookups."""
        return tuple(sorted({*self.tables, *(one.table for one in self.lookup.values())}))


class FamilyPattern(Pattern):
    """A pattern of a kind that has `for_each`."""

    for_each: ForEach | None = None
    """Values for $name in conditions: lists, where every combination of values is a member, or {file: NAME.csv}."""

    _given: Parameters | None = PrivateAttr(default=None)
    """Rows that are given in place of `for_each`."""
    _parameters: Parameters | None = PrivateAttr(default=None)

    @property
    def parameters(self) -> Parameters | None:
        return self._parameters

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The first columns of the results' key."""
        return self._parameters.names if self._parameters else ()

    @property
    def unread_parameters(self) -> bool:
        """Whether `for_each` has mistakes, so that it is not known which parameters there are."""
        return self.document.data.get("for_each") is not None and self._parameters is None

    def parameters_in_pattern(self) -> list[s.Parameter]:
        """The places of parameters in the text of `pattern`; none in kinds whose `pattern` has no conditions."""
        return []

    def mistakes(self) -> list[TrendlakeError]:
        """Reads the rows of `for_each`, and looks for mistakes in them first."""
        return [*self._read_parameters(), *super().mistakes()]

    def _read_parameters(self) -> list[TrendlakeError]:
        if self._given is not None:
            self._parameters = self._given
        if self.for_each is None:
            return []
        given: Mapping[str, Any] = self.for_each
        try:
            if "file" in given and not isinstance(given["file"], list):
                self._parameters = read_file(given, self.document)
            else:

                def place(name: str) -> Any:
                    return self.document.place(("for_each", name), key=True)

                if errors := list(refuse_names(list(given), place)):
                    return errors
                self._parameters = read_lists(given, self.document)
        except ForEachError as failure:
            return failure.errors
        return []
