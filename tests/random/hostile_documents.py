"""XML documents as an attacker or a broken program may leave them (`tests.random.fuzz_documents` judges them)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from trendlake.cep_core.documents.document import MAX_BYTES

PARTS = (
    *("<a x='1'>", "</a>", "<b>", "</b>", "<c y='1' x='2'/>", "t", "&#65;", "&lt;", "<!-- c -->", "<?p i?>"),
    *("<![CDATA[<]]>", " ", "<n:a xmlns:n='u' n:x='1'>", "</n:a>", "é", "\U0001f600", "<x xml:space='preserve'/>"),
)
SPOILS: tuple[bytes, ...] = (
    *(b"<", b">", b"&", b"\x00", b"\x1f", b"]]>", b"<!DOCTYPE r>", b"<!doctype r>", b"<!ENTITY", b"&bomb;", b"<a"),
    *(b"<?xml?>", b"<?xml version='1.0'?>", b"<?xml version='1.1'?>", b"&#0;", b"&#xD800;", b"&#x110000;", b"&#xFFFE;"),
    *(b"&#99999999999999999999;", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"),
    *(b"\xef\xbb\xbf", b"\xfe\xff", b"\xef\xbf\xbe", b"\xc2\x85", b"<![CDATA[", b"<!--", b"--", b"<?", b"'", b'"'),
    *(b"=", b"/", b"xmlns:xml='u'", b"<a xmlns:xmlns='u'/>", b"<a xmlns:n=''/>", b"<a x='1' x='2'/>", b"<:/>", b"<1/>"),
    *(b"<a xmlns='\x01'/>", b"<a:b:c/>"),
)
ENCODINGS = (
    "utf-8",
    "utf-16",
    "utf-16-le",
    "utf-32",
    "latin-1",
    "cp037",
    "utf-7",
    "shift_jis",
    "hz",
    "rot13",
    "idna",
    "x",
)


def good(r: Random) -> str:
    """A document, or nearly."""
    return f"<r x='{r.randrange(3)}'>{''.join(r.choices(PARTS, k=r.randrange(6)))}</r>"


def bomb(r: Random, _port: int) -> bytes:
    """Entities within entities, or one long one many times; some parameter entities."""
    fan, levels = r.choice((2, 10, 100)), r.randrange(1, 12)
    if r.random() < 0.3:
        return f"<!DOCTYPE r [<!ENTITY e0 '{'x' * 50_000}'>]><r>{'&e0;' * 1_000}</r>".encode()
    mark = r.choice("&&%")
    names = [f"<!ENTITY {'% ' if mark == '%' else ''}e0 'ha'>"]
    names += [f"<!ENTITY e{n} '{f'{mark}e{n - 1};' * fan}'>" for n in range(1, levels + 1)]
    return f"{r.choice(('', '<!-- -->', ' ' * 99))}<!DOCTYPE r [{''.join(names)}]><r>&e{levels};</r>".encode()


def outside(r: Random, port: int) -> bytes:
    """Asks for a file or an address: of a DTD, an entity, an inclusion, a style, a schema."""
    address = r.choice(
        (f"http://127.0.0.1:{port}/x", "file:///etc/passwd", f"ftp://127.0.0.1:{port}/x", "/etc/hostname")
    )
    return r.choice(
        (
            f"<!DOCTYPE r SYSTEM '{address}'><r/>",
            f"<!DOCTYPE r PUBLIC '-//W3C//DTD XHTML 1.0//EN' '{address}'><r/>",
            f"<!DOCTYPE r [<!ENTITY e SYSTEM '{address}'>]><r>&e;</r>",
            f"<!DOCTYPE r [<!ENTITY % e SYSTEM '{address}'> %e;]><r/>",
            f"<r xmlns:xi='http://www.w3.org/2001/XInclude'><xi:include href='{address}' parse='text'/></r>",
            f"<?xml-stylesheet href='{address}' type='text/xsl'?><r/>",
            f"<r xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance' xsi:schemaLocation='u {address}'/>",
            f"<r xml:base='{address}' xmlns='{address}'><a href='{address}'/></r>",
        )
    ).encode()


def deep(r: Random, _port: int) -> bytes:
    """Around 256 elements within one another, or thousands."""
    depth = r.choice((255, 256, 257, 258, 1_000, 20_000))
    return (r.choice(("<a>", "<n:a xmlns:n='u'>")) * depth + r.choice(("", "</a>" * depth, "x"))).encode()


def wide(r: Random, _port: int) -> bytes:
    """Long names, texts, attributes, comments, many of each; now and then about as long as is allowed."""
    size = r.choice((1_000, 50_001, 70_000))
    if r.random() < 0.02:
        size = MAX_BYTES + r.choice((-20, -7, 0, 1))
    filler = "x" * size
    many = min(size, 20_000) // 10
    return r.choice(
        (
            lambda: f"<{filler}/>",
            lambda: f"<r>{filler}</r>",
            lambda: f"<r a='{filler}'/>",
            lambda: f"<!--{filler}--><r/>",
            lambda: f"<?p {filler}?><r/>",
            lambda: f"<r xmlns='{filler}'/>",
            lambda: f"<r>&#{filler.replace('x', '1')};</r>",
            lambda: "<r " + " ".join(f"a{n}='1'" for n in range(many)) + "/>",
            lambda: "<r " + " ".join(f"xmlns:n{n}='u{n}'" for n in range(many)) + "/>",
            lambda: f"<r>{'<a/>' * many}</r>",
            lambda: f"<r>{'<!-- -->' * many}</r>",
            lambda: f"{'<!-- -->' * many}<!DOCTYPE r><r/>",
            lambda: f"{'<?p?> ' * many}",
            lambda: f"<r>{'&amp;&#65;' * many}</r>",
            lambda: f"<r><![CDATA[{']' * size}]]></r>",
        )
    )().encode()


def spoilt(r: Random, _port: int) -> bytes:
    """A document into which something was written, from which something was cut, or whose bytes have changed."""
    raw = bytearray(good(r).encode())
    for _ in range(r.randrange(1, 4)):
        at = r.randrange(len(raw) + 1)
        what = r.randrange(5)
        if what < 3:
            raw[at:at] = r.choice(SPOILS)
        elif what == 3 and at < len(raw):
            raw[at] = r.randrange(256)
        else:
            del raw[at : at + r.randrange(1, 9)]
    return bytes(raw)


def cut(r: Random, port: int) -> bytes:
    """The beginning or the end of another one, or two of them."""
    one = r.choice((good(r).encode(), bomb(r, port), outside(r, port)))
    at = r.randrange(len(one) + 1)
    return r.choice((one[:at], one[at:], one + one[at:], one[:at] + outside(r, port)))


def encoded(r: Random, _port: int) -> bytes:
    """Declares an encoding, and is in that one or in another."""
    said, meant = r.choice(ENCODINGS), r.choice(ENCODINGS)
    text = f"<?xml version='1.0' encoding='{said}'?>{good(r)}"
    try:
        return text.encode(meant, "replace")
    except (LookupError, UnicodeError):
        return text.encode("utf-8")


def noise(r: Random, _port: int) -> bytes:
    """Bytes of any sort."""
    return r.randbytes(r.choice((0, 1, 2, 3, 100)))


def plain(r: Random, _port: int) -> bytes:
    """Not spoilt, so that the others have something to meet."""
    return good(r).encode()


SORTS: tuple[Callable[[Random, int], bytes], ...] = (
    *(spoilt,) * 8,
    *(cut,) * 4,
    *(encoded,) * 3,
    *(outside,) * 2,
    *(plain,) * 4,
    bomb,
    deep,
    wide,
    noise,
)


def hostile(number: int, port: int = 9) -> tuple[str, bytes]:
    """The document of a number, with the name of its sort. `port`: where some ask for more."""
    r = Random(number)
    sort = r.choice(SORTS)
    return sort.__name__, sort(r, port)
