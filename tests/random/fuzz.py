"""Open-ended search for a disagreement: `python -m tests.random.fuzz --seconds 600 --without negation`, or `--kind
matches`, `automaton`, `algebra`, `match_recognize` or `xml_join` for those kinds; `--kind calendar` for windows of
days to years in time zones; `--kind intervals` for events that last; `--kind sources` for events of several
tables; `--kind batches` and `families` for plans that give other rows together than alone; `--kind lookups` for
reference tables and patterns that look their columns up (`tests.random.lookups`); `--kind files` for a file that is
neither read nor refused with words
(`tests.random.fuzz_files`); `--kind documents` for an XML document that is neither read nor quarantined
(`tests.random.fuzz_documents`); `--kind edits` for edits of a pattern after which its table has other rows than a
fresh one (`tests.random.fuzz_edits`, on Spark).

Prints the smallest failing query and stream it can find, as YAML ready to become a worked case, with the rows
the reference gives; then the tally. Exit status 1 when there was a disagreement; an exception is one too. With
NUMBA_BOUNDSCHECK=1 and an empty folder in TRENDLAKE_CACHE the kernels check every index.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any, TypeAlias

from hypothesis import given, seed, settings
from hypothesis.errors import UnsatisfiedAssumption
from hypothesis.strategies import SearchStrategy

from tests.random import (
    algebra,
    automata,
    calendars,
    fuzz_batches,
    fuzz_documents,
    fuzz_edits,
    fuzz_files,
    intervals,
    lookups,
    matches,
    row_patterns,
    sources,
    xml_joins,
)
from tests.random.agreement import Tally, disagreement
from tests.random.profile import OPEN_ENDED
from tests.random.strategies import long_questions, questions, repeated_questions
from tests.reference.matches import reference as matches_reference
from tests.reference.trends import reference
from trendlake.cep_core.yaml.scalars import yaml_text

CHUNK = 500
"""Questions between two looks at the clock."""

THEMES = ("negation", "where", "equivalence", "windows", "select", "conjunction")

Found: TypeAlias = tuple[Any, list[str]]
"""A question (a query and rows; a Case for kinds automaton and algebra), and how the two answers differ."""


class Disagreement(AssertionError):  # noqa: N818 - it is one
    """The kernels' answer is not the reference's."""


def as_case(query: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], name: str) -> str:
    """The question and the reference's answer as one entry of tests/cases."""
    answer = {"matches": matches_reference, "automaton": automata.answer, "algebra": algebra.answer}.get(
        query["kind"], calendars.expected if "time_zone" in query else reference
    )
    answer = intervals.expected if "interval_start" in query else answer
    hidden = ("window_end", "start", "end", "lifetime_start", "lifetime_end")
    expect = [
        {key: _seconds(value) if key == "window_start" else value for key, value in row.items() if key not in hidden}
        for row in answer(query, rows)
    ]
    case = {"name": name, "events": list(rows), "query": dict(query), "expect": expect}
    return yaml_text([case], 200, inner_on_one_line=True)


def _seconds(microseconds: int) -> int | float:
    return microseconds / 1_000_000 if microseconds % 1_000_000 else microseconds // 1_000_000


COMPARED: Mapping[str, Callable[[Any, Any], list[str]]] = {
    "trends": disagreement,
    "calendar": calendars.disagreement,
    "intervals": intervals.disagreement,
    "matches": matches.disagreement,
    "automaton": automata.disagreement,
    "algebra": algebra.disagreement,
    "match_recognize": row_patterns.disagreement,
    "sources": sources.disagreement,
}
OTHERS: Mapping[str, Callable[[float, int], int]] = {
    "xml_join": xml_joins.search,
    "batches": fuzz_batches.search,
    "families": fuzz_batches.search_families,
    "files": fuzz_files.main,
    "edits": fuzz_edits.search,
    "lookups": lookups.search,
}
"""Searches of their own: by seconds and a seed, the exit status."""


