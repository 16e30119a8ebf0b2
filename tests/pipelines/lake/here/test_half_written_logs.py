"""Logs as other writers, and writers that were stopped, leave them: this process and Spark read the same rows, or say
in words which file is not whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.support.bare_lake import bare_lake
from trendlake.pipelines.errors import OtherwiseWrittenError
from trendlake.pipelines.lake.here.log import folder_on_disk, opened
from trendlake.pipelines.lake.here.read import table_here
from trendlake.pipelines.lake.lake import exists, latest_version, read_at
from trendlake.pipelines.lake.road import NotHere, tried
from trendlake.pipelines.lake.versions import newest
from trendlake.pipelines.spark.session import quiet
from trendlake.pipelines.storage_errors import storage_error

pytestmark = pytest.mark.spark

VERSIONS = 11
EVERY = 2 * VERSIONS
FORMS: dict[str, tuple[str, int | None]] = {"one file": ("classic", None), "parts": ("classic", 4), "v2": ("v2", 4)}
EACH_FORM = ["one file", pytest.param("parts", marks=pytest.mark.repeats), "v2"]
"""Forms of checkpoints: Delta's policy, and how many actions a file may have."""
PARTS = "spark.databricks.delta.checkpoint.partSize"
Damage = Callable[[Path], Any]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Tables of eleven commits of two rows and one that sets a property, with a checkpoint at version 10: by its
    form."""
    tables_by_form, base = {}, tmp_path_factory.mktemp("base") / "table"
    for number in range(9):
        write_deltalake(base, pa.table({"id": [2 * number, 2 * number + 1]}), mode="append")
    for form, (policy, size) in FORMS.items():
        path = tables_by_form[form] = Path(
            shutil.copytree(base, tmp_path_factory.mktemp(form.replace(" ", "_")) / "table")
        )
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.checkpointPolicy' = '{policy}')")
        if size is not None:
            spark.conf.set(PARTS, str(size))
        for number in (9, 10):
            more = spark.range(2 * number, 2 * number + 2).coalesce(1)
            more.write.format("delta").mode("append").save(str(path))
        spark.conf.unset(PARTS)
        for checksum in path.rglob(".*.crc"):
            checksum.unlink()  # Hadoop's own, of files that the tests change
    return tables_by_form


def copied(table: Path, to: Path) -> Path:
    return Path(shutil.copytree(table, to / "copy"))


def in_process(spark: SparkSession, path: Path, version: int | None = None) -> list[int] | None:
    """The ids as this process reads them; None where it leaves the table to Spark."""
    ids = tried(lambda: table_here(bare_lake(spark), str(path), version).every(["id"], 2 * EVERY)["id"].to_pylist())
    return None if isinstance(ids, NotHere) else sorted(ids)


def by_spark(spark: SparkSession, path: Path, version: int | None = None) -> list[int] | str:
    """The ids as Spark reads them; the code of the error that a user sees."""
    try:
        with quiet(spark):
            rows = read_at(
                bare_lake(spark), str(path), latest_version(bare_lake(spark), str(path)) if version is None else version
            )
            return sorted(row[0] for row in rows.collect())
    except Exception as error:
        meant = storage_error(error)
        if meant is None:
            raise
        assert "_delta_log" in meant.message or "_delta_log" in str(meant.hint)
        return meant.code


def log_of(path: Path) -> Path:
    return path / "_delta_log"


def half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


@pytest.mark.long
@pytest.mark.parametrize("form", EACH_FORM)
def test_forms_of_checkpoints(spark: SparkSession, tables: dict[str, Path], form: str, tmp_path: Path) -> None:
    """Whole, and where the commits before it are cleaned away: the newest version and that of the checkpoint."""
    path = copied(tables[form], tmp_path)
    names = [file.name for file in log_of(path).rglob("*.parquet") if "checkpoint" in file.name]
    assert (len(names) > 1) == (form != "one file")
    for cleaned in (False, True):
        if cleaned:
            for version in range(10):
                (log_of(path) / f"{version:020d}.json").unlink()
        for version, rows in ((None, EVERY), (10, EVERY - 2)):
            assert in_process(spark, path, version) == by_spark(spark, path, version) == list(range(rows))


@pytest.mark.parametrize("form", EACH_FORM)
@pytest.mark.parametrize("damage", [Path.unlink, half], ids=["missing", "half"])
def test_a_checkpoint_that_is_not_whole(
    spark: SparkSession, tables: dict[str, Path], form: str, damage: Damage, tmp_path: Path
) -> None:
    """Never a row less: the commits before it tell the rows, or the error names the file. Without the checkpoint, as
    the error's hint has it, the rows are there."""
    path = copied(tables[form], tmp_path)
    files = sorted(file for file in log_of(path).rglob("*.parquet") if "checkpoint" in file.name)
    damage(files[-1])
    answers = (in_process(spark, path), by_spark(spark, path))
    assert answers[0] in (None, list(range(EVERY)))
    assert answers[1] in ("FILE_DAMAGED", list(range(EVERY)))
    for file in [*log_of(path).glob("*.checkpoint*"), log_of(path) / "_last_checkpoint"]:
        file.unlink(missing_ok=True)
    mended = copied(path, tmp_path / "mended")
    assert in_process(spark, mended) == by_spark(spark, mended) == list(range(EVERY))


