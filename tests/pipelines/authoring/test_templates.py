"""The templates of `new pattern --like` on sources of four shapes: each that fits is valid, its test passes, and its
rows are those of slow loops over the file."""

from __future__ import annotations

import csv
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from tests.support.own_source import output_of
from trendlake.jobs.commands.sources import Like
from trendlake.jobs.main import app
from trendlake.pipelines.authoring.templates import TEMPLATES

Event = dict[str, Any]
Rows = set[tuple[Any, ...]]
BEGIN = datetime(2026, 3, 2, 7, tzinfo=UTC)


@dataclass(frozen=True)
class Source:
    """`options` of `new source`; which columns are the id, the time, whose event it is and the number, if there are
    such; `unfit`: the templates that do not fit."""

    options: str
    ident: str
    time: str
    key: str | None
    number: str | None
    unfit: frozenset[str]
    rows: Callable[[random.Random], Iterator[Event]]
    type: str = ""


def times(rng: random.Random, number: int, longest: int) -> Iterator[datetime]:
    """Times in order, of which some are equal, with a pause now and then."""
    time = BEGIN
    for n in range(1, number + 1):
        time += timedelta(minutes=300 if n % 100 == 0 else rng.choice([0, *range(1, longest)]))
        yield time


def readings(rng: random.Random) -> Iterator[Event]:
    """One series of whole numbers, whose times are unique; texts next to them that mostly are numbers are no key."""
    value = 100
    for time in sorted({*times(rng, 250, 30)}):
        value += rng.randint(-9, 9)
        yield {"at": time, "glucose": value, "signal": rng.choice(["nil", 8.5, 9.5, 10.5])}


def clicks(rng: random.Random) -> Iterator[Event]:
    """Visits: views, then perhaps a cart, then perhaps a purchase; in a few the cart is forgotten or late."""
    events = []
    for time in times(rng, 120, 40):
        person = rng.choice(["ann", "bob", "cem"])
        for kind, share in (("View", 1.0), ("Cart", 0.8), ("Buy", 0.6)):
            if rng.random() > share:
                break
            events.append({"at": time, "kind": kind, "customer": person, "amount": rng.randint(1, 400) / 4})
            time += timedelta(minutes=rng.choice([0, 1, 2, 3, 90]))
    for n, event in enumerate(sorted(events, key=lambda event: event["at"])):
        yield {"id": f"c{n:03}", **event}


def notes(rng: random.Random) -> Iterator[Event]:
    for n, time in enumerate(times(rng, 200, 60)):
        yield {"id": f"n{n:03}", "at": time, "author": rng.choice("xyz"), "text": f"about {n}"}


def trips(rng: random.Random) -> Iterator[Event]:
    for n, time in enumerate(times(rng, 250, 20)):
        minutes = rng.randint(2, 60)
        begun = time - timedelta(minutes=minutes)
        car, driver = rng.choice([7, 8, 9]), rng.choice(["ida", "jon"])
        lasted = minutes + 0.5
        yield {"trip": f"t{n:03}", "driver": driver, "car_id": car, "start": begun, "end": time, "minutes": lasted}


NO_NUMBERS = frozenset({"streak", "drop-and-recovery", "longest-run", "top"})
SOURCES = {
    "cgm": Source(
        "--event-id at --event-time at --type Reading", "at", "at", None, "glucose", frozenset({"funnel"}), readings
    ),
    "shop": Source(
        "--event-id id --event-time at --event-type kind", "id", "at", "customer", "amount", frozenset(), clicks, "kind"
    ),
    "notes": Source(
        "--event-id id --event-time at --type Note", "id", "at", "author", None, NO_NUMBERS | {"funnel"}, notes
    ),
    "trips": Source(
        "--event-id trip --event-time end --type Trip", "trip", "end", "driver", "minutes", frozenset({"funnel"}), trips
    ),
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mine")
    output_of("init", folder)
    for name, source in SOURCES.items():
        file = folder / f"{name}.csv"
        events = list(source.rows(random.Random(3)))
        with file.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, events[0])
            writer.writeheader()
            writer.writerows({one: text(value) for one, value in event.items()} for event in events)
        output_of("new", "source", name, "--from", file, *source.options.split(), "--project-dir", folder)
    return folder


