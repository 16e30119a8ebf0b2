"""A pattern file as the report shows it: read for display only, so that a report outlives a file that no
longer compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trendlake.cep_core import load
from trendlake.cep_core.errors import YamlSyntaxError
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.yaml.source import parse_yaml, plain
from trendlake.pipelines.project.paths import TABLE_NAME
from trendlake.pipelines.report.facts import PatternFacts


@dataclass(frozen=True)
class Links:
    """A pattern file's `name`, `kind` and `batch`, and the names of the tables that it reads: those of its events, and
    those that its lookups read."""

    name: str
    kind: str
    batch: str
    tables: tuple[str, ...]
    lookups: tuple[str, ...]


def read_links(file: Path) -> Links:
    """Of `file`, which may have mistakes; without the work that the other facts take."""
    fields = _fields(file.read_text(encoding="utf-8"), file)
    source = _text(fields.get("source")) or ""
    return Links(
        name=_name(fields, file),
        kind=_text(fields.get("kind")) or "trends",
        batch=_text(fields.get("batch")) or "",
        tables=(source,) if source else _named(fields.get("sources"), "source"),
        lookups=_named(fields.get("lookup"), "table"),
    )


def _named(entries: object, key: str) -> tuple[str, ...]:
    """The tables of `sources` or `lookup`, by name, each once."""
    values = entries.values() if isinstance(entries, Mapping) else ()
    names = {_text(entry.get(key) if isinstance(entry, Mapping) else entry) or "" for entry in values}
    return tuple(sorted(names - {""}))


def _fields(content: str, file: Path) -> Mapping[str, object]:
    """The keys of a file; none of one that is no YAML mapping."""
    try:
        loaded = plain(parse_yaml(content, str(file)).data)
    except YamlSyntaxError:
        return {}
    return loaded if isinstance(loaded, Mapping) else {}


def _name(fields: Mapping[str, object], file: Path) -> str:
    """It becomes part of a page's path."""
    name = _text(fields.get("name")) or ""
    return name if TABLE_NAME.fullmatch(name) else file.stem


def read_pattern(file: Path) -> PatternFacts:
    """The facts of `file`; a file that is no YAML mapping still gives its name and text."""
    content = file.read_text(encoding="utf-8")
    fields = _fields(content, file)
    returns = fields.get("return")
    kind = _text(fields.get("kind")) or "trends"
    groups = KINDS[kind].groups if kind in KINDS else ()
    return PatternFacts(
        name=_name(fields, file),
        kind=kind,
        description=_text(fields.get("description")) or "",
        owner=_text(fields.get("owner")),
        schedule=_text(fields.get("schedule")),
        batch=_text(fields.get("batch")),
        source=_text(fields.get("source")) or ", ".join(_named(fields.get("sources"), "source")),
        pattern=_text(fields.get("pattern")),
        where=_texts(fields.get("where")),
        returns={str(key): str(value) for key, value in returns.items()} if isinstance(returns, Mapping) else {},
        group_by=groups or (_groups_of_text(file) if kind == "match_recognize" else _groups(fields, file)),
        within=_text(fields.get("within")),
        slide=_text(fields.get("slide")),
        yaml=content,
        consistency=_text(fields.get("consistency")) or "middle",
        time_zone=_text(fields.get("time_zone")),
    )


def _groups(fields: Mapping[str, object], file: Path) -> tuple[str, ...]:
    return (*_parameters(fields, file), *_texts(fields.get("group_by") or fields.get("partition_by")))


def _groups_of_text(file: Path) -> tuple[str, ...]:
    """The columns of PARTITION BY in the text of the pattern; none where it cannot be read."""
    pattern, _ = load.read_pattern(file)
    return () if pattern is None else pattern.groups


def _parameters(fields: Mapping[str, object], file: Path) -> tuple[str, ...]:
    """The names of a family's parameters; none where its rows cannot be read."""
    if "for_each" not in fields:
        return ()
    pattern, _ = load.read_pattern(file)
    return pattern.parameters.names if pattern is not None and pattern.parameters is not None else ()


def _text(value: object) -> str | None:
    return None if value is None else " ".join(str(value).split())


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(str(item) for item in value) if isinstance(value, list) else (str(value),)
