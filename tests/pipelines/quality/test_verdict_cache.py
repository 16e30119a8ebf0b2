"""Verdicts that are kept by file, beside a judgement of everything anew: whatever happens to the table, the contract
and the kept files."""

from __future__ import annotations

import os
import random
import shutil
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import CHAOS
from tests.random.profile import examples, share
from tests.support.disks import full, read_only, small_disk
from trendlake.pipelines.contracts.contract import Contract, load_contract
from trendlake.pipelines.lake import limits
from trendlake.pipelines.lake.here.read import TableHere, table_here
from trendlake.pipelines.lake.lake import Lake
from trendlake.pipelines.lake.maintain import clear_verdicts
from trendlake.pipelines.lake.road import NotHere, answer_of, tried
from trendlake.pipelines.lake.warehouse import Warehouse
from trendlake.pipelines.project.paths import Project
from trendlake.pipelines.project.profile import Profile
from trendlake.pipelines.quality import judge
from trendlake.pipelines.quality import verdict as verdict_module
from trendlake.pipelines.quality.judge import FewRows, Judged, ManyRows, judge_of
from trendlake.pipelines.quality.verdict import Question
from trendlake.pipelines.quality.verdict_cache import VerdictCache

CONTRACT = """\
apiVersion: v3.1.0
kind: DataContract
id: kept
version: 1.0.0
name: signals
status: active
schema:
  - name: signals
    physicalType: table
    properties:
      - name: event_id
        logicalType: string
        primaryKey: true
        required: true
        customProperties: [{{property: eventRole, value: event_id}}]
      - name: event_time
        logicalType: timestamp
        required: true
        customProperties: [{{property: eventRole, value: event_time}}]
      - name: event_type
        logicalType: string
        required: true
        customProperties: [{{property: eventRole, value: event_type}}]
      - {{name: place, logicalType: string, unique: {unique}}}
      - name: value
        logicalType: number
        physicalType: double
        logicalTypeOptions: {{minimum: {least}}}
        quality:
          - {{name: few_values, metric: duplicateValues, mustBeLessThan: 100000}}
      - name: sent
        logicalType: integer
        physicalType: bigint
        {sequence}
    quality:
      - name: mostly_small
        type: custom
        engine: trendlake
        severity: warning
        implementation: value < 6 OR value IS NULL
"""
SEQUENCE = "customProperties: [{property: eventRole, value: sequence}]"
SCHEMA = pa.schema(
    {
        "event_id": pa.string(),
        "event_time": pa.timestamp("us", "UTC"),
        "event_type": pa.string(),
        "place": pa.string(),
        "value": pa.float64(),
        "sent": pa.int64(),
    }
)
SPANS = [(0, 50), (20, 80), (0, 100), (100, 101), (30, 34), (60, 61)]


@pytest.fixture(autouse=True)
def of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a table of more rows than these, whose hashes are sorted range after range."""
    monkeypatch.setattr(limits, "JUDGED_WHOLE", -1)
    monkeypatch.setattr(limits, "HASHES_SORTED", 20)


def contract_of(folder: Path, least: int = 0, *, unique: bool = False, sequence: bool = False) -> Contract:
    file = folder / "signals.yaml"
    text = CONTRACT.format(least=least, unique=str(unique).lower(), sequence=SEQUENCE if sequence else "")
    file.write_text(text)
    return load_contract(file)


def row(ident: str, time: int | None, value: float | None = 1.0, **more: Any) -> dict[str, Any]:
    return {"event_id": ident, "event_time": time, "event_type": "A", "value": value, "place": None, "sent": 1} | more


def rows_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), SCHEMA)


def add(folder: Path, *rows: dict[str, Any]) -> None:
    write_deltalake(folder / "table", rows_of(rows), mode="append")


def opened(folder: Path) -> TableHere:
    project, profile = Project(folder, folder / ".trendlake"), Profile(master="local[1]")
    lake = Lake.on_demand(Warehouse.of(profile, project), project, profile, "no Spark")
    return table_here(lake, str(folder / "table"))


def place_of(folder: Path, contract: Contract, version: str = "1") -> Path:
    """As `judge_source` places them."""
    return folder / "verdicts" / opened(folder).table_id / f"{contract.fingerprint}-{version}"


def judged(folder: Path, contract: Contract, span: tuple[int, int] = (0, 100), version: str = "1") -> Judged:
    judge.many_rows.cache_clear()  # as a new process
    judging = judge_of(opened(folder), contract, place_of(folder, contract, version))
    assert isinstance(judging, ManyRows)
    return answer_of(judging.judged(span))


def said(judged: Judged) -> tuple[Any, ...]:
    bad = [str(row) for row in judged.bad.to_pylist()]  # a NaN is equal to itself then
    return judged.rows, judged.checks, judged.broken, judged.repeated, bad


def anew(folder: Path, contract: Contract, span: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, ...]:
    """By all rows, without a verdict on a file."""
    with monkeypatch.context() as patched:
        patched.setattr(limits, "JUDGED_WHOLE", 1_000_000)
        judging = judge_of(opened(folder), contract, None)
        assert isinstance(judging, FewRows)
        return said(answer_of(judging.judged(span)))


def ids(judged: Judged) -> list[str]:
    return judged.bad["event_id"].to_pylist()


@contextmanager
def files_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of files that are judged meanwhile."""
    names: list[str] = []
    real = judge._judged_files

    def noted(folder: Path, files: Any, *more: Any) -> Any:
        names.extend(name for name, _ in files)
        return real(folder, files, *more)

    with monkeypatch.context() as patched:
        patched.setattr(judge, "_judged_files", noted)
        yield names