def text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def events_of(name: str) -> list[Event]:
    """The events of a file in their order, each with its `t`, `k` and `v`: time, key and number."""
    source = SOURCES[name]
    events = list(source.rows(random.Random(3)))
    for event in events:
        event["t"], event["k"] = event[source.time], event.get(source.key or "")
        event["v"] = event.get(source.number or "")
    return sorted(events, key=lambda event: (event["t"], event[source.ident]))


def by_key(events: list[Event]) -> dict[Any, list[Event]]:
    groups = defaultdict(list)
    for event in events:
        groups[event["k"]].append(event)
    return groups


def by_day(events: list[Event]) -> dict[Any, list[Event]]:
    groups = defaultdict(list)
    for event in events:
        groups[event["k"], event["t"].replace(hour=0, minute=0)].append(event)
    return groups


# what each template is to find


def streaks(events: list[Event], pattern: str) -> Rows:
    least = float(constant(r">= (\S+)\)", pattern))
    rows = set()
    for key, series in by_key(events).items():
        run: list[Event] = []
        for event in [*series, {"v": least - 1}]:
            if event["v"] >= least:
                run.append(event)
                continue
            if len(run) >= 3:
                rows.add((key, run[0]["t"], run[-1]["t"], len(run), max(one["v"] for one in run)))
            run = []
    return rows


def funnels(events: list[Event], pattern: str) -> Rows:
    assert "SEQ(View a, SEQ(Cart b, Buy c?)?)" in pattern
    rows = set()
    for (key, day), series in by_day(events).items():
        trends = []
        for a in series:
            if a["kind"] != "View":
                continue
            trends.append([a])
            for b in series:
                if b["kind"] != "Cart" or b["t"] <= a["t"]:
                    continue
                trends.append([a, b])
                trends += [[a, b, c] for c in series if c["kind"] == "Buy" and c["t"] > b["t"]]
        if trends:
            longest = max((trend[-1]["t"] - trend[0]["t"]).total_seconds() for trend in trends)
            rows.add((key, day, max(map(len, trends)), longest))
    return rows


def absences(events: list[Event], pattern: str) -> Rows:
    limit = length(constant(r"within (\d+ \w+)\)", pattern))
    rows = set()
    for a in events:
        if a.get("kind", "View") != "View":
            continue
        follows = [
            b
            for b in events
            if b is not a and b["k"] == a["k"] and b.get("kind", "Cart") == "Cart" and a["t"] <= b["t"] < a["t"] + limit
        ]
        if not follows and a["t"] + limit <= events[-1]["t"]:
            rows.add((a["k"], a["t"]))
    return rows


def dips(events: list[Event], pattern: str) -> Rows:
    least = float(constant(r"top - bottom >= (\S+)", pattern))
    rows = set()
    for key, series in by_key(events).items():
        v = [event["v"] for event in series]
        i = 0
        while i < len(v):
            bottom = i
            while bottom + 1 < len(v) and v[bottom + 1] < v[bottom]:
                bottom += 1
            back = bottom
            while back + 1 < len(v) and v[back + 1] > v[back]:
                back += 1
            if i < bottom < back:
                if v[i] - v[bottom] >= least and v[back] - v[bottom] >= least:
                    rows.add((key, series[i]["t"], series[back]["t"], v[i], v[bottom], v[back]))
                i = back
            else:
                i += 1
    return rows


def rises(events: list[Event], pattern: str) -> Rows:
    rows = set()
    for (key, day), series in by_day(events).items():
        runs = [[series[0]]]
        for before, after in pairwise(series):
            if before["t"] < after["t"] and before["v"] < after["v"]:
                runs[-1].append(after)
            else:
                runs.append([after])
        lasted = max((run[-1]["t"] - run[0]["t"]).total_seconds() for run in runs)
        rows.add((key, day, max(map(len, runs)), lasted))
    return rows


def sessions(events: list[Event], pattern: str) -> Rows:
    gap = length(constant(r"INTERVAL '(\d+' \w+)", pattern).replace("'", "").lower())
    rows = set()
    for key, series in by_key(events).items():
        groups = [[series[0]]]
        for before, after in pairwise(series):
            if after["t"] - before["t"] < gap:
                groups[-1].append(after)
            else:
                groups.append([after])
        rows |= {(key, group[0]["t"], group[-1]["t"], len(group)) for group in groups}
    return rows


