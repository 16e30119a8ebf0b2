"""The events of a YAML text, by PyYAML: its C parser for most texts, its Python one for the rest and for errors.

Both follow YAML 1.1, in which a few texts mean something else than in YAML 1.2. The Python parser is brought to 1.2
here; texts in which the two may differ (`ONLY_PYTHON`) do not go to the C parser. The Python parser reads a text again
that the C parser refuses: so errors, and all else that a reader sees, are the same on machines that have no C parser.
"""

from __future__ import annotations

import re
from typing import Any

from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner, ScannerError
from yaml.tokens import FlowMappingStartToken, ValueToken

try:
    from yaml.cyaml import CParser
except ImportError:  # PyYAML was built without libyaml
    CParser = None

__all__ = ["ONLY_PYTHON", "CParser", "PythonParser"]

ONLY_PYTHON = re.compile(  # each part begins with a letter, so that the search is quick
    "\t|\x85|\u2028|\u2029|\ufeff"  # space, end of line or no character
    r"|%(?<=^%)|\.(?<=^\.)\.\."  # a directive, an end of document
    r"|\?(?<![^\s\[{,:]\?)"  # the sign of a key
    r"|\|[-+0-9]*#|>[-+0-9]*#",  # a comment behind the sign of a block of text, without a space
    re.MULTILINE,
)
"""Texts that the C parser may read in another way."""
_ENDS = "\0 \t\r\n"


class PythonParser(Reader, Scanner, Parser):  # type: ignore[misc]
    """PyYAML's parser in Python, brought to YAML 1.2."""

    def __init__(self, text: str) -> None:
        self.in_mapping: list[bool] = []
        """Of each [ and { that is open, whether it is a {."""
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)

    def fetch_flow_collection_start(self, token: Any) -> None:
        Scanner.fetch_flow_collection_start(self, token)
        self.in_mapping.append(token is FlowMappingStartToken)

    def fetch_flow_collection_end(self, token: Any) -> None:
        Scanner.fetch_flow_collection_end(self, token)
        del self.in_mapping[-1:]
        self.flow_level = len(self.in_mapping)

    def scan_to_next_token(self) -> None:
        """Tabs separate items of [...] and {...}, and may end a line; elsewhere they look like spaces: an error."""
        Scanner.scan_to_next_token(self)
        while self.peek() == "\t":
            length = 1
            while self.peek(length) in " \t":
                length += 1
            if not self.in_mapping and self.peek(length) not in "\0\r\n#":
                return
            self.forward(length)
            Scanner.scan_to_next_token(self)

    def check_value(self) -> bool:
        """A colon needs a space behind it, but for that of a key in quotes within {...}."""
        if self.peek(1) in _ENDS:
            return True
        return self.in_mapping[-1:] == [True] and not (self.tokens and isinstance(self.tokens[-1], ValueToken))

    def check_plain(self) -> bool:
        return Scanner.check_plain(self) or (bool(self.in_mapping) and self.peek() == ":" and self.peek(1) not in _ENDS)

    def scan_plain(self) -> Any:
        """A `?`, and a `:` with no space behind it, are part of a text: in 1.1 they end it within [...] and {...}."""
        if not self.in_mapping:
            return Scanner.scan_plain(self)

        def peek(index: int = 0) -> str:
            char: str = Reader.peek(self, index)
            return "x" if char == "?" or (char == ":" and Reader.peek(self, index + 1) not in _ENDS) else char

        self.peek = peek
        try:
            return Scanner.scan_plain(self)
        finally:
            del self.peek

    def scan_anchor(self, token: Any) -> Any:
        """A name of any characters but those that end it."""
        start = self.get_mark()
        self.forward()
        length = 0
        while self.peek(length) not in _ENDS + ",[]{}":
            length += 1
        if not length:
            problem = f"expected alphabetic or numeric character, but found {self.peek()!r}"
            raise ScannerError(None, None, problem, self.get_mark())
        name = self.prefix(length)
        self.forward(length)
        return token(name, start, self.get_mark())

    def parse_document_end(self) -> Any:
        """Another document may follow `...` without `---`."""
        event = Parser.parse_document_end(self)
        if event.explicit:
            self.state = self.parse_implicit_document_start
        return event
