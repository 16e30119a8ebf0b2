"""First patterns by the question that they answer, fitted to a source: its columns, its event types, and constants out
of its rows. Each comes with a test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from trendlake.cep_core.errors import did_you_mean
from trendlake.cep_core.expressions.sql_functions import RESERVED
from trendlake.pipelines.authoring.pattern_tests import folder_of_tests
from trendlake.pipelines.authoring.scaffold import write_new
from trendlake.pipelines.authoring.source_facts import Length, SourceFacts, longer_than, quantile
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import Project

Row = Mapping[str, Any]
IN_A_ROW = 3
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""When tests begin: the hour after it is of one day in every zone."""
HOUR, HALF_AN_HOUR = Length(1, "hour"), Length(30, "minute")


class UnfitError(Exception):
    """Says what a template asks of a source and does not get."""


@dataclass(frozen=True)
class Draft:
    """A pattern in words: its kind, the question, the lines of the file behind `source`, and a test: a name, events,
    and the rows expected of them."""

    kind: str
    question: str
    body: str
    test: str
    events: list[Row]
    expect: list[Row]


@dataclass(frozen=True)
class Template:
    """`line`: what it answers, for lists; `draft` raises UnfitError for a source that it does not fit."""

    name: str
    line: str
    draft: Callable[[SourceFacts], Draft]


def write_pattern_like(project: Project, name: str, like: str, facts: SourceFacts) -> list[Path]:
    """The files of a pattern out of a template, and of its test. Raises ProjectError where the template does not fit,
    or a file exists."""
    try:
        draft = by_name(like).draft(facts)
    except UnfitError as reason:
        fitting = ", ".join(one.name for one in templates_for(facts))
        raise ProjectError(
            f"--like {like} does not fit '{facts.contract.name}': {reason}",
            hint=f"these do: {fitting}" if fitting else "--kind trends writes a pattern without a question",
        ) from None
    texts = {
        project.patterns / f"{name}.yaml": _pattern_text(name, draft, facts),
        folder_of_tests(project) / f"{name}.yaml": _test_text(draft, facts),
    }
    for path in texts:
        if path.exists():
            raise ProjectError(f"{path} exists already", hint=f"edit it; or delete it (rm {path}) to start over")
    return [path for path, text in texts.items() if write_new(path, text)]


def first_of(facts: SourceFacts) -> Template:
    """The one to show before a question is asked: both are of the kind whose kernels are compiled soonest."""
    return next(one for one in (by_name("streak"), by_name("sessions")) if _fits(one, facts))


def by_name(name: str) -> Template:
    """Raises ProjectError."""
    names = {one.name: one for one in TEMPLATES}
    if name not in names:
        raise ProjectError(f"--like: there is no template '{name}'", hint=did_you_mean(name, names))
    return names[name]


def templates_for(facts: SourceFacts) -> list[Template]:
    """Those that fit."""
    return [one for one in TEMPLATES if _fits(one, facts)]


def _fits(template: Template, facts: SourceFacts) -> bool:
    try:
        template.draft(facts)
    except UnfitError:
        return False
    return True


def _pattern_text(name: str, draft: Draft, facts: SourceFacts) -> str:
    zone = "" if facts.zone is None else f"time_zone: {facts.zone}\n"
    return (
        f"name: {name}\nkind: {draft.kind}\ndescription: {draft.question}\nsource: {facts.contract.name}\n"
        f'{draft.body}{zone}schedule: "@daily"\n'
    )


def _test_text(draft: Draft, facts: SourceFacts) -> str:
    lines = [f"- name: {draft.test}", "  events:", *map(_line, draft.events)]
    expected = ["  expect:", *map(_line, draft.expect)] if draft.expect else ["  expect: []"]
    return "\n".join([*lines, *expected, ""])


def _line(row: Row) -> str:
    def written(value: Any) -> str:
        return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)

    return f"    - {{{', '.join(f'{name}: {written(value)}' for name, value in row.items())}}}"


# what the templates say of a source