def days(events: list[Event], pattern: str) -> Rows:
    rows = set()
    for (key, day), series in by_day(events).items():
        v = [event["v"] for event in series if event["v"] is not None]
        measures = (min(v), round(sum(v) / len(v), 6), max(v)) if v else ()
        rows.add((key, day, len(series), *measures))
    return rows


def tops(events: list[Event], pattern: str) -> Rows:
    rows = set()
    for day in {day for _, day in by_day(events)}:
        series = [event for event in events if event["t"].replace(hour=0, minute=0) == day]
        top = max(series, key=lambda event: event["v"])  # of several the first
        rows.add((day, top["v"], top["t"], top["k"]))
    return rows


def constant(expression: str, pattern: str) -> str:
    match = re.search(expression, pattern)
    assert match is not None, pattern
    return match[1]


def length(words: str) -> timedelta:
    number, unit = words.split()
    return timedelta(**{unit.removesuffix("s") + "s": int(number)})


EXPECTED: dict[str, tuple[Callable[[list[Event], str], Rows], list[str]]] = {
    "streak": (streaks, ["KEY", "start", "end", "events", "highest"]),
    "funnel": (funnels, ["KEY", "window_start", "reached", "lasted"]),
    "absence": (absences, ["KEY", "start"]),
    "drop-and-recovery": (dips, ["KEY", "start", "end", "top", "bottom", "back"]),
    "longest-run": (rises, ["KEY", "window_start", "longest", "lasted"]),
    "sessions": (sessions, ["KEY", "start", "end", "events"]),
    "per-day": (days, ["KEY", "window_start", "events", "lowest", "mean", "highest"]),
    "top": (tops, ["window_start", "highest", "at_time", "KEY"]),
}


def pattern_like(project: Path, name: str, like: str) -> Path:
    """The file of a pattern out of a template, over the source `name`."""
    pattern = f"{name}_{like.replace('-', '_')}"
    file = project / "conf" / "patterns" / f"{pattern}.yaml"
    if not file.exists():
        words = ["new", "pattern", pattern, "--source", name, "--like", like, "--events", project / f"{name}.csv"]
        output_of(*words, "--project-dir", project)
    return file


def document(*words: str | Path) -> Any:
    return json.loads(CliRunner().invoke(app, [*map(str, words), "--json"]).stdout)


FITTING = [(name, one.name) for name in SOURCES for one in TEMPLATES if one.name not in SOURCES[name].unfit]


@pytest.mark.parametrize(("name", "like"), FITTING)
def test_a_template(project: Path, name: str, like: str) -> None:
    file = pattern_like(project, name, like)
    checked = document("validate", file, "--project-dir", project)
    assert [(one["good"], one["notes"]) for one in checked["files"]] == [(True, [])]
    assert "1 passed, 0 failed" in output_of("test", file.stem, "--project-dir", project)
    rows = document("try", file.stem, "--events", project / f"{name}.csv", "--project-dir", project)["rows"]
    expected, columns = EXPECTED[like]
    key = SOURCES[name].key
    columns = [one for one in columns if one in rows[0] or one == "KEY"]
    measured = [tuple(read(row.get(key) if one == "KEY" else row[one]) for one in columns) for row in rows]
    wanted = expected(events_of(name), file.read_text())
    assert sorted(measured) == sorted(wanted)
    assert len(measured) > 1


def read(value: Any) -> Any:
    """As the loops have it."""
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\dT", value):
        return datetime.fromisoformat(value)
    return round(value, 6) if isinstance(value, float) else value


@pytest.mark.parametrize(("name", "like"), [(name, like) for name in SOURCES for like in sorted(SOURCES[name].unfit)])
def test_one_that_does_not_fit(project: Path, name: str, like: str) -> None:
    """It says why, names those that fit, and writes nothing."""
    words = ["new", "pattern", "unfit", "--source", name, "--like", like, "--events", project / f"{name}.csv"]
    out = output_of(*words, "--project-dir", project, code=1)
    assert f"--like {like} does not fit '{name}': " in out
    named = out.split("these do: ")[1].strip().split(", ")
    assert named == [one.name for one in TEMPLATES if (name, one.name) in FITTING]
    assert list(project.rglob("unfit*")) == []


def test_all_are_options() -> None:
    assert [one.name for one in TEMPLATES] == [one.value for one in Like]
