"""Did the run go well? One word, one reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trendlake.pipelines.error_text import plural
from trendlake.pipelines.report.facts import CheckFacts, RunFacts

NEEDED = ("check_source", "compute", "check_results", "publish")
STAGE_NAMES = {
    "ingest": "Ingest",
    "check_source": "Check source",
    "compute": "Compute",
    "check_results": "Check results",
    "publish": "Publish",
}


SOURCE_STAGES = ("ingest", "check_source")
State = Literal["good", "warn", "bad", "none"]


@dataclass(frozen=True)
class Verdict:
    """`state` picks the colour, `word` and `reason` say it without colour."""

    state: State
    word: str
    reason: str


def stage_name(stage: str) -> str:
    """`check_results` as a person says it."""
    return STAGE_NAMES.get(stage, stage.replace("_", " ").capitalize())


def outcome(check: CheckFacts, run: RunFacts) -> tuple[State, str]:
    """How a check ended. In a stage that went on, rows that break a rule of the source are set aside or tolerated, and
    a broken rule of the results is of severity warning; only where the stage stopped has a check failed it.
    """
    if check.success is None:
        return "none", "Not judged"
    if check.success:
        return "good", "Passed"
    stage = run.stage(check.stage)
    if stage is None or stage.status != "succeeded":
        return "bad", "Failed"
    return "warn", "Rows break it" if check.stage in SOURCE_STAGES else "Warning"


def verdict(run: RunFacts, quarantined: int) -> Verdict:
    """The first failed stage decides, then stages that have not run, then warnings about the results."""
    failed = next((stage for stage in run.stages if stage.status != "succeeded"), None)
    if failed is not None:
        reason = failed.error or "No reason was recorded."
        return Verdict("bad", f"Failed: {stage_name(failed.stage).lower()}", reason)
    missing = [stage_name(name).lower() for name in NEEDED if run.stage(name) is None]
    if missing:
        return Verdict("warn", "Not finished", f"Still to run: {', '.join(missing)}.")
    broken = [check for check in run.checks if check.success is False]
    judged = [check for check in run.checks if check.success is not None]
    aside = f" {plural(quarantined, 'row')} went to quarantine, within the contract's tolerance." if quarantined else ""
    warnings = [check for check in broken if check.stage not in SOURCE_STAGES]
    if len(judged) < len(run.checks):
        aside = f" {plural(len(run.checks) - len(judged), 'check')} could not be judged.{aside}"
    if warnings:
        said = f"{plural(len(warnings), 'check')} of the results gave a warning.{aside}"
        return Verdict("warn", "Published with warnings", said)
    if broken:
        said = f"{len(judged) - len(broken)} of {plural(len(judged), 'check')} passed; some rows of the source "
        return Verdict("good", "Published", f"{said}break the {'other' if len(broken) == 1 else 'others'}.{aside}")
    passed = f"All {plural(len(judged), 'check')} passed." if len(judged) > 1 else "No check failed."
    return Verdict("good", "Published", passed + aside)
