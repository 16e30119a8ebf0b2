"""`trendlake init` and `trendlake new`: first files, and what to do next."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.lines import say
from trendlake.jobs.terminal.waiting import asking
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.progress import doing
from trendlake.pipelines.project.paths import Project, find_project
from trendlake.pipelines.project.shipped import shipped

if TYPE_CHECKING:
    from trendlake.pipelines.authoring.scaffold import Roles
    from trendlake.pipelines.authoring.source_facts import SourceFacts
    from trendlake.pipelines.authoring.source_file import TimeOptions

ALL = 2**31
"""Events to try a pattern on: all of a file."""


def create_project(folder: Path) -> dict[str, Any]:
    """A project in `folder`. Raises ProjectError where it cannot be written."""
    from trendlake.pipelines.authoring.scaffold import init_project

    try:
        written = init_project(folder, shipped("data_contracts"))
    except OSError as error:
        raise ProjectError(f"{folder} cannot be written: {error.strerror or error}") from None
    for path in written:
        say(f"wrote {path}")
    say("next: trendlake new source NAME --from FILE --event-id COLUMN --event-time COLUMN --type NAME --try")
    say("or, for an existing Delta table, --table PLACE instead of --from FILE")
    return {"wrote": written}


def write_source(
    name: str,
    sample: Path,
    roles: Roles,
    options: TimeOptions,
    project_dir: Path | None,
    *,
    null_words: tuple[str, ...] = (),
    overwrite: bool = False,
    trial: bool = False,
    as_json: bool = False,
) -> dict[str, Any]:
    """The contract of a new source; with `trial` also a first pattern and its answer over the file. Raises as
    `pipelines.authoring.source_file.new_source_of_file` and `write_pattern`."""
    from trendlake.pipelines.authoring.free_names import refuse_source
    from trendlake.pipelines.authoring.source_file import new_source_of_file
    from trendlake.pipelines.project.profile import profile_or_default

    project = find_project(project_dir)
    refuse_source(project, profile_or_default(project), name)
    if trial and not as_json:
        say(f"reading {sample}")
    with doing(f"reading {sample}"):
        path, findings = new_source_of_file(
            project, name, sample, roles, options, null_words=null_words, overwrite=overwrite
        )
    for note in findings.notes:
        say(note)
    say(f"wrote {path}: read it, say what the columns promise")
    again = None
    if findings.null_words:
        words = (*null_words, *findings.null_words)
        again = _again(name, sample, roles, options, project_dir, words, trial=trial)
        say(f"with these words as NULL: {again}")
    tried = _first_answer(project, path, sample, project_dir, as_json=as_json) if trial else {"wrote": []}
    say(f"next: {command(f'ingest {name} {shlex.quote(str(sample))}')}")
    about = {"notes": findings.notes, "null_words": findings.null_words, "again": again}
    return {"wrote": [path, *tried.pop("wrote")], **about, **tried}


def _first_answer(
    project: Project, contract_path: Path, sample: Path, project_dir: Path | None, *, as_json: bool
) -> dict[str, Any]:
    """A first pattern of a source and its rows over the file; a file of the pattern that exists is left as it is."""
    from trendlake.jobs.actions.try_pattern import TryOptions, try_pattern
    from trendlake.pipelines.authoring.source_facts import SourceFacts
    from trendlake.pipelines.authoring.templates import first_of
    from trendlake.pipelines.contracts.contract import load_contract

    contract = load_contract(contract_path)
    facts = SourceFacts.of(project, contract, sample)
    like = first_of(facts).name
    name = f"{contract.name}_{like}"
    exists = (project.patterns / f"{name}.yaml").exists()
    written = [] if exists else _write_like(project, name, like, facts)
    rows = try_pattern(TryOptions(name, None, None, (sample,), (), ALL, 20, as_json), None, project_dir)
    return {"wrote": written, "tried": rows}


def _write_like(project: Project, name: str, like: str, facts: SourceFacts) -> list[Path]:
    """The files of a pattern out of a template. Raises ProjectError."""
    from trendlake.pipelines.authoring.free_names import refuse_pattern
    from trendlake.pipelines.authoring.templates import write_pattern_like
    from trendlake.pipelines.project.profile import profile_or_default

    refuse_pattern(project, profile_or_default(project), name)
    written = write_pattern_like(project, name, like, facts)
    say(f"wrote {written[0]}, and a test of it: {written[1]}")
    return written


def _again(
    name: str,
    sample: Path,
    roles: Roles,
    options: TimeOptions,
    project_dir: Path | None,
    words: tuple[str, ...],
    *,
    trial: bool,
) -> str:
    """The command that writes the contract again, with these words as NULL."""
    from trendlake.pipelines.authoring.source_file import null_word_options

    by_option = {
        "--from": sample,
        "--event-id": roles.event_id or None,
        "--event-time": roles.event_time or None,
        "--key": ",".join(roles.key) or None,
        "--event-type": roles.event_type,
        "--type": roles.constant,
        "--document": roles.document,
        "--time-format": options.text_format,
        "--time-zone": options.zone,
        "--project-dir": project_dir,
    }
    parts = [part for option, value in by_option.items() if value is not None for part in (option, str(value))]
    flags = f"{' --reference' if roles.is_reference else ''}{' --try' if trial else ''}"
    stated = null_word_options(words)
    return command(f"new source {name} {' '.join(map(shlex.quote, parts))}{flags} {stated} --overwrite")


def write_source_of_documents(
    name: str, sample: Path, roles: Roles, document_path: str | None, time_format: str | None, project_dir: Path | None
) -> dict[str, Any]:
    """The contract of a source of XML documents. Raises as
    `pipelines.authoring.source_documents.new_source_of_documents`."""
    from trendlake.pipelines.authoring.free_names import refuse_source
    from trendlake.pipelines.authoring.source_documents import new_source_of_documents
    from trendlake.pipelines.project.profile import profile_or_default

    project = find_project(project_dir)
    refuse_source(project, profile_or_default(project), name)
    path, note = new_source_of_documents(project, name, sample, roles, document_path, time_format)
    say(note)
    say(f"wrote {path}: read it, say what the columns promise")
    say(f"next: {command(f'ingest {name} {shlex.quote(str(sample))}')}")
    return {"wrote": [path], "notes": [note]}


def write_source_of_table(
    name: str, place: str, roles: Roles, profile: str | None, project_dir: Path | None
) -> dict[str, Any]:
    """The contract of a source whose table other programs write, and its path in the profile. Raises as
    `pipelines.authoring.existing_table.adopt`, and ProfileError."""
    from trendlake.jobs.terminal.workspace import find_place, session
    from trendlake.pipelines.authoring.existing_table import adopt
    from trendlake.pipelines.authoring.free_names import refuse_source
    from trendlake.pipelines.authoring.scaffold import note_source

    where = find_place(project_dir, profile)
    with_source = where.profile.model_copy(update={"sources": {**where.profile.sources, name: place}})
    refuse_source(where.project, with_source, name)
    place = place if "://" in place else str(Path(place).resolve())
    with session(where, f"trendlake new source {name}") as lake:
        path, left_out = adopt(lake, where.project, name, place, roles)
    noted = note_source(where.project, profile, name, place)
    say(f"wrote {path}: read it, say what the columns promise")
    if left_out:
        say(f"left out, of names or types that contracts do not take: {', '.join(left_out)}")
    say(f"wrote {noted}: {name} is read at {place}, and never changed")
    if roles.is_reference:
        say(f"next: name it under `lookup` of a pattern: {{NAME: {{table: {name}, key: COLUMN, columns: [COLUMN]}}}}")
    else:
        say(f"next: {command(f'new pattern NAME --source {name}')}")
    return {"wrote": [path, noted], "left_out": left_out}


@dataclass(frozen=True)
class FirstPattern:
    """Options of `trendlake new pattern`. `source`: None for the only one of the project; `like`: a template, `events`:
    a file that its constants come out of, instead of the source's table."""

    name: str
    source: str | None = None
    kind: str | None = None
    like: str | None = None
    events: Path | None = None


