"""The keys of a pattern file of kind automaton."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from trendlake.cep_core.errors import BadValueError, NotSupportedError, TrendlakeError, did_you_mean
from trendlake.cep_core.events.names import TakenNames
from trendlake.cep_core.patterns.model import PROVENANCE_COLUMNS, FamilyPattern, Identifier, Moment
from trendlake.cep_core.yaml.source import Path_

RESERVED_COLUMNS = PROVENANCE_COLUMNS | {"first", "last", "state", "lifetime_start", "lifetime_end"}
"""Columns every results table of kind automaton has: no field or partition may take their names."""

WORDS = frozenset(
    "and between e false in interval is next not null or seq timestamp true".split()  # noqa: SIM905
)
"""Names a field of the register cannot have: the language's words, and `e`, the event."""

BITS = {"byte": 8, "tinyint": 8, "short": 16, "smallint": 16, "int": 32, "integer": 32, "long": 64, "bigint": 64}
"""Whole-number types of fields, by width."""
TYPES = (*BITS, "double", "string", "boolean", "timestamp", "date")
"""Types of fields."""


MAX_FIELDS = 62
"""Fields of a register: their NULLs are bits of one whole number."""


class Strict(BaseModel):
    """Unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class FieldModel(Strict):
    """One field of the register. `init` is a value of the type, or null."""

    type: Literal[
        "byte",
        "tinyint",
        "short",
        "smallint",
        "int",
        "integer",
        "long",
        "bigint",
        "double",
        "string",
        "boolean",
        "timestamp",
        "date",
    ]
    init: bool | int | float | date | str | None = Field(union_mode="smart")


class ArcModel(Strict):
    """One arc. `valid_from`, `valid_to`: microseconds since the epoch, from inclusive, to exclusive."""

    source: str = Field(alias="from", min_length=1)
    """The state it leaves."""
    target: str = Field(alias="to", min_length=1)
    """The state it leads to."""
    when: str | bool = True
    """Its condition, on the event (e.change < 0) and the register."""
    set_: dict[Identifier, str | bool | int | float | None] = Field(alias="set", default_factory=dict)
    """Fields of the register and their new values."""
    epsilon: bool = False
    """It takes no event."""
    ignore: bool = False
    """It takes an event and changes nothing."""
    at: Literal["window_end"] | None = None
    """It takes no event, when the run's time is over."""
    valid_from: Moment | None = None
    """It takes no event before this."""
    valid_to: Moment | None = None
    """It takes no event from this on."""


