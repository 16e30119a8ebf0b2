"""First files: a project's folders, a contract made from a table's columns, the table's path in the profile, a first
pattern."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendlake.cep_core.errors import YamlSyntaxError, did_you_mean
from trendlake.cep_core.events.names import same_name
from trendlake.cep_core.yaml.scalars import yaml_text
from trendlake.cep_core.yaml.source import parse_yaml, read_yaml
from trendlake.pipelines.contracts.column_names import name_fault
from trendlake.pipelines.contracts.contract import ID_COLUMN, TYPE_COLUMN, TYPE_NAME, Contract
from trendlake.pipelines.contracts.id_columns import ID_COLUMNS, KINDS
from trendlake.pipelines.contracts.null_words import NULL_WORDS
from trendlake.pipelines.contracts.time_formats import ISO, TIME_FORMAT, TIME_ZONE, TimeFormat
from trendlake.pipelines.errors import ProfileError, ProjectError
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import profile_path, read_profile

COMMENTS = {
    TIME_ZONE: "of times that state no offset",
    "quarantineTolerance": "one broken row stops runs and revisions; 0.01: up to 1 % of their rows",
}
"""Behind the values of custom properties in a first contract."""

PATTERN = """\
name: {name}
kind: trends
description: TODO what it finds, in words for those who read its results
owner: TODO
source: {source}
pattern: {type} E+                   # one or more events, any others between them may be skipped
where: []                            # such as  "[customer]"  or  E.amount < NEXT(E).amount
return:
  trends: COUNT(*)                   # how many such sequences there are
  events: COUNT(E)
group_by: []
within: 1 day
schedule: "@daily"
"""


PATTERN_OF_ROWS = """\
name: {name}
kind: match_recognize
description: TODO what it finds, in words for those who read its results
owner: TODO
source: {source}
pattern: |                           # SQL; a query of another database can be pasted
  SELECT first, last, n
  FROM {source} MATCH_RECOGNIZE (
    ORDER BY {time}
    MEASURES FIRST({time}) AS first, LAST({time}) AS last, COUNT(*) AS n
    ONE ROW PER MATCH
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (a b+)
    DEFINE b AS {time} < PREV({time}) + INTERVAL '1' HOUR, a AS true)
