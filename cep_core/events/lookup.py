"""`lookup` run: the row of a reference table for each event, by its key and by the time at which the row is to hold.

Rows are sorted by (key code, since), and each event is one search among those of its key. Values are compared as
`cep_core.events.normalise` has them: NaN is no key, as NULL is none, and -0.0 is 0.0.

    since <= as_of < until       NULL since: from the beginning; NULL until: for ever
    without `valid_to`           until the next since of the key
    without `valid_from`         always
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trendlake.cep_core.errors import BadEventsError, LookupRepeatedError, did_you_mean
from trendlake.cep_core.events.array_types import MOST_EXACT, AnyArray, Bools, Int64s
from trendlake.cep_core.events.arrays import arrow, numbers, read_only, valid
from trendlake.cep_core.events.codes import group_codes
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.local_times import FIRST_US, LAST_US
from trendlake.cep_core.events.normalise import FLOAT64_DIGITS, canonical, long_decimal, normalise
from trendlake.cep_core.events.order import order_of
from trendlake.cep_core.events.schema import EventSchema, Lookup, arrow_name, digits_of, family
from trendlake.cep_core.events.zones import Clock

VERSION = b"trendlake.version"
"""The key, in the metadata of a reference table's schema, of its version: errors name it."""
BEGINNING, FOREVER = -(2**63), 2**63 - 1
FEW = 10_000
"""Events that are searched for without compiled code: to load it takes longer."""
EXAMPLES = 10
"""Keys without a row that a report names."""
_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Report:
    """Counts of a lookup: of `events` that were looked up, `missing` have no row; `examples` are keys with the number
    of such events (most first). `unused`: rows of the table that never hold."""

    lookup: Lookup
    events: int
    missing: int
    examples: tuple[tuple[str, int], ...]
    unused: int


@dataclass(frozen=True)
class Matching:
    """By event the number of its row (int64), -1 where there is none; `asked`: the events that were looked up."""

    rows: Int64s
    asked: Bools | None

    @cached_property
    def missing(self) -> Bools:
        """The events that were looked up and have no row."""
        without = self.rows < 0
        return without if self.asked is None else without & self.asked