def _number(facts: SourceFacts) -> str:
    if facts.number is None:
        raise UnfitError("no column has a number in most events")
    return facts.number


def _values(facts: SourceFacts, values: Iterable[Any]) -> list[Any]:
    values = list(values)
    if not values:
        where = f"{facts.where} has none" if facts.where else "--events FILE, or ingest some"
        raise UnfitError(f"its constant comes out of data, and {where}")
    return values


def _event(facts: SourceFacts) -> str:
    """The type of all events, or a word for any."""
    return facts.contract.constant_type or "ANY"


def _one(facts: SourceFacts) -> str:
    """One event, in words."""
    return "event" if _event(facts) == "ANY" else _event(facts)


def _of(facts: SourceFacts, word: str = "of one") -> str:
    """`of one company`, in words; nothing where no column says whose an event is."""
    return "" if facts.key is None else f" {word} {facts.key}"


def _group(facts: SourceFacts) -> str:
    others = f"  # or: {', '.join(facts.keys[1:])}" if len(facts.keys) > 1 else ""
    return "" if facts.key is None else f"group_by: [{facts.key}]{others}\n"


def _where(facts: SourceFacts, *conditions: str) -> str:
    key = () if facts.key is None else (f'"[{facts.key}]"',)
    lines = "".join(f"  - {one}\n" for one in (*key, *conditions))
    return f"where:\n{lines}" if lines else ""


def _rows(facts: SourceFacts, clauses: str, condition: str = "") -> str:
    """The text of a query over rows; a line for each clause."""
    partition = "" if facts.key is None else f"    PARTITION BY {facts.key}\n"
    others = f"# PARTITION BY may name others: {', '.join(facts.keys[1:])}\n" if len(facts.keys) > 1 else ""
    lines = "".join(f"    {line}\n" for line in clauses.strip().splitlines())
    head = f"  SELECT * FROM {facts.contract.name} MATCH_RECOGNIZE (\n{partition}    ORDER BY {_time(facts)}\n"
    return f"{others}pattern: |\n{head}{lines.rstrip()}){condition}\n"


def _time(facts: SourceFacts) -> str:
    """The column of the time, in a query over rows."""
    plain = facts.time.isidentifier() and facts.time.isascii() and facts.time.upper() not in RESERVED
    return facts.time if plain else f'"{facts.time}"'


def _at(facts: SourceFacts, moment: timedelta, kind: str | None = None, number: int | None = None) -> Row:
    """An event of a test."""
    kind = kind or (facts.types[0] if facts.types else "Event")
    key = {} if facts.key is None else {facts.key: _key(facts)}
    typed = {} if facts.contract.constant_type is not None else {facts.contract.roles["event_type"]: kind}
    value = {} if number is None or facts.number is None else {facts.number: number}
    return {facts.time: NOON + moment, **typed, **key, **value}


def _key(facts: SourceFacts) -> Any:
    return 1 if facts.key is not None and facts.logical(facts.key) == "integer" else "a"


def _series(facts: SourceFacts, numbers: Iterable[int]) -> list[Row]:
    """Events of a test, one a minute."""
    return [_at(facts, timedelta(minutes=n), number=number) for n, number in enumerate(numbers)]


def _result(facts: SourceFacts, **values: Any) -> Row:
    return {**({} if facts.key is None else {facts.key: _key(facts)}), **values}


# the templates


def _streak(facts: SourceFacts) -> Draft:
    number, high = _number(facts), quantile(_values(facts, facts.values()), 0.75)
    above, below = math.ceil(high), math.floor(high) - 1
    return Draft(
        "match_recognize",
        f"When was {number}{_of(facts)} at {_plain(high)} or more, {IN_A_ROW} times in a row or more?",
        _rows(
            facts,
            f"""
MEASURES COUNT(*) AS events, MAX({number}) AS highest
PATTERN (high{{{IN_A_ROW},}})
-- in {facts.where} a quarter of all values are so high
DEFINE high AS {number} >= {_plain(high)}""",
        ),
        f"{IN_A_ROW + 1} in a row are one streak, {IN_A_ROW - 1} are none",
        _series(facts, [below, above, above + 1, above, above, below, *[above] * (IN_A_ROW - 1), below]),
        [_result(facts, events=IN_A_ROW + 1, highest=above + 1)],
    )