HALF_WRITTEN = ("", '{"version":10,"si', "[1]", "null", '{"numOfAddFiles":null}', '{"version":99}')


@pytest.mark.long
def test_last_checkpoint_half_written(spark: SparkSession, tables: dict[str, Path], tmp_path: Path) -> None:
    """The file is a hint: what cannot be read here Spark reads. On one text Delta's own reader fails. All at once, as
    Delta waits for seconds in the hope of a whole file."""
    paths = {text: copied(tables["one file"], tmp_path / str(number)) for number, text in enumerate(HALF_WRITTEN)}
    for text, path in paths.items():
        (log_of(path) / "_last_checkpoint").write_text(text)
        assert in_process(spark, path) in (None, list(range(EVERY))), text
    with ThreadPoolExecutor(len(paths)) as pool:
        rows = dict(zip(paths, pool.map(lambda path: by_spark(spark, path), paths.values()), strict=True))
    assert rows.pop("null") == "FILE_DAMAGED"
    for text in rows:
        assert rows[text] == list(range(EVERY)), text
        newest_version = newest(bare_lake(spark), str(paths[text]))
        assert newest_version is not None
        assert newest_version.version == VERSIONS, text


@pytest.mark.long
@pytest.mark.parametrize("size", [pytest.param(0, marks=pytest.mark.repeats), 40, None], ids=["empty", "half", "whole"])
def test_log_compaction(spark: SparkSession, tables: dict[str, Path], size: int | None, tmp_path: Path) -> None:
    """A compaction file repeats commits; one that is empty would hide their rows from Spark."""
    path = copied(tables["one file"], tmp_path)
    commits = [(log_of(path) / f"{version:020d}.json").read_text().splitlines() for version in range(1, 6)]
    lines = [line for commit in commits for line in commit if "commitInfo" not in json.loads(line)]
    text = "\n".join(lines) + "\n"
    (log_of(path) / f"{1:020d}.{5:020d}.compacted.json").write_text(text[:size])
    for version, rows in ((None, EVERY), (5, 12), (3, 8)):
        assert in_process(spark, path, version) == by_spark(spark, path, version) == list(range(rows))


@pytest.mark.parametrize("version", [4, 11], ids=["old", "newest"])
def test_a_commit_that_is_cut_off(spark: SparkSession, tables: dict[str, Path], version: int, tmp_path: Path) -> None:
    """Without a checkpoint after it: an error that names it, on both roads, however it is asked."""
    path = copied(tables["one file"], tmp_path)
    for file in [*log_of(path).glob("*.checkpoint*"), *log_of(path).glob("*.crc"), log_of(path) / "_last_checkpoint"]:
        file.unlink()
    half(log_of(path) / f"{version:020d}.json")
    assert in_process(spark, path) is None
    assert by_spark(spark, path) == "FILE_DAMAGED"