def kept_files(folder: Path) -> list[Path]:
    return sorted(file for file in (folder / "verdicts").rglob("*") if file.is_file())


def drawn(rng: random.Random) -> dict[str, Any]:
    return row(
        f"e{rng.randrange(60)}",
        rng.choice([None, *range(0, 120, 3)]),
        rng.choice([None, -1.0, 0.0, -0.0, 3.0, 7.0, float("nan")]),
        place=rng.choice([None, None, "p", "q", f"r{rng.randrange(40)}"]),
        sent=rng.choice([None, 1, 2, 3]),
        event_type=rng.choice(["A", "A", "A", "A", None]),
    )


def step(folder: Path, rng: random.Random) -> str:
    """Another commit to the table."""
    kind = rng.choice(["append", "append", "append", "delete", "update", "optimize"])
    table = DeltaTable(folder / "table") if (folder / "table").exists() else None
    if kind == "append" or table is None:
        add(folder, *(drawn(rng) for _ in range(rng.choice([1, 3, 12, 40]))))
    elif kind == "delete":
        table.delete(f"event_id = 'e{rng.randrange(60)}' OR sent = {rng.randrange(9)}")
    elif kind == "update":
        table.update(predicate=f"event_id < 'e{rng.randrange(60)}'", updates={"value": rng.choice(["-2.0", "2.0"])})
    else:
        table.optimize.compact()
    return kind


