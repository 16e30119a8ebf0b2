"""The rows of a question, by definition. Slow: it goes through sequences one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any

Row = Mapping[str, Any]
Mapped = tuple[tuple[str, bool], ...]
"""Of each row of a match so far its variable, and whether it is left out."""
Go = Callable[[Mapped], Iterator[Mapped]]

MOST_STEPS = 50_000


class TooLong(Exception):  # noqa: N818 - no mistake of the question
    """So many sequences are no test."""


@dataclass(frozen=True)
class Question:
    """A text as tuples (see the package), over rows with id, time (seconds), sym, x, y and s."""

    pattern: Any
    defines: Mapping[str, Any] = field(default_factory=dict)
    measures: Mapping[str, Any] = field(default_factory=dict)
    subsets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    partition: bool = False
    order: str = "event_time"
    rows: str = "one"
    skip: tuple[str, str] = ("past_last", "")
    within: int | None = None


def reference(question: Question, rows: Sequence[Row]) -> list[dict[str, Any]] | str:
    """The rows of the result, or the code of an error."""
    result: list[dict[str, Any]] = []
    parts: dict[Any, list[Row]] = {}
    for row in rows:
        parts.setdefault(row["sym"] if question.partition else None, []).append(row)
    for part in parts.values():
        part.sort(key=lambda row: row["id"])
        part.sort(key=lambda row: row["time"])
        words = question.order.split()
        if words[0] == "x":
            part.sort(key=lambda row: (row["x"] is None, row["x"] or 0))
        elif words[-1] == "DESC":
            part.sort(key=lambda row: row["time"], reverse=True)  # stable: ties stay by id
        try:
            result += _Partition(question, part).rows()
        except _SkipFailed:
            return "SKIP_FAILED"
    return result


class _SkipFailed(Exception):  # noqa: N818
    pass


class _Partition:
    def __init__(self, question: Question, rows: list[Row]) -> None:
        self.question, self.rows_of = question, rows
        self.steps = 0

    def rows(self) -> list[dict[str, Any]]:
        matches: list[tuple[int, Mapped]] = []
        row = 0
        while row < len(self.rows_of):
            number = len(matches) + 1
            mapped = next(self._derive(self.question.pattern, row, (), False, number), None)
            if mapped is None:
                row += 1
                continue
            matches.append((row, mapped))
            row = self._onward(row, mapped)
        return self._result(matches)

    # --- sequences, the preferred one first

    def _derive(self, part: Any, start: int, mapped: Mapped, out: bool, number: int) -> Iterator[Mapped]:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLong
        match part:
            case ("var", name):
                yield from self._take(name, start, mapped, out, number)
            case ("empty",):
                yield mapped
            case ("first",):
                if start + len(mapped) == 0:
                    yield mapped
            case ("last",):
                if start + len(mapped) == len(self.rows_of):
                    yield mapped
            case ("seq", *parts):
                yield from self._all(parts, start, mapped, out, number)
            case ("alt", *parts):
                for one in parts:
                    yield from self._derive(one, start, mapped, out, number)
            case ("permute", *parts):
                for order in permutations(range(len(parts))):
                    yield from self._all([parts[at] for at in order], start, mapped, out, number)
            case ("out", body):
                yield from self._derive(body, start, mapped, True, number)
            case ("rep", body, low, high, greedy):

                def go(one: Mapped) -> Iterator[Mapped]:
                    return self._derive(body, start, one, out, number)

                yield from self._again(go, low, high, greedy, 0, mapped)

    def _all(self, parts: Sequence[Any], start: int, mapped: Mapped, out: bool, number: int) -> Iterator[Mapped]:
        if not parts:
            yield mapped
            return
        for one in self._derive(parts[0], start, mapped, out, number):
            yield from self._all(parts[1:], start, one, out, number)

    def _again(
        self,
        go: Callable[[Mapped], Iterator[Mapped]],
        low: int,
        high: int | None,
        greedy: bool,
        done: int,
        mapped: Mapped,
    ) -> Iterator[Mapped]:
        if done >= low and not greedy:
            yield mapped
        if high is None or done < high:
            for one in go(mapped):
                if len(one) == len(mapped) and done + 1 >= low:
                    yield one
                else:
                    yield from self._again(go, low, high, greedy, done + 1, one)
        if done >= low and greedy:
            yield mapped

    def _take(self, name: str, start: int, mapped: Mapped, out: bool, number: int) -> Iterator[Mapped]:
        at = start + len(mapped)
        if at >= len(self.rows_of):
            return
        within = self.question.within
        if within is not None and abs(self.rows_of[at]["time"] - self.rows_of[start]["time"]) >= within:
            return
        now = (*mapped, (name, out))
        condition = self.question.defines.get(name)
        if condition is None or self._value(condition, start, now, now, number) is True:
            yield now

    def _onward(self, row: int, mapped: Mapped) -> int:
        mode, name = self.question.skip
        if not mapped or mode == "next":
            return row + 1
        if mode == "past_last":
            return row + len(mapped)
        wanted = self._members(name)
        places = [at for at, (variable, _) in enumerate(mapped) if variable in wanted]
        at = places[0 if mode == "first" else -1] if places else 0
        if not at:
            raise _SkipFailed
        return row + at

    # --- values

    def _members(self, name: str) -> tuple[str, ...] | None:
        return None if not name else self.question.subsets.get(name, (name,))

    def _read(self, node: Any) -> str:
        """The variable that an argument reads, "" for all rows."""
        match node:
            case ("col", variable, _) | ("label", variable):
                return str(variable)
            case ("op", _, left, right):
                return self._read(left) or self._read(right)
            case ("not", inner) | ("null?", inner):
                return self._read(inner)
        return ""

    def _places(self, variable: str, mapped: Mapped) -> list[int]:
        members = self._members(variable)
        return [at for at, (name, _) in enumerate(mapped) if members is None or name in members]

    def _value(self, node: Any, start: int, seen: Mapped, whole: Mapped, number: int) -> Any:
        """`seen`: the rows so far; `whole`: all rows that are mapped."""

        def value(one: Any) -> Any:
            return self._value(one, start, seen, whole, number)

        match node:
            case ("lit", constant):
                return constant
            case ("number",):
                return number
            case ("col", variable, _) | ("label", variable):
                places = self._places(variable, seen)
                return self._at(node, start + places[-1], start, whole, number) if places else None
            case ("op", sign, left, right):
                return combined(sign, value(left), value(right))
            case ("not", inner):
                held = value(inner)
                return None if held is None else not held
            case ("null?", inner):
                return value(inner) is None
            case ("nav", _, inner, _, final):
                row = self._base(node, start, whole if final else seen)
                return None if row is None else self._at(inner, row, start, whole, number)
            case ("near", word, ("nav", _, inner, _, final) as base, shift):
                row = self._base(base, start, whole if final else seen)
                row = None if row is None else row + (shift if word == "NEXT" else -shift)
                return None if row is None else self._at(inner, row, start, whole, number)
            case ("agg", function, inner, variable, final):
                mapped = whole if final else seen
                rows = [start + at for at in self._places(variable if inner is None else self._read(inner), mapped)]
                if inner is None:
                    return len(rows)
                return total(function, [self._at(inner, row, start, whole, number) for row in rows])
        raise AssertionError(node)

    def _base(self, node: Any, start: int, mapped: Mapped) -> int | None:
        """The row that a navigation reaches."""
        _, word, inner, offset, _ = node
        places = self._places(self._read(inner), mapped)
        if word in ("PREV", "NEXT"):
            if not places:
                return None
            return start + places[-1] + (offset if word == "NEXT" else -offset)
        if offset >= len(places):
            return None
        return start + places[offset if word == "FIRST" else len(places) - 1 - offset]

    def _at(self, node: Any, row: int, start: int, whole: Mapped, number: int) -> Any:
        """An argument at a row; NULL where there is none."""
        if not 0 <= row < len(self.rows_of):
            return None

        def value(one: Any) -> Any:
            return self._at(one, row, start, whole, number)

        match node:
            case ("lit", constant):
                return constant
            case ("number",):
                return number
            case ("col", _, name):
                return self.rows_of[row][name]
            case ("label", _):
                return whole[row - start][0] if start <= row < start + len(whole) else None
            case ("op", sign, left, right):
                return combined(sign, value(left), value(right))
            case ("not", inner):
                held = value(inner)
                return None if held is None else not held
            case ("null?", inner):
                return value(inner) is None
        raise AssertionError(node)

    # --- rows

    def _result(self, matches: list[tuple[int, Mapped]]) -> list[dict[str, Any]]:
        question, rows, result = self.question, self.rows_of, list[dict[str, Any]]()
        covered: set[int] = set()
        for number, (start, mapped) in enumerate(matches, 1):
            last = rows[start + max(len(mapped), 1) - 1]
            span = sorted((rows[start]["time"], last["time"]))
            key = {"match_id": rows[start]["id"], "start": span[0], "end": span[1]}
            if question.partition:
                key["sym"] = rows[start]["sym"]
            covered |= set(range(start, start + max(len(mapped), 1)))

            def measures(seen: Mapped, start: int = start, mapped: Mapped = mapped, number: int = number) -> Row:
                return {
                    name: self._value(node, start, seen, mapped, number) for name, node in question.measures.items()
                }

            if question.rows == "one":
                result.append({**key, **measures(mapped)})
            elif not mapped and question.rows != "omit":
                result.append({**key, **_own(rows[start]), **measures(())})
            for at, (_, out) in enumerate(mapped):
                if question.rows != "one" and not out:
                    result.append({**key, **_own(rows[start + at]), **measures(mapped[: at + 1])})
        if question.rows == "unmatched":
            for at, row in enumerate(rows):
                if at not in covered:
                    key = {"match_id": None, "start": row["time"], "end": row["time"]}
                    result.append({**key, **_own(row), **dict.fromkeys(question.measures)})
        return result


def _own(row: Row) -> dict[str, Any]:
    return {"event_id": row["id"], "sym": row["sym"], "x": row["x"], "y": row["y"], "s": row["s"]}


def combined(sign: str, a: Any, b: Any) -> Any:
    """Three-valued logic, comparisons and whole numbers."""
    if sign in ("AND", "OR"):
        decisive = sign == "OR"
        if a is decisive or b is decisive:
            return decisive
        return None if a is None or b is None else not decisive
    if a is None or b is None:
        return None
    return {
        "=": lambda: a == b,
        "<>": lambda: a != b,
        "<": lambda: a < b,
        "<=": lambda: a <= b,
        ">": lambda: a > b,
        ">=": lambda: a >= b,
        "+": lambda: a + b,
        "-": lambda: a - b,
        "||": lambda: a + b,
    }[sign]()


def total(function: str, values: list[Any]) -> Any:
    """An aggregate of the values of rows."""
    if function == "ARRAY_AGG":
        return values or None
    known = [value for value in values if value is not None]
    if function.startswith("DISTINCT"):
        function = function.removeprefix("DISTINCT ")
        known = list(dict.fromkeys(known))
    if function == "COUNT":
        return len(known)
    if not known:
        return None
    exact = sum(map(Fraction, known)) if function in ("SUM", "AVG") else Fraction(0)
    match function:
        case "SUM":
            return int(exact) if all(isinstance(value, int) for value in known) else float(exact)
        case "AVG":
            return float(exact / len(known))
        case "MIN":
            return min(known)
        case "MAX":
            return max(known)
        case "ANY_VALUE":
            return known[0]
        case "BOOL_AND":
            return all(known)
        case "BOOL_OR":
            return any(known)
    raise AssertionError(function)