@pytest.mark.long
def test_a_checksum_of_another_commit(spark: SparkSession, tables: dict[str, Path], tmp_path: Path) -> None:
    """It may say other columns and another id of the table: neither is taken from it. Half a checksum is none."""
    path = copied(tables["one file"], tmp_path)
    file = log_of(path) / f"{VERSIONS:020d}.crc"
    about = json.loads(file.read_text())
    metadata = about["metadata"] | {
        "id": "another",
        "schemaString": about["metadata"]["schemaString"].replace("id", "n"),
    }
    for other in ({"txnId": "another"}, {"numFiles": 99}, {"tableSizeBytes": 1}):
        file.write_text(json.dumps(about | other | {"metadata": metadata}))
        changed = copied(path, tmp_path / next(iter(other)))
        assert in_process(spark, changed) is None
        assert by_spark(spark, changed) == "FILE_DAMAGED"
    folder = folder_on_disk(bare_lake(spark), str(tmp_path / "txnId" / "copy"))
    with pytest.raises(OtherwiseWrittenError, match="another commit"), opened(folder):
        pass
    for text in ("", json.dumps(about)[:100]):
        (log_of(path) / f"{VERSIONS:020d}.crc").write_text(text)
        whole = copied(path, tmp_path / f"half{len(text)}")
        assert in_process(spark, whole) == by_spark(spark, whole) == list(range(EVERY))


@pytest.mark.long
def test_files_that_writers_have_left(spark: SparkSession, tables: dict[str, Path], tmp_path: Path) -> None:
    """Names that are nearly those of commits and checkpoints count for nothing, and the next commit is made."""
    path = copied(tables["one file"], tmp_path)
    following = f"{VERSIONS + 1:020d}"
    for name in (
        f".{following}.json.0a1b.tmp",
        f"{following}.json#1",
        f"{following}.json.tmp",
        "_commit_0a1b.json.tmp",
        f"{following}.0a1b.json",
        f"{20:020d}.checkpoint.parquet.tmp",
        f"{20:020d}.checkpoint.parquet#2",
        "_last_checkpoint#1",
        "notes.txt",
    ):
        (log_of(path) / name).write_text("half{")
    assert latest_version(bare_lake(spark), str(path)) == VERSIONS
    assert in_process(spark, path) == by_spark(spark, path) == list(range(EVERY))
    spark.range(100, 101).write.format("delta").mode("append").save(str(path))
    assert in_process(spark, path) == by_spark(spark, path) == [*range(EVERY), 100]


@pytest.mark.parametrize("damage", [Path.unlink, half, lambda file: file.write_bytes(b"")], ids=["gone", "half", "0"])
def test_a_data_file(spark: SparkSession, tables: dict[str, Path], damage: Damage, tmp_path: Path) -> None:
    """Gone, as after VACUUM, or not whole: no row less, and what to do."""
    path = copied(tables["one file"], tmp_path)
    gone = next(path.glob("*.parquet"))
    damage(gone)
    assert exists(bare_lake(spark), str(path))
    assert in_process(spark, path) is None
    with quiet(spark), pytest.raises(Exception, match=gone.name) as error:
        read_at(bare_lake(spark), str(path), VERSIONS).collect()
    meant = storage_error(error.value, "compute", "falling")
    assert meant is not None
    assert gone.name in meant.message
    if gone.exists():
        assert meant.code == "FILE_DAMAGED"
    else:
        assert meant.code == "FILE_MISSING"
        assert "VACUUM" in meant.message
        assert str(meant.hint).startswith("run `trendlake run falling` for the same interval")
