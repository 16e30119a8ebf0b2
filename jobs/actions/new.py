"""`trendlake init` and `trendlake new`: first files, and what to do next."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.lines import say
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.project.shipped import shipped

if TYPE_CHECKING:
    from trendlake.pipelines.authoring.scaffold import Roles
    from trendlake.pipelines.authoring.source_file import TimeOptions


def create_project(folder: Path) -> dict[str, Any]:
    """A project in `folder`. Raises ProjectError where it cannot be written."""
    from trendlake.pipelines.authoring.scaffold import init_project

    try:
        written = init_project(folder, shipped("data_contracts"))
    except OSError as error:
        raise ProjectError(f"{folder} cannot be written: {error.strerror or error}") from None
    for path in written:
        say(f"wrote {path}")
    say("next: trendlake new source NAME --from FILE --event-id COLUMN --event-time COLUMN --type NAME")
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
) -> dict[str, Any]:
    """The contract of a new source. Raises as `pipelines.authoring.source_file.new_source_of_file`."""
    from trendlake.pipelines.authoring.free_names import refuse_source
    from trendlake.pipelines.authoring.source_file import new_source_of_file
    from trendlake.pipelines.project.profile import profile_or_default

    project = find_project(project_dir)
    refuse_source(project, profile_or_default(project), name)
    path, findings = new_source_of_file(
        project, name, sample, roles, options, null_words=null_words, overwrite=overwrite
    )
    for note in findings.notes:
        say(note)
    say(f"wrote {path}: read it, say what the columns promise")
    again = None
    if findings.null_words:
        again = _again(name, sample, roles, options, project_dir, (*null_words, *findings.null_words))
        say(f"with these words as NULL: {again}")
    say(f"next: {command(f'ingest {name} {shlex.quote(str(sample))}')}")
    return {"wrote": [path], "notes": findings.notes, "null_words": findings.null_words, "again": again}


def _again(
    name: str, sample: Path, roles: Roles, options: TimeOptions, project_dir: Path | None, words: tuple[str, ...]
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
    reference = " --reference" if roles.is_reference else ""
    stated = null_word_options(words)
    return command(f"new source {name} {' '.join(map(shlex.quote, parts))}{reference} {stated} --overwrite")


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


def write_pattern(name: str, source: str, kind: str | None, project_dir: Path | None) -> dict[str, Any]:
    """A pattern to begin with. Raises ProjectError, ContractErrors."""
    from trendlake.pipelines.authoring.free_names import refuse_pattern
    from trendlake.pipelines.authoring.scaffold import new_pattern
    from trendlake.pipelines.contracts.pattern_source import contract_of_events
    from trendlake.pipelines.project.profile import profile_or_default

    project = find_project(project_dir)
    refuse_pattern(project, profile_or_default(project), name)
    path = new_pattern(project, name, contract_of_events(project, source, (name,)), kind)
    say(f"wrote {path}: say in it what to find")
    say(f"next: {command(f'validate {shlex.quote(str(path))}')}")
    return {"wrote": [path]}
