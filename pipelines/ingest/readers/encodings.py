"""The bytes of an XML file as UTF-8, by the encoding that it declares: a byte order mark, else its declaration, else
UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import IO

from trendlake.pipelines.errors import SourceFileError

CHUNK = 1 << 16
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0?\0", "utf-16-le"),
    (b"\0<\0?", "utf-16-be"),
)
_SPACE = rb"[ \t\r\n]"
_DECLARED = re.compile(
    rb"<\?xml"
    + _SPACE
    + rb"+version"
    + _SPACE
    + rb"*="
    + _SPACE
    + rb"*[\"'][^\"'<>]*[\"']"
    + _SPACE
    + rb"+encoding"
    + _SPACE
    + rb"*="
    + _SPACE
    + rb"*[\"']([A-Za-z][A-Za-z0-9._-]*)[\"']"
)
_TEXTS = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|mac-\w+|shift_jis\w*|euc_\w+|gb\w+|big5\w*|iso2022_\w+|hz|johab|tis-620"
)
"""Python's names of encodings of texts that have ASCII's characters in ASCII's bytes. Others are not for texts, or need
a byte order mark."""


def as_utf8(file: IO[bytes], name: str) -> Iterator[bytes]:
    """The file in pieces. Raises SourceFileError: an unknown encoding, or bytes that are none of its characters."""
    head = file.read(CHUNK)
    while len(head) < CHUNK and (more := file.read(CHUNK - len(head))):
        head += more
    decoder = codecs.getincrementaldecoder(_encoding(head, name))()
    line, piece = 1, head
    while True:
        try:
            text = decoder.decode(piece, final=not piece)
        except UnicodeError as error:
            reason = getattr(error, "reason", str(error))
            before = piece[: getattr(error, "start", 0)].count(b"\n")
            message = f"{name}: xml_not_well_formed, line {line + before}: its bytes are no text ({reason})"
            raise SourceFileError(message, hint="save it in the encoding that it declares") from None
        line += text.count("\n")
        yield text.encode("utf-8", "surrogatepass")
        if not piece:
            return
        piece = file.read(CHUNK)


def _encoding(head: bytes, name: str) -> str:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    declared = _DECLARED.match(head)
    if declared is None:
        return "utf-8"
    text = declared[1].decode("ascii")
    try:
        encoding = codecs.lookup(text).name
    except LookupError:
        encoding = ""
    if not _TEXTS.fullmatch(encoding):
        hint = "save it as UTF-8"
        raise SourceFileError(f"{name}: it declares the encoding '{text}', which it is not read in", hint=hint)
    return encoding
