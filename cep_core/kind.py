"""The entry of a kind of patterns: all that the engine does with a pattern goes through it.

Each kind states its own in its module `kind`. The functions that run a plan are in the kind's `runtime.py`, imported
when the first one runs: checking and explaining a pattern loads no compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pyarrow as pa
from pydantic import BaseModel

from trendlake.cep_core.drawing import Drawing
from trendlake.cep_core.events.array_types import Bools
from trendlake.cep_core.events.columns import Columns
from trendlake.cep_core.events.schema import EventSchema
from trendlake.cep_core.language import syntax as s
from trendlake.cep_core.patterns.model import Pattern
from trendlake.cep_core.plan import AnyPlan, Binding

Run = Callable[[Any, Columns, range | None, int | None], pa.Table]


@dataclass(frozen=True)
class Members:
    """How plans of one kind that are of one form are run as one.

    `form`: of a plan and, by binding, the conditions that are still to be asked of its events; equal for plans that can
    be run as one, None for a plan that is run by itself. `run`: the form, the events, each member's rows (int64,
    ascending) and the bindings that may take each (uint64, a bit each), and the windows, to a table a member.
    `has_lanes`: whether plans of a form can share a pass over all events. `lanes`: the form, the events, by binding the
    members that may take each event (uint64, a bit each), how many members there are, and the windows, to a table a
    member; None for one that is to be run by itself.
    """

    form: Callable[[Any, tuple[tuple[s.Expr, ...], ...]], Any]
    run: Callable[[Any, Columns, Sequence[tuple[Any, Any]], range | None], list[pa.Table]]
    has_lanes: Callable[[Any], bool] = lambda form: False
    lanes: Callable[[Any, Columns, Any, int, range | None], list[pa.Table | None]] | None = None


@dataclass(frozen=True)
class Templates:
    """How plans of one kind that differ in constants only are run as one, whatever events they may bind.

    `of`: a plan's template and its constants, both hashable; None for a plan that has none. `run`: a plan of the
    template, the constants of each, the events and the windows, to a table a plan. It raises what any of them raises.
    """

    of: Callable[[Any], tuple[Any, tuple[Any, ...]] | None]
    run: Callable[[Any, Sequence[tuple[Any, ...]], Columns, range | None], list[pa.Table]]


@dataclass(frozen=True)
class Pairs:
    """How the rows of one kind that hold one of a few events are computed without most of the others.

    `ids`: the result columns with the ids of a row's two events.
    `partners`: a plan and the documents (or what else `column` names) of those events to the function that says which
    events may be in a row with one of them, of those it is asked about (their `column`, and a mask); raises ValueError
    where any may be. `within`: how far apart in time two events of a row are at most, microseconds. `limit`: the rows
    of a query that may end with one event; more are an error.
    """

    ids: tuple[str, str]
    column: Callable[[Any], str]
    partners: Callable[[Any, pa.Array], Callable[[pa.Array, Bools], Bools]]
    within: Callable[[Any], int]
    limit: Callable[[Any], int]


@dataclass(frozen=True)
class Renewed:
    """The rows that changed events make: `rows`, in place of those published rows that are `replaced`. `left`: the
    changed events for which other events are to be read first."""

    rows: pa.Table
    replaced: Bools
    left: Bools


@dataclass(frozen=True)
class Renewal:
    """How the rows of one kind that changed events make are computed from the events around them, where windows
    hold everything before them.

    `can`: whether it is so for a plan. `run`: a plan; all events from one time to another, of all units that changed;
    the events that came or went, with columns of the plan, all between these times; published rows of these units,
    those that end between the times and those that begin there among them; the times, microseconds, None for the
    beginning or the end of all. `reach`: how far around a change it is sensible to read first, microseconds.
    `ahead`: how long after the second time a row may end that begins before it and is to be replaced, microseconds;
    None for any time. `limit`: the rows of a unit and window; more are an error.
    """

    can: Callable[[Any], bool]
    run: Callable[[Any, Columns, pa.Table, pa.Table, tuple[int | None, int | None]], Renewed]
    reach: Callable[[Any], int]
    ahead: Callable[[Any], int | None]
    limit: Callable[[Any], int]


@dataclass(frozen=True)
class Kind:
    """The functions of the engine for patterns of one kind.

    `model`: of its files; `instead`: values for keys that are missing or wrong, so that the rest of a file with
    mistakes can be checked too; `nested`: the models of the values of single keys of the file.
    `compile`: the model and a schema to a plan; raises PatternErrors with all mistakes.
    `run`: the plan, the events, the windows wanted (None: all) and the watermark (None: not said) to a table of
    results. `explain`: a plan as text for a terminal; `draw`: a plan under a title as a picture.
    `bindings`: how a plan may bind an event, of every variable, NOTs' too; None where events that it can't bind matter.
    `members`, `templates`: how several plans are run as one; None where they are not.
    `pairs`: how rows of changed events are computed alone, where a row is of two events; None where it is not.
    `renewal`: how they are where a row depends on all before it; None where they are not.
    `version`: raised when the results of a plan that stays the same change (docs/adr/0012-versions-of-results.md).
    """

    model: type[Pattern]
    compile: Callable[[Any, EventSchema], AnyPlan]
    run: Run
    explain: Callable[[Any], str]
    draw: Callable[[Any, str], Drawing]
    version: int
    bindings: Callable[[Any], tuple[Binding, ...] | None] = lambda plan: None
    members: Members | None = None
    templates: Templates | None = None
    pairs: Pairs | None = None
    renewal: Renewal | None = None
    roles: tuple[str, ...] = ("event_time", "event_type")
    """Roles whose columns events have, whatever the pattern reads."""
    groups: tuple[str, ...] = ()
    """Result columns that tell groups apart in every file of the kind."""
    instead: Mapping[str, Any] = field(default_factory=dict)
    nested: Mapping[str, type[BaseModel]] = field(default_factory=dict)


def runtime(kind: str, name: str) -> Callable[..., Any]:
    """The function `name` of the kind's module `runtime`, which is imported when it is first called."""

    def call(*arguments: Any) -> Any:
        return getattr(import_module(f"trendlake.cep_core.{kind}.runtime"), name)(*arguments)

    return call
