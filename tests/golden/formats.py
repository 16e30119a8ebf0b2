"""Formats that stored data and users' programs hold: plan hashes, columns, codes, the keys of notes and documents.

`python -m tests.golden.formats` writes what the code gives now to `formats.json`; a test compares. Renaming a class, a
field or a module must change nothing there; what does is a change of a format, and a line in CHANGELOG.md.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.golden.several_tables import hashes
from trendlake.cep_core.engine import compile_plan
from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.load import load_pattern
from trendlake.pipelines.check import Check
from trendlake.pipelines.contracts import column_names
from trendlake.pipelines.contracts.pattern_source import sources_of
from trendlake.pipelines.ingest.commits import LINE
from trendlake.pipelines.ingest.write.spark import REPLACES
from trendlake.pipelines.lake.commits import publication
from trendlake.pipelines.project.paths import find_project
from trendlake.pipelines.quality import uniqueness
from trendlake.pipelines.results.staging import ORIGIN
from trendlake.pipelines.runs.basis import Basis
from trendlake.pipelines.runs.record import SCHEMA
from trendlake.pipelines.runs.stage import STAGES

FORMATS = Path(__file__).parent / "formats.json"


def formats() -> dict[str, Any]:
    """Of each format its name and what it is now."""
    return {
        "plan hashes": plan_hashes(),
        "plan hashes of several tables": hashes(),
        "result columns": result_columns(),
        "run record": [f"{field.name} {field.dataType.simpleString()}" for field in SCHEMA],
        "check": list(Check("name", True, "", "", data={"rows": 1}).as_json()),
        "stages": list(STAGES),
        "basis": sorted(Basis("contract", 0).as_json()),
        "origin of a row": [f"{field.name} {field.dataType.simpleString()}" for field in ORIGIN],
        "quarantine": [*column_names.ADDED, *column_names.OPEN],
        "transactions": [publication("PATTERN"), LINE],
        "reserved columns": [uniqueness.BROKEN, uniqueness.INSIDE, REPLACES],
        "error codes": error_codes(),
    }


def plans() -> dict[str, Any]:
    """The plan of each pattern that the project ships, by its file."""
    project = find_project(ROOT)
    files = sorted([*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("conf/patterns/*.yaml")])
    by_file = {}
    for file in files:
        pattern = load_pattern(file)
        read = sources_of(project, pattern)
        by_file[str(file.relative_to(ROOT))] = compile_plan(pattern, read.schema, read.reference_columns)
    return by_file


def plan_hashes() -> dict[str, str]:
    return {name: plan.hash for name, plan in plans().items()}


def result_columns() -> dict[str, list[str]]:
    return {name: [f"{field.name} {field.type}" for field in plan.result_schema] for name, plan in plans().items()}


def error_codes() -> list[str]:
    """Of every mistake that a user can make."""
    codes = set[str]()
    for name in ("trendlake.cep_core.errors", "trendlake.pipelines.errors"):
        kinds = [item for item in vars(importlib.import_module(name)).values() if isinstance(item, type)]
        codes |= {kind.code for kind in kinds if issubclass(kind, TrendlakeError)}
    return sorted(codes)


if __name__ == "__main__":
    FORMATS.write_text(json.dumps(formats(), indent=1, ensure_ascii=False) + "\n")
