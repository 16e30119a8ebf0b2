"""`trendlake plan`: prints what the project's files, as they are now, change about published results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.cep_core.errors import did_you_mean
from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.json_output import of_error
from trendlake.jobs.terminal.lines import is_silent, say
from trendlake.jobs.terminal.verdict import Verdict
from trendlake.jobs.terminal.workspace import Place, find_place, session
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.json_text import json_text

if TYPE_CHECKING:
    from trendlake.pipelines.planning.compare import Planned
    from trendlake.pipelines.planning.cost import Cost
    from trendlake.pipelines.planning.git_texts import KeyText
    from trendlake.pipelines.project.paths import Project

STALE, INCOMPATIBLE = "stale", "incompatible"
WIDTH = 16
MOST = 60_000
"""Characters of a table in Markdown: a comment of a hosted Git server has room for so many."""


def plan(
    words: Sequence[str],
    fail_on: str,
    form: str,
    profile: str | None,
    folder: Path | None,
    *,
    details: bool = False,
    out: Path | None = None,
) -> Verdict:
    """Prints the state of the patterns that `words` mean (default: all). The verdict is not good where a file has
    an error, or a pattern one of the states that `fail_on` names, separated by commas. `details`: also the old and the
    new text of the keys that have changed; `out`: a file for the document of the plan. Raises ProjectError."""
    from trendlake.pipelines.planning.compare import Comparison

    wanted = _states(fail_on)
    place = find_place(folder, profile)
    names = chosen(place, words)
    with session(place, "trendlake plan") as lake:
        planned = Comparison(lake, place.project, place.profile).of(names, removed=not words)
    verdict = show_plan(place, planned, wanted, form, details=details)
    if out is not None:
        out.write_text(json_text(verdict.document, 2) + "\n", encoding="utf-8")
        say(f"{out}: written; `{command(f'apply {shlex.quote(str(out))}')}` does what it says")
    return verdict


def chosen(place: Place, words: Sequence[str]) -> list[str]:
    """The patterns that `words` mean; without words all of the project."""
    from trendlake.jobs.actions.run import last_states
    from trendlake.pipelines.project.selection import Patterns

    if not words:
        return [path.stem for path in place.project.pattern_files()]
    return Patterns(place.project, place.profile.batches).select(words, lambda: last_states(place))


def show_plan(
    place: Place, planned: Sequence[Planned], wanted: frozenset[str], form: str, *, details: bool = False
) -> Verdict:
    """Prints a plan. The verdict is not good where a pattern has an error or one of the states `wanted`."""
    texts = {one.pattern: _texts(place.project, one) for one in planned if details and one.keys}
    if not is_silent():
        for line in _markdown(planned) if form == "markdown" else _text(planned, texts):
            say(line)
    failed = [one.pattern for one in planned if one.state == "error" or _asked(one) & wanted]
    totals = {
        "patterns": len(planned),
        "windows": sum(one.count for one in planned),
        "events": sum(one.cost.events for one in planned if one.cost is not None),
        "failed": failed,
    }
    documents = [_document(one) for one in planned]
    for document in documents if details else ():
        document["texts"] = [text._asdict() for text in texts.get(document["pattern"], ())]
    return Verdict({"patterns": documents, "totals": totals}, good=not failed)


def _texts(project: Project, one: Planned) -> list[KeyText]:
    from trendlake.pipelines.planning.git_texts import key_texts

    file = project.pattern_path(one.pattern) if one.run is None else Path(one.run.pattern.document.name)
    return key_texts(file, one.keys, one.recorded)


def _states(text: str) -> frozenset[str]:
    from trendlake.pipelines.planning.compare import STATES

    states = (*STATES, STALE, INCOMPATIBLE)
    asked = [word.strip() for word in text.split(",") if word.strip()]
    for word in asked:
        if word not in states:
            hint = did_you_mean(word, states) or f"known: {', '.join(states)}"
            raise ProjectError(f"--fail-on {word}: there is no such state", hint=hint)
    return frozenset(asked)


def _asked(one: Planned) -> set[str]:
    """The words of `--fail-on` that are true of a pattern."""
    from trendlake.pipelines.planning.compare import STALE as STATES_OF_STALE

    words: set[str] = {one.state}
    words |= {STALE} if one.state in STATES_OF_STALE else set()
    return words | ({INCOMPATIBLE} if one.columns is not None and not one.columns.compatible else set())


def _words(one: Planned) -> str:
    return one.state.replace("_", " ")


def _text(planned: Sequence[Planned], texts: Mapping[str, Sequence[KeyText]]) -> Iterator[str]:
    """A block for each pattern that is not unchanged; the others are counted."""
    width = max([WIDTH, *(len(one.pattern) for one in planned)])
    still = [one for one in planned if one.state == "unchanged"]
    for one in planned:
        if one.state == "unchanged":
            continue
        if one.error is not None:
            yield f"{one.pattern:<{width}} error"
            yield from (f"  {line}" for line in str(one.error).splitlines())
            continue
        yield f"{one.pattern:<{width}} {_words(one):<16} {one.why}".rstrip()
        for text in texts.get(one.pattern, ()):
            yield from _both(text)
        if one.windows:
            yield f"  {_windows(one)}"
        if one.columns is not None and not one.columns.compatible:
            yield "  readers of its results lose columns: the change is incompatible"
        yield from (f"  next: {command(typed)}" for typed in one.commands)
        if one.downstream and one.state != "removed":
            yield f"  then: {', '.join(one.downstream)} read its results, and are revised after it"
    if still:
        yield f"{plural(len(still), 'pattern')} unchanged"


def _both(text: KeyText) -> Iterator[str]:
    """The lines of a key: those of its old text after `-`, those of its new one after `+`."""
    yield f"  {text.key}" if text.looked_up else f"  {text.key}: Git has no text of before"
    yield from (f"    - {line}" for line in (text.old or "").splitlines())
    yield from (f"    + {line}" for line in (text.new or "").splitlines())


def _windows(one: Planned) -> str:
    start, end = one.interval or (None, 0)
    span = f"up to {_at(end)}" if start is None else f"{_at(start)} to {_at(end)}"
    windows = f"{one.count:,} of {plural(one.published, 'window')} stale, {span} (UTC)"
    return windows if one.cost is None else f"{windows}; {_cost(one.cost)}"


def _cost(cost: Cost) -> str:
    """`31,200,000 events, 412 MB, about 4 min (from 12 runs)`."""
    work = f"{plural(cost.events, 'event')}, {cost.bytes / 1e6:,.1f} MB"
    if cost.seconds is None:
        return work
    time = f"{cost.seconds / 60:.0f} min" if cost.seconds >= 90 else f"{cost.seconds:.0f} s"
    return f"{work}, about {time} (from {plural(cost.runs, 'run')})"


def _markdown(planned: Sequence[Planned]) -> Iterator[str]:
    """One table, cut where it would be longer than a comment may be."""
    yield "| pattern | state | why | windows | next |"
    yield "|---|---|---|---|---|"
    length, left = 0, 0
    for one in planned:
        why = one.why if one.error is None else str(one.error).splitlines()[0]
        commands = "<br>".join(f"`{command(typed)}`" for typed in one.commands)
        cells = (f"`{one.pattern}`", _words(one), why, _windows(one) if one.windows else "", commands)
        line = f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
        length += len(line) + 1
        if length > MOST:
            left += 1
        else:
            yield line
    if left:
        yield f"\n{plural(left, 'more pattern')}: `trendlake plan` shows all"


def _document(one: Planned) -> dict[str, Any]:
    from trendlake.cep_core.events.windows import moment
    from trendlake.pipelines.runs.intervals import interval_of

    stretches: list[list[Any]] = []
    if one.run is not None:
        ends = [(interval_of(one.run.plan.windows, *stretch), stretch) for stretch in one.windows]
        stretches = [[moment(start), moment(end), last - first + 1] for (start, end), (first, last) in ends]
    readers = None if one.columns is None else "compatible" if one.columns.compatible else INCOMPATIBLE
    return {
        "pattern": one.pattern,
        "state": one.state,
        "why": one.why,
        "keys": list(one.keys),
        "readers": readers,
        "columns_removed": [] if one.columns is None else list(one.columns.removed),
        "columns_added": [] if one.columns is None else list(one.columns.added),
        "columns_retyped": [] if one.columns is None else list(one.columns.retyped),
        "windows": stretches,
        "windows_published": one.published,
        "events": None if one.cost is None else one.cost.events,
        "bytes": None if one.cost is None else one.cost.bytes,
        "seconds": None if one.cost is None else one.cost.seconds,
        "commands": [command(typed) for typed in one.commands],
        "downstream": list(one.downstream),
        "basis": None if one.basis is None else one.basis.as_json(),
        "error": None if one.error is None else of_error(one.error),
    }


def _at(micros: int) -> str:
    from trendlake.cep_core.events.windows import clock_text

    return clock_text(micros, " ").removesuffix(":00")
