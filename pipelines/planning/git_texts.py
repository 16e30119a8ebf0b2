"""The earlier text of a pattern's keys, from the Git history of its file."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trendlake.cep_core.errors import TrendlakeError
from trendlake.cep_core.yaml.source import parse_yaml
from trendlake.pipelines.results.pattern_keys import digests, texts_of

COMMITS = 200
"""The newest commits of a file in which its published text is looked for."""
SECONDS = 20
"""No command of Git takes longer here; one that does is given up, and the text is not shown."""


class KeyText(NamedTuple):
    """The text of a `key` when the results were published (`old`) and as it is now (`new`); None where the file did
    not have it, or has it no more. `old` is also None where Git does not have it (`looked_up`)."""

    key: str
    old: str | None
    new: str | None
    looked_up: bool


def key_texts(file: Path, keys: Sequence[str], recorded: Mapping[str, str]) -> list[KeyText]:
    """Each of the `keys` of a pattern's file; `recorded`: the digests of its file as a publication noted them."""
    try:
        new = texts_of(parse_yaml(file.read_text(encoding="utf-8"), str(file)).data)
    except (OSError, UnicodeDecodeError, TrendlakeError):
        new = {}
    old = _published(file, keys, recorded)
    return [KeyText(key, None if old is None else old.get(key), new.get(key), old is not None) for key in keys]


def _published(file: Path, keys: Sequence[str], recorded: Mapping[str, str]) -> dict[str, str] | None:
    """The texts by key in the newest commit whose digests of the `keys` are the recorded ones."""
    wanted = {key: recorded.get(key) for key in keys if key != "for_each.rows"}
    commits = _git(file, "log", f"--max-count={COMMITS}", "--format=%H", "--", f"./{file.name}")
    for commit in (commits or "").split():
        text = _git(file, "show", f"{commit}:./{file.name}")
        try:
            data = None if text is None else parse_yaml(text, str(file)).data
        except TrendlakeError:
            continue
        there = digests(data)
        if data is not None and all(there.get(key) == digest for key, digest in wanted.items()):
            return texts_of(data)
    return None


def _git(file: Path, *arguments: str) -> str | None:
    """The output of Git in the folder of a file; None where there is no Git, no work tree, or no such thing."""
    command = ["git", "-C", str(file.absolute().parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False, timeout=SECONDS)
        return done.stdout.decode("utf-8") if done.returncode == 0 else None
    except (OSError, UnicodeDecodeError, subprocess.TimeoutExpired):
        return None
