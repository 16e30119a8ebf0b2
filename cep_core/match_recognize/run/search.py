"""The search in Python, for conditions of every class: depth first by the ways of the program, best first, and never
twice from one row, place and registers. It is the reference of the kernels, and runs what they do not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trendlake.cep_core.errors import SearchTooLongError
from trendlake.cep_core.expressions.scalar import Reader, compiled
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile.classes import Condition, class_of_plan, conditions_of
from trendlake.cep_core.match_recognize.compile.leaves import Label, Navigation, Number, Total, every, whole
from trendlake.cep_core.match_recognize.compile.plan import RowPatternPlan
from trendlake.cep_core.match_recognize.compile.program import ACCEPT
from trendlake.cep_core.match_recognize.run.registers import AllLabels, RecentLabels, Register, SomeRows, Totals
from trendlake.cep_core.match_recognize.run.rows import Rows

FEW_PLACES = 300
"""Of so many places it is looked at which registers conditions behind them read."""


@dataclass
class Moment:
    """Where a condition is asked: `values` of the registers, the row included; `start`: the match's first row; `low`
    and `high`: the partition."""

    values: tuple[Any, ...]
    start: int
    low: int
    high: int
    number: int


class Search:
    """The search over the partitions of one run."""

    def __init__(self, plan: RowPatternPlan, rows: Rows, hopeful: list[int] | None = None) -> None:
        self.plan, self.rows, self.hopeful = plan, rows, hopeful
        self.program = plan.program
        self.conditions = {one.variable: one for one in conditions_of(plan)}
        self.every = frozenset(self.program.variables)
        self.registers: list[Register] = []
        self._places: dict[Any, int] = {}
        self._read: dict[str, frozenset[int]] = {}
        self.asked = {name: self._compiled(one) for name, one in self.conditions.items()}
        self.live = self._live()
        self.local = class_of_plan(plan) == "local"
        self._partition = (-1, -1)
        self._can: list[int] = []

    # --- conditions

    def _register(self, key: Any, register: Register) -> int:
        if key not in self._places:
            self._places[key] = len(self.registers)
            self.registers.append(register)
        return self._places[key]

    def _compiled(self, condition: Condition) -> Reader | None:
        if condition.value is None:
            self._read[condition.variable] = frozenset()
            return None
        used: set[int] = set()

        def leaf(read: s.Attribute) -> Reader:
            match read:
                case Number():
                    return lambda moment, row, at: moment.number
                case Navigation():
                    return self._navigation(read, used)
                case Total():
                    return self._total(read, used)
            raise AssertionError(read)  # pragma: no cover - CLASSIFIER() of the current row is a literal

        function = compiled(condition.value, leaf)
        self._read[condition.variable] = frozenset(used)
        return function

    def _total(self, read: Total, used: set[int]) -> Reader:
        variables = frozenset(read.variables) or self.every
        totals = Totals(read, variables, [self.rows.values(one) for one in read.arguments])
        place = self._register(read, totals)
        totals = self.registers[place]  # type: ignore[assignment]
        used.add(place)
        return lambda moment, row, at: totals.result(moment.values[place])

    def _navigation(self, read: Navigation, used: set[int]) -> Reader:
        base = self._base(read, used)
        by = read.sign * whole(read.shift) if read.sign else 0
        argument = self.rows.values(read.argument)
        label = self._label(read, by, used) if any(isinstance(one, Label) for one in every(read.argument)) else None

        def run(moment: Moment, row: int, at: Any) -> Any:
            result = base(moment, row)
            if result is None or not moment.low <= result + by < moment.high:
                return None
            result += by
            if label is None:
                return argument(None, result, moment.number)
            return argument(label(moment, row, result), result, moment.number)

        return run

    def _base(self, read: Navigation, used: set[int]) -> Any:
        """A function of a moment and its row: the row that the navigation starts from, or None."""
        offset = whole(read.offset)
        if not read.variables:
            if read.first:
                return lambda moment, row: moment.start + offset if moment.start + offset <= row else None
            return lambda moment, row: row - offset if row - offset >= moment.start else None
        count = offset + 1
        key = ("rows", read.variables, read.first, count)
        place = self._register(key, SomeRows(frozenset(read.variables), read.first, count))
        used.add(place)

        def some(moment: Moment, row: int) -> int | None:
            result: tuple[int, ...] = moment.values[place]
            return None if len(result) < count else result[offset if read.first else -count]

        return some

    def _label(self, read: Navigation, by: int, used: set[int]) -> Any:
        """A function of a moment, its row and another: the variable that the other one is mapped to, None for none."""
        if not read.variables and not read.first and by <= 0:
            back = whole(read.offset) - by
            place = self._register(("recent", back), RecentLabels(back + 1))
            used.add(place)

            def recent(moment: Moment, row: int, other: int) -> str | None:
                result: tuple[str, ...] = moment.values[place]
                return None if len(result) <= back else result[-back - 1]

            return recent
        labels = AllLabels()
        place = self._register(("labels",), labels)
        chains: AllLabels = self.registers[place]  # type: ignore[assignment]
        used.add(place)

        def any_row(moment: Moment, row: int, other: int) -> str | None:
            if not moment.start <= other <= row:
                return None
            variable: str = chains.listed(moment.values[place])[other - moment.start]
            return variable

        return any_row

    def _live(self) -> list[tuple[int, ...]]:
        """Of each place the registers that a condition of a place behind it reads."""
        if not self.registers or self.program.length > FEW_PLACES:
            return [tuple(range(len(self.registers)))] * self.program.length
        ways = [set(self.program.behind(place, last=False)) - {ACCEPT} for place in range(self.program.length)]
        result = [set[int]() for _ in ways]
        changed = True
        while changed:
            changed = False
            for place in range(self.program.length - 1, -1, -1):
                before = len(result[place])
                for way in ways[place]:
                    result[place] |= result[way] | self._read[self.program.variables[way]]
                changed |= len(result[place]) > before
        return [tuple(sorted(one)) for one in result]

    # --- the search

    def find(self, start: int, low: int, high: int, number: int) -> list[int] | None:
        """The places of the preferred match from a row of the partition [low, high); None where there is none."""
        if self.local:
            return self._find_local(start, low, high)
        failed: set[Any] = set()
        times, bound, most = self.rows.times, self.plan.bound, self.plan.limit_per_start
        variables, live, program, hopeful = self.program.variables, self.live, self.program, self.hopeful
        path: list[int] = []
        steps = 0
        ways = iter(program.begin(first=start == low))
        stack: list[tuple[Iterator[int], int, tuple[Any, ...], Any]] = [
            (ways, start, tuple(register.start for register in self.registers), None)
        ]
        while stack:
            ways, row, values, own = stack[-1]
            for way in ways:
                if way == ACCEPT:
                    return path
                if row >= high or (bound is not None and abs(int(times[row]) - int(times[start])) >= bound):
                    continue
                if hopeful is not None and not hopeful[row] >> way & 1:
                    continue
                steps += 1
                if steps > most:
                    raise self._too_long(start)
                variable = variables[way]
                now = values and tuple(
                    register.step(value, row, variable, number)
                    for register, value in zip(self.registers, values, strict=True)
                )
                key = (row, way, tuple(now[place] for place in live[way]))
                if key in failed:
                    continue
                condition = self.asked[variable]
                if condition is None or condition(Moment(now, start, low, high, number), row, None) is True:
                    path.append(way)
                    stack.append((iter(program.behind(way, last=row + 1 == high)), row + 1, now, key))
                    break
            else:
                stack.pop()
                if path:
                    path.pop()
                    failed.add(own)
        return None

    def _find_local(self, start: int, low: int, high: int) -> list[int] | None:
        """As `find`, where conditions read the row and rows near it: at each row the first way that leads to the
        end."""
        stop, times, bound = high, self.rows.times, self.plan.bound
        if bound is not None:
            stop = start
            while stop < high and abs(int(times[stop]) - int(times[start])) < bound:
                stop += 1
        begin = low if bound is None else start
        if self._partition != (begin, stop):
            self._partition, self._can = (begin, stop), self._able(begin, stop, high)
        path: list[int] = []
        ways = self.program.begin(first=start == low)
        for row in range(start, stop + 1):
            able = self._can[row - begin]
            way = next((one for one in ways if one == ACCEPT or able >> one & 1), None)
            if way is None:
                return None
            if way == ACCEPT:
                return path
            path.append(way)
            ways = self.program.behind(way, last=row + 1 == high)
        return None

    def _able(self, begin: int, stop: int, high: int) -> list[int]:
        """Of each row from begin to stop, and behind them, the places that may take it so that a match ends before
        stop, a bit each."""
        program, end = self.program, 1 << self.program.length
        masks = [program.mask(place) for place in range(program.length)]
        of_variable: dict[str, list[int]] = {}
        for place, name in enumerate(program.variables):
            of_variable.setdefault(name, []).append(place)
        able = [0] * (stop - begin + 1)
        for row in range(stop - 1, begin - 1, -1):
            after, places = able[row + 1 - begin] | end, []
            moment = Moment((), row, self._low(row), high, 0)
            for name, own in of_variable.items():
                condition = self.asked[name]
                if condition is None or condition(moment, row, None) is True:
                    if row + 1 == high:
                        places += [place for place in own if program.ends(place)]
                    else:
                        places += [place for place in own if masks[place] & after]
            able[row - begin] = sum(1 << place for place in places)
        return able

    def _low(self, row: int) -> int:
        return int(self.rows.bounds[self.rows.partition_of[row]])

    def _too_long(self, start: int) -> SearchTooLongError:
        names = [name for name, one in self.conditions.items() if one.cls != "local"]
        return SearchTooLongError(
            f"{self.rows.described(start)}row {self.rows.id_of(start)}: the search takes more than "
            f"{self.plan.limit_per_start:,} steps (limit_per_start), for the sake of DEFINE {', '.join(names)}",
            hint="let conditions read the row and its neighbours only, bound it by within, or raise the limit",
        )
