"""Pages as HTML files that ask the network for nothing, as their content security policy demands."""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from trendlake.cep_core.cache_folder import cache_folder
from trendlake.cep_core.drawing import STYLE
from trendlake.pipelines.error_text import plural, several
from trendlake.pipelines.report.chart import NARROW, WIDE, svg
from trendlake.pipelines.report.palette import DARK, LIGHT, variables
from trendlake.pipelines.report.verdict import outcome, stage_name
from trendlake.pipelines.report.view import Page
from trendlake.pipelines.report.words import duration, stamp
from trendlake.pipelines.report.yaml_lines import yaml_lines

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{script}'; base-uri 'none'; form-action 'none'"
)


def render(page: Page) -> str:
    """The HTML of `page`."""
    return rendered(
        "report.html.j2",
        page.facts.made_at,
        page.facts.automaton,
        page=page,
        facts=page.facts,
        run=page.facts.run,
        story=page.story,
        wide=Markup(svg(page.story.picture, WIDE)),
        narrow=Markup(svg(page.story.picture, NARROW)),
    )


def rendered(template: str, made_at: datetime, automaton: str = "", **facts: Any) -> str:
    """A page of the template, with the parts that all pages share. The template escapes all text that comes from data;
    only our own SVG, CSS and script are not."""
    script = _source("report.js")
    return (
        _environment()
        .get_template(template)
        .render(
            made_at=made_at,
            policy=_POLICY.format(script=_sha256(script)),
            script=Markup(script),
            style=Markup(_source("report.css")),
            automaton=Markup(automaton),
            automaton_style=Markup(STYLE if automaton else ""),
            light=Markup(variables(LIGHT)),
            dark=Markup(variables(DARK)),
            **facts,
        )
    )


class _Kept(FileSystemBytecodeCache):
    """Compiled templates: one whose text has changed is compiled again, as by another version of Jinja."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):  # a full disk costs the time to compile, and no more
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    """The templates, where each is compiled once in a process."""
    environment = Environment(
        loader=PackageLoader("trendlake.pipelines.report"),
        bytecode_cache=_Kept(str(cache_folder("templates"))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            "breakable": breakable,
            "count": lambda value: "–" if value is None else f"{value:,}",
            "duration": duration,
            "outcome": outcome,
            "plural": plural,
            "several": several,
            "stage": stage_name,
            "stamp": lambda value: "–" if value is None else _zoned(_seconds(value)),
            "svg": Markup,
            "yaml_lines": yaml_lines,
        }
    )
    return environment


def breakable(words: str) -> Markup:
    """`words`, escaped, that may break after an underscore or dot."""
    return Markup(re.sub(r"([_.])", r"\1<wbr>", str(escape(words))))


def _source(name: str) -> str:
    return resources.files("trendlake.pipelines.report").joinpath("templates", name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def _zoned(value: datetime) -> str:
    return f"{stamp(value)} UTC" if value.tzinfo == UTC else stamp(value)


def _seconds(value: datetime) -> datetime:
    return value.replace(microsecond=0)
