"""`new source` looks at a file's cells several times, and reads the file once."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.own_source import output_of
from trendlake.pipelines.authoring.scaffold import Roles
from trendlake.pipelines.authoring.source_file import TimeOptions, new_source_of_file
from trendlake.pipelines.errors import ProjectError
from trendlake.pipelines.ingest.readers import csv_file, json_lines
from trendlake.pipelines.ingest.readers.cells import Cells
from trendlake.pipelines.ingest.readers.files import open_file
from trendlake.pipelines.ingest.readers.read_once import read_once
from trendlake.pipelines.ingest.readers.unpacking import open_bytes
from trendlake.pipelines.project.paths import find_project

ROWS = 120_000
"""Some megabytes: several blocks, of which a reader of the header alone takes one buffer."""


class Counter:
    """Opens files, and counts the bytes that are read of them."""

    def __init__(self) -> None:
        self.bytes = 0

    def open(self, path: Path) -> io.BufferedReader:
        outer = self

        class Counted(io.RawIOBase):
            inner = open_bytes(path)

            def readable(self) -> bool:
                return True

            def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
                count = self.inner.readinto(buffer)
                outer.bytes += count
                return count

            def close(self) -> None:
                self.inner.close()
                super().close()

        return io.BufferedReader(Counted())


def csv_of(path: Path, rows: int) -> int:
    """A CSV file of events, packed where its name says so; the bytes of its text. The id repeats: all columns are
    looked at."""
    lines = (f"t{i // 2},2026-01-05 09:{i // 60 % 60:02}:{i % 60:02},A,{i % 97}.5\n" for i in range(rows))
    text = "id,at,company,price\n" + "".join(lines)
    path.write_bytes(gzip.compress(text.encode(), 1) if path.suffix == ".gz" else text.encode())
    return len(text)


def json_of(path: Path, rows: int) -> int:
    moments = (f"2026-01-05 09:{i // 60 % 60:02}:{i % 60:02}" for i in range(rows))
    text = "".join(json.dumps({"id": f"t{i // 2}", "at": at, "n": i}) + "\n" for i, at in enumerate(moments))
    return path.write_text(text)


@pytest.mark.long
@pytest.mark.parametrize("name", ["e.csv", "e.csv.gz", "e.jsonl"])
def test_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Though its ids are not unique, a time format is stated, and a key is sought among all columns."""
    output_of("init", tmp_path / "mine")
    project, path, counter = find_project(tmp_path / "mine"), tmp_path / name, Counter()
    size = (json_of if name.endswith("jsonl") else csv_of)(path, ROWS)
    for reader in (csv_file, json_lines):
        monkeypatch.setattr(reader, "open_bytes", counter.open)
    with pytest.raises(ProjectError, match=r"cannot be the id: 120,000 rows have 60,000 distinct values"):
        new_source_of_file(project, "ev", path, Roles("id", "at", constant="E"), TimeOptions("%Y-%m-%d %H:%M:%S"))
    assert size <= counter.bytes < 1.05 * size


def columns(blocks: object) -> dict[str, list[object]]:
    """Cells of a file, block after block, those of the parts of a block side by side."""
    shown_cells: dict[str, list[object]] = {}
    for block in blocks:  # type: ignore[attr-defined]
        for name, parts in block.items():
            shown = [[(part.literal, value) for value in part.values.to_pylist()] for part in parts]
            shown_cells.setdefault(name, []).extend(
                next((cell for cell in cells if cell[1] is not None), None) for cells in zip(*shown, strict=True)
            )
    return shown_cells


def test_cells_are_those_of_the_file(tmp_path: Path) -> None:
    """Of JSON: texts and numbers of one column apart, and keys that come late."""
    path = tmp_path / "e.jsonl"
    objects = [{"a": "x", "b": 1}, {"a": 2.50}, {}, {"b": None, "a": "2.50"}] * 6000 + [{"c": True, "b": "y"}]
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    names = ["a", "b", "c"]
    with read_once(path) as file:
        assert file.schema.names == names
        first, again = columns(file.blocks(names)), columns(file.blocks(names))
    direct = columns(block for _, block in open_file(path).blocks(dict.fromkeys(names, ())))
    assert first == again == direct
    assert first["a"][:4] == [(False, "x"), (True, "2.5"), None, (False, "2.50")]
    assert first["c"][-1] == (False, True)
    assert first["b"][-1] == (False, "y")


@pytest.mark.parametrize("text", ["id,at\n", "id,at\nx,\n"])
def test_few_rows(tmp_path: Path, text: str) -> None:
    path = tmp_path / "e.csv"
    path.write_text(text)
    with read_once(path) as file:
        assert file.schema == pa.schema([("id", pa.string()), ("at", pa.string())])
        blocks = list(file.blocks(["at"]))
    assert blocks == [] or blocks[0]["at"][0] == Cells(blocks[0]["at"][0].values)
