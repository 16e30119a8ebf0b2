"""What is held of logs is what their folders hold."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

import pytest

from trendlake.pipelines.lake.log_cache import cache_by_commit, newest_commit


def commit(log: Path, version: int, text: str = "{}") -> None:
    """Writes the file of a commit, beside those of Delta that are none."""
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{version:020d}.json").write_text(text)
    (log / f"{version:020d}.crc").touch()


def listed(log: Path) -> int | None:
    return max((int(file.stem) for file in log.glob("*.json")), default=None)


@pytest.mark.parametrize("seed", range(20))
def test_the_newest_commit_of_a_log_that_grows_is_cleaned_up_and_replaced(tmp_path: Path, seed: int) -> None:
    random, log = Random(seed), tmp_path / "_delta_log"
    log.mkdir()
    assert newest_commit(str(log)) is None
    for step in range(200):
        newest = listed(log)
        action = random.choice(("commit", "commit", "commit", "several", "clean", "anew", "shorter"))
        if action in ("commit", "several"):
            for _ in range(1 if action == "commit" else random.randint(2, 12)):
                newest = -1 if newest is None else newest
                commit(log, newest + 1, f"{step}")
                newest += 1
        elif action == "clean" and newest is not None:
            (log / f"{newest:020d}.checkpoint.parquet").touch()
            for version in range(newest):
                (log / f"{version:020d}.json").unlink(missing_ok=True)
        elif action == "anew":
            shutil.rmtree(log)
            for version in range(random.randint(1, 9)):
                commit(log, version, f"another {step}")
        elif action == "shorter" and newest:
            (log / f"{newest:020d}.json").unlink()
        if random.random() < 0.7:
            assert newest_commit(str(log)) == listed(log), (step, action)
    shutil.rmtree(log)
    with pytest.raises(FileNotFoundError):
        newest_commit(str(log))


def test_answers_are_held_while_the_commit_is_the_same_file(tmp_path: Path) -> None:
    asked: list[int | None] = []

    @cache_by_commit
    def read(folder: Path, version: int | None) -> str:
        asked.append(version)
        return (folder / "_delta_log" / f"{version:020d}.json").read_text()

    log = tmp_path / "_delta_log"
    commit(log, 0, "first")
    assert [read(tmp_path), read(tmp_path, 0), read(tmp_path)] == ["first"] * 3
    commit(log, 1, "second")
    assert [read(tmp_path), read(tmp_path, 0), read(tmp_path)] == ["second", "first", "second"]
    assert asked == [0, 1]
    shutil.rmtree(log)
    commit(log, 0, "of another table")
    assert read(tmp_path) == "of another table"
    assert asked == [0, 1, 0]
