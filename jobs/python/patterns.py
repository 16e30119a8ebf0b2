"""The patterns of a project, each with its file, its plan and its picture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from trendlake.cep_core import AnyPlan, Pattern, draw, explain
from trendlake.jobs.python import html
from trendlake.jobs.python.caller import Caller
from trendlake.pipelines.authoring.validate import compiled


@dataclass(frozen=True)
class PatternFile:
    """A pattern of a project. `path`: of its file, which is read when it is first asked for more than that; wherever a
    path is taken, as by `trendlake.evaluate`, so is this."""

    name: str
    path: Path = field(repr=False)
    caller: Caller = field(repr=False)

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def text(self) -> str:
        """The file's text."""
        return self.path.read_text(encoding="utf-8")

    @property
    def kind(self) -> str:
        """Its kind, such as `trends`. Raises PatternErrors."""
        return self._compiled[0].kind

    @property
    def source(self) -> str | None:
        """The table that it reads; None where it names several. Raises PatternErrors."""
        return self._compiled[0].source

    @property
    def plan(self) -> AnyPlan:
        """It, compiled against the contract of its source. Raises PatternErrors, ContractErrors."""
        return self._compiled[1]

    @cached_property
    def _compiled(self) -> tuple[Pattern, AnyPlan]:
        with self.caller.asking():
            return compiled(self.caller.place.project, self.path)

    def explain(self) -> str:
        """The plan in words."""
        return explain(self.plan)

    def svg(self) -> str:
        """The plan's automaton, a document of SVG without scripts."""
        return draw(self.plan, self.name)

    def _repr_html_(self) -> str:
        pattern, plan = self._compiled
        return html.pattern(self.name, pattern.description, plan)


class PatternFiles:
    """The patterns of a project by name, in the order of the names. A file that is new is among them."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def __getitem__(self, name: str) -> PatternFile:
        """The pattern of a name or of a file. Raises ProjectError."""
        with self._caller.asking():
            path = self._caller.place.project.pattern_path(name)
        return PatternFile(path.stem, path, self._caller)

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in self._caller.place.project.pattern_files())

    def __len__(self) -> int:
        return len(self._caller.place.project.pattern_files())

    def __contains__(self, name: object) -> bool:
        return name in list(self)

    def __repr__(self) -> str:
        return f"PatternFiles({', '.join(self)})"