def _funnel(facts: SourceFacts) -> Draft:
    steps = facts.steps
    if len(steps) < 2:
        typed = f"all events are of type {steps[0]}" if steps else "nothing says which event types it has"
        raise UnfitError(typed if steps else f"{typed}: --events FILE, or ingest some")
    if facts.key is None:
        raise UnfitError("no column says whose event it is")
    names = "abc"[: len(steps)]
    pattern = f"{steps[-1]} {names[-1]}"
    for step, name in zip(steps[-2::-1], names[-2::-1], strict=True):
        pattern = f"SEQ({step} {name}, {pattern}?)"
    return Draft(
        "trends",
        f"How far did each {facts.key} come on a day, of {', then '.join(steps)}?",
        f"pattern: {pattern}\n{_where(facts)}return:\n"
        "  reached: MAX(LENGTH(*))            # 1: the first step only\n"
        "  lasted: MAX(DURATION(*))\n"
        f"{_group(facts)}within: 1 day\n",
        "all steps, the first of them twice",
        [
            *(_at(facts, timedelta(minutes=2 * n), step) for n, step in enumerate(steps)),
            _at(facts, timedelta(minutes=1), steps[0]),
        ],
        [_result(facts, reached=len(steps), lasted=120 * (len(steps) - 1))],
    )


def _absence(facts: SourceFacts) -> Draft:
    if not facts.steps:
        raise UnfitError("nothing says which event types it has: --events FILE, or ingest some")
    first, then = facts.steps[0], facts.steps[min(1, len(facts.steps) - 1)]
    waits = facts.gaps() if facts.contract.constant_type is not None else facts.waits(first, then)
    limit = longer_than(quantile(waits, 0.95 if first == then else 0.9)) if waits else HOUR
    share = "19 of 20 come sooner" if first == then else "9 of 10 that come do so sooner"
    what = "" if not waits else f"   # in {facts.where} {share}"
    late, soon = limit.delta * 2, limit.delta / 2
    return Draft(
        "matches",
        f"After which {first}{_of(facts)} came no {'other' if first == then else then} for {limit.words}?",
        f"pattern: SEQ({first} a, NOT {then} b within {limit.words}){what}\n"
        f"{_where(facts)}"
        + ("" if facts.key is None else f"return: {{{facts.key}: a.{facts.key}}}\n")
        + f"within: {limit.words}\n",
        "one is answered in time, the other is not",
        [
            _at(facts, timedelta(0), first),
            _at(facts, soon, then),
            *([] if first == then else [_at(facts, late, first)]),
            _at(facts, soon + late * 2, then),
        ],
        [_result(facts, start=NOON + (soon if first == then else late))],
    )


def _drop_and_recovery(facts: SourceFacts) -> Draft:
    number = _number(facts)
    fall = float(f"{quantile(_values(facts, facts.falls()), 0.75):.3g}")
    step = math.ceil(fall)
    return Draft(
        "match_recognize",
        f"When did {number}{_of(facts)} fall by {_plain(fall)} or more, and then rise by as much?",
        _rows(
            facts,
            f"""
MEASURES FIRST({number}) AS top, LAST(down.{number}) AS bottom, LAST(up.{number}) AS back
AFTER MATCH SKIP TO LAST up
PATTERN (before down+ up+)
DEFINE before AS true, down AS {number} < PREV({number}), up AS {number} > PREV({number})""",
            f"\n  -- in {facts.where} about a quarter of all falls are so deep\n"
            f"  WHERE top - bottom >= {_plain(fall)} AND back - bottom >= {_plain(fall)}",
        ),
        "a fall that is made up for, and one that is not",
        _series(facts, [2 * step, step, 0, step, 2 * step, step, 0]),
        [_result(facts, top=2 * step, bottom=0, back=2 * step)],
    )


