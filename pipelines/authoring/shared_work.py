"""The work that a pattern shares with the others of its batch: read from the files, without events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from trendlake.cep_core import AnyPlan, Pattern, PatternErrors
from trendlake.cep_core.sharing.explain import SharedPass, shared_passes
from trendlake.pipelines.authoring.validate import compiled_quietly
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.execute.channel import Member, channels_of, together
from trendlake.pipelines.project.batches import batch_of
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.selection import Patterns

DAY = 86_400_000_000
"""Microseconds: a run of one day is explained."""
NAMED = 5
"""So many names are written out."""


@dataclass(frozen=True)
class SharedWork:
    """Of a pattern in a batch: the names of the others, of those whose events are shuffled with its own (`key`: by what
    columns), and of those in its pass of the kernel; how many shuffles and passes the batch has; `invalid`: names of
    patterns of the batch that do not compile."""

    batch: str
    others: tuple[str, ...]
    key: tuple[str, ...]
    shuffled_with: tuple[str, ...]
    one_pass: SharedPass
    one_pass_with: tuple[str, ...]
    shuffles: int
    passes: int
    invalid: tuple[str, ...]

    def about(self) -> dict[str, Any]:
        """For programs."""
        return {
            "batch": self.batch,
            "others": self.others,
            "shuffled_by": self.key,
            "shuffled_with": self.shuffled_with,
            "pass": self.one_pass.way,
            "one_pass_with": self.one_pass_with,
            "shuffles": self.shuffles,
            "passes": self.passes,
            "invalid": self.invalid,
        }

    def lines(self) -> list[str]:
        """For people."""
        count = len(self.others) + 1
        ways = {
            "equal": "computed once for equal patterns, with {}",
            "template": "one pass with {}: they differ in constants only",
            "members": "one pass with {}, where each wants few events: they differ in constants only",
            "lanes": "one pass with {}: they differ in constants only",
            "own": "a pass of its own, over the events that its conditions leave",
            "all": "a pass of its own, over all events",
        }
        shuffles = "1 shuffle" if self.shuffles == 1 else f"{self.shuffles} shuffles"
        passes = "1 pass" if self.passes == 1 else f"{self.passes} passes"
        lines = [
            f"batch {self.batch}: {count} patterns",
            "  once      Spark, the version and the check of the source, the reading of its events",
            f"  shuffle   by {', '.join(self.key) or 'time only'}, "
            + (f"once with {_named(self.shuffled_with)}" if self.shuffled_with else "for this pattern alone"),
            "  kernel    " + ways[self.one_pass.way].format(_named(self.one_pass_with)),
            f"  in all    {count} patterns, 1 reading, {shuffles}, {passes} of the kernels",
        ]
        if self.invalid:
            lines.append(f"  not counted, as they have mistakes: {_named(self.invalid)}")
        return lines


def shared_work(project: Project, pattern: Pattern, rule: str | None) -> SharedWork | None:
    """The work that a pattern of the project shares in a run of one day; `rule`: the profile's `batches`. None where it
    is in no batch, or by itself there. Raises PatternErrors where a file of the project cannot be read."""
    patterns = Patterns(project, rule)
    batch = batch_of(pattern, rule)
    if batch is None or pattern.name not in patterns.files:
        return None
    plans, invalid = dict[str, AnyPlan](), list[str]()
    for name, other in patterns.read.items():
        if batch_of(other, rule) == batch and other.tables == pattern.tables:
            try:
                plans[name] = compiled_quietly(project, project.pattern_path(name))[1]
            except (PatternErrors, ProjectError):
                invalid.append(name)
    if pattern.name not in plans or len(plans) == 1:
        return None
    names = list(plans)
    at = names.index(pattern.name)
    channels = _channels(list(plans.values()))
    mine, key = next(channel for channel in channels if at in channel[0])
    passes = shared_passes(list(plans.values()))
    one_pass = next(one for one in passes if at in one.plans)

    def others(numbers: Iterable[int]) -> tuple[str, ...]:
        return tuple(names[number] for number in numbers if number != at)

    return SharedWork(
        batch,
        others(range(len(names))),
        key,
        others(mine),
        one_pass,
        others(one_pass.plans),
        len(channels),
        len(passes),
        tuple(invalid),
    )


def _channels(plans: Sequence[AnyPlan]) -> list[tuple[tuple[int, ...], tuple[str, ...]]]:
    """The numbers of the plans that are shuffled together, and by what."""
    members = [Member(number, plan, plan.windows.ending_in(0, DAY) or range(1)) for number, plan in enumerate(plans)]
    channels = [channel for group in together(members) for channel in channels_of(group)]
    return [(tuple(member.number for member in one.members), one.reading.unit_key) for one in channels]


def _named(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMED])
    return shown if len(names) <= NAMED else f"{shown} and {len(names) - NAMED} more"
