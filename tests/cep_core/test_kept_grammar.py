"""The parser's tables are kept for the next process; what is kept never decides what a text means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.disks import full, small_disk

PARSED = """
from lark import Lark
from trendlake.cep_core.language.parse import parse_duration, parse_pattern
parsers = []
real = Lark._build_parser
Lark._build_parser = lambda self: parsers.append(1) or real(self)
print(parse_duration("5 minutes"), parse_pattern("SEQ(A a, B b)") is not None, len(parsers))
"""
MADE, KEPT = "300000000 True 1", "300000000 True 0"
"""What a process prints: a duration in microseconds, whether there is a pattern, how many parsers it has made."""


def parsed(cache: Path) -> str:
    environment = os.environ | {"TRENDLAKE_CACHE": str(cache)}
    done = subprocess.run([sys.executable, "-c", PARSED], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def file_of(cache: Path) -> Path:
    (file,) = (cache / "trendlake" / "grammars").iterdir()
    return file


def test_made_once(tmp_path: Path) -> None:
    assert parsed(tmp_path) == MADE
    assert parsed(tmp_path) == KEPT


@pytest.mark.long
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_half_a_file(tmp_path: Path, share: float) -> None:
    """Of a process that was killed: made anew."""
    parsed(tmp_path)
    whole = file_of(tmp_path).read_bytes()
    file_of(tmp_path).write_bytes(whole[: int(share * len(whole))])
    assert parsed(tmp_path) == MADE
    assert parsed(tmp_path) == KEPT


def test_another_grammar(tmp_path: Path) -> None:
    """That of another version of Trendlake, or of lark."""
    parsed(tmp_path)
    digest, tables = file_of(tmp_path).read_bytes().split(b"\n", 1)
    file_of(tmp_path).write_bytes(digest[::-1] + b"\n" + tables)
    assert parsed(tmp_path) == MADE


def test_a_full_disk(tmp_path: Path) -> None:
    """No tables can be written; with room again they are kept."""
    with small_disk(tmp_path / "disk", 4000) as disk:
        (disk / "trendlake" / "grammars").mkdir(mode=0o700, parents=True)
        (disk / "trendlake").chmod(0o700)
        with full(disk):
            assert parsed(disk) == MADE
        assert [parsed(disk), parsed(disk)] == [MADE, KEPT]
