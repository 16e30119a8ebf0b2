"""The worked cases of kind xml_join, by the reference and by the engine: where prose and a case disagree, the case
wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
import yaml

from tests.reference.xml_join import TooManyError, answers, broken_rule
from tests.support.cases import CASES
from tests.support.xml_documents import MICROS, engine, in_micros
from trendlake.cep_core import PatternErrors, compile_query
from trendlake.cep_core.documents.document import BrokenDocumentError, Reader
from trendlake.cep_core.errors import TooManyAnswersError, TrendlakeError
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.yaml.scalars import value_of

SCHEMA = EventSchema({"event_id": "string", "event_time": "timestamp", "document": "string"})
ENGINES: Mapping[str, Callable[..., Any]] = {"reference": answers, "engine": engine}


class _CaseReader(yaml.SafeLoader):
    """Words as in pattern files, and merge keys, by which cases share parts of queries."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is not yaml.ScalarNode or not implicit[0]:
            return super().resolve(kind, value, implicit)
        return "tag:yaml.org,2002:merge" if value == "<<" else "!word"


_CaseReader.add_constructor("!word", lambda _, node: value_of(node.value))


@cache
def cases() -> list[dict[str, Any]]:
    return list(yaml.load((CASES / "xml_join.yaml").read_text(), _CaseReader))


ANSWERED = [case for case in cases() if "error" not in case]
REFUSED = [case for case in cases() if "error" in case]


def expected_rows(rows: list[dict[str, Any]], columns: set[str]) -> list[list[tuple[str, Any]]]:
    """What a case says of its rows: times in microseconds, NULL in a column that only other rows name."""
    full = [{**dict.fromkeys(columns), **row} for row in rows]
    for row in full:
        for name in {"start", "end"} & columns:
            row[name] = round(row[name] * MICROS)
    return sorted([sorted(row.items()) for row in full], key=repr)


def shown(rows: Any, columns: set[str]) -> list[list[tuple[str, Any]]]:
    return sorted([[pair for pair in row if pair[0] in columns] for row in rows], key=repr)


def compare(actual: Any, expect: list[dict[str, Any]]) -> None:
    columns = {name for row in expect for name in row}
    assert shown(actual, columns) == expected_rows(expect, columns)


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["name"])
def test_answers(name: str, case: dict[str, Any]) -> None:
    """The rows; from the documents in order and in reverse; and after each step of a revision."""
    documents = in_micros(case["documents"])
    answer = ENGINES[name]
    compare(answer(case["query"], documents), case["expect"])
    compare(answer(case["query"], documents[::-1]), case["expect"])
    before = answer(case["query"], documents)
    for step in case.get("revisions", ()):
        changed = {one["id"] for one in step.get("upsert", ())} | set(step.get("delete", ()))
        documents = [one for one in documents if one["id"] not in changed] + in_micros(step.get("upsert", ()))
        after = answer(case["query"], documents)
        compare(after - before, step["inserted"])
        compare(before - after, step["retracted"])
        before = after


@pytest.mark.parametrize("case", [case for case in ANSWERED if "templates" in case], ids=lambda case: case["name"])
def test_templates(case: dict[str, Any]) -> None:
    plan: Any = compile_query(case["query"], SCHEMA)
    assert len(plan.templates) == case["templates"]


@pytest.mark.parametrize("case", [case for case in cases() if "documents" in case], ids=lambda case: case["name"])
def test_quarantine(case: dict[str, Any]) -> None:
    """Each document breaks the rule that the case names, or none."""
    reader = Reader()
    for one in case["documents"]:
        wanted = case.get("quarantine", {}).get(one["id"])
        assert broken_rule(one["xml"]) == wanted
        try:
            reader.root(one["xml"])
            rule = None
        except BrokenDocumentError as error:
            rule = error.rule
        assert rule == wanted


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["name"])
def test_refusals(case: dict[str, Any]) -> None:
    """The code, with a place; nothing else is wrong with the file."""
    if case["error"] == "TOO_MANY_ANSWERS":
        with pytest.raises(TooManyAnswersError, match="'query' has 2 answers that end with the document 'd3'"):
            engine(case["query"], in_micros(case["documents"]))
        with pytest.raises(TooManyError):
            answers(case["query"], in_micros(case["documents"]))
        return
    with pytest.raises(PatternErrors) as refusal:
        compile_query(case["query"], SCHEMA)
    errors: tuple[TrendlakeError, ...] = refusal.value.errors
    assert [error.code for error in errors] == [case["error"]]
    assert errors[0].place is not None