@pytest.mark.parametrize("seed", range(40 if CHAOS else share(12)))
def test_random_histories(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts, checks, the rows set apart with their reasons: by kept verdicts as by all rows, at each version."""
    rng = random.Random(seed)
    monkeypatch.setattr(limits, "ASKED_OF_MANY", rng.choice([0, 2, 50]))
    contract = contract_of(tmp_path, unique=rng.random() < 0.5, sequence=rng.random() < 0.5)
    seen = set()
    for _ in range(8):
        seen.add(step(tmp_path, rng))
        if rng.random() < 0.2:
            contract = contract_of(tmp_path, rng.choice([-1, 0, 1]), unique=rng.random() < 0.5)
        span = rng.choice(SPANS)
        assert said(judged(tmp_path, contract, span)) == anew(tmp_path, contract, span, monkeypatch)
        assert set(opened(tmp_path).files) <= {name for name in map(_of_data, kept_files(tmp_path)) if name}
    assert "append" in seen


def _of_data(file: Path) -> str:
    """The data file that a kept file names."""
    return file.read_bytes().split(b'"file": "')[1].split(b'"')[0].decode()


def test_only_new_files_are_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1), row("b", 2, -1.0))
    with files_read(monkeypatch) as first:
        assert ids(judged(tmp_path, contract)) == ["b"]
    add(tmp_path, row("c", 3))
    with files_read(monkeypatch) as second:
        assert ids(judged(tmp_path, contract)) == ["b"]
    assert len(first) == len(second) == 1
    assert set(first + second) == set(opened(tmp_path).files)
    with files_read(monkeypatch) as third:
        assert ids(judged(tmp_path, contract, (2, 9))) == ["b"]
    assert third == []


def test_a_repeat_over_two_files(tmp_path: Path) -> None:
    """It comes with the second file, and goes with either."""
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1), row("b", 2))
    assert judged(tmp_path, contract).repeated == 0
    add(tmp_path, row("a", 1, 2.0), row("c", 3))
    assert (ids(judged(tmp_path, contract)), judged(tmp_path, contract).repeated) == (["a", "a"], 2)
    DeltaTable(tmp_path / "table").delete("event_id = 'a' AND value = 2.0")
    assert judged(tmp_path, contract).repeated == 0
    add(tmp_path, row("b", 2, 5.0))
    assert ids(judged(tmp_path, contract)) == ["b", "b"]


@pytest.mark.parametrize("asked_of_many", [0, 50])
def test_a_row_that_decides_by_way_of_another(
    tmp_path: Path, asked_of_many: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of the span shares its id with one elsewhere, which another row keeps from counting, by its place."""
    monkeypatch.setattr(limits, "ASKED_OF_MANY", asked_of_many)
    contract = contract_of(tmp_path, unique=True)
    add(tmp_path, row("a", 5), row("a", 60, place="p"))
    assert ids(judged(tmp_path, contract, (0, 10))) == ["a"]
    add(tmp_path, row("b", 61, place="p"))
    assert ids(judged(tmp_path, contract, (0, 10))) == []
    add(tmp_path, *(row(f"c{n}", 90) for n in range(90)))
    assert ids(judged(tmp_path, contract, (0, 10))) == []
    assert sorted(ids(judged(tmp_path, contract, (60, 62)))) == ["a", "b"]


def test_a_version_is_held(tmp_path: Path) -> None:
    """Several runs of a process over one version read its verdicts once; those of the next version are others."""
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1))
    place = place_of(tmp_path, contract)
    first = judge_of(opened(tmp_path), contract, place)
    assert judge_of(opened(tmp_path), contract_of(tmp_path), place) is first
    assert judge_of(opened(tmp_path), contract_of(tmp_path, 3), place) is not first
    add(tmp_path, row("a", 1, 2.0))
    assert answer_of(judge_of(opened(tmp_path), contract, place).judged((0, 9))).repeated == 2


def test_equal_hashes_are_compared_by_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys that differ are not repeated, whatever their hashes are."""
    from trendlake.pipelines.quality import verdict

    real = verdict.hashes_of
    monkeypatch.setattr(verdict, "hashes_of", lambda rows, columns: real(rows, columns) % 2)
    contract = contract_of(tmp_path, unique=True)
    add(tmp_path, *(row(f"e{n}", n, place=f"p{n}") for n in range(20)), row("e7", 7, 3.0))
    assert ids(judged(tmp_path, contract)) == ["e7", "e7"]


def test_the_sequence_is_asked_of_all_files(tmp_path: Path) -> None:
    """The row of the highest number counts, in whichever file it comes."""
    contract = contract_of(tmp_path, sequence=True)
    for sent, out in ((2, []), (1, [1]), (5, [1, 2]), (None, [1, 2, None])):
        add(tmp_path, row("a", 1, float(sent or 0), sent=sent))
        assert sorted(judged(tmp_path, contract).bad["sent"].to_pylist(), key=str) == sorted(out, key=str)


def test_a_file_rewritten_by_optimize(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract = contract_of(tmp_path)
    for number in range(5):
        add(tmp_path, row("a", number, -1.0), row(f"b{number}", number))
    before = said(judged(tmp_path, contract))[:4]
    DeltaTable(tmp_path / "table").optimize.compact()
    with files_read(monkeypatch) as read:
        assert said(judged(tmp_path, contract))[:4] == before
    assert len(read) == 1


def test_a_dropped_table_of_the_same_name(tmp_path: Path) -> None:
    """Also if a file of the new one has the name, the size and the time of an old one."""
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1))
    assert ids(judged(tmp_path, contract)) == []
    shutil.rmtree(tmp_path / "table")
    add(tmp_path, row("a", 1, -1.0))
    assert ids(judged(tmp_path, contract)) == ["a"]
    assert len({file.parent.parent for file in kept_files(tmp_path)}) == 2


def test_another_file_in_the_place_of_one(tmp_path: Path) -> None:
    """A table of another program may have fixed names: size and time tell that the file is another."""
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1), row("b", 2))
    assert ids(judged(tmp_path, contract)) == []
    other = tmp_path / "other"
    write_deltalake(other, rows_of([row("a", 1, -1.0), row("b", 2)]))
    (mine,), (theirs,) = opened(tmp_path).files, other.glob("*.parquet")
    shutil.copy(theirs, tmp_path / "table" / mine)
    assert ids(judged(tmp_path, contract)) == ["a"]


def test_another_contract_and_another_rule_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(tmp_path, row("a", 1), row("b", 2, 5.0))
    mild, strict = contract_of(tmp_path), contract_of(tmp_path, 3)
    assert ids(judged(tmp_path, mild)) == []
    assert ids(judged(tmp_path, strict)) == ["a"]
    assert ids(judged(tmp_path, mild)) == []
    with files_read(monkeypatch) as read:
        assert ids(judged(tmp_path, mild, version="2")) == []
    assert len(read) == 1


def test_keys_that_are_hashed_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By another version: what is kept says nothing about new files."""
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1), row("b", 2))
    with monkeypatch.context() as patch:
        real = verdict_module.hashes_of
        patch.setattr(verdict_module, "hashes_of", lambda rows, columns: ~real(rows, columns))
        verdict_module.hashing.cache_clear()
        assert ids(judged(tmp_path, contract)) == []
    verdict_module.hashing.cache_clear()
    add(tmp_path, row("a", 3))
    with files_read(monkeypatch) as read:
        assert len(ids(judged(tmp_path, contract))) > 0
    assert len(read) >= 2


