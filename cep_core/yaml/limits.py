"""The limits of a YAML file: bounded in size, depth and repetition, and data only.

A file of a few hundred bytes can name itself, or one list a million times (aliases), or ask for objects (tags). These
are refused at their place, before anything is built of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import islice
from typing import Any, NamedTuple

from yaml import MarkedYAMLError, YAMLError
from yaml.events import AliasEvent, MappingEndEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent, StreamEndEvent

from trendlake.cep_core.yaml.parser import ONLY_PYTHON, CParser, PythonParser
from trendlake.cep_core.yaml.scalars import value_of

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

_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[-+]?[0-9][0-9_.:xXoOa-fA-F]+")
_ENDS_OF_NAMES = ("", " ", "\r", "\n", ",", "]", "}")
_BREAKS_OF_1_1 = "\x85\u2028\u2029"
"""Ends of lines in YAML 1.1, characters as others in YAML 1.2."""


class Node(NamedTuple):
    """A value, the line and column (from 0) where it begins, and the places of what it holds.

    `inner`: of a mapping, (line and column of the key, line and column of the value, its own `inner`) by key; of a
    list, (line, column, `inner`) of each item; None of a scalar.
    """

    value: Any
    mark: Any
    inner: Any
    is_merge: bool = False


def unreadable_character(text: str) -> str | None:
    """The fault of a text that no table, page or log can hold; None if it has none."""
    if "\x00" in text:
        return "a NUL character"
    if _SURROGATE.search(text):
        return "half of a surrogate pair: no character of Unicode"
    return None


def composed(text: str) -> Node:
    """The document in a text, held to the limits of this module. Raises YAMLError, ValueError."""
    if CParser is not None and not ONLY_PYTHON.search(text):
        try:
            return by_c(text)
        except (YAMLError, ValueError):
            pass  # the Python parser reads it, or says why not
    return by_python(text)


def by_c(text: str) -> Node:
    """As `composed`, by the C parser alone: for texts that are not ONLY_PYTHON. Also refuses what it might misread."""
    return _PlainComposer(text).document()


def by_python(text: str) -> Node:
    """As `composed`, without the C parser."""
    if any(char in text for char in _BREAKS_OF_1_1):
        spare = "".join(islice((char for char in map(chr, range(0xE000, 0xF900)) if char not in text), 3))
        back = str.maketrans(spare, _BREAKS_OF_1_1)
        parser = PythonParser(text.translate(str.maketrans(_BREAKS_OF_1_1, spare)))
        return _Composer(parser.get_event, lambda value: value.translate(back)).document()
    return _Composer(PythonParser(text).get_event).document()


class _Composer:
    """Makes values of events, and counts them; an alias counts as all that it repeats."""

    def __init__(self, next_event: Callable[[], Any], text_of: Callable[[str], str] = str) -> None:
        self.next_event = next_event
        self.text_of = text_of
        self.nodes = self.depth = 0
        self.anchors: dict[str, Node | None] = {}
        self.sizes: dict[str, int] = {}
        self.open: set[str] = set()
        self.mistake: MarkedYAMLError | None = None

    def document(self) -> Node:
        """The one document; raises what is wrong with the text first, then with a value."""
        self.next_event()
        event = self.next_event()
        if isinstance(event, StreamEndEvent):
            return Node(None, event.start_mark, None)
        if event.version is not None and event.version != (1, 2):
            raise _refused("files are read as YAML 1.2: delete the line %YAML, or write %YAML 1.2", event.start_mark)
        node = self.node(self.next_event())
        self.next_event()
        event = self.next_event()
        if not isinstance(event, StreamEndEvent):
            raise _refused("but found another document", event.start_mark)
        if self.mistake is not None:
            raise self.mistake
        return node

    def node(self, event: Any) -> Node:
        anchor, before, mark = event.anchor, self.nodes, event.start_mark
        if isinstance(event, AliasEvent):
            return self.alias(anchor, mark)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _refused(f"more than {MAX_NODES:,} values in one file", mark)
        if self.depth >= MAX_DEPTH:
            raise _refused(f"nested deeper than {MAX_DEPTH}", mark)
        if event.tag is not None:
            raise _refused(f"the tag '{event.tag}': values are written plainly, without tags", mark)
        if anchor is not None:
            self.open.add(anchor)
        self.depth += 1
        if isinstance(event, ScalarEvent):
            node = self.scalar(event, mark)
        elif isinstance(event, SequenceStartEvent):
            node = self.sequence(event)
        else:
            node = self.mapping(event)
        self.depth -= 1
        if anchor is not None:
            self.open.discard(anchor)
            self.sizes[anchor] = self.nodes - before
            self.anchors[anchor] = node
        return node

    def alias(self, anchor: str, mark: Any) -> Node:
        if anchor in self.open:
            raise _refused(f"the alias '{anchor}' stands within what it names", mark)
        self.nodes += self.sizes.get(anchor, 1)
        if self.nodes > MAX_NODES:
            raise _refused(f"more than {MAX_NODES:,} values in one file", mark)
        node = self.anchors.get(anchor)
        if node is None:
            raise _refused(f"found undefined alias {anchor!r}", mark)
        return node

    def scalar(self, event: Any, mark: Any) -> Node:
        text = event.value
        if (problem := unreadable_character(text)) is not None:
            raise _refused(problem, mark)
        if not event.implicit[0]:
            return Node(self.text_of(text), mark, None)
        if len(text) > MAX_DIGITS and not event.style and _NUMBER.fullmatch(text):
            raise _refused(f"a number of more than {MAX_DIGITS} digits", mark)
        try:
            return Node(value_of(self.text_of(text)), mark, None, text == "<<" and not event.style)
        except (ValueError, OverflowError) as error:
            self.note(f"not a value: {error}", mark)
            return Node(text, mark, None)

    def sequence(self, start: Any) -> Node:
        values, places = [], []
        while not isinstance(event := self.next_event(), SequenceEndEvent):
            value, at, inner, _ = self.node(event)
            values.append(value)
            places.append((at.line, at.column, inner))
        return Node(values, start.start_mark, places)

    def mapping(self, start: Any) -> Node:
        values: dict[Any, Any] = {}
        places: dict[Any, Any] = {}
        refused: MarkedYAMLError | None = None
        while not isinstance(event := self.next_event(), MappingEndEvent):
            key, at, within, is_merge = self.node(event)
            value, begin, inner, _ = self.node(self.next_event())
            if within is not None:
                refused = refused or _refused("a key is a word, not a list or a mapping", at)
            elif is_merge:
                # YAML 1.2 has no merge keys, and what they bring in stands nowhere in its mapping: no place to name
                refused = refused or _refused("a merge key (<<): write the keys out where they belong", at)
            elif key in values:
                problem = f'found duplicate key "{key}" with value "{value}" (original value: "{values[key]}")'
                self.note(problem, at)
            else:
                values[key] = value
                places[key] = ((at.line, at.column), (begin.line, begin.column), inner)
        if refused is not None:
            raise refused
        return Node(values, start.start_mark, places)

    def note(self, problem: str, mark: Any) -> None:
        """A mistake in a value, which counts if the text has none."""
        self.mistake = self.mistake or _refused(problem, mark)


class _PlainComposer(_Composer):
    """Gives up where the C parser reads names, or sees places, in its own way."""

    def __init__(self, text: str) -> None:
        super().__init__(CParser(text).get_event)
        self.text = text
        self.in_brackets = False

    def node(self, event: Any) -> Node:
        index, around = event.start_mark.index, self.in_brackets
        if (
            event.anchor is not None
            and self.text[(end := index + 1 + len(event.anchor)) : end + 1] not in _ENDS_OF_NAMES
        ):
            raise _refused("a name with other characters", event.start_mark)
        if around and self.text[index - 1 : index] == ":":
            raise _refused("a value without a space before it", event.start_mark)
        if around and isinstance(event, ScalarEvent) and not (event.value or event.style):
            raise _refused("a value left out", event.start_mark)
        self.in_brackets = around or getattr(event, "flow_style", False)
        node = super().node(event)
        self.in_brackets = around
        return node


def _refused(problem: str, mark: Any) -> MarkedYAMLError:
    return MarkedYAMLError(None, None, problem, mark)
