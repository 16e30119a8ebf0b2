"""Documents of runs, backfills and revisions, with the names of `--json`. `from`, which is a word of
Python's, is `from_`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Self

from trendlake.jobs.python import html
from trendlake.jobs.terminal.printing import cell
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.lake.road import road_of


class Document:
    """A frozen dataclass that is made of a document."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """Of a document with a key for each field; one that may be left out has a default."""
        return cls(**{one.name: document[key] for one in fields(cls) if (key := _key(one.name)) in document})


def _key(name: str) -> str:
    return name.rstrip("_")


@dataclass(frozen=True)
class Stage(Document):
    """The record of a stage. Numbers are None where the stage does not know them; `interval_from`, `interval_to`: UTC;
    `road`: `here` or `spark`."""

    run_id: str
    pattern: str
    stage: str
    status: str
    interval_from: datetime | None
    interval_to: datetime | None
    plan_hash: str | None
    source: str | None
    source_version: int | None
    staged_version: int | None
    results_version: int | None
    rows_in: int | None
    rows_quarantined: int | None
    rows_out: int | None
    windows: int | None
    rows_inserted: int | None
    rows_updated: int | None
    rows_deleted: int | None
    seconds: float | None
    checks: list[dict[str, Any]] = field(repr=False)
    note: dict[str, Any] | None = field(repr=False)
    record_number: int | None
    basis: dict[str, Any] | None = field(repr=False)
    sources: dict[str, Any] | None = field(repr=False)
    road: str | None
    road_reason: str | None

    def _repr_html_(self) -> str:
        return html.page(_stages([self]))


@dataclass(frozen=True)
class RunDocument(Document):
    """A run of a pattern. `from_`, `to`: its interval, UTC; None where there is nothing to run, which `nothing_to_run`
    explains. `error`: of a run of several patterns, as `--json` has it."""

    pattern: str
    run_id: str
    from_: datetime | None
    to: datetime | None
    nothing_to_run: str | None
    backfill: str | None
    stages: tuple[Stage, ...] = field(repr=False)
    report: Path | None = field(repr=False)
    picture: Path | None = field(repr=False)
    site: Path | None = field(repr=False)
    state: str = "succeeded"
    error: dict[str, Any] | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        return super().from_document({**document, "stages": stages_of(document["stages"])})

    def _repr_html_(self) -> str:
        return _run(self)


@dataclass(frozen=True)
class Chunk(Document):
    """A chunk of a backfill, `chunk` of `of`; `publication`: None where it was done before."""

    chunk: int
    of: int
    from_: datetime
    to: datetime
    run_id: str
    publication: Stage | None


@dataclass(frozen=True)
class BackfillDocument(Document):
    """A backfill: of its `chunks` so many were `computed`, and others `done_before`; `each`: what became of each."""

    pattern: str
    chunks: int
    computed: int
    done_before: int
    seconds: float
    changed: bool
    each: tuple[Chunk, ...] = field(repr=False)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """`each`: the documents of the chunks."""
        return super().from_document({**document, "each": tuple(map(_chunk, document["each"]))})

    def _repr_html_(self) -> str:
        return _backfill(self)


@dataclass(frozen=True)
class RevisionDocument(Document):
    """A revision of a pattern. `revision`: None where nothing was published, or it failed with `error`."""

    pattern: str
    run_id: str | None = None
    changed: bool = False
    revision: Stage | None = None
    site: Path | None = field(default=None, repr=False)
    error: dict[str, Any] | None = None

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        return super().from_document({**document, "revision": _stage(document.get("revision"))})

    def _repr_html_(self) -> str:
        return _revision(self)


def stages_of(documents: Iterable[Mapping[str, Any]]) -> tuple[Stage, ...]:
    return tuple(map(Stage.from_document, documents))


def _stage(document: Mapping[str, Any] | None) -> Stage | None:
    return None if document is None else Stage.from_document(document)


def _chunk(document: Mapping[str, Any]) -> Chunk:
    return Chunk.from_document({**document, "publication": _stage(document["publication"])})


def _run(document: RunDocument) -> str:
    """The interval, the steps, broken checks; why nothing ran, or the error."""
    ran = f" from {_text(document.from_)} to {_text(document.to)} UTC" if document.from_ is not None else ""
    reason = f"<p>nothing to run: {escape(document.nothing_to_run)}</p>" if document.nothing_to_run else ""
    head = f"<b>{escape(document.pattern)}</b>: run {escape(document.run_id)}{ran}, {escape(document.state)}"
    return html.page(f"{head}{reason}{_error(document.error)}{_stages(document.stages)}")


def _backfill(document: BackfillDocument) -> str:
    """How many chunks were computed, and the changes by each."""
    head = f"<b>{escape(document.pattern)}</b>: {plural(document.computed, 'chunk')} computed, "
    body = [
        [_text(chunk.from_), _text(chunk.to), _changes(chunk.publication) if chunk.publication else "done before"]
        for chunk in document.each
    ]
    table = html.table_of(("from", "to", "+ / ~ / -"), body, (False, False, True))
    return html.page(f"{head}{document.done_before:,} done before{table}")


def _revision(document: RevisionDocument) -> str:
    """The step and its changes, or the error."""
    state = "changed" if document.changed else "nothing to change"
    return html.page(
        f"<b>{escape(document.pattern)}</b>: {'failed' if document.error else state}{_error(document.error)}"
        f"{_stages([document.revision] if document.revision else [])}"
    )


def _stages(records: Sequence[Stage]) -> str:
    if not records:
        return ""
    names = ("stage", "rows in", "quarantined", "rows out", "+ / ~ / -", "where", "seconds")
    body = [
        [
            record.stage,
            *map(_number, (record.rows_in, record.rows_quarantined, record.rows_out)),
            _changes(record),
            road_of(vars(record)),
            "" if record.seconds is None else f"{record.seconds:.1f}",
        ]
        for record in records
    ]
    broken = [check for record in records for check in record.checks if check["success"] is False]
    items = "".join(f"<li>{escape(check['check'])}: {escape(str(check['observed']))}</li>" for check in broken)
    listed = f"<ul>{items}</ul>" if items else ""
    return html.table_of(names, body, (False, True, True, True, True, False, True)) + listed


def _error(error: Mapping[str, Any] | None) -> str:
    return "" if error is None else f"<p>[{escape(error['code'])}] {escape(error['message'])}</p>"


def _changes(record: Stage) -> str:
    counts = (record.rows_inserted, record.rows_updated, record.rows_deleted)
    return "" if counts == (None, None, None) else " / ".join(_number(count) or "-" for count in counts)


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _text(value: datetime | None) -> str:
    return "" if value is None else cell(value)