@pytest.mark.parametrize("damage", ["cut", "half", "empty", "bit", "foreign", "header", "masks", "another's"])
def test_a_damaged_kept_file_is_ignored(tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And written anew."""
    contract = contract_of(tmp_path)
    add(tmp_path, *(row(f"e{n}", n, -1.0 if n == 3 else 1.0) for n in range(50)))
    expected = said(judged(tmp_path, contract))
    assert expected[2].rows == 1
    (file,) = kept_files(tmp_path)
    whole = file.read_bytes()
    if damage == "another's":
        add(tmp_path, row("x", 1))
        judged(tmp_path, contract)
        (other,) = (one for one in kept_files(tmp_path) if one != file)
        file.write_bytes(other.read_bytes())
        expected = anew(tmp_path, contract, (0, 100), monkeypatch)
    else:
        body = whole[:-8].replace(b'"rows": 50', b'"rows": 49')
        file.write_bytes(
            {
                "cut": whole[:-1],
                "half": whole[: len(whole) // 2],
                "empty": b"",
                "bit": whole[:-60] + bytes([whole[-60] ^ 1]) + whole[-59:],
                "foreign": b"PAR1" + whole[4:],
                "header": body + zlib.crc32(body).to_bytes(8, "little"),
                "masks": whole.replace(b'"masks": [', b'"masks": {'),
            }[damage]
        )
    with files_read(monkeypatch) as read:
        assert said(judged(tmp_path, contract)) == expected
    assert len(read) == 1
    with files_read(monkeypatch) as read:
        assert said(judged(tmp_path, contract)) == expected
    assert read == []


def test_two_runs_at_once(tmp_path: Path) -> None:
    """Each has the whole answer, and leaves whole files."""
    contract = contract_of(tmp_path)
    for number in range(12):
        add(tmp_path, *(row(f"e{n}", n) for n in range(number * 30, number * 30 + 31)))
    expected = said(judged(tmp_path, contract, (0, 400)))
    for _ in range(5):
        shutil.rmtree(tmp_path / "verdicts")
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(judged, tmp_path, contract, (0, 400)) for _ in range(4)]
            assert [said(answer.result()) for answer in answers] == 4 * [expected]
        assert len(kept_files(tmp_path)) == 12
        question = Question.of(contract.rules, contract.event_time)
        table, cache = opened(tmp_path), VerdictCache(place_of(tmp_path, contract))
        assert all(cache.find(table.folder, name, question) for name in table.files)


def test_a_folder_that_is_removed_meanwhile(tmp_path: Path) -> None:
    """What has been cache is read to its end."""
    contract = contract_of(tmp_path)
    add(tmp_path, *(row(f"e{n}", n, -1.0 if n == 3 else 1.0) for n in range(50)), row("e5", 5, 4.0))
    judging = judge_of(opened(tmp_path), contract, place_of(tmp_path, contract))
    expected = said(answer_of(judging.judged((0, 100))))
    shutil.rmtree(tmp_path / "verdicts")
    assert said(answer_of(judging.judged((0, 100)))) == expected


def test_a_warehouse_that_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts of this run are beside it then; those that are kept are used."""
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1, -1.0))
    with small_disk(tmp_path / "verdicts", 400) as disk:
        assert ids(judged(tmp_path, contract)) == ["a"]
        add(tmp_path, row("b", 1, -1.0))
        with read_only(disk):
            for _ in range(2):
                with files_read(monkeypatch) as read:
                    assert ids(judged(tmp_path, contract)) == ["a", "b"] or ids(judged(tmp_path, contract)) == [
                        "b",
                        "a",
                    ]
                assert read
        judged(tmp_path, contract)
        assert len(kept_files(tmp_path)) == 2