"""


PATTERN_OF_DOCUMENTS = """\
name: {name}
kind: xml_join
description: TODO what it finds, in words for those who read its results
owner: TODO
source: {source}
left:                                # a document that says this ...
  first: /*
  title: $first/title
right:                               # ... followed by one that says this
  second: /*
  again: $second/title
operator: followed_by
where: [$title = $again]
within: 7 days
return: {{title: $again}}
schedule: "@daily"
"""


@dataclass(frozen=True)
class Roles:
    """Which columns are an event's id, time and type; or the one type that all events have. Of a reference table, whose
    rows are no events: its key."""

    event_id: str = ""
    """Or columns that identify an event together, with commas between them."""
    event_time: str = ""
    event_type: str | None = None
    constant: str | None = None
    document: str | None = None
    """The column of XML documents, which have no type."""
    key: tuple[str, ...] = ()
    """Columns that identify a row of a reference table together."""

    @property
    def is_reference(self) -> bool:
        return not self.event_time

    @property
    def id_columns(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in self.event_id.split(",")) if self.event_id else ()

    @property
    def made_id(self) -> bool:
        """Whether ingestion makes the id, of several columns or of the time, whose column stays a time."""
        return len(self.id_columns) > 1 or self.id_columns == (self.event_time,)


@dataclass(frozen=True)
class FileForm:
    """How files write the values of columns. `times`: of those whose format and zone the contract states; `null_words`:
    the texts that mean NULL, of those that the contract states them for."""

    times: Mapping[str, TimeFormat] = field(default_factory=dict)
    null_words: Mapping[str, Sequence[str]] = field(default_factory=dict)


def init_project(folder: Path, results: Path) -> list[Path]:
    """A project's folders, and the shipped profile for one machine and contracts of results, whose folder is `results`;
    files that are there are left alone. The files written. Raises ProjectError."""
    templates = sorted(results.glob("results_*.yaml"))
    if not templates:
        raise ProjectError(
            f"there are no results contracts in {results} to begin with",
            hint="install the package again: they come with it",
        )
    (folder / "conf" / "patterns" / "tests").mkdir(parents=True, exist_ok=True)
    profile = Path("conf", "profiles", "local.yaml")
    texts = {folder / profile: (results.parent / profile).read_text(encoding="utf-8")}
    texts[folder / ".gitignore"] = ".trendlake/\n"
    for contract in templates:
        texts[folder / "data_contracts" / contract.name] = contract.read_text(encoding="utf-8")
    return [path for path, text in texts.items() if write_new(path, text)]


def usable_columns(columns: pa.Schema) -> tuple[pa.Schema, list[str]]:
    """The columns of names and types that contracts take, and the names of the others."""

    def is_known(column: pa.Field) -> bool:
        if name_fault(column.name, quarantined=True) is not None:
            return False
        try:
            _types(column, None)
        except ProjectError:
            return False
        return True

    usable = pa.schema([column for column in columns if is_known(column)])
    return usable, [name for name in columns.names if name not in usable.names]


def new_source(
    project: Project,
    name: str,
    columns: pa.Schema,
    roles: Roles,
    form: FileForm | None = None,
    *,
    overwrite: bool = False,
) -> Path:
    """A contract for the source `name`, with a table's columns; the file. Raises ProjectError where there is one,
    unless it is to `overwrite` that."""
    contract = _contract(name, columns, roles, form or FileForm())
    if overwrite:
        (project.contracts / f"{name}.yaml").unlink(missing_ok=True)
    return write_new_contract(project, name, contract)


def write_new_contract(project: Project, name: str, contract: Mapping[str, Any]) -> Path:
    """The file of a new contract. Raises ProjectError where there is one."""
    path = project.contracts / f"{name}.yaml"
    text = yaml_text(contract, 110, lists_indented=True)
    for custom, comment in COMMENTS.items():
        text = re.sub(rf"(?<=- property: {custom}\n) +value: .*", rf"\g<0>  # {comment}", text)
    if not write_new(path, f"# What the source `{name}` promises (Open Data Contract Standard 3.1).\n{text}"):
        hint = f"edit it; to start over, --overwrite, or delete it (rm {path})"
        raise ProjectError(f"{path} exists already", hint=hint)
    return path


def new_pattern(project: Project, name: str, contract: Contract, kind: str | None = None) -> Path:
    """A pattern over a source, to begin with: of kind trends, or xml_join over documents, unless `kind` is
    match_recognize; the file. Raises ProjectError."""
    path = project.patterns / f"{name}.yaml"
    event_type = contract.types[0] if contract.types else "TODO"
    text = PATTERN if contract.documents is None else PATTERN_OF_DOCUMENTS
    if kind == "match_recognize":
        if contract.documents is not None:
            hint = "leave --kind out: the pattern is of kind xml_join"
            raise ProjectError(f"'{contract.name}' has documents, which kind {kind} does not read", hint=hint)
        text = PATTERN_OF_ROWS
    time = contract.roles.get("event_time", "")
    quoted = time if time.isidentifier() and time.isascii() else f'"{time}"'
    values = {"name": name, "source": contract.name, "type": event_type, "time": quoted}
    if not write_new(path, text.format(**values)):
        raise ProjectError(f"{path} exists already", hint=f"edit it; or delete it (rm {path}) to start over")
    return path


def note_source(project: Project, name: str | None, source: str, place: str) -> Path:
    """Write the path of a source's table into the profile (see `load_profile`), and return the profile's file. Raises
    ProfileError where the profile has another path for it, or a form that this cannot add to."""
    path = profile_path(project, name)
    current = read_profile(path).sources.get(source, place)
    if current != place:
        raise ProfileError(f"{path} says that the table of '{source}' lies at {current}", hint="change it there")
    data = read_yaml(path).data
    sources = data.get("sources", {})
    if source not in sources:
        text = _with_source(path.read_bytes().decode("utf-8"), source, place)
        try:
            written = parse_yaml(text, str(path)).data
        except YamlSyntaxError:
            written = None
        if written != {**data, "sources": {**sources, source: place}}:
            entry = yaml_text({source: place}, inner_on_one_line=True)[:-1]
            raise ProfileError(f"cannot add a source to {path}", hint=f"write there: sources: {entry}")
        path.write_bytes(text.encode("utf-8"))
    return path


def _with_source(text: str, source: str, place: str) -> str:
    """The text of a profile with one more of `sources`; its other lines stay as they are."""
    document = parse_yaml(text, "")
    if "sources" not in document.data:
        end = "" if text.endswith("\n") else "\n"
        return f"{text}{end}{yaml_text({'sources': {source: place}})}"
    sources, begin = document.data["sources"], document.place(("sources",))
    lines = text.split("\n")
    if begin.text[begin.column - 1 :].startswith("{"):
        line, column = begin.line - 1, begin.column
        entry = yaml_text({source: place}, inner_on_one_line=True)[1:-2]
        lines[line] = f"{lines[line][:column]}{entry}{', ' if sources else ''}{lines[line][column:]}"
    else:
        last = document.place(("sources", [*sources][-1]), key=True)
        end = "\r" * lines[last.line - 1].endswith("\r")
        lines.insert(last.line, f"{' ' * (last.column - 1)}{yaml_text({source: place})[:-1]}{end}")
    return "\n".join(lines)


def write_new(path: Path, text: str) -> bool:
    """Write the file unless it exists; whether it was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


def check_roles(columns: pa.Schema, roles: Roles) -> dict[str, str]:
    """The role of each column that has one: of the columns of a table or file, and of `ID_COLUMN` where the id is made
    of others. Raises ProjectError for a missing column."""
    named = [("event_time", roles.event_time or None), ("event_type", roles.event_type), ("document", roles.document)]
    keys = [*(("event_id", column) for column in roles.id_columns), *(("key", column) for column in roles.key)]
    for role, column in [*keys, *named]:
        if column is not None and column not in columns.names:
            hint = did_you_mean(column, columns.names) or f"there are {', '.join(columns.names)}"
            raise ProjectError(f"there is no column '{column}' to be the {role}", hint=hint)
    if roles.constant is not None and not TYPE_NAME.fullmatch(roles.constant):
        raise ProjectError(f"--type: patterns cannot name '{roles.constant}'", hint="a name of letters, such as Trade")
    if roles.made_id:
        _check_id_columns(columns, roles)
    if roles.is_reference:
        return {}
    ids = ("event_id", ID_COLUMN if roles.made_id else roles.id_columns[0])
    return {column: role for role, column in [ids, *named] if column is not None}


def _check_id_columns(columns: pa.Schema, roles: Roles) -> None:
    """Raises ProjectError for columns that no id can be made of."""
    names = roles.id_columns
    if len(set(names)) < len(names):
        raise ProjectError(f"--event-id names a column twice: {', '.join(names)}", hint="name each once")
    if ID_COLUMN in map(same_name, columns.names):
        of = "several columns" if len(names) > 1 else "the time"
        raise ProjectError(
            f"an id of {of} is stored as the column '{ID_COLUMN}', which the file has already",
            hint=f"--event-id {ID_COLUMN}, or give that column another name in the file",
        )
    for name in names:
        logical, _ = _types(columns.field(name), "event_time" if name == roles.event_time else None)
        if logical not in KINDS:
            raise ProjectError(
                f"column '{name}' is a {logical}: an id is made of columns of type {', '.join(KINDS)}",
                hint="leave it out of --event-id: a value that is corrected would be another event",
            )


def common_properties() -> list[dict[str, Any]]:
    """The custom properties of every first contract."""
    return [{"property": "corrections", "value": "replace"}, {"property": "quarantineTolerance", "value": 0}]


def _contract(name: str, columns: pa.Schema, roles: Roles, form: FileForm) -> dict[str, Any]:
    role_of = check_roles(columns, roles)
    if roles.document is not None and (roles.event_type is not None or roles.constant is not None):
        raise ProjectError("documents have no type", hint="leave out --event-type and --type")
    if roles.document is None and not roles.is_reference and (roles.event_type is None) == (roles.constant is None):
        raise ProjectError(
            "say what type events have: a column that tells it, or one type for all",
            hint="--event-type COLUMN or --type NAME; --document COLUMN of XML documents",
        )
    taken = [name for name in columns.names if same_name(name) == TYPE_COLUMN]
    if roles.constant is not None and taken:
        raise ProjectError(
            f"the table has a column '{taken[0]}', and a constant type is read as a column '{TYPE_COLUMN}'",
            hint=f"--event-type {taken[0]}",
        )
    table: dict[str, Any] = {"name": name, "physicalType": "table"}
    table["customProperties"] = common_properties()
    if roles.constant is not None:
        table["customProperties"].insert(0, {"property": "eventType", "value": roles.constant})
    properties = [
        _column(column, role_of.get(column.name), form.times.get(column.name), form.null_words.get(column.name, ()))
        for column in columns
    ]
    if roles.made_id:
        id_column = _column(pa.field(ID_COLUMN, pa.string()), "event_id")
        id_column["customProperties"].append({"property": ID_COLUMNS, "value": list(roles.id_columns)})
        for item in properties:
            if item["name"] in roles.id_columns:
                item["required"] = True
        properties = [id_column, *properties]
    for item in properties:
        if item["name"] in roles.key:
            item |= {"required": True, "unique": True} if len(roles.key) == 1 else {}
            item |= {"primaryKey": True, "primaryKeyPosition": 1 + roles.key.index(item["name"])}
    table["properties"] = properties
    about: dict[str, Any] = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": f"source-{name}",
        "version": "1.0.0",
        "name": name,
        "status": "draft",
        "schema": [table],
    }
    late = [{"property": "latency", "value": 1, "unit": "d"}]
    return about if roles.is_reference else about | {"slaProperties": late}


def _column(
    column: pa.Field, role: str | None, how: TimeFormat | None = None, words: Sequence[str] = ()
) -> dict[str, Any]:
    logical, physical = _types(column, role)
    item: dict[str, Any] = {"name": column.name, "logicalType": logical}
    if physical is not None:
        item["physicalType"] = physical
    custom: list[dict[str, Any]] = []
    if role is not None:
        item["required"] = True
        custom.append({"property": "eventRole", "value": role})
    if how is not None:
        custom += _time_properties(how, logical)
    if words:
        custom.append({"property": NULL_WORDS, "value": list(words)})
    if custom:
        item["customProperties"] = custom
    if role == "event_id":
        item |= {"primaryKey": True, "primaryKeyPosition": 1, "unique": True}
    return item


def _time_properties(how: TimeFormat, logical: str) -> list[dict[str, Any]]:
    properties: list[dict[str, Any]] = []
    if how.format != ISO:
        properties.append({"property": TIME_FORMAT, "value": how.format})
    if logical == "timestamp" and not how.states_offset:
        properties.append({"property": TIME_ZONE, "value": how.zone})
    return properties


_WIDTHS: Mapping[int, str] = {8: "tinyint", 16: "smallint", 32: "int", 64: "bigint"}


def _types(column: pa.Field, role: str | None) -> tuple[str, str | None]:
    """logicalType and physicalType of a column. Raises ProjectError for one that contracts do not know."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if role == "event_time":
        return "timestamp", None
    if role == "event_type" or (role == "event_id" and not pa.types.is_signed_integer(kind)):
        return "string", None
    if pa.types.is_uint64(kind):
        return "number", "decimal(20,0)"
    if pa.types.is_integer(kind):  # one without a sign needs the next type to hold it
        return "integer", _WIDTHS[kind.bit_width * (1 if pa.types.is_signed_integer(kind) else 2)]
    if pa.types.is_decimal(kind):
        return "number", f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_floating(kind):
        return "number", None
    if pa.types.is_boolean(kind):
        return "boolean", None
    if pa.types.is_timestamp(kind):
        return "timestamp", None
    if pa.types.is_date(kind):
        return "date", None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return "string", None
    raise ProjectError(
        f"column '{column.name}' is {kind}: contracts know no such type", hint="leave it out of the file"
    )
