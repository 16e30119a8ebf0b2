"""A pattern file as the report shows it: read for display only, so that a report outlives a file that no
longer compiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trendlake.cep_core import load
from trendlake.cep_core.errors import YamlSyntaxError
from trendlake.cep_core.kinds import KINDS
from trendlake.cep_core.yaml.source import parse_yaml, plain
from trendlake.pipelines.project.paths import TABLE_NAME
from trendlake.pipelines.report.facts import PatternFacts


def _tables(sources: object) -> str:
    """The tables of `sources`, by name: `orders, payments`."""
    entries = sources.values() if isinstance(sources, Mapping) else ()
    names = {str(entry.get("source", "")) if isinstance(entry, Mapping) else str(entry) for entry in entries}
    return ", ".join(sorted(names))


def read_pattern(file: Path) -> PatternFacts:
    """The facts of `file`; a file that is no YAML mapping still gives its name and text."""
    content = file.read_text(encoding="utf-8")
    try:
        loaded = plain(parse_yaml(content, str(file)).data)
    except YamlSyntaxError:
        loaded = None
    fields: Mapping[str, object] = loaded if isinstance(loaded, Mapping) else {}
    returns = fields.get("return")
    name, kind = _text(fields.get("name")) or "", _text(fields.get("kind")) or "trends"
    groups = KINDS[kind].groups if kind in KINDS else ()
    return PatternFacts(
        name=name if TABLE_NAME.fullmatch(name) else file.stem,  # it becomes part of the report's path
        kind=kind,
        description=_text(fields.get("description")) or "",
        owner=_text(fields.get("owner")),
        schedule=_text(fields.get("schedule")),
        batch=_text(fields.get("batch")),
        source=_text(fields.get("source")) or _tables(fields.get("sources")),
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
