"""Documents by expat, the parser of the standard library: elements numbered as they begin."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

GAP = "\x01"
"""Between namespace and local name, as expat is asked to write them."""


@dataclass(eq=False)
class Element:
    """`name`: (namespace, local); `content`: texts and elements in order; `attributes`: (namespace, local) to value."""

    number: int
    name: tuple[str, str]
    attributes: dict[tuple[str, str], str]
    content: list[Any] = field(default_factory=list)

    @property
    def children(self) -> list[Element]:
        return [one for one in self.content if isinstance(one, Element)]

    @property
    def descendants(self) -> list[Element]:
        return [node for child in self.children for node in (child, *child.descendants)]

    @property
    def text(self) -> str:
        return "".join(one.text if isinstance(one, Element) else one for one in self.content)


class BrokenError(Exception):
    """Its argument is the rule."""


def _name(text: str) -> tuple[str, str]:
    uri, gap, local = text.rpartition(GAP)
    return (uri, local) if gap else ("", text)


def parse(text: str) -> Element:
    """The root. Raises BrokenError for what is met first."""
    raw = text.encode()
    if len(raw) > 8 * 2**20:
        raise BrokenError("xml_too_large")
    parser = expat.ParserCreate(encoding="utf-8", namespace_separator=GAP)
    top: list[Element] = []
    open_: list[Element] = []
    count = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal count
        if len(open_) == 256:
            raise BrokenError("xml_too_deep")
        element = Element(count, _name(name), {_name(key): value for key, value in attributes.items()})
        count += 1
        (open_[-1].content if open_ else top).append(element)
        open_.append(element)

    def doctype(*_: Any) -> None:
        raise BrokenError("xml_doctype")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda name: open_.pop()
    parser.CharacterDataHandler = lambda data: open_[-1].content.append(data)
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(raw, True)
    except expat.ExpatError as error:
        raise BrokenError("xml_not_well_formed") from error
    return top[0]


def broken_rule(text: str) -> str | None:
    """The rule that a document breaks."""
    try:
        parse(text)
    except BrokenError as error:
        return str(error)
    return None
