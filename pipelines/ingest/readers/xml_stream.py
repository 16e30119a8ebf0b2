"""The documents of an XML file, read as a stream: each element that `documentPath` names, as a text of its own.

Nothing is fetched, and no entity but the predefined five. The limits of libxml2, 256 elements within one another and
ten million bytes of one text, apply to the whole file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from lxml import etree

from trendlake.cep_core.documents.document import DOCTYPE, HARDENED, NOT_WELL_FORMED, TOO_DEEP, TOO_LARGE, prolog_of
from trendlake.cep_core.documents.paths import Path as XmlPath
from trendlake.cep_core.documents.predicates import normalised, selector, string_value
from trendlake.pipelines.contracts.document_paths import DocumentPaths
from trendlake.pipelines.errors import SourceFileError

MOST_PROLOG = 1 << 20
"""Bytes before the root."""
MOST_OF_DOCUMENT = 64 << 20
"""Bytes of a file for one document, which is kept in memory as a tree: one that is larger as text than 8 MiB goes to
quarantine, one that takes more than this is not read."""


@dataclass(frozen=True)
class XmlDocument:
    """`line`: where it begins in the file. `id`, `time`: as texts, None where the path selects no node with a text."""

    line: int
    text: str
    id: str | None
    time: str | None


def documents_of(pieces: Iterable[bytes], paths: DocumentPaths, name: str) -> Iterator[XmlDocument]:
    """The documents of a file in UTF-8. Raises SourceFileError with line and column where the file breaks: what came
    before is no whole file then."""
    parser = etree.XMLPullParser(events=("start", "end"), **HARDENED)
    cutter = _Cutter(paths, name)
    try:
        for piece in _without_doctype(pieces, name):
            cutter.bytes += len(piece)
            parser.feed(piece)
            yield from cutter.cut(parser.read_events())
        parser.close()
        yield from cutter.cut(parser.read_events())
    except etree.XMLSyntaxError as error:
        raise _broken(error, name) from None


def _without_doctype(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The pieces, once the root has begun. Raises SourceFileError for a DOCTYPE before it."""
    held, begun = b"", False
    for piece in pieces:
        if begun:
            yield piece
            continue
        held += piece
        before = prolog_of(held)
        rest = held[len(before) : len(before) + 9]
        if rest == b"<!DOCTYPE":
            line = before.count(b"\n") + 1
            hint = "remove it; the five predefined entities need none"
            raise SourceFileError(f"{name}: {DOCTYPE}, line {line}: it has a DOCTYPE", hint=hint)
        if len(rest) == 9 or (len(rest) > 1 and rest[1:2] not in b"!?"):
            begun = True
            yield held
        elif len(held) > MOST_PROLOG:
            raise SourceFileError(f"{name}: {TOO_LARGE}: more than {MOST_PROLOG:,} bytes before its root element")
    if not begun:
        yield held


def _broken(error: etree.XMLSyntaxError, name: str) -> SourceFileError:
    line, column = error.position
    message = str(error.msg).partition(", line ")[0] if error.msg else "it is empty"
    rule = NOT_WELL_FORMED
    if "depth" in message.lower() and "huge" in message.lower():
        rule, message = TOO_DEEP, "more than 256 elements within one another"
    elif "huge" in message.lower():
        rule = TOO_LARGE
    where = f"line {line}, column {column}"
    return SourceFileError(f"{name}: {rule}, {where}: {message}", hint="nothing of the file was ingested")


class _Cutter:
    """Takes the events of a parser; `bytes`: fed so far."""

    def __init__(self, paths: DocumentPaths, name: str) -> None:
        self.name, self.bytes = name, 0
        self.steps = paths.document.steps
        self.id, self.time = _value_of(paths.id), _value_of(paths.time)
        self.states: list[frozenset[int]] = [frozenset({0})]
        self.document: Any = None
        self.begun_at = 0

    def cut(self, events: Iterable[tuple[str, Any]]) -> Iterator[XmlDocument]:
        for event, element in events:
            if event == "start":
                self._start(element)
            elif element is self.document:
                self.document = None
                self.states.pop()
                text = etree.tostring(element, encoding="unicode", with_tail=False)
                yield XmlDocument(element.sourceline, text, self.id(element), self.time(element))
                _forget(element)
            elif self.document is None:
                self.states.pop()
                _forget(element)
        if self.document is not None and self.bytes - self.begun_at > MOST_OF_DOCUMENT:
            line = self.document.sourceline
            message = f"{TOO_LARGE}, line {line}: a document takes more than {MOST_OF_DOCUMENT:,} bytes"
            raise SourceFileError(f"{self.name}: {message}", hint="let documentPath name smaller elements")

    def _start(self, element: Any) -> None:
        """Follows the path down to the elements that it names; the outermost of them are the documents."""
        if self.document is not None:
            return
        reached: set[int] = set()
        for state in self.states[-1]:
            if state < len(self.steps):
                step = self.steps[state]
                if step.name.holds(element.tag):
                    reached.add(state + 1)
                if step.axis == "//":
                    reached.add(state)
        self.states.append(frozenset(reached))
        if len(self.steps) in reached or not self.steps:
            self.document, self.begun_at = element, self.bytes


def _value_of(path: XmlPath | None) -> Any:
    """The function from an element to the text of the first node of a path, without space around it."""
    if path is None:
        return lambda element: None
    select = selector(path)

    def value(element: Any) -> str | None:
        node = next(select(element), None)
        return None if node is None else normalised(string_value(node)) or None

    return value


def _forget(element: Any) -> None:
    """Frees an element that is over, and those before it."""
    element.clear(keep_tail=False)
    parent = element.getparent()
    while parent is not None and element.getprevious() is not None:
        del parent[0]
