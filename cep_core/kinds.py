"""The kinds of patterns. Each is imported when it is first asked for: a command for one pattern waits for no other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from trendlake.cep_core.kind import Kind

NAMES = ("trends", "matches", "automaton", "xml_join", "algebra", "match_recognize")


class _Kinds(Mapping[str, Kind]):
    def __getitem__(self, name: str) -> Kind:
        if name not in NAMES:
            raise KeyError(name)
        return _kind(name)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)

    def __contains__(self, name: object) -> bool:
        return name in NAMES


@cache
def _kind(name: str) -> Kind:
    kind: Kind = import_module(f"trendlake.cep_core.{name}.kind").KIND
    return kind


KINDS: Mapping[str, Kind] = _Kinds()