def write_pattern(options: FirstPattern, project_dir: Path | None) -> dict[str, Any]:
    """A pattern to begin with. Raises ProjectError, ContractErrors, SourceFileError, and BadParameter where it is not
    said which, and there is no terminal to ask on."""
    from trendlake.pipelines.authoring.free_names import refuse_pattern
    from trendlake.pipelines.authoring.scaffold import new_pattern
    from trendlake.pipelines.contracts.pattern_source import contract_of_events
    from trendlake.pipelines.project.profile import profile_or_default

    project, name = find_project(project_dir), options.name
    refuse_pattern(project, profile_or_default(project), name)
    contract = contract_of_events(project, options.source or only_source(project), (name,))
    if options.kind is not None or (contract.documents is not None and options.like is None):
        path = new_pattern(project, name, contract, options.kind)
        say(f"wrote {path}: say in it what to find")
        say(f"next: {command(f'validate {shlex.quote(str(path))}')}")
        return {"wrote": [path]}
    from trendlake.pipelines.authoring.source_facts import SourceFacts

    facts = SourceFacts.of(project, contract, options.events)
    written = _write_like(project, name, options.like or _template_asked(facts), facts)
    events = "" if options.events is None else f" --events {shlex.quote(str(options.events))}"
    say(f"next: {command(f'try {name}{events}')}")
    return {"wrote": written}


def _template_asked(facts: SourceFacts) -> str:
    """The name of the template that the user chooses."""
    import typer

    from trendlake.pipelines.authoring.templates import TEMPLATES, by_name, templates_for

    fitting = templates_for(facts)
    lines = [f"  {one.name:<18}{one.line}{'' if one in fitting else ' (does not fit)'}" for one in TEMPLATES]
    listed = "\n".join(lines)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter(f"--like is missing, the question that the pattern answers:\n{listed}")
    say(f"Which question is it to answer?\n{listed}")
    with asking():
        return by_name(typer.prompt("like", default=fitting[0].name if fitting else None)).name


def only_source(project: Project) -> str:
    """The name of the project's one source of events. Raises ProjectError."""
    from trendlake.pipelines.contracts.contract import load_contract

    names = [path.stem for path in project.source_contracts() if not load_contract(path).is_reference]
    if len(names) != 1:
        hint = "trendlake new source NAME --from FILE" if not names else " or ".join(f"--source {one}" for one in names)
        raise ProjectError(f"--source is missing: the project has {plural(len(names), 'source')}", hint=hint)
    return names[0]
