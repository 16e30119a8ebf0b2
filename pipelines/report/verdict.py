"""Did the run go well? One word, one reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pipelines.report.facts import RunFacts
from pipelines.report.words import plural

NEEDED = ("check_source", "compute", "check_results", "publish")
STAGE_NAMES = {
    "ingest": "Ingest",
    "check_source": "Check source",
    "compute": "Compute",
    "check_results": "Check results",
    "publish": "Publish",
}


@dataclass(frozen=True)
class Verdict:
    """`state` picks the colour, `word` and `reason` say it without colour."""

    state: Literal["good", "warn", "bad"]
    word: str
    reason: str


def stage_name(stage: str) -> str:
    """`check_results` as a person says it."""
    return STAGE_NAMES.get(stage, stage.replace("_", " ").capitalize())


def verdict(run: RunFacts) -> Verdict:
    """The first failed stage decides; then stages that have not run; then failed checks."""
    failed = next((stage for stage in run.stages if stage.status != "succeeded"), None)
    if failed is not None:
        return Verdict(
            "bad", f"Failed: {stage_name(failed.stage).lower()}", failed.error or "No reason was recorded."
        )
    missing = [stage_name(name).lower() for name in NEEDED if run.stage(name) is None]
    if missing:
        return Verdict("warn", "Not finished", f"Still to run: {', '.join(missing)}.")
    broken = [check for check in run.checks if not check.success]
    if broken:
        return Verdict(
            "warn",
            "Published with failed checks",
            f"{len(broken)} of {plural(len(run.checks), 'check')} failed.",
        )
    passed = f"All {plural(len(run.checks), 'check')} passed." if len(run.checks) > 1 else "No check failed."
    return Verdict("good", "Published", passed)