class Reference:
    """The rows of a reference table, for one lookup.

    Raises LookupRepeatedError where two different rows hold at one moment for a key, BadEventsError where a column is
    missing or a value does not fit.
    """

    def __init__(self, lookup: Lookup, table: pa.Table) -> None:
        self.lookup = lookup
        for name in lookup.table_columns:
            if name not in table.column_names:
                hint = did_you_mean(name, table.column_names)
                raise BadEventsError(f"table {lookup.table} has no column '{name}'", hint=hint)
        self.columns = Columns(_plain(table.select(list(lookup.table_columns))))
        version = (table.schema.metadata or {}).get(VERSION)
        self.title = lookup.table + (f" version {version.decode()}" if version is not None else "")
        self.since = self._times(lookup.valid_from, BEGINNING)
        self.until = self._times(lookup.valid_to, FOREVER)
        self.holds: Bools = self.since < self.until
        for _, column in lookup.key:
            self.holds &= valid(self.columns.column(column))
        self.unused = int(np.count_nonzero(~self.holds))
        self._sorted_by_types: dict[tuple[pa.DataType, ...], _Sorted] = {}

    def _times(self, name: str | None, default: int) -> Int64s:
        if name is None:
            return np.full(self.columns.length, default, np.int64)
        return moments(self.columns, name, self.lookup.zone, default)

    def find(self, events: Columns, asked: Bools | None = None) -> Matching:
        """The row of each event; of those only that are `asked` for. Raises LookupRepeatedError."""
        sorted_rows = self._sorted_for([_value_type(events.raw(name).type) for name, _ in self.lookup.key])
        codes = sorted_rows.codes(events, self.lookup)
        if asked is not None:
            codes = np.where(asked, codes, -1)
        if self.lookup.as_of is None:
            return Matching(np.append(sorted_rows.rows, -1)[codes], asked)
        has_time = valid(events.column(self.lookup.as_of))
        codes = codes if has_time.all() else np.where(has_time, codes, -1)
        times = moments(events, self.lookup.as_of, self.lookup.zone, 0)
        places = np.empty(len(codes), np.int64)
        starts, since, until = sorted_rows.starts, sorted_rows.since, sorted_rows.until
        if len(codes) <= FEW:
            _search(codes, times, starts, since, until, places)
        else:
            from trendlake.cep_core.events.kernels.lookup import search  # brings numba

            rows = read_only(starts), read_only(since), read_only(until)
            search(read_only(codes), read_only(np.ascontiguousarray(times)), *rows, places)
        return Matching(np.append(sorted_rows.rows, -1)[places], asked)

    def _sorted_for(self, kinds: Sequence[pa.DataType]) -> _Sorted:
        """The rows, sorted by their keys as these are compared with keys of some types."""
        if tuple(kinds) not in self._sorted_by_types:
            self._sorted_by_types[tuple(kinds)] = self._sort(kinds)
        return self._sorted_by_types[tuple(kinds)]

    def _sort(self, kinds: Sequence[pa.DataType]) -> _Sorted:
        """The rows that hold in the order of (code, since), equal ones once."""
        rows = np.flatnonzero(self.holds)
        targets: list[pa.DataType] = []
        encoded: list[tuple[pa.Array, pa.Array]] = []
        codes = np.zeros(len(rows), np.int64)
        for kind, (name, column) in zip(kinds, self.lookup.key, strict=True):
            raw = self.columns.raw(column)
            target = _compared(kind, raw.type, _place(self.lookup, name))
            coded = _as(raw, target, _place(self.lookup, name)).take(arrow(rows)).dictionary_encode()
            combined = coded  # of the first part: its own values
            if encoded:
                combined = arrow(codes * len(coded.dictionary) + numbers(coded.indices)).dictionary_encode()
            codes = numbers(combined.indices).astype(np.int64)
            targets.append(target)
            encoded.append((coded.dictionary, combined.dictionary))
        order = order_of(codes)
        if self.lookup.valid_from is not None:
            by_since = order_of(self.since[rows])
            order = by_since[order_of(codes[by_since])]
        rows, codes = rows[order], codes[order]
        again = np.zeros(len(rows), np.bool_)
        again[1:] = (codes[1:] == codes[:-1]) & (self.since[rows[1:]] == self.since[rows[:-1]])
        if again.any():
            again = self._equal(rows, again)
            rows, codes = rows[~again], codes[~again]
        since, until = self.since[rows], self.until[rows]
        following = np.zeros(len(rows), np.bool_)
        following[1:] = codes[1:] == codes[:-1]
        after = np.flatnonzero(following)
        if self.lookup.valid_to is None:
            until[after - 1] = since[after]
            both = after[since[after] == since[after - 1]]
        else:
            both = after[since[after] < until[after - 1]]  # where any two overlap, two that are next to each other do
        if len(both):
            raise self._repeated(rows[both])
        starts = np.flatnonzero(np.append(~following, True)) if len(rows) else np.zeros(1, np.int64)
        return _Sorted(tuple(targets), tuple(encoded), rows, starts, since, until)

    def _equal(self, rows: Int64s, again: Bools) -> Bools:
        """Which rows equal the row before in all that is read. `again`: those with its key and since."""
        some = np.flatnonzero(again)
        involved = np.unique(np.concatenate([some, some - 1]))
        chosen = arrow(rows[involved])
        names = self.lookup.table_columns
        values = [canonical(self.columns.raw(name).take(chosen)) for name in names if name not in self._key_columns]
        codes = group_codes(values, len(involved))
        at = np.searchsorted(involved, some)
        equal = np.zeros(len(rows), np.bool_)
        equal[some] = codes[at] == codes[at - 1]
        return equal

    @property
    def _key_columns(self) -> tuple[str, ...]:
        return tuple(column for _, column in self.lookup.key)

    def _repeated(self, second: Int64s) -> LookupRepeatedError:
        """The error of keys with rows that hold at one moment. `second`: numbers of rows that hold from a moment at
        which another row of their key does. The smallest key is named, whatever the order of the rows."""
        keys = [self.columns.column(name) for name in self._key_columns]
        sort = [(str(i), "ascending") for i in range(len(keys))]
        table = pa.table({str(i): key.take(arrow(second)) for i, key in enumerate(keys)})
        table = table.append_column("since", arrow(self.since[second]))
        at = pc.sort_indices(table, sort_keys=[*sort, ("since", "ascending")])
        row = int(second[at[0].as_py()])
        same = np.flatnonzero(self.holds)
        for key in keys:
            same = same[numbers(pc.equal(key.take(arrow(same)), key[row]))]
        moment = int(self.since[row])
        begun = self.since[same] == moment if self.lookup.valid_to is None else self.since[same] <= moment
        holding = same[begun & (self.until[same] > moment)]
        values = [canonical(self.columns.raw(name).take(arrow(holding))) for name in self.lookup.table_columns]
        holding = holding[np.unique(group_codes(values, len(holding)), return_index=True)[1]]
        more = table.select([name for name, _ in sort]).group_by([name for name, _ in sort]).aggregate([]).num_rows - 1
        shown = ", ".join(_shown(self.columns.raw(name)[row]) for name in self._key_columns)
        others = f"; {more:,} more key{'s' if more > 1 else ''} {'have' if more > 1 else 'has'}, too" if more else ""
        if self.lookup.valid_from is None:
            message = f"{self.title}: key {shown} has {len(holding):,} rows"
            return LookupRepeatedError(message + others, hint="remove all but one, or give the contract a sequence")
        holding = holding[order_of(self.since[holding])]
        sinces = [_shown(self.columns.raw(self.lookup.valid_from)[int(one)]) for one in holding[:5]]
        begins = _shown(self.columns.raw(self.lookup.valid_from)[row])
        when = f"at {begins}" if moment != BEGINNING else "from the beginning"
        left = ", ..." if len(holding) > len(sinces) else ""
        message = f"{self.title}: key {shown} has {len(holding):,} rows that hold {when}"
        message += f" (since {', '.join(sinces)}{left}){others}"
        return LookupRepeatedError(message, hint="end the first, or give the contract a sequence")

    def values(self, column: str, matching: Matching) -> pa.Array:
        """A column by event, NULL where there is no row; texts as a dictionary."""
        values = self.columns.raw(column)
        missing = matching.rows < 0
        if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
            texts = values.cast(pa.string()).dictionary_encode()
            codes = np.append(numbers(texts.indices, -1), np.int32(-1))[matching.rows].astype(np.int32, copy=False)
            return pa.DictionaryArray.from_arrays(arrow(codes, codes < 0), texts.dictionary)
        return values.take(arrow(matching.rows, missing))

    def report(self, events: Columns, matching: Matching, most: int | None = EXAMPLES) -> Report:
        """The counts of a lookup, with at most so many examples (None: all)."""
        missing = np.flatnonzero(matching.missing)
        asked = events.length if matching.asked is None else int(np.count_nonzero(matching.asked))
        names = [name for name, _ in self.lookup.key]
        keys = {str(i): events.column(name).take(arrow(missing)) for i, name in enumerate(names)}
        codes = group_codes(list(keys.values()), len(missing))
        firsts = np.unique(codes, return_index=True)[1]
        counted = pa.table({name: key.take(arrow(firsts)) for name, key in keys.items()})
        counted = counted.append_column("count", arrow(np.bincount(codes, minlength=len(firsts)).astype(np.int64)))
        order = [("count", "descending"), *((name, "ascending") for name in keys)]
        examples = []
        for at in numbers(pc.sort_indices(counted, sort_keys=order)[:most]).astype(np.int64).tolist():
            event = int(missing[firsts[at]])
            shown = ", ".join(_shown(events.raw(name)[event]) for name in names)
            examples.append((shown, int(counted["count"][at].as_py())))
        return Report(self.lookup, asked, len(missing), tuple(examples), self.unused)


