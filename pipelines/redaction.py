"""Secrets of connections, kept out of what leaves this process in words: run records, errors on a terminal, logs.

A setting or environment variable is a secret by its name, as Spark's own `spark.redaction.regex` has it. Its value is
remembered when the profile is read, and replaced wherever a message holds it: an exception of a storage client may
quote the address or the key it was given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote

_WORDS = (
    r"secret|passw(?:or)?d|passphrase|passcode|pwd|token|(?:access|account|api|private|shared|encryption|signing)[-._]?"
    r"(?:access[-._]?)?key|credential|signature|authorization|api[-._]?auth"
)
NAMES = re.compile(_WORDS, re.IGNORECASE)
"""Spark's convention, and what storage of other houses calls the same."""
HIDDEN = "***"
SHORTEST = 4
"""Characters: replacing what is shorter would spoil messages and protect nothing."""
_NAME = rf"(?:(?<![\w.-])[\w.-]{{0,80}}?(?:{_WORDS})[\w.-]{{0,80}}|\bsig|\bpass|(?<=[?&])(?:key|code|auth))"
_GIVEN = rf"{_NAME}\\?[\"']?\s*(?:=>|[=:]|%3D)\s*"
_SCHEME = r"(?:bearer|basic|digest|negotiate|token|apikey|aws4-hmac-sha256)"


@dataclass(frozen=True)
class Shape:
    """How a secret looks in a text: what `pattern` matches is replaced, but for what its group `shown` holds."""

    name: str
    pattern: re.Pattern[str]


def _shape(name: str, pattern: str, flags: int = re.IGNORECASE) -> Shape:
    return Shape(name, re.compile(pattern, flags))


SHAPES = (
    _shape(
        "a private key", r"(?P<shown>-----BEGIN [A-Z ]*PRIVATE KEY( BLOCK)?-----).*?(-----END [A-Z ]*-----|\Z)", re.S
    ),
    _shape("an address's user and password", r"(?P<shown>\w://)[^/\s@:\"']{0,200}:[^\s\"'<>]{0,400}(?=@)"),
    _shape(
        "a quoted value of a secret's name",
        rf"(?P<shown>{_GIVEN}(?P<quote>\\?[\"']))(?:(?!(?P=quote))(?:\\.|.))+",
        re.I | re.S,
    ),
    _shape("a value in braces", rf"(?P<shown>{_GIVEN}\{{)[^}}\n]+"),
    _shape(
        "a header's value",
        r"(?P<shown>(?:authorization|x-[\w-]*(?:auth|key|token)|(?:set-)?cookie)\\?[\"']?\s*[=:]\s*)"
        rf"(?:{_SCHEME}\s+)?[^\r\n\"']+",
    ),
    _shape("a token after its scheme", r"(?P<shown>\b(?:bearer|basic)\s+)(?=\S*[\d+/=._-])[\w.~+/=-]{8,}"),
    _shape("a plain value of a secret's name", rf"(?P<shown>{_GIVEN})(?!\*\*\*|\\?[\"']|\{{)[^\s\"',;&)}}\]\\<]+"),
    _shape("an element", rf"(?P<shown><({_NAME})>)[^<]+"),
    _shape("an option", rf"(?P<shown>(?<!\S)--?[\w.-]{{0,80}}?(?:{_WORDS})[\w.-]{{0,80}}\s+)(?!-|\*\*\*)\S+"),
    _shape("a user and password of curl's", r"(?P<shown>(?:\s-u|--user)[ =])[^\s:]+:\S+"),
    _shape("a line of .netrc", r"(?P<shown>\blogin\s+\S+\s+password\s+)\S+"),
    _shape(
        "a web hook's path",
        r"(?P<shown>hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/|(?:webhook|outlook)\.office\.com/"
        r"|chat\.googleapis\.com/v1/spaces/)[^\s\"'<>]+",
    ),
    _shape("a bot's path", r"(?P<shown>/bot)\d{6,}:[\w-]{20,}"),
    _shape("a signed token (JWT)", r"\beyJ[\w-]{5,}\.[\w-]{5,}(?:\.[\w-]*)?", 0),
    _shape("a key of Amazon's", r"\b(?:AKIA|ASIA|AROA|AIDA|ABIA|ACCA)[0-9A-Z]{16}\b", 0),
    _shape("a key of Google's", r"\b(?:AIza[\w-]{30,}|ya29\.[\w-]{10,}|GOCSPX-[\w-]{10,})", 0),
    _shape(
        "a token that tells whose it is",
        r"\b(?:gh[pousr]_|github_pat_|gl(?:pat|dt|rt)-|npm_|pypi-|xox[abeoprs]-|xapp-|[sr]k_(?:live|test)_|whsec_|sk-"
        r"|dapi|hf_|hv[sbr]\.|dop_v1_|SG\.|shp(?:at|ss|ca)_|EAACEdEose0cBA|AGE-SECRET-KEY-|ATATT|NRAK-|PMAK-|lin_api_)"
        r"[\w.+/=-]{16,}",
        0,
    ),
)
"""Tried in this order: what people call a secret, how programs pass one on, how issuers begin their tokens."""
JAVA_PATTERN = (
    r"%replace{%d{HH:mm:ss} %p %c{1}: %m%n%ex}"
    r"{(?i)((?:secret|passw(?:or)?d|passphrase|pwd|token|access.?key|account.?key|signature|\\bsig)[^\\s=:]*\\s*[=:]\\s*"
    r"|authorization\\s*[=:]\\s*\\w+\\s+|bearer\\s+)[^\\s,;&]+}{$1***}"
)
"""How Java's logs are written: what is given to a secret's name is hidden there too. (Doubled: a properties file.)"""
_known: set[str] = set()


def is_secret(name: str) -> bool:
    """Whether the value of a setting or variable of this name is not to be shown."""
    return NAMES.search(name) is not None


def keep_secret(settings: Mapping[str, str]) -> None:
    """Remember the values of those settings that are secrets."""
    _known.update(_values(settings))


def redacted(text: str) -> str:
    """`text` without the secrets this process knows (of its profile and its environment), and without what has one of
    `SHAPES`: passwords in addresses, what is given to a secret's name (`fs.s3a.secret.key=...`), tokens."""
    for value in sorted(_known | set(_values(os.environ)), key=len, reverse=True):
        for written in (value, quote(value, safe="")):
            text = text.replace(written, HIDDEN)
    for shape in SHAPES:
        text = shape.pattern.sub(_hidden, text)
    return text


def _hidden(match: re.Match[str]) -> str:
    shown = match.groupdict().get("shown") or ""
    return f"{shown}{HIDDEN}"


def _values(settings: Mapping[str, str]) -> Iterator[str]:
    for name, value in settings.items():
        plain = value.strip()
        telling = len(plain) >= SHORTEST and plain.lower() not in ("true", "false", "none", "null")
        if is_secret(name) and telling and not os.path.exists(plain):  # a file's path is no secret
            yield plain
