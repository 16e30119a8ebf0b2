"""The rows that published windows show of tables whose contracts have changed since. Where only rules have, rows can be
judged by the earlier contract and by the present one, and only windows of rows with two verdicts are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from trendlake.pipelines.contracts.contract import Contract
from trendlake.pipelines.contracts.earlier_texts import EarlierTexts
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.project.paths import upstream
from trendlake.pipelines.results.coverage import Segment
from trendlake.pipelines.runs.run import Run

MOST = 4
"""Pairs of a version and a contract that windows show: each is judged once."""


class Shown(NamedTuple):
    """The rows of a table that windows show: those of a `version` that keep a `contract`."""

    version: int
    contract: Contract


def remember_contracts(run: Run) -> None:
    """Stores the texts of the contracts that a publication is about to name; of one that has no file by now, none."""
    texts = _texts(run)
    for part in run.every_part:
        if upstream(part.contract.name) is None:
            with suppress(ProjectError):
                texts.remember(part.contract, run.project.contract_path(part.contract.name))


def shown_by(run: Run, published: Sequence[Segment]) -> dict[str, tuple[Shown, ...]] | str:
    """The rows that the `published` windows show of each table of events, by its key; why rows cannot be judged by two
    contracts, where they cannot."""
    if run.plan.waits:
        return "bad rows move no watermark, and the pattern waits for it"
    texts, shown = _texts(run), dict[str, dict[tuple[int, str], Shown]]()
    for part in run.every_part:
        name, present = part.contract.name, part.contract.fingerprint
        for segment in published:
            assert segment.sources is not None
            stored = dict(segment.contracts or ()).get(part.key) if run.sources.named else segment.contract
            then = part.contract if stored == present else texts.read(name, stored or "")
            if then is None:
                return f"how '{name}' was judged before is not stored"
            if not only_rules_differ(then, part.contract):
                return f"not only rules of '{name}' have"
            version = segment.sources.at(part.key).version
            shown.setdefault(part.key, {})[version, then.fingerprint] = Shown(version, then)
    for part in run.references:
        if len(of_it := shown[part.key]) > 1 or next(iter(of_it))[1] != part.contract.fingerprint:
            return (
                f"windows show an earlier contract, or several versions, of the reference table '{part.contract.name}'"
            )
    if max(map(len, shown.values())) > MOST:
        return f"windows show more than {MOST} pairs of a version and a contract"
    return {part.key: tuple(shown[part.key].values()) for part in run.parts}


def only_rules_differ(one: Contract, other: Contract) -> bool:
    """Whether two contracts read the same events of good rows; which rows are good may differ."""
    return _without_rules(one) == _without_rules(other)


def _without_rules(contract: Contract) -> Contract:
    columns = tuple(replace(item, required=False, description="") for item in contract.columns)
    plain = replace(contract, columns=columns, rules=(), types=None, version="", description="")
    return replace(plain, tolerance=0.0, lateness_us=None)


def _texts(run: Run) -> EarlierTexts:
    return EarlierTexts(run.lake.on_disk(run.warehouse.contracts))
