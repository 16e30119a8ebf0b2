"""Files as a stranger, a slip or an attacker may leave them: strategies of shipped files with mistakes of their text,
of their tree and of their expressions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tests.random.bad_files import SHIPPED, BadFile
from trendlake.cep_core.yaml.source import plain, read_yaml
from trendlake.pipelines.contracts.read_rules import BOUNDS
from trendlake.pipelines.contracts.rule_options import ARGUMENTS, LENGTHS

# --- mistakes of the text -------------------------------------------------------------------------------------

FRAGMENTS = (
    "'",
    '"',
    "`",
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ": ",
    "- ",
    "#",
    "&a ",
    "*a",
    "*a, *a",
    "<<: *a",
    "<<: {a: 1}",
    "!!python/object:os.system ",
    "!!set ",
    "!!binary ",
    "!!timestamp ",
    "!x ",
    "? ",
    "|\n",
    ">-\n",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "%TAG ! x\n",
    "\t",
    "\x00",
    "\x07",
    "\x85",
    "\u2028",
    "\ufeff",
    "\u202e",
    "\U0001f600",
    "é",
    "\\ud800",
    "\\0",
    "~",
    "null",
    "0777",
    "0o777",
    "0x1F",
    "1_000",
    "1e999",
    "-.inf",
    ".nan",
    "1:30:00",
    "2013-02-30",
    "0000-00-00",
    "2013-01-01T00:00:00+99:00",
    "true",
    "yes",
    "9" * 400,
    "9" * 5000,
    "S{1,1000000000}",
    "{0,1000}",
    "../x",
    "a/b",
    ".",
    "..",
    "x" * 300,
    "; DROP TABLE t",
    "' OR 1=1 --",
    "$(id)",
    "{{ 7*7 }}",
    "${HOME}",
    "__import__('os')",
    "%s%n",
)

Lines = list[str]


def _spoil(draw: DrawFn, text: str) -> str:
    """One slip of a typist, or worse, in a text."""
    lines = text.split("\n")
    at = draw(st.integers(0, len(lines) - 1))
    other = draw(st.integers(0, len(lines) - 1))
    what = draw(st.sampled_from(["delete", "double", "swap", "indent", "insert", "replace", "cut", "repeat"]))
    if what == "delete":
        del lines[at]
    elif what == "double":
        lines.insert(other, lines[at])
    elif what == "swap":
        lines[at], lines[other] = lines[other], lines[at]
    elif what == "indent":
        lines[at] = draw(st.sampled_from([" ", "  ", "    ", "\t"])) + lines[at]
    elif what == "repeat":
        lines[at : at + 1] = [lines[at]] * draw(st.sampled_from([3, 50]))
    else:
        column = draw(st.integers(0, len(lines[at])))
        rest = column if what == "insert" else draw(st.integers(column, len(lines[at])))
        piece = "" if what == "cut" else draw(st.sampled_from(FRAGMENTS) | st.text(max_size=5))
        lines[at] = lines[at][:column] + piece + lines[at][rest:]
    return "\n".join(lines)


@st.composite
def spoilt_texts(draw: DrawFn) -> BadFile:
    """A shipped file with up to four slips, now and then with a byte flipped or the end missing."""
    kind, path = draw(st.sampled_from(SHIPPED))
    text = path.read_text()
    for _ in range(draw(st.integers(1, 4))):
        text = _spoil(draw, text)
    content = text.encode("utf-8", "surrogatepass")
    if content and draw(st.integers(0, 3)) == 0:
        at = draw(st.integers(0, len(content) - 1))
        byte = bytes([content[at] ^ (1 << draw(st.integers(0, 7)))])
        content = content[:at] + byte + content[at + 1 :]
    if draw(st.integers(0, 7)) == 0:
        content = content[: draw(st.integers(0, len(content)))]
    return BadFile(kind, path.stem, content)


# --- mistakes of the tree -------------------------------------------------------------------------------------


def _nested(depth: int, mapping: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if mapping else [value]
    return value


NASTY: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    2**64,
    10**30,
    10**400,
    -(10**400),
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "\n",
    "0",
    "null",
    "1 day",
    "0 days",
    "-1 day",
    "1e30 days",
    "1e999999999 days",
    "99999999999999999999 weeks",
    "0.0000001 seconds",
    "INTERVAL '1e9999999' DAY",
    "INTERVAL 'NaN' DAY",
    "INTERVAL 'Infinity' DAY",
    "9" * 5000 + " days",
    "1 microsecond",
    "2013-01-01",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "0001-01-01T00:00:00+23:59",
    "2013-02-30T00:00:00Z",
    "../x",
    "a/b",
    ".",
    "..",
    "con",
    "a" * 300,
    "é",
    "Ä",
    "\uff46",
    "\u0000",
    "a\u0000b",
    "\ud800",
    "\u202ex",
    "\U0001f600",
    "x\ny",
    "SEQ(",
    "A+",
    "(a+)+$",
    "(?P<x",
    "[",
    "\\",
    "*",
    "COUNT(*)",
    "@hourly",
    "* * * * *",
    "61 25 * * 8",
    "%",
    "{{ x }}",
    [],
    {},
    [[]],
    [{}],
    {"": 1},
    {"a": {"b": 1}},
    ["x"],
    [None],
    [1, "1", 1.0],
    ["a"] * 2000,
    {f"k{n}": n for n in range(2000)},
    _nested(40, True),
    _nested(49, False),
    _nested(80, True),
    _nested(300, False),
)
ANY = st.sampled_from(NASTY).map(deepcopy)  # what is drawn is changed further
KEYS = (
    "",
    " ",
    "name",
    "kind",
    "source",
    "pattern",
    "where",
    "return",
    "within",
    "schema",
    "unique",
    "1",
    "null",
    "é",
    "\u0000",
    "a.b",
    "<<",
)


def _paths(node: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _paths(value, (*place, key))
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from _paths(value, (*place, index))


def _changed(draw: DrawFn, tree: Any) -> Any:
    """The tree with one node replaced, renamed, dropped, doubled or wrapped."""
    *above, last = draw(st.sampled_from([path for path in _paths(tree) if path] or [("",)]))
    node = tree
    for part in above:
        node = node[part]
    if not isinstance(node, dict | list) or not node:
        return draw(ANY)
    what = draw(st.sampled_from(["replace", "replace", "write", "rename", "drop", "double", "wrap", "move"]))
    value = node[last]
    if what == "replace":
        node[last] = draw(ANY)
    elif what == "write":
        node[last] = draw(EXPRESSIONS)
    elif what == "drop":
        del node[last]
    elif what == "wrap":
        node[last] = draw(st.sampled_from([[value], {"value": value}, [value] * 40, str(value)]))
    elif what == "move":
        return {"name": tree, **tree} if isinstance(tree, dict) and last == "name" else [tree]
    elif isinstance(node, dict):
        node[draw(st.sampled_from(KEYS) | st.text(max_size=8))] = value
        if what == "rename":
            del node[last]
    else:
        node.insert(0, value)
    return tree


ANY_VALUE = ANY | st.sampled_from([["A", "B"], 3, "i32", "f64", "decimal(38,10)", "[A-Z]+", [0, 1], [1, 0]])
COLUMNS = st.fixed_dictionaries(
    {"name": st.sampled_from(["drawn", "a b", "a,b", "a`b", "symbol", "SYMBOL", ""])},
    optional={
        "customProperties": st.builds(
            lambda value: [{"property": "nullWords", "value": value}], ANY | st.just(["NA", ""])
        ),
        "logicalType": st.sampled_from(
            ["string", "number", "integer", "timestamp", "date", "boolean", "array", "object"]
        ),
        "physicalType": st.sampled_from(["int", "decimal(38,10)", "decimal(99,1)", "string", "varchar(3)", "timestamp"])
        | ANY_VALUE,
        "required": st.booleans() | ANY_VALUE,
        "unique": st.booleans(),
        "logicalTypeOptions": st.dictionaries(
            st.sampled_from(
                [*LENGTHS[0], *LENGTHS[1], *BOUNDS, "multipleOf", "pattern", "format", "uniqueItems", "timezone"]
            ),
            ANY_VALUE,
            max_size=3,
        ),
        "quality": st.lists(
            st.fixed_dictionaries(
                {"metric": st.sampled_from([*ARGUMENTS, "freshness"])},
                optional={
                    "mustBe": st.just(0) | ANY_VALUE,
                    "mustBeBetween": ANY_VALUE,
                    "unit": ANY_VALUE,
                    "arguments": st.dictionaries(
                        st.sampled_from(["validValues", "pattern", "missingValues", "properties", "x"]),
                        ANY_VALUE,
                        max_size=2,
                    ),
                },
            ),
            max_size=2,
        ),
    },
)
"""A column with rules whose values are of any kind."""


def as_json(tree: Any) -> str:
    """JSON is YAML; what JSON escapes, YAML reads. NaN and infinity as YAML writes them."""
    text = json.dumps(tree, indent=1, default=str)
    return text.replace(": NaN", ": .nan").replace(": -Infinity", ": -.inf").replace(": Infinity", ": .inf")


@st.composite
def spoilt_trees(draw: DrawFn) -> BadFile:
    """A shipped file with up to three nodes of its tree changed."""
    kind, path = draw(st.sampled_from(SHIPPED))
    tree = plain(read_yaml(path).data)
    if kind == "contract" and draw(st.booleans()):
        tree["schema"][0]["properties"].append(draw(COLUMNS))
    else:
        for _ in range(draw(st.integers(1, 3))):
            tree = _changed(draw, tree)
    return BadFile(kind, path.stem, as_json(tree).encode())


@st.composite
def spoilt_mappings(draw: DrawFn) -> dict[str, Any]:
    """A shipped pattern as data, changed as data can be: keys of any kind, values no file can write."""
    path = draw(st.sampled_from([path for kind, path in SHIPPED if kind == "pattern"]))
    tree = plain(read_yaml(path).data)
    for _ in range(draw(st.integers(1, 3))):
        tree = _changed(draw, tree)
    if not isinstance(tree, dict):
        return {"pattern": tree}
    if draw(st.integers(0, 3)) == 0:
        strange = [object(), b"x", {1, 2}, (1,), _nested(200, True), complex(1, 1), len]
        tree[draw(st.sampled_from([*tree, 1, None, (1, 2)]))] = draw(st.sampled_from(strange))
    return tree


# --- expressions ----------------------------------------------------------------------------------------------

NAMES = (
    "F",
    "C",
    "S",
    "a",
    "b",
    "e",
    "Flight",
    "Stock",
    "Cancellation",
    "Trade",
    "price",
    "dep_delay",
    "tailnum",
    "volume",
    "change",
    "i",
    "LEN",
    "x",
    "NOT",
    "SEQ",
    "next",
    "event_time",
    "event_id",
    "`dep delay`",
    "`a``b`",
    "`;--`",
)
NUMBERS = ("0", "1", "2.5", "1e5", "1e400", "1e999999999", "0.1e-999999", "9" * 30, "9" * 400, "9" * 5000, ".5", "00")
LITERALS = (
    "'x'",
    "''",
    "'it''s'",
    "'\u0000'",
    "NULL",
    "TRUE",
    "1 day",
    "1e30 weeks",
    "1e99999999 days",
    "INTERVAL '5' MINUTE",
    "INTERVAL 'x' DAY",
    "TIMESTAMP '2013-01-01T00:00:00Z'",
    "TIMESTAMP '0001-01-01T00:00:00+14:00'",
    "TIMESTAMP 'now'",
    "INTERVAL '1e999999999' DAY",
)
OPERATORS = (
    "+",
    "-",
    "*",
    "/",
    "%",
    "=",
    "!=",
    "<>",
    "<",
    "<=",
    ">",
    ">=",
    "AND",
    "OR",
    "IN",
    "BETWEEN",
    "IS",
    "||",
    "==",
    ";",
    "--",
)
COUNTS = (
    "+",
    "*",
    "?",
    "{2}",
    "{1,1000}",
    "{0,1000}",
    "{1000,}",
    "{1,1000000000}",
    "{" + "9" * 5000 + "}",
    "{3,1}",
    "{0,0}",
    "{,}",
    "{0,40}",
)
FUNCTIONS = (
    "abs",
    "least",
    "coalesce",
    "lower",
    "hour",
    "dayofweek",
    "NEXT",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "median",
    "eval",
    "log10",
)


def _expressions() -> SearchStrategy[str]:
    leaf = st.sampled_from(NAMES) | st.sampled_from(NUMBERS) | st.sampled_from(LITERALS)
    leaf |= st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map(".".join)
    leaf |= st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map(lambda two: f"NEXT({two[0]}).{two[1]}")
    leaf |= st.tuples(
        st.sampled_from(NAMES), st.sampled_from(["1", "i", "i-1", "a.LEN", "..i-1", "9" * 5000]), st.sampled_from(NAMES)
    ).map(lambda three: f"{three[0]}[{three[1]}].{three[2]}")

    def wider(inner: SearchStrategy[str]) -> SearchStrategy[str]:
        operator = st.sampled_from(OPERATORS)
        return (
            st.tuples(inner, operator, inner).map(" ".join)
            | st.tuples(st.sampled_from(FUNCTIONS), st.lists(inner, max_size=3)).map(
                lambda call: f"{call[0]}({', '.join(call[1])})"
            )
            | inner.map(lambda text: f"({text})")
            | inner.map(lambda text: f"NOT {text}")
            | inner.map(lambda text: f"- {text}")
            | st.tuples(inner, st.lists(inner, max_size=3)).map(lambda two: f"{two[0]} IN ({', '.join(two[1])})")
            | st.lists(inner, min_size=1, max_size=3).map(lambda many: f"[{', '.join(many)}]")
        )

    return st.recursive(leaf, wider, max_leaves=8)


def _patterns() -> SearchStrategy[str]:
    leaf = st.sampled_from(NAMES) | st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)).map(" ".join)

    def wider(inner: SearchStrategy[str]) -> SearchStrategy[str]:
        return (
            st.tuples(inner, st.sampled_from(COUNTS)).map("".join)
            | st.tuples(inner, st.sampled_from(COUNTS)).map(lambda two: f"({two[0]}){two[1]}")
            | st.lists(inner, max_size=4).map(lambda parts: f"SEQ({', '.join(parts)})")
            | st.tuples(inner, st.sampled_from([" OR ", " AND ", " , ", " | "]), inner).map("".join)
            | inner.map(lambda text: f"NOT {text}")
            | inner.map(lambda text: f"({text})")
        )

    return st.recursive(leaf, wider, max_leaves=8)


def _repeated(piece: str, times: int, end: str) -> str:
    return piece * times + end


LONG = st.builds(
    _repeated,
    st.sampled_from(
        [
            "(",
            "NOT ",
            "- ",
            "abs(",
            "F.x + ",
            "F.dep_delay > 0 OR ",
            "F.dep_delay > 0 AND ",
            "SEQ(",
            "F OR ",
            "((F+)",
            "F?,",
            "[",
            "A, ",
            "+",
        ]
    ),
    st.sampled_from([10, 59, 61, 200, 900, 2500, 20_000]),
    st.sampled_from(["F.dep_delay > 0", "F.dep_delay", "F", "F+", "1", ")", ""]),
)
EXPRESSIONS: SearchStrategy[str] = _expressions() | _patterns() | LONG


@st.composite
def spoilt_expressions(draw: DrawFn) -> BadFile:
    """A shipped pattern or contract with expressions of fragments in the places of its own."""
    kind, path = draw(st.sampled_from([(kind, path) for kind, path in SHIPPED if kind in ("pattern", "contract")]))
    tree = plain(read_yaml(path).data)
    if kind == "pattern" and isinstance(tree, dict):
        query = tree["queries"][draw(st.sampled_from(sorted(tree["queries"])))] if "queries" in tree else tree
        keys = [key for key in ("pattern", "where", "return", "within", "slide", "arcs") if key in query]
        for key in draw(st.lists(st.sampled_from(keys), min_size=1, max_size=2, unique=True)):
            query[key] = _with_expression(draw, key, query[key])
    else:
        rule = {"type": "custom", "engine": "trendlake", "name": "drawn", "implementation": draw(EXPRESSIONS)}
        tree["schema"][0]["quality"] = [rule]
    return BadFile(kind, path.stem, as_json(tree).encode())


def _with_expression(draw: DrawFn, key: str, value: Any) -> Any:
    if key == "pattern":
        return draw(_patterns() | EXPRESSIONS)
    if key == "where":
        return [*value, *draw(st.lists(EXPRESSIONS, min_size=1, max_size=3))]
    if key == "return":
        return value | {"drawn": draw(EXPRESSIONS)}
    if key == "arcs":
        arc = dict(draw(st.sampled_from(value)))
        arc["when"] = draw(EXPRESSIONS)
        return [*value, arc]
    return draw(EXPRESSIONS | st.sampled_from(["1 day", "1 microsecond", "1e30 days", "5 minutes"]))


FILES: SearchStrategy[BadFile] = spoilt_texts() | spoilt_trees() | spoilt_expressions()
"""Any of them."""