@dataclass(frozen=True)
class _Sorted:
    """The rows of a table that hold at some time, in the order of (code, since). `targets`: the types in which keys are
    compared; `known`: by part of the key the values that rows have, and the codes of them together with the parts
    before. `starts`: of each code the first of its `rows`, and their number; `since`, `until`: of each."""

    targets: tuple[pa.DataType, ...]
    known: tuple[tuple[pa.Array, pa.Array], ...]
    rows: Int64s
    starts: Int64s
    since: Int64s
    until: Int64s

    def codes(self, events: Columns, lookup: Lookup) -> Int64s:
        """The codes of the events' keys, -1 for those that no row has."""
        codes = np.zeros(events.length, np.int64)
        parts = zip(lookup.key, self.targets, self.known, strict=True)
        for number, ((name, _), target, (values, combined)) in enumerate(parts):
            more = _index(events.raw(name), target, values, _place(lookup, name))
            if not number:
                codes = more  # the codes of one part are the numbers of its values
                continue
            wide = np.where((codes < 0) | (more < 0), -1, codes * len(values) + more)
            codes = _index(arrow(wide), pa.int64(), combined, "")
        return codes


class References(Mapping[str, pa.Table]):
    """Reference tables by name. For each lookup the rows are sorted once, whoever asks."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._tables = dict(tables)
        self._of_lookups: dict[tuple[Lookup, str], Reference] = {}

    @classmethod
    def of(cls, tables: Mapping[str, pa.Table] | None) -> References:
        return tables if isinstance(tables, References) else cls(tables or {})

    def __getitem__(self, name: str) -> pa.Table:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def rows_of(self, lookup: Lookup) -> Reference:
        """The rows of the lookup's table. Raises as `Reference`."""
        key = lookup, lookup.name  # which errors name
        if key not in self._of_lookups:
            self._of_lookups[key] = Reference(lookup, self[lookup.table])
        return self._of_lookups[key]

    def with_keys_of(self, events: pa.Table, schema: EventSchema) -> References:
        """Of each table only the rows with a key of one of the events, which alone give these their columns; all where
        a key is computed. Raises BadEventsError for keys that are not compared."""
        stored = {*events.column_names} - {name for one in schema.derived for name in one.names}
        few = dict(self._tables)
        for table in {one.table for one in schema.lookups}:
            lookups = [one for one in schema.lookups if one.table == table]
            if all(column in stored for one in lookups for column, _ in one.key):
                few[table] = self[table].filter(arrow(rows_with_keys_of(events, self[table], lookups)))
        return References(few)


