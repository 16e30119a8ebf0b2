"""Text to path, by recursive descent over the grammar of docs/language-xml.md.

    path      := ("/" | "//") step tail* | "$"var tail+           tail := ("/" | "//") step
    step      := (name | prefix:name | *:name | *) predicate* | @(name | prefix:name | *:name | *) predicate*
    predicate := "[" or "]"          or := and ("or" and)*        and := test ("and" test)*
    test      := "(" or ")" | not(or) | contains(., text) | starts-with(., text)
               | operand | operand (= | !=) text | operand (= | != | < | <= | > | >=) number
    operand   := . | step tail* | . tail+

Every function raises a `PathError` that knows the offset. A construct of XPath that the subset lacks is refused with an
error that names it.
"""

from __future__ import annotations

from typing import cast

from trendlake.cep_core.documents.path_tokens import Namespaces, PathError, Token, tokens
from trendlake.cep_core.documents.paths import (
    Axis,
    Compare,
    Comparison,
    Exists,
    Name,
    Not,
    Path,
    Predicate,
    Step,
    TextFunction,
    TextTest,
    canonical,
    conjunction,
    disjunction,
)
from trendlake.cep_core.errors import (
    BadPatternError,
    NotSupportedError,
    PatternSyntaxError,
    TrendlakeError,
    UnknownPrefixError,
    did_you_mean,
)

MAX_DEPTH = 60
"""Brackets and parentheses within one another."""

_ARITHMETIC = ("+", "-", "*", "div", "mod")
_NODE_TESTS = ("text", "node", "comment", "processing-instruction")


def parse_path(text: str, namespaces: Namespaces) -> tuple[str | None, Path]:
    """(variable, path) of a path; None for the variable of an absolute one. Raises PathError."""
    return _Parser(text, namespaces).whole()


