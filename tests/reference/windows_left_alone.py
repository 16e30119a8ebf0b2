"""Which windows a run computes, window by window: the slow form of `pipelines.results.reuse.changed`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Notes = Sequence[Mapping[str, Any]]


def history(window: int, notes: Notes) -> list[tuple[Mapping[str, Any], str]]:
    """The notes that speak of a window, the newest first, and the hash they name, up to the first that is a commit."""
    spoken = []
    for note in notes:
        if note.get("altered"):
            break
        quiet = bool(note.get("quiet"))
        if "stage" not in note and not quiet:
            continue
        if "stretches" not in note:
            if quiet:
                continue
            break
        hashes = [known for first, last, known in note["stretches"] if first <= window <= last]
        spoken += [(note, known) for known in hashes]
        if hashes and not quiet:
            break
    return spoken


def changed(
    windows: range,
    notes: Notes,
    wanted: Callable[[int], str],
    same: Callable[[Mapping[str, Any]], bool],
    stale: Callable[[int], bool],
) -> range:
    """From the first to the last window that no note says is there already. `wanted`: the hash of a window."""
    left = [
        window
        for window in windows
        if stale(window) or not any(same(note) and known == wanted(window) for note, known in history(window, notes))
    ]
    return range(left[0], left[-1] + 1) if left else windows[:0]
