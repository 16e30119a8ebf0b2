"""SQL expressions: tokens to the nodes of `cep_core.language.syntax`, by precedence climbing."""

from __future__ import annotations

from dataclasses import replace

from trendlake.cep_core.errors import TextError
from trendlake.cep_core.expressions.sql_functions import CALENDAR, CASE, RESERVED, UNITS
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.language.parse import MAX_DEPTH, MAX_TREE
from trendlake.cep_core.language.tree_builder import MAX_DIGITS, microseconds, timestamp_us
from trendlake.cep_core.match_recognize.compile import syntax as r
from trendlake.cep_core.match_recognize.compile.reader import Reader
from trendlake.cep_core.match_recognize.compile.tokens import Token

COMPARE = {"=": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
TYPES = {
    "BIGINT": "int",
    "INT": "int",
    "INTEGER": "int",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "STRING": "string",
    "BOOLEAN": "boolean",
    "TIMESTAMP": "timestamp",
}
REFUSED = {
    "MATCH_ROWTIME": "LAST(event_time) is the time of the last row",
    "MATCH_SEQUENCE_NUMBER": "COUNT(*) is the number of the row in its match",
}
_SQL = {"CONCAT": "concat", "LENGTH": "length", "CHAR_LENGTH": "length", "ROUND": "round", "FLOOR": "floor"}
_SQL |= {"CEIL": "ceil", "CEILING": "ceil", "SQRT": "sqrt"}
_UNITS = frozenset(f"{unit}{end}" for unit in (*UNITS, "week") for end in ("", "s"))


class ExpressionReader(Reader):
    """Reads one expression at a time; raises TextError at its first mistake."""

    def expression(self) -> s.Expr:
        self.depth = 0
        node = self._or()
        _check_depth(node)
        return node

    def _span(self, start: Token) -> s.Span:
        return (start.start, self.tokens[max(self.at - 1, 0)].end)

    depth = 0

    def _or(self) -> s.Expr:
        start = self.here
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TextError(f"nested deeper than {MAX_DEPTH}", start.start)
        node = self._and()
        while self.takes("OR"):
            right = self._and()
            node = s.Binary("or", node, right, self._span(start))
        self.depth -= 1
        return node

    def _and(self) -> s.Expr:
        start = self.here
        node = self._not()
        while self.takes("AND"):
            right = self._not()
            node = s.Binary("and", node, right, self._span(start))
        return node

    def _not(self) -> s.Expr:
        start = self.here
        count = 0
        while self.takes("NOT"):
            count += 1
        if count > MAX_TREE:
            raise _too_deep(start.span)
        node = self._comparison()
        for _ in range(count):
            node = s.Unary("not", node, self._span(start))
        return node

    def _comparison(self) -> s.Expr:
        start = self.here
        node = self._concatenation()
        if self.here.sort == "sign" and self.here.text in COMPARE:
            op = COMPARE[self.take().text]
            right = self._concatenation()
            node = s.Binary(op, node, right, self._span(start))
        elif self.takes("IS"):
            node = self._is(node, start)
        else:
            negated = self.sees("NOT") and self.ahead().upper in ("IN", "BETWEEN", "LIKE")
            if negated:
                self.take()
            asked = self._test(node, start)
            if asked is None:
                return node
            node = s.Unary("not", asked, self._span(start)) if negated else asked
        if (self.here.sort == "sign" and self.here.text in COMPARE) or self.here.upper in ("IS", "IN", "BETWEEN"):
            token = self.here
            raise TextError(
                f"{token.shown()} behind a comparison", token.start, token.end - token.start, "put it in parentheses"
            )
        return node

    def _is(self, node: s.Expr, start: Token) -> s.Expr:
        negated = self.takes("NOT")
        if self.takes("NULL"):
            node = s.Unary("isnull", node, self._span(start))
        elif self.here.upper in ("TRUE", "FALSE"):
            wanted = s.Literal(self.take().upper == "TRUE", "boolean", self._span(start))
            false = s.Literal(False, "boolean", self._span(start))
            node = s.Call("coalesce", (s.Binary("=", node, wanted, self._span(start)), false), self._span(start))
        else:
            raise self.unexpected("expected NULL, TRUE or FALSE behind IS")
        return s.Unary("not", node, self._span(start)) if negated else node

    def _test(self, node: s.Expr, start: Token) -> s.Expr | None:
        """`IN`, `BETWEEN` or `LIKE` behind a value; None where there is none."""
        if self.takes("IN"):
            self.expect("(")
            self._refuse_query()
            choices = self._list()
            return s.In(node, choices, self._span(start))
        if self.takes("BETWEEN"):
            low = self._concatenation()
            if not self.takes("AND"):
                raise self.unexpected("expected AND of BETWEEN")
            high = self._concatenation()
            span = self._span(start)
            return s.Binary("and", s.Binary(">=", node, low, span), s.Binary("<=", node, high, span), span)
        if self.takes("LIKE"):
            arguments = [node, self._concatenation()]
            if self.takes("ESCAPE"):
                token = self.here
                if token.sort != "string" or len(_unquoted(token)) != 1:
                    raise self.unexpected("expected a text of one character behind ESCAPE")
                self.take()
                arguments.append(s.Literal(_unquoted(token), "string", token.span))
            return s.SqlCall("like", tuple(arguments), self._span(start))
        return None

    def _concatenation(self) -> s.Expr:
        start = self.here
        node = self._sum()
        parts = [node]
        while self.takes("||"):
            parts.append(self._sum())
        return node if len(parts) == 1 else s.SqlCall("concat", tuple(parts), self._span(start))

    def _sum(self) -> s.Expr:
        start = self.here
        node = self._product()
        while self.here.sort == "sign" and self.here.text in "+-":
            if self.here.text == "-" and self.ahead().text == "}" and self.ahead().start == self.here.end:
                return node
            op = self.take().text
            right = self._product()
            node = s.Binary(op, node, right, self._span(start))
        return node

    def _product(self) -> s.Expr:
        start = self.here
        node = self._unary()
        while self.here.sort == "sign" and self.here.text in "*/%":
            op = self.take().text
            right = self._unary()
            node = s.Binary(op, node, right, self._span(start))
        return node

    def _unary(self) -> s.Expr:
        start = self.here
        signs = []
        while self.here.sort == "sign" and self.here.text in "+-":
            signs.append(self.take().text)
        if len(signs) > MAX_TREE:
            raise _too_deep(start.span)
        node = self._primary()
        for sign in signs:
            node = s.Unary("-", node, self._span(start)) if sign == "-" else node
        return node

    def _primary(self) -> s.Expr:
        token = self.here
        if token.sort == "number":
            return self._number()
        if token.sort == "string":
            self.take()
            return s.Literal(_unquoted(token), "string", token.span)
        if token.text == "$" and token.sort == "sign":
            return self._parameter()
        if self.takes("("):
            self._refuse_query()
            node = self._or()
            if self.sees(","):
                raise self.unexpected("expected )", "a list of values stands behind IN only")
            self.expect(")")
            return node
        if not token.is_name:
            raise self.unexpected("expected a value")
        if token.sort == "word":
            special = self._word(token)
            if special is not None:
                return special
        return self._named()

    def _word(self, token: Token) -> s.Expr | None:
        """An expression that begins with a word of SQL; None where the word is a name."""
        word = token.upper
        if word in ("TRUE", "FALSE"):
            self.take()
            return s.Literal(word == "TRUE", "boolean", token.span)
        if word == "NULL":
            self.take()
            return s.Literal(None, "null", token.span)
        if word in ("INTERVAL", "TIMESTAMP", "DATE") and self.ahead().sort == "string":
            return self._time()
        if word == "CASE":
            return self._case()
        if word == "CAST" and self.ahead().text == "(":
            return self._cast()
        if word in ("RUNNING", "FINAL") and self.ahead().is_name and self.ahead().upper not in RESERVED:
            return self._semantics()
        if word == "EXISTS" and self.ahead().text == "(":
            raise TextError("no subqueries", token.start, token.end - token.start, SUBQUERY)
        if word in RESERVED:
            raise self.unexpected("expected a value", f'a name in quotes may be a word of SQL: "{token.text}"')
        return None

    def _named(self) -> s.Expr:
        first = self.take()
        if self.here.text == "(" and self.here.sort == "sign" and first.sort == "word":
            return self._call(first)
        if not self.sees("."):
            return s.Attribute("", first.text, False, first.span)
        self.take()
        if self.sees("*"):
            raise self.unexpected(f"expected a column behind {first.text}.", f"COUNT({first.text}.*) counts rows")
        if not self.here.is_name:
            raise self.unexpected(f"expected a column behind {first.text}.")
        column = self.take()
        if self.sees("."):
            raise self.unexpected("expected one name before the column")
        return s.Attribute(first.variable, column.text, False, (first.start, column.end))

    def _number(self) -> s.Expr:
        token = self.take()
        if len(token.text) > MAX_DIGITS or float(token.text) == float("inf"):
            raise TextError("a number that no column holds", token.start, token.end - token.start)
        if self.here.sort == "word" and self.here.text.lower() in _UNITS:
            unit = self.take()
            return microseconds(token.text, unit.text, (token.start, unit.end))
        literal = s.number(token.text)
        return s.Literal(literal.value, literal.kind, token.span)

    def _parameter(self) -> s.Expr:
        sign = self.take()
        name = self.here
        if name.sort != "word" or name.start != sign.end:
            raise TextError("expected a name behind $", sign.start, 1, "$name is a parameter of for_each")
        self.take()
        return s.Parameter(name.text, "", (sign.start, name.end))

    def _time(self) -> s.Expr:
        word, text = self.take(), self.take()
        value = _unquoted(text)
        if word.upper == "INTERVAL":
            unit = self.here
            if unit.sort != "word" or unit.text.lower() not in _UNITS:
                raise self.unexpected(
                    "expected a unit of time", "MICROSECOND, MILLISECOND, SECOND, MINUTE, HOUR, DAY or WEEK"
                )
            self.take()
            return microseconds(value, unit.text, (word.start, unit.end))
        return s.Literal(timestamp_us(value, text.start), "timestamp", (word.start, text.end))

    def _case(self) -> s.Expr:
        start = self.take()
        subject = None if self.sees("WHEN") else self._or()
        parts: list[s.Expr] = []
        while self.takes("WHEN"):
            condition = self._or()
            if subject is not None:
                condition = s.Binary("=", subject, condition, condition.span)
            if not self.takes("THEN"):
                raise self.unexpected("expected THEN")
            parts += [condition, self._or()]
        if not parts:
            raise self.unexpected("expected WHEN")
        parts.append(self._or() if self.takes("ELSE") else s.Literal(None, "null", self.here.span))
        if not self.takes("END"):
            raise self.unexpected("expected END of CASE")
        return s.SqlCall(CASE, tuple(parts), self._span(start))

    def _cast(self) -> s.Expr:
        start = self.take()
        self.take()
        node = self._or()
        if not self.takes("AS"):
            raise self.unexpected("expected AS and a type", "CAST(x AS BIGINT)")
        kind = self.here
        if kind.upper not in TYPES:
            raise self.unexpected("expected a type", "BIGINT, DOUBLE, VARCHAR, BOOLEAN or TIMESTAMP")
        self.take()
        if kind.upper == "DOUBLE":
            self.takes("PRECISION")
        if self.sees("("):
            raise self.unexpected("expected )", f"{kind.upper} has no length here")
        self.expect(")")
        return s.SqlCall(f"cast_{TYPES[kind.upper]}", (node,), self._span(start))

    def _semantics(self) -> s.Expr:
        word = self.take()
        node = self._named()
        if (isinstance(node, r.Navigate) and node.function in ("FIRST", "LAST")) or isinstance(node, r.Aggregate):
            return replace(node, semantics=word.upper, span=self._span(word))
        raise TextError(f"{word.upper} stands before FIRST, LAST and aggregates", word.start, word.end - word.start)

    def _call(self, name: Token) -> s.Expr:
        word = r.SAME.get(name.upper, name.upper)
        self.take()
        if word in REFUSED:
            raise TextError(f"{word} is not part of the standard", name.start, name.end - name.start, REFUSED[word])
        if word == "CLASSIFIER":
            variable = "" if self.sees(")") else self.name("a variable").variable
            self.expect(")")
            return r.Classifier(variable, "", False, self._span(name))
        if word == "MATCH_NUMBER":
            self.expect(")")
            return r.MatchNumber("", "", False, self._span(name))
        if word in r.AGGREGATES:
            return self._aggregate(name, word)
        self._refuse_query()
        arguments = () if self.takes(")") else self._list()
        self._refuse_behind(name)
        span = self._span(name)
        if word in r.NAVIGATION:
            if not 1 <= len(arguments) <= 2:
                raise TextError(f"{word} takes a value and, if any, an offset", span[0], span[1] - span[0])
            offset = arguments[1] if len(arguments) == 2 else None
            return r.Navigate("", "", False, span, word, arguments[0], offset)
        return self._function(name, word, arguments, span)

    def _function(self, name: Token, word: str, arguments: tuple[s.Expr, ...], span: s.Span) -> s.Expr:
        width = span[1] - span[0]
        if word == "MOD" and len(arguments) == 2:
            return s.Binary("%", arguments[0], arguments[1], span)
        if word == "NULLIF" and len(arguments) == 2:
            same = s.Binary("=", arguments[0], arguments[1], span)
            return s.SqlCall(CASE, (same, s.Literal(None, "null", span), arguments[0]), span)
        if word in ("MOD", "NULLIF"):
            raise TextError(f"{word} takes 2 arguments, not {len(arguments)}", span[0], width)
        if word == "DATE_TRUNC":
            unit = arguments[0] if arguments else None
            known = (*UNITS, *CALENDAR)
            text = unit.value.lower() if isinstance(unit, s.Literal) and isinstance(unit.value, str) else ""
            if text not in known or len(arguments) != 2:
                hint = f"units are {', '.join(known)}"
                raise TextError("DATE_TRUNC takes a unit in quotes and a time", span[0], width, hint)
            return s.SqlCall(f"date_trunc_{text}", (arguments[1],), span)
        if word in _SQL:
            if not arguments:
                raise TextError(f"{word} takes an argument", span[0], width)
            return s.SqlCall(_SQL[word], arguments, span)
        return s.Call(name.text.lower(), arguments, span)

    def _aggregate(self, name: Token, word: str) -> s.Expr:
        distinct = self.takes("DISTINCT")
        all_of: str | None = None
        arguments: tuple[s.Expr, ...] = ()
        if word == "COUNT" and self.sees("*", ")"):
            self.take()
            self.take()
            all_of = ""
        elif word == "COUNT" and self.here.is_name and self.ahead().text == "." and self.ahead(2).text == "*":
            all_of = self.take().variable
            self.take()
            self.take()
            self.expect(")")
        else:
            self._refuse_query()
            arguments = () if self.takes(")") else self._list(of_aggregate=True)
        self._refuse_behind(name)
        span = self._span(name)
        wanted = r.AGGREGATES[word]
        if all_of is None and len(arguments) != wanted:
            count = f"{wanted} argument{'s' if wanted > 1 else ''}"
            raise TextError(f"{word} takes {count}, not {len(arguments)}", span[0], span[1] - span[0])
        if distinct and (word not in ("COUNT", "SUM", "AVG") or all_of is not None):
            message = f"{word}{'(*)' if all_of is not None else ''} takes no DISTINCT"
            raise TextError(message, span[0], span[1] - span[0], "COUNT, SUM and AVG of a value take it")
        return r.Aggregate("", "", False, span, word, arguments, distinct, all_of)

    def _list(self, *, of_aggregate: bool = False) -> tuple[s.Expr, ...]:
        """Values with commas between them, to the parenthesis behind them."""
        values = [self._or()]
        while self.takes(","):
            values.append(self._or())
        if of_aggregate and self.sees("ORDER", "BY"):
            raise self.unexpected("expected )", "no ORDER BY in an aggregate: rows come in the order of the partition")
        self.expect(")")
        return tuple(values)

    def _refuse_behind(self, name: Token) -> None:
        here = self.here
        if here.upper == "OVER":
            hint = "PREV and NEXT read other rows; a computed column belongs to the source"
            raise TextError("no window functions", here.start, 4, hint)
        if here.upper == "FILTER" and self.ahead().text == "(":
            hint = f"{name.text}(CASE WHEN condition THEN x END) leaves rows out"
            raise TextError("no FILTER in an aggregate", here.start, 6, hint)
        if here.upper == "WITHIN" and self.ahead().upper == "GROUP":
            raise TextError("no WITHIN GROUP", here.start, 6, "rows come in the order of the partition")

    def _refuse_query(self) -> None:
        if self.here.upper in ("SELECT", "WITH"):
            raise TextError("no subqueries", self.here.start, self.here.end - self.here.start, SUBQUERY)


SUBQUERY = "make it a column of the source, or a list of values"


def _unquoted(token: Token) -> str:
    return token.text[1:-1].replace("''", "'")


def _too_deep(span: s.Span) -> TextError:
    message = f"more than {MAX_TREE} operators within one another"
    return TextError(message, span[0], 1, "x IN (1, 2, 3) asks for one of many")


def inside(node: s.Expr) -> tuple[s.Expr, ...]:
    """The expressions directly within one, those of navigations and aggregates too."""
    match node:
        case r.Navigate(argument=argument, offset=offset):
            return (argument,) if offset is None else (argument, offset)
        case r.Aggregate(arguments=arguments):
            return arguments
        case _:
            return s.children(node)


def _check_depth(node: s.Expr) -> None:
    left = [(node, 1)]
    while left:
        one, depth = left.pop()
        if depth > MAX_TREE:
            raise _too_deep(one.span)
        left.extend((child, depth + 1) for child in inside(one))
