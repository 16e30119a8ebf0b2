"""Which patterns of a project a command is about: names, file paths, and selectors.

`fall_*` is a glob over names; `kind:trends`, `tag:daily`, `owner:ops`, `batch:prices`, `source:trades` compare a key of
the file, by a glob too; `source:trades+` adds every pattern that reads results of these; `result:failed` and
`result:succeeded` ask how the last run of a pattern ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from trendlake.cep_core import Pattern, PatternErrors
from trendlake.cep_core.errors import did_you_mean
from trendlake.cep_core.load import read_pattern
from trendlake.pipelines.errors import CycleError, ProjectError
from trendlake.pipelines.project.batches import batch_of, differences
from trendlake.pipelines.project.paths import Project, upstream

KEYS: Mapping[str, Callable[[Pattern], Sequence[str]]] = {
    "kind": lambda pattern: (pattern.kind,),
    "tag": lambda pattern: pattern.tags,
    "owner": lambda pattern: (pattern.owner,),
    "source": lambda pattern: pattern.tables_read or ("",),
}
"""The selectors that compare a key of the pattern's file."""
BATCH = "batch"
RESULT = "result"
STATES = ("failed", "succeeded")
GLOB = frozenset("*?[")

States = Callable[[], Mapping[str, str]]
"""How the last run of each pattern ended, by its name; asked for only if a selector needs it."""


class Patterns:
    """The patterns of a project by name. `rule`: the profile's `batches`."""

    def __init__(self, project: Project, rule: str | None = None) -> None:
        self.project = project
        self.rule = rule
        self.files = {path.stem: path for path in project.pattern_files()}

    @cached_property
    def read(self) -> Mapping[str, Pattern]:
        """Each pattern. Raises PatternErrors for a file that cannot be read: whether it is selected is not known."""
        patterns, errors = {}, []
        for name, path in self.files.items():
            pattern, mistakes = read_pattern(self.project.own(path))
            if pattern is None:
                errors += mistakes
            else:
                patterns[name] = pattern
        if errors:
            raise PatternErrors(errors)
        return patterns

    def select(self, words: Sequence[str], states: States = dict) -> list[str]:
        """The names (of files outside conf/patterns: the paths) that `words` select, each once: a pattern comes after
        those whose results it reads, else in the order of `words`. Raises ProjectError for a word that selects
        nothing, CycleError and PatternErrors."""
        selected: dict[str, None] = {}
        for word in words:
            names = self._of(word, states)
            if not names:
                raise ProjectError(f"'{word}' selects no pattern", hint=self._instead(word))
            selected |= dict.fromkeys(names)
        return self._in_order(list(selected))

    def batch(self, name: str) -> list[str]:
        """The members of the batch `name`. Raises ProjectError where there are none, PatternErrors where they do not
        share source and schedule."""
        batches = {member: batch_of(pattern, self.rule) for member, pattern in self.read.items()}
        members = [member for member, batch in batches.items() if batch == name]
        if not members:
            known = sorted({batch for batch in batches.values() if batch})
            raise ProjectError(f"there is no batch '{name}'", hint=did_you_mean(name, known))
        first = self.read[members[0]]
        mistakes = [error for member in members[1:] for error in differences(self.read[member], first, name)]
        if mistakes:
            raise PatternErrors(mistakes)
        return members

    def _of(self, word: str, states: States) -> list[str]:
        key, colon, value = word.partition(":")
        if word.endswith((".yaml", ".yml")):
            path = self.project.pattern_path(word)
            return [path.stem if self.files.get(path.stem, Path()).resolve() == path.resolve() else word]
        if not colon:
            return self._named(word)
        if key == RESULT:
            if value not in STATES:
                raise ProjectError(f"'{word}': expected {' or '.join(f'{RESULT}:{state}' for state in STATES)}")
            ended = states()
            return [name for name in self.files if ended.get(name) == value]
        if key not in (*KEYS, BATCH):
            known = (*KEYS, BATCH, RESULT)
            hint = did_you_mean(key, known) or f"known: {', '.join(f'{name}:' for name in known)}"
            raise ProjectError(f"there is no selector '{key}:'", hint=hint)
        if key == "source" and value.endswith("+"):
            return self._downstream(self._by("source", value[:-1]))
        return self._by(key, value)

    def _named(self, word: str) -> list[str]:
        if GLOB & set(word):
            return [name for name in self.files if fnmatchcase(name, word)]
        self.project.pattern_path(word)  # raises with a suggestion
        return [word]

    def _by(self, key: str, value: str) -> list[str]:
        return [
            name
            for name, pattern in self.read.items()
            if any(fnmatchcase(one, value) for one in self._values(key, pattern))
        ]

    def _values(self, key: str, pattern: Pattern) -> Sequence[str]:
        return (batch_of(pattern, self.rule) or "",) if key == BATCH else KEYS[key](pattern)

    def _downstream(self, names: Sequence[str]) -> list[str]:
        """`names`, and the patterns that read their results, at any distance."""
        reached = dict.fromkeys(names)
        queue = list(names)
        while queue:
            source = queue.pop()
            readers = [name for name, pattern in self.read.items() if source in map(upstream, pattern.tables_read)]
            queue += [name for name in readers if name not in reached]
            reached |= dict.fromkeys(readers)
        return list(reached)

    def _in_order(self, names: list[str]) -> list[str]:
        """Each pattern after those of `names` whose results it reads."""
        if len(names) < 2:
            return names
        above: dict[str, list[str]] = {}
        for name in names:
            pattern = read_pattern(self.project.pattern_path(name))[0]
            read = () if pattern is None else pattern.tables_read
            above[name] = [one for table in read if (one := upstream(table)) in names and one is not None]
        ordered: dict[str, None] = {}

        def place(name: str, chain: tuple[str, ...]) -> None:
            if name in chain:
                raise CycleError(f"patterns read each other's results: {' -> '.join([*chain, name])}")
            if name not in ordered:
                for other in above[name]:
                    place(other, (*chain, name))
                ordered[name] = None

        for name in names:
            place(name, ())
        return list(ordered)

    def _instead(self, word: str) -> str | None:
        key, colon, value = word.partition(":")
        if not colon or key == RESULT:
            return "see all with `trendlake ls`"
        known = sorted({one for pattern in self.read.values() for one in self._values(key, pattern) if one})
        return did_you_mean(value.removesuffix("+"), known) or "see all with `trendlake ls`"


def check_member(
    pattern: Pattern, files: Sequence[Path], read: Callable[[Path], Pattern | None], rule: str | None
) -> None:
    """Raises PatternErrors if the first of the other patterns of its batch, among `files`, has another source or
    schedule. `rule`: the profile's `batches`."""
    batch = batch_of(pattern, rule)
    if batch is None:
        return
    for path in files:
        other = read(path) if path.stem != pattern.name else None
        if other is not None and batch_of(other, rule) == batch:
            if mistakes := differences(pattern, other, batch):
                raise PatternErrors(mistakes)
            return