def _questions(*, kind: str, long: bool = False, repeated: bool = False, **flags: Any) -> SearchStrategy[Any]:
    """What is asked of the engine."""
    if kind == "calendar":
        return calendars.calendar_questions()
    if kind == "intervals":
        return intervals.interval_questions()
    if kind == "automaton":
        return automata.cases(flags["most"])
    if kind == "algebra":
        return algebra.cases(flags["most"])
    if kind == "match_recognize":
        return row_patterns.cases(flags["most"])
    if kind == "sources":
        return sources.any_cases(flags["most"])
    if kind == "matches":
        return matches.any_questions(**flags)
    if repeated:
        return repeated_questions()
    return long_questions() if long else questions(**flags)


def chunk(number: int, asked: Mapping[str, Any], tally: Any) -> Found | None:
    """One run of Hypothesis from the seed `number`; its smallest disagreement, if it finds one."""
    findings: list[Found] = []

    @seed(number)
    @settings(OPEN_ENDED, max_examples=CHUNK)
    @given(_questions(**asked))
    def agree(question: Any) -> None:
        try:
            lines = COMPARED[asked["kind"]](question, tally)
        except UnsatisfiedAssumption:
            raise
        except Exception as crash:
            lines = [f"{type(crash).__name__}: {crash}"]
        if lines:
            findings.append((question, lines))
            raise Disagreement(lines)

    try:
        agree()
    except Disagreement:
        print(f"# seed {number}")
        return findings[-1]  # the shrinker replays the smallest one last
    return None


def search(until: float, numbers: Iterable[int], asked: Mapping[str, Any], tally: Any) -> Found | None:
    """Chunk after chunk until the time `until` (monotonic seconds) or a disagreement."""
    for number in numbers:
        if time.monotonic() > until:
            break
        if findings := chunk(number, asked, tally):
            return findings
    return None


def main() -> int:
    """Search, print, and tell by the exit status."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=float, default=60)
    arguments.add_argument("--kind", choices=(*COMPARED, *OTHERS, "documents"), default="trends")
    arguments.add_argument("--seed", type=int, default=None, help="default: from the clock")
    arguments.add_argument("--most", type=int, default=10, help="events of a stream at most")
    arguments.add_argument("--without", nargs="*", choices=THEMES, default=[], help="themes to leave out")
    arguments.add_argument("--chunks", type=int, default=None, help=f"stop after so many times {CHUNK} questions")
    arguments.add_argument("--long", action="store_true", help="short patterns over longer streams instead")
    arguments.add_argument("--repeated", action="store_true", help="variables at several positions instead")
    arguments.add_argument("--documents", type=int, default=None, help="of --kind documents: stop after so many")
    asked = arguments.parse_args()
    first = int(time.time()) if asked.seed is None else asked.seed
    if asked.kind == "documents":
        return fuzz_documents.search(asked.seconds, first, asked.documents)
    if asked.kind in OTHERS:
        return OTHERS[asked.kind](asked.seconds, first)
    tallies: Mapping[str, Callable[[], Any]] = {
        "automaton": automata.AfaTally,
        "algebra": algebra.AlgebraTally,
        "match_recognize": row_patterns.RowPatternTally,
        "sources": sources.SourcesTally,
    }
    tally = tallies.get(asked.kind, Tally)()
    numbers = count(first) if asked.chunks is None else range(first, first + asked.chunks)
    flags = {"most": asked.most, **dict.fromkeys(asked.without, False)}
    if asked.long or asked.repeated:
        flags = {"long": asked.long, "repeated": asked.repeated}
    flags["kind"] = asked.kind
    findings = search(time.monotonic() + asked.seconds, numbers, flags, tally)
    if findings:
        question, lines = findings
        print("\n".join(f"# {line}" for line in lines))
        if isinstance(question, sources.Case):
            print(sources.described(question))
            print("\n".join(f"# {line}" for line in tally.lines()))
            return 1
        query, rows = question if isinstance(question, tuple) else (question.query, question.rows)
        if isinstance(question, automata.Case):
            print(f"# watermark {question.watermark}, rows in the order {question.order}; the answer without it:")
        case = isinstance(question, row_patterns.Case)
        print(row_patterns.as_case(question) if case else as_case(query, rows, "found-by-fuzz"))
    print("\n".join(f"# {line}" for line in tally.lines()))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