def test_a_full_disk(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1, -1.0))
    with small_disk(tmp_path / "verdicts", 100) as disk:
        with full(disk):
            assert ids(judged(tmp_path, contract)) == ["a"]
        assert [file for file in kept_files(tmp_path) if file.name.startswith(".partial")] == []


def test_no_disk_at_all_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1, -1.0))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    answer = tried(lambda: judge_of(opened(tmp_path), contract, None))
    assert isinstance(answer, NotHere)
    assert "nowhere" in answer.reason


def test_maintain_removes_what_no_run_uses(tmp_path: Path) -> None:
    contract, warehouse = contract_of(tmp_path), Warehouse(str(tmp_path))
    lake = Lake(warehouse, lambda: pytest.fail("no Spark"), plain_paths=True)
    assert clear_verdicts(lake) == 0
    add(tmp_path, row("a", 1))
    add(tmp_path, row("b", 1))
    judged(tmp_path, contract)
    assert clear_verdicts(lake) == 0
    first, second = kept_files(tmp_path)
    os.utime(first, (1, 1))
    assert clear_verdicts(lake) == 1
    assert kept_files(tmp_path) == [second]
    os.utime(second, (1, 1))
    assert clear_verdicts(lake) == 1
    assert list((tmp_path / "verdicts").iterdir()) == []


def test_a_use_is_noted(tmp_path: Path) -> None:
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1))
    judged(tmp_path, contract)
    (file,) = kept_files(tmp_path)
    os.utime(file, (1, 1))
    judged(tmp_path, contract)
    assert file.stat().st_mtime > 1


def test_few_rows_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "JUDGED_WHOLE", 1)
    contract = contract_of(tmp_path)
    add(tmp_path, row("a", 1))
    assert isinstance(judge_of(opened(tmp_path), contract, place_of(tmp_path, contract)), FewRows)
    assert not (tmp_path / "verdicts").exists()


def test_large_files_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of several batches and row groups, of which the span holds some: as by all rows."""
    from deltalake import WriterProperties

    monkeypatch.setattr(judge, "BATCH_ROWS", 64)
    rng, contract = random.Random(7), contract_of(tmp_path, unique=True)
    rows = sorted((drawn(rng) | {"event_id": f"e{n}"} for n in range(1000)), key=lambda one: one["event_time"] or 0)
    rows += [replace_id(row, n) for n, row in enumerate(rows[:9])]
    write_deltalake(
        tmp_path / "table",
        rows_of(rows),
        writer_properties=WriterProperties(max_row_group_size=100, write_batch_size=50),
    )
    for span in SPANS:
        assert said(judged(tmp_path, contract, span)) == anew(tmp_path, contract, span, monkeypatch)


def replace_id(row: dict[str, Any], number: int) -> dict[str, Any]:
    return row | {"event_id": f"e{500 + number}"}


@pytest.mark.random
@given(st.data())
@examples(300)
def test_masks_and_codes_are_the_answers(data: st.DataObject) -> None:
    """Also where no row has the answer yes to some question, or none has it to all."""
    kinds, rows = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 12))
    answers = data.draw(st.lists(st.lists(st.booleans(), min_size=rows, max_size=rows), min_size=kinds, max_size=kinds))
    bits = np.array(answers, np.bool_).reshape(kinds, rows)
    masks, codes = verdict_module._coded(bits)
    assert len({mask.tobytes() for mask in masks}) == len(masks) <= max(rows, 0)
    if codes is None:
        assert len(masks) == min(rows, 1)
        assert (bits == masks.T).all() if rows else True
    else:
        assert sorted(set(codes.tolist())) == list(range(len(masks)))
        assert (masks[codes] == bits.T).all()
