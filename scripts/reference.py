"""Writes docs/reference.md: the language, from the models of pattern files, the grammar, and the worked cases.

`python -m scripts.reference > docs/reference.md`; a test holds the page to what this prints.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trendlake.cep_core.expressions.functions import FUNCTIONS, Function
from trendlake.cep_core.json_schema import pattern_schema
from trendlake.cep_core.yaml.source import plain, read_yaml

ROOT = Path(__file__).resolve().parents[1]
HEAD = """\
# Reference of the pattern language

Made by `python -m scripts.reference` from the models of pattern files, the grammars
(`cep_core/language/grammar.lark`, `cep_core/algebra/compile/grammar.lark`) and the worked cases (`tests/cases`); a test
keeps it so. What it all means is in [language.md](language.md); [troubleshooting.md](troubleshooting.md) has the
codes of errors.
"""
KINDS = ("trends", "matches", "automaton", "algebra", "match_recognize", "xml_join")
SHOWN = 12
"""Events of a worked case that are listed."""


def page() -> str:
    parts = [HEAD, *keys(), *grammar(), *functions(), *cases()]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def keys() -> Iterator[str]:
    """A table of keys for each kind, and for the parts of an automaton."""
    yield "## Keys of a pattern file\n"
    definitions = pattern_schema()["$defs"]
    for name in (*KINDS, *(name for name in definitions if name not in KINDS)):
        schema = definitions[name]
        required = schema.get("required", [])
        rows = [
            (f"`{key}`", _form(item), "never" if key in required else _default(item), " ".join(_said(item).split()))
            for key, item in schema["properties"].items()
        ]
        yield f"### {f'kind: {name}' if name in KINDS else _a(name).capitalize()}\n"
        yield table(("key", "form", "when left out", "what it says"), rows)


def _form(item: dict[str, Any]) -> str:
    if "anyOf" in item:
        return " or ".join(dict.fromkeys(_form(one) for one in item["anyOf"]))
    if "const" in item or "enum" in item:
        return ", ".join(f"`{value}`" for value in item.get("enum", [item.get("const")]))
    if "$ref" in item:
        return _a(item["$ref"].split("/")[-1])
    if item.get("type") == "array":
        return f"list of {_form(item['items'])}"
    if item.get("type") == "object":
        inner = next(iter(item.get("patternProperties", {}).values()), item.get("additionalProperties"))
        return f"name: {_form(inner)}" if isinstance(inner, dict) else "mapping"
    if isinstance(item.get("type"), list):
        return " or ".join(item["type"])
    example = item.get("examples", [None])[0]
    return f"such as `{example}`" if example else str(item.get("type", "any"))


def _a(model: str) -> str:
    name = model.removesuffix("Model").lower()
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _default(item: dict[str, Any]) -> str:
    value = item.get("default")
    return "" if value in (None, "", [], {}) else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _said(item: dict[str, Any]) -> str:
    return str(item.get("description", ""))


def grammar() -> Iterator[str]:
    """The productions as they are, without the parser's own marks."""
    yield "## Grammar\n"
    yield "Keywords may be written in lower case. `NAME` is a letter or `_`, then letters, digits and `_`.\n"
    files = ("language/grammar.lark", "algebra/compile/grammar.lark")
    text = "\n".join((ROOT / "cep_core" / file).read_text(encoding="utf-8") for file in files)
    for part in re.split(r"^// --- ", text, flags=re.MULTILINE)[1:]:
        title, _, body = part.partition("\n")
        rules = re.split(r"^(?=[A-Z_]+(?:\.-?\d)?:|%ignore)", body, maxsplit=1, flags=re.MULTILINE)[0]
        shown = re.sub(r"\s*->\s*\w+$", "", rules, flags=re.MULTILINE)
        shown = re.sub(r"^\?", "", shown, flags=re.MULTILINE)
        shown = re.sub(r"\b_([A-Z]+)\b", r'"\1"', shown)
        yield f"### {title[:1].upper()}{title[1:]}\n"
        yield f"```\n{shown.strip()}\n```\n"
    marks = re.findall(
        r"^(COMPARE|UNIT|INT|NUMBER|STRING|COLUMN|PARAMETER|NAME|DECORATOR)(?:\.-?\d)?: (.*)$", text, flags=re.MULTILINE
    )
    yield "### Words\n"
    yield "```\n" + "\n".join(f"{name}: {form}" for name, form in marks) + "\n```\n"


def functions() -> Iterator[str]:
    yield "## Functions of conditions\n"
    rows = [(f"`{name}`", _takes(row), row.gives or "that type", row.meaning) for name, row in FUNCTIONS.items()]
    yield table(("function", "takes", "gives", "value"), rows)


def _takes(row: Function) -> str:
    takes = " or ".join(row.takes) or "one or more values of one type"
    return takes if row.arguments == 1 else f"{takes}, {row.arguments} times"


def cases() -> Iterator[str]:
    """Each worked case: what is asked, of which events, with what answer. Every engine is tested on them."""
    yield "## Worked cases\n"
    yield "Times are seconds since the epoch. An event is shown as `id Type@time` and its attributes.\n"
    for kind in KINDS[:-1]:  # those of kind xml_join are documents: docs/language-xml.md links to their file
        file = ROOT / "tests" / "cases" / f"{kind}.yaml"
        texts = re.split(r"^- ", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        yield f"### Cases of kind {kind}\n"
        named: dict[str, str] = {}
        for case, text in zip(plain(read_yaml(file).data), texts, strict=True):
            query = _query(text, named)
            if query is None:
                raise ValueError(f"{file}: {case['name']} has no query")
            source = f" ({case['reference']})" if case.get("reference") else ""
            yield f"#### {case['name']}\n"
            yield f"{_events(case['events'])}{source}\n"
            yield f"```yaml\n{textwrap.dedent(query).rstrip()}\n```\n"
            yield _rows(case["expect"]) if "expect" in case else f"Refused: {case['error']}.\n"


def _query(text: str, named: dict[str, str]) -> str | None:
    """The query of a case as its file has it; `named`: those that other cases take by name."""
    if again := re.search(r"^  query: \*(\w+)$", text, flags=re.MULTILINE):
        return named[again[1]]
    query = re.search(r"^  query:(?: &(\w+))?\n(.*?)^  \w", text, flags=re.MULTILINE | re.DOTALL)
    if query is None:
        return None
    if query[1]:
        named[query[1]] = query[2]
    return query[2]


def _events(events: Any) -> str:
    if isinstance(events, dict):
        return f"Events: {events['generate']}."
    shown = []
    for event in events[:SHOWN]:
        rest = [f"{name} {_value(value)}" for name, value in event.items() if name not in ("id", "type", "time")]
        shown.append(f"`{event['id']} {event['type']}@{event['time']}{': ' if rest else ''}{', '.join(rest)}`")
    more = f" and {len(events) - SHOWN} more" if len(events) > SHOWN else ""
    return f"Events: {', '.join(shown)}{more}."


def _rows(rows: Any) -> str:
    if not rows:
        return "No rows.\n"
    names = list(dict.fromkeys(name for row in rows for name in row))
    return table(tuple(names), [tuple(_value(row.get(name, "")) for name in names) for row in rows])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return "NULL" if value is None else str(value)


if __name__ == "__main__":
    sys.stdout.write(page())
