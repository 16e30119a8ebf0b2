"""The text of a row pattern to its syntax tree: clause by clause, so that the mistakes of all are found at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from trendlake.cep_core.errors import TextError
from trendlake.cep_core.expressions.sql_functions import RESERVED
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.match_recognize.compile import syntax as r
from trendlake.cep_core.match_recognize.compile.parse_expression import SUBQUERY, ExpressionReader
from trendlake.cep_core.match_recognize.compile.parse_pattern import PatternReader
from trendlake.cep_core.match_recognize.compile.reader import Reader
from trendlake.cep_core.match_recognize.compile.tokens import Token, tokens_of

T = TypeVar("T")

ORDER = (
    "PARTITION BY",
    "ORDER BY",
    "MEASURES",
    "ROW PER MATCH",
    "AFTER MATCH SKIP",
    "PATTERN",
    "WITHIN",
    "SUBSET",
    "DEFINE",
)
"""The clauses, in their order."""
BEHIND = {
    "ORDER": ("the rows of a result have no order", "readers of the table order its rows"),
    "LIMIT": ("a result has all its rows", "leave LIMIT out"),
    "FETCH": ("a result has all its rows", "leave FETCH out"),
    "GROUP": ("a result has a row for each match", "aggregates of a match stand in MEASURES"),
    "HAVING": ("a result has a row for each match", "aggregates of a match stand in MEASURES"),
    "OPTIONS": ("the match is the preferred one, not the longest", "write the longer alternative first"),
    "UNION": ("one text is one pattern", "write a pattern for each"),
}


@dataclass
class Parsed:
    """The readable part of a text, and its mistakes, each with the clause that it is in."""

    query: r.Query
    errors: list[tuple[str, TextError]] = field(default_factory=list)


@lru_cache(maxsize=200)
def parse_query(text: str) -> Parsed:
    """The tree of a text and its mistakes."""
    try:
        tokens = tokens_of(text)
    except TextError as error:
        return Parsed(r.Query(None), [("", error)])
    return _Parser(text, tokens).whole()


class _Parser:
    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text, self.tokens = text, tokens
        self.errors: list[tuple[str, TextError]] = []
        self.values: dict[str, Any] = {"pattern": None}

    def report(self, where: str, error: TextError) -> None:
        self.errors.append((where, error))

    def refuse(self, where: str, message: str, token: Token, hint: str | None = None) -> None:
        self.report(where, TextError(message, token.start, max(1, token.end - token.start), hint))

    def whole(self) -> Parsed:
        word = next((at for at, token in enumerate(self.tokens) if token.upper == "MATCH_RECOGNIZE"), None)
        if word is None:
            hint = "such as  FROM trades MATCH_RECOGNIZE (PATTERN (A B+) DEFINE A AS x > 1)"
            first = self.tokens[0]
            self.refuse("", "the text has no MATCH_RECOGNIZE", first, hint)
            return self._done()
        self._before(self.tokens[:word])
        reader = Reader(self.tokens)
        reader.at = word + 1
        if not reader.sees("("):
            self.report("", reader.unexpected("expected ( behind MATCH_RECOGNIZE"))
            return self._done()
        begin = word + 2
        end = _closing(self.tokens, word + 1)
        if self.tokens[end].sort == "end":
            self.refuse("", "the ( of MATCH_RECOGNIZE has no )", self.tokens[word + 1])
        self._clauses(begin, end)
        self._behind(end + 1)
        return self._done()

    def _done(self) -> Parsed:
        return Parsed(r.Query(**self.values), sorted(self.errors, key=lambda one: one[1].offset))

    def _part(self, begin: int, end: int) -> list[Token]:
        """Some tokens with an end where the next one begins."""
        at = self.tokens[end].start if end < len(self.tokens) else len(self.text)
        return [*self.tokens[begin:end], Token("end", "", at, at)]

    # --- around the clause

    def _before(self, tokens: list[Token]) -> None:
        if not tokens:
            return
        end = self.tokens[len(tokens)].start
        reader = ExpressionReader([*tokens, Token("end", "", end, end)])
        if reader.sees("WITH"):
            self.refuse("", "no WITH before SELECT", reader.here, "make it a table, or a query behind FROM")
            return
        if reader.takes("SELECT"):
            if reader.here.upper in ("DISTINCT", "ALL"):
                self.refuse("SELECT", f"no SELECT {reader.here.upper}", reader.take(), "rows have a key: none repeats")
            self.values["items"] = self._items(reader, "SELECT", ("FROM",))
            if not reader.takes("FROM"):
                self.report("SELECT", reader.unexpected("expected FROM"))
                return
        else:
            reader.takes("FROM")
        if reader.ended:
            return
        try:
            self.values["input"] = self._input(reader)
        except TextError as error:
            self.report("FROM", error)

    def _input(self, reader: ExpressionReader) -> r.Input:
        if reader.takes("("):
            if not reader.takes("SELECT"):
                raise reader.unexpected(
                    "expected SELECT", "FROM (SELECT * FROM trades WHERE x > 1) MATCH_RECOGNIZE ..."
                )
            if reader.here.upper == "DISTINCT":
                self.refuse("FROM", "no SELECT DISTINCT", reader.take(), "events have ids: none repeats")
            items = self._items(reader, "FROM", ("FROM",))
            if not reader.takes("FROM"):
                raise reader.unexpected("expected FROM")
            if reader.here.text == "(":
                raise reader.unexpected("expected a table", "one query behind FROM is possible")
            table = reader.name("a table")
            table = self._dotted(reader, table)
            self._called(reader, ("WHERE",))
            self._refuse_join(reader)
            condition = reader.expression() if reader.takes("WHERE") else None
            for word in ("GROUP", "ORDER", "LIMIT", "HAVING", "UNION"):
                if reader.sees(word):
                    raise reader.unexpected("expected )", f"the query behind FROM has no {word}")
            reader.expect(")")
            result = r.Input(table, items, condition)
        else:
            result = r.Input(self._dotted(reader, reader.name("a table")))
        self._called(reader, ())
        self._refuse_join(reader)
        if not reader.ended:
            raise reader.unexpected("expected MATCH_RECOGNIZE")
        return result

    def _dotted(self, reader: Reader, table: r.Name) -> r.Name:
        while reader.sees(".") or reader.sees("/"):
            between = reader.take().text
            last = reader.name("a table")
            text = f"{table.text}{between}{last.text}"
            table = r.Name(text, text, (table.span[0], last.span[1]))
        return table

    def _called(self, reader: Reader, stops: Sequence[str]) -> str:
        """The name that a table is given, "" for none."""
        if reader.takes("AS"):
            return reader.name("a name").text
        joins = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
        ends = (*stops, *joins, *BEHIND, "WHERE")
        return reader.take().text if reader.here.is_name and reader.here.upper not in ends else ""

    def _refuse_join(self, reader: Reader) -> None:
        words = ("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL")
        if reader.here.text == "," or reader.here.upper in words:
            token = reader.here
            raise TextError("a join", token.start, token.end - token.start, "make one table of it first")

    def _behind(self, at: int) -> None:
        reader = ExpressionReader(self.tokens)
        reader.at = min(at, len(self.tokens) - 1)
        try:
            self.values["called"] = self._called(reader, ())
            self._refuse_join(reader)
            if reader.takes("WHERE"):
                self.values["condition"] = reader.expression()
            reader.takes(";")
        except TextError as error:
            self.report("WHERE" if "condition" not in self.values else "", error)
            reader.past(*BEHIND, ";")
        if reader.here.upper in BEHIND:
            word = reader.here.upper
            message, hint = BEHIND[word]
            shown = f"{word} BY" if reader.ahead().upper == "BY" else word
            self.refuse("", f"{shown} around MATCH_RECOGNIZE: {message}", reader.here, hint)
        elif not reader.ended and not self.errors:
            self.refuse("", f"{reader.here.shown()} is not expected here", reader.here, "one text is one pattern")

    # --- lists

    def _items(self, reader: ExpressionReader, where: str, stops: Sequence[str]) -> tuple[r.Item, ...]:
        """Items with commas between them, up to one of `stops`."""
        items: list[r.Item] = []
        while True:
            start, at = reader.here, reader.at
            try:
                items.append(self._item(reader, stops))
                if not (reader.sees(",") or reader.ended or reader.here.upper in stops or reader.sees(")")):
                    raise reader.unexpected("expected , or AS and a name")
            except TextError as error:
                self.report(
                    f"{where} {_name_of(reader, start, stops)}".strip() if where == "MEASURES" else where, error
                )
                reader.at = at
                reader.past(",", *stops)
            if not reader.takes(","):
                return tuple(items)

    def _item(self, reader: ExpressionReader, stops: Sequence[str]) -> r.Item:
        start = reader.here
        if reader.takes("*"):
            return r.Item(None, None, start.span)
        if start.is_name and reader.ahead().text == "." and reader.ahead(2).text == "*":
            for _ in range(3):
                reader.take()
            return r.Item(None, None, start.span)
        value = reader.expression()
        name = None
        if reader.takes("AS") or (reader.here.is_name and reader.here.upper not in (*stops, *RESERVED)):
            name = reader.name("a name")
        return r.Item(value, name, (start.start, reader.tokens[reader.at - 1].end))

    # --- the clause

    def _clauses(self, begin: int, end: int) -> None:
        starts = self._starts(begin, end)
        if not starts or starts[0][1] > begin:
            token = self.tokens[begin]
            if token.text == "SELECT" or token.upper == "SELECT":
                self.refuse("", "no subqueries", token, SUBQUERY)
            elif not (begin == end and not starts):
                self.refuse("", f"expected a clause such as PATTERN, found {token.shown()}", token)
        self._check_order(starts)
        seen: set[str] = set()
        for (clause, at), (_, stop) in zip(starts, [*starts[1:], ("", end)], strict=True):
            if clause in seen:
                self.refuse("", f"{clause} stands here a second time", self.tokens[at], "each clause stands once")
                continue
            seen.add(clause)
            self._read(clause, self._part(at, stop))
        if "PATTERN" not in seen:
            self.refuse("", "PATTERN is missing", self.tokens[end], "such as  PATTERN (A B+)")

    def _starts(self, begin: int, end: int) -> list[tuple[str, int]]:
        """The clauses and where each begins."""
        result: list[tuple[str, int]] = []
        depth = 0
        for at in range(begin, end):
            token = self.tokens[at]
            if token.sort == "sign":
                depth += (token.text in ("(", "{", "[")) - (token.text in (")", "}", "]"))
            elif token.sort == "word" and not depth:
                before, earlier = (self.tokens[max(at - by, begin)].upper for by in (1, 2))
                target = before in ("FIRST", "LAST") and earlier == "TO"
                if at > begin and (target or before in ("AS", ".", "TO", "BY")):
                    continue
                clause = self._clause_at(at)
                if clause is not None:
                    result.append((clause, at))
        return result

    def _clause_at(self, at: int) -> str | None:
        def word(by: int) -> str:
            return self.tokens[min(at + by, len(self.tokens) - 1)].upper

        match word(0):
            case "PARTITION" | "ORDER" as first if word(1) == "BY":
                return f"{first} BY"
            case "MEASURES" if word(1) not in (",", ".", ")", "="):
                return "MEASURES"
            case "ONE" if word(1) == "ROW":
                return "ROW PER MATCH"
            case "ALL" if word(1) == "ROWS":
                return "ROW PER MATCH"
            case "AFTER" if word(1) == "MATCH":
                return "AFTER MATCH SKIP"
            case "INITIAL" | "SEEK" as mode if word(1) in ("PATTERN", "DEFINE", "SUBSET", ""):
                return mode
            case "PATTERN" if word(1) == "(":
                return "PATTERN"
            case "WITHIN" if word(1) == "INTERVAL":
                return "WITHIN"
            case "SUBSET" if word(2) == "=":
                return "SUBSET"
            case "DEFINE" if word(2) == "AS":
                return "DEFINE"
        return None

    def _check_order(self, starts: list[tuple[str, int]]) -> None:
        last = ""
        ranks = {clause: rank for rank, clause in enumerate(ORDER)}
        for place, (clause, at) in enumerate(starts):
            if clause == "DEFINE" and any(other != "DEFINE" for other, _ in starts[place + 1 :]):
                self.refuse("", "DEFINE stands after PATTERN and SUBSET", self.tokens[at])
                return
            if clause not in ranks:
                continue
            if last and ranks[clause] < ranks[last]:
                first = next(name for name, _ in starts if ranks.get(name, -1) > ranks[clause])
                self.refuse("", f"{clause} stands before {first}", self.tokens[at])
                return
            last = clause

    def _read(self, clause: str, tokens: list[Token]) -> None:
        readers: dict[str, Callable[[list[Token]], None]] = {
            "PARTITION BY": self._partition_by,
            "ORDER BY": self._order_by,
            "MEASURES": self._measures,
            "ROW PER MATCH": self._rows_per_match,
            "AFTER MATCH SKIP": self._skip,
            "INITIAL": self._initial,
            "SEEK": self._initial,
            "PATTERN": self._pattern,
            "WITHIN": self._within,
            "SUBSET": self._subset,
            "DEFINE": self._define,
        }
        try:
            readers[clause](tokens)
        except TextError as error:
            self.report("" if clause in ("ROW PER MATCH", "AFTER MATCH SKIP", "INITIAL", "SEEK") else clause, error)

    def _partition_by(self, tokens: list[Token]) -> None:
        reader = Reader(tokens)
        reader.at = 2
        columns = [reader.name("a column")]
        while reader.takes(","):
            columns.append(reader.name("a column"))
        self.values["partition_by"] = tuple(columns)
        _finish(reader, "a computed column stands in the query behind FROM")

    def _order_by(self, tokens: list[Token]) -> None:
        reader = Reader(tokens)
        reader.at = 2
        keys = [self._key(reader)]
        while reader.takes(","):
            keys.append(self._key(reader))
        self.values["order_by"] = tuple(keys)
        _finish(reader, "a computed column stands in the query behind FROM")

    def _key(self, reader: Reader) -> r.Key:
        column = reader.name("a column")
        descending = reader.takes("DESC")
        if not descending:
            reader.takes("ASC")
        nulls = None
        if reader.takes("NULLS"):
            if reader.here.upper not in ("FIRST", "LAST"):
                raise reader.unexpected("expected FIRST or LAST behind NULLS")
            nulls = reader.take().upper == "FIRST"
        return r.Key(column, descending, nulls)

    def _measures(self, tokens: list[Token]) -> None:
        reader = ExpressionReader(tokens)
        reader.at = 1
        self.values["measures"] = self._items(reader, "MEASURES", ())

    def _rows_per_match(self, tokens: list[Token]) -> None:
        reader = Reader(tokens)
        self.values["rows_span"] = (tokens[0].start, tokens[-2].end)
        every = reader.take().upper == "ALL"
        if not reader.takes("ROWS" if every else "ROW", "PER", "MATCH"):
            raise reader.unexpected(f"expected {'ALL ROWS' if every else 'ONE ROW'} PER MATCH")
        self.values["all_rows"] = every
        modes = {
            ("SHOW", "EMPTY", "MATCHES"): "show",
            ("OMIT", "EMPTY", "MATCHES"): "omit",
            ("WITH", "UNMATCHED", "ROWS"): "unmatched",
        }
        for words, mode in modes.items():
            start = reader.here
            if reader.takes(*words):
                if not every:
                    message = f"{' '.join(words)} follows ALL ROWS PER MATCH"
                    raise TextError(message, start.start, reader.tokens[reader.at - 1].end - start.start)
                self.values["empty"] = mode
                break
        _finish(reader, "SHOW EMPTY MATCHES, OMIT EMPTY MATCHES or WITH UNMATCHED ROWS may follow ALL ROWS PER MATCH")

    def _skip(self, tokens: list[Token]) -> None:
        reader = Reader(tokens)
        reader.at = 2
        modes = "SKIP PAST LAST ROW, SKIP TO NEXT ROW, SKIP TO FIRST v or SKIP TO LAST v"
        if not reader.takes("SKIP"):
            raise reader.unexpected("expected SKIP", modes)
        span = (tokens[0].start, tokens[-2].end)
        if reader.takes("PAST", "LAST", "ROW"):
            self.values["skip"] = r.Skip("past_last", None, span)
        elif reader.takes("TO", "NEXT", "ROW"):
            self.values["skip"] = r.Skip("next", None, span)
        elif reader.takes("TO"):
            first = reader.sees("FIRST") and reader.ahead().is_name
            if first or (reader.sees("LAST") and reader.ahead().is_name):
                reader.take()
            self.values["skip"] = r.Skip("first" if first else "last", reader.name("a variable"), span)
        else:
            raise reader.unexpected("expected where matching goes on", modes)
        _finish(reader, modes)

    def _initial(self, tokens: list[Token]) -> None:
        if tokens[0].upper == "SEEK":
            message = "SEEK belongs to row patterns in WINDOW"
            raise TextError(message, tokens[0].start, 4, "leave it out: matching begins at each row in turn")
        reader = Reader(tokens)
        reader.take()
        _finish(reader, None)

    def _pattern(self, tokens: list[Token]) -> None:
        end = _closing(tokens, 1)
        stop = tokens[end]
        reader = PatternReader([*tokens[2:end], Token("end", "", stop.start, max(stop.end, stop.start + 1))], self.text)
        if stop.sort == "end":
            self.refuse("PATTERN", "the ( of PATTERN has no )", tokens[1])
        try:
            self.values["pattern"] = reader.pattern()
            if not reader.ended:
                raise reader.unexpected("expected a variable, ( or ^")
        except TextError as error:
            self.report("PATTERN", error)
            self.values["pattern"] = None
        for mistake in reader.errors:
            self.report("PATTERN", mistake)
        rest = Reader(tokens)
        rest.at = min(end + 1, len(tokens) - 1)
        _finish(rest, None)

    def _within(self, tokens: list[Token]) -> None:
        reader = ExpressionReader(tokens)
        reader.at = 1
        literal = reader.expression()
        if not isinstance(literal, s.Literal) or literal.kind != "duration":
            raise TextError("expected an INTERVAL", tokens[1].start, 1, "WITHIN INTERVAL '1' HOUR")
        if not isinstance(literal.value, int) or literal.value <= 0:
            raise TextError("a duration is more than zero", literal.span[0], literal.span[1] - literal.span[0])
        self.values["within"] = (literal.value, literal.span)
        _finish(reader, None)

    def _subset(self, tokens: list[Token]) -> None:
        reader = Reader(tokens)
        reader.at = 1
        result: list[tuple[r.Name, tuple[r.Name, ...]]] = []
        self.values["subsets"] = ()
        while True:
            name = reader.name("a name")
            reader.expect("=")
            reader.expect("(")
            members = [reader.name("a variable")]
            while reader.takes(","):
                members.append(reader.name("a variable"))
            reader.expect(")")
            result.append((name, tuple(members)))
            self.values["subsets"] = tuple(result)
            if not reader.takes(","):
                break
        _finish(reader, "SUBSET u = (v, w), ...")

    def _define(self, tokens: list[Token]) -> None:
        reader = ExpressionReader(tokens)
        reader.at = 1
        result: list[tuple[r.Name, s.Expr | None]] = []
        while True:
            where, at = "DEFINE", reader.at
            try:
                name = reader.name("a variable")
                where = f"DEFINE {name.variable}"
                result.append((name, None))
                if not reader.takes("AS"):
                    raise reader.unexpected("expected AS")
                value = reader.expression()
                if not (reader.sees(",") or reader.ended):
                    raise reader.unexpected("expected , and the next variable")
                result[-1] = (name, value)
            except TextError as error:
                self.report(where, error)
                reader.at = at
                reader.past(",")
            if not reader.takes(","):
                break
        self.values["defines"] = tuple(result)
        _finish(reader, None)


def _finish(reader: Reader, hint: str | None) -> None:
    if not reader.ended:
        token = reader.here
        raise TextError(f"{token.shown()} is not expected here", token.start, token.end - token.start, hint)


def _closing(tokens: Sequence[Token], at: int) -> int:
    """The place of the parenthesis that closes that at `at`; that of the end where none does."""
    depth = 0
    for place in range(at, len(tokens)):
        if tokens[place].sort == "sign":
            depth += (tokens[place].text == "(") - (tokens[place].text == ")")
            if not depth:
                return place
    return len(tokens) - 1


def _name_of(reader: Reader, start: Token, stops: Sequence[str]) -> str:
    """The name of the measure that begins at a token, for a mistake in it."""
    look = Reader(reader.tokens)
    look.at = reader.tokens.index(start)
    look.past(",", *stops)
    last = reader.tokens[max(look.at - 1, 0)]
    return last.text if last.is_name and last.start > start.start else ""
