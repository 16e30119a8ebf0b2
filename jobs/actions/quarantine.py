"""`trendlake quarantine`: shows open rows, writes them to a file, and replays repaired ones."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

from trendlake.jobs.actions.revise import next_revision, patterns_of
from trendlake.jobs.airflow.notify import notify_of_source
from trendlake.jobs.terminal.hints import command
from trendlake.jobs.terminal.printing import console
from trendlake.jobs.terminal.rows import Rows
from trendlake.jobs.terminal.times import manual_run_id
from trendlake.jobs.terminal.workspace import Place, find_place, refresh_source_page, session
from trendlake.pipelines.contracts.column_names import ID, RUNS, SINCE
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.error_text import plural
from trendlake.pipelines.errors import ProjectError, SourceFileError
from trendlake.pipelines.quality.quarantine_counts import Broken

ABOUT = ("rule", "reason", RUNS, SINCE)
"""Columns of an open row that are not the source's."""


def show(
    source: str,
    rule: str | None,
    run_id: str | None,
    limit: int,
    as_json: bool,
    out: Path | None,
    profile: str | None,
    folder: Path | None,
) -> dict[str, Any] | None:
    """Shows the open rows of a source: counts by rule, then rows."""
    from trendlake.pipelines.ingest.look_at_open_rows import look
    from trendlake.pipelines.ingest.replay import newest
    from trendlake.pipelines.runs.judged_version import judged_version

    place, contract = _source(source, profile, folder)
    if out is not None:
        _check_form(out)
    with session(place, f"trendlake quarantine show {source}") as lake:
        version = newest(lake, contract)
        every = as_json or out is not None
        open_rows = look(lake, contract, version, run_id, rule, None if every else limit)
        judged = judged_version(lake, source)
    counts, rows = open_rows.counts, open_rows.rows
    if out is not None:
        _write(rows, out)
    if as_json:
        about = {"source": source, "version": version, "judged_version": judged, "open": dict(counts)}
        return {**about, "rows": rows.to_pylist(), "out": out}
    _print(contract, version, counts, rows.slice(0, limit).to_pylist(), out)
    if judged < version:
        console.print(_not_judged(source, judged, version), soft_wrap=True)
    return None


def _not_judged(source: str, judged: int, version: int) -> str:
    which = f"version {version} is" if judged + 1 == version else f"versions {judged + 1} to {version} are"
    return f"{which} not judged yet: the next run or revision of a pattern that reads {source} does that"


def _print(
    contract: Contract, version: int, counts: Counter[str], rows: list[dict[str, Any]], out: Path | None
) -> None:
    total = counts.total()
    console.print(f"{contract.name} at version {version}: {_open(total)}", soft_wrap=True)
    for name, count in Broken(counts).by_rule:
        console.print(f"{count:>9,}  {name}", soft_wrap=True)
    if not total:
        return
    shown = [contract.named_by, *filter(None, (contract.event_time,))]
    texts = [(row[ID], *[_text(row[name]) for name in shown], row["reason"], str(row[RUNS])) for row in rows]
    title = f"{len(rows):,} of {plural(total, 'row')}"
    console.print(Rows.of_a_list((ID, *shown, "reason", RUNS), texts, title=title))
    if out is None:
        typed = command(f"quarantine show {contract.name} --out FILE.csv")
        console.print(f"to repair them: `{typed}`", soft_wrap=True)
    else:
        replayed = command(f"quarantine replay {contract.name} {shlex.quote(str(out))}")
        console.print(f"wrote {out}; repair its rows, then: `{replayed}`", soft_wrap=True)


def _open(count: int) -> str:
    return f"{plural(count, 'quarantined row')} {'is' if count == 1 else 'are'} open"


def _text(value: Any) -> str:
    return "" if value is None else str(value).removesuffix("+00:00")


def replay(source: str, file: Path, profile: str | None, folder: Path | None) -> dict[str, Any]:
    """Writes the repaired rows of a file into the source and prints the patterns to revise."""
    from trendlake.pipelines.ingest import replay as repair
    from trendlake.pipelines.ingest.look_at_open_rows import look

    place, contract = _source(source, profile, folder, writes=True)
    table = repair.read_repaired(file, contract)
    with session(place, f"trendlake quarantine replay {source}", writes=True) as lake:
        run_id = manual_run_id("replay")
        done = repair.replay(lake, contract, table, run_id)
        left = look(lake, contract, done.version, None, None, 0).counts.total()
        refresh_source_page(place, lake, source)
    console.print(f"{source} at version {done.version}: {plural(done.repaired, 'row')} repaired", soft_wrap=True)
    for count, words in ((done.there, "existed already"), (done.unchanged, "are as they were: still open")):
        if count:
            console.print(f"{count:>9,}  {words}")
    console.print(f"{left:>9,}  {_open(left).partition(' ')[2]}")
    patterns = patterns_of(place, source)
    if not (done.repaired and notify_of_source(place.project, source)):
        for line in next_revision(source, patterns):
            console.print(line, soft_wrap=True)
    return {"source": source, "run_id": run_id, **dataclasses.asdict(done), "open": left, "to_revise": patterns}


def _source(source: str, profile: str | None, folder: Path | None, *, writes: bool = False) -> tuple[Place, Contract]:
    place = find_place(folder, profile, writes=writes)
    return place, load_contract(place.project.contract_path(source))


def _check_form(out: Path) -> None:
    if not out.name.lower().endswith((".csv", ".parquet")):
        raise SourceFileError(f"{out} cannot be written: unknown file type", hint="files end in .csv or .parquet")


def _write(rows: pa.Table, out: Path) -> None:
    """Writes the open rows with `ID` and the reason in front, without the other columns of `ABOUT`."""
    import pyarrow.parquet

    from trendlake.pipelines.ingest.readers.csv_texts import write_csv

    names = [ID, "reason", *[name for name in rows.column_names if name not in (ID, *ABOUT)]]
    try:
        if out.name.lower().endswith(".csv"):
            write_csv(rows.select(names), out)
        else:
            pyarrow.parquet.write_table(rows.select(names), out)
    except pa.ArrowException as error:  # a CSV file holds no lists
        raise ProjectError(f"{out} cannot be written: {error}", hint="write a .parquet file") from None
    except OSError as error:
        raise ProjectError(f"{out} cannot be written: {error.strerror or error}") from None
