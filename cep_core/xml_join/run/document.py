"""A text as an XML document, or the rule that it breaks. Nothing is fetched, and no entity but the predefined five.

libxml2 limits by itself: 256 elements within one another, and ten million bytes of one text.
"""

from __future__ import annotations

import re
from typing import Any

from lxml import etree

MAX_BYTES = 8 * 1024 * 1024
"""Bytes of a document as UTF-8."""
MAX_DEPTH = 256
"""Elements within one another."""

TOO_LARGE, DOCTYPE, TOO_DEEP = "xml_too_large", "xml_doctype", "xml_too_deep"
NOT_WELL_FORMED = "xml_not_well_formed"
RULES = (TOO_LARGE, DOCTYPE, TOO_DEEP, NOT_WELL_FORMED)
"""Rules of documents, as quarantine names them."""

_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t\r\n]+|<!--.*?-->|<\?.*?\?>)*(?=<!DOCTYPE)", re.DOTALL)
_HARMLESS = frozenset({"WAR_NS_URI", "DTD_XMLID_VALUE"})
"""Errors of libxml2 that break no rule of XML or of its namespaces: a namespace that is no URI, an xml:id that is no
name."""


class BrokenDocumentError(Exception):
    """A document that breaks a rule: `rule` is one of RULES."""

    def __init__(self, rule: str, detail: str = "") -> None:
        super().__init__(f"{rule}: {detail}" if detail else rule)
        self.rule, self.detail = rule, detail


def _parser(recover: bool = False) -> etree.XMLParser:
    """Comments and processing instructions are left out, so that the text around them is one."""
    return etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
        recover=recover,
    )


class Reader:
    """Parses documents, one after the other."""

    def __init__(self) -> None:
        self.parser = _parser()

    def root(self, text: str) -> Any:
        """The root element. Raises BrokenDocumentError with the one rule that it breaks: size, else what is met first,
        read from the start."""
        raw = text.encode("utf-8")
        if len(raw) > MAX_BYTES:
            raise BrokenDocumentError(TOO_LARGE, f"{len(raw):,} bytes")
        if b"<!DOCTYPE" in raw:
            self._doctype(raw)
        try:
            return etree.fromstring(raw, self.parser)
        except etree.XMLSyntaxError:
            return self._despite(raw)

    def _doctype(self, raw: bytes) -> None:
        """Raises for a DOCTYPE in the prolog, unless something before it is not well-formed."""
        prolog = _PROLOG.match(raw)
        if prolog is None:
            return
        try:
            etree.fromstring(prolog[0] + b"<a/>", self.parser)
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