def _longest_run(facts: SourceFacts) -> Draft:
    number = _number(facts)
    return Draft(
        "trends",
        f"What was the longest unbroken rise of {number}{_of(facts, 'of each')} on a day?",
        f"pattern: {_event(facts)} e+\n{_where(facts, f'e.{number} < NEXT(e).{number}')}"
        "select: partition_contiguous           # no other event between two of a rise\n"
        "output: maximal                        # rises as a whole, not their parts\n"
        "return:\n  longest: MAX(LENGTH(*))\n  lasted: MAX(DURATION(*))\n"
        f"{_group(facts)}within: 1 day\n",
        "a rise of three is longer than one of two",
        _series(facts, [5, 6, 7, 6, 7]),
        [_result(facts, longest=3, lasted=120)],
    )


def _sessions(facts: SourceFacts) -> Draft:
    gaps = facts.gaps()
    gap = longer_than(quantile(gaps, 0.9)) if gaps else HALF_AN_HOUR
    why = f"in {facts.where} 9 of 10 follow sooner" if gaps else "the usual limit"
    time = _time(facts)
    return Draft(
        "match_recognize",
        f"Which {_one(facts)}s{_of(facts)} follow one another in less than {gap.words}?",
        _rows(
            facts,
            f"""
MEASURES COUNT(*) AS events
PATTERN (first more*)
-- {why}
DEFINE first AS true, more AS {time} < PREV({time}) + {gap.sql}""",
        ),
        "a pause as long as the limit begins a new session",
        [_at(facts, timedelta(0)), _at(facts, gap.delta / 2), _at(facts, gap.delta * 3 / 2)],
        [_result(facts, events=2), _result(facts, events=1)],
    )


def _per_day(facts: SourceFacts) -> Draft:
    number, measures, large, values = facts.number, "", "", {}
    if number is not None:
        measures = f"  lowest: MIN(e.{number})\n  mean: AVG(e.{number})\n  highest: MAX(e.{number})\n"
        large, values = f", and how large is {number}", {"lowest": 1, "mean": 2, "highest": 3}
    return Draft(
        "trends",
        f"How many {_one(facts)}s are there a day{_of(facts, 'of each')}{large}?",
        f"pattern: {_event(facts)} e\nreturn:\n  events: COUNT(*)\n{measures}{_group(facts)}within: 1 day\n",
        "two of one day",
        _series(facts, [1, 3]),
        [_result(facts, events=2, **values)],
    )


def _top(facts: SourceFacts) -> Draft:
    number = _number(facts)
    others = [
        (name, column) for name, column in (("at_time", facts.time), (facts.key, facts.key)) if column is not None
    ]
    measures = "".join(f"  {name}: MAX_BY(e.{column}, e.{number})\n" for name, column in others)
    whose = "" if facts.key is None else f", and of which {facts.key}"
    return Draft(
        "trends",
        f"What was the highest {number} of a day, and when{whose}?",
        f"pattern: {_event(facts)} e\nreturn:\n  highest: MAX(e.{number})\n{measures}within: 1 day\n",
        "the highest of three",
        _series(facts, [1, 3, 2]),
        [_result(facts, highest=3, at_time=NOON + timedelta(minutes=1))],
    )


def _plain(number: Any) -> str:
    """A number as patterns write it, with all its digits and no exponent."""
    return format(Decimal(str(number)).normalize(), "f")


TEMPLATES = (
    Template("streak", "a number is high several times in a row", _streak),
    Template("funnel", "how far each comes, step by step", _funnel),
    Template("absence", "an event that nothing follows in time", _absence),
    Template("drop-and-recovery", "a number falls, and rises again", _drop_and_recovery),
    Template("longest-run", "the longest unbroken rise of a day", _longest_run),
    Template("sessions", "events without a long pause between them", _sessions),
    Template("per-day", "how many events a day, and how large", _per_day),
    Template("top", "the highest value of a day", _top),
)