def rows_with_keys_of(events: pa.Table, table: pa.Table, lookups: Iterable[Lookup]) -> Bools:
    """Which rows of a reference table have the key of one of the events for some of the lookups. Raises
    BadEventsError."""
    some = np.zeros(table.num_rows, np.bool_)
    for lookup in lookups:
        key = tuple((of_row, of_event) for of_event, of_row in lookup.key)
        rows = Columns(table.select([of_row for of_row, _ in key]))
        some |= Reference(Lookup(lookup.table, key, (), name=lookup.name), events).find(rows).rows >= 0
    return some


def look_up(
    events: pa.Table, lookup: Lookup, reference: Mapping[str, pa.Table]
) -> tuple[pa.Table, Reference, Matching]:
    """The events with the columns of a lookup, its table, and what was found there. Raises BadEventsError,
    LookupRepeatedError."""
    if lookup.table not in reference:
        hint = f'give it: reference={{"{lookup.table}": table}}'
        raise BadEventsError(f"lookup {lookup.name} reads table {lookup.table}, which is not given", hint=hint)
    rows, columns = References.of(reference).rows_of(lookup), Columns(events)
    asked = None if lookup.of is None else _of_types(columns, str(lookup.event_type), lookup.of)
    matching = rows.find(columns, asked)
    for attribute, column, _ in lookup.columns:
        values = rows.values(column, matching)
        at = events.schema.get_field_index(attribute)
        field = pa.field(attribute, values.type)
        events = events.append_column(field, values) if at < 0 else events.set_column(at, field, values)
    return events, rows, matching


def _of_types(columns: Columns, event_type: str, wanted: frozenset[str]) -> Bools:
    codes, names = columns.types(event_type)
    chosen = np.array([*(name in wanted for name in names), False], np.bool_)
    return chosen[codes]


def _plain(table: pa.Table) -> pa.Table:
    """With texts that Arrow cannot yet choose rows of (views, as polars gives) as plain ones."""
    for number, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type):
            table = table.set_column(number, field.name, table.column(number).cast(pa.string()))
        elif pa.types.is_dictionary(field.type):
            column = table.column(number).cast(field.type.value_type)
            table = table.set_column(number, field.name, column)
    return table


def moments(columns: Columns, name: str, zone: str | None, default: int) -> Int64s:
    """A column of dates or times as microseconds, `default` where NULL; dates begin at midnight of the zone (None:
    UTC), or when its clocks pass it. Raises BadEventsError for a date outside of the years 1 to 9999."""
    raw = columns.raw(name)
    if not pa.types.is_date(raw.type):
        return numbers(columns.column(name), default) if not pa.types.is_null(raw.type) else _none(raw, default)
    days = numbers(raw.cast(pa.date32()).cast(pa.int32()), 0).astype(np.int64) * _DAY
    outside = np.flatnonzero((days < FIRST_US) | (days >= LAST_US))
    if len(outside):
        raise BadEventsError(f"column '{name}', row {int(outside[0]) + 1}: a date outside of the years 1 to 9999")
    times = days if zone is None else Clock.of(zone).firsts(days)
    return np.where(valid(raw), times, default)


def _none(raw: pa.Array, default: int) -> Int64s:
    return np.full(len(raw), default, np.int64)


def key_fault(left: str, right: str) -> str | None:
    """Why values of two types, by their names, are not compared as keys; None where they are."""
    kinds = {family(left), family(right)}
    if "null" in kinds:
        return None
    if "other" in kinds:
        return "no key has such a type"
    if len(kinds) > 1 and kinds != {"int", "double"}:
        return "they are never equal"
    reals = [digits_of(one) for one in (left, right) if family(one) == "double"]
    if None in reals and any(digits is not None and digits[0] > FLOAT64_DIGITS for digits in reals):
        return f"a double has fewer digits than a decimal of more than {FLOAT64_DIGITS}"
    return None


