"""What a YAML file may ask of the one who reads it: bounded in size, depth and repetition, and data only.

A file of a few hundred bytes can name itself, or one list a million times (aliases), or ask for objects (tags). These
are refused where they stand, before anything is built of them.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor
from ruamel.yaml.events import AliasEvent, ScalarEvent

MAX_FILE = 250_000
"""Bytes of one file."""
MAX_DEPTH = 50
"""Lists and mappings within one another."""
MAX_NODES = 20_000
"""Values, keys, lists and mappings of a file, those that aliases repeat counted each time."""
MAX_GIVEN = 2_000_000
"""The same of a query that a program gives as a mapping: it holds these in memory already, and may well replace an arc
ten thousand times."""
MAX_DIGITS = 400
"""Characters of a number: a double has no more digits before its point."""

_NUMBER = re.compile(r"[-+]?[0-9][0-9_.:xXoOa-fA-F]+")


def bounded(yaml: YAML) -> YAML:
    """The reader, held to the limits of this module. What is beyond them raises ruamel's MarkedYAMLError."""
    yaml.max_depth = MAX_DEPTH
    yaml.Composer = _Composer
    yaml.Constructor = _Constructor
    return yaml


def unreadable_character(text: str) -> str | None:
    """What is wrong with a text that no table, page or log can hold; None where nothing is."""
    if "\x00" in text:
        return "a NUL character"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return "half of a surrogate pair: no character of Unicode"
    return None


class _Composer(Composer):
    """Counts what is composed; an alias counts as all that it repeats."""

    def __init__(self, loader: Any = None) -> None:
        super().__init__(loader=loader)
        self.nodes = 0
        self.open: set[str] = set()
        self.sizes: dict[str, int] = {}

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        anchor, before = event.anchor, self.nodes
        alias = isinstance(event, AliasEvent)
        if alias and anchor in self.open:
            raise _refused(f"the alias '{anchor}' stands within what it names", event)
        self.nodes += self.sizes.get(anchor, 1) if alias else 1
        if self.nodes > MAX_NODES:
            raise _refused(f"more than {MAX_NODES:,} values in one file", event)
        if not alias:
            if self.depth >= MAX_DEPTH:
                raise _refused(f"nested deeper than {MAX_DEPTH}", event)
            _check(event)
            if anchor is not None:
                self.open.add(anchor)
        node = super().compose_node(parent, index)
        if anchor is not None and not alias:
            self.open.discard(anchor)
            self.sizes[anchor] = self.nodes - before
        return node

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            if not isinstance(key.value, str):
                raise ComposerError(None, None, "a key is a word, not a list or a mapping", key.start_mark)
            if key.value == "<<" and key.style is None:
                # YAML 1.2 has no merge keys, and what they bring in stands nowhere in its mapping: no place to name
                problem = "a merge key (<<): write the keys out where they belong"
                raise ComposerError(None, None, problem, key.start_mark)
        return node


def _check(event: Any) -> None:
    if event.ctag is not None and str(event.ctag) != "!":
        raise _refused(f"the tag '{event.ctag}': values are written plainly, without tags", event)
    if not isinstance(event, ScalarEvent):
        return
    if (problem := unreadable_character(event.value)) is not None:
        raise _refused(problem, event)
    if len(event.value) > MAX_DIGITS and event.style is None and _NUMBER.fullmatch(event.value):
        raise _refused(f"a number of more than {MAX_DIGITS} digits", event)


def _refused(problem: str, event: Any) -> ComposerError:
    return ComposerError(None, None, problem, event.start_mark)


class _Constructor(RoundTripConstructor):
    """Tells where a value stands that is none, such as the 30th of February."""

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError) as error:
            raise ConstructorError(None, None, f"not a value: {error}", node.start_mark) from None
