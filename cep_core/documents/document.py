"""A text as an XML document, or the rule that it breaks. Nothing is fetched, and no entity but the predefined five.

libxml2 limits by itself: 256 elements within one another, and ten million bytes of one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from lxml import etree

MAX_BYTES = 8 * 1024 * 1024
"""Bytes of a document as UTF-8."""
MAX_DEPTH = 256
"""Elements within one another."""

TOO_LARGE, DOCTYPE, TOO_DEEP = "xml_too_large", "xml_doctype", "xml_too_deep"
NOT_WELL_FORMED = "xml_not_well_formed"
RULES = (TOO_LARGE, DOCTYPE, TOO_DEEP, NOT_WELL_FORMED)
"""Rules of documents, as quarantine names them."""

_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?+(?>[ \t\r\n]++|<!--.*?-->|<\?.*?\?>)*+", re.DOTALL)
"""The text that may come before a DOCTYPE or the root. Possessive: a text is tried in one way, of 2^n."""
_DOCTYPE = b"<!DOCTYPE"
_HARMLESS = frozenset({"WAR_NS_URI", "DTD_XMLID_VALUE"})
"""Errors of libxml2 that break no rule of XML or of its namespaces: a namespace that is no URI, an xml:id that is no
name."""


class BrokenDocumentError(Exception):
    """A document that breaks a rule: `rule` is one of RULES."""

    def __init__(self, rule: str, detail: str = "") -> None:
        super().__init__(f"{rule}: {detail}" if detail else rule)
        self.rule, self.detail = rule, detail


def prolog_of(raw: bytes) -> bytes:
    """The text before a DOCTYPE or the root of a document, or the whole comments and instructions of it so far."""
    prolog = _PROLOG.match(raw)
    return prolog[0] if prolog is not None else b""


HARDENED: Mapping[str, Any] = {
    "encoding": "utf-8",
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": False,
    "remove_comments": True,
    "remove_pis": True,
    "strip_cdata": True,
}
"""Options of lxml's parsers, which are given UTF-8. Comments and processing instructions are left out, so that the text
around them is one."""


def _parser(recover: bool = False) -> etree.XMLParser:
    return etree.XMLParser(**HARDENED, recover=recover)


class Reader:
    """Parses documents, one after the other."""

    def __init__(self) -> None:
        self.parser = _parser()

    def root(self, text: str | bytes) -> Any:
        """The root element of a text, or of bytes that should be one in UTF-8. Raises BrokenDocumentError with the one
        rule that it breaks: size, else what is met first, read from the start."""
        raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if len(raw) > MAX_BYTES:
            raise BrokenDocumentError(TOO_LARGE, f"{len(raw):,} bytes")
        if _DOCTYPE in raw:
            self._doctype(raw)
        try:
            return etree.fromstring(raw, self.parser)
        except etree.XMLSyntaxError:
            return self._despite(raw)

    def _doctype(self, raw: bytes) -> None:
        """Raises for a DOCTYPE in the prolog, unless something before it is not well-formed."""
        prolog = prolog_of(raw)
        if not raw.startswith(_DOCTYPE, len(prolog)):
            return
        try:
            etree.fromstring(prolog + b"<a/>", self.parser)
        except etree.XMLSyntaxError as error:
            raise BrokenDocumentError(NOT_WELL_FORMED, str(error)) from None
        raise BrokenDocumentError(DOCTYPE)

    def _despite(self, raw: bytes) -> Any:
        """The root of a document about which libxml2 has complained, where that breaks no rule."""
        log, self.parser = self.parser.error_log, _parser()
        errors = [entry for entry in log if entry.level_name != "WARNING" and entry.type_name not in _HARMLESS]
        if errors or not len(log):
            first = errors[0] if errors else None
            if first is not None and first.type_name == "ERR_RESOURCE_LIMIT" and "depth" in first.message.lower():
                raise BrokenDocumentError(TOO_DEEP)
            detail = f"line {first.line}, column {first.column}: {first.message}" if first is not None else ""
            raise BrokenDocumentError(NOT_WELL_FORMED, detail)
        return etree.fromstring(raw, _parser(recover=True))


def broken_rules(texts: pa.Array | pa.ChunkedArray) -> pa.Array:
    """For each text the rule that it breaks as a document, NULL for none and for a NULL."""
    reader, rules = Reader(), list[str | None]()
    for raw in bytes_of(texts):
        rules.append(None if raw is None else _broken(reader, raw))
    return pa.array(rules, pa.string())


def bytes_of(texts: pa.Array | pa.ChunkedArray) -> list[bytes | None]:
    """Texts as their bytes. Nothing that writes tables has to see to it that these are UTF-8, and Python's texts are
    refused then."""
    large = pa.types.is_large_string(texts.type)
    raws: list[bytes | None] = texts.cast(pa.large_binary() if large else pa.binary()).to_pylist()
    return raws


def _broken(reader: Reader, raw: bytes) -> str | None:
    try:
        reader.root(raw)
    except BrokenDocumentError as error:
        return error.rule
    return None