def _compared(left: pa.DataType, right: pa.DataType, place: str) -> pa.DataType:
    """The type in which keys of two types are compared. Raises BadEventsError where they are not."""
    if (fault := key_fault(arrow_name(left), arrow_name(right))) is not None:
        raise BadEventsError(f"{place} is a {left} in the events and a {right} in the table: {fault}")
    kinds = [one for one in (left, right) if not pa.types.is_null(one)]
    if not kinds or len(kinds) == 1:
        return pa.null()  # no value is equal to one of the other side
    if any(map(long_decimal, kinds)):
        parts = [(one.precision, one.scale) if pa.types.is_decimal(one) else (19, 0) for one in kinds]
        scale = max(scale for _, scale in parts)
        digits = scale + max(precision - scale for precision, scale in parts)
        return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    plain = {normalise(pa.array([], one)).type for one in kinds}
    return plain.pop() if len(plain) == 1 else pa.float64()


def _as(raw: pa.Array, target: pa.DataType, place: str) -> pa.Array:
    """A key as the type in which it is compared. Raises BadEventsError for a whole number that is no double of its
    own."""
    if pa.types.is_decimal(target):
        raw = raw.dictionary_decode() if pa.types.is_dictionary(raw.type) else raw
        return (raw if pa.types.is_decimal(raw.type) else normalise(raw).cast(pa.decimal128(19, 0))).cast(target)
    array = normalise(raw)
    if pa.types.is_integer(array.type) and pa.types.is_floating(target):
        ends = pc.min_max(array).as_py()
        if ends["min"] is not None and (ends["min"] < -MOST_EXACT or ends["max"] > MOST_EXACT):
            message = "a whole number beyond 2^53 is compared with doubles"
            raise BadEventsError(f"{place}: {message}", hint="let the contracts give both columns one type")
        return array.cast(target)
    return array


def _place(lookup: Lookup, name: str) -> str:
    """Of a part of a key, in messages."""
    return f"lookup {lookup.name}: key '{name}'"


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _index(raw: pa.Array, target: pa.DataType, known: pa.Array, place: str) -> Int64s:
    """The number of each value among `known`, -1 where it is not there or is NULL."""
    if pa.types.is_null(target) or not len(known):
        return np.full(len(raw), -1, np.int64)
    if pa.types.is_dictionary(raw.type):  # each of its values is searched for once
        of_values = _index(raw.dictionary, target, known, place)
        return np.append(of_values, -1)[numbers(raw.indices, -1)]
    values = _as(raw, target, place)
    if pa.types.is_integer(target) and len(values) > FEW:
        return _index_of_numbers(numbers(values, 0), valid(values), numbers(known))
    return numbers(pc.index_in(values, value_set=known), -1).astype(np.int64)


def _index_of_numbers(values: AnyArray, there: Bools, known: AnyArray) -> Int64s:
    from trendlake.cep_core.events.kernels.lookup import hashed, index_of  # brings numba

    slots = np.full((1 << (2 * len(known) - 1).bit_length(), 2), -1, np.int64)
    hashed(read_only(np.ascontiguousarray(known)), slots)
    places = np.empty(len(values), np.int64)
    index_of(read_only(np.ascontiguousarray(values)), read_only(there), read_only(slots), places)
    return places


def _search(codes: Int64s, times: Int64s, starts: Int64s, since: Int64s, until: Int64s, places: Int64s) -> None:
    """As `kernels.lookup.search`, for few events."""
    ends = np.append(starts[1:], 0) if len(starts) else starts
    for i, code in enumerate(codes.tolist()):
        places[i] = -1
        if code >= 0:
            low = int(starts[code])
            at = low + int(np.searchsorted(since[low : ends[code]], times[i], side="right")) - 1
            if at >= low and times[i] < until[at]:
                places[i] = at


def _shown(cell: pa.Scalar) -> str:
    """A value as a message has it: times at midnight without the time of day."""
    value = cell.as_py()
    if pa.types.is_timestamp(cell.type) and cell.is_valid:
        moment = _EPOCH + timedelta(microseconds=cell.cast(pa.timestamp("us", cell.type.tz)).value)
        value = moment.date() if moment.time() == datetime.min.time() else moment
        return value.isoformat() + ("Z" if isinstance(value, datetime) else "")
    if isinstance(value, date):
        return value.isoformat()
    return "NULL" if value is None else str(value)