class AutomatonPattern(FamilyPattern):
    """One pattern of kind automaton, as an analyst wrote it."""

    kind: Literal["automaton"] = "automaton"
    register_: dict[Identifier, FieldModel] = Field(alias="register", default_factory=dict)
    """The register of a run: fields with a type and a first value."""
    start: str = Field(min_length=1)
    """The state in which each run begins."""
    final: Annotated[tuple[str, ...], Field(min_length=1)]
    """States in which a run is a result."""
    arcs: Annotated[tuple[ArcModel, ...], Field(min_length=1)]
    """How a run goes from state to state."""
    partition_by: tuple[Identifier, ...] = ()
    """Columns that part the stream: a run sees the events of one partition."""
    output: Literal["all", "non_overlap"] = "all"
    """Every run that ends in a final state, or those that do not overlap: the one that ends first, then the next."""

    @property
    def groups(self) -> tuple[str, ...]:
        return (*self.parameter_names, *self.partition_by)

    def mistakes(self) -> list[TrendlakeError]:
        """Columns that would share a name, states that no arc knows, arcs that contradict themselves."""
        of_arcs = (error for i, arc in enumerate(self.arcs) for error in self._arc(i, arc))
        return [*super().mistakes(), *self._names(), *self._states(), *of_arcs, *self._output()]

    def _output(self) -> list[TrendlakeError]:
        late = next((i for i, arc in enumerate(self.arcs) if arc.at), None)
        if self.output == "all" or late is None:
            return []
        message = "output: non_overlap where a run ends with its time: which run ends first is known too late"
        place = self.document.place(("arcs", late, "at"))
        return [NotSupportedError(message, place=place, hint="leave out output, or this arc")]

    @property
    def declared(self) -> frozenset[str]:
        """Fields the file's register names, those with mistakes included: a mistake is reported once, at its own
        place."""
        register = self.document.data.get("register")
        return frozenset(map(str, register)) if isinstance(register, Mapping) else frozenset()

    def _bad(self, message: str, path: Path_, *, key: bool = False, hint: str | None = None) -> TrendlakeError:
        return BadValueError(message, place=self.document.place(path, key=key), hint=hint)

    def _names(self) -> list[TrendlakeError]:
        errors: list[TrendlakeError] = []
        columns = TakenNames(RESERVED_COLUMNS, "a column of every results table of kind automaton")
        for i, name in enumerate(self.partition_by):
            if taken := columns.take(name, "a partition column already"):
                errors.append(self._bad(f"'{name}' is {taken}", ("partition_by", i)))
        for name in self.register_:
            path = ("register", name)
            taken = columns.take(name, "a field of the register already")
            if name.lower() in WORDS:
                errors.append(self._bad(f"'{name}' is a word of the language", path, key=True))
            elif taken:
                errors.append(self._bad(f"'{name}' is {taken}", path, key=True))
        if len(self.register_) > MAX_FIELDS:
            errors.append(self._bad(f"more than {MAX_FIELDS} fields", ("register",), key=True))
        return errors

    def _states(self) -> list[TrendlakeError]:
        errors: list[TrendlakeError] = []
        sources = list(dict.fromkeys(arc.source for arc in self.arcs))
        targets = list(dict.fromkeys(arc.target for arc in self.arcs))
        if self.start not in sources:
            hint = did_you_mean(self.start, sources)
            errors.append(self._bad(f"no arc leaves the start state '{self.start}'", ("start",), hint=hint))
        for i, name in enumerate(self.final):
            if name not in targets:
                hint = did_you_mean(name, targets)
                errors.append(self._bad(f"no arc leads to the final state '{name}'", ("final", i), hint=hint))
        states = {self.start, *targets}
        for i, arc in enumerate(self.arcs):
            if arc.source not in states:
                hint = did_you_mean(arc.source, states)
                message = f"no arc leads to the state '{arc.source}', and it is not the start"
                errors.append(self._bad(message, ("arcs", i, "from"), hint=hint))
        return errors

    def _arc(self, i: int, arc: ArcModel) -> list[TrendlakeError]:
        path: Path_ = ("arcs", i)
        errors: list[TrendlakeError] = []
        roles = [word for word, is_so in (("epsilon", arc.epsilon), ("ignore", arc.ignore), ("at", arc.at)) if is_so]
        if len(roles) > 1:
            message = f"an arc is one of epsilon, ignore and at, not {' and '.join(roles)}"
            errors.append(self._bad(message, (*path, roles[1]), key=True))
        if arc.ignore and arc.source != arc.target:
            errors.append(self._bad("an arc that ignores its event stays in its state", (*path, "to")))
        if arc.ignore and arc.set_:
            errors.append(
                self._bad("an arc that ignores its event leaves the register alone", (*path, "set"), key=True)
            )
        if arc.valid_from is not None and arc.valid_to is not None and arc.valid_from >= arc.valid_to:
            errors.append(self._bad("the arc's lifetime is empty", (*path, "valid_to")))
        for name in arc.set_:
            if name not in self.register_ and name not in self.declared:
                message = f"the register has no field '{name}'"
                hint = did_you_mean(name, self.register_) if self.register_ else "there is no register"
                errors.append(self._bad(message, (*path, "set", name), key=True, hint=hint))
        return errors