class _Parser:
    def __init__(self, text: str, namespaces: Namespaces) -> None:
        self.tokens = tokens(text)
        self.namespaces = namespaces.by_prefix
        self.at = 0
        self.depth = 0

    @property
    def next(self) -> Token:
        return self.tokens[self.at]

    def sees(self, *texts: str) -> bool:
        return self.next.text in texts and self.next.kind in ("mark", "name")

    def take(self) -> Token:
        token = self.next
        self.at += token.kind != "end"
        return token

    def refuse(self, kind: type[TrendlakeError], message: str, token: Token, hint: str | None = None) -> PathError:
        return PathError(kind(message, hint=hint), token.offset, len(token.text))

    def expect(self, mark: str) -> None:
        if not self.sees(mark):
            raise self.unexpected(f"expected '{mark}'")
        self.take()

    def unexpected(self, hint: str) -> PathError:
        token = self.next
        if token.kind == "end":
            return self.refuse(PatternSyntaxError, "it ends too early", token, hint)
        beyond = self.beyond_the_subset(token)
        return beyond or self.refuse(PatternSyntaxError, f"'{token.text}' is not expected here", token, hint)

    def beyond_the_subset(self, token: Token) -> PathError | None:
        """The error for a token that XPath would take here, perhaps, and the subset does not."""
        if token.kind == "mark" and token.text in ("|", "..", "::", "$"):
            what = {"|": "a union (|)", "..": "the parent axis (..)"}.get(token.text, "an axis by name")
            return self.refuse(NotSupportedError, f"{what} is not supported", token, _AXES)
        if token.kind in ("mark", "name") and token.text in _ARITHMETIC:
            return self.refuse(NotSupportedError, f"arithmetic ('{token.text}') is not supported", token)
        return None

    def whole(self) -> tuple[str | None, Path]:
        variable = None
        if self.next.kind == "variable":
            variable = self.take().text[1:]
            if self.next.kind == "end":
                hint = f"a path goes on from it, such as ${variable}/title"
                raise self.refuse(PatternSyntaxError, f"'${variable}' alone is not a path", self.tokens[0], hint)
        if not self.sees("/", "//"):
            if variable is None and self.next.kind == "name" and self.tokens[self.at + 1].text == "(":
                raise self.refuse(NotSupportedError, f"the function {self.next.text}() is not supported", self.next)
            raise self.unexpected("a path begins with /, // or a variable, such as //book or $book/author")
        steps = self.tails(first=variable is None)
        if self.next.kind != "end":
            raise self.unexpected("a path goes on with /, // or a predicate in []")
        return variable, Path(tuple(steps))

    def tails(self, first: bool = False) -> list[Step]:
        steps: list[Step] = []
        while self.sees("/", "//"):
            if steps and steps[-1].attribute:
                raise self.refuse(BadPatternError, "an attribute has nothing below it", self.next)
            axis = self.take()
            if first and not steps and axis.text == "/" and self.sees("@"):
                raise self.refuse(BadPatternError, "a document has no attributes: write //@ ...", self.next)
            steps.append(self.step(cast("Axis", axis.text)))
        return steps

    def step(self, axis: Axis) -> Step:
        attribute = self.sees("@")
        if attribute:
            self.take()
        token = self.next
        if token.kind == "mark" and token.text == ".":
            raise self.refuse(NotSupportedError, "the self axis (.) is not supported in a path", token, _AXES)
        if token.kind != "name":
            raise self.unexpected("expected the name of an element, *, or @ and the name of an attribute")
        self.take()
        if self.sees("::"):
            raise self.refuse(NotSupportedError, f"the axis '{token.text}::' is not supported", token, _AXES)
        if self.sees("("):
            raise self.function(token)
        return Step(axis, attribute, self.name(token, attribute), self.predicates())

    def function(self, token: Token) -> PathError:
        name = token.text
        if name in _NODE_TESTS:
            hint = "the value of an element is the text in it: leave text() out" if name == "text" else None
            return self.refuse(NotSupportedError, f"{name}() is not supported", token, hint)
        if name in ("last", "position"):
            return self.refuse(NotSupportedError, f"positions are not supported: {name}()", token)
        hint = "supported: not(), and contains(., 'text') and starts-with(., 'text') in predicates"
        return self.refuse(NotSupportedError, f"the function {name}() is not supported", token, hint)

    def name(self, token: Token, attribute: bool) -> Name:
        prefix, colon, local = token.text.rpartition(":")
        if token.text == "*":
            return Name(None, None)
        if local == "*":
            message = f"'{token.text}', every name of one namespace, is not supported"
            raise self.refuse(NotSupportedError, message, token, "write the names out, or * for every name")
        if prefix == "*":
            return Name(None, local)
        if colon and prefix not in self.namespaces:
            hint = did_you_mean(prefix, [one for one in self.namespaces if one])
            raise self.refuse(UnknownPrefixError, f"'namespaces' has no prefix '{prefix}'", token, hint)
        return Name(self.namespaces[prefix] if colon else "" if attribute else self.namespaces.get("", ""), local)

    def predicates(self) -> tuple[Predicate, ...]:
        tests: list[Predicate] = []
        while self.sees("["):
            self.enter()
            tests.append(self.disjunction())
            self.leave("]")
        return canonical(tests)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refuse(PatternSyntaxError, f"nested deeper than {MAX_DEPTH}", self.next)
        self.take()

    def leave(self, mark: str) -> None:
        self.expect(mark)
        self.depth -= 1

    def disjunction(self) -> Predicate:
        tests = [self.conjunction()]
        while self.sees("or"):
            self.take()
            tests.append(self.conjunction())
        return disjunction(tests)

    def conjunction(self) -> Predicate:
        tests = [self.test()]
        while self.sees("and"):
            self.take()
            tests.append(self.test())
        return conjunction(tests)

    def test(self) -> Predicate:
        token = self.next
        after = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        called = token.kind == "name" and after.kind == "mark" and after.text == "("
        if self.sees("("):
            self.enter()
            inner = self.disjunction()
            self.leave(")")
            return inner
        if called and token.text == "not":
            self.take()
            self.enter()
            inner = self.disjunction()
            self.leave(")")
            return Not(inner)
        if called and token.text in ("contains", "starts-with"):
            return self.text_test(cast("TextFunction", token.text))
        if called:
            raise self.function(token)
        if token.kind == "number" or (token.text == "-" and after.kind == "number"):
            if after.kind == "mark" and after.text == "]":
                raise self.refuse(NotSupportedError, f"positions are not supported: [{token.text}]", token)
            raise self.refuse(PatternSyntaxError, "a number stands on the right of a comparison", token)
        if token.kind == "text":
            raise self.refuse(PatternSyntaxError, "a text stands on the right of a comparison", token)
        return self.comparison()

    def text_test(self, function: TextFunction) -> Predicate:
        self.take()
        self.expect("(")
        if not (self.sees(".") and self.tokens[self.at + 1].text == ","):
            hint = f"put the test on the node itself: title[{function}(., 'text')]"
            raise self.refuse(NotSupportedError, f"{function}() looks at the node itself only: .", self.next, hint)
        self.take()
        self.expect(",")
        value = self.take()
        if value.kind != "text":
            raise self.refuse(NotSupportedError, f"{function}() takes a text in quotes", value)
        self.expect(")")
        return TextTest(function, value.text[1:-1])

    def comparison(self) -> Predicate:
        begin = self.next
        path = self.operand()
        if not self.sees("=", "!=", "<", "<=", ">", ">="):
            if not path.steps:
                raise self.unexpected("'.' alone is compared with a text or a number: . = 'text'")
            if not self.sees("]", ")", "and", "or"):
                raise self.unexpected(f"expected a comparison, 'and', 'or' or a bracket after '{begin.text}'")
            return Exists(path)
        operator = self.take()
        return Compare(path, cast("Comparison", operator.text), self.literal(operator))

    def literal(self, operator: Token) -> str | float:
        token = self.take()
        if token.kind == "text":
            if operator.text not in ("=", "!="):
                message = f"texts are compared with = and != only, not with {operator.text}"
                raise self.refuse(NotSupportedError, message, operator)
            return token.text[1:-1]
        sign = 1.0
        if token.kind == "mark" and token.text == "-" and self.next.kind == "number":
            sign, token = -1.0, self.take()
        if token.kind == "number":
            return sign * float(token.text)
        if token.kind == "end":
            raise self.refuse(PatternSyntaxError, "it ends too early", token, "expected a text in quotes or a number")
        if token.kind in ("name", "variable") or token.text in ("/", "//", ".", "..", "@"):
            message = "a comparison is with a text or a number, not with a path or variable"
            raise self.refuse(NotSupportedError, message, token, "texts are in quotes; compare variables in 'where'")
        raise self.refuse(PatternSyntaxError, f"'{token.text}' is not expected here", token)

    def operand(self) -> Path:
        token = self.next
        if token.kind == "variable" or self.sees("/", "//"):
            what = "a variable" if token.kind == "variable" else "an absolute path"
            hint = "a path in a predicate begins at the node: title, @id or .//title"
            raise self.refuse(NotSupportedError, f"{what} in a predicate is not supported", token, hint)
        if self.sees("."):
            self.take()
            return Path(tuple(self.tails()))
        steps = [self.step("/")]
        if self.sees("/", "//") and steps[0].attribute:
            raise self.refuse(BadPatternError, "an attribute has nothing below it", self.next)
        return Path((*steps, *self.tails()))


_AXES = "supported: / (child), // (descendant) and @ (attribute)"
